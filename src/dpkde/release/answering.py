"""What can be asked of a noisy table: of a release, and of every other reading of it.

Each method is a line or two: what it does is in the module that it calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpkde.planning.plan import Plan
from dpkde.planning.promise import Promise
from dpkde.privacy.budget import Spend
from dpkde.privacy.laws import Law
from dpkde.privacy.statement import PrivacyStatement
from dpkde.release import (
    answers,
    bandwidths,
    denoising,
    distribution,
    intervals,
    maps,
    marginals,
    regions,
)
from dpkde.release.marginals import Conditional
from dpkde.tables.arrays import QueriesLike

if TYPE_CHECKING:
    from dpkde.densities.base import Density
    from dpkde.densities.report import SampleReport
    from dpkde.families.base import Family
    from dpkde.kernels import Kernel
    from dpkde.release.assistance import Assistance
    from dpkde.release.maps import Map
    from dpkde.release.release import Release
    from dpkde.release.views import View
    from dpkde.space.domain import Domain


class Answering:
    """A noisy table, its noisy count, and the plan by which they are read.

    Attributes
    ----------
    plan
        Kernel, domain, family and lattice.
    table
        The noisy sums, in units of 2^−bits; read-only.
    count
        The number of records: noisy under add-remove, exact under replace. At least 1.
    privacy
        What is guaranteed, with every spend.
    promise
        The (α, η) that answers keep, if any.
    rate
        The probability with which a record entered the table.
    """

    __slots__ = ()

    plan: Plan
    count: int
    privacy: PrivacyStatement
    promise: Promise | None
    rate: Fraction
    _found: dict[str, Any]

    @property
    def table(self) -> NDArray[np.int64]:
        """The noisy sums, in units of 2^−bits; read-only."""
        raise NotImplementedError  # abstract

    @property
    def _assistance(self) -> Assistance | None:
        """What helps to answer, where a model was fitted."""
        return None

    @property
    def kernel(self) -> Kernel:
        """The kernel that was published."""
        return self.plan.frame.kernel

    @property
    def domain(self) -> Domain:
        """The public bounds."""
        return self.plan.frame.domain

    @property
    def family(self) -> Family:
        """The family, with its parameters."""
        return self.plan.family

    @property
    def dim(self) -> int:
        """Number of columns."""
        return self.plan.frame.dim

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns, if they were given."""
        return self.plan.columns

    @property
    def _source(self) -> Release:
        """The release whose table this is."""
        raise NotImplementedError  # abstract

    def _viewed(self, plan: Plan) -> View:
        """Return the release's table, read by another plan."""
        raise NotImplementedError  # abstract

    def law(self, purpose: str) -> Law | None:
        """Return the law of the noise on ``"table"`` or ``"count"``; None if there was none."""
        spends = [s for s in self.privacy.spends if isinstance(s, Spend)]
        return next((s.law for s in spends if s.purpose == purpose), None)

    def kde(
        self,
        queries: QueriesLike,
        *,
        groups: int = 1,
        clip: bool = True,
        assisted: bool | None = None,
    ) -> NDArray[np.float64]:
        """Return the KDE at each query, clipped to [0, 1].

        It is the KDE of the records as they count: those beyond the bounds were moved to them, or
        dropped. So an answer of zero beyond the bounds says nothing of whether there were any;
        `outside` tells which queries lie there.

        For `Fourier` it is assisted: a model of the data, fitted to the noisy table, answers, and
        what the table shows that the model misses is added; see `model`. For others, and where no
        model is better than none, it is `kernel_sum` over the count.

        Parameters
        ----------
        queries
            Shape (n_queries, dim), dense or sparse, or one point of shape (dim,); a data frame; or
            sets, as lists of element numbers, where the domain is `Sets`. A query that is not
            finite gets NaN, and so does one that lies further than 65,536 (`Fourier`) or 4,096
            (`Hashing`) bandwidths from the center of the bounds on some axis.
        groups
            J > 1: the median of J means over the family's repetitions, as in the paper.
        clip
            False leaves values below 0 and above 1, which noise produces, as they are.
        assisted
            False: the plain estimate, unbiased before it is clipped. None: assisted, unless
            `groups` are asked for or the release has a `promise`, which plain answers keep.
        """
        return answers.kde(self, queries, groups=groups, clip=clip, assisted=assisted)

    def outside(self, queries: QueriesLike) -> NDArray[np.bool_]:
        """Return which queries lie outside the bounds, where no record can be.

        Whatever the data were there, they were moved to the bounds or dropped. Near the bounds the
        kernel still reaches across; further out answers are zero, or nothing but noise. A query
        that is not finite is not among them, and without bounds none is.
        """
        return answers.outside(self, queries)

    def kernel_sum(self, queries: QueriesLike, *, groups: int = 1) -> NDArray[np.float64]:
        """Return the estimate of Σ k(x, y) at each query.

        Unbiased over noise and seeds for `Fourier` and `Hashing`; `Spline` and `FastGauss` have a
        small bias of their own, which `sampling_error` tells the size of.
        """
        return answers.kernel_sum(self, queries, groups=groups)

    def standard_error(
        self, queries: QueriesLike, *, assisted: bool | None = None
    ) -> NDArray[np.float64]:
        """Return the standard deviation that the noise gives to `kde` at each query.

        Exact where the count is public; otherwise to first order in the count's noise (delta
        method). The family's own randomness comes on top: see `sampling_error`. Assisted answers
        leave out some of the noise where they trust their model; that holds on average, so this is
        the noise of the whole correction, and `average_error` tells the average.
        """
        return answers.standard_error(self, queries, assisted)

    def average_error(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return the root mean square error to expect of `kde` on average over queries like these.

        For assisted answers it is often several times less than what `standard_error` and
        `sampling_error` claim of each query: where a small group of records lies by itself, a
        single answer may be further off. For plain answers it is the two together.
        """
        return answers.average_error(self, queries)

    def sampling_error(
        self, queries: QueriesLike, *, assisted: bool | None = None
    ) -> NDArray[np.float64]:
        """Return an estimate of what the family itself adds to the error of `kde`.

        From the release alone. For `Fourier` and `Hashing`, the standard deviation over seeds: how
        much the answers of repetitions differ, less what the noise explains; with δ the noise is
        small and this is the larger part. For `Spline` and `FastGauss`, a typical size of their
        bias. For assisted answers, the standard deviation over seeds of model and correction
        together.
        ``hypot(standard_error, sampling_error)`` is the whole error.
        """
        return answers.sampling_error(self, queries, assisted)

    def kernel_sum_standard_error(self, queries: QueriesLike) -> NDArray[np.float64]:
        """Return the standard deviation that the noise gives to `kernel_sum`, exactly."""
        return answers.kernel_sum_standard_error(self, queries)

    def error_bound(self, eta: float) -> float:
        """Return α: the error of `kde` exceeds it with probability at most η, whatever the data.

        At any one query that was not chosen by looking at this release; at all queries inside the
        bounds at once, where it was published with ``simultaneous=True``. It counts the worst
        records and queries there could be, over the noise, the count's included, and the seed; see
        `dpkde.planning.promise`. It is for plain answers: assisted ones and those with ``groups``
        are not covered. What to expect at a query is `interval`.
        """
        return intervals.error_bound(self, eta)

    def interval(
        self,
        queries: QueriesLike,
        level: float = 0.95,
        *,
        bias: str | None = None,
        assisted: bool | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and upper ends of an interval for the KDE at each query.

        It holds the KDE of the data with probability `level`, at each query on its own: by the
        exact law of the noise on table and count at this query, widened by the family's own
        error. For `Fourier` and `Hashing` that is what the release shows of it, with room for
        doubt; where answers are assisted, about the model with all of its correction, which is
        unbiased whatever the model. For `Spline` and `FastGauss` it is a bias:

        * ``bias="worst"``: the largest there can be, whatever the data. Small in a release that was
          published with `alpha` and `eta`, often large in others.
        * ``bias="typical"``: twice its typical size. Right where records are spread out; rounded
          values and clusters narrower than a bandwidth have more, and coverage is then lower.

        None: the first where `promise` is set, else the second. A level above 1 − 10⁻⁷ is taken
        for that.
        """
        return intervals.interval(self, queries, level, bias, assisted)

    def mass(
        self,
        boxes: Any,
        *,
        smoothed: bool = True,
        clip: bool = True,
        assisted: bool | None = None,
    ) -> NDArray[np.float64]:
        """Return the share of the density in each region, clipped to [0, 1].

        That of the smoothed density, the integral of `kde` over the region divided by that of the
        kernel: in closed form for boxes, by `Spline`, `FastGauss` (all cells, without its cutoff)
        and `Fourier`. The kernel makes it wider than the records: a region that is not much wider
        than the bandwidth loses some of its records to the outside. ``smoothed=False`` is nearer to
        the records, and so is a narrower kernel, see `with_kernel`. The whole space has all
        records: 1, but for the noise. Where the number of rows is public, those that were dropped
        or are not finite are among them, in no region.

        Parameters
        ----------
        boxes
            One box of shape (dim, 2), with a number for an answer, or several of shape (n_boxes,
            dim, 2), with an answer of shape (n_boxes,). Ends may be infinite, or None in a list;
            where there is one column, a pair is a box. Or intervals by column, ``{"lon": (-74,
            -73.9)}``, other columns being whole; or a list of those. Or, for two columns, polygons:
            GeoJSON, or whatever has a ``__geo_interface__``; a feature collection or a list has an
            answer of shape (n_regions,). Rings of a polygon follow the even-odd rule; polygons of
            one region (a multipolygon, a geometry collection) are added, so that what lies in two
            of them counts twice. Coordinates are in the order of the columns; but where the first
            is a latitude by its name (a word of it is lat, latitude, north, northing or y) and the
            second a longitude (lon, lng, long, longitude, east, easting or x), they are longitude
            first, as GeoJSON has it. What they enclose is cut into strips until the share changes
            by 10⁻⁷ at most. A box with an end that is no number gets NaN.
        smoothed
            False: the share of the records themselves, as well as the table tells it. Its edges are
            fits of a step, `Spline`'s about a spacing wide and `FastGauss`'s a bandwidth. That of
            `Spline` rings: a record is counted wrongly by up to 0.14 between one and two spacings
            from an edge, 0.07 up to three, 0.04 up to four. Where records are spread out that
            cancels; where they are heaped near an edge it does not. Boxes only.
        clip
            False leaves values below 0 and above 1, which noise produces, as they are.
        assisted
            False: the plain estimate. None: where a model helps to answer (`Fourier`, Gaussian
            kernel, clouds along the axes), its share in each box with all of the correction that
            the table shows; else plain.

        Notes
        -----
        Infinite ends of a `Fourier` release are cut where records and the kernel end, which takes
        bounds. Its noise grows with the region: `mass_standard_error` tells.
        """
        return regions.mass(self, boxes, smoothed=smoothed, clip=clip, assisted=assisted)

    def mass_standard_error(
        self, boxes: Any, *, smoothed: bool = True, assisted: bool | None = None
    ) -> NDArray[np.float64]:
        """Return the standard deviation that the noise gives to `mass` in each region.

        Exact where the count is public; otherwise to first order in the count's noise. What the
        family itself adds, its bias or its random draws, comes on top, and `mass_interval` has it.
        With ``smoothed=False`` it is the noise alone, too, and no interval has the error of the
        edges: where records are heaped near one, that can be many times more.
        """
        return regions.mass_standard_error(self, boxes, smoothed=smoothed, assisted=assisted)

    def mass_interval(
        self,
        boxes: Any,
        level: float = 0.95,
        *,
        smoothed: bool = True,
        assisted: bool | None = None,
        bias: str = "worst",
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and upper ends of an interval for the share of each region.

        It holds the share of the data with probability `level`, for each region on its own: by the
        exact law of the noise on table and count, widened by the family's own error. Of `Spline`
        and `FastGauss` that is a bias, which `bias` tells how to allow for. ``"worst"`` is a bound
        from the noisy table: the interval holds for any data, however records are heaped, and holds
        more often than asked where the bound is large beside the noise and records are spread out.
        ``"typical"`` is shorter there: next to nothing where records are spread out, and what one
        heap of records near a face does, so far as the table shows it. Several heaps near one face
        can do more, and so can one at the outline of a polygon. `Fourier` has no bias: both are the
        same, and allow for what its frequencies show.

        With `smoothed`, the share is that of the smoothed density; without, of the records
        themselves, which is another number and need not lie in the interval of the first.
        """
        return regions.mass_interval(
            self, boxes, level, smoothed=smoothed, assisted=assisted, bias=bias
        )

    def records(self, boxes: Any, *, smoothed: bool = True) -> NDArray[np.float64]:
        """Return the number of records in each region: `mass` in numbers, not clipped.

        The noise on the count is not in it. Regions are those of `mass`.
        """
        return regions.records(self, boxes, smoothed=smoothed)

    def records_standard_error(self, boxes: Any, *, smoothed: bool = True) -> NDArray[np.float64]:
        """Return the standard deviation that the noise gives to `records`, exactly."""
        return regions.records_standard_error(self, boxes, smoothed=smoothed)

    def marginal(self, columns: str | int | Sequence[str | int]) -> Answering:
        """Return a view of some columns, by names or numbers: it answers as a release of them.

        Its `kde` is that of the records' values in those columns, with the kernel of those columns;
        in closed form, for `Spline` and `FastGauss`. It costs nothing, keeps no promise, and is not
        a file. Each column that is left out adds the noise of its cells.

        It has answers with their errors and typical intervals, maps, shares of regions,
        distribution functions, and marginals and conditionals of its own. It has no density or
        sample (take these columns of ``release.sample(…)``), no error bound, and no other kernel:
        take ``release.with_kernel(…).marginal([…])``.
        """
        return marginals.marginal(self, columns)

    def conditional(self, given: Mapping[str | int, float]) -> Conditional:
        """Return the density of the other columns, given values of some: ``{"trip distance": 3}``.

        Its `kde` is on the kernel's scale, from 0 to 1: joint over marginal; divided by
        ``conditional.kernel.integral(conditional.dim)`` it integrates to one. See `Conditional`.
        For `Spline` and `FastGauss`.
        """
        return marginals.conditional(self, given)

    def cdf(self, values: ArrayLike, column: str | int | None = None) -> NDArray[np.float64]:
        """Return the share of a column's smoothed density up to each value.

        It never falls and lies within [0, 1], whatever the noise; an answer does not depend on what
        else is asked. A column is named or numbered; a release of one column needs none. The
        kernel makes it flatter than that of the records.
        """
        return distribution.cdf(self, values, column)

    def cdf_interval(
        self,
        values: ArrayLike,
        column: str | int | None = None,
        level: float = 0.95,
        *,
        bias: str = "worst",
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of an interval for `cdf` at each value, on its own.

        About the estimate before it was made monotone, so that `cdf` may lie near one of its ends.
        `bias` is what it allows for the family's own, as in `mass_interval`.
        """
        return distribution.cdf_interval(self, values, column, level, bias)

    def quantile(self, shares: ArrayLike, column: str | int | None = None) -> NDArray[np.float64]:
        """Return the first value at which `cdf` reaches each share; 0.5 asks for the median.

        Shares are strictly between 0 and 1. It is the quantile of the smoothed density, whose
        tails are longer than those of the records by the kernel; the median moves least.
        """
        return distribution.quantile(self, shares, column)

    def quantile_interval(
        self,
        shares: ArrayLike,
        column: str | int | None = None,
        level: float = 0.95,
        *,
        bias: str = "worst",
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of an interval for the quantile of each share, on its own.

        It holds all values whose interval by `cdf_interval` holds the share, and so the quantile
        of the smoothed density; that of the records is another number.
        """
        return distribution.quantile_interval(self, shares, column, level, bias)

    def grid(
        self,
        shape: int | Sequence[int],
        bounds: Any = None,
        *,
        clip: bool = True,
        assisted: bool | None = None,
    ) -> Map:
        """Return `kde` at all places of a grid at once: a map, with its axes and values.

        Places are the centers of equal cells that cover the bounds. For `Spline` a map of
        1000 × 1000 takes some hundredths of a second; other families are asked place by place.
        The map's `standard_error` is computed when asked for, and `save` writes CSV, Parquet,
        ``.npy`` and GeoTIFF.

        Parameters
        ----------
        shape
            How many places: a number for all columns, or one for each.
        bounds
            One (low, high) pair for each column; None: those of the release. Where low and high
            are equal and the shape is 1, the map is a slice at that value.
        clip, assisted
            As in `kde`.
        """
        return maps.grid(self, shape, bounds, clip=clip, assisted=assisted)

    def denoise(self) -> Density:
        """Return the proper density of this release: not negative, of total mass one.

        For `Spline`: weights at sites that could be those of records, whose KDE is nearest to the
        noisy one (`dpkde.densities.fitting`). Where the table shows nothing above its noise there
        is nothing; dense parts keep their answers. Along axes much narrower than the bandwidth,
        records lie evenly about the mean that the table tells. For `Fourier`: the density of the
        fitted `model`, without the correction that `kde` adds. Other tables have none.

        The same file gives the same density, computed when first asked for: within a second for
        tables of ten thousand cells, some seconds for a million. It costs no privacy.
        """
        if "density" not in self._found:
            self._found["density"] = denoising.denoised(self)
        density: Density = self._found["density"]
        return density

    def density(self, queries: QueriesLike, *, support: str = "space") -> NDArray[np.float64]:
        """Return the density of the denoised release at each query, by volume in data units.

        Parameters
        ----------
        queries
            As for `kde`.
        support
            ``"space"``: its integral over all of space is one; the kernel carries some of it
            beyond the bounds. ``"bounds"``: its integral over the box is one, by folding what lies
            beyond back at the faces; zero outside.
        """
        return self.denoise().density(queries, support=support)

    def log_density(self, queries: QueriesLike, *, support: str = "space") -> NDArray[np.float64]:
        """Return the logarithm of `density`: −∞ where that is zero.

        Over all of space it is finite where the density is below the least number, too, but for
        kernels that end. NaN where a query is not finite.
        """
        return self.denoise().log_density(queries, support=support)

    def sample(
        self, n: int, *, seed: int | None = None, support: str = "space", smoothed: bool = True
    ) -> NDArray[np.float64]:
        """Return n synthetic points, shape (n, dim): independent draws from `density`, exactly.

        For `Fourier` they are points of the fitted model, without the correction that `kde` adds.
        They follow the smoothed density, so details narrower than the bandwidth are gone, and no
        point is a record; `sample_report` compares them with the release.

        Parameters
        ----------
        n
            How many.
        seed
            Of this public randomness: the same seed gives the same points.
        support
            ``"bounds"`` folds points beyond the bounds back into them.
        smoothed
            False leaves out the kernel's offsets: shares of regions are then nearer to those of
            the records, as are the points' own KDE and this release's.
        """
        return self.denoise().sample(n, seed=seed, support=support, smoothed=smoothed)

    def sample_standard_error(self, boxes: Any, n: int) -> NDArray[np.float64]:
        """Return the standard error of the share of n sampled points in each region.

        As an estimate of the smoothed share of the data: √(s² + p(1 − p)/n), s that of `mass`,
        which is the noise of the release and is there however many points are drawn; the rest is
        chance. What denoising does is not in it; ``benchmarks/sampling.py`` measures that. Points
        of a Fourier release also miss what its model does; points folded into bounds are counted in
        boxes that are open there. Of points that the kernel has not moved, and the records' own
        shares, `mass_interval` tells with ``smoothed=False``.
        """
        return regions.sample_standard_error(self, boxes, n)

    def sample_report(self, points: QueriesLike, *, most: int = 1000) -> SampleReport:
        """Return how the KDE of a sample compares with this release's; see `SampleReport`."""
        return denoising.compared(self, points, most)

    def with_kernel(self, kernel: Kernel) -> View:
        """Return the same table read with another kernel or bandwidth. Costs no privacy.

        The view answers as a release does, with errors of its own; `promise` is None, and it is
        not a file. `Spline` tables serve every product kernel that is not too narrow for their
        mesh: one whose fit is off by at most a tenth of a typical answer, or by no more than the
        release itself. A wider kernel lets more noise through than a release made for it would.
        `Fourier` tables serve kernels near their own, by weights for their frequencies, and only
        very near ones in many dimensions. What does not work is refused, with the bandwidth that
        would, or how many times as wide a bandwidth per column would have to be.

        Parameters
        ----------
        kernel
            Such as ``dpkde.Gaussian(0.05)``, or ``release.kernel.scaled(2)``. A matrix bandwidth
            may be multiplied by a number, and no more.
        """
        return self._viewed(bandwidths.reread(self._source, kernel))

    def bandwidths(self) -> NDArray[np.float64]:
        """Return the bandwidths that `with_kernel` takes, for the kernel that was published.

        Up to 17 multiples of the published bandwidth, itself among them, at about equal ratios:
        from the narrowest that the table can serve to one as wide as the bounds, or the widest
        that it can. Shape (count,), or (count, dim) for a bandwidth per axis, or (count, dim, dim)
        for a matrix.
        """
        return bandwidths.bandwidths(self._source)

    def best_bandwidth(self) -> float | NDArray[np.float64]:
        """Return the bandwidth whose density, as it is released, has the least estimated L2 risk.

        The risk is ∫(f̂ − f)² over all of space, f̂ being the unclipped KDE over the kernel's
        integral and f the density of which the records are a sample. It is estimated from the
        noisy table alone, without bias: least squares cross-validation, less what noise adds to it,
        so that f̂ counts with its noise. For `Spline` tables, in the range of `bandwidths`; at its
        lower end the best may be one that the mesh cannot show.
        """
        return bandwidths.best_bandwidth(self._source)

    def plot(
        self,
        columns: str | int | Sequence[str | int] | None = None,
        *,
        ax: Any = None,
        axes: Any = None,
        scale: str | None = None,
        denoised: bool | None = None,
        log: bool = False,
        level: float | None = 0.95,
        contours: bool = True,
        hatch: bool = True,
        points: Any = None,
        outlines: Any = None,
        bounds: Any = None,
        shape: int | Sequence[int] | None = None,
        title: str | None = None,
        width: float | None = None,
        dark: bool = False,
    ) -> Any:
        """Return a picture of this release: a matplotlib figure, or the axes that were passed.

        One column: a curve, with a band that holds the KDE of the data with probability `level` at
        each place on its own. Two: a map in colours, hatched where the noise exceeds what is drawn;
        contours enclose 50, 80 and 95% of it, but for those that the noise leaves no place. Three
        to six: the marginals of all columns and of all pairs, in a corner plot. It takes one more
        package: ``pip install 'dpkde[plot]'``.

        What is drawn is the proper density, `denoise`, where the table itself has one (`Spline`);
        else the noisy answers of `kde`, by the integral of the kernel. Either is a share of the
        records by volume, in the units of the columns, and the colour bar says so. Errors are
        those of the noisy answers: the band is that of `interval`, and hatching is where
        `standard_error` is larger than what is drawn. A bound at which records are heaped, such as
        those that were moved there from beyond it, is a thick edge. Marginals of a `Fourier`
        release are those of its `model`, about whose errors nothing is known.

        Parameters
        ----------
        columns
            Which to draw, by names or numbers; None: all. Other columns are summed over, see
            `marginal`.
        ax, axes
            Axes of matplotlib to draw on, which come back in place of a figure: one for a curve or
            a map, and ``axes`` of shape (n, n) for n columns, as ``subplots`` makes them.
        scale
            ``"density"``, or ``"kde"`` for values of `kde`, from 0 to 1. None: the first, where the
            integral of the kernel is known.
        denoised
            True: `denoise`, whatever the table. False: the noisy answers. None: as above.
        log
            Colours, or the height of a curve, on a logarithmic scale, from the typical noise up
            (four decades at most).
        level
            Of the band; None: without one.
        contours, hatch
            False leaves them out.
        points, outlines
            Public places to mark on a map: an array of shape (n, 2) or a mapping from names to
            pairs, in the order of the columns; and GeoJSON, something with a
            ``__geo_interface__``, or a list of these, with coordinates as in `mass`.
        bounds, shape
            As for `grid`, of the columns that are drawn; for a corner plot the shape is one number.
            None: those of the release, and cells fine enough for the kernel.
        title
            Put above it.
        width
            Of the figure, in inches: 3.3 for a column of print, 7 (the default) for a page.
        dark
            For a dark page.

        Notes
        -----
        A map of two columns called lon and lat (or lng, latitude, …) has a degree as long as it is
        in its middle, one of east and north or x and y equal units; latitudes go up whichever
        column is first. Columns of dates or instants have dates on their axes. The figure is not
        one of pyplot's: nothing has to be closed, nor is a window opened. A notebook shows it;
        ``figure.savefig("map.png")`` writes PNG, SVG and PDF, the same bytes each time. Settings of
        matplotlib (rcParams) stay as they are.

        A map of splines costs what `grid` and `denoise` cost; other families are asked place by
        place.
        """
        from dpkde.plots.density import plot
        from dpkde.plots.heat import Look
        from dpkde.plots.layers import Wish

        return plot(
            self,
            columns,
            Wish(scale, denoised, shape, bounds, level),
            ax=ax,
            axes=axes,
            look=Look(log, contours, hatch),
            points=points,
            outlines=outlines,
            title=title,
            width=width,
            dark=dark,
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a small picture, the statement, the fields."""
        from dpkde.plots.notebook import html

        return html(self)
