"""Turning the body of a write into what is stored: properties by their types, vectors by their lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate import autoschema, references, schema
from dragoman_sample.fakes.weaviate.errors import InvalidError, refused
from dragoman_sample.fakes.weaviate.values import check, float32, go_type

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.calls import Call
    from dragoman_sample.fakes.weaviate.store import Collection, Database, Shard

OBJECT_KEYS = {
    "class", "id", "properties", "vector", "vectors", "tenant", "creationTimeUnix", "lastUpdateTimeUnix",
    "vectorWeights",
}  # fmt: skip


def target(call: Call, name: str, properties: dict[str, Any]) -> Collection:
    """Return the class a write goes to; with auto-schema it is made to fit.

    Raises:
        ServerError: there is none.
    """
    if not name:
        raise refused(422, "invalid object: the given class is empty")
    if call.settings.auto_schema:
        return autoschema.extend(call.database, schema.capital(name), properties)
    collection = call.database.resolve(name)
    if not collection:
        raise refused(422, f'invalid object: class "{schema.capital(name)}" not found in schema')
    return collection


def stored(database: Database, collection: Collection, properties: dict[str, Any]) -> dict[str, Any]:
    """Return the properties in the form in which they come back; null leaves one out.

    Raises:
        InvalidError: one is unknown, or its value is refused.
    """
    definitions, values = collection.properties, dict[str, Any]()
    for key, value in properties.items():
        name = schema.small(key)
        if value is None:
            continue
        if name not in definitions:
            raise InvalidError(
                f"no such prop with name '{name}' found in class '{collection.name}' in the schema. Check your schema"
                " files for which properties in this class are available"
            )
        values[name] = _value(database, definitions[name], value, name, collection.name)
    return values


def _value(database: Database, definition: dict[str, Any], value: Any, path: str, owner: str) -> Any:
    kind = definition["dataType"][0]
    if kind[0].isupper():
        return references.check(database, definition, value, owner)
    if kind not in ("object", "object[]"):
        return check(kind, value, path, owner)
    try:
        if kind == "object":
            return _object(database, definition, value, path, owner)
        return _objects(database, definition, value, path, owner)
    except InvalidError as reason:
        raise InvalidError(f"invalid {kind} property '{path}' on class '{owner}': {reason}") from None


def _objects(database: Database, definition: dict[str, Any], values: Any, path: str, owner: str) -> list[Any]:
    if not isinstance(values, list):
        raise InvalidError(f"not an object array, but {go_type(values)}")
    objects = []
    for position, item in enumerate(values):
        try:
            objects.append(_object(database, definition, item, path, owner))
        except InvalidError as reason:
            raise InvalidError(f"invalid object '{position}' in array: {reason}") from None
    return objects


def _object(database: Database, definition: dict[str, Any], value: Any, path: str, owner: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidError(f"object must be a map, but got: {go_type(value)}")
    definitions = {member_definition["name"]: member_definition for member_definition in definition["nestedProperties"]}
    members: dict[str, Any] = {}
    for name, member in value.items():
        inner = f"{path}.{name}"
        if name not in definitions:
            raise InvalidError(f"unknown property '{inner}'")
        if member is None:
            # Unlike a property, a nested null is kept.
            members[name] = None
            continue
        try:
            members[name] = _value(database, definitions[name], member, inner, owner)
        except InvalidError as reason:
            raise InvalidError(f"property '{inner}': {reason}") from None
    return members


def vector(body: dict[str, Any], shard: Shard) -> list[float] | None:
    """Return the vector of a body.

    Raises:
        InvalidError: its length is not that of the others.
    """
    if not body.get("vector"):
        return None
    components = [float32(component) for component in body["vector"]]
    other = next((item.vector for item in shard.objects.values() if item.vector), components)
    if len(other) != len(components):
        raise InvalidError(
            f"new node has a vector with length {len(components)}. Existing nodes have vectors with length "
            f"{len(other)}: vector dimensions do not match the index dimensions"
        )
    return components


def vectors(body: dict[str, Any]) -> dict[str, Any]:
    """Return the named vectors of a body."""
    return {name: [float32(component) for component in value] for name, value in (body.get("vectors") or {}).items()}
