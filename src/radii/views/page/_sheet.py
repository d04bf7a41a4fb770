"""Pages that need no Plotly: the report's look and its small scripts, without its sections."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from radii.errors import DataError
from radii.views.page._page import _asset, _in_script, _policy, json_in_script

SHEET_SCRIPTS = ("dom", "data", "state", "tables", "pictures", "steps")
"""In this order, before those of the page itself, they make one script."""


def render_sheet(
    facts: Mapping[str, Any], columns: bytes, pictures: bytes = b"", *, script: str
) -> str:
    """One self-contained page, drawn by the asset of that name; it asks the network for nothing."""
    code = "\n".join(_asset(f"{name}.js") for name in (*SHEET_SCRIPTS, script))
    made = _in_script(f'(() => {{\n"use strict";\n{code}\n}})();')
    parts = {
        "title": html.escape(f"{facts['title']} · radii"),
        "policy": _policy([made], connects="'none'"),
        "style": _asset("page.css") + _asset("sheet.css"),
        "facts": json_in_script(facts),
        "columns": base64.b64encode(columns).decode(),
        "pictures": base64.b64encode(pictures).decode(),
        "script": made,
    }
    return _filled(_asset("sheet.html"), parts)


def write_sheet(page: str, path: Path) -> None:
    """Write a page; the folder must exist."""
    try:
        path.write_text(page, "utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror})") from None


def plain_json(value: Any) -> Any:
    """The same without what JSON does not know: a number that is not finite is None."""
    if isinstance(value, Mapping):
        return {str(name): plain_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(one) for one in value]
    if hasattr(value, "item"):  # a number of numpy
        return plain_json(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _filled(shell: str, parts: Mapping[str, str]) -> str:
    """The shell with its `{{names}}` replaced, once each: a part may hold braces, too."""
    first, *rest = shell.split("{{")
    pieces: Sequence[tuple[str, str, str]] = [piece.partition("}}") for piece in rest]
    return first + "".join(parts[name] + text for name, _, text in pieces)
