"""What an executor is: it runs tasks somewhere, and always gives an answer for each.

The simplest one, `Inline`, runs them here.
"""

from __future__ import annotations

import math
import pickle
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from radii.problem import Grid, Query, Result, Verdict
from radii.processes import Ending, family_seconds, is_out_of_memory
from radii.strategy import QuestionKind

if TYPE_CHECKING:
    from radii.attacks import Attack
    from radii.networks import Network
    from radii.verifiers import Limits, Verifier


PROBING_FACTOR = 4.0
"""CPU seconds of proofs for each one of the quick attack before them: about what the thorough
attack would take, so that a probe that fails at most doubles what comes before the long proof."""

LEAST_PROOF_FACTOR = 9.0
"""Wall seconds for a glance at the least value, for each one of a probe's attack: nearly all of
a budget. One pass over a residual network takes up to two seconds; cut off, it proves nothing."""

LEAST_PROBING_SECONDS = 0.5
"""CPU seconds of proofs in a probe: nine of ten brackets of mnist-net_256x2 close in less."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Task:
    """Queries on one network that are answered together.

    A proof may take `seconds` of wall time and `cpu_seconds` of all its threads and processes; an
    attack ends by itself after `attack_seconds` of wall time a query, and so does a probe's proof.
    """

    number: int
    network: str
    kind: QuestionKind
    queries: tuple[Query, ...]
    seconds: float = float("inf")
    cpu_seconds: float = float("inf")
    attack_seconds: float = float("inf")


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

        `on_progress` is told what a proof has come to, as far as verifiers say so.
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
        """A quick attack on all, then for each a short try to prove what would close its bracket:
        the largest value below its witness. Smaller ones are left to the long proof."""
        results = self._attacked(task, self.attack and self.attack.quick())
        on_progress(results)
        for place, (query, attacked) in enumerate(zip(task.queries, results, strict=True)):
            seconds = max(LEAST_PROBING_SECONDS, PROBING_FACTOR * (attacked.cpu_seconds or 0.0))
            nearest = math.inf if attacked.witness is None else attacked.witness.distance
            below = [value for value in self.grid or () if 0 < value <= query.eps]
            below = [value for value in below if value < nearest]
            if not below or cancelled():
                continue
            attacked = results[place] = self._glanced(task, query, below[0], attacked, cancelled)
            on_progress(results)
            one = replace(
                task,
                kind=QuestionKind.RADIUS,
                queries=(query,),
                seconds=min(task.seconds, max(LEAST_PROBING_SECONDS, task.attack_seconds)),
                cpu_seconds=min(task.cpu_seconds, seconds),
            )
            try:
                (proven,) = self._proven(one, cancelled, values=below[-1:])
            except Exception:  # what fails here fails in the long proof too, which says so
                continue
            results[place] = _joined(attacked, proven)
            on_progress(results)
        return results

    def _glanced(
        self,
        task: Task,
        query: Query,
        least: float,
        attacked: Result,
        cancelled: Callable[[], bool],
    ) -> Result:
        """What an attack found, and a quick proof at the least value, if the verifier has one: what
        follows may use up the time."""
        from radii.verifiers import GridVerifier, Limits

        if not isinstance(self.verifier, GridVerifier):
            return attacked
        before, seconds = family_seconds(), LEAST_PROOF_FACTOR * task.attack_seconds
        limits = Limits(min(task.seconds, seconds), self.memory_bytes, cancelled)
        try:
            proven = self.verifier.certify_least(
                self.networks[query.instance.network], query.instance, least, limits
            )
        except Exception:  # as for the proof that would close the bracket
            return attacked
        return _joined(attacked, replace(proven, cpu_seconds=family_seconds() - before))

    def _proven(
        self,
        task: Task,
        cancelled: Callable[[], bool],
        on_progress: Callable[[list[Result]], None] = lambda _: None,
        values: Sequence[float] | None = None,
    ) -> list[Result]:
        """`values` are those of a search for the radius; None: all of the grid, up to its eps."""
        network = self.networks[task.network]
        if self.verifier is None:
            raise ValueError("a proof was asked for, but no verifier was chosen")
        from radii.verifiers import Limits

        results: list[Result] = []

        def report(partial: Result) -> None:
            on_progress([*results, partial])

        for query in task.queries:
            before = family_seconds()
            limits = Limits(
                task.seconds, self.memory_bytes, cancelled, cpu_seconds=task.cpu_seconds
            )
            if task.kind is QuestionKind.RADIUS:
                tried = [v for v in self.grid or () if 0 < v <= query.eps]
                result = self._certified(query, values or tried, limits, report)
            else:
                result = self.verifier.verify(network, query, limits)
            results.append(replace(result, cpu_seconds=family_seconds() - before))
        return results

    def _certified(
        self,
        query: Query,
        values: Sequence[float],
        limits: Limits,
        on_progress: Callable[[Result], None],
    ) -> Result:
        from radii.verifiers import GridVerifier

        if not isinstance(self.verifier, GridVerifier) or self.grid is None:
            name = self.name_of(QuestionKind.RADIUS)[0]
            raise ValueError(f"verifier '{name}' does not search for a radius")
        network = self.networks[query.instance.network]
        return self.verifier.certify(network, query.instance, values, limits, on_progress)

    def name_of(self, kind: QuestionKind) -> tuple[str, str]:
        """Name and version of what answers questions of this kind."""
        tool = self.attack if kind.begins_with_attack else self.verifier
        return (tool.name, tool.version) if tool is not None else ("none", "")


def _joined(attacked: Result, proven: Result) -> Result:
    """What an attack and the proofs after it came to. That those ended early is no missing answer:
    a probe's time is short, and nobody was promised more."""
    witnesses = [w for w in (attacked.witness, proven.witness) if w is not None]
    closest = min(witnesses, key=lambda witness: witness.distance, default=None)
    cpu_seconds = (attacked.cpu_seconds or 0.0) + (proven.cpu_seconds or 0.0)
    seconds = attacked.seconds + proven.seconds
    found = proven if proven.proof is not None else attacked
    if found.proof is None and attacked.witness is None and closest is not None:
        found = replace(attacked, verdict=Verdict.NOT_ROBUST, witness=closest)
    return replace(
        found,
        witness=closest,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        message="",
        ending=found.verdict.ending,
    )


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
    `on_progress` is told what its results are before it has ended.
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
