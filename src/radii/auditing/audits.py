"""From published claims to an experiment: one attack for each input that a claim is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from radii import datasets
from radii.auditing.claims import Claim, claims_of, network_files
from radii.balls import Domain, Norm
from radii.datasets import Dataset
from radii.distributions import Distribution
from radii.errors import DataError
from radii.experiments import Experiment, Plan, Settings
from radii.networks import Network, load_network
from radii.queries import Grid, Instance
from radii.selection import select

__all__ = ["Audit", "prepare_audit"]

REACH = 1.25
"""How far beyond the largest claim attacks may start, so that near misses are seen as well."""


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """Claims, the instance of each, and the experiment that attacks them.

    `notes` say which rows are not audited, and why.
    """

    plan: Plan
    claims: tuple[Claim, ...]
    instances: tuple[Instance, ...]
    is_normalized: bool
    notes: tuple[str, ...]


def prepare_audit(
    published: Distribution,
    networks: Sequence[Path],
    data: str,
    *,
    domain: str,
    mean: str | None = None,
    std: str | None = None,
    layout: str | None = None,
    norm: str = "linf",
    split: str | None = None,
    attack: str = "minimum-norm",
    seed: int = 0,
) -> Audit:
    """Find the network and the image of every claim, and check that they are those published.

    `split` picks rows; without it, those of the data's own split, if it and the rows tell theirs.
    """
    images = datasets.load_spec(data)
    notes: list[str] = []
    claims = _on_split(claims_of(published), images, split, notes)
    claims = _on_images(claims, images, notes)
    files = network_files(networks, dict.fromkeys(claim.network for claim in claims))
    absent = dict.fromkeys(claim.network for claim in claims if claim.network not in files)
    if absent:
        _note(notes, claims, [c for c in claims if c.network in files], f"no file {_few(absent)}")
        claims = [claim for claim in claims if claim.network in files]
    if not claims:
        raise DataError(f"nothing to audit: {'; '.join(notes) or 'no row claims a proof'}")
    # Numbers of one channel or several, as flags and files of experiments spell them.
    options = {"networks": [str(path) for path in files.values()], "data": data, "domain": domain}
    numbers = {"mean": mean, "std": std}
    told = Experiment.from_options({**options, **{k: v for k, v in numbers.items() if v}})
    bounds = Domain.parse(domain)
    loaded = {
        name: load_network(path, domain=bounds, mean=told.mean, std=told.std)
        for name, path in files.items()
    }
    instances = _instances(claims, loaded, images, Norm.parse(norm), layout)
    plan = Plan(
        tuple(loaded.values()),
        tuple(str(path) for path in files.values()),
        data,
        split or images.split or "",
        tuple({instance.key: instance for instance in instances}.values()),
        Settings(
            norm=norm,
            grid=_single_value(REACH * max(claim.eps for claim in claims)),
            search="attack-only",
            attack=attack,
            seed=seed,
        ),
    )
    return Audit(plan, tuple(claims), instances, bool(mean or std), tuple(notes))


def _on_split(
    claims: list[Claim], images: Dataset, split: str | None, notes: list[str]
) -> list[Claim]:
    splits = dict.fromkeys(claim.split for claim in claims)
    wanted = split or images.split
    if wanted is None:
        if len(splits) > 1:
            raise DataError(
                f"the results are of splits {_few(splits)}: choose that of the data with --split"
            )
        return claims
    if split is not None and split not in splits:
        raise DataError(f"split '{split}' is not one of the results' ({_few(splits)})")
    kept = [claim for claim in claims if claim.split in (wanted, "")]
    return _note(notes, claims, kept, f"not of split '{wanted}'")


def _on_images(claims: list[Claim], images: Dataset, notes: list[str]) -> list[Claim]:
    labels = dict(zip(images.indices.tolist(), images.labels.tolist(), strict=True))
    kept = [claim for claim in claims if claim.input in labels]
    for claim in kept:
        label = labels[claim.input]
        if claim.label is not None and claim.label != label:
            raise DataError(
                f"input {claim.input} has label {claim.label} in the results but {label} in "
                f"{images.title}: these are not the published images"
            )
    return _note(notes, claims, kept, f"not among the images of {images.title}")


def _instances(
    claims: Sequence[Claim],
    networks: dict[str, Network],
    images: Dataset,
    norm: Norm,
    layout: str | None,
) -> tuple[Instance, ...]:
    """The instance of every claim, in the claims' order."""
    place = {index: row for row, index in enumerate(images.indices.tolist())}
    wanted: dict[tuple[str, str], list[int]] = {}
    for claim in claims:
        wanted.setdefault((claim.network, claim.property), []).append(place[claim.input])
    found: dict[tuple[str, str, int], Instance] = {}
    for (name, asked), rows in wanted.items():
        taken = images.take(sorted(set(rows)))
        for instance in select(networks[name], taken, property=asked, norm=norm, layout=layout):
            found[name, asked, instance.index] = instance
    for claim in claims:
        if (claim.network, claim.property, claim.input) not in found:
            raise DataError(
                f"{claim.network}, input {claim.input}: target {claim.target} is its own label"
            )
    return tuple(found[claim.network, claim.property, claim.input] for claim in claims)


def _single_value(eps: float) -> str:
    """A grid of one value: up to where attacks look."""
    top = float(f"{eps:.6g}")
    return str(Grid(top, 2 * top, 2 * top))


def _note(notes: list[str], claims: list[Claim], kept: list[Claim], why: str) -> list[Claim]:
    left_out = len(claims) - len(kept)
    if left_out:
        notes.append(f"{left_out} of {len(claims)} claims are not audited: {why}")
    return kept


def _few(names: dict[str, None]) -> str:
    shown = [name or "(none)" for name in names]
    return ", ".join(shown[:5]) + (", ..." if len(shown) > 5 else "")
