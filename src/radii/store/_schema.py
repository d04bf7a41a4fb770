"""The one definition of a store's tables, and of how those of older versions become them."""

from __future__ import annotations

SCHEMA_VERSION = 7

STEPS = """
CREATE TABLE steps (
    id INTEGER PRIMARY KEY,
    asked_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    ended_at TEXT,  -- NULL: nobody has come to its end
    described TEXT NOT NULL,
    summary TEXT NOT NULL
);
CREATE TABLE step_instances (
    step INTEGER NOT NULL REFERENCES steps (id),
    instance TEXT NOT NULL REFERENCES instances (key),
    PRIMARY KEY (step, instance)
) WITHOUT ROWID;
"""
"""What was asked when, and of which instances: see `StudyStep`."""

INPUTS = """
CREATE TABLE inputs (
    input_index INTEGER PRIMARY KEY,
    digest TEXT NOT NULL  -- of its values as the data set gives them, whichever network they go to
);
"""

CERTIFICATES = """
CREATE TABLE certificates (
    hash TEXT PRIMARY KEY,  -- of the content, by SHA-256
    content BLOB NOT NULL
);
CREATE TABLE checks (  -- the last of each statement
    certificate TEXT NOT NULL,
    instance TEXT NOT NULL REFERENCES instances (key),
    eps REAL NOT NULL,
    arithmetic TEXT NOT NULL,
    checker TEXT NOT NULL,
    checked_at TEXT NOT NULL,
    accepted INTEGER NOT NULL,  -- 0: refused, 1: accepted, 2: the checker cannot read it
    reason TEXT NOT NULL,
    numbers TEXT NOT NULL,  -- in which it was calculated
    nodes INTEGER,
    lemmas INTEGER,
    margin REAL,
    seconds REAL NOT NULL,
    PRIMARY KEY (certificate, instance, eps, arithmetic)
);
"""
"""What shows proofs. A check is of a certificate and of the statement that it was to show: one of
another number than the check's was not checked."""

SCHEMA = f"""{STEPS}{CERTIFICATES}{INPUTS}
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE networks (
    fingerprint TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    feeding TEXT,  -- JSON: how inputs get into it; NULL: not known
    model BLOB  -- as ONNX, where it comes from Python; NULL: its file has it
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
    proof_arithmetic TEXT,  -- which numbers the proof speaks of; NULL without a proof
    step INTEGER NOT NULL DEFAULT 1,  -- in which it was asked
    certificate TEXT,  -- hash of what shows the proof; NULL: the verifier is believed
    ending TEXT NOT NULL DEFAULT 'answered'  -- how it ended; see `Ending`
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
    4: f"""{STEPS}
    INSERT INTO steps (id, asked_at, described, summary)
        SELECT 1, coalesce((SELECT min(ended_at) FROM queries),
            strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), value, '' FROM meta WHERE name = 'experiment';
    INSERT INTO step_instances SELECT 1, key FROM instances;
    ALTER TABLE networks ADD COLUMN feeding TEXT;
    ALTER TABLE queries ADD COLUMN step INTEGER NOT NULL DEFAULT 1;
    """,
    5: f"""{CERTIFICATES}
    ALTER TABLE queries ADD COLUMN certificate TEXT;
    ALTER TABLE networks ADD COLUMN model BLOB;
    """,
    6: f"""
    UPDATE checks SET accepted = 2 WHERE NOT accepted AND (
        reason GLOB 'the certificate cannot be used: operator * known to this checker'
        OR reason = 'its check needs more memory than it may have');
    ALTER TABLE queries ADD COLUMN ending TEXT NOT NULL DEFAULT 'answered';
    UPDATE queries SET verdict = 'MEMOUT'
        WHERE verdict = 'UNKNOWN' AND message LIKE 'a layer of % units does not fit';
    UPDATE queries SET ending = CASE
        WHEN verdict = 'MEMOUT' THEN 'memory limit'
        WHEN verdict = 'CANCELLED' THEN 'cancelled'
        WHEN verdict = 'ERROR' THEN 'failed'
        WHEN verdict = 'UNKNOWN' THEN 'gave up'
        WHEN message LIKE '%its CPU limit' OR message LIKE '%used up the processor time' OR
            verdict = 'TIMEOUT' AND cpu_seconds >= (SELECT json_extract(described, '$.cpu_timeout')
                FROM steps WHERE id = step) THEN 'CPU limit'
        WHEN verdict = 'TIMEOUT' OR message LIKE '%its time limit' THEN 'time limit'
        WHEN message LIKE '%its memory limit' OR message = 'out of memory' OR
            message LIKE 'a layer of % units does not fit' THEN 'memory limit'
        ELSE 'answered' END;
    {INPUTS}""",
}
"""What makes a store of each older version one of the next.

3: what proofs had to exceed for the network's own rounding was sampled, which proves nothing of
floating point: they count as proofs in real arithmetic, as does what the experiment asked for.
4: a store was one experiment; it becomes a study of one step.
6: a certificate that the checker could not read counted as refused; inputs were known only as
networks take them, and the next run adds what the data set gives; how a query ended
was the end of its message, and some memory-outs were UNKNOWN."""
