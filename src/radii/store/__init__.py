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
from radii.store._merging import MergeCount, merge_stores
from radii.store._rows import (
    PROOF_KINDS,
    CertifiedStatement,
    InstanceFacts,
    Record,
    SearchStep,
    StoredResult,
    content_hash,
    input_digest,
)
from radii.store._schema import SCHEMA_VERSION
from radii.store._steps import (
    Excerpt,
    PartChoice,
    StepAnswer,
    StoredSettings,
    StudyPart,
    StudyStep,
    counted_in,
)

__all__ = [
    "ENSEMBLE_FILE",
    "PROOF_KINDS",
    "SCHEMA_VERSION",
    "STORE_FILE",
    "CertifiedStatement",
    "EnsembleIdentity",
    "EnsembleStore",
    "Excerpt",
    "InstanceFacts",
    "MergeCount",
    "PartChoice",
    "PauseFlag",
    "Record",
    "SearchStep",
    "StepAnswer",
    "Store",
    "StoredFinding",
    "StoredFooling",
    "StoredPlay",
    "StoredPoint",
    "StoredResult",
    "StoredSettings",
    "StudyPart",
    "StudyStep",
    "content_hash",
    "counted_in",
    "explaining_damage",
    "input_digest",
    "merge_stores",
    "selection_of",
    "written_since",
]
