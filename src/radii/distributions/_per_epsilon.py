"""Tables with one row a query: every eps that was asked, and what was answered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.distributions._columns import Array, Float64, joint_codes
from radii.distributions._doubts import note_unsolved
from radii.distributions._published import described_columns, instance_keys, without_contradictions
from radii.distributions._tables import ATTACK_NAMES, numbers
from radii.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


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


def columns_of_queries(
    path: Path, frame: pd.DataFrame, distrust: bool, notes: list[str]
) -> dict[str, Any]:
    """A distribution's columns: brackets from proofs and counterexamples, missing answers counted.

    An instance is a network, an image and, where the table has them, a target and a split. A query
    that was cancelled, because another answer implied its own, is no missing answer.
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
    told = frame["result"].astype(object).where(frame["result"].notna(), "")
    words = told.astype(str).str.strip().str.lower().str.split(".").str[-1]
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
