"""`radii verify --instances`: VNN-COMP's lists and results."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from conftest import dense_model
from radii.cli import _verify, main
from radii.cli._verify import VerifyResult
from radii.errors import InputError, StoreError
from radii.vnnlib import (
    ListedInstance,
    Outcome,
    ResultRow,
    ResultTable,
    Verification,
    counterexample_names,
    parse_verification,
    read_problem,
)

DECLARED = "".join(f"(declare-const {v}_{i} Real)\n" for v in "XY" for i in (0, 1))
UNIT = "(assert (<= 0 X_0 1)) (assert (<= 0 X_1 1))\n"


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    """y = x: `above` asks for y_0 >= 0.9 (sat), `beyond` for y_0 >= 2 (unsat)."""
    folder = tmp_path / "tiny"
    for name in ("onnx", "vnnlib"):
        (folder / name).mkdir(parents=True)
    model = dense_model((np.eye(2), np.zeros(2)))
    packed = gzip.compress(model.SerializeToString())
    (folder / "onnx" / "same.onnx.gz").write_bytes(packed)  # the list names same.onnx
    for name, limit in (("above", 0.9), ("beyond", 2)):
        text = DECLARED + UNIT + f"(assert (>= Y_0 {limit}))\n"
        (folder / "vnnlib" / f"{name}.vnnlib").write_text(text)
    return folder


def listed(benchmark: Path, *lines: str) -> Path:
    path = benchmark / "instances.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def results(path: Path) -> list[list[str]]:
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


def test_a_list_with_a_bad_line(
    benchmark: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    instances = listed(
        benchmark,
        "onnx/same.onnx,vnnlib/above.vnnlib,900",
        "onnx/absent.onnx,vnnlib/above.vnnlib,900",
        "",
        "onnx/same.onnx,vnnlib/beyond.vnnlib,900.0",
        "onnx/same.onnx",
    )
    out = tmp_path / "found" / "results.csv"
    assert main(["verify", "--instances", str(instances), "--out", str(out)]) == 2
    rows = results(out)
    assert [row[4] for row in rows] == ["sat", "error", "unsat", "error"]
    assert rows[0][:3] == ["tiny", "onnx/same.onnx", "vnnlib/above.vnnlib"]
    assert all(float(row[3]) >= 0 and float(row[5]) >= 0 for row in rows)
    told = capsys.readouterr()
    assert "line 2: " in told.err
    assert "absent.onnx does not exist" in told.err
    assert "line 5: 'onnx/same.onnx' is not of the form" in told.err
    assert "2 error, 1 sat, 1 unsat" in told.out

    content = gzip.decompress((out.parent / "same_above.counterexample.gz").read_bytes()).decode()
    assert content.startswith("((X_0 ")
    assert content.rstrip().endswith("))")
    found = parse_verification("sat\n" + content)
    assert found.inputs is not None
    assert found.outputs is not None
    problem = read_problem(benchmark / "vnnlib" / "above.vnnlib")
    assert problem.is_solved_by(found.inputs, found.outputs)
    np.testing.assert_allclose(found.outputs, found.inputs)


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Nothing is decided for real; the limits of what was asked."""
    asked: list[float] = []

    def decide(args: object, started: float, seconds: float) -> VerifyResult:
        asked.append(seconds)
        return VerifyResult(Verification(Outcome.UNSAT), "nobody")

    monkeypatch.setattr(_verify, "decide_in_time", decide)
    return asked


def run(instances: Path, out: Path, *more: str) -> int:
    return main(["verify", "--instances", str(instances), "--out", str(out), *more])


def test_what_is_there_is_kept_errors_are_tried_again(
    benchmark: Path, tmp_path: Path, decided: list[float]
) -> None:
    instances = listed(
        benchmark,
        "onnx/same.onnx,vnnlib/above.vnnlib,10",
        "onnx/same.onnx,vnnlib/later.vnnlib,20",
        "onnx/same.onnx,vnnlib/beyond.vnnlib,30",
    )
    out = tmp_path / "results.csv"
    assert run(instances, out) == 2
    assert decided == [10, 30]
    with out.open("a") as stream:
        stream.write("tiny,onnx/same.onnx,vnnl")  # killed while it wrote
    (benchmark / "vnnlib" / "later.vnnlib").write_text(DECLARED + UNIT + "(assert (>= Y_0 0))\n")
    assert run(instances, out) == 0
    assert decided == [10, 30, 20]
    assert [row[2] for row in results(out)] == [
        "vnnlib/above.vnnlib",
        "vnnlib/later.vnnlib",
        "vnnlib/beyond.vnnlib",
    ]
    assert run(instances, out) == 0
    assert decided == [10, 30, 20]


def test_timeout_is_a_cap_and_fills_what_lines_lack(
    benchmark: Path, tmp_path: Path, decided: list[float]
) -> None:
    instances = listed(
        benchmark, "onnx/same.onnx,vnnlib/above.vnnlib,10", "onnx/same.onnx,vnnlib/beyond.vnnlib"
    )
    assert run(instances, tmp_path / "a.csv", "--timeout", "4") == 0
    assert decided == [4, 4]
    assert run(instances, tmp_path / "b.csv") == 2  # the second line has no limit
    assert (
        run(listed(benchmark, "onnx/same.onnx,vnnlib/above.vnnlib,soon"), tmp_path / "c.csv") == 2
    )


def test_results_of_another_list_are_refused(
    benchmark: Path, tmp_path: Path, decided: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results.csv"
    out.write_text("a,b.onnx,c.vnnlib,0.1,sat,2\n")
    instances = listed(benchmark, "onnx/same.onnx,vnnlib/above.vnnlib,10")
    assert run(instances, out) == 2
    assert "which the list does not have" in capsys.readouterr().err
    assert out.read_text() == "a,b.onnx,c.vnnlib,0.1,sat,2\n"
    out.write_text("my notes\n")
    assert run(instances, out) == 2
    assert not decided


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"\n\n"])
def test_lists_that_are_none(
    benchmark: Path, tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = benchmark / "instances.csv"
    path.write_bytes(content)
    assert run(path, tmp_path / "r.csv") == 2
    assert run(benchmark / "absent.csv", tmp_path / "r.csv") == 2
    assert capsys.readouterr().err.count("radii: ") == 2


def test_flags_that_do_not_go_together(benchmark: Path, linear_file: Path) -> None:
    instances = listed(benchmark, "onnx/same.onnx,vnnlib/above.vnnlib,10")
    assert main(["verify", str(linear_file), "--instances", str(instances)]) == 2
    assert main(["verify", str(linear_file)]) == 2
    assert main(["verify"]) == 2


def test_counterexamples_of_one_name_are_told_apart() -> None:
    made = counterexample_names(
        [
            ListedInstance(1, "onnx/a.onnx", "vnnlib/p.vnnlib"),
            ListedInstance(2, "onnx/n.onnx", "vnnlib/x/p.vnnlib.gz"),
            ListedInstance(3, "onnx/n.onnx", "vnnlib/y/p.vnnlib"),
            ListedInstance(4, "m/n.onnx", "vnnlib/y/p.vnnlib"),
        ]
    )
    assert made[0] == "a_p.counterexample.gz"
    assert made[1] == "x_n_p.counterexample.gz"
    assert made[2:] == ["y_n_p_line_3.counterexample.gz", "y_n_p_line_4.counterexample.gz"]


def test_rows_survive_commas_and_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    row = ResultRow("c", "a,b.onnx", "p.vnnlib", 0.25, "sat", 1.5)
    assert ResultRow.parse(next(csv.reader([str(row)]))) == row
    with pytest.raises(InputError):
        ResultTable(tmp_path, [])
    (tmp_path / "bytes.csv").write_bytes(b"\xff\n")
    with pytest.raises(StoreError):
        ResultTable(tmp_path / "bytes.csv", [])


def test_a_file_that_is_no_results_is_left_alone(tmp_path: Path) -> None:
    """One line without an end is not taken for a row that was cut off, unless it is one."""
    out = tmp_path / "notes.json"
    for content in ('{"dear": "notes"}', "t,n.onnx,p.vnnlib,0.1,banana,2\n", "x" * 200_000 + "\n"):
        out.write_text(content)
        with pytest.raises(StoreError, match=r"not a file of results|not a result"):
            ResultTable(out, [("n.onnx", "p.vnnlib")])
        assert out.read_text() == content
    out.write_text("t,n.onnx,p.vnnlib,0.1,un")
    rows = ResultTable(out, [("n.onnx", "p.vnnlib")])
    rows.close()
    assert rows[0] is None
    assert out.read_text() == ""


@pytest.mark.parametrize("name", ["x" * 400, ".", "/", "a\0b"])
def test_names_that_no_file_has(
    benchmark: Path,
    tmp_path: Path,
    decided: list[float],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(benchmark)
    listed(
        benchmark,
        f"{name},vnnlib/above.vnnlib,10",
        f"onnx/same.onnx,{name},10",
        "onnx/same.onnx,vnnlib/above.vnnlib,10",
    )
    assert run(Path("instances.csv"), tmp_path / "r.csv") == 2
    assert [row[4] for row in results(tmp_path / "r.csv")] == ["error", "error", "unsat"]


def test_a_second_try_does_not_take_the_counterexample_away(
    benchmark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same instance twice, the second time with too little time."""

    def decide(args: object, started: float, seconds: float) -> VerifyResult:
        if seconds < 5:
            return VerifyResult(Verification(Outcome.TIMEOUT), "nobody")
        values = np.zeros(2), np.zeros(2)
        return VerifyResult(Verification(Outcome.SAT, *values), "nobody", replayed_on="here")

    monkeypatch.setattr(_verify, "decide_in_time", decide)
    line = "onnx/same.onnx,vnnlib/above.vnnlib"
    assert run(listed(benchmark, f"{line},10", f"{line},1"), tmp_path / "r.csv") == 0
    assert [row[4] for row in results(tmp_path / "r.csv")] == ["sat", "timeout"]
    kept = tmp_path / "same_above.counterexample.gz"
    assert kept.exists()
    assert run(listed(benchmark, f"{line},1"), tmp_path / "again.csv") == 0
    assert not kept.exists()
