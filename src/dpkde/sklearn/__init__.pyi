"""What can be imported from here, and where it lives: listed once, read by `dpkde.lazy` too."""

from dpkde.sklearn.classifier import PrivateKDEClassifier as PrivateKDEClassifier
from dpkde.sklearn.density import PrivateKernelDensity as PrivateKernelDensity
from dpkde.sklearn.outliers import PrivateOutlierDetector as PrivateOutlierDetector

__all__: list[str]
