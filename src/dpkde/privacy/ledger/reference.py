"""What dp-accounting makes of the same releases: shown beside our figures, and decides nothing.

Its composition is numerically tight for releases that were all fixed in advance. Here each may be
chosen after seeing the ones before, for which it does not hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from dpkde.errors import ParameterError
from dpkde.privacy.budget import Guarantee
from dpkde.privacy.ledger.accounting import Cost

MARK = "if all releases had been fixed in advance (dp-accounting; decides nothing)"
_STEP = 1e-4
"""By which privacy losses are rounded up."""


def epsilon_in_advance(guarantees: Iterable[Guarantee], delta: Fraction) -> float:
    """Return dp-accounting's ε at some δ > 0 for releases with these guarantees.

    By privacy loss distributions; by Rényi divergences where one is stated as ρ. It takes the extra
    ``dpkde[accounting]``.
    """
    try:
        import dp_accounting
        from dp_accounting import rdp
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        raise ParameterError(
            "dp-accounting is not installed: pip install 'dpkde[accounting]'"
        ) from None
    times = Counter(guarantees)
    if any(guarantee.rho is not None for guarantee in times):
        accountant = rdp.RdpAccountant()
        for guarantee, number in times.items():
            event = dp_accounting.ZCDpEvent(_above(Cost.of(guarantee).rho))
            accountant.compose(event, number)
        return float(accountant.get_epsilon(float(delta)))
    composed = privacy_loss_distribution.identity(_STEP)
    for guarantee, number in times.items():
        assert guarantee.epsilon is not None
        pair = common.DifferentialPrivacyParameters(
            _above(guarantee.epsilon), _above(guarantee.delta)
        )
        one = privacy_loss_distribution.from_privacy_parameters(
            pair, value_discretization_interval=_STEP
        )
        composed = composed.compose(one.self_compose(number))
    return float(composed.get_epsilon_for_delta(float(delta)))


def _above(value: Fraction) -> float:
    """Return a float that is not below a fraction."""
    import math

    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)
