"""Published files: their columns and variants, and what cannot be taken at its word."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from radii.errors import DataError
from radii.problem import Grid
from radii.statistics import Distribution, fit_all, read, statistics_table, verona_frame

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "jair" / "published_results.csv"

needs_published = pytest.mark.skipif(
    not PUBLISHED.is_file(), reason=f"the published results are not at {PUBLISHED}"
)


def written(folder: Path, text: str, name: str = "result_df.csv") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@needs_published
def test_published_statistics_are_those_of_pandas() -> None:
    frame = pd.read_csv(PUBLISHED)
    expected = frame.groupby("network_path").epsilon_value.agg(["min", "mean", "count"])
    imported = read(PUBLISHED)
    assert len(imported.brackets) == len(frame)
    parts = imported.brackets.by_network()
    assert {f"{name}.onnx" for name in parts} == set(expected.index)
    for name, part in parts.items():
        row = expected.loc[f"{name}.onnx"]
        assert part.minimum()[0] == row["min"]
        assert part.mean()[0] == pytest.approx(row["mean"], rel=1e-12)
        assert len(part) == row["count"]
    contradicted = frame.smallest_sat_value <= frame.epsilon_value
    (note,) = imported.notes
    assert f"{contradicted.sum()} of {len(frame)} rows claim a proof at or beyond" in note
    seconds = imported.brackets.column("seconds").sum()
    assert seconds == pytest.approx(frame.total_time.sum())


@needs_published
def test_published_brackets_are_summarised_and_fitted() -> None:
    dist = read(PUBLISHED).brackets
    table = statistics_table(dist)
    assert len(table) == 6
    for part in dist.by_network().values():
        assert part.turnbull().shortfall < 1e-5
        assert len(fit_all(part)) == 4


@needs_published
def test_contradicted_claims_can_be_dropped() -> None:
    claimed = read(PUBLISHED).brackets
    doubted = read(PUBLISHED, distrust=True)
    dropped = claimed.lower != doubted.brackets.lower
    assert dropped.sum() == 6
    assert np.all(doubted.brackets.lower[dropped] == 0)
    assert "it is dropped" in doubted.notes[0]


def test_variants_of_columns_and_cells(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        ",Image_ID, epsilon_value,runtime, smallest_sat_value,network_path,original_label\n"
        "0,image_3, 0.01, 2.5, 0.012,/nets/a.onnx,5.0\n"
        "1,4, 0.02,,,C:\\nets\\a.onnx,7\n"
        "2, 5.0,, 1.0, 0.03,/nets/b.onnx,\n",
    )
    imported = read(path, split="test", training="pgd")
    dist = imported.brackets
    assert dist.column("input").tolist() == [3, 4, 5]
    assert dist.lower.tolist() == [0.01, 0.02, 0.0]
    assert dist.upper.tolist() == [0.012, math.inf, 0.03]
    assert dist.label.tolist() == [5, 7, -1]
    assert dist.column("seconds").tolist()[::2] == [2.5, 1.0]
    assert math.isnan(dist.column("seconds")[1])
    assert set(dist.column("split")) == {"test"}
    assert set(dist.column("training")) == {"pgd"}
    assert "1 of 3 rows have no epsilon_value" in imported.notes[0]


def test_networks_of_one_name_keep_their_folders(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "image_id,epsilon_value,smallest_sat_value,network_path\n"
        "0,0.01,0.02,/nets/standard/nn.onnx\n0,0.03,0.04,/nets/pgd/nn.onnx\n",
    )
    assert read(path).brackets.networks == ("standard/nn", "pgd/nn")


def test_what_verona_writes_without_a_counterexample(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "image_id,epsilon_value,smallest_sat_value,network_path\n"
        "0,0.399,0.399,a\n1,0.05,0.399,a\n2,0.05,0.06,a\n3,0,0,a\n",
    )
    imported = read(path, largest_eps=0.399)
    assert imported.brackets.upper.tolist() == [math.inf, math.inf, 0.06, math.inf]
    assert imported.brackets.lower.tolist() == [0.399, 0.05, 0.05, 0.0]
    assert len(imported.notes) == 2


def test_a_failed_attack_is_no_proof(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "image_id,epsilon_value,smallest_sat_value,network_path,verifier\n"
        "0,0.1,0.2,a,AttackEstimationModule (PGDAttack)\n1,0.1,0.2,a,nnenum\n",
    )
    imported = read(path)
    assert imported.brackets.lower.tolist() == [0.0, 0.1]
    assert "proves nothing" in imported.notes[0]


QUERIES = (
    "image,network,epsilon_value,result,runtime\n"
    "image_0,a,0.01, unsat,1\nimage_0,a,0.02,TIMEOUT,60\nimage_0,a,0.03,SAT,1\n"
    "image_0,a,0.04,ERR,5\nimage_1,a,0.01,VerificationResult.UNSAT,1\nimage_1,a,0.02,,\n"
)


def test_a_row_a_query(tmp_path: Path) -> None:
    dist = read(written(tmp_path, QUERIES, "per_epsilon_results.csv")).brackets
    assert dist.lower.tolist() == [0.01, 0.01]
    assert dist.upper.tolist() == [0.03, math.inf]
    assert dist.column("queries").tolist() == [4, 2]
    assert dist.column("missing").tolist() == [2, 1]
    assert dist.column("critical").tolist() == [1, 1]
    assert dist.column("timeouts").tolist() == [1, 0]
    assert dist.column("seconds").tolist() == [67, 1]


def test_the_folder_of_a_verona_experiment(tmp_path: Path) -> None:
    header = ",epsilon_value,result,time,verifier\n"
    written(tmp_path, f"{header}0,0.01,UNSAT,1,x\n", "tmp/net/image_2/epsilons_df.csv")
    written(tmp_path, f"{header}0,0.01,SAT,1,x\n", "tmp/net/image_5/epsilons_df.csv")
    written(
        tmp_path,
        "network_path,image_id,original_label,epsilon_value,smallest_sat_value\n"
        "/x/net.onnx,2,7,0.01,0.01\n/x/net.onnx,5,8,0,0.01\n",
        "results/result_df.csv",
    )
    dist = read(tmp_path).brackets
    assert dist.lower.tolist() == [0.01, 0.0]
    assert dist.upper.tolist() == [math.inf, 0.01]
    assert dist.label.tolist() == [7, 8]
    assert dist.networks == ("net",)


def test_targets_are_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "image_id,epsilon_value,smallest_sat_value,network_path,original_label,target_class\n"
        "0,0.01,0.02,a,3,5\n0,0.03,0.04,a,3,6\n",
    )
    dist = read(path).brackets
    assert list(dist.group_by("target")) == [5, 6]
    assert dist.column("property").tolist() == ["one-to-one:5", "one-to-one:6"]


def test_own_tables_and_the_published_layout_come_back(tmp_path: Path) -> None:
    dist = Distribution.from_arrays(
        [0.09, 0.23, 0.0], [0.104, math.inf, 0.0], network="n", label=[1, 2, 3], seconds=1.0
    )
    dist.to_pandas().to_csv(tmp_path / "own.csv", index=False)
    dist.to_pandas().to_parquet(tmp_path / "own.parquet", index=False)
    for name in ("own.csv", "own.parquet"):
        assert read(tmp_path / name).brackets.measurements == dist.measurements
    frame = verona_frame(dist, grid=Grid.parse("0.01:0.4:0.02"), split="test")
    frame.to_csv(tmp_path / "verona.csv", index=False)
    again = read(tmp_path / "verona.csv").brackets
    assert again.lower.tolist() == [0.09, 0.23]
    assert again.upper.tolist() == [0.11, math.inf]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "column 'epsilon_value' is missing"),
        ("image_id,epsilon_value,network\n0,0.1,a\n", "'smallest_sat_value' or 'result'"),
        ("epsilon_value,smallest_sat_value,network\n0.1,0.2,a\n", "column 'image_id' is missing"),
        (
            "image_id,epsilon_value,smallest_sat_value,network\n0,abc,0.2,a\n",
            "row 1: epsilon_value 'abc' is not a number",
        ),
        (
            "image_id,epsilon_value,smallest_sat_value,network\ncat,0.1,0.2,a\n",
            "row 1: image 'cat' has no number",
        ),
        (
            "image_id,epsilon_value,smallest_sat_value,network,label\n0,0.1,0.2,a,1.5\n",
            "row 1: original_label 1.5 is not a whole number",
        ),
        ("image_id,epsilon_value,result,network\n0,0.1,maybe,a\n", "'maybe' is not a verdict"),
        ("image_id,epsilon_value,smallest_sat_value,network\n0,-0.1,0.2,a\n", "0 <= lower"),
        ("image_id,epsilon_value\n", "no rows"),
        ("", "cannot be read as a table"),
    ],
)
def test_bad_tables_are_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(written(tmp_path, text))


def test_missing_places_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read as a table"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match=r"no result_df\.csv"):
        read(tmp_path)
