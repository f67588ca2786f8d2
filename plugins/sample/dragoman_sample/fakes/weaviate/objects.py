"""Objects one at a time: make, read, change, replace and delete."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate import schema, writing
from dragoman_sample.fakes.weaviate.calls import Reply
from dragoman_sample.fakes.weaviate.errors import InvalidError, ServerError, coded, not_reproduced, refused
from dragoman_sample.fakes.weaviate.store import Stored
from dragoman_sample.fakes.weaviate.tenants import reach
from dragoman_sample.fakes.weaviate.values import go_type, parse_uuid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_sample.fakes.weaviate.calls import Call
    from dragoman_sample.fakes.weaviate.store import Collection


def rendered(item: Stored, collection: Collection, *, with_vector: bool, answer: bool = False) -> dict[str, Any]:
    """Return an object as the server shows it; the answer to a write shows it differently."""
    body: dict[str, Any] = {
        "class": collection.name,
        "id": item.id,
        "creationTimeUnix": item.created,
        "lastUpdateTimeUnix": item.updated,
        "properties": dict(item.properties),
    }
    if answer:
        if collection.indexes("Timestamps"):
            body["properties"] |= {"_creationTimeUnix": item.created, "_lastUpdateTimeUnix": item.updated}
        if item.tenant:
            body["tenant"] = item.tenant
    else:
        body["vectorWeights"] = None
    if with_vector and item.vector:
        body["vector"] = item.vector
    if with_vector and item.vectors:
        body["vectors"] = item.vectors
    return body


def with_vector(call: Call) -> bool:
    """Tell whether a request asks for vectors.

    Raises:
        ServerError: it asks for something else.
    """
    included = set(filter(None, call.params.get("include", "").split(",")))
    if included - {"vector"}:
        raise not_reproduced(f"include={call.params['include']}")
    return bool(included)


def identifier(text: Any, place: str) -> str:
    """Return a uuid of a request as it is stored.

    Raises:
        ServerError: it is none.
    """
    try:
        return parse_uuid(text)
    except InvalidError:
        raise coded(422, f'id in {place} must be of type uuid: "{text}"', 601) from None


def create(call: Call) -> Reply:
    """Make one object; an id that exists is refused."""
    if not call.raw:
        raise coded(422, "body in body is required", 602)
    body = call.json(writing.OBJECT_KEYS)
    text = body.get("id") or str(uuid.uuid4())
    if not isinstance(text, str):
        kind = {"json.Number": "number", "bool": "bool"}.get(go_type(text), "array")
        reason = f"json: cannot unmarshal {kind} into Go struct field Object.id of type string"
        raise coded(400, f'parsing body body from "" failed, because {reason}')
    object_id, properties = identifier(text, "body"), body.get("properties") or {}
    call.principal.require("create_data", schema.capital(body.get("class") or ""))
    collection = writing.target(call, body.get("class") or "", properties)
    tenant = body.get("tenant") or ""
    shard = reach(collection, tenant, object_id, wrap=lambda reason: _insert_refusal(reason, collection))
    if object_id in shard.objects:
        raise refused(422, f"id '{object_id}' already exists")
    try:
        values = writing.stored(call.database, collection, properties)
    except InvalidError as reason:
        raise refused(422, f"invalid object: {reason}") from None
    item = Stored(object_id, 0, values, _vector(call, body, collection, object_id), writing.vectors(body), 0, 0, tenant)
    item.created = item.updated = call.database.now()
    shard.put(item, collection.properties)
    # The answer repeats the id with the dashes that it was given.
    return Reply(rendered(item, collection, with_vector=True, answer=True) | {"id": text.lower()})


def _insert_refusal(reason: InvalidError, collection: Collection) -> ServerError:
    # What is known before the index is asked is told without it.
    early = "without tenant" in str(reason) or "not active" in str(reason)
    where = "" if early else f"put object: import into index {collection.name.lower()}: "
    return refused(422, f"{where}determine shard: {reason}")


def _vector(call: Call, body: dict[str, Any], collection: Collection, object_id: str) -> list[float] | None:
    try:
        return writing.vector(body, collection.shard_of(object_id, body.get("tenant") or ""))
    except InvalidError as reason:
        index = collection.name.lower()
        if call.method == "PATCH":
            text = f'merge into index {index}: update local object: shard="shard": validate vector index for update'
            raise refused(500, f"msg:repo.merge code:500 err:{text} of {object_id}: {reason}") from None
        text = f'import into index {index}: put local object: shard="shard": store object in LSM store'
        raise refused(500, f"put object: {text}: Validate vector index for {object_id}: {reason}") from None


def read(call: Call) -> Reply:
    """Answer one object; without a class in the path, the first that is found in any class."""
    object_id, included = identifier(call.path["id"], "path"), with_vector(call)
    for collection in _places(call):
        call.principal.require("read_data", collection.name, item=object_id)
        item = _read(call, collection, object_id)
        if item:
            if call.method == "HEAD":
                return Reply(status=204, empty=True)
            tenant = {"tenant": item.tenant} if item.tenant else {}
            return Reply(rendered(item, collection, with_vector=included) | tenant)
    return Reply(status=404, empty=True)


def _read(call: Call, collection: Collection, object_id: str) -> Stored | None:
    def wrap(reason: InvalidError) -> ServerError:
        where = f"search index {collection.name.lower()}: determine shard: {reason}"
        return refused(422, f"repo: object by id: {where}")

    tenant = call.params.get("tenant", "") if "class" in call.path else ""
    return reach(collection, tenant, object_id, wrap=wrap).objects.get(object_id)


def delete(call: Call) -> Reply:
    """Delete an object; without a class in the path, from every class."""
    object_id, existed = identifier(call.path["id"], "path"), False
    if "class" in call.path:
        name = schema.capital(call.path["class"])
        call.principal.require("delete_data", name, item=object_id)
        collection = call.collection()
        if not collection:
            text = f"delete from non-existing index for {name}"  # noqa: S608 - the server's words
            raise refused(500, f"could not delete object from vector repo: {text}")
        tenant = call.params.get("tenant", "")
        where = f'delete object from vector repo: delete from index "{name.lower()}": determine shard'  # noqa: S608 - as above
        reach(collection, tenant, object_id, wrap=lambda reason: refused(422, f"{where}: {reason}")).remove(object_id)
        return Reply(status=204, empty=True)
    for collection in _places(call):
        call.principal.require("delete_data", collection.name)
        existed = bool(_read(call, collection, object_id)) or existed
    for collection in _places(call):
        collection.shard_of(object_id, "").remove(object_id)
    return Reply(status=204 if existed else 404, empty=True)


def _places(call: Call) -> Iterator[Collection]:
    if "class" in call.path:
        collection = call.collection()
        yield from [collection] if collection else []
        return
    # Which class is looked at first is chance on the real server; one with tenants spoils all of it.
    yield from sorted(call.database.everywhere(), key=lambda candidate: not candidate.has_tenants)


def patch(call: Call) -> Reply:
    """Merge properties into an object; without a class in the path, the body says which class is meant."""
    object_id = identifier(call.path["id"], "path")
    body = call.json(writing.OBJECT_KEYS)
    name = call.path.get("class") or body.get("class") or ""
    if not name:
        raise refused(422, "msg:bad request code:400 err:empty class")
    call.principal.require("update_data", schema.capital(name), item=object_id, twice=True)
    collection = call.collection(name)
    if not collection:
        return Reply(status=404, empty=True)
    tenant, changes = body.get("tenant") or "", body.get("properties") or {}
    where = f"msg:repo.object code:422 err:search index {collection.name.lower()}: determine shard"
    shard = reach(collection, tenant, object_id, wrap=lambda reason: refused(422, f"{where}: {reason}"))
    item = shard.objects.get(object_id)
    if not item:
        return Reply(status=404, empty=True)
    if call.settings.auto_schema:
        try:
            writing.target(call, collection.name, changes)
        except ServerError as error:
            raise _patch_refusal(InvalidError(error.body["error"][0]["message"])) from None
    try:
        values = writing.stored(call.database, collection, changes)
    except InvalidError as reason:
        raise _patch_refusal(reason) from None
    vector = _vector(call, body, collection, object_id) or item.vector
    remaining = {name: value for name, value in item.properties.items() if changes.get(name, ...) is not None}
    for key, value in values.items():
        if collection.properties[key]["dataType"][0][0].isupper():
            values[key] = [*remaining.get(key, ()), *value]
    vectors = item.vectors | writing.vectors(body)
    new = Stored(object_id, 0, remaining | values, vector, vectors, item.created, call.database.now(), tenant)
    shard.put(new, collection.properties)
    return Reply(status=204, empty=True)


def _patch_refusal(reason: InvalidError) -> ServerError:
    return refused(422, f"msg:bad request code:400 err:{reason}")


def replace(call: Call) -> Reply:
    """Replace an object; the body must repeat its id."""
    object_id = identifier(call.path["id"], "path")
    body = call.json(writing.OBJECT_KEYS)
    properties, name = body.get("properties") or {}, call.path.get("class") or body.get("class") or ""
    call.principal.require("update_data", schema.capital(name), item=object_id)
    collection = call.collection(name)
    tenant = body.get("tenant") or ""
    if not collection:
        raise not_reproduced("PUT to a class that is not there")
    shard = reach(collection, tenant, object_id, wrap=lambda reason: refused(422, str(reason)))
    item = shard.objects.get(object_id)
    if not item:
        return Reply(status=404, empty=True)
    if body.get("id", "").lower() != object_id:
        raise refused(422, "invalid update: field 'id' is immutable")
    writing.target(call, name, properties)
    try:
        values = writing.stored(call.database, collection, properties)
    except InvalidError as reason:
        raise refused(422, f"invalid object: {reason}") from None
    vector = _vector(call, body, collection, object_id)
    new = Stored(object_id, 0, values, vector, writing.vectors(body), item.created, call.database.now(), tenant)
    shard.put(new, collection.properties)
    return Reply(rendered(new, collection, with_vector=True, answer=True))


def validate(call: Call) -> Reply:
    """Check an object without storing it."""
    body = call.json(writing.OBJECT_KEYS)
    try:
        parse_uuid(body.get("id") or "")
        collection = call.database.resolve(body.get("class") or "")
        if not collection:
            raise not_reproduced("validation for a class that is not there")
        writing.stored(call.database, collection, body.get("properties") or {})
    except InvalidError as reason:
        raise refused(422, f"invalid object: {reason}") from None
    return Reply(empty=True)
