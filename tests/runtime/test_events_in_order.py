"""Order and number of events, against calls, requests and what is on disk: an event tells what is done."""

from __future__ import annotations

import json
import sys

import pytest

from child_processes import children
from dragoman import Delete, Insert, Runtime, SavedConnection, Update
from dragoman_api.hookspecs import hookimpl
from dragoman_registry.client.installed_drivers import Store
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch

WARNED = "connection.warned"  # of a sandbox below full, which differs by machine


BOOKS = {
    "settings": {"number_of_replicas": 0, "index.refresh_interval": "50ms"},
    "mappings": {"properties": {"n": {"type": "long"}}},
}


@pytest.fixture
def no_blocking_calls():
    """Permit what the tests do while an event is told: they look at the disk."""


class Timeline:
    """Notes calls, requests and events in one list, and looks around at some events."""

    def __init__(self):
        self.told, self.looks, self.found = [], {}, {}

    @hookimpl
    async def before_call(self, call):
        self.told.append(f"call {call.hook}")

    def heard(self, event):
        if event.name not in (WARNED, "plugin.install_progressed", "export.progressed"):
            self.told.append(event.name)
            if look := self.looks.get(event.name):
                self.found[event.name] = look()

    def since(self, mark=0):
        return self.told[mark:]


class Server(FakeElasticsearch):
    timeline = None

    async def answer(self, request, path, query, raw):
        reply = await super().answer(request, path, query, raw)
        if self.timeline is not None:
            self.timeline.told.append(f"{request.method} {path}")
        return reply


@pytest.fixture
async def place():
    """Serve an index, and give a runtime whose every step is on the timeline."""
    timeline = Timeline()
    async with Server(version="8.19.21") as server:
        server.timeline = timeline
        runtime = Runtime(spare=False, use=[timeline])
        runtime.add_sink(timeline.heard)
        values = {"host": server.host, "port": server.port}
        runtime.connections.save(SavedConnection(name="shop", type="elasticsearch", values=values))
        async with runtime:
            yield runtime, server, timeline


async def fill(session, server, timeline):
    """Make the index `books`, and forget that."""
    [made] = await session.parse(f"PUT /books\n{json.dumps(BOOKS)}")
    await session.execute(made)
    done = await session.apply(await session.plan(*(Insert("books", {"n": at}, id=str(at)) for at in range(3))))
    assert {each.status for each in done} == {"applied"}, done
    await session.describe("books")
    timeline.told.clear()


async def test_an_installed_plugin_is_usable_and_an_opened_connection_connected_when_that_is_said(place, home):
    runtime, _, timeline = place

    def installed():
        generation = Store(home / "data").active("elasticsearch")
        return generation is not None and [tree.is_dir() for tree in generation.trees]

    timeline.looks = {"plugin.install_started": installed, "plugin.installed": installed}
    async with runtime.open("shop") as session:
        opened = timeline.since()
        assert session.server.product == "Elasticsearch"
    assert timeline.found["plugin.install_started"] is False
    assert timeline.found["plugin.installed"] == [True, True]  # the driver, and the wheel that it shares
    assert opened[:4] == ["call install_plugin", "plugin.install_started", "plugin.installed", "call connect"]
    assert opened[4] == "GET /"
    assert opened[-1] == "connection.opened"
    assert opened.count("connection.opened") == 1
    timeline.told.clear()
    async with runtime.open("shop"):
        assert timeline.since()[0] == "call connect"
        assert timeline.since()[-1] == "connection.opened"


async def test_a_page_is_told_once_after_its_request(place):
    runtime, server, timeline = place

    def searched(mark=0):
        return [each for each in timeline.since(mark) if each != "GET /books/_mapping"]  # asked beside the search

    async with runtime.open("shop") as session:
        await fill(session, server, timeline)
        for _ in range(3):
            await session.rows("books").page()
        assert searched() == ["call fetch_page", "POST /books/_search", "page.fetched"] * 3
        server.misbehave("status", on="/books/_search", status=400)
        mark = len(timeline.told)
        with pytest.raises(Exception, match="400"):
            await session.rows("books").page()
        assert searched(mark) == ["call fetch_page", "call.failed"], "a page that failed was not fetched"
        server.behave()


@pytest.mark.slow
async def test_changes_are_told_once_each_after_their_request(place):
    runtime, server, timeline = place
    async with runtime.open("shop") as session:
        await fill(session, server, timeline)
        keys = (await session.rows("books").page()).keys
        plan = await session.plan(Update(keys[0], {"n": 9}), Delete(keys[1]), Insert("books", {"n": 7}, id="7"))
        mark = len(timeline.told)
        await session.apply(plan)
        told = timeline.since(mark)
        assert told[0] == "call apply_change"
        assert told[-4:] == ["POST /books/_bulk", "row.updated", "row.deleted", "row.inserted"]
        assert [each for each in told if each.startswith("row.")] == told[-3:]
        mark = len(timeline.told)
        await session.apply(await session.plan(Update(keys[0], {"_id": "x"})))
        assert timeline.since(mark)[-1] == "row.skipped"
        assert [each for each in timeline.since(mark) if each.startswith("row.")] == ["row.skipped"]


@pytest.mark.slow
async def test_an_export_is_finished_when_its_file_is_there_and_not_before(place, tmp_path):
    runtime, server, timeline = place
    target = tmp_path / "books.ndjson"
    timeline.looks = dict.fromkeys(("export.started", "export.finished", "export.failed"), target.exists)
    async with runtime.open("shop") as session:
        await fill(session, server, timeline)
        await session.rows("books").export(to=target)
        told = timeline.since()
        assert [each for each in told if each.startswith("export.")] == ["export.started", "export.finished"]
        assert told.index("call export_rows") < told.index("POST /_search") < told.index("export.finished")
        assert told.index("export.started") < told.index("call export_rows")
        assert timeline.found == {"export.started": False, "export.finished": True}
        assert len([json.loads(line) for line in target.read_text().splitlines()]) == 3
        target.unlink()
        mark = len(timeline.told)
        server.misbehave("status", on="/_search", status=400)
        with pytest.raises(Exception, match="400"):
            await session.rows("books").export(to=target)
        server.behave()
        told = [each for each in timeline.since(mark) if each.startswith("export.")]
        assert told == ["export.started", "export.failed"]
        assert timeline.found["export.failed"] is False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
async def test_a_connection_is_closed_once_and_then_its_process_is_gone(place):
    runtime, server, timeline = place
    before = children()
    timeline.looks = {"connection.closed": lambda: children() - before}

    async def leave():
        async with runtime.open("shop") as session:
            await fill(session, server, timeline)
            assert len(children() - before) == 1
            raise LookupError

    with pytest.raises(LookupError):
        await leave()
    assert [each for each in timeline.since() if not each.startswith("call ")][-1] == "connection.closed"
    assert timeline.told.count("connection.closed") == 1
    assert timeline.found["connection.closed"] == set()
