"""Labels that are words never shift: what the classes are called is a part of the experiment.

The networks know by which of ten places their input is lit: class i is right for the image that is
lit at place i. With "digit-7" missing in the data, alphabetical numbers would shift 8 and 9.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from PIL import Image

import radii
from conftest import dense_model, work_in_this_process
from radii.cli import main
from radii.datasets import from_arrays
from radii.errors import DataError, ExperimentError, InputError
from radii.networks import load_network
from radii.runs import DataTerms, Experiment, StoreVerdict, check_store, continued, plan, prepare
from radii.statistics import Distribution
from radii.store import Store

WORDS = tuple(f"digit-{number}" for number in range(10))
WITHOUT_SEVEN = [number for number in range(10) if number != 7]
QUICK = {"search": "attack-only", "attack": "fgsm", "grid": "0.1:0.2:0.1", "domain": "0:1"}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    work_in_this_process(monkeypatch)
    write_network("net.onnx")
    write_table("seven.csv", WITHOUT_SEVEN)
    write_table("all.csv", range(10))
    return tmp_path


def write_network(name: str, order: Sequence[int] = tuple(range(10)), **metadata: str) -> None:
    model = dense_model((np.eye(10)[list(order)], np.zeros(10)))
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=value)
    onnx.save(model, name)


def write_table(name: str, digits: Sequence[int], words: Sequence[str] = WORDS) -> None:
    rows = [[words[digit], *np.eye(10)[digit]] for digit in digits]
    header = ["label", *(f"x{place}" for place in range(10))]
    Path(name).write_text("\n".join(",".join(map(str, row)) for row in [header, *rows]) + "\n")


def write_folder(name: str, digits: Sequence[int]) -> None:
    for digit in digits:
        Path(name, WORDS[digit]).mkdir(parents=True)
        pixels = np.uint8(255 * np.eye(10)[digit]).reshape(2, 5)
        Image.fromarray(pixels).save(Path(name, WORDS[digit], "a.png"))


def accuracy(data: str, networks: Sequence[str] = ("net.onnx",), **options: Any) -> float:
    described = Experiment.from_options({**QUICK, "data": data, "networks": networks, **options})
    made = prepare(described)
    return sum(each.correct for each in made.instances) / len(made.instances)


@pytest.mark.parametrize("data", ["seven.csv", "seven.csv[0:3]", "folder", "words.npz"])
def test_a_missing_word_is_asked_for_and_never_shifts_the_others(desk: Path, data: str) -> None:
    write_folder("folder", WITHOUT_SEVEN)
    images = np.eye(10, dtype=np.float32)[WITHOUT_SEVEN]
    np.savez("words.npz", images=images, labels=np.array(WORDS)[WITHOUT_SEVEN])
    refused = (
        r"its labels are 9 words \(digit-0, .*, digit-9\), but net.onnx has 10 outputs: name all "
        "classes in the order of the outputs, with --classes FILE or a list$"
    )
    with pytest.raises(DataError, match=refused):
        accuracy(data)
    Path("names.txt").write_text("\n".join(WORDS))
    for names in (",".join(WORDS), "names.txt", WORDS):
        assert accuracy(data, classes=names) == 1
    write_network("named.onnx", class_names=json.dumps(WORDS))
    assert accuracy(data, ["named.onnx"]) == 1


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("names", str(dict(enumerate(WORDS)))),  # as of ultralytics
        ("id2label", json.dumps(dict(enumerate(WORDS)))),
        ("classes", ",".join(WORDS)),
        ("labels", "\n".join(WORDS)),
    ],
)
def test_names_in_the_metadata_of_a_network(desk: Path, key: str, text: str) -> None:
    write_network("named.onnx", range(10), **{key: text})
    assert load_network("named.onnx", domain=(0, 1)).class_names == WORDS
    assert accuracy("seven.csv", ["named.onnx"]) == 1
    write_network("other.onnx", range(9, -1, -1), **{key: json.dumps(WORDS[::-1])})
    assert accuracy("seven.csv", ["other.onnx"]) == 1
    with pytest.raises(DataError, match=r"^other.onnx: its classes are digit-9, .*'digit-9' has"):
        accuracy("seven.csv", ["named.onnx", "other.onnx"])


@pytest.mark.parametrize("text", ["three, words, only", "{", "{'a': 'b'}", "[1, [2]]", "\0"])
def test_metadata_that_do_not_name_the_outputs_are_left_alone(desk: Path, text: str) -> None:
    write_network("named.onnx", labels=text)
    assert load_network("named.onnx", domain=(0, 1)).class_names == ()
    assert accuracy("all.csv", ["named.onnx"]) == 1


def test_all_words_are_numbered_in_alphabetical_order_and_that_is_said(desk: Path) -> None:
    described = Experiment.from_options({**QUICK, "data": "all.csv", "networks": ["net.onnx"]})
    made = prepare(described)
    assert all(each.correct for each in made.instances)
    (note,) = made.notes
    assert note.startswith(
        "all.csv: labels are words, numbered in alphabetical order (digit-0 is 0"
    )


def test_a_word_too_many_is_refused(desk: Path) -> None:
    write_table("more.csv", range(10), [*WORDS[:9], "nine"])
    assert accuracy("more.csv", classes=[*WORDS[:9], "nine"]) == 1
    with pytest.raises(DataError, match="label 'nine' of input 9 is not one of the classes dig"):
        accuracy("more.csv", classes=WORDS)
    with pytest.raises(DataError, match="has 10 outputs, but 9 classes are named"):
        accuracy("more.csv", classes=WORDS[:9])


@pytest.mark.parametrize("selection", ["[class 8,9]", "[per-class 1]", "[stratified 9]", "[7:9]"])
def test_selections_count_the_classes_that_are_named(desk: Path, selection: str) -> None:
    assert accuracy(f"seven.csv{selection}", classes=WORDS) == 1
    write_network("named.onnx", class_names=json.dumps(WORDS))
    assert accuracy(f"seven.csv{selection}", ["named.onnx"]) == 1


def test_numbers_may_be_names_as_well(desk: Path) -> None:
    images = np.eye(10, dtype=np.float32)
    np.savez("from_one.npz", images=images[:9], labels=np.arange(1, 10))
    np.savez("to_ten.npz", images=images, labels=np.arange(1, 11))
    for data in ("to_ten.npz", "to_ten.npz[0:5]"):
        with pytest.raises(DataError, match=r"from 1 to 10, but .* from 0: subtract 1, or name"):
            accuracy(data)
        assert accuracy(data, classes="1,2,3,4,5,6,7,8,9,10") == 1
    assert accuracy("from_one.npz") == 0  # 1 to 9 may be meant: the warning about chance is left
    order = sorted(map(str, range(1, 11)))
    write_network("sorted.onnx", [int(name) - 1 for name in order], class_names=json.dumps(order))
    with pytest.raises(DataError, match=r"calls its outputs 1, 10, 2, .*: repeat these with --cla"):
        accuracy("to_ten.npz", ["sorted.onnx"])
    assert accuracy("to_ten.npz", ["sorted.onnx"], classes=order) == 1


def run(data: str, **options: Any) -> None:
    described = Experiment.from_options(
        {**QUICK, "data": data, "networks": ["net.onnx"], **options}
    )
    made = prepare(described, Path("out"))
    with Store.create_or_open(Path("out")) as store:
        made.run(store, grows=True)


def test_the_names_of_the_first_run_are_kept(desk: Path) -> None:
    run("seven.csv[0:4]", classes=WORDS)
    assert DataTerms.of(Path("out")).classes == WORDS
    run("seven.csv")  # nobody repeats the names
    with Store.create_or_open(Path("out")) as store:
        continued(Path("out"), {}).run(store, grows=True)
    found = Distribution.from_store("out")
    assert found.column("correct").all() and len(found) == 9
    assert check_store(Path("out")).verdict is StoreVerdict.HOLDS
    with pytest.raises(ExperimentError, match=r"its classes were digit-0, .*, are digit-9, "):
        run("seven.csv", classes=WORDS[::-1])
    write_network("other.onnx", range(9, -1, -1), class_names=json.dumps(WORDS[::-1]))
    with pytest.raises(DataError, match=r"^other.onnx: its classes are digit-9"):
        run("seven.csv", networks=["other.onnx"])


def test_a_table_that_gets_rows_of_a_new_word_is_not_numbered_anew(desk: Path) -> None:
    """23 of 36 instead of 23 of 23, once: all words behind the new one were other numbers."""
    onnx.save(dense_model((np.eye(10)[[0, 2, 3]], np.zeros(3))), "net.onnx")
    write_table("animals.csv", [0, 2, 3, 2], WORDS)
    run("animals.csv")
    assert Distribution.from_store("out").column("correct").all()
    write_table("animals.csv", [0, 2, 3, 2, 1], WORDS)
    with pytest.raises(DataError, match="label 'digit-1' of input 4 is not one of the classes"):
        run("animals.csv")
    with pytest.raises(InputError, match="label 'digit-1' of input 4 is not one of the classes"):
        continued(Path("out"), {})
    write_table("animals.csv", [0, 2, 3], WORDS)
    Path("animals.csv").write_text(Path("animals.csv").read_text().replace("digit-2", "digit-0"))
    with pytest.raises(ExperimentError, match=r"the label of input 1 of animals.csv was 1, is 0"):
        run("animals.csv")
    assert len(Distribution.from_store("out")) == 4


def test_words_in_python(desk: Path) -> None:
    images, words = np.eye(10, dtype=np.float32)[WITHOUT_SEVEN], np.array(WORDS)[WITHOUT_SEVEN]
    asked: dict[str, Any] = {**QUICK, "jobs": 0, "progress": False}
    asked["domain"] = (0, 1)
    for data in ((images, words), "seven.csv", from_arrays(images, words)):
        with pytest.raises(DataError, match=r"9 words .* has 10 outputs"):
            radii.robustness_distribution("net.onnx", data, **asked)
        found = radii.robustness_distribution("net.onnx", data, classes=WORDS, **asked)
        assert found.column("correct").all()
    network = load_network("net.onnx", domain=(0, 1)).with_class_names(WORDS)
    assert (
        radii.robustness_distribution(
            network, (images, words), search="attack-only", grid=QUICK["grid"], jobs=0
        )
        .column("correct")
        .all()
    )
    radii.robustness_distribution("net.onnx", "seven.csv", classes=WORDS, out="out", **asked)
    again = radii.robustness_distribution("net.onnx", (images, words), out="out", **asked)
    assert again.column("correct").all()


def test_data_that_are_given_to_a_plan_take_the_networks_own_names(desk: Path) -> None:
    data = from_arrays(np.eye(10, dtype=np.float32)[WITHOUT_SEVEN], np.array(WORDS)[WITHOUT_SEVEN])
    settings = Experiment.from_options({**QUICK, "data": "x", "networks": ["net.onnx"]})
    network = load_network("net.onnx", domain=(0, 1))
    with pytest.raises(DataError, match="9 words"):
        plan([network], data, settings)
    made = plan([network.with_class_names(WORDS)], data, settings)
    assert all(each.correct for each in made.instances)


def test_init_writes_the_words(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = "init --network net.onnx --yes --force -o e.toml --domain 0:1 --data"
    assert main([*flags.split(), "all.csv"]) == 0
    assert f"classes = {json.dumps(WORDS)}" in Path("e.toml").read_text()
    assert main([*flags.split(), "seven.csv"]) == 2
    assert "name all classes in the order of the outputs" in capsys.readouterr().err
    assert main([*flags.split(), "seven.csv", "--classes", ",".join(WORDS)]) == 0
    capsys.readouterr()
    quick = "--search attack-only --attack fgsm --grid 0.1:0.2:0.1 --json"
    assert main(["run", "e.toml", "--out", "out", *quick.split()]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    assert all(each["correct"] for each in network["instances"]) and len(network["instances"]) == 9


def test_a_file_of_names_beside_an_experiment(desk: Path) -> None:
    (desk / "sub").mkdir()
    (desk / "sub/names.txt").write_text("\n".join(WORDS))
    (desk / "sub/e.toml").write_text(
        'networks = ["../net.onnx"]\ndata = "../seven.csv"\ndomain = "0:1"\n'
        'classes = "names.txt"\nsearch = "attack-only"\nattack = "fgsm"\ngrid = "0.1:0.2:0.1"\n'
    )
    assert main(["run", "sub/e.toml", "--out", "out", "--quiet"]) == 0
    assert Distribution.from_store("out").column("correct").all()


def test_training_writes_the_words_and_numbers_the_test_alike(desk: Path) -> None:
    write_table("train.csv", [digit for digit in range(10) for _ in range(30)])
    arguments = "train --data train.csv --test seven.csv --arch dense:10 --epochs 30 --out trained"
    assert main([*arguments.split(), "--seed", "0", "--rate", "0.05"]) == 0
    network = load_network("trained/network.onnx", domain=(0, 1))
    assert network.class_names == WORDS
    card = json.loads(Path("trained/card.json").read_text())
    assert card["accuracy"] == accuracy("seven.csv", ["trained/network.onnx"]) == 1
