"""Batches: rows of a file that are planned and sent together; no id occurs twice in one."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from anyio import from_thread
from msgspec import Raw

from dragoman.spellings import json_of, spell_id
from dragoman_api.cells import Json
from dragoman_api.changes import Drop, Insert, InsertBatch, OutcomeStatus
from dragoman_api.errors import DragomanError
from dragoman_api.grid import RowId

from .records import Record, RecordKey, UnplacedError, usual_uuid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dragoman_api.changes import Change

    from .sources import ImportSource

BATCH_BYTES = 5 << 19
"""The approximate maximum size in bytes of a batch's rows, so that they fit into one request."""

# JSON texts keep their digits; msgspec takes them for a type of their own
_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=lambda value: Raw(str(value).encode()))
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


def key_of(change: Change) -> RecordKey | None:
    """Return the id of a change's row, with its tenant or routing; None if the server makes the id."""
    if isinstance(change, Drop):
        return None
    row = change if isinstance(change, Insert) else change.key
    owner = row.tenant if isinstance(row, Insert) else None
    return None if row.id is None else (spell_id(row.id), owner or row.routing)


class Batch(msgspec.Struct):
    """Some rows of a file.

    Attributes:
        records: The rows that have no outcome yet.
        keys: The keys of all rows of the batch.
        rejections: The rows that are not sent.
        read: The number of the file's rows up to the end of the batch.
        place: The number of the file's bytes that were read for these rows, and their SHA-256 digest.
        last: No row follows.
    """

    records: list[Record] = msgspec.field(default_factory=list)
    keys: set[object] = msgspec.field(default_factory=set)
    rejections: list[Rejection] = msgspec.field(default_factory=list)
    read: int = 0
    place: tuple[int, str] = (0, "")
    last: bool = False


def batch_of(records: Sequence[Record], *, object: str) -> InsertBatch:  # noqa: A002 - the design's word
    """Return what records write into an object."""
    documents = [record.document for record in records]
    values = [record.values for record in records]
    ids = [record.id for record in records]
    tenants = [record.tenant for record in records]
    routings = [record.routing for record in records]
    replace = [record.replace for record in records]
    return InsertBatch(
        object, documents if any(documents) else [],
        [columns or {} for columns in values] if any(values) or not any(documents) else [],
        ids if any(ids) else [], tenants if any(tenants) else [], routings if any(routings) else [],
        replace if any(replace) else [],
    )  # fmt: skip


class Maker(Protocol):
    """Finds out what records write: `DocumentInserts`, `RowInserts` or `FieldInserts`."""

    def fill(self, record: Record) -> None:
        """Put into a record what it writes. Raises ValueError if it holds no row."""


class BatchReader:
    """Divides a file into batches, without the rows that an earlier run settled."""

    def __init__(
        self,
        records: Iterator[Record],
        *,
        maker: Maker,
        rows: int,
        source: ImportSource | None,
        place: tuple[int, str],
        uuids: bool = False,
    ) -> None:
        """Prepare to read.

        Args:
            records: The file's rows.
            maker: Finds out what they write.
            rows: The maximum number of rows of a batch.
            source: The source of the records, which knows the current place; None if `place` stays the same.
            place: The number of bytes of the whole file and their SHA-256 digest, if it is not read in order.
            uuids: The ids are uuids, so several spellings of one are the same id.
        """
        self._records, self._maker, self._rows = records, maker, rows
        self._source, self._place, self._uuids = source, place, uuids
        self._already_read, self._doubt, self._waiting = 0, Places([]), Places([])
        self._broken: DragomanError | None = None
        self._ahead: Record | None = None
        self._begun = False

    def go_on(self, read: int, *, doubt: list[Range], waiting: list[Range]) -> None:
        """Skip the first `read` rows, except those in doubt and those that were not sent."""
        self._already_read, self._doubt, self._waiting = read, Places(doubt), Places(waiting)

    def next(self) -> Batch | None:
        """Read the next batch; None at the end.

        Raises:
            DragomanError: The rest of the file cannot be read; all rows before it are in earlier batches.
        """
        batch, size, passed = Batch(), 0, 0
        records, keys, rejections = batch.records, batch.keys, batch.rejections
        already_read, row_limit, uuids = self._already_read, self._rows, self._uuids
        try:
            if not self._begun:
                self._begun = True
                self._ahead = next(self._records, None)
            while (record := self._ahead) is not None and len(records) < row_limit and size < BATCH_BYTES:
                if record.number <= already_read:
                    record.doubt = record.number in self._doubt
                    if not record.doubt and record.number not in self._waiting:
                        passed += 1
                        if not passed % _SOME:
                            from_thread.check_cancelled()
                        self._ahead = next(self._records, None)
                        continue
                if (rejection := self._fill(record)) is None:
                    if uuids and (row_id := record.id) is not None:
                        if len(row_id) != 36 or row_id[8:24:5] != "----":
                            record.address = usual_uuid(row_id)
                        elif not row_id.islower():  # which says nothing of digits alone
                            record.address = row_id.lower()
                    if (row := record.address or record.id) is not None:
                        key = row, record.tenant or record.routing
                        if key in keys:  # the first of the two is written first
                            break
                        keys.add(key)
                    records.append(record)
                    size += len(record.data) if record.data.__class__ is bytes else _size(record)
                else:
                    rejections.append(rejection)
                batch.read = record.number
                self._ahead = next(self._records, None)
                if len(rejections) >= row_limit:
                    break
        except DragomanError as error:
            self._ahead, self._broken = None, error
        if not batch.read:
            if self._broken is not None:
                raise self._broken
            return None
        batch.last = self._ahead is None
        batch.place = self._source.place if self._source else self._place
        return batch

    def _fill(self, record: Record) -> Rejection | None:
        """Find out what a record writes; return why it writes nothing."""
        if record.fault:
            return Rejection(record, "unreadable", record.fault)
        try:
            self._maker.fill(record)
        except (ValueError, RecursionError) as error:
            code = "refused" if isinstance(error, UnplacedError) else "unreadable"
            return Rejection(record, code, str(error))
        return Rejection(record, "unknown", _IN_DOUBT) if record.doubt and record.key is None else None


def _size(record: Record) -> int:
    values = (record.values or {}).values()
    return 40 + sum(16 + (len(value) if isinstance(value, str | bytes) else 8) for value in values)


def ranges(numbers: Iterable[int]) -> list[Range]:
    """Return numbers, sorted and each once, as ranges.

    >>> ranges([1, 2, 3, 7, 9, 10])
    [(1, 3), (7, 7), (9, 10)]
    """
    numbers = [*numbers]
    if numbers and numbers[-1] - numbers[0] == len(numbers) - 1:
        return [(numbers[0], numbers[-1])]
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


def rejected_lines(rejections: Sequence[Rejection], names: Sequence[str]) -> bytes:
    """Return one line for each rejected row: its number, code and reason, and the row as it was read.

    Args:
        rejections: The rejected rows.
        names: The columns of a table; empty for rows that are lines.
    """
    lines = []
    for rejection in rejections:
        line: dict[str, Any] = {"row": rejection.record.number, "code": rejection.code, "reason": rejection.reason}
        if rejection.id is not None:
            line["id"] = json_of(rejection.id)
        line["data"] = _as_read(rejection.record, names)
        lines.append(line)
    return _encoder.encode_lines(lines) if lines else b""


def _as_read(record: Record, names: Sequence[str]) -> object:
    data = record.data
    if isinstance(data, list):
        values = [*map(_as_json, data)]
        return dict(zip(names, values, strict=False)) if len(names) == len(values) else values
    parts = [_json_or_text(part) for part in data.split(b"\n")] if not record.fault else [data.decode(errors="replace")]
    return parts[0] if len(parts) == 1 else parts


def _as_json(value: Any) -> Any:
    """Return a value of a table in a type that JSON has; a number that JSON lacks becomes text: ``NaN`` or ``-inf``."""
    match value:
        case Json() | bool() | None:
            return value
        case str():
            return str(value)
        case float() if not isfinite(value):
            return "NaN" if isnan(value) else str(value)
        case list() | tuple():
            return [*map(_as_json, value)]
        case dict():
            return {str(name): _as_json(member) for name, member in value.items()}
        case int() | float() | Decimal() | bytes() | date() | time():
            return value
    return str(value)


def _json_or_text(data: bytes) -> object:
    try:
        data.decode()
        msgspec.json.decode(data, type=Raw)
    except (ValueError, RecursionError):
        return data.decode(errors="replace")
    return Raw(data)
