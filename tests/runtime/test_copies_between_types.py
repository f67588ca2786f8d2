"""Copies to a connection of another type: what becomes of each column is told first, and no value is lost unsaid."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from threading import get_ident
from uuid import NAMESPACE_DNS, uuid4, uuid5

import pytest

import dragoman
from dragoman import Runtime, SavedConnection
from dragoman.imports import copies, copy_plans
from dragoman.imports.load_run import Load, LoadOptions
from dragoman.imports.translations import ObjectReader
from dragoman_api import ConsoleRequest
from dragoman_api.columns import Column, ColumnKind
from dragoman_api.errors import ConfigurationError, ObjectNotFoundError, QueryError
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate

MAPPING = {
    "sku": {"type": "keyword"},
    "n": {"type": "long"},
    "price": {"type": "double"},
    "sold": {"type": "date"},
    "exact": {"type": "date_nanos"},
    "ok": {"type": "boolean"},
    "picture": {"type": "binary"},
    "place": {"type": "geo_point"},
    "lines": {"type": "nested", "properties": {"x": {"type": "long"}}},
    "ship": {"properties": {"city": {"type": "keyword"}}},
    "tags": {"type": "keyword"},
    "v": {"type": "dense_vector", "dims": 3},
}
WHOLE = {
    "sku": "007",
    "n": 9_007_199_254_740_992,
    "price": 1.1,
    "sold": "2024-01-31",
    "exact": "2024-01-31T12:00:00.123456789+02:00",
    "ok": False,
    "picture": "aGk=",
    "place": {"lat": 1.5, "lon": 2},
    "lines": [{"x": 9_007_199_254_740_993}],
    "ship": {"city": "Köln"},
    "tags": ["a", "b"],
    "v": [1, 0.5, 0.25],
}
ROWS = {"1": WHOLE, "a/2": {"sku": "", "tags": "alone", "n": None}, "3": {"tags": []}}
AGREED = {"place": "place", "lines": "lines", "ship.city": "ship_city"}


@pytest.fixture
async def servers(home, tmp_path, monkeypatch):
    """Open connections to both servers; what loads write beside goes to a folder of the test."""
    monkeypatch.chdir(tmp_path)
    async with (
        FakeElasticsearch(version="8.19.21") as search,
        FakeWeaviate() as vectors,
        Runtime(spare=False) as runtime,
    ):
        for name, kind, server in (("shop", "elasticsearch", search), ("lab", "weaviate", vectors)):
            values = {"host": server.host, "port": server.port}
            runtime.connections.save(SavedConnection(name=name, type=kind, values=values))
        async with runtime.open("shop") as shop, runtime.open("lab") as lab:
            yield shop, lab


async def send(session, text):
    """Send a request of the console; it must succeed."""
    [request] = await session.parse(text)
    answer = await session.execute(ConsoleRequest(request=request.request, writes=True))
    assert not answer.failed, answer
    assert 200 <= answer.status < 300, answer.text


async def fill(shop, rows, mapping=MAPPING, name="orders"):
    """Make an index with these documents, by their ids."""
    await send(shop, f"PUT /{name}\n{json.dumps({'mappings': {'properties': mapping}})}")
    inserts = [dragoman.Insert(name, {}, document=json.dumps(row), id=row_id) for row_id, row in rows.items()]
    outcomes = await shop.apply(await shop.plan(*inserts))
    assert {outcome.status for outcome in outcomes} == {"applied"}, outcomes
    await send(shop, f"POST /{name}/_refresh")


async def stored(session, name, **choice):
    """Return the rows of an object by id, as an export writes them."""
    rows = [row async for row in session.rows(name, **choice).stream(form="rows")]
    return {row.get("_id") or row["id"]: row for row in rows}


def fates(plan):
    """Return what becomes of each column: its name and type there, or nothing if it is left out."""
    return {column.column: (column.name, column.target) if column.name else None for column in plan.columns}


def derived(row_id):
    return str(uuid5(NAMESPACE_DNS, row_id))


async def agree(_plan):
    """Agree to any plan."""


@pytest.mark.slow
async def test_a_plan_names_what_becomes_of_each_column_and_writes_nothing(servers):
    shop, lab = servers
    await fill(shop, ROWS)
    plan = await dragoman.plan_copy(shop.rows("orders"), lab, "Orders", create=True)
    assert fates(plan) == {
        "sku": ("sku", "text"), "n": ("n", "integer"), "price": ("price", "float"), "sold": ("sold", "timestamp"),
        "exact": ("exact", "timestamp"), "ok": ("ok", "boolean"), "picture": ("picture", "binary"),
        "place": ("place", "text"), "lines": ("lines", "text"), "ship.city": ("ship_city", "text"),
        "tags": ("tags", "text[]"), "v": ("v", "vector of 3 numbers"),
    }  # fmt: skip
    assert {column.column: column.reason for column in plan.doubtful} == {
        "place": "as its JSON text, because there is no such type",
        "lines": "as its JSON text, because there is no such type",
        "ship.city": "under another name: the driver refuses this one",
    }
    assert (plan.ids, plan.ids_consent, plan.exists, plan.rows) == ("derive", False, False, 3)
    assert {note.code for note in plan.notes} == {"integer-rounded", "nulls-left-out"}
    with pytest.raises(ObjectNotFoundError):
        await lab.describe("Orders")


@pytest.mark.slow
async def test_a_copy_that_nobody_agreed_to_is_refused_and_its_hint_agrees(servers):
    shop, lab = servers
    await fill(shop, ROWS)
    with pytest.raises(ConfigurationError, match="would leave out or change") as caught:
        await dragoman.load(lab, "Orders", rows=shop.rows("orders"), create=True)
    assert caught.value.code == "copy-unconfirmed"
    named = {name: AGREED[name] for name in ("lines", "place", "ship.city")}
    assert caught.value.hint == f"to agree to it: renamed={named!r}, ids='derive'"
    with pytest.raises(ObjectNotFoundError):
        await lab.describe("Orders")
    report = await dragoman.load(lab, "Orders", rows=shop.rows("orders"), create=True, renamed=AGREED, ids="derive")
    assert report.counts["applied"] == 3


@pytest.mark.slow
async def test_every_value_of_a_search_engine_arrives_in_a_vector_database(servers, tmp_path):
    shop, lab = servers
    await fill(shop, ROWS)
    report = await dragoman.load(lab, "Orders", rows=shop.rows("orders"), create=True, renamed=AGREED, ids="derive")
    assert (report.counts["applied"], report.complete, report.rejected) == (3, True, None)
    rows = await stored(lab, "Orders", columns=["vector"])
    whole, bare, empty = (rows[derived(row_id)] for row_id in ROWS)
    properties = whole["properties"]
    assert (json.loads(properties.pop("place")), json.loads(properties.pop("lines"))) == (
        WHOLE["place"],
        WHOLE["lines"],
    )
    assert properties == {
        "sku": "007", "n": 9_007_199_254_740_992, "price": 1.1, "sold": "2024-01-31T00:00:00Z",
        "exact": "2024-01-31T12:00:00.123456789+02:00", "ok": False, "picture": "aGk=", "ship_city": "Köln",
        "tags": ["a", "b"],
    }  # fmt: skip
    assert whole["vectors"] == {"v": [1, 0.5, 0.25]}
    assert (bare["properties"], empty["properties"]) == ({"sku": "", "tags": ["alone"]}, {"tags": []})
    notes = {note.code: note for note in report.notes}
    assert notes["nulls-left-out"].reason.startswith("1 row holds a null")
    assert {note.column for note in report.notes if note.code == "values-respelled"} == {"sold", "tags"}
    assert [path.name for path in tmp_path.iterdir()] == ["home"]  # no file on the way
    back = await dragoman.load(shop, "back", rows=lab.rows("Orders"), create=True)
    assert (back.counts["applied"], back.notes) == (3, [])
    await send(shop, "POST /back/_refresh")
    rows = {row_id: row["_source"] for row_id, row in (await stored(shop, "back")).items()}
    assert rows == {whole["id"]: {**whole["properties"], "place": rows[whole["id"]]["place"],
                                  "lines": rows[whole["id"]]["lines"], "vector": {"v": [1, 0.5, 0.25]}},
                    bare["id"]: bare["properties"], empty["id"]: empty["properties"]}  # fmt: skip


@pytest.mark.slow
async def test_every_value_of_a_vector_database_arrives_in_a_search_engine(servers):
    shop, lab = servers
    names = {
        "title": "text",
        "pages": "int",
        "price": "number",
        "seen": "date",
        "tags": "text[]",
        "place": "geoCoordinates",
    }
    properties = [{"name": name, "dataType": [kind]} for name, kind in names.items()]
    await send(lab, f"POST /v1/schema\n{json.dumps({'class': 'Book', 'vectorizer': 'none', 'properties': properties})}")
    ids = [str(uuid4()) for _ in range(2)]
    values = {"title": "12", "pages": 3, "price": 0.1, "seen": "2024-01-31T12:00:00.5Z", "tags": ["x"],
              "place": {"latitude": 1.5, "longitude": 2.0}}  # fmt: skip
    document = {"properties": values, "vector": [1.0, 0.5, 0.25]}
    inserts = [dragoman.Insert("Book", {}, document=json.dumps(document), id=ids[0]),
               dragoman.Insert("Book", {}, document=json.dumps({"properties": {"title": ""}}), id=ids[1])]  # fmt: skip
    assert {outcome.status for outcome in await lab.apply(await lab.plan(*inserts))} == {"applied"}
    plan = await dragoman.plan_copy(lab.rows("Book"), shop, "books", create=True)
    assert (plan.doubtful, plan.ids, plan.ids_consent) == ([], "keep", True)
    assert fates(plan)["vector"] == ("vector", "vector of 3 numbers")
    report = await dragoman.load(shop, "books", rows=lab.rows("Book"), create=True)
    assert (report.counts["applied"], report.notes) == (2, [])
    await send(shop, "POST /books/_refresh")
    rows = await stored(shop, "books")
    assert {row_id: row["_source"] for row_id, row in rows.items()} == {
        ids[0]: {**values, "vector": [1.0, 0.5, 0.25]}, ids[1]: {"title": ""},
    }  # fmt: skip
    types = {column.name: column.type for column in (await shop.describe("books")).columns}
    assert (types["pages"], types["seen"], types["vector"], types["place"]) == (
        "long",
        "date",
        "dense_vector",
        "object",
    )


@pytest.mark.slow
async def test_a_value_that_does_not_fit_is_a_rejected_row_with_its_reason(servers):
    shop, lab = servers
    mapping = {"u": {"type": "unsigned_long"}, "d": {"type": "date"}, "n": {"type": "keyword"}}
    rows = {"1": {"u": 2**64 - 1}, "2": {"d": 1_706_702_400_000}, "3": {"u": 1, "n": 12}, "4": {"u": 2, "n": "12"}}
    await fill(shop, rows, mapping)
    report = await dragoman.load(lab, "Orders", rows=shop.rows("orders"), create=True, confirm=agree)
    assert (report.counts["applied"], report.counts["refused"]) == (2, 2)
    assert report.rejected == "Orders.rejected.ndjson"
    lines = map(json.loads, Path(report.rejected).read_text().splitlines())
    rejected = {line["data"]["_id"]: line["reason"] for line in lines}
    assert "64 bits" in rejected["1"]  # the id as it was read
    assert "takes a text" in rejected["2"]
    written = await stored(lab, "Orders")
    assert [written[derived(number)]["properties"] for number in "34"] == [{"u": 1, "n": "12"}, {"u": 2, "n": "12"}]


@pytest.mark.slow
async def test_an_object_that_exists_receives_the_columns_that_it_has(servers):
    shop, lab = servers
    await fill(shop, {"1": WHOLE})
    properties = [{"name": "sku", "dataType": ["text"]}, {"name": "n", "dataType": ["number"]}]
    await send(
        lab, f"POST /v1/schema\n{json.dumps({'class': 'Orders', 'vectorizer': 'none', 'properties': properties})}"
    )
    plan = await dragoman.plan_copy(shop.rows("orders"), lab, "Orders", ids="derive")
    assert {name: fate for name, fate in fates(plan).items() if fate} == {
        "sku": ("sku", "text"), "n": ("n", "number"), "v": ("vector", "vector"),
    }  # fmt: skip
    reasons = {column.column: column.reason for column in plan.doubtful}
    assert reasons["tags"] == "left out: 'Orders' has no such column"
    assert reasons["v"] == "into 'vector', the only vector there"
    report = await dragoman.load(lab, "Orders", rows=shop.rows("orders"), ids="derive", confirm=agree)
    assert report.counts["applied"] == 1
    [row] = (await stored(lab, "Orders", columns=["vector"])).values()
    assert (row["properties"], row["vector"]) == ({"sku": "007", "n": 9_007_199_254_740_992}, [1, 0.5, 0.25])
    assert "'tags'" in next(note.reason for note in report.notes if note.code == "columns-left-out")


@pytest.mark.slow
async def test_arrays_of_objects_stay_together_and_one_that_comes_later_is_rejected(servers):
    shop, lab = servers
    mapping = {"o": {"properties": {"a": {"type": "long"}, "b": {"type": "keyword"}}}}
    await fill(shop, {"1": {"o": [{"a": 1}, {"b": "x"}]}}, mapping)
    plan = await dragoman.plan_copy(shop.rows("orders"), lab, "Orders", create=True)
    assert fates(plan) == {"o": ("o", "text")}
    singles = {f"{number:04}": {"o": {"a": number}} for number in range(250)}
    await fill(shop, singles | {"9999": {"o": [{"a": 1}, {"a": 2}]}}, mapping, "later")
    report = await dragoman.load(lab, "Later", rows=shop.rows("later"), create=True, confirm=agree)
    assert (report.counts["applied"], report.counts["refused"]) == (250, 1)
    assert "an array at 'o'" in json.loads(Path("Later.rejected.ndjson").read_text())["reason"]


@pytest.mark.slow
async def test_two_columns_that_become_one_are_refused_before_anything_is_made(servers):
    shop, lab = servers
    await fill(
        shop, {"1": {"a": {"b": 1}, "a_b": 2}}, {"a": {"properties": {"b": {"type": "long"}}}, "a_b": {"type": "long"}}
    )
    with pytest.raises(ConfigurationError, match=r"'a\.b' and 'a_b' would both become 'a_b'") as caught:
        await dragoman.plan_copy(shop.rows("orders"), lab, "Orders", create=True)
    assert (caught.value.code, "--map a_b=NAME" in caught.value.hint) == ("columns-collide", True)
    plan = await dragoman.plan_copy(shop.rows("orders"), lab, "Orders", create=True, renamed={"a.b": "ab"})
    assert fates(plan) == {"a.b": ("ab", "integer"), "a_b": ("a_b", "integer")}


@pytest.mark.slow
async def test_a_column_with_the_name_of_one_of_the_server_gets_another_name(servers):
    shop, lab = servers
    await fill(shop, {"1": {"uuid": "abc", "n": 1}}, {"uuid": {"type": "keyword"}, "n": {"type": "long"}})
    rows = shop.rows("orders")
    plan = await dragoman.plan_copy(rows, lab, "Orders", create=True, ids="new")
    assert fates(plan) == {"uuid": ("uuid_", "text"), "n": ("n", "integer")}
    assert [column.reason for column in plan.doubtful] == [
        "under another name: a column of that name is the server's own"
    ]
    assert "column-kept-apart" not in {note.code for note in plan.notes}
    with pytest.raises(ConfigurationError, match="has a column 'uuid' of its own") as caught:
        await dragoman.plan_copy(rows, lab, "Orders", create=True, renamed={"n": "uuid", "uuid": "x"})
    assert caught.value.hint.startswith("--map n=NAME gives it another name")
    report = await dragoman.load(lab, "Orders", rows=rows, create=True, ids="new", renamed={"uuid": "uuid_"})
    assert report.counts["applied"] == 1
    [row] = (await stored(lab, "Orders")).values()
    assert row["properties"] == {"uuid_": "abc", "n": 1}


@pytest.mark.slow
async def test_a_type_that_somebody_chose_agrees_to_no_other_name(servers):
    shop, lab = servers
    await fill(shop, {"1": {"ship": {"city": "x"}}}, {"ship": {"properties": {"city": {"type": "keyword"}}}})
    rows = shop.rows("orders")
    plan = await dragoman.plan_copy(rows, lab, "Orders", create=True, types={"ship.city": "text"})
    assert [column.name for column in plan.doubtful] == ["ship_city"]
    types, renamed = {"ship_city": "text"}, {"ship.city": "ship_city"}
    assert not (await dragoman.plan_copy(rows, lab, "Orders", create=True, types=types, renamed=renamed)).doubtful


@pytest.mark.slow
async def test_ids_that_are_uuids_in_another_spelling_are_not_kept_unasked(servers):
    shop, lab = servers
    row_id = "8F14E45FCEEA467A95759C7A7A1A2B3C"
    await fill(shop, {row_id: {"n": 1}}, {"n": {"type": "long"}})
    rows = shop.rows("orders")
    plan = await dragoman.plan_copy(rows, lab, "Orders", create=True)
    assert (plan.ids, plan.ids_consent) == ("derive", False)
    report = await dragoman.load(lab, "Orders", rows=rows, create=True, ids="keep")
    assert [*await stored(lab, "Orders")] == ["8f14e45f-ceea-467a-9575-9c7a7a1a2b3c"]
    assert [note.column for note in report.notes if note.code == "values-respelled"] == ["_id"]


@pytest.mark.slow
async def test_an_object_that_vanished_since_the_plan_is_not_made_in_another_way(servers):
    shop, lab = servers
    await fill(shop, {"1": {"n": 1}}, {"n": {"type": "long"}})
    properties = [{"name": "n", "dataType": ["int"]}]
    await send(lab, f"POST /v1/schema\n{json.dumps({'class': 'Orders', 'properties': properties})}")

    async def drop(_plan):
        await send(lab, "DELETE /v1/schema/Orders")

    with pytest.raises(ObjectNotFoundError, match="is gone now"):
        await dragoman.load(lab, "Orders", rows=shop.rows("orders"), create=True, confirm=drop)
    with pytest.raises(ObjectNotFoundError):
        await lab.describe("Orders")


def test_many_arrays_of_objects_are_gathered_at_once(monkeypatch):
    readers = []
    monkeypatch.setattr(copies, "ObjectReader", lambda columns: readers.append(1) or ObjectReader(columns))
    columns = [
        Column(name=f"o{at}.{name}", type="long", kind=ColumnKind.INTEGER, path=("_source", f"o{at}.{name}"))
        for at in range(20)
        for name in ("a", "b.c")
    ]
    line = json.dumps({"_source": {f"o{at}": [{"a": 1, "b": [{"c": 2}]}] for at in range(19)}}).encode()
    whole = copies.with_whole_arrays(columns, [line])
    assert [column.name for column in whole] == [*(f"o{at}" for at in range(19)), "o19.a", "o19.b.c"]
    assert [column.path for column in whole[18:20]] == [("_source", "o18"), ("_source", "o19.a")]
    assert len(readers) == 2


@pytest.mark.slow
async def test_the_first_rows_are_read_beside_the_event_loop(servers, monkeypatch):
    shop, lab = servers
    await fill(shop, ROWS)
    threads = []

    def reader(columns):
        threads.append(get_ident())
        return ObjectReader(columns)

    monkeypatch.setattr(copies, "ObjectReader", reader)
    monkeypatch.setattr(copy_plans, "ObjectReader", reader)
    await dragoman.plan_copy(shop.rows("orders"), lab, "Orders", create=True)
    assert get_ident() not in threads
    assert len(threads) == 2  # for all rows


@pytest.mark.slow
async def test_the_rows_that_a_plan_looks_at_have_a_bound_in_bytes(servers, monkeypatch):
    shop, lab = servers
    await fill(shop, {str(number): {"n": number} for number in range(10)}, {"n": {"type": "long"}})
    monkeypatch.setattr(copies, "LOOKED_AT_BYTES", 100)
    assert (await dragoman.plan_copy(shop.rows("orders"), lab, "Orders", create=True)).rows < 10


@pytest.mark.slow
async def test_what_a_server_refuses_altogether_stays_refused(servers):
    shop, lab = servers
    await fill(shop, ROWS)
    with pytest.raises(QueryError, match="cannot be the name of a collection"):
        await dragoman.plan_copy(shop.rows("orders"), lab, "lower", create=True)
    with pytest.raises(ConfigurationError, match="has no column 'nothing'"):
        await dragoman.plan_copy(shop.rows("orders"), lab, "Orders", create=True, renamed={"nothing": "x"})
    with pytest.raises(ConfigurationError, match="ids is 'all'"):
        await dragoman.plan_copy(shop.rows("orders"), lab, "Orders", create=True, ids="all")
    with pytest.raises(ObjectNotFoundError):
        await dragoman.plan_copy(shop.rows("orders"), lab, "Orders")


@pytest.mark.slow
async def test_ids_are_kept_derived_or_new_and_can_go_into_a_column(servers):
    shop, lab = servers
    uuid = str(uuid4())
    await fill(shop, {uuid: {"n": 1}, "17": {"n": 2}}, {"n": {"type": "long"}})
    rows = shop.rows("orders")
    report = await dragoman.load(lab, "Kept", rows=rows, create=True, ids="keep")
    assert (report.counts["applied"], report.counts["refused"]) == (1, 1)
    assert [*await stored(lab, "Kept")] == [uuid]
    await dragoman.load(lab, "Derived", rows=rows, create=True, ids="derive", renamed={"_id": "origin"})
    assert {row_id: row["properties"]["origin"] for row_id, row in (await stored(lab, "Derived")).items()} == {
        derived(uuid): uuid, derived("17"): "17",
    }  # fmt: skip
    again = await dragoman.load(lab, "Derived", rows=rows, ids="derive", renamed={"_id": "origin"}, on_conflict="skip")
    assert (again.counts["applied"], again.counts["skipped"]) == (0, 2)
    await dragoman.load(lab, "New", rows=rows, create=True, renamed={"_id": ""})
    assert not {uuid, derived(uuid), derived("17")} & {*await stored(lab, "New")}
    for ids, repeatable in (("derive", True), ("new", False)):
        load = Load(lab, "Again", Path("Again"), options=LoadOptions(create=True, ids=ids), rows=rows)
        await load.run()
        assert load.repeatable is repeatable
    only = shop.rows("orders", filters=[dragoman.Filter("n", "=", 1)])
    assert (await dragoman.plan_copy(only, lab, "Uuids", create=True)).ids == "keep"


@pytest.mark.slow
async def test_a_dry_run_sends_nothing_and_an_undo_takes_the_rows_back(servers, tmp_path):
    shop, lab = servers
    await fill(shop, ROWS)
    shown = []
    arguments = {"rows": shop.rows("orders"), "create": True, "confirm": agree}
    report = await dragoman.load(lab, "Orders", **arguments, dry_run=True, preview=shown.append)
    assert [planned.request.path for planned in shown] == ["/v1/schema"]
    assert "object-missing" in {note.code for note in report.notes}
    with pytest.raises(ObjectNotFoundError):
        await lab.describe("Orders")
    undo = tmp_path / "undo.ndjson"
    await dragoman.load(lab, "Orders", **arguments, undo=undo)
    async with dragoman.ChangeSet(lab, undo) as changes:
        await changes.plan()
        assert (await changes.apply()).counts["applied"] == 3
    assert await stored(lab, "Orders") == {}


@pytest.mark.slow
async def test_a_load_names_a_file_or_rows(servers):
    shop, _ = servers
    await fill(shop, ROWS)
    with pytest.raises(ConfigurationError, match="nothing is named to load"):
        await dragoman.load(shop, "orders")
    with pytest.raises(ConfigurationError, match="not both"):
        await dragoman.load(shop, "copy", rows=shop.rows("orders"), file=BytesIO(b""))
    report = await dragoman.load(shop, "copy", rows=shop.rows("orders"), create=True)
    assert (report.file, report.counts["applied"]) == ("copy", 3)
    with pytest.raises(ConfigurationError, match="a copy keeps ids and types"):
        await dragoman.plan_copy(shop.rows("orders"), shop, "copy", ids="new")
