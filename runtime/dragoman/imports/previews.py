"""Previews of a file to import: its format, its first rows, and the types that they propose for a new object."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING

import msgspec

from .new_objects import TypeProposal
from .proposals import LOOKED_AT, propose
from .readers import FileRows
from .records import LIKELY_ENCODING, NOT_UTF_8, Wishes, object_of, read_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from msgspec import Raw

    from dragoman_api.columns import Description

    from .records import Record

CELL = 500
"""Characters of a field that a preview shows."""

LINE = 2_000
"""Characters of a document that a preview shows."""


_OF_DOCUMENTS = ("documents", "json")
"""Formats whose rows are documents alone."""


class PreviewRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a preview, in texts that are cut where they are long.

    Attributes:
        number: Its number in the file, from 1.
        fields: The fields of a table, one for each column; None for an empty one.
        text: A row that is no line of a table, as it was read.
        fault: The reason why the row cannot be read; empty if it can.
    """

    number: int
    fields: list[str | None] = []
    text: str = ""
    fault: str = ""


class ImportPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds.

    Attributes:
        format: The format that the file is read as.
        compression: ``gzip``, ``bzip2``, ``zstd`` or None.
        delimiter: What separates the fields of CSV and TSV; empty for other formats.
        likely: The character that seems to separate them instead; empty if the delimiter does.
        likely_encoding: The encoding that a file seems to have, some of whose first rows are not UTF-8; empty if they
            are, or if the encoding was given.
        names: The columns of a table; empty for documents.
        ids: The columns that `id` can name: those of a table; of documents, the members that hold a text or a whole
            number in each of the first rows. Empty for a format in which rows have ids of their own.
        rows: The first rows.
        whole: These are all rows of the file.
        proposal: The types that a new object would have, for a table, and how its fields are read.
    """

    format: str
    compression: str | None
    delimiter: str
    likely: str
    likely_encoding: str
    names: list[str]
    ids: list[str]
    rows: list[PreviewRow]
    whole: bool
    proposal: TypeProposal | None


def preview_import(
    file: Path,
    *,
    object: str = "",  # noqa: A002 - the design's word
    format: str | None = None,  # noqa: A002
    delimiter: str | None = None,
    encoding: str | None = None,
    id: str | None = None,  # noqa: A002
    renamed: Mapping[str, str] | None = None,
    types: Mapping[str, str] | None = None,
    readings: Mapping[str, str] | None = None,
    description: Description | None = None,
    rows: int = 50,
) -> ImportPreview:
    """Look at the first rows of a file; nothing is written, and no server is asked. Blocks.

    Args:
        file: The file.
        object: The name of a new object, or of the one that `description` describes.
        format: See `load`, as `delimiter`, `encoding`, `id`, `renamed`, `types` and `readings`.
        delimiter: What separates the fields of CSV.
        encoding: How the file spells its characters.
        id: The column whose value becomes the row's id.
        renamed: New names of the file's columns by their old ones.
        types: The types that are known, by the new names.
        readings: The readings that are known, by the file's columns.
        description: The object that receives the rows, as `Session.describe` returns it; None if it is to be made.
        rows: The number of rows that are wanted.

    Raises:
        ConfigurationError: An argument or the file cannot be used.
    """
    wishes = Wishes(object=object, id=id, renamed=renamed or {})
    with closing(FileRows(file, format=format, delimiter=delimiter, encoding=encoding, hashed=False)) as file_rows:
        proposal = None
        if file_rows.names and object and (description is None or file_rows.spelled is not None):
            proposal = propose(file_rows, wishes, types or {}, readings or {}, description)
        sample = file_rows.look_ahead(max(LOOKED_AT, rows + 1))
        first = sample[: rows + 1]
        misread = any(_is_misread(record) for record in sample)
        return ImportPreview(
            format=file_rows.format,
            compression=file_rows.source.compression if file_rows.source is not None else None,
            delimiter=file_rows.delimiter,
            likely=file_rows.likely,
            likely_encoding=LIKELY_ENCODING if misread else "",
            names=file_rows.names,
            ids=file_rows.names or (_possible_ids(first) if file_rows.format in _OF_DOCUMENTS else []),
            rows=[_row(record) for record in first[:rows]],
            whole=len(first) <= rows and not file_rows.cut,
            proposal=proposal,
        )


def _is_misread(record: Record) -> bool:
    """Return whether a row of a table, or a document, is no UTF-8."""
    if isinstance(record.data, bytes):
        try:
            record.data.decode()
        except UnicodeDecodeError:
            return True
    return record.fault.startswith(NOT_UTF_8)


def _possible_ids(records: Sequence[Record]) -> list[str]:
    documents = [record.data for record in records if isinstance(record.data, bytes) and not record.fault]
    ids: list[str] | None = None
    for document in documents:
        with suppress(ValueError):  # its row says why it cannot be read
            members = object_of(document)
            ids = [name for name in (members if ids is None else ids) if _is_id(members.get(name), name)]
    return ids or []


def _is_id(value: Raw | None, name: str) -> bool:
    try:
        read_id(value, name)
    except ValueError:
        return False
    return True


def _row(record: Record) -> PreviewRow:
    if isinstance(record.data, list):
        fields = [None if value is None else _cut(str(value), CELL) for value in record.data]
        return PreviewRow(number=record.number, fields=fields, fault=record.fault)
    text = _cut(record.data[: 4 * LINE].decode(errors="replace"), LINE)
    return PreviewRow(number=record.number, text=text, fault=record.fault)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
