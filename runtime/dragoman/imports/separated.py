"""CSV and TSV: lines of fields to records, as RFC 4180 says; an empty field is told apart from an empty text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError

from .records import RECORD_BYTES, Record, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sources import ImportSource

_QUOTED = re.compile(r'"((?:[^"]++|"")*+)"')


class _OpenError(Exception):
    """A quoted field is not closed yet."""


class SeparatedRows:
    """The rows of a CSV or TSV file.

    Attributes:
        names: The names of its columns: the fields of its first line.
    """

    def __init__(self, source: ImportSource, *, tabs: bool) -> None:
        """Read the first line.

        Raises:
            ConfigurationError: It does not name columns.
        """
        self._comma = "\t" if tabs else ","
        self._lines = split_lines(source)
        self._number = 0
        head = next(self._read(), None)
        fault = head.fault if head else "it is empty"
        self.names = ["" if name is None else str(name) for name in head.data] if head and not fault else []
        if not fault and (twice := {name for name in self.names if self.names.count(name) > 1}):
            fault = f"the column {min(twice)!r} occurs twice in its first line"
        if fault:
            raise ConfigurationError(f"{source.name} has no line of column names: {fault}")
        self._number = 0

    def __iter__(self) -> Iterator[Record]:
        width = len(self.names)
        for record in self._read():
            if not record.fault and len(record.data) != width:
                record.fault = f"it has {len(record.data)} fields, and the file has {width} columns"
            yield record

    def _read(self) -> Iterator[Record]:
        begun: list[bytes] = []
        size = 0
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
                    yield self._parsed(b"\n".join(begun))
                except _OpenError:
                    continue
            begun, size = [], 0
        if begun:
            yield self._record(b"\n".join(begun), "a quoted field is not closed")

    def _record(self, data: bytes, fault: str) -> Record:
        self._number += 1
        return Record(self._number, data, fault)

    def _parsed(self, data: bytes) -> Record:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            return self._record(data, f"it is not UTF-8: {error}")
        text = text.removesuffix("\r")
        self._number += 1
        if '"' not in text:
            return Record(self._number, [field or None for field in text.split(self._comma)])
        fields: list[str | None] = []
        at = 0
        while True:
            if text[at : at + 1] == '"':
                found = _QUOTED.match(text, at)
                if found is None:
                    self._number -= 1
                    raise _OpenError
                fields.append(found[1].replace('""', '"'))
                at = found.end()
                if text[at : at + 1] not in ("", self._comma):
                    return Record(self._number, data, "a quoted field is followed by more than a separator")
            else:
                end = text.find(self._comma, at)
                end = len(text) if end < 0 else end
                fields.append(text[at:end] or None)
                at = end
            if at >= len(text):
                return Record(self._number, fields)
            at += 1
            if at == len(text):  # the line ends with a separator
                fields.append(None)
                return Record(self._number, fields)
