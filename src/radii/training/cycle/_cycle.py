"""Rounds after rounds, until the requirements hold or the budget ends; again where it was cut."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from radii import datasets, runs, training
from radii.datasets import Dataset
from radii.errors import DataError, ExperimentError
from radii.training._checkpoints import claimed
from radii.training.cycle import _rounds as steps
from radii.training.cycle._description import Cycle
from radii.training.cycle._rounds import (
    Counterexamples,
    Data,
    Round,
    folder,
    read_counterexamples,
    read_round,
)


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
    directory, watched = Path(out), observer or _SilentCycle()
    data = _load(cycle)
    with claimed(directory):
        cycle.claim(directory)
        ended = read_rounds(directory)
        run = _CycleRun(cycle, directory, data, jobs, watched)
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
    while (ended := read_round(folder(directory, number))) is not None:
        yield ended
        number += 1


def _load(cycle: Cycle) -> Data:
    train, test = datasets.load_spec(cycle.data), datasets.load_spec(cycle.test)
    shared = _shared_images(train, test)
    if shared:
        raise DataError(
            f"{cycle.test}: {shared} of its {len(test)} images are training images of {cycle.data};"
            " judge on images that the network never saw"
        )
    return Data(train, test)


def _shared_images(train: Dataset, test: Dataset) -> int:
    """How many test images are the very values of a training image."""
    known = {image.tobytes() for image in train.images}
    return sum(image.tobytes() in known for image in test.images)


class _CycleRun:
    """A cycle in this process."""

    def __init__(
        self, cycle: Cycle, out: Path, data: Data, jobs: int, observer: CycleObserver
    ) -> None:
        self._cycle, self._out, self._data = cycle, out, data
        self._jobs, self._observer = jobs, observer

    def round(self, number: int) -> Round:
        """Hunt on the networks before, as far as that is not done, then train and judge."""
        began, own = time.monotonic(), folder(self._out, number)
        hunts = [self._hunted(earlier) for earlier in range(number)]
        added = sum(len(hunt.labels) for hunt in hunts)
        self._observer.said(
            f"round {number}: training on {len(self._data.train)} images"
            + (f" and {added} counterexamples" if number else "")
        )
        with self._observer.training() as watched:
            steps.train(self._cycle, number, self._out, self._data, hunts, watched)
        self._observer.said(f"round {number}: measuring {len(self._data.test)} test images")
        with self._observer.measuring() as counted:
            ended = steps.judge(
                self._cycle, number, own, self._data, hunts, self._jobs, counted, began=began
            )
        for outcome in ended.outcomes:
            self._observer.said(
                f"round {number}: {'met' if outcome.is_met else 'not met'}: {outcome.reason}"
            )
        return ended

    def _hunted(self, number: int) -> Counterexamples:
        own = folder(self._out, number)
        known = read_counterexamples(own)
        if known is not None:
            return known
        self._observer.said(
            f"round {number}: seeking counterexamples within {self._cycle.eps:g} of "
            f"{self._cycle.attacked or len(self._data.train)} training images"
        )
        with self._observer.measuring() as counted:
            hunt = steps.find_counterexamples(
                self._cycle, number, own, self._data, self._jobs, counted
            )
        self._observer.said(
            f"round {number}: attacks broke {hunt.broken} of {hunt.attacked}; of {hunt.verified}"
            f" others {hunt.proven} were proven and {hunt.refuted} refuted"
        )
        return hunt
