"""`radii show --statistics`: what a search cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from radii.cli import main
from radii.store import Store


@pytest.fixture
def results(linear_file: Path, points_file: Path, tmp_path: Path) -> Path:
    out = tmp_path / "out"
    flags = ["--network", str(linear_file), "--data", str(points_file), "--domain", "0:1"]
    chosen = ["--search", "k-binary", "--k", "2", "--grid", "mnist", "--jobs", "2"]
    assert main(["run", *flags, *chosen, "--out", str(out), "--json"]) == 0
    return out


@pytest.mark.slow
def test_the_tables_count_what_the_store_holds(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["show", str(results), "--statistics"]) == 0
    table = capsys.readouterr().out
    assert "k-binary, k = 2, in theory at most 11 queries" in table
    assert main(["show", str(results), "--statistics", "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    found = network["statistics"]
    with Store.open(results) as store:
        answers = [result for told in store.results().values() for _, result in told]
        searched = [m for m in store.measurements() if m.queries]
    tried = [result for result in answers if result.verifier != "replay"]
    assert found["instances"] == 2 == len(searched)
    assert found["queries"] == len(tried)
    assert found["most"] <= 14
    assert found["cancelled"] == sum(result.verdict == "CANCELLED" for result in tried)
    assert found["cpu_seconds"] == pytest.approx(sum(r.cpu_seconds or 0.0 for r in tried))
    assert all(result.cpu_seconds is not None for result in tried)
    assert found["wall_seconds"] == pytest.approx(sum(m.seconds for m in searched))
    assert found["wall_seconds"] <= sum(result.seconds for result in tried) + 1e-9


def test_a_table_of_others_has_no_statistics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "published.csv"
    file.write_text("image_id\n1\n")
    assert main(["show", str(file), "--statistics"]) == 2
    assert "--statistics needs the --out of a run" in capsys.readouterr().err
