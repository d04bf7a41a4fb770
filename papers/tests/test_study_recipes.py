"""Grids and descriptions of studies: what they hold, and what is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from radii.errors import ExperimentError, InputError
from radii.training import architecture
from radii_papers.tradeoff import (
    RECIPE_KINDS,
    Study,
    expand,
    preset_names,
    preset_tables,
    read_tables,
)

SMALL = {"data": "digits:train", "test": "digits:test", "eps": 0.05}


def test_a_grid_holds_every_combination_once() -> None:
    recipes = expand(
        "deterministic",
        {"depth": [1, 2], "width": [4, 8], "convolutions": [0, 1], "filters": [2, 3]},
        seed=0,
    )
    dense = [r for r in recipes if not r.convolutions]
    assert len(dense) == 4  # filters have no meaning for them
    assert len(recipes) - len(dense) == 8
    assert len({r.name for r in recipes}) == len(recipes)


def test_some_of_a_grid_by_seed() -> None:
    table = {"width": list(range(1, 30)), "count": 5}
    first, again, other = (expand("deterministic", table, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 5


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("convolutions", [0, 2])
def test_a_recipe_names_an_architecture(activation: str, convolutions: int) -> None:
    (recipe,) = expand(
        "deterministic",
        {"depth": 2, "width": 6, "activation": activation, "convolutions": convolutions},
        seed=0,
    )
    module = architecture(recipe.architecture, (1, 8, 8), 10)
    kinds = [type(layer).__name__.lower() for layer in module]
    assert kinds.count(activation) == 2 + convolutions
    assert kinds.count("conv2d") == convolutions
    assert kinds.count("linear") == 3


def test_presets_are_as_large_as_promised() -> None:
    names = ("cifar10", "fashion", "mnist")
    assert preset_names() == [f"{name}-{size}" for name in names for size in ("paper", "small")]
    total = 0
    for name in names:
        study = Study.from_tables(preset_tables(f"{name}-small"))
        total += len(study.recipes)
        if name == "cifar10":
            assert {r.blocks for r in study.recipes} == {1, 2, 3}
            continue
        counts = {kind: sum(r.kind == kind for r in study.recipes) for kind in RECIPE_KINDS}
        assert counts["deterministic"] >= 60 and counts["bayesian"] >= 6
        assert len({r.strength for r in study.recipes if r.kind == "pruned"}) == 4
        assert {r.activation for r in study.recipes} == {"relu", "tanh", "sigmoid"}
        assert max(r.width for r in study.recipes if r.kind == "bayesian") == 128
    assert total >= 300


@pytest.mark.parametrize(
    ("name", "kind", "family", "combinations"),
    [
        ("mnist", "deterministic", "dense", 3 * 4 * 3 * 4 * 5),
        ("mnist", "deterministic", "convolutional", 1000),
        ("mnist", "pruned", "dense", 3 * 4 * 3 * 4 * 3 * 3),
        ("mnist", "bayesian", "dense", 3 * 3 * 3 * 4 * 3 * 4),
        ("fashion", "deterministic", "dense", 3 * 3 * 3 * 3 * 5),
        ("fashion", "bayesian", "dense", 3 * 3 * 4 * 3 * 4),
        ("cifar10", "deterministic", "convolutional", 600),
    ],
)
def test_presets_of_the_paper(name: str, kind: str, family: str, combinations: int) -> None:
    recipes = Study.from_tables(preset_tables(f"{name}-paper")).recipes
    assert sum(r.kind == kind and r.family == family for r in recipes) == combinations


def test_blocks_are_two_convolutions_and_a_pooling() -> None:
    table = {"blocks": 2, "filters": 3, "kernel": 3, "depth": 1, "width": 6, "images": 50}
    (recipe,) = expand("deterministic", table, seed=0)
    assert (recipe.family, recipe.images) == ("convolutional", 50)
    assert "2v3k3" in recipe.name and "i50" in recipe.name
    kinds = [type(layer).__name__ for layer in architecture(recipe.architecture, (1, 8, 8), 10)]
    assert kinds[:5] == ["Conv2d", "ReLU", "Conv2d", "ReLU", "MaxPool2d"]
    assert kinds.count("MaxPool2d") == 2 and kinds.count("Linear") == 2


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({}, "a study needs networks"),
        ({"deterministic": [{"depht": 1}]}, "have no 'depht'"),
        ({"deterministic": [{"width": 0}]}, "width 0 must be at least 1"),
        ({"deterministic": [{"width": 1.5}]}, "must be a whole number"),
        ({"deterministic": [{"depth": 0}]}, "needs a depth of 1"),
        ({"deterministic": [{"blocks": 1, "convolutions": 1}]}, "convolutions or blocks"),
        ({"deterministic": [{}], "gamma": 0.0}, "gamma 0.0"),
        ({"deterministic": [{"width": []}]}, "'width' has no values"),
        ({"deterministic": [{"activation": "swish"}]}, "activation 'swish' is not one of"),
        ({"deterministic": [{"count": 2}]}, "count 2 must be"),
        ({"deterministic": [{}, {}]}, "the same network"),
        ({"deterministic": {}}, "must be a list of tables"),
        ({"pruned": [{"strength": 1.0}]}, "must be below 1"),
        ({"pruned": [{"rate": "fast"}]}, "must be a number"),
        ({"deterministic": [{}], "eps": -1}, "eps"),
        ({"deterministic": [{}], "confidence": 2.0}, "confidence"),
        ({"deterministic": [{}], "attack": "magic"}, "attack 'magic'"),
        ({"deterministic": [{}], "prove": ["all"]}, "prove 'all'"),
        ({"deterministic": [{}], "members": 0}, "members 0"),
        ({"deterministic": [{}], "colour": 1}, "no setting 'colour'"),
        ({"deterministic": [{}], "seed": -1}, "seed -1"),
        ({"deterministic": [{}], "data": ""}, "needs 'data'"),
    ],
)
def test_bad_descriptions_get_a_sentence(tables: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Study.from_tables({**SMALL, **tables})


def test_files_that_are_no_studies(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="cannot be read"):
        read_tables(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("= 1")
    with pytest.raises(ExperimentError, match="is not TOML"):
        read_tables(tmp_path / "bad.toml")
    with pytest.raises(ExperimentError, match="holds no study"):
        Study.read(tmp_path)
    (tmp_path / "study.json").write_text("[]")
    with pytest.raises(ExperimentError, match="cannot be read as a study"):
        Study.read(tmp_path)
    with pytest.raises(ExperimentError, match="preset 'none' is not one of"):
        preset_tables("none")
