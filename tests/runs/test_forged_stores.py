"""Stores that somebody has changed, and made to agree with themselves again: a check notices."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from forger import Forger, columns_of
from onnx import numpy_helper

from conftest import work_in_this_process, write_wide
from radii import datasets
from radii.api import robustness_distribution
from radii.cli import main
from radii.errors import InputError, NetworkError, StoreError
from radii.runs import Experiment, StoreVerdict, check_store, prepare
from radii.statistics import read_parts
from radii.store import STORE_FILE, Store


def write_study(directory: Path) -> Path:
    """A study of three questions on `write_wide`, with certificates of all that it proves."""
    network, data = write_wide(directory)
    described = {"networks": [str(network)], "domain": "0:1", "grid": "0.01:0.2:0.01"}
    questions = (("one-to-any", ""), ("sr:delta=2", "[0:2]"), ("one-to-one", "[0:1]"))
    for name, which in questions:
        asked = {**described, "data": f"{data}{which}", "property": name}
        with Store.create_or_open(directory / "study") as store:
            prepare(Experiment.from_options(asked)).run(store, jobs=0, grows=True)
    return directory / "study"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("whole"))


def copied(whole: Path, place: Path) -> Path:
    place.mkdir(parents=True)
    shutil.copy(whole / STORE_FILE, place / STORE_FILE)
    return place


def numbers(place: Path) -> Any:
    """All that pages are made of."""
    return [
        (
            {name: column.tolist() for name, column in run.columns.items()},
            [str(one) for one in run.disagreements],
            repr(run.settings),
        )
        for run in read_parts(place)
    ]


def forged(whole: Path, place: Path, forge: Callable[[Forger], object]) -> Path:
    """A copy of the store after a change that nothing else in the file contradicts."""
    with Forger(copied(whole, place)) as forger:
        forge(forger)
        forger.mend()
    return place


def refusals(place: Path) -> list[str]:
    """What a check says does not hold. The store itself can be read."""
    assert numbers(place)
    return [str(one) for one in check_store(place).failed]


def test_a_forger_who_changes_nothing_is_not_noticed(whole: Path, tmp_path: Path) -> None:
    """So that what is noticed below is the change, and not the mending."""
    place = forged(whole, tmp_path / "out", lambda _: None)
    check = check_store(place)
    assert (check.verdict, check.instances, check.compared) == (StoreVerdict.HOLDS, 8, 8)
    with Store.open(place) as store, Store.open(whole) as other:
        assert store.instance_keys() == other.instance_keys()
        assert [m.bracket for m in store.measurements()] == [
            m.bracket for m in other.measurements()
        ]


# --- what a replay tells


def outputs_of(forger: Forger, where: str) -> np.ndarray:
    (data,) = forger.db.execute(f"SELECT outputs FROM instances WHERE {where}").fetchone()
    return np.frombuffer(data).copy()


def with_outputs(where: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[..., object]:
    def forge(forger: Forger) -> None:
        made = change(outputs_of(forger, where)).astype(np.float64).tobytes()
        forger.db.execute(f"UPDATE instances SET outputs = ? WHERE {where}", (made,))

    return forge


def test_a_misclassified_input_that_is_made_correct_is_noticed(whole: Path, tmp_path: Path) -> None:
    """By its outputs, with its counterexample at distance 0 removed."""

    def forge(forger: Forger) -> None:
        wrong = "input_index = 3 AND property = 'one-to-any'"
        with_outputs(wrong, np.sort)(forger)
        (label,) = forger.db.execute(f"SELECT label FROM instances WHERE {wrong}").fetchone()
        with_outputs(wrong, lambda y: np.roll(y, label - int(y.argmax())))(forger)
        of_it = (
            f"SELECT id FROM queries WHERE instance IN (SELECT key FROM instances WHERE {wrong})"
        )
        forger.db.execute(f"DELETE FROM witnesses WHERE query IN ({of_it})")
        forger.db.execute(f"DELETE FROM queries WHERE id IN ({of_it})")

    place = forged(whole, tmp_path / "out", forge)
    assert all(read_parts(place)[0].columns["correct"])
    (refused,) = refusals(place)
    assert refused.startswith("wide.onnx, input 3: onnxruntime ")
    assert " gives class " in refused


def test_an_input_that_is_said_to_be_misclassified_is_noticed(whole: Path, tmp_path: Path) -> None:
    where = "input_index = 0 AND property = 'one-to-any'"
    place = forged(whole, tmp_path / "out", with_outputs(where, lambda y: -y))
    assert any(" gives class " in one for one in refusals(place))


def test_another_reference_of_a_stability_property_is_noticed(whole: Path, tmp_path: Path) -> None:
    """The class stays; the certificate is about the reference that was there."""
    where = "input_index = 1 AND property LIKE 'sr:%'"
    place = forged(whole, tmp_path / "out", with_outputs(where, lambda y: y * 1.01))
    refused = refusals(place)
    assert any("outputs are up to " in one and "away from those that" in one for one in refused)
    assert any("about another property or class" in one for one in refused)


def test_outputs_of_another_machine_are_not_refused(whole: Path, tmp_path: Path) -> None:
    """They differ by some units in the last place."""
    where = "input_index = 1 AND property = 'one-to-any'"
    place = forged(whole, tmp_path / "out", with_outputs(where, lambda y: y * (1 + 2.0**-20)))
    assert check_store(place).verdict is StoreVerdict.HOLDS


def more(whole: Path, place: Path, **options: str) -> None:
    """Go on with the question of stability, on a finer grid."""
    data, network = whole.parent / "wide_points.npz", whole.parent / "wide.onnx"
    asked = {"networks": [str(network)], "domain": "0:1", "data": f"{data}[0:2]"}
    finer = {**asked, "property": "sr:delta=2", "grid": "0.005:0.2:0.005", **options}
    with Store.create_or_open(place) as store:
        prepare(Experiment.from_options(finer)).run(store, jobs=0, grows=True)


def test_a_run_goes_on_from_the_outputs_that_are_stored(whole: Path, tmp_path: Path) -> None:
    """Its proofs are then about the reference that the results have, not about this machine's."""
    where = "input_index = 0 AND property LIKE 'sr:%'"
    place = forged(whole, tmp_path / "out", with_outputs(where, lambda y: y * (1 + 2.0**-20)))
    with Forger(place) as forger:  # what was proven was about the other reference
        forger.remove_answers(where)
    more(whole, place)
    check = check_store(place)
    assert (check.verdict, check.failed) == (StoreVerdict.HOLDS, ())
    assert check.proofs > 5


def test_a_run_does_not_go_on_from_other_outputs(whole: Path, tmp_path: Path) -> None:
    where = "input_index = 0 AND property LIKE 'sr:%'"
    place = forged(whole, tmp_path / "out", with_outputs(where, lambda y: y * 1.01))
    with pytest.raises(StoreError, match="outputs that are stored for input 0 are not those"):
        more(whole, place)


def test_another_class_of_a_counterexample_is_noticed(whole: Path, tmp_path: Path) -> None:
    def forge(forger: Forger) -> None:
        query, data = forger.db.execute("SELECT query, outputs FROM witnesses").fetchone()
        made = np.roll(np.frombuffer(data), 1).tobytes()
        forger.db.execute("UPDATE witnesses SET outputs = ? WHERE query = ?", (made, query))

    (refused,) = refusals(forged(whole, tmp_path / "out", forge))
    assert "counterexample at " in refused and " gives class " in refused


def test_a_property_that_fails_at_the_input_has_radius_0(whole: Path, tmp_path: Path) -> None:
    place = forged(whole, tmp_path / "out", _without_looks)
    (refused,) = refusals(place)
    assert refused.endswith("the property fails at the input itself: its radius is 0")


def _without_looks(forger: Forger) -> None:
    looks = "SELECT id FROM queries WHERE kind = 'replay'"
    forger.db.execute(f"DELETE FROM witnesses WHERE query IN ({looks})")
    forger.db.execute("DELETE FROM queries WHERE kind = 'replay'")


# --- what the data tell


def test_another_label_is_noticed(whole: Path, tmp_path: Path) -> None:
    """One that makes a misclassified input correct, its key made anew."""

    def forge(forger: Forger) -> None:
        forger.db.execute("UPDATE instances SET label = predicted WHERE input_index = 3")
        _without_looks(forger)

    place = forged(whole, tmp_path / "out", forge)
    assert all(read_parts(place)[0].columns["correct"])
    (refused,) = refusals(place)
    assert "its label in wide_points.npz is " in refused


def test_another_input_is_noticed(whole: Path, tmp_path: Path) -> None:
    """A misclassified one in whose place another one stands, with its evidence."""

    def forge(forger: Forger) -> None:
        forger.remove("input_index = 3")
        columns = "network, predicted, correct, property, target, norm, dtype, shape"
        forger.db.execute(
            f"INSERT INTO instances (key, position, input_index, label, input, outputs, {columns})"
            f" SELECT 'new', 3, 3, label, input, outputs, {columns} FROM instances"
            " WHERE input_index = 0 AND property = 'one-to-any'"
        )
        forger.db.execute("INSERT INTO step_instances VALUES (1, 'new')")

    refused = refusals(forged(whole, tmp_path / "out", forge))
    assert any("wide_points.npz" in one for one in refused)


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("input_index = 3", "input 3 of {data} is not there for wide.onnx"),
        ("input_index = 0 AND property = 'one-to-any'", "input 0 of {data} is not there"),
        ("property = 'one-to-one:0'", "input 0 has 1 of the 2 targets of one-to-one"),
        ("input_index = 1 AND property LIKE 'sr:%'", "input 1 of {data}[0:2] is not there"),
    ],
)
def test_inputs_that_were_left_out_are_noticed(
    whole: Path, tmp_path: Path, which: str, words: str
) -> None:
    place = forged(whole, tmp_path / "out", lambda forger: forger.remove(which))
    text = words.format(data=whole.parent / "wide_points.npz")
    assert any(text in one for one in refusals(place))


def test_data_that_have_changed_are_noticed(whole: Path, tmp_path: Path) -> None:
    data = tmp_path / "points.npz"
    with np.load(whole.parent / "wide_points.npz") as arrays:
        images, labels = arrays["images"], arrays["labels"]
    np.savez(data, images=images, labels=labels)
    assert check_store(whole, data=str(data)).verdict is StoreVerdict.HOLDS
    np.savez(data, images=images, labels=np.roll(labels, 1))
    assert any(
        "its label in points.npz is" in str(x) for x in check_store(whole, data=str(data)).failed
    )
    np.savez(data, images=images + np.float32(1e-3), labels=labels)
    assert all(
        "it is not the one that" in str(x) for x in check_store(whole, data=str(data)).failed
    )


def test_data_that_are_not_there_are_said_to_be_missing(whole: Path, tmp_path: Path) -> None:
    place = copied(whole, tmp_path / "out")
    gone = check_store(place, data=str(tmp_path / "gone.npz"))
    assert (gone.verdict, gone.compared, gone.failed) == (StoreVerdict.NOT_CHECKED, 0, ())
    (clause,) = gone.unchecked
    assert clause.startswith("the inputs and labels of 8 instances, whose data are not there (")


def test_words_for_labels_are_read_as_they_were(whole: Path, tmp_path: Path) -> None:
    """By the names that the results keep; with others the labels would be others."""
    table = tmp_path / "points.csv"
    with np.load(whole.parent / "wide_points.npz") as arrays:
        words = np.array(["cat", "dog", "ant"])[arrays["labels"]]
        rows = [
            ",".join([word, *map(str, row.tolist())])
            for word, row in zip(words, arrays["images"], strict=True)
        ]
    table.write_text("\n".join(["label," + ",".join(f"x{i}" for i in range(16)), *rows]))
    asked = {"networks": [str(whole.parent / "wide.onnx")], "domain": "0:1", "eps": 0.05}
    described = Experiment.from_options(
        {**asked, "data": f"{table}[random 3 seed 1]", "classes": "cat,dog,ant"}
    )
    with Store.create_or_open(tmp_path / "out") as store:
        prepare(described).run(store, jobs=0)
    assert check_store(tmp_path / "out").verdict is StoreVerdict.HOLDS
    place = forged(
        tmp_path / "out",
        tmp_path / "other",
        lambda forger: forger.describe("class_names", ["dog", "cat", "ant"]),
    )
    assert any("its label in points.csv is " in one for one in refusals(place))


def test_a_run_in_python_says_where_its_data_are(whole: Path, tmp_path: Path) -> None:
    data, network = str(whole.parent / "wide_points.npz"), str(whole.parent / "wide.onnx")
    for out, given in (("named", f"{data}[0:2]"), ("loaded", datasets.load_spec(f"{data}[0:2]"))):
        robustness_distribution(
            network, given, domain=(0, 1), eps=0.05, out=tmp_path / out, progress=False, jobs=0
        )
    assert check_store(tmp_path / "named").verdict is StoreVerdict.HOLDS
    check = check_store(tmp_path / "loaded")
    assert (check.verdict, check.compared) == (StoreVerdict.NOT_CHECKED, 0)
    check = check_store(tmp_path / "loaded", data=data)
    assert (check.compared, check.failed) == (2, ())
    assert check.unchecked == (
        "whether inputs were left out: the store does not say which were asked for",
    )


# --- what certificates tell


def test_checks_that_the_store_makes_up_count_for_nothing(whole: Path, tmp_path: Path) -> None:
    """Rows that say a certificate of a smaller eps was accepted for a larger one."""
    raise_all = "UPDATE queries SET proof_eps = proof_eps + 0.01 WHERE certificate IS NOT NULL"

    def forge(forger: Forger) -> None:
        forger.db.execute("DELETE FROM witnesses WHERE distance > 0")
        forger.db.execute(raise_all)

    place = forged(whole, tmp_path / "out", forge)
    assert set(read_parts(place)[0].columns["proof"].tolist()) == {"checked", ""}
    check = check_store(place)
    assert check.checked == 0
    assert len(check.failed) == check.proofs
    assert set(read_parts(place)[0].columns["proof"].tolist()) == {"failed", ""}


def test_another_network_is_noticed_after_an_accepted_check(whole: Path, tmp_path: Path) -> None:
    place = copied(whole, tmp_path / "out")
    assert check_store(place).verdict is StoreVerdict.HOLDS
    shutil.copy(whole.parent / "wide.onnx", tmp_path / "wide.onnx")
    with Forger(place) as forger:
        forger.db.execute("UPDATE networks SET path = ?", (str(tmp_path / "wide.onnx"),))
    assert check_store(place).verdict is StoreVerdict.HOLDS
    write_other(tmp_path / "wide.onnx")
    with pytest.raises(NetworkError, match="has changed"):
        check_store(place)


def write_other(path: Path) -> None:
    """The same layers with another bias."""
    model = onnx.load(path)
    bias = next(each for each in model.graph.initializer if each.name == "b0")
    bias.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(bias) + np.float32(1), "b0"))
    onnx.save(model, path)


# --- the gate


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What `radii gate --checked` says of results, which must end with this exit code."""
    work_in_this_process(monkeypatch)
    monkeypatch.setattr("radii.cli._gate.check_jobs", lambda _: 0)

    def run(place: Path, code: int, *more: object) -> str:
        words = ["gate", place, "--property=one-to-any", "--checked", *more]
        requirement = "--require=robust_accuracy(0.06) >= 0.7"
        assert main([*map(str, words), requirement]) == code
        said = capsys.readouterr()
        return said.out + said.err

    return run


def test_the_gate_asks_the_checker_and_not_the_store(
    whole: Path, tmp_path: Path, gate: Callable[..., str]
) -> None:
    def forge(forger: Forger) -> None:
        forger.db.execute("DELETE FROM witnesses WHERE distance > 0")
        forger.db.execute("UPDATE queries SET proof_eps = 0.08 WHERE proof_eps = 0.07")

    assert "7 of 7 proofs count" in gate(whole, 0)
    place = forged(whole, tmp_path / "out", forge)
    assert read_parts(place)[0].columns["lower"].tolist() == [0.08, 0.09, 0.08, 0]
    assert "4 of 7 proofs count" in gate(place, 1)


def test_the_gate_refuses_what_is_not_so(
    whole: Path, tmp_path: Path, gate: Callable[..., str]
) -> None:
    where = "input_index = 0 AND property = 'one-to-any'"
    place = forged(whole, tmp_path / "out", with_outputs(where, lambda y: -y))
    assert "of its statements do not hold (wide.onnx, input 0: " in gate(place, 2)
    assert "its inputs and labels cannot be compared with the data" in gate(
        whole, 2, "--data", tmp_path / "gone.npz"
    )
    shutil.copy(whole.parent / "wide.onnx", tmp_path / "moved.onnx")
    forged(whole, tmp_path / "moved", statement("UPDATE networks SET path = '/nowhere'"))
    assert "is not there any more" in gate(tmp_path / "moved", 2)
    gate(tmp_path / "moved", 0, "--network", tmp_path / "moved.onnx")
    write_other(tmp_path / "moved.onnx")
    assert "--network FILE takes the one" in gate(
        tmp_path / "moved", 2, "--network", tmp_path / "moved.onnx"
    )


# --- what was asked for


@pytest.mark.parametrize(
    ("name", "value"),
    [("norm", "l2"), ("property", "one-to-one:2"), ("domain", ["0.25:0.75"]), ("split", "train")],
)
def test_another_question_is_noticed(whole: Path, tmp_path: Path, name: str, value: object) -> None:
    place = forged(whole, tmp_path / "out", lambda forger: forger.describe(name, value))
    try:
        check = check_store(place)
    except InputError:
        return
    assert check.verdict is not StoreVerdict.HOLDS


def test_a_store_that_contradicts_itself_is_noticed(whole: Path, tmp_path: Path) -> None:
    place = copied(whole, tmp_path / "out")
    with Forger(place) as forger:
        forger.db.execute("UPDATE meta SET value = json_set(value, '$.verifier', 'milp')")
    (refused,) = refusals(place)
    assert refused.endswith("two places say different things of its verifier")


def test_the_file_of_each_network_is_told(whole: Path, tmp_path: Path) -> None:
    """A name is a word: whoever reads it must see what it stands for."""

    def forge(forger: Forger) -> None:
        (key,) = forger.db.execute("SELECT fingerprint FROM networks").fetchone()
        forger.db.execute("UPDATE networks SET name = 'strong.onnx'")
        forger.describe("networks", {"strong.onnx": key})

    (network,) = check_store(forged(whole, tmp_path / "out", forge)).networks
    assert (network.name, network.file) == ("strong.onnx", whole.parent / "wide.onnx")


def test_an_empty_store_holds_nothing(tmp_path: Path) -> None:
    with Store.create_or_open(tmp_path / "out") as store:
        store.begin({"property": "one-to-any"}, {}, [])
    check = check_store(tmp_path / "out")
    assert (check.verdict, check.unchecked) == (
        StoreVerdict.NOT_CHECKED,
        ("nothing is stored here",),
    )


# --- every column


CHECK_PAGE = Path(__file__).parents[2] / "docs" / "check.md"
UNCHECKED_SECTION = CHECK_PAGE.read_text().partition("## What no check")[2].partition("\n## ")[0]
OUT_OF_REACH = frozenset(re.findall(r"`(\w+\.\w+)`", UNCHECKED_SECTION))
"""Columns that the documentation says nobody can check."""

WORDS = {
    "property": ("one-to-any", "sr:delta=3", "one-to-one:1", "become:1"),
    "norm": ("l2", "l1"),
    "proof_arithmetic": ("real", "float:2"),
    "kind": ("attack", "prove", "replay", "radius"),
    "verdict": ("ROBUST", "NOT_ROBUST", "UNKNOWN", "TIMEOUT", "MEMOUT"),
    "dtype": ("float64",),
    "shape": ("[4, 4]",),
    "feeding": ("null", "{}", "[]"),
}
"""Values that a text of some columns may also have."""

SETTINGS: dict[str, tuple[object, ...]] = {
    "property": ("sr:delta=3", "one-to-any"),
    "norm": ("l2",),
    "grid": ("0.01:0.9:0.01", "0.01:0.05:0.01"),
    "search": ("k-binary", "attack-only"),
    "verifier": ("milp",),
    "attack": ("apgd", None),
    "arithmetic": ("real", "float:4", None),
    "domain": (["0.0:0.9"], ["0.2:0.8"], ["-1.0:2.0"], []),
    "networks": ({},),
    "features": ({},),
    "sources": ({}, {"digits:test[0:4]": "digits:test[0:4]"}),
    "k": (2,),
    "cuts": ("golden",),
    "timeout": (1.0, None),
    "budget": (10.0,),
    "memory": (1000,),
    "device": ("cuda",),
    "tool": ("tool",),
    "seed": (7,),
    "cpu_timeout": (5.0,),
    "class_names": (["cat", "dog", "bird"],),
    "split": ("train", "test"),
}
"""Other values of what was asked for."""


Edit = Callable[[Forger], object]


def statement(sql: str, *values: object) -> Edit:
    return lambda forger: forger.db.execute(sql, values)


def edits(place: Path, table: str, column: str) -> Iterator[Edit]:
    """Changes of a column: of its first value and of its last, and of all values at once."""
    row = {"meta": "name", "step_instances": "instance"}.get(table, "rowid")
    with Forger(place) as forger:
        rows = forger.db.execute(f"SELECT {row}, {column} FROM {table} ORDER BY {row}").fetchall()
    values = [tuple(row) for row in rows if row[1] is not None]
    for which, value in dict(values[:1] + values[-1:]).items():
        others = [other for _, other in values if other != value]
        for made in [*mutants(column, value), *others[:1]]:
            yield statement(f"UPDATE {table} SET {column} = ? WHERE {row} = ?", made, which)
    for made in mutants(column, values[0][1]) if values else (1, "text"):
        yield statement(f"UPDATE {table} SET {column} = ?", made)
    yield statement(f"UPDATE {table} SET {column} = NULL")


def described_edits(place: Path, name: str) -> Iterator[Edit]:
    """Changes of a setting, wherever it is written down."""
    with Forger(place) as forger:
        value = forger.described()[name]
    for made in (*SETTINGS.get(name, ()), *(mutants(name, value) if value is not None else ())):
        yield lambda forger, made=made: forger.describe(name, made)  # type: ignore[misc]


def campaign(place: Path) -> list[tuple[str, Edit]]:
    """Every change, by the column or the setting that it changes."""
    with Forger(place) as forger:
        names = [name for name in forger.described() if name != "data"]
    found = [
        (f"{table}.{column}", edit)
        for table, column in columns_of(place)
        for edit in edits(place, table, column)
    ]
    found += [(f"settings.{name}", edit) for name in names for edit in described_edits(place, name)]
    last = "DELETE FROM {0} WHERE rowid = (SELECT max(rowid) FROM {0})"
    tables = {table for table, _ in columns_of(place)} - {"meta", "step_instances"}
    return found + [(f"{table}.rows", statement(last.format(table))) for table in sorted(tables)]


def mutants(column: str, value: object) -> list[object]:
    """Other values of the same kind."""
    match value:
        case int():
            return [value + 1, value - 1]
        case float():
            return [value * 1.25, value * 0.5]
        case list() | dict():
            return []
        case bytes():
            floats = np.frombuffer(value, np.float64)[::-1] if len(value) % 8 == 0 else np.zeros(1)
            middle = len(value) // 2
            flipped = value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :]
            return [floats.tobytes(), flipped, b""]
        case _:
            return [f"{value}x", *WORDS.get(column, ("",))]


def is_unnoticed(whole: Path, place: Path, edit: Edit) -> bool:
    """After the edit, and after everything in the file was made to agree with it, pages show other
    numbers than before, and a check says that all of it holds."""
    try:
        forged(whole, place, edit)
    except (sqlite3.Error, InputError, ValueError, KeyError, TypeError, AttributeError):
        with Forger(place) as forger, suppress(sqlite3.Error):  # no forger mends that
            edit(forger)
    try:
        is_other = numbers(place) != numbers(whole)
        return is_other and check_store(place).verdict is StoreVerdict.HOLDS
    except InputError:
        return False  # it cannot be read, and a sentence says so
    finally:
        shutil.rmtree(place)


@pytest.fixture(scope="module")
def mended(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store on which a forger was already, so that only an edit makes a difference."""
    return forged(whole, tmp_path_factory.mktemp("mended") / "study", lambda _: None)


def test_some_edits_are_noticed_or_documented(mended: Path, tmp_path: Path) -> None:
    for name, edit in random.Random(5).sample(campaign(mended), 15):
        assert not is_unnoticed(mended, tmp_path / "out", edit) or name in OUT_OF_REACH, name


@pytest.mark.slow
def test_every_edit_is_noticed_or_documented(mended: Path, tmp_path: Path) -> None:
    edits = campaign(mended)
    assert len(edits) > 500
    unnoticed = {name for name, edit in edits if is_unnoticed(mended, tmp_path / "out", edit)}
    assert unnoticed == OUT_OF_REACH
