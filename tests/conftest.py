"""What all tests share: examples of properties have no deadline on a shared machine."""

from __future__ import annotations

import pytest
from hypothesis import settings

import dpkde

settings.register_profile("dpkde", deadline=None, max_examples=60)
settings.load_profile("dpkde")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long audits: one that begins last leaves all cores but its own idle."""
    items.sort(key=lambda item: item.get_closest_marker("audit") is None)


@pytest.fixture
def unfitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish without fitting models, which takes most of the time of many small releases."""
    monkeypatch.setattr(dpkde.Release, "with_model", lambda release: release)
