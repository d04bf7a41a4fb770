"""What a directory keeps of an ensemble: after a kill, and from an earlier version."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from planar_classifiers import half_plane, point

from radii.cli import main
from radii.datasets import from_arrays
from radii.ensembles import EnsembleResults, EnsembleStudy, read_ensemble_results
from radii.errors import StoreError
from radii.problem import FLOAT, REAL, Arithmetic, Grid, Verdict
from radii.store import ENSEMBLE_FILE

LEFT, RIGHT = half_plane([-1.0, 0.0], 1.0), half_plane([1.0, 0.0], 1.0)


def questions(known: EnsembleResults) -> list[tuple[int, int, float]]:
    """Whom verifiers were asked about, point by point, in the order of the answers."""
    return [
        (place, finding.classifiers, finding.eps)
        for place, facts in enumerate(known.facts)
        for finding in facts.findings
        if finding.verifier not in ("crown", "replay")
    ]


def test_what_is_kept_is_what_was_found(tmp_path: Path) -> None:
    with EnsembleStudy.open([LEFT, RIGHT], [point([0, 0], index=7)], out=tmp_path) as study:
        found = study.value(2.0)
        inside = study.known
    known = read_ensemble_results(tmp_path)
    for each in (inside, known):
        (play,) = each.plays
        assert each.attained(play) == found.lower
        assert each.conceded(play) == found.upper
        assert play.defence == found.limit.defence
        assert sum(attempt.probability for attempt in play.attack) == 1
        assert {row[0].fooled for row in each.perturbed(play)} == {0b01, 0b10}
        assert each.points[0].index == 7
        assert each.place == tmp_path


def test_a_claim_that_an_input_refutes_does_not_count(tmp_path: Path) -> None:
    """Somebody claims that LEFT cannot be fooled within 2; a replayed input does it."""
    with EnsembleStudy.open([LEFT, RIGHT], [point([0, 0])], out=tmp_path) as study:
        study.value(2.0)
    with sqlite3.connect(tmp_path / ENSEMBLE_FILE) as database:
        database.execute(
            "INSERT INTO findings (point, classifiers, eps, verdict, verifier, version, seconds,"
            " margin, message) VALUES (0, '[0]', 2.0, 'ROBUST', 'liar', '1', 0, 0, '')"
        )
    database.close()
    known = read_ensemble_results(tmp_path)
    (play,) = known.plays
    assert known.attained(play) == known.conceded(play)
    assert [claim.verifier for claim in known.facts[0].disagreements] == ["liar"]


def test_what_nobody_answered_is_asked_again(tmp_path: Path) -> None:
    """The answers are turned into those of workers that were killed; limits are answers."""
    for verdict, is_asked in (("ERROR", True), ("TIMEOUT", False)):
        out = tmp_path / verdict
        both = [point([0, 0])]
        with EnsembleStudy.open([LEFT, RIGHT], both, out=out) as study:
            found = study.value(2.0)
        database = sqlite3.connect(out / ENSEMBLE_FILE)
        with database:
            lost = database.execute(
                "UPDATE findings SET verdict = ?, seconds = 1e9 WHERE verdict = 'ROBUST'", [verdict]
            ).rowcount
        database.close()
        assert lost
        before = questions(read_ensemble_results(out))
        with EnsembleStudy.open([LEFT, RIGHT], both, out=out) as study:
            again = study.value(2.0)
        assert (len(questions(read_ensemble_results(out))) > len(before)) is is_asked
        assert (again.upper == found.upper) is is_asked


@pytest.mark.parametrize(
    "damage",
    [
        'UPDATE plays SET defence = \'["0", "0"]\'',
        "UPDATE plays SET defence = '[\"1\"]'",
        'UPDATE plays SET defence = \'["1/0", "1"]\'',
        "UPDATE plays SET attack = '[[\"2\", [[0]]]]'",
        "UPDATE plays SET attack = '[[\"1\", [[0], [1]]]]'",
        "UPDATE plays SET attack = '[]'",
        "UPDATE foolings SET distance = 'near'",
        "UPDATE foolings SET fooled = '[7]'",
        "DELETE FROM points",
        "DELETE FROM networks",
    ],
)
def test_damage_is_never_a_value(tmp_path: Path, damage: str) -> None:
    with EnsembleStudy.open([LEFT, RIGHT], [point([0, 0])], out=tmp_path) as study:
        study.value(2.0)
    with sqlite3.connect(tmp_path / ENSEMBLE_FILE) as database:
        database.execute(damage)
    database.close()
    with pytest.raises(StoreError, match="damaged"):
        read_ensemble_results(tmp_path)
    if "1/0" in damage or "near" in damage:
        with pytest.raises(StoreError, match="damaged"):
            EnsembleStudy.open([LEFT, RIGHT], [point([0, 0])], out=tmp_path)


def test_a_file_of_version_1_is_carried_on(tmp_path: Path) -> None:
    with EnsembleStudy.open([LEFT, RIGHT], [point([0, 0])], out=tmp_path) as study:
        found = study.value(2.0)
    make_older(tmp_path, 1)
    with pytest.raises(StoreError, match="another version"):
        read_ensemble_results(tmp_path)
    with EnsembleStudy.open([LEFT, RIGHT], [point([0, 0])], out=tmp_path, arithmetic=REAL) as study:
        again = study.value(2.0)
    assert (again.lower, again.upper, again.questions) == (found.lower, found.upper, 0)
    assert len(read_ensemble_results(tmp_path).plays) == 1


def make_older(directory: Path, version: int) -> None:
    """Turn a file into one as that version wrote it."""
    with sqlite3.connect(directory / ENSEMBLE_FILE) as database:
        for name in ("networks", "points", "plays") if version == 1 else ():
            database.execute(f"DROP TABLE {name}")
        database.execute("ALTER TABLE findings DROP COLUMN arithmetic")
        database.execute("DELETE FROM meta WHERE name = 'arithmetic'")
        changed = "UPDATE meta SET value = ? WHERE name = 'version of this file'"
        database.execute(changed, (str(version),))
    database.close()


def proven_in(known: EnsembleResults) -> set[tuple[str, Arithmetic | None]]:
    return {
        (finding.verifier, finding.arithmetic)
        for facts in known.facts
        for finding in facts.findings
        if finding.verdict is Verdict.ROBUST
    }


@pytest.mark.parametrize("arithmetic", [FLOAT, REAL])
def test_findings_keep_their_arithmetic(tmp_path: Path, arithmetic: Arithmetic) -> None:
    networks, points = [LEFT, RIGHT], [point([0, 0])]
    with EnsembleStudy.open(networks, points, out=tmp_path, arithmetic=arithmetic) as study:
        study.value(0.5)  # bounds prove both
        study.value(2.0)  # that one input fools both is for the verifier
        assert study.arithmetic == arithmetic
    known = read_ensemble_results(tmp_path)
    assert known.arithmetic == arithmetic
    assert proven_in(known) == {("crown", arithmetic), ("native", arithmetic)}


def test_a_replayed_point_proves_nothing_of_arithmetic(tmp_path: Path) -> None:
    with EnsembleStudy.open([LEFT, RIGHT], [point([0, 0])], out=tmp_path) as study:
        study.value(0.0)
    assert proven_in(read_ensemble_results(tmp_path)) == {("replay", None)}


def test_facts_from_before_arithmetic_are_real(tmp_path: Path) -> None:
    networks, points = [LEFT, RIGHT], [point([0, 0])]
    with EnsembleStudy.open(networks, points, out=tmp_path) as study:
        study.value(0.0)
        found = study.value(2.0)
    make_older(tmp_path, 2)
    before = (tmp_path / ENSEMBLE_FILE).read_bytes()
    known = read_ensemble_results(tmp_path)
    assert (tmp_path / ENSEMBLE_FILE).read_bytes() == before, "reading must not change the file"
    assert known.arithmetic == REAL
    assert proven_in(known) == {("native", REAL), ("replay", None)}
    with pytest.raises(StoreError, match="another arithmetic; go on with --arithmetic real"):
        EnsembleStudy.open(networks, points, out=tmp_path)
    with EnsembleStudy.open(networks, points, out=tmp_path, arithmetic=REAL) as study:
        again = study.value(2.0)
    assert (again.lower, again.upper, again.questions) == (found.lower, found.upper, 0)


KILLED_AFTER = 3
KILLED = f"""
import os, signal, sys
from radii.cli import main
from radii.ensembles._records import Records

keep, asked = Records.keep_finding, []

def keep_and_die(self, place, finding):
    keep(self, place, finding)
    if finding.verifier not in ("crown", "replay"):
        asked.append(finding)
    if len(asked) == {KILLED_AFTER}:
        os.kill(os.getpid(), signal.SIGKILL)

Records.keep_finding = keep_and_die
sys.exit(main(sys.argv[1:]))
"""
"""The command itself; the kernel ends it, without warning, when it has kept some answers."""


@pytest.mark.slow
def test_killed_in_the_middle_of_a_curve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In L1 within 1.2 one of four classifiers at a time: all pairs have to be asked about."""
    networks = [half_plane(np.eye(4)[place].tolist(), 0.9) for place in range(4)]
    files = [tmp_path / f"{place}.onnx" for place in range(4)]
    for path, network in zip(files, networks, strict=True):
        path.write_bytes(network.onnx_bytes)
    inputs, labels = np.zeros((1, 4), np.float32), np.zeros(1, int)
    np.savez(tmp_path / "points.npz", images=inputs, labels=labels)
    with EnsembleStudy.open(
        networks, from_arrays(inputs, labels), norm="l1", verifier="milp"
    ) as study:
        curve = study.curve(Grid.parse("0.8:1.3:0.2").values)
        expected = [(each.eps, float(each.lower), float(each.upper)) for each in curve]
        assert [bracket[1:] for bracket in expected] == [(0, 0), (0.25, 0.25), (0.25, 0.25)]
    asked = [
        *("ensemble", "curve", "--networks", *map(str, files)),
        *("--data", str(tmp_path / "points.npz"), "--domain=-4:4", "--norm", "l1"),
        *("--verifier", "milp", "--grid", "0.8:1.3:0.2", "--jobs", "1", "--json"),
    ]
    kept = ["--out", str(tmp_path / "kept")]
    command = [sys.executable, "-c", KILLED, *asked, *kept]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    before = questions(read_ensemble_results(tmp_path / "kept"))
    assert len(before) == KILLED_AFTER
    assert main([*asked, *kept]) == 0
    told = json.loads(capsys.readouterr().out)["curve"]
    assert [(each["eps"], each["lower"], each["upper"]) for each in told] == expected
    after = questions(read_ensemble_results(tmp_path / "kept"))
    assert set(before) < set(after), "there was more to ask"
    assert len(after) == len(set(after)), "nothing was asked twice"
