"""References from one object to another, and the routes that change them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate.calls import Reply
from dragoman_sample.fakes.weaviate.errors import InvalidError, not_reproduced, refused
from dragoman_sample.fakes.weaviate.values import go_type

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.calls import Call
    from dragoman_sample.fakes.weaviate.store import Collection, Database, Stored

_BEACON = re.compile(r"weaviate://localhost/(?:([A-Z]\w*)/)?([0-9a-fA-F-]{36})", re.ASCII)


def parse_beacon(text: str) -> tuple[str, str] | None:
    """Return class (maybe empty) and uuid of a beacon."""
    match = _BEACON.fullmatch(text)
    return (match[1] or "", match[2].lower()) if match else None


def check(database: Database, definition: dict[str, Any], value: Any, owner: str) -> list[dict[str, str]]:
    """Return the references of a property in the form in which they come back.

    Raises:
        InvalidError: one of them is refused.
    """
    if not isinstance(value, list):
        raise InvalidError(f"reference property is not a slice {value}")
    return [_single(database, definition, link, owner) for link in value]


def _single(database: Database, definition: dict[str, Any], value: Any, owner: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidError("reference property is not a map: map[string]interface {}")
    beacon = value.get("beacon")
    if not isinstance(beacon, str):
        raise InvalidError(f"beacon property is not a string: {go_type(beacon)}")
    parsed = parse_beacon(beacon)
    if not parsed:
        if "/" in beacon:
            raise not_reproduced(f"the refusal of the beacon {beacon!r}")
        raise InvalidError(f"invalid cref URI: path must be of format '<class>/<uuid>', but got '{beacon}'")
    target, identifier = parsed[0] or definition["dataType"][0], parsed[1]
    collection = database.resolve(target)
    shards = (
        [] if collection is None else collection.of_tenant.values() if collection.has_tenants else collection.shards
    )
    if not any(identifier in shard.objects for shard in shards):
        name = definition["name"]
        raise InvalidError(f"invalid cref: 'cref' {owner}:{name}: no object with id {identifier} found")
    return rendered(target, identifier)


def rendered(target: str, identifier: str) -> dict[str, str]:
    """Return a reference as the server shows it."""
    return {
        "beacon": f"weaviate://localhost/{target}/{identifier}",
        "href": f"/v1/objects/{target}/{identifier}",
    }


def add(call: Call) -> Reply:
    """Add one reference."""
    collection, item, name = _found(call)
    item.properties[name] = [*item.properties.get(name, ()), _one(call, collection, name, call.json({"beacon"}))]
    return _written(call, collection, item)


def replace(call: Call) -> Reply:
    """Set all references of a property."""
    collection, item, name = _found(call)
    item.properties[name] = [_one(call, collection, name, link) for link in call.list()]
    return _written(call, collection, item)


def remove(call: Call) -> Reply:
    """Take one reference away."""
    collection, item, name = _found(call)
    gone = _one(call, collection, name, call.json({"beacon"}))
    item.properties[name] = [link for link in item.properties.get(name, ()) if link != gone]
    return Reply(status=204, empty=_written(call, collection, item).empty)


def _found(call: Call) -> tuple[Collection, Stored, str]:
    collection, name = call.collection(), call.path["property"]
    item = collection.find(call.path["id"], "") if collection and not collection.has_tenants else None
    if not collection or not item or name not in collection.properties:
        raise not_reproduced("a reference of something that is not there")
    call.principal.require("update_data", collection.name)
    return collection, item, name


def _one(call: Call, collection: Collection, name: str, value: Any) -> dict[str, str]:
    try:
        return _single(call.database, collection.properties[name], value, collection.name)
    except InvalidError:
        parsed = parse_beacon(str(value.get("beacon")))
        text = f"validate reference: no object with id {parsed[1] if parsed else ''} found"
        raise refused(422, f"msg:validate existence code:400 err:{text}") from None


def _written(call: Call, collection: Collection, item: Stored) -> Reply:
    item.updated = call.database.now()
    collection.shard_of(item.id, "").version += 1
    return Reply(empty=True)
