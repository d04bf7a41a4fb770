"""`radii plot`: files written, and one sentence for what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from radii.cli import main
from radii.cli._sources import brackets_of, read_runs
from radii.errors import StoreError

ROWS = """network,input,label,lower,upper,seconds,split
a.onnx,0,0,0.10,0.12,1.0,train
a.onnx,1,0,0.14,0.16,1.0,train
a.onnx,2,1,0.20,0.24,2.0,train
b.onnx,0,0,0.08,0.10,1.5,train
b.onnx,1,0,0.18,0.20,1.0,train
b.onnx,2,1,0.30,,3.0,train
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results.csv"
    path.write_text(ROWS)
    return path


def test_one_file(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new" / "ecdf.svg"
    assert main(["plot", str(results), "--kind", "ecdf", "-o", str(target)]) == 0
    assert capsys.readouterr().out.strip() == str(target)
    assert target.read_text().startswith("<?xml")


def test_a_folder_of_figures(results: Path, tmp_path: Path) -> None:
    words = ["--kind", "box,classes", "--format", "pdf,png", "--width", "column"]
    assert main(["plot", str(results), *words, "-o", str(tmp_path / "f")]) == 0
    names = {path.name for path in (tmp_path / "f").iterdir()}
    assert names == {
        f"{kind}.{end}" for kind in ("box", "classes") for end in ("pdf", "png", "txt")
    }


@pytest.mark.parametrize("kind", ["robust-accuracy", "security"])
def test_lines_beyond_the_axis_are_told(
    kind: str, results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = ["--kind", kind, "-o", str(tmp_path / "sr.png")]
    assert main(["plot", str(results), *target, "--eps", "8/255,0.5,0.7"]) == 0  # no warning
    told = capsys.readouterr().err
    assert "--eps 0.5, 0.7 lies beyond every radius" in told and told.count("\n") == 1


@pytest.mark.slow
def test_all_that_the_results_allow(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", str(results), "--kind", "all", "-o", str(tmp_path / "f")]) == 0
    told = capsys.readouterr()
    assert "targets is left out: no bracket has a target" in told.err
    assert (tmp_path / "f" / "leads.pdf").exists()
    assert not (tmp_path / "f" / "targets.pdf").exists()


REFUSED = {
    "--kind pie": "figure 'pie' is not one of ecdf, robust-accuracy, satisfaction",
    "--kind ecdf,box -o x.pdf": "one file holds one figure",
    "--kind targets": "targets: no bracket has a target: measure with --property one-to-one",
    "-o x.tiff": "ends in .pdf, .svg or .png",
    "--format gif": "format 'gif' is not one of pdf, svg, png",
    "--width wide": "--width 'wide' is not a number",
    "--width 0.1": "from 1.5 to 40 inches",
    "--eps small": "--eps 'small' is not a number",
    "--eps=-0.1": "--eps -0.1 must be a finite number >= 0",
    "--only network=c": "--only network=c: the results have a, b",
    "--only size=3": "--only size=3: write one of network, class",
    "--by colour": "groups are by network, class, target, split, training, group, not by 'colour'",
    "--kind box --sort size": "boxes are sorted by minimum, median or none, not 'size'",
    "--kind fit --family cauchy": "family 'cauchy' is not one of",
    "--kind gains": "name it with --eps",
    "--kind leads --only network=a": "two networks are compared, not 1",
    "--confidence 2": "level is between 0 and 1",
}


@pytest.mark.parametrize("flags", REFUSED)
def test_refused_in_one_sentence(
    flags: str, results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(results.parent)
    assert main(["plot", str(results), *flags.split()]) == 2
    told = capsys.readouterr().err
    assert REFUSED[flags] in told
    assert told.count("\n") == 1


def test_results_given_twice_or_absent(results: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="given twice"):
        read_runs([results, results])
    with pytest.raises(StoreError, match="no such file"):
        read_runs([tmp_path / "nothing"])


def test_networks_of_one_name_carry_their_place(results: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(ROWS.replace("b.onnx", "c.onnx").replace("train", ""))
    both = brackets_of(read_runs([results, other], split="train"))
    assert set(both.networks) == {"a (results)", "b", "a (other)", "c"}
    assert set(both.column("split").tolist()) == {"train"}
