"""Tenants: every request about rows names the tenant, and nothing of another tenant is read or changed (W33)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from drivers.weaviate.rig import Rig, key, on_fake, on_server

from dragoman_api import (
    CellRequest,
    CountRequest,
    Delete,
    ExportRequest,
    Filter,
    Insert,
    PageRequest,
    PlanRequest,
    QueryError,
    RowKey,
    Sort,
    Update,
)
from dragoman_api.exports import ExportForm, SplitRequest
from dragoman_api.grid import PreviewRequest
from dragoman_api.summaries import SummaryRequest

if TYPE_CHECKING:
    from dragoman_api import HttpRequest, Page

TENANTS: dict[str, Any] = {"multiTenancyConfig": {"enabled": True}}
CODE = {"dataType": ["text"], "tokenization": "field"}
OTHER = "other words than ann's"


async def hold_tenants(wv: Rig) -> None:
    shared = await wv.collection({"i": "int", "t": "text"}, multiTenancyConfig={"enabled": True}, name="Shared")
    plain = await wv.collection({"i": "int"}, [{"i": 1}])
    await wv.call("POST", f"/v1/schema/{shared}/tenants", [{"name": "ann"}, {"name": "bob"}])
    for tenant, count in (("ann", 12), ("bob", 3)):
        await wv.load(shared, [{"i": at, "t": tenant} for at in range(count)], tenant=tenant)
    for name, has_tenants in ((shared, True), (plain, False)):
        assert (await wv.driver.describe_object(name)).tenants is has_tenants
    for asked in (wv.page(shared), wv.driver.count_rows(CountRequest(object=shared)), wv.export(shared)):
        with pytest.raises(QueryError) as caught:
            await asked
        assert caught.value.code == "tenant-required"
    assert len((await wv.page(shared, tenant="ann")).cells) == 12
    pages = [await wv.page(shared, Filter("t", "=", "ann"), tenant="ann", offset=at, limit=5) for at in range(0, 12, 5)]
    assert sorted(row["i"] for page in pages for row in page.rows) == [*range(12)]
    assert all("sort:" not in (each.body or "") for each in wv.sent("POST", "/graphql"))  # a tenant is one shard
    found = await wv.page(shared, Filter("i", ">", 0), tenant="bob")
    assert (found.total, {row["t"] for row in found.rows}) == (2, {"bob"})
    assert await wv.driver.count_rows(CountRequest(object=shared, tenant="bob")) == 3
    lines = await wv.export(shared, tenant="bob", form=ExportForm.BULK)
    assert {line["tenant"] for line in lines} == {"bob"}
    row = found.rows[0]
    changed, inserted, gone = await wv.apply(
        Update(row.key, {"i": 100}), Insert(shared, {"i": 5}, key(77), tenant="bob"), Delete(found.rows[1].key)
    )
    assert [changed.status, inserted.status, gone.status] == ["applied"] * 3, (changed, inserted, gone)
    assert ((await wv.stored(shared, row.key.id, tenant="bob")) or {})["properties"]["i"] == 100
    assert await wv.driver.count_rows(CountRequest(object=shared, tenant="bob")) == 3
    assert await wv.driver.count_rows(CountRequest(object=shared, tenant="ann")) == 12
    with pytest.raises(QueryError, match="has no tenants"):
        await wv.page(plain, tenant="ann")
    with pytest.raises(QueryError, match="tenant"):
        await wv.page(shared, tenant="nobody")
    [only] = (await wv.page(plain)).rows  # the routes without a collection are broken on such a server
    assert [each.status for each in await wv.apply(Delete(only.key))] == ["applied"]
    for tenant, said in (("anna", "has no tenant 'anna' (did you mean ann?)"), ("zoe", "has no tenant 'zoe'")):
        for asked in (
            wv.driver.fetch_page(PageRequest(object=shared, tenant=tenant)),
            wv.driver.count_rows(CountRequest(object=shared, tenant=tenant)),
            anext(wv.driver.export_rows(ExportRequest(object=shared, tenant=tenant))),
        ):
            with pytest.raises(QueryError) as caught:
                await asked
            assert caught.value.code == "tenant-unknown"
            assert caught.value.message.endswith(said)


def names_tenants(request: HttpRequest, tenant: str) -> bool:
    """Return whether a request about rows names the tenant, wherever it names rows."""
    if "/v1/schema" in request.path:
        return True
    if request.path == "/v1/graphql":
        query = json.loads(request.body or "")["query"]
        return query.count(f'tenant:"{tenant}"') == len(re.findall(r"T[0-9a-f]{8}_Shared", query)) > 0
    if request.path == "/v1/batch/objects":
        return {each.get("tenant") for each in json.loads(request.body or "")["objects"]} == {tenant}
    named = json.loads(request.body).get("tenant") if request.body else None
    return f"tenant={tenant}" in request.path or named == tenant


async def hold_twins(wv: Rig) -> None:
    """Two tenants have rows of the same ids and other values; each kind of operation, with its further requests."""
    author = await wv.collection({"t": "text"}, name="Author", **TENANTS)
    types = {"i": "int", "t": "text", "code": CODE, "tags": "text[]", "by": author, "often": CODE}
    name = await wv.collection(types, name="Shared", **TENANTS)
    for each in (author, name):
        await wv.call("POST", f"/v1/schema/{each}/tenants", [{"name": "ann"}, {"name": "bob"}])
    await wv.load(author, [{"t": "a"}], tenant="ann")
    beacon = [{"beacon": f"weaviate://localhost/{author}/{key(0)}"}]
    rows: list[dict[str, Any]] = [
        {"i": at, "t": "ann", "code": f"c{at}", "tags": [f"g{at}"], "often": "R&D", "vector": [1, at]}
        for at in range(1, 230)
    ]
    rows[3] |= {"i": 2**40, "by": beacon}
    rows[4] |= {"i": 2**63 - 1}
    for row in rows[10:20]:
        del row["i"]
    await wv.load(name, rows, tenant="ann")
    twins = [{"i": 7, "t": OTHER, "code": OTHER, "tags": ["x", "y"], "vector": [9, 9]}] * len(rows)
    await wv.load(name, twins, tenant="bob")
    await wv.call("DELETE", f"/v1/objects/{author}/{key(0)}?tenant=ann")
    assert wv.log is not None
    mark = len(wv.log)

    # reads: a page by REST and by search, its repairs, its window, its overflowing integers
    due = {key(at): row["code"] for at, row in enumerate(rows)}
    ann = {"tenant": "ann", "limit": 300}
    pages = [
        await wv.page(name, **ann),
        await wv.page(name, Filter("t", "=", "ann"), **ann),
        await wv.page(name, Filter("t", "=", "ann"), sort=[Sort("uuid", descending=True)], **ann),
        await wv.page(name, sort=[Sort("code")], **ann),
    ]
    for page in pages:
        assert {each.id: row["code"] for each, row in zip(page.keys, page.rows, strict=True)} == due
        assert page.total == len(rows)
        assert {each.routing for each in page.keys} == {"ann"}
        assert [row["i"] for row in page.rows if row["code"] in ("c4", "c12")].count(2**40) == 1
    below = await wv.page(name, Filter("i", "<", 4), **ann)
    assert sorted(row["i"] for row in below.rows)[:-1] == [1, 2, 3]  # and one whose key is not in its order
    filtered = await wv.filter(name, Filter("t", "=", "ann"))
    assert await wv.driver.count_rows(CountRequest(object=name, filter=filtered, tenant="ann")) == len(rows)
    vector = CellRequest(key=pages[0].keys[0], column="vector")
    assert (await wv.driver.fetch_cell(vector)) == pages[0].rows[0]["vector"]
    for column in ("i", "code", "tags", "often"):
        wanted = SummaryRequest(object=name, column=column, tenant="ann", values=3, buckets=4)
        summary = await wv.driver.summarize_column(wanted)
        assert (summary.rows, summary.missing) == (len(rows), 10 if column == "i" else 0)
        assert [each.value for each in summary.values if column == "often"] in ([], ["R&D"])
    previews = (
        PreviewRequest(page=PageRequest(object=name, filter=filtered, tenant="ann")),
        PreviewRequest(count=CountRequest(object=name, tenant="ann")),
    )
    for preview in previews:
        assert all(names_tenants(each, "ann") for each in await wv.driver.preview_read(preview))
    for form in ExportForm:
        for filters in ([], [Filter("t", "=", "ann")]):
            lines = await wv.export(name, *filters, form=form, tenant="ann")
            codes = [line["code"] if form is ExportForm.DOCUMENTS else line["properties"]["code"] for line in lines]
            assert sorted(codes) == sorted(due.values())
            assert form is ExportForm.DOCUMENTS or {line["tenant"] for line in lines} == {"ann"}
    parts = SplitRequest(export=ExportRequest(object=name, tenant="ann"), shares=2)
    assert (await wv.driver.split_export(parts)).total == len(rows)

    # changes, and what is read and looked up before and after each
    plan = await wv.driver.plan_change(PlanRequest(undo=True, changes=[
        Update(pages[0].keys[0], {"code": "new"}),
        Update(RowKey(name, key(30), "ann"), {"code": "new", "vector": "[2,2]"}),
        Delete(RowKey(name, key(31), "ann")),
        Insert(name, {"code": "new"}, key(32), replace=True, tenant="ann"),
        Insert(name, {"code": "new"}, key(900), tenant="ann"),
    ]))  # fmt: skip
    assert plan.refusals == []
    assert {each.status for each in await wv.driver.apply_change(plan)} == {"applied"}
    again = await wv.driver.plan_change(PlanRequest(changes=plan.undo))
    assert again.refusals == []
    assert {each.status for each in await wv.driver.apply_change(again)} == {"applied"}
    without = [
        Update(RowKey(name, key(40), "ann"), {"code": "new"}),
        Insert(name, {"code": "new"}, key(41), replace=True, tenant="ann"),
        Insert(name, {"code": "new"}, key(42), tenant="ann"),
        Delete(RowKey(name, key(43), "ann")),
    ]
    assert [each.status for each in await wv.apply(*without)] == ["applied", "applied", "conflict", "applied"]
    row_key = (await wv.page(name, **ann)).keys[0]
    twice = [Update(row_key, {"code": each}) for each in ("a", "b")]
    assert [each.status for each in await wv.apply(*twice)] == ["applied", "applied"]
    bulk = [Insert(name, {"code": f"c{at}"}, key(at), tenant="ann") for at in (50, 901)]
    load = await wv.driver.plan_change(PlanRequest(changes=bulk, bulk=True))
    outcomes = await wv.driver.apply_change(msgspec.structs.replace(load, changes=bulk))
    assert [each.status for each in outcomes] == ["conflict", "applied"]
    assert outcomes[1].key is not None
    assert (outcomes[1].key.id, outcomes[1].key.routing) == (key(901), "ann")

    unscoped = [str(each) for each in wv.log[mark:] if not names_tenants(each, "ann")]
    assert unscoped == []
    theirs = await wv.page(name, tenant="bob", limit=300)
    assert (len(theirs.rows), {row["code"] for row in theirs.rows}) == (len(rows), {OTHER})


def by_id(page: Page) -> dict[str, dict[str, Any]]:
    return {row_key.id: row.to_dict() for row_key, row in zip(page.keys, page.rows, strict=True)}


async def hold_references(wv: Rig) -> None:
    """A search for a tenant cannot follow a reference to a collection that does not have the tenant; REST shows it."""
    plain = await wv.collection({"t": "text"}, [{"t": "a"}], name="Plain")
    other = await wv.collection({"t": "text"}, name="Other", **TENANTS)
    types = {"i": "int", "t": "text", "by": plain, "of": other, "any": {"dataType": [plain, other]}}
    name = await wv.collection(types, name="Shared", **TENANTS)
    for collection in (other, name):
        await wv.call("POST", f"/v1/schema/{collection}/tenants", [{"name": "ann"}, {"name": "bob"}])
        await wv.load(other, [{"t": "b"}], tenant="ann") if collection == other else None
    beacons = [[{"beacon": f"weaviate://localhost/{target}/{key(0)}"}] for target in (plain, other)]
    rows: list[dict[str, Any]] = [{"i": at, "t": "x"} for at in range(6)]
    rows[1] |= {"by": beacons[0]}
    rows[2] |= {"of": beacons[1]}
    rows[3] |= {"by": beacons[0], "of": beacons[1], "any": beacons[0] + beacons[1], "i": 2**40}
    rows[4] |= {"any": beacons[0]}
    await wv.load(name, rows, tenant="ann")
    await wv.load(name, [rows[0]], tenant="bob")
    ann = {"tenant": "ann"}
    listed = by_id(await wv.page(name, **ann))
    references = [sum(str(row[column]).count("beacon") for column in ("by", "of", "any")) for row in listed.values()]
    assert sorted(references) == [0, 0, 1, 1, 1, 4]
    selected, limited = Filter("t", "=", "x"), {"limit": 2, "offset": 2}
    by_number = [listed[key(at)] for at in (0, 1, 2, 4, 5, 3)]
    for _ in range(2):  # the second time, the server's answer is known
        for sort in ([], [Sort("i")], [Sort("uuid", descending=True)]):
            page = await wv.page(name, selected, sort=sort, **ann)
            assert by_id(page) == listed
            assert page.total == len(rows)
            assert "references-repaired" in {note.code for note in page.notes}
        page = await wv.page(name, sort=[Sort("i")], **ann, **limited)
        assert [row.to_dict() for row in page.rows] == by_number[2:4]
        assert [row["i"] for row in (await wv.page(name, selected, columns=["i"], sort=[Sort("i")], **ann)).rows] == [
            row["i"] for row in by_number
        ]
        for form in ExportForm:
            lines = [await wv.export(name, *filters, form=form, **ann) for filters in ([], [selected])]
            assert len(lines[0]) == len(rows)
            assert sorted(map(json.dumps, lines[0])) == sorted(map(json.dumps, lines[1]))
    assert [note.code for note in (await wv.page(name, selected, tenant="bob")).notes] == []
    await wv.call("DELETE", f"/v1/schema/{other}/tenants", ["ann"])
    assert by_id(await wv.page(name, selected, **ann)) == listed


class TestOnFake:
    async def test_a_tenant_is_named_wherever_rows_are(self):
        """W33: nothing of another tenant is read or changed."""
        async with on_fake() as wv:
            await hold_tenants(wv)

    @pytest.mark.parametrize("version", ["1.20.0", "1.38.11"])
    async def test_a_search_shows_references_that_it_cannot_follow(self, version: str):
        """W33: REST shows them all, a search for a tenant fails."""
        async with on_fake(version=version) as wv:
            await hold_references(wv)

    async def test_every_request_about_rows_names_its_tenant(self):
        """W33: the second request of an operation as well as the first."""
        async with on_fake() as wv:
            await hold_twins(wv)

    async def test_without_graphql_an_id_of_another_tenant_is_free(self):
        """W33: each id is asked for by itself then."""
        async with on_fake(graphql=False) as wv:
            name = await wv.collection({"i": "int"}, name="Shared", **TENANTS)
            await wv.call("POST", f"/v1/schema/{name}/tenants", [{"name": "ann"}, {"name": "bob"}])
            for tenant, numbers in (("ann", [0]), ("bob", [0, 1])):
                await wv.load(name, [{"i": 5}] * len(numbers), tenant=tenant)
            changes = [Insert(name, {"i": at}, key(at), tenant="ann") for at in range(2)]
            plan = await wv.driver.plan_change(PlanRequest(changes=changes, bulk=True))
            outcomes = await wv.driver.apply_change(msgspec.structs.replace(plan, changes=changes))
            assert [(each.change, str(each.status)) for each in outcomes] == [(0, "conflict"), (1, "applied")]


class TestOnServer:
    pytestmark = pytest.mark.live("weaviate")

    @pytest.mark.parametrize("hold", [hold_tenants, hold_twins, hold_references])
    async def test_a_tenant_is_named_wherever_rows_are(self, live_server: dict[str, Any], hold: Any):
        """W33."""
        if not live_server["engine"].endswith("-tenants"):
            pytest.skip("collections with tenants break other tests of a server")
        async with on_server(live_server) as wv:
            await hold(wv)
