"""One round of a cycle: hunt on the network before, train, judge. Every step can be cut off."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from radii import experiments, report, results, training
from radii.balls import Domain
from radii.datasets import Dataset
from radii.distributions import Distribution, RequirementOutcome, check_all
from radii.errors import StoreError
from radii.networks import load_network
from radii.store import Store
from radii.training._checkpoints import replacing
from radii.training.cycle import _counterexamples as counterexamples
from radii.training.cycle._counterexamples import Counterexamples
from radii.training.cycle._description import Cycle
from radii.verdicts import Array

ROUND_FILE, TRAINING_FOLDER, RESULTS_FOLDER = "round.json", "training", "results"


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one round. Shares are of the test images, at the cycle's eps.

    `images` were trained on, `counterexamples` of them found in earlier rounds. `seconds` are those
    of the session that ended the round.
    """

    number: int
    images: int
    counterexamples: int
    accuracy: float
    proven: float
    not_refuted: float
    outcomes: tuple[RequirementOutcome, ...]
    seconds: float

    @property
    def is_met(self) -> bool:
        return all(outcome.is_met for outcome in self.outcomes)

    def write(self, directory: Path) -> None:
        with replacing(directory / ROUND_FILE) as partial:
            partial.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n", "utf-8")


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """The images of a cycle: those to train on and those to judge on."""

    train: Dataset
    test: Dataset


def folder(out: Path, number: int) -> Path:
    return out / f"round-{number}"


def read_round(directory: Path) -> Round | None:
    """A round that was ended; None if it was not."""
    path = directory / ROUND_FILE
    if not path.exists():
        return None
    try:
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
        told["outcomes"] = tuple(RequirementOutcome(**outcome) for outcome in told["outcomes"])
        return Round(**told)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: cannot be read as a round ({error})") from None


def find_counterexamples(
    cycle: Cycle,
    number: int,
    directory: Path,
    data: Data,
    jobs: int,
    observer: experiments.Observer | None,
) -> Counterexamples:
    """Attack the network of a round around training images, then verify some that withstand."""
    seed = int(cycle.training.get("seed", 0)) + number
    drawn = data.train.random(cycle.attacked or len(data.train), seed=seed)
    images, labels, broken = _search_images(cycle, directory, drawn, "attack", jobs, observer)
    found = Counterexamples(images, labels, len(drawn), int(broken.sum()))
    standing = np.flatnonzero(np.logical_not(broken))
    chosen = np.random.default_rng(seed).permutation(standing)[: cycle.verified]
    if chosen.size:
        rest = drawn.take(np.sort(chosen))
        images, labels, refuted = _search_images(cycle, directory, rest, "verify", jobs, observer)
        with Store.open(directory / "verify") as store:
            lowers = [one.bracket.lower for one in store.measurements()]
        found = replace(
            found,
            images=np.concatenate([found.images, images]),
            labels=np.concatenate([found.labels, labels]),
            verified=len(rest),
            proven=sum(lower >= cycle.eps for lower in lowers),
            refuted=int(refuted.sum()),
        )
    counterexamples.write(found, directory)
    return found


def _search_images(
    cycle: Cycle,
    directory: Path,
    data: Dataset,
    how: str,
    jobs: int,
    observer: experiments.Observer | None,
) -> tuple[Array, Array, Array]:
    settings = cycle.attacking if how == "attack" else cycle.verifying
    asked = _plan(cycle, directory, data, settings, cycle.data)
    with Store.create_or_open(directory / how) as store:
        asked.run(store, jobs=jobs, observer=observer)
        return counterexamples.collect(asked, store, cycle.eps)


def train(
    cycle: Cycle,
    number: int,
    out: Path,
    data: Data,
    found: Sequence[Counterexamples],
    observer: training.TrainingObserver | None,
) -> None:
    """The network of a round; it goes on from the weights of the round before."""
    before = None
    if number:
        before = training.saved_weights(folder(out, number - 1) / TRAINING_FOLDER)
    training.train(
        cycle.architecture,
        counterexamples.with_counterexamples(data.train, found),
        test=data.test,
        out=folder(out, number) / TRAINING_FOLDER,
        domain=Domain.parse(cycle.domain),
        eps=cycle.eps,
        start=before,
        observer=observer,
        **cycle.training_settings(number),
    )


def judge(
    cycle: Cycle,
    number: int,
    directory: Path,
    data: Data,
    found: Sequence[Counterexamples],
    jobs: int,
    observer: experiments.Observer | None,
    *,
    began: float,
) -> Round:
    """Measure the test images and hold them against the requirements; this ends the round."""
    asked = _plan(cycle, directory, data.test, cycle.judging, cycle.test)
    with Store.create_or_open(directory / RESULTS_FOLDER) as store:
        asked.run(store, jobs=jobs, observer=observer)
        distribution = Distribution.from_store(store)
    text = report.card([results.read(directory / RESULTS_FOLDER)], eps=(cycle.eps,))
    with replacing(directory / "card.md") as partial:
        partial.write_text(text + "\n", "utf-8")
    share = distribution.robust_accuracy(cycle.eps)
    added = sum(len(one.labels) for one in found)
    ended = Round(
        number=number,
        images=len(data.train) + added,
        counterexamples=added,
        accuracy=float(distribution.correct.mean()),
        proven=float(share.proven),
        not_refuted=float(share.not_refuted),
        outcomes=check_all(cycle.required(), distribution).outcomes,
        seconds=time.monotonic() - began,
    )
    ended.write(directory)
    return ended


def _plan(
    cycle: Cycle, directory: Path, data: Dataset, settings: experiments.Settings, source: str
) -> experiments.Plan:
    """The network of a round, named after it, on some images."""
    path = directory / TRAINING_FOLDER / "network.onnx"
    network = load_network(path, domain=Domain.parse(cycle.domain), name=directory.name)
    return experiments.plan((network,), data, settings, paths=[str(path)], data=source)
