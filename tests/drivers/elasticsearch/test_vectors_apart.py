"""Vectors that a server keeps apart from documents, as it does since 9.2: every read of a document holds them."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import OnServer, Rig, on_fake
from drivers.elasticsearch.test_objects import view

from dragoman_api import CellRequest, Delete, ExportRequest, Insert, PlanRequest, RowKey, Update
from dragoman_api.exports import ExportForm
from dragoman_elasticsearch import connect
from dragoman_elasticsearch.columns import mapping

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

VECTOR = {"type": "dense_vector", "dims": 3, "index": True, "similarity": "l2_norm"}
PROPERTIES = {"title": {"type": "keyword"}, "made": {"type": "flattened"}, "vector": VECTOR}
DOCUMENT = {"title": "a", "made": {"by": 1}, "vector": [0.5, 1.0, 2.0]}


async def exported(es: Rig, name: str, form: ExportForm) -> tuple[list[dict[str, Any]], list[str]]:
    await es.driver.describe_object(name)  # the host describes an object first
    request = ExportRequest(object=name, form=form)
    async with aclosing(es.driver.export_rows(request)) as parts:
        taken = [part async for part in parts]
    lines = b"".join(part.data for part in taken).splitlines()
    return [json.loads(line) for line in lines], [note.code for part in taken for note in part.notes]


class VectorRules:
    async def test_a_page_and_a_cell_hold_them(self, es: Rig) -> None:
        name = await es.index(PROPERTIES, [DOCUMENT])
        page = await es.page(name)
        assert page.rows[0]["vector"] == "[0.5,1.0,2.0]"
        assert await es.driver.fetch_cell(CellRequest(key=page.keys[0], column="vector")) == "[0.5,1.0,2.0]"
        deep = await es.page(name, columns=["vector"])
        assert deep.cells == [["[0.5,1.0,2.0]"]]

    async def test_credentials_that_may_not_see_the_version_get_them_too(self, es: Rig) -> None:
        es.driver._features = connect.Features((7, 14, 0))  # what `identify` returns after a 403
        name = await es.index(PROPERTIES, [DOCUMENT])
        await es.driver.describe_object(name)  # the host describes an object first
        assert (await es.page(name)).rows[0]["vector"] == "[0.5,1.0,2.0]"

    @pytest.mark.parametrize("form", list(ExportForm))
    async def test_an_export_of_every_form_holds_them_and_says_that_documents_are_rebuilt(
        self, es: Rig, form: ExportForm
    ) -> None:
        name = await es.index(PROPERTIES, [DOCUMENT, {"title": "b"}])
        lines, notes = await exported(es, name, form)
        documents = {
            ExportForm.DOCUMENTS: lines, ExportForm.BULK: lines[1::2],
            ExportForm.ROWS: [line.get("_source") for line in lines],
        }[form]  # fmt: skip
        assert sorted(documents, key=lambda document: document["title"]) == [DOCUMENT, {"title": "b"}]
        assert notes == (["documents-rebuilt"] if es.version >= (9, 2) else [])

    @pytest.mark.parametrize(
        ("change", "whole"),
        [
            (Delete, True),
            (lambda key: Update(key, {"title": "b"}), False),
            (lambda key: Update(key, {"made": {"by": 2}}), True),
            (lambda key: Insert(key.object, {"title": "b"}, id=key.text, replace=True), True),
        ],
        ids=["delete", "edit", "edit of an object", "replacement"],
    )
    async def test_an_undo_brings_them_back(self, es: Rig, change: Any, whole: bool) -> None:
        name = await es.index(PROPERTIES, [DOCUMENT])
        [key] = (await es.page(name)).keys
        assert isinstance(key, RowKey)
        plan = await es.driver.plan_change(PlanRequest(changes=[change(key)], undo=True))
        assert ("documents-rebuilt" in {note.code for note in plan.notes}) == (whole and es.version >= (9, 2))
        assert [outcome.status for outcome in await es.driver.apply_change(plan)] == ["applied"]
        back = await es.driver.plan_change(PlanRequest(changes=plan.undo))
        assert [outcome.status for outcome in await es.driver.apply_change(back)] == ["applied"]
        [row] = (await es.page(name)).rows
        assert (row["title"], row["made"], row["vector"]) == ("a", '{"by":1}', "[0.5,1.0,2.0]")

    async def test_only_an_index_that_does_it_says_so(self, es: Rig) -> None:
        own = {"index.mapping.exclude_source_vectors": False} if es.version >= (9, 2) else {}
        for properties, settings, said in (
            (PROPERTIES, {}, es.version >= (9, 2)),
            (PROPERTIES, own, False),
            ({"vector": {"type": "dense_vector", "dims": 3, "index": False}}, {}, False),
            ({"title": {"type": "keyword"}}, {}, False),
        ):
            name = await es.index(properties, [DOCUMENT], settings=settings)
            codes = {note.code for note in (await es.driver.describe_object(name)).notes}
            assert ("documents-rebuilt" in codes) == said
            assert (await exported(es, name, ExportForm.DOCUMENTS))[0] == [DOCUMENT]


class TestVectorsOnFake(VectorRules):
    @pytest.fixture(params=["9.5.3", "8.19.21"])
    async def es(self, request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
        async with on_fake(request.param) as rig:
            yield rig


class TestVectorsOnServer(VectorRules, OnServer):
    @pytest.fixture(autouse=True)
    def indexed(self, es: Rig) -> None:
        if es.version < (8, 0):
            pytest.skip("indexed vectors came with 8.0")


def test_one_index_of_an_alias_is_enough_to_say_it() -> None:
    properties = {"properties": {"vector": VECTOR}}
    assert view(properties).rebuilt_notes() == []
    several = mapping.read(
        "both", {name: mapping.IndexMapping(json.dumps(properties).encode()) for name in ("a", "b")},  # type: ignore[arg-type]
        mapping.FieldCaps(indices=["a", "b"]), vectors_apart={"b"},
    )  # fmt: skip
    assert [note.code for note in several.rebuilt_notes()] == ["documents-rebuilt"]
