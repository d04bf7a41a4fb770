"""What is said between a race and those who run in it. Cheap to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from radii.networks import Network
    from radii.queries import Specification

__all__ = ["Job"]


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One specification to decide; `network` comes along the first time it is needed."""

    fingerprint: str
    network: Network | None
    specification: Specification
    seconds: float
    memory_bytes: int | None
    cpu_seconds: float
