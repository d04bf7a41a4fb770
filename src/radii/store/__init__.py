"""Where an experiment's results live: one SQLite file in its directory.

A result is on disk when `Store.record` returns. The file can be read while a run writes it.
"""

from __future__ import annotations

from radii.store._database import STORE_FILE, Store
from radii.store._ensembles import (
    ENSEMBLE_FILE,
    EnsembleIdentity,
    EnsembleStore,
    StoredFinding,
    StoredFooling,
    StoredPlay,
    StoredPoint,
)
from radii.store._files import PauseFlag, explaining_damage, written_since
from radii.store._integrity import selection_of
from radii.store._rows import PROOF_KINDS, SCHEMA_VERSION, Record, SearchStep, StoredResult
from radii.store._settings import StoredSettings

__all__ = [
    "ENSEMBLE_FILE",
    "PROOF_KINDS",
    "SCHEMA_VERSION",
    "STORE_FILE",
    "EnsembleIdentity",
    "EnsembleStore",
    "PauseFlag",
    "Record",
    "SearchStep",
    "Store",
    "StoredFinding",
    "StoredFooling",
    "StoredPlay",
    "StoredPoint",
    "StoredResult",
    "StoredSettings",
    "explaining_damage",
    "selection_of",
    "written_since",
]
