"""``python -m dpkde``: the same as the ``dpkde`` command."""

from __future__ import annotations

from dpkde.cli.main import run

if __name__ == "__main__":
    run()
