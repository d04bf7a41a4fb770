"""One self-contained page: markup, style, scripts and the payload in a single file."""

from __future__ import annotations

import base64
import html
import importlib.util
import json
from importlib import resources
from pathlib import Path

from radii.errors import DataError
from radii.report.payload import Payload

__all__ = ["render_page", "write_report"]

SCRIPTS = (
    *("dom", "data", "state", "tables", "cloud", "charts"),
    *("overview", "curves", "points", "pairs", "classes", "targets", "quality"),
    *("pictures", "detail", "main"),
)
"""In this order they make one script; each uses what others define."""


POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def render_page(payload: Payload | None) -> str:
    """The page with everything in it; opened from a file, it asks the network for nothing.

    Without a payload it asks where it came from: for `facts.json`, `columns.bin` and
    `pictures.bin`, and again on every event `radii-changed` of its window.
    """
    held = {"title": "radii", "policy": f"{POLICY}; connect-src 'self'"}
    held |= dict.fromkeys(("facts", "columns", "pictures"), "")
    if payload is not None:
        held = {
            "title": html.escape(f"{payload.facts['title']} · radii"),
            "policy": POLICY,
            "facts": json_in_script(payload.facts),
            "columns": base64.b64encode(payload.columns).decode(),
            "pictures": base64.b64encode(payload.pictures).decode(),
        }
    parts = held | {
        "style": _asset("page.css"),
        "plotly": _in_script(_plotly()),
        "script": _in_script("\n".join(_asset(f"{name}.js") for name in SCRIPTS)),
    }
    first, *rest = _asset("page.html").split("{{")
    pieces = [first]
    for piece in rest:
        name, _, text = piece.partition("}}")
        pieces += [parts[name], text]
    return "".join(pieces)


def write_report(payload: Payload, path: Path) -> None:
    """Write the page; the folder must exist."""
    try:
        path.write_text(render_page(payload), "utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror})") from None


def json_in_script(value: object) -> str:
    """JSON that cannot end the script element it stands in, whatever names say."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _in_script(code: str) -> str:
    """Code of our own and of Plotly: an end tag or comment inside a string must not end it."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _asset(name: str) -> str:
    return resources.files("radii.report").joinpath("assets", name).read_text("utf-8")


def _plotly() -> str:
    """The script that the plotly package brings along; the package itself is not imported."""
    found = importlib.util.find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        raise DataError("a report needs the package 'plotly': pip install 'plotly>=6'")
    root = Path(next(iter(found.submodule_search_locations)))
    return (root / "package_data" / "plotly.min.js").read_text("utf-8")
