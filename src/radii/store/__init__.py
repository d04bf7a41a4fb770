"""Where an experiment's results live: one SQLite file in its directory.

A result is on disk when `Store.record` returns. The file can be read while a run writes it.
"""

from __future__ import annotations

from radii.store.database import ENSEMBLE_FILE, FILE_NAME, Store
from radii.store.integrity import selection_of
from radii.store.locks import written_since
from radii.store.rows import Answer, Record, Subject
from radii.store.tables import SCHEMA_VERSION

__all__ = [
    "ENSEMBLE_FILE",
    "FILE_NAME",
    "SCHEMA_VERSION",
    "Answer",
    "Record",
    "Store",
    "Subject",
    "selection_of",
    "written_since",
]
