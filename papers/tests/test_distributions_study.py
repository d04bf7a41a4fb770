"""The study of the JAIR paper on an excerpt whose answers are known, and its committed page.

The excerpt has the quirks of the public files: a first column without a name, blanks before names,
empty cells, rows that contradict themselves, and testing rows that repeat training rows.
"""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from conftest import SHARED_DATA, dense_model, needs_shared_data, work_in_this_process
from radii.cli import main
from radii.errors import DataError
from radii_papers import _running
from radii_papers._claims import read_claims
from radii_papers._steps import StudyScale, StudySettings
from radii_papers._tables import Beside
from radii_papers.distributions import _audit, _families, _numbers
from radii_papers.distributions._audit import write_drawn_images
from radii_papers.distributions._public import (
    ALL_NETWORKS,
    NETWORKS_OF_SECTION_4,
    SPLITS,
    PublicResults,
    networks_of,
    read_public,
    unanswered_images,
)
from radii_papers.distributions._quality import log_normal_p_value, quality_row
from radii_papers.distributions._statistics import statistics_row
from radii_papers.distributions._study import DISTRIBUTIONS

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "distributions.md"

IMAGES = 8

FITTED = ("mnist_nn", "mnist_nn_fgsm", "cifar_7_1024_fgsm", "gtsrb_6_256_pgd")


class Silent:
    def step(self, heading: str, done: int, total: int) -> None: ...
    def inside(self) -> None: ...


def write_rows(path: Path, rows: list[tuple[object, ...]], *, has_index: bool = True) -> None:
    header = "image_id,epsilon_value,total_time,smallest_sat_value,network_path,split,training"
    names = (["", *header.split(",")] if has_index else header.split(",")) + ["original_label"]
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        for place, row in enumerate(rows):
            writer.writerow([place, *row] if has_index else row)


def rows_of(
    name: str, split: str, seed: int, start: float = 0.001, step: float = 0.002
) -> list[tuple[object, ...]]:
    """Brackets of one step, at multiples of it drawn at random; 100 s a row."""
    places = np.random.default_rng(seed).integers(1, 20, IMAGES)
    lower = [round(start + step * int(place), 4) for place in places]
    return [
        (image, value, 100.5, round(value + step, 4), f" {name}.onnx", split, "any", 0)
        for image, value in enumerate(lower)
    ]


@pytest.fixture(scope="module")
def excerpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few networks of every table, with a network at hand whose radii are known."""
    folder = tmp_path_factory.mktemp("jair")
    (folder / "public").mkdir()
    (folder / "networks").mkdir()
    first = []
    for seed, name in enumerate(("mnist_relu_4_1024", "mnist-net_256x4", "mnist-net")):
        for split in ("train", "test"):
            first += rows_of(name, split, seed=seed + (split == "test") * 10)
        first += [(120, 0.01, 9.5, 0.012, f"{name}.onnx", "train", "any", 0)]
    # Radii of images 0 to 3 are 0.5: claims below are true, those above are refuted.
    claims = ((0, 0.4, 50.5), (1, 0.6, 3600.5), (2, 0.45, 10.5), (3, 0.55, 9000.5))
    for image, claimed, seconds in claims:
        first.append((image, claimed, seconds, claimed + 0.002, "mnist_nn.onnx", "train", "any", 0))
    first.append((4, "", 20.5, 0.003, "mnist_nn.onnx", "train", "any", 0))
    first += rows_of("mnist_nn", "test", seed=7)
    write_rows(folder / "public" / "results_JAIR_fomlas.csv", first)
    trained = []
    for training in ("standard", "fgsm", "pgd"):
        same = rows_of(f"mnist_nn_{training}", "train", seed=30)
        trained += same
        is_copied = training == "standard"
        trained += [(*row[:5], "test", *row[6:]) for row in same] if is_copied else []
        if not is_copied:
            trained += rows_of(f"mnist_nn_{training}", "test", seed=31)
    trained += rows_of("convSmallRELU__Point", "train", seed=32)
    trained += rows_of("convSmallRELU__Point", "test", seed=33)
    write_rows(folder / "public" / "results_MNIST_JAIR.csv", trained)
    for file, names in (
        ("results_CIFAR_JAIR.csv", ("cifar_7_1024_fgsm", "resnet_4b_fgsm")),
        ("results_GTSRB_JAIR.csv", ("gtsrb_6_256_pgd", "gtsrb_cnn_deep_game_pgd")),
    ):
        rows = []
        for seed, name in enumerate(names):
            for split in ("train", "test"):
                rows += rows_of(name, split, start=0.0, step=0.0039, seed=seed)
        write_rows(folder / "public" / file, rows, has_index=False)
    write_network(folder)
    return folder


def write_network(folder: Path) -> None:
    """y0 = x0, y1 = x1, all other classes below: the radius of x0 = 1, x1 = 0 is 1/2."""
    weights, bias = np.zeros((10, 784)), np.full(10, -1.0)
    weights[0, 0] = weights[1, 1] = 1.0
    bias[:2] = 0.0
    onnx.save(dense_model((weights, bias)), folder / "networks" / "mnist_nn.onnx")
    images = np.zeros((5, 28, 28), np.uint8)
    images[:, 0, 0] = 255
    np.savez(folder / "mnist_train_0_49.npz", images=images, labels=np.zeros(5, np.int64))
    signs = np.random.default_rng(0).integers(0, 256, (110, 32, 32, 3), dtype=np.uint8)
    kinds = np.arange(110) % 43
    np.savez(
        folder / "gtsrb_small.npz",
        x_train=signs[:90],
        y_train=kinds[:90],
        x_test=signs[90:],
        y_test=kinds[90:],
    )


@pytest.fixture(scope="module")
def made(excerpt: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole study of the excerpt: families are fitted to a network of each table, and tested by
    few simulated samples."""
    out = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        work_in_this_process(patch)
        patch.setenv("RADII_DATA", str(out / "nothing"))  # the same everywhere
        patch.setitem(_families.SIMULATIONS, StudyScale.SMALL, (19, 19))
        patch.setattr(_families, "ALL_NETWORKS", [n for n in ALL_NETWORKS if n.name in FITTED])
        patch.setattr(_running, "FIGURE_SUFFIXES", (".png",))
        command = ["study", "distributions", "--data", str(excerpt), "--out", str(out)]
        assert main([*command, "--page", str(out / "page.md")]) == 0
    return out


def layout(page: Path) -> list[str]:
    """Headings, titles and columns of tables, and figures, in their order; counts left out."""
    lines = page.read_text().splitlines()
    found = []
    for place, line in enumerate(lines):
        if "trained.png" in line:
            continue  # of networks that learned something: in noise there is nothing to learn
        if line.startswith("| ---"):
            found.append(lines[place - 1])
        elif line.startswith(("#", "**Table", "**The", "![")):
            found.append(re.sub(r"\([^)]*/([\w-]+\.png)\)", r"(\1)", line))
    return found


def test_the_committed_page_is_what_the_command_writes(made: Path) -> None:
    """Every heading, table and figure of one is in the other: nothing is added by hand."""
    assert layout(made / "page.md") == layout(PAGE)


def test_prose_of_the_committed_page_is_the_commands(made: Path) -> None:
    """Sentences differ in numbers and names alone, and parts may be of another scale."""

    def sentences(page: Path) -> set[str]:
        text = "\n".join(
            line
            for line in page.read_text().splitlines()
            if line and not line.startswith(("|", "!", "*", "#", "`", "20", "This part is of"))
        )
        return {" ".join(re.sub(r"[\d.,%]+", "", part).split()[:4]) for part in text.split("\n")}

    assert sentences(PAGE) == sentences(made / "page.md")


def claims(page: Path) -> list[tuple[str, ...]]:
    """Of each claim: what the paper says, where, how it was tested, its scope, and the step."""
    (of_page,) = read_claims([page])
    rows = zip(of_page.claims, of_page.commands, strict=True)
    return [(c.claim, c.place, c.test, c.scope, command.split()[-1]) for c, command in rows]


def test_claims_of_the_committed_page_are_the_commands(made: Path) -> None:
    """A page is made of steps that were kept: their words must be those of the code as it is."""
    assert claims(PAGE) == claims(made / "page.md")


MEASURED = ("k-table", "families", "audit", "sound-brackets", "trained", "autoattack")
"""Steps that measure or simulate, whose numbers change with the scale or with the machine."""


def parts_of(page: Path) -> dict[str, list[str]]:
    """The lines of a page by the heading of their step."""
    found: dict[str, list[str]] = {}
    for line in page.read_text().splitlines():
        if line.startswith("#"):
            heading = line
        found.setdefault(heading, []).append(line)
    return found


@pytest.mark.slow
@needs_shared_data
def test_every_number_of_the_committed_page_is_the_commands(tmp_path: Path) -> None:
    """What is read from the public files themselves is written again, line by line."""
    page = tmp_path / "distributions.md"
    steps = [step for step in DISTRIBUTIONS.steps if step.name not in MEASURED]
    command = ["study", "distributions", "--data", str(SHARED_DATA / "jair"), "--page", str(page)]
    only = ["--only", ",".join(step.name for step in steps)]
    assert main([*command, "--out", str(tmp_path / "out"), *only]) == 0
    again, committed = parts_of(page), parts_of(PAGE)
    for step in steps:
        assert again[f"### {step.heading}"] == committed[f"### {step.heading}"]


def test_the_first_lines_say_when_where_how_long_and_at_which_scale() -> None:
    first = PAGE.read_text().splitlines()[2]
    assert re.match(r"\d{4}-\d\d-\d\d, \d+ cores of .+, .* of the CPU\), scale `\w+`", first)


def test_known_rows(excerpt: Path) -> None:
    results = read_public(excerpt)
    nn = next(each for each in NETWORKS_OF_SECTION_4 if each.title == "nn")
    row = statistics_row(results, nn, _numbers.CONVENTIONAL[("nn",)])
    assert row["lowest, train"] == Beside(0.4, "0.001")
    mean = row["mean, train"]
    assert isinstance(mean, Beside) and mean.ours == pytest.approx(0.5) and mean.paper == "0.030"
    assert row["rows, train"] == Beside(4, "80")  # the empty cell is dropped, as in the paper
    kept = results.part(nn, "train", is_dropped=False)
    assert kept is not None and len(kept) == 5 and kept.lower.min() == 0


def test_images_beyond_the_papers_do_not_count(excerpt: Path) -> None:
    results = read_public(excerpt)
    net = next(each for each in NETWORKS_OF_SECTION_4 if each.title == "net")
    paper, everything = results.part(net, "train"), results.part(net, "train", images=None)
    assert paper is not None and everything is not None
    assert (len(paper), len(everything)) == (IMAGES, IMAGES + 1)


def test_testing_rows_that_repeat_training_rows_are_found(excerpt: Path) -> None:
    assert read_public(excerpt).relabelled == {"mnist_nn Standard": (IMAGES, IMAGES)}


def test_the_audit_refutes_what_is_wrong_and_its_witnesses_replay(
    made: Path, excerpt: Path
) -> None:
    with (made / "audit" / "audit.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    outcomes = {int(row["image"]): row["outcome"] for row in rows if row["network"] == "mnist_nn"}
    # Three of the four are drawn; which do not matter.
    assert len(outcomes) == 3
    assert outcomes.items() <= {0: "stands", 1: "refuted", 2: "stands", 3: "refuted"}.items()
    refuted = [row for row in rows if row["outcome"] == "refuted"]
    for row in refuted:
        assert float(row["closest_witness"]) == pytest.approx(0.5, abs=1e-3)
        assert row["file"] == "results_JAIR_fomlas.csv" and int(row["row"]) > 1
        assert (made / "audit" / row["witness_file"]).exists()
    script = [sys.executable, str(made / "audit" / "replay.py"), str(made / "audit")]
    done = subprocess.run(
        [*script, str(excerpt / "networks")], capture_output=True, text=True, check=True
    )
    assert f"'refuted': {len(refuted)}" in done.stdout
    assert "import radii" not in (made / "audit" / "replay.py").read_text()


def test_a_damaged_witness_does_not_replay(made: Path, excerpt: Path, tmp_path: Path) -> None:
    (witness, *_) = sorted(made.glob("audit/*/witnesses/*.npz"))
    saved = dict(np.load(witness))
    folder = tmp_path / "group" / "witnesses"
    folder.mkdir(parents=True)
    np.savez(folder / witness.name, **{**saved, "witness": saved["image"]})
    script = [sys.executable, str(made / "audit" / "replay.py"), str(tmp_path)]
    done = subprocess.run([*script, str(excerpt / "networks")], capture_output=True, text=True)
    assert done.returncode == 1 and "does not replay" in done.stdout


def test_tables_in_three_forms(made: Path) -> None:
    for name in ("table-2", "table-5", "table-23", "families-questions", "audit-network"):
        for suffix in ("csv", "md", "tex"):
            assert (made / "tables" / f"{name}.{suffix}").stat().st_size > 50


def test_no_data_no_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["study", "distributions", "--out", str(tmp_path / "out"), "--data"]
    assert main([*command, str(tmp_path / "nowhere")]) == 2
    assert "no such folder of the paper's tables" in capsys.readouterr().err
    assert main([*command, str(tmp_path)]) == 2
    assert "has none of the paper's tables" in capsys.readouterr().err


def test_the_papers_check_of_log_normality() -> None:
    """As if parameters were known: far too rarely rejected, but rejected where it must be."""
    rng = np.random.default_rng(0)
    right, wrong = rng.lognormal(-3, 0.5, 200), np.linspace(0.01, 1, 2000)
    assert (log_normal_p_value(right) or 0.0) > 0.3
    assert (log_normal_p_value(wrong) or 1.0) < 1e-6
    assert log_normal_p_value(np.array([0.0, 0.1, 0.1])) is None


# --- the public files themselves


@pytest.fixture(scope="module")
def public() -> PublicResults:
    return read_public(SHARED_DATA / "jair")


@needs_shared_data
def test_every_network_has_its_rows(public: PublicResults) -> None:
    for each in ALL_NETWORKS:
        for split in SPLITS:
            assert public.part(each, split, is_dropped=False) is not None, each
    rows = sum(len(table) for name in ("conventional", "MNIST", "CIFAR-10", "GTSRB")
               if (table := public.table(name)) is not None)  # fmt: skip
    assert rows == 10_277
    assert set(public.relabelled) == {"mnist_nn Standard", "mnist_relu_4_1024 Standard"}


@needs_shared_data
def test_numbers_of_the_paper_are_reached(public: PublicResults) -> None:
    """Nearly all of Table 5, and the check of log-normality in every row of GTSRB."""
    cells = [
        cell
        for each in NETWORKS_OF_SECTION_4
        for cell in statistics_row(public, each, _numbers.CONVENTIONAL[(each.title,)]).values()
        if isinstance(cell, Beside)
    ]
    assert sum(bool(cell.agrees) for cell in cells) >= 0.9 * len(cells)
    for each in networks_of("GTSRB", convolutional=False):
        row = quality_row(public, each)
        for split in ("train", "test"):
            cell = row[f"log-normal, {split}"]
            assert isinstance(cell, Beside) and cell.agrees


@needs_shared_data
def test_errors_of_cifar_networks_are_exchanged(public: PublicResults) -> None:
    """Rows and errors add up to about what the networks classify correctly only then."""
    off = {"as printed": 0.0, "exchanged": 0.0}
    for each in networks_of("CIFAR-10"):
        for place, split in enumerate(SPLITS):
            accuracy = float(_numbers.ACCURACIES[each.architecture, each.training][place])
            part = public.part(each, split)
            rows = 0 if part is None else len(part)
            errors = [unanswered_images(each, side) for side in (split, SPLITS[1 - place])]
            off["exchanged"] += abs(rows + errors[0] - accuracy)
            off["as printed"] += abs(rows + errors[1] - accuracy)
    assert off["exchanged"] < 0.6 * off["as printed"]


@needs_shared_data
def test_the_papers_cifar_images_are_drawn_again(public: PublicResults, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    table = public.table("CIFAR-10")
    assert table is not None
    for split in SPLITS:
        path = tmp_path / f"{split}.npz"
        try:
            write_drawn_images("cifar10", split, path)
        except DataError as error:
            pytest.skip(str(error))
        part = table.only(split=split)
        labels = np.load(path)["labels"]
        assert np.array_equal(labels[part.column("input")], part.label)


# --- a clone of the paper's repository


def as_clone(excerpt: Path, clone: Path) -> Path:
    """The excerpt in the layout of the repository, which holds some networks twice."""
    places = {
        "results_JAIR_fomlas.csv": "data/MNIST/FOMLAS",
        "results_MNIST_JAIR.csv": "data/MNIST",
        "results_CIFAR_JAIR.csv": "data/CIFAR-10",
        "results_GTSRB_JAIR.csv": "data/GTSRB",
    }
    for name, place in places.items():
        (clone / place).mkdir(parents=True, exist_ok=True)
        shutil.copy(excerpt / "public" / name, clone / place)
    for place in ("MNIST/ffnn", "MNIST/fomlas"):
        (clone / "networks_onnx" / place).mkdir(parents=True)
        shutil.copy(excerpt / "networks" / "mnist_nn.onnx", clone / "networks_onnx" / place)
    return clone


def test_a_clone_of_the_papers_repository_is_taken_as_it_is(excerpt: Path, tmp_path: Path) -> None:
    ours, clone = read_public(excerpt), read_public(as_clone(excerpt, tmp_path))
    assert set(clone.networks) == set(ours.networks) == {"mnist_nn"}
    for name in ("conventional", "MNIST", "CIFAR-10", "GTSRB"):
        one, two = ours.table(name), clone.table(name)
        assert one is not None and two is not None and len(one) == len(two)
    assert {path.suffix for path in clone.files} == {".csv", ".onnx"}


def test_a_clone_is_audited_and_what_cannot_be_attacked_is_said(
    excerpt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traffic sign network is there, and its images are not."""
    work_in_this_process(monkeypatch)
    monkeypatch.setenv("RADII_DATA", str(tmp_path / "nothing"))
    clone = as_clone(excerpt, tmp_path / "clone")
    signs = clone / "networks_onnx" / "GTSRB"
    signs.mkdir(parents=True)
    shutil.copy(excerpt / "networks" / "mnist_nn.onnx", signs / "gtsrb_6_256_pgd.onnx")
    groups = [
        _audit.AuditGroup("conventional", "train", str(excerpt / "mnist_train_0_49.npz")),
        _audit.AuditGroup("GTSRB", "train", str(tmp_path / "gtsrb-train.npz")),
    ]
    monkeypatch.setattr(_audit, "audit_groups", lambda *_: groups)
    settings = StudySettings(StudyScale.MACHINE, clone, tmp_path / "audit", 0, Silent())
    found = _audit.run_audit(read_public(clone), settings)
    assert {row.image: row.outcome for row in found.rows} == {
        0: "stands", 1: "refuted", 2: "stands", 3: "refuted",
    }  # fmt: skip
    (missing,) = found.missing
    assert (
        missing.startswith(f"{IMAGES} of GTSRB, train: data set 'gtsrb'")
        or "scikit-learn" in missing
    )
    assert found.claims > len(found.rows)


def test_images_that_are_not_the_published_ones_are_refused(
    excerpt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the labels of the published rows."""
    work_in_this_process(monkeypatch)
    images = dict(np.load(excerpt / "mnist_train_0_49.npz"))
    np.savez(tmp_path / "other.npz", images=images["images"], labels=images["labels"] + 1)
    group = _audit.AuditGroup("conventional", "train", str(tmp_path / "other.npz"))
    monkeypatch.setattr(_audit, "audit_groups", lambda *_: [group])
    settings = StudySettings(StudyScale.MACHINE, excerpt, tmp_path / "audit", 0, Silent())
    with pytest.raises(DataError, match="not the published images"):
        _audit.run_audit(read_public(excerpt), settings)
