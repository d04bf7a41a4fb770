"""Texts that are made from the code: tables of the documentation, and types of settings.

    python scripts/derived_texts.py

Each stands between two comments, `NAME: written by scripts/derived_texts.py` and `end of NAME`.
What lies between is replaced; a test compares it with what this script would write.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from radii.datasets import DIGITS_SPLITS, catalogue, extent, load
from radii.networks import OperatorKind
from radii.networks._building import PASSED_THROUGH
from radii.networks.operators._base import TRANSLATED
from radii.runs import Settings, options_of
from radii_check.operators import MOVES, READERS

ROOT = Path(__file__).parents[1]


def published_sets() -> str:
    """The data sets that have a name, for the documentation."""
    digits = {split: part.stop - part.start for split, part in DIGITS_SPLITS.items()}
    rows = [
        ("digits", load("digits").shape, digits, "embedded"),
        *((known.name, known.shape, known.counts, known.origin) for known in catalogue()),
    ]
    lines = [
        f"| `{name}` | {extent(shape)} | {counts['train']} | {counts['test']} | {origin} |"
        for name, shape, counts, origin in rows
    ]
    return "\n".join(("| name | images | train | test | from |", "|---|---|---|---|---|", *lines))


def setting_types() -> str:
    """The types of settings in Python, as type checkers and notebooks read them."""
    defaults = {one.name: one.default for one in dataclasses.fields(Settings)}
    options = {name: options_of(Settings)[name] for name in defaults}
    lines = []
    for name, option in options.items():
        is_optional = defaults[name] is None
        lines.append(f"    {name}: {option.accepts}{' | None' if is_optional else ''}")
    return "\n".join(lines)


OPERATOR_KINDS = {
    OperatorKind.AFFINE: "affine",
    OperatorKind.PIECEWISE_LINEAR: "piecewise linear",
    OperatorKind.SMOOTH: "smooth",
}


def onnx_operators() -> str:
    """The operators that networks may use by their kinds, as their translators state them."""
    lines = ["| kind | ONNX operators |", "|---|---|"]
    for kind, title in OPERATOR_KINDS.items():
        names = [
            f"{name} ({stated.note})" if stated.note else name
            for name in sorted(TRANSLATED)
            for stated in TRANSLATED[name]
            if stated.kind is kind
        ]
        lines.append(f"| {title} | {', '.join(names)} |")
    passed = ", ".join(sorted(PASSED_THROUGH))
    others = "all others that do not depend on the input"
    return "\n".join((*lines, f"| leave no node | Constant, {passed}, and {others} |"))


def checker_operators() -> str:
    """The operators that the checker reads."""
    return ", ".join(f"`{name}`" for name in sorted({*READERS, *MOVES}))


TEXTS: Mapping[str, tuple[str, Callable[[], str]]] = {
    "published sets": ("docs/data.md", published_sets),
    "ONNX operators": ("docs/networks.md", onnx_operators),
    "operators of the checker": ("docs/certificates.md", checker_operators),
    "types of settings": ("src/radii/api.py", setting_types),
}
"""By the name in the comments: the file, and what makes the text."""


def with_derived(file: str, text: str) -> str:
    """The text of a file with what is derived in it as it would be made now."""
    for name, (own_file, make) in TEXTS.items():
        if own_file == file:
            begin, end = rf"{name}: written by scripts/derived_texts\.py[^\n]*\n", f"end of {name}"
            found = re.search(rf"({begin})(.*)(\n[^\n]*{end})", text, re.DOTALL)
            if found is None:
                raise SystemExit(f"{file} has no place for '{name}'")
            text = text[: found.start(2)] + make() + text[found.end(2) :]
    return text


def main() -> None:
    for file in dict.fromkeys(file for file, _ in TEXTS.values()):
        path = ROOT / file
        path.write_text(with_derived(file, path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
