"""A network in ReLU form as a plain chain: each layer reads nothing but the layer before it.

Marabou derives bounds from the layers that it recognises, and those are wrong (it answers unsat
where there are counterexamples) where a layer reads several earlier ones, as in residual networks.
So values that are needed later are carried along by units that are always active: a unit's
output is never negative, and an input is carried as its distance from its lower bound.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack, vstack

from radii.bounds import ReluForm, box_of, centre_of, fuse, relu_form
from radii.errors import MissingExtra
from radii.networks import Network
from radii.problem import (
    Halfspaces,
    Limits,
    LinearRequirement,
    Norm,
    Requirement,
    Specification,
    Verdict,
)
from radii.processes import Ending, ProgramEnd, run_program
from radii.verifiers._base import Answer, Verifier
from radii.verifiers._case import BoundedProblem

Float64 = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def as_chain(form: ReluForm, low: Float64) -> list[csr_array]:
    """Layers, the output last, as rows over the previous layer's values and the constant 1.

    The first layer reads the input, which is nowhere below `low`.
    """
    rows = [csr_array(layer) for layer in (*form.layers, form.output)]
    first_units = np.cumsum([form.inputs + 1, *(layer.shape[0] for layer in form.layers)])
    needed = _needed_later(rows, form.inputs)
    chain, values = [], np.arange(form.inputs)
    shift = np.zeros(form.inputs)
    for k, layer in enumerate(rows):
        own = _over(layer, values, shift, form.inputs)
        carried = np.intersect1d(needed[k], values)
        place = np.searchsorted(values, carried)
        is_new = (k == 0) & (carried < form.inputs)
        least = np.where(is_new, low[np.minimum(carried, form.inputs - 1)], 0.0)
        passed = csr_array(
            (
                np.concatenate([np.ones(len(carried)), -least]),
                (
                    np.tile(np.arange(len(carried)), 2),
                    np.concatenate([place, np.full(len(carried), len(values))]),
                ),
            ),
            shape=(len(carried), len(values) + 1),
        )
        chain.append(csr_array(vstack([passed, own])))
        if k < len(form.layers):
            units = first_units[k] + np.arange(layer.shape[0])
            shift = np.concatenate([shift[place] + least, np.zeros(len(units))])
            values = np.concatenate([carried, units])
    return chain


def _needed_later(rows: list[csr_array], inputs: int) -> list[Integers]:
    """For each layer, the columns that layers behind it read."""
    needed = [np.zeros(0, np.int64)]
    for layer in reversed(rows[1:]):
        read = np.unique(layer.indices[layer.data != 0])
        needed.append(np.union1d(needed[-1], read[read != inputs]))
    return needed[::-1]


def _over(layer: csr_array, values: Integers, shift: Float64, inputs: int) -> csr_array:
    """Rows over all columns, as rows over the values at hand; each column is value + shift."""
    columns = layer.tocsc()
    at_hand = csr_array(columns[:, values])
    constant = columns[:, [inputs]].toarray() + (at_hand @ shift)[:, None]
    return csr_array(hstack([at_hand, csr_array(constant)]))


# The verifier `marabou`: complete for piecewise-linear networks, by Marabou's own procedure.
#
# Every violation is a question of its own. Marabou computes in float64 without exact arithmetic, so
# it is asked for violations up to a margin outside the true ones: only if there is none even there,
# the property is taken as proven, and the margin is stated with the proof.


MARABOU_STATUS_MAP = {
    "sat": Verdict.NOT_ROBUST,
    "unsat": Verdict.ROBUST,
    "TIMEOUT": Verdict.TIMEOUT,
    "UNKNOWN": Verdict.UNKNOWN,
    "QUIT_REQUESTED": Verdict.CANCELLED,
    "ERROR": Verdict.ERROR,
}

MARGIN = 1e-5
"""In units of the outputs, the least margin of a proof: Marabou lets rows and units be off by about
1e-6, and such errors add up."""

DEPTHS = (-1.0, 1.0, 8.0)
"""How deep a violation is asked for, in margins: first those that a proof must exclude, then those
that should replay on ONNX Runtime."""

NO_LIMIT_SECONDS = 1e9
"""Seconds, where there is no limit."""


class Marabou(Verifier):
    """maraboupy with its default options, on one thread, killed at its limits."""

    name = "marabou"
    norms = frozenset({Norm.LINF})
    is_complete = True

    @property
    def version(self) -> str:
        try:
            return f"maraboupy {metadata.version('maraboupy')}"
        except metadata.PackageNotFoundError:
            return "maraboupy is not installed"

    def unsupported(
        self, network: Network, norm: Norm, kind: type[Requirement] = LinearRequirement
    ) -> str | None:
        reason = super().unsupported(network, norm, kind)
        if reason is None and not network.is_piecewise_linear:
            reason = (
                f"verifier '{self.name}' does not decide {network.name}: "
                "it has operators that are not piecewise linear"
            )
        if reason is None and find_spec("maraboupy") is None:
            reason = str(MissingExtra("maraboupy", "marabou", f"verifier '{self.name}'"))
        return reason

    def run(self, network: Network, specification: Specification, limits: Limits) -> Answer:
        expired = limits.expired
        if expired is not None:
            return Answer(expired)
        case = BoundedProblem(network, specification, limits, self.arithmetic)
        if case.try_input(centre_of(specification.region)):
            return Answer(Verdict.NOT_ROBUST, centre_of(specification.region))
        polyhedra = case.reachable()
        margins = [MARGIN] * len(polyhedra)
        if not polyhedra:
            return Answer(Verdict.ROBUST, margin=MARGIN)
        with tempfile.TemporaryDirectory(prefix="radii-", ignore_cleanup_errors=True) as name:
            place = Path(name)
            _write_job(place / "job.npz", relu_form(fuse(network)), case, polyhedra, margins)
            program = Path(__file__).with_name("_marabou_process.py")
            command = [sys.executable, "-P", str(program), "job.npz", "answers.jsonl"]
            ended = run_program(command, place, limits.allowance, limits.cancelled, scratch=place)
            answers = _read_answers(place / "answers.jsonl")
        return _combined_answer(case, answers, len(polyhedra), MARGIN, ended)


@dataclass(frozen=True, slots=True, eq=False)
class _MarabouAnswer:
    """One answer of Marabou's."""

    polyhedron: int
    depth: float
    verdict: Verdict
    point: Float64 | None


def _combined_answer(
    case: BoundedProblem,
    answers: Sequence[_MarabouAnswer],
    count: int,
    margin: float,
    ended: ProgramEnd,
) -> Answer:
    """What all answers say together; the deepest counterexample that replays comes first."""
    for answer in reversed(answers):
        if answer.point is not None and case.try_input(answer.point):
            return Answer(Verdict.NOT_ROBUST, answer.point)
    proven = {
        answer.polyhedron
        for answer in answers
        if answer.verdict is Verdict.ROBUST and answer.depth == DEPTHS[0]
    }
    if len(proven) == count:
        return Answer(Verdict.ROBUST, margin=margin)
    if ended.ending is not Ending.ANSWERED:
        quote = f"; it printed: {ended.last_line}" if ended.last_line else ""
        return Answer.stopped(ended.ending, f"Marabou: {ended.peculiarity}{quote}")
    verdicts = [answer.verdict for answer in answers]
    for verdict in (Verdict.TIMEOUT, Verdict.CANCELLED, Verdict.ERROR):
        if verdict in verdicts:
            return Answer(verdict, message=f"Marabou says {verdict.value}")
    return Answer(Verdict.UNKNOWN, message="the least margin is within Marabou's tolerance of zero")


def _write_job(
    path: Path,
    form: ReluForm,
    case: BoundedProblem,
    polyhedra: Sequence[Halfspaces],
    margins: Sequence[float],
) -> None:
    """What `solving.py` reads."""
    low, high = box_of(case.specification.region)
    arrays: dict[str, npt.NDArray[Any]] = {
        "low": low,
        "high": high,
        "layers": np.array(len(form.layers) + 1),
        "polyhedra": np.array(len(polyhedra)),
        "margins": np.array(margins),
        "depths": np.array(DEPTHS),
        "seconds": np.array(min(case.limits.remaining, NO_LIMIT_SECONDS)),
    }
    cuts = case.specification.inputs
    matrices = {f"layer{k}": layer for k, layer in enumerate(as_chain(form, low))}
    matrices["cuts"] = csr_array((0, form.inputs + 1))
    if cuts is not None:
        matrices["cuts"] = csr_array(hstack([csr_array(cuts.matrix), cuts.offset[:, None]]))
    for name, matrix in matrices.items():
        arrays[f"{name}_starts"] = matrix.indptr
        arrays[f"{name}_columns"] = matrix.indices
        arrays[f"{name}_data"] = matrix.data
    for place, polyhedron in enumerate(polyhedra):
        arrays[f"matrix{place}"] = polyhedron.matrix
        arrays[f"offset{place}"] = polyhedron.offset
    np.savez(path, allow_pickle=False, **arrays)


def _read_answers(path: Path) -> list[_MarabouAnswer]:
    """Every answer that was written whole."""
    answers = []
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    for line in lines:
        if line.endswith("\n"):
            answer = json.loads(line)
            point = np.array(answer["point"]) if "point" in answer else None
            verdict = MARABOU_STATUS_MAP.get(answer["status"], Verdict.ERROR)
            answers.append(_MarabouAnswer(answer["polyhedron"], answer["depth"], verdict, point))
    return answers
