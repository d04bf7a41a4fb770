"""A Ray cluster: how to reach it, and how many places to work each of its nodes has."""

from __future__ import annotations

import importlib
import itertools
import logging
import math
import os
import re
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from radii import __version__
from radii.errors import ExperimentError, InputError, MissingExtra, RadiiError
from radii.execution._base import Executor, SealedToolbox, Task, Toolbox, missing_results
from radii.execution._local import START_SECONDS
from radii.execution._seat import Seat
from radii.processes import WORK_GRACE_SECONDS, StoppedCall, call_guarded
from radii.verdicts import Result, Verdict

REACH_SECONDS = 5.0
"""Until a connection to an address must stand."""
CONNECT_SECONDS = 90.0
"""Until a cluster must have answered, import of Ray from a slow disk included. Ray by itself tries
for two minutes, then ends the process."""

NO_REPORTS = ("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
"""Ray prints what happens to nodes to standard output, where our results go; read at its import."""
QUIET_OPTIONS: Mapping[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Ray cluster, and what of a node each query gets. `gpus` None: as its device needs."""

    address: str = "auto"
    cpus: float = 1.0
    gpus: float | None = None

    def __post_init__(self) -> None:
        if not _is_share(self.cpus) or self.cpus == 0:
            raise ExperimentError(
                f"--ray-cpus {self.cpus:g} must be a whole number, or between 0 and 1"
            )
        if self.gpus is not None and not _is_share(self.gpus):
            raise ExperimentError(
                f"--ray-gpus {self.gpus:g} must be a whole number, or between 0 and 1"
            )
        if self.address != "auto" and not re.fullmatch(r"[^/\s]+:\d{1,5}", self.address):
            raise ExperimentError(
                f"--ray '{self.address}' must be the HOST:PORT of a cluster's head, or auto"
            )

    def for_device(self, device: str | None) -> Cluster:
        """With a GPU for each query that computes on one, unless a number was given."""
        needs_gpu = device is not None and device.startswith("cuda")
        return replace(self, gpus=float(needs_gpu)) if self.gpus is None else self

    def needs(self, memory_bytes: int | None) -> dict[str, float]:
        """What a query needs, by Ray's names of resources."""
        needed = {"CPU": self.cpus, "GPU": self.gpus or 0.0, "memory": float(memory_bytes or 0)}
        return {name: amount for name, amount in needed.items() if amount > 0}


def _is_share(amount: float) -> bool:
    """Ray divides single units only."""
    return 0 <= amount <= 1 or (amount > 1 and float(amount).is_integer())


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node that is alive: Ray's id of it, its address, and what it has in total."""

    id: str
    host: str
    resources: Mapping[str, float]

    def seats(self, needs: Mapping[str, float]) -> int:
        """How many queries fit on it side by side."""
        fits = (self.resources.get(name, 0.0) / amount for name, amount in needs.items())
        return math.floor(min(fits) + 1e-9)


def load_ray() -> Any:
    """The package, which is optional and slow to import."""
    os.environ.setdefault(*NO_REPORTS)
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError:
        raise MissingExtra("ray", "ray", "--ray") from None


def alive_nodes() -> list[ClusterNode]:
    """The nodes of the connected cluster, as Ray sees them now."""
    return [
        ClusterNode(node["NodeID"], node["NodeManagerAddress"], node["Resources"])
        for node in load_ray().nodes()
        if node["Alive"]
    ]


def head_answers() -> bool:
    """Whether the connected cluster's head can be reached; without it, Ray waits for a minute."""
    host, _, port = load_ray().get_runtime_context().gcs_address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except OSError:
        return False
    return True


def connect(address: str) -> bool:
    """Connect this process to a cluster. False: it was connected already, and stays so."""
    ray = load_ray()
    if ray.is_initialized():
        return False
    _check_reachable(address)
    ray.init(address, **QUIET_OPTIONS)
    return True


def _check_reachable(address: str) -> None:
    """An ExperimentError unless a cluster answers. Tried in a process of its own: see above."""
    if address != "auto":
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ExperimentError(f"--ray {address}: nobody answers there ({reason})") from None
    try:
        stopped = call_guarded(_try_to_connect, address, until=time.monotonic() + CONNECT_SECONDS)
    except InputError:
        raise
    except RadiiError as error:
        reason = str(error).partition(": ")[2].partition("\n")[0] or str(error)
        if "Could not find any running Ray instance" in reason:
            reason = "no Ray cluster runs here; `ray start --head` starts one"
        raise ExperimentError(f"--ray {address}: {reason}") from None
    if isinstance(stopped, StoppedCall):
        raise ExperimentError(f"--ray {address}: no Ray cluster answers there")


def _try_to_connect(address: str) -> None:
    ray = load_ray()
    ray.init(address, **QUIET_OPTIONS)
    ray.shutdown()


# Tasks on the nodes of a Ray cluster.
#
# Each node has as many seats as its resources allow; a seat is an actor with a worker process
# beside
# it, see `radii.execution._seat`. The nodes are looked at again while tasks run: seats of nodes
# that
# die are given up and what they worked on starts again elsewhere, nodes that join get seats. When
# the
# driver dies, Ray ends its actors, and the kernel their worker processes.


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
        self._equipment = SealedToolbox.pack(toolbox)
        self._needs = cluster.needs(toolbox.memory_bytes)
        self._shipped = self._ray.put(self._equipment)  # travels to each node once
        self._limit = jobs
        self._seats: list[_Seat] = []
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
                self._give_up(job, Verdict.CANCELLED, "cancelled before it began")
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

    def _new_seat(self, node: ClusterNode) -> _Seat:
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
        return _Seat(node, actor, actor.version.remote())

    def _hand_out(self) -> None:
        """Queued tasks to free seats, the earliest first."""
        for seat in self._seats:
            if seat.is_free and self._queue:
                seat.give(self._queue.popleft(), next(self._turns))

    def _collect(self, seat: _Seat) -> None:
        """What a seat said: its version, as it is ready, or the results of its task."""
        if seat not in self._seats:
            return
        try:
            said = self._ray.get(seat.reference)
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
            self._ended.append((seat.job.task, said))
            seat.job, seat.ends_at = None, math.inf
            self._failures[seat.node.id] = 0
        elif said == __version__:
            seat.is_ready = True
        else:
            reason = f"it has radii {said}, and this is {__version__}"
            self._blame(seat.node, reason, times=SEAT_FAILURES)  # another start would not help
            self._lose(seat)

    def _blame(self, node: ClusterNode, reason: str, times: int = 1) -> None:
        self._failures[node.id] += times
        self._failure = f"{node.host}: {_cause(reason)}"

    def _lose(self, seat: _Seat, reason: str = "its node is gone") -> None:
        """A seat that is of no use any more; what it worked on goes back, ahead of the others."""
        self._seats.remove(seat)
        self._kill(seat)
        job = seat.job
        if job is None:
            return
        job.losses += 1
        if job.is_cancelled:
            self._give_up(job, Verdict.CANCELLED, "killed: it was cancelled and went on")
        elif job.losses >= TASK_LOSSES:
            message = f"lost {job.losses} times with what it ran on, at last: {_cause(reason)}"
            self._give_up(job, Verdict.ERROR, message)
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

    def _give_up(self, job: _SeatedTask, verdict: Verdict, message: str) -> None:
        seconds = 0.0 if job.began_at is None else time.monotonic() - job.began_at
        results = missing_results(self._equipment, job.task, verdict, seconds, message)
        self._ended.append((job.task, results))

    def _kill(self, seat: _Seat) -> None:
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
class _Seat:
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
