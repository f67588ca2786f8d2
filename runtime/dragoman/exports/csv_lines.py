"""CSV and TSV: rows of an export to lines of fields."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .spreadsheet_formulas import escaped, is_formula
from .values import ValueReader, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api.columns import Column

_SPECIAL = {b",": re.compile(rb'[",\r\n]'), b"\t": re.compile(rb'["\t\r\n]')}


class Csv:
    """One line per row, one field per column, quoted as RFC 4180 says.

    Numbers keep their digits, arrays and objects are JSON. Null is an empty field, an empty text is ``""``.

    Attributes:
        formulas: Number of fields so far that a spreadsheet would read as a formula.
    """

    def __init__(self, columns: Sequence[Column], *, escape: bool = False, tabs: bool = False) -> None:
        """Begin.

        Args:
            columns: The columns in order.
            escape: Put an apostrophe before formulas.
            tabs: TSV: separate fields by tabs, and end lines with a line feed alone.
        """
        self._escape = escape
        self._comma, self._end = (b"\t", b"\n") if tabs else (b",", b"\r\n")
        self._special = _SPECIAL[self._comma]
        self.formulas = 0
        self._names = [column.name for column in columns]
        self._reader = ValueReader(columns)
        self._null = b'""' if len(columns) == 1 else b""  # else the line would be empty, and readers would skip it

    def go_on(self, _rows: int, formulas: int) -> None:
        """Continue after rows that are safe on disk."""
        self.formulas = formulas

    def head(self) -> bytes:
        """Return the header line."""
        return self._comma.join([self._quoted(self._text(name).encode()) for name in self._names]) + self._end

    def tail(self) -> bytes:
        """Return what follows the last line: nothing."""
        return b""

    def convert(self, lines: bytes) -> bytes:
        """Convert whole lines of rows to CSV bytes."""
        read, null, field, comma = self._reader.read, self._null, self._field, self._comma
        rows = [
            comma.join([null if value is None else field(value) for value in read(line)])
            for line in lines.split(b"\n")
            if line
        ]
        return self._end.join([*rows, b""])

    def _field(self, value: bytes) -> bytes:
        if value[0] != 0x22:  # not a text: arrays and objects need quoting, other values do not
            return self._quoted(value) if value[0] in b"[{" else value
        # JSON escapes quotes, line breaks and tabs, so without a backslash there are none.
        if b"\\" not in value and b"," not in value and len(value) > 2 and value[1] not in b"=+-@":
            return value[1:-1]
        return self._quoted(self._text(text_of(value)).encode())

    def _text(self, text: str) -> str:
        if not is_formula(text):
            return text
        self.formulas += 1
        return escaped(text) if self._escape else text

    def _quoted(self, text: bytes) -> bytes:
        return b'"' + text.replace(b'"', b'""') + b'"' if not text or self._special.search(text) else text
