"""CSV and TSV: lines of fields to records, as RFC 4180 says; fields in quotes are told apart from others."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from dragoman.spellings import Quoted
from dragoman_api.errors import ConfigurationError

from .records import RECORD_BYTES, Record, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sources import ImportSource

_DELIMITERS = ";\t,|"
"""What files separate fields with, the likeliest first."""

_INSIDE = re.compile(r'(?:[^"]++|"")*+')


class SeparatedRows:
    """The rows of a CSV or TSV file.

    Attributes:
        names: The names of its columns: the fields of its first line.
        likely: What seems to separate the fields of the first line, if nothing else does; empty if nothing does.
    """

    def __init__(self, source: ImportSource, *, delimiter: str) -> None:
        """Read the first line.

        Raises:
            ConfigurationError: It does not name columns, or nothing separates fields like that.
        """
        if len(delimiter) != 1 or delimiter in '"\r\n':
            text = f"a delimiter is one character that is no quote and no end of a line, not {delimiter[:20]!r}"
            raise ConfigurationError(text, hint="--delimiter ';'", code="delimiter-unknown")
        self._comma = delimiter
        self._lines = split_lines(source)
        self._number = 0
        head = next(self._read(), None)
        fault = head.fault if head else "it is empty"
        self.names = ["" if name is None else str(name) for name in head.data] if head and not fault else []
        if not fault and (twice := [name for name, count in Counter(self.names).items() if count > 1]):
            fault = f"the column {min(twice)!r} occurs twice in its first line"
        if fault:
            raise ConfigurationError(f"{source.name} has no line of column names: {fault}")
        self._number = 0
        counts = {sign: self.names[0].count(sign) for sign in _DELIMITERS} if len(self.names) == 1 else {}
        self.likely = max(counts, key=lambda sign: counts[sign]) if any(counts.values()) else ""

    def __iter__(self) -> Iterator[Record]:
        width = len(self.names)
        for record in self._read():
            if not record.fault and len(record.data) != width:
                record.fault = f"it has {len(record.data)} fields, and the file has {width} columns"
            yield record

    def _read(self) -> Iterator[Record]:
        begun: list[bytes] = []
        size = read = 0
        row = _Row(self._comma)
        for line, fault in self._lines:
            if not begun and not line.strip(b"\r"):
                continue
            begun.append(line)
            size += len(line) + 1
            if fault or size > RECORD_BYTES:
                yield self._record(b"\n".join(begun)[:RECORD_BYTES], fault or "a quoted field is not closed")
            elif len(begun) > 1 and b'"' not in line:
                continue  # the field is still open
            else:
                try:
                    closed = row.add(b"\n".join(begun[read:]).decode())
                except UnicodeDecodeError as error:
                    data = b"\n".join(begun)
                    before = len(data) - len(error.object)
                    error.object, error.start, error.end = data, error.start + before, error.end + before
                    yield self._record(data, f"it is not UTF-8: {error}")
                except ValueError as error:
                    yield self._record(b"\n".join(begun), str(error))
                else:
                    if not closed:
                        read = len(begun)
                        continue
                    self._number += 1
                    yield Record(self._number, row.fields)
            begun, size, read, row = [], 0, 0, _Row(self._comma)
        if begun:
            yield self._record(b"\n".join(begun), "a quoted field is not closed")

    def _record(self, data: bytes, fault: str) -> Record:
        self._number += 1
        return Record(self._number, data, fault)


class _Row:
    """The fields of one row, whose lines are read one after another, each once.

    Attributes:
        fields: The fields so far.
    """

    def __init__(self, comma: str) -> None:
        self._comma = comma
        self.fields: list[str | None] = []
        self._open: list[str] = []  # what a quoted field holds so far, by line

    def add(self, lines: str) -> bool:
        """Read further lines; return whether the row ends with them: a quoted field may go on in the next one.

        Raises:
            ValueError: A quoted field is followed by more than a separator.
        """
        text, at = lines.removesuffix("\r"), 0
        if not self._open and '"' not in text:
            self.fields = [field or None for field in text.split(self._comma)]
            return True
        while True:
            if self._open or text[at : at + 1] == '"':
                begin = at if self._open else at + 1
                found = _INSIDE.match(text, begin)
                assert found is not None
                at = found.end()
                if at == len(text):
                    self._open.append(lines[begin:])
                    return False
                self.fields.append(Quoted("\n".join([*self._open, found[0]]).replace('""', '"')))
                self._open = []
                at += 1
                if text[at : at + 1] not in ("", self._comma):
                    raise ValueError("a quoted field is followed by more than a separator")
            else:
                end = text.find(self._comma, at)
                end = len(text) if end < 0 else end
                self.fields.append(text[at:end] or None)
                at = end
            if at >= len(text):
                return True
            at += 1
            if at == len(text):  # the line ends with a separator
                self.fields.append(None)
                return True
