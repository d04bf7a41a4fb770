"""The driver: tasks from a schedule to an executor, and their answers back.

Which task is next is decided by `radii.strategy` alone. Here is what that must not know: the clock,
the processes, the pause flag, and that a run ends whose tools do nothing but fail.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from radii.errors import BrokenTool
from radii.problem import Result
from radii.processes import Ending
from radii.runs.executors._base import Executor
from radii.strategy import Case, CaseAnswers, Question, Schedule

PAUSE_SECONDS = 0.2
"""How often a run that is paused looks whether it may go on."""

FAILED_INPUTS, FAILED_QUESTIONS = 3, 10
"""Inputs that failed, or questions about fewer, until the tool is taken to be broken: one or two
inputs may be those that it cannot read, and a search may ask many questions about each."""


def drive(
    schedule: Schedule,
    executor: Executor,
    *,
    on_results: Callable[[CaseAnswers], None],
    on_finished: Callable[[Case], None],
    clock: Callable[[], float] = time.monotonic,
    is_paused: Callable[[], bool] = lambda: False,
    on_held: Callable[[bool], None] = lambda _: None,
) -> None:
    """Run every search to its end, or to its budget, or as far as the agenda wants.

    `on_results` gets the results that ended together, before the searches learn of them. While
    `is_paused`, nothing new is asked; `on_held` is called when nothing runs any more, and when
    the run goes on.
    """
    while True:
        while executor.has_room:
            task = schedule.ask(clock(), is_paused=is_paused())
            for case in schedule.take_finished():
                on_finished(case)
            if task is None:
                break
            executor.submit(task)
        if schedule.is_running:
            ended = executor.wait()
            if ended is not None:
                answers = schedule.received(*ended, clock())
                on_results(answers)
                for needless in schedule.tell(answers):
                    executor.cancel(needless)
        elif schedule.is_waiting:
            _wait(schedule, clock, is_paused, on_held)
        else:
            return


def _wait(
    schedule: Schedule,
    clock: Callable[[], float],
    is_paused: Callable[[], bool],
    on_held: Callable[[bool], None],
) -> None:
    """Until the run may go on."""
    schedule.agenda.held(True, clock())
    on_held(True)
    while is_paused():
        time.sleep(PAUSE_SECONDS)
    schedule.agenda.held(False, clock())
    on_held(False)


class FirstFailures:
    """Notices early that a verifier or an attack fails whatever it is asked.

    A tool whose path is wrong fails in an instant on every input, and a run that is full of such
    failures looks like one that proved little. So a run ends where its first questions all fail in
    the same way. Once a tool has given any answer, a time-out included, single failures are missing
    answers like others. A worker that somebody else killed says nothing about the tool.

    `authors` are the names and versions under which it answers. What `cases` know of it from
    earlier runs counts: a tool that has worked is not suspected again.
    """

    def __init__(
        self,
        title: str,
        authors: Iterable[tuple[str, str]],
        cases: Sequence[Case],
        *,
        is_attack: bool,
    ) -> None:
        self.title, self.is_attack = title, is_attack
        known, own = (result for case in cases for result in case.search.results), set(authors)
        self.has_worked = any(
            (result.verifier, result.version) in own and _is_answer(result) for result in known
        )
        self.failed: dict[tuple[str, Question], Result] = {}

    def note(self, answers: CaseAnswers) -> None:
        """Before the searches learn of them. A BrokenTool if there is no use in going on."""
        is_settled = False
        for case, question, result in answers:
            if question.kind.begins_with_attack is not self.is_attack:
                continue
            self.has_worked |= _is_answer(result)
            if result.ending is Ending.FAILED:
                self.failed[case.instance.key, question] = result
                is_settled |= not case.search.is_first_loss(question, result)
        are_enough = self._inputs >= FAILED_INPUTS or len(self.failed) >= FAILED_QUESTIONS
        if is_settled and are_enough and self._is_alike:
            self.check()

    def check(self) -> None:
        """A BrokenTool if it has failed, and done nothing else."""
        if self.has_worked or not self.failed:
            return
        count, words = self._inputs, list(self.failed.values())[-1].message
        inputs = "input" if count == 1 else f"{count} inputs"
        alike = " in the same way" if len(self.failed) > 1 and self._is_alike else ""
        raise BrokenTool(
            f"{self.title} failed on the first {inputs}{alike}: {words or 'it gave no reason'}"
        )

    @property
    def _inputs(self) -> int:
        return len({key for key, _ in self.failed})

    @property
    def _is_alike(self) -> bool:
        return len({result.message_kind for result in self.failed.values()}) == 1


def _is_answer(result: Result) -> bool:
    return result.ending not in (Ending.FAILED, Ending.LOST, Ending.CANCELLED)
