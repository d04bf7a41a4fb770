"""Self-contained pages: markup, style, scripts and what they show in a single file.

The report's page draws with Plotly, and can be live. Others (a board, a comparison) are sheets: the
report's look and its small scripts, without its sections.
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.util
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from radii.errors import DataError
from radii.statistics import Run
from radii.views._json import plain_json
from radii.views.page._payload import PICTURE_BYTES, Payload, payload_of

PAGE_SCRIPTS = (
    *("dom", "data", "state", "tables", "cloud", "charts"),
    *("overview", "curves", "gallery", "points", "pairs", "classes", "targets", "statistics"),
    *("quality", "pictures", "detail", "ensembles"),
)
LIVE_SCRIPTS = ("live", "runs", "starts", "closing")
"""In this order, `main` last, they make one script; each uses what others define."""

SHEET_SCRIPTS = ("dom", "data", "state", "tables", "pictures", "steps")
"""The same before the script of a sheet."""

_LICENCE_OR_ADDRESS = re.compile(r"(/\*!.*?\*/)|https?://(?!www\.w3\.org/)", re.DOTALL)
"""Names of XML namespaces begin with www.w3.org; nothing is ever asked of them."""


def render_page(payload: Payload) -> str:
    """The page with everything in it; opened from a file, it asks the network for nothing."""
    scripts = _scripts(*PAGE_SCRIPTS, "main")
    parts = _data_parts(payload.facts, payload.columns, payload.pictures) | scripts
    policy = _policy(scripts.values(), connects="'none'")
    return _filled("page.html", parts | {"style": _asset("page.css"), "policy": policy})


def render_live_page() -> tuple[str, str]:
    """The same page without anything in it, and its content security policy.

    It asks the server that it came from, which is `radii.views`, for what it shows.
    """
    parts = {"title": "radii", "style": _asset("page.css") + _asset("live.css")}
    parts |= dict.fromkeys(("facts", "columns", "pictures"), "")
    scripts = _scripts(*PAGE_SCRIPTS, *LIVE_SCRIPTS, "main")
    policy = _policy(scripts.values(), connects="'self'")
    return _filled("page.html", parts | scripts | {"policy": policy}), policy


def render_sheet(
    facts: Mapping[str, Any], columns: bytes, pictures: bytes = b"", *, script: str
) -> str:
    """A page drawn by the asset of that name; it asks the network for nothing."""
    made = _one_script(*SHEET_SCRIPTS, script)
    parts = _data_parts(facts, columns, pictures) | {
        "policy": _policy([made], connects="'none'"),
        "style": _asset("page.css") + _asset("sheet.css"),
        "script": made,
    }
    return _filled("sheet.html", parts)


def write_report(payload: Payload, path: Path) -> None:
    """Write the report's page; the folder must exist."""
    write_page(render_page(payload), path)


def write_comparison(
    runs: Sequence[Run],
    statistics: Mapping[str, Any],
    path: Path,
    *,
    title: str = "Comparison",
    picture_bytes: int = PICTURE_BYTES,
) -> None:
    """Write a page with networks side by side, input by input; the folder must exist.

    `statistics` are those that `radii compare --json` prints of these runs. The first networks of
    the first two runs are shown first, or the first two of the only run.
    """
    payload = payload_of(runs, title=title, picture_bytes=picture_bytes)
    first = [run.networks[0] for run in runs[:2]]
    if len(runs) == 1:
        first = [*runs[0].networks, ""][:2]
    facts = {**payload.facts, "statistics": plain_json(statistics), "first": first}
    page = render_sheet(facts, payload.columns, payload.pictures, script="comparison")
    write_page(page, path)


def write_page(page: str, path: Path) -> None:
    """Write a page; the folder must exist."""
    try:
        path.write_text(page, "utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror})") from None


def _data_parts(facts: Mapping[str, Any], columns: bytes, pictures: bytes) -> dict[str, str]:
    return {
        "title": html.escape(f"{facts['title']} · radii"),
        "facts": json_in_script(facts),
        "columns": base64.b64encode(columns).decode(),
        "pictures": base64.b64encode(pictures).decode(),
    }


def _filled(shell: str, parts: Mapping[str, str]) -> str:
    """The shell with its `{{names}}` replaced, once each: a part may hold braces, too."""
    first, *rest = _asset(shell).split("{{")
    pieces = [piece.partition("}}") for piece in rest]
    return first + "".join(parts[name] + text for name, _, text in pieces)


def _scripts(*names: str) -> dict[str, str]:
    return {"plotly": _in_script(_plotly()), "script": _one_script(*names)}


def _one_script(*names: str) -> str:
    code = "\n".join(_asset(f"{name}.js") for name in names)
    return _in_script(f'(() => {{\n"use strict";\n{code}\n}})();')


def json_in_script(value: object) -> str:
    """JSON that cannot end the script element it stands in, whatever names say."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(scripts: Iterable[str], *, connects: str) -> str:
    """What the page may do: run these scripts and no other, however it might come into the page."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
        for code in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        f"connect-src {connects}; base-uri 'none'; form-action 'none'"
    )


def _in_script(code: str) -> str:
    """Code of our own and of Plotly: an end tag or comment inside a string must not end it."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _asset(name: str) -> str:
    return resources.files("radii.views.page").joinpath("assets", name).read_text("utf-8")


def _plotly() -> str:
    """The script that the plotly package brings along; the package itself is not imported."""
    found = importlib.util.find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        raise DataError("a report needs the package 'plotly': pip install 'plotly>=6'")
    root = Path(next(iter(found.submodule_search_locations)))
    return without_addresses((root / "package_data" / "plotly.min.js").read_text("utf-8"))


def without_addresses(code: str) -> str:
    """A script whose addresses lead nowhere; its licences stay as they are.

    Plotly knows places for maps, fonts and a cloud to which charts are uploaded. The policy forbids
    requests, but no policy forbids to open a window: whatever a later Plotly offers, it has no
    address to go to.
    """
    return _LICENCE_OR_ADDRESS.sub(lambda found: found[1] or "about:blank#", code)
