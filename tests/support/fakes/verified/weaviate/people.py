"""Who may do what: keys with an administrators' list, keys with roles, no keys, and servers with other settings."""

# ruff: noqa: E501 - one request on one line is what makes it a table

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate import VIEWER, FakeWeaviate, Role, User
from fakes.verified.weaviate.asks import Ask, get, graphql, link, post, prop, uid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LIMITED = Role("limited", (("read_collections", "Readable*"), ("read_data", "Readable*")))
_STRANGERS = ("nothing", "wrong", "empty", "bare", "basic", "small", "token")
# Stands for a server's record where there is no server: what a run without one is compared by.
_KEYS = {
    name: f"key-of-{name}" for name in ("admin", "reader", "limited", "nobody", "rotated", "deactivated", "deleted")
}
_GONE = {"rotated": "invalid token", "deactivated": "user deactivated", "deleted": "invalid token"}


def record(mode: str, version: str) -> dict[str, Any]:
    """Return what the list of servers would say of one that is not there."""
    access = {"roles": "roles", "open": "open", "no-graphql": "open", "small": "open"}.get(mode, "keys")
    known = (
        _KEYS if access == "roles" else {name: _KEYS[name] for name in ("admin", "reader")} if access == "keys" else {}
    )
    return {"engine": engine(mode, version), "version": version, "access": access, "api_keys": known}


def engine(mode: str, version: str) -> str:
    """Return the name of the engine on which this table is recorded."""
    suffix = {"keys": "", "roles": "-rbac"}.get(mode, f"-{mode}")
    return f"weaviate-{version}{suffix}"


def mode_of(server: Mapping[str, Any]) -> str:
    """Return which table a server is asked."""
    suffix = str(server["engine"]).removeprefix(f"weaviate-{server['version']}").removeprefix("-")
    return {"": "keys", "tls": "keys", "rbac": "roles"}.get(suffix, suffix)


def mirror(server: dict[str, Any]) -> FakeWeaviate:
    """Return a fake with the keys and settings of a server."""
    mode, keys = mode_of(server), server["api_keys"]
    users = {"admin": User("admin", admin=True), "reader": User("reader", roles=(VIEWER,))}
    users |= {"limited": User("limited", roles=(_LIMITED,)), "nobody": User("nobody")}
    fake = FakeWeaviate(
        version=server["version"],
        access="roles" if server["access"] == "roles" else "keys",
        keys={key: users[name] for name, key in keys.items() if name in users},
        gone={key: _GONE[name] for name, key in keys.items() if name in _GONE},
        graphql=mode != "no-graphql",
    )
    if mode == "small":
        fake.window, fake.page, fake.auto_schema = 50, 25, False
    return fake


def headers(server: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return what each person sends."""
    keys = server["api_keys"]
    known = {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
    key = keys.get("admin", "x")
    basic = base64.b64encode(f"x:{key}".encode()).decode()
    strangers = {
        "nothing": {},
        "wrong": {"Authorization": "Bearer wrong"},
        "empty": {"Authorization": "Bearer "},
        "bare": {"Authorization": key},
        "basic": {"Authorization": f"Basic {basic}"},
        "small": {"Authorization": f"bearer {key}"},
        "token": {},
    }
    return {"admin": {}, **known, **strangers}


def _strangers() -> Iterator[Ask]:
    for who in _STRANGERS:
        yield get("/meta", f"{who}: meta", who=who)
    for path in ("/v1/.well-known/ready", "/v1/.well-known/live", "/v1", "/", "/v1/"):
        yield Ask(f"nothing: {path}", "GET", path, who="nothing", alike="status")
    yield get("/users/own-info", "nothing: own-info", who="nothing")
    yield get("/nope", "nothing: unknown path", who="nothing")
    yield Ask("nothing: unknown method", "PATCH", "/v1/meta", who="nothing")
    yield graphql("{ Get { X { i } } }", "nothing: graphql", who="nothing")
    yield post("nothing: wrong media type", "/graphql", b"x", who="nothing", media="text/plain")


def _everything(who: str, name: str) -> Iterator[Ask]:
    one = uid(1)
    asks = (
        get("/meta"), get("/schema", alike="set"), get(f"/schema/{name}"), get(f"/objects?class={name}&limit=1"), get(f"/objects/{name}/{one}"),
        Ask("head", "HEAD", f"/v1/objects/{name}/{one}"), graphql(f"{{ Get {{ {name} {{ i }} }} }}"), graphql(f"{{ Aggregate {{ {name} {{ meta {{ count }} }} }} }}"),
        post("insert", "/objects", {"class": name, "id": uid(2)}), Ask("patch", "PATCH", f"/v1/objects/{name}/{one}", {"properties": {"i": 2}}),
        Ask("put", "PUT", f"/v1/objects/{name}/{one}", {"class": name, "id": one}), Ask("delete", "DELETE", f"/v1/objects/{name}/{one}"),
        Ask("bare patch", "PATCH", f"/v1/objects/{one}", {"class": name, "properties": {"i": 2}}),
        Ask("batch delete", "DELETE", "/v1/batch/objects", {"match": {"class": name, "where": {"path": ["i"], "operator": "Equal", "valueInt": 1}}, "dryRun": True}),
        post("batch", "/batch/objects", {"objects": [{"class": name, "id": uid(2)}]}), post("make", "/schema", {"class": "VfGrown"}),
        Ask("drop", "DELETE", f"/v1/schema/{name}"), post("add", f"/schema/{name}/properties", prop("x", "int")),
        post("insert into no class", "/objects", {"class": "VfGrown", "properties": {"a": 1}}),
    )  # fmt: skip
    for ask in asks:
        yield Ask(f"{who}: {ask.name} ({name})", ask.method, ask.path, ask.body, who, ask.alike, ask.media)


def _given(name: str) -> Iterator[Ask]:
    yield post(f"make {name} for people", "/schema", {"class": name, "properties": [prop("i", "int")]})
    yield post(f"put in {name}", "/objects", {"class": name, "id": uid(1), "properties": {"i": 1}})


def _keys() -> Iterator[Ask]:
    yield from _strangers()
    yield from _given("VfA")
    yield from _everything("reader", "VfA")
    for who in ("admin", "reader"):
        yield get("/users/own-info", f"{who}: own-info", who=who)


def _roles() -> Iterator[Ask]:
    yield from _strangers()
    for who in ("rotated", "deactivated", "deleted"):
        yield get("/meta", f"{who}: meta", who=who)
    for who in ("reader", "limited", "nobody"):
        yield get("/users/own-info", f"{who}: own-info", who=who)
    for name in ("VfA", "ReadableVf"):
        yield from _given(name)
    for who in ("reader", "limited", "nobody"):
        yield from _everything(who, "VfA")
        yield from _everything(who, "ReadableVf")
    yield Ask("drop ReadableVf", "DELETE", "/v1/schema/ReadableVf")


def _open() -> Iterator[Ask]:
    yield from _strangers()
    yield graphql("{ Get { VfA { i } } }", "graphql without a schema")
    yield from _given("VfA")
    yield graphql("{ Get { VfA { i } } }", "graphql with one")
    yield get("/objects?class=VfA", who="wrong")


def _no_graphql() -> Iterator[Ask]:
    yield graphql("{ Get { VfA { i } } }", "graphql without a schema")
    yield from _given("VfA")
    yield graphql("{ Get { VfA { i } } }", "graphql with one")
    yield post("several documents", "/graphql/batch", [{"query": "{ Get { VfA { i } } }"}])
    yield get("/objects?class=VfA")


def _small() -> Iterator[Ask]:
    yield post(
        "make VfA",
        "/schema",
        {"class": "VfA", "properties": [prop("i", "int"), prop("o", "object", nestedProperties=[prop("a", "int")])]},
    )
    for number in range(60):
        yield post(
            f"put {number}",
            "/objects",
            {"class": "VfA", "id": uid(number), "properties": {"i": number}},
            alike="status",
        )
    for arguments in (
        "",
        "limit:50",
        "limit:51",
        "offset:49 limit:1",
        "offset:50 limit:1",
        "offset:40",
        f'limit:51 after:"{uid(1)}"',
    ):
        yield graphql(f"{{ Get {{ VfA{f'({arguments})' if arguments else ''} {{ i }} }} }}")
    for more in (
        "",
        "&limit=50",
        "&limit=51",
        "&offset=30&limit=20",
        "&offset=30&limit=21",
        f"&limit=51&after={uid(1)}",
    ):
        yield get(f"/objects?class=VfA{more}")
    for path, body in (
        ("POST", {"class": "VfA", "properties": {"nope": 1}}), ("POST", {"class": "Nope", "properties": {}}),
        ("POST", {"class": "VfA", "properties": {"o": {"nope": 1}}}), ("POST", {"class": "VfA", "properties": {"i": [None]}}),
    ):  # fmt: skip
        yield Ask(f"insert {body}", path, "/v1/objects", body)
    yield Ask("patch unknown", "PATCH", f"/v1/objects/VfA/{uid(1)}", {"properties": {"nope": 1}})
    yield post(
        "batch unknown",
        "/batch/objects",
        {"objects": [{"class": "VfA", "id": uid(99), "properties": {"nope": 1}}, {"class": "Nope", "id": uid(98)}]},
    )
    match = {"class": "VfA", "where": {"path": ["i"], "operator": "GreaterThanEqual", "valueInt": 0}}
    for dry in (True, False):
        yield Ask(f"batch delete {dry}", "DELETE", "/v1/batch/objects", {"match": match, "dryRun": dry}, alike="all")
    yield graphql("{ Aggregate { VfA { meta { count } } } }")


def _tenants() -> Iterator[Ask]:
    yield post(
        "make VfMt",
        "/schema",
        {"class": "VfMt", "properties": [prop("i", "int")], "multiTenancyConfig": {"enabled": True}},
    )
    yield post("make VfA", "/schema", {"class": "VfA", "properties": [prop("i", "int"), prop("ref", "VfA")]})
    yield post("put in VfA", "/objects", {"class": "VfA", "id": uid(1), "properties": {"i": 1}})
    yield post(
        "add tenants",
        "/schema/VfMt/tenants",
        [{"name": "a"}, {"name": "b"}, {"name": "cold", "activityStatus": "INACTIVE"}],
    )
    yield get("/schema/VfMt/tenants", alike="set")
    yield get("/schema/VfMt")
    for name in ("a", "nope"):
        yield get(f"/schema/VfMt/tenants/{name}")
        yield Ask(f"HEAD tenant {name}", "HEAD", f"/v1/schema/VfMt/tenants/{name}")
    one, wheres = uid(1), '(where:{path:["i"] operator:Equal valueInt:1}%s)'
    for tenant in ("a", "", "nope", "cold"):
        body = {"class": "VfMt", "id": one, "properties": {"i": 1}, **({"tenant": tenant} if tenant else {})}
        asked = f"tenant={tenant}" if tenant else ""
        argument = f'tenant:"{tenant}"' if tenant else ""
        yield post(f"put in {tenant!r}", "/objects", body)
        yield get(f"/objects?class=VfMt&{asked}")
        yield get(f"/objects/VfMt/{one}?{asked}")
        yield Ask(f"HEAD in {tenant!r}", "HEAD", f"/v1/objects/VfMt/{one}?{asked}")
        yield graphql(f"{{ Get {{ VfMt{f'({argument})' if argument else ''} {{ i }} }} }}")
        yield graphql(f"{{ Get {{ VfMt{wheres % (' ' + argument)} {{ i }} }} }}")
        yield graphql(f"{{ Aggregate {{ VfMt{f'({argument})' if argument else ''} {{ meta {{ count }} }} }} }}")
        patch = {"properties": {"i": 1}, **({"tenant": tenant} if tenant else {})}
        yield Ask(f"patch in {tenant!r}", "PATCH", f"/v1/objects/VfMt/{one}", patch)
        yield Ask(
            f"patch with a parameter {tenant!r}", "PATCH", f"/v1/objects/VfMt/{one}?{asked}", {"properties": {"i": 1}}
        )
        yield post(f"batch in {tenant!r}", "/batch/objects", {"objects": [{**body, "id": uid(5)}]})
        where = {
            "match": {"class": "VfMt", "where": {"path": ["i"], "operator": "Equal", "valueInt": 1}},
            "dryRun": True,
        }
        yield Ask(f"batch delete in {tenant!r}", "DELETE", f"/v1/batch/objects?{asked}", where)
    yield get(f"/objects/{one}")
    yield get(f"/objects/{one}?tenant=a")
    yield Ask("bare delete", "DELETE", f"/v1/objects/{one}")
    yield Ask("bare patch", "PATCH", f"/v1/objects/{one}", {"class": "VfA", "properties": {"i": 3}})
    yield post("a tenant where there are none", "/objects", {"class": "VfA", "tenant": "a"})
    yield get("/objects?class=VfA&tenant=a")
    yield get(f"/objects/VfA/{one}?tenant=a")
    yield graphql('{ Get { VfA(tenant:"a") { i } } }')
    yield Ask("delete with a tenant where there are none", "DELETE", f"/v1/objects/VfA/{one}?tenant=a")
    for limit in (1, 100):
        yield get(f"/objects?limit={limit}", alike="status")
    for tenant in ("b", "", "nope", "cold", "a"):
        yield Ask(
            f"delete in {tenant!r}", "DELETE", f"/v1/objects/VfMt/{one}" + (f"?tenant={tenant}" if tenant else "")
        )
    yield Ask("wake", "PUT", "/v1/schema/VfMt/tenants", [{"name": "cold", "activityStatus": "ACTIVE"}])
    yield Ask("drop tenants", "DELETE", "/v1/schema/VfMt/tenants", ["a"])
    yield get("/schema/VfMt/tenants", "tenants afterwards", alike="set")
    yield post("refer", "/objects/VfA/" + one + "/references/ref", link(1, "VfA"))
    for name in ("VfMt", "VfA"):
        yield Ask(f"drop {name}", "DELETE", f"/v1/schema/{name}")


ELSEWHERE = {
    "roles": list(_roles()),
    "open": list(_open()),
    "no-graphql": list(_no_graphql()),
    "small": list(_small()),
    "tenants": list(_tenants()),
}
PEOPLE = list(_keys())
