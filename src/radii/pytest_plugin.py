"""The pytest plugin: the fixture `assert_robust`, and what it found in the summary.

pytest loads this file at every start, so nothing of radii is imported here: only when used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from radii.assertions import Check

PROPERTY = "radii"
"""Under this name a test's report (and `--junitxml`) holds what its checks found."""


@pytest.fixture
def assert_robust(request: pytest.FixtureRequest) -> Callable[..., Check]:
    """`radii.testing.assert_robust`, whose findings are also in the summary and in `--junitxml`."""
    # Not through the fixture record_property: with --junitxml that one warns.
    found_here: list[tuple[str, object]] = request.node.user_properties

    def check(model: Any, data: Any, **options: Any) -> Check:
        __tracebackhide__ = True
        from radii import assertions

        try:
            found = assertions.assert_robust(model, data, **options)
        except assertions.RobustnessFailure as failure:
            found_here.append((PROPERTY, failure.check.statement))
            raise
        found_here.append((PROPERTY, found.statement))
        return found

    return check


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each check; with workers of xdist, too, whose reports carry the properties."""
    lines = [
        f"{report.nodeid}: {value}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if lines:
        from radii.terminal import plain

        terminalreporter.section("robustness")
        for line in sorted(lines):
            terminalreporter.line(plain(line))
