"""The audit: published lower bounds attacked, those that fall with witnesses that anybody replays.

SMALL attacks a few rows of every network at hand, drawn at random; MACHINE every row, both with the
quick version of the attack; FULL every row with the whole attack. A row that is not refuted is not
thereby proven.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import DataError
from radii.statistics import NO_NUMBER, Distribution
from radii_papers._steps import StudyScale, StudySettings
from radii_papers.distributions import _replay
from radii_papers.distributions._public import (
    ALL_NETWORKS,
    SPLITS,
    TABLES,
    PublicResults,
    PublishedNetwork,
    Split,
    networks_of,
)

if TYPE_CHECKING:
    from radii.attacks import Attack
    from radii.runs import Finding

ROWS_OF_SMALL = 3
"""Rows of a network and split that a small audit attacks."""

FIRST_IMAGES = "mnist_train_0_49.npz"
"""The first training images, in the folder of the data: enough for a small audit."""

DRAWN_SETS = {"CIFAR-10": "cifar10", "GTSRB": "gtsrb"}
"""Sets of which the paper drew images at random, by the tables that they are in. Its script draws
traffic signs from the training archive that torchvision takes (GTSRB-Training_fixed.zip)."""

SEED = 0

DOMAIN = "0:1"
"""Pixels, as in the properties that the paper's verifiers were given."""


@dataclass(frozen=True, slots=True, eq=False)
class AuditedRow:
    """A published row that was attacked; distances are Linf.

    `outcome` is one of `_replay`'s for a row with a witness within the claimed radius, else
    `stands` (attacks found none) or `misclassified` (the network is wrong at the image itself:
    perhaps not the published one). `closest` is the distance of the closest witness, or inf.
    """

    network: PublishedNetwork
    split: Split
    image: int
    row: int
    claimed: float
    published_upper: float
    published_seconds: float
    outcome: str
    closest: float
    witness_class: int | None
    margin: float
    witness: str
    seconds: float

    @property
    def is_refuted(self) -> bool:
        return self.outcome == _replay.REFUTED

    @property
    def is_misclassified(self) -> bool:
        return self.outcome == "misclassified"


@dataclass(frozen=True, slots=True)
class AuditGroup:
    """The rows of a table and split, and the images that they are about."""

    table: str
    split: Split
    images: str
    is_relabelled: bool = False
    is_sample: bool = False

    @property
    def folder(self) -> str:
        """A sample of the rows has its own: a store holds one experiment."""
        name = f"{self.table}-{self.split}".lower().replace(" ", "-")
        name = f"{name}-relabelled" if self.is_relabelled else name
        return f"{name}-sample" if self.is_sample else name


def audit_groups(results: PublicResults, settings: StudySettings) -> list[AuditGroup]:
    """Which rows can be attacked with the images at hand."""
    if settings.scale is StudyScale.SMALL:
        images = results.folder / FIRST_IMAGES
        spec = str(images) if images.exists() else "mnist:train"
        tables = ("conventional", "MNIST")
        return [AuditGroup(table, "train", spec, is_sample=True) for table in tables]
    groups = [
        AuditGroup(table, split, f"mnist:{split}")
        for table in ("conventional", "MNIST")
        for split in SPLITS
    ]
    groups.append(AuditGroup("MNIST", "test", "mnist:train", is_relabelled=True))
    for table in DRAWN_SETS:
        for split in SPLITS:
            images = settings.folder / f"{DRAWN_SETS[table]}-{split}.npz"
            groups.append(AuditGroup(table, split, str(images)))
    return groups


@dataclass(frozen=True, slots=True, eq=False)
class PaperAudit:
    """The rows that were attacked, how many rows claim a proof about a network at hand, and why
    others of them could not be attacked."""

    rows: list[AuditedRow]
    claims: int
    missing: list[str]


def run_audit(results: PublicResults, settings: StudySettings) -> PaperAudit:
    """Attack what the scale asks for.

    Every group is an experiment of its own in the step's folder: a study that is cut off goes on
    where it was.
    """
    rows: list[AuditedRow] = []
    missing: list[str] = []
    for group in audit_groups(results, settings):
        chosen = _published(results, group, settings)
        if not chosen:
            continue
        try:
            if group.table in DRAWN_SETS:
                write_drawn_images(DRAWN_SETS[group.table], group.split, Path(group.images))
            rows += _audit_group(results, group, chosen, settings)
        except DataError as error:
            if group.table not in DRAWN_SETS:
                raise
            count = sum(len(part) for part in chosen.values())
            missing.append(f"{count} of {group.table}, {group.split}: {error}")
    claims = 0
    for network in ALL_NETWORKS:
        for split in SPLITS:
            part = results.part(network, split, images=None)
            if network.file in results.networks and part is not None:
                claims += int((part.lower > 0).sum())
    return PaperAudit(rows, claims, missing)


def _published(
    results: PublicResults, group: AuditGroup, settings: StudySettings
) -> dict[PublishedNetwork, Distribution]:
    """The rows of a group to attack, for each network whose file is at hand."""
    rng = np.random.default_rng(SEED)
    chosen = {}
    for network in networks_of(group.table):
        is_relabelled = network.title in results.relabelled and group.split == "test"
        if is_relabelled != group.is_relabelled:
            continue
        part = results.part(network, group.split, images=None)
        if part is None or network.file not in results.networks:
            continue
        part = part.select(part.lower > 0) if np.any(part.lower > 0) else None
        if part is None:
            continue
        if settings.scale is StudyScale.SMALL:
            known = np.flatnonzero(part.column("input") < _images_at_hand(group))
            picked = rng.choice(known, min(ROWS_OF_SMALL, len(known)), replace=False)
            part = part.select(np.sort(picked)) if len(picked) else None
        if part is not None:
            chosen[network] = part
    return chosen


def _images_at_hand(group: AuditGroup) -> int:
    from radii.datasets import load_spec

    return len(load_spec(group.images))


def _audit_group(
    results: PublicResults,
    group: AuditGroup,
    chosen: dict[PublishedNetwork, Distribution],
    settings: StudySettings,
) -> list[AuditedRow]:
    from radii.runs import findings, prepare_audit, save_witnesses
    from radii.store import Store

    folder = settings.folder / group.folder
    audit = prepare_audit(
        _claims(chosen, group),
        [results.networks[network.file] for network in chosen],
        group.images,
        domain=DOMAIN,
        attack=_attack(settings.scale),
        seed=SEED,
    )
    with Store.create_or_open(folder) as store:
        audit.plan.run(store, jobs=settings.jobs, observer=settings.progress.inside())
        found = findings(audit, store)
    save_witnesses(audit, found, folder)
    return _audited_rows(results, group, chosen, found, folder)


def _attack(scale: StudyScale) -> Attack:
    """The quick one takes a fifth of the time; what it loses is in docs/attacks.md."""
    from radii.attacks import MinimumNorm

    whole = MinimumNorm()
    return whole if scale is StudyScale.FULL else whole.quick() or whole


def _claims(
    chosen: dict[PublishedNetwork, Distribution], group: AuditGroup
) -> Iterable[tuple[Any, str]]:
    """Under the names of networks' files; labels that belong to other images are left out."""
    for network, part in chosen.items():
        labels = NO_NUMBER if group.is_relabelled else part.column("label")
        for measured in part.labelled(network=network.file, label=labels).measurements:
            yield measured, ""


def _audited_rows(
    results: PublicResults,
    group: AuditGroup,
    chosen: dict[PublishedNetwork, Distribution],
    found: list[Finding],
    folder: Path,
) -> list[AuditedRow]:
    by_file = {network.file: network for network in chosen}
    seconds = _cpu_seconds(folder)
    sessions: dict[Path, Any] = {}
    witnesses = {path.name: path for path in folder.glob("witnesses/*.npz")}
    rows = []
    for finding in found:
        claim = finding.claim
        network = by_file[claim.network]
        name = f"{claim.network}_{claim.input}_at_{claim.eps:g}.npz"
        path = witnesses.get(name)
        outcome = finding.status.value
        if path is not None:
            outcome = _replay.replay(path, results.networks[network.file].parent, sessions)
        rows.append(
            AuditedRow(
                network=network,
                split=group.split,
                image=claim.input,
                row=results.row_number(network, group.split, claim.input),
                claimed=claim.eps,
                published_upper=claim.upper,
                published_seconds=claim.seconds,
                outcome=outcome,
                closest=finding.closest,
                witness_class=None if finding.witness is None else finding.witness.predicted,
                margin=finding.margin,
                witness="" if path is None else f"{group.folder}/witnesses/{name}",
                seconds=seconds.get((claim.network, claim.input), math.nan),
            )
        )
    return rows


def _cpu_seconds(folder: Path) -> dict[tuple[str, int], float]:
    """Of the CPU, for each network's file and image."""
    stored = Distribution.from_store(folder)
    names = [name.removesuffix(".onnx") for name in stored.network.tolist()]
    keys = zip(names, stored.column("input").tolist(), strict=True)
    return dict(zip(keys, stored.column("cpu_seconds").tolist(), strict=True))


def write_drawn_images(name: str, split: Split, path: Path) -> None:
    """The 100 images of a split of a data set that the paper drew, in its order, as an .npz.

    Drawn as its scripts do: stratified, with seed 42, of the training set as a training part and of
    the testing set as a testing part. The labels of the published rows confirm it.
    """
    from radii.datasets import load_spec

    try:
        from sklearn.model_selection import StratifiedShuffleSplit
    except ImportError:
        raise DataError(
            "the paper's images are drawn by scikit-learn: pip install scikit-learn"
        ) from None
    if path.exists():
        return
    images = load_spec(f"{name}:{split}")
    sizes = {"train_size": 100} if split == "train" else {"test_size": 100}
    splitter = StratifiedShuffleSplit(n_splits=1, random_state=42, **sizes)
    parts = next(splitter.split(np.zeros(len(images)), images.labels))
    drawn = images.take(parts[SPLITS.index(split)].tolist())
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, images=drawn.images, labels=drawn.labels)


def table_file(network: PublishedNetwork) -> str:
    return TABLES[network.table]
