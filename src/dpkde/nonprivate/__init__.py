"""Exact KDE, families without their noise, and a check. **No privacy**: named for its hazard.

For the curator's own eyes, and for tests, benchmarks and experiments, where the truth is needed to
measure an error. Nothing in the private road calls this package.
"""

from dpkde.nonprivate.check import Check, check
from dpkde.nonprivate.exact import estimate, kde

__all__ = ["Check", "check", "estimate", "kde"]
