"""Stored objects, in one form whether they came by REST or by GraphQL, and their cells."""

from __future__ import annotations

import struct
from contextlib import suppress
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import msgspec
from msgspec import Raw

from dragoman_api import Cell, Json, RowKey
from dragoman_api.errors import ObjectNotFoundError, QueryError
from dragoman_api.grid import CellColumns
from dragoman_api.json_text import encode
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_api.remedies import Remedy, RemedyKind
from dragoman_api.wording import failure

from . import graphql, protocol
from .columns.field_types import Count, Family, Field, family_of
from .protocol import object_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dragoman_api.replies import Reply

    from .columns.grid_columns import View

T = TypeVar("T")


class StoredObject(msgspec.Struct, rename="camel"):
    """One object; floats in it are Raw, so that arrays keep their digits."""

    collection: str = msgspec.field(name="class")
    id: str
    creation_time_unix: Count = 0
    last_update_time_unix: Count = 0
    properties: dict[str, Any] | None = None
    vector: Raw = Raw()
    vectors: Raw = Raw()
    tenant: str | None = None

    def key(self, tenant: str | None) -> RowKey:
        """Return the object's address, with the guard that protects a change; lists do not repeat the tenant."""
        return RowKey(self.collection, self.id, tenant, {"lastUpdateTimeUnix": self.last_update_time_unix})

    def value(self, field: Field) -> Any:
        """Return one uncut value, which is not yet a cell."""
        match field.family:
            case Family.ID:
                return self.id
            case Family.VECTOR:
                return self.vectors if filled(self.vectors) else self.vector if filled(self.vector) else None
        return (self.properties or {}).get(field.prop)


def same(item: StoredObject, properties: Raw, vector: Raw, vectors: Raw) -> bool:
    """Return whether an object holds the properties and vectors that were sent: numbers by value, vectors by bits."""
    try:
        stored = _plain(encode(item.properties or {}).encode())
        sent = {name: value for name, value in _plain(bytes(properties)).items() if value is not None}
        pairs = ((item.vector, vector), (item.vectors, vectors))
        return stored == sent and all(
            _bits(stored_vector) == _bits(sent_vector) for stored_vector, sent_vector in pairs if filled(sent_vector)
        )
    except (ValueError, OverflowError, RecursionError):
        return False


def _plain(text: bytes) -> dict[str, Any]:
    return msgspec.json.decode(text, type=dict[str, Any])


def _bits(vector: Raw) -> object:
    """Return a vector as the server stores it, in floats of 32 bits."""
    value = msgspec.json.decode(bytes(vector) or b"null")
    return _narrow(value)


def _narrow(value: object) -> object:
    if isinstance(value, dict):
        return {name: _narrow(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_narrow(element) for element in value]
    return struct.pack("<f", value) if isinstance(value, int | float) else value


class _Listed(msgspec.Struct):
    objects: list[StoredObject] | None


Suspects = dict[int, set[str]]
"""Positions of objects that may have lost an integer, with the properties concerned."""

_REWRITTEN = (Family.OBJECT, Family.PHONE, Family.REFERENCE)
_SCALARS = (str, int, bool, Raw)
_NO_COUNTRY = ("defaultCountry", "")
_SURELY = ""  # a suspicion that only the object itself can settle
_FEW = 8  # as many objects are read again without a search first
_list = msgspec.json.Decoder(_Listed, float_hook=Raw)
_item = msgspec.json.Decoder(StoredObject, float_hook=Raw)


def filled(vector: Raw) -> bool:
    """Return whether there is a vector: for none the server sends nothing, null, or an empty one."""
    return bytes(vector) not in (b"", b"null", b"[]", b"{}")


def read_list(reply: Reply, view: View, tenant: str | None) -> list[StoredObject]:
    """Read a list of objects.

    Raises:
        QueryError: Some belong to another collection or tenant: a change would go there.
        ObjectNotFoundError: The collection is gone: 404 without a body.
        DragomanError: The server refused.
    """
    if reply.status == 404:
        raise ObjectNotFoundError(f"the collection '{view.target}' is gone", remedies=[Remedy(RemedyKind.LIST_OBJECTS)])
    items = protocol.decode(reply, _list).objects or []
    for item in items:
        if item.collection != view.target or (item.tenant or tenant) != tenant:
            where = f"'{item.collection}'" + (f", tenant '{item.tenant}'" if item.tenant else "")
            raise QueryError(f"the server returned a row of {where} instead of one of '{view.target}'")
    return items


def read_one(reply: Reply, collection: str, key: str) -> StoredObject | None:
    """Read one object; None if it is gone.

    Args:
        reply: The answer.
        collection: The object's collection.
        key: Its uuid; empty for one that the server made.

    Raises:
        QueryError: The answer is another object.
        DragomanError: The server refused.
    """
    if reply.status == 404:
        return None
    item = protocol.decode(reply, _item)
    if item.collection != collection or item.id.lower() != (key or _generated_uuid(item.id)).lower():
        address = f"{collection}/{key}".rstrip("/")
        raise QueryError(f"the server returned the object '{item.collection}/{item.id}' instead of '{address}'")
    return item


def _generated_uuid(key: str) -> str:
    """Return a uuid that the server made; empty for a text that is not a uuid."""
    try:
        return str(UUID(key))
    except ValueError:
        return ""


def from_graphql(rows: Iterable[dict[str, Any]], view: View) -> tuple[list[StoredObject], Suspects]:
    """Convert objects of a GraphQL search to their REST form.

    Returns:
        The objects, and those that may have lost an integer: GraphQL's have 32 bits, larger ones become null.

    Raises:
        QueryError: They do not have the requested form.
    """
    try:
        return _from_graphql(rows, view)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        reason = f"the answer does not have the requested form: {failure(error)}"
        raise QueryError(protocol.shorten(reason), hint="describe the collection again: it may have changed") from error


def _from_graphql(rows: Iterable[dict[str, Any]], view: View) -> tuple[list[StoredObject], Suspects]:
    items: list[StoredObject] = []
    suspects: Suspects = {}
    specs = {field.prop: field.spec for field in view.fields.values() if field.spec is not None}
    same = {name for name, spec in specs.items() if family_of(spec.data_type)[0] not in _REWRITTEN}
    for at, row in enumerate(rows):
        additional = row.pop("_additional")
        if not isinstance(additional["id"], str):
            raise TypeError("a row has no uuid")
        lost: set[str] = set()
        values = {
            name: value if value.__class__ in _SCALARS and name in same else _restored(value, specs[name], lost)
            for name, value in row.items()
        }
        vector, vectors = additional.get("vector"), additional.get("vectors")
        items.append(
            StoredObject(
                collection=view.target,
                id=additional["id"],
                creation_time_unix=int(additional.get("creationTimeUnix") or 0),
                last_update_time_unix=int(additional.get("lastUpdateTimeUnix") or 0),
                properties={name: value for name, value in values.items() if value is not None},
                vector=_raw(vector),
                vectors=_raw({name: value for name, value in (vectors or {}).items() if value}),
            )
        )
        if lost:
            suspects[at] = lost
    return items, suspects


def _raw(value: object) -> Raw:
    return Raw(encode(value).encode()) if value else Raw()


def _restored(value: Any, spec: Any, lost: set[str]) -> Any:
    """Convert a GraphQL value to its REST form; note where an integer may be missing."""
    family, array = family_of(spec.data_type)
    if value is None:
        if family is Family.INT and not array:
            lost.add(spec.name)
        return None
    match family:
        case Family.INT if array:
            lost |= {_SURELY for element in value if element is None}
        case Family.OBJECT:
            return [_object(element, spec, lost) for element in value] if array else _object(value, spec, lost)
        case Family.PHONE:
            lost |= {_SURELY} if None in (value.get("national"), value.get("countryCode")) else set()
            return {name: part for name, part in value.items() if part is not None and (name, part) != _NO_COUNTRY}
        case Family.REFERENCE:
            return [_beacon(reference) for reference in value]
    return value


def _object(value: Any, spec: Any, lost: set[str]) -> Any:
    if not isinstance(value, dict):
        return value
    inner: set[str] = set()
    members = {nested.name: _restored(value.get(nested.name), nested, inner) for nested in spec.nested}
    lost |= {_SURELY} if inner else set()  # a filter cannot reach the keys of an object
    return {name: members[name] for name in sorted(members) if members[name] is not None}


def _beacon(value: dict[str, Any]) -> dict[str, str]:
    where = f"{value['__typename']}/{value['_additional']['id']}"
    return {"beacon": f"weaviate://localhost/{where}", "href": f"/v1/objects/{where}"}


def repaired(items: list[StoredObject], suspects: Suspects, view: View, tenant: str | None) -> Exchange[int]:
    """Read suspect objects again by REST, replace their properties, and return how many were wrong."""
    return (yield from _read_again((yield from _unsettled(items, suspects, view, tenant)), items, view, tenant))


def _read_again(places: list[int], items: list[StoredObject], view: View, tenant: str | None) -> Exchange[int]:
    """Read some objects again by REST, replace their properties, and return how many were wrong."""
    if not places:
        return 0
    replies = yield [get(object_path(view.target, items[at].id), tenant=tenant) for at in places]
    wrong = 0
    for at, reply in zip(places, replies, strict=True):
        if (whole := read_one(reply, view.target, items[at].id)) is not None:
            wrong += items[at].properties != whole.properties
            items[at].properties = whole.properties
            items[at].last_update_time_unix = whole.last_update_time_unix
    return wrong


def following(view: View, tenant: str | None, search: Callable[[], Exchange[T]]) -> Exchange[T]:
    """Carry out a search, and once more without references if the server cannot follow them for the tenant.

    A search for a tenant looks for the target of each reference under the same tenant, so it fails where a target's
    collection has no tenants, although such references are allowed. `with_all_references` reads them by REST.

    Args:
        view: The collection, which remembers the tenant.
        tenant: The tenant.
        search: Begins the exchange; it selects references by `graphql.search`.

    Raises:
        DragomanError: The search failed for another reason, or the second one failed.
    """
    selects_none = tenant in view.unfollowed  # before the search: another one may be under way
    try:
        return (yield from search())
    except QueryError as error:
        if tenant is None or selects_none or not protocol.UNFOLLOWED.search(error.message):
            raise
        view.unfollowed.add(tenant)
    return (yield from search())


def with_all_references(
    items: list[StoredObject], fields: Iterable[Field], view: View, tenant: str | None
) -> Exchange[int]:
    """Read objects again of which a search left out references, and return how many they are.

    GraphQL leaves out a reference to an object that is gone, and REST does not (seen on 1.38.11); some it cannot follow
    at all. The server's index of how many there are finds those objects with one search. Without that index, all
    objects are read again.
    """
    references = {field.prop: field.spec for field in fields if field.family is Family.REFERENCE}
    if not (references and items):
        return 0
    if not (view.features.contains and all(spec and spec.filterable for spec in references.values())):
        return (yield from _read_again([*range(len(items))], items, view, tenant))
    operands = []
    for name in references:
        ids: dict[int, list[str]] = {}
        for item in items:
            ids.setdefault(len((item.properties or {}).get(name) or ()), []).append(item.id)
        for count, some in ids.items():
            among = {"path": ["id"], "operator": "ContainsAny", "valueText": some}
            further_references = {"path": [name], "operator": "GreaterThan", "valueInt": count}
            operands.append({"operator": "And", "operands": [among, further_references]})
    where = operands[0] if len(operands) == 1 else {"operator": "Or", "operands": operands}
    reply = yield from ask(graphql.search(view, fields=(), where=where, limit=len(items), tenant=tenant))
    lacking = {row["_additional"]["id"] for row in graphql.objects(reply, view)}
    return (yield from _read_again([at for at, item in enumerate(items) if item.id in lacking], items, view, tenant))


def _unsettled(items: list[StoredObject], suspects: Suspects, view: View, tenant: str | None) -> Exchange[list[int]]:
    """Return the objects to read again; of many that may have no value, one search finds those that have one."""
    indexed = {
        field.prop for field in view.fields.values() if field.spec and (field.spec.filterable or field.spec.ranged)
    }
    candidates = [at for at, names in suspects.items() if names <= indexed]
    if len(candidates) <= _FEW or not view.features.contains:
        return list(suspects)
    edges = [("GreaterThan", 2**31 - 1), ("LessThan", -(2**31))]
    names = sorted(set().union(*(suspects[at] for at in candidates)))
    large = [{"path": [name], "operator": op, "valueInt": edge} for name in names for op, edge in edges]
    ids = {"path": ["id"], "operator": "ContainsAny", "valueText": [items[at].id for at in candidates]}
    where = {"operator": "And", "operands": [ids, {"operator": "Or", "operands": large}]}
    reply = yield from ask(graphql.search(view, fields=(), where=where, limit=len(candidates), tenant=tenant))
    matching_ids = {row["_additional"]["id"] for row in graphql.objects(reply, view)}
    return [at for at in suspects if at not in candidates or items[at].id in matching_ids]


_PLAIN = {str, int, bool, NoneType}
_FLOATS = {Raw, NoneType}
_CONTAINERS = {dict, list, NoneType}
_floats = msgspec.json.Decoder(list[float])
_encoder = msgspec.json.Encoder(decimal_format="number")


def cell(value: Any, *, structured: bool = False) -> Cell:
    """Return the cell of a value; arrays and objects become whole JSON (W11)."""
    if structured or isinstance(value, (dict, list)):
        return Json(encode(value)) if value is not None else None
    return float(bytes(value)) if isinstance(value, Raw) else value


def cells(items: Sequence[StoredObject], fields: Sequence[Field]) -> CellColumns:
    """Return one cell per row and column; None if an object has no value."""
    properties = [item.properties or {} for item in items]
    columns: list[list[Any]] = []
    json: list[int] = []
    for at, field in enumerate(fields):
        structured = field.family is Family.VECTOR
        if structured or field.family is Family.ID:
            column = [item.value(field) for item in items]
        else:
            column = [members.get(field.prop) for members in properties]
        kinds = set(map(type, column))
        if structured:
            json.append(at)
            column = [None if value is None else bytes(value).decode() for value in column]
        elif kinds <= _PLAIN:
            pass
        elif kinds <= _CONTAINERS:
            json.append(at)
            # JSON on one line holds no line break.
            column = _filled(column, iter(_encoder.encode_lines(_present(column)).decode().split("\n")))
        elif kinds <= _FLOATS:
            column = _filled(column, _read_floats(_present(column)))
        else:
            column = [cell(value) for value in column]
        columns.append(column)
    return CellColumns(columns, len(items), json=json)


def _read_floats(texts: Sequence[Raw]) -> Iterator[float]:
    with suppress(msgspec.DecodeError):  # one is out of range
        return iter(_floats.decode(b"[%b]" % b",".join(texts)))
    return (float(bytes(text)) for text in texts)


def _present(column: Sequence[Any]) -> list[Any]:
    return [value for value in column if value is not None]


def _filled(column: Sequence[Any], values: Iterator[Any]) -> list[Any]:
    """Replace the values that are present, in order."""
    return [None if value is None else next(values) for value in column]
