"""Results: one `Run` from a store, a table or a folder of VERONA, and what measuring it cost."""

from __future__ import annotations

from radii.results._draws import InputDraw, draw_of, joined_draw
from radii.results._effort import Effort, effort_of, theoretical_maximum
from radii.results._feature_changes import (
    FeatureChange,
    NamedWitness,
    features_of,
    named_witnesses,
    question_of,
)
from radii.results._groups import grouped
from radii.results._missing_answers import MissingReason, missing_reasons
from radii.results._places import check_distinct, read, with_distinct_names
from radii.results._published import regular_grid
from radii.results._run import (
    COLUMNS,
    NO_NUMBER,
    Array,
    Column,
    Float64,
    Run,
    columns_of,
    columns_of_frame,
    complete_columns,
    frame_of_columns,
    joint_codes,
    measurements_of,
)
from radii.results._store import PART_FIELDS, FollowedStore, read_parts, read_store
from radii.results._tables import check_parquet
from radii.results._verona import (
    VERONA_COLUMNS,
    VeronaExperiment,
    find_experiment,
    verona_frame,
    write_verona_folder,
)

__all__ = [
    "COLUMNS",
    "NO_NUMBER",
    "PART_FIELDS",
    "VERONA_COLUMNS",
    "Array",
    "Column",
    "Effort",
    "FeatureChange",
    "Float64",
    "FollowedStore",
    "InputDraw",
    "MissingReason",
    "NamedWitness",
    "Run",
    "VeronaExperiment",
    "check_distinct",
    "check_parquet",
    "columns_of",
    "columns_of_frame",
    "complete_columns",
    "draw_of",
    "effort_of",
    "features_of",
    "find_experiment",
    "frame_of_columns",
    "grouped",
    "joined_draw",
    "joint_codes",
    "measurements_of",
    "missing_reasons",
    "named_witnesses",
    "question_of",
    "read",
    "read_parts",
    "read_store",
    "regular_grid",
    "theoretical_maximum",
    "verona_frame",
    "with_distinct_names",
    "write_verona_folder",
]
