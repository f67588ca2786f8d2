"""The Arrow stream (IPC streaming format): converts rows of an export to messages of record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .tables import TableReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api.columns import Column, Note

    from .values import RowKeys

_END = b"\xff\xff\xff\xff\0\0\0\0"  # https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format


class ArrowStream:
    """One message per part, so that a file of them can be truncated after any part and continued there.

    Attributes:
        formulas: Always 0: a table holds no text that a spreadsheet would run.
    """

    formulas = 0

    def __init__(
        self, columns: Sequence[Column], *, described: Sequence[Column], strict: bool, keys: RowKeys | None = None
    ) -> None:
        """Begin a file with these columns."""
        self._reader = TableReader(columns, described=described, strict=strict, keys=keys)

    @property
    def misfits(self) -> list[int]:
        """The number of values so far that do not fit, for each column."""
        return self._reader.misfits

    @property
    def notes(self) -> list[Note]:
        """Notes on the values so far that do not fit, and on fields that no column shows."""
        return self._reader.notes

    def go_on(self, rows: int, _formulas: int, misfits: Sequence[int] = ()) -> None:
        """Continue after rows that are safe on disk."""
        self._reader.go_on(rows, misfits)

    def head(self) -> bytes:
        """Return the bytes of the schema message."""
        return bytes(self._reader.schema.serialize())

    def convert(self, data: bytes) -> bytes:
        """Convert whole lines of rows to the bytes of one message; none for no lines.

        Raises:
            ExportError: A value does not fit its column's type (code ``values-misfit``), if strict.
        """
        return bytes(self._reader.read(data).serialize()) if data else b""

    def tail(self) -> bytes:
        """Return the end of the stream."""
        return _END
