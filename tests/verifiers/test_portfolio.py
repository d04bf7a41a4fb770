"""Racing verifiers: the first answer that counts, by whom, and nobody left running."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conftest import BUSY_SECONDS
from misbehaving import Deaf, Slow
from radii import verifiers
from radii.errors import SpecificationError
from radii.networks import Network, Relu
from radii.problem import Instance, Norm, Query, Verdict
from radii.processes import Allowance, Ending, Message, MessageKind
from radii.processes._usage import Usage, Watch
from radii.runs import Experiment, Toolbox, prepare
from radii.store import Store
from radii.strategy import QuestionKind, Task
from radii.testing import NetworkFamily, VerifierConformance, random_instance, random_network
from radii.testing._simulated import Cooperating, Crashing, Hanging, Lying, Raising
from radii.verifiers import Answer, BranchAndBound, Limits, Milp, Portfolio, Verifier
from radii.verifiers._portfolio import MemberProcesses, PortfolioMember


@cache
def native_and_milp() -> Portfolio:
    """One for all tests: loading torch in its processes takes a while."""
    return Portfolio([BranchAndBound(), Milp()])


@pytest.fixture(scope="module", autouse=True)
def _started(network: Network, instance: Instance) -> None:
    """Members start before any test measures time."""
    native_and_milp().verify(network, Query(instance, 0.1))


class TestConformance(VerifierConformance):
    seconds = 120.0

    def make(self) -> Verifier:
        return native_and_milp()

    def answering(self, verifier: Verifier) -> set[tuple[str, str]]:
        each = {(one.name, one.version) for one in (BranchAndBound(), Milp())}
        return {*each, (verifier.name, verifier.version)}


@pytest.fixture(scope="module")
def network() -> Network:
    return random_network(NetworkFamily.DENSE, 1, units=10)


@pytest.fixture(scope="module")
def instance(network: Network) -> Instance:
    return random_instance(network, 3)


def who_can_tell_answers(others: list[Verifier], network: Network, instance: Instance) -> None:
    portfolio = Portfolio([*others, Milp()])
    for eps, verdict in ((0.001, Verdict.ROBUST), (0.4, Verdict.NOT_ROBUST)):
        result = portfolio.verify(network, Query(instance, eps), Limits(300))
        assert result.verdict is verdict
        assert (result.verifier, result.version) == ("milp", Milp().version)


def test_who_can_tell_answers_beside_those_who_cannot(network: Network, instance: Instance) -> None:
    who_can_tell_answers([Hanging(), Crashing(), Raising(), Cooperating()], network, instance)


@pytest.mark.slow
@pytest.mark.parametrize("other", [Hanging, Crashing, Raising, Cooperating])
def test_who_can_tell_answers(
    other: Callable[[], Verifier], network: Network, instance: Instance
) -> None:
    who_can_tell_answers([other()], network, instance)


def test_a_member_that_failed_is_named_beside_the_answer_of_another(
    network: Network, instance: Instance
) -> None:
    """Else nobody would see that the race has one runner only."""
    waiting = Slow(Milp(), seconds=1.0)
    result = Portfolio([Raising(), waiting]).verify(network, Query(instance, 0.001), Limits(300))
    assert (result.verdict, result.verifier) == (Verdict.ROBUST, "slow")
    assert result.message == "raising: ZeroDivisionError: a bug in a verifier"


@pytest.mark.slow
def test_nobody_can_tell(network: Network, instance: Instance) -> None:
    portfolio = Portfolio([Crashing(), Raising()])
    result = portfolio.verify(network, Query(instance, 0.1), Limits(300))
    assert result.verdict is Verdict.ERROR
    assert "crashing: its process died (signal 9)" in result.message
    assert "raising: ZeroDivisionError" in result.message
    assert result.verifier == "portfolio"


@pytest.mark.slow
@pytest.mark.parametrize("cancelled", [False, True])
def test_limits_end_all_members(cancelled: bool, network: Network, instance: Instance) -> None:
    started = time.monotonic()
    limits = Limits(
        60 if cancelled else 1.0, cancelled=lambda: cancelled and time.monotonic() > started + 1.0
    )
    portfolio = Portfolio([Hanging(), Cooperating()])
    result = portfolio.verify(network, Query(instance, 0.1), limits)
    assert time.monotonic() - started < 1.4 + BUSY_SECONDS
    assert result.verdict is (Verdict.CANCELLED if cancelled else Verdict.TIMEOUT)


@pytest.mark.slow
def test_a_member_that_somebody_ended_is_replaced(network: Network, instance: Instance) -> None:
    portfolio = native_and_milp()
    for verifier in portfolio.members:
        process = portfolio._processes.member_for(verifier).child.process
        process.kill()
        process.wait()
    result = portfolio.verify(network, Query(instance, 0.001), Limits(300))
    assert result.verdict is Verdict.ROBUST


def test_the_processor_time_of_members_counts(network: Network, instance: Instance) -> None:
    portfolio = Portfolio([Deaf(), Cooperating()])
    for verifier in portfolio.members:  # loading costs processor time, too
        child = portfolio._processes.member_for(verifier).child
        assert child.is_ready or child.connection.poll(300)
    toolbox = Toolbox({network.fingerprint: network}, None, portfolio)
    task = Task(0, network.fingerprint, QuestionKind.PROVE, (Query(instance, 0.1),), 300.0, 0.5)
    (result,) = toolbox.answer(task)
    assert (result.verdict, result.ending) == (Verdict.TIMEOUT, Ending.CPU_LIMIT)
    assert "processor time" in result.message
    assert result.cpu_seconds is not None and result.cpu_seconds >= 0.5


class LateChild:
    """Stands for a process that answers when it is asked, or only when it is told to stop."""

    is_ready = True

    def __init__(self, answer: Answer, *, when_cancelled: bool) -> None:
        self.answer, self.when_cancelled = answer, when_cancelled
        self.connection, self.other = multiprocessing.Pipe()
        self.watch = Watch(Allowance(), lambda: Usage(0, 0.0))
        self.is_busy = False

    def ask(self, *_: object) -> None:
        self.is_busy = True
        if not self.when_cancelled:
            self.other.send("answer")

    def cancel(self, _: float) -> None:
        if self.is_busy:
            self.other.send("answer")

    def receive(self) -> Message:
        self.connection.recv()
        self.is_busy = False
        return Message(MessageKind.VALUE, self.answer)

    def check(self) -> None:
        return None


def late(verifier: Verifier, answer: Answer, *, when_cancelled: bool) -> PortfolioMember:
    child: Any = LateChild(answer, when_cancelled=when_cancelled)
    return PortfolioMember(verifier, child)


@pytest.mark.parametrize("when_cancelled", [True, False])
def test_a_proof_is_not_believed_beside_a_counterexample(
    when_cancelled: bool, network: Network, instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Milp().run(network, Query(instance, 0.4).specification, Limits(60))
    assert found.verdict is Verdict.NOT_ROBUST
    racing = [
        late(Lying(), Answer(Verdict.ROBUST), when_cancelled=False),
        late(Milp(), found, when_cancelled=when_cancelled),
    ]
    members = iter(racing)
    monkeypatch.setattr(MemberProcesses, "member_for", lambda *_: next(members))
    result = Portfolio([Lying(), Milp()]).verify(network, Query(instance, 0.4), Limits(60))
    assert (result.verdict, result.verifier) == (Verdict.NOT_ROBUST, "milp")
    assert result.message.startswith("lying 0 claims a proof here")
    for member in racing:
        stub: Any = member.child
        stub.connection.close()
        stub.other.close()


def test_members_tell_networks_apart_by_their_operators_too(
    network: Network, instance: Instance
) -> None:
    """The same file is another graph where other operators were handed in."""

    class Recording:
        is_ready = True

        def __init__(self) -> None:
            self.jobs: list[Any] = []

        def ask(self, arguments: tuple[Any, ...], allowance: Allowance) -> None:
            self.jobs.append(arguments[0])

    other = Network.from_bytes(
        network.onnx_bytes, domain=network.domain, name="other", operators={"Relu": Relu}
    )
    assert other.fingerprint == network.fingerprint
    child: Any = Recording()
    member = PortfolioMember(BranchAndBound(), child)
    specification = Query(instance, 0.01).specification
    for each in (network, other, network, other):
        member.ask(each, specification, Limits(1.0))
    assert [job.network for job in child.jobs] == [network, other, None, None]
    assert [job.number for job in child.jobs] == [0, 1, 0, 1]


def test_members_that_cannot_decide_stay_out(network: Network) -> None:
    portfolio = Portfolio([Milp(), BranchAndBound()])
    assert portfolio.norms == frozenset(Norm)
    result = portfolio.verify(
        network, Query(random_instance(network, 3, norm=Norm.L2), 0.001), Limits(300)
    )
    assert result.verifier == "native" and result.verdict is Verdict.ROBUST


def test_names_and_options() -> None:
    made = verifiers.get("portfolio:native,milp", device="cpu")
    assert isinstance(made, Portfolio)
    assert [member.name for member in made.members] == ["native", "milp"]
    assert made.version == f"native {BranchAndBound().version}, milp {Milp().version}"
    for name, words in (
        ("portfolio:native", "at least two"),
        ("portfolio:milp,native,milp", "twice"),
        ("portfolio:native,nobody", "'nobody' is not one of"),
        ("portfolio", "is not one of"),
    ):
        with pytest.raises(SpecificationError, match=words):
            verifiers.get(name)
    with pytest.raises(SpecificationError, match="no verifier of the portfolio"):
        verifiers.get("portfolio:native,milp", tool="x")
    with pytest.raises(SpecificationError, match="needs a tool"):
        verifiers.get("portfolio:native,vnncomp")


@pytest.mark.slow
def test_in_a_worker_it_gives_the_brackets_of_native(
    relu_file: Path, relu_points_file: Path
) -> None:
    found = {}
    for verifier in ("portfolio:native,milp", "native"):
        experiment = Experiment.from_options(
            {
                "networks": [str(relu_file)],
                "data": f"{relu_points_file}[0:3]",
                "domain": "0:1",
                "grid": "0.01:0.3:0.02",
                "verifier": verifier,
                "search": "attack-guided",
                "timeout": 300,
            }
        )
        with Store.in_memory() as store:
            prepare(experiment).run(store, jobs=1)
            found[verifier] = [measured.bracket for measured in store.measurements()]
            who = {result.verifier for told in store.results().values() for _, result in told}
            assert who <= {"minimum-norm", "native", "milp"}
    assert found["portfolio:native,milp"] == found["native"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel is asked to do it, on Linux only")
def test_members_die_with_who_asked() -> None:
    code = """
from radii.problem import Query
from radii.testing._networks import NetworkFamily, random_instance, random_network
from misbehaving import Deaf
from radii.testing._simulated import Hanging
from radii.verifiers import Limits, Portfolio
network = random_network(NetworkFamily.DENSE, 1, units=10)
Portfolio([Hanging(), Deaf()]).verify(network, Query(random_instance(network, 3), 0.1))
"""
    asking = subprocess.Popen([sys.executable, "-c", code])
    _wait_until(lambda: bool(_members_of(asking.pid)))
    members = _members_of(asking.pid)
    asking.send_signal(signal.SIGKILL)
    asking.wait()
    _wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in members))


def _members_of(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"radii.processes._worker" in words and str(parent).encode() in words:
            found.append(int(entry.name))
    return found


def _wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
