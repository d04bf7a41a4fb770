"""What a cycle is about: everything that decides its networks and its verdicts."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from radii import runs, training
from radii.errors import ExperimentError, InputError
from radii.problem import Domain, Grid
from radii.statistics import RobustnessRequirement, parse_requirement
from radii.strategy import AttackOnly
from radii.training._checkpoints import replacing

CYCLE_FILE = "cycle.json"

DEFAULT_ATTACK = "pgd"
"""On training images, unless another is chosen: at one eps it is as good as the slower ones."""

RADIUS_MEASURES = ("median", "quantile", "mean", "min")
"""Measures of radii: what they are compared with is an eps itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """Checked on creation; an InputError of one sentence says what makes no sense.

    `data` are the training images, `test` those on which `requirements` are judged, both specs as
    of `radii run`. The first round is trained with `regime`, later ones with `later_regime` for
    `later_epochs`; `training` holds further settings of `radii.training`. Counterexamples are
    sought within `eps` of training images drawn for each round: `attacked` of them are attacked
    (all if it is 0), and of those that withstand, `verified` are proven or refuted. `measuring`
    are settings of `radii.runs`, among them the grid for the test images.
    """

    architecture: str
    data: str
    test: str
    requirements: tuple[str, ...]
    regime: str = "standard"
    later_regime: str = ""
    epochs: int = 10
    later_epochs: int = 0
    eps: float = 0.0
    attacked: int = 0
    verified: int = 100
    domain: str = "0:1"
    training: Mapping[str, Any] = field(default_factory=dict)
    measuring: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.requirements:
            raise ExperimentError("a cycle needs a requirement, such as robust_accuracy(0.02)>=0.9")
        required = [parse_requirement(text) for text in self.requirements]
        eps = self.eps or _implied_eps(required)
        if not 0 < eps < math.inf:
            raise ExperimentError(f"eps {eps:g} must be above 0")
        for name in ("attacked", "verified"):
            if getattr(self, name) < 0:
                raise ExperimentError(f"{name} {getattr(self, name)} must be 0 images or more")
        settings: dict[str, Any] = {
            "regime": training.parse_regime(self.regime).spec,
            "later_regime": training.parse_regime(self.later_regime or self.regime).spec,
            "later_epochs": self.later_epochs or self.epochs,
            "eps": eps,
            "measuring": _typed(self.measuring),
        }
        if "grid" not in self.measuring:
            settings["measuring"] = {"grid": _grid(required, eps), **settings["measuring"]}
        _check_reach(required, settings["measuring"]["grid"])
        for name, value in settings.items():
            object.__setattr__(self, name, value)
        Domain.parse(self.domain)
        for number in (0, 1):
            self.training_settings(number)
        _ = self.judging, self.attacking, self.verifying  # raise now what they would raise later

    def required(self) -> tuple[RobustnessRequirement, ...]:
        return tuple(parse_requirement(text) for text in self.requirements)

    def training_settings(self, number: int) -> dict[str, Any]:
        """What `radii.training.train` is given in a round; each round shuffles anew."""
        regime, epochs = self.regime, self.epochs
        if number:
            regime, epochs = self.later_regime, self.later_epochs
        seed = int(self.training.get("seed", 0)) + number
        settings = {**self.training, "epochs": epochs, "seed": seed}
        try:
            training.TrainingSettings(regime=regime, **settings)
        except TypeError as error:
            raise ExperimentError(f"training takes no such setting ({error})") from None
        return {"regime": regime, **settings}

    @property
    def judging(self) -> runs.Settings:
        """How the test images are measured."""
        return self._settings({})

    @property
    def attacking(self) -> runs.Settings:
        """How training images are attacked, at the one eps."""
        attack = self.measuring.get("attack", DEFAULT_ATTACK)
        only = {"search": AttackOnly.name, "verifier": "native", "attack": attack}
        return self._settings({"grid": self._only_eps, **only})

    @property
    def verifying(self) -> runs.Settings:
        """How training images are proven or refuted, at the one eps."""
        return self._settings({"grid": self._only_eps})

    @property
    def _only_eps(self) -> Grid:
        eps = Fraction(repr(self.eps))
        return Grid(eps, 2 * eps, eps)

    def _settings(self, fixed: Mapping[str, Any]) -> runs.Settings:
        return runs.Settings.from_options({**self.measuring, **fixed}).resolved()

    def as_json(self) -> str:
        values = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        return json.dumps({**values, "measuring": _written(self.measuring)}, indent=2) + "\n"

    def claim(self, directory: Path) -> None:
        """Write the description where the cycle is kept; refuse a directory of another one."""
        path = directory / CYCLE_FILE
        if not path.exists():
            with replacing(path) as partial:
                partial.write_text(self.as_json(), "utf-8")
            return
        try:
            known = json.loads(path.read_text("utf-8"))
            if not isinstance(known, dict):
                raise ValueError("it is not an object")
            known["measuring"] = _written(_typed(known.get("measuring", {})))
        except (OSError, ValueError, InputError) as error:
            raise ExperimentError(f"{path}: cannot be read as a cycle ({error})") from None
        mine = json.loads(self.as_json())
        different = [name for name in mine if mine[name] != known.get(name)]
        if different:
            changes = "; ".join(
                f"{name} was {known.get(name)}, is {mine[name]}" for name in different
            )
            raise ExperimentError(
                f"{directory} holds another cycle ({changes}); choose another --out"
            )


def _typed(measuring: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of an experiment as typed values, whether they were given as such or as text."""
    known = runs.options_of(runs.Settings)
    for name in measuring:
        if name not in known:
            raise ExperimentError(f"measuring takes no such setting ('{name}')")
    return {name: known[name].read(value) for name, value in measuring.items()}


def _written(measuring: Mapping[str, Any]) -> dict[str, Any]:
    """As cycle.json holds them: those that were given, and the grid."""
    known = runs.options_of(runs.Settings)
    return {name: known[name].form.write(value) for name, value in measuring.items()}


def _required_eps(required: Sequence[RobustnessRequirement]) -> list[float]:
    """Every eps that the requirements speak about."""
    spoken = [one.arguments["eps"] for one in required if "eps" in one.arguments]
    return spoken + [one.limit for one in required if one.measure in RADIUS_MEASURES]


def _check_reach(required: Sequence[RobustnessRequirement], grid: Grid) -> None:
    """Nothing is proven above the grid: no round could meet what is asked there."""
    furthest = grid.values[-1]
    proven = [one for one in required if one.is_proven and one.relation in (">", ">=")]
    beyond = [eps for eps in _required_eps(proven) if eps > furthest]
    if beyond:
        raise ExperimentError(
            f"the requirements speak about eps {max(beyond):g}, but grid {grid} ends at "
            f"{furthest:g}"
        )


def _implied_eps(required: Sequence[RobustnessRequirement]) -> float:
    """The largest eps that the requirements speak about."""
    spoken = _required_eps(required)
    if not spoken or max(spoken) <= 0:
        raise ExperimentError(
            "the requirements name no eps: say with --eps how far counterexamples may be"
        )
    return max(spoken)


def _grid(required: Sequence[RobustnessRequirement], eps: float) -> Grid:
    """A quarter of the least eps as the step, to one and a half times the largest.

    Every eps of a requirement must be on it: what is proven below it says nothing of it.
    """
    spoken = [one.arguments["eps"] for one in required if one.arguments.get("eps")]
    exact = [Fraction(repr(value)) for value in (*spoken, eps)]
    step = min(exact) / 4
    if any(value % step for value in exact) or max(exact) > 100 * step:
        raise ExperimentError(
            f"the requirements speak about eps {', '.join(f'{value:g}' for value in spoken)}: "
            "give a --grid that holds each of them"
        )
    return Grid(step, max(exact) * 3 / 2 + step, step)
