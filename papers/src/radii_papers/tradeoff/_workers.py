"""The networks of a study, from their recipes to their records, several at once.

Each step is kept and not done twice: what is done stays done, whatever ends the run.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from radii.datasets import Dataset, load_spec
from radii.errors import ExperimentError, TrainingError, UnsupportedQuery
from radii.networks import Network, load_network
from radii.problem import Grid
from radii.processes import ProcessPool, Request, StoppedCall
from radii.runs import (
    ChangeSettings,
    DataSource,
    GlobalRobustness,
    estimate_change,
    estimate_robustness,
    settings_for,
)
from radii.statistics import Demand, Population, Range, estimate_mean
from radii.store import Store
from radii.training import architecture, claimed, replacing, train
from radii_papers.tradeoff._bayesian import Hamiltonian, train_bayesian
from radii_papers.tradeoff._description import STUDY_FILE, Recipe, Study
from radii_papers.tradeoff._pruning import prune
from radii_papers.tradeoff._results import (
    MEMBER_FILE,
    StudyMember,
    Value,
    member_directory,
    read_member,
    read_members,
)

MADE_FILE = "made.json"

TEST_IMAGES = 100
"""Test images that training itself looks at; accuracy is that of the exported file on all."""

MEANS_OF_PROBABILITIES = Range(0.0, 1.0 + 1e-5)
"""How far an output of a Bayesian network can move: a mean of softmaxes, and its rounding."""


@dataclass(frozen=True, slots=True)
class _ExportedNetwork:
    """What is known of a network once it is exported."""

    accuracy: float
    seconds: float
    converged: bool | None = None
    rhat: float | None = None
    effective: float | None = None


class StudyWorker:
    """Makes and measures networks of a study, given their places in it; data is loaded once."""

    def __init__(self, study: Study, directory: Path) -> None:
        torch.set_num_threads(1)
        self._study, self._directory = study, directory
        self._data, self._test = load_spec(study.data), load_spec(study.test)
        if study.proof_inputs > len(self._test):
            raise ExperimentError(
                f"proof_inputs {study.proof_inputs} are more than the {len(self._test)} inputs of "
                f"{study.test}"
            )
        is_bayesian = any(recipe.kind == "bayesian" for recipe in study.recipes)
        if is_bayesian and study.bayesian_images > len(self._data):
            raise ExperimentError(
                f"bayesian_images {study.bayesian_images} are more than the {len(self._data)} of "
                f"{study.data}"
            )

    def __call__(self, place: int) -> None:
        """Make the network at this place, and write its record."""
        recipe = self._study.recipes[place]
        directory = member_directory(self._directory, recipe)
        parameters = self._parameters(recipe)
        try:
            made = self._made(recipe, directory)
        except TrainingError as error:
            if "diverged" not in str(error):
                raise
            member = StudyMember(recipe=recipe, parameters=parameters, failure=str(error))
        else:
            member = self._measured(recipe, directory, made, parameters)
        _write(directory / MEMBER_FILE, dataclasses.asdict(member))

    def _parameters(self, recipe: Recipe) -> int:
        classes = max(int(part.labels.max()) for part in (self._data, self._test)) + 1
        module = architecture(recipe.architecture, self._data.shape, classes)
        return sum(parameter.numel() for parameter in module.parameters())

    def _made(self, recipe: Recipe, directory: Path) -> _ExportedNetwork:
        path = directory / MADE_FILE
        if path.exists():
            try:
                return _ExportedNetwork(**json.loads(path.read_text()))
            except (OSError, ValueError, TypeError) as error:
                raise ExperimentError(
                    f"{path}: cannot be read ({error}); remove {directory} to make it again"
                ) from None
        began = time.perf_counter()
        diagnostics = self._train(recipe, directory)
        network = _load(directory)
        accuracy = _accuracy(network, self._test)
        made = _ExportedNetwork(accuracy, time.perf_counter() - began, **diagnostics)
        _write(path, dataclasses.asdict(made))
        return made

    def _train(self, recipe: Recipe, directory: Path) -> dict[str, Any]:
        """Leave `network.onnx` in the directory; return whether a Bayesian network converged."""
        study, watched = self._study, self._test.first(min(TEST_IMAGES, len(self._test)))
        if recipe.kind == "bayesian":
            how = Hamiltonian(
                samples=recipe.samples or 0,
                warmup=study.warmup,
                chains=study.chains,
                step=recipe.step or 0.0,
                steps=recipe.steps or 0,
                adapts=study.adapts,
                prior=study.prior,
            )
            data = self._data.first(study.bayesian_images)
            convergence = train_bayesian(
                recipe.architecture,
                data,
                test=watched,
                how=how,
                members=study.members,
                out=directory,
                seed=recipe.seed,
            ).convergence
            return {
                "converged": convergence.is_reached,
                "rhat": convergence.rhat,
                "effective": convergence.effective,
            }
        options: dict[str, Any] = {
            "test": watched,
            "out": directory,
            "optimizer": study.optimizer,
            "batch": study.batch,
            "rate": recipe.rate,
            "epochs": recipe.epochs,
            "momentum": study.momentum,
            "seed": recipe.seed,
        }
        data = self._data if recipe.images is None else self._data.first(recipe.images)
        if recipe.kind == "pruned":
            strength, rounds = recipe.strength or 0.0, recipe.rounds or 0
            prune(recipe.architecture, data, strength=strength, rounds=rounds, **options)
        else:
            train(recipe.architecture, data, **options)
        return {}

    def _measured(
        self, recipe: Recipe, directory: Path, made: _ExportedNetwork, parameters: int
    ) -> StudyMember:
        study, network, began = self._study, _load(directory), time.perf_counter()
        robustness = self._robustness(network, directory, "attack", study.demand)
        change = self._change(recipe, network, directory, "attack", study.demand)
        member = StudyMember(
            recipe=recipe,
            parameters=parameters,
            accuracy=made.accuracy,
            converged=made.converged,
            rhat=made.rhat,
            effective=made.effective,
            robustness=self._value([each.upper for each in robustness.inputs]),
            steadiness=self._value(_steady([each.lower for each in change.inputs], study.gamma)),
            change=self._value([each.lower for each in change.inputs], span=_span(recipe)),
        )
        if recipe.kind not in study.prove or not study.proof_inputs:
            member = dataclasses.replace(member, refusal="no proof was asked for")
        else:
            member = self._proven(member, network, directory)
        return dataclasses.replace(member, seconds=made.seconds + time.perf_counter() - began)

    def _proven(self, member: StudyMember, network: Network, directory: Path) -> StudyMember:
        """The same network, with what a verifier can say of the first inputs."""
        demand = Demand(samples=self._study.proof_inputs, confidence=self._study.confidence)
        gamma = self._study.gamma
        try:
            robustness = self._robustness(network, directory, "both", demand)
            change = self._change(member.recipe, network, directory, "both", demand)
        except UnsupportedQuery as error:
            return dataclasses.replace(member, refusal=str(error))
        span = _span(member.recipe)
        least, most = _sides(change, span)
        return dataclasses.replace(
            member,
            proven_robustness=self._value(*_sides(robustness, Range())),
            proven_steadiness=self._value(_steady(most, gamma), _steady(least, gamma)),
            proven_change=self._value(least, most, span=span),
            unbroken=None if robustness.attacked is None else robustness.attacked.most,
        )

    def _value(
        self,
        lower: Sequence[float],
        upper: Sequence[float] | None = None,
        span: Range | None = None,
    ) -> Value:
        """What values of the sample say, of the test set and of what it was drawn from itself."""
        whole = Population(self._study.test)
        both = (
            estimate_mean(
                lower,
                upper,
                population=population,
                confidence=self._study.confidence,
                method="chernoff" if span else "exact",
                values=span,
            )
            for population in (self._source.population, whole)
        )
        return Value.of(*both)

    def _robustness(
        self, network: Network, directory: Path, by: str, demand: Demand
    ) -> GlobalRobustness:
        study = self._study
        limits: dict[str, Any] = {"timeout": study.proof_timeout, "verifier": study.verifier}
        settings = settings_for(
            study.eps,
            by,
            attack=study.attack,
            seed=study.seed,
            **(limits if by == "both" else {}),
        )
        with Store.create_or_open(directory / f"robustness-{by}") as store:
            return estimate_robustness(
                network,
                self._source,
                settings,
                demand,
                store,
                path=str(directory / "network.onnx"),
                # A foreign verifier works in a process that can be killed; native keeps its limit.
                jobs=int(by == "both" and study.verifier != "native"),
            )

    def _change(
        self, recipe: Recipe, network: Network, directory: Path, by: str, demand: Demand
    ) -> GlobalRobustness:
        study, is_mean = self._study, recipe.kind == "bayesian"
        return estimate_change(
            network,
            self._source,
            ChangeSettings(
                eps=Grid.of_one(study.eps)[0],
                on="outputs" if is_mean else "probabilities",
                by=by,
                attack=study.attack,
            ),
            demand,
            values=_span(recipe),
            seed=study.seed,
            out=directory / f"change-{by}",
        )

    @property
    def _source(self) -> DataSource:
        return DataSource(self._test, name=self._study.test)


def _load(directory: Path) -> Network:
    return load_network(directory / "network.onnx", domain=(0.0, 1.0))


def _accuracy(network: Network, test: Dataset) -> float:
    """The share of inputs whose label has the one largest output, on ONNX Runtime."""
    outputs = np.array(network.replay(test.images))
    rows = np.arange(len(outputs))
    own = outputs[rows, test.labels].copy()
    outputs[rows, test.labels] = -np.inf
    return float((own > outputs.max(axis=1)).mean())


def _span(recipe: Recipe) -> Range:
    return MEANS_OF_PROBABILITIES if recipe.kind == "bayesian" else Range()


def _sides(measured: GlobalRobustness, span: Range) -> tuple[list[float], list[float]]:
    """What is proven and what is not refuted of each input; a proof cut off at the range."""
    most = [min(each.upper, span.high) for each in measured.inputs]
    return [each.lower for each in measured.inputs], most


def _steady(changes: Sequence[float], gamma: float) -> list[float]:
    """1 where the largest change is below gamma: as property SR has it, gamma itself is broken."""
    return [float(change < gamma) for change in changes]


def _write(path: Path, record: dict[str, Any]) -> None:
    with replacing(path) as partial:
        partial.write_text(json.dumps(record, indent=1) + "\n")


def run_study(
    study: Study,
    directory: Path,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[StudyMember]:
    """Make and measure what the directory does not hold yet, `jobs` networks at once.

    A network whose process dies is left out, and an ExperimentError in the end names the first.
    """
    if jobs < 1:
        raise ExperimentError(f"jobs {jobs} must be at least 1")
    with claimed(directory):
        total = len(study.recipes)
        missing = [
            place
            for place, recipe in enumerate(study.recipes)
            if read_member(directory, recipe) is None
        ]
        if missing:
            StudyWorker(study, directory)  # data that cannot be used is found out here
        _begin(study, directory)
        done, lost = total - len(missing), []
        progress(done, total)
        with ProcessPool(
            StudyWorker, study, directory, jobs=min(jobs, max(1, len(missing)))
        ) as staff:
            for request, outcome in staff.answers([Request((place,)) for place in missing]):
                if isinstance(outcome, StoppedCall):
                    lost.append(f"{study.recipes[request.arguments[0]].name}: {outcome.message}")
                done += 1
                progress(done, total)
    if lost:
        raise ExperimentError(
            f"{len(lost)} of {total} networks were not finished ({lost[0]}); run again to try them "
            "again"
        )
    return read_members(directory)


def _begin(study: Study, directory: Path) -> None:
    path = directory / STUDY_FILE
    if not path.exists():
        with replacing(path) as partial:
            partial.write_text(json.dumps(study.identity, indent=1) + "\n")
        return
    known, own = Study.read(directory).identity, study.identity
    different = [name for name in own if own[name] != known.get(name)]
    if different:
        raise ExperimentError(
            f"{directory}: holds another study (other {', '.join(different)}); choose another --out"
        )
