"""What an executor is: it runs tasks somewhere, and always gives an answer for each.

The simplest one, `Inline`, runs them here.
"""

from __future__ import annotations

import pickle
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from radii.problem import Grid, Limits, Query, Result, Verdict
from radii.processes import Ending, family_seconds, is_out_of_memory
from radii.strategy import ProbeProof, QuestionKind, Task, joined_result, probe_proofs

if TYPE_CHECKING:
    from radii.attacks import Attack
    from radii.networks import Network
    from radii.verifiers import Verifier


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, eq=False)
class Toolbox:
    """All that answering tasks needs: networks by fingerprint, an attack, a verifier, the grid.

    `memory_bytes` limits each process that works with it.
    """

    networks: dict[str, Network]
    attack: Attack | None
    verifier: Verifier | None
    seed: int = 0
    grid: Grid | None = None
    memory_bytes: int | None = None

    def answer(
        self,
        task: Task,
        cancelled: Callable[[], bool] = _never,
        on_progress: Callable[[list[Result]], None] = lambda _: None,
    ) -> list[Result]:
        """The results of a task, in the order of its queries; `cancelled` is asked meanwhile.

        `on_progress` gets what a proof has reached so far, from verifiers that report it.
        """
        if task.kind is QuestionKind.ATTACK:
            return self._attacked(task, self.attack)
        if task.kind is QuestionKind.PROBE:
            return self._probed(task, cancelled, on_progress)
        return self._proven(task, cancelled, on_progress)

    def _attacked(self, task: Task, attack: Attack | None) -> list[Result]:
        if attack is None:
            raise ValueError("an attack was asked for, but none was chosen")
        before = family_seconds()
        attack = attack.within(task.attack_seconds * len(task.queries))
        attacked = attack.attack(self.networks[task.network], task.queries, seed=self.seed)
        share = (family_seconds() - before) / max(1, len(attacked))
        return [replace(result, cpu_seconds=share) for result in attacked]

    def _probed(
        self,
        task: Task,
        cancelled: Callable[[], bool],
        on_progress: Callable[[list[Result]], None],
    ) -> list[Result]:
        """A quick attack on all, then for each the short proofs that `probe_proofs` names."""
        results = self._attacked(task, self.attack and self.attack.quick())
        on_progress(results)
        for place, query in enumerate(task.queries):
            for proof in probe_proofs(task, query, self.grid or (), results[place]):
                proven = None if cancelled() else self._tried(query, proof, cancelled)
                if proven is not None:
                    results[place] = joined_result(results[place], proven)
                    on_progress(results)
        return results

    def _tried(
        self, query: Query, proof: ProbeProof, cancelled: Callable[[], bool]
    ) -> Result | None:
        """A short proof; None where the verifier has none, or fails: what fails here fails in the
        long proof too, which says so."""
        from radii.verifiers import GridVerifier

        if not isinstance(self.verifier, GridVerifier):
            return None
        before, instance = family_seconds(), query.instance
        limits = Limits(proof.seconds, self.memory_bytes, cancelled, cpu_seconds=proof.cpu_seconds)
        network = self.networks[instance.network]
        try:
            if proof.is_glance:
                result = self.verifier.certify_least(network, instance, proof.eps, limits)
            else:
                result = self.verifier.certify(network, instance, [proof.eps], limits)
        except Exception:
            return None
        return replace(result, cpu_seconds=family_seconds() - before)

    def _proven(
        self,
        task: Task,
        cancelled: Callable[[], bool],
        on_progress: Callable[[list[Result]], None],
    ) -> list[Result]:
        if self.verifier is None:
            raise ValueError("a proof was asked for, but no verifier was chosen")
        results: list[Result] = []

        def report(partial: Result) -> None:
            on_progress([*results, partial])

        for query in task.queries:
            before = family_seconds()
            limits = Limits(
                task.seconds, self.memory_bytes, cancelled, cpu_seconds=task.cpu_seconds
            )
            if task.kind is QuestionKind.RADIUS:
                result = self._certified(query, limits, report)
            else:
                result = self.verifier.verify(self.networks[task.network], query, limits)
            results.append(replace(result, cpu_seconds=family_seconds() - before))
        return results

    def _certified(
        self, query: Query, limits: Limits, on_progress: Callable[[Result], None]
    ) -> Result:
        """The largest value of the grid that could be proven, up to the query's eps."""
        from radii.verifiers import GridVerifier

        if not isinstance(self.verifier, GridVerifier) or self.grid is None:
            name = self.name_of(QuestionKind.RADIUS)[0]
            raise ValueError(f"verifier '{name}' does not search for a radius")
        values = [value for value in self.grid if 0 < value <= query.eps]
        network = self.networks[query.instance.network]
        return self.verifier.certify(network, query.instance, values, limits, on_progress)

    def name_of(self, kind: QuestionKind) -> tuple[str, str]:
        """Name and version of what answers questions of this kind."""
        tool = self.attack if kind.begins_with_attack else self.verifier
        return (tool.name, tool.version) if tool is not None else ("none", "")


@dataclass(frozen=True, slots=True, eq=False)
class SealedToolbox:
    """A toolbox as it travels to another process: sealed, so that who passes it on loads nothing.

    `names` are of the tools by the kind of question they answer.
    """

    sealed: bytes
    names: dict[QuestionKind, tuple[str, str]]
    memory_bytes: int | None

    @classmethod
    def pack(cls, toolbox: Toolbox) -> SealedToolbox:
        networks = tuple(toolbox.networks.values())
        tools = (toolbox.attack, toolbox.verifier, toolbox.seed, toolbox.grid)
        names = {kind: toolbox.name_of(kind) for kind in QuestionKind}
        return cls(pickle.dumps((networks, tools)), names, toolbox.memory_bytes)

    def unpack(self) -> Toolbox:
        networks, (attack, verifier, seed, grid) = pickle.loads(self.sealed)
        by_fingerprint = {network.fingerprint: network for network in networks}
        return Toolbox(by_fingerprint, attack, verifier, seed, grid, self.memory_bytes)

    def name_of(self, kind: QuestionKind) -> tuple[str, str]:
        """As a toolbox's."""
        return self.names[kind]


def missing_results(
    tools: Toolbox | SealedToolbox,
    task: Task,
    ending: Ending,
    seconds: float,
    message: str,
    cpu_seconds: float | None = None,
) -> list[Result]:
    """What a task that never answered leaves: missing answers, which move no bracket."""
    name, version = tools.name_of(task.kind)
    count = max(1, len(task.queries))
    cpu_share = None if cpu_seconds is None else cpu_seconds / count
    return [
        Result(
            Verdict.of(ending),
            query.eps,
            name,
            version,
            seconds / count,
            message=message,
            cpu_seconds=cpu_share,
            ending=ending,
        )
        for query in task.queries
    ]


class Executor(ABC):
    """Runs tasks. Used as a context manager; leaving it stops whatever still runs."""

    @property
    @abstractmethod
    def has_room(self) -> bool:
        """Another task could start at once."""

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Start a task. Called only while `has_room`."""

    @abstractmethod
    def cancel(self, task: Task) -> None:
        """Nobody needs the task's answer any more: `wait` gives one for it within a second.

        It is CANCELLED, or the best that a verifier had when it stopped. Does nothing to a task
        that is not running.
        """

    @abstractmethod
    def wait(self) -> tuple[Task, list[Result]] | None:
        """Block until one submitted task has ended, however it ended.

        None: there is more room than before, as when a machine joins.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Inline(Executor):
    """Runs tasks in this process, one after the other: for notebooks and tests.

    Limits hold only as far as the verifier cooperates.

    `cancelled` is asked whether to stop the task that runs, beside `cancel` from another thread;
    `on_progress` gets the results that it has before its end.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        cancelled: Callable[[], bool] = lambda: False,
        on_progress: Callable[[list[Result]], None] = lambda _: None,
    ) -> None:
        self._toolbox = toolbox
        self._on_progress = on_progress
        self._tasks: deque[Task] = deque()
        self._cancelled = cancelled
        self._cancelled_numbers: set[int] = set()

    @property
    def has_room(self) -> bool:
        return not self._tasks

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def cancel(self, task: Task) -> None:
        self._cancelled_numbers.add(task.number)

    def wait(self) -> tuple[Task, list[Result]]:
        task = self._tasks.popleft()
        started, cpu_started = time.perf_counter(), family_seconds()

        def is_cancelled() -> bool:
            return task.number in self._cancelled_numbers or self._cancelled()

        try:
            with _one_thread():
                return task, self._toolbox.answer(task, is_cancelled, self._on_progress)
        except Exception as error:
            ending, message = _missing(error)
        seconds, cpu = time.perf_counter() - started, family_seconds() - cpu_started
        return task, missing_results(self._toolbox, task, ending, seconds, message, cpu)

    def close(self) -> None:
        self._tasks.clear()


def _missing(error: Exception) -> tuple[Ending, str]:
    """What an exception leaves of an answer."""
    if is_out_of_memory(error):
        return Ending.MEMORY_LIMIT, "out of memory"
    return Ending.FAILED, f"{type(error).__name__}: {error}"


@contextmanager
def _one_thread() -> Iterator[None]:
    """torch on one thread: small networks lose more to handing work around than they gain."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
