"""Tools that fail on everything end a run; single failures are missing answers with a reason."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conftest import write_linear
from radii.attacks import Attack
from radii.cli import main as radii
from radii.errors import BrokenTool
from radii.networks import Network
from radii.problem import Grid, Proof, Query, Result, Verdict
from radii.runs import Experiment, prepare
from radii.runs._driver import FAILED_INPUTS, FAILED_QUESTIONS, FirstFailures
from radii.statistics import missing_reasons, read_store
from radii.store import Store
from radii.strategy import Case, Question, QuestionKind, make
from radii.testing._simulated import Raising
from radii.verifiers import Milp

GRID = Grid(0.1, 0.4, 0.1)


def cases(count: int) -> list[Case]:
    found = []
    for number in range(count):
        instance: Any = SimpleNamespace(key=str(number))
        found.append(Case(instance, make("native", GRID), batch=0))
    return found


def asked(eps: float = 0.3) -> Question:
    return Question(QuestionKind.PROVE, eps)


def failed(message: str = "boom", eps: float = 0.3) -> Result:
    return Result(Verdict.ERROR, eps, "v", "1", 0.1, message=message)


def proven(eps: float = 0.3) -> Result:
    return Result(Verdict.ROBUST, eps, "v", "1", 0.1, proof=Proof(eps, 0.0))


def told(follower: FirstFailures, case: Case, result: Result) -> None:
    """As a run does: whoever follows it hears first, and the search after it."""
    question = asked(result.eps)
    follower.note([(case, question, result)])
    case.search.tell(question, result)


def follower_of(known: list[Case]) -> FirstFailures:
    return FirstFailures("verifier 'v'", [("v", "1")], known, is_attack=False)


def test_the_first_inputs_that_all_fail_alike_end_a_run() -> None:
    known = cases(9)
    follower = follower_of(known)
    with pytest.raises(BrokenTool, match=r"first 3 inputs in the same way: line 3: boom at 0xff"):
        for number, case in enumerate(known):
            for address in ("0x7f", "0xff"):
                told(follower, case, failed(f"line {number + 1}: boom at {address}"))
    assert len([case for case in known if case.search.lost]) == FAILED_INPUTS


def test_many_questions_about_one_input_that_all_fail_alike_end_a_run() -> None:
    known = cases(9)
    follower = follower_of(known)
    with pytest.raises(BrokenTool, match="first input in the same way: boom"):
        for number in range(FAILED_QUESTIONS):
            for _ in range(2):
                told(follower, known[0], failed(eps=0.1 + number / 100))


@pytest.mark.parametrize(
    "between", [proven(), Result(Verdict.TIMEOUT, 0.3, "v", "1", 9.0), failed("another reason")]
)
def test_a_tool_that_has_answered_or_fails_in_several_ways_goes_on(between: Result) -> None:
    known = cases(9)
    follower = follower_of(known)
    told(follower, known[0], between)
    for case in known[1:]:
        for _ in range(2):
            told(follower, case, failed())
    if between.verdict is not Verdict.ERROR:
        follower.check()
        return
    with pytest.raises(BrokenTool, match="failed on the first 9 inputs: boom"):
        follower.check()  # at the end: nothing was answered at all


def test_failures_that_are_not_repeated_do_not_end_a_run() -> None:
    """Such as those of a batch in which one input brings down the attack on all of them."""
    known = cases(9)
    follower = follower_of(known)
    for case in known:
        told(follower, case, failed())
    for case in known:
        told(follower, case, proven())
    follower.check()


def test_what_worked_in_an_earlier_run_is_not_suspected() -> None:
    known = cases(9)
    known[0].search.tell(asked(), proven())
    follower = follower_of(known)
    other = FirstFailures("verifier 'v'", [("v", "2")], known, is_attack=False)
    assert follower.has_worked and not other.has_worked


class Failing(Attack):
    """Has a bug."""

    name = "failing"

    @property
    def version(self) -> str:
        return "0"

    def run(self, network: Network, queries: Sequence[Query], seed: int) -> Any:
        raise ZeroDivisionError("a bug in an attack")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_linear(tmp_path)
    rng = np.random.default_rng(0)
    points = rng.uniform(0.2, 0.8, (12, 2)).astype(np.float32)
    monkeypatch.chdir(tmp_path)
    np.savez("points.npz", images=points, labels=(points[:, 0] < points[:, 1]).astype(int))
    return tmp_path


def experiment(**options: Any) -> Experiment:
    described = {"networks": ["linear.onnx"], "data": "points.npz", "domain": "0:1", **options}
    return Experiment.from_options({"grid": "0.01:0.5:0.02", **described})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"verifier": Raising(), "search": "binary"}, "verifier 'raising' .* a bug in a verifier"),
        ({"attack": Failing(), "search": "attack-only"}, "attack 'failing' .* a bug in an attack"),
    ],
)
def test_a_verifier_or_an_attack_with_a_bug_ends_a_run(
    desk: Path, options: dict[str, Any], words: str
) -> None:
    with Store.create_or_open(Path("out")) as store:
        with pytest.raises(BrokenTool, match=words):
            prepare(experiment(**options)).run(store)
        failures = [r for all_of in store.results().values() for _, r in all_of if r.message]
    assert failures, "what failed is stored all the same"


BROKEN = {
    "is not there": ("", f"{sys.executable} nosuch.py", "can't open file 'nosuch.py'"),
    "crashes": ("echo starting; echo no licence >&2; exit 3", "./tool.sh", "printed: no licence"),
    "dies": ("kill -11 $$", "./tool.sh", "it died of signal 11"),
    "writes garbage": ("echo 'xxx 42' > $3", "./tool.sh", "'xxx 42' is not one of sat"),
    "prints its answer only": ("echo unsat", "./tool.sh", "wrote no result; it printed: unsat"),
    "does nothing": ("exit 0", "./tool.sh", "it wrote no result"),
    "has no interpreter": ("#!/nowhere/sh", "./tool.sh", "first line names does not exist"),
}
"""What a script holds, the command, and what the end of the run quotes."""


def command(script: str, call: str) -> list[str]:
    path = Path("tool.sh")
    path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return [
        *("run", "--network", "linear.onnx", "--data", "points.npz", "--domain", "0:1"),
        *("--verifier", "vnncomp", "--tool", f"{call} {{onnx}} {{vnnlib}} {{out}}"),
        *("--attack", "fgsm"),
        *("--grid", "0.01:0.2:0.05", "--out", "out"),
    ]


@pytest.mark.usefixtures("without_workers")
@pytest.mark.parametrize("kind", BROKEN)
def test_a_tool_that_never_works_ends_a_run_with_its_last_line(
    kind: str, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, call, words = BROKEN[kind]
    assert radii(command(script, call)) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert words in told.err and told.err.count("\n") == 1
    assert "in the same way" in told.err
    assert radii(["show", "out"]) == 0
    assert "no answer: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [("nosuchprogram", "not a program that can be run"), ("./tool.txt", "is not executable")],
)
def test_a_tool_that_cannot_be_run_is_refused_before_any_work(
    name: str, words: str, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("tool.txt").write_text("#!/bin/sh\n")
    assert radii(command("", name)) == 2
    assert words in capsys.readouterr().err
    assert not Path("out").exists()


SOMETIMES = """
import re, sys
onnx, vnnlib, out = sys.argv[1:]
if float(re.findall(r">= X_0 ([^)]+)", open(vnnlib).read())[0]) < 0.3:
    print("layer_norm of", id(out), "is not supported")
    sys.exit(4)
open(out, "w").write("unknown")
"""


@pytest.mark.usefixtures("without_workers")
def test_where_some_queries_fail_each_missing_answer_has_its_reason(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And going on, which asks the failures again, does not take the tool for broken."""
    Path("sometimes.py").write_text(SOMETIMES)
    words = command("", f"{sys.executable} -S sometimes.py")
    for _ in range(2):
        assert radii([*words, "--json"]) == 0
        (network,) = json.loads(capsys.readouterr().out)["networks"]
        reasons = [reason for one in network["instances"] for reason in one["unanswered"]]
        assert len(reasons) == sum(one["missing"] for one in network["instances"]) > 0
        failures = [reason for reason in reasons if reason["ending"] == "failed"]
        assert 0 < len(failures) < len(reasons)
        assert all("is not supported" in reason["message"] for reason in failures)
        assert {reason["ending"] for reason in reasons} == {"failed", "gave up"}
    assert radii(["show", "out"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{len(failures)} × failed (vnncomp: sometimes.py: it wrote no result" in shown
    grouped = missing_reasons(read_store("out").records)
    assert [reason.count for reason in grouped] == sorted(
        (len(failures), len(reasons) - len(failures)), reverse=True
    )


def test_a_failed_attack_is_among_the_reasons(desk: Path) -> None:
    plan = prepare(experiment())
    with Store.create_or_open(Path("out")) as store:
        plan.begin(store)
        key = plan.instances[0].key
        question = Question(QuestionKind.ATTACK, 0.49)
        lost = Result(Verdict.ERROR, 0.49, "apgd", "1", 0.1, message="boom")
        nothing = Result(Verdict.UNKNOWN, 0.49, "apgd", "1", 0.1)
        store.record([(key, question, lost)])
        (record, *_) = store.all_records()
        assert [result for _, result in record.unanswered] == [lost]
        assert record.measurement.missing == 0
        store.record([(key, question, nothing)])
        (record, *_) = store.all_records()
        assert not record.unanswered


def test_members_of_a_portfolio_answer_for_it(desk: Path) -> None:
    plan = prepare(experiment(verifier="portfolio:native,milp"))
    known = cases(2)
    (fresh, *_) = plan._followed_tools(known)
    milp = Milp()
    by_member = Result(Verdict.TIMEOUT, 0.3, milp.name, milp.version, 1.0)
    known[0].search.tell(asked(), by_member)
    (follower, *_) = plan._followed_tools(known)
    assert (fresh.has_worked, follower.has_worked) == (False, True)
