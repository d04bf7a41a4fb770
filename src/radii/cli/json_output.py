"""JSON on standard output, as strict readers take it."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from radii.terminal import say


def print_json(told: Any) -> None:
    """Print nested lists and dictionaries; what is not a finite number becomes null."""
    json.dump(_json_value(told), sys.stdout, indent=1, allow_nan=False)
    say("")


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "item"):  # a number of numpy
        return _json_value(value.item())
    return value
