"""The tables of a store: the one definition of its schema, and how older ones become it."""

from __future__ import annotations

SCHEMA_VERSION = 4

SCHEMA = """
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE networks (
    fingerprint TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    path TEXT NOT NULL
);
CREATE TABLE instances (
    key TEXT PRIMARY KEY,
    position INTEGER NOT NULL UNIQUE,
    network TEXT NOT NULL REFERENCES networks (fingerprint),
    input_index INTEGER NOT NULL,
    label INTEGER NOT NULL,
    predicted INTEGER NOT NULL,
    correct INTEGER NOT NULL,
    property TEXT NOT NULL,
    target INTEGER,
    norm TEXT NOT NULL,
    dtype TEXT NOT NULL,
    shape TEXT NOT NULL,
    input BLOB NOT NULL,
    outputs BLOB NOT NULL
);
CREATE TABLE queries (
    id INTEGER PRIMARY KEY,
    instance TEXT NOT NULL REFERENCES instances (key),
    kind TEXT NOT NULL,
    eps REAL NOT NULL,
    verdict TEXT NOT NULL,
    seconds REAL NOT NULL,
    verifier TEXT NOT NULL,
    version TEXT NOT NULL,
    proof_eps REAL,
    proof_margin REAL,
    message TEXT NOT NULL,
    ended_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    cpu_seconds REAL,  -- NULL: not measured
    added_seconds REAL,  -- to the wall time of the instance; NULL: all of `seconds`
    allowed_seconds REAL,  -- wall seconds that it had; NULL: the limit of the experiment
    proof_arithmetic TEXT  -- which numbers the proof speaks of; NULL without a proof
);
CREATE INDEX queries_of_instance ON queries (instance);
CREATE TABLE witnesses (
    query INTEGER PRIMARY KEY REFERENCES queries (id),
    distance REAL NOT NULL,
    predicted INTEGER NOT NULL,
    dtype TEXT NOT NULL,
    shape TEXT NOT NULL,
    input BLOB NOT NULL,
    outputs BLOB NOT NULL,
    replayed_on TEXT NOT NULL
);
CREATE TABLE brackets (
    instance TEXT PRIMARY KEY REFERENCES instances (key),
    lower REAL NOT NULL,
    upper REAL NOT NULL  -- Infinity without a witness
);
"""

MIGRATIONS = {
    1: """
    ALTER TABLE queries ADD COLUMN cpu_seconds REAL;
    ALTER TABLE queries ADD COLUMN added_seconds REAL;
    """,
    2: "ALTER TABLE queries ADD COLUMN allowed_seconds REAL;",
    3: """
    ALTER TABLE queries ADD COLUMN proof_arithmetic TEXT;
    UPDATE queries SET proof_arithmetic = 'real' WHERE proof_eps IS NOT NULL;
    UPDATE meta SET value = json_set(value, '$.arithmetic', 'real')
        WHERE name = 'experiment' AND json_extract(value, '$.search') IS NOT 'attack-only';
    """,
}
"""What makes a store of each older version one of the next.

3: what proofs had to exceed for the network's own rounding was sampled, which proves nothing of
floating point: they count as proofs in real arithmetic, as does what the experiment asked for."""
