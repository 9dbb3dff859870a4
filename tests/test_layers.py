"""The culture: who may import whom, what import loads, where proofs lie, what is exported."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import dpkde
from dpkde.families.registry import FAMILIES
from dpkde.kernels import KERNELS
from dpkde.privacy.laws import CHOICES, NOISES

SOURCE = Path(dpkde.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))


@cache
def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _name(path: Path) -> str:
    return ".".join(("dpkde", *path.relative_to(SOURCE).with_suffix("").parts))


HOLDS_POINTS = ("dpkde.curator", "dpkde.nonprivate", "dpkde.prior")
PLACES_POINTS = ("dpkde.families", "dpkde.space.domain", "dpkde.space.frame", "dpkde.space.placing")
MAY_HOLD = (
    *HOLDS_POINTS,
    *("dpkde.dask", "dpkde.spark"),
    *("dpkde.demo", "dpkde.cli.publish", "dpkde.cli.sketch", "dpkde.cli.merge", "dpkde.__init__"),
    "dpkde.cli.check",
    *("dpkde.sklearn.density", "dpkde.sklearn.classifier"),
    "dpkde.cli.audit",
)


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_only_the_curator_side_imports_the_curator(path: Path) -> None:
    if not _name(path).startswith(MAY_HOLD):
        assert not [name for name in _imports(path) if name.startswith(HOLDS_POINTS)]


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_only_the_curator_side_touches_points(path: Path) -> None:
    """`quantize`, `accumulate` and `place` see private records."""
    if _name(path).startswith(
        (
            *HOLDS_POINTS,
            "dpkde.families",
            "dpkde.space.domain",
            "dpkde.space.frame",
            "dpkde.space.placing",
            "dpkde.testing",
        )
    ):
        return
    calls = {
        node.func.attr
        for node in _nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert not calls & {"quantize", "accumulate", "place", "place_plainly"}


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_no_seeded_randomness_near_privacy(path: Path) -> None:
    """NumPy's generators serve the public randomness of families and kernels, and the demo."""
    if _name(path).startswith(
        ("dpkde.privacy", "dpkde.curator", "dpkde.release", "dpkde.planning")
    ):
        text = path.read_text(encoding="utf-8")
        code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(">>>"))
        for word in ("np.random", "import random\n", "default_rng"):
            assert word not in code


EXTRAS: dict[str, str | tuple[str, ...]] = {
    "dask": "dpkde.dask",
    "dp_accounting": "dpkde.privacy.ledger.reference",
    "fsspec": "dpkde.tables.places",
    "matplotlib": ("dpkde.demo", "dpkde.plots"),
    "narwhals": "dpkde.tables.frames",
    "opendp": "dpkde.privacy.laws.opendp",
    "pandas": "dpkde.dask",
    "pyarrow": ("dpkde.tables", "dpkde.dask"),
    "pyspark": "dpkde.spark",
    "pytest": "dpkde.testing",
    "rich": "dpkde.cli",
    "sklearn": "dpkde.sklearn.door",
    "typer": "dpkde.cli",
}
"""Packages that are not installed with dpkde, and the only places that may ask for them."""


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_what_is_imported_is_installed(path: Path) -> None:
    """Tests run where everything is installed, so nothing else would tell."""
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {re.split(r"[^a-z]", text)[0] for text in project["project"]["dependencies"]}
    assert {"numpy", "scipy"} <= needed
    for name in {name.partition(".")[0] for name in _imports(path)} - {"dpkde", *needed}:
        assert name in sys.stdlib_module_names or _name(path).startswith(EXTRAS[name])


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_numba_has_one_door(path: Path) -> None:
    if _name(path) not in ("dpkde.numerics.compiled", "dpkde.numerics.cache"):
        assert not [name for name in _imports(path) if name.startswith("numba")]


def _loaded(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


HEAVY = {
    "scipy",
    "numba",
    "pyarrow",
    "pandas",
    "matplotlib",
    "rich",
    "typer",
    "opendp",
    "safetensors",
    "dask",
    "pyspark",
    "sklearn",
}


def test_importing_loads_little() -> None:
    assert not _loaded("import dpkde") & HEAVY
    named = _loaded("import dpkde; dpkde.Gaussian(1.0); dpkde.Fourier(8); dpkde.Box([(0, 1)])")
    assert not named & HEAVY
    assert not _loaded("import dpkde.sklearn") & HEAVY


def test_a_missing_scikit_learn_is_named() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None; import dpkde.sklearn as s\n"
        "try: s.PrivateKernelDensity\n"
        "except dpkde.ParameterError as error:\n"
        "    assert \"pip install 'dpkde[sklearn]'\" in str(error)\n"
        "else: raise SystemExit('nothing was said')"
    )
    _loaded(f"import dpkde\n{code}")


def test_client_code_never_loads_the_curator(tmp_path: Path) -> None:
    import numpy as np

    path = tmp_path / "x.dpkde"
    dpkde.publish(np.zeros((5, 1)), kernel=dpkde.Gaussian(1.0), epsilon=1).save(path)
    loaded = _loaded(
        f"import dpkde; r = dpkde.load({str(path)!r}); r.kde([0.0]); r.standard_error([0.0])"
    )
    assert not [name for name in loaded if name.startswith(HOLDS_POINTS)]
    assert "dpkde.release.answers" in loaded


def test_every_family_and_sampler_has_its_proof() -> None:
    for name in FAMILIES:
        assert (SOURCE / "families" / name / "proof.md").is_file()
    for law in {law.__module__.split(".")[-2] for law in (*NOISES.values(), *CHOICES.values())}:
        text = (SOURCE / "privacy" / "laws" / law / "proof.md").read_text(encoding="utf-8")
        assert "**Precondition.**" in text
        assert "**Postcondition.**" in text
        for test in {word.strip("`();,.:") for word in text.split() if "tests/" in word}:
            assert (SOURCE.parents[1] / test).is_file(), test


@pytest.mark.parametrize("room", ["privacy/ledger", "curator/labelled"])
def test_rooms_have_their_proofs(room: str) -> None:
    text = (SOURCE / room / "proof.md").read_text(encoding="utf-8")
    assert "**Precondition.**" in text
    assert "**Postcondition.**" in text
    tests = {word.strip("`();,.:") for word in text.split() if "tests/" in word}
    assert tests
    for test in tests:
        assert (SOURCE.parents[1] / test).is_file(), test


def test_exports() -> None:
    assert set(dpkde.__all__) == set(dir(dpkde))
    for name in dpkde.__all__:
        assert getattr(dpkde, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        getattr(dpkde, "magic")  # noqa: B009
    assert (SOURCE / "py.typed").is_file()


def test_no_import_goes_in_circles() -> None:
    """Not at the top of modules, nor inside functions.

    What only type checkers see does not count.
    """
    names = {_name(path).removesuffix(".__init__"): path for path in MODULES}
    needs: dict[str, set[str]] = {}
    for name, path in names.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        unseen = [
            n
            for n in ast.walk(tree)
            if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)
        ]
        hidden = {id(leaf) for node in unseen for leaf in ast.walk(node)}
        found = {
            inner if (inner := f"{node.module}.{alias.name}") in names else str(node.module)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and id(node) not in hidden
            for alias in node.names
        }
        needs[name] = (found & set(names)) - {name}
    while leaves := {name for name, wanted in needs.items() if not wanted}:
        needs = {name: wanted - leaves for name, wanted in needs.items() if name not in leaves}
    assert not needs


LAWS = {law.__name__ for law in NOISES.values()}


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_nobody_tells_laws_apart(path: Path) -> None:
    """What hangs on a law is a method of the law; elsewhere none is compared with."""
    for node in _nodes(path):
        asked = isinstance(node, ast.Call) and "isinstance" in ast.dump(node.func)
        if asked or isinstance(node, ast.Compare):
            names = {leaf.id for leaf in ast.walk(node) if isinstance(leaf, ast.Name)}
            assert not names & LAWS, ast.unparse(node)


CONCRETE = {kernel.__name__ for kernel in KERNELS.values()}


def _tells_kernels_apart(tree: ast.Module) -> list[str]:
    """Return imports of kernels, and questions of which one it is, by type or by name."""
    suspects: list[str] = []
    kinds = (ast.ImportFrom, ast.Call, ast.MatchClass, ast.Compare)
    for node in (node for node in ast.walk(tree) if isinstance(node, kinds)):
        leaves, text = list(ast.walk(node)), ast.unparse(node)
        names = {leaf.id for leaf in leaves if isinstance(leaf, ast.Name)}
        names |= {leaf.attr for leaf in leaves if isinstance(leaf, ast.Attribute)}
        if isinstance(node, ast.ImportFrom):
            asked = bool({alias.name for alias in node.names} & CONCRETE)
        elif isinstance(node, ast.Call | ast.MatchClass):
            asking = isinstance(node, ast.MatchClass) or names & {"isinstance", "issubclass"}
            asked = bool(asking and names & (CONCRETE | {"ProductKernel"}))
        else:
            words = {leaf.value for leaf in leaves if isinstance(leaf, ast.Constant)}
            # A law is called gaussian too, and a bound product.
            others = set() if "kernel" in text else {"gaussian", "product"}
            by_name = words & (set(KERNELS) - others)
            asked = bool(names & CONCRETE or by_name) or {"type", "kernel"} <= names
        suspects += [text] if asked else []
    return suspects


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_nobody_tells_kernels_apart(path: Path) -> None:
    """All that is asked of a kernel is in its protocol: only `kernels` knows which there are."""
    if not _name(path).startswith("dpkde.kernels"):
        assert not _tells_kernels_apart(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "text",
    [
        "from dpkde.kernels import Gaussian, Points",
        "from dpkde import Hat",
        "isinstance(frame.kernel, dpkde.Geodesic)",
        "isinstance(kernel, (Product, Mixture))",
        "assert isinstance(kernel, ProductKernel)",
        "issubclass(kind, kernels.Jaccard)",
        "type(kernel) is Erfc",
        "type(kernel) in SERVED",
        "frame.kernel.name == 'hat'",
        "simple = [k for k in KERNELS if k not in ('product', 'mixture')]",
        "match kernel:\n    case Gaussian():\n        pass",
    ],
)
def test_telling_kernels_apart_is_seen(text: str) -> None:
    assert _tells_kernels_apart(ast.parse(text))
