"""Where an experiment's results live: one SQLite file in its directory.

A result is on disk when `Store.record` returns. The file can be read while a run writes it.
"""

from __future__ import annotations

from radii.store._database import ENSEMBLE_FILE, STORE_FILE, Store
from radii.store._integrity import selection_of
from radii.store._locks import PauseFlag, written_since
from radii.store._rows import Record, StoredResult, Subject
from radii.store._schema import SCHEMA_VERSION

__all__ = [
    "ENSEMBLE_FILE",
    "SCHEMA_VERSION",
    "STORE_FILE",
    "PauseFlag",
    "Record",
    "Store",
    "StoredResult",
    "Subject",
    "selection_of",
    "written_since",
]
