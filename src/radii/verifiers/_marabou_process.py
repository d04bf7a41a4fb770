"""Asks Marabou about one job: `python -P solving.py JOB.npz ANSWERS.jsonl`; run by `verifier.py`.

Imports only numpy and maraboupy, so it starts at once, and can be killed at any time: each answer
is on disk, as a line of JSON, before the next question is asked.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
SparseRows = list[tuple[npt.NDArray[np.int64], Float64]]

LONGEST_SECONDS = 10**9
"""Seconds: what Marabou's integers hold."""


def main() -> None:
    started = time.monotonic()
    with np.load(sys.argv[1]) as job, open(sys.argv[2], "a") as answers:  # noqa: PTH123
        end = started + float(job["seconds"])
        count = int(job["polyhedra"])
        network = ReluChain(job)
        for place in range(count):
            share_end = time.monotonic() + (end - time.monotonic()) / (count - place)
            found = _ask_depths(network, job, place, share_end, answers)
            if found:
                return


def _ask_depths(
    network: ReluChain, job: Mapping[str, Any], place: int, end: float, answers: Any
) -> bool:
    """Ask for violations of growing depth; True once one is as deep as replaying needs."""
    matrix, offset = job[f"matrix{place}"], job[f"offset{place}"]
    margin = float(job["margins"][place])
    for depth in job["depths"].tolist():
        seconds = end - time.monotonic()
        status, point = "TIMEOUT", None
        if seconds > 0:
            status, point = network.solve(matrix, offset + depth * margin, seconds)
        answer = {"polyhedron": place, "depth": depth, "status": status}
        if point is not None:
            answer["point"] = point.tolist()
        print(json.dumps(answer), file=answers, flush=True)
        if point is None:
            return False
        reached = float((matrix @ network.outputs(point) + offset).max())
        if reached <= -margin:
            return True
    return False


class ReluChain:
    """A chain of ReLU layers: rows over the values of the layer before, and the constant 1 last."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.low, self.high = job["low"], job["high"]
        self.inputs = len(self.low)
        self.layers = [_rows(job, f"layer{k}") for k in range(int(job["layers"]))]
        self.cuts = _rows(job, "cuts")

    def outputs(self, point: Float64) -> Float64:
        """The network's outputs in float64."""
        values = point
        for place, layer in enumerate(self.layers):
            columns = np.append(values, 1.0)
            read = np.array([float(data @ columns[index]) for index, data in layer])
            values = read if place == len(self.layers) - 1 else np.maximum(read, 0.0)
        return values

    def solve(self, matrix: Float64, offset: Float64, seconds: float) -> tuple[str, Float64 | None]:
        """Marabou's status, and an input with matrix @ outputs + offset <= 0 if it found one."""
        from maraboupy import MarabouCore

        query = self._query(MarabouCore, matrix, offset)
        options = MarabouCore.Options()
        options._verbosity = 0
        options._timeoutInSeconds = max(1, math.ceil(min(seconds, LONGEST_SECONDS)))
        status, values, _ = MarabouCore.solve(query, options, "")
        point = np.array([values[i] for i in range(self.inputs)]) if status == "sat" else None
        return str(status), point

    def _query(self, core: Any, matrix: Float64, offset: Float64) -> Any:
        """Variables: inputs, then for each layer what its units read and what they give."""
        sizes = [len(layer) for layer in self.layers]
        query = core.InputQuery()
        query.setNumberOfVariables(self.inputs + 2 * sum(sizes[:-1]) + sizes[-1])
        for i in range(self.inputs):
            query.setLowerBound(i, float(self.low[i]))
            query.setUpperBound(i, float(self.high[i]))
            query.markInputVariable(i, i)
        before, first = 0, self.inputs
        for place, layer in enumerate(self.layers):
            for unit, row in enumerate(layer):
                _add(core, query, row, before, first - before, equals=first + unit)
                if place < len(self.layers) - 1:
                    query.setLowerBound(first + len(layer) + unit, 0.0)
                    core.addReluConstraint(query, first + unit, first + len(layer) + unit)
                else:
                    query.markOutputVariable(first + unit, unit)
            if place < len(self.layers) - 1:
                before, first = first + len(layer), first + 2 * len(layer)
        for row in self.cuts:
            _add(core, query, row, 0, self.inputs)
        for coefficients, constant in zip(matrix, offset, strict=True):
            used = np.flatnonzero(coefficients)
            row = (np.append(used, sizes[-1]), np.append(coefficients[used], constant))
            _add(core, query, row, first, sizes[-1])
        return query


def _add(core: Any, query: Any, row: Any, first: int, size: int, equals: int | None = None) -> None:
    """Row @ (variables from `first` on, 1) is the value of a variable; without one, at most 0."""
    equation = core.Equation(core.Equation.LE if equals is None else core.Equation.EQ)
    constant = 0.0
    for column, value in zip(row[0].tolist(), row[1].tolist(), strict=True):
        if column == size:
            constant += value
        else:
            equation.addAddend(value, first + column)
    if equals is not None:
        equation.addAddend(-1.0, equals)
    equation.setScalar(-constant)
    query.addEquation(equation)


def _rows(job: Mapping[str, Any], name: str) -> SparseRows:
    """The rows of a sparse matrix: which columns, and their coefficients."""
    starts, columns, data = (job[f"{name}_{part}"] for part in ("starts", "columns", "data"))
    return [(columns[a:b], data[a:b]) for a, b in pairwise(starts)]


if __name__ == "__main__":
    main()
