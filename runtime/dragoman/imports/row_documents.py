"""Rows as documents to insert, and what every form of a row shares with them: wishes, ids, JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman.spellings import spell_id
from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import decode_once
from dragoman_api.kit import operands

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


def usual_uuid(text: str) -> str:
    """Return the usual spelling of a uuid; a text that is none stays, since the driver refuses it.

    >>> usual_uuid("{8F14E45F-CEEA-467A-9575-9C7A7A1A2B3C}")
    '8f14e45f-ceea-467a-9575-9c7a7a1a2b3c'
    """
    try:
        return operands.uuid(text)
    except ValueError:
        return text


def address_of(values: Mapping[str, Any], key: Mapping[str, bool]) -> str | None:
    """Return the spelled parts of a key of several columns, as drivers make them (`Insert.with_key`); None without one.

    Args:
        values: The values of a row.
        key: The columns of the key, and whether the parts of each are uuids.
    """
    parts: list[Any] = []
    for name, is_uuid in key.items():
        if (value := values.get(name)) is None:
            return None
        part = value if isinstance(value, int | bytes) else str(value)
        parts.append(usual_uuid(part) if is_uuid and isinstance(part, str) else part)
    return spell_id(parts)


def id_elsewhere(column: str) -> str:
    """Return why the id that the file has is not used, where a column is wished to be the id."""
    return f"--id takes the id of each row from {column!r}, so it is left out"


def check_id(wishes: Wishes, description: Description) -> None:
    """Raise ConfigurationError if one column is wished to be the id of rows whose key has several columns."""
    keys = [column.name for column in description.columns if column.is_key]
    if wishes.id is not None and len(keys) > 1:
        text = f"a row of {wishes.object!r} is identified by {', '.join(keys)}, so no one column can be its id"
        raise ConfigurationError(text, hint="leave out --id; --map OLD=NEW gives columns of the file these names")


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
    sources: dict[str, str] = {}
    for old in members:
        if (new := names.get(old, old)) and (other := sources.setdefault(new, old)) != old:
            raise ValueError(f"--map gives its columns {other!r} and {old!r} one name, {new!r}")
    return {new: members[old] for new, old in sources.items()}


def _at(members: Members, name: str) -> Raw | None:
    """Find a member by its dotted name; a literal key wins over a nested path."""
    if (member := members.get(name)) is not None or "." not in name:
        return member
    head, _, rest = name.partition(".")
    inner = bytes(members.get(head, b""))
    return _at(_members.decode(inner), rest) if inner[:1] == b"{" else None
