"""Every executor of this machine passes the suite that plugins run; Ray's is in test_cluster."""

from __future__ import annotations

import pytest

from radii.runs import Executor, Inline, LocalWorkers, Toolbox
from radii.testing import ExecutorConformance


class TestInline(ExecutorConformance):
    is_hard = False

    def make(self, toolbox: Toolbox) -> Executor:
        return Inline(toolbox)


class TestLocalWorkers(ExecutorConformance):
    def make(self, toolbox: Toolbox) -> Executor:
        return LocalWorkers(toolbox, jobs=1)


@pytest.mark.slow
class TestTwoLocalWorkers(ExecutorConformance):
    def make(self, toolbox: Toolbox) -> Executor:
        return LocalWorkers(toolbox, jobs=2)
