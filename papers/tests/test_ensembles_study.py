"""The study of classifier ensembles at its smallest on tiny data, and its committed page."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from conftest import dense_model
from radii.cli import main
from radii_papers._evidence import StudyClaim
from radii_papers._steps import StudyScale, StudySettings
from radii_papers.classifier_ensembles import (
    _attack_counts,
    _consistency,
    _larger,
    _measured,
    _method_claims,
    _methods,
    _networks,
)
from radii_papers.classifier_ensembles._known import few_on_known
from radii_papers.classifier_ensembles._measured import MethodAnswer
from radii_papers.classifier_ensembles._numbers import (
    BENCHMARK,
    TABLE_4,
    TABLE_5,
    TABLE_6,
    paper_value,
)

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "ensembles.md"

TINY_ROWS = (25, 34)
"""One of digits and one of signs; both are robust in no time."""


def two_classes(count: int, side: int, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
    """Images that are dark or bright on their left half, which any classifier learns."""
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(count) % 2, second, first)
    images = rng.uniform(0.0, 0.2, (count, side, side)).astype(np.float32)
    images[labels == second, :, : side // 2] += 0.7
    return images, labels.astype(np.int64)


def write_data(folder: Path) -> None:
    """Signs, five published networks of any kind, and images for them."""
    signs: dict[str, np.ndarray] = {}
    for split in ("train", "test"):
        images, labels = two_classes(40, 12, _networks.GIVE_WAY, _networks.PRIORITY)
        colours = np.repeat((255 * images[..., None]).astype(np.uint8), 3, axis=-1)
        signs |= {f"x_{split}": colours, f"y_{split}": labels}
    np.savez(folder / _networks.SIGNS_FILE, allow_pickle=False, **signs)
    (folder / _networks.LARGER_FOLDER).mkdir(parents=True)
    rng = np.random.default_rng(1)
    for name in _larger.FIVE:
        model = dense_model((0.1 * rng.normal(size=(10, 784)), np.zeros(10)))
        onnx.save(model, folder / _networks.LARGER_FOLDER / f"{name}.onnx")
    images = rng.integers(0, 256, (2, 28, 28), np.uint8)
    np.savez(folder / _networks.LARGER_IMAGES, images=images, labels=np.array([3, 4]))


def make_tiny(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_networks, "mnist_images", lambda _: two_classes(60, 28, 7, 8))
    patch.setattr(_networks, "STEPS_OF_TRAINING", 40)
    patch.setattr(_measured, "ROWS_OF_SMALL", TINY_ROWS)
    limits = {**dict.fromkeys(_methods_of_all(), 1.0), "game": 30.0}  # it decides in far less
    patch.setitem(_measured.LIMITS, StudyScale.SMALL, limits)
    patch.setattr(_attack_counts, "SWEPT_ROWS", {28: (0.1,)})
    patch.setattr(_attack_counts, "SMALL_SWEEP", (0.1,))
    patch.setattr(_attack_counts, "COUNTS_ON_KNOWN", (2, 3))
    tiny = _larger.Sweep(2, (0.01,), 0.5)
    patch.setattr(_larger, "SWEEPS", dict.fromkeys(_larger.SWEEPS, (tiny, tiny, tiny)))
    patch.setattr(_larger, "TWELVE", _larger.TWELVE[:2])


def _methods_of_all() -> list[str]:
    return list(_measured.LIMITS[StudyScale.FULL])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole study of two rows."""
    data, out = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("study")
    write_data(data)
    with pytest.MonkeyPatch.context() as patch:
        make_tiny(patch)
        command = ["study", "ensembles", "--data", str(data), "--out", str(out)]
        assert main([*command, "--page", str(out / "page.md")]) == 0
        before = (out / _measured.MEASURED_FILE).read_text()
        (out / "steps" / "table-4.json").unlink()
        assert main([*command, "--only", "table-4"]) == 0  # from what is measured
        assert (out / _measured.MEASURED_FILE).read_text() == before
    return out


NOT_MADE = "Not made yet."


def layout(page: Path) -> dict[str, list[str]]:
    """By heading: columns of tables and figures in their order, or that a step is not made."""
    lines = page.read_text().splitlines()
    found: dict[str, list[str]] = {}
    for place, line in enumerate(lines):
        if line.startswith("#"):
            found[line] = []
        elif line.startswith("| ---"):
            found[list(found)[-1]].append(lines[place - 1])
        elif line.startswith("![") or line == NOT_MADE:
            found[list(found)[-1]].append(re.sub(r"\([^)]*/([\w-]+\.png)\)", r"(\1)", line))
    return found


def test_the_committed_page_is_what_the_command_writes(made: Path) -> None:
    """All headings, and under each the same tables and figures, unless its step is not made."""
    ours, committed = layout(made / "page.md"), layout(PAGE)
    assert list(committed) == list(ours)
    for heading, parts in committed.items():
        assert parts in (ours[heading], [NOT_MADE]), heading
    assert all(parts != [NOT_MADE] for parts in ours.values())


def claims(page: Path) -> list[str]:
    """The claims of a page, without what was found of them."""
    lines = page.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| no. | the paper")) + 2
    rows = lines[first : first + lines[first:].index("")]
    return [row.split(" | ")[1] for row in rows]


def test_the_committed_pages_claims_are_the_commands(made: Path) -> None:
    """All of them once every step of the page is made."""
    ours, committed = claims(made / "page.md"), claims(PAGE)
    assert [claim for claim in ours if claim in committed] == committed
    if [NOT_MADE] not in layout(PAGE).values():
        assert committed == ours


def test_the_first_lines_say_when_where_how_long_and_at_which_scale() -> None:
    first = PAGE.read_text().splitlines()[2]
    assert re.match(r"\d{4}-\d\d-\d\d, \d+ cores of .+, .* of the CPU\), scale `\w+`", first)


def test_every_method_is_measured_and_replayed(made: Path) -> None:
    lines = (made / _measured.MEASURED_FILE).read_text().splitlines()
    answers = [MethodAnswer(**json.loads(line)) for line in lines]
    assert {(each.row, each.method) for each in answers} == {
        (row, method) for row in TINY_ROWS for method in _methods_of_all()
    }
    for each in answers:
        if each.method == "game":
            assert each.answer == "robust" and each.is_optimal and each.lower == each.upper == 0
        assert each.solver


def test_tables_have_the_papers_numbers_beside_ours(made: Path) -> None:
    with (made / "tables" / "table-4.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["ID"] for row in rows] == [str(number) for number in TINY_ROWS]
    for row in rows:
        assert row["MILP, value, paper"] == "robust" and row["SMT, s, paper"] == "-TO-"


# --- what follows from the printed numbers


def test_the_papers_rows_are_whole() -> None:
    assert [row.number for row in BENCHMARK] == list(range(1, 39))
    assert set(TABLE_4) == set(range(1, 39))
    assert len(TABLE_5) == 35 and len(TABLE_6) == 22
    for number, cells in TABLE_5.items():  # MILP is printed twice
        for two, four in zip(cells[:2], TABLE_4[number][2:], strict=True):
            assert two == four or paper_value(two) == paper_value(four)


def test_rows_that_exclude_each_other() -> None:
    """Row 22 is called robust within eps 1000; rows 11 and 12 have the value 1 within 60."""
    ((row, against),) = _consistency.contradictions()
    assert row.number == 22
    assert {11, 12} <= {other.number for other in against}
    assert [each.number for each in _consistency.too_few_attacks()] == [26]


# --- verdicts follow from numbers


def answer(row: int, method: str, **more: object) -> MethodAnswer:
    fields = dict.fromkeys((field.name for field in dataclasses.fields(MethodAnswer)), 0.0)
    known = {"row": row, "method": method, "limit": 5.0, "answer": "attack", "is_replayed": True}
    return MethodAnswer(**{**fields, **known, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(("attained", "outcome"), [(1.0, "fails"), (0.75, "holds")])
def test_our_encoding_of_an_attacker_is_not_the_papers(attained: float, outcome: str) -> None:
    rows = BENCHMARK[:2]
    games = {row.number: answer(row.number, "game", lower=1.0, upper=1.0) for row in rows}
    uniform = {row.number: answer(row.number, "ua", lower=0.33) for row in rows}
    alone = {row.number: answer(row.number, "bda", lower=attained) for row in rows}
    claim = _method_claims.attacker_claims(rows, games, uniform, alone)[0]
    assert isinstance(claim, StudyClaim) and claim.verdict.value == "not testable here"
    assert [case.outcome.value for case in claim.cases] == [outcome, "holds"]


def test_no_star_where_another_attack_attains_more() -> None:
    """MaxMILP's 0.75 is not called optimal beside BDA's 1.00; beside 0.75 the solver's word is."""
    best = answer(1, "maxmilp", lower=0.75, is_optimal=True)
    more, same = answer(1, "bda", lower=1.0), answer(1, "bda", lower=0.75)
    assert _methods.value_cell(best, "1.00*", same).text.startswith("0.75* ")
    assert _methods.value_cell(best, "1.00*", same, more).text.startswith("0.75 ")


def test_rows_without_room_or_time_do_not_contradict_maxmilp() -> None:
    """Of three rows one is 1, one cannot be, and one was cut off at 0.5: nothing fails."""
    rows = BENCHMARK[:3]
    games = {n: answer(n, "game", lower=value) for n, value in ((1, 1.0), (2, 0.5), (3, 1.0))}
    best = {n: answer(n, "maxmilp", lower=value) for n, value in ((1, 1.0), (2, 0.5), (3, 0.5))}
    milp = {n: answer(n, "milp", lower=0.5) for n in best}
    claim = _method_claims.max_milp_claims(rows, games, milp, best)[0]
    assert isinstance(claim, StudyClaim)
    (case,) = claim.cases
    assert (case.outcome.value, case.n, case.shows) == ("unclear", 2, "1 of 2")
    best[3] = answer(3, "maxmilp", lower=1.0)
    claim = _method_claims.max_milp_claims(rows, games, milp, best)[0]
    assert isinstance(claim, StudyClaim) and claim.cases[0].outcome.value == "holds"


def test_seconds_say_nothing_about_the_papers_two_hours() -> None:
    settings = StudySettings(StudyScale.SMALL, None, Path(), 0, None)  # type: ignore[arg-type]
    rows = BENCHMARK[:2]
    games = {row.number: answer(row.number, "game", answer="robust") for row in rows}
    for ended, outcome in (("timeout", "unclear"), ("robust", "fails")):
        smt = {row.number: answer(row.number, "smt", answer=ended) for row in rows}
        (claim,) = _method_claims.smt_claims(settings, rows, games, smt)
        assert isinstance(claim, StudyClaim) and claim.cases[0].outcome.value == outcome


def test_two_attackers_that_both_attain_1_are_not_compared() -> None:
    rows = BENCHMARK[:3]
    games = {row.number: answer(row.number, "game", lower=1.0) for row in rows}
    uniform = {1: answer(1, "ua", lower=1.0), 2: answer(2, "ua"), 3: answer(3, "ua", lower=0.5)}
    alone = {n: answer(n, "bda", lower=value) for n, value in ((1, 1.0), (2, 0.0), (3, 0.75))}
    claim = _method_claims.attacker_claims(rows, games, uniform, alone)[1]
    assert isinstance(claim, StudyClaim) and claim.cases[0].n == 1


def test_that_other_networks_are_robust_in_other_rows_is_not_judged() -> None:
    games = {row.number: answer(row.number, "game", answer="robust") for row in BENCHMARK}
    claim = _method_claims.agreement_claim(BENCHMARK, games)
    (case,) = claim.cases
    assert case.outcome.value == "unclear" and case.n == 36
    printed = [number for number, cells in TABLE_4.items() if cells[3] == "robust"]
    assert printed == [22, *range(24, 32), *range(34, 39)]  # as the claim says


def test_too_few_attacks_by_arithmetic() -> None:
    """One axis each, at one point: one attack fools one of three, two fool two, so none reaches
    0.3 everywhere; three have 1/3. At three points one attack is enough."""
    lines, wrong = few_on_known((1, 2, 3))
    assert wrong == ["1", "2"]
    values = {(line[0], line[1]): line[2] for line in lines}
    assert [values[1, count] for count in (1, 2, 3)] == ["0", "0", "1/3"]


def test_an_attack_that_does_not_replay_is_no_answer() -> None:
    broken = answer(1, "milp", is_replayed=False, lower=0.5)
    assert not broken.is_decided
    assert _methods.value_cell(broken, "0.25").text == "0.50, not as claimed (0.25)"


def test_what_ran_out_of_time_is_tried_again_with_more() -> None:
    late, done = answer(1, "milp", answer="timeout"), answer(1, "milp")
    assert late.is_final(5.0) and not late.is_final(60.0)
    assert done.is_final(7200.0)
    assert not answer(1, "maxmilp").is_final(60.0)
    assert answer(1, "maxmilp", is_optimal=True).is_final(60.0)


def test_an_ensemble_can_be_more_robust_than_one() -> None:
    """Figure 1 is such a game; games of our networks in which one is enough contradict nothing."""
    for each in ((3, 0, 3), (0, 2, 3), (0, 0, 3)):
        claim = _larger.ensembles_claim(*each)
        assert claim.verdict.value == "confirmed"
        assert [case.name for case in claim.cases if case.decides] == ["Figure 1"]


def test_an_assumption_about_the_paper_refutes_nothing() -> None:
    """That rows of one name are of one ensemble, which the paper does not say."""
    nothing: Any = None  # it reads printed numbers alone
    parts = _consistency.consistency_step(nothing, nothing)
    (claim,) = (part for part in parts if isinstance(part, StudyClaim))
    assert claim.verdict.value == "open"
    assert [case.name for case in claim.cases] == ["row 22", "row 26"]


def test_no_such_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["study", "ensembles", "--out", str(tmp_path / "out"), "--data", str(tmp_path / "no")]
    assert main(command) == 2
    assert "no such folder" in capsys.readouterr().err
