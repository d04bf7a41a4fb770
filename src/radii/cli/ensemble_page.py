"""One self-contained page about an ensemble: the game, its attack in pictures, or a curve."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radii.ensembles.sets import members
from radii.errors import DataError, ExperimentError
from radii.plots import as_picture
from radii.verdicts import Array

if TYPE_CHECKING:
    from radii.ensembles import Measurement, RandomizedAttack, Study

__all__ = ["write_attack_page", "write_curve_page"]

STYLE = """
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #17212b; background: #fff;
  font: 16px/1.5 system-ui, sans-serif; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid #e2e6ea; padding: .3rem .8rem .3rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
img { width: 84px; height: 84px; object-fit: contain; image-rendering: pixelated; display: block; }
.attack { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; width: 9rem; }
figcaption { font-size: .8rem; color: #586673; overflow-wrap: anywhere; }
"""

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 300, 50, 40
"""Of the drawing of the curve, in pixels, with room for the axes."""


def write_attack_page(
    path: Path, study: Study, found: Measurement, attack: RandomizedAttack
) -> None:
    """The optimal mix: who is fooled with whom at each point, and the perturbed inputs."""
    parts = [_head(study, found), _defence(study, found), "<h2>Attack</h2>"]
    parts.append(f"<p>Replayed on every network, it achieves {_number(attack.value)}.</p>")
    for probability, row in zip(attack.probabilities, attack.perturbed, strict=True):
        parts.append(f"<h3>With probability {_number(probability)}</h3><div class=attack>")
        for point, each in zip(study.points, row, strict=True):
            caption = (
                f"input {point.index}, class {point.label}, distance {each.distance:.3g}; "
                f"fools {_names(study, each.fooled)}"
            )
            parts.append(_figure(study, each.input, caption))
        parts.append("</div>")
    parts.append(_points(study, found))
    _write(path, "Randomized attack on an ensemble", parts)


def write_curve_page(path: Path, study: Study, curve: Sequence[Measurement]) -> None:
    """The value over eps, drawn and as a table."""
    rows = (
        (f"{found.eps:g}", _number(found.lower), _number(found.upper), str(found.questions))
        for found in curve
    )
    table = _table(("eps", "attained", "at most", "questions"), rows)
    names = escape(", ".join(study.ensemble.names))
    head = f"<p>{names}; {len(study.points)} points, {study.norm.value}.</p>"
    _write(path, "Value of an ensemble over eps", [head, _drawing(curve), table])


def _write(path: Path, title: str, parts: Iterable[str]) -> None:
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<style>{STYLE}</style><h1>{title}</h1>{''.join(parts)}</html>\n"
    )
    try:
        path.write_text(page, "utf-8")
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be written: {error.strerror or error}") from None


def _head(study: Study, found: Measurement) -> str:
    value = (
        f"exactly {_number(found.lower)}"
        if found.is_exact
        else f"between {_number(found.lower)} and {_number(found.upper)}"
    )
    return (
        f"<p>{len(study.ensemble)} classifiers, {len(study.points)} points, {study.norm.value} eps "
        f"{found.eps:g}. The value of the game is {value}.</p>"
    )


def _defence(study: Study, found: Measurement) -> str:
    weights = zip(study.ensemble.names, found.limit.defence, strict=True)
    rows = ((escape(name), _number(weight)) for name, weight in weights)
    return "<h2>Best defence</h2>" + _table(("network", "weight"), rows)


def _points(study: Study, found: Measurement) -> str:
    impossible: dict[int, list[str]] = {}
    for each in study.impossible(found.eps):
        shown = f"{_names(study, each.finding.classifiers)} ({each.finding.verifier})"
        impossible.setdefault(each.place, []).append(shown)
    rows = []
    for place, (point, fooled) in enumerate(
        zip(study.points, study.fooled(found.eps), strict=True)
    ):
        together = "<br>".join(_names(study, mask) for mask in fooled if mask) or "nobody"
        never = "<br>".join(impossible.get(place, []))
        rows.append((str(point.index), str(point.label), together, never))
    heads = ("input", "label", "fooled by one perturbation", "proven impossible")
    return "<h2>Who is fooled with whom</h2>" + _table(heads, rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    top = "".join(f"<th>{head}</th>" for head in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _figure(study: Study, values: Array, caption: str) -> str:
    """An input as a picture, where it is one."""
    low, high = study.ensemble.domain.box(values.shape)
    try:
        picture = as_picture(np.asarray(values), float(low.min()), float(high.max()))
    except DataError:
        return f"<figure><figcaption>{caption}</figcaption></figure>"
    from PIL import Image

    held = io.BytesIO()
    Image.fromarray((255 * np.clip(picture, 0, 1)).round().astype(np.uint8).squeeze()).save(
        held, format="PNG"
    )
    content = base64.b64encode(held.getvalue()).decode()
    return (
        f'<figure><img alt="perturbed input" src="data:image/png;base64,{content}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _drawing(curve: Sequence[Measurement]) -> str:
    """Both sides of the brackets over eps; the area between them is what is not known."""
    most = max((found.eps for found in curve), default=0.0) or 1.0

    def at(eps: float, value: Fraction) -> str:
        x = LEFT + (WIDTH - LEFT) * eps / most
        return f"{x:.1f},{(HEIGHT - BOTTOM) * (1 - float(value)):.1f}"

    lower = [at(found.eps, found.lower) for found in curve]
    upper = [at(found.eps, found.upper) for found in curve]
    between = " ".join([*lower, *reversed(upper)])
    base = HEIGHT - BOTTOM
    return (
        f'<svg viewBox="0 -10 {WIDTH + 20} {HEIGHT + 10}" width="{WIDTH}" role="img" '
        'aria-label="value over eps">'
        f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH}" y2="{base}" stroke="#586673"/>'
        f'<line x1="{LEFT}" y1="0" x2="{LEFT}" y2="{base}" stroke="#586673"/>'
        f'<polygon points="{between}" fill="#0b62a3" opacity="0.15"/>'
        f'<polyline points="{" ".join(lower)}" fill="none" stroke="#c45200" stroke-width="2"/>'
        f'<polyline points="{" ".join(upper)}" fill="none" stroke="#0072b2" stroke-width="2"/>'
        f'<text x="{LEFT - 8}" y="5" text-anchor="end">1</text>'
        f'<text x="{LEFT - 8}" y="{base}" text-anchor="end">0</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 15}">0</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 15}" text-anchor="end">eps {most:g}</text></svg>'
        "<p>Orange: attained by a replayed attack. Blue: no attack exceeds it.</p>"
    )


def _names(study: Study, mask: int) -> str:
    names = (escape(study.ensemble.names[place]) for place in members(mask))
    return ", ".join(names) or "nobody"


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{value} ({float(value):.4f})"
