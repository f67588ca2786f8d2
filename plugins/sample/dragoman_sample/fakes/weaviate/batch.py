"""Many objects at once: made without asking whether they exist, and deleted by a filter."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate import filters, schema, writing
from dragoman_sample.fakes.weaviate.calls import Reply
from dragoman_sample.fakes.weaviate.errors import InvalidError, ServerError, coded, not_reproduced, refused
from dragoman_sample.fakes.weaviate.objects import rendered
from dragoman_sample.fakes.weaviate.store import Stored
from dragoman_sample.fakes.weaviate.tenants import check, reach
from dragoman_sample.fakes.weaviate.values import parse_uuid
from dragoman_sample.fakes.weaviate.wherecheck import Where, check_form, validate

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.calls import Call
    from dragoman_sample.fakes.weaviate.clauses import Clause
    from dragoman_sample.fakes.weaviate.store import Collection, Shard


def create(call: Call) -> Reply:
    """Store objects; each answers for itself, and one that exists is overwritten."""
    body = call.json({"objects", "fields"})
    objects = body.get("objects") or []
    if not objects:
        raise refused(422, "invalid param 'objects': cannot be empty, need at least one object for batching")
    for position, item in enumerate(objects):
        for key in item:
            if key not in writing.OBJECT_KEYS:
                raise not_reproduced(f"the member {key!r} of an object")
        if item.get("id"):
            try:
                parse_uuid(item["id"])
            except InvalidError:
                text = f'body.objects.{position}.id in body must be of type uuid: "{item["id"]}"'
                raise coded(422, text, 601) from None
        # An administrators' list asks whether objects may be changed first, as some may be there already.
        call.principal.require("update_data", schema.capital(item.get("class") or ""))
    return Reply([_create(call, item) for item in objects])


def _create(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    identifier = parse_uuid(body.get("id") or str(uuid.uuid4()))
    body = {"properties": {}, **body}
    name = schema.capital(body.get("class") or "")
    if not call.settings.auto_schema and not call.database.resolve(name):
        return _failed(call, body, identifier, f"class '{name}' not present in schema")
    try:
        collection = writing.target(call, name, body["properties"])
        tenant = body.get("tenant") or ""
        shard = reach(collection, tenant, identifier, wrap=lambda reason: reason)
        values = writing.stored(call.database, collection, body["properties"])
        vector = writing.vector(body, shard)
    except InvalidError as error:
        return _failed(call, body, identifier, str(error))
    except ServerError as error:
        return _failed(call, body, identifier, error.body["error"][0]["message"].removeprefix("invalid object: "))
    now = call.database.now()
    old = shard.objects.get(identifier)
    item = Stored(identifier, 0, values, vector, writing.vectors(body), old.created if old else now, now, tenant)
    item.created = now
    shard.put(item, collection.properties)
    answered = rendered(item, collection, with_vector=True, answer=True)
    return answered | {"deprecations": None, "result": {"status": "SUCCESS"}}


def _failed(call: Call, body: dict[str, Any], identifier: str, reason: str) -> dict[str, Any]:
    times = dict.fromkeys(("creationTimeUnix", "lastUpdateTimeUnix"), call.database.now())
    result = {"status": "FAILED", "errors": {"error": [{"message": reason}]}}
    return {**body, **times, "id": identifier, "deprecations": None, "result": result}


def delete(call: Call) -> Reply:
    """Delete what a filter matches, or tell what it would."""
    body = call.json({"match", "dryRun", "output"})
    match = body.get("match") or {}
    call.principal.require("delete_data", schema.capital(match.get("class") or ""))
    if not match.get("where"):
        raise refused(500, "validate: empty match.where clause")
    collection = call.collection(match.get("class") or "")
    if not collection:
        raise not_reproduced("a batch delete in a class that is not there")
    tenant, dry = call.params.get("tenant", ""), bool(body.get("dryRun"))
    try:
        check(collection, tenant)
    except InvalidError as reason:
        raise refused(422, f"batch delete objects: cannot find objects: {reason}") from None
    try:
        clause = _clause(call, filters.of_rest(match["where"]), collection)
        matches = [_matches(collection, shard, clause) for shard in collection.parts(tenant)]
    except InvalidError as reason:
        raise refused(422, str(reason)) from None
    matched = [(shard, item) for items in matches for shard, item in items]
    handled = matched[: call.settings.window]
    if not dry:
        for shard, item in handled:
            shard.remove(item.id)
    status = "DRYRUN" if dry else "SUCCESS"
    verbose = body.get("output") == "verbose"
    results = {
        "failed": 0,
        "limit": call.settings.window,
        "matches": len(matched),
        "objects": [{"id": item.id, "status": status} for _, item in handled] if verbose else None,
        "successful": 0 if dry else len(handled),
    }
    match = {**match, "where": _echoed(match["where"])}
    answer = {"dryRun": dry, "match": match, "output": body.get("output") or "minimal", "results": results}
    return Reply({"deletionTimeUnixMilli": -62135596800000, **answer})


def _echoed(where: Where) -> Where:
    operands = where.get("operands")
    return {"path": None, **where, "operands": [_echoed(operand) for operand in operands] if operands else None}


def _clause(call: Call, where: Where, collection: Collection) -> Clause:
    check_form(where, call.settings)
    wrong = validate(where, collection, call.database)
    if wrong:
        raise InvalidError(f"validate: invalid where filter: {wrong}")
    return filters.build(where, collection, call.database)


def _matches(collection: Collection, shard: Shard, clause: Clause) -> list[tuple[Shard, Stored]]:
    documents = clause.documents(collection, shard, limit=0)
    return [
        (shard, shard.objects[identifier]) for identifier in shard.ids() if shard.objects[identifier].doc in documents
    ]
