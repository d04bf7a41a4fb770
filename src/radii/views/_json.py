"""Values as JSON knows them: a number that is not finite is null."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any


def plain_json(value: Any) -> Any:
    """Nested lists and mappings with names as keys; numbers and arrays of numpy as Python's.

    A record is a mapping of its fields, but for those that its repr leaves out.
    """
    if dataclasses.is_dataclass(value):
        shown = (field.name for field in dataclasses.fields(value) if field.repr)
        value = {name: getattr(value, name) for name in shown}
    if isinstance(value, Mapping):
        return {str(name): plain_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(one) for one in value]
    if hasattr(value, "tolist"):  # of numpy
        return plain_json(value.tolist())
    return finite_or_none(value) if isinstance(value, float) else value


def finite_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
