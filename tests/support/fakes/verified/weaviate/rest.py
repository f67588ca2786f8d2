"""REST: schema, objects, lists, batches, references, and what is refused."""

# ruff: noqa: E501 - one request on one line is what makes it a table

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakes.verified.weaviate.asks import DOC, Ask, get, graphql, link, post, prop, uid

if TYPE_CHECKING:
    from collections.abc import Iterator


def _patch(path: str, body: Any, name: str = "", **more: Any) -> Ask:
    return Ask(name or f"PATCH {path} {body}", "PATCH", f"/v1/objects/{path}", body, **more)


def _put(path: str, body: Any) -> Ask:
    return Ask(f"PUT {path} {body}", "PUT", f"/v1/objects/{path}", body)


def _delete(path: str, body: Any = None, **more: Any) -> Ask:
    return Ask(f"DELETE {path} {body or ''}", "DELETE", f"/v1/{path}", body, **more)


def _schema() -> Iterator[Ask]:
    yield get("/schema", alike="set")
    for name in ("VfDoc", "vfDoc", "Nope", "VfNamed"):
        yield get(f"/schema/{name}")
    for wrong in (
        {"class": "VfDoc"}, {"class": "bad name"}, {}, {"class": ""},
        *({"class": "VfA", "properties": properties} for properties in (
            [prop("id", "text")], [prop("x", "nope")], [prop("x", "object")], [prop("x", "Nope")], [prop("a b", "text")],
            [prop("x", "int", tokenization="word")], [prop("x", "int", indexSearchable=True)], [prop("x", "text", tokenization="zz")],
            [prop("x", "text", indexRangeFilters=True)], [prop("x", "text"), prop("X", "int")], [prop("_additional", "text")],
        )),
    ):  # fmt: skip
        yield post(f"refused class {wrong}", "/schema", wrong)
    made = {
        "class": "vfA",
        "properties": [prop("Cap", "string"), prop("ID", "string[]"), prop("_x", "int"), prop("uuid", "uuid")],
    }
    yield post("make VfA", "/schema", {**made, "description": "a text"})
    yield post("make VfB", "/schema", {"class": "VfB"})
    for body in (prop("more", "int"), prop("id", "int")):
        yield post(f"add {body}", "/schema/VfA/properties", body)
    yield post("add again", "/schema/VfA/properties", prop("more", "text"))
    yield post("add to nothing", "/schema/Nope/properties", prop("more", "int"))
    yield get("/schema/VfA")
    yield _delete("schema/Nope")
    yield get("/schema/VfDoc/tenants")


_WRONG: list[dict[str, Any]] = [
    {"i": 1.5}, {"i": "5"}, {"i": True}, {"i": [1]}, {"i": 2**63}, {"n": "1.5"}, {"n": True}, {"b": 1}, {"b": "true"}, {"w": 5},
    {"w": {"a": 1}}, {"d": "2024-01-01"}, {"d": "2024-01-01t00:00:00Z"}, {"d": "2024-02-30T00:00:00Z"}, {"d": 5}, {"u": "x"}, {"u": 5},
    {"blob": ""}, {"blob": "%%"}, {"blob": 5}, {"geo": {"latitude": 1}}, {"geo": 5}, {"geo": {"latitude": "1", "longitude": 2}},
    {"phone": {}}, {"phone": 5}, {"phone": {"input": 5}}, {"phone": {"input": "0171 1234567"}}, {"ref": "x"}, {"ref": [5]},
    {"ref": [{"beacon": "nope"}]}, {"ref": [{"beacon": 5}]}, {"ref": [link(77)]}, {"o": 5}, {"o": {"a": "x"}}, {"oo": [{"a": "x"}]}, {"oo": [5]},
    {"is": [1, None]}, {"is": [1, "a"]}, {"is": 5}, {"is": [1.5]}, {"ts": ["a", None]}, {"ts": "a"}, {"ts": [[1]]}, {"bs": [1]},
    {"ds": ["2024-01-01"]}, {"us": ["x"]}, {"id": 1}, {"a b": 1}, {"_additional": 1}, {"ns": ["x"]},
]  # fmt: skip


def _inserts() -> Iterator[Ask]:
    wrong_ids: list[dict[str, Any]] = [{"id": uid(0)}, {"id": "xyz"}, {"id": 5}]
    for body in (*({"class": "VfDoc", **each} for each in wrong_ids), {"properties": {}}):
        yield post(f"insert {body}", "/objects", body)
    yield post("insert nothing", "/objects", b"")
    yield post("insert half a body", "/objects", b"{")
    for properties in _WRONG:
        yield post(
            f"insert wrong {properties}", "/objects", {"class": "VfDoc", "id": uid(300), "properties": properties}
        )
    yield post("insert an int with a fraction", "/objects", b'{"class":"VfDoc","properties":{"i":1.0}}')
    yield post("insert an int with an exponent", "/objects", b'{"class":"VfDoc","properties":{"i":1e3}}')
    yield post(
        "insert a surrogate",
        "/objects",
        b'{"class":"VfPlain","id":"%s","properties":{"t":"a\\ud83d b"}}' % uid(310).encode(),
    )
    yield post(
        "insert a pair",
        "/objects",
        b'{"class":"VfPlain","id":"%s","properties":{"t":"\\ud83d\\ude00 \\u0000"}}' % uid(311).encode(),
    )
    for number in (310, 311):
        yield get(f"/objects/VfPlain/{uid(number)}")
    kept = {"i": 2**53 + 1, "n": 3, "is": [2**62], "u": uid(9).upper(), "us": [uid(9).replace("-", "")], "Cap": None}
    yield post("insert what changes", "/objects", {"class": "VfDoc", "id": uid(312).upper(), "properties": kept})
    yield get(f"/objects/VfDoc/{uid(312)}")
    yield post("insert undashed", "/objects", {"class": "VfPlain", "id": uid(313).replace("-", "")})
    yield post("insert with small class", "/objects", {"class": "vfPlain", "properties": {"I": 4}})
    yield post("insert with no id", "/objects", {"class": "VfPlain", "id": "", "properties": {"t": None}})
    yield post("insert a vector too short", "/objects", {"class": "VfDoc", "vector": [1]})
    yield post("validate wrong", "/objects/validate", {"class": "VfDoc", "id": uid(1), "properties": {"i": "x"}})
    yield post("validate", "/objects/validate", {"class": "VfDoc", "id": uid(1), "properties": {"i": 5}})
    yield _delete(f"objects/VfDoc/{uid(312)}")


def _auto() -> Iterator[Ask]:
    new = {
        "d": "2024-01-01T00:00:00Z", "u": uid(1), "n": 1, "b": True, "t": "x", "ts": ["a", "b"], "nothing": None, "empty": [],
        "o": {"a": 1, "b": {"c": "x"}}, "os": [{"a": 1}, {"b": "x"}], "geo": {"latitude": 1, "longitude": 2}, "mix": ["a", uid(1)],
        "ref": [link(900)], "phone": {"input": "+49 171 1234567"},
    }  # fmt: skip
    yield post("insert into no class", "/objects", {"class": "VfAuto", "id": uid(400), "properties": new})
    yield get("/schema/VfAuto", alike="set")
    yield _patch(f"VfAuto/{uid(400)}", {"properties": {"o": {"a": 1, "grown": [1]}, "later": 5}}, alike="set")
    yield get("/schema/VfAuto", "the grown class", alike="set")
    yield get(f"/objects/VfAuto/{uid(400)}", alike="set")
    yield post("insert into no class with a bad name", "/objects", {"class": "bad name", "properties": {}})


def _changes() -> Iterator[Ask]:
    one = uid(1)
    yield _patch(f"{one}?class=VfDoc", {"properties": {"i": 6}})
    yield _patch(
        f"{one}?class=VfPlain", {"class": "VfDoc", "properties": {"i": 6, "w": None, "ts": ["new"], "o": {"x": "only"}}}
    )
    yield get(f"/objects/VfDoc/{one}", "after a patch")
    yield _patch(
        f"VfDoc/{one}", {"class": "Nope", "id": uid(77), "properties": {"o": {"a": 3}, "ref": [link(900), link(900)]}}
    )
    yield _patch(f"VfDoc/{one}", {"properties": {"ref": [link(901)], "geo": {"latitude": 1, "longitude": 2}}})
    yield get(f"/objects/VfDoc/{one}?include=vector", "after more patches")
    yield _patch(
        f"VfDoc/{one}", {"properties": {"ref": None, "geo": None, "o": None, "ts": [], "w": ""}, "vector": [1, 2, 3]}
    )
    yield get(f"/objects/VfDoc/{one}?include=vector", "after removals")
    for path, body in (
        (f"VfDoc/{uid(77)}", {"properties": {}}), (f"Nope/{one}", {"properties": {}}), (f"{one}", {"class": "Nope", "properties": {}}),
        (f"VfDoc/{one}", {"properties": {"i": "x"}}), (f"VfDoc/{one}", {"vector": [1]}), ("VfDoc/xyz", {"properties": {}}), (f"VfDoc/{one}", b""),
        (f"VfDoc/{one}", {}), (f"VfDoc/{one}", {"properties": {"id": 1}}), (f"VfDoc/{one.upper()}", {"properties": {"i": 8}}),
    ):  # fmt: skip
        yield _patch(path, body)
    yield _put(f"VfDoc/{one}", {"class": "VfDoc", "properties": {"i": 7}})
    yield _put(f"VfDoc/{one}", {"class": "VfDoc", "id": one, "properties": {"i": 7}})
    yield _put(f"VfDoc/{uid(77)}", {"class": "VfDoc", "id": uid(77), "properties": {"i": 7}})
    yield get(f"/objects/VfDoc/{one}?include=vector", "after a put")
    yield post("add a reference", f"/objects/VfDoc/{one}/references/ref", link(900))
    yield post("add a reference to nothing", f"/objects/VfDoc/{one}/references/ref", link(77))
    yield _put(f"VfDoc/{one}/references/ref", [link(901), link(900)])
    yield _delete(f"objects/VfDoc/{one}/references/ref", link(901))
    yield get(f"/objects/VfDoc/{one}", "after references")


def _deletes() -> Iterator[Ask]:
    for name in ("VfA", "VfB", "VfPlain"):
        yield post(f"put the same uuid in {name}", "/objects", {"class": name, "id": uid(600)}, alike="status")
        yield post(f"put another uuid in {name}", "/objects", {"class": name, "id": uid(601)}, alike="status")
    yield _delete(f"objects/VfB/{uid(600)}")
    yield get(f"/objects/VfA/{uid(600)}", "still there")
    yield _delete(f"objects/{uid(601)}?class=VfB")
    for name in ("VfA", "VfB", "VfPlain"):
        yield get(f"/objects/{name}/{uid(601)}")
    yield get(f"/objects/{uid(900)}?class=VfDoc")
    for path in (f"VfDoc/{uid(77)}", f"Nope/{uid(1)}", uid(77), "VfDoc/xyz", "xyz"):
        yield _delete(f"objects/{path}")
    for path in (f"VfDoc/{uid(77)}", f"Nope/{uid(1)}", "VfDoc/xyz", uid(77)):
        yield get(f"/objects/{path}")
    for path in (f"VfDoc/{uid(1)}", f"VfDoc/{uid(77)}", uid(900)):
        yield Ask(f"HEAD {path}", "HEAD", f"/v1/objects/{path}")


def _lists() -> Iterator[Ask]:
    for more in (
        "", "&limit=0", "&limit=3&include=vector", "&limit=3&offset=100", "&limit=-1", "&offset=-1", "&limit=abc", "&offset=x", "&limit=10001",
        "&limit=10000", "&offset=9999&limit=2", f"&limit=3&after={uid(3)}", "&limit=3&after=", "&limit=3&after=xyz", f"&after={uid(3)}",
        f"&limit=3&offset=1&after={uid(3)}", f"&limit=3&offset=0&after={uid(3)}", f"&limit=3&sort=i&after={uid(3)}", f"&limit=10001&after={uid(3)}",
        "&limit=3&sort=u", "&limit=3&sort=nope", "&limit=3&sort=ref", "&limit=99&sort=i,_id&order=desc,asc", "&limit=99&sort=w,_id&order=up",
        "&limit=99&sort=geo,_id", "&limit=99&sort=_creationTimeUnix&order=desc", "&limit=99&sort=n,_id", "&limit=1&tenant=x", f"&limit=3&after={uid(3).upper()}",
    ):  # fmt: skip
        yield get(f"/objects?class=VfDoc{more}")
    yield get("/objects?class=Nope")
    yield get("/objects?class=vfNamed&limit=9&include=vector")
    yield get("/objects?class=VfNamed&limit=9")
    yield get(f"/objects?limit=2&after={uid(3)}")
    yield get("/objects?limit=10001")


def _batches() -> Iterator[Ask]:
    objects = [
        {"class": "VfPlain", "id": uid(700), "properties": {"i": 1}},
        {"class": "VfPlain", "id": uid(700), "properties": {"i": 2}},
        {"class": "VfPlain", "id": uid(0), "properties": {"t": "overwritten"}},
        {"class": "VfPlain", "id": uid(701), "properties": {"i": "x"}},
        {"class": "VfPlain", "properties": {"i": 5}},
    ]
    yield post("batch", "/batch/objects", {"objects": objects})
    yield get(f"/objects/VfPlain/{uid(0)}", "overwritten")
    yield post("batch with a bad id", "/batch/objects", {"objects": [objects[0], {"class": "VfPlain", "id": "x"}]})
    yield post("an empty batch", "/batch/objects", {"objects": []})
    where = {"path": ["i"], "operator": "GreaterThan", "valueInt": 1}
    for body in (
        {"match": {"class": "VfPlain", "where": where}, "dryRun": True},
        {"match": {"class": "VfPlain", "where": where}, "dryRun": True, "output": "verbose"},
        {"match": {"class": "VfPlain"}, "dryRun": True},
        {"match": {"class": "VfPlain", "where": {"path": ["nope"], "operator": "Equal", "valueInt": 1}}, "dryRun": True},
        {"match": {"class": "VfPlain", "where": {"path": ["i"], "operator": "ContainsAny", "valueIntArray": [1, 2]}}, "dryRun": True, "output": "verbose"},
        {"match": {"class": "VfPlain", "where": {"operator": "Or", "operands": [where, {"path": ["id"], "operator": "Equal", "valueText": uid(0)}]}}, "dryRun": True},
        {"match": {"class": "VfPlain", "where": {"path": ["id"], "operator": "ContainsAny", "valueTextArray": [uid(700), uid(77)]}}, "output": "verbose"},
    ):  # fmt: skip
        yield _delete("batch/objects", body, alike="set")
    yield get(f"/objects/VfPlain/{uid(700)}", "deleted by a batch")


def _around() -> Iterator[Ask]:
    yield get("/meta")
    yield get("/nodes", alike="status")
    yield get("/nope")
    for path in ("/nodes", "//v1/meta", "/v1/meta/"):
        yield Ask(f"GET the path {path}", "GET", path)
    for path in ("/v1", "/"):
        yield Ask(f"GET {path}", "GET", path, alike="status")
    yield Ask("PATCH /v1/meta", "PATCH", "/v1/meta")
    yield Ask("HEAD /v1/meta", "HEAD", "/v1/meta")
    yield Ask("GET /v1/graphql", "GET", "/v1/graphql")
    yield Ask("PUT /v1/objects", "PUT", "/v1/objects", {})
    yield post("a wrong media type", "/graphql", b'{"query":"x"}', media="text/plain")
    yield post("no query", "/graphql", {"variables": {}})
    yield post("an alias", "/aliases", {"alias": "VfOther", "class": "VfPlain"})
    yield get("/aliases")
    yield get("/schema/VfOther")
    yield graphql("{ Get { VfOther(limit:1) { __typename } } }")
    yield get("/objects?class=VfOther&limit=1")
    yield _delete("aliases/VfOther")
    yield post("the search by REST", "/aggregate/VfDoc", {})
    yield post("several documents", "/graphql/batch", [{"query": "{ Get { VfPlain { i } } }"}])


REST = [*_schema(), *_inserts(), *_lists(), *_changes(), *_deletes(), *_batches(), *_auto(), *_around()]
assert DOC["class"] == "VfDoc"
