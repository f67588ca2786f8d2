"""The rules of the driver on the real server; each was measured there first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.chroma.rig import BASE, Rig, on_server, record
from msgspec.structs import replace

from dragoman_api import (
    ConsoleText,
    CountRequest,
    Delete,
    Drop,
    ExportRequest,
    Filter,
    FilterNotSupportedError,
    Insert,
    Json,
    ObjectsRequest,
    OutcomeStatus,
    PageRequest,
    PlanRequest,
    QueryError,
    RowKey,
    Sort,
    UnsupportedOperationError,
    Update,
)
from dragoman_api.changes import NewObject
from dragoman_api.errors import ObjectChangedError, ObjectNotFoundError, RowNotFoundError
from dragoman_api.exports import ExportForm
from dragoman_api.grid import SimilarRequest
from dragoman_chroma import driver as chroma

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.live("chroma")
APPLIED, CONFLICT, REFUSED = OutcomeStatus.APPLIED, OutcomeStatus.CONFLICT, OutcomeStatus.REFUSED


@pytest.fixture
async def rig(live_server: dict[str, Any]) -> AsyncIterator[Rig]:
    async with on_server(live_server) as connected:
        yield connected


async def test_databases_hold_collections_with_counts(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """C1, C7, C8: a tree of databases and collections; a name alone is one of the connection's database."""
    name = await rig.collection([record(1), record(2)])
    [database] = [item for item in await rig.driver.list_objects(ObjectsRequest()) if item.name == "default_database"]
    assert (database.branch, database.kind) == (True, "database")
    listed = {item.name: item for item in await rig.driver.list_objects(ObjectsRequest(parent="default_database"))}
    assert (listed[name].rows, listed[name].parent) == (2, "default_database")
    others = [await rig.collection() for _ in range(2)]
    monkeypatch.setattr(chroma, "LISTED", 2)  # names come in parts
    objects = await rig.driver.list_objects(ObjectsRequest(parent="default_database"))
    assert {item.name for item in objects} >= {name, *others}
    alone = await rig.page(name.rpartition("/")[2])
    assert [key.object for key in alone.keys] == [name, name]
    with pytest.raises(ObjectNotFoundError):
        await rig.driver.describe_object("no_such_database/abc")


async def test_the_tenant_is_checked_and_the_version_is_the_interfaces(live_server: dict[str, Any]) -> None:
    """C2, C6: a connection to a tenant that is not there fails, with the field to edit."""
    async with on_server(live_server) as rig:
        assert (await rig.driver.ping()).ok
        assert (await rig.call("GET", "/api/v2/version")) == "1.0.0"
    with pytest.raises(QueryError, match="no such tenant") as caught:
        async with on_server(live_server, options={"tenant": "no such"}):
            pass
    assert caught.value.remedies[0].arguments == {"field": "tenant"}


async def test_ids_and_keys_hold_anything(rig: Rig) -> None:
    """C9, C14: ids and metadata keys of every kind come back, are found, and are written."""
    ids = ["a/b", "ü €😀", " ", "'\"\\", "a\nb", "%2F", "x" * 1_500, "null", "*"]
    keys = ["id", "document", "embedding", "metadata.x", "a.b", "k ü\"'", "x" * 300]
    rows = [{"id": key, "metadata": dict.fromkeys(keys, at)} for at, key in enumerate(ids)]
    name = await rig.collection(rows)
    page = await rig.page(name)
    assert [key.id for key in page.keys] == ids
    names = [
        "metadata.id",
        "metadata.document",
        "metadata.embedding",
        "metadata.metadata.x",
        "a.b",
        "k ü\"'",
        "x" * 300,
    ]
    for column in names:
        assert [row[column] for row in page.rows] == [*range(len(ids))]
        assert await rig.ids(name, Filter(column, "=", 3)) == [ids[3]]
    for key in page.keys:
        [outcome] = await rig.apply(Update(key, {"metadata.id": 77}))
        assert outcome.status is APPLIED, outcome
    assert {row["metadata"]["id"] for row in await rig.stored(name)} == {77}


async def test_columns_come_from_the_first_records(rig: Rig) -> None:
    """C10, C12, C30: kinds by the values of samples; a key of later records is noted, and exported with documents."""
    rows = [record(at, text="a", whole=1, number=1.5 if at else 1, flag=True, tags=["a"]) for at in range(201)]
    name = await rig.collection([*rows, record(201, late=1)])
    description = await rig.driver.describe_object(name)
    kinds = {column.name: (str(column.kind), column.repeated) for column in description.columns}
    assert [*kinds][:3] == ["id", "document", "uri"]
    assert [*kinds][-1] == "embedding"
    assert (kinds["text"], kinds["whole"], kinds["number"]) == (("text", False), ("integer", False), ("float", False))
    assert (kinds["flag"], kinds["tags"]) == (("boolean", False), ("text", True))
    assert [note.code for note in description.notes] == ["sampled"]
    page = await rig.page(name, offset=201)
    assert [note.code for note in page.notes] == ["keys-left-out"]
    assert [json.loads(line)["metadata"] for line in (await rig.export(name))[-1:]] == [{"late": 1}]
    parts = [part async for part in rig.driver.export_rows(ExportRequest(object=name, form=ExportForm.ROWS))]
    assert [note.code for part in parts for note in part.notes] == ["no-order", "keys-left-out"]


async def test_a_collection_made_anew_is_noticed(rig: Rig) -> None:
    """C11: a page, a count and a filter of the old collection are not answered from the new one."""
    name = await rig.collection([record(1, n=1)])
    compiled = await rig.filter(name, Filter("n", "=", 1))
    await rig.call("DELETE", f"{BASE}/{rig.made[0]}")
    await rig.call("POST", BASE, {"name": rig.made[0]})
    with pytest.raises(ObjectChangedError):
        await rig.driver.fetch_page(PageRequest(object=name))
    with pytest.raises(ObjectChangedError):
        await rig.driver.count_rows(CountRequest(object=name, filter=compiled))
    assert (await rig.driver.fetch_page(PageRequest(object=name))).total == 0


async def test_embeddings_keep_every_digit(rig: Rig) -> None:
    """C13: what is written as 32-bit floats comes back as such."""
    name = await rig.collection()
    vector = "[1.0,0.1,1e-45,3.4028235e38,-0.0]"
    [outcome] = await rig.apply(Insert(name, {"embedding": Json(vector)}, id="a"))
    assert outcome.status is APPLIED
    [row] = (await rig.page(name)).rows
    assert json.loads(str(row["embedding"])) == json.loads("[1.0,0.1,1e-45,3.4028235e38,-0.0]")
    await rig.driver.describe_object(name)  # the first record decides how many numbers there are
    [refused] = await rig.apply(Insert(name, {"embedding": [1, 2]}, id="b"))
    assert (refused.status, "5 numbers" in refused.reason) == (REFUSED, True)


async def test_conditions_mean_what_they_say(rig: Rig) -> None:
    """C15-C17, C19: letters, missing keys under a negation, one number in two kinds, booleans."""
    values: list[dict[str, Any]] = [{"s": "x"}, {"s": "X"}, {}, {"n": 1}, {"n": 1.0}, {"n": 2.5}, {"b": True}]
    name = await rig.collection([record(at, **metadata) for at, metadata in enumerate(values)])

    async def numbers(*rows: Filter, match: str = "all") -> list[int]:
        return [int(key[1:]) for key in await rig.ids(name, *rows, match=match)]

    assert await numbers(Filter("s", "=", "x")) == [0]
    assert await numbers(Filter("s", "!=", "x")) == [1, 2, 3, 4, 5, 6]
    assert await numbers(Filter("s", "not-in", ["x", "X"])) == [2, 3, 4, 5, 6]
    assert await numbers(Filter("n", "=", 1)) == await numbers(Filter("n", "=", 1.0)) == [3, 4]
    assert await numbers(Filter("n", "between", [1, 2])) == [3, 4]
    assert await numbers(Filter("b", "=", True)) == [6]
    assert await numbers(Filter("n", ">", 1), Filter("b", "=", True), match="any") == [5, 6]
    with pytest.raises(FilterNotSupportedError):
        await numbers(Filter("s", ">", "a"))


async def test_a_fraction_is_compared_with_integers_as_it_is(rig: Rig) -> None:
    """C20: the server cuts the fraction off, which the sent condition makes up for."""
    stored = [-2, -1, 0, 1, 2, -1.5, 1.5, -0.5, 0.5]
    name = await rig.collection([record(at, n=number) for at, number in enumerate(stored)])
    tests = {"=": "__eq__", "!=": "__ne__", ">": "__gt__", ">=": "__ge__", "<": "__lt__", "<=": "__le__"}
    for operand in (-1.5, -0.5, 0.5, 1.5):
        for operator, test in tests.items():
            due = [f"r{at:04}" for at, number in enumerate(stored) if getattr(float(number), test)(operand)]
            assert await rig.ids(name, Filter("n", operator, operand)) == due, f"n {operator} {operand}"


async def test_arrays_match_by_an_element(rig: Rig) -> None:
    """C21: integers and floats of one number match in arrays of both."""
    name = await rig.collection([record(0, t=["a", "b"], n=[1, 2]), record(1, t=["c"], n=[1.0, 2.5]), record(2)])
    assert await rig.ids(name, Filter("t", "=", "b")) == ["r0000"]
    assert await rig.ids(name, Filter("t", "!=", "b")) == ["r0001", "r0002"]
    assert await rig.ids(name, Filter("n", "=", 1)) == ["r0000", "r0001"]
    assert await rig.ids(name, Filter("n", "in", [2, 2.5])) == ["r0000", "r0001"]


async def test_documents_are_searched_letter_by_letter(rig: Rig) -> None:
    """C22: no character is a wildcard, and a record without a document has none."""
    texts = ["Ab%", "ab_", "", None, "[x]"]
    rows = [{"id": f"r{at}", "document": text} for at, text in enumerate(texts)]
    name = await rig.collection(rows)
    assert await rig.ids(name, Filter("document", "contains", "b%")) == ["r0"]
    assert await rig.ids(name, Filter("document", "contains", "a")) == ["r1"]
    assert await rig.ids(name, Filter("document", "not-contains", "b")) == ["r2", "r3", "r4"]
    assert await rig.ids(name, Filter("document", "null")) == ["r3"]
    assert await rig.ids(name, Filter("document", "not-null")) == ["r0", "r1", "r2", "r4"]


async def test_what_chroma_cannot_compare_is_evaluated_or_refused(rig: Rig) -> None:
    """C23, C25, C27: on a page that allows it; a count, an export and a page that does not refuse it."""
    name = await rig.collection([record(at, s=f"{'x' if at % 2 else 'y'}{at}") for at in range(10)])
    row = Filter("s", "starts", "x")
    with pytest.raises(FilterNotSupportedError):
        await rig.filter(name, row)
    await rig.driver.describe_object(name)
    compiled = await rig.driver.compile_filter(_request(name, row, residual=100))
    page = await rig.driver.fetch_page(
        PageRequest(object=name, filter=compiled, sort=[Sort("s", descending=True)], residual=100)
    )
    assert [key.id for key in page.keys] == ["r0009", "r0007", "r0005", "r0003", "r0001"]
    assert {note.code for note in page.notes} == {"residual-filter", "residual-sort"}
    assert (await rig.driver.fetch_page(PageRequest(object=name, sort=[Sort("s")]))).notes[0].code == "sort-dropped"
    with pytest.raises(FilterNotSupportedError):
        await rig.driver.count_rows(CountRequest(object=name, filter=compiled))
    with pytest.raises(FilterNotSupportedError):
        _ = [part async for part in rig.driver.export_rows(ExportRequest(object=name, filter=compiled))]
    cut = await rig.driver.compile_filter(_request(name, row, residual=4))
    page = await rig.driver.fetch_page(PageRequest(object=name, filter=cut, residual=4))
    assert (page.total, page.total_exact) == (2, False)


def _request(name: str, row: Filter, *, residual: int) -> Any:
    from dragoman_api import FilterRequest

    return FilterRequest(object=name, rows=[row], residual=residual)


async def test_ids_are_asked_for_by_name(rig: Rig) -> None:
    """C24, C26: several rows of ids narrow, none of them widens, and one request names a bounded number."""
    name = await rig.collection([record(at, n=at) for at in range(5)])
    assert await rig.ids(name, Filter("id", "in", ["r0001", "r0003", "no"]), Filter("n", ">", 1)) == ["r0003"]
    assert await rig.ids(name, Filter("id", "=", "r0001"), Filter("id", "=", "r0002")) == []
    with pytest.raises(FilterNotSupportedError, match="'and' only"):
        await rig.ids(name, Filter("id", "=", "r0001"), Filter("n", "=", 2), match="any")
    with pytest.raises(FilterNotSupportedError, match="5,000"):
        await rig.ids(name, Filter("id", "in", [str(at) for at in range(5_001)]))


async def test_counts_and_totals_are_exact_or_say_that_they_are_not(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """C28: also behind a page, and under a filter; a total that ends before the last row is a lower bound."""
    name = await rig.collection([record(at, n=at % 2) for at in range(120)])
    compiled = await rig.filter(name, Filter("n", "=", 1))
    assert await rig.driver.count_rows(CountRequest(object=name)) == 120
    assert await rig.driver.count_rows(CountRequest(object=name, filter=compiled)) == 60
    for offset in (0, 10, 55, 60, 90):
        page = await rig.driver.fetch_page(PageRequest(object=name, filter=compiled, offset=offset, limit=10))
        assert (page.total, page.total_exact) == (60, True), offset
    monkeypatch.setattr(chroma, "COUNTED", 20)
    assert await rig.driver.count_rows(CountRequest(object=name, filter=compiled)) == 60
    monkeypatch.setattr(chroma, "TOTALED", 30)
    for offset, total in ((0, (40, False)), (19, (59, False)), (20, (60, True))):
        page = await rig.driver.fetch_page(PageRequest(object=name, filter=compiled, offset=offset, limit=10))
        assert (page.total, page.total_exact) == total


async def test_an_export_ends_where_it_would_lose_rows(rig: Rig) -> None:
    """C29-C31: embeddings included, in parts; behind a checkpoint only if nothing before it is gone."""
    name = await rig.collection([record(at, n=at) for at in range(200)])
    lines = [json.loads(line) for line in await rig.export(name, form=ExportForm.ROWS)]
    assert [line["id"] for line in lines] == [f"r{at:04}" for at in range(200)]
    assert lines[7] == record(7, n=7) | {"uri": None, "embedding": [7.0, 0.5, -1.0]}
    parts = rig.driver.export_rows(ExportRequest(object=name))
    first = await anext(parts)
    await parts.aclose()
    rest = [part async for part in rig.driver.export_rows(ExportRequest(object=name, checkpoint=first.checkpoint))]
    assert first.rows + sum(part.rows for part in rest) == 200
    assert [note.code for note in first.notes] == ["no-order"]
    [outcome] = await rig.apply(Delete(RowKey(name, "r0000")))
    assert outcome.status is APPLIED
    with pytest.raises(QueryError, match="deleted meanwhile"):
        _ = [part async for part in rig.driver.export_rows(ExportRequest(object=name, checkpoint=first.checkpoint))]


async def test_each_change_has_its_own_request(rig: Rig) -> None:
    """C32, C36, C38: add, update of the named columns, upsert that leaves nothing old behind, delete."""
    name = await rig.collection([record(0, a=1, b="x")])
    key = RowKey(name, "r0000")
    plan = await rig.plan(Update(key, {"a": None, "c": 2}))
    assert plan.requests[0].path.endswith("/update")
    assert json.loads(plan.requests[0].body or "") == {"ids": ["r0000"], "metadatas": [{"a": None, "c": 2}]}
    assert [outcome.status for outcome in await rig.driver.apply_change(plan)] == [APPLIED]
    assert (await rig.stored(name))[0]["metadata"] == {"b": "x", "c": 2}
    values = {"document": "new", "embedding": [1, 2, 3], "d": True}
    [outcome] = await rig.apply(Insert(name, values, id="r0000", replace=True))
    assert outcome.status is APPLIED
    assert (await rig.stored(name))[0]["metadata"] == {"d": True}
    for column in ("document", "uri"):
        [outcome] = await rig.apply(Update(key, {column: None}))
        assert outcome.status is REFUSED
    [outcome] = await rig.apply(Insert(name, {"embedding": [1, 2, 3]}, id="r0000", replace=True))
    assert (outcome.status, "keeps the document" in outcome.reason) == (REFUSED, True)
    [outcome] = await rig.apply(Delete(key))
    assert (outcome.status, await rig.stored(name)) == (APPLIED, [])


async def test_a_record_that_changed_is_not_overwritten(rig: Rig) -> None:
    """C33-C35: a digest is compared before the write; what the server ignores in silence is a conflict."""
    name = await rig.collection([record(0, a=1), record(1, a=1), record(2, a=1)])
    collection = (await rig.call("GET", f"{BASE}/{rig.made[0]}"))["id"]
    keys = (await rig.page(name)).keys
    plans = [await rig.plan(Update(keys[0], {"a": 2})), await rig.plan(Delete(keys[1]))]
    plans += [
        await rig.plan(Update(keys[2], {"a": 2})),
        await rig.plan(Insert(name, {"embedding": [1, 2, 3]}, id="new")),
    ]
    body: dict[str, Any] = {"ids": ["r0000", "r0001"], "embeddings": [[9, 9, 9], None], "metadatas": [None, {"a": 5}]}
    await rig.call("POST", f"{BASE}/{collection}/update", body)
    await rig.call("POST", f"{BASE}/{collection}/delete", {"ids": ["r0002"]})
    await rig.call("POST", f"{BASE}/{collection}/add", {"ids": ["new"], "embeddings": [[4, 4, 4]]})
    before = await rig.stored(name)
    for plan in plans:
        [outcome] = await rig.driver.apply_change(plan)
        assert (outcome.status, bool(outcome.reason)) == (CONFLICT, True)
    assert await rig.stored(name) == before
    for change in (Update(RowKey(name, "gone"), {"a": 1}), Insert(name, {"embedding": [1, 2, 3]}, id="new")):
        [outcome] = await rig.apply(change)
        assert outcome.status is CONFLICT


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"n": 2**63}, "64 bits"),
        ({"f": -7.312715117751976e-237}, "another number"),
        ({"t": []}, "at least one"),
        ({"t": ["a", 1]}, "texts, numbers or booleans"),
        ({"o": {"a": 1}}, "a metadata value is"),
        ({"chroma:document": "x"}, "chroma:"),
        ({"#x": 1}, "begins with"),
        ({"": 1}, "empty"),
        ({"embedding": [1, 2, "x"]}, "numbers only"),
        ({"embedding": [1, 2, 1e39]}, "too large"),
        ({"document": 5}, "a text"),
    ],
)
async def test_what_the_server_would_store_otherwise_is_refused(rig: Rig, values: dict[str, Any], reason: str) -> None:
    """C18, C37: nothing is sent."""
    name = await rig.collection([record(0)])
    change = Insert(name, {"embedding": [1, 2, 3], **values}, id="a")
    plan = await rig.plan(change)
    assert plan.planned == []
    assert reason in plan.refusals[0].reason


async def test_the_records_of_a_load_share_requests(rig: Rig) -> None:
    """C39: each has its own outcome; one that exists is a conflict, and the others are stored."""
    name = await rig.collection([record(3)])
    changes: list[Any] = [Insert(name, {"embedding": [at, 1, 1], "n": at}, id=f"r{at:04}") for at in range(2_500)]
    plan = await rig.driver.plan_change(PlanRequest(changes=changes, bulk=True))
    assert [len(planned.by_row) for planned in plan.planned] == [1_000, 1_000, 499]
    assert [(refusal.change, refusal.status) for refusal in plan.refusals] == [(3, CONFLICT)]
    await rig.load((await rig.call("GET", f"{BASE}/{rig.made[0]}"))["id"], [record(2_000)])
    outcomes = await rig.driver.apply_change(replace(plan, changes=changes))
    statuses = {outcome.change: outcome.status for outcome in outcomes}
    assert statuses.pop(2_000) is CONFLICT
    assert {*statuses.values()} == {APPLIED}
    assert await rig.driver.count_rows(CountRequest(object=name)) == 2_500


async def test_a_drop_says_what_the_server_keeps(rig: Rig) -> None:
    """C40: and it drops one collection."""
    name, other = await rig.collection([record(1, tags=["a"])]), await rig.collection([record(1, n=1)])
    plan = await rig.plan(Drop(name))
    assert [note.code for note in plan.notes] == ["arrays-remain"]
    assert (await rig.plan(Drop(other))).notes == []
    assert [outcome.status for outcome in await rig.driver.apply_change(plan)] == [APPLIED]
    with pytest.raises(ObjectNotFoundError):
        await rig.driver.describe_object(name)
    assert await rig.driver.count_rows(CountRequest(object=other)) == 1


async def test_the_console_sends_what_was_typed(rig: Rig) -> None:
    """C41: the interface's path is added where it is missing, and an error status is an answer."""
    name = await rig.collection([record(1)])
    [answer] = await rig.console("GET /version")
    assert (answer.request.path, answer.status, answer.text) == ("/api/v2/version", 200, '"1.0.0"')
    path = f"/tenants/default_tenant/databases/default_database/collections/{rig.made[0]}"
    identifier = (await rig.call("GET", f"/api/v2{path}"))["id"]
    text = f'POST {path.replace(rig.made[0], identifier)}/get {{"where": {{"#document": {{"$contains": "1"}}}}}}'
    [parsed] = await rig.driver.parse_console(ConsoleText(text))
    assert not parsed.writes
    assert json.loads((await rig.driver.execute_console(parsed)).text)["ids"] == ["r0001"]
    [answer] = await rig.console("GET /nosuch")
    assert answer.status == 404
    assert name


async def test_an_exported_document_is_stored_again_as_it_was(rig: Rig) -> None:
    """C30, C32: with its id, uri, embedding and the kinds of its metadata."""
    stored = record(1, n=1, f=1.5, t="12", b=True, a=["x"]) | {"uri": "file:///a"}
    name, other = await rig.collection([stored]), await rig.collection()
    [line] = await rig.export(name)
    [outcome] = await rig.apply(Insert(other, document=line.decode()))
    assert (outcome.status, outcome.id) == (APPLIED, "r0001")
    assert await rig.stored(other) == await rig.stored(name)
    [outcome] = await rig.apply(Insert(other, document=line.decode(), id="another"))
    assert (outcome.status, "columns id say" in outcome.reason) == (REFUSED, True)


async def test_a_collection_is_made_like_another(rig: Rig) -> None:
    """The request of a load that makes its object: with the metadata and the distance of the one that it copies."""
    await rig.call(
        "POST", BASE, {"name": "likethis", "metadata": {"a": 1}, "configuration": {"hnsw": {"space": "cosine"}}}
    )
    rig.made += ["likethis", "copied"]
    like = (await rig.driver.describe_object("likethis")).structure
    request = PlanRequest(changes=[], new=NewObject("default_database/copied", like))
    [planned] = (await rig.driver.plan_change(request)).planned
    made = await rig.call(planned.request.method, planned.request.path, planned.request.body)
    assert (made["metadata"], made["configuration_json"]["hnsw"]["space"]) == ({"a": 1}, "cosine")


async def nearest(rig: Rig, name: str, *rows: Filter, **request: Any) -> list[tuple[str, Any]]:
    compiled = await rig.filter(name, *rows) if rows else None
    page = await rig.driver.similar_rows(SimilarRequest(object=name, filter=compiled, **request))
    assert [note.code for note in page.notes] == ["nearest-approximate"]
    return [(key.text, cells[-1]) for key, cells in zip(page.keys, page.cells, strict=True)]


async def test_the_nearest_records_come_first_under_each_kind_of_filter(rig: Rig) -> None:
    """C42: conditions of metadata, of documents, and ids; distances are squared ones, as the server measures."""
    name = await rig.collection([record(at, n=at, t="even" if at % 2 == 0 else "odd") for at in range(40)])
    key = RowKey(name, "r0010")
    assert await nearest(rig, name, key=key, limit=4) == [("r0009", 1), ("r0011", 1), ("r0008", 4), ("r0012", 4)]
    assert await nearest(rig, name, vector=[10, 0.5, -1], limit=1) == [("r0010", 0)]
    assert await nearest(rig, name, Filter("n", ">", 20), key=key, limit=2) == [("r0021", 121), ("r0022", 144)]
    assert await nearest(rig, name, Filter("t", "=", "even"), key=key, limit=2) == [("r0008", 4), ("r0012", 4)]
    assert await nearest(rig, name, Filter("document", "contains", "3"), key=key, limit=1) == [("r0013", 9)]
    ids = Filter("id", "in", ["r0001", "r0010", "r0039"])
    assert await nearest(rig, name, ids, key=key, limit=9) == [("r0001", 81), ("r0039", 841)]
    for found, missing in ((["r0001"], ["gone"]), ([], ["gone"])):
        ids = Filter("id", "in", [*found, *missing])
        assert [row for row, _ in await nearest(rig, name, ids, key=key)] == found
    both = [Filter("id", "=", "r0001"), Filter("id", "=", "r0002")]
    assert await nearest(rig, name, *both, key=key) == []
    assert await nearest(rig, name, Filter("n", ">", 100), key=key) == []
    assert len(await nearest(rig, name, vector=[0, 0, 0], limit=1_000)) == 40


async def test_the_distance_is_that_of_the_collection(rig: Rig) -> None:
    """C42: by cosine, parallel vectors are no distance apart."""
    configuration = {"hnsw": {"space": "cosine"}}
    made = await rig.call("POST", BASE, {"name": "bycosine", "configuration": configuration})
    rig.made.append("bycosine")
    await rig.load(made["id"], [record(1) | {"embedding": [1, 0, 0]}, record(2) | {"embedding": [0, 1, 0]}])
    [near, far] = await nearest(rig, "default_database/bycosine", vector=[7, 0, 0])
    assert (near[0], far[0]) == ("r0001", "r0002")
    assert near[1] == pytest.approx(0, abs=1e-6)
    assert far[1] == pytest.approx(1)


async def test_what_has_no_nearest_records_says_why(rig: Rig) -> None:
    """C43: a text, a vector of another length, a record that is gone; an empty collection has none."""
    name, empty = await rig.collection([record(1, tags=["a"]), record(2)]), await rig.collection()
    await rig.driver.describe_object(name)
    with pytest.raises(UnsupportedOperationError, match="no embeddings of texts"):
        await nearest(rig, name, text="tea")
    with pytest.raises(QueryError, match="have 3 numbers, not 2"):
        await nearest(rig, name, vector=[1, 2])
    with pytest.raises(RowNotFoundError, match="no record 'gone'"):
        await nearest(rig, name, key=RowKey(name, "gone"))
    with pytest.raises(QueryError, match="no vectors of the name 'document'") as caught:
        await nearest(rig, name, vector=[1, 2, 3], column="document")
    assert caught.value.details["column"] == "document"
    assert await nearest(rig, empty, vector=[1, 2]) == []
