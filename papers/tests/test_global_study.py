"""The study of global robustness on tiny data, the rules of its claims, and its committed page."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conftest import work_in_this_process
from radii.cli import main
from radii.errors import DataError
from radii.statistics import repeat_estimates
from radii_papers import _running
from radii_papers._evidence import ClaimBasis, ClaimVerdict, StudyClaim
from radii_papers._steps import StudyScale, StudySettings
from radii_papers.figures import draw_tradeoffs
from radii_papers.global_robustness import _convergence, _made, _pruned
from radii_papers.global_robustness._bayesian import paired_differences, pairs_claim
from radii_papers.global_robustness._convergence import convergence_claims
from radii_papers.global_robustness._made import grid_size
from radii_papers.global_robustness._measures import (
    correlation_interval,
    named_correlations,
    trade_claim,
    tradeoff_panels,
    trends,
)
from radii_papers.global_robustness._networks import (
    BAYESIAN,
    COUNTERPARTS,
    DETERMINISTIC,
    PRUNED,
    SETS,
    NetworkGroup,
    network_groups,
    read_studies,
    thinned,
)
from radii_papers.global_robustness._proofs import attack_claim
from radii_papers.global_robustness._pruned import (
    accuracy_claim,
    loss_case,
    strength_claim,
)
from radii_papers.tradeoff import (
    RECIPE_KINDS,
    Study,
    StudyMember,
    Value,
    _results,
    expand,
    preset_tables,
)
from radii_papers.tradeoff._results import Correlation
from radii_papers.tradeoff._workers import StudyWorker

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "global.md"

HEAD = """data = "digits:train[0:80]"
test = "digits:test[0:24]"
eps = 0.05
samples = 8
proof_inputs = {proofs}
proof_timeout = 0.2
bayesian_images = 40
warmup = 2
members = 2
"""

GRIDS = """[[deterministic]]
width = [3, 4]
activation = ["relu", "tanh"]
rate = 0.5
epochs = [1, 2]
count = 4
[[deterministic]]
width = 3
images = 40
rate = 0.5
epochs = 1
[[pruned]]
width = [3, 4]
strength = [0.5, 0.9]
rate = 0.5
epochs = 1
[[bayesian]]
width = 3
samples = 4
steps = 2
"""

BLOCKS = """[[deterministic]]
blocks = 1
filters = 2
depth = 0
rate = 0.5
epochs = [1, 2]
"""


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("described")
    for name in SETS:
        grids = BLOCKS if name == "cifar10" else GRIDS
        (folder / f"{name}.toml").write_text(HEAD.format(proofs=2 * (grids is GRIDS)) + grids)
    return folder


@pytest.fixture(scope="module")
def made(described: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The whole study; networks are made in this process, and found by the command."""
    out = tmp_path_factory.mktemp("study")
    source = read_studies(described)
    for name in ("mnist", "cifar10"):
        study = source.study(name, StudyScale.SMALL)
        folder = out / f"networks-{name}"
        folder.mkdir()
        (folder / "study.json").write_text(json.dumps(study.identity))
        worker = StudyWorker(study, folder)
        for place in range(len(study.recipes)):
            worker(place)
    shutil.copytree(out / "networks-mnist", out / "networks-fashion")
    with pytest.MonkeyPatch.context() as patch:
        work_in_this_process(patch)
        patch.setattr(_results, "RESAMPLES", 49)
        patch.setattr(_running, "FIGURE_SUFFIXES", (".png",))
        patch.setattr(_convergence, "EPOCHS", 1)
        patch.setattr(_convergence, "PROOF_SECONDS", 0.2)
        command = ["study", "global", "--data", str(described), "--out", str(out)]
        assert main([*command, "--page", str(out / "page.md")]) == 0
    yield out


def layout(page: Path) -> list[str]:
    """Headings, titles and columns of tables, and figures, in their order."""
    lines = page.read_text().splitlines()
    found = []
    for place, line in enumerate(lines):
        if line.startswith("| ---"):
            found.append(lines[place - 1])
        elif line.startswith(("#", "**", "![")):
            found.append(re.sub(r"\([^)]*/([\w-]+\.png)\)", r"(\1)", line))
    return found


def test_the_committed_page_is_what_the_command_writes(made: Path) -> None:
    """Every heading, table and figure of one is in the other: nothing is added by hand."""
    assert layout(made / "page.md") == layout(PAGE)


def test_prose_of_the_committed_page_is_the_commands(made: Path) -> None:
    """Paragraphs begin alike, but for numbers."""

    def beginnings(page: Path) -> list[str]:
        lines = [line for line in page.read_text().splitlines() if line[:1].isalpha()]
        return [" ".join(re.sub(r"[\d.,%]+", "", line).split()[:3]) for line in lines]

    assert beginnings(PAGE) == beginnings(made / "page.md")


def test_the_same_claims_are_decided(made: Path) -> None:
    def claims(page: Path) -> list[str]:
        lines = page.read_text().splitlines()
        start = lines.index("## What holds")
        rows = [line for line in lines[start : start + 40] if line.startswith("| ")]
        return [" | ".join(row.split(" | ")[:2]) for row in rows]

    assert claims(PAGE) == claims(made / "page.md")


def test_every_figure_of_the_committed_page_is_there() -> None:
    linked = set(re.findall(r"\(global/([\w-]+\.png)\)", PAGE.read_text()))
    assert linked == {path.name for path in (PAGE.parent / "global").glob("*")}


def test_every_network_has_a_line(made: Path) -> None:
    for name in SETS:
        folder = made / f"networks-{name}"
        lines = (folder / "networks.csv").read_text().splitlines()
        assert len(lines) == 1 + len(Study.read(folder).recipes)
        assert {"steadiness_most", "steadiness_beyond_low"} < set(lines[0].split(","))


def test_a_folder_needs_all_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"mnist\.toml is not there"):
        read_studies(tmp_path)


def test_a_small_study_has_few_networks_of_every_grid() -> None:
    for name in SETS:
        tables = preset_tables(f"{name}-small")
        few = thinned(tables)
        small, machine = Study.from_tables(few), Study.from_tables(tables)
        assert len(small.recipes) < len(machine.recipes) and (small.samples or 0) <= 100
        assert {r.kind for r in small.recipes} == {r.kind for r in machine.recipes}
        for kind in RECIPE_KINDS:
            assert all(grid["count"] <= 5 for grid in few.get(kind, []))


def test_grids_of_the_appendix_by_hand() -> None:
    assert grid_size("mnist", "deterministic", "dense") == 3 * 4 * 3 * 4 * 5
    assert grid_size("mnist", "deterministic", "convolutional") == 2 * 2 * 4 * 3 * 3 * 4 * 5
    assert grid_size("cifar10", "deterministic", "convolutional") == 3 * 3 * 3 * 3 * 3 * 4 * 5


# --- rules of claims, on networks whose numbers are known


def members(kind: str, values: list[tuple[float, float]], **grid: object) -> list[StudyMember]:
    """Networks with these accuracies and measures, all measures alike."""
    recipes = expand(kind, {"seed": list(range(len(values))), **grid}, 0)
    return [
        StudyMember(
            recipe=recipe,
            parameters=10,
            accuracy=accuracy,
            robustness=(value := Value(r, r, r, r, 10)),
            steadiness=value,
            change=Value(1 - r, 1 - r, 1 - r, 1 - r, 10),
        )
        for recipe, (accuracy, r) in zip(recipes, values, strict=True)
    ]


def line(slope: float, count: int = 12) -> list[tuple[float, float]]:
    rng = np.random.default_rng(3)
    at = np.linspace(0.7, 0.95, count)
    return [(float(x), float(0.5 + slope * (x - 0.8) + rng.normal(0, 0.01))) for x in at]


def outcomes(claim: StudyClaim) -> list[str]:
    return [case.counted.value for case in claim.cases]


def test_signs_are_of_intervals_and_networks_of_ours_decide_nothing() -> None:
    groups = network_groups(members("deterministic", line(0.4) * 3))
    found = trends({"data": groups}, (DETERMINISTIC,), ("R",))
    for basis, verdict in ((ClaimBasis.OURS, "not testable here"), (ClaimBasis.SETTINGS, "open")):
        claim = trade_claim(found, "c", "p", "positive", basis)
        assert claim.verdict.value == verdict or claim.verdict.value == "confirmed"
        assert claim.cases[0].name == "data, R" and claim.cases[0].n == 36
        assert outcomes(claim) == ["holds"] * len(claim.cases)
    against = trade_claim(found, "c", "p", "negative", ClaimBasis.SETTINGS)
    assert against.verdict is ClaimVerdict.NOT_BORNE_OUT
    few = trends({"data": network_groups(members("deterministic", line(0.4)))},
                 (DETERMINISTIC,), ("R",))  # fmt: skip
    assert trade_claim(few, "c", "p", "positive", ClaimBasis.SETTINGS).verdict is ClaimVerdict.OPEN
    assert trade_claim([], "c", "p", "positive", ClaimBasis.OURS).verdict is ClaimVerdict.OPEN


def test_a_correlations_interval_is_wider_for_several() -> None:
    """By hand: Fisher's of 0.5 with 28 networks is tanh(0.549 -+ 1.96 / 5)."""
    found = Correlation("g", "R", "accuracy", "pearson", 28, 0.5, 0.45, 0.55, 0.1, 0.8, 0.01)
    one, four = correlation_interval(found, 1), correlation_interval(found, 4)
    middle, reach = math.atanh(0.5), 1.959964 / 5
    assert (one.low, one.high) == pytest.approx((math.tanh(middle - reach),
                                                 math.tanh(middle + reach)))  # fmt: skip
    assert four.low < one.low < one.high < four.high


def test_a_network_that_learned_nothing_turns_a_sign() -> None:
    """Positive among those that learned; one class for all, at accuracy 0.1, turns it."""
    groups = network_groups(members("deterministic", [*line(0.4), *[(0.1, 1.0)] * 6]))
    (trend,) = trends({"data": groups}, (DETERMINISTIC,), ("R",))
    assert trend.signs == ("negative", "positive")
    assert len(groups[DETERMINISTIC].learned.members) == 12


def test_networks_that_learned_nothing_decide_no_claim() -> None:
    """Over all networks the sign is the other one, and a claim does not see that."""
    groups = network_groups(members("deterministic", [*line(0.4) * 3, *[(0.1, 1.0)] * 12]))
    found = trends({"data": groups}, (DETERMINISTIC,), ("R",))
    assert found[0].signs == ("negative", "positive")
    claim = trade_claim(found, "c", "p", "negative", ClaimBasis.SETTINGS)
    assert outcomes(claim) == ["fails"] and claim.cases[0].n == 36


def test_claims_are_about_the_papers_measures() -> None:
    """Section 4.2 has R(0.5) and D on MNIST: that R goes another way there is no case."""
    groups = network_groups(members("deterministic", line(0.4) * 3))
    for place, measures in (("MNIST", {"R(0.5)", "1 - D"}), ("CIFAR-10", {"1 - D", "R"})):
        found = trends({place: groups}, (DETERMINISTIC,), ("R(gamma)", "1-D", "R"))
        assert set(named_correlations(found, "pearson")) == {f"{place}, {m}" for m in measures}


def test_grids_smaller_than_the_counts_of_the_text_refute_nothing() -> None:
    """A combination may be trained with several seeds, and the text says "approximately"."""
    settings = StudySettings(StudyScale.SMALL, None, Path(), 0, None)  # type: ignore[arg-type]
    parts = _made.grids_step(read_studies(None), settings)
    (claim,) = (part for part in parts if isinstance(part, StudyClaim))
    assert claim.verdict is ClaimVerdict.OPEN and "720 combinations for 1000" in claim.found


def test_groups_tell_networks_apart() -> None:
    made = members("deterministic", [(0.9, 0.5)]) + members("deterministic", [(0.8, 0.5)], images=9)
    made += [StudyMember(recipe=expand("bayesian", {}, 0)[0], parameters=1, accuracy=0.8,
                         converged=False)]  # fmt: skip
    groups = network_groups(made)
    assert [m.accuracy for m in groups[DETERMINISTIC].members] == [0.9]
    assert [m.accuracy for m in groups[COUNTERPARTS].members] == [0.8]
    assert BAYESIAN not in groups and "Bayesian, converged or not" in groups


def test_bayesian_networks_are_held_against_their_counterparts() -> None:
    """Six networks of each of 40 architectures and two counterparts: 40 pairs, not 240."""
    made = []
    for width in range(1, 41):
        at = 0.7 + 0.002 * width
        made += members("bayesian", [(0.8, at + 0.01 * k) for k in range(6)], width=width)
        made += members("deterministic", [(0.8, 0.5), (0.8, 0.6)], images=20, width=width)
    found = paired_differences({"data": network_groups(made)})
    (share,) = [each for each in found if each.measure == "R"]
    assert share.pairs == 40 and share.mean == pytest.approx(0.7 + 0.002 * 20.5 + 0.025 - 0.55)
    assert share.low <= share.mean <= share.high and share.sign == "positive"
    claim = pairs_claim(found, ClaimBasis.OURS)
    assert outcomes(claim) == ["holds"] * 3 and claim.cases[0].n == 40
    assert claim.verdict is ClaimVerdict.NOT_TESTABLE
    assert pairs_claim([], ClaimBasis.OURS).verdict is ClaimVerdict.OPEN


@pytest.mark.parametrize(("slope", "outcome"), [(0.4, "fails"), (0.0, "holds")])
def test_the_strength_of_pruning(slope: float, outcome: str) -> None:
    rng = np.random.default_rng(0)
    made = []
    for strength in (0.5, 0.75, 0.9, 0.99):
        values = [(0.8, 0.5 + slope * strength + float(rng.normal(0, 0.02))) for _ in range(30)]
        made += members("pruned", values, strength=strength)
    groups = {PRUNED: NetworkGroup(PRUNED, tuple(made), 0.8)}
    found = trends({"data": groups}, (PRUNED,), ("R",), "strength")
    claim = strength_claim(found, ClaimBasis.OURS)
    assert outcomes(claim) == [outcome] and claim.verdict is ClaimVerdict.NOT_TESTABLE


def test_a_correction_turns_no_effect_into_support() -> None:
    """p = 0.01 alone, and an interval for twelve measures that has 0 and is narrow."""
    found = Correlation("g", "R", "strength", "spearman", 200, 0.18, 0.05, 0.3, 0.04, 0.31, 0.01)
    case = _pruned._effect_case("a", found, ClaimBasis.SETTINGS, 12)
    assert case.outcome.value == "unclear"
    none = Correlation("g", "R", "strength", "spearman", 200, 0.02, -0.1, 0.1, -0.1, 0.1, 0.8)
    assert _pruned._effect_case("a", none, ClaimBasis.SETTINGS, 12).outcome.value == "holds"


def test_accuracy_at_every_severe_share() -> None:
    """Little is lost where 0.9 is removed, much where 0.99 is; three networks show neither."""
    made = []
    for strength, accuracy in ((0.5, 0.9), (0.75, 0.7), (0.9, 0.88), (0.99, 0.3)):
        made += members("pruned", [(accuracy, 0.5)] * 3, strength=strength)
    sets = {"MNIST": {PRUNED: NetworkGroup(PRUNED, tuple(made), 0.9)}}
    claim = accuracy_claim(sets, ClaimBasis.OURS)
    assert [case.outcome.value for case in claim.cases] == ["holds", "fails"]
    assert outcomes(claim) == ["unclear"] * 2
    assert [case.shows[:16] for case in claim.cases] == ["0.880 for 0.900:", "0.300 for 0.900:"]
    assert accuracy_claim({}, ClaimBasis.OURS).verdict is ClaimVerdict.OPEN


@pytest.mark.parametrize(
    ("after", "spread", "outcome"),
    [(0.88, 0.01, "holds"), (0.6, 0.01, "fails"), (0.95, 0.01, "fails"), (0.88, 0.3, "unclear")],
)
def test_a_slight_loss_of_accuracy(after: float, spread: float, outcome: str) -> None:
    """By medians of 40 networks each, with an interval."""
    rng = np.random.default_rng(0)
    groups = [(middle + spread * rng.normal(size=40)).tolist() for middle in (0.9, after)]
    case = loss_case("a", ClaimBasis.OURS, groups[0], groups[1], 1)
    assert case.outcome.value == outcome and case.n == 40


@pytest.mark.parametrize(
    ("images", "proven", "not_refuted", "outcome"),
    [
        (20_000, 0.8, 0.8, "holds"),
        (100, 0.8, 0.8, "unclear"),  # other images may be otherwise
        (100, 0.4, 0.5, "fails"),
        (20_000, 0.5, 0.8, "unclear"),
    ],
)
def test_what_the_attack_overlooks(
    images: int, proven: float, not_refuted: float, outcome: str
) -> None:
    (recipe,) = expand("deterministic", {}, 0)
    value = Value(proven, not_refuted, 0.0, 1.0, images)
    network = StudyMember(recipe=recipe, parameters=1, unbroken=0.8, proven_robustness=value)
    claim = attack_claim({"MNIST": [network] * 3, "CIFAR-10": []}, ClaimBasis.OURS)
    assert outcomes(claim) == [outcome] and claim.cases[0].n == images  # which all networks share
    assert attack_claim({}, ClaimBasis.OURS).verdict is ClaimVerdict.OPEN


def test_panels_have_all_series_of_their_data() -> None:
    sets = {"data": network_groups(members("deterministic", line(0.4)))}
    panels = tradeoff_panels(sets, (DETERMINISTIC, PRUNED))
    assert list(panels) == ["data, R(0.5)", "data, 1 - D", "data, R"]
    assert [len(series) for series in panels["data, R"].values()] == [12, 0]
    figure = draw_tradeoffs(panels)
    assert [axes.get_title() for axes in figure.axes] == list(panels)
    with pytest.raises(DataError, match="no networks"):
        draw_tradeoffs(tradeoff_panels(sets, (PRUNED,)))


def test_claims_of_section_4_1() -> None:
    values = np.repeat([0.0, 1.0], [300, 700])
    estimates = repeat_estimates(values, errors=(0.2, 0.1))
    within, samples, growth = convergence_claims(estimates)
    assert within.verdict is ClaimVerdict.CONFIRMED and "Of 100 estimates" in within.found
    # A theorem: estimates of ours that are off show an error of ours, and refute nothing.
    off = [dataclasses.replace(each, least=each.least + 1) for each in estimates]
    assert convergence_claims(off)[0].verdict is ClaimVerdict.CONFIRMED
    # Hoeffding by hand: ln(2 / 0.05) / (2 * 0.05^2) = 737.8
    assert str(math.ceil(math.log(40) / 0.005)) in samples.found
    assert samples.verdict is ClaimVerdict.CONFIRMED
    assert growth.verdict is ClaimVerdict.REFUTED and "power 2.00" in growth.found
