"""What documents write, and what every other form of a row shares with them: wishes, ids, JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from dragoman_api.json_text import decode_once

if TYPE_CHECKING:
    from dragoman_api.columns import Description

    from .records import Record

Members = dict[str, Raw]

_members = msgspec.json.Decoder(Members)
_text = msgspec.json.Decoder(str)
_encoder = msgspec.json.Encoder()


class UnplacedError(ValueError):
    """The target has no place for a member of a row, which is refused; the message names the member and a remedy."""


def object_of(data: bytes) -> Members:
    """Return the members of a JSON object. Raises ValueError if the text is not one, or holds a name twice."""
    try:
        return decode_once(data, _members)
    except ValueError as error:
        raise ValueError(f"it is not a JSON object: {error}") from None


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """The wishes of a caller for every row.

    Attributes:
        object: The object that receives the rows.
        id: The column whose value becomes the row's id; None to take the file's own ids, or the server's.
        renamed: New names of columns by their old ones; an empty name leaves the column out.
        replace: A row may replace an existing row with the same id.
        tenant: The tenant that receives the rows; None for the tenant that each row names.
    """

    object: str
    id: str | None = None
    renamed: Mapping[str, str] = msgspec.field(default_factory=dict)
    replace: bool = False
    tenant: str | None = None


def read_id(value: object, column: str) -> str:
    """Return the id that a value stands for. Raises ValueError if no row can have such an id."""
    if isinstance(value, Raw):
        data = bytes(value)
        value = _text.decode(data) if data[:1] == b'"' else int(data) if data.lstrip(b"-").isdigit() else None
    if value is None or value == "" or not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError(f"its column {column!r} holds no text and no whole number, so it has no id")
    return str(value)


class DocumentInserts:
    """Lines that are documents as the server stores them; they keep their bytes."""

    def __init__(self, wishes: Wishes, description: Description) -> None:
        self._wishes = wishes
        self._keys = {column.name for column in description.columns if column.is_key}
        self._plain = wishes.id is None and not wishes.renamed

    def fill(self, record: Record) -> None:
        """Put into a record what it writes. Raises ValueError if it holds no row."""
        assert isinstance(record.data, bytes)
        record.tenant = self._wishes.tenant
        self.fill_in(record, record.data)

    def fill_in(self, record: Record, data: bytes, *, renamed: Mapping[str, str] | None = None) -> None:
        """Put a document into a record, and the id that it holds. Raises ValueError if it is no JSON object.

        Args:
            record: The record.
            data: The document.
            renamed: New names of its columns by their old ones; None for those that the caller wishes.
        """
        wishes = self._wishes
        if self._plain:
            record.document = check_object(data)
        else:
            members, changed = object_of(data), False
            renamed = wishes.renamed if renamed is None else renamed
            if renamed and not renamed.keys().isdisjoint(members):
                members, changed = _renamed(members, renamed), True
            if wishes.id is not None:
                if (raw_id := _at(members, wishes.id)) is None:
                    raise ValueError(f"it has no column {wishes.id!r}, which --id names")
                record.id = read_id(raw_id, wishes.id)
                if wishes.id in self._keys:  # a document does not repeat its key
                    members = {name: value for name, value in members.items() if name != wishes.id}
                    changed = True
            record.document = (_encoder.encode(members) if changed else data).decode()
        record.replace = wishes.replace and record.id is not None


class _Object(msgspec.Struct):
    """Any JSON object: its members are checked and not kept."""


_object = msgspec.json.Decoder(_Object)


def check_object(data: bytes) -> str:
    """Return the text of a JSON object. Raises ValueError if it is none."""
    try:
        text = data.decode()
        _object.decode(data)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ValueError(f"it is not a JSON object: {reason}") from None
    return text


def _renamed(members: Members, names: Mapping[str, str]) -> Members:
    new_members = {names.get(name, name): value for name, value in members.items() if names.get(name, name)}
    if len(new_members) < sum(1 for name in members if names.get(name, name)):
        raise ValueError("--map gives two of its columns one name")
    return new_members


def _at(members: Members, name: str) -> Raw | None:
    """Find a member by its dotted name; a literal key wins over a nested path."""
    if (member := members.get(name)) is not None or "." not in name:
        return member
    head, _, rest = name.partition(".")
    inner = bytes(members.get(head, b""))
    return _at(_members.decode(inner), rest) if inner[:1] == b"{" else None
