"""A tiny study from end to end: made, killed, continued, shown; bad input in a sentence."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from radii.cli import main
from radii_papers.tradeoff import Study, preset_tables, read_members
from radii_papers.tradeoff._results import read_member
from radii_papers.tradeoff._workers import StudyWorker

TINY = {
    "data": "digits:train[0:100]",
    "test": "digits:test[0:60]",
    "eps": 0.05,
    "samples": 8,
    "proof_inputs": 4,
    "bayesian_images": 50,
    "warmup": 4,
    "members": 4,
    "deterministic": [{"width": 5, "activation": ["relu", "tanh"], "rate": 0.5, "epochs": 1}],
    "pruned": [{"width": 5, "rate": 0.5, "epochs": 1}],
    "bayesian": [{"width": 4, "samples": 6, "steps": 3}],
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("study")
    study = Study.from_tables(TINY)
    (directory / "study.json").write_text(json.dumps(study.identity))
    workshop = StudyWorker(study, directory)
    for place in range(len(study.recipes)):
        workshop(place)
    return directory


def test_every_network_is_measured(finished: Path) -> None:
    members = read_members(finished)
    assert [m.recipe.kind for m in members] == ["deterministic"] * 2 + ["pruned", "bayesian"]
    for member in members:
        assert member.accuracy is not None and member.robustness and member.change
        assert member.robustness.low <= member.robustness.most <= member.robustness.high
        assert member.robustness.inputs == member.change.inputs == 8
        assert member.steadiness is not None and member.steadiness.most >= 0.0
        for value in (member.robustness, member.steadiness, member.change):
            assert value.beyond_low is not None and value.beyond_high is not None
            assert value.beyond_low <= value.least <= value.most <= value.beyond_high
        if member.recipe.kind == "bayesian":
            assert member.converged is not None and member.proven_robustness is None
            continue
        proven, unbroken = member.proven_robustness, member.unbroken
        assert proven is not None and unbroken is not None and member.proven_change is not None
        assert proven.low <= proven.least <= proven.most <= unbroken <= 1
        assert member.gap == pytest.approx(unbroken - proven.least)


def test_steadiness_is_the_share_of_changes_below_gamma(finished: Path) -> None:
    """R(gamma) against the changes that were kept, for each network."""
    study = Study.read(finished)
    for member in read_members(finished):
        lines = finished / "networks" / member.recipe.name / "change-attack" / "changes.jsonl"
        changes = [json.loads(line)["lower"] for line in lines.read_text().splitlines()[1:]]
        expected = sum(change < study.gamma for change in changes) / len(changes)
        assert member.steadiness is not None and member.change is not None
        assert member.steadiness.most == pytest.approx(expected)
        assert member.change.least == pytest.approx(sum(changes) / len(changes))
        # Markov's inequality, whatever the changes are
        assert 1 - member.steadiness.most <= member.change.least / study.gamma + 1e-9
        proven = member.proven_steadiness
        assert proven is None or proven.least <= proven.most


def test_a_record_of_before_r_gamma_is_read(finished: Path, tmp_path: Path) -> None:
    recipe = Study.read(finished).recipes[0]
    told = json.loads((finished / "networks" / recipe.name / "result.json").read_text())
    del told["steadiness"], told["proven_steadiness"], told["recipe"]["blocks"]
    for value in ("robustness", "change"):
        del told[value]["beyond_low"], told[value]["beyond_high"]
    (tmp_path / "networks" / recipe.name).mkdir(parents=True)
    (tmp_path / "networks" / recipe.name / "result.json").write_text(json.dumps(told))
    member = read_member(tmp_path, recipe)
    assert member is not None and member.steadiness is None
    assert member.robustness is not None and member.robustness.beyond_low is None


def test_what_is_made_is_not_made_again(finished: Path) -> None:
    study = Study.read(finished)
    place = finished / "networks" / study.recipes[0].name
    before = {path: path.stat().st_mtime_ns for path in place.glob("*.onnx")}
    told = (place / "result.json").read_text()
    (place / "result.json").unlink()  # as if killed before the last step
    StudyWorker(study, finished)(0)
    again = json.loads((place / "result.json").read_text())
    assert {**again, "seconds": 0} == {**json.loads(told), "seconds": 0}
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_show_reads_a_finished_study(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures, table = tmp_path / "figures", tmp_path / "networks.csv"
    code = main(["study", "show", str(finished), "--csv", str(table), "--figures", str(figures)])
    assert code == 0
    shown = capsys.readouterr().out
    assert "4 of 4 networks are finished" in shown and "Bayesian networks converged" in shown
    assert len(table.read_text().splitlines()) == 5
    assert (figures / "tradeoff.png").stat().st_size > 0
    assert (figures / "proof-gaps.png").exists()
    assert main(["study", "show", str(finished), "--json"]) == 0
    accuracies = [row["accuracy"] for row in json.loads(capsys.readouterr().out)["networks"]]
    assert len(accuracies) == 4
    best = ["study", "show", str(finished), "--json", "--least-accuracy", str(max(accuracies))]
    assert main(best) == 0
    kept = json.loads(capsys.readouterr().out)["networks"]
    assert len(kept) == accuracies.count(max(accuracies))
    assert main([*best[:-1], "1.5"]) == 2
    assert "between 0 and 1" in capsys.readouterr().err


def test_the_command_continues_and_refuses_another_study(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everything is there already, so no process starts."""
    described = tmp_path / "tiny.toml"
    described.write_text(
        'data = "digits:train[0:100]"\ntest = "digits:test[0:60]"\neps = 0.05\nsamples = 8\n'
        "proof_inputs = 4\nbayesian_images = 50\nwarmup = 4\nmembers = 4\n"
        '[[deterministic]]\nwidth = 5\nactivation = ["relu", "tanh"]\nrate = 0.5\nepochs = 1\n'
        "[[pruned]]\nwidth = 5\nrate = 0.5\nepochs = 1\n"
        "[[bayesian]]\nwidth = 4\nsamples = 6\nsteps = 3\n"
    )
    asked = ["study", "tradeoff", "--description", str(described), "--out", str(finished)]
    assert main(asked) == 0
    assert "4 of 4 networks are finished" in capsys.readouterr().out
    assert main([*asked, "--eps", "0.1"]) == 2
    assert "holds another study (other eps)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--grid", "magic depth=1"], "must begin with one of"),
        (["--grid", "deterministic depth"], "name=value"),
        (["--preset", "none"], "preset 'none' is not one of"),
        (["--preset", "mnist-small", "--description", "x.toml"], "a study is one of them"),
        (["--preset", "mnist-small", "--measure", "Q"], "measure 'Q' is not one of"),
        (["--preset", "mnist-small", "--format", "gif"], "format 'gif' is not one of"),
        (["--preset", "mnist-small", "--jobs", "0"], "jobs 0 must be at least 1"),
        ([], "a study needs"),
    ],
)
def test_bad_flags_get_a_sentence(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "tradeoff", *flags, "--out", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr().err
    assert said in shown and shown.count("\n") == 1


def test_presets_can_be_copied() -> None:
    tables = preset_tables("mnist-small")
    assert tables == preset_tables("mnist-small") is not tables


def test_data_that_does_not_suffice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--data", "digits:train[0:100]", "--test", "digits:test[0:60]", "--eps", "0.05"]
    asked = ["study", "tradeoff", *flags, "--out", str(tmp_path)]
    assert main([*asked, "--grid", "bayesian width=4"]) == 2
    assert "bayesian_images 500 are more than the 100" in capsys.readouterr().err
    assert main([*asked, "--grid", "deterministic width=4", "--proof-inputs", "61"]) == 2
    assert "proof_inputs 61 are more than the 60" in capsys.readouterr().err
    assert not (tmp_path / "study.json").exists()


@pytest.mark.slow
def test_a_study_that_is_killed_goes_on(tmp_path: Path) -> None:
    flags = ["--data", "digits:train[0:100]", "--test", "digits:test[0:60]", "--eps", "0.05"]
    flags += ["--samples", "8", "--proof-inputs", "2", "--jobs", "2", "--out", str(tmp_path)]
    flags += ["--grid", "deterministic width=4,5,6,7,8,9 rate=0.5 epochs=1"]
    command = [sys.executable, "-m", "radii", "study", "tradeoff", *flags]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not (done := list(tmp_path.glob("networks/*/result.json"))):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in done}
    assert subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0
    assert len(read_members(tmp_path)) == 6
    assert {path: path.stat().st_mtime_ns for path in before} == before
