"""The GraphQL types that a schema gives rise to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.store import Collection, Database

OPERATORS = (
    "And", "Or", "Not", "Equal", "NotEqual", "Like", "GreaterThan", "GreaterThanEqual", "LessThan", "LessThanEqual",
    "WithinGeoRange", "IsNull", "ContainsAny", "ContainsAll", "ContainsNone",
)  # fmt: skip
_PHONE = {
    "input": "String", "internationalFormatted": "String", "nationalFormatted": "String", "national": "Int",
    "valid": "Boolean", "countryCode": "Int", "defaultCountry": "String",
}  # fmt: skip
_SCALARS = {"int": "Int", "number": "Float", "boolean": "Boolean"}
_NUMERIC = {"count": "Int", "type": "String"} | dict.fromkeys(
    ("minimum", "maximum", "sum", "mode", "mean", "median"), "Float"
)
_BOOLEAN = {"count": "Int", "type": "String", "totalTrue": "Int", "totalFalse": "Int"}
_FIGURES = {
    "text": {"count": "Int", "type": "String"},
    "blob": {"count": "Int", "type": "String"},
    "int": _NUMERIC,
    "number": _NUMERIC,
    "boolean": _BOOLEAN | dict.fromkeys(("percentageTrue", "percentageFalse"), "Float"),
    "date": {"count": "Int"} | dict.fromkeys(("minimum", "maximum", "mode", "median"), "String"),
    "ref": {"pointingTo": "String", "type": "String"},
}
# A ranking and a grouping need indexes that the fake has not.
UNKNOWN = frozenset({"group", "groupBy", "bm25", "hybrid", "autocut", "consistencyLevel"})


@dataclass(frozen=True)
class In:
    """The type of an argument: a scalar, an enumeration, a list, or an object."""

    name: str
    kind: str = "scalar"
    item: In | None = None
    choices: tuple[str, ...] = ()
    members: Callable[[], Mapping[str, In]] | None = None
    required: bool = False


@dataclass(frozen=True)
class Out:
    """The type of a field: a scalar, an object, or one of several objects; maybe many of them."""

    name: str
    fields: Callable[[], Mapping[str, Field]] | None = None
    union: Callable[[], Mapping[str, Out]] | None = None
    many: bool = False

    @property
    def printed(self) -> str:
        """Return the type as messages show it."""
        return f"[{self.name}]" if self.many else self.name


@dataclass(frozen=True)
class Field:
    """A field of an object type."""

    type: Out
    args: Mapping[str, In] = field(default_factory=dict)


def query(database: Database) -> Out:
    """Return the type of a whole query, made anew when the schema has changed."""
    cached = database.types
    if not cached or cached[0] != database.schema_version:
        cached = database.types = (database.schema_version, _query(database))
    shape: Out = cached[1]
    return shape


def _query(database: Database) -> Out:
    classes = dict(database.collections)
    classes |= {alias: database.collections[name] for alias, name in database.aliases.items()}
    gets = {
        name: Field(_class(database, collection, many=True), _get_args(collection))
        for name, collection in classes.items()
    }
    aggregates = {
        name: Field(_aggregate(collection), _aggregate_args(collection)) for name, collection in classes.items()
    }
    roots = {
        "Get": Field(Out("GetObjectsObj", lambda: gets)),
        "Aggregate": Field(Out("AggregateObjectsObj", lambda: aggregates)),
    }
    return Out("WeaviateObj", lambda: roots)


def _class(database: Database, collection: Collection, *, many: bool = False) -> Out:
    @cache
    def fields() -> dict[str, Field]:
        members = {
            name: member
            for name, value in collection.properties.items()
            if (member := _property(database, collection.name, value))
        }
        return members | {"_additional": Field(_additional(collection))}

    return Out(collection.name, fields, many=many)


def _property(database: Database, owner: str, definition: dict[str, Any]) -> Field | None:
    kind, name = definition["dataType"][0], definition["name"]
    if kind[0].isupper():
        targets = [database.collections[target] for target in definition["dataType"] if target in database.collections]
        if not targets:
            return None
        union = {target.name: _class(database, target) for target in targets}
        return Field(Out(f"{owner}{name[0].upper()}{name[1:]}Obj", union=lambda: union, many=True))
    if kind == "geoCoordinates":
        return Field(_object(f"{owner}{name}GeoCoordinatesObj", dict.fromkeys(("latitude", "longitude"), "Float")))
    if kind == "phoneNumber":
        return Field(_object(f"{owner}{name}PhoneNumberObj", _PHONE))
    return Field(_nested(owner, name, definition))


def _nested(owner: str, prefix: str, definition: dict[str, Any]) -> Out:
    kind = definition["dataType"][0]
    many = kind.endswith("[]")
    if not kind.startswith("object"):
        return Out(_SCALARS.get(kind.removesuffix("[]"), "String"), many=many)
    members = {
        member["name"]: Field(_nested(owner, f"{prefix}_{member['name']}", member))
        for member in definition.get("nestedProperties") or ()
    }
    return Out(f"{owner}_{prefix}_object", lambda: members, many=many)


def _object(name: str, scalars: Mapping[str, str]) -> Out:
    fields = {key: Field(Out(value)) for key, value in scalars.items()}
    return Out(name, lambda: fields)


def _additional(collection: Collection) -> Out:
    names = ("id", "creationTimeUnix", "lastUpdateTimeUnix", "score", "explainScore")
    fields = {name: Field(Out("String")) for name in names}
    fields |= {"certainty": Field(Out("Float")), "distance": Field(Out("Float"))}
    fields["vector"] = Field(Out("Float", many=True))
    if collection.named_vectors:
        vectors = {name: Field(Out("Vector")) for name in collection.named_vectors}
        fields["vectors"] = Field(Out(f"{collection.name}AdditionalVectors", lambda: vectors))
    return Out(f"{collection.name}Additional", lambda: fields)


def _aggregate(collection: Collection) -> Out:
    @cache
    def fields() -> dict[str, Field]:
        shapes = {name: Field(figures) for name in collection.properties if (figures := _figures(collection, name))}
        meta = _object(f"Aggregate{collection.name}MetaObject", {"count": "Int"})
        grouped = Out(
            f"Aggregate{collection.name}GroupedByObj",
            lambda: {"path": Field(Out("String", many=True)), "value": Field(Out("String"))},
        )
        return shapes | {"meta": Field(meta), "groupedBy": Field(grouped)}

    return Out(f"Aggregate{collection.name}", fields, many=True)


def _figures(collection: Collection, name: str) -> Out | None:
    kind = collection.properties[name]["dataType"][0]
    path = f"Aggregate{collection.name}{name}"
    scalars = _FIGURES.get("ref" if kind[0].isupper() else kind.removesuffix("[]"))
    if scalars is None:
        return None
    fields = {figure: Field(Out(of_type)) for figure, of_type in scalars.items()}
    if kind.removesuffix("[]") in ("text", "blob"):
        top = _object(f"{path}TopOccurrencesObj", {"value": "String", "occurs": "Int"})
        fields["topOccurrences"] = Field(Out(top.name, top.fields, many=True), {"limit": In("Int")})
    return Out(f"{path}Obj", lambda: fields)


def _get_args(collection: Collection) -> dict[str, In]:
    path = f"GetObjects{collection.name}"
    order = In(f"{path}SortInpObjTypeEnum", "enum", choices=("asc", "desc"))
    sort = In(f"{path}SortInpObj", "object", members=lambda: {"path": _list(In("String")), "order": order})
    arguments = {
        "after": In("String"),
        "limit": In("Int"),
        "offset": In("Int"),
        "sort": _list(sort),
        "where": _where(path),
    }
    target = {"targetVectors": _list(In("String"))}
    vector = {"vector": _list(In("Float", required=True)), **target}
    arguments["nearVector"] = In(f"{path}NearVectorInpObj", "object", members=lambda: vector)
    arguments["nearObject"] = In(f"{path}NearObjectInpObj", "object", members=lambda: {"id": In("String"), **target})
    return arguments | _tenant(collection)


def _aggregate_args(collection: Collection) -> dict[str, In]:
    where = _where(f"AggregateObjects{collection.name}")
    arguments = {"where": where, "limit": In("Int"), "groupBy": _list(In("String"))}
    return arguments | _tenant(collection)


def _tenant(collection: Collection) -> dict[str, In]:
    return {"tenant": In("String")} if collection.has_tenants else {}


def _list(item: In) -> In:
    return In(f"[{item.name}]", "list", item)


def _where(path: str) -> In:
    number = {name: In("Float", required=True) for name in ("latitude", "longitude", "max")}
    place = In(
        f"{path}WhereGeoRangeGeoCoordinatesInpObj",
        "object",
        members=_pick(number, "latitude", "longitude"),
        required=True,
    )
    distance = In(f"{path}WhereGeoRangeDistanceInpObj", "object", members=_pick(number, "max"), required=True)
    geo = {"geoCoordinates": place, "distance": distance}
    members = {
        "operator": In(f"{path}WhereOperatorEnum", "enum", choices=OPERATORS),
        "path": _list(In("String")),
        "valueInt": In(f"Int{path}", "int"),
        "valueNumber": In(f"Float{path}", "number"),
        "valueBoolean": In(f"Boolean{path}", "boolean"),
        "valueString": In(f"TextString{path}", "text"),
        "valueText": In(f"Text{path}", "text"),
        "valueDate": In(f"TextDate{path}", "text"),
        "valueGeoRange": In(f"{path}WhereGeoRangeInpObj", "object", members=lambda: geo),
    }
    operands = In(f"{path}WhereOperandsInpObj", "object", members=lambda: members)
    members["operands"] = _list(operands)
    return In(f"{path}WhereInpObj", "object", members=lambda: members)


def _pick(members: Mapping[str, In], *names: str) -> Callable[[], Mapping[str, In]]:
    chosen = {name: members[name] for name in names}
    return lambda: chosen
