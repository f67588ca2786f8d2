"""The second driver from its wheel: offered, installed on opening, locked down, and told when its key is revoked."""

from __future__ import annotations

import json
import re
from uuid import UUID

import pytest

import dragoman_dask
from dragoman import Delete, Filter, Insert, Reference, Runtime, SavedConnection, Sort, Update
from dragoman.changes.sets import ChangeSet
from dragoman_api.errors import AuthenticationError, FilterNotSupportedError
from dragoman_sample.fakes.weaviate import FakeWeaviate, User

KEYS = {"key-1": User("admin", admin=True), "key-2": User("admin", admin=True)}
BOOK = {
    "class": "Book",
    "vectorizer": "none",
    "properties": [{"name": "title", "dataType": ["text"]}, {"name": "pages", "dataType": ["int"]}],
}


@pytest.fixture
async def fake():
    async with FakeWeaviate(keys=KEYS) as server:
        yield server
        assert server.faults == []


@pytest.fixture
def runtime(fake, monkeypatch):
    monkeypatch.setenv("WEAVIATE_KEY", "key-1")
    runtime = Runtime(spare=False)
    values = {
        "host": "127.0.0.1",
        "port": fake.port,
        "auth_method": "api-key",
        "api_key": Reference("env", "WEAVIATE_KEY"),
    }
    runtime.connections.save(SavedConnection(name="library", type="weaviate", values=values))
    return runtime


async def post(fake, path, body):
    """Put something behind the driver's back."""
    import aiohttp

    headers = {"Authorization": "Bearer key-2"}
    async with aiohttp.ClientSession(fake.url, headers=headers) as http, http.post(path, json=body) as reply:
        assert reply.status == 200, await reply.text()


async def test_opening_installs_the_driver_and_the_grid_works(runtime, fake, tmp_path):
    """P1, P3: only a saved connection is there; W1, W21, W22, W23 through the sandbox."""
    await post(fake, "/v1/schema", BOOK)
    async with runtime, runtime.open("library") as session:
        assert (session.plugin, session.server.product) == ("weaviate", "Weaviate")
        assert re.match("full|partial", session.sandbox)
        assert [(each.name, each.rows) for each in await session.objects()] == [("Book", 0)]
        plan = await session.plan(*(Insert("Book", {"title": f"tea {at}", "pages": 2**40 + at}) for at in range(5)))
        assert {outcome.status for outcome in await session.apply(plan)} == {"applied"}
        page = await session.rows("Book", filters=[Filter("pages", ">", 2**40 + 2)]).page()
        assert sorted(row["pages"] for row in page.rows) == [2**40 + 3, 2**40 + 4]
        first = page.rows[0]
        for key in (first.key, first.key):
            outcomes = await session.apply(await session.plan(Update(key, {"pages": 1})))
        assert [outcome.status for outcome in outcomes] == ["conflict"]
        with pytest.raises(FilterNotSupportedError, match="no equivalent"):
            await session.rows("Book", filters=[Filter("title", "regex", "a.*")]).page()
        [answer] = await session.console("{ Get { Book(limit: 1) { title _additional { id } } } }")
        assert [column.name for column in answer.page.columns] == ["uuid", "title"]
        result = await session.rows("Book").export(to=tmp_path / "books.ndjson")
        assert (result.rows, len((tmp_path / "books.ndjson").read_bytes().splitlines())) == (5, 5)
        tables = [await session.rows("Book").export(to=tmp_path / f"books.{form}") for form in ("csv", "parquet")]
        tables.append(await dragoman_dask.export(session.rows("Book"), to=tmp_path / "parts", parts=2, format="csv"))
        batches = session.rows("Book").batches()
        assert sum([batch.num_rows async for batch in batches]) == 5
        for notes in (batches.notes, *(table.notes for table in tables)):
            assert "keys-left-out" not in [note.code for note in notes], notes  # what the server adds is no loss
        assert (tmp_path / "books.csv").read_text().splitlines()[0].startswith("uuid,title,pages")


@pytest.mark.slow
async def test_an_undo_file_takes_a_change_file_back_and_its_own_undo_makes_it_again(runtime, fake, tmp_path):
    """Each row comes back with its vector; the plan says that the server guards none of it."""
    await post(fake, "/v1/schema", BOOK)
    rows = [{"class": "Book", "id": str(UUID(int=at, version=4)), "properties": {"title": f"t{at}", "pages": at},
             "vector": [at + 0.1, 1.0]} for at in range(1, 6)]  # fmt: skip
    await post(fake, "/v1/batch/objects", {"objects": rows})
    update, delete = ({"object": "Book", "id": row["id"]} for row in rows[:2])
    lines = [{"op": "update", **update, "set": {"pages": 100}}, {"op": "update", **update, "set": {"title": "new"}},
             {"op": "delete", **delete}, {"op": "insert", "object": "Book", "set": {"title": "more"}}]  # fmt: skip
    file, undo, redo = (tmp_path / f"{name}.ndjson" for name in ("changes", "undo", "redo"))
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    async def stored(session):
        page = await session.rows("Book", columns=["uuid", "title", "pages", "vector"]).page()
        return sorted(json.dumps(row.to_dict()) for row in page.rows)

    async with runtime, runtime.open("library") as session:
        seen = [await stored(session)]
        for source, back in ((file, undo), (undo, redo), (redo, None)):
            async with ChangeSet(session, source, undo=back) as changes:
                await changes.plan()
                told = [note.reason[:6] for note in changes.notes.values() if note.code == "undo-unguarded"]
                assert told == ([] if back is None else ["'Book'"])
                report = await changes.apply()
            assert report.left == []
            seen.append(await stored(session))
    assert seen[0] == seen[2] != seen[1] == seen[3]
    assert len(undo.read_bytes().splitlines()) == 3


@pytest.mark.slow
async def test_the_driver_is_offered_by_name_with_its_form(runtime):
    """P2, P4, P5, P6: before anything is installed; not on phones and tablets."""
    async with runtime:
        [listing] = [each for each in await runtime.plugins.browse() if each.id == "weaviate"]
        assert (listing.label, listing.state) == ("Weaviate Driver", "available")
        assert listing.excluded_surfaces == ("phone", "tablet")
        form = {field.name: field for field in await runtime.plugins.form("weaviate")}
        assert form["port"].default == 8080
        assert not form["api_key"].visible({"auth_method": "none"})
        assert (await runtime.plugins.install("weaviate")).version == "1.0.0"


@pytest.mark.slow
async def test_a_revoked_key_is_an_event_and_the_new_one_opens_again(runtime, fake, monkeypatch):
    """W35: the next health check fails with its code; the new key has to be entered."""
    seen = []
    runtime.add_sink(seen.append)
    async with runtime:
        async with runtime.open("library") as session:
            assert (await session.ping()).ok
            fake.revoke("key-1")
            health = await session.ping()
            assert (health.ok, health.code) == (False, "authentication-failed")
        [changed] = [event for event in seen if event.name == "connection.health_changed"]
        assert changed.state == "failed"
        assert "API key" in changed.reason
        with pytest.raises(AuthenticationError, match=r"^Authentication failed: "):
            async with runtime.open("library"):
                pass
        monkeypatch.setenv("WEAVIATE_KEY", "key-2")
        async with runtime.open("library") as session:
            assert (await session.ping()).ok


@pytest.mark.live("weaviate")
@pytest.mark.timeout(180)
async def test_P3_the_whole_way_on_a_real_engine(live_server, monkeypatch, tmp_path):
    """Installed from its wheel, locked down, brokered, over TLS where the engine has it."""
    if live_server["settings"]:
        pytest.skip("this engine is set up for rules of its own")
    values = {"host": live_server["host"], "port": live_server["port"]}
    if live_server["tls"]:
        values |= {"ssl_mode": "verify-identity", "ca_file": Reference("path", live_server["ca_file"])}
    if live_server["api_keys"]:
        monkeypatch.setenv("WEAVIATE_KEY", live_server["api_keys"]["admin"])
        values |= {"auth_method": "api-key", "api_key": Reference("env", "WEAVIATE_KEY")}
    runtime = Runtime(spare=False)
    runtime.connections.save(SavedConnection(name="real", type="weaviate", values=values))
    async with runtime, runtime.open("real") as session:
        assert (session.server.version, session.sandbox) == (live_server["version"], "full")
        text = f"POST /schema {json.dumps(BOOK | {'class': 'SystemBook'})}"
        assert [answer.status for answer in await session.console(text)] == [200]
        try:
            rows = [Insert("SystemBook", {"title": f"tea {at}", "pages": at}) for at in range(25)]
            outcomes = await session.apply(await session.plan(*rows))
            assert {outcome.status for outcome in outcomes} == {"applied"}
            page = await session.rows("SystemBook", filters=[Filter("pages", ">=", 20)], sort=[Sort("pages")]).page()
            assert [row["pages"] for row in page.rows] == [20, 21, 22, 23, 24]
            result = await session.rows("SystemBook").export(to=tmp_path / "books.ndjson")
            assert result.rows == 25
            [gone] = await session.apply(await session.plan(Delete(page.rows[0].key)))
            assert (gone.status, await session.rows("SystemBook").count()) == ("applied", 24)
        finally:
            await session.console("DELETE /schema/SystemBook")
