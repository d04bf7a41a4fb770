"""What a report is made of: experiments from their stores, or files of published results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radii.brackets import Disagreement
from radii.distributions import Distribution

__all__ = ["Source", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """One question and its answer, and the bracket once it was known."""

    kind: str
    eps: float
    verdict: str
    verifier: str
    seconds: float
    proof_eps: float | None
    distance: float | None
    message: str
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One experiment. Rows of all lists correspond; a file of published results has no details.

    `inputs` tell inputs apart: the same bytes are the same input, whichever experiment used them.
    """

    place: Path
    experiment: dict[str, Any]
    distribution: Distribution
    notes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    steps: tuple[tuple[Step, ...], ...] = ()
    disagreements: tuple[tuple[int, Disagreement], ...] = ()
