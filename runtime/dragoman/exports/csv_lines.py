"""CSV and TSV: converts rows of an export to lines of fields."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman.spellings import SCALAR, spelling_of
from dragoman_api.columns import Note

from .values import ValueReader, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dragoman.spellings import Spelling
    from dragoman_api.columns import Column

    from .values import RowKeys

_QUOTE = ord('"')
_SCALAR = re.compile(SCALAR.pattern.encode())
_SPECIAL = {b",": re.compile(rb'[",\r\n]'), b"\t": re.compile(rb'["\t\r\n]')}
_BEGINS = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,9})?)?")


class Csv:
    """One line per row, one field per column, quoted as RFC 4180 says.

    Numbers keep their digits; arrays and objects are JSON. Null is an empty field, an empty text is ``""``. A text that
    looks like a number or a boolean stands in quotes; `Spelling` decides how one that looks like JSON is written.

    Attributes:
        formulas: The number of fields so far that a spreadsheet would read as a formula.
    """

    def __init__(
        self, columns: Sequence[Column], *, keys: RowKeys | None = None, escape: bool = False, tabs: bool = False
    ) -> None:
        """Prepare to convert rows with these columns.

        Args:
            columns: The columns, in order.
            keys: Counts the fields that no column shows; None if a caller named the columns.
            escape: Put an apostrophe before formulas.
            tabs: Write TSV: fields are separated by tabs, and lines end with a line feed alone.
        """
        self._escape = escape
        self._comma, self._end = (b"\t", b"\n") if tabs else (b",", b"\r\n")
        self._special = _SPECIAL[self._comma]
        self.formulas = 0
        self._names = [column.name for column in columns]
        self._reader = ValueReader(columns, keys)
        self._fields = [self._fields_of(spelling_of(column)) for column in columns]
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
        read, null, fields, comma = self._reader.read, self._null, self._fields, self._comma
        rows = [
            comma.join(
                # Numbers and most texts are done here; a call for each would cost more than all else.
                [
                    null
                    if value is None
                    else value
                    if (sign := value[0]) not in b'"[{'
                    # JSON escapes quotes, line breaks and tabs, so without a backslash there are none.
                    else value[1:-1]
                    if sign == _QUOTE and value[1] not in odd and b"\\" not in value and comma not in value
                    else field(value)
                    for (odd, field), value in zip(fields, read(line))  # noqa: B905 - as many, and there are many
                ]
            )
            for line in lines.split(b"\n")
            if line
        ]
        return self._end.join([*rows, b""])

    def _fields_of(self, spelling: Spelling) -> tuple[bytes, Callable[[bytes], bytes]]:
        """Return the first characters of texts to look at, and the function that makes a field of a JSON text."""
        quoted, comma, digits = self._quoted, self._comma, b"0123456789tf" if spelling.mixed else b""
        odd = b"=+-@'[{\"" + digits if not spelling.json else bytes(range(256))

        def field(value: bytes) -> bytes:
            if value[0] != _QUOTE:  # arrays and objects need quoting
                return quoted(value)
            if b"\\" not in value and (
                value[1] not in odd or (value[-2] not in b"0123456789e" and value[1] in digits)  # neither 1 nor true
            ):
                return value if comma in value else value[1:-1]
            if value[1] in digits and value.find(b"\\") < 0 and not _SCALAR.fullmatch(value, 1, len(value) - 1):
                return quoted(value[1:-1])
            text = text_of(value)
            cell = quoted(self._text(spelling.field(text)).encode())
            return b'"%b"' % cell if digits and cell[0] != 0x22 and SCALAR.fullmatch(text) else cell

        return odd, field

    def _text(self, text: str) -> str:
        if not is_formula(text) and not (self._escape and is_formula(text.lstrip("'"))):
            return text
        self.formulas += 1
        return escaped(text) if self._escape else text

    def _quoted(self, text: bytes) -> bytes:
        return b'"' + text.replace(b'"', b'""') + b'"' if not text or self._special.search(text) else text


class JsonArray:
    """One array of all documents, each on a line of its own and with the bytes that the driver sent.

    Attributes:
        formulas: Always 0: no spreadsheet reads a formula from JSON.
    """

    formulas = 0

    def __init__(self) -> None:
        self._first = True

    def go_on(self, rows: int, _formulas: int) -> None:
        """Continue after rows that are safe on disk."""
        self._first = not rows

    def head(self) -> bytes:
        """Return the bytes before the first document."""
        return b"["

    def convert(self, lines: bytes) -> bytes:
        """Convert whole lines of documents to elements, each with the separator before it."""
        documents = [line for line in lines.split(b"\n") if line]
        if not documents:
            return b""
        before = b"\n" if self._first else b",\n"
        self._first = False
        return before + b",\n".join(documents)

    def tail(self) -> bytes:
        """Return the bytes after the last document."""
        return b"\n]\n"


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet may run a text as a formula; a number is none.

    >>> [text for text in ("=1+1", "-5", "+1.5e3", "-", "+31 20 1234", "@SUM(A1)", "a=b") if is_formula(text)]
    ['=1+1', '+31 20 1234', '@SUM(A1)']
    """
    return text.startswith(_BEGINS) and not _NUMBER.fullmatch(text)


def escaped(text: str) -> str:
    """Put an apostrophe before a text; spreadsheets take it as the mark of a text that is no formula."""
    return f"'{text}"


def unescaped(text: str) -> str:
    """Remove the apostrophe that an export put before a formula, or before apostrophes and a formula.

    >>> unescaped("'=1+1"), unescaped("''=1+1"), unescaped("'tis")
    ('=1+1', "'=1+1", "'tis")
    """
    return text[1:] if text[:1] == "'" and is_formula(text.lstrip("'")) else text


def formula_notes(count: int, *, escaped: bool) -> list[Note]:
    """Return a note on how many cells look like a formula and how they were written; none if there are none."""
    if not count:
        return []
    cells = f"{count:,} cell{'s begin' if count > 1 else ' begins'} like a formula"
    if escaped:
        return [Note(code="formulas-escaped", reason=f"{cells} and got an apostrophe before it")]
    hint = "--escape-formulas puts an apostrophe before them"
    return [Note(code="formulas-kept", reason=f"{cells}, which a spreadsheet may run", hint=hint)]
