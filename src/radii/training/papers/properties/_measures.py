"""The paper's three metrics of networks: proofs (CSat), attacks (CSec) and samples (CAcc).

Every measurement is an experiment of its own in the study's folders `proofs`, `attacks` and
`samples`: one that was cut off goes on, and figures share what one of them has measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radii.distributions import Distribution
from radii.results import Float64
from radii.training.papers._running import write_whole
from radii.training.papers._steps import StudySettings
from radii.training.papers.properties._data import BallRegion, StudyImages
from radii.training.papers.properties._networks import (
    NetworkKind,
    PaperTraining,
    StudySizes,
    kept_folder,
    load_trained,
    one_thread,
    sizes_of,
)
from radii.training.papers.properties._numbers import EPS

if TYPE_CHECKING:
    from radii.datasets import Dataset
    from radii.networks import Network

SPECS = {"CR": "cr", "SCR": "scr:eta=0.52", "SR": "sr:delta=10", "LR": "lr:L=10"}
"""The properties with the paper's parameters, as `--property` takes them."""

ATTACK = "pgd:steps=20,step=0.125,restarts=1"
"""Of constraint security: PGD from the image, as in the paper, 20 steps of an eighth of eps."""

CURVE_EPS: Float64 = np.round(np.arange(1, 31) * 0.01, 2)
"""The radii at which security is read off; its mean over them tells curves apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A number of each seed, or a curve of each: `values` has a row for each seed."""

    values: Float64

    @classmethod
    def of(cls, values: Sequence[float | Float64]) -> Spread:
        return cls(np.array(values, np.float64))

    @property
    def mean(self) -> Float64:
        return np.asarray(self.values.mean(axis=0))

    @property
    def low(self) -> Float64:
        return np.asarray(self.values.min(axis=0))

    @property
    def high(self) -> Float64:
        return np.asarray(self.values.max(axis=0))

    @property
    def percent(self) -> float:
        """The mean of a share, in per cent."""
        return 100 * float(self.mean)

    @property
    def percent_range(self) -> str:
        """`1.0–3.5`, or one number where all seeds agree."""
        low, high = (f"{100 * float(end):.1f}" for end in (self.low, self.high))
        return low if low == high else f"{low}–{high}"


@dataclass(frozen=True, slots=True)
class Satisfaction:
    """Shares of images for which a property is proven, and not refuted, within `EPS`."""

    proven: float
    not_refuted: float


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """What of the networks can be measured, each when it is first asked for."""

    images: StudyImages
    settings: StudySettings

    @property
    def sizes(self) -> StudySizes:
        return sizes_of(self.settings)

    @property
    def seeds(self) -> range:
        return range(self.sizes.seeds)

    def satisfaction(
        self,
        kind: NetworkKind,
        property_name: str,
        region: BallRegion,
        trainings: Sequence[PaperTraining],
    ) -> dict[str, list[Satisfaction]]:
        """For each training, of each seed: what is proven of the first test images."""
        found: dict[str, list[Satisfaction]] = {how.name: [] for how in trainings}
        for seed in self.seeds:
            place = f"{kind.name}-{property_name}-{region}-{seed}".lower()
            measured = self._measured(
                kept_folder(self.images, self.settings, "proofs") / place,
                self._networks(kind, trainings, seed, region),
                self._test(kind, self.sizes.proven),
                property=SPECS[property_name],
                eps=EPS,
                timeout=self.sizes.proof_seconds,
                attack=ATTACK,  # a complete verifier follows: a quick look is enough
            )
            for name, part in measured.items():
                share = part.robust_accuracy(EPS)
                found[name].append(Satisfaction(share.proven, share.not_refuted))
        return found

    def security(
        self,
        kind: NetworkKind,
        property_name: str,
        region: BallRegion,
        trainings: Sequence[PaperTraining],
    ) -> dict[str, Spread]:
        """For each training, of each seed: shares without a counterexample, over `CURVE_EPS`.

        A counterexample that PGD found within one radius counts from its own distance on.
        """
        seeds = self.seeds if not kind.is_deep else range(1)
        curves: dict[str, list[Float64]] = {how.name: [] for how in trainings}
        count = self.sizes.deep_attacked if kind.is_deep else self.sizes.attacked
        for seed in seeds:
            closest: dict[str, Float64] = {}
            for eps in self.sizes.attack_eps:
                place = f"{kind.name}-{property_name}-{region}-{seed}-{eps:g}".lower()
                measured = self._measured(
                    kept_folder(self.images, self.settings, "attacks") / place,
                    self._networks(kind, trainings, seed, region),
                    self._test(kind, count),
                    property=SPECS[property_name],
                    eps=eps,
                    search="attack-only",
                    attack=ATTACK,
                )
                for name, part in measured.items():
                    own = part.upper[np.argsort(part.column("input"))]
                    closest[name] = np.minimum(closest.get(name, np.inf), own)
            for name, distances in closest.items():
                curves[name].append((distances > CURVE_EPS[:, None]).mean(axis=1))
        return {name: Spread.of(rows) for name, rows in curves.items()}

    def accuracy(
        self,
        kind: NetworkKind,
        property_name: str,
        region: BallRegion,
        trainings: Sequence[PaperTraining],
    ) -> dict[str, tuple[Spread, Spread]]:
        """For each training, over `sampled_eps`: the mean share of uniform points that keep it.

        Of all images, and of those at which the property holds to begin with.
        """
        everywhere: dict[str, list[Float64]] = {how.name: [] for how in trainings}
        where_held: dict[str, list[Float64]] = {how.name: [] for how in trainings}
        for seed in self.seeds:
            place = f"{kind.name}-{property_name}-{region}-{seed}.json".lower()
            path = kept_folder(self.images, self.settings, "samples") / place
            if not path.exists():
                self._sample(kind, property_name, region, trainings, seed, path)
            kept = json.loads(path.read_text(encoding="utf-8"))
            for how in trainings:
                shares = np.array(kept["shares"][how.name])  # images, eps
                holds = np.array(kept["holds"][how.name], bool)
                everywhere[how.name].append(shares.mean(axis=0))
                nothing = np.full(shares.shape[1], np.nan)
                where_held[how.name].append(shares[holds].mean(axis=0) if holds.any() else nothing)
        names = [how.name for how in trainings]
        return {name: (Spread.of(everywhere[name]), Spread.of(where_held[name])) for name in names}

    def _sample(
        self,
        kind: NetworkKind,
        property_name: str,
        region: BallRegion,
        trainings: Sequence[PaperTraining],
        seed: int,
        path: Path,
    ) -> None:
        from radii.balls import Norm
        from radii.experiments import select
        from radii.guarantees import sampled_shares

        data = self._test(kind, self.sizes.sampled)
        shares, holds = {}, {}
        for network in self._networks(kind, trainings, seed, region)():
            instances = select(network, data, property=SPECS[property_name], norm=Norm.LINF)
            with one_thread():
                columns = [
                    sampled_shares(network, instances, eps, self.sizes.samples)
                    for eps in self.sizes.sampled_eps
                ]
            shares[network.name] = np.transpose(columns).tolist()
            holds[network.name] = [each.holds for each in instances]
        write_whole(path, json.dumps({"shares": shares, "holds": holds}))

    def _networks(
        self,
        kind: NetworkKind,
        trainings: Sequence[PaperTraining],
        seed: int,
        region: BallRegion,
    ) -> Callable[[], list[Network]]:
        return lambda: load_trained(self.images, self.settings, kind, trainings, seed, region)

    def _test(self, kind: NetworkKind, count: int) -> Dataset:
        test = self.images.sets[kind.data].test
        return test.first(min(count, len(test)))

    def _measured(
        self,
        folder: Path,
        networks: Callable[[], list[Network]],
        data: Dataset,
        **how: str | float,
    ) -> Mapping[str, Distribution]:
        """The brackets of an experiment by network; those that the folder lacks are measured."""
        from radii.experiments import Settings, plan
        from radii.store import Store

        given = networks()
        # Training for a property that is never broken leaves the baseline: it is measured once.
        first: dict[str, Network] = {}
        for network in given:
            first.setdefault(network.fingerprint, network)
        jobs = self.settings.jobs if self.settings.jobs > 1 else 0
        chosen = plan(list(first.values()), data, Settings.from_options(how))
        with one_thread(), Store.create_or_open(folder) as store:
            chosen.run(store, jobs=jobs, observer=self.settings.progress.inside())
            parts = Distribution.from_store(store).by_network()
        return {each.name: parts[first[each.fingerprint].name] for each in given}
