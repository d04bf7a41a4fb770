"""In which arithmetic the lower sides of a distribution are proven."""

from __future__ import annotations

from dataclasses import replace

import pytest

from radii.errors import SpecificationError
from radii.problem import FLOAT, REAL, Arithmetic
from radii.statistics import (
    Distribution,
    arithmetics,
    over_targets,
    proof_scope,
    weakest_arithmetic,
)

WIDE = Arithmetic.parse("float:8")


def proven(*told: str, lower: float = 0.1) -> Distribution:
    """An input for each, with a proof above 0 unless `lower` is 0."""
    sides = [lower] * len(told), [0.2] * len(told)
    return Distribution.from_arrays(*sides, arithmetic=list(told))


def test_measurements_and_tables_keep_it() -> None:
    dist = proven("float", "", "real", "float:8")
    assert [m.arithmetic for m in dist] == [FLOAT, None, REAL, WIDE]
    assert Distribution(dist.measurements).column("arithmetic").tolist() == [
        *("float", "", "real", "float:8")
    ]
    again = Distribution.from_pandas(dist.to_pandas())
    assert [m.arithmetic for m in again] == [FLOAT, None, REAL, WIDE]
    assert len(dist.only(arithmetic=None)) == 1
    assert len(dist.only(arithmetic="real")) == 1


def test_a_misclassified_input_has_none() -> None:
    dist = Distribution.from_arrays([0.1, 0.0], [0.2, 0.0], arithmetic="float")
    assert dist.column("arithmetic").tolist() == ["float", ""]


def test_an_unknown_one_is_refused() -> None:
    with pytest.raises(SpecificationError, match="arithmetic 'octal' is not one of"):
        proven("octal")


@pytest.mark.parametrize(
    ("told", "counts", "weakest", "scope"),
    [
        (["float"] * 3, {FLOAT: 3}, FLOAT, "proofs hold for floating point"),
        (["real", ""], {REAL: 1}, REAL, "proofs hold in real arithmetic"),
        (
            ["float", "real", "float:8"],
            {REAL: 1, FLOAT: 1, WIDE: 1},
            REAL,
            "proofs hold in real arithmetic, 2 of 3 also for floating point, 1 of 3 also for "
            "floating point with 8 times its rounding errors",
        ),
        (["", ""], {}, None, ""),
    ],
)
def test_what_a_distribution_says(
    told: list[str], counts: dict[Arithmetic, int], weakest: Arithmetic | None, scope: str
) -> None:
    """What tells no arithmetic here has no proof."""
    dist = Distribution.from_arrays(
        [0.1 if text else 0.0 for text in told], [0.2] * len(told), arithmetic=told
    )
    assert list(arithmetics(dist).items()) == list(counts.items())
    assert weakest_arithmetic(dist) == weakest
    assert proof_scope(dist) == scope


def test_claims_that_tell_none_are_not_passed_over() -> None:
    dist = proven("float", "")
    assert weakest_arithmetic(dist) is None
    assert proof_scope(dist) == (
        "proofs hold for floating point; 1 more do not say in which arithmetic"
    )


def test_over_targets_the_weakest_counts() -> None:
    parts = [("float", "float:8"), ("float", "real"), ("float", "")]
    rows = [
        replace(m, input=place, label=0, predicted=0, target=1 + m.input, property="one-to-one")
        for place, texts in enumerate(parts)
        for m in proven(*texts)
    ]
    combined = over_targets(Distribution(rows), classes=3)
    assert combined.column("arithmetic").tolist() == ["float", "real", ""]
    assert combined.lower.tolist() == [0.1] * 3
