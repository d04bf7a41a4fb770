"""One round of a cycle: hunt on the network before, train, judge. Every step can be cut off.

The hunt looks for counterexamples around training images; training takes them as further images.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from radii import runs, statistics, training, views
from radii.datasets import Dataset, from_arrays
from radii.errors import StoreError
from radii.networks import load_network
from radii.problem import Array, Domain, Query, check_witness
from radii.statistics import Distribution, RequirementOutcome, check_all
from radii.store import Store
from radii.training._checkpoints import replacing
from radii.training.cycle._description import Cycle

ROUND_FILE, TRAINING_FOLDER, RESULTS_FOLDER = "round.json", "training", "results"
COUNTEREXAMPLES_FILE = "counterexamples.npz"


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


@dataclass(frozen=True, slots=True, eq=False)
class Counterexamples:
    """What was found around training images: points, with the labels of the images they break.

    Of `attacked` images `broken` were broken, and of the others `verified` were given to a
    verifier, which proved `proven` and refuted `refuted`. An image that is misclassified as it
    stands counts as broken and gives no point.
    """

    images: Array
    labels: Array
    attacked: int
    broken: int
    verified: int = 0
    proven: int = 0
    refuted: int = 0


def folder(out: Path, number: int) -> Path:
    return out / f"round-{number}"


def read_round(directory: Path) -> Round | None:
    """A round that was ended; None if it was not."""
    path = directory / ROUND_FILE
    if not path.exists():
        return None
    try:
        fields: dict[str, Any] = json.loads(path.read_text("utf-8"))
        fields["outcomes"] = tuple(RequirementOutcome(**each) for each in fields["outcomes"])
        return Round(**fields)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: cannot be read as a round ({error})") from None


def find_counterexamples(
    cycle: Cycle,
    number: int,
    directory: Path,
    data: Data,
    jobs: int,
    observer: runs.Observer | None,
) -> Counterexamples:
    """Attack the network of a round around training images, then verify some that withstand."""
    seed = int(cycle.training.get("seed", 0)) + number
    drawn = data.train.random(cycle.attacked or len(data.train), seed=seed)
    images, labels, broken = _search_images(cycle, directory, drawn, "attack", jobs, observer)
    hunt = Counterexamples(images, labels, len(drawn), int(broken.sum()))
    standing = np.flatnonzero(np.logical_not(broken))
    chosen = np.random.default_rng(seed).permutation(standing)[: cycle.verified]
    if chosen.size:
        rest = drawn.take(np.sort(chosen))
        images, labels, refuted = _search_images(cycle, directory, rest, "verify", jobs, observer)
        with Store.open(directory / "verify") as store:
            lowers = [one.bracket.lower for one in store.measurements()]
        hunt = replace(
            hunt,
            images=np.concatenate([hunt.images, images]),
            labels=np.concatenate([hunt.labels, labels]),
            verified=len(rest),
            proven=sum(lower >= cycle.eps for lower in lowers),
            refuted=int(refuted.sum()),
        )
    _write_counterexamples(hunt, directory)
    return hunt


def _search_images(
    cycle: Cycle,
    directory: Path,
    data: Dataset,
    how: str,
    jobs: int,
    observer: runs.Observer | None,
) -> tuple[Array, Array, Array]:
    settings = cycle.attacking if how == "attack" else cycle.verifying
    plan = _plan(cycle, directory, data, settings, cycle.data)
    with Store.create_or_open(directory / how) as store:
        plan.run(store, jobs=jobs, observer=observer)
        return _collect_counterexamples(plan, store, cycle.eps)


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


def _write_counterexamples(hunt: Counterexamples, directory: Path) -> None:
    with replacing(directory / COUNTEREXAMPLES_FILE) as partial, partial.open("wb") as file:
        np.savez_compressed(
            file,
            images=hunt.images,
            labels=hunt.labels,
            counts=np.array([hunt.attacked, hunt.broken, hunt.verified, hunt.proven, hunt.refuted]),
        )


def read_counterexamples(directory: Path) -> Counterexamples | None:
    """What a hunt found; None if it has not ended."""
    path = directory / COUNTEREXAMPLES_FILE
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return Counterexamples(arrays["images"], arrays["labels"], *map(int, arrays["counts"]))
    except Exception as error:  # numpy fails on damaged files in more ways than it documents
        raise StoreError(
            f"{path}: cannot be read as counterexamples ({type(error).__name__}); remove it to "
            "seek them anew"
        ) from None


def _with_counterexamples(data: Dataset, hunts: Sequence[Counterexamples]) -> Dataset:
    """The training images and the counterexamples of all rounds so far."""
    added = [hunt for hunt in hunts if len(hunt.labels)]
    if not added:
        return data
    count = sum(len(hunt.labels) for hunt in added)
    return from_arrays(
        np.concatenate([data.images, *(hunt.images.reshape(-1, *data.shape) for hunt in added)]),
        np.concatenate([data.labels, *(hunt.labels for hunt in added)]),
        name=f"{data.title} and {count} counterexamples",
        split="train",
        classes=data.classes,
    )


def train(
    cycle: Cycle,
    number: int,
    out: Path,
    data: Data,
    hunts: Sequence[Counterexamples],
    observer: training.TrainingObserver | None,
) -> None:
    """The network of a round; it goes on from the weights of the round before."""
    before = None
    if number:
        before = training.saved_weights(folder(out, number - 1) / TRAINING_FOLDER)
    training.train(
        cycle.architecture,
        _with_counterexamples(data.train, hunts),
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
    hunts: Sequence[Counterexamples],
    jobs: int,
    observer: runs.Observer | None,
    *,
    began: float,
) -> Round:
    """Measure the test images and hold them against the requirements; this ends the round."""
    plan = _plan(cycle, directory, data.test, cycle.judging, cycle.test)
    with Store.create_or_open(directory / RESULTS_FOLDER) as store:
        plan.run(store, jobs=jobs, observer=observer)
        distribution = Distribution.from_store(store)
    text = views.card([statistics.read(directory / RESULTS_FOLDER)], eps=(cycle.eps,))
    with replacing(directory / "card.md") as partial:
        partial.write_text(text + "\n", "utf-8")
    share = distribution.robust_accuracy(cycle.eps)
    added = sum(len(hunt.labels) for hunt in hunts)
    ended = Round(
        number=number,
        images=len(data.train) + added,
        counterexamples=added,
        accuracy=float(distribution.correct.mean()),
        proven=float(share.proven),
        not_refuted=float(share.not_refuted),
        outcomes=check_all(cycle.required(), distribution, look=number + 1).outcomes,
        seconds=time.monotonic() - began,
    )
    ended.write(directory)
    return ended


def _plan(
    cycle: Cycle, directory: Path, data: Dataset, settings: runs.Settings, source: str
) -> runs.Plan:
    """The network of a round, named after it, on some images."""
    path = directory / TRAINING_FOLDER / "network.onnx"
    network = load_network(path, domain=Domain.parse(cycle.domain), name=directory.name)
    return runs.plan((network,), data, settings, paths=[str(path)], data=source)
