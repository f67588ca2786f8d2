"""Loads into collections: values, vectors and tenants come back as an export wrote them, and nothing is doubled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.weaviate.rig import OnFake, OnServer, Rig, key
from drivers.weaviate.views import view

from dragoman.imports.column_mapping import MemberPlaces
from dragoman.imports.loads import load
from dragoman_api.columns import Column, Description
from dragoman_api.errors import ConnectionFailedError, DragomanError
from dragoman_api.hookspecs import hookimpl
from exporting import Line
from in_process import Here

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.sessions.session import Session

TYPES = {"title": "text", "n": "int", "price": "number", "tags": "text[]", "day": "date"}
OBJECTS: list[dict[str, Any]] = [
    {"title": 'Žluťoučký 🐎 \r\n"x"', "n": 2**53, "price": 1.1, "tags": ["a", "b,c"], "vector": [0.1, -2.5, 3e-8]},
    {"title": "", "n": -1, "price": 1e-300, "tags": [], "vector": [1, 0.30000001192092896, 0]},
    {"title": "[draft]", "day": "2024-02-29T12:30:00.123Z", "vector": [0.5, 0.5, 0.5]},
]


def session(wv: Rig) -> Session:
    return Here(wv.driver, capabilities=("tenants",)).session()


async def stored(wv: Rig, name: str, **more: str) -> dict[str, tuple[Any, Any]]:
    """Return properties and vector of every object, by uuid."""
    query = "".join(f"&{key}={value}" for key, value in more.items())
    found = await wv.call("GET", f"/v1/objects?class={name}&include=vector{query}")
    return {each["id"]: (each["properties"], each.get("vector") or each.get("vectors")) for each in found["objects"]}


def rejected(file: Path) -> list[dict[str, Any]]:
    path = file.with_name(f"{file.name}.rejected.ndjson")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Rules:
    @pytest.mark.parametrize("kind", ["rows", "bulk", "csv", "parquet"])
    async def test_values_and_vectors_come_back_bit_by_bit(self, wv: Rig, tmp_path, kind):
        source, target = await wv.collection(TYPES, OBJECTS), await wv.collection(TYPES, name="Copy")
        file = tmp_path / f"o.{kind}"
        names = ["vector"] if kind in ("rows", "bulk") else ["uuid", *TYPES, "vector"]
        await Line(wv.driver)(file, name=source, format=kind, columns=names)
        report = await load(session(wv), target, file=file)
        assert report.counts["applied"] == 3, rejected(file)
        before = await stored(wv, source)
        assert await stored(wv, target) == before
        again = await load(session(wv), target, file=file)
        assert again.counts["conflict"] == 3
        assert (await load(session(wv), target, file=file, on_conflict="skip")).counts["skipped"] == 3
        assert (await load(session(wv), target, file=file, on_conflict="overwrite")).counts["applied"] == 3
        assert await stored(wv, target) == before

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    async def test_references_in_a_table_are_left_out_for_the_reason_that_the_server_has(self, wv: Rig, tmp_path, kind):
        """W9: the server does not make them itself, and the rows of an export keep them."""
        author = await wv.collection({"t": "text"}, [{"t": "a"}], name="Author")
        beacon = {"beacon": f"weaviate://localhost/{author}/{key(0)}"}
        source = await wv.collection({"t": "text", "by": author}, [{"t": "x", "by": [beacon]}])
        file = tmp_path / f"o.{kind}"
        await Line(wv.driver)(file, name=source, format=kind)
        report = await load(session(wv), await wv.collection({"t": "text", "by": author}, name="Copy"), file=file)
        [note] = [note for note in report.notes if note.code == "columns-left-out"]
        reasons = view({"by": "Author"}).columns["by"].reasons
        assert (note.column, note.reason) == ("by", f"no change can write it, so it is left out: {reasons['edit']}")

    async def test_rows_go_to_the_tenant_that_they_name_or_that_is_named(self, wv: Rig, tmp_path):
        name = await wv.collection(TYPES, multiTenancyConfig={"enabled": True})
        await wv.call("POST", f"/v1/schema/{name}/tenants", [{"name": "a"}, {"name": "b"}])
        file = tmp_path / "o.rows"
        row = {"class": name, "id": "10000000-0000-0000-0000-000000000001", "properties": {"n": 1}, "tenant": "a"}
        file.write_text(json.dumps(row) + "\n")
        assert (await load(session(wv), name, file=file, format="rows")).counts["applied"] == 1
        assert (await load(session(wv), name, file=file, format="rows", tenant="b")).counts["applied"] == 1
        assert len(await stored(wv, name, tenant="a")) == len(await stored(wv, name, tenant="b")) == 1

    @pytest.mark.parametrize("keyed", [True, False])
    async def test_an_unknown_tenant_is_named_by_every_row(self, wv: Rig, tmp_path, keyed):
        name = await wv.collection(TYPES, multiTenancyConfig={"enabled": True})
        await wv.call("POST", f"/v1/schema/{name}/tenants", [{"name": "a"}])
        file = tmp_path / "o.rows"
        ids = [{"id": f"10000000-0000-0000-0000-00000000000{at}"} if keyed else {} for at in range(2)]
        file.write_text("".join(json.dumps({**id_, "properties": {"n": 1}, "tenant": "b"}) + "\n" for id_ in ids))
        for undo in (None, tmp_path / "undo"):
            report = await load(session(wv), name, file=file, format="rows", undo=undo)
            assert report.counts["applied"] == 0
            assert len(rejected(file)) == 2
            assert all('tenant not found: "b"' in row["reason"] for row in rejected(file))

    async def test_a_vector_that_is_none_is_refused_with_its_row(self, wv: Rig, tmp_path):
        name = await wv.collection(TYPES)
        file = tmp_path / "o.rows"
        lines = [{"properties": {"n": at}, "vector": vector} for at, vector in enumerate(["x", [1, "y"], [1, 2]])]
        file.write_text("".join(json.dumps(each) + "\n" for each in lines))
        assert (await load(session(wv), name, file=file, format="rows")).counts["applied"] == 1
        assert [(each["row"], each["code"]) for each in rejected(file)] == [(1, "refused"), (2, "refused")]
        assert "vector: it takes a JSON array of numbers" in rejected(file)[0]["reason"]

    async def test_named_vectors_come_back_too(self, wv: Rig, tmp_path):
        config = {each: {"vectorizer": {"none": {}}, "vectorIndexType": "flat"} for each in ("cover", "text")}
        name = await wv.collection({"n": "int"}, vectorConfig=config)
        file = tmp_path / "o.rows"
        id_ = "10000000-0000-0000-0000-000000000001"
        row = {"id": id_, "properties": {"n": 1}, "vectors": {"cover": [0.5, 1], "text": [2]}}
        file.write_text(json.dumps(row) + "\n" + json.dumps({**row, "vectors": {"back": [1]}}) + "\n")
        report = await load(session(wv), name, file=file, format="rows")
        assert (report.counts["applied"], report.counts["refused"]) == (1, 1)
        assert (await stored(wv, name))[id_][1] == {"cover": [0.5, 1], "text": [2]}
        assert "has no vector 'back'" in rejected(file)[0]["reason"]

    @pytest.mark.parametrize(
        ("target", "row", "renamed", "outcome"),
        [
            ("single", {"vectors": {"image": [1, 2]}}, {}, "no place for its member 'vectors'"),
            ("single", {"vectors": {"default": [1, 2]}}, {}, "no place for its member 'vectors'"),
            ("single", {"vectors": {"image": [1, 2]}}, {"image": "vector"}, [1, 2]),
            ("single", {"vectors": {"image": [1, 2]}}, {"vectors.image": "vector"}, [1, 2]),
            ("single", {"vectors": {"a": [1], "b": [2]}}, {"a": "vector"}, "no place for its member 'vectors.b'"),
            ("single", {"vectors": {"a": [1], "b": [2]}}, {"a": "vector", "b": ""}, [1]),
            ("single", {"vectors": {"a": [1], "b": [2]}}, {"a": "vector", "b": "vector"}, "the place 'vector'"),
            ("single", {"vectors": {"image": [1, 2]}}, {"vectors": ""}, None),
            ("single", {"vector": [1], "vectors": {}}, {}, [1]),
            ("named", {"vector": [1, 2]}, {}, "no place for its member 'vector'"),
            ("named", {"vector": [1, 2]}, {"vector": "cover"}, {"cover": [1, 2]}),
            ("named", {"vector": [1, 2]}, {"vector": "vector.cover"}, {"cover": [1, 2]}),
            ("named", {"vector": [1, 2]}, {"vector": "back"}, "the schema has no property back"),
            ("named", {"vector": [1, 2]}, {"vector": "vector.back"}, "has no vector 'back'"),
            ("named", {"vectors": {"x": [1], "text": [2]}}, {"x": "cover"}, {"cover": [1], "text": [2]}),
            ("named", {"vectors": {"text": [2], "x": [1]}}, {"x": "cover"}, {"cover": [1], "text": [2]}),
            ("named", {"vectors": {"cover": [1]}, "vector": [2]}, {"vector": "text"}, "two of its members"),
            ("single", {"properties": {"n": 1, "floats": [1, 2]}}, {"floats": "vector"}, [1, 2]),
            ("single", {"vectors": {"n": [1]}}, {"n": "vector"}, "may mean 'vectors.n', too"),
            ("single", {"tenant": "a"}, {}, "has no tenants"),
            ("single", {"_routing": "a", "routing": "b"}, {}, "say different things"),
            ("single", {"_id": "10000000-0000-0000-0000-000000000002"}, {}, "say different things"),
            ("single", {"vectorWeights": {"a": 1}}, {}, "no place for its member 'vectorWeights'"),
            ("single", {"vectorWeights": None, "additional": {}}, {}, None),
            ("single", {"colour": "red"}, {}, "no place for its member 'colour'"),
            ("single", {"colour": "red"}, {"colour": ""}, None),
            ("single", {"properties": {"n": 1, "b": 2, "c": 3}}, {"b": "", "c": ""}, None),
            ("single", {"properties": {"n": 1, "colour": "red"}}, {}, "no property colour"),
        ],
    )
    async def test_every_member_of_a_row_is_written_or_moved_or_the_row_is_refused(
        self, wv: Rig, tmp_path, target, row, renamed, outcome
    ):
        """W22: a row is never written without a part of it."""
        config = {each: {"vectorizer": {"none": {}}, "vectorIndexType": "flat"} for each in ("cover", "text")}
        name = await wv.collection({"n": "int"}, **({"vectorConfig": config} if target == "named" else {}))
        file, id_ = tmp_path / "o.rows", "10000000-0000-0000-0000-000000000001"
        file.write_text(json.dumps({"class": name, "id": id_, "properties": {"n": 1}} | row) + "\n")
        report = await load(session(wv), name, file=file, format="rows", renamed=renamed)
        if isinstance(outcome, str):
            assert report.counts["refused"] == 1
            assert outcome in rejected(file)[0]["reason"]
            assert await stored(wv, name) == {}
        else:
            assert report.counts["applied"] == 1, rejected(file)
            assert await stored(wv, name) == {id_: ({"n": 1}, outcome)}
        assert {note.code for note in report.notes} <= {"batch-unguarded"}

    async def test_what_the_server_sets_itself_is_left_out_with_a_note(self, wv: Rig, tmp_path):
        name, file = await wv.collection({"n": "int"}), tmp_path / "o.rows"
        rows = [{"class": kind, "properties": {"n": 1}, "creationTimeUnix": 5} for kind in (name, "Other")]
        file.write_text("".join(json.dumps(each) + "\n" for each in rows))
        report = await load(session(wv), name, file=file, format="rows")
        assert report.counts["applied"] == 2
        notes = {note.code: note.reason for note in report.notes}
        assert "'creationTimeUnix' (2)" in notes["members-left-out"]
        assert "the name of another object than the one that was named for them: 'Other' (1)" in notes["rows-of-others"]

    @pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
    @pytest.mark.parametrize(
        ("source", "target", "renamed", "outcome"),
        [
            ("single", "named", {}, "by cover, text: the value is a vector without a name"),
            ("single", "named", {"vector": "cover"}, {"cover": [0.5, 1]}),
            ("named", "single", {}, "vectors by name (cover)"),
            ("named", "single", {"cover": "vector"}, [0.5, 1]),
            ("named", "single", {"vector.cover": "vector"}, [0.5, 1]),
            ("named", "named", {"vector.cover": "text"}, {"text": [0.5, 1]}),
            ("named", "named", {}, {"cover": [0.5, 1]}),
            ("named", "named", {"vector.cover": ""}, None),
        ],
    )
    async def test_vectors_of_tables_move_by_their_names_or_their_rows_are_refused(
        self, wv: Rig, tmp_path, kind, source, target, renamed, outcome
    ):
        config = {each: {"vectorizer": {"none": {}}, "vectorIndexType": "flat"} for each in ("cover", "text")}
        kinds = {"single": {}, "named": {"vectorConfig": config}}
        vectors = {"single": {"vector": [0.5, 1]}, "named": {"vectors": {"cover": [0.5, 1]}}}
        one = await wv.collection({"n": "int"}, **kinds[source])
        id_ = "10000000-0000-0000-0000-000000000001"
        await wv.call("POST", "/v1/objects", {"class": one, "id": id_, "properties": {"n": 1}} | vectors[source])
        other, file = await wv.collection({"n": "int"}, name="Copy", **kinds[target]), tmp_path / f"o.{kind}"
        await Line(wv.driver)(file, name=one, format=kind, columns=["uuid", "n", "vector"])
        report = await load(session(wv), other, file=file, renamed=renamed)
        if isinstance(outcome, str):
            assert report.counts["refused"] == 1
            assert outcome in rejected(file)[0]["reason"]
        else:
            assert report.counts["applied"] == 1, rejected(file)
            assert await stored(wv, other) == {id_: ({"n": 1}, outcome)}

    async def test_a_lost_answer_is_settled_without_doubling(self, wv: Rig, tmp_path, monkeypatch):
        name = await wv.collection(TYPES)
        file = tmp_path / "o.rows"
        ids = [f"10000000-0000-0000-0000-00000000000{at}" for at in range(5)]
        lines = [{"id": id_, "properties": {"n": at, "price": 1.5}, "vector": [0.1]} for at, id_ in enumerate(ids)]
        file.write_text("".join(json.dumps(each) + "\n" for each in lines))
        real = wv.driver.apply_change

        async def loses(plan):
            await real(plan)
            raise ConnectionFailedError("the connection ended", details={"sent": True})

        monkeypatch.setattr(wv.driver, "apply_change", hookimpl(loses))
        with pytest.raises(DragomanError) as caught:
            await load(session(wv), name, file=file, format="rows")
        assert caught.value.details["unknown"] == 5
        monkeypatch.setattr(wv.driver, "apply_change", real)
        report = await load(session(wv), name, file=file, format="rows", resume=True)
        assert (report.counts["applied"], report.counts["unknown"]) == (5, 0), rejected(file)
        assert len(await stored(wv, name)) == 5


class TestOnFake(Rules, OnFake):
    pass


def test_a_name_that_a_property_and_a_vector_share_is_the_propertys():
    properties = [Column(name=name, type="int", path=("properties", name)) for name in "ab"]
    vectors = Column(name="vector", type="vector", path=("vectors",), members=("b", "c"))
    places = MemberPlaces(Description(object="t", columns=[*properties, vectors]))
    assert [places.find(name) for name in ("a", "b")] == [None, None]
    assert [places.find(name) for name in ("c", "vector.b")] == [("vector", "c"), ("vector", "b")]


@pytest.mark.one_engine
class TestOnServer(Rules, OnServer):
    pass
