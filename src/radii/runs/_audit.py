"""What published results claim: that nothing within an eps of an input breaks a network."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radii import __version__, datasets
from radii.datasets import Dataset
from radii.errors import DataError, NetworkError, StoreError
from radii.networks import Network, load_network
from radii.problem import (
    Array,
    Domain,
    Grid,
    Instance,
    Measurement,
    Norm,
    Query,
    Witness,
    check_witness,
)
from radii.runs._description import Experiment
from radii.runs._plan import Plan
from radii.runs._selection import select
from radii.store import Store

if TYPE_CHECKING:
    import pandas as pd

    from radii.attacks import Attack


@dataclass(frozen=True, slots=True)
class Claim:
    """One published row. `eps` is claimed to be proven; `upper` is the published counterexample's.

    `label` is None where the table does not tell it; `seconds` is NaN there. `property` is what is
    claimed: published targets are those of one-to-one, radii's own tables may say become.
    """

    network: str
    input: int
    label: int | None
    target: int | None
    property: str
    split: str
    eps: float
    upper: float
    seconds: float


def claims_of(rows: Iterable[tuple[Measurement, str]]) -> list[Claim]:
    """The rows, each with its split, that claim a proof about a correctly classified input."""
    return [
        Claim(
            m.network,
            m.input,
            m.label if m.label >= 0 else None,
            m.target,
            _property(m),
            split,
            m.bracket.lower,
            m.bracket.upper,
            m.seconds,
        )
        for m, split in rows
        if m.correct and m.bracket.lower > 0
    ]


def _property(measured: Measurement) -> str:
    if measured.target is None:
        return "one-to-any"
    name = "become" if measured.property.startswith("become") else "one-to-one"
    return f"{name}:{measured.target}"


def network_files(places: Iterable[Path], names: Iterable[str]) -> dict[str, Path]:
    """The ONNX file of each network, found by the end of its path; those without one are absent.

    `places` are files, or folders that are searched with all folders in them.
    """
    files: list[Path] = []
    for place in places:
        if not place.exists():
            raise NetworkError(f"{place}: no such file or folder of networks")
        files += sorted(place.rglob("*.onnx")) if place.is_dir() else [place]
    found: dict[str, Path] = {}
    for name in names:
        wanted = Path(name.removesuffix(".onnx")).parts
        fitting = [file for file in files if file.with_suffix("").parts[-len(wanted) :] == wanted]
        if len(fitting) > 1:
            raise DataError(
                f"network '{name}' may be {fitting[0]} or {fitting[1]}: name one of them"
            )
        if fitting:
            found[name] = fitting[0]
    return found


# From published claims to an experiment: one attack for each input that a claim is about.


CLAIM_REACH = 1.25
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
    published: Iterable[tuple[Measurement, str]],
    networks: Sequence[Path],
    data: str,
    *,
    domain: Domain | str,
    mean: Sequence[float] | str | None = None,
    std: Sequence[float] | str | None = None,
    layout: str | None = None,
    norm: Norm | str = "linf",
    split: str | None = None,
    attack: str | Attack = "minimum-norm",
    seed: int = 0,
) -> Audit:
    """Find the network and the image of every claim, and check that they are those published.

    `published` are rows of published results, each with its split.
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
    reach = float(f"{CLAIM_REACH * max(claim.eps for claim in claims):.6g}")
    experiment = Experiment.from_options(
        {
            "networks": [str(path) for path in files.values()],
            "data": data,
            "domain": domain,
            "mean": mean or None,
            "std": std or None,
            "norm": norm,
            "grid": str(Grid(reach, 2 * reach, 2 * reach)),  # one value: up to where attacks look
            "search": "attack-only",
            "attack": attack,
            "seed": seed,
        }
    ).resolved()
    loaded = {
        name: load_network(path, domain=experiment.domain, mean=experiment.mean, std=experiment.std)
        for name, path in files.items()
    }
    instances = _instances(claims, loaded, images, experiment.norm, layout)
    plan = Plan(
        tuple(loaded.values()),
        tuple(str(path) for path in files.values()),
        data,
        split or images.split or "",
        tuple({instance.key: instance for instance in instances}.values()),
        experiment,
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


def _note(notes: list[str], claims: list[Claim], kept: list[Claim], why: str) -> list[Claim]:
    left_out = len(claims) - len(kept)
    if left_out:
        notes.append(f"{left_out} of {len(claims)} claims are not audited: {why}")
    return kept


def _few(names: dict[str, None]) -> str:
    shown = [name or "(none)" for name in names]
    return ", ".join(shown[:5]) + (", ..." if len(shown) > 5 else "")


# What an audit found: which claims a replayed witness refutes.


OUTWARD_STEPS = 8
"""Places between the closest witness and the claimed radius at which the clearest is looked for."""


class ClaimStatus(StrEnum):
    """What became of a claim. One that stands is not proven: attacks may have missed something."""

    REFUTED = "refuted"
    STANDS = "stands"
    MISCLASSIFIED = "misclassified"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """A claim and what attacks found: `closest` is the distance of the closest witness, or inf.

    A refuted claim has its `witness`: of those that the attack's direction offers within the
    claimed radius, the one whose rival leads by the most (`margin`, in units of the outputs), so
    that it also replays where a runtime rounds differently.
    """

    claim: Claim
    instance: Instance
    status: ClaimStatus
    closest: float
    witness: Witness | None = None
    margin: float = math.nan

    @property
    def ratio(self) -> float:
        """The closest witness's distance as a part of the claimed radius."""
        return self.closest / self.claim.eps


def findings(audit: Audit, store: Store) -> list[Finding]:
    """One for every claim, from what the audit's experiment has stored so far."""
    networks = {network.fingerprint: network for network in audit.plan.networks}
    answered = store.results()
    found = []
    for claim, instance in zip(audit.claims, audit.instances, strict=True):
        witnesses = [r.witness for _, r in answered[instance.key] if r.witness is not None]
        closest = min(witnesses, key=lambda witness: witness.distance, default=None)
        distance = math.inf if closest is None else closest.distance
        if not instance.holds:
            found.append(Finding(claim, instance, ClaimStatus.MISCLASSIFIED, 0.0))
        elif closest is not None and distance <= claim.eps:
            clear = _clearest(networks[instance.network], instance, closest, claim.eps)
            lead = _lead(clear.outputs, instance)
            found.append(Finding(claim, instance, ClaimStatus.REFUTED, distance, clear, lead))
        else:
            tried = ClaimStatus.STANDS if answered[instance.key] else ClaimStatus.NOT_TRIED
            found.append(Finding(claim, instance, tried, distance))
    _refuse_other_images(found)
    return found


def _clearest(network: Network, instance: Instance, closest: Witness, eps: float) -> Witness:
    """The witness with the largest margin on the way from the closest one to the claimed radius."""
    specification = Query(instance, eps).specification
    offset = closest.input.astype(np.float64) - instance.input
    best = closest
    for stretch in np.linspace(1.0, eps / closest.distance, OUTWARD_STEPS + 1)[1:]:
        tried = check_witness(network, specification, instance.input + stretch * offset)
        if tried is not None and _lead(tried.outputs, instance) > _lead(best.outputs, instance):
            best = tried
    return best


def _lead(outputs: Array, instance: Instance) -> float:
    """By how much the property is broken: the best other class, or the target, above the label.

    Of become it is the target's lead over every other class.
    """
    return -float(instance.requirement.margin(outputs, 0.0))


def _refuse_other_images(found: list[Finding]) -> None:
    """Published claims are about correctly classified inputs: other inputs refute nothing."""
    claims = Counter(finding.claim.network for finding in found)
    wrong = Counter(f.claim.network for f in found if f.status is ClaimStatus.MISCLASSIFIED)
    for network, count in wrong.items():
        if 2 * count > claims[network]:
            raise DataError(
                f"{network} misclassifies {count} of {claims[network]} inputs that claims are "
                "about: check --data, --split, --mean, --std and --layout"
            )


# Files of an audit: a table of all claims, and a witness for every refuted one.


AUDIT_FILE = "audit.csv"
WITNESSES_FOLDER = "witnesses"
NETWORKS_FOLDER = "networks"


def findings_frame(found: Sequence[Finding]) -> pd.DataFrame:
    """One row a claim. `closest` and `published_upper` are inf where there is no counterexample."""
    import pandas as pd

    rows = []
    for finding in found:
        claim, witness = finding.claim, finding.witness
        rows.append(
            {
                "network": claim.network,
                "input": claim.input,
                "label": finding.instance.label,
                "target": claim.target,
                "split": claim.split,
                "claimed": claim.eps,
                "published_upper": claim.upper,
                "published_seconds": claim.seconds,
                "status": finding.status.value,
                "closest": finding.closest,
                "ratio": finding.ratio,
                "witness_distance": math.nan if witness is None else witness.distance,
                "witness_class": None if witness is None else witness.predicted,
                "margin": finding.margin,
                "witness": "" if witness is None else f"{WITNESSES_FOLDER}/{_file_name(finding)}",
            }
        )
    frame = pd.DataFrame(rows)
    return frame.astype({"target": "Int64", "witness_class": "Int64"})


def save_witnesses(audit: Audit, found: Sequence[Finding], directory: Path) -> list[Path]:
    """Write one .npz for each refuted claim, and drop those of an earlier audit in `directory`.

    `image` and `witness` are what the network's file takes, bit by bit. Only where a normalisation
    was given, the file does not hold it: then the networks that do are written beside.
    """
    folder = directory / WITNESSES_FOLDER
    networks = {network.fingerprint: network for network in audit.plan.networks}
    paths = dict(zip(networks, audit.plan.paths, strict=True))
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.npz"):
            old.unlink()
        for fingerprint, network in networks.items():
            if audit.is_normalized:
                (directory / NETWORKS_FOLDER).mkdir(exist_ok=True)
                name = Path(paths[fingerprint]).name
                (directory / NETWORKS_FOLDER / name).write_bytes(network.onnx_bytes)
        for finding in found:
            instance, witness, claim = finding.instance, finding.witness, finding.claim
            if witness is None:
                continue
            shape = networks[instance.network].graph.nodes[0].shape
            written.append(folder / _file_name(finding))
            np.savez(
                written[-1],
                network=Path(paths[instance.network]).name,
                fingerprint=instance.network,
                input=instance.index,
                label=instance.label,
                target=-1 if claim.target is None else claim.target,
                norm=instance.norm.value,
                claimed=claim.eps,
                distance=witness.distance,
                margin=finding.margin,
                image=instance.input.reshape(shape),
                witness=witness.input.reshape(shape),
                outputs=witness.outputs,
                replayed_on=witness.replayed_on,
                radii=__version__,
            )
    except OSError as error:
        raise StoreError(f"{directory}: cannot be written ({error.strerror or error})") from None
    return written


def _file_name(finding: Finding) -> str:
    claim = finding.claim
    network = claim.network.replace("/", "_")
    split = f"_{claim.split}" if claim.split else ""
    target = "" if claim.target is None else f"_to_{claim.target}"
    return f"{network}{split}_{claim.input}{target}_at_{claim.eps:g}.npz"
