"""What a round of a cycle leaves behind: its record, and the counterexamples found afterwards."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from radii.errors import StoreError
from radii.problem import Array
from radii.statistics import RequirementOutcome
from radii.training._checkpoints import replacing

ROUND_FILE = "round.json"
COUNTEREXAMPLES_FILE = "counterexamples.npz"


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one round. Shares are of the test images, at the cycle's eps.

    `images` were trained on, `counterexamples` of them found in earlier rounds. `seconds` are those
    of the session that ended the round.
    """

    number: int
    images: int
    counterexamples: int
    accuracy: float
    proven: float
    not_refuted: float
    outcomes: tuple[RequirementOutcome, ...]
    seconds: float

    @property
    def is_met(self) -> bool:
        return all(outcome.is_met for outcome in self.outcomes)

    def write(self, directory: Path) -> None:
        with replacing(directory / ROUND_FILE) as partial:
            partial.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n", "utf-8")

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        """A round that was ended; None if it was not."""
        path = directory / ROUND_FILE
        if not path.exists():
            return None
        try:
            fields: dict[str, Any] = json.loads(path.read_text("utf-8"))
            fields["outcomes"] = tuple(RequirementOutcome(**each) for each in fields["outcomes"])
            return cls(**fields)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path}: cannot be read as a round ({error})") from None


@dataclass(frozen=True, slots=True, eq=False)
class Counterexamples:
    """What was found around training images: points, with the labels of the images they break.

    Of `attacked` images `broken` were broken, and of the others `verified` were given to a
    verifier, which proved `proven` and refuted `refuted`. An image that is misclassified as it
    stands counts as broken and gives no point.
    """

    images: Array
    labels: Array
    attacked: int
    broken: int
    verified: int = 0
    proven: int = 0
    refuted: int = 0

    def write(self, directory: Path) -> None:
        counts = [self.attacked, self.broken, self.verified, self.proven, self.refuted]
        with replacing(directory / COUNTEREXAMPLES_FILE) as partial, partial.open("wb") as file:
            np.savez_compressed(
                file, images=self.images, labels=self.labels, counts=np.array(counts)
            )

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        """What a hunt found; None if it has not ended."""
        path = directory / COUNTEREXAMPLES_FILE
        if not path.exists():
            return None
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return cls(arrays["images"], arrays["labels"], *map(int, arrays["counts"]))
        except Exception as error:  # numpy fails on damaged files in more ways than it documents
            raise StoreError(
                f"{path}: cannot be read as counterexamples ({type(error).__name__}); remove it to "
                "seek them anew"
            ) from None
