"""Records of a file: rows as they were read, with their numbers, and the documents that they become."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman.spellings import spell_id
from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import decode_once

from .sources import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_api.columns import Description

    from .sources import ImportSource

RECORD_BYTES = 3 << 20
"""Maximum size of a record, in bytes; no driver plans a longer row."""

NOT_UTF_8 = "it is not UTF-8"
"""How the fault of a row begins whose bytes are no UTF-8."""

LIKELY_ENCODING = "windows-1252"
"""The encoding that a text most likely has if it is not UTF-8: spreadsheets write it, and it holds ISO 8859-1."""

_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("|\\?\Z)|[\[\]{},]', re.DOTALL)
_REST = re.compile(rb'(?:[^"\\]++|\\.)*+("|\\?\Z)', re.DOTALL)


class Record(msgspec.Struct, gc=False):
    """One row of a file on its way: as it was read, what is to be written, and how far it came.

    Attributes:
        number: The number of the row in the file, from 1.
        data: The bytes of the row, or its fields in a table.
        fault: The reason why the row cannot be read; empty if it can.
        plain: No field is `Quoted`, and none begins like JSON that is an array, an object or a text.
        document, values, id, tenant, routing, replace: The `Insert` that writes the row.
        address: What identifies the row, if that is not `id` as it stands: the usual spelling of a uuid, or the parts
            of a key of several columns, which are among the values.
        doubt: An earlier attempt of this load may have written the row.
        sent: The row is being sent.
        noted: The change that takes the row back is on disk.
    """

    number: int
    data: bytes | list[Any]
    fault: str = ""
    plain: bool = False
    document: str | None = None
    values: dict[str, Any] | None = None
    id: str | None = None
    tenant: str | None = None
    routing: str | None = None
    replace: bool = False
    address: str | None = None
    doubt: bool = False
    sent: bool = False
    noted: bool = False

    @property
    def uncertain(self) -> bool:
        """Whether the row may have been written."""
        return self.doubt or self.sent

    @property
    def key(self) -> RecordKey | None:
        """What identifies the row at the server; None if the server makes the id."""
        row = self.address or self.id
        return None if row is None else (row, self.tenant or self.routing)


RecordKey = tuple[str, str | None]
"""The id of a row, or the spelled parts of its key, with its tenant or routing."""


def too_long(size: int) -> str:
    """Return the reason why a row of `size` bytes is refused."""
    return f"the row has {size:,} bytes, and a row has {RECORD_BYTES:,} at most"


def split_lines(source: ImportSource | _Again) -> Iterator[tuple[bytes, str]]:
    """Yield the lines of a source without their line ends; for a line that is too long, its beginning and a fault."""
    for lines, fault in split_blocks(source):
        for line in lines:
            yield line, fault


def split_blocks(source: ImportSource | _Again) -> Iterator[tuple[list[bytes], str]]:
    """Yield the lines of a source like `split_lines`, but all lines of a block at once, or one that has a fault."""
    rest, dropped, first = b"", 0, True
    while True:
        block = source.read()
        *lines, end = (rest + block).split(b"\n") if block else (rest, b"")
        ended = bool(lines)
        if first and lines:
            lines[0], first = lines[0].removeprefix(_BOM), False
        if lines and dropped + len(lines[0]) > RECORD_BYTES:
            yield [lines[0][:RECORD_BYTES]], too_long(dropped + len(lines[0]))
            del lines[0]
        elif not block and not rest:
            lines = []
        if len(block) <= RECORD_BYTES:  # all but the first lie in the block
            yield lines, ""
        else:
            for line in lines:
                size = len(line)
                yield [line[:RECORD_BYTES]], too_long(size) if size > RECORD_BYTES else ""
        if not block:
            return
        dropped = 0 if ended else dropped
        rest = end
        if len(rest) > RECORD_BYTES:  # only its size is counted from now on
            dropped += len(rest) - RECORD_BYTES
            rest = rest[:RECORD_BYTES]


def read_values(source: ImportSource | _Again) -> Iterator[Record]:
    """Yield one record for each JSON value, on one line, or on several lines as ``jq .`` prints them.

    No JSON string goes on in the next line, so blanks join the lines of one value. A broken line costs the value that
    it is in, and at most the one after it.
    """
    number = depth = size = 0
    lines: list[bytes] = []  # of a value that is not closed yet
    end = b""
    whole = b""  # a line that looks like a whole object, which it is unless the next one goes on with it

    def joined(fault: str = "") -> Record:
        return Record(number, b" ".join(lines)[:RECORD_BYTES], too_long(size) if size > RECORD_BYTES else fault)

    for block, fault in split_blocks(source):
        for line in block:
            data = line.strip(_BLANK)
            if not data:
                continue
            begins = data[0] == _BRACE
            if begins and data[-1] == _END and not lines and not fault:
                if whole:
                    number += 1
                    yield Record(number, whole)
                whole = data
                continue
            if whole:
                if not begins and _is_open(whole):
                    lines, size, end, depth = [whole], len(whole), whole[-1:], _opened(whole)[0]
                else:
                    number += 1
                    yield Record(number, whole)
                whole = b""
            if lines and (not begins or end in _GOES_ON):
                if size <= RECORD_BYTES:
                    lines.append(data)
                depth, size, end = depth + _opened(data)[0], size + 1 + len(line if fault else data), data[-1:]
                if depth <= 0:
                    number += 1
                    yield joined(fault)
                    lines = []
                continue
            if lines:
                number += 1
                yield joined("it ends in its middle, and another row begins")
                lines = []
                if data[-1] == _END and not fault:
                    whole = data
                    continue
            closed = _CLOSED.get(data[:1], b"")
            if (
                closed
                and not fault
                and (data[-1:] != closed or data.count(b"{") != data.count(b"}"))
                and _is_open(data)
            ):
                lines, size, end, depth = [data], len(data), data[-1:], _opened(data)[0]
                continue
            number += 1
            yield Record(number, data, fault)
    if _is_open(whole):
        lines, size = [whole], len(whole)
    elif whole:
        yield Record(number + 1, whole)
    if lines:
        number += 1
        yield joined("the file ends in its middle")


_BRACE, _END = b"{}"
_CLOSED = {b"{": b"}", b"[": b"]"}
_GOES_ON = (b":", b",", b"[")
"""Ends of a line after which a brace on the next line belongs to the same value."""


def _opened(line: bytes) -> tuple[int, bool]:
    """Return the number of objects and arrays that a line leaves open, and whether its last string is closed."""
    depth, closed = 0, True
    for token in _TOKEN.finditer(line):
        if token[1] is not None:
            closed = token[1] == b'"'
        else:
            sign = token[0]
            depth += (sign in b"[{") - (sign in b"]}")
    return depth, closed


def _is_open(line: bytes) -> bool:
    """Return whether a line begins a value that the next line may continue."""
    depth, closed = _opened(line)
    return depth > 0 and closed


def read_pairs(source: ImportSource) -> Iterator[Record]:
    """Yield the records of a bulk file: an action line and its document, or one line that holds both."""
    number, action, fault = 0, b"", ""
    for line, wrong in split_lines(source):
        data = line.strip(_BLANK)
        if not data:
            continue
        if action:
            number += 1
            yield Record(number, action + b"\n" + data, fault or wrong)
            action, fault = b"", ""
        elif _ACTION.match(data):
            action, fault = data, wrong
        else:
            number += 1
            yield Record(number, data, wrong)
    if action:
        yield Record(number + 1, action, "the file ends before the document of this action")


_ACTION = re.compile(rb'\{\s*"(?:index|create)"\s*:\s*\{')


def read_array(source: ImportSource) -> Iterator[Record]:
    """Yield the elements of one JSON array; if the file holds no array, its values as `read_values` does.

    Raises:
        ConfigurationError: The array is not closed, or something follows it (code ``import-file-damaged``).
    """
    data = _begin(source)
    if data[:1] != b"[":
        yield from read_values(_Again(source, data))
        return
    number, depth, begin, at = 0, 0, 1, 0
    dropped, inside = 0, False  # bytes of a long element; at the end of a block, a text may go on in the next one
    while True:
        if inside and (rest := _REST.match(data, at)) is not None:
            inside = rest[1] != b'"'
            at = rest.end() if not inside else rest.start(1)
        for token in _TOKEN.finditer(data, at) if not inside else ():
            at = token.end()
            if token[1] is not None:
                if token[1] != b'"':
                    at, inside = token.start(1), True
                continue
            sign = token[0]
            depth += (sign in b"[{") - (sign in b"]}")
            if depth == 0 or (depth == 1 and sign == b","):
                element = data[begin : token.start()].strip(_BLANK)
                begin = at
                if element or sign == b",":
                    number += 1
                    size = dropped + len(element)
                    yield Record(number, element[:RECORD_BYTES], too_long(size) if size > RECORD_BYTES else "")
                dropped = 0
            if depth == 0:
                if data[at:].strip(_BLANK) or _begin(source):
                    text = f"{source.name} is damaged: something follows its JSON array"
                    raise ConfigurationError(text, hint="give it one value a line, or one array", code=DAMAGED)
                return
        at = at if inside else len(data)
        data, at, begin = data[begin:], at - begin, 0
        if at > RECORD_BYTES:  # only its size is counted from now on
            head = data[:at].lstrip(_BLANK)
            whole = head if inside else head.rstrip(_BLANK)
            dropped += max(0, len(whole) - RECORD_BYTES)
            head, after = whole[:RECORD_BYTES] + head[len(whole) : len(whole) + 1], data[at:]
            data, at = head + after, len(head)
        block = source.read()
        if not block:
            raise ConfigurationError(f"{source.name} is damaged: its JSON array is not closed", code=DAMAGED)
        data += block


def _begin(source: ImportSource) -> bytes:
    """Return the first block from its first byte on that is not blank."""
    data = b""
    while (block := source.read()) and not (data := (data + block).removeprefix(_BOM).lstrip(_BLANK)).strip(_BOM):
        pass
    return data


class _Again:
    """A source whose first block has been read already."""

    def __init__(self, source: ImportSource, block: bytes) -> None:
        self._source, self._block = source, block

    def read(self) -> bytes:
        """Return the next block."""
        block, self._block = self._block, b""
        return block or self._source.read()


# rows as documents ----------------------------------------------------------------------------------------------------

Members = dict[str, Raw]

_members = msgspec.json.Decoder(Members)
_text = msgspec.json.Decoder(str)
_encoder = msgspec.json.Encoder()


class UnplacedError(ValueError):
    """The target has no place for a member of a row, which is refused; the message names the member and a remedy."""


def object_of(data: bytes) -> Members:
    """Return the members of a JSON object. Raises ValueError if the text is not one, or holds a name twice."""
    try:
        return decode_once(data, _members)
    except ValueError as error:
        raise ValueError(f"it is not a JSON object: {error}") from None


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """The wishes of a caller for every row.

    Attributes:
        object: The object that receives the rows.
        id: The column whose value becomes the row's id; None to take the file's own ids, or the server's.
        renamed: New names of columns by their old ones; an empty name leaves the column out.
        replace: A row may replace an existing row with the same id.
        tenant: The tenant that receives the rows; None for the tenant that each row names.
    """

    object: str
    id: str | None = None
    renamed: Mapping[str, str] = msgspec.field(default_factory=dict)
    replace: bool = False
    tenant: str | None = None


def has_uuids(description: Description) -> bool:
    """Return whether the ids of an object's rows are UUIDs, so that several spellings of one are the same id."""
    return [column.type for column in description.columns if column.is_key] == ["uuid"]


def usual_uuid(text: str) -> str:
    """Return the usual spelling of a uuid; a text that is none stays, since the driver refuses it.

    >>> usual_uuid("{8F14E45F-CEEA-467A-9575-9C7A7A1A2B3C}")
    '8f14e45f-ceea-467a-9575-9c7a7a1a2b3c'
    """
    from dragoman_api.kit.operands import uuid

    try:
        return uuid(text)
    except ValueError:
        return text


def address_of(values: Mapping[str, Any], key: Mapping[str, bool]) -> str | None:
    """Return the spelled parts of a key of several columns, as drivers make them (`Insert.with_key`); None without one.

    Args:
        values: The values of a row.
        key: The columns of the key, and whether the parts of each are uuids.
    """
    parts: list[Any] = []
    for name, is_uuid in key.items():
        if (value := values.get(name)) is None:
            return None
        part = value if isinstance(value, int | bytes) else str(value)
        parts.append(usual_uuid(part) if is_uuid and isinstance(part, str) else part)
    return spell_id(parts)


def id_elsewhere(column: str) -> str:
    """Return why the id that the file has is not used, where a column is wished to be the id."""
    return f"--id takes the id of each row from {column!r}, so it is left out"


def check_id(wishes: Wishes, description: Description) -> None:
    """Raise ConfigurationError if one column is wished to be the id of rows whose key has several columns."""
    keys = [column.name for column in description.columns if column.is_key]
    if wishes.id is not None and len(keys) > 1:
        text = f"a row of {wishes.object!r} is identified by {', '.join(keys)}, so no one column can be its id"
        raise ConfigurationError(text, hint="leave out --id; --map OLD=NEW gives columns of the file these names")


def read_id(value: object, column: str) -> str:
    """Return the id that a value stands for. Raises ValueError if no row can have such an id."""
    if isinstance(value, Raw):
        data = bytes(value)
        value = _text.decode(data) if data[:1] == b'"' else int(data) if data.lstrip(b"-").isdigit() else None
    if value is None or value == "" or not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError(f"its column {column!r} holds no text and no whole number, so it has no id")
    return str(value)


class DocumentInserts:
    """Lines that are documents as the server stores them; they keep their bytes."""

    def __init__(self, wishes: Wishes, description: Description) -> None:
        self._wishes = wishes
        self._keys = {column.name for column in description.columns if column.is_key}
        self._plain = wishes.id is None and not wishes.renamed

    def fill(self, record: Record) -> None:
        """Put into a record what it writes. Raises ValueError if it holds no row."""
        assert isinstance(record.data, bytes)
        record.tenant = self._wishes.tenant
        self.fill_in(record, record.data)

    def fill_in(self, record: Record, data: bytes, *, renamed: Mapping[str, str] | None = None) -> None:
        """Put a document into a record, and the id that it holds. Raises ValueError if it is no JSON object.

        Args:
            record: The record.
            data: The document.
            renamed: New names of its columns by their old ones; None for those that the caller wishes.
        """
        wishes = self._wishes
        if self._plain:
            record.document = check_object(data)
        else:
            members, changed = object_of(data), False
            renamed = wishes.renamed if renamed is None else renamed
            if renamed and not renamed.keys().isdisjoint(members):
                members, changed = _renamed(members, renamed), True
            if wishes.id is not None:
                if (raw_id := _at(members, wishes.id)) is None:
                    raise ValueError(f"it has no column {wishes.id!r}, which --id names")
                record.id = read_id(raw_id, wishes.id)
                if wishes.id in self._keys:  # a document does not repeat its key
                    members = {name: value for name, value in members.items() if name != wishes.id}
                    changed = True
            record.document = (_encoder.encode(members) if changed else data).decode()
        record.replace = wishes.replace and record.id is not None


class _Object(msgspec.Struct):
    """Any JSON object: its members are checked and not kept."""


_object = msgspec.json.Decoder(_Object)


def check_object(data: bytes) -> str:
    """Return the text of a JSON object. Raises ValueError if it is none."""
    try:
        text = data.decode()
        _object.decode(data)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ValueError(f"it is not a JSON object: {reason}") from None
    return text


def _renamed(members: Members, names: Mapping[str, str]) -> Members:
    sources: dict[str, str] = {}
    for old in members:
        if (new := names.get(old, old)) and (other := sources.setdefault(new, old)) != old:
            raise ValueError(f"--map gives its columns {other!r} and {old!r} one name, {new!r}")
    return {new: members[old] for new, old in sources.items()}


def _at(members: Members, name: str) -> Raw | None:
    """Find a member by its dotted name; a literal key wins over a nested path."""
    if (member := members.get(name)) is not None or "." not in name:
        return member
    head, _, rest = name.partition(".")
    inner = bytes(members.get(head, b""))
    return _at(_members.decode(inner), rest) if inner[:1] == b"{" else None
