from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radii.problem import FLOAT, REAL, Arithmetic, Bracket, Proof, Result, Verdict, Witness, weigh


def robust(eps: float, verifier: str = "sound", arithmetic: Arithmetic = REAL) -> Result:
    return Result(Verdict.ROBUST, eps, verifier, "1", 0.0, proof=Proof(eps, 0.0, arithmetic))


def broken(eps: float, distance: float) -> Result:
    witness = Witness(np.zeros(2), distance, 1, np.zeros(3), "test")
    return Result(Verdict.NOT_ROBUST, eps, "sound", "1", 0.0, witness=witness)


def missing(verdict: Verdict, eps: float) -> Result:
    return Result(verdict, eps, "sound", "1", 0.0)


def test_bracket_refuses_nonsense() -> None:
    for lower, upper in ((-1.0, 2.0), (0.3, 0.2), (math.nan, 1.0), (0.0, math.nan)):
        with pytest.raises(ValueError, match="lower <= upper"):
            Bracket(lower, upper)


def test_the_witness_distance_counts_not_the_eps_asked() -> None:
    bracket, disagreements, _ = weigh([robust(0.1), broken(0.5, 0.31)])
    assert bracket == Bracket(0.1, 0.31)
    assert not disagreements


@given(
    st.lists(
        st.tuples(
            st.sampled_from([v for v in Verdict if v.is_missing]), st.floats(0, 1, allow_nan=False)
        )
    )
)
def test_missing_answers_move_nothing(answers: list[tuple[Verdict, float]]) -> None:
    told = [missing(verdict, eps) for verdict, eps in answers]
    assert weigh(told) == (Bracket(), (), None)
    assert weigh([robust(0.2), *told, broken(0.4, 0.3)])[0] == Bracket(0.2, 0.3)


def test_a_contradicted_tool_is_distrusted_on_the_instance() -> None:
    told = [robust(0.1, "liar"), robust(0.05, "honest"), robust(0.4, "liar"), broken(0.5, 0.3)]
    bracket, disagreements, _ = weigh(told)
    assert bracket == Bracket(0.05, 0.3)
    assert [d.claim.eps for d in disagreements] == [0.4]
    assert "liar 1 claims a proof at eps 0.4" in str(disagreements[0])


@pytest.mark.parametrize(
    ("proofs", "lower", "arithmetic"),
    [
        ([(0.1, "real"), (0.2, "float")], 0.2, "float"),
        ([(0.1, "float"), (0.2, "real")], 0.2, "real"),
        ([(0.2, "float"), (0.2, "real")], 0.2, "float"),
        ([(0.2, "float:8"), (0.2, "float"), (0.2, "real")], 0.2, "float:8"),
        ([(0.0, "float")], 0.0, "float"),
    ],
)
def test_the_lower_side_is_proven_in_the_strongest_arithmetic(
    proofs: list[tuple[float, str]], lower: float, arithmetic: str
) -> None:
    for order in (proofs, proofs[::-1]):
        told = [robust(eps, arithmetic=Arithmetic.parse(text)) for eps, text in order]
        found = weigh([*told, broken(0.5, 0.3)])
        assert (found.bracket.lower, str(found.arithmetic)) == (lower, arithmetic)


def test_a_claim_that_is_not_used_gives_no_arithmetic() -> None:
    liar, honest = robust(0.4, "liar", FLOAT), robust(0.1, "honest")
    assert weigh([liar, broken(0.5, 0.3)]).arithmetic is None
    assert weigh([liar, honest, broken(0.5, 0.3)]).arithmetic == REAL


@pytest.mark.parametrize(
    ("arithmetic", "scope"),
    [
        ("real", "in real arithmetic"),
        ("float", "for floating point"),
        ("float:8", "for floating point with 8 times its rounding errors"),
    ],
)
def test_a_disagreement_says_in_which_arithmetic_it_was_claimed(
    arithmetic: str, scope: str
) -> None:
    claim = robust(0.4, "liar", Arithmetic.parse(arithmetic))
    (told,) = weigh([claim, broken(0.5, 0.3)]).disagreements
    assert f"claims a proof at eps 0.4 {scope}, but a replayed witness" in str(told)


def test_a_proof_at_the_witness_distance_is_contradicted() -> None:
    assert weigh([robust(0.3), broken(0.3, 0.3)])[0] == Bracket(0.0, 0.3)


def test_a_result_needs_its_evidence() -> None:
    with pytest.raises(ValueError, match="needs a proof"):
        missing(Verdict.ROBUST, 0.1)
    with pytest.raises(ValueError, match="needs a witness"):
        missing(Verdict.NOT_ROBUST, 0.1)
    with pytest.raises(ValueError, match="needs a witness within"):
        broken(0.1, 0.2)
