"""Objects to cells: the same cells whether an object came by REST or by GraphQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import Cell, Json, RowKey
from dragoman_api.errors import ObjectNotFoundError
from dragoman_api.exchanges import encode

from . import faults, graphql
from .exchange import Exchange, ask, get, object_path
from .fields import Family, Field, family_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api.exchanges import Reply

    from .schema import View


class Item(msgspec.Struct, rename="camel"):
    """One object; floats in it are Raw, so that arrays keep their digits."""

    collection: str = msgspec.field(name="class")
    id: str
    creation_time_unix: int = 0
    last_update_time_unix: int = 0
    properties: dict[str, Any] | None = None
    vector: Raw = Raw()
    vectors: Raw = Raw()
    tenant: str | None = None

    def key(self, tenant: str | None) -> RowKey:
        """Give the object's address, with what protects a change of it; lists do not repeat the tenant."""
        return RowKey(self.collection, self.id, tenant, {"lastUpdateTimeUnix": self.last_update_time_unix})

    def value(self, field: Field) -> Any:
        """Give one value, uncut and not yet a cell."""
        match field.family:
            case Family.ID:
                return self.id
            case Family.VECTOR:
                return self.vectors if filled(self.vectors) else self.vector if filled(self.vector) else None
        return (self.properties or {}).get(field.prop)


class _Listed(msgspec.Struct):
    objects: list[Item] | None = None


Doubts = dict[int, set[str]]
"""Numbers of objects that may have lost an integer, and which of their properties."""

_NO_COUNTRY = ("defaultCountry", "")
_SURELY = ""  # stands for what only the object itself can tell
_FEW = 8  # objects that are read again without a search for those that need it
_list = msgspec.json.Decoder(_Listed, float_hook=Raw)
_item = msgspec.json.Decoder(Item, float_hook=Raw)


def filled(vector: Raw) -> bool:
    """Tell whether there is a vector: the server gives nothing, null, or an empty one where there is none."""
    return bytes(vector) not in (b"", b"null", b"[]", b"{}")


def read_list(reply: Reply, view: View) -> list[Item]:
    """Read a list of objects.

    Raises:
        ObjectNotFoundError: The collection is gone; the server says it with 404 and no body.
        DragomanError: The server refused.
    """
    if reply.status == 404:
        raise ObjectNotFoundError(f"the collection '{view.target}' is gone", hint="list what there is")
    return faults.decode(reply, _list).objects or []


def read_one(reply: Reply) -> Item | None:
    """Read one object; None where it is gone."""
    return None if reply.status == 404 else faults.decode(reply, _item)


def cell(value: Any, *, structured: bool = False) -> Cell:
    """Make a cell: arrays and objects are JSON, whole (W11)."""
    if structured or isinstance(value, (dict, list)):
        return Json(encode(value)) if value is not None else None
    return float(bytes(value)) if isinstance(value, Raw) else value


def cells(items: Iterable[Item], fields: Sequence[Field]) -> list[list[Cell]]:
    """Give one cell per row and column; None where an object has nothing."""
    vectors = [each.family is Family.VECTOR for each in fields]
    ways = list(zip(fields, vectors, strict=True))
    return [[cell(item.value(field), structured=vector) for field, vector in ways] for item in items]


def from_graphql(found: Iterable[dict[str, Any]], view: View) -> tuple[list[Item], Doubts]:
    """Give objects of a search the form they have by REST.

    Returns:
        The objects, and which of them may have lost an integer: GraphQL's have 32 bits, larger ones become null.
    """
    items: list[Item] = []
    doubts: Doubts = {}
    specs = {each.prop: each.spec for each in view.fields.values() if each.spec is not None}
    for at, each in enumerate(found):
        additional = each.pop("_additional")
        lost: set[str] = set()
        values = {name: _restored(value, specs[name], lost) for name, value in each.items()}
        vector, vectors = additional.get("vector"), additional.get("vectors")
        items.append(
            Item(
                collection=view.target,
                id=additional["id"],
                creation_time_unix=int(additional.get("creationTimeUnix") or 0),
                last_update_time_unix=int(additional.get("lastUpdateTimeUnix") or 0),
                properties={name: value for name, value in values.items() if value is not None},
                vector=_raw(vector),
                vectors=_raw({name: each for name, each in (vectors or {}).items() if each}),
            )
        )
        if lost:
            doubts[at] = lost
    return items, doubts


def _raw(value: object) -> Raw:
    return Raw(encode(value).encode()) if value else Raw()


def _restored(value: Any, spec: Any, lost: set[str]) -> Any:
    """Give a value of GraphQL the form it has by REST; note where an integer may be missing."""
    family, array = family_of(spec.data_type)
    if value is None:
        if family is Family.INT and not array:
            lost.add(spec.name)
        return None
    match family:
        case Family.INT if array:
            lost |= {_SURELY for each in value if each is None}
        case Family.OBJECT:
            return [_object(each, spec, lost) for each in value] if array else _object(value, spec, lost)
        case Family.PHONE:
            lost |= {_SURELY} if None in (value.get("national"), value.get("countryCode")) else set()
            return {name: each for name, each in value.items() if each is not None and (name, each) != _NO_COUNTRY}
        case Family.REFERENCE:
            return [_beacon(each) for each in value]
    return value


def _object(value: Any, spec: Any, lost: set[str]) -> Any:
    if not isinstance(value, dict):
        return value
    inner: set[str] = set()
    kept = {each.name: _restored(value.get(each.name), each, inner) for each in spec.nested}
    lost |= {_SURELY} if inner else set()  # nobody can ask for the keys of an object
    return {name: kept[name] for name in sorted(kept) if kept[name] is not None}


def _beacon(value: dict[str, Any]) -> dict[str, str]:
    where = f"{value['__typename']}/{value['_additional']['id']}"
    return {"beacon": f"weaviate://localhost/{where}", "href": f"/v1/objects/{where}"}


def repaired(items: list[Item], doubts: Doubts, view: View, tenant: str | None) -> Exchange[int]:
    """Read doubtful objects again by REST and put their properties in place; give how many were wrong."""
    again = yield from _unsettled(items, doubts, view, tenant)
    if not again:
        return 0
    replies = yield [get(object_path(view.target, items[at].id), tenant=tenant) for at in again]
    wrong = 0
    for at, reply in zip(again, replies, strict=True):
        if (whole := read_one(reply)) is not None:
            wrong += items[at].properties != whole.properties
            items[at].properties = whole.properties
            items[at].last_update_time_unix = whole.last_update_time_unix
    return wrong


def _unsettled(items: list[Item], doubts: Doubts, view: View, tenant: str | None) -> Exchange[list[int]]:
    """Tell which objects have to be read; where many may just have no value, one search finds those that have."""
    indexed = {each.prop for each in view.fields.values() if each.spec and (each.spec.filterable or each.spec.ranged)}
    asked = [at for at, names in doubts.items() if names <= indexed]
    if len(asked) <= _FEW or not view.features.contains:
        return list(doubts)
    edges = [("GreaterThan", 2**31 - 1), ("LessThan", -(2**31))]
    names = sorted(set().union(*(doubts[at] for at in asked)))
    large = [{"path": [name], "operator": op, "valueInt": edge} for name in names for op, edge in edges]
    ids = {"path": ["id"], "operator": "ContainsAny", "valueText": [items[at].id for at in asked]}
    where = {"operator": "And", "operands": [ids, {"operator": "Or", "operands": large}]}
    reply = yield from ask(graphql.search(view, fields=(), where=where, limit=len(asked), tenant=tenant))
    found = {each["_additional"]["id"] for each in graphql.objects(reply, view)}
    return [at for at in doubts if at not in asked or items[at].id in found]
