"""Pictures of releases: what the artists hold is what the release answers."""

from __future__ import annotations

import dataclasses
import io
from typing import Any, ClassVar

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import dpkde
from contracts.rigged import constant, install
from dpkde.plots.curves import band_shows, draw_curve
from dpkde.plots.figure import Picture
from dpkde.plots.heat import levels_of
from dpkde.plots.layers import Layer
from dpkde.plots.outlines import drawn_of
from dpkde.plots.style import Style, fitted
from dpkde.release.parts import ColumnTypes, Parts
from dpkde.space.moments import NUMBER, ColumnType

POINTS = np.random.default_rng(0).normal(0.5, 0.13, size=(4000, 3))


def _published(dim: int = 2, **given: Any) -> dpkde.Release:
    settings: dict[str, Any] = {
        "kernel": dpkde.Gaussian(0.12),
        "bounds": [(0, 1)] * dim,
        "epsilon": "0.2",
        "pilot": False,
        "family": dpkde.Spline(3, 0.75),
    }
    return dpkde.publish(POINTS[:, :dim], **{**settings, **given})


@pytest.fixture(scope="module")
def plane() -> dpkde.Release:
    return _published()


@pytest.fixture(scope="module")
def line() -> dpkde.Release:
    return _published(1)


@pytest.fixture(scope="module")
def solid() -> dpkde.Release:
    return _published(3, columns=["a", "b", "c"])


def _image(figure: Any) -> np.ndarray:
    return np.asarray(figure.axes[0].images[0].get_array())


def _hatching(ax: Any) -> Any:
    (patch,) = [patch for patch in ax.patches if patch.get_hatch()]
    return patch.get_path()


def test_a_map_is_the_density_at_its_places(plane: dpkde.Release) -> None:
    """Rows go up, columns across; the denoised one by default, the noisy answers on request."""
    places = plane.grid((30, 20))
    image = _image(plane.plot(shape=(30, 20)))
    assert image.shape == (20, 30)
    expected = plane.density(places.points).reshape(30, 20).T
    assert image == pytest.approx(expected, rel=1e-9, abs=1e-12)
    plain = _image(plane.plot(shape=(30, 20), scale="kde", denoised=False))
    assert plain == pytest.approx(plane.kde(places.points).reshape(30, 20).T, abs=1e-12)
    assert not np.allclose(image * plane.kernel.integral(2), plain, atol=1e-4)


def test_hatching_is_where_noise_is_larger(plane: dpkde.Release) -> None:
    """At all centers of cells, and at none beside."""
    for denoised in (None, False):
        figure = plane.plot(shape=(41, 23), scale="kde", denoised=denoised)
        places = plane.grid((41, 23))
        drawn = _image(figure).T
        mask = places.standard_error > drawn
        assert 0 < mask.mean() < 1
        inside = _hatching(figure.axes[0]).contains_points(places.points)
        assert np.array_equal(inside.reshape(41, 23), mask)
    assert not figure.axes[0].get_title()
    assert not any(p.get_hatch() for p in plane.plot(shape=9, hatch=False).axes[0].patches)


def test_a_curve_and_its_band(line: dpkde.Release) -> None:
    figure = line.plot(shape=50, level=0.9)
    (ax,) = figure.axes
    x, y = ax.lines[0].get_data()
    assert y == pytest.approx(line.density(x[:, None]), rel=1e-9)
    low, high = (end / line.kernel.integral(1) for end in line.interval(x[:, None], 0.9))
    corners = ax.collections[0].get_paths()[0].vertices
    band = {(round(float(a), 9), round(float(b), 9)) for a, b in corners}
    for places in (low, high):
        pairs = zip(x.tolist(), places.tolist(), strict=True)
        assert {(round(a, 9), round(b, 9)) for a, b in pairs} <= band
    assert "90% interval" in " ".join(text.get_text() for text in ax.texts)
    assert not line.plot(shape=9, level=None).axes[0].collections
    for bounds in ((0.2, 0.4), [(0.2, 0.4)]):
        assert line.plot(shape=9, bounds=bounds).axes[0].get_xlim() == (0.2, 0.4)
    raw = line.plot(shape=50, denoised=False, scale="kde").axes[0].lines[0].get_ydata()
    assert raw == pytest.approx(line.kde(x[:, None]), abs=1e-12)


@pytest.mark.parametrize(("half", "shows"), [(0.001, False), (0.1, True)])
@pytest.mark.parametrize("log", [False, True])
def test_a_band_within_the_line_is_told(half: float, shows: bool, log: bool) -> None:
    x = np.linspace(0, 1, 50)
    values = 1 + x
    band = (values - half * values, values + half * values)
    layer = Layer((x,), ((0.0, 1.0),), values, None, band, ("a",), (NUMBER,), "density")
    style = Style(7.0)
    ax = Figure(figsize=(7, 4)).add_subplot()
    draw_curve(ax, layer, style, log=log)
    assert band_shows(ax, layer) is shows


def _thick(ax: Any) -> list[tuple[Any, Any]]:
    lines = [line for line in ax.lines if line.get_label() == "heaped"]
    return [tuple(np.unique(ends).tolist() for ends in line.get_data()) for line in lines]


def test_a_bound_where_records_are_heaped_is_thick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is drawn, and in differences; no other bound is, and none outside a picture."""
    install(monkeypatch, constant(0))
    points = POINTS[:, :2].copy()
    points[:400, 1] = 7.0  # beyond the upper bound
    settings: dict[str, Any] = {"kernel": dpkde.Gaussian(0.12), "bounds": [(0, 1)] * 2}
    plan = dpkde.plan(**settings, epsilon=4, expected_rows=4000, columns=["lat", "lon"])
    heaped, plain = (dpkde.publish(rows, plan=plan, epsilon=4) for rows in (points, POINTS[:, :2]))
    assert not any(trouble.code == "at-bounds" for trouble in plain.troubles)
    east, remark = [([1.0], [0.0, 1.0])], "thick edge: heaped or moved there"
    for drawn in (heaped.plot(), heaped.plot("lon"), dpkde.plot_difference(plain, heaped)):
        ax = drawn.axes[0]
        assert _thick(ax) == east  # longitudes go across, though they are the second column
        assert ax.texts[-1].get_text().endswith(remark)
    assert _thick(heaped.plot(["lon", "lat"]).axes[0]) == east
    for drawn in (plain.plot(), heaped.plot("lat"), heaped.plot("lon", bounds=(0, 0.9))):
        assert not _thick(drawn.axes[0])
        assert remark not in "".join(text.get_text() for text in drawn.axes[0].texts)


def test_long_names_break_into_lines_of_a_length() -> None:
    text = "March − April, density: share per unit of longitude × latitude"
    assert fitted(text, 1000, 8) == text
    for points in (100, 150, 200, 250):
        lines = fitted(text, points, 8).split("\n")
        assert " ".join(lines) == text
        assert max(map(len, lines)) <= points / (0.52 * 8)
        assert len(lines[-1]) >= 8


def test_a_corner_of_marginals(solid: dpkde.Release) -> None:
    """Each panel is the marginal of the density, by sums over fine grids of the others."""
    figure = solid.plot(shape=12, level=None)
    panels = np.array([ax for ax in figure.axes if not hasattr(ax, "_colorbar")]).reshape(3, 3)
    density = solid.denoise()
    axis = (np.arange(12) + 0.5) / 12
    fine = np.linspace(-1, 2, 151)
    step = 3 / 150
    whole = density.kde_on_grid([axis, axis, fine]).sum(axis=2) * step
    whole /= solid.kernel.integral(3)
    image = np.asarray(panels[1, 0].images[0].get_array())
    assert image == pytest.approx(whole.T, rel=1e-6)  # a across, b up
    curve = density.kde_on_grid([fine, axis, fine]).sum(axis=(0, 2)) * step**2
    curve /= solid.kernel.integral(3)
    assert panels[1, 1].lines[0].get_ydata() == pytest.approx(curve, rel=1e-6)
    assert [panels[2, k].get_xlabel() for k in range(3)] == ["a", "b", "c"]
    assert [panels[k, 0].get_ylabel() for k in range(1, 3)] == ["b", "c"]
    assert not panels[0, 2].axison


def test_some_columns(solid: dpkde.Release) -> None:
    """A marginal by its name or number; on noisy answers it is the marginal's own map."""
    ours = _image(solid.plot(["c", "a"], shape=(7, 9), denoised=False, scale="kde"))
    assert ours == pytest.approx(solid.marginal(["c", "a"]).grid((7, 9)).values.T, abs=1e-12)
    by_number = _image(solid.plot([2, 0], shape=(7, 9), denoised=False, scale="kde"))
    assert np.array_equal(by_number, ours)
    assert solid.plot("b").axes[0].get_xlabel() == "b"
    with pytest.raises(dpkde.SchemaError, match="no column 'd'"):
        solid.plot("d")
    with pytest.raises(dpkde.ParameterError, match="each once"):
        solid.plot(["a", "a"])


def test_axes_that_are_passed_come_back(
    plane: dpkde.Release, line: dpkde.Release, solid: dpkde.Release
) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plane.plot(ax=left, shape=9) is left
    assert line.plot(ax=right, shape=9) is right
    assert left.images
    assert right.lines
    grid = Figure().subplots(3, 3)
    assert solid.plot(axes=grid, shape=5) is grid
    assert grid[2, 0].images
    for wrong in ({"ax": left}, {"axes": left}, {"axes": grid[:2]}):
        with pytest.raises(dpkde.ParameterError, match="axes"):
            solid.plot(**wrong)
    with pytest.raises(dpkde.ParameterError, match="pass one as ax="):
        plane.plot(axes=grid)


def test_settings_of_matplotlib_stay(plane: dpkde.Release) -> None:
    """A reader's own settings, odd ones too, and no list of open figures."""
    import matplotlib.pyplot as plt

    with mpl.rc_context({"font.size": 31, "text.color": "red", "image.cmap": "jet"}):
        before = dict(mpl.rcParams)
        figure = plane.plot(shape=9, dark=True)
        figure.savefig("/dev/null", format="svg")
        assert dict(mpl.rcParams) == before
        assert figure.axes[0].xaxis.label.get_size() < 15
    assert not plt.get_fignums()


def test_threads_draw_at_the_same_time(plane: dpkde.Release) -> None:
    """Each has its own style, and the settings of matplotlib are as before at the end."""
    from concurrent.futures import ThreadPoolExecutor

    def drawn(number: int) -> tuple[bool, float]:
        figure = plane.plot(shape=9, dark=bool(number % 2), width=3 + number % 3)
        figure.savefig(io.BytesIO(), format="png")
        return figure.get_facecolor()[0] < 0.5, figure.axes[0].xaxis.label.get_size()

    before = dict(mpl.rcParams)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(drawn, range(24)))
    assert dict(mpl.rcParams) == before
    assert results == [drawn(number) for number in range(6)] * 4


def test_scales(plane: dpkde.Release, line: dpkde.Release) -> None:
    """A logarithmic scale begins at the typical noise; a linear one at nothing."""
    linear = plane.plot(shape=20).axes[0].images[0].norm
    assert linear.vmin == 0
    image = plane.plot(shape=20, log=True).axes[0].images[0]
    noise = np.median(plane.grid(20).standard_error) / plane.kernel.integral(2)
    assert image.norm.vmin == pytest.approx(np.clip(noise, 1e-4 * linear.vmax, linear.vmax / 10))
    assert image.norm.vmax == pytest.approx(linear.vmax)
    assert line.plot(shape=9, log=True).axes[0].get_yscale() == "log"
    assert "unit of x1 × x2" in plane.plot(shape=9).axes[0].child_axes[0].get_ylabel()
    assert plane.plot(shape=9, scale="kde").axes[0].child_axes[0].get_ylabel() == "KDE"


def test_contours_enclose_shares() -> None:
    """Of a normal density the levels are known: share s is enclosed at (1 − s) of the top."""
    x = np.linspace(-5, 5, 401)
    values = np.exp(-(x[:, None] ** 2 + x**2) / 2)
    levels = levels_of(values, (0.5, 0.8, 0.95))
    assert [levels[s] for s in (0.5, 0.8, 0.95)] == pytest.approx([0.5, 0.2, 0.05], abs=2e-3)
    # In noise of 0.03 the lowest is hardly above it, and a level in a plain has no place.
    assert set(levels_of(values, (0.5, 0.95), np.full(values.shape, 0.03))) == {0.5}
    plain = values + 0.1
    flat = levels_of(plain, (0.5, 0.95), np.full(values.shape, 0.01))
    assert 0.95 not in flat
    assert levels_of(np.zeros((4, 4)), (0.5,)) == {}
    assert levels_of(np.ones((4, 4)), (0.5,)) == {}


def test_latitudes_go_up_and_degrees_keep_their_shape() -> None:
    table = np.random.default_rng(1).normal((60.0, 10.0), 0.3, size=(2000, 2))
    bounds = [(59, 61), (8, 12)]
    release = dpkde.publish(
        table,
        kernel=dpkde.Gaussian(0.3),
        bounds=bounds,
        epsilon=1,
        columns=["pickup_lat", "pickup_lon"],
        family=dpkde.Spline(3, 0.75),
    )
    town = {"type": "Point", "coordinates": [10, 60]}
    named = {"type": "Feature", "properties": {"name": "town"}, "geometry": town}
    figure = release.plot(shape=(5, 8), outlines=[named], points=[[59.5, 9.0]])
    ax = figure.axes[0]
    assert (ax.get_xlim(), ax.get_ylim()) == ((8, 12), (59, 61))
    assert ax.get_xlabel() == "pickup_lon"
    assert _image(figure).shape == (5, 8)
    expected = release.density(release.grid((5, 8)).points).reshape(5, 8)
    assert _image(figure) == pytest.approx(expected, rel=1e-9)
    assert ax.get_aspect() == pytest.approx(2, rel=1e-9)  # 1/cos 60°
    marked = {tuple(np.ravel(drawn.get_data())) for drawn in ax.lines}
    assert marked == {(10.0, 60.0), (9.0, 59.5)}
    assert "town" in [text.get_text() for text in ax.texts]


def test_outlines_of_all_kinds() -> None:
    """Rings, lines and points, nested; what has a __geo_interface__; and what is none."""

    class Shape:
        __geo_interface__: ClassVar = {"type": "Polygon", "coordinates": [[(0, 0), (1, 0), (1, 1)]]}

    line = {"type": "LineString", "coordinates": [(0, 0), (1, 2, 9)]}
    lines = {"type": "MultiLineString", "coordinates": [line["coordinates"]] * 2}
    points = {"type": "MultiPoint", "coordinates": [(1, 2), (3, 4)]}
    nested = {"type": "GeometryCollection", "geometries": [line, lines, points, Shape()]}
    drawn = drawn_of([nested, {"type": "Feature", "geometry": None}], ("x", "y"))
    assert [len(each) for each in drawn.lines] == [2, 2, 2, 4]
    assert np.array_equal(drawn.lines[0], [[0, 0], [1, 2]])
    assert [place.tolist() for place, _ in drawn.points] == [[1, 2], [3, 4]]
    assert np.array_equal(drawn_of(line, ("lat", "lon")).lines[0], [[0, 0], [2, 1]])
    for wrong in ("map.json", 3, {"type": "Circle"}, [3], {"no": "type"}):
        with pytest.raises(dpkde.ParameterError):
            drawn_of(wrong, ("x", "y"))
    for corners in ([(0, "a")], [(0, np.nan)], 3, [3]):
        with pytest.raises(dpkde.ParameterError, match="finite numbers"):
            drawn_of({"type": "LineString", "coordinates": corners}, ("x", "y"))


def test_dates_on_axes(plane: dpkde.Release) -> None:
    """Days and seconds since 1970 are dates on the axes, and the unit says so."""
    day, second = 20_000.0, 20_000.0 * 86_400
    table = np.column_stack([np.full(500, day), np.full(500, second)])
    release = dpkde.publish(
        table,
        kernel=dpkde.Gaussian([20, 3000]),
        bounds=[(day - 90, day + 90), (second - 20_000, second + 20_000)],
        epsilon=1,
        columns=["day", "at"],
        family=dpkde.Spline(3, 0.75),
    )
    types = ColumnTypes((ColumnType.DATE, ColumnType.INSTANT))
    plan = dataclasses.replace(release.plan, parts=Parts([types]))
    dated = dpkde.Release(plan, release.table, release.count, release.privacy)
    ax = dated.plot(shape=20).axes[0]
    assert ax.get_xlim() == (day - 90, day + 90)
    assert ax.get_ylim() == pytest.approx((day - 20_000 / 86_400, day + 20_000 / 86_400))
    firsts = [19_997, 20_028, 20_058]  # of October, November and December 2024
    assert ax.xaxis.get_major_formatter().format_ticks(firsts) == ["Oct", "Nov", "Dec"]
    assert "per day × second" in ax.child_axes[0].get_ylabel()
    assert dated.marginal("at").plan.parts.of(ColumnTypes) == ColumnTypes(types.types[1:])
    curve = dated.plot("at", shape=20).axes[0]
    assert curve.get_ylabel() == "density: share per second"
    assert curve.lines[0].get_xdata()[10] == pytest.approx(day, abs=0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scale": "log"}, "scale must be"),
        ({"denoised": "yes"}, "denoised must be"),
        ({"width": 400}, "width must be from 1.5 to 40 inches"),
        ({"width": "wide"}, "width must be from 1.5 to 40 inches"),
        ({"dark": "yes"}, "dark must be"),
        ({"level": 2}, "level must be between 0 and 1"),
        ({"shape": 0}, "whole numbers from 1"),
        ({"bounds": [(0, 1)]}, "one .* pair for each of the 2 columns"),
        ({"bounds": [(0, 1), (1, 1)]}, "low below high"),
        ({"points": [1, 2, 3]}, "shape .n, 2."),
        ({"points": "here"}, "shape .n, 2."),
        ({"outlines": "here"}, "GeoJSON"),
    ],
)
def test_wrong_turns(plane: dpkde.Release, given: dict[str, Any], message: str) -> None:
    with pytest.raises(dpkde.ParameterError, match=message):
        plane.plot(**given)


def test_what_has_no_picture() -> None:
    wide = dpkde.publish(
        np.zeros((5, 8)),
        kernel=dpkde.Gaussian(2),
        bounds=[(0, 1)] * 8,
        epsilon=1,
        family="spline",  # the noisy count of so few would choose among all
    )
    with pytest.raises(dpkde.ParameterError, match=r"at most 6 columns, these are 8.*'x1', 'x2'"):
        wide.plot()
    assert len(wide.plot([0, 7], shape=5).axes) == 1
    assert wide._repr_html_().count("<img") == 0
    directions = dpkde.publish(np.eye(3), kernel=dpkde.Geodesic(), epsilon=1)
    sets = dpkde.publish(np.eye(3), kernel=dpkde.Jaccard(), bounds=dpkde.Sets(3), epsilon=1)
    for release in (directions, sets):
        with pytest.raises(dpkde.ParameterError, match="has no map"):
            release.plot()
        assert "<table>" in release._repr_html_()


@pytest.mark.usefixtures("unfitted")
def test_without_bounds_they_are_asked_for() -> None:
    release = dpkde.publish(
        POINTS[:, :2], kernel=dpkde.Gaussian(0.3), epsilon=1, family=dpkde.Fourier(16)
    )
    with pytest.raises(dpkde.ParameterError, match="give bounds="):
        release.plot()
    image = _image(release.plot(bounds=[(0, 1), (-1, 1)], shape=(4, 6), scale="kde"))
    expected = release.grid((4, 6), [(0, 1), (-1, 1)]).values.T
    assert image == pytest.approx(expected, abs=1e-12)


def test_marginals_of_a_model() -> None:
    """A Fourier table has no marginals; its model has, and about its errors nothing is said."""
    table = np.random.default_rng(2).normal(size=(5000, 3))
    release = dpkde.publish(
        table,
        kernel=dpkde.Gaussian(2.0),
        bounds=[(-4, 4)] * 3,
        epsilon=50,
        family=dpkde.Fourier(64),
    )
    assert release.model is not None
    figure = release.plot([0, 1], shape=9, scale="kde")
    exact = dpkde.nonprivate.kde(table[:, :2], np.zeros((1, 2)), dpkde.Gaussian(2.0))
    assert _image(figure)[4, 4] == pytest.approx(exact[0], abs=0.05)
    assert not figure.axes[0].patches
    assert "errors are not known" in figure.axes[0].texts[0].get_text()
    with pytest.raises(dpkde.ParameterError, match="no marginals"):
        release.plot([0, 1], denoised=False)


@pytest.mark.parametrize("rows", [0, 4000])
def test_noise_and_nothing_else_is_told(rows: int) -> None:
    """An empty table, and one drowned in noise: they are drawn, and the picture says so.

    Where some place exceeds five standard errors, as noise hardly ever does, it does not.
    """
    release = (
        _published(epsilon="0.0005")
        if rows
        else dpkde.publish(
            np.zeros((0, 2)),
            kernel=dpkde.Gaussian(0.12),
            bounds=[(0, 1)] * 2,
            epsilon=1,
            family=dpkde.Spline(3, 0.75),
        )
    )
    figure = release.plot(shape=30, denoised=False, scale="kde")
    drawn = release.grid(30)
    stands_out = bool((drawn.values > 5 * drawn.standard_error).any())
    told = any("nothing stands out" in text.get_text() for text in figure.axes[0].texts)
    assert told != stands_out
    release.plot(shape=30, log=True).savefig("/dev/null", format="png")
    release.plot(shape=30).savefig("/dev/null", format="png")


@pytest.mark.filterwarnings("error")
def test_names_are_no_formulas(tmp_path: Any) -> None:
    """Dollar signs, line breaks, letters that the font lacks, and very long names are drawn."""
    names = [r"$\frac{a_{", "_x\n<b>数据" * 9]
    release = _published(columns=names)
    figure = release.plot(shape=9, title="$x_{", points={"$y_{": (0.5, 0.5)})
    figure.savefig(tmp_path / "m.png")
    assert figure.axes[0].get_xlabel() == names[0]
    assert "\n<b>" not in figure.axes[0].get_ylabel()
    assert len(figure.axes[0].get_ylabel()) < 60
    release.plot(names[1], shape=9).savefig(tmp_path / "m.svg")


@dataclasses.dataclass(frozen=True)
class Quarters(dpkde.CustomFamily):
    """How many records lie in each quarter of the line: a family of a caller's."""

    name: ClassVar[str] = "quarters"
    version: ClassVar[int] = 1

    def limits(self, frame: Any) -> dpkde.Limits:
        return dpkde.Limits(cells=4, l1=1.0, l2=1.0, linf=1.0)

    def f(self, x: Any, drawn: Any) -> Any:
        return np.eye(4)[int(np.clip((x[0] + 5) // 2.5, 0, 3))]

    def g(self, y: Any, drawn: Any) -> Any:
        return np.eye(4)[int(np.clip((y[0] + 5) // 2.5, 0, 3))]


def test_a_family_of_the_callers() -> None:
    """It is asked place by place; its intervals are those that it has."""
    release = dpkde.publish(
        POINTS[:500, :1], kernel=dpkde.Gaussian(0.1), bounds=[(0, 1)], epsilon=5, family=Quarters()
    )
    x, y = release.plot(shape=8, scale="kde").axes[0].lines[0].get_data()
    assert y == pytest.approx(release.kde(x[:, np.newaxis]), abs=1e-12)
    assert "<img" in release._repr_html_()


def test_views(plane: dpkde.Release, solid: dpkde.Release) -> None:
    wider = plane.with_kernel(dpkde.Gaussian(0.2))
    image = _image(wider.plot(shape=8))
    assert image == pytest.approx(wider.density(wider.grid(8).points).reshape(8, 8).T, rel=1e-9)
    part = solid.marginal(["b", "c"])
    kde = _image(part.plot(shape=8, scale="kde"))
    assert kde == pytest.approx(part.grid(8).values.T, abs=1e-12)
    assert isinstance(part.plot("c", shape=8), Picture)
