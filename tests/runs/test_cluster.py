"""A real Ray cluster on this machine: limits, cancellation, and nodes and drivers that die."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import radii
from conftest import BUSY_SECONDS
from misbehaving import Hoarding
from radii import datasets
from radii.errors import ExperimentError, InputError
from radii.networks import Network, load_network
from radii.problem import Grid, Instance, Norm, Query, Result, Verdict
from radii.processes import descendant_pids
from radii.runs import Cluster, Executor, RayWorkers, Toolbox, drive, select
from radii.runs.executors import _ray_workers as ray_workers
from radii.store import STORE_FILE, Store
from radii.strategy import Case, Linear, QuestionKind, Schedule, ScheduleLimits, Task
from radii.testing import ExecutorConformance
from radii.testing._simulated import Cooperating, Crashing, Hanging, Lying, Scripted

pytestmark = [
    # Not importorskip: every worker of a test run collects this file, and one runs it.
    pytest.mark.skipif(find_spec("ray") is None, reason="the extra 'ray' is not installed"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]

OBJECT_STORE = 80 * 2**20
SOON = BUSY_SECONDS
"""Within which cancelled work stops on a cluster."""
PATIENCE = 300.0
"""For what starts or ends by itself, on a machine that is busy."""

ROBUST, CRASH, HANG, WORK, HOARD = 0.01, 0.02, 0.03, 0.04, 0.05
SCRIPT = Scripted(
    {ROBUST: Lying(), CRASH: Crashing(), HANG: Hanging(), WORK: Cooperating(), HOARD: Hoarding()}
)


class Machines:
    """The nodes of a cluster; each has one processor and is a raylet with processes of its own."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as RayCluster

        self.cluster = RayCluster(initialize_head=True, head_node_args=self.size)
        self.address: str = self.cluster.address

    @property
    def size(self) -> dict[str, Any]:
        bare = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
        return {"num_cpus": 1, "object_store_memory": OBJECT_STORE, **bare}

    def add(self) -> Any:
        return self.cluster.add_node(**self.size)

    def remove(self, node: Any) -> None:
        """As a power cut would."""
        self.cluster.remove_node(node, allow_graceful=False)

    def workers(self) -> set[int]:
        """The processes that radii has on all nodes."""
        return {pid for node in self.cluster.list_all_nodes() for pid in self.workers_on(node)}

    def workers_on(self, node: Any) -> list[int]:
        (raylet,) = node.all_processes["raylet"]
        return [pid for pid in descendant_pids(raylet.process.pid) if is_worker(pid)]


def is_worker(pid: int) -> bool:
    try:
        return b"radii.processes._worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")  # or other tests would starve its processes
        # A node that is slow on a busy machine is not dead; one that was killed refuses at once.
        patch.setenv("RAY_health_check_timeout_ms", "120000")
        machines = Machines()
        yield machines
        machines.cluster.shutdown()


@pytest.fixture
def network(linear_file: Path) -> Network:
    return load_network(linear_file, domain=(0, 1))


@pytest.fixture
def instance(network: Network, points_file: Path) -> Instance:
    data = datasets.load_spec(str(points_file))
    return select(network, data, property="one-to-any", norm=Norm.LINF)[0]


def workers_of(machines: Machines, network: Network, **options: Any) -> RayWorkers:
    toolbox = Toolbox({network.fingerprint: network}, None, SCRIPT, **options)
    return RayWorkers(toolbox, Cluster(address=machines.address))


def task_of(instance: Instance, eps: float, seconds: float = 60.0, number: int = 0) -> Task:
    return Task(number, instance.network, QuestionKind.PROVE, (Query(instance, eps),), seconds)


def until(is_true: Callable[[], object], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def ended(executor: RayWorkers) -> tuple[Task, Result]:
    """The next task that ends, whatever else there is to say before."""
    while (said := executor.wait()) is None:
        pass
    task, (result,) = said
    return task, result


def answer(executor: RayWorkers, task: Task) -> Result:
    executor.submit(task)
    return ended(executor)[1]


@pytest.mark.slow
def test_misbehaving_work_is_a_missing_answer(
    machines: Machines, network: Network, instance: Instance
) -> None:
    with workers_of(machines, network, memory_bytes=900 * 2**20) as executor:
        assert executor.has_room
        assert answer(executor, task_of(instance, ROBUST)).verdict is Verdict.ROBUST
        died = answer(executor, task_of(instance, CRASH))
        assert died.verdict is Verdict.ERROR
        assert "signal 9" in died.message
        hung = answer(executor, task_of(instance, HANG, seconds=0.5))
        assert hung.verdict is Verdict.TIMEOUT
        assert 0.5 <= hung.seconds < 0.5 + SOON
        hoarded = answer(executor, task_of(instance, HOARD))
        assert hoarded.verdict is Verdict.MEMOUT
        assert answer(executor, task_of(instance, ROBUST)).verdict is Verdict.ROBUST

        for eps in (WORK, HANG):
            assert_cancelled(machines, executor, task_of(instance, eps))
        assert_cancelled_unheard(executor, task_of(instance, WORK), machines)
        assert answer(executor, task_of(instance, ROBUST)).verdict is Verdict.ROBUST
    until(lambda: not machines.workers(), SOON)


def assert_cancelled(machines: Machines, executor: RayWorkers, task: Task) -> None:
    """It stops within two seconds: by itself, or because its process is killed."""
    executor.submit(task)
    time.sleep(0.5)
    (pid,) = machines.workers()
    started = time.monotonic()
    executor.cancel(task)
    of, result = ended(executor)
    assert time.monotonic() - started < SOON
    assert of is task
    assert result.verdict is Verdict.CANCELLED
    assert result.message.startswith("killed" if task.queries[0].eps == HANG else "it stopped")
    assert is_worker(pid) is (task.queries[0].eps == WORK)


def assert_cancelled_unheard(executor: RayWorkers, task: Task, machines: Machines) -> None:
    """Nobody listens any more where it runs: it is given up in time, and killed later."""
    (seat,) = executor._seats
    executor.submit(task)
    until(machines.workers)
    (pid,) = machines.workers()
    os.kill(parent_of(pid), signal.SIGSTOP)
    started = time.monotonic()
    executor.cancel(task)
    assert ended(executor)[1].verdict is Verdict.CANCELLED
    assert time.monotonic() - started < SOON
    assert seat not in executor._seats
    until(lambda: not is_worker(pid))


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.slow
def test_nodes_join_and_die(machines: Machines, network: Network, instance: Instance) -> None:
    """A task is lost with its node: it runs again elsewhere, and is reported once."""
    with workers_of(machines, network) as executor:
        first, second = task_of(instance, WORK, 12.0, 1), task_of(instance, WORK, 3.0, 2)
        answer(executor, task_of(instance, ROBUST))
        executor.submit(first)
        assert not executor.has_room
        node = machines.add()
        assert executor.wait() is None
        assert executor.has_room
        executor.submit(second)
        joined = next(seat for seat in executor._seats if seat.job is None)
        waiting = threading.Thread(target=lambda: reported.append(ended(executor)))
        reported: list[tuple[Task, Result]] = []
        waiting.start()
        until(lambda: machines.workers_on(node))
        assert joined.job is not None
        machines.remove(node)
        waiting.join(PATIENCE)
        reported.append(ended(executor))
        assert [task.number for task, _ in reported] == [1, 2]
        for task, result in reported:
            assert result.verdict is Verdict.TIMEOUT
            # On a busy machine it is stopped before it comes to stop by itself.
            assert result.message in (
                "it stopped by itself",
                "it overran its time limit",
            )
            assert task.seconds <= result.seconds < task.seconds + SOON
        assert joined not in executor._seats
        assert not executor._queue


@pytest.mark.slow
def test_a_worker_that_is_killed_on_a_node_is_asked_once_more(
    machines: Machines, network: Network, instance: Instance
) -> None:
    told: list[Result] = []
    with workers_of(machines, network) as executor:
        answer(executor, task_of(instance, ROBUST))  # so that a worker is ready
        (pid,) = machines.workers()
        threading.Timer(0.5, os.kill, [pid, signal.SIGKILL]).start()
        case = Case(instance, Linear(Grid(WORK, WORK + 0.001, 0.01)), batch=0)
        drive(
            Schedule([case], ScheduleLimits(timeout=2.0, budget=60.0)),
            executor,
            on_results=lambda results: told.extend(result for _, _, result in results),
            on_finished=lambda _: None,
        )
    assert [result.verdict for result in told] == [Verdict.ERROR, Verdict.TIMEOUT]
    assert "signal 9" in told[0].message
    assert case.search.done


@pytest.mark.slow
def test_tasks_that_wait(machines: Machines, network: Network, instance: Instance) -> None:
    with workers_of(machines, network) as executor:
        tasks = [task_of(instance, WORK, seconds=1.0, number=n) for n in range(3)]
        for task in tasks:
            executor.submit(task)
        executor.cancel(tasks[1])
        executor.cancel(task_of(instance, WORK, number=9))  # another one: no effect
        verdicts = {
            task.number: result.verdict for task, result in (ended(executor) for _ in tasks)
        }
    assert verdicts == {0: Verdict.TIMEOUT, 1: Verdict.CANCELLED, 2: Verdict.TIMEOUT}


def test_what_no_node_has(machines: Machines, network: Network) -> None:
    toolbox = Toolbox({network.fingerprint: network}, None, SCRIPT)
    with pytest.raises(ExperimentError, match="needs 1 CPU and 1 GPU, and no node has that"):
        RayWorkers(toolbox, Cluster(address=machines.address, gpus=1))
    with pytest.raises(ExperimentError, match="needs 64 CPU"):
        RayWorkers(toolbox, Cluster(address=machines.address, cpus=64))


def test_another_radii_on_the_nodes(
    machines: Machines, network: Network, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_workers, "__version__", "0.0")
    with workers_of(machines, network) as executor:
        executor.submit(task_of(instance, ROBUST))
        with pytest.raises(ExperimentError, match=f"it has radii {radii.__version__}, and this is"):
            executor.wait()


@pytest.mark.slow
def test_nodes_and_drivers_that_die_change_no_bracket(machines: Machines, tmp_path: Path) -> None:
    flags = {
        "network": Path(radii.__file__).parent / "demo" / "mlp-standard.onnx",
        "data": "digits:test[0:30]",
        "domain": "0:1",
        "grid": "0.01:0.3:0.02",
        "search": "binary",
    }
    out, ray_flags = tmp_path / "cluster", {**flags, "ray": machines.address}
    second = machines.add()
    driver = start_run(ray_flags, out)
    until(lambda: has_reported(driver, out, 10) and machines.workers_on(second))
    machines.remove(second)
    until(lambda: has_reported(driver, out, 30))
    driver.kill()
    driver.wait()
    until(lambda: not machines.workers(), 10.0)  # what a dead driver has left behind
    reported = rows_of(out)
    third = machines.add()
    again = start_run(ray_flags, out)
    until(lambda: has_reported(again, out, 31) and machines.workers_on(third))
    machines.remove(third)
    alone = start_run({**flags, "jobs": 1}, tmp_path / "alone")
    (found, _), (expected, _) = again.communicate(), alone.communicate()
    assert again.returncode == alone.returncode == 0
    assert len(json.loads(found)["networks"]) == len(json.loads(expected)["networks"]) == 1

    assert brackets_of(out) == brackets_of(tmp_path / "alone")
    rows = rows_of(out)
    assert rows[: len(reported)] == reported, "a reported result was lost"
    questions = [row[1:4] for row in rows]
    assert len(set(questions)) == len(questions), "a result was reported twice"
    assert sorted(questions) == sorted(row[1:4] for row in rows_of(tmp_path / "alone"))


def start_run(flags: dict[str, Any], out: Path) -> subprocess.Popen[bytes]:
    options = [f"--{name}={value}" for name, value in {**flags, "out": out}.items()]
    command = [sys.executable, "-c", "import radii.cli; raise SystemExit(radii.cli.main())"]
    return subprocess.Popen([*command, "run", "--json", *options], stdout=subprocess.PIPE)


def has_reported(run: subprocess.Popen[bytes], out: Path, count: int) -> bool:
    """So many results are on disk, while the run goes on."""
    assert run.poll() is None, "it has ended too early"
    try:
        with Store.open(out) as store:
            return sum(len(answers) for answers in store.results().values()) >= count
    except InputError:  # not there yet
        return False


def rows_of(directory: Path) -> list[tuple[Any, ...]]:
    """Every result as it was reported: id, instance, kind, eps, verdict, when."""
    db = sqlite3.connect(directory / STORE_FILE)
    query = "SELECT id, instance, kind, eps, verdict, ended_at FROM queries ORDER BY id"
    rows = db.execute(query).fetchall()
    db.close()
    return rows


def brackets_of(directory: Path) -> list[tuple[int, float, float]]:
    with Store.open(directory) as store:
        return [(m.input, m.bracket.lower, m.bracket.upper) for m in store.measurements()]


@pytest.mark.slow
class TestRayWorkers(ExecutorConformance):
    address: str
    grace_seconds = SOON

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _cluster(cls, machines: Machines) -> None:
        cls.address = machines.address

    def make(self, toolbox: Toolbox) -> Executor:
        return RayWorkers(toolbox, Cluster(address=self.address))
