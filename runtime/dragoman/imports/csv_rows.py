"""Tables: lines of CSV and TSV become records, by RFC 4180."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.spellings import SCALAR_SIGNS, Quoted
from dragoman_api.errors import ConfigurationError

from .records import LIKELY_ENCODING, NOT_UTF_8, RECORD_BYTES, Record, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sources import ImportSource

_DELIMITERS = ";\t,|"
"""Characters that files separate fields with, the likeliest first."""

_INSIDE = re.compile(r'(?:[^"]++|"")*+')
_QUOTED = re.compile(r'"[^"]*+(?:""[^"]*+)*+"')
_QUOTED_OR_OPEN = re.compile(rb'"[^"]*+(?:""[^"]*+)*+(?:"|\Z)')
"""Also a field in quotes that ends in a later line."""


class SeparatedRows:
    """The rows of a CSV or TSV file.

    Attributes:
        names: The names of the columns: the fields of the first line.
        likely: The character that seems to separate fields, if the delimiter does not; empty if there is none.
    """

    def __init__(self, source: ImportSource, *, delimiter: str, exact: bool = False) -> None:
        """Read the first line.

        Args:
            source: The file.
            delimiter: The character that separates fields.
            exact: The file is an unchanged export, so fields in quotes become `Quoted`.

        Raises:
            ConfigurationError: The first line names no columns, or the lines end with a carriage return alone.
        """
        if len(delimiter) != 1 or delimiter in '"\r\n':
            text = f"a delimiter is one character that is no quote and no end of a line, not {delimiter[:20]!r}"
            raise ConfigurationError(text, hint="--delimiter ';'", code="delimiter-unknown")
        self._comma, self._exact = delimiter, exact
        sign = re.escape(delimiter)
        # All of a line is matched: what is no field in quotes, but begins like one, goes on to the end.
        self._field = re.compile(rf'{sign}({_QUOTED.pattern}(?![^{sign}])|(?!")[^{sign}]*+|".*)', re.DOTALL)
        lines = split_lines(source)
        first = [*islice(lines, 1)]
        if first and b"\r" in _QUOTED_OR_OPEN.sub(b"", first[0][0]).rstrip(b"\r"):
            text = f"{source.name} ends its lines with a carriage return (CR) alone, and an import reads LF and CR LF"
            raise ConfigurationError(text, hint=r"tr '\r' '\n' <OLD >NEW, then import NEW")
        self._lines = chain(first, lines)
        self._number = 0
        head = next(self._read(), None)
        fault = head.fault if head else "it is empty"
        self.names = ["" if name is None else str(name) for name in head.data] if head and not fault else []
        if not fault and (twice := [name for name, count in Counter(self.names).items() if count > 1]):
            fault = f"the column {min(twice)!r} occurs twice in its first line"
        if fault:
            hint = f"--encoding {LIKELY_ENCODING}" if fault.startswith(NOT_UTF_8) else ""
            raise ConfigurationError(f"{source.name} has no line of column names: {fault}", hint=hint)
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
        row = _Row(self._comma, exact=self._exact)
        for line, fault in self._lines:
            if not begun:
                if not line.strip(b"\r"):
                    continue
                if not fault and len(line) < RECORD_BYTES and (record := self._whole(line)) is not None:
                    yield record
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
                    yield self._record(data, f"{NOT_UTF_8}: {error}")
                except ValueError as error:
                    yield self._record(b"\n".join(begun), str(error))
                else:
                    if not closed:
                        read = len(begun)
                        continue
                    self._number += 1
                    yield Record(self._number, row.fields)
            begun, size, read, row = [], 0, 0, _Row(self._comma, exact=self._exact)
        if begun:
            yield self._record(b"\n".join(begun), "a quoted field is not closed")

    def _whole(self, line: bytes) -> Record | None:
        """Return the row that a line holds; None if the line is not a whole row, or is not UTF-8."""
        try:
            text = line.decode().removesuffix("\r")
        except UnicodeDecodeError:
            return None
        fields: list[Any]
        plain = "[" not in text and "{" not in text
        if '"' not in text:
            fields = text.split(self._comma)
            if "" in fields:
                fields = [field or None for field in fields]
        elif (parts := self._parts(text)) is not None:
            fields, plain = parts, plain and not self._exact and '"""' not in text
        else:
            return None
        self._number += 1
        return Record(self._number, fields, "", plain)

    def _parts(self, text: str) -> list[str | None] | None:
        """Return the fields of a line with quotes; None if the last one goes on in the next line."""
        if not self._exact and text[0] == '"' == text[-1]:
            fields: list[Any] = text[1:-1].split(f'"{self._comma}"')
            if text.count('"') == 2 * len(fields):  # all stand in quotes, and none holds one
                return fields
        parts = self._field.findall(self._comma + text)
        if parts[-1][:1] == '"' and not _QUOTED.fullmatch(parts[-1]):
            return None
        if self._exact:
            return [_marked(part[1:-1].replace('""', '"')) if part[:1] == '"' else part or None for part in parts]
        return [part[1:-1].replace('""', '"') if part[:1] == '"' else part or None for part in parts]

    def _record(self, data: bytes, fault: str) -> Record:
        self._number += 1
        return Record(self._number, data, fault)


def _marked(text: str) -> str:
    """Return a field that an export put in quotes; it is `Quoted` if it looks like another value."""
    return Quoted(text) if text[:1] in SCALAR_SIGNS else text


class _Row:
    """The fields of one row, whose lines are read one by one, each once.

    Attributes:
        fields: The fields so far.
    """

    def __init__(self, comma: str, *, exact: bool) -> None:
        self._comma, self._exact = comma, exact
        self.fields: list[str | None] = []
        self._open: list[str] = []  # what a quoted field holds so far, by line

    def add(self, lines: str) -> bool:
        """Read further lines; return whether the row ends with them, as no quoted field goes on in the next line.

        Raises:
            ValueError: Something other than a separator follows a quoted field.
        """
        text, at = lines.removesuffix("\r"), 0
        while True:
            if self._open or text[at : at + 1] == '"':
                begin = at if self._open else at + 1
                match = _INSIDE.match(text, begin)
                assert match is not None
                at = match.end()
                if at == len(text):
                    self._open.append(lines[begin:])
                    return False
                field = "\n".join([*self._open, match[0]]).replace('""', '"')
                self.fields.append(_marked(field) if self._exact else field)
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


class FieldForm(msgspec.Struct, frozen=True):
    """The spelling of the fields of a file whose values are texts.

    Attributes:
        exact: The file is an export and unchanged, so that each text is spelled as the export spells it.
        escaped: The export put an apostrophe before formulas.
    """

    exact: bool = False
    escaped: bool = False
