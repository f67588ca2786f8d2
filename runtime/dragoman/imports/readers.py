"""The rows of a file in its format, from the first byte on; some of them can be read ahead."""

from __future__ import annotations

from contextlib import ExitStack, closing
from itertools import chain, islice
from typing import TYPE_CHECKING, BinaryIO, Protocol

from dragoman_api.errors import ConfigurationError

from .records import read_array, read_pairs, read_values
from .sources import ImportSource, choose, digest_of, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from .csv_rows import FieldForm
    from .parquet import FileType
    from .records import Record

TABLES = ("csv", "tsv")
"""Formats whose fields are texts, and whose lines a character separates into them."""

AHEAD_BYTES = 32 << 20
"""The size of the rows that are read ahead, about; they stay in memory until they are written."""


class TableMaker(Protocol):
    """Makes rows of a table of the lines of a file: `Translation`.

    Attributes:
        names: The names of the table's columns.
    """

    names: list[str]

    def records(self, lines: Iterator[Record]) -> Iterator[Record]:
        """Yield a row of the table for each line."""


class FileRows:
    """The rows of a file.

    Attributes:
        format: The format that the file is read as.
        records: The rows that were not read yet.
        names: The names of the columns of a table; empty for documents.
        types: The types that the file itself says its columns have, by name.
        spelled: How the fields of a table of texts spell values; None for other formats.
        delimiter: What separates the fields of a table of texts; empty for other formats.
        likely: The character that seems to separate fields, if the delimiter does not; empty if there is none.
        source: The bytes of the file; None for Parquet, which is not read in order.
        place: The size of a file that is not read in order, and its digest.
        cut: The last look ahead saw fewer rows than it was to see, as they are large.
    """

    def __init__(
        self,
        path: Path,
        *,
        stdin: BinaryIO | None = None,
        format: str | None = None,  # noqa: A002 - the option's name
        delimiter: str | None = None,
        encoding: str | None = None,
        hashed: bool = True,
        table: TableMaker | None = None,
    ) -> None:
        """Open the file.

        Args:
            path: The file; for a stream, a name that stands for it.
            stdin: A stream to read instead of the file.
            format: The format; None to find it out.
            delimiter: What separates the fields of CSV; None for a comma, and for the tab of TSV.
            encoding: How the file spells its characters; None for UTF-8.
            hashed: The digest of a file that is not read in order is wanted.
            table: Makes rows of a table of the lines of a file of rows.

        Raises:
            ConfigurationError: The file cannot be read, or an option does not fit its format.
        """
        if stdin is None:
            try:
                path.stat()
            except OSError as error:
                raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
        self.format, compression = choose(None if stdin is not None else path, format=format)
        if delimiter is not None and self.format not in TABLES:
            text = f"a delimiter is for CSV, and {path} is read as {self.format}"
            raise ConfigurationError(text, hint="leave it out, or name the format: --format csv")
        if encoding is not None and self.format == "parquet":
            raise ConfigurationError(f"an encoding is for texts, and {path} is read as parquet", hint="leave it out")
        self.names: list[str] = []
        self.types: Mapping[str, FileType] = {}
        self.spelled: FieldForm | None = None
        self.delimiter = self.likely = ""
        self.source: ImportSource | None = None
        self.place, self.cut = (0, ""), False
        self._resources = ExitStack()
        try:
            if self.format == "parquet":
                self.records = self._parquet(path, hashed=hashed)
            else:
                self.source = ImportSource(path, stdin=stdin, compression=compression, encoding=encoding)
                self._resources.enter_context(closing(self.source))
                if self.format in TABLES:
                    manifest = None if stdin is not None else read_manifest(path)
                    exact = manifest is not None and manifest.format == self.format
                    self.records = self._separated(
                        self.source, delimiter, exact=exact, escaped=exact and manifest is not None and manifest.escaped
                    )
                else:
                    self.records = {"bulk": read_pairs, "rows": read_values}.get(self.format, read_array)(self.source)
                    if table is not None:
                        self.names, self.records = table.names, table.records(self.records)
        except BaseException:
            self.close()
            raise

    def _parquet(self, path: Path, *, hashed: bool) -> Iterator[Record]:
        from .parquet import ParquetRows

        if hashed:
            try:
                self.place = path.stat().st_size, digest_of(path)
            except OSError as error:
                raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
        table = self._resources.enter_context(closing(ParquetRows(path)))
        self.names, self.types = table.names, table.types
        return iter(table)

    def _separated(
        self, source: ImportSource, delimiter: str | None, *, exact: bool, escaped: bool
    ) -> Iterator[Record]:
        from .csv_rows import FieldForm, SeparatedRows

        self.spelled = FieldForm(exact=exact, escaped=escaped)
        self.delimiter = delimiter or ("\t" if self.format == "tsv" else ",")
        lines = SeparatedRows(source, delimiter=self.delimiter, exact=exact)
        self.names, self.likely = lines.names, lines.likely
        return iter(lines)

    def look_ahead(self, rows: int) -> list[Record]:
        """Return the next rows, at most so many and about `AHEAD_BYTES`, which `records` yields again.

        Raises:
            ConfigurationError: The file is damaged.
        """
        first: list[Record] = []
        size, self.cut = 0, False
        for record in islice(self.records, rows):
            first.append(record)
            size += _size(record.data)
            if size >= AHEAD_BYTES and len(first) < rows:
                self.cut = True
                break
        self.records = chain(first, self.records)
        return first

    def close(self) -> None:
        """Close the file."""
        self._resources.close()


def _size(data: object) -> int:
    """Return about how many bytes the fields of a row, or its text, take."""
    if isinstance(data, list):
        return sum(map(_size, data))
    return len(data) if isinstance(data, str | bytes) else 8
