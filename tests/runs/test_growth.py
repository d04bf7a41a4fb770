"""Results that grow: what joins, what is reused, what is refused, and that nothing is mixed."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from conftest import dense_model, make_older, write_linear, write_points
from radii import demo
from radii.datasets import Dataset, load_spec
from radii.errors import ExperimentError, StoreError
from radii.problem import (
    FLOAT,
    REAL,
    Arithmetic,
    Grid,
    Measurement,
    Norm,
    Proof,
    Result,
    Verdict,
    Witness,
)
from radii.processes import Ending
from radii.runs import (
    Experiment,
    Plan,
    Retry,
    StoreVerdict,
    check_store,
    continued,
    options_of,
    prepare,
)
from radii.runs._knowledge import Knowledge
from radii.statistics import Distribution, read_parts, read_store
from radii.store import STORE_FILE, PartChoice, StepAnswer, Store, StudyPart, StudyStep
from radii.strategy import Question, QuestionKind, Search, make

RADII = (0.1, 0.25, 0.0, 0.0)
"""Of the linear classifier at its points, by hand."""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_linear(tmp_path)
    write_points(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def experiment(
    data: str = "points.npz", networks: Sequence[str] = ("linear.onnx",), **options: Any
) -> Experiment:
    chosen = {"grid": "0.01:0.5:0.02", "domain": "0:1", **options}
    return Experiment.from_options({"networks": list(networks), "data": data, **chosen})


def grow(described: Experiment, retry: Retry | None = None) -> list[Measurement]:
    with Store.create_or_open(Path("out")) as store:
        prepare(described).run(store, grows=True, retry=retry)
        return store.measurements()


def go_on(retry: Retry | None = None, **changes: Any) -> None:
    typed = {name: options_of(Experiment)[name].read(value) for name, value in changes.items()}
    plan = continued(Path("out"), typed)
    with Store.create_or_open(Path("out")) as store:
        plan.run(store, grows=True, retry=retry)


def asked() -> Counter[tuple[int, str]]:
    """How many questions of which kind each step asked."""
    with sqlite3.connect(Path("out") / STORE_FILE) as db:
        return Counter(db.execute("SELECT step, kind FROM queries WHERE kind != 'replay'"))


def summaries() -> list[str]:
    with Store.open(Path("out")) as store:
        return [step.summary for step in store.steps()]


def holds_the_radii(distribution: Distribution, factor: float = 1.0) -> None:
    for m in distribution:
        assert m.bracket.lower <= RADII[m.input] * factor + 1e-6
        assert m.bracket.upper >= RADII[m.input] * factor - 1e-6


def test_more_inputs_are_measured_and_nothing_again(desk: Path) -> None:
    grow(experiment("points.npz[0:1]"))
    before = asked()
    assert [m.input for m in grow(experiment())] == [0, 1, 2, 3]
    assert {step: count for (step, _), count in (asked() - before).items()}.keys() == {2}
    after = asked()
    grow(experiment())
    grow(experiment("points.npz[0:1]"))
    assert asked() == after
    assert summaries()[1] == "3 more inputs of points.npz"
    holds_the_radii(Distribution.from_store("out"))


def test_a_finer_grid_narrows_what_is_known(desk: Path) -> None:
    grow(experiment("points.npz[0:2]", grid="0.02:0.5:0.1"))
    coarse = Distribution.from_store("out")
    go_on(grid="0.01:0.5:0.01")
    fine = Distribution.from_store("out")
    assert (fine.lower >= coarse.lower).all() and (fine.upper <= coarse.upper).all()
    assert (fine.upper - fine.lower <= 0.01 + 1e-6).all()
    holds_the_radii(fine)
    count = asked()
    go_on(grid="0.05:0.5:0.05")  # coarser: every value is known
    assert asked() == count


def test_any_grid_grows_into_any_other(desk: Path) -> None:
    """A list, resumed in another spelling and from a file; then equal ratios, then even steps."""
    grow(experiment("points.npz[0:2]", grid="0.04,0.08,0.12,0.3"))
    first, count = Distribution.from_store("out"), asked()
    assert first.lower.tolist() == [0.08, 0.12]
    (desk / "eps.txt").write_text("0.04\n0.08\n0.12\n0.3\n")
    grow(experiment("points.npz[0:2]", grid=[0.04, 0.08, 0.12, 0.3]))
    grow(experiment("points.npz[0:2]", grid="eps.txt"))
    assert asked() == count and len(summaries()) == 1
    go_on(grid="log:0.01:0.3:12")
    assert summaries()[1] == "grid was 0.04,0.08,0.12,0.3, is log:0.01:0.3:12"
    second = Distribution.from_store("out")
    assert (second.lower >= first.lower).all() and (second.upper <= first.upper).all()
    go_on(grid="0.01:0.4:0.01")
    third = Distribution.from_store("out")
    assert (third.upper - third.lower <= 0.01 + 1e-6).all()
    holds_the_radii(third)
    count = asked()
    go_on(grid="0.05,0.1,0.25")  # every value is known
    assert asked() == count


def test_a_longer_grid_attacks_only_what_was_not_broken(desk: Path) -> None:
    grow(experiment("points.npz[0:2]", grid="0.01:0.2:0.01"))
    go_on(grid="0.01:0.4:0.01")
    found = Distribution.from_store("out")
    holds_the_radii(found)
    assert np.isfinite(found.upper).all()
    with sqlite3.connect(Path("out") / STORE_FILE) as db:
        rows = db.execute(
            "SELECT DISTINCT i.input_index FROM queries q JOIN instances i ON i.key = q.instance"
            " WHERE q.step = 2"
        ).fetchall()
    assert rows == [(1,)]


def test_searched_is_as_far_as_somebody_looked(desk: Path) -> None:
    grow(experiment("points.npz[0:2]", grid="0.01:0.06:0.01", search="attack-only"))
    with Store.create_or_open(Path("out")) as store:
        prepare(experiment("points.npz[0:2]", grid="0.01:0.4:0.01")).begin(store, grows=True)
    searched = Distribution.from_store("out").column("searched")
    assert searched.tolist() == pytest.approx([0.05, 0.05])  # the longer grid has only begun


def test_more_networks_from_the_directory_alone(
    desk: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(dense_model((2 * np.eye(2), np.zeros(2))), desk / "other.onnx")
    grow(experiment("points.npz[0:2]"))
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.move(desk / "out", elsewhere / "out")
    shutil.copy(desk / "other.onnx", elsewhere)
    monkeypatch.chdir(elsewhere)
    go_on(networks="other.onnx")
    found = Distribution.from_store("out")
    assert found.networks == ("linear.onnx", "other.onnx")
    holds_the_radii(found)
    assert summaries()[1] == "the network other.onnx is new"
    assert {step for step, _ in asked()} == {1, 2}


def test_inputs_are_added_to_those_that_are_there(desk: Path) -> None:
    grow(experiment("points.npz[0:1]"))
    go_on(data="points.npz[1:2]")
    go_on(data="points.npz[0:4]")
    assert sorted(m.input for m in Distribution.from_store("out")) == [0, 1, 2, 3]
    with Store.open(Path("out")) as store:
        first, second, third = (list(step.sources) for step in store.steps())
    assert first == ["points.npz[0:1]"]
    assert second == ["points.npz[0:1]", "points.npz[1:2]"]
    assert third == ["points.npz[0:4]"]


def test_another_norm_is_another_part(desk: Path) -> None:
    grow(experiment("points.npz[0:2]", grid="0.01:0.7:0.02"))
    go_on(norm="l1", data="points.npz[0:1]")
    with pytest.raises(StoreError, match=r"choose --norm linf or --norm l1$"):
        Distribution.from_store("out")
    holds_the_radii(Distribution.from_run(read_store("out", PartChoice(norm=Norm.LINF))))
    diamond = Distribution.from_run(read_store("out", PartChoice(norm=Norm.L1)))
    assert len(diamond) == 1
    holds_the_radii(diamond, factor=2)
    names = [name for run in read_parts("out") for name in run.networks]
    assert names == ["linear.onnx (linf)", "linear.onnx (l1)"]
    with pytest.raises(StoreError, match="no such brackets"):
        read_store("out", PartChoice(norm=Norm.L2))
    assert summaries()[1].startswith("norm l1 beside linf; 1 input of points.npz")


def test_another_property_is_another_part(desk: Path) -> None:
    grow(experiment("points.npz[0:2]"))
    go_on(property="one-to-one")
    titles = [name for run in read_parts("out") for name in run.networks]
    assert titles == ["linear.onnx (one-to-any)", "linear.onnx (one-to-one)"]
    targeted = read_store("out", PartChoice(property="one-to-one"))
    assert targeted.columns["classes"].tolist() == [2, 2]


@pytest.mark.parametrize(("first", "second"), [("float", "real"), ("real", "float")])
def test_proofs_of_two_arithmetics_are_never_mixed(desk: Path, first: str, second: str) -> None:
    described = experiment("points.npz[0:2]", arithmetic=first)
    grow(described)
    go_on(arithmetic=second)
    with pytest.raises(StoreError, match="--arithmetic"):
        Distribution.from_store("out")
    rigorous = Distribution.from_run(read_store("out", PartChoice(arithmetic=FLOAT)))
    assert {m.arithmetic for m in rigorous} == {FLOAT}
    assert (rigorous.lower > 0).all()
    ideal = Distribution.from_run(read_store("out", PartChoice(arithmetic=REAL)))
    assert (ideal.lower >= rigorous.lower).all()  # what holds with rounding holds without


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"domain": "-1:1"}, "the domain of linear.onnx was 0:1, is -1:1"),
        ({"data": "others.npz"}, r"its inputs are of points.npz\[0:2\], not of others"),
        ({"data": "others.npz[2:4]"}, r"its inputs are of points.npz\[0:2\], not of others"),
        ({"data": "train.npz"}, "of the split '', not 'train'"),
    ],
)
def test_what_cannot_be_joined_is_told(desk: Path, change: dict[str, Any], reason: str) -> None:
    points = np.load("points.npz")
    moved = np.clip(points["images"] + 0.01, 0, 1).astype(np.float32)
    np.savez("others.npz", images=moved, labels=points["labels"])
    np.savez("train.npz", train_images=points["images"], train_labels=points["labels"])
    grow(experiment("points.npz[0:2]"))
    count = asked()
    with pytest.raises(ExperimentError, match=f"{reason}.*; choose another --out$"):
        grow(experiment(**{"data": "points.npz[0:2]", **change}))
    assert asked() == count and len(summaries()) == 1


def rewritten(**changed: Any) -> None:
    """points.npz with other labels or images."""
    np.savez("points.npz", **{**np.load("points.npz"), **changed})


def test_corrected_labels_are_refused_or_measured_anew(desk: Path) -> None:
    grow(experiment())
    labels = np.array([1, 0, 0, 0])
    rewritten(labels=labels)
    refused = (
        "^out: the label of input 0 of points.npz was 0, is 1, and 2 other inputs changed as well; "
        "choose another --out, or --replace what is stored about them$"
    )
    count = asked()
    for attempt in (lambda: grow(experiment()), lambda: go_on()):
        with pytest.raises(ExperimentError, match=refused):
            attempt()
    assert asked() == count and len(summaries()) == 1
    with Store.create_or_open(Path("out")) as store:
        prepare(experiment()).run(store, grows=True, replace_changed=True)
    found = Distribution.from_store("out")
    assert sorted(found.column("input").tolist()) == [0, 1, 2, 3]
    order = np.argsort(found.column("input"))
    assert found.column("label")[order].tolist() == labels.tolist()
    assert found.lower[order] == pytest.approx([0, 0, 0.4, 0], abs=0.03)
    assert summaries()[1] == "3 changed inputs measured anew"
    with Store.open(Path("out")) as store:
        used = {
            r.proof.kept.hash
            for record in store.all_records()
            for r in record.results
            if r.proof is not None and r.proof.kept is not None
        }
    with sqlite3.connect(Path("out") / STORE_FILE) as db:
        assert {key for (key,) in db.execute("SELECT hash FROM certificates")} == used
    count = asked()
    grow(experiment())
    assert asked() == count


def test_other_images_are_refused_or_measured_anew(desk: Path) -> None:
    grow(experiment())
    images = np.load("points.npz")["images"]
    images[1] = [0.25, 0.5]
    rewritten(images=images)
    with pytest.raises(ExperimentError, match=r"input 1 of .* measured; choose another --out, or"):
        go_on()
    with Store.create_or_open(Path("out")) as store:
        continued(Path("out"), {}).run(store, grows=True, replace_changed=True)
    found = Distribution.from_store("out")
    assert found.upper[found.column("input") == 1] == pytest.approx(0.125, abs=0.01)
    assert len(found) == 4


def test_a_second_network_gets_the_same_images_and_labels(desk: Path) -> None:
    onnx.save(dense_model((2 * np.eye(2), np.zeros(2))), "other.onnx")
    points = dict(np.load("points.npz"))
    grow(experiment("points.npz[0:2]"))
    moved = np.clip(points["images"] + 0.01, 0, 1)
    for changed in ({"images": moved}, {"labels": 1 - points["labels"]}):
        rewritten(**changed)
        with pytest.raises(ExperimentError, match=r"input 0 of points.npz\[0:2\] (is not|was 0)"):
            grow(experiment("points.npz[0:2]", ["other.onnx"]))
        with pytest.raises(ExperimentError, match=r"input 0 of points.npz\[0:2\] (is not|was 0)"):
            go_on(networks="other.onnx")
        rewritten(**points)
    images = points["images"].astype(np.float64)  # another type of the same images
    rewritten(images=images)
    go_on(networks="other.onnx")
    assert len(Distribution.from_store("out")) == 4


def test_inputs_are_replaced_everywhere_or_not_at_all(desk: Path) -> None:
    onnx.save(dense_model((2 * np.eye(2), np.zeros(2))), "other.onnx")
    grow(experiment("points.npz[0:2]"))
    go_on(networks="other.onnx")
    rewritten(labels=np.array([1, 1, 1, 0]))

    def replace_by(plan: Plan) -> None:
        with Store.create_or_open(Path("out")) as store:
            plan.run(store, grows=True, replace_changed=True)

    with pytest.raises(ExperimentError, match=r"given to other\.onnx: .* radii run out --replace$"):
        replace_by(prepare(experiment("points.npz[0:2]")))
    replace_by(continued(Path("out"), {}))
    (run,) = read_parts("out")
    rows = zip(*(run.columns[name].tolist() for name in ("network", "input", "label")), strict=True)
    assert sorted(rows) == [
        ("linear.onnx", 0, 1),
        ("linear.onnx", 1, 1),
        ("other.onnx", 0, 1),
        ("other.onnx", 1, 1),
    ]
    assert check_store(Path("out")).verdict is StoreVerdict.HOLDS
    go_on(norm="l1", data="points.npz[0:1]")
    rewritten(labels=np.array([0, 1, 1, 0]))
    with pytest.raises(ExperimentError, match=r"also asked another question, .*one-to-any, l1"):
        replace_by(continued(Path("out"), {"norm": "linf"}))


def test_a_store_from_before_digests_of_inputs_grows(desk: Path) -> None:
    grow(experiment("points.npz[0:1]"))
    make_older(Path("out"), 6)
    go_on(data="points.npz[0:2]")
    with Store.open(Path("out")) as store:
        assert store.input_digests().keys() == {0, 1}
    make_older(Path("out"), 6)
    rewritten(images=np.load("points.npz")["images"][::-1])
    with pytest.raises(ExperimentError, match=r"input 0 .* is not the one that was measured"):
        go_on()


@pytest.mark.parametrize("inputs", ["[0:2]", "[2:4]"])
@pytest.mark.parametrize("location", ["both.npz:train", "points.npz"])
def test_inputs_of_another_set_or_split_do_not_join_a_directory(
    desk: Path, location: str, inputs: str
) -> None:
    points = np.load("points.npz")
    images, labels = points["images"], points["labels"]
    np.savez(
        "both.npz",
        test_images=images,
        test_labels=labels,
        train_images=images[::-1],
        train_labels=labels[::-1],
    )
    grow(experiment("both.npz:test[0:3]"))
    refused = rf"^out: holds inputs of both.npz:test\[0:3\]; {location}.* needs another --out$"
    with pytest.raises(ExperimentError, match=refused):
        go_on(data=location + inputs)
    assert len(summaries()) == 1
    go_on(data="both.npz[2:4]")  # the test split, if none is named
    assert sorted(m.input for m in Distribution.from_store("out")) == [0, 1, 2, 3]


@pytest.mark.parametrize("data", ["digits:train[20:22]", "digits:train[0:2]", "mnist:test[0:2]"])
def test_inputs_that_are_not_of_the_test_digits_do_not_join_them(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    network = str(demo.network_path("mlp-standard"))
    grow(experiment("digits:test[0:3]", [network], search="attack-only"))
    with pytest.raises(ExperimentError, match=r"holds inputs of digits:test\[0:3\]; .* --out$"):
        go_on(data=data)
    go_on(data="Digits[1:2]")  # has been measured
    assert len(summaries()) == 1


@pytest.mark.parametrize(
    ("name", "value", "was"),
    [
        ("domain", "0:2", "0:1"),
        ("mean", "0.5", "not given"),
        ("std", "0.5", "not given"),
        ("layout", "hwc", "not given"),
        ("label", "kind", "not given"),
        ("threshold", "0.25", "not given"),
    ],
)
def test_a_network_that_is_there_is_fed_as_before(
    desk: Path, name: str, value: str, was: str
) -> None:
    grow(experiment("points.npz[0:1]"))
    refused = f"^out: the {name} of linear.onnx was {was}, is {value}; choose another --out$"
    beside: list[dict[str, Any]] = [{}, {"networks": "linear.onnx"}, {"norm": "l1"}]
    for changes in beside:
        with pytest.raises(ExperimentError, match=refused):
            go_on(None, **{**changes, name: value})
    go_on(domain="0.0:1.0")
    assert len(summaries()) == 1


def test_networks_that_are_fed_in_different_ways_go_on(desk: Path) -> None:
    onnx.save(dense_model((2 * np.eye(2), np.zeros(2))), desk / "other.onnx")
    onnx.save(dense_model((3 * np.eye(2), np.zeros(2))), desk / "third.onnx")
    grow(experiment("points.npz[0:1]"))
    go_on(networks="other.onnx", domain="0:2", mean="0.5", std="0.5")
    count = asked()
    go_on(networks="other.onnx", domain="0:2", mean="0.5", std="0.5")  # as after it was stopped
    go_on()
    assert asked() == count and len(summaries()) == 2
    go_on(data="points.npz[0:2]")
    found = Distribution.from_store("out")
    assert len(found) == 4
    holds_the_radii(found)
    with pytest.raises(ExperimentError, match=r"domain of linear\.onnx was 0:1, is 0:2"):
        go_on(domain="0:2")
    with pytest.raises(ExperimentError, match="domain is missing"):
        go_on(networks="third.onnx")
    go_on(networks="third.onnx", domain="0:1")
    holds_the_radii(Distribution.from_store("out"))


def test_a_network_that_changed_is_told(desk: Path) -> None:
    grow(experiment("points.npz[0:1]"))
    onnx.save(dense_model((2 * np.eye(2), np.zeros(2))), "linear.onnx")
    with pytest.raises(ExperimentError, match=r"linear\.onnx has changed; give the new"):
        grow(experiment("points.npz[0:1]"))
    with pytest.raises(ExperimentError, match=r"its network linear\.onnx has changed at"):
        continued(Path("out"), {})
    Path("linear.onnx").unlink()
    with pytest.raises(ExperimentError, match=r"is not at .* any more; put it back"):
        continued(Path("out"), {})


def test_a_plan_that_may_not_grow_is_refused_as_ever(desk: Path) -> None:
    grow(experiment("points.npz[0:1]"))
    with (
        Store.create_or_open(Path("out")) as store,
        pytest.raises(ExperimentError, match="another"),
    ):
        prepare(experiment("points.npz[0:2]")).run(store)


def test_an_older_store_grows(desk: Path) -> None:
    grow(experiment("points.npz[0:1]"))
    count = asked()
    make_older(Path("out"), 4)
    go_on(data="points.npz[0:2]")
    assert {step for step, _ in asked() - count} == {2}
    assert [m.input for m in Distribution.from_store("out")] == [0, 1]


def test_growth_that_fails_halfway_leaves_no_trace(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(experiment("points.npz[0:1]"))
    before = summaries()

    def fail(*_: object) -> str:
        raise OSError("the machine went down")

    monkeypatch.setattr("radii.store._database.joined_description", fail)
    with pytest.raises(OSError, match="went down"):
        grow(experiment())
    monkeypatch.undo()
    monkeypatch.chdir(desk)
    assert summaries() == before
    assert [m.input for m in Distribution.from_store("out")] == [0]
    grow(experiment())
    assert len(Distribution.from_store("out")) == 4


def forget_salt(directory: Path) -> None:
    """As a store from before draws were salted."""
    with sqlite3.connect(directory / STORE_FILE) as db:
        for table, column in (("steps", "described"), ("meta", "value")):
            db.execute(f"UPDATE {table} SET {column} = json_remove({column}, '$.draw')")
    db.close()


def test_a_store_keeps_the_way_in_which_its_inputs_are_drawn(desk: Path) -> None:
    chance = np.random.default_rng(1)
    images = chance.uniform(size=(60, 2)).astype(np.float32)
    np.savez("many.npz", images=images, labels=images.argmax(axis=1))
    data, quick = "many.npz[random 5 seed 1]", {"search": "attack-only", "attack": "fgsm"}
    old, new = (
        sorted(one.random(5, 1).indices.tolist())
        for one in (load_spec("many.npz").unsalted(), load_spec("many.npz"))
    )
    assert old != new
    grow(experiment(data, **quick))
    assert sorted(m.input for m in Distribution.from_store("out")) == new
    shutil.rmtree("out")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Dataset, "_shuffled", _shuffled_without_salt)
        grow(experiment(data, **quick))
    forget_salt(Path("out"))
    plan = prepare(experiment(data, **quick), Path("out"))
    with Store.create_or_open(Path("out")) as store:
        assert plan.growth(store) == ""
        plan.run(store, grows=True)
    go_on()
    go_on(data="many.npz[random 8 seed 1]")
    found = sorted(m.input for m in Distribution.from_store("out"))
    assert len(found) == 8 and set(old) <= set(found)
    assert check_store(Path("out")).verdict is StoreVerdict.HOLDS
    assert len(summaries()) == 2


def _shuffled_without_salt(data: Dataset, seed: int) -> Any:
    return np.argsort(np.random.PCG64(seed).random_raw(len(data)), kind="stable")


# --- what is known of an instance: pure, told to a search


def step(number: int, **changes: Any) -> StudyStep:
    return StudyStep(number, "", None, experiment(**changes).resolved().to_json(), "")


def told(now: Experiment, answers: list[StepAnswer], *steps: StudyStep) -> Search:
    from radii.strategy import Case

    search = make(now.resolved().search_class(), now.grid, seconds=now.resolved().proof_seconds())
    case = Case(None, search, batch=0)  # type: ignore[arg-type]
    known = {each.number: each for each in steps}
    Knowledge(now.resolved(), known, max(known)).tell(case, answers)
    return search


ATTACKED = (1, Question(QuestionKind.ATTACK, 0.49), Result(Verdict.UNKNOWN, 0.49, "a", "1", 1.0))


def climbed(
    lower: float,
    seconds: float,
    arithmetic: Arithmetic = FLOAT,
    ending: Ending = Ending.ANSWERED,
) -> StepAnswer:
    proof = Proof(lower, 0.0, arithmetic)
    result = Result(Verdict.ROBUST, lower, "native", "1", seconds, proof, ending=ending)
    return 1, Question(QuestionKind.RADIUS, 0.49), result


UNFIT = (
    climbed(0.2, 1.0, ending=Ending.MEMORY_LIMIT),
    (1, Question(QuestionKind.RADIUS, 0.49), Result(Verdict.MEMOUT, 0.49, "native", "1", 1.0)),
)
"""Answers that memory cut short: with something proven, and with nothing."""


def test_more_time_asks_again_what_ran_out_of_it(desk: Path) -> None:
    late, early = climbed(0.2, 60.0), climbed(0.2, 1.0)
    before, now = experiment(), experiment(timeout=300)
    for answer, again in ((late, True), (early, False)):
        search = told(now, [ATTACKED, answer], step(1), step(2, timeout=300))
        assert search.bracket.lower == 0.2
        assert (search.next_question() is not None) is again
    assert told(before, [ATTACKED, late], step(1)).next_question() is None


@pytest.mark.parametrize("answer", UNFIT)
def test_more_memory_asks_again_what_ran_out_of_it(desk: Path, answer: StepAnswer) -> None:
    for now, again in (("400M", False), ("300M", False), ("2G", True)):
        search = told(
            experiment(memory=now), [ATTACKED, answer], step(1, memory="400M"), step(2, memory=now)
        )
        assert search.bracket.lower == (0.0 if answer[2].proof is None else 0.2)
        assert (search.next_question() is not None) is again


@pytest.mark.parametrize("answer", UNFIT)
@pytest.mark.parametrize(
    ("retry", "again"), [("memouts", True), ("missing", True), ("timeouts", False)]
)
def test_retry_asks_again_what_ran_out_of_memory(
    desk: Path, answer: StepAnswer, retry: str, again: bool
) -> None:
    same = {"memory": "400M"}
    retried = StudyStep(2, "", None, {**step(2, **same).described, "retry": retry}, "")
    search = told(experiment(**same), [ATTACKED, answer], step(1, **same), retried)
    assert (search.next_question() is not None) is again
    answered = (2, answer[1], answer[2])
    search = told(experiment(**same), [ATTACKED, answer, answered], step(1, **same), retried)
    assert search.next_question() is None


def test_more_time_of_processors_asks_again_what_ran_out_of_it(desk: Path) -> None:
    burnt = climbed(0.2, 1.0, ending=Ending.CPU_LIMIT)
    for now, again in ((10.0, False), (99.0, True)):
        search = told(
            experiment(cpu_timeout=now),
            [ATTACKED, burnt],
            step(1, cpu_timeout=10.0),
            step(2, cpu_timeout=now),
        )
        assert (search.next_question() is not None) is again


def test_retry_asks_again_with_the_same_time_once(desk: Path) -> None:
    late = climbed(0.2, 60.0)
    retried = StudyStep(2, "", None, {**step(2).described, "retry": "timeouts"}, "")
    search = told(experiment(), [ATTACKED, late], step(1), retried)
    assert search.next_question() == Question(QuestionKind.RADIUS, 0.49)
    answered = (2, late[1], late[2])
    search = told(experiment(), [ATTACKED, late, answered], step(1), retried)
    assert search.next_question() is None  # killed and run again: it has been retried


def test_another_attack_or_verifier_asks_for_itself(desk: Path) -> None:
    done = [ATTACKED, climbed(0.2, 1.0)]
    assert told(experiment(), done, step(1), step(2)).next_question() is None
    other = told(experiment(attack="pgd"), done, step(1), step(2, attack="pgd"))
    asks = other.next_question()
    assert asks is not None and asks.kind is QuestionKind.ATTACK
    milp = {"verifier": "milp", "arithmetic": "real"}
    other = told(experiment(**milp), done, step(1), step(2, **milp))
    asks = other.next_question()
    assert asks is not None and asks.kind is QuestionKind.PROVE
    assert other.bracket.lower == 0.2  # a proof for floats holds without rounding, too


def test_a_weaker_proof_is_none_here(desk: Path) -> None:
    ideal = climbed(0.2, 1.0, REAL)
    search = told(experiment(), [ATTACKED, ideal], step(1, arithmetic="real"), step(2))
    assert search.bracket.lower == 0.0
    asks = search.next_question()
    assert asks is not None and asks.kind is QuestionKind.RADIUS


def test_a_proof_counts_by_its_own_arithmetic_whatever_its_step_asked_for(desk: Path) -> None:
    """Once, a portfolio that was asked for floats kept the proofs of tools that know none."""
    ideal = climbed(0.2, 1.0, REAL)
    for steps in ([step(1)], [step(1), step(2)]):
        search = told(experiment(), [ATTACKED, ideal], *steps)
        assert search.bracket.lower == 0.0
        asks = search.next_question()
        assert asks is not None and asks.kind is QuestionKind.RADIUS
    part = StudyPart.of([step(1)], [step(1)])
    assert part.count(*ideal) is None
    assert part.count(*climbed(0.2, 1.0)) is not None


def test_what_a_weaker_proof_met_on_its_way_still_counts(desk: Path) -> None:
    point = np.zeros(2)
    witness = Witness(point, 0.3, 1, point, "onnxruntime")
    number, question, result = climbed(0.2, 1.0, REAL)
    part = StudyPart.of([step(1)], [step(1)])
    kept = part.count(number, question, replace(result, witness=witness))
    assert kept is not None
    assert (kept.proof, kept.verdict, kept.witness) == (None, Verdict.UNKNOWN, witness)


def test_one_eps_is_a_grid_of_one_value() -> None:
    assert Grid.of_one("0.1").values == (0.1,)
    assert experiment("x", grid="0.001:0.4:0.002", eps=0.1).grid.values == (0.1,)
    with pytest.raises(ExperimentError, match="eps and grid say the same thing: give one of them"):
        experiment("x", eps=0.1)
    assert experiment("x", budget_per_input="1m").budget == 60
    assert json.dumps(experiment("x", budget_per_input=5).to_json()).count("budget") == 1
    assert math.isinf(experiment("x").budget)
