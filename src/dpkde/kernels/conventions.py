"""Kernels by the names and bandwidths that other libraries give them.

scikit-learn writes with a bandwidth h, and with d = ‖x − y‖:

==================  ======================  ====================================================
its name            its kernel              ours
==================  ======================  ====================================================
``"gaussian"``      exp(−d²/2h²)            `Gaussian` with σ = √2·h
``"exponential"``   exp(−d/h)               `ExponentialLp` with p = 2 and power 1; in one column
                                            `Laplacian`, which is the same there
``"linear"``        max(0, 1 − d/h)         `Hat`, in one column: in several it is a product
==================  ======================  ====================================================

``"tophat"``, ``"epanechnikov"`` and ``"cosine"`` are not positive definite: they are no mean of
f(x)·g(y), and no family here has them.
"""

from __future__ import annotations

from typing import Any

from dpkde.errors import ParameterError
from dpkde.kernels.base import Kernel
from dpkde.kernels.product import Gaussian, Hat, Laplacian
from dpkde.kernels.radial import ExponentialLp

_NONE = (
    "there is no {!r} kernel here: use kernel='gaussian', 'exponential', 'linear' (one column), or "
    "one of dpkde's, such as kernel=dpkde.Cauchy(0.5)"
)


def of_scikit_learn(name: Any, bandwidth: Any, dim: int) -> Kernel:
    """Return the kernel that scikit-learn's `KernelDensity` means by a name and a bandwidth.

    A bandwidth that is a text is handed on as it is: it names a rule, which knows its own units.

    >>> of_scikit_learn("gaussian", 1.0, dim=2)
    Gaussian(bandwidth=1.4142135623730951)
    >>> of_scikit_learn("exponential", 0.5, dim=1)
    Laplacian(bandwidth=0.5)
    """
    match name:
        case "gaussian":
            is_rule = isinstance(bandwidth, str)
            return Gaussian(bandwidth) if is_rule else Gaussian.from_std(bandwidth)
        case "exponential":
            return Laplacian(bandwidth) if dim == 1 else ExponentialLp(2, 1, bandwidth)
        case "linear" if dim == 1:
            return Hat(bandwidth)
        case "linear":
            raise ParameterError(
                f"the 'linear' kernel over {dim} columns is none of dpkde's: dpkde.Hat(bandwidth) "
                "is a product of linear ones"
            )
    raise ParameterError(_NONE.format(name))
