"""The pytest plugin: the fixture `assert_robust`, and its findings in the summary.

pytest loads this file at every start, so nothing of radii is imported here: only when used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from radii.testing._assertions import Check


PROPERTY = "radii"
"""Under this name a test's report (and `--junitxml`) has the findings of its checks."""

MISS = "radii-miss"
"""How often the statement of a check about all inputs may be false."""


@pytest.fixture
def assert_robust(request: pytest.FixtureRequest) -> Callable[..., Check]:
    """`radii.testing.assert_robust`, whose findings are also in the summary and in `--junitxml`."""
    # Not through the fixture record_property: with --junitxml that one warns.
    found_here: list[tuple[str, object]] = request.node.user_properties

    def asserted(model: Any, data: Any, **options: Any) -> Check:
        __tracebackhide__ = True
        from radii.testing import _assertions as assertions

        try:
            check = assertions.assert_robust(model, data, **options)
        except assertions.RobustnessFailure as failure:
            tell(failure.check)
            raise
        tell(check)
        return check

    def tell(check: Check) -> None:
        found_here.append((PROPERTY, check.statement))
        if check.miss:
            found_here.append((MISS, check.miss))

    return asserted


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each check; with workers of xdist, too, whose reports carry the properties."""
    properties = [
        (report.nodeid, name, value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
    ]
    lines = [f"{test}: {value}" for test, name, value in properties if name == PROPERTY]
    if lines:
        from radii.terminal import plain

        terminalreporter.section("robustness")
        for line in sorted(lines):
            terminalreporter.line(plain(line))
        misses = [float(value) for _, name, value in properties if name == MISS]
        if len(misses) > 1:
            terminalreporter.line(plain(_together(misses)))


def _together(misses: list[float]) -> str:
    """Each confidence is of one check, unless `among` said how many there are."""
    least = max(0.0, 1 - sum(misses))
    sure = f"at least {100 * least:.4g} %" if least else "any"
    return (
        f"{len(misses)} checks have a confidence: that all of them are right together has {sure} "
        f"confidence (among={len(misses)} shares the error of one among them)."
    )
