"""Tables with one row an instance: the columns of the papers' public data and of VERONA."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.distributions.columns import NONE, Array
from radii.distributions.tables import (
    ATTACK,
    input_numbers,
    network_names,
    numbers,
    whole_numbers,
)
from radii.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["columns_of_instances", "described", "without_contradictions"]


def columns_of_instances(
    path: Path,
    frame: pd.DataFrame,
    largest_eps: float | None,
    distrust: bool,
    notes: list[str],
) -> dict[str, Any]:
    """A distribution's columns; `notes` gets what cannot be taken at its word."""
    columns = described(path, frame)
    columns["predicted"], columns["correct"] = columns["label"], np.True_
    lower, upper = numbers(path, frame, "epsilon_value"), numbers(path, frame, "smallest_sat_value")
    if "total_time" in frame.columns:
        columns["seconds"] = numbers(path, frame, "total_time")
    is_empty = np.isnan(lower)
    _note(notes, path, is_empty, "have no epsilon_value: nothing is proven about them")
    lower = np.where(is_empty, 0.0, lower)
    upper = np.where(np.isnan(upper), np.inf, upper)
    # VERONA writes 0 and 0 when every query of an instance failed.
    unsolved = (lower == 0) & (upper == 0)
    _note(notes, path, unsolved, "are 0 on both sides: no query was answered, nothing is known")
    upper = np.where(unsolved, np.inf, upper)
    if largest_eps is not None:
        at_end = np.isfinite(upper) & (upper >= largest_eps)
        _note(notes, path, at_end, "end with the grid: taken as having no counterexample")
        upper = np.where(at_end, np.inf, upper)
    lower = _without_attacks(path, frame, lower, notes)
    columns["lower"], columns["upper"] = without_contradictions(
        path, lower, upper, distrust=distrust, notes=notes
    )
    return columns


def described(path: Path, frame: pd.DataFrame) -> dict[str, Any]:
    """What a row is about: network, input, class, target, split and training."""
    for name in ("image_id", "network_path"):
        if name not in frame.columns:
            raise DataError(f"{path}: column '{name}' is missing")
    columns: dict[str, Any] = {
        "network": network_names(frame["network_path"]),
        "input": input_numbers(path, frame["image_id"]),
        "label": whole_numbers(path, frame, "original_label"),
        "target": whole_numbers(path, frame, "target_class"),
    }
    asked = frame["property"].astype(str) if "property" in frame.columns else [""] * len(frame)
    columns["property"] = np.array(
        [_property(target, told) for target, told in zip(columns["target"], asked, strict=True)]
    )
    for name in ("split", "training"):
        if name in frame.columns:
            text = frame[name].astype(object).where(frame[name].notna(), "")
            columns[name] = text.astype(str).str.strip().to_numpy(np.str_)
    return columns


def _property(target: int, told: str) -> str:
    """What a row is about. Published targets are one-to-one, unless radii itself wrote become."""
    if target == NONE:
        return "one-to-any"
    return f"{'become' if told.startswith('become') else 'one-to-one'}:{target}"


def without_contradictions(
    path: Path, lower: Array, upper: Array, *, distrust: bool, notes: list[str]
) -> tuple[Array, Array]:
    """Brackets in order: a proof at or beyond a counterexample is kept as claimed, or dropped."""
    contradicted = lower >= upper
    if distrust:
        _note(notes, path, contradicted, "claim a proof that they refute: it is dropped")
        return np.where(contradicted, 0.0, lower), upper
    _note(
        notes,
        path,
        contradicted,
        "claim a proof at or beyond their own counterexample: the claim is kept as published",
    )
    return lower, np.maximum(lower, upper)


def _without_attacks(path: Path, frame: pd.DataFrame, lower: Array, notes: list[str]) -> Array:
    if "verifier" not in frame.columns:
        return lower
    attacked = frame["verifier"].astype(str).str.contains(ATTACK).to_numpy(np.bool_) & (lower > 0)
    _note(notes, path, attacked, "come from an attack, which proves nothing: lower is 0")
    return np.where(attacked, 0.0, lower)


def _note(notes: list[str], path: Path, rows: Array, what: str) -> None:
    if rows.any():
        places = np.flatnonzero(rows)
        shown = ", ".join(str(place + 1) for place in places[:5])
        more = ", ..." if len(places) > 5 else ""
        notes.append(f"{path}: {len(places)} of {len(rows)} rows {what} (rows {shown}{more})")
