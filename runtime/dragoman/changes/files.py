"""Change files: one JSON object per line and change; how they are parsed, written, and kept while in use."""

from __future__ import annotations

import tempfile
from array import array
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from dragoman.spellings import Base64, id_of, json_of, spell_id, value_of
from dragoman_api.changes import Delete, Insert, Update
from dragoman_api.errors import ConfigurationError
from dragoman_api.grid import RowKey
from dragoman_api.json_text import check_once, decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

RowChange = Insert | Update | Delete

LINE_BYTES = 3 << 20
"""Maximum size of a line, in bytes."""

MAX_LINES = 1_000_000
"""Maximum number of lines of a file; each takes some 150 bytes of memory."""

CHUNK_LINES = 2_000
"""The number of lines that are planned and sent together; changes of one row always are."""

CHUNK_BYTES = 8 << 20
_SHOWN = 100  # number of faults listed one by one
_Name = Annotated[str, Meta(min_length=1)]
_Id = Annotated[str, Meta(min_length=1)] | int | Base64 | Annotated[list[str | int | Base64], Meta(min_length=1)]


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="op"):
    """The fields of every line: the object, and what the server needs besides the id to find the row."""

    object: Annotated[_Name, Meta(description="The index or collection; for rows that were read, the concrete one.")]
    routing: Annotated[str | None, Meta(description="What the server needs besides the id: a routing or a tenant.")] = (
        None
    )


class InsertLine(Line, frozen=True, kw_only=True, tag="insert"):
    """A new row."""

    id: Annotated[_Id | None, Meta(description="Its primary key; the server makes one if it is missing.")] = None
    set: Annotated[dict[str, Raw], Meta(description="Values by column.")] = {}
    document: Annotated[
        Raw | UnsetType,
        Meta(
            description="In place of `set`: the whole row as the server stores it, "
            "as a JSON object or as a string that holds one."
        ),
    ] = UNSET
    replace: Annotated[bool, Meta(description="Whether it may replace an existing row.")] = False
    guard: Annotated[dict[str, int | str], Meta(description="The state that the existing row must still have.")] = {}
    tenant: Annotated[str | None, Meta(description="The row's tenant, if the object has tenants.")] = None


class UpdateLine(Line, frozen=True, kw_only=True, tag="update"):
    """New values for some columns of a row."""

    id: Annotated[_Id, Meta(description="Its primary key.")]
    set: Annotated[dict[str, Raw], Meta(min_length=1, description="New values by column; null is stored as null.")]
    guard: Annotated[dict[str, int | str], Meta(description="The state the row must still have.")] = {}


class DeleteLine(Line, frozen=True, kw_only=True, tag="delete"):
    """The deletion of a row."""

    id: Annotated[_Id, Meta(description="Its primary key.")]
    guard: Annotated[dict[str, int | str], Meta(description="The state the row must still have.")] = {}


LINES = InsertLine | UpdateLine | DeleteLine
_decoder = msgspec.json.Decoder(LINES)
_text = msgspec.json.Decoder(str)
_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=lambda value: Raw(str(value).encode()))


def read_line(data: bytes) -> RowChange:
    """Read one line.

    Raises:
        ValueError: The line is not a change; the message says why.
    """
    try:
        line = _decoder.decode(data)
        check_once(data)
        return _change(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _change(line: LINES) -> RowChange:
    if "" in (line.routing, getattr(line, "tenant", None)):
        raise ValueError("an empty `routing` or `tenant` names none; leave it out")
    key = RowKey(line.object, "" if line.id is None else id_of(line.id), line.routing, line.guard)
    if isinstance(line, DeleteLine):
        return Delete(key)
    values = {name: value_of(bytes(value)) for name, value in line.set.items()}
    if isinstance(line, UpdateLine):
        return Update(key, values)
    text = None
    if not isinstance(line.document, UnsetType):
        text = bytes(line.document).decode()
        text = _text.decode(text) if text.startswith('"') else text
    if bool(values) == (text is not None):
        raise ValueError("an insert has either `set` or `document`")
    if line.guard and not line.replace:
        raise ValueError("a `guard` needs an existing row; an insert accepts one only with `replace`")
    return Insert(
        line.object, values, key.id or None, replace=line.replace, tenant=line.tenant, routing=line.routing,
        guard=line.guard, document=text,
    )  # fmt: skip


def write_line(change: RowChange) -> bytes:
    """Write one line, with its line break; a document keeps its bytes."""
    line: LINES
    if isinstance(change, Insert):
        text: Raw | UnsetType = UNSET
        if change.document is not None:
            text = Raw(change.document.encode() if _fits(change.document) else _encoder.encode(change.document))
        key = None if change.id is None else json_of(change.id)
        line = InsertLine(
            object=change.object, id=key, set=_raw(change.values), document=text, replace=change.replace,
            guard=change.guard, routing=change.routing, tenant=change.tenant,
        )  # fmt: skip
    else:
        row = change.key
        fields: Any = {"object": row.object, "id": json_of(row.id), "routing": row.routing, "guard": row.guard}
        is_update = isinstance(change, Update)
        line = UpdateLine(**fields, set=_raw(change.values)) if is_update else DeleteLine(**fields)  # type: ignore[union-attr]
    return _encoder.encode(line) + b"\n"


def _fits(document: str) -> bool:
    """Return whether a document fits a line as it is: JSON on one line, which holds no name twice and is no string."""
    if "\n" in document or "\r" in document or document.startswith('"'):
        return False
    try:
        decode(document, Raw)
        check_once(document.encode())
    except ValueError:
        return False
    return True


def _raw(values: Any) -> dict[str, Raw]:
    return {name: Raw(_encoder.encode(value)) for name, value in values.items()}


def _row(change: RowChange) -> tuple[str, str | None]:
    if isinstance(change, Insert):
        return change.object, None if change.id is None else spell_id(change.id)
    return change.key.object, spell_id(change.key.id)


Lines = list[tuple[int, RowChange]]
"""Changes, each with the number of its line."""


class ChangeFile:
    """A change file, read once, checked line by line, and kept as an unnamed copy that no process can change.

    Attributes:
        name: The file's name, as the caller gave it.
        lines: The number of changes.
        objects: The objects of the changes, with the number of the first line of each.
        kinds: The number of changes of each kind, by object.
        chunks: The places of the changes that are planned together, for `read`.
    """

    def __init__(self, path: Path, *, stdin: BinaryIO | None = None) -> None:
        """Read and check a file.

        `check` reports faults in the lines.

        Args:
            path: The path of the file.
            stdin: A stream to read instead of the file.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        self.name = str(path)
        self.lines = 0
        self.objects: dict[str, int] = {}
        self.kinds: dict[tuple[str, str], int] = {}
        self.chunks: list[array[int]] = []
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this one
        self._faults: list[str] = []
        self._unreadable = False
        try:
            if stdin is not None:
                self._take(stdin)
            else:
                with path.open("rb") as source:
                    self._take(source)
        except OSError as error:
            self._spool.close()
            raise ConfigurationError(f"{self.name} cannot be read: {error.strerror}") from error
        except BaseException:
            self._spool.close()
            raise

    def close(self) -> None:
        """Release the copy."""
        self._spool.close()

    def fault(self, line: int, reason: str) -> None:
        """Record a fault of a line that was read."""
        self._faults.append(f"{self.name}:{line}: {reason}")

    def _misread(self, line: int, reason: str) -> None:
        self._unreadable = True
        self.fault(line, reason)

    def check(self, hint: str = "") -> None:
        """Refuse a file with bad lines.

        Args:
            hint: The hint of the error if every line could be read; otherwise the hint shows what a line looks like.

        Raises:
            ConfigurationError: Some lines are bad; the error names all of them.
        """
        if not self._faults:
            return
        rest_count = len(self._faults) - _SHOWN
        listing = "\n".join(self._faults[:_SHOWN]) + (f"\n… and {rest_count:,} more" if rest_count > 0 else "")
        count = f"{len(self._faults):,} bad line{'s' if len(self._faults) > 1 else ''}"
        if self._unreadable or not hint:
            hint = 'one change a line: {"op":"update","object":"books","id":"17","set":{"price":12.5}}'
        details = {"lines": len(self._faults)}
        raise ConfigurationError(f"{count}; nothing was applied\n{listing}", hint=hint, code="change-file-invalid",
                                 details=details)  # fmt: skip

    def _take(self, source: BinaryIO) -> None:
        chunk_of: dict[int, int] = {}
        size = 0
        for number, data in _split(source):
            if len(data) > LINE_BYTES:
                self._misread(number, f"the line is longer than {LINE_BYTES:,} bytes")
                continue
            try:
                change = read_line(data)
            except ValueError as error:
                self._misread(number, str(error))
                continue
            self.lines += 1
            if self.lines > MAX_LINES:
                raise ConfigurationError(f"{self.name} has more than {MAX_LINES:,} changes", hint="split it")
            name, key = _row(change)
            self.objects.setdefault(name, number)
            kind = (name, type(change).__name__.lower())
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            size += len(data)
            if not self.chunks or len(self.chunks[-1]) >= 2 * CHUNK_LINES or size > CHUNK_BYTES:
                self.chunks.append(array("Q"))
                size = len(data)
            at = len(self.chunks) - 1
            if key is not None:  # one row's changes stay together; a hash collision is harmless
                at = chunk_of.setdefault(hash((name, key)), at)
            self.chunks[at].extend((number, self._spool.tell()))
            self._spool.write(data + b"\n")

    def read(self, places: array[int]) -> Lines:
        """Read the changes at these places again."""
        lines: Lines = []
        for at in range(0, len(places), 2):
            self._spool.seek(places[at + 1])
            lines.append((places[at], read_line(self._spool.readline())))
        return lines


def _split(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the non-empty lines with their numbers; a line that is too long is truncated."""
    number = 0
    while data := source.readline(LINE_BYTES + 2):
        number += 1
        rest = data
        while len(rest) == LINE_BYTES + 2 and not rest.endswith(b"\n"):
            rest = source.readline(LINE_BYTES + 2)
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        if data := data.strip(b" \t\r\n"):
            yield number, data


def halves(lines: Lines, depth: int) -> tuple[Lines, Lines]:
    """Split changes by row, keeping each row's changes together."""
    parted: tuple[Lines, Lines] = ([], [])
    for line in lines:
        parted[hash(_row(line[1])) >> depth & 1].append(line)
    return parted
