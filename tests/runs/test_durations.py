"""Lengths of time as people write and read them."""

from __future__ import annotations

import pytest

from radii.runs import OptionRefusal, show_duration
from radii.runs._fields import duration_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("1.5h", 5400), (" 2 H ", 7200)],
)
def test_read(text: str, seconds: float) -> None:
    assert duration_of(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "2d", "0s", "-2h", "30", "2h5", "1m1h", "nan", "infs"])
def test_refused(text: str) -> None:
    with pytest.raises(OptionRefusal, match="must be a length of time such as 30s"):
        duration_of(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.42, "0.4 s"),
        (9.97, "10 s"),
        (99.4, "99 s"),
        (99.6, "2 min"),
        (3570, "1 h"),
        (6000, "1 h 40 min"),
        (48 * 3600, "2 d 0 h"),
        (270_000, "3 d 3 h"),
    ],
)
def test_shown(seconds: float, text: str) -> None:
    assert show_duration(seconds) == text
