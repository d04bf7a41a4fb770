"""Tables with one row an instance: the columns of the papers' public data and of VERONA."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.distributions._cells import regular_grid
from radii.distributions._columns import NO_NUMBER, Array, Float64
from radii.distributions._doubts import (
    note_copies,
    note_names,
    note_repeats,
    note_rows,
    note_splits,
    note_unsolved,
)
from radii.distributions._tables import (
    ATTACK_NAMES,
    input_numbers,
    network_names,
    numbers,
    whole_numbers,
)
from radii.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


def columns_of_instances(
    path: Path,
    frame: pd.DataFrame,
    largest_eps: float | None,
    distrust: bool,
    notes: list[str],
) -> dict[str, Any]:
    """A distribution's columns; `notes` gets what cannot be taken at its word.

    Critical terminations are what the grid leaves between the sides: VERONA's search ends when
    every value there was asked in vain. They are not known where the file's values are no grid.
    """
    columns = described_columns(path, frame, notes)
    note_repeats(notes, path, instance_keys(columns))
    columns["predicted"], columns["correct"] = columns["label"], np.True_
    lower, upper = numbers(path, frame, "epsilon_value"), numbers(path, frame, "smallest_sat_value")
    if "total_time" in frame.columns:
        columns["seconds"] = numbers(path, frame, "total_time")
    is_empty, has_witness = np.isnan(lower), np.isfinite(upper)
    note_rows(
        notes, path, is_empty & has_witness, "have no epsilon_value: nothing is proven about them"
    )
    lower = np.where(is_empty, 0.0, lower)
    upper = np.where(has_witness, upper, np.inf)
    # VERONA writes 0 and 0 when every query of an instance failed.
    both_zero = (lower == 0) & (upper == 0)
    what = "are 0 on both sides, so no query has an answer: kept as [0, inf)"
    note_rows(notes, path, both_zero, what)
    upper = np.where(both_zero, np.inf, upper)
    critical = _values_between(lower, upper)
    if largest_eps is not None:
        at_end = np.isfinite(upper) & (upper >= largest_eps)
        note_rows(notes, path, at_end, "end with the grid: taken as having no counterexample")
        upper = np.where(at_end, np.inf, upper)
        critical = np.where(at_end, NO_NUMBER, critical)
    attacked = _attack_rows(path, frame, lower, notes)
    lower, critical = np.where(attacked, 0.0, lower), np.where(attacked, NO_NUMBER, critical)
    note_unsolved(notes, path, (lower == 0) & np.isinf(upper) & ~both_zero)
    columns["critical"] = critical
    columns["lower"], columns["upper"] = without_contradictions(
        path, lower, upper, distrust=distrust, notes=notes
    )
    return columns


def _values_between(lower: Float64, upper: Float64) -> Array:
    """How many values of the grid lie between the sides; none without an upper one or a grid."""
    ends = np.concatenate([lower, upper])
    grid = regular_grid(np.unique(ends[(ends > 0) & np.isfinite(ends)]))
    if grid is None:
        return np.full(len(lower), NO_NUMBER)
    start, step = grid
    has_end = np.isfinite(upper)
    # Places on the grid, counted from 0; a thousandth of a step is rounding.
    below = np.maximum(np.floor((lower - start) / step + 1e-3), -1)
    above = np.ceil((np.where(has_end, upper, start) - start) / step - 1e-3)
    between = np.maximum(above - below - 1, 0).astype(np.int64)
    return np.where(has_end, between, NO_NUMBER)


def instance_keys(columns: dict[str, Any]) -> list[Array]:
    """What makes an instance: its network, input and, where they are told, target and split."""
    return [columns[name] for name in ("network", "input", "target", "split") if name in columns]


def described_columns(path: Path, frame: pd.DataFrame, notes: list[str]) -> dict[str, Any]:
    """What a row is about: network, input, class, target, split and training.

    `notes` gets names that are no network's, copies under several names, and missing splits.
    """
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
    note_names(notes, path, columns["network"])
    note_copies(notes, path, frame, columns["network"])
    note_splits(notes, path, columns.get("split"))
    return columns


def _property(target: int, told: str) -> str:
    """What a row is about. Published targets are one-to-one, unless radii itself wrote become."""
    if target == NO_NUMBER:
        return "one-to-any"
    return f"{'become' if told.startswith('become') else 'one-to-one'}:{target}"


def without_contradictions(
    path: Path, lower: Array, upper: Array, *, distrust: bool, notes: list[str]
) -> tuple[Array, Array]:
    """Brackets in order: a proof at or beyond a counterexample is kept as claimed, or dropped."""
    contradicted = lower >= upper
    if distrust:
        note_rows(notes, path, contradicted, "claim a proof that they refute: it is dropped")
        return np.where(contradicted, 0.0, lower), upper
    note_rows(
        notes,
        path,
        contradicted,
        "claim a proof at or beyond their own counterexample: the claim is kept as published",
    )
    return lower, np.maximum(lower, upper)


def _attack_rows(path: Path, frame: pd.DataFrame, lower: Array, notes: list[str]) -> Array:
    """Which rows call the failure of an attack a proof."""
    if "verifier" not in frame.columns:
        return np.zeros(len(frame), np.bool_)
    attacked: Array = frame["verifier"].astype(str).str.contains(ATTACK_NAMES).to_numpy(np.bool_)
    attacked = attacked & (lower > 0)
    note_rows(notes, path, attacked, "come from an attack, which proves nothing: lower is 0")
    return attacked
