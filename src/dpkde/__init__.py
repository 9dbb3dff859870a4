"""dpkde: publish the density of a private data set once; let anyone query it for ever.

::

              public ──► Plan ──────────────────────────┐
                          │                             │
    points ──► Domain ──► Pair.quantize ──► Sketch ──► noise ──► Release ──► Pair.respond ──► kde
    (private)  clip,scale  f(x) as integers  exact sums  exact DP (public)   ⟨table, g(y)⟩
    └───────────────── curator: the only code that holds points ─┘└─────── client ──────────┘

>>> import dpkde
>>> import numpy as np
>>> points = np.random.default_rng(0).normal(size=(20_000, 3))
>>> release = dpkde.publish(points, kernel=dpkde.Gaussian(bandwidth=2.0), epsilon=1.0)
>>> release.kde(np.zeros((5, 3))).shape
(5,)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dpkde import nonprivate, prior
    from dpkde.curator.publish import publish
    from dpkde.curator.sketch import Sketch, sketch
    from dpkde.errors import (
        AccuracyError,
        BudgetError,
        DpkdeError,
        FormatError,
        MergeError,
        ParameterError,
        SchemaError,
        VersionError,
    )
    from dpkde.families.custom import CustomFamily, Limits
    from dpkde.families.fastgauss import FastGauss
    from dpkde.families.fourier import Fourier
    from dpkde.families.hashing import Hashing
    from dpkde.families.spline import Spline
    from dpkde.kernels import (
        Cauchy,
        Erfc,
        ExponentialLp,
        Gaussian,
        Geodesic,
        Hat,
        Jaccard,
        Laplacian,
        Matern,
        Mixture,
        Product,
        RationalQuadratic,
    )
    from dpkde.planning.plan import Plan, plan
    from dpkde.planning.promise import Promise
    from dpkde.privacy.audit import audit
    from dpkde.privacy.statement import PrivacyStatement
    from dpkde.release.format import load
    from dpkde.release.release import Release
    from dpkde.space.domain import Ball, Box, Sets, Sphere
    from dpkde.tables import CSV

# Names resolve on first use: importing dpkde loads little, and client code never loads the curator.
_HOMES = {
    "CSV": "tables",
    "AccuracyError": "errors",
    "Ball": "space.domain",
    "Box": "space.domain",
    "BudgetError": "errors",
    "Cauchy": "kernels",
    "CustomFamily": "families.custom",
    "DpkdeError": "errors",
    "Erfc": "kernels",
    "ExponentialLp": "kernels",
    "FastGauss": "families.fastgauss",
    "FormatError": "errors",
    "Fourier": "families.fourier",
    "Gaussian": "kernels",
    "Geodesic": "kernels",
    "Hashing": "families.hashing",
    "Hat": "kernels",
    "Jaccard": "kernels",
    "Laplacian": "kernels",
    "Limits": "families.custom",
    "Matern": "kernels",
    "MergeError": "errors",
    "Mixture": "kernels",
    "ParameterError": "errors",
    "Plan": "planning.plan",
    "PrivacyStatement": "privacy.statement",
    "Product": "kernels",
    "Promise": "planning.promise",
    "RationalQuadratic": "kernels",
    "Release": "release.release",
    "SchemaError": "errors",
    "Sets": "space.domain",
    "Sketch": "curator.sketch",
    "Sphere": "space.domain",
    "Spline": "families.spline",
    "VersionError": "errors",
    "audit": "privacy.audit",
    "load": "release.format",
    "nonprivate": "nonprivate",
    "plan": "planning.plan",
    "prior": "prior",
    "publish": "curator.publish",
    "sketch": "curator.sketch",
}

__all__ = [
    "CSV",
    "AccuracyError",
    "Ball",
    "Box",
    "BudgetError",
    "Cauchy",
    "CustomFamily",
    "DpkdeError",
    "Erfc",
    "ExponentialLp",
    "FastGauss",
    "FormatError",
    "Fourier",
    "Gaussian",
    "Geodesic",
    "Hashing",
    "Hat",
    "Jaccard",
    "Laplacian",
    "Limits",
    "Matern",
    "MergeError",
    "Mixture",
    "ParameterError",
    "Plan",
    "PrivacyStatement",
    "Product",
    "Promise",
    "RationalQuadratic",
    "Release",
    "SchemaError",
    "Sets",
    "Sketch",
    "Sphere",
    "Spline",
    "VersionError",
    "__version__",
    "audit",
    "load",
    "nonprivate",
    "plan",
    "prior",
    "publish",
    "sketch",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpkde' has no attribute {name!r}")
    module = importlib.import_module(f"dpkde.{_HOMES[name]}")
    value = module if name in ("nonprivate", "prior") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
