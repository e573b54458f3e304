# SPDX-FileCopyrightText: 2026 robotmem_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The tables of the database, and the named migrations that bring an older file up to date."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NoReturn

import apsw

from robotmem_ros.core.errors import StoreError
from robotmem_ros.core.store import attributes, codes

APPLICATION_ID = 0x524D454D
"""Marks the file as ours (PRAGMA application_id): "RMEM"."""

_LOG_LENGTH = 100_000

_MEMORY_TABLES = """
CREATE TABLE collections (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    memories INTEGER NOT NULL DEFAULT 0,     -- counted by the triggers below
    superseded INTEGER NOT NULL DEFAULT 0    -- of these
);

-- One row per session_id that any memory names. Those that were opened are episodes; the others
-- are names that callers made up, and have nothing but the name.
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE,
    opened INTEGER NOT NULL DEFAULT 0,
    owner TEXT,                              -- who opened it; NULL: it came from another store
    collection_id INTEGER REFERENCES collections (id),
    context TEXT NOT NULL DEFAULT '{}',      -- JSON object
    started INTEGER NOT NULL DEFAULT 0,      -- ROS time
    ended INTEGER NOT NULL DEFAULT 0,        -- ROS time; 0: it is open
    outcome REAL,                            -- NULL: nobody gave one
    summary TEXT NOT NULL DEFAULT '',
    interrupted INTEGER NOT NULL DEFAULT 0,
    opened_at INTEGER,                       -- wall clock
    closed_at INTEGER                        -- wall clock
);
CREATE INDEX sessions_open ON sessions (owner) WHERE opened AND ended = 0;
CREATE INDEX sessions_ended ON sessions (closed_at, id) WHERE ended > 0;

-- Where the robot went in an episode.
CREATE TABLE trajectory (
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    seq INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    frame_id TEXT NOT NULL,
    x REAL NOT NULL, y REAL NOT NULL, z REAL NOT NULL,
    qx REAL NOT NULL, qy REAL NOT NULL, qz REAL NOT NULL, qw REAL NOT NULL,
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;

-- The truth. Times are nanoseconds: stamp and expires in ROS time, the others on the wall clock.
CREATE TABLE memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,    -- never given twice
    uuid TEXT NOT NULL UNIQUE,
    identity BLOB NOT NULL,                  -- digest of what makes two memories the same
    type TEXT NOT NULL,
    perception_type TEXT,
    collection_id INTEGER NOT NULL REFERENCES collections (id),
    session_id INTEGER REFERENCES sessions (id),
    stamp INTEGER NOT NULL,
    expires INTEGER NOT NULL,                -- 0: never
    confidence REAL NOT NULL,                -- as learned; the decay is computed when read
    last_access INTEGER NOT NULL,
    access_count INTEGER NOT NULL DEFAULT 0,
    return_count INTEGER NOT NULL DEFAULT 0,
    superseded_by INTEGER,                   -- id of the memory that replaced it
    attributed INTEGER NOT NULL,             -- 1: every value of the context is in attributes
    frame_id TEXT,                           -- NULL: no pose
    pose_stamp INTEGER,
    x REAL, y REAL, z REAL,
    qx REAL, qy REAL, qz REAL, qw REAL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
-- Apart from the rest, so that checking conditions does not read through them.
CREATE TABLE texts (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id),
    content TEXT NOT NULL,
    context TEXT NOT NULL                    -- JSON object
);
CREATE INDEX memories_by_identity ON memories (identity);
CREATE INDEX memories_by_collection ON memories (collection_id, stamp, id);
CREATE INDEX memories_by_session ON memories (session_id, stamp, id) WHERE session_id NOT NULL;
CREATE INDEX memories_by_stamp ON memories (stamp, id);
CREATE INDEX memories_unattributed ON memories (id) WHERE NOT attributed;
-- Counting a million rows takes too long for a status once a second.
CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    UPDATE collections SET memories = memories + 1,
        superseded = superseded + (NEW.superseded_by IS NOT NULL) WHERE id = NEW.collection_id;
END;
CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
    UPDATE collections SET memories = memories - 1,
        superseded = superseded - (OLD.superseded_by IS NOT NULL) WHERE id = OLD.collection_id;
END;
CREATE TRIGGER memories_superseded_changed AFTER UPDATE OF superseded_by ON memories BEGIN
    UPDATE collections SET superseded = superseded + (NEW.superseded_by IS NOT NULL)
        - (OLD.superseded_by IS NOT NULL) WHERE id = NEW.collection_id;
END;

-- Memories that are not in the indexes yet, while these are made anew.
CREATE TABLE unindexed (
    memory_id INTEGER PRIMARY KEY
);

CREATE TABLE forgotten (
    uuid TEXT NOT NULL,
    reason TEXT NOT NULL,
    forgotten_at INTEGER NOT NULL
);
CREATE INDEX forgotten_by_uuid ON forgotten (uuid);

-- Imported memories that were replaced by one that has not come yet, with its uuid.
CREATE TABLE awaited (
    memory_id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL
);
CREATE INDEX awaited_by_uuid ON awaited (uuid);
CREATE INDEX memories_superseded ON memories (superseded_by) WHERE superseded_by NOT NULL;
"""

_INDEX_TABLES = """
-- Keyword index: the words of each memory (core/text.py), and FTS5 over them. The words hold
-- letters, digits, dots and hyphens alone and are stemmed already, so the plain tokenizer does.
CREATE TABLE documents (
    memory_id INTEGER PRIMARY KEY,
    content TEXT NOT NULL,
    entities TEXT NOT NULL,
    length INTEGER NOT NULL                  -- words in all
);
CREATE INDEX documents_by_length ON documents (length);
CREATE VIRTUAL TABLE keywords USING fts5 (
    content, entities,
    content = 'documents', content_rowid = 'memory_id', tokenize = "ascii tokenchars '.-'"
);
CREATE VIRTUAL TABLE words USING fts5vocab (keywords, instance);
-- Log of documents that came or went, by which every process keeps its copies in memory in step.
CREATE TABLE IF NOT EXISTS document_changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL               -- 0: all of them
);
CREATE TABLE corpus (                        -- one row: what BM25 must know of all documents
    documents INTEGER NOT NULL,
    tokens INTEGER NOT NULL
);
INSERT INTO corpus VALUES (0, 0);

-- Names of robots, tasks, objects and places, and the memories that name them.
CREATE TABLE entities (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
CREATE TABLE memory_entities (
    memory_id INTEGER NOT NULL,
    entity_id INTEGER NOT NULL,
    PRIMARY KEY (memory_id, entity_id)
) WITHOUT ROWID;
CREATE INDEX memory_entities_by_entity ON memory_entities (entity_id);

-- Every value of every context, in an encoding that sorts as the values do (attributes.py).
CREATE TABLE paths (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE
);
CREATE TABLE attributes (
    memory_id INTEGER NOT NULL,
    path_id INTEGER NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (memory_id, path_id)
) WITHOUT ROWID;
CREATE INDEX attributes_by_value ON attributes (path_id, value, memory_id);

-- Poses and coordinate arrays. `place` numbers a frame or a context path with its dimension, so
-- that one R*Tree serves them all and never mixes two of them.
CREATE TABLE place_names (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);
CREATE VIRTUAL TABLE places USING rtree (
    id, place_min, place_max, x_min, x_max, y_min, y_max, z_min, z_max, +memory_id INTEGER
);
"""
"""What can be made anew from the memories at any time."""

_VECTOR_TABLES = """
-- The vector of each memory: float32, little-endian, of the one current model.
CREATE TABLE IF NOT EXISTS vectors (
    memory_id INTEGER PRIMARY KEY,
    vector BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS embedder (        -- at most one row: what made the vectors
    model TEXT NOT NULL,
    dimension INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS unembedded (      -- memories that wait for their vector
    memory_id INTEGER PRIMARY KEY
);
-- Log of vectors that came or went, by which every process keeps its copy in memory in step.
CREATE TABLE IF NOT EXISTS vector_changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL               -- 0: all of them
);
"""

_CODE_TABLES = """
-- One bit a dimension of each vector of a large store (codes.py), and the centre they are taken
-- from: at most one row. Memories above coded_to may have no code yet; NULL: all have one.
CREATE TABLE IF NOT EXISTS codes (
    memory_id INTEGER PRIMARY KEY,
    code BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS code_centre (
    centre BLOB NOT NULL,                    -- float32, little-endian
    coded_to INTEGER
);
"""

# Log of memories of which a fact changed that facts.py keeps in memory.
_FACT_LOG = f"""
CREATE TABLE IF NOT EXISTS memory_changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL               -- 0: all of them
);
CREATE TRIGGER IF NOT EXISTS memories_logged_insert AFTER INSERT ON memories BEGIN
    INSERT INTO memory_changes (memory_id) VALUES (NEW.id);
    DELETE FROM memory_changes
        WHERE seq <= (SELECT max(seq) FROM memory_changes) - {_LOG_LENGTH};
END;
CREATE TRIGGER IF NOT EXISTS memories_logged_delete AFTER DELETE ON memories BEGIN
    INSERT INTO memory_changes (memory_id) VALUES (OLD.id);
END;
CREATE TRIGGER IF NOT EXISTS memories_logged_update AFTER UPDATE OF superseded_by, attributed,
    collection_id, session_id, stamp, expires, confidence, last_access ON memories BEGIN
    INSERT INTO memory_changes (memory_id) VALUES (NEW.id);
    DELETE FROM memory_changes
        WHERE seq <= (SELECT max(seq) FROM memory_changes) - {_LOG_LENGTH};
END;
"""

_LOG_STATE = """
-- Whether what is in the write-ahead log may be missing here: set in the file itself with the
-- first change, and taken back when the file is closed in order.
CREATE TABLE IF NOT EXISTS log_state (is_needed INTEGER NOT NULL);
INSERT INTO log_state SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM log_state);
"""

TRUTH = (
    "memories",
    "texts",
    "collections",
    "sessions",
    "trajectory",
    "forgotten",
    "awaited",
    "unindexed",
)
"""Tables that no other can bring back."""

_INDEXES = (
    "words",
    "keywords",
    "documents",
    "corpus",
    "memory_entities",
    "entities",
    "attributes",
    "paths",
    "places",
    "place_names",
)


def _create_tables(connection: apsw.Connection) -> None:
    connection.execute(_MEMORY_TABLES + _INDEX_TABLES + _VECTOR_TABLES)


def _follow_facts_and_code_vectors(connection: apsw.Connection) -> None:
    connection.execute(_FACT_LOG + _CODE_TABLES)
    codes.begin(connection)
    while codes.catch_up(connection):
        pass


MIGRATIONS: tuple[tuple[str, Callable[[apsw.Connection], object]], ...] = (
    ("create_tables", _create_tables),
    ("follow_facts_and_code_vectors", _follow_facts_and_code_vectors),
    ("tell_arrays_apart", attributes.encode_arrays_anew),
    ("tell_a_lost_log", lambda connection: connection.execute(_LOG_STATE)),
)
"""Every step from an empty file to the current schema, in order; the version is their number."""

VERSION = len(MIGRATIONS)


def needs_log(connection: apsw.Connection) -> bool:
    """Return whether a file was not closed in order, as far as it knows without its log."""
    try:
        return bool(connection.execute("SELECT is_needed FROM log_state").get)
    except apsw.SQLError:
        return False  # it is older than this table, or has lost it


def set_needs_log(connection: apsw.Connection, is_needed: bool) -> bool:
    """Write down whether a file needs its log; return whether that changed."""
    try:
        connection.execute(
            "UPDATE log_state SET is_needed = ?1 WHERE is_needed <> ?1", (is_needed,)
        )
    except apsw.SQLError:
        return False
    return connection.changes() > 0


def check(connection: apsw.Connection) -> None:
    """Refuse a file that is neither empty nor a store of a version that is known here.

    Raises
    ------
    StoreError: the file belongs to something else, or to a newer version of this software.
    """
    path = connection.filename
    connection.execute("BEGIN")  # another process may be making the tables right now
    version = connection.pragma("user_version")
    owner = connection.pragma("application_id")
    is_empty = not connection.execute("SELECT 1 FROM sqlite_schema").get
    connection.execute("COMMIT")
    if owner != APPLICATION_ID and not (is_empty and version == owner == 0):
        raise StoreError(f"{path} is an SQLite file of another program; name another db_path")
    if version > VERSION:
        refuse_newer(path, version)


def refuse_newer(path: str, version: int) -> NoReturn:
    """Refuse a file of a version that is not known here.

    Raises
    ------
    StoreError: always.
    """
    raise StoreError(
        f"{path} has schema version {version}, made by a newer robotmem_ros; this one knows "
        f"versions up to {VERSION}. Install the newer one, or name another db_path"
    )


def migrate(
    connection: apsw.Connection,
    keep: Callable[[int], None] | None = None,
    last: int | None = None,
) -> None:
    """Bring a checked file to the current schema.

    Each migration runs in a transaction of its own and is recorded with its name. A second
    process that migrates at the same time waits and finds it done.

    Parameters
    ----------
    keep: called with the version of a file that is not new, before anything in it is changed;
        nobody else can change it meanwhile. If it raises, the file stays as it is.
    last: version to stop at; None means the current one.
    """
    last = VERSION if last is None else last
    version = connection.pragma("user_version")
    if version == 0:
        connection.pragma("application_id", APPLICATION_ID)
    while version < last:
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = connection.pragma("user_version")
            if version < last:
                if keep is not None and version > 0:
                    keep(version)
                    keep = None
                name, step = MIGRATIONS[version]
                try:
                    step(connection)
                except apsw.SQLError:
                    if version == 0:
                        raise
                    # An index that it needs is lost. All can be made anew, in today's form.
                    renew_indexes(connection)
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS migrations (name TEXT, applied_at INTEGER)"
                )
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (name, time.time_ns()))
                version += 1
                connection.execute(f"PRAGMA user_version = {version}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def renew_indexes(connection: apsw.Connection) -> None:
    """Replace all indexes, whole or broken, by empty ones, and make lost vector tables again.

    All memories wait to be indexed, and those whose vector is lost for a new one.
    """
    for table in _INDEXES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    # A trigger would log each memory that is marked below.
    connection.execute("DROP TRIGGER IF EXISTS memories_logged_update")
    connection.execute(_INDEX_TABLES + _VECTOR_TABLES + _CODE_TABLES + _LOG_STATE)
    connection.execute("DELETE FROM vectors WHERE memory_id NOT IN (SELECT id FROM memories)")
    connection.execute(
        "INSERT OR IGNORE INTO unembedded SELECT id FROM memories "
        "WHERE id NOT IN (SELECT memory_id FROM vectors)"
    )
    connection.execute("DELETE FROM unembedded WHERE memory_id NOT IN (SELECT id FROM memories)")
    connection.execute("INSERT OR IGNORE INTO unindexed SELECT id FROM memories")
    connection.execute(
        "UPDATE collections SET "
        "memories = (SELECT count(*) FROM memories WHERE collection_id = collections.id), "
        "superseded = (SELECT count(superseded_by) FROM memories "
        "WHERE collection_id = collections.id)"
    )
    # Until they are indexed their contexts are read, so that no filter misses one.
    connection.execute("UPDATE memories SET attributed = 0 WHERE attributed")
    connection.execute(_FACT_LOG)
    for log in ("vector_changes", "document_changes", "memory_changes"):
        if connection.execute(f"SELECT max(seq) FROM {log}").get is None:
            # The log was lost, and copies in memory know its numbers: go on far above them.
            connection.execute(f"INSERT INTO {log} VALUES (?, 0)", (time.time_ns(),))
        log_change(connection, log, 0)
    codes.begin(connection)


def log_change(connection: apsw.Connection, log: str, memory_id: int) -> None:
    """Log that something about a memory changed; 0 stands for all of them."""
    connection.execute(f"INSERT INTO {log} (memory_id) VALUES (?)", (memory_id,))
    oldest = connection.last_insert_rowid() - _LOG_LENGTH
    connection.execute(f"DELETE FROM {log} WHERE seq <= ?", (oldest,))


def changes_since(connection: apsw.Connection, log: str, seq: int) -> tuple[int, set[int] | None]:
    """Return the latest entry of a log, and which memories changed after another entry.

    None in place of these stands for all of them: the log does not reach back that far.
    """
    latest = connection.execute(f"SELECT max(seq) FROM {log}").get or 0
    if latest <= max(seq, 0):
        return latest, set()
    changes: list[Any] = connection.execute(
        f"SELECT seq, memory_id FROM {log} WHERE seq > ? ORDER BY seq", (seq,)
    ).fetchall()
    changed = {memory_id for _, memory_id in changes}
    return latest, changed if 0 not in changed and changes[0][0] == seq + 1 else None
