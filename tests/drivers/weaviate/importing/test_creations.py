"""Collections that a load makes: by the first rows, or like the one that the rows come from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from drivers.weaviate.importing.test_loads import OBJECTS, TYPES, session, stored
from drivers.weaviate.rig import OnFake, OnServer, Rig, key

from dragoman.imports.loads import load
from dragoman.imports.new_objects import make_object, plan_new
from dragoman_api import QueryError
from dragoman_api.changes import NewColumn, NewObject
from dragoman_api.columns import ColumnKind
from dragoman_weaviate.writing.creations import plan_collection
from exporting import Line

if TYPE_CHECKING:
    from pathlib import Path


def written(file: Path, *rows: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def fresh(wv: Rig) -> str:
    name = f"T{uuid4().hex[:8]}_New"
    wv.made.append(name)
    return name


class Rules:
    async def test_the_first_rows_say_what_the_collection_holds(self, wv: Rig, tmp_path):
        name = fresh(wv)
        rows = [
            {"id": key(1), "properties": {"n": 1, "t": "x", "ok": True, "price": 1}, "vector": [0.5, 2]},
            {"id": key(2), "properties": {"price": 1.5, "day": "2024-01-01T00:00:00Z", "tags": ["a"], "who": {"n": 1}}},
        ]
        report = await load(session(wv), name, file=written(tmp_path / "o", *rows), format="rows", create=True)
        assert report.counts["applied"] == 2
        found = await stored(wv, name)
        assert {each: value[0] for each, value in found.items()} == {each["id"]: each["properties"] for each in rows}
        assert found[key(1)][1] == [0.5, 2]
        schema = await wv.call("GET", f"/v1/schema/{name}")
        assert {each["name"]: each["dataType"] for each in schema["properties"]} == {
            "n": ["int"], "t": ["text"], "ok": ["boolean"], "price": ["number"], "day": ["date"], "tags": ["text[]"],
            "who": ["object"],
        }  # fmt: skip

    async def test_a_collection_made_like_another_has_its_definition_and_its_rows(self, wv: Rig, tmp_path):
        source, target = await wv.collection(TYPES, OBJECTS), fresh(wv)
        file = tmp_path / "o.rows"
        await Line(wv.driver)(file, name=source, format="rows", columns=["vector"])
        like = (await session(wv).describe(source)).structure
        [planned] = (await plan_new(session(wv), NewObject(target, like))).planned
        await make_object(session(wv), target, planned)
        assert (await load(session(wv), target, file=file, format="rows")).counts["applied"] == 3
        assert await stored(wv, target) == await stored(wv, source)
        one, other = [await wv.call("GET", f"/v1/schema/{name}") for name in (source, target)]
        assert one["properties"] == other["properties"]
        assert one["invertedIndexConfig"] == other["invertedIndexConfig"]

    async def test_a_table_makes_a_collection_of_stated_types(self, wv: Rig, tmp_path):
        name = fresh(wv)
        table = tmp_path / "o.csv"
        day = "2024-01-02T03:04:05Z"
        table.write_text(f"id,n,price,at\n{key(1)},1,1.5,{day}\n{key(2)},x,2,{day}\n")
        types = {"id": "text", "n": "integer", "price": "float", "at": "timestamp"}
        report = await load(session(wv), name, file=table, id="id", create=True, types=types)
        assert (report.counts["applied"], report.counts["refused"]) == (1, 1)
        properties = (await wv.call("GET", f"/v1/schema/{name}"))["properties"]
        assert {each["name"]: each["dataType"] for each in properties} == {
            "n": ["int"], "price": ["number"], "at": ["date"],
        }  # fmt: skip


class TestOnFake(Rules, OnFake):
    pass


class TestOnServer(Rules, OnServer):
    pass


def made(*samples: Any, like: Any = None, name: str = "New") -> dict[str, Any]:
    new = NewObject(name, json.dumps(like) if like else "", [json.dumps(each) for each in samples])
    [planned] = plan_collection(new).planned
    assert (planned.request.method, planned.request.path, planned.changes) == ("POST", "/v1/schema", [])
    body: dict[str, Any] = json.loads(planned.request.body or "")
    return body


def types(*samples: Any) -> dict[str, str]:
    return {each["name"]: each["dataType"][0] for each in made(*samples)["properties"]}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], "int"), ([1, 2.5], "number"), ([True], "boolean"), (["x", "2024-01-01T00:00:00Z"], "text"),
        (["2024-01-01T00:00:00Z"], "date"), ([key(1)], "uuid"), ([[]], "text[]"), ([[1], [2.5]], "number[]"),
        ([{"a": 1}], "object"), ([[{"a": 1}]], "object[]"), ([""], "text"), ([None, 3], "int"),
    ],
)  # fmt: skip
def test_a_property_has_the_type_that_fits_all_values(values: list[Any], expected: str) -> None:
    assert types(*({"p": value} for value in values)) == {"p": expected}


def test_what_no_collection_can_hold_is_refused() -> None:
    for sample, reason in (({"p": [1, "a"]}, "several types"), ({"a b": 1}, "name of a property"), ({}, "no values")):
        with pytest.raises(QueryError, match=reason):
            made(sample)
    with pytest.raises(QueryError, match="several types"):
        made({"p": 1}, {"p": True})
    with pytest.raises(QueryError, match="name of a collection"):
        made({"p": 1}, name="lower")


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (NewColumn("day", ColumnKind.DATE), "no type for 'day' as date"),
        (NewColumn("id", ColumnKind.TEXT), "'id' cannot be the name of a property"),
        (NewColumn("a b", ColumnKind.TEXT), "name of a property"),
        (NewColumn("uuid", ColumnKind.TEXT), "no columns that a collection"),
    ],
)
def test_a_column_that_no_collection_can_have_is_refused(column: NewColumn, reason: str) -> None:
    with pytest.raises(QueryError, match=reason):
        plan_collection(NewObject("New", columns=[column]))


def test_vectors_with_names_are_those_of_the_rows() -> None:
    body = made({"id": key(1), "properties": {"n": 1}, "vectors": {"b": [1], "a": [2]}}, {"properties": {"n": 2}})
    assert list(body["vectorConfig"]) == ["a", "b"]
    assert "vectorizer" not in body


def test_shards_and_replicas_are_not_copied() -> None:
    like = {"class": "Old", "properties": [], "shardingConfig": {"actualCount": 3}, "vectorizer": "none"}
    assert made(like=like) == {"class": "New", "vectorizer": "none"}


ONE: dict[str, Any] = {
    "description": "d", "properties": [{"name": "n", "dataType": ["int"]}], "invertedIndexConfig": {"a": 1},
    "multiTenancyConfig": {"enabled": True}, "vectorizer": "v", "vectorIndexType": "flat",
    "vectorIndexConfig": {"b": 2}, "moduleConfig": {"v": {"c": 3}},
}  # fmt: skip
NAMED = {"vectorConfig": {"front": {"vectorizer": {"none": {}}}}}


@pytest.mark.parametrize(
    ("like", "kept"),
    [
        (ONE, ONE),
        (ONE | NAMED, {name: ONE[name] for name in [*ONE][:4]} | NAMED),  # a server refuses both kinds of vectors
        (ONE | {"vectorConfig": {}}, ONE),
        (ONE | {"replicationConfig": {"factor": 3}, "shardingConfig": {"desiredCount": 3}}, ONE),
    ],
)
def test_a_definition_is_copied_but_for_its_name_shards_and_replicas(
    like: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert made(like={"class": "Old", **like}) == {"class": "New", **kept}


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([{"p": [1]}, {"p": 1}], None),
        ([{"p": [{"a": 1}, {"b": "x"}]}, {"p": [{"a": 2.5}]}], "object[]"),
        ([{"p": {"a": 1}}, {"p": "x"}], None),
        ([{"p": [1, 2.5]}, {"p": [3]}], "number[]"),
        ([{"p": [None, 1]}], "int[]"),
        ([{"p": 0}, {"p": False}], None),
        ([{"p": "2024-01-01T00:00:00Z"}, {"p": "soon"}], "text"),
        ([{"p": key(1)}, {"p": "x"}], "text"),
        ([{"p": key(1).replace("-", "")}], "text"),
        ([{"p": [key(1), key(2)]}], "uuid[]"),
        ([{"p": 0}], "int"),
        ([{"p": False}], "boolean"),
        ([{"p": ""}, {"p": key(1)}], "text"),
        ([{"q": 1}, {"p": 1}], "int"),
    ],
)
def test_a_property_has_the_type_that_fits_the_values_of_all_rows(samples: list[Any], expected: str | None) -> None:
    if expected is None:
        with pytest.raises(QueryError, match="several types"):
            made(*samples)
    else:
        assert types(*samples)["p"] == expected


def test_rows_of_an_export_are_told_from_documents_by_all_of_their_members() -> None:
    row = {"class": "Old", "id": key(1), "properties": {"n": 1}, "tenant": "a", "creationTimeUnix": 5}
    assert types(row | {"lastUpdateTimeUnix": 6, "vector": [1], "vectors": {}}) == {"n": "int"}
    assert types({"properties": {"n": 1}, "other": 1}) == {"properties": "object", "other": "int"}
    both = [{"properties": {"n": 1}, "vectors": {name: [1]}} for name in "ba"]
    assert list(made(*both)["vectorConfig"]) == ["a", "b"]
