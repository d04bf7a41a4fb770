"""Distributions from the store of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.distributions.columns import columns_of
from radii.errors import StoreError

if TYPE_CHECKING:
    from radii.store import Store

__all__ = ["columns_of_store"]


def columns_of_store(place: Store | Path | str) -> dict[str, Any]:
    """What a store tells about its instances."""
    from radii.store import Store

    if isinstance(place, (str, Path)):
        with Store.open(Path(place)) as store:
            return columns_of_store(store)
    measurements = place.measurements()
    if not measurements:
        raise StoreError("the store holds no instances yet")
    split = (place.experiment() or {}).get("split") or ""
    return {**columns_of(measurements), "split": str(split)}
