"""Settings that all tests share: examples of properties have no deadline on a shared machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("dpkde", deadline=None, max_examples=60)
settings.load_profile("dpkde")
