"""What published results claim: that nothing within an eps of an input breaks a network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from radii.brackets import Measurement
from radii.distributions import Distribution
from radii.errors import DataError, NetworkError

__all__ = ["Claim", "claims_of", "network_files"]


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


def claims_of(distribution: Distribution) -> list[Claim]:
    """The rows that claim a proof, of correctly classified inputs, in their order."""
    splits = distribution.column("split").tolist()
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
        for m, split in zip(distribution, splits, strict=True)
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
