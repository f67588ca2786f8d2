"""JSON: converts the documents of an export to one array."""

from __future__ import annotations


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
