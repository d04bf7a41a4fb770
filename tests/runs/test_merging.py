"""Shards of a run, measured apart and joined: as if it had been one run, and nothing twice."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from conftest import dense_model, make_older, write_linear
from radii.cli import main as radii
from radii.errors import ExperimentError, StoreError
from radii.problem import Shard
from radii.runs import Experiment, Retry, check_store, continued, merge, options_of, prepare
from radii.runs._selection import of_shard
from radii.statistics import Distribution, read_store
from radii.store import STORE_FILE, Store
from radii.store._merging import COPIED, DERIVED, MERGED

INPUTS = 7


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two networks of two inputs and three classes, and seven points."""
    write_linear(tmp_path)
    rng = np.random.default_rng(0)
    onnx.save(dense_model((rng.normal(size=(3, 2)), np.zeros(3))), tmp_path / "three.onnx")
    monkeypatch.chdir(tmp_path)
    write_points(rng.uniform(0.1, 0.9, (INPUTS, 2)))
    return tmp_path


def write_points(points: np.ndarray[Any, Any], name: str = "points.npz", shift: int = 0) -> None:
    labels = ((points[:, 0] < points[:, 1]) + shift) % 2
    np.savez(name, images=points.astype(np.float32), labels=labels.astype(int))


def experiment(**options: Any) -> Experiment:
    described = {"networks": ["linear.onnx", "three.onnx"], "data": "points.npz", "domain": "0:1"}
    return Experiment.from_options({"grid": "0.02:0.4:0.02", **described, **options})


def measure(out: str, **options: Any) -> Path:
    plan = prepare(experiment(**options))
    with Store.create_or_open(Path(out)) as store:
        plan.run(store, grows=True)
    return Path(out)


def shards(count: int, **options: Any) -> list[Path]:
    return [
        measure(f"{k}-of-{count}", shard=f"{k}/{count}", **options) for k in range(1, count + 1)
    ]


def asked(out: Path | str, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(Path(out) / STORE_FILE) as db:
        rows = db.execute(query).fetchall()
    db.close()
    return rows


def content(out: Path | str) -> dict[str, list[Any]]:
    """All that is stored, but for times and the numbers of answers."""
    (described,) = asked(out, "SELECT value FROM meta")
    return {
        "described": [json.loads(described[0])],
        "steps": [
            (number, json.loads(text), summary, ended is None)
            for number, text, summary, ended in asked(
                out, "SELECT id, described, summary, ended_at FROM steps ORDER BY id"
            )
        ],
        "step_instances": asked(out, "SELECT * FROM step_instances ORDER BY step, instance"),
        "instances": asked(out, "SELECT * FROM instances ORDER BY position"),
        "inputs": asked(out, "SELECT * FROM inputs ORDER BY input_index"),
        "brackets": asked(out, "SELECT * FROM brackets ORDER BY instance"),
        "answers": asked(
            out,
            "SELECT q.instance, kind, eps, verdict, ending, proof_eps, certificate, w.input"
            " FROM queries q LEFT JOIN witnesses w ON w.query = q.id"
            " ORDER BY q.instance, kind, eps",
        ),
        "certificates": asked(out, "SELECT hash FROM certificates ORDER BY hash"),
    }


# --- which instances a shard has


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("property", ["one-to-any", "one-to-one"])
def test_shards_divide_the_instances_evenly_with_all_targets_of_an_input(
    desk: Path,
    count: int,
    property: str,  # noqa: A002
) -> None:
    whole = prepare(experiment(property=property)).instances
    places = [of_shard(whole, Shard((k,), count)) for k in range(1, count + 1)]
    assert sorted(place for own in places for place in own) == list(range(len(whole)))
    owners: dict[tuple[str, int], int] = {}
    for number, own in enumerate(places):
        assert own == sorted(own)
        for place in own:
            pair = whole[place].network, whole[place].index
            assert owners.setdefault(pair, number) == number
    for network in {one.network for one in whole}:
        held = [
            sum(pair[0] == network and k == n for pair, k in owners.items()) for n in range(count)
        ]
        assert max(held) - min(held) <= 1


def test_a_plan_of_a_shard_has_its_instances_where_the_whole_has_them(desk: Path) -> None:
    whole, part = prepare(experiment()), prepare(experiment(shard="2-3/3"))
    assert [whole.instances[p].key for p in part.positions] == [one.key for one in part.instances]
    assert set(part.inputs) == {one.index for one in part.instances}
    assert prepare(experiment(shard="1/1")).identity() == whole.identity()


def test_a_shard_without_inputs_is_refused(desk: Path) -> None:
    with pytest.raises(Exception, match=r"shard 8/9 has no inputs: there are 7; use fewer shards"):
        prepare(experiment(networks=["linear.onnx"], shard="8/9"))


# --- joined


def test_all_shards_are_as_one_run_in_whatever_order_they_are_joined(desk: Path) -> None:
    whole = content(measure("whole"))
    one, two, three = shards(3)
    merged = merge([three, one, two], Path("merged"))
    assert (merged.excerpts, merged.unfinished) == ((), ())
    assert content("merged") == whole
    for part in ([one], [two, one], [three]):
        merge(part, Path("later"))
    assert content("later") == whole
    with Store.open(Path("merged")) as store:
        assert [one.key for one in prepare(experiment()).instances] == store.instance_keys()


def test_joining_again_adds_nothing(desk: Path) -> None:
    parts = shards(2)
    first = merge(parts, Path("merged"))
    before = [*map(str, asked("merged", "SELECT * FROM queries")), content("merged")]
    for again in (parts, parts[:1], [*parts, *parts], [Path("merged-copy"), *parts]):
        if not Path("merged-copy").exists():
            shutil.copytree("merged", "merged-copy")
        count = merge(again, Path("merged")).count
        assert (count.new_instances, count.new_answers) == (0, 0)
        assert (count.instances, count.answers) == (first.count.instances, first.count.answers)
    assert [*map(str, asked("merged", "SELECT * FROM queries")), content("merged")] == before


def test_a_run_goes_on_from_joined_shards(
    desk: Path, capsys: pytest.CaptureFixture[str], without_workers: None
) -> None:
    """What was measured is not asked again, and what is missing is measured."""
    one, two, three = shards(3)
    merge([one, three], Path("merged"))
    before = asked("merged", "SELECT id FROM queries")
    command = ["run", "--network", "linear.onnx", "--network", "three.onnx", "--data"]
    command += ["points.npz", "--domain", "0:1", "--grid", "0.02:0.4:0.02", "--out", "merged"]
    assert radii(command) == 0
    assert capsys.readouterr().err == "radii: merged grows: shard was 1,3/3, is not given\n"
    missing = len(asked(two, "SELECT key FROM instances"))
    new = asked("merged", f"SELECT DISTINCT instance FROM queries WHERE id > {len(before)}")
    assert len(new) == missing
    assert read_store("merged").excerpts == ()
    whole = measure("whole")
    assert content("merged")["brackets"] == content(whole)["brackets"]
    assert content("merged")["instances"] == content(whole)["instances"]
    merge([two], Path("merged"))
    assert radii(command) == 0 and "grows" not in capsys.readouterr().err


def test_joined_shards_grow_and_are_checked_like_one_run(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merge(shards(2), Path("merged"))
    measure("whole")
    for out in ("merged", "whole"):
        typed = {"grid": options_of(Experiment)["grid"].read("0.02:0.4:0.01")}
        with Store.create_or_open(Path(out)) as store:
            continued(Path(out), typed).run(store, grows=True)
    assert content("merged")["brackets"] == content("whole")["brackets"]
    said = {}
    for out in ("merged", "whole"):
        assert radii(["check", out, "--json"]) == 0
        said[out] = json.loads(capsys.readouterr().out)
        said[out] = {name: said[out][name] for name in ("proofs", "checked", "failed", "replayed")}
        assert radii(["gate", out, "--require", "robust_accuracy(0.1) >= 0"]) == 0
        said[out]["gate"] = capsys.readouterr().out
    assert said["merged"] == said["whole"]
    assert said["merged"]["proofs"] > 0


def test_checks_come_along_and_the_latest_counts(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = shards(2)
    merge([one, two], Path("merged"))
    assert radii(["check", str(one)]) == 0
    merge([one, two], Path("merged"))
    merge([two, one], Path("fresh"))
    checks = asked(one, "SELECT * FROM checks ORDER BY instance")
    assert checks and checks == asked("fresh", "SELECT * FROM checks ORDER BY instance")
    assert checks == asked("merged", "SELECT * FROM checks ORDER BY instance")
    assert radii(["check", "merged"]) == 0
    later = asked("merged", "SELECT * FROM checks ORDER BY instance")
    merge([one], Path("merged"))
    assert asked("merged", "SELECT * FROM checks ORDER BY instance") == later
    capsys.readouterr()


@pytest.mark.parametrize("property", ["one-to-any", "one-to-one", "one-to-one:1"])
def test_inputs_that_a_shard_has_lost_are_found(desk: Path, property: str) -> None:  # noqa: A002
    """Each shard by itself, some together, and all: nobody is asked for the inputs of others."""
    options = {
        "property": property,
        "networks": ["three.onnx", "linear.onnx"][: 1 + (":" in property)],
    }
    parts = shards(3, **options)
    merge(parts[:2], Path("some"))
    merge(parts, Path("all"))
    for place in (*parts, Path("some"), Path("all")):
        assert not check_store(place, jobs=0).failed
        (key, index) = asked(place, "SELECT key, input_index FROM instances ORDER BY position")[0]
        with sqlite3.connect(place / STORE_FILE) as db:
            keys = db.execute(
                "SELECT key FROM instances WHERE input_index = ?", (index,)
            ).fetchall()
        db.close()
        with Store.create_or_open(place) as store, store._db:
            store._drop_inputs([index])
        assert keys and (key,) in keys
        (failure,) = check_store(place, jobs=0).failed
        assert f"input {index} of points.npz is not there" in str(failure)


def test_shards_that_overlap_count_no_input_twice(desk: Path) -> None:
    """Parts of different sizes have inputs in common; together they are seldom the whole."""
    halves, thirds = shards(2), shards(3)
    merged = merge([halves[0], thirds[1]], Path("merged"))
    assert [str(each.shard) for each in merged.excerpts] == ["1/2", "2/3"]
    held = {
        key
        for part in (halves[0], thirds[1])
        for (key,) in asked(part, "SELECT key FROM instances")
    }
    assert {key for (key,) in asked("merged", "SELECT key FROM instances")} == held
    assert len(Distribution.from_store("merged")) == len(held) == merged.count.instances
    assert merge([halves[1]], Path("merged")).excerpts == ()
    whole = measure("whole")
    assert content("merged")["brackets"] == content(whole)["brackets"]
    assert content("merged")["instances"] == content(whole)["instances"]


def test_runs_on_other_inputs_or_in_another_norm_are_joined_like_growth(desk: Path) -> None:
    """Not only shards: what a directory may grow by may come from another one."""
    first = measure("first", data="points.npz[0:3]")
    second = measure("second", data="points.npz[2:7]")
    other = measure("other", norm="l1")
    assert merge([first, second, other], Path("merged")).excerpts == ()
    from radii.statistics import read_parts

    linf, l1 = read_parts("merged")
    assert (len(linf), len(l1)) == (2 * INPUTS, 2 * INPUTS)
    whole = {(m.network, m.input): m.bracket for m in read_store(measure("whole")).measurements}
    names = {m.network.partition(" ")[0] for m in linf.measurements}
    assert names == {"linear.onnx", "three.onnx"}
    for m in linf.measurements:
        assert m.bracket == whole[m.network.partition(" ")[0], m.input]


def test_older_stores_are_joined(desk: Path) -> None:
    whole = content(measure("whole"))
    one, two = shards(2)
    make_older(one, 6)
    merge([one, two], Path("merged"))
    assert content("merged")["answers"] == whole["answers"]
    assert asked(one, "PRAGMA user_version") == [(6,)], "what is joined is only read"


def test_a_shard_whose_run_has_not_ended_is_named_and_joined_again(desk: Path) -> None:
    one, two = shards(2)
    whole = content(measure("whole"))
    with Store.create_or_open(Path("begun")) as store:
        prepare(experiment(shard="2/2")).begin(store)
    merged = merge([one, Path("begun")], Path("merged"))
    assert (merged.excerpts, merged.unfinished) == ((), (Path("begun"),))
    assert content("merged")["steps"][0][-1], "the step has not ended"
    measure("begun", shard="2/2")
    assert merge([one, Path("begun")], Path("merged")).unfinished == ()
    assert content("merged") == whole
    assert content(two)["answers"] == content("begun")["answers"]


def test_steps_that_were_repeated_stay_several(desk: Path) -> None:
    """A retry of the same kind twice is two steps, also after joining twice."""
    parts = shards(2)
    for part, number in zip(parts, (1, 2), strict=True):
        for _ in range(2):
            with Store.create_or_open(part) as store:
                plan = prepare(experiment(shard=f"{number}/2"))
                plan.run(store, grows=True, retry=Retry.MISSING)
    for _ in range(2):
        merge(parts, Path("merged"))
        with Store.open(Path("merged")) as store:
            assert [step.described.get("retry") for step in store.steps()] == [
                None,
                *["missing"] * 2,
            ]
            assert len(store.parts()) == 1


# --- what is said of a part


def test_show_and_gate_say_that_a_shard_is_a_part(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, _two, three = shards(3)
    merge([one, three], Path("merged"))
    for place, which in ((one, "shard 1"), (Path("merged"), "shards 1,3")):
        held = len(asked(place, "SELECT key FROM instances"))
        words = f"{held} brackets are {which} of 3 of a sample of 14, and not all of it"
        assert radii(["show", str(place)]) == 0
        told = capsys.readouterr()
        assert words in told.err
        assert f"a part only: {which} of 3" in " ".join(told.out.split())
        assert radii(["show", str(place), "--json"]) == 0
        networks = json.loads(capsys.readouterr().out)["networks"]
        assert {network["shard"] for network in networks} == {which.split()[1] + "/3"}
        assert radii(["gate", str(place), "--require", "robust_accuracy(0.1) >= 0"]) == 0
        assert words in capsys.readouterr().err
    whole = measure("whole")
    assert radii(["show", str(whole)]) == 0
    assert "part" not in capsys.readouterr().err


def test_a_shard_goes_on_from_its_directory_alone_and_may_grow_into_the_whole(desk: Path) -> None:
    (one, _) = shards(2)
    before = asked(one, "SELECT id FROM queries")
    with Store.create_or_open(one) as store:
        continued(one, {}).run(store, grows=True)
    assert asked(one, "SELECT id FROM queries") == before
    with Store.create_or_open(one) as store:
        continued(one, {"shard": Shard((1,), 1)}).run(store, grows=True)
    assert read_store(one).excerpts == ()
    assert content(one)["instances"] == content(measure("whole"))["instances"]


def test_a_directory_keeps_to_its_shard(desk: Path) -> None:
    """A job that repeats a few tasks of an array may count its shards anew."""
    one = measure("one", shard="1/3")
    for shard, held in (("1/2", "shard 1/3"), ("2/3", "shard 1/3")):
        with pytest.raises(
            ExperimentError, match=f"one: it holds {held}, and shard {shard} belongs"
        ):
            measure("one", shard=shard)
    measure("whole")
    with pytest.raises(ExperimentError, match="it holds all shards, and shard 1/3 belongs"):
        measure("whole", shard="1/3")
    assert measure("one", shard="1/3", grid="0.02:0.4:0.01") == one


def test_a_confidence_takes_a_shard_for_inputs_in_order(desk: Path) -> None:
    """It is no random part of a random sample: it was dealt out in the order of that."""
    drawn = {"data": "points.npz[random 6 seed 0]"}
    parts = shards(2, **drawn)
    assert set(read_store(parts[0]).columns["draw"]) == {"in order"}
    merge(parts, Path("merged"))
    assert set(read_store("merged").columns["draw"]) == {"random"}


# --- what cannot be joined


def _other_network() -> None:
    rng = np.random.default_rng(9)
    onnx.save(dense_model((rng.normal(size=(3, 2)), np.zeros(3))), "three.onnx")


def _other_inputs() -> None:
    write_points(np.random.default_rng(1).uniform(0.1, 0.9, (INPUTS, 2)))


def _other_labels() -> None:
    write_points(np.random.default_rng(0).uniform(0.1, 0.9, (INPUTS, 2)), shift=1)


def _nothing() -> None:
    return None


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (_other_network, {}, "the network three.onnx has changed; give"),
        (_other_inputs, {}, r"input \d of points.npz.* is not the one that was measured"),
        (_nothing, {"domain": "-1:1"}, "the domain of .*onnx was 0:1, is -1:1"),
        (_nothing, {"data": "points.npz[0:5]"}, "they are shards of different samples"),
        (_nothing, {"scale": "1,2"}, "its features, or their scales, are others"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(
    desk: Path, change: Callable[[], None], options: dict[str, Any], words: str
) -> None:
    one = measure("one", shard="1/2")
    rng = np.random.default_rng(0)
    rng.normal(size=(3, 2))
    change()
    two = measure("two", shard="2/2", **options)
    with pytest.raises(ExperimentError, match=f"^two cannot be joined with one: {words}"):
        merge([one, two], Path("merged"))
    assert not Path("merged").exists()
    merge([one], Path("merged"))
    before = content("merged")
    with pytest.raises(ExperimentError, match=f"^two cannot be joined with merged: {words}"):
        merge([two], Path("merged"))
    assert content("merged") == before


def test_another_label_is_refused(desk: Path) -> None:
    """The same input under two labels would count twice."""
    one = measure("one", data="points.npz[0:4]")
    _relabel()
    two = measure("two", data="points.npz[2:7]")
    with pytest.raises(ExperimentError, match=r"the label of input 2 of .* was ., is ."):
        merge([one, two], Path("merged"))


def _relabel() -> None:
    with np.load("points.npz") as held:
        images, labels = held["images"], held["labels"]
    np.savez("points.npz", images=images, labels=1 - labels)


def test_what_is_no_store_or_is_damaged_is_refused(desk: Path) -> None:
    one, two = shards(2)
    with pytest.raises(StoreError, match="no such directory"):
        merge([one, Path("nowhere")], Path("merged"))
    with pytest.raises(ExperimentError, match="is both merged and --out"):
        merge([one, two], one)
    with sqlite3.connect(two / STORE_FILE) as db:
        db.execute("UPDATE brackets SET lower = lower + 0.01")
    db.close()
    with pytest.raises(StoreError, match="2-of-2: the store is damaged"):
        merge([one, two], Path("merged"))
    assert not Path("merged").exists()


def test_a_missing_out_is_asked_for(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert radii(["merge", "a", "b"]) == 2
    assert "--out is missing" in capsys.readouterr().err


# --- killed, and side by side


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from radii.runs import merge
from radii.store import Store

parts, whole = [Path("1-of-2"), Path("2-of-2")], []
statements, dies_at = 0, 0

def seen(_):
    global statements
    statements += 1
    if statements == dies_at:
        os.kill(os.getpid(), signal.SIGKILL)

opened = Store.create_or_open.__func__
def traced(cls, directory):
    store = opened(cls, directory)
    store._db.set_trace_callback(seen)
    return store
Store.create_or_open = classmethod(traced)

shutil.copytree("before", "probe")
merge(parts, Path("probe"))
total, statements = statements, 0
for dies_at in sorted({1, 2, 3, total, *range(5, total, max(1, total // 20))}):
    shutil.copytree("before", f"killed-{dies_at}")
    pid = os.fork()
    if pid == 0:
        merge(parts, Path(f"killed-{dies_at}"))
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL, dies_at
    print(dies_at)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_a_merge_that_is_killed_has_not_happened_and_may_be_repeated(desk: Path) -> None:
    """At one of twenty statements of its transaction, over what an earlier merge has left."""
    parts = shards(2)
    merge(parts[:1], Path("before"))
    before = content("before")
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    numbers = done.stdout.split()
    assert len(numbers) > 12
    complete = content("probe")
    for number in numbers:
        killed = Path(f"killed-{number}")
        assert content(killed) in (before, complete)
        if number in numbers[::6]:
            merge(parts, killed)
            assert content(killed) == complete


@pytest.mark.slow  # four processes that load torch
def test_two_tasks_of_the_array_in_the_docs_at_once(desk: Path) -> None:
    """The script itself, as a scheduler starts it: with the number of each task."""
    lines = ('networks = ["linear.onnx", "three.onnx"]', 'data = "points.npz"', 'domain = "0:1"')
    Path("experiment.toml").write_text("\n".join([*lines, 'grid = "0.02:0.4:0.02"', "timeout = 9"]))
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    (script,) = re.findall(r"```bash\n(#!/bin/bash\n[^`]*--shard[^`]*)```", page)
    for written, here in (("shards=20 ", "shards=2 "), ("source .venv/bin/activate", "")):
        assert written in script
        script = script.replace(written, here)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    running = [
        subprocess.Popen(
            ["bash", "-c", script],
            env={**os.environ, "PATH": path, "SLURM_ARRAY_TASK_ID": str(number)},
        )
        for number in (1, 2)
    ]
    assert [process.wait() for process in running] == [0, 0]
    assert json.loads(Path("shards/2.jsonl").read_text().splitlines()[-1])["exit_code"] == 0
    assert radii(["merge", "shards/1", "shards/2", "--out", "merged"]) == 0
    assert content("merged")["brackets"] == content(measure("whole"))["brackets"]


def test_two_tasks_with_the_same_out_are_refused(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store.create_or_open(Path("out")):
        flags = ["--network", "linear.onnx", "--data", "points.npz", "--domain", "0:1"]
        assert radii(["run", *flags, "--shard", "2/2", "--out", "out", "--jobs", "1"]) == 2
    assert "another run is writing here" in capsys.readouterr().err


def test_every_table_of_a_store_is_joined(desk: Path) -> None:
    """A new table must be put into one of these groups, or its rows are lost by merging."""
    measure("whole")
    tables = {
        name for (name,) in asked("whole", "SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    assert tables == {*COPIED, *MERGED, *DERIVED}


def merged_output(places: Sequence[str]) -> list[str]:
    return ["merge", *places, "--out", "merged"]


def test_what_merge_says(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards(3)
    assert radii(merged_output(["1-of-3", "2-of-3"])) == 0
    told = capsys.readouterr()
    held = len(asked("merged", "SELECT key FROM instances"))
    assert f"merged: {held} instances ({held} of them new), " in told.out
    assert told.err.count("\n") == 1
    assert "merged: these are shards 1-2 of 3 of a sample of 14; merge" in told.err
    assert radii([*merged_output(["1-of-3", "2-of-3", "3-of-3"]), "--json"]) == 0
    told = capsys.readouterr()
    shown = json.loads(told.out)
    assert (shown["instances"], shown["new_instances"]) == (14, 14 - held)
    assert (shown["excerpts"], shown["unfinished"], told.err) == ([], [], "")
