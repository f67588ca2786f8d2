"""Records to inserts: by the form of the file, and by what the object's columns are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman.changes.files import value_of
from dragoman.near_names import did_you_mean, near_names
from dragoman_api.changes import Insert
from dragoman_api.columns import Written
from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api.columns import Column, Description

    from .records import Record

Members = dict[str, Raw]

_members = msgspec.json.Decoder(Members)
_text = msgspec.json.Decoder(str)
_encoder = msgspec.json.Encoder()


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller wants of each row.

    Attributes:
        object: The object that receives the rows.
        id: The column whose value becomes the row's id; None to take the file's own ids, or the server's.
        renamed: New names of columns by their old ones; an empty name leaves the column out.
        replace: A row may replace an existing row.
        tenant: The tenant that receives the rows; None for what each row says.
    """

    object: str
    id: str | None = None
    renamed: Mapping[str, str] = msgspec.field(default_factory=dict)
    replace: bool = False
    tenant: str | None = None


def _object_of(data: bytes) -> Members:
    try:
        return decode(data, _members)
    except ValueError as error:
        raise ValueError(f"it is not a JSON object: {error}") from None


def _id(value: object, column: str) -> str:
    """Return the id that a value spells. Raises ValueError if no row has such an id."""
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

    def insert(self, record: Record) -> Insert:
        """Return the insert of a record. Raises ValueError if it is none."""
        wishes, data = self._wishes, record.data
        assert isinstance(data, bytes)
        return self.made(data, wishes.tenant)

    def made(
        self, data: bytes, tenant: str | None, *, id: str | None = None, routing: str | None = None,  # noqa: A002
        values: Mapping[str, Any] | None = None,
    ) -> Insert:  # fmt: skip
        """Return the insert of a document; what stays as it is, the driver checks. Raises ValueError if it is none."""
        wishes = self._wishes
        if self._plain:
            if data[:1] != b"{":
                raise ValueError("it is not a JSON object")
            return Insert(
                wishes.object, dict(values or {}), id, replace=wishes.replace and id is not None, tenant=tenant,
                routing=routing, document=data.decode(),
            )  # fmt: skip
        members, changed = _object_of(data), False
        if wishes.renamed and not wishes.renamed.keys().isdisjoint(members):
            members, changed = _renamed(members, wishes.renamed), True
        if wishes.id is not None:
            if (found := _at(members, wishes.id)) is None:
                raise ValueError(f"it has no column {wishes.id!r}, which --id names")
            id = _id(found, wishes.id)  # noqa: A001
            if wishes.id in self._keys:  # a document does not repeat its key
                members = {name: value for name, value in members.items() if name != wishes.id}
                changed = True
        text = (_encoder.encode(members) if changed else data).decode()
        return Insert(
            wishes.object, dict(values or {}), id, replace=wishes.replace and id is not None, tenant=tenant,
            routing=routing, document=text,
        )  # fmt: skip


def _renamed(members: Members, names: Mapping[str, str]) -> Members:
    made = {names.get(name, name): value for name, value in members.items() if names.get(name, name)}
    if len(made) < sum(1 for name in members if names.get(name, name)):
        raise ValueError("--map gives two of its columns one name")
    return made


def _at(members: Members, name: str) -> Raw | None:
    """Find a member by its dotted name; a literal key wins over a nested path."""
    if (found := members.get(name)) is not None or "." not in name:
        return found
    head, _, rest = name.partition(".")
    inner = bytes(members.get(head, b""))
    return _at(_members.decode(inner), rest) if inner[:1] == b"{" else None


class RowInserts:
    """Lines that hold a row with its id and what else the server keeps beside the document, as an export writes them.

    `Column.path` says where each column lies in them. A member ``routing`` or ``_routing``, and one ``tenant``, are
    those of an insert. In bulk lines, the first of two holds the id and the routing.
    """

    def __init__(self, wishes: Wishes, description: Description) -> None:
        self._wishes = wishes
        self._documents = DocumentInserts(wishes, description)
        columns = [column for column in description.columns if column.path]
        self._key = next((column.path[0] for column in columns if column.is_key and len(column.path) == 1), "")
        inner = Counter(column.path[0] for column in columns if len(column.path) > 1)
        self._document = inner.most_common(1)[0][0] if inner else "_source" if self._key == "_id" else ""
        outer = [each for each in columns if len(each.path) == 1 and each.written is not Written.NEVER]
        self._beside = {each.path[0]: each.name for each in outer if each.path[0] != self._key}

    def insert(self, record: Record) -> Insert:
        """Return the insert of a record. Raises ValueError if it is none."""
        assert isinstance(record.data, bytes)
        action, line, document = record.data.partition(b"\n")
        members = _object_of(action)
        if line:
            [about] = [_object_of(bytes(value)) for value in members.values()]
            members, data = about, document
        else:
            if self._document and self._document not in members:
                raise ValueError(f"it has no member {self._document!r}; documents alone are imported as documents")
            data = bytes(members.get(self._document, b"{}"))
        return self._made(members, data)

    def _made(self, members: Members, data: bytes) -> Insert:
        key = members.get("_id" if "_id" in members else self._key)
        id_ = None if key is None else _id(key, self._key)
        routing = _word(members, "_routing") or _word(members, "routing")
        tenant = self._wishes.tenant or _word(members, "tenant")
        beside = {self._beside[name]: value_of(bytes(value)) for name, value in members.items() if name in self._beside}
        beside = {name: value for name, value in beside.items() if value is not None}
        if self._document or "_source" in members:
            return self._documents.made(data, tenant, id=id_, routing=routing, values=beside)
        return Insert(
            self._wishes.object, beside, id_, replace=self._wishes.replace and id_ is not None, tenant=tenant,
            routing=routing,
        )  # fmt: skip


def _word(members: Members, name: str) -> str | None:
    value = members.get(name)
    return None if value is None or value == Raw(b"null") else _text.decode(bytes(value))


class FieldInserts:
    """Rows of a table, whose values are typed by the object's columns; an empty field is left out.

    Attributes:
        left_out: Columns of the file that the server keeps itself.
    """

    def __init__(self, wishes: Wishes, description: Description, names: Sequence[str]) -> None:
        """Match the file's columns with the object's.

        Raises:
            ConfigurationError: One of them does not exist.
        """
        self._wishes = wishes
        columns = {column.name: column for column in description.columns}
        key = {column.name for column in columns.values() if column.is_key}
        if unknown := [name for name in (wishes.id, *wishes.renamed) if name is not None and name not in names]:
            text = f"the file has no column {unknown[0]!r}{did_you_mean(near_names(unknown[0], names))}"
            raise ConfigurationError(text, hint=f"its columns are {', '.join(names)}", code="column-unknown")
        self.left_out: list[str] = []
        self._named: list[tuple[int, str]] = []
        for at, name in enumerate(names):
            target = wishes.renamed.get(name, name)
            if not target or (target in key and wishes.id is not None):
                continue
            if not _exists(target, columns) and name != wishes.id:
                raise _unknown(target, description.object, columns)
            if target in columns and columns[target].written is Written.NEVER:
                self.left_out.append(name)
            elif _exists(target, columns):
                self._named.append((at, target))
        self._id = None if wishes.id is None else names.index(wishes.id)
        self._key = [] if wishes.id is not None else [name for _, name in self._named if name in key]

    def insert(self, record: Record) -> Insert:
        """Return the insert of a record. Raises ValueError if it is none."""
        wishes, data = self._wishes, record.data
        assert isinstance(data, list)
        values = {name: data[at] for at, name in self._named if data[at] is not None}
        id_ = None if self._id is None else _id(data[self._id], str(wishes.id))
        if len(self._key) == 1 and self._key[0] in values:
            id_ = _id(values.pop(self._key[0]), self._key[0])
        known = id_ is not None or (bool(self._key) and self._key[0] in values)
        return Insert(wishes.object, values, id_, replace=wishes.replace and known, tenant=wishes.tenant)


def _exists(name: str, columns: Mapping[str, Column]) -> bool:
    """Return whether a column exists, or is a key of one that takes any."""
    parts = name.split(".")
    return any(".".join(parts[:end]) in columns for end in range(len(parts), 0, -1))


def _unknown(name: str, object_: str, known: Iterable[str]) -> ConfigurationError:
    text = f"'{object_}' has no column {name!r}{did_you_mean(near_names(name, known))}"
    hint = f"--map {name}=NAME gives it another name, and --map {name}= leaves it out"
    return ConfigurationError(text, hint=hint, code="column-unknown", details={"column": name})
