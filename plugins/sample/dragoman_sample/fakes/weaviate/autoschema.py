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
        given = [_describe(key, value, f"property '{key}' on class '{name}'") for key, value in properties.items()]
    except InvalidError as reason:
        raise refused(500, f"invalid object: {reason}") from None
    collection = database.resolve(name)
    if not collection:
        made = {"class": name, "description": _generated(nested=False), "properties": given}
        try:
            return schema.create(database, made)
        except ServerError as error:
            told = error.body["error"][0]["message"]
            raise refused(500, f"invalid object: auto-schema: create collection: {told}") from None
    known = collection.properties
    new = [each for each in given if schema.small(each["name"]) not in known]
    try:
        schema.add_properties(database, collection, new)
    except InvalidError as reason:
        raise refused(500, f"invalid object: auto-schema: update collection: {reason}") from None
    for each in given:
        _merge_nested(database, known.get(schema.small(each["name"]), {}), each, collection.name)
    return collection


def _merge_nested(database: Database, known: dict[str, Any], given: dict[str, Any], owner: str) -> None:
    """Add what an object has and its definition has not."""
    if "nestedProperties" not in given or "nestedProperties" not in known:
        return
    by_name = {each["name"]: each for each in known["nestedProperties"]}
    for each in given["nestedProperties"]:
        if each["name"] in by_name:
            _merge_nested(database, by_name[each["name"]], each, owner)
        else:
            known["nestedProperties"].append(schema.define_property(database, each, owner=owner, nested=True))
            database.schema_version += 1


def _describe(name: str, value: Any, where: str, *, nested: bool = False) -> dict[str, Any]:
    try:
        kinds = _determine(value, nested=nested)
    except InvalidError as reason:
        raise InvalidError(f"{where}: {reason}") from None
    found: dict[str, Any] = {"name": name, "dataType": kinds, "description": _generated(nested=nested)}
    if kinds[0] in ("object", "object[]"):
        members: dict[str, Any] = {}
        for each in [value] if isinstance(value, dict) else value:
            members = {**each, **members}
        found["nestedProperties"] = [
            _describe(key, each, f"nested property '{key}'", nested=True) for key, each in members.items()
        ]
    return found


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
                shown = [each.removesuffix("[]") if each[0].islower() else "reference" for each in (kinds[0], kind)]
                # A reference stands without quotes.
                first, second = (each if each == "reference" else f"'{each}'" for each in shown)
                raise InvalidError(f"element [{position}]: mismatched data type - {first} expected, got {second}")
        if kind not in kinds:
            kinds.append(kind)
    return kinds or ["text[]"]


def _of_element(value: Any, position: int, *, nested: bool) -> str:
    if value is None or isinstance(value, list):
        known = _KNOWN if nested else f"{_KNOWN}, 'cref'"
        raise InvalidError(
            f"element [{position}]: unrecognized data type of value '{go(value)}' - one of {known} expected"
        )
    if isinstance(value, dict):
        found = None if nested else parse_beacon(str(value.get("beacon", "")))
        return found[0] if found and found[0] else "object[]"
    return f"{_of_scalar(value)}[]"


def _generated(*, nested: bool) -> str:
    now = dt.datetime.now(dt.UTC).ctime()
    return f"This {'nested ' if nested else ''}property was generated by Weaviate's auto-schema feature on {now}"
