"""Records of a file: each is one row as it was read, with its number, by which a person finds it again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api.errors import ConfigurationError

from .sources import DAMAGED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sources import ImportSource

RECORD_BYTES = 3 << 20
"""Maximum size of a record, in bytes; no driver plans a longer row."""

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
