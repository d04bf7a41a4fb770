"""Published tables: one row an instance, or one row a query, as columns of a run.

The columns are those of the papers' public data and of VERONA: `epsilon_value` with
`smallest_sat_value` in a table of instances (`result_df.csv`), with `result` in a table of queries
(`epsilons_df.csv`, `per_epsilon_results.csv`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import DataError
from radii.statistics._columns import NO_NUMBER, Array, Float64, columns_of_frame, joint_codes
from radii.statistics.reading._tables import (
    ATTACK_NAMES,
    input_numbers,
    network_names,
    note_copies,
    note_names,
    note_repeats,
    note_rows,
    note_splits,
    note_unsolved,
    numbers,
    read_table,
    whole_numbers,
    with_named_eps,
)

if TYPE_CHECKING:
    import pandas as pd


MOST_GRID_VALUES = 4000
"""Values of which the step would be finer are on no grid that anybody chose."""

PROOF_CODE, WITNESS_CODE, TIMEOUT_CODE, MEMOUT_CODE, MISSING_CODE, CANCELLED_CODE = range(6)

VERDICTS = {
    "unsat": PROOF_CODE,
    "robust": PROOF_CODE,
    "verified": PROOF_CODE,
    "holds": PROOF_CODE,
    "sat": WITNESS_CODE,
    "not_robust": WITNESS_CODE,
    "falsified": WITNESS_CODE,
    "violated": WITNESS_CODE,
    "timeout": TIMEOUT_CODE,
    "time-out": TIMEOUT_CODE,
    "memout": MEMOUT_CODE,
    "oom": MEMOUT_CODE,
    "out_of_memory": MEMOUT_CODE,
    "err": MISSING_CODE,
    "error": MISSING_CODE,
    "unknown": MISSING_CODE,
    "cancelled": CANCELLED_CODE,
    "none": MISSING_CODE,
    "": MISSING_CODE,
}


def columns_of_table(
    path: Path, largest_eps: float | None, distrust: bool, notes: list[str]
) -> dict[str, Any]:
    """The columns of a run from any table: radii's own, or one of the two that are published."""
    frame = read_table(path)
    if {"lower", "upper"} <= set(frame.columns):
        return columns_of_frame(_restored(frame))
    if "result" in frame.columns and "epsilon_value" not in frame.columns:
        frame = with_named_eps(frame)
        if "epsilon_value" in frame.columns:
            notes.append(f"{path}: the first column has no name, and is taken as epsilon_value")
    if "epsilon_value" not in frame.columns:
        raise DataError(
            f"{path}: column 'epsilon_value' is missing; a table of results has it, with "
            "'smallest_sat_value' (a row an instance) or 'result' (a row a query), "
            "or has 'lower' and 'upper'"
        )
    if "smallest_sat_value" in frame.columns:
        return columns_of_instances(path, frame, largest_eps, distrust, notes)
    if "result" in frame.columns:
        return columns_of_queries(path, frame, distrust, notes)
    raise DataError(f"{path}: column 'smallest_sat_value' or 'result' is missing")


def _restored(frame: pd.DataFrame) -> pd.DataFrame:
    """radii's own column names, where reading gave them the published ones."""
    own = {
        "image_id": "input",
        "network_path": "network",
        "total_time": "seconds",
        "original_label": "label",
        "target_class": "target",
    }
    return frame.rename(columns=own)


# --- one row an instance


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


def regular_grid(values: Float64) -> tuple[float, float] | None:
    """The smallest of the values (in order, distinct) and the step in which all others follow it.

    None if there are fewer than three, no such step, or only a very fine one.
    """
    if len(values) < 3:
        return None
    gaps = np.diff(values)
    step = float(np.min(gaps[gaps > 1e-9 * values[-1]]))
    places = (values - values[0]) / step
    rounded = np.round(places)
    if np.any(np.abs(places - rounded) > 1e-3) or rounded[-1] > MOST_GRID_VALUES:
        return None
    return float(values[0]), float((values[-1] - values[0]) / rounded[-1])


def instance_keys(columns: dict[str, Any]) -> list[Array]:
    """What makes an instance: its network, input and, where they are given, target and split."""
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
    specs = frame["property"].astype(str) if "property" in frame.columns else [""] * len(frame)
    columns["property"] = np.array(
        [_property(target, spec) for target, spec in zip(columns["target"], specs, strict=True)]
    )
    for name in ("split", "training"):
        if name in frame.columns:
            text = frame[name].astype(object).where(frame[name].notna(), "")
            columns[name] = text.astype(str).str.strip().to_numpy(np.str_)
    note_names(notes, path, columns["network"])
    note_copies(notes, path, frame, columns["network"])
    note_splits(notes, path, columns.get("split"))
    return columns


def _property(target: int, spec: str) -> str:
    """What a row is about. Published targets are one-to-one, unless radii itself wrote become."""
    if target == NO_NUMBER:
        return "one-to-any"
    return f"{'become' if spec.startswith('become') else 'one-to-one'}:{target}"


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


# --- one row a query


def columns_of_queries(
    path: Path, frame: pd.DataFrame, distrust: bool, notes: list[str]
) -> dict[str, Any]:
    """A distribution's columns: brackets from proofs and counterexamples, missing answers counted.

    An instance is a network, an image and, where the table has them, a target and a split. A query
    that was cancelled, because another answer implied its own, is not a missing answer.
    """
    eps, verdicts = numbers(path, frame, "epsilon_value"), _verdicts(path, frame, notes)
    if np.isnan(eps).any():
        raise DataError(f"{path}: row {int(np.argmax(np.isnan(eps))) + 1}: epsilon_value is empty")
    about = described_columns(path, frame, notes)
    instance, first = _searches(path, joint_codes(instance_keys(about)), eps, verdicts, notes)
    size = len(first)
    lower, upper = _brackets(instance, eps, verdicts)
    note_unsolved(notes, path, (lower == 0) & np.isinf(upper), "instances")
    lower, upper = without_contradictions(path, lower, upper, distrust=distrust, notes=notes)
    is_missing = ~np.isin(verdicts, (PROOF_CODE, WITNESS_CODE, CANCELLED_CODE))
    is_critical = is_missing & (eps > lower[instance]) & (eps < upper[instance])
    columns = {name: values[first] for name, values in about.items()}
    columns |= {
        "predicted": columns["label"],
        "correct": np.True_,
        "lower": lower,
        "upper": upper,
        "queries": np.bincount(instance, minlength=size),
        "cancelled": np.bincount(instance[verdicts == CANCELLED_CODE], minlength=size),
        "missing": np.bincount(instance[is_missing], minlength=size),
        "critical": np.bincount(instance[is_critical], minlength=size),
        "timeouts": np.bincount(instance[verdicts == TIMEOUT_CODE], minlength=size),
        "memouts": np.bincount(instance[verdicts == MEMOUT_CODE], minlength=size),
    }
    if "total_time" in frame.columns:
        seconds = np.nan_to_num(numbers(path, frame, "total_time"))
        columns["seconds"] = np.bincount(instance, seconds, minlength=size)
    return columns


def _brackets(instance: Array, eps: Float64, verdicts: Array) -> tuple[Float64, Float64]:
    """The largest eps with a proof and the smallest with a counterexample, of each instance."""
    size = int(instance.max()) + 1
    lower, upper = np.zeros(size), np.full(size, np.inf)
    is_proof, is_witness = verdicts == PROOF_CODE, verdicts == WITNESS_CODE
    np.maximum.at(lower, instance[is_proof], eps[is_proof])
    np.minimum.at(upper, instance[is_witness], eps[is_witness])
    return lower, upper


def _searches(
    path: Path, codes: Array, eps: Float64, verdicts: Array, notes: list[str]
) -> tuple[Array, Array]:
    """Which instance each row is about, and each instance's first row.

    A search's rows mostly stand together. Where joining what stands apart under one name makes
    contradictions, and no part has one by itself, the parts are searches of their own: files were
    joined that use a name twice, such as number 7 of the training and of the testing images.
    """
    blocks = np.concatenate([[0], np.cumsum(codes[1:] != codes[:-1])])
    joined, apart = (_contradictions(part, eps, verdicts) for part in (codes, blocks))
    if not joined or apart:
        return _instances_in_order(codes)
    parts = np.bincount(codes[np.unique(blocks, return_index=True)[1]])
    notes.append(
        f"{path}: {np.count_nonzero(parts > 1)} of {len(parts)} instances stand in several places, "
        f"and {joined} contradict themselves when these are joined: each place is taken as a "
        "search of its own, perhaps of another split"
    )
    return _instances_in_order(blocks)


def _contradictions(instance: Array, eps: Float64, verdicts: Array) -> int:
    lower, upper = _brackets(instance, eps, verdicts)
    return int(np.count_nonzero(lower >= upper))


def _instances_in_order(codes: Array) -> tuple[Array, Array]:
    """Which instance each row is about, in order of appearance, and each instance's first row."""
    _, first, instance = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[instance], first[order]


def _verdicts(path: Path, frame: pd.DataFrame, notes: list[str]) -> Array:
    texts = frame["result"].astype(object).where(frame["result"].notna(), "")
    words = texts.astype(str).str.strip().str.lower().str.split(".").str[-1]
    unknown = ~words.isin(list(VERDICTS)).to_numpy()
    if unknown.any():
        place = int(np.argmax(unknown))
        raise DataError(f"{path}: row {place + 1}: result '{words.iloc[place]}' is not a verdict")
    verdicts: Array = words.map(VERDICTS).to_numpy(np.int64)
    if "verifier" in frame.columns:
        by_attack = frame["verifier"].astype(str).str.contains(ATTACK_NAMES).to_numpy(np.bool_)
        empty = by_attack & (verdicts == PROOF_CODE)
        if empty.any():
            notes.append(
                f"{path}: {empty.sum()} of {len(empty)} rows call a failed attack a proof: "
                "they are taken as missing answers"
            )
        verdicts = np.where(empty, MISSING_CODE, verdicts)
    return verdicts
