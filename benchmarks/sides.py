"""Checkouts of radii that are measured side by side."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Side:
    """A checkout of radii."""

    name: str
    checkout: Path

    @property
    def method(self) -> str:
        """Named by its code: what a file holds of other code is not taken for it."""
        digest = hashlib.sha256()
        for file in sorted((self.checkout / "src").rglob("*.py")):
            digest.update(file.read_bytes())
        return f"radii {digest.hexdigest()[:10]}"


def sides_of(before: Path | None) -> list[Side]:
    """This checkout, behind the one that it is compared with."""
    here = Side("radii", HERE)
    return [here] if before is None else [Side("before", before.resolve()), here]
