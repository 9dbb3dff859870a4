"""The one place that asks for scikit-learn."""

from __future__ import annotations

from dpkde.errors import ParameterError

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin, OutlierMixin
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise ParameterError(
        "scikit-learn 1.6 or newer is not installed: pip install 'dpkde[sklearn]'"
    ) from None

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "DataConversionWarning",
    "DensityMixin",
    "OutlierMixin",
    "check_is_fitted",
    "check_random_state",
    "validate_data",
]
