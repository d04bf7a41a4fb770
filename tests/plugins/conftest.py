"""The example package on the path, as if it was installed, for these tests alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from radii import plugins

EXAMPLE = Path(__file__).parent / "example"


@pytest.fixture(autouse=True)
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In this process, and in those that it starts."""
    monkeypatch.syspath_prepend(EXAMPLE)
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLE), prepend=":")
    plugins._entry_points.cache_clear()
    yield EXAMPLE
    plugins._entry_points.cache_clear()
