"""Rounds of training, attack and proof, until the requirements hold or the budget ends.

A round trains a network and judges it on the test images. Unless the requirements hold, a hunt then
looks for counterexamples around training images, which the next round trains on as well. Every step
is kept, so that a cycle that was cut off continues where it was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from radii import datasets, runs, statistics, training, views
from radii.datasets import Dataset, from_arrays
from radii.errors import DataError, ExperimentError
from radii.networks import load_network
from radii.problem import Array, Domain, Query, check_witness
from radii.statistics import Distribution, check_all
from radii.store import Store
from radii.training._checkpoints import claimed, replacing
from radii.training._runs import NETWORK_FILE
from radii.training.cycle._description import Cycle
from radii.training.cycle._rounds import Counterexamples, Round

TRAINING_FOLDER, RESULTS_FOLDER = "training", "results"


class CycleObserver(Protocol):
    """Receives the progress of a cycle; training and measuring run inside its contexts."""

    def said(self, sentence: str) -> None: ...

    def training(self) -> AbstractContextManager[training.TrainingObserver | None]: ...

    def measuring(self) -> AbstractContextManager[runs.Observer | None]: ...


class _SilentCycle:
    def said(self, sentence: str) -> None: ...

    def training(self) -> AbstractContextManager[training.TrainingObserver | None]:
        return nullcontext()

    def measuring(self) -> AbstractContextManager[runs.Observer | None]:
        return nullcontext()


def run_cycle(
    cycle: Cycle,
    out: Path | str,
    *,
    rounds: int = 5,
    seconds: float = math.inf,
    jobs: int = 0,
    observer: CycleObserver | None = None,
) -> tuple[Round, ...]:
    """All rounds, of which the last meets the requirements unless the budget ended first.

    No round begins after `rounds` of them or once `seconds` are spent. Each is kept in
    `out/round-N`: `training`, the distribution of the test images in `results`, `card.md`, and the
    counterexamples found. Running it again continues where it was cut off, or gives more
    rounds if the budget is larger now.
    """
    if rounds < 1 or not seconds > 0:
        raise ExperimentError(f"a budget of {rounds} rounds and {seconds:g} s leaves nothing to do")
    run = _CycleRun(cycle, Path(out), jobs, observer or _SilentCycle())
    with claimed(run.out):
        cycle.claim(run.out)
        ended = read_rounds(run.out)
        while not (ended and ended[-1].is_met) and len(ended) < rounds:
            if ended and sum(one.seconds for one in ended) >= seconds:
                break
            ended.append(run.round(len(ended)))
    return tuple(ended)


def read_rounds(directory: Path | str) -> list[Round]:
    """The rounds of a cycle that were ended, in order."""
    return list(_ended_rounds(Path(directory)))


def _ended_rounds(directory: Path) -> Iterator[Round]:
    number = 0
    while (ended := Round.read(_folder(directory, number))) is not None:
        yield ended
        number += 1


def _folder(out: Path, number: int) -> Path:
    return out / f"round-{number}"


class _CycleRun:
    """A cycle in this process: its data, where it is kept, and who is told of it."""

    def __init__(self, cycle: Cycle, out: Path, jobs: int, observer: CycleObserver) -> None:
        self.cycle, self.out = cycle, out
        self._jobs, self._observer = jobs, observer
        self._train, self._test = (datasets.load_spec(spec) for spec in (cycle.data, cycle.test))
        known = {image.tobytes() for image in self._train.images}
        shared = sum(image.tobytes() in known for image in self._test.images)
        if shared:
            raise DataError(
                f"{cycle.test}: {shared} of its {len(self._test)} images are training images of "
                f"{cycle.data}; judge on images that the network never saw"
            )

    def round(self, number: int) -> Round:
        """Hunt on the networks before, as far as that is not done, then train and judge."""
        began = time.monotonic()
        hunts = [self._hunted(earlier) for earlier in range(number)]
        added = sum(len(hunt.labels) for hunt in hunts)
        self._observer.said(
            f"round {number}: training on {len(self._train)} images"
            + (f" and {added} counterexamples" if number else "")
        )
        self._train_network(number, self._with_counterexamples(hunts))
        self._observer.said(f"round {number}: measuring {len(self._test)} test images")
        distribution = self._measured(number)
        share = distribution.robust_accuracy(self.cycle.eps)
        ended = Round(
            number=number,
            images=len(self._train) + added,
            counterexamples=added,
            accuracy=float(distribution.correct.mean()),
            proven=float(share.proven),
            not_refuted=float(share.not_refuted),
            outcomes=check_all(self.cycle.required(), distribution, look=number + 1).outcomes,
            seconds=time.monotonic() - began,
        )
        ended.write(_folder(self.out, number))
        for outcome in ended.outcomes:
            self._observer.said(
                f"round {number}: {'met' if outcome.is_met else 'not met'}: {outcome.reason}"
            )
        return ended

    def _train_network(self, number: int, data: Dataset) -> None:
        """The network of a round; it goes on from the weights of the round before."""
        before = None
        if number:
            before = training.saved_weights(_folder(self.out, number - 1) / TRAINING_FOLDER)
        with self._observer.training() as observer:
            training.train(
                self.cycle.architecture,
                data,
                test=self._test,
                out=_folder(self.out, number) / TRAINING_FOLDER,
                domain=Domain.parse(self.cycle.domain),
                eps=self.cycle.eps,
                start=before,
                observer=observer,
                **self.cycle.training_settings(number),
            )

    def _with_counterexamples(self, hunts: Sequence[Counterexamples]) -> Dataset:
        """The training images and the counterexamples of all rounds so far."""
        data, added = self._train, [hunt for hunt in hunts if len(hunt.labels)]
        if not added:
            return data
        count = sum(len(hunt.labels) for hunt in added)
        images = [hunt.images.reshape(-1, *data.shape) for hunt in added]
        return from_arrays(
            np.concatenate([data.images, *images]),
            np.concatenate([data.labels, *(hunt.labels for hunt in added)]),
            name=f"{data.title} and {count} counterexamples",
            split="train",
            classes=data.classes,
        )

    def _measured(self, number: int) -> Distribution:
        """The brackets of the test images, which are kept with a card about them."""
        directory, cycle = _folder(self.out, number), self.cycle
        plan = self._plan(number, self._test, cycle.judging, cycle.test)
        results = directory / RESULTS_FOLDER
        with self._observer.measuring() as observer, Store.create_or_open(results) as store:
            plan.run(store, jobs=self._jobs, observer=observer)
            distribution = Distribution.from_store(store)
        text = views.card([statistics.read(results)], eps=(cycle.eps,))
        with replacing(directory / "card.md") as partial:
            partial.write_text(text + "\n", "utf-8")
        return distribution

    def _hunted(self, number: int) -> Counterexamples:
        """The counterexamples to the network of a round; a hunt that has ended is only read."""
        known = Counterexamples.read(_folder(self.out, number))
        if known is not None:
            return known
        self._observer.said(
            f"round {number}: seeking counterexamples within {self.cycle.eps:g} of "
            f"{self.cycle.attacked or len(self._train)} training images"
        )
        with self._observer.measuring() as observer:
            hunt = self._hunt(number, observer)
        hunt.write(_folder(self.out, number))
        self._observer.said(
            f"round {number}: attacks broke {hunt.broken} of {hunt.attacked}; of {hunt.verified}"
            f" others {hunt.proven} were proven and {hunt.refuted} refuted"
        )
        return hunt

    def _hunt(self, number: int, observer: runs.Observer | None) -> Counterexamples:
        """Attack the network of a round around training images, then verify some that withstand."""
        cycle, data = self.cycle, self._train
        seed = int(cycle.training.get("seed", 0)) + number
        drawn = data.random(cycle.attacked or len(data), seed=seed)
        images, labels, broken = self._search_images(number, drawn, "attack", observer)
        hunt = Counterexamples(images, labels, len(drawn), int(broken.sum()))
        standing = np.flatnonzero(np.logical_not(broken))
        chosen = np.random.default_rng(seed).permutation(standing)[: cycle.verified]
        if not chosen.size:
            return hunt
        rest = drawn.take(np.sort(chosen))
        images, labels, refuted = self._search_images(number, rest, "verify", observer)
        with Store.open(_folder(self.out, number) / "verify") as store:
            lowers = [one.bracket.lower for one in store.measurements()]
        return replace(
            hunt,
            images=np.concatenate([hunt.images, images]),
            labels=np.concatenate([hunt.labels, labels]),
            verified=len(rest),
            proven=sum(lower >= cycle.eps for lower in lowers),
            refuted=int(refuted.sum()),
        )

    def _search_images(
        self, number: int, data: Dataset, how: str, observer: runs.Observer | None
    ) -> tuple[Array, Array, Array]:
        settings = self.cycle.attacking if how == "attack" else self.cycle.verifying
        plan = self._plan(number, data, settings, self.cycle.data)
        with Store.create_or_open(_folder(self.out, number) / how) as store:
            plan.run(store, jobs=self._jobs, observer=observer)
            return _collect_counterexamples(plan, store, self.cycle.eps)

    def _plan(self, number: int, data: Dataset, settings: runs.Settings, source: str) -> runs.Plan:
        """The network of a round, named after it, on some images."""
        directory = _folder(self.out, number)
        path = directory / TRAINING_FOLDER / NETWORK_FILE
        domain = Domain.parse(self.cycle.domain)
        network = load_network(path, domain=domain, name=directory.name)
        return runs.plan((network,), data, settings, paths=[str(path)], data=source)


def _collect_counterexamples(
    plan: runs.Plan, store: Store, eps: float
) -> tuple[Array, Array, Array]:
    """Points and labels, one for each image that has a witness, and which images have one.

    The witness is the closest that was found, just over the border; where the same direction
    still breaks the property at the edge of the ball, that point teaches more and is taken.
    """
    network = plan.networks[0]
    images, labels, has_witness = [], [], []
    for instance, record in zip(plan.instances, store.records(), strict=True):
        witnesses = [r.witness for _, r in record.answered if r.witness is not None]
        has_witness.append(bool(witnesses))
        if not witnesses:
            continue
        closest = min(witnesses, key=lambda witness: witness.distance)
        if closest.distance == 0:
            continue
        centre = instance.input.astype(np.float64)
        edge = centre + (closest.input - centre) * (eps / closest.distance)
        further = check_witness(network, Query(instance, eps).specification, edge)
        images.append((further or closest).input)
        labels.append(instance.label)
    shape = plan.instances[0].input.shape
    points = np.array(images, np.float32).reshape(-1, *shape)
    return points, np.array(labels, np.int64), np.array(has_witness)
