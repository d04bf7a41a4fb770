"""No statement with 95 % confidence is false in more than 5 % of samples."""

from __future__ import annotations

import pytest
from false_statements import STATEMENTS, FalseStatement, false_rate
from scipy.stats import binom


def check(asked: FalseStatement, samples: int) -> None:
    """So many are no surprise (1 in 100,000) if each is false with probability at most 5 %."""
    false = false_rate(asked, samples)
    assert binom.sf(false - 1, samples, 0.05) > 1e-5, f"{false} of {samples} are false"


@pytest.mark.parametrize("group", sorted({asked.group for asked in STATEMENTS}))
def test_few_samples(group: str) -> None:
    for asked in STATEMENTS:
        if asked.group == group:
            check(asked, 20 if group in ("compare", "sequence") else 40)


@pytest.mark.slow
@pytest.mark.parametrize("asked", STATEMENTS, ids=lambda asked: asked.about)
def test_many_samples(asked: FalseStatement) -> None:
    check(asked, 3000)
