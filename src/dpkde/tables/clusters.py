"""Collections of Dask and frames of Spark: they lie on a cluster, and are never collected here."""

from __future__ import annotations

from typing import Any

from dpkde.errors import SchemaError

_ELSEWHERE = (
    "this {0} lies on a cluster, and is not collected here: use dpkde.{1}.sketch({2}, plan) or "
    "dpkde.{1}.publish({2}, plan, epsilon=1), which sketch its partitions where they are"
)


def cluster_of(kind: type) -> tuple[str, str] | None:
    """Return the module that sketches what is of a type, and what to give it; None for others."""
    if hasattr(kind, "__dask_graph__"):
        return "dask", "collection"
    homes = [str(base.__module__).split(".") for base in kind.__mro__]
    if any(home[:2] == ["pyspark", "pandas"] for home in homes):
        return "spark", "frame.to_spark()"
    if any(home[0] == "pyspark" for home in homes):
        return ("spark", "frame" if hasattr(kind, "columns") else "rdd.toDF()")
    return None


def check_here(points: Any) -> None:
    """Refuse what would have to be collected, with the way to sketch it."""
    kind = type(points)
    if str(kind.__module__).startswith("narwhals.") and callable(getattr(kind, "to_native", None)):
        points = points.to_native()
    cluster = cluster_of(type(points))
    if cluster is not None:
        raise SchemaError(_ELSEWHERE.format(type(points).__name__, *cluster))
