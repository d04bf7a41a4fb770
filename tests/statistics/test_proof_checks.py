"""What the proofs of a distribution rest on: a checker's word, or only the prover's."""

from __future__ import annotations

import pytest

from radii.errors import DataError
from radii.problem import ProofStatus
from radii.statistics import Distribution, over_targets, proof_checks, proof_statuses

CHECKED, UNCHECKED, BELIEVED, FAILED = "checked", "unchecked", "believed", "failed"
UNREADABLE = "unreadable"


def resting_on(*told: str) -> Distribution:
    """An input for each; the checked ones by one checker."""
    size = len(told)
    checkers = ["radii_check 1.0" if each in (CHECKED, FAILED) else "" for each in told]
    return Distribution.from_arrays(
        [0.1] * size, [0.2] * size, proof=list(told), checked_by=checkers
    )


def test_measurements_and_tables_keep_it() -> None:
    dist = resting_on(CHECKED, "", BELIEVED)
    assert [m.proof for m in dist] == [ProofStatus.CHECKED, None, ProofStatus.BELIEVED]
    assert [m.checked_by for m in dist] == ["radii_check 1.0", None, None]
    again = Distribution.from_pandas(dist.to_pandas())
    assert [m.proof for m in again] == [m.proof for m in dist]
    misclassified = Distribution.from_arrays([0.1, 0.0], [0.2, 0.0], proof=CHECKED)
    assert misclassified.column("proof").tolist() == [CHECKED, ""]


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(DataError, match="proof 'sworn' is not one of failed, believed"):
        resting_on("sworn")


@pytest.mark.parametrize(
    ("told", "clause"),
    [
        ([], ""),
        ([UNCHECKED] * 3, ""),
        ([BELIEVED] * 3, "none of the 3 proofs has a certificate: their provers are believed"),
        ([BELIEVED], "the only proof has no certificate: its prover is believed"),
        (
            [UNCHECKED, BELIEVED],
            "1 of 2 proofs have no certificate: their provers are believed",
        ),
        ([CHECKED] * 3, "all 3 proofs checked by radii_check 1.0"),
        (
            [CHECKED, "", BELIEVED, UNCHECKED, CHECKED],
            "2 of 4 proofs checked by radii_check 1.0, 1 certified and not checked yet, 1 believed",
        ),
        (
            [UNREADABLE, CHECKED, BELIEVED],
            "1 of 3 proofs checked by radii_check 1.0, 1 with a certificate that the checker "
            "cannot read, 1 believed",
        ),
        ([FAILED], "the only proof REFUSED by the checker"),
        ([CHECKED, FAILED], "1 of 2 proofs checked by radii_check 1.0, 1 REFUSED by the checker"),
    ],
)
def test_a_clause_says_who_has_checked(told: list[str], clause: str) -> None:
    dist = resting_on(*(told or [""]))
    assert proof_checks(dist) == clause


def test_counts_begin_with_the_most_trusted() -> None:
    dist = resting_on(FAILED, BELIEVED, CHECKED, UNCHECKED, CHECKED)
    assert list(proof_statuses(dist).items()) == [
        (ProofStatus.CHECKED, 2),
        (ProofStatus.UNCHECKED, 1),
        (ProofStatus.BELIEVED, 1),
        (ProofStatus.FAILED, 1),
    ]


def test_over_targets_the_weakest_counts() -> None:
    """The radius to any class rests on the proofs of all targets."""
    told = [CHECKED, CHECKED, CHECKED, BELIEVED, FAILED, BELIEVED]
    dist = Distribution.from_arrays(
        [0.1] * 6,
        [0.2] * 6,
        input=[0, 0, 1, 1, 2, 2],
        label=[0] * 6,
        target=[1, 2] * 3,
        property="one-to-one",
        proof=told,
        checked_by=["a 1" if each == CHECKED else "" for each in told],
        certificate=["f" * 64] * 6,
    )
    joined = over_targets(dist, classes=3)
    assert joined.column("proof").tolist() == [CHECKED, BELIEVED, FAILED]
    assert joined.column("checked_by").tolist() == ["a 1", "", ""]
    assert joined.column("certificate").tolist() == ["", "", ""]
