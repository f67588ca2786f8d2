"""What the server makes of properties and classes that it does not know: it creates them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate import schema
from dragoman_sample.fakes.weaviate.errors import InvalidError, ServerError, refused
from dragoman_sample.fakes.weaviate.references import parse_beacon
from dragoman_sample.fakes.weaviate.values import go, parse_date, parse_uuid

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.store import Collection, Database

_KNOWN = "'text', 'number', 'int', 'boolean', 'date', 'uuid', 'object'"
_WORDS = {"text[]", "date[]", "uuid[]"}


def extend(database: Database, name: str, properties: dict[str, Any]) -> Collection:
    """Return the class, made or completed so that it has all these properties.

    Raises:
        ServerError: a value has no type.
    """
    # The real server walks a Go map: the order of what it adds is not that of the request.
    try:
        definitions = [
            _describe(key, value, f"property '{key}' on class '{name}'") for key, value in properties.items()
        ]
    except InvalidError as reason:
        raise refused(500, f"invalid object: {reason}") from None
    collection = database.resolve(name)
    if not collection:
        new_class = {"class": name, "description": _generated(nested=False), "properties": definitions}
        try:
            return schema.create(database, new_class)
        except ServerError as error:
            message = error.body["error"][0]["message"]
            raise refused(500, f"invalid object: auto-schema: create collection: {message}") from None
    existing = collection.properties
    new = [definition for definition in definitions if schema.small(definition["name"]) not in existing]
    try:
        schema.add_properties(database, collection, new)
    except InvalidError as reason:
        raise refused(500, f"invalid object: auto-schema: update collection: {reason}") from None
    for definition in definitions:
        _merge_nested(database, existing.get(schema.small(definition["name"]), {}), definition, collection.name)
    return collection


def _merge_nested(database: Database, existing: dict[str, Any], definition: dict[str, Any], owner: str) -> None:
    """Add what an object has and its definition has not."""
    if "nestedProperties" not in definition or "nestedProperties" not in existing:
        return
    by_name = {member["name"]: member for member in existing["nestedProperties"]}
    for member in definition["nestedProperties"]:
        if member["name"] in by_name:
            _merge_nested(database, by_name[member["name"]], member, owner)
        else:
            existing["nestedProperties"].append(schema.define_property(database, member, owner=owner, nested=True))
            database.schema_version += 1


def _describe(name: str, value: Any, where: str, *, nested: bool = False) -> dict[str, Any]:
    try:
        kinds = _determine(value, nested=nested)
    except InvalidError as reason:
        raise InvalidError(f"{where}: {reason}") from None
    definition: dict[str, Any] = {"name": name, "dataType": kinds, "description": _generated(nested=nested)}
    if kinds[0] in ("object", "object[]"):
        members: dict[str, Any] = {}
        for member in [value] if isinstance(value, dict) else value:
            members = {**member, **members}
        definition["nestedProperties"] = [
            _describe(key, member, f"nested property '{key}'", nested=True) for key, member in members.items()
        ]
    return definition


def _determine(value: Any, *, nested: bool) -> list[str]:
    if value is None:
        return ["text"]
    if isinstance(value, dict):
        if not nested and set(value) == {"latitude", "longitude"}:
            return ["geoCoordinates"]
        if not nested and "input" in value and set(value) <= {"input", "defaultCountry"}:
            return ["phoneNumber"]
        return ["object"]
    return _of_array(value, nested=nested) if isinstance(value, list) else [_of_scalar(value)]


def _of_scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if parse_date(value):
        return "date"
    try:
        parse_uuid(value)
    except InvalidError:
        return "text"
    return "uuid"


def _of_array(values: list[Any], *, nested: bool) -> list[str]:
    kinds: list[str] = []
    for position, value in enumerate(values):
        kind = _of_element(value, position, nested=nested)
        if kinds and kind != kinds[0]:
            if {kind, kinds[0]} <= _WORDS:
                kinds = ["text[]"]
                continue
            if not (kind[0].isupper() and kinds[0][0].isupper()):
                names = [name.removesuffix("[]") if name[0].islower() else "reference" for name in (kinds[0], kind)]
                # A reference stands without quotes.
                first, second = (name if name == "reference" else f"'{name}'" for name in names)
                raise InvalidError(f"element [{position}]: mismatched data type - {first} expected, got {second}")
        if kind not in kinds:
            kinds.append(kind)
    return kinds or ["text[]"]


def _of_element(value: Any, position: int, *, nested: bool) -> str:
    if value is None or isinstance(value, list):
        types = _KNOWN if nested else f"{_KNOWN}, 'cref'"
        raise InvalidError(
            f"element [{position}]: unrecognized data type of value '{go(value)}' - one of {types} expected"
        )
    if isinstance(value, dict):
        beacon = None if nested else parse_beacon(str(value.get("beacon", "")))
        return beacon[0] if beacon and beacon[0] else "object[]"
    return f"{_of_scalar(value)}[]"


def _generated(*, nested: bool) -> str:
    now = dt.datetime.now(dt.UTC).ctime()
    return f"This {'nested ' if nested else ''}property was generated by Weaviate's auto-schema feature on {now}"
