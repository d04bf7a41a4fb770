"""What deciding a query returns: a verdict, and the evidence that makes it count.

Evidence is what moves a bracket, never the verdict's name: a `Proof` raises the lower side, a
`Witness` lowers the upper side, and a result with neither moves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Proof", "Result", "Verdict", "Witness"]

Array = npt.NDArray[np.floating]


class Verdict(StrEnum):
    """The answer to a query. All but the first two are missing answers."""

    ROBUST = "ROBUST"
    NOT_ROBUST = "NOT_ROBUST"
    UNKNOWN = "UNKNOWN"
    TIMEOUT = "TIMEOUT"
    MEMOUT = "MEMOUT"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"

    @property
    def is_missing(self) -> bool:
        """No statement about the query was made."""
        return self not in (Verdict.ROBUST, Verdict.NOT_ROBUST)


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """A counterexample that was replayed on ONNX Runtime. Made only by `radii.witnesses`.

    `input` is the exact array that was replayed, in the data's own units; `distance` is measured
    in float64 from the instance's input in the query's norm; `outputs` is what ONNX Runtime said.
    """

    input: Array
    distance: float
    predicted: int
    outputs: Array
    replayed_on: str


@dataclass(frozen=True, slots=True)
class Proof:
    """The property holds on the whole closed ball of radius `eps`.

    `margin` is how far above zero the proven bound had to be, in units of the network's output.
    """

    eps: float
    margin: float


@dataclass(frozen=True, slots=True)
class Result:
    """One query's outcome: who answered, what, on which evidence, in how many wall seconds.

    `cpu_seconds` counts all processes that worked on it, None where nobody measured it.
    `added_seconds` is what the query added to the wall time of its instance, whose queries may run
    side by side; None: all of `seconds`. `allowed_seconds` is the wall time that it had where that
    was not the run's own limit, as when a run has a budget.
    """

    verdict: Verdict
    eps: float
    verifier: str
    version: str
    seconds: float
    proof: Proof | None = None
    witness: Witness | None = None
    message: str = ""
    cpu_seconds: float | None = None
    added_seconds: float | None = None
    allowed_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.verdict is Verdict.ROBUST and (self.proof is None or self.proof.eps < self.eps):
            raise ValueError(f"ROBUST at eps {self.eps} needs a proof that reaches it")
        if self.verdict is Verdict.NOT_ROBUST and (
            self.witness is None or self.witness.distance > self.eps
        ):
            raise ValueError(f"NOT_ROBUST at eps {self.eps} needs a witness within it")

    @property
    def own_seconds(self) -> float:
        """What it adds to the wall time of its instance."""
        return self.seconds if self.added_seconds is None else self.added_seconds
