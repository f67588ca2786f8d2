"""`state.db`: its tables, brought up to date when it is opened, and made whole before anybody meets it."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from dragoman_api.errors import RegistryError

from .files import sync

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA_VERSION = 2
SCHEMA = """
CREATE TABLE generations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, plugin TEXT NOT NULL, project TEXT NOT NULL, version TEXT NOT NULL,
    registry TEXT NOT NULL, file TEXT NOT NULL, sha256 TEXT NOT NULL, manifest BLOB NOT NULL, trees BLOB NOT NULL,
    locked BLOB NOT NULL, trusted INTEGER NOT NULL, api TEXT NOT NULL, installed_at REAL NOT NULL,
    turn INTEGER NOT NULL, origin BLOB NOT NULL DEFAULT '{}'
);
CREATE TABLE plugins (
    plugin TEXT PRIMARY KEY, active INTEGER REFERENCES generations (id), disabled INTEGER NOT NULL DEFAULT 0, pin TEXT
);
CREATE TABLE types (type TEXT PRIMARY KEY, plugin TEXT NOT NULL REFERENCES plugins (plugin));
CREATE TABLE notes (key TEXT PRIMARY KEY, value BLOB NOT NULL);
"""
SECOND = """
ALTER TABLE generations ADD COLUMN origin BLOB NOT NULL DEFAULT '{}';
CREATE TABLE notes (key TEXT PRIMARY KEY, value BLOB NOT NULL);
"""
"""What the first version of the schema lacks."""


class Database:
    """One SQLite file, opened for each piece of work and not there before the first change."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Open it, None where there is nothing yet. Raises RegistryError: It is damaged (code ``state-damaged``)."""
        try:
            if not self.file.exists():
                yield None
                return
            with closing(self._open()) as database:
                yield database
        except (sqlite3.Error, OSError) as error:
            raise RegistryError(
                f"{self.file} cannot be read: {error}", code="state-damaged", hint="dragoman doctor"
            ) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction, which the end of the block commits. Raises OSError and sqlite3.Error."""
        self._create()
        with closing(self._open()) as database:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        # A rollback journal, not a write-ahead log: reading one creates files, which a full disk or a home that
        # cannot be written refuses, and installed drivers must go on working there.
        address = f"{self.file.absolute().as_uri()}?mode=rw"
        database = sqlite3.connect(address, uri=True, isolation_level=None, timeout=30)
        try:
            database.execute("PRAGMA synchronous = EXTRA")
            self._check_version(database)
        except BaseException:
            database.close()
            raise
        return database

    def _check_version(self, database: sqlite3.Connection) -> None:
        def read() -> int:
            return int(database.execute("PRAGMA user_version").fetchone()[0])

        if (version := read()) == 1:
            database.execute("BEGIN IMMEDIATE")
            if read() == 1:  # no other process was faster
                for statement in (*SECOND.split(";"), f"PRAGMA user_version = {SCHEMA_VERSION}"):
                    database.execute(statement)
            database.execute("COMMIT")
        elif version > SCHEMA_VERSION:
            message = f"{self.file} was written by a newer dragoman (its version is {version}, not {SCHEMA_VERSION})"
            raise RegistryError(message, code="state-newer", hint="python -m pip install --upgrade dragoman")
        elif version != SCHEMA_VERSION:
            raise sqlite3.DatabaseError(f"its version is {version}, this program reads {SCHEMA_VERSION}")

    def _create(self) -> None:
        """Make the database whole before it gets its name, so that nobody meets half of it."""
        if self.file.exists():
            return
        draft = self.file.with_name("state.db.new")
        for name in (draft.name, f"{draft.name}-journal"):
            draft.with_name(name).unlink(missing_ok=True)
        with closing(sqlite3.connect(draft, isolation_level=None)) as database:
            database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        sync(draft)
        draft.replace(self.file)
        sync(self.file.parent)
