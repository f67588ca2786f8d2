"""The names of objects and columns that commands have shown, kept so that a shell can complete them.

They lie in the state folder, a file for each connection, and nothing is asked to read them: no connection is opened.
"""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dragoman_api.errors import ConfigurationError
from dragoman_api.masking import is_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from dragoman.folders import Paths
    from dragoman_api.columns import Column

FOLDER = "known-names"
"""Their folder in the state folder."""

MAX_OBJECTS = 2_000
"""Maximum number of objects that are kept of one connection."""

MAX_DESCRIBED = 50
"""Maximum number of objects whose columns are kept; those seen last stay."""

MAX_COLUMNS = 500
"""Maximum number of columns that are kept of one object."""

MAX_NAME = 200
"""Maximum length of a name that is kept, in characters."""

MAX_FILE = 4 << 20
"""Maximum size of a file in bytes; a larger one counts as none."""

FRESH_SECONDS = 600
"""Age up to which names that have not changed are not written again."""

STALE_SECONDS = 86_400
"""Age from which names are marked: they may have changed."""


class KnownColumn(msgspec.Struct, frozen=True, array_like=True):
    """What completion needs of a column."""

    name: str
    type: str = ""
    kind: str = ""
    sortable: bool = False
    operators: tuple[str, ...] = ()


class _Columns(msgspec.Struct):
    seen: float
    columns: list[KnownColumn]


class _Names(msgspec.Struct):
    """The contents of a file; `connection` identifies the saved connection they were read from."""

    connection: str = ""
    seen: float = 0.0
    objects: list[str] = []
    columns: dict[str, _Columns] = {}


class Known(NamedTuple):
    """Names, and how old they are: ``seen 3 min ago``; empty if they were read just now."""

    names: Sequence[Any] = ()
    age: str = ""


class KnownNames:
    """What is kept of the names of all connections of one home; without a file there are no names."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._read: dict[str, _Names] = {}

    def objects(self, connection: str) -> Known:
        """Return the names of a connection's objects."""
        record = self._kept(connection)
        return Known(record.objects, age_text(time.time() - record.seen))

    def columns(self, connection: str, object: str) -> Known:
        """Return the columns of an object, as `KnownColumn`."""
        description = self._kept(connection).columns.get(object)
        return Known(description.columns, age_text(time.time() - description.seen)) if description else Known()

    def values(self, connection: str, object: str, column: str) -> Sequence[str]:
        """Return the values of a column, which are data and therefore not kept: none."""
        return ()

    def remember_objects(self, connection: str, names: Iterable[str]) -> None:
        """Keep the names of a connection's objects; if that fails, nothing is kept."""
        objects = [name for name in names if _is_kept(name)][:MAX_OBJECTS]

        def change(record: _Names) -> bool:
            if record.objects == objects and _is_fresh(record.seen):
                return False
            record.objects, record.seen = objects, time.time()
            return True

        self._change(connection, change)

    def remember_columns(self, connection: str, object: str, columns: Iterable[Column]) -> None:
        """Keep the columns of an object; if that fails, nothing is kept."""
        known_columns = [
            KnownColumn(column.name, column.type, column.kind, column.sortable, tuple(map(str, column.operators)))
            for column in columns
            if _is_kept(column.name) and _is_kept(column.type)
        ][:MAX_COLUMNS]

        def change(record: _Names) -> bool:
            before = record.columns.get(object)
            if before and before.columns == known_columns and _is_fresh(before.seen):
                return False
            record.columns[object] = _Columns(time.time(), known_columns)
            newest = sorted(record.columns, key=lambda name: record.columns[name].seen)[-MAX_DESCRIBED:]
            record.columns = {name: record.columns[name] for name in newest}
            return True

        if _is_kept(object):
            self._change(connection, change)

    def _change(self, connection: str, change: Callable[[_Names], bool]) -> None:
        from dragoman_registry import files

        def edit(data: bytes) -> bytes:
            record = self._read[connection] = self._load(connection, data)
            if not (record.connection and change(record)):
                return data
            return after if len(after := msgspec.json.encode(record)) <= MAX_FILE else data

        with suppress(OSError, ConfigurationError):
            files.change(self._file(connection), edit, durable=False)

    def _kept(self, connection: str) -> _Names:
        if (record := self._read.get(connection)) is None:
            from dragoman_registry.files import read_plain

            data = b""
            with suppress(OSError):
                data = read_plain(self._file(connection), limit=MAX_FILE)
            record = self._read[connection] = self._load(connection, data)
        return record

    def _load(self, connection: str, data: bytes) -> _Names:
        """Read what is kept of a connection; nothing if the saved connection has changed since."""
        from dragoman.settings import read_toml

        with suppress(ConfigurationError):
            if not isinstance(saved := read_toml(self._paths.connections).get(connection), dict):
                return _Names()
            mark = _mark(saved)
            with suppress(ValueError):  # msgspec's errors are ValueErrors
                record = msgspec.json.decode(data, type=_Names)
                if record.connection == mark:
                    return record
            return _Names(mark)
        return _Names()

    def _file(self, connection: str) -> Path:
        name = hashlib.sha256(connection.encode(errors="surrogatepass")).hexdigest()[:32]
        return self._paths.state / FOLDER / f"{name}.json"


async def note_objects(paths: Paths, connection: str, names: Iterable[str]) -> None:
    """Keep the names of a connection's objects for the shells of this home."""
    from anyio.to_thread import run_sync

    await run_sync(partial(KnownNames(paths).remember_objects, connection, [*names]))


async def note_columns(paths: Paths, connection: str, object: str, columns: Sequence[Column]) -> None:
    """Keep the columns of an object for the shells of this home."""
    from anyio.to_thread import run_sync

    await run_sync(partial(KnownNames(paths).remember_columns, connection, object, columns))


def age_text(seconds: float) -> str:
    """Say how old names are, and mark old ones.

    >>> age_text(2), age_text(200), age_text(9_000), age_text(-5), age_text(300_000)
    ('seen now', 'seen 3 min ago', 'seen 2 h ago', 'seen now', 'seen 3 days ago, may be stale')
    """
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= (2 * size if unit == "days" else size):
            return f"seen {int(seconds // size)} {unit} ago" + (", may be stale" if seconds >= STALE_SECONDS else "")
    return "seen now"


def _is_fresh(seen: float) -> bool:
    return 0 <= time.time() - seen < FRESH_SECONDS


def _is_kept(name: str) -> bool:
    """Return whether a name can be typed and shown: a server may call an object anything."""
    return name.isprintable() and len(name) <= MAX_NAME


def _mark(saved: dict[str, Any]) -> str:
    """Return what identifies the place that a saved connection leads to."""
    values = {key: value for key, value in saved.items() if isinstance(value, str | int) and not is_secret(key)}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
