"""Result files of VNN-COMP: written exactly, read with tolerance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radii.errors import SpecificationError
from radii.vnnlib import Outcome, Verification, parse_verification

floats = st.lists(
    st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=9
)


def test_the_format() -> None:
    found = Verification(Outcome.SAT, np.array([0.25, -1e-9]), np.array([3.0]))
    assert str(found) == "sat\n((X_0 0.25)\n(X_1 -1e-09)\n(Y_0 3.0))"
    assert str(Verification(Outcome.UNSAT)) == "unsat"


@given(floats, st.one_of(st.none(), floats))
def test_round_trip(inputs: list[float], outputs: list[float] | None) -> None:
    y = None if outputs is None else np.array(outputs)
    read = parse_verification(str(Verification(Outcome.SAT, np.array(inputs), y)))
    assert read.outcome is Outcome.SAT
    assert read.inputs is not None
    assert read.inputs.tolist() == inputs
    assert (None if read.outputs is None else read.outputs.tolist()) == outputs


@pytest.mark.parametrize(
    "text",
    [
        "sat\n((X_0 1e-3)\n(X_1 2))",
        "sat ((X_0 0.001) (X_1 2.0))\n",
        "violated\n(X_0 .001)\n(X_1\n  2)\n",
        "SAT\n\n((X_1 +2.0E0)\n(X_0 1.0e-03))",
    ],
)
def test_tolerance(text: str) -> None:
    read = parse_verification(text)
    assert read.inputs is not None
    assert read.inputs.tolist() == [0.001, 2.0]
    assert read.outputs is None


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("unsat\n", Outcome.UNSAT),
        ("holds", Outcome.UNSAT),
        ("unsat\n()\n", Outcome.UNSAT),
        ("timeout", Outcome.TIMEOUT),
        ("timed-out", Outcome.TIMEOUT),
        ("unknown", Outcome.UNKNOWN),
        ("error", Outcome.ERROR),
        ("sat", Outcome.SAT),
    ],
)
def test_other_outcomes(text: str, outcome: Outcome) -> None:
    read = parse_verification(text)
    assert read.outcome is outcome
    assert read.inputs is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "'' is not one of sat, unsat"),
        ("maybe", "'maybe' is not one of"),
        ("unsat (core dumped)", "'unsat' is followed by 'core dumped"),
        ("holds\n((X_0 1))", "'holds' is followed by"),
        ("unsat\nTraceback", "is not one of"),
        ("sat\n((X_0 nan))", r"'\(X_0 nan\)' in a counterexample"),
        ("sat\n((Z_0 1))", "Z_0"),
        ("sat\n((X_0 1) (X_0 2))", "gives X_0 twice"),
        ("sat\n((X_1 1))", "gives no X_0"),
        ("sat\n((X_0 1)", "never closed"),
    ],
)
def test_malformed_results(text: str, sentence: str) -> None:
    with pytest.raises(SpecificationError, match=sentence):
        parse_verification(text)
