"""Batches: rows of a file that are planned and sent together; no id occurs twice in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
from anyio import from_thread

from dragoman.spellings import spell_id
from dragoman_api.changes import Drop, Insert, OutcomeStatus
from dragoman_api.grid import RowId

from .inserts import UnplacedError
from .records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dragoman_api.changes import Change
    from dragoman_api.errors import DragomanError

    from .sources import ImportSource

BATCH_BYTES = 5 << 19
"""The approximate maximum size in bytes of a batch's rows, so that they fit into one request."""

_SOME = 1_000  # skipped rows between two looks at whether the load was stopped
_IN_DOUBT = (
    "it was sent before the load was interrupted, and no answer came; the server makes its id, so sending it again "
    "could double it: look whether it is there"
)


Range = tuple[int, int]
"""The numbers of the first and the last row of a range."""


def no_counts() -> dict[str, int]:
    """Return a count of 0 for every outcome."""
    return dict.fromkeys(map(str, OutcomeStatus), 0)


class Rejection(msgspec.Struct, frozen=True):
    """A row that was not written, and the reason; `code` is its outcome, or ``unreadable``."""

    record: Record
    code: str
    reason: str
    id: RowId | None = None


class Entry(msgspec.Struct):
    """One row to be written.

    Attributes:
        record: The row as it was read.
        insert: The change that writes the row.
        doubt: An earlier attempt of this load may have written the row.
        sent: The row is being sent.
        noted: The change that takes the row back is on disk.
    """

    record: Record
    insert: Insert
    doubt: bool = False
    sent: bool = False
    noted: bool = False

    @property
    def uncertain(self) -> bool:
        """Whether the row may have been written."""
        return self.doubt or self.sent

    @property
    def key(self) -> tuple[str, str | None] | None:
        """The row's id, with its tenant or routing; None if the server makes the id."""
        return key_of(self.insert)


def key_of(change: Change) -> tuple[str, str | None] | None:
    """Return the id of a change's row, with its tenant or routing; None if the server makes the id."""
    if isinstance(change, Drop):
        return None
    row = change if isinstance(change, Insert) else change.key
    owner = row.tenant if isinstance(row, Insert) else None
    return None if row.id is None else (spell_id(row.id), owner or row.routing)


class Batch(msgspec.Struct):
    """Some rows of a file.

    Attributes:
        entries: The rows that have no outcome yet.
        keys: The keys of all rows of the batch.
        rejections: The rows that are not sent.
        read: The number of the file's rows up to the end of the batch.
        place: The number of the file's bytes that were read for these rows, and their SHA-256 digest.
        last: No row follows.
    """

    entries: list[Entry] = msgspec.field(default_factory=list)
    keys: set[object] = msgspec.field(default_factory=set)
    rejections: list[Rejection] = msgspec.field(default_factory=list)
    read: int = 0
    place: tuple[int, str] = (0, "")
    last: bool = False


class Maker(Protocol):
    """Turns records into inserts: `DocumentInserts`, `RowInserts` or `FieldInserts`."""

    def insert(self, record: Record) -> Insert:
        """Return the insert for a record. Raises ValueError if the record holds no row."""


class BatchReader:
    """Divides a file into batches, without the rows that an earlier run settled."""

    def __init__(
        self, records: Iterator[Record], *, maker: Maker, rows: int, source: ImportSource | None, place: tuple[int, str]
    ) -> None:
        """Prepare to read.

        Args:
            records: The file's rows.
            maker: Turns them into inserts.
            rows: The maximum number of rows of a batch.
            source: The source of the records, which knows the current place; None if `place` stays the same.
            place: The number of bytes of the whole file and their SHA-256 digest, if it is not read in order.
        """
        self._records, self._maker, self._rows = records, maker, rows
        self._source, self._place = source, place
        self._known, self._doubt, self._waiting = 0, Places([]), Places([])
        self._broken: DragomanError | None = None
        self._ahead: Record | None = None
        self._begun = False

    def go_on(self, read: int, *, doubt: list[Range], waiting: list[Range]) -> None:
        """Skip the first `read` rows, except those in doubt and those that were not sent."""
        self._known, self._doubt, self._waiting = read, Places(doubt), Places(waiting)

    def next(self) -> Batch | None:
        """Read the next batch; None at the end.

        Raises:
            DragomanError: The rest of the file cannot be read; all rows before it are in earlier batches.
        """
        if not self._begun:
            self._begun = True
            self._step()
        batch, size, passed = Batch(), 0, 0
        while (record := self._ahead) is not None and len(batch.entries) < self._rows and size < BATCH_BYTES:
            doubt = False
            if record.number <= self._known:
                doubt = record.number in self._doubt
                if not doubt and record.number not in self._waiting:
                    passed += 1
                    if not passed % _SOME:
                        from_thread.check_cancelled()
                    self._step()
                    continue
            entry = self._entry(record, batch, doubt=doubt)
            if entry is not None:
                key = entry.key
                if key is not None:
                    if key in batch.keys:  # the first of the two is written first
                        break
                    batch.keys.add(key)
                batch.entries.append(entry)
                size += _size(entry)
            batch.read = record.number
            self._step()
            if len(batch.rejections) >= self._rows:
                break
        if not batch.read:
            if self._broken is not None:
                raise self._broken
            return None
        batch.last = self._ahead is None
        batch.place = self._source.place if self._source else self._place
        return batch

    def _step(self) -> None:
        from dragoman_api.errors import DragomanError

        try:
            self._ahead = next(self._records, None)
        except DragomanError as error:
            self._ahead, self._broken = None, error

    def _entry(self, record: Record, batch: Batch, *, doubt: bool) -> Entry | None:
        if record.fault:
            batch.rejections.append(Rejection(record, "unreadable", record.fault))
            return None
        try:
            insert = self._maker.insert(record)
        except (ValueError, RecursionError) as error:
            code = "refused" if isinstance(error, UnplacedError) else "unreadable"
            batch.rejections.append(Rejection(record, code, str(error)))
            return None
        if doubt and insert.id is None:
            batch.rejections.append(Rejection(record, "unknown", _IN_DOUBT))
            return None
        return Entry(record, insert, doubt)


def _size(entry: Entry) -> int:
    data, insert = entry.record.data, entry.insert
    if isinstance(data, bytes):
        return len(data)
    return 40 + sum(16 + (len(value) if isinstance(value, str | bytes) else 8) for value in insert.values.values())


def ranges(numbers: Iterable[int]) -> list[Range]:
    """Return sorted numbers as ranges.

    >>> ranges([1, 2, 3, 7, 9, 10])
    [(1, 3), (7, 7), (9, 10)]
    """
    spans: list[Range] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return spans


def merged(parts: Sequence[Range]) -> list[Range]:
    """Return the ranges in order, with those that touch merged.

    >>> merged([(5, 9), (1, 4), (20, 21)])
    [(1, 9), (20, 21)]
    """
    spans: list[Range] = []
    for first, last in sorted(parts):
        if spans and spans[-1][1] >= first - 1:
            spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
        else:
            spans.append((first, last))
    return spans


class Places:
    """Tells for increasing numbers whether they lie in some ranges."""

    def __init__(self, parts: Sequence[Range]) -> None:
        self._left = merged(parts)
        self._left.reverse()

    def __contains__(self, number: object) -> bool:
        assert isinstance(number, int)
        while self._left and self._left[-1][1] < number:
            self._left.pop()
        return bool(self._left) and self._left[-1][0] <= number
