"""What a VNN-COMP tool says: sat, unsat, unknown, timeout or error, and the counterexample.

sat
((X_0 0.25)
(X_1 0.5)
(Y_0 1.0))
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from radii.errors import SpecificationError
from radii.vnnlib._expressions import Expression, read_forms, show
from radii.vnnlib._terms import number

Float64 = npt.NDArray[np.float64]


class Outcome(StrEnum):
    """The first line of a result: does an input exist that satisfies the VNN-LIB file?"""

    SAT = "sat"
    UNSAT = "unsat"
    UNKNOWN = "unknown"
    TIMEOUT = "timeout"
    ERROR = "error"


# What tools and the competition's own scripts write for each outcome.
_SPELLINGS = {
    "sat": Outcome.SAT,
    "violated": Outcome.SAT,
    "unsat": Outcome.UNSAT,
    "holds": Outcome.UNSAT,
    "verified": Outcome.UNSAT,
    "unknown": Outcome.UNKNOWN,
    "timeout": Outcome.TIMEOUT,
    "timed-out": Outcome.TIMEOUT,
    "run_instance_timeout": Outcome.TIMEOUT,
    "error": Outcome.ERROR,
}


@dataclass(frozen=True, slots=True, eq=False)
class Verification:
    """One outcome. `inputs` and `outputs` are flat, and None where no value was given."""

    outcome: Outcome
    inputs: Float64 | None = None
    outputs: Float64 | None = None

    def __str__(self) -> str:
        """The text of a VNN-COMP result file, without the last line's end."""
        if self.outcome is not Outcome.SAT or self.inputs is None:
            return self.outcome.value
        values = [f"(X_{i} {v!r})" for i, v in enumerate(self.inputs.tolist())]
        if self.outputs is not None:
            values += [f"(Y_{j} {v!r})" for j, v in enumerate(self.outputs.tolist())]
        return f"{self.outcome.value}\n(" + "\n".join(values) + ")"


def parse_verification(text: str) -> Verification:
    """Read a result: other spellings, any line breaks and missing outputs are accepted."""
    word, bracket, rest = text.partition("(")
    outcome = _SPELLINGS.get(word.strip().lower())
    if outcome is None:
        raise SpecificationError(f"'{word.strip()[:40]}' is not one of {', '.join(Outcome)}")
    if outcome is Outcome.UNSAT and rest.strip(" ()\n\r\t"):
        raise SpecificationError(f"'{word.strip()}' is followed by '{rest.strip()[:40]}'")
    values: dict[str, dict[int, float]] = {"X": {}, "Y": {}}
    if outcome is Outcome.SAT:
        for form in read_forms(bracket + rest):
            is_pair = bool(form.parts) and isinstance(form.parts[0], str)
            for pair in [form.parts] if is_pair else form.parts:
                _store(pair, values)
    return Verification(outcome, _dense("X", values["X"]), _dense("Y", values["Y"]))


def _store(pair: Expression, values: dict[str, dict[int, float]]) -> None:
    match pair:
        case [str(name), str(text)]:
            letter, _, index = name.partition("_")
            value = number(text)
            if letter in values and index.isdecimal() and value is not None:
                if int(index) in values[letter]:
                    raise SpecificationError(f"the counterexample gives {name} twice")
                values[letter][int(index)] = value
                return
    raise SpecificationError(f"'{show(pair)}' in a counterexample is not of the form (X_0 0.5)")


def _dense(letter: str, values: dict[int, float]) -> Float64 | None:
    if not values:
        return None
    for index in range(len(values)):
        if index not in values:
            raise SpecificationError(f"the counterexample gives no {letter}_{index}")
    return np.array([values[index] for index in range(len(values))])
