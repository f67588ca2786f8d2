"""`state.db` and its tables: created complete under a temporary name."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import TYPE_CHECKING

from dragoman_api.errors import InstallError, RegistryError
from dragoman_registry.files import remedy, sync, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dragoman_api.errors import DragomanError

SCHEMA_VERSION = 1
SCHEMA = """
CREATE TABLE generations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, plugin TEXT NOT NULL, project TEXT NOT NULL, version TEXT NOT NULL,
    registry TEXT NOT NULL, file TEXT NOT NULL, sha256 TEXT NOT NULL, manifest BLOB NOT NULL, trees BLOB NOT NULL,
    locked BLOB NOT NULL, trusted INTEGER NOT NULL, api TEXT NOT NULL, installed_at REAL NOT NULL,
    turn INTEGER NOT NULL, origin BLOB NOT NULL
);
CREATE TABLE plugins (
    plugin TEXT PRIMARY KEY, active INTEGER REFERENCES generations (id), disabled INTEGER NOT NULL DEFAULT 0, pin TEXT
);
CREATE TABLE types (type TEXT PRIMARY KEY, plugin TEXT NOT NULL REFERENCES plugins (plugin));
CREATE TABLE notes (key TEXT PRIMARY KEY, value BLOB NOT NULL);
"""

UNREADABLE = (TypeError, ValueError, RecursionError)
"""Exceptions that a malformed row raises."""

DAMAGED_DAYS = 90
"""Days that a damaged database is kept for whoever wants to look at it; the last one stays."""
_STAMP = "%Y%m%d-%H%M%S-%f"


class Database:
    """One SQLite file, created by the first change and opened again for each operation."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Open it for reading; yield None if it does not exist.

        Raises:
            RegistryError: It is damaged (code ``state-damaged``), or cannot be read; see `explained`.
        """
        try:
            if not os.path.lexists(self.file):
                yield None
                return
            with closing(self._open()) as database:
                yield database
        except (sqlite3.Error, OSError, *UNREADABLE) as error:
            raise self.explained(error, "read") from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction and commit it at the end. Raises OSError and sqlite3.Error."""
        self._create()
        with closing(self._open()) as database:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")

    @property
    def kept(self) -> Path:
        """The path of its copy."""
        return self.file.with_name(f"{self.file.name}.kept")

    def copy(self, *, to: Path) -> None:
        """Copy the whole file; the caller must keep writers away. Raises OSError."""
        write(to, self.file.read_bytes())

    def explained(self, error: Exception, verb: str) -> DragomanError:
        """Build an error that names the failure and its remedy; a disk error does not count as damage."""
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        message, folder = f"{self.file} cannot be {verb}: {reason}", quote(str(self.file.parent))
        name = getattr(error, "sqlite_errorname", "")
        number = error.errno if isinstance(error, OSError) else None
        if name.startswith("SQLITE_READONLY") or number in (errno.EACCES, errno.EPERM):
            return InstallError(message, hint=f"chmod u+w {quote(str(self.file))}")
        if name in ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC"):
            return InstallError(message, hint=f"free some space in {folder}")
        if isinstance(error, OSError) and (hint := remedy(error, self.file.parent)):
            return InstallError(message, hint=hint)
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return InstallError(message, hint="try again; another process is changing it")
        if self.file.is_file() and not os.access(self.file, os.R_OK):
            return RegistryError(message, hint=f"chmod u+r {quote(str(self.file))}", code="state-unreadable")
        return RegistryError(message, hint="dragoman plugins repair", code="state-damaged")

    def put_aside(self) -> Path:
        """Rename the file and its journal to mark them as damaged, and return the file's new path.

        Raises OSError: It cannot be renamed.
        """
        aside = self.file.with_name(f"{self.file.name}.damaged-{datetime.now(UTC).strftime(_STAMP)}")
        for ending in ("-journal", ""):  # SQLite would replay a leftover journal into the new file
            with suppress(FileNotFoundError):
                self.file.with_name(f"{self.file.name}{ending}").rename(aside.with_name(f"{aside.name}{ending}"))
        return aside

    def old_damaged(self) -> list[Path]:
        """List the files that `put_aside` renamed more than `DAMAGED_DAYS` ago, except the last ones."""
        form = re.compile(rf"{re.escape(self.file.name)}\.damaged-([0-9]{{8}}(?:-[0-9]{{6}}){{2}})(?:-journal)?")
        names = sorted(os.listdir(self.file.parent)) if self.file.parent.is_dir() else []  # noqa: PTH208 - names
        stamps = {name: match[1] for name in names if (match := form.fullmatch(name))}
        oldest = (datetime.now(UTC) - timedelta(days=DAMAGED_DAYS)).strftime(_STAMP)
        last = max(stamps.values(), default="")
        return [self.file.with_name(name) for name, stamp in stamps.items() if stamp < oldest and stamp != last]

    def _open(self) -> sqlite3.Connection:
        if not self.file.is_file():
            raise sqlite3.DatabaseError("it is not a file")
        # Use a rollback journal: reading a write-ahead log creates files, which fails on a full disk or in a
        # read-only home, and installed drivers must keep working there.
        address = f"{self.file.absolute().as_uri()}?mode=rw"
        database = sqlite3.connect(address, uri=True, isolation_level=None, timeout=30)
        database.row_factory = sqlite3.Row
        try:
            database.execute("PRAGMA synchronous = EXTRA")
            self._check_version(database)
        except BaseException:
            database.close()
            raise
        return database

    def _check_version(self, database: sqlite3.Connection) -> None:
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
        if version > SCHEMA_VERSION:
            from dragoman_api.file_versions import file_newer

            raise file_newer(self.file, version=version, newest=SCHEMA_VERSION, kind=RegistryError)
        if version != SCHEMA_VERSION:
            raise sqlite3.DatabaseError(f"its version is {version}; this program reads {SCHEMA_VERSION}")

    def _create(self) -> None:
        """Build the database under a temporary name, so that no process opens an incomplete one."""
        if os.path.lexists(self.file):
            return
        draft = self.file.with_name("state.db.new")
        for name in (draft.name, f"{draft.name}-journal"):
            draft.with_name(name).unlink(missing_ok=True)
        with closing(sqlite3.connect(draft, isolation_level=None)) as database:
            database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        sync(draft)
        draft.replace(self.file)
        sync(self.file.parent)
