"""What the page is fed with: brackets, histories and pictures come back as they were stored."""

from __future__ import annotations

import json
import math
import re
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from made_experiments import HOSTILE, ROBUST, STANDARD, Known, picture, write_experiment
from scipy.stats import ks_2samp

from radii.cli import main
from radii.errors import StoreError
from radii.problem import FLOAT
from radii.statistics import Distribution, fit_all, read_store
from radii.store import StoredSettings
from radii.views import Payload, make_payload, payload_of, render_page
from radii.views.page._findings import ranking
from radii.views.page._page import json_in_script
from radii.views.page._pictures import PackedArrays, feature_names, flat_input

NUMPY = {"Float64Array": "<f8", "Float32Array": "<f4", "Int32Array": "<i4", "Uint32Array": "<u4"}
NUMPY |= {"Uint16Array": "<u2", "Uint8Array": "<u1", "Int8Array": "<i1"}


def arrays(payload: Payload, part: str) -> dict[str, np.ndarray]:
    """Unpacked as the page does it."""
    data = zlib.decompress(getattr(payload, part))
    found = {}
    for name, entry in payload.facts["arrays"][part].items():
        dtype = np.dtype(NUMPY[entry["type"]])
        assert entry["at"] % dtype.itemsize == 0
        found[name] = np.frombuffer(data, dtype, entry["length"], entry["at"])
    return found


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No test changes it."""
    folder = tmp_path_factory.mktemp("experiment") / "run"
    return write_experiment(folder, {"standard": STANDARD, HOSTILE: ROBUST})


@pytest.fixture(scope="module")
def payload(experiment: Path) -> Payload:
    return make_payload([experiment])


def test_brackets_come_back(experiment: Path, payload: Payload) -> None:
    rows = arrays(payload, "columns")
    stored = Distribution.from_store(experiment)
    for name in ("lower", "upper", "label", "predicted", "correct", "target", "witness_class"):
        assert np.array_equal(rows[name], stored.column(name)), name
    assert [n["name"] for n in payload.facts["networks"]] == ["standard", HOSTILE]
    assert rows["network"].tolist() == [0] * 6 + [1] * 6
    assert np.array_equal(rows["counted_lower"], stored.lower)


def test_facts_are_strict_json(payload: Payload) -> None:
    facts = payload.facts
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts


def test_histories_tell_every_question(payload: Payload) -> None:
    rows, facts = arrays(payload, "columns"), payload.facts
    steps = slice(rows["history_start"][3], rows["history_start"][4])
    told = [facts["verdicts"][code] for code in rows["history_verdict"][steps]]
    assert told == ["NOT_ROBUST", "TIMEOUT", "ROBUST"]
    assert [facts["kinds"][code] for code in rows["history_kind"][steps]] == [
        "attack",
        "prove",
        "prove",
    ]
    assert [facts["verifiers"][code] for code in rows["history_verifier"][steps]][1:] == [
        "milp 2"
    ] * 2
    assert rows["history_lower"][steps].tolist() == [0, 0, 0.02]
    assert rows["history_upper"][steps].tolist() == [0.06] * 3
    assert rows["history_seconds"][steps].tolist() == [0.25, 60.0, 1.5]
    assert rows["history_start"][-1] == len(rows["history_eps"])


def test_pictures_come_back_to_a_byte(payload: Payload) -> None:
    rows, pixels = arrays(payload, "columns"), arrays(payload, "pictures")["pixels"]
    assert payload.facts["shapes"] == [[8, 8, 1]]
    assert rows["input"].tolist() == [*range(6), *range(6)], "each input is kept once"
    for row in (0, 8):
        start = rows["input_at"][rows["input"][row]]
        shown = pixels[start : start + 64] / 255
        truth = picture(int(rows["input"][row]), (64,))
        assert np.abs(shown - truth).max() <= 0.5 / 255 + 1e-6
        at, scale = rows["difference_at"][row], rows["difference_scale"][row]
        change = (pixels[at : at + 64].astype(float) - 127) / 127 * scale
        assert np.abs(change).max() == pytest.approx(rows["upper"][row], rel=1e-6)
        assert np.abs(change).min() == pytest.approx(rows["upper"][row], rel=0.01)
    assert rows["difference_at"][2] == -1, "a misclassified input is its own counterexample"
    assert rows["difference_at"][7] == -1, "no witness, no picture of it"


def test_few_features_are_kept_as_numbers(tmp_path: Path) -> None:
    place = write_experiment(tmp_path / "run", {"net": STANDARD[:2]}, shape=(4,))
    payload = make_payload([place])
    rows, values = arrays(payload, "columns"), arrays(payload, "pictures")["values"]
    assert payload.facts["shapes"] == [[4]]
    start = rows["input_at"][0]
    assert np.array_equal(values[start : start + 4], picture(0, (4,)))


def test_colours(tmp_path: Path) -> None:
    place = write_experiment(tmp_path / "run", {"net": STANDARD[:2]}, shape=(3, 8, 8))
    assert make_payload([place]).facts["shapes"] == [[8, 8, 3]]


def test_limited_pictures_are_said_to_be_so(experiment: Path, payload: Payload) -> None:
    limited = make_payload([experiment], picture_bytes=100)
    rows = arrays(limited, "columns")
    assert (rows["input_at"] >= 0).tolist() == [False, False, True, False, False, False]
    assert any("Of 6 inputs, the 1 with the smallest radii" in n for n in limited.facts["notes"])
    assert not payload.facts["notes"]


def test_disagreements_are_told(payload: Payload) -> None:
    (told,) = payload.facts["disagreements"]
    assert (told["row"], told["network"], told["input"]) == (11, HOSTILE, 5)
    assert "liar 0 claims a proof at eps 0.13" in told["text"]


def test_summary_is_computed(payload: Payload) -> None:
    told = " ".join(payload.facts["summary"])
    assert "2 networks, 6 inputs each, from digits:test[0:9]." in told
    assert "is 0.034 away: input 5 of class 2 breaks standard and becomes 0." in told
    assert "1 instance of 12 is misclassified" in told
    assert "1 has no counterexample" in told
    assert "±55.4 percentage points" in told


def test_arithmetics_are_told(tmp_path: Path) -> None:
    mixed = [Known(0.1, 0.2, arithmetic=FLOAT), Known(0.1, 0.2), Known(0.0, 0.0)]
    exact = [Known(0.1, 0.2, arithmetic=FLOAT)] * 3
    place = write_experiment(tmp_path / "run", {"mixed": mixed, "exact": exact}, arithmetic="real")
    payload = make_payload([place])
    rows, facts = arrays(payload, "columns"), payload.facts
    scopes = [facts["scopes"][code] for code in rows["arithmetic"]]
    assert scopes == ["for floating point", "in real arithmetic", "", *["for floating point"] * 3]
    assert [network["arithmetic"] for network in facts["networks"]] == ["real", "float"]
    assert facts["experiments"][0]["arithmetic"] == "real"
    assert "Proofs hold in real arithmetic, 4 of 5 also for floating point." in facts["summary"]


def test_experiments_of_two_arithmetics_are_noted(tmp_path: Path) -> None:
    places = [
        write_experiment(tmp_path / name, {name: STANDARD}, arithmetic=name)
        for name in ("float", "real")
    ]
    note = "The experiments differ in arithmetic (float, real)"
    assert any(told.startswith(note) for told in make_payload(places).facts["notes"])
    assert not any("arithmetic" in told for told in make_payload(places[:1]).facts["notes"])


def test_quality_and_pairs_are_those_of_distributions(payload: Payload) -> None:
    facts = payload.facts
    (pair,) = facts["pairs"]
    assert pair["here"].endswith("at least as robust as standard at every eps.")
    assert facts["networks"][0]["statistics"]["missing"] == 1
    assert facts["networks"][0]["statistics"]["mean_gap"] == pytest.approx(0.0124, abs=1e-4)
    assert facts["networks"][0]["accuracy"] == pytest.approx(5 / 6)


def test_one_to_one_counts_inputs_by_their_smallest_radius(tmp_path: Path) -> None:
    place = write_experiment(tmp_path / "run", {"net": ROBUST[:3]}, targeted=True)
    payload = make_payload([place])
    rows = arrays(payload, "columns")
    assert payload.facts["has_targets"]
    assert len(rows["lower"]) == 6
    assert rows["counted_lower"].tolist() == [0.20, 0.30, 0.15]
    assert rows["counted_upper"].tolist() == [0.205, math.inf, 0.155]


def test_a_wide_bracket_hides_no_lead() -> None:
    """Of a, b and c, only b is known to be behind a; nothing is known of c."""
    dist = Distribution.from_arrays([0.5, 0.2, 0.1], [0.6, 0.3, 0.9], network=["a", "b", "c"])
    told = ranking(dist)
    assert told.startswith(
        "Over correct inputs, the median radii of a, [0.500, 0.600), and c, [0.100, 0.900), are"
    )
    assert told.endswith("that of b is [0.200, 0.300), at least 1.6 times smaller.")
    overlapping = dist.select(dist.network != "b")
    assert ranking(overlapping).endswith("none is shown to be more robust.")


def test_missing_targets_are_said(tmp_path: Path) -> None:
    known = [Known(0.1, 0.11), Known(0.2, 0.21), Known(0.3, 0.31)]
    place = write_experiment(tmp_path / "run", {"net": known}, targeted=True)
    source = Distribution.from_store(place)
    source.select(np.arange(len(source)) > 0).to_pandas().to_csv(tmp_path / "part.csv", index=False)
    payload = make_payload([tmp_path / "part.csv"])
    assert any("its shares are of pairs" in note for note in payload.facts["notes"])
    assert not payload.facts["experiments"][0]["is_measured"], "a file only claims"
    assert any("which radii has not checked" in note for note in payload.facts["notes"])
    assert any("no misclassified inputs" in note for note in payload.facts["notes"])


def test_several_directories(tmp_path: Path) -> None:
    first = write_experiment(tmp_path / "a", {"net": STANDARD})
    second = write_experiment(tmp_path / "b", {"net": ROBUST, "other": STANDARD}, norm="l2")
    payload = make_payload([first, second])
    facts, rows = payload.facts, arrays(payload, "columns")
    assert [n["name"] for n in facts["networks"]] == ["net (a)", "net (b)", "other"]
    assert [n["experiment"] for n in facts["networks"]] == [0, 1, 1]
    assert rows["input"].tolist() == [*range(6)] * 3, "inputs are shared between experiments"
    assert any("differ in norm (linf, l2)" in note for note in facts["notes"])
    assert facts["pairs"] == []
    with pytest.raises(StoreError, match="given twice"):
        make_payload([first, tmp_path / "b" / ".." / "a"])


def test_names_cannot_leave_their_element(experiment: Path) -> None:
    page = render_page(make_payload([experiment], title=HOSTILE))
    assert HOSTILE not in page
    facts = re.search(r'<script type="application/json" id="facts">(.*?)</script>', page, re.DOTALL)
    assert facts
    assert json.loads(facts[1])["networks"][1]["name"] == HOSTILE
    assert "<title>&lt;img src=x" in page
    assert json_in_script("</script><!--&") == '"\\u003c/script\\u003e\\u003c!--\\u0026"'


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OverflowError, match="'label' does not fit into Uint16Array"):
        PackedArrays().add("label", [70_000], "u2")


def test_command(experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.html"
    assert main(["report", str(experiment), "-o", str(out), "--title", "T"]) == 0
    assert "out.html: " in capsys.readouterr().out
    assert "<title>T · radii</title>" in out.read_text()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["nowhere"], "no radii experiment is here"),
        (["RUN", "--pictures", "many"], "must be a size"),
        (["RUN", "-o", "."], "is a directory"),
        (["RUN", "-o", "no/such/folder/x.html"], "cannot be written"),
    ],
)
def test_bad_input(
    flags: list[str], message: str, experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [str(experiment) if flag == "RUN" else flag for flag in flags]
    assert main(["report", *told]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_results_without_an_answer_are_noted(payload: Payload, tmp_path: Path) -> None:
    assert not any("no answer" in note for note in payload.facts["notes"])
    table = tmp_path / "published.csv"
    Distribution.from_arrays(
        [0.0, 0.0, 0.2, 0.3],
        [math.inf, math.inf, 0.3, 0.4],
        network=["a", "a", "a", "b"],
        input=[0, 1, 2, 0],
    ).to_pandas().to_csv(table, index=False)
    facts = make_payload([table]).facts
    (note,) = (note for note in facts["notes"] if "no answer" in note)
    assert "(a 2)" in note and "leave them out" in note
    assert "2 have no proof either" in " ".join(facts["summary"])


def test_named_features_are_no_pixels(tmp_path: Path) -> None:
    named = SimpleNamespace(features=None, feature_names=("age", "income"))
    assert feature_names(named) == {"names": ["age", "income"], "scales": [1.0, 1.0]}
    scaled = SimpleNamespace(features=SimpleNamespace(names=("age",), scale=np.array([5.0])))
    assert feature_names(scaled) == {"names": ["age"], "scales": [5.0]}
    assert feature_names(StoredSettings()) is None
    square = np.full(64, 0.25)
    assert flat_input(square, 0, 1)[0] == [8, 8, 1]
    shape, values = flat_input(square, 0, 1, is_named=True)
    assert shape == [64]
    assert np.array_equal(values, square)


def test_tests_between_networks_are_those_of_scipy(payload: Payload) -> None:
    (told,) = payload.facts["tests"]
    right = [pair for pair in zip(STANDARD, ROBUST, strict=True) if pair[0].upper != 0]
    lower = [[known.lower for known in side] for side in zip(*right, strict=True)]
    expected = ks_2samp(*lower, method="exact")
    assert told["statistic"] == pytest.approx(expected.statistic)
    assert told["adjusted"] == pytest.approx(expected.pvalue), "one test needs no correction"
    assert 0 < told["permutation"] <= 1
    assert HOSTILE in told["verdict"]


def test_classes_are_compared_as_scipy_does(tmp_path: Path) -> None:
    brackets = [Known(0.01 * (1 + place), 0.011 * (1 + place)) for place in range(12)]
    place = write_experiment(tmp_path / "run", {"net": brackets})
    (told,) = make_payload([place]).facts["class_tests"]
    statistics = np.array(told["statistics"], float)
    of_class = [[known.lower for known in brackets[label::3]] for label in range(3)]
    assert told["classes"] == [0, 1, 2]
    assert np.isnan(np.diag(statistics)).all()
    assert np.array_equal(np.nan_to_num(statistics), np.nan_to_num(statistics).T)
    assert statistics[0, 2] == pytest.approx(ks_2samp(of_class[0], of_class[2]).statistic)
    assert told["sides"] == "", "there is no training to speak of"


def test_fits_are_those_of_distributions(experiment: Path, payload: Payload) -> None:
    facts = payload.facts
    part = Distribution.from_store(experiment).by_network()["standard"]
    told = [one for one in facts["fits"] if one["network"] == "standard"]
    known = fit_all(part)
    assert [one["family"] for one in told] == [one.family for one in known]
    assert [one["aic"] for one in told] == pytest.approx([one.aic for one in known])
    assert [one["is_best"] for one in told] == [True, False, False, False]
    eps = np.linspace(0, facts["eps"]["top"], len(told[0]["broken"]))
    assert told[0]["broken"] == pytest.approx(known[0].broken(eps).tolist())


def test_a_live_payload_has_no_slow_statistics(experiment: Path) -> None:
    facts = payload_of([read_store(experiment)], picture_bytes=None).facts
    assert not {"tests", "fits", "class_tests"} & set(facts)


def test_nothing_to_compare_is_no_error(tmp_path: Path) -> None:
    place = write_experiment(tmp_path / "run", {"net": [Known(0.0, 0.0)] * 3})
    facts = make_payload([place]).facts
    assert (facts["tests"], facts["class_tests"], facts["fits"]) == ([], [], [])
