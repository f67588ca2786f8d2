"""The routes around the data: the server itself, its schema, tenants and aliases."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from dragoman_sample.fakes.weaviate import schema
from dragoman_sample.fakes.weaviate.calls import Reply
from dragoman_sample.fakes.weaviate.errors import InvalidError, ServerError, not_reproduced, refused
from dragoman_sample.fakes.weaviate.security import shown
from dragoman_sample.fakes.weaviate.store import Shard

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.calls import Call
    from dragoman_sample.fakes.weaviate.store import Collection

_STATES = {"ACTIVE": "HOT", "INACTIVE": "COLD"}
_OFF = "rest search api is experimental and not enabled; set EXPERIMENTAL_REST_SEARCH_ENABLED=true to enable"


def meta(call: Call) -> Reply:
    """Answer what the server is; any valid key may ask."""
    host = f"http://{call.settings.host}"
    return Reply({"grpcMaxMessageSize": 104858000, "hostname": host, "modules": {}, "version": call.settings.version})


def nothing(_call: Call) -> Reply:
    """Answer 200, as the probes do for everybody."""
    return Reply(empty=True)


def links(_call: Call) -> Reply:
    """Answer the list of entry points."""
    names = ("/v1/meta", "/v1/schema", "/v1/schema{/:className}", "/v1/objects{/:id}", "/v1/classifications{/:id}")
    probes = ("/v1/.well-known/live", "/v1/.well-known/ready", "/v1/.well-known/openid-configuration")
    return Reply({"links": [{"href": name} for name in (*names, *probes)]})


def nodes(call: Call) -> Reply:
    """Answer the one node there is; `verbose` adds its shards, of which each tenant is one."""
    node: dict[str, object] = {
        "batchStats": {"queueLength": 0, "ratePerSecond": 0},
        "name": "node1",
        "operationalMode": "ReadWrite",
        "shards": None,
        "status": "HEALTHY",
        "version": call.settings.version,
    }
    if call.params.get("output") == "verbose":
        shards = [
            {
                "class": collection.name, "name": str(name), "loaded": True, "numberOfReplicas": 1,
                "objectCount": len(shard.objects), "vectorIndexingStatus": "READY", "vectorQueueLength": 0,
            }
            for collection in call.database.everywhere()
            for name, shard in (
                collection.of_tenant.items() if collection.has_tenants else enumerate(collection.shards)
            )
        ]  # fmt: skip
        counts = [len(shard.objects) for collection in call.database.everywhere() for shard in collection.shards]
        node |= {"shards": shards, "stats": {"objectCount": sum(counts), "shardCount": len(shards)}}
    return Reply({"nodes": [node]})


def own_info(call: Call) -> Reply:
    """Answer who sends the request: no roles unless there are roles at all."""
    principal = call.principal
    if principal.access == "open":
        return Reply(status=401, empty=True)
    # An administrators' list has no roles, and tells a reader nothing of being one.
    roles = shown(principal.user) if principal.access == "roles" else None
    return Reply({"groups": None, "roles": roles, "username": principal.user.name})


def show_schema(call: Call) -> Reply:
    """Answer the classes that the sender may see, in random order."""
    allowed = [
        collection.definition
        for collection in call.database.everywhere()
        if call.principal.may("read_collections", collection.name)
    ]
    # The real server reads a Go map: no two answers need have the same order.
    return Reply({"classes": random.sample(allowed, len(allowed))})


def show_class(call: Call) -> Reply:
    """Answer one class."""
    collection = call.collection()
    call.principal.require("read_collections", schema.capital(call.path["class"]), resource=_schema_of(call))
    return Reply(collection.definition) if collection else Reply(status=404, empty=True)


def create_class(call: Call) -> Reply:
    """Make a class."""
    body = call.json(schema.CLASS_KEYS)
    name = schema.capital(body.get("class", ""))
    call.principal.require("create_collections", name, resource=f"schema/collections/{name}/shards/#")
    return Reply(schema.create(call.database, body).definition)


def delete_class(call: Call) -> Reply:
    """Drop a class; one that is not there is dropped as well."""
    name = schema.capital(call.path["class"])
    call.principal.require("delete_collections", name, resource=_schema_of(call))
    call.database.collections.pop(name, None)
    call.database.schema_version += 1
    return Reply(empty=True)


def add_property(call: Call) -> Reply:
    """Add a property to a class."""
    collection = call.collection()
    if not collection:
        raise schema.refuse_schema(f'class "{call.path["class"]}": not found')
    call.principal.require("update_collections", collection.name, resource=_schema_of(call))
    body = call.json(
        {
            "name",
            "description",
            "dataType",
            "tokenization",
            "indexFilterable",
            "indexSearchable",
            "indexRangeFilters",
            "nestedProperties",
        }
    )
    try:
        (added,) = schema.add_properties(call.database, collection, [body])
    except InvalidError as reason:
        raise schema.refuse_schema(str(reason)) from None
    return Reply(added)


def show_tenants(call: Call) -> Reply:
    """Answer the tenants of a class."""
    tenants = _with_tenants(call).tenants
    return Reply([{"activityStatus": status, "name": name} for name, status in tenants.items()])


def show_tenant(call: Call) -> Reply:
    """Answer one tenant; a HEAD asks whether it is there."""
    tenants, name = _with_tenants(call).tenants, call.path["tenant"]
    if name not in tenants:
        return Reply(status=404, empty=True)
    return Reply({"activityStatus": tenants[name], "name": name}, empty=call.method == "HEAD")


def add_tenants(call: Call) -> Reply:
    """Make tenants."""
    collection, answered = _with_tenants(call), []
    for tenant in call.list():
        status = _STATES.get(tenant.get("activityStatus", ""), tenant.get("activityStatus", ""))
        collection.tenants.setdefault(tenant["name"], status or "HOT")
        collection.of_tenant.setdefault(tenant["name"], Shard())
        answered.append({"activityStatus": status, "name": tenant["name"]} if status else {"name": tenant["name"]})
    return Reply(answered)


def change_tenants(call: Call) -> Reply:
    """Wake tenants, or put them to sleep."""
    collection, answered = _with_tenants(call), []
    for tenant in call.list():
        status = _STATES.get(tenant["activityStatus"], tenant["activityStatus"])
        collection.tenants[tenant["name"]] = status
        answered.append({"activityStatus": status, "name": tenant["name"]})
    return Reply(answered)


def delete_tenants(call: Call) -> Reply:
    """Drop tenants and what they hold."""
    collection = _with_tenants(call)
    for name in call.list():
        collection.tenants.pop(name, None)
        collection.of_tenant.pop(name, None)
    return Reply(empty=True)


def show_aliases(call: Call) -> Reply:
    """Answer the aliases."""
    return Reply({"aliases": [{"alias": alias, "class": name} for alias, name in call.database.aliases.items()]})


def add_alias(call: Call) -> Reply:
    """Rename a class."""
    body = call.json({"alias", "class"})
    call.database.aliases[body["alias"]] = body["class"]
    call.database.schema_version += 1
    return Reply(body)


def delete_alias(call: Call) -> Reply:
    """Drop an alias."""
    call.database.aliases.pop(call.path["alias"], None)
    call.database.schema_version += 1
    return Reply(status=204, empty=True)


def search_is_off(_call: Call) -> Reply:
    """Refuse the search by REST, which is off."""
    raise refused(422, _OFF)


def _with_tenants(call: Call) -> Collection:
    collection = call.collection()
    if collection and collection.has_tenants:
        return collection
    if not collection:
        raise not_reproduced("tenants of a class that is not there")
    if call.method != "GET" or "tenant" in call.path:
        raise not_reproduced("changing tenants of a class without them")
    text = f'could not get tenants: multi-tenancy is not enabled for class "{collection.name}"'
    raise ServerError(422, {"error": [{"message": f"failed to execute query: could not get tenants: {text}"}]})


def _schema_of(call: Call) -> str:
    return f"schema/collections/{schema.capital(call.path['class'])}/shards/#"
