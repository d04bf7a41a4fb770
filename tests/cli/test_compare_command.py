"""`radii compare`: tables, JSON and CSV of comparisons whose answer is known."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from radii.cli import main
from radii.statistics import Distribution, holm

EPS = np.linspace(0.01, 0.2, 20)


def write(folder: Path, name: str, shift: float, **columns: Any) -> Path:
    """Twenty inputs of two classes; misclassified is the last one."""
    lower = np.append(EPS[:-1] + shift, 0.0)
    upper = np.append(EPS[:-1] + shift + 0.002, 0.0)
    made = Distribution.from_arrays(
        lower, upper, network=name, **{"label": np.arange(20) % 2, "split": "test", **columns}
    )
    path = folder / f"{name}.csv"
    made.to_pandas().to_csv(path, index=False)
    return path


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    return [str(write(tmp_path, name, shift)) for name, shift in (("a", 0), ("b", 0.1), ("c", 0.5))]


def shown(command: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    assert main([*command, "--json", "--permutations", "199"]) == 0
    return json.loads(capsys.readouterr().out)


def test_what_was_not_searched_is_a_question_mark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [str(write(tmp_path, name, 0.1, searched=0.2)) for name in "ab"]
    command = ["compare", *places, "--eps", "0.15,0.251"]
    near, far = shown(command, capsys)["summary"][0]["robust_accuracy"]
    assert (near["not_refuted"], near["unsearched"]) == (pytest.approx(0.75), "")
    assert far["not_refuted"] is None
    assert far["unsearched"] == "the search for counterexamples ended at 0.2"
    assert main([*command, "--permutations", "19"]) == 0
    told = capsys.readouterr().out
    assert "–?" in told
    assert "?: the search for" in " ".join(told.split())


def test_networks_are_compared_pair_by_pair(
    places: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    told = shown(["compare", *places, "--eps", "0.05,0.3"], capsys)
    assert [(p["first"], p["second"]) for p in told["comparisons"]] == [
        *combinations(("a", "b", "c"), 2)
    ]
    for pair in told["comparisons"]:
        assert pair["matched"]
        assert pair["inputs"] == [19, 19]
        assert pair["mean_difference"]["proven"] < 0
        assert pair["dominant"] == pair["second"]
        assert f"{pair['second']} is at least as robust as" in pair["dominance"]
    names = [test["test"] for test in told["comparisons"][0]["tests"]]
    assert len(names) == 5
    for place in range(5):
        tests = [pair["tests"][place] for pair in told["comparisons"]]
        raw = [test["p_value"] for test in tests]
        assert [test["adjusted"] for test in tests] == pytest.approx(holm(raw).tolist())
        assert all(test["adjusted"] >= test["p_value"] for test in tests)
    assert told["summary"][0]["lowest_lower"] == pytest.approx(0.01)
    assert told["summary"][0]["correct"] == 19
    at = told["summary"][1]["robust_accuracy"][1]
    assert (at["eps"], at["proven"], at["not_refuted"]) == (0.3, 0.0, 0.0)
    assert [row["spearman"] for row in told["spearman"]] == pytest.approx([1, 1, 1])
    assert told["quality"][0]["mean_gap"] == pytest.approx(0.002)


def test_the_tables_say_the_same(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--eps", "0.05", "--permutations", "199"]
    assert main(["compare", *places, *flags]) == 0
    out = capsys.readouterr().out
    for words in ("Summary", "Robust accuracy", "Holm", "Cliff's delta", "Spearman", "Quality"):
        assert words in out
    assert "b is at least as robust as a at every eps." in out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "…" not in out


def test_csv_has_every_table(
    places: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "tables"
    flags = ["--csv", str(folder), "--eps", "0.05", "--permutations", "199"]
    assert main(["compare", *places, *flags]) == 0
    assert {path.stem for path in folder.iterdir()} == {
        *("summary", "comparisons", "spearman", "quality")
    }
    pairs = pd.read_csv(folder / "comparisons.csv")
    assert pairs[["first", "second"]].to_numpy().tolist() == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert (pairs["Kolmogorov-Smirnov: p after Holm"] >= pairs["Kolmogorov-Smirnov: p"]).all()
    summary = pd.read_csv(folder / "summary.csv")
    assert summary["proven at 0.05"].tolist() == pytest.approx([0.75, 0.95, 0.95])


def test_classes_within_networks_and_who_gains(
    places: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    told = shown(["compare", *places[:2], "--by", "class", "--eps", "0.1"], capsys)
    assert [(p["first"], p["second"]) for p in told["comparisons"]] == [
        (f"{name}, class 0", f"{name}, class 1") for name in ("a", "b")
    ]
    assert not any(pair["matched"] for pair in told["comparisons"])
    assert told["spearman"] == []
    assert len(told["fairness"]) == 3
    assert told["fairness"][0].startswith("a: At eps 0.1 robust recall differs by")
    assert told["fairness"][2].startswith("From a to b, at eps 0.1: classes 0")


def test_fits_say_whether_their_tests_agree(
    places: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = shown(["compare", *places[:2], "--fit", "--csv", str(tmp_path / "tables")], capsys)
    assert [row["family"] for row in told["fits"][:4]] == [
        "lognormal",
        "normal",
        "weibull",
        "gamma",
    ]
    assert {row["group"] for row in told["fits"]} == {"a", "b"}
    for row in told["fits"]:
        assert "Monte-Carlo test" in row["verdict"]
        assert 0 < row["monte_carlo_p"] <= 1
    assert len(pd.read_csv(tmp_path / "tables" / "fits.csv")) == 8
    assert main(["compare", *places[:2], "--fit", "--permutations", "199"]) == 0
    assert "a: by AIC the best is the" in " ".join(capsys.readouterr().out.split())


def test_a_verdict_among_many_is_corrected(
    places: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    told = shown(["compare", *places], capsys)
    assert all("after Holm's correction" in pair["verdict"] for pair in told["comparisons"])
    assert told["comparisons"][0]["mean_widths"] == pytest.approx([0.002, 0.002])


def test_training_against_testing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = write(tmp_path, "net", 0.1, split="train")
    train = train.rename(tmp_path / "train.csv")
    test = write(tmp_path, "net", 0.0, split="test")
    both = pd.concat([pd.read_csv(train), pd.read_csv(test)])
    both.to_csv(tmp_path / "both.csv", index=False)
    told = shown(["compare", str(tmp_path / "both.csv"), "--by", "split"], capsys)
    (pair,) = told["comparisons"]
    assert (pair["first"], pair["second"]) == ("split train", "split test")
    assert pair["dominant"] == "split train"


def test_targets_are_compared_or_combined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three classes: each of four inputs has a bracket for each of its two targets."""
    label = np.repeat([0, 0, 1, 2], 2)
    target = np.array([1, 2, 1, 2, 0, 2, 0, 1])
    rows = {"label": label, "target": target, "input": np.repeat(np.arange(4), 2), "classes": 3}
    for name, shift in (("a", 0.0), ("b", 0.1)):
        lower = np.array([0.1, 0.2, 0.3, 0.15, 0.2, 0.25, 0.4, 0.3]) + shift
        spec = [f"one-to-one:{goal}" for goal in target]
        made = Distribution.from_arrays(lower, lower + 0.01, network=name, property=spec, **rows)
        made.to_pandas().to_csv(tmp_path / f"{name}.csv", index=False)
    places = [str(tmp_path / f"{name}.csv") for name in ("a", "b")]
    told = shown(["compare", *places], capsys)
    assert [row["inputs"] for row in told["summary"]] == [4, 4]
    assert told["summary"][0]["mean_lower"] == pytest.approx((0.1 + 0.15 + 0.2 + 0.3) / 4)
    told = shown(["compare", places[0], "--by", "target"], capsys)
    assert [row["group"] for row in told["summary"]] == ["target 0", "target 1", "target 2"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["--eps", "small"], "--eps 'small' is not a number"),
        (["--eps", "-1"], "--eps -1 must be"),
        (["--level", "1.5"], "--level 1.5"),
        (["--permutations", "3"], "--permutations 3"),
        (["--by", "target"], "some brackets have no target"),
        (["--by", "split"], "only one split"),
    ],
)
def test_bad_input_is_one_sentence(
    places: list[str], changes: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", places[0], *changes]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_one_network_is_not_compared(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", places[0]]) == 2
    assert "there is only one network to compare" in capsys.readouterr().err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    assert "radii compare standard adversarial" in capsys.readouterr().out


def test_different_arithmetics_are_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = {"a": "float", "b": "real", "c": "float"}
    places = {
        name: str(write(tmp_path, name, 0.1, arithmetic=kind)) for name, kind in kinds.items()
    }
    shown(["compare", *places.values()], capsys)
    assert main(["compare", *places.values(), "--permutations", "19"]) == 0
    note = (
        "radii: proofs hold in different arithmetics: those of a, c for floating point; "
        "those of b in real arithmetic\n"
    )
    assert note in capsys.readouterr().err
    assert main(["compare", places["a"], places["c"], "--permutations", "19"]) == 0
    assert "arithmetic" not in capsys.readouterr().err


def test_results_without_an_answer_are_left_out_of_values_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = [str(write(tmp_path, name, shift)) for name, shift in (("a", 0.0), ("b", 0.01))]
    lower, upper = np.append(EPS[:-1], 0.0), np.append(EPS[:-1] + 0.002, 0.0)
    lower[3:6], upper[3:6] = 0.0, np.inf
    unsolved = Distribution.from_arrays(
        lower, upper, network="n", label=np.arange(20) % 2, split="test"
    )
    path = tmp_path / "n.csv"
    unsolved.to_pandas().to_csv(path, index=False)
    command = ["compare", str(path), plain[1]]
    told = shown(command, capsys)
    (pair,) = told["comparisons"]
    assert (pair["inputs"], pair["left_out"]) == ([19, 19], [3, 3])
    left_out = {test["test"]: test["left_out"] for test in pair["tests"]}
    assert left_out.pop("permutation of scores") == 0  # intervals keep them
    assert set(left_out.values()) == {6}
    assert [row["unsolved"] for row in told["summary"]] == [3, 0]
    assert told["spearman"][0]["left_out"] == [3, 0]
    assert main([*command, "--permutations", "19", "--csv", str(tmp_path / "tables")]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "left out: results without an answer" in words and "no answer" in words
    assert "left out: 3 results without an answer" in words
    rows = pd.read_csv(tmp_path / "tables" / "comparisons.csv")
    assert rows["first_left_out"].tolist() == [3]
    assert main(["compare", *plain, "--permutations", "19"]) == 0
    assert "answer" not in capsys.readouterr().out


def test_only_some_of_the_results(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As for `radii plot`: values of one name are alternatives, several names must all fit."""
    whole = shown(["compare", *places], capsys)
    some = shown(["compare", *places, "--only", "network=a", "--only", "network=c"], capsys)
    assert [row["group"] for row in whole["summary"]] == ["a", "b", "c"]
    assert [row["group"] for row in some["summary"]] == ["a", "c"]
    first = shown(["compare", *places, "--only", "network=a", "--only", "network=b",
                   "--only", "class=0"], capsys)  # fmt: skip
    assert [(row["group"], row["inputs"]) for row in first["summary"]] == [("a", 10), ("b", 10)]
    for only, sentence in (
        ("network=d", "--only network=d: the results have a, b, c"),
        ("size=3", "--only size=3: write one of network, class"),
        ("class", "--only class: write one of network, class"),
    ):
        assert main(["compare", *places, "--only", only]) == 2
        assert sentence in capsys.readouterr().err
    assert main(["compare", *places, "--only", "network=a"]) == 2
