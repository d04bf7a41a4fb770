"""Every command's help has examples, every one of them runs, and no table of theirs is cut.

The files that they name are stand-ins: linear classifiers of digits, and for the published sets
digits enlarged to the size of their images. Work is done in this process.
"""

from __future__ import annotations

import argparse
import gzip
import re
import shlex
import shutil
import tarfile
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from _pytest.mark import ParameterSet
from rich.table import Table
from rich.text import Text
from test_tables import assert_nothing_lost

from conftest import dense_model, made_once, parsers, work_in_this_process
from radii import datasets
from radii.cli import build_parser, main
from radii.datasets import _acquisition as acquisition
from radii.datasets import _catalogue as catalogue
from radii.datasets import _sources as sources
from radii.datasets import from_arrays
from radii.views import LiveServer, TableRecord
from radii.views.tables import _console

SLOW = (
    "radii demo",
    "radii doctor",
    "radii cycle",
    "radii study",
    "resnet_4b",
    "--kind all",
    "lr:L=10",
    "sr:delta=10",
    "mnist:",
    "0.1:5:0.1",
    "experiment.toml --out results --jobs 2",
)
"""Parts of examples that take five seconds or more where much else is running."""

MAY_SAY_NO = ("radii gate", "radii cycle", "radii ensemble verify", "--decide")
"""Checks: exit code 1 is an answer."""

STUDY = """
data = "digits:train[0:100]"
test = "digits:test[0:60]"
eps = 0.05
samples = 8
proof_inputs = 4
deterministic = [{width = 5, activation = ["relu", "tanh"], epochs = 1}]
"""

PUBLISHED = (
    "image_id,epsilon_value,total_time,smallest_sat_value,network_path,split,original_label\n"
    "0,0.005,24.7,0.007,mnist_relu_9_100.onnx,train,5\n"
    "1,0.115,13490.6,0.119,mnist_relu_9_100.onnx,train,0\n"
)

VERONA = ("networks", "images")

PROPERTY = "".join(f"(declare-const X_{i} Real)\n(assert (<= 0 X_{i} 1))\n" for i in range(64))
PROPERTY += "".join(f"(declare-const Y_{i} Real)\n" for i in range(10)) + "(assert (<= Y_0 Y_1))\n"


def examples(parser: argparse.ArgumentParser) -> list[str]:
    """The commands below `examples:`, without what is said about them."""
    section = re.search(r"examples:\n((?:  .*\n)+)", (parser.epilog or "") + "\n")
    if section is None:
        return []
    lines = re.sub(r"\\\n\s*", "", section.group(1)).splitlines()
    inner = [re.sub(r'^eval "\$\((.*)\)".*', r"\1", line.strip()) for line in lines]
    return [re.split(r"\s{2,}", line)[0] for line in inner]


ALL = sorted({example for parser in parsers(build_parser()) for example in examples(parser)})


def marked(example: str) -> ParameterSet:
    is_slow = any(part in example for part in SLOW)
    return pytest.param(example, id=example, marks=[pytest.mark.slow] if is_slow else [])


def test_every_command_has_examples_of_itself() -> None:
    for parser in parsers(build_parser()):
        own = [example for example in examples(parser) if example.startswith(parser.prog)]
        assert own, f"{parser.prog} --help has no example"


@cache
def digits(split: str) -> tuple[np.ndarray, np.ndarray]:
    data = datasets.load("digits", split)
    return data.images, data.labels


def enlarged(name: str, split: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits as uint8 images of the size of a published set's."""
    images, labels = (array[:count] for array in digits(split))
    if name == "gtsrb":
        labels = np.arange(len(labels)) % 43
    channels, size, _ = catalogue.published_set(name).shape
    factor = size // 8
    large = np.kron(images, np.ones((1, channels, factor, factor)))
    large = np.pad(large, ((0, 0), (0, 0), *[((size - 8 * factor) // 2,) * 2] * 2))
    return (255 * large).astype(np.uint8), labels


def write_classifier(path: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """Nearest mean of a class, as one dense layer on flat inputs."""
    flat = images.reshape(len(images), -1)
    means = np.stack([flat[labels == digit].mean(axis=0) for digit in range(10)])
    onnx.save(dense_model((means, -(means**2).sum(axis=1) / 2)), path)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the examples name, where nothing depends on the example."""
    return made_once(tmp_path_factory, "help-examples", write_base)


def write_base(here: Path) -> None:
    images, labels = digits("train")
    for name, part in (("a", slice(0, 400)), ("b", slice(400, 800)), ("c", slice(800, 1200))):
        write_classifier(here / f"{name}.onnx", images[part], labels[part])
    shutil.copy(here / "a.onnx", here / "net.onnx")
    for folder in ("networks", "nets"):
        (here / folder).mkdir()
        for name in "ab":
            shutil.copy(here / f"{name}.onnx", here / folder)
    flags = "--domain 0:1 --grid 0.02:0.4:0.02"
    runs = {
        "results": "--network a.onnx --network b.onnx --data digits:test[0:20]",
        "of-net": "--network net.onnx --data digits:test[0:8]",
        "train": "--network a.onnx --data digits:train[0:8]",
        "test": "--network a.onnx --data digits:test[0:8]",
        "adversarial": "--network b.onnx --data digits:test[0:8]",
        "shards/1": "--network net.onnx --data digits:test[0:8] --shard 1/2",
        "shards/2": "--network net.onnx --data digits:test[0:8] --shard 2/2",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        work_in_this_process(patch)
        for out, what in runs.items():
            assert main(["run", *shlex.split(f"{what} {flags} --out {out}")]) == 0
        shutil.copytree("test", "standard")
        shutil.copytree("results", "radii-demo")
        assert main(["export", "of-net", "--certificates", "files"]) == 0
        shutil.copy(next((here / "files").rglob("*.cert")), "proof.cert")
        (here / "verona_experiment").mkdir()
        for out in ("published.csv", "result_df.csv", "verona_experiment/result_df.csv"):
            assert main(["export", "results", "--format", "verona", "-o", out]) == 0
    toml = 'networks = ["net.onnx"]\ndata = "digits:test[0:20]"\ndomain = "0:1"\n'
    (here / "experiment.toml").write_text(toml + 'grid = "0.01:0.5:0.01"\n')
    (here / "study.toml").write_text(STUDY)
    people = [f"{place},{'ab'[place % 2]}" for place in range(20)]
    (here / "people.csv").write_text("\n".join(["input,sex", *people]) + "\n")
    (here / "jair").mkdir()
    (here / "jair" / "results_JAIR_fomlas.csv").write_text(PUBLISHED)
    (here / "property.vnnlib").write_text(PROPERTY)
    (here / "property.vnnlib.gz").write_bytes(gzip.compress(PROPERTY.encode()))
    images, labels = (array[:20] for array in digits("test"))
    np.savez(here / "images.npz", images=images, labels=labels)
    (here / "net.onnx.gz").write_bytes(gzip.compress((here / "net.onnx").read_bytes()))
    write_foreign(here)


def write_foreign(here: Path) -> None:
    """A benchmark of VNN-COMP, and the data of a VERONA experiment."""
    import torch

    for place in ("bench/onnx", "bench/vnnlib", *(f"verona_experiment/data/{n}" for n in VERONA)):
        (here / place).mkdir(parents=True)
    shutil.copy(here / "a.onnx", here / "bench/onnx")
    shutil.copy(here / "property.vnnlib", here / "bench/vnnlib")
    (here / "bench/instances.csv").write_text("onnx/a.onnx,vnnlib/property.vnnlib,60\n")
    data = here / "verona_experiment/data"
    shutil.copy(here / "a.onnx", data / "networks")
    torch.save(torch.tensor(digits("test")[0][0]), data / "images/digit_0.pt")
    label = digits("test")[1][0]
    (data / "image_labels.csv").write_text(f",image,label\n0,digit_0.pt,{label}\n")


@pytest.fixture
def stand_ins(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the example's own, with the published sets as small as it allows."""
    here = tmp_path / "here"
    shutil.copytree(base, here)
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("RADII_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    work_in_this_process(monkeypatch)
    return here


def arrange(example: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What depends on the example: sizes, and results that are not there yet."""
    counts = [int(n) for n in re.findall(r"\[(?:random )?(?:\d*:)?(\d+)\]", example)]
    loaded = datasets.load

    def load(name: str, split: str = "test") -> datasets.Dataset:
        if name == "digits":
            return loaded(name, split)
        return from_arrays(*enlarged(name, split, max([40, *counts])), name=name, split=split)

    monkeypatch.setattr(sources, "load", load)
    for name in ("mnist", "cifar10"):
        if name in example:
            images, labels = enlarged(name, "train", 400)
            for network in here.glob("*.onnx"):
                write_classifier(network, images / 255, labels)
    out = re.search(r"(?:--out|-o) (\S+)", example)
    if out and (here / out.group(1)).is_dir():
        shutil.rmtree(here / out.group(1))
    elif out:
        (here / out.group(1)).unlink(missing_ok=True)
    if example.startswith("radii init"):
        (here / "experiment.toml").unlink()
    if "DIR/network.onnx" in example:
        (here / "DIR").mkdir()
        shutil.copy(here / "net.onnx", here / "DIR" / "network.onnx")
    if "net.onnx" in example and (here / "results").is_dir() and "experiment" not in example:
        shutil.rmtree(here / "results")
        (here / "of-net").rename(here / "results")
    if "--data images --" in example:
        write_pictures(here / "images")


def write_pictures(folder: Path) -> None:
    from PIL import Image

    for place, (image, label) in enumerate(zip(*digits("test"), strict=True)):
        if place == 40:
            break
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.uint8(255 * image[0])).save(folder / str(label) / f"{place}.png")


def write_published_sets(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sets in their official layouts, in ~/Downloads and where downloads come from."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "datasets")
    import official_files

    for known in catalogue.catalogue():
        module = known.name.replace("-", "_")
        unchecked = replace(known, files={})
        monkeypatch.setattr(f"radii.datasets.published._{module}.PUBLISHED", unchecked)
    official, downloads = home / "official", home / "Downloads"
    official_files.write_mnist(official)
    official_files.write_gtsrb(downloads)
    official_files.write_cifar_batches(home / "cifar-10-batches-bin")
    with tarfile.open(downloads / "cifar-10-binary.tar.gz", "w:gz") as archive:
        archive.add(home / "cifar-10-batches-bin", "cifar-10-batches-bin")

    def fetch(known: catalogue.PublishedSet, directory: Path, progress: object) -> None:
        shutil.copytree(official, directory, dirs_exist_ok=True)

    monkeypatch.setattr(acquisition, "fetch_official", fetch)


def answer_one_request(server: LiveServer, **_: object) -> None:
    """Serve as long as one browser needs to get the page; then Ctrl-C."""
    got = []

    def ask() -> None:
        with urllib.request.urlopen(server.address, timeout=20) as response:
            got.append(response.status)

    asking = threading.Thread(target=ask)
    asking.start()
    server.handle_request()
    asking.join()
    assert got == [200]
    raise KeyboardInterrupt


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[TableRecord]:
    """Every table that is printed from now on."""
    printed: list[TableRecord] = []
    fitted = _console.fitted

    def recorded(made: TableRecord, console: _console.Console) -> Iterator[Table | Text]:
        printed.append(made)
        yield from fitted(made, console)

    monkeypatch.setattr(_console, "fitted", recorded)
    return printed


@pytest.mark.parametrize("example", [marked(example) for example in ALL])
def test_example(
    example: str,
    stand_ins: Path,
    tables: list[TableRecord],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arrange(example, stand_ins, monkeypatch)
    if example.startswith("radii data get"):
        write_published_sets(stand_ins.parent, monkeypatch)
    if example.startswith("radii serve"):
        monkeypatch.setattr(LiveServer, "serve_forever", answer_one_request)
        monkeypatch.setattr("webbrowser.open", lambda address: True)
    if example == "radii init":
        answers = iter(["net.onnx", "digits", "30"])
        monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda _: True})())
        monkeypatch.setattr("builtins.input", lambda _: next(answers))
    if example.startswith("radii study show"):
        assert main(["study", "tradeoff", "--description", "study.toml", "--out", "small"]) == 0
    words = shlex.split(re.split(r" >>? ", example)[0].replace("~", str(stand_ins.parent)))
    try:
        code = main(words[1:])
    except SystemExit as ended:  # --help
        code = int(ended.code or 0)
    told = capsys.readouterr()
    allowed = {0, 1} if any(part in example for part in MAY_SAY_NO) else {0}
    assert code in allowed, told.err
    assert told.out or (stand_ins / words[-1]).exists() or "--out" in words or "-o" in words
    monkeypatch.undo()
    for made in tables:
        assert_nothing_lost(made)
