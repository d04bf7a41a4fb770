"""The paper's three metrics of networks: proofs (CSat), attacks (CSec) and samples (CAcc).

Every measurement is an experiment of its own in the study's folders `proofs`, `attacks` and
`samples`: one that was cut off goes on, and figures share what one of them has measured. Networks
that learned nothing are not measured: a constant keeps every property but those of the label.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.statistics import Distribution, Float64
from radii_papers._running import write_whole
from radii_papers._steps import StudySettings
from radii_papers.properties._data import BallRegion, StudyImages
from radii_papers.properties._networks import (
    KeptNetwork,
    NetworkKind,
    PaperTraining,
    kept_folder,
    kept_network,
    load_trained,
    one_thread,
)
from radii_papers.properties._numbers import EPS
from radii_papers.properties._sizes import StudySizes, sizes_of

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
    """A number of each seed, or a curve of each: `values` has a row for each seed.

    A row is NaN where the network of that seed learned nothing; what is told is of the others.
    """

    values: Float64

    @classmethod
    def of(cls, values: Sequence[float | Float64]) -> Spread:
        return cls(np.array(values, np.float64))

    @property
    def known(self) -> Float64:
        """The rows of networks that learned something."""
        if self.values.ndim == 1:
            return self.values[np.isfinite(self.values)]
        return self.values[np.isfinite(self.values).any(axis=1)]

    @property
    def mean(self) -> Float64:
        """NaN where no network learned."""
        return self._told(np.mean)

    @property
    def low(self) -> Float64:
        return self._told(np.min)

    @property
    def high(self) -> Float64:
        return self._told(np.max)

    def _told(self, of: Callable[..., Float64]) -> Float64:
        known = self.known
        return np.asarray(of(known, axis=0) if len(known) else np.full(known.shape[1:], np.nan))

    @property
    def percent(self) -> float | None:
        """The mean of a share, in per cent; None where no network learned."""
        return 100 * float(self.mean) if len(self.known) else None

    @property
    def percent_text(self) -> str | None:
        return None if self.percent is None else f"{self.percent:.1f}"

    @property
    def percent_range(self) -> str | None:
        """`1.0–3.5`, or one number where all seeds agree."""
        if not len(self.known):
            return None
        low, high = (f"{100 * float(end):.1f}" for end in (self.low, self.high))
        return low if low == high else f"{low}–{high}"


@dataclass(frozen=True, slots=True, eq=False)
class Satisfaction:
    """Whether a property is proven, and not refuted, within `EPS`: 0 or 1 for each seed (a row) and
    image (a column), NaN for a network that learned nothing.
    """

    proven: Float64
    not_refuted: Float64


@dataclass(frozen=True, slots=True, eq=False)
class SampledShares:
    """Shares of uniform points that keep a property, by seed, image and eps of `sampled_eps`; and
    by seed and image whether it holds at the image itself."""

    shares: Float64
    holds: npt.NDArray[np.bool_]

    @property
    def everywhere(self) -> Spread:
        """The mean over all images, by seed and eps."""
        return Spread(self.shares.mean(axis=1))

    @property
    def where_held(self) -> Spread:
        """The mean over images at which the property holds; NaN where there are none."""
        rows = [
            own[kept].mean(axis=0) if kept.any() else np.full(own.shape[1:], np.nan)
            for own, kept in zip(self.shares, self.holds, strict=True)
        ]
        return Spread(np.array(rows))


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

    def seeds_of(self, kind: NetworkKind) -> range:
        """The deep network takes most of the time, and has one seed."""
        return range(1) if kind.is_deep else self.seeds

    def network(self, kind: NetworkKind, how: PaperTraining, seed: int) -> KeptNetwork:
        return kept_network(self.images, self.settings, kind, how, seed)

    def learned(
        self, kind: NetworkKind, trainings: Sequence[PaperTraining], seed: int
    ) -> list[PaperTraining]:
        """Those of the trainings whose network has learned something."""
        return [how for how in trainings if self.network(kind, how, seed).has_learned]

    def satisfaction(
        self,
        kind: NetworkKind,
        property_name: str,
        region: BallRegion,
        trainings: Sequence[PaperTraining],
    ) -> dict[str, Satisfaction]:
        """For each training: what is proven of the first test images."""
        nothing = np.full(len(self._test(kind, self.sizes.proven)), np.nan)
        sides: dict[str, list[tuple[Float64, Float64]]] = {how.name: [] for how in trainings}
        for seed in self.seeds:
            learned = self.learned(kind, trainings, seed)
            place = f"{kind.name}-{property_name}-{region}-{seed}".lower()
            measured = self._measured(
                kept_folder(self.images, self.settings, "proofs") / place,
                self._networks(kind, learned, seed, region),
                self._test(kind, self.sizes.proven),
                property=SPECS[property_name],
                eps=EPS,
                timeout=self.sizes.proof_seconds,
                attack=ATTACK,  # a complete verifier follows: a quick look is enough
            )
            for how in trainings:
                both = (nothing, nothing)
                if how.name in measured:
                    part = measured[how.name]
                    order = np.argsort(part.column("input"))
                    both = (
                        (part.lower >= EPS)[order].astype(float),
                        (part.upper > EPS)[order].astype(float),
                    )
                sides[how.name].append(both)
        return {
            name: Satisfaction(*(np.array(side) for side in zip(*rows, strict=True)))
            for name, rows in sides.items()
        }

    def security(
        self,
        kind: NetworkKind,
        property_name: str,
        region: BallRegion,
        trainings: Sequence[PaperTraining],
    ) -> dict[str, Float64]:
        """For each training, by seed, image and eps of `CURVE_EPS`: 1 without a counterexample.

        A counterexample that PGD found within one radius counts from its own distance on.
        """
        found: dict[str, list[Float64]] = {how.name: [] for how in trainings}
        count = self.sizes.deep_attacked if kind.is_deep else self.sizes.attacked
        nothing = np.full((len(self._test(kind, count)), len(CURVE_EPS)), np.nan)
        for seed in self.seeds_of(kind):
            learned = self.learned(kind, trainings, seed)
            closest: dict[str, Float64] = {}
            for eps in self.sizes.attack_eps:
                place = f"{kind.name}-{property_name}-{region}-{seed}-{eps:g}".lower()
                measured = self._measured(
                    kept_folder(self.images, self.settings, "attacks") / place,
                    self._networks(kind, learned, seed, region),
                    self._test(kind, count),
                    property=SPECS[property_name],
                    eps=eps,
                    search="attack-only",
                    attack=ATTACK,
                )
                for name, part in measured.items():
                    own = part.upper[np.argsort(part.column("input"))]
                    closest[name] = np.minimum(closest.get(name, np.inf), own)
            for how in trainings:
                own = nothing
                if how.name in closest:
                    own = (closest[how.name][:, None] > CURVE_EPS).astype(float)
                found[how.name].append(own)
        return {name: np.array(seeds) for name, seeds in found.items()}

    def accuracy(
        self,
        kind: NetworkKind,
        property_name: str,
        region: BallRegion,
        trainings: Sequence[PaperTraining],
    ) -> dict[str, SampledShares]:
        """For each training: the share of uniform points around each image that keep it."""
        shares: dict[str, list[Float64]] = {how.name: [] for how in trainings}
        holds: dict[str, list[Float64]] = {how.name: [] for how in trainings}
        count = len(self._test(kind, self.sizes.sampled))
        nothing = np.full((count, len(self.sizes.sampled_eps)), np.nan)
        for seed in self.seeds:
            place = f"{kind.name}-{property_name}-{region}-{seed}.json".lower()
            path = kept_folder(self.images, self.settings, "samples") / place
            learned = self.learned(kind, trainings, seed)
            if not path.exists():
                self._sample(kind, property_name, region, learned, seed, path)
            kept = json.loads(path.read_text(encoding="utf-8"))
            for how in trainings:
                shares[how.name].append(np.array(kept["shares"].get(how.name, nothing)))
                holds[how.name].append(np.array(kept["holds"].get(how.name, [False] * count)))
        return {
            name: SampledShares(np.array(shares[name]), np.array(holds[name], bool))
            for name in shares
        }

    def _sample(
        self,
        kind: NetworkKind,
        property_name: str,
        region: BallRegion,
        trainings: Sequence[PaperTraining],
        seed: int,
        path: Path,
    ) -> None:
        from radii.problem import Norm
        from radii.runs import sampled_shares, select

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
        from radii.runs import Settings, plan
        from radii.store import Store

        given = networks()
        if not given:
            return {}
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
