"""Tasks on the nodes of a Ray cluster.

Each node has as many seats as its resources allow; a seat is an actor with a worker process beside
it, which keeps the limits as it does locally and takes nobody with it when it dies. The nodes are
looked at again while tasks run: seats of nodes that die are given up and what they worked on starts
again elsewhere, nodes that join get seats. When the driver dies, Ray ends its actors, and the
kernel their worker processes.

This module loads neither torch nor Ray: an actor is cheap to start.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from radii import __version__
from radii.errors import ExperimentError
from radii.problem import Result
from radii.processes import START_SECONDS, WORK_GRACE_SECONDS, Ending, speaks_of_memory
from radii.runs.executors._base import Executor, SealedToolbox, Toolbox, missing_results
from radii.runs.executors._cluster import (
    Cluster,
    ClusterNode,
    alive_nodes,
    connect,
    head_answers,
    load_ray,
)
from radii.runs.executors._local import LocalWorkers
from radii.strategy import Task

CANCEL_SECONDS = 1.6
"""After a cancellation, until a seat that has not answered is given up and killed: a worker process
that does not stop by itself is killed sooner, so this means a node that cannot be reached."""
SLACK_SECONDS = 20.0
"""What starting and speaking across a network may add to a task's time, and to that of a kill."""
STARVED_SECONDS = 300.0
"""How long tasks wait while no seat is ready, before the run ends; slow disks included."""
HEAD_SECONDS = 20.0
"""How long the cluster's head may be out of reach."""
LOOK_SECONDS = 1.0
"""Between two looks at the nodes."""
TICK_SECONDS = 0.1
"""Between two looks at deadlines."""

TASK_LOSSES = 5
"""How often a task may be lost with its seat until it is taken to be the cause."""
KEPT_MESSAGE = "what was found is kept"
SEAT_FAILURES = 3
"""Seats in a row that cannot start or work, until their node is left alone."""


class RayWorkers(Executor):
    """As many tasks side by side as the cluster has room for, at most `jobs` if it is given."""

    def __init__(self, toolbox: Toolbox, cluster: Cluster, jobs: int | None = None) -> None:
        self._is_connected_here = connect(cluster.address)
        self._ray = load_ray()
        self._tools = SealedToolbox.pack(toolbox)
        self._needs = cluster.needs(toolbox.memory_bytes)
        self._shipped = self._ray.put(self._tools)  # travels to each node once
        self._limit = jobs
        self._seats: list[_RemoteSeat] = []
        self._queue: deque[_SeatedTask] = deque()
        self._ended: deque[tuple[Task, list[Result]]] = deque()
        self._failures: Counter[str] = Counter()
        self._failure = ""
        self._turns = itertools.count()
        self._looked_at = -LOOK_SECONDS
        self._starved_since = time.monotonic()
        self._changing = threading.RLock()  # `cancel` may come from another thread
        try:
            self._look_at_nodes()
            if not self._seats:
                raise ExperimentError(f"--ray {cluster.address}: {self._no_node_fits()}")
        except BaseException:
            self.close()
            raise

    @property
    def has_room(self) -> bool:
        """A seat is free or about to be; without any, one task waits for a node that joins."""
        busy = sum(seat.job is not None for seat in self._seats)
        return busy + len(self._queue) < max(1, len(self._seats))

    def submit(self, task: Task) -> None:
        with self._changing:
            self._queue.append(_SeatedTask(task))
            self._hand_out()

    def cancel(self, task: Task) -> None:
        with self._changing:
            for job in [job for job in self._queue if job.task.number == task.number]:
                self._queue.remove(job)
                self._give_up(job, Ending.CANCELLED, "cancelled before it began")
            for seat in self._seats:
                if seat.job is not None and seat.job.task.number == task.number:
                    seat.cancel(seat.job)

    def wait(self) -> tuple[Task, list[Result]] | None:
        while True:
            with self._changing:
                has_grown = self._look_at_nodes()
                self._hand_out()
                if self._ended:
                    return self._ended.popleft()
                if has_grown and self.has_room:
                    return None
                speaking = {
                    seat.reference: seat for seat in self._seats if seat.reference is not None
                }
            ready = self._listen(list(speaking))
            with self._changing:
                for reference in ready:
                    self._collect(speaking[reference])
                self._check_deadlines()

    def close(self) -> None:
        for seat in self._seats:
            self._kill(seat)
        self._seats.clear()
        self._queue.clear()
        self._ended.clear()
        if self._is_connected_here:
            self._ray.shutdown()

    def _listen(self, references: list[Any]) -> list[Any]:
        """Wait a little for the first to be there; then all that are."""
        if not references:
            time.sleep(TICK_SECONDS)
            return []
        self._ray.wait(references, num_returns=1, timeout=TICK_SECONDS)
        ready, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
        return list(ready)

    # --- seats

    def _look_at_nodes(self) -> bool:
        """No seats on nodes that are gone, new ones on nodes that joined: were there any?"""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return False
        self._check_head()
        nodes = [node for node in alive_nodes() if node.seats(self._needs) > 0]
        alive = {node.id for node in nodes}
        for seat in [seat for seat in self._seats if seat.node.id not in alive]:
            self._lose(seat)
        usable = [node for node in nodes if self._failures[node.id] < SEAT_FAILURES]
        if nodes and not usable:
            raise ExperimentError(f"no node of the cluster can work: {self._failure}")
        before, taken = len(self._seats), Counter(seat.node.id for seat in self._seats)
        for node in usable:
            for _ in range(node.seats(self._needs) - taken[node.id]):
                if self._limit is None or len(self._seats) < self._limit:
                    self._seats.append(self._new_seat(node))
        self._looked_at = time.monotonic()
        return len(self._seats) > before

    def _check_head(self) -> None:
        """Ray's own calls hang without a head, and after a minute end the process."""
        end = time.monotonic() + HEAD_SECONDS
        while not head_answers():
            if time.monotonic() > end:
                raise ExperimentError(
                    f"the head of the cluster is gone; {KEPT_MESSAGE}, "
                    "start a cluster and run again"
                )
            time.sleep(TICK_SECONDS)

    def _new_seat(self, node: ClusterNode) -> _RemoteSeat:
        on_node = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        actor = (
            self._ray.remote(Seat)
            .options(
                num_cpus=self._needs["CPU"],
                num_gpus=self._needs.get("GPU", 0),
                memory=self._needs.get("memory"),
                max_concurrency=2,  # so that `cancel` is heard while `answer` runs
                scheduling_strategy=on_node(node.id, soft=False),
            )
            .remote(self._shipped)
        )
        return _RemoteSeat(node, actor, actor.version.remote())

    def _hand_out(self) -> None:
        """Queued tasks to free seats, the earliest first."""
        for seat in self._seats:
            if seat.is_free and self._queue:
                seat.give(self._queue.popleft(), next(self._turns))

    def _collect(self, seat: _RemoteSeat) -> None:
        """What a seat said: its version, as it is ready, or the results of its task."""
        if seat not in self._seats:
            return
        try:
            answer = self._ray.get(seat.reference)
        except self._ray.exceptions.RayTaskError as error:
            self._blame(seat.node, str(error.cause or error))
            self._lose(seat, str(error.cause or error))
            return
        except self._ray.exceptions.RayError as error:
            if not seat.is_ready:
                self._blame(seat.node, str(error))
            self._lose(seat, str(error))
            return
        seat.reference = None
        if seat.job is not None:
            self._ended.append((seat.job.task, answer))
            seat.job, seat.ends_at = None, math.inf
            self._failures[seat.node.id] = 0
        elif answer == __version__:
            seat.is_ready = True
        else:
            reason = f"it has radii {answer}, and this is {__version__}"
            self._blame(seat.node, reason, times=SEAT_FAILURES)  # another start would not help
            self._lose(seat)

    def _blame(self, node: ClusterNode, reason: str, times: int = 1) -> None:
        if self._failures[node.id] < SEAT_FAILURES:  # later failures follow from giving it up
            self._failure = f"{node.host}: {_cause(reason)}"
        self._failures[node.id] += times

    def _lose(self, seat: _RemoteSeat, reason: str = "its node is gone") -> None:
        """A seat that is of no use any more; what it worked on goes back, ahead of the others."""
        self._seats.remove(seat)
        self._kill(seat)
        job = seat.job
        if job is None:
            return
        job.losses += 1
        if job.is_cancelled:
            self._give_up(job, Ending.CANCELLED, "it went on after it was cancelled")
        elif job.losses >= TASK_LOSSES:
            message = f"lost {job.losses} times with what it ran on, at last: {_cause(reason)}"
            ending = Ending.MEMORY_LIMIT if speaks_of_memory(reason) else Ending.LOST
            self._give_up(job, ending, message)
        else:
            job.began_at = None
            self._queue.appendleft(job)

    def _check_deadlines(self) -> None:
        now = time.monotonic()
        for seat in [seat for seat in self._seats if now >= seat.ends_at]:
            self._lose(seat, "it did not answer in time")
        if not self._queue or any(seat.is_ready for seat in self._seats):
            self._starved_since = now
        elif now - self._starved_since > STARVED_SECONDS:
            raise ExperimentError(
                f"no node of the cluster had room for {STARVED_SECONDS:g} s; "
                f"{KEPT_MESSAGE}, run again"
            )

    def _give_up(self, job: _SeatedTask, ending: Ending, message: str) -> None:
        seconds = 0.0 if job.began_at is None else time.monotonic() - job.began_at
        results = missing_results(self._tools, job.task, ending, seconds, message)
        self._ended.append((job.task, results))

    def _kill(self, seat: _RemoteSeat) -> None:
        with suppress(self._ray.exceptions.RayError, ValueError):  # it is dead already
            self._ray.kill(seat.actor)

    def _no_node_fits(self) -> str:
        needs = " and ".join(f"{amount:g} {name}" for name, amount in self._needs.items())
        has = "; ".join(
            ", ".join(f"{node.resources.get(name, 0):g} {name}" for name in self._needs)
            for node in alive_nodes()
        )
        return f"a query needs {needs}, and no node has that ({has})"


@dataclass(slots=True, eq=False)
class _SeatedTask:
    """A task on its way, possibly over several seats."""

    task: Task
    turn: int = -1
    losses: int = 0
    is_cancelled: bool = False
    began_at: float | None = None


@dataclass(slots=True, eq=False)
class _RemoteSeat:
    """An actor on a node, and the job that it works on. `reference` is what it will say next."""

    node: ClusterNode
    actor: Any
    reference: Any
    is_ready: bool = False
    job: _SeatedTask | None = None
    ends_at: float = math.inf

    @property
    def is_free(self) -> bool:
        return self.is_ready and self.job is None

    def give(self, job: _SeatedTask, turn: int) -> None:
        task, now = job.task, time.monotonic()
        longest = (
            START_SECONDS + task.seconds * len(task.queries) + WORK_GRACE_SECONDS + SLACK_SECONDS
        )
        job.turn, job.began_at = turn, now
        self.job, self.ends_at = job, now + longest
        self.reference = self.actor.answer.remote(turn, task)

    def cancel(self, job: _SeatedTask) -> None:
        """Ask for an end of its job; the seat is killed if that brings none."""
        if not job.is_cancelled:
            job.is_cancelled = True
            self.ends_at = min(self.ends_at, time.monotonic() + CANCEL_SECONDS)
            self.actor.cancel.remote(job.turn)


def _cause(reason: str) -> str:
    """The last line of what Ray says, which is the cause."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return lines[-1] if lines else "unknown"


class Seat:
    """One place to work, as it is on its node: it passes tasks on to a worker process beside it.

    `cancel` is called by another thread while `answer` runs. `turn` numbers the calls of `answer`,
    so that what is meant for one never reaches the next.
    """

    def __init__(self, tools: SealedToolbox) -> None:
        self._workers = LocalWorkers(tools, jobs=1)
        self._speaking = threading.Lock()
        self._running: tuple[int, Task] | None = None
        self._cancelled_turn = -1

    def version(self) -> str:
        """Of radii on this node; the first thing that a driver asks."""
        return __version__

    def answer(self, turn: int, task: Task) -> list[Result]:
        """The task's results, however it ends."""
        with self._speaking:
            self._workers.submit(task)
            self._running = turn, task
            if self._cancelled_turn == turn:  # it was faster than the task
                self._workers.cancel(task)
        results = self._workers.wait()[1]
        with self._speaking:
            self._running = None
        return results

    def cancel(self, turn: int) -> None:
        """Nobody needs the answer of this turn."""
        with self._speaking:
            self._cancelled_turn = turn
            if self._running is not None and self._running[0] == turn:
                self._workers.cancel(self._running[1])
