"""Lengths of time as people write them: 30s, 10m, 2h, 1h30m."""

from __future__ import annotations

import math
import re

from radii.errors import ExperimentError

SECONDS_OF_UNIT = {"h": 3600.0, "m": 60.0, "s": 1.0}
DURATION_FORM = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def parse_duration(text: str) -> float:
    """Seconds, from 30s, 10m, 2h or 1h30m; an ExperimentError for anything else."""
    found = DURATION_FORM.fullmatch(text.strip().lower().replace(" ", ""))
    parts = found.groups() if found else ()
    seconds = sum(
        float(part) * unit
        for part, unit in zip(parts, SECONDS_OF_UNIT.values(), strict=False)
        if part
    )
    if not 0 < seconds < math.inf:
        raise ExperimentError(f"'{text}' must be a length of time such as 30s, 10m, 2h or 1h30m")
    return seconds


def parse_seconds(value: object) -> float:
    """A number of seconds above 0, as a number or as text, or a length of time such as 10m."""
    seconds: object = value
    if isinstance(value, str):
        try:
            seconds = float(value)
        except ValueError:
            return parse_duration(value)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
        raise ExperimentError(f"{value!r} must be a number of seconds above 0, or such as 10m")
    return float(seconds)


def show_duration(seconds: float) -> str:
    """Seconds with two digits that matter: 0.4 s, 35 s, 12 min, 1 h 40 min, 3 d 4 h."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h"
