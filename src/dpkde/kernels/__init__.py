"""Kernels: exact values, integral over space, and what families draw from.

==================  ==================================  ============================
kernel              k(x, y), σ = 1                      served by
==================  ==================================  ============================
`Gaussian`          exp(−‖x − y‖²)                      splines, fast Gauss, Fourier
`Laplacian`         exp(−‖x − y‖₁)                      splines, Fourier, hashing
`Cauchy`            ∏ 1/(1 + (x_k − y_k)²)              splines, Fourier
`Hat`               ∏ max(0, 1 − |x_k − y_k|)           splines, Fourier, hashing
`ExponentialLp`     exp(−‖x − y‖_p^power)               by p and power
`Matern`            Matérn's of order ν                 Fourier
`RationalQuadratic` (1 + ‖x − y‖²/a)^{−a}               Fourier
`Erfc`              erfc(r)/(2 − erfc(r))               Fourier, hashing
`Geodesic`          1 − angle/π                         hashing
`Jaccard`           |A ∩ B|/|A ∪ B|                     hashing
`Product`           ∏ k_i(x, y)                         what serves all its parts
`Mixture`           Σ w_i k_i(x, y)                     what serves all its parts
==================  ==================================  ============================

**To add a kernel**, write a frozen dataclass that derives from `Kernel`, with a `name`. With
a ``spectrum`` it works with `Fourier` at once, derived from `ProductKernel` with `Spline`, with a
``partition`` with `Hashing`. ``dpkde.load(path, kernels=[Mine])`` reads releases made with it.
``docs/extend.md`` has an example.
"""

from __future__ import annotations

from typing import Any, cast

from dpkde.errors import FormatError, ParameterError
from dpkde.kernels.bandwidth import Bandwidth, BandwidthLike, Points
from dpkde.kernels.base import Json, Kernel, ProductKernel
from dpkde.kernels.combine import Mixture, Product
from dpkde.kernels.product import Cauchy, Gaussian, Hat, Laplacian
from dpkde.kernels.radial import Erfc, ExponentialLp, Matern, RationalQuadratic
from dpkde.kernels.similarity import Geodesic, Jaccard

__all__ = [
    "KERNELS",
    "Bandwidth",
    "BandwidthLike",
    "Cauchy",
    "Erfc",
    "ExponentialLp",
    "Gaussian",
    "Geodesic",
    "Hat",
    "Jaccard",
    "Kernel",
    "Laplacian",
    "Matern",
    "Mixture",
    "Points",
    "Product",
    "ProductKernel",
    "RationalQuadratic",
    "kernel_from_json",
]

KERNELS: dict[str, type[Any]] = {
    kernel.name: kernel
    for kernel in (
        Gaussian,
        Laplacian,
        Cauchy,
        Hat,
        ExponentialLp,
        Matern,
        RationalQuadratic,
        Erfc,
        Geodesic,
        Jaccard,
        Product,
        Mixture,
    )
}
"""Kernels by the name they have in a release file."""


PLAIN: Kernel = Gaussian(1.0)
"""A kernel of bandwidth one, for frames in the units of the data."""


def kernel_from_json(
    name: Any,
    version: Any,
    parameters: Json,
    extra: tuple[type[Any], ...] = (),
    depth: int = 8,
) -> Kernel:
    """Return a kernel from what a release file says of it. Names are looked up, never imported.

    Products and mixtures may be nested to a depth of eight.
    """
    if depth < 1:
        raise FormatError("the kernels of this file are nested too deeply")
    known = KERNELS | {kernel.name: kernel for kernel in extra}
    if name not in known:
        raise FormatError(
            f"this file uses the kernel {name!r}, which is unknown here; "
            "pass it as dpkde.load(path, kernels=[...])"
        )
    kernel = known[name]
    if version != kernel.version:
        raise FormatError(f"this file uses version {version} of the {name} kernel")
    try:
        arguments = dict(parameters)
        if issubclass(kernel, (Product, Mixture)):
            arguments["kernels"] = [
                kernel_from_json(
                    part["name"], part["version"], part["parameters"], extra, depth - 1
                )
                for part in arguments["kernels"]
            ]
        return cast("Kernel", kernel(**arguments))
    except FormatError:
        raise
    except (LookupError, ParameterError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"the parameters of the {name} kernel are damaged: {error}") from None
