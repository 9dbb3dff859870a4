"""What can be imported from here, and where it lives: listed once, read by `dpkde.lazy` too."""

from dpkde import nonprivate as nonprivate
from dpkde import prior as prior
from dpkde import sklearn as sklearn
from dpkde.curator.publish import publish as publish
from dpkde.curator.sketch import Sketch as Sketch
from dpkde.curator.sketch import sketch as sketch
from dpkde.errors import AccuracyError as AccuracyError
from dpkde.errors import BudgetError as BudgetError
from dpkde.errors import DpkdeError as DpkdeError
from dpkde.errors import FormatError as FormatError
from dpkde.errors import LedgerError as LedgerError
from dpkde.errors import MergeError as MergeError
from dpkde.errors import ParameterError as ParameterError
from dpkde.errors import SchemaError as SchemaError
from dpkde.errors import VersionError as VersionError
from dpkde.families.base import Family as Family
from dpkde.families.base import Prediction as Prediction
from dpkde.families.custom import CustomFamily as CustomFamily
from dpkde.families.custom import Limits as Limits
from dpkde.families.fastgauss import FastGauss as FastGauss
from dpkde.families.fourier import Fourier as Fourier
from dpkde.families.hashing import Hashing as Hashing
from dpkde.families.spline import Spline as Spline
from dpkde.kernels import Cauchy as Cauchy
from dpkde.kernels import Erfc as Erfc
from dpkde.kernels import ExponentialLp as ExponentialLp
from dpkde.kernels import Gaussian as Gaussian
from dpkde.kernels import Geodesic as Geodesic
from dpkde.kernels import Hat as Hat
from dpkde.kernels import Jaccard as Jaccard
from dpkde.kernels import Kernel as Kernel
from dpkde.kernels import Laplacian as Laplacian
from dpkde.kernels import Matern as Matern
from dpkde.kernels import Mixture as Mixture
from dpkde.kernels import Product as Product
from dpkde.kernels import RationalQuadratic as RationalQuadratic
from dpkde.planning.plan import Plan as Plan
from dpkde.planning.plan import plan as plan
from dpkde.planning.promise import Promise as Promise
from dpkde.privacy.audit import audit as audit
from dpkde.privacy.ledger.ledger import Ledger as Ledger
from dpkde.privacy.statement import PrivacyStatement as PrivacyStatement
from dpkde.release.classifier import Classifier as Classifier
from dpkde.release.compare import distance as distance
from dpkde.release.format import load as load
from dpkde.release.progress import progress as progress
from dpkde.release.release import Release as Release
from dpkde.space.domain import Ball as Ball
from dpkde.space.domain import Box as Box
from dpkde.space.domain import Sets as Sets
from dpkde.space.domain import Sphere as Sphere
from dpkde.tables import CSV as CSV

__version__: str
__all__: list[str]
