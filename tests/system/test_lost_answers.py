"""A change set behind a proxy that loses answers after the server did the work, and what takes it back to the byte."""

from __future__ import annotations

import json
import time
import urllib.request
from collections import Counter

import pytest
from anyio.from_thread import start_blocking_portal

from cancelling import cancelled
from dragoman import Runtime, SavedConnection
from dragoman.changes import files
from dragoman.changes.sets import ChangeSet
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from fakes.proxy import Proxy

ROWS = 60
LINES = [
    *({"op": "update", "id": str(at), "set": {"price": -1}} for at in range(ROWS - 20)),
    *({"op": "delete", "id": str(at)} for at in range(ROWS - 20, ROWS - 10)),
    *({"op": "insert", "id": f"new/{at}", "set": {"n": at}} for at in range(10)),
    *({"op": "insert", "set": {"n": at}} for at in range(5)),
    *({"op": "insert", "id": str(at), "replace": True, "set": {"n": 0}} for at in range(ROWS - 10, ROWS - 5)),
]


class Place:
    """An index behind a proxy, a session in the sandbox, and change files."""

    def __init__(self, session, proxy, url, name, folder):
        self.session, self.proxy, self.url, self.name, self.folder = session, proxy, url, name, folder

    def send(self, method, path, body=None):
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode() if body is not None else None
        kind = {"Content-Type": "application/x-ndjson" if "_bulk" in path else "application/json"}
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, kind, method=method)) as answer:
            return answer.read().decode()

    def stored(self):
        """Return every document's bytes by id, straight from the server."""
        self.send("POST", f"/{self.name}/_refresh")
        hits = json.loads(self.send("POST", f"/{self.name}/_search", {"size": 1000, "_source": False}))["hits"]["hits"]
        return {hit["_id"]: self.send("GET", f"/{self.name}/_source/{hit['_id'].replace('/', '%2F')}") for hit in hits}

    async def run(self, path, *, between=lambda: None, **more):
        async with ChangeSet(self.session, path, **more) as changes:
            await changes.plan()
            between()
            return await changes.apply()

    def write(self):
        path = self.folder / "c.ndjson"
        path.write_text("".join(json.dumps({"object": self.name, **line}) + "\n" for line in LINES))
        return path

    def breaking(self, kind, *, also_reads, **more):
        """Return what loses the answers to three requests of several, and all that is read then."""

        def between():
            times = None if kind == "twice" else 3
            self.proxy.misbehave(kind, on=f"/{self.name}/_bulk", after=1, times=times, **more)
            if also_reads:
                self.proxy.misbehave("html", on=f"/{self.name}/_mget", status=503)

        return between


class Rules:
    @pytest.fixture
    async def place(self, engine_url, tmp_path, monkeypatch):
        monkeypatch.setattr(files, "CHUNK_LINES", 10)  # several requests
        name = f"t-lost-{time.time_ns()}"
        with start_blocking_portal() as portal:  # another loop, so that the test can read past it
            proxy = Proxy(upstream=engine_url)
            with portal.wrap_async_context_manager(proxy):
                runtime = Runtime(spare=False)
                values = {"host": "127.0.0.1", "port": proxy.port}
                runtime.connections.save(SavedConnection(name="behind", type="elasticsearch", values=values))
                async with runtime, runtime.open("behind") as session:
                    place = Place(session, proxy, engine_url, name, tmp_path)
                    mappings = {"properties": {"price": {"type": "double"}, "n": {"type": "long"}}}
                    settings = {"number_of_replicas": 0, "index.refresh_interval": "50ms"}
                    place.send("PUT", f"/{name}", {"mappings": mappings, "settings": settings})
                    lines = (f'{{"index":{{"_id":"{at}"}}}}\n{{"price": {at}.10,"n":{at}}}\n' for at in range(ROWS))
                    place.send("POST", f"/{name}/_bulk?refresh=true", "".join(lines))
                    yield place
                place.send("DELETE", f"/{name}")

    @pytest.mark.parametrize("also_reads", [False, True])
    @pytest.mark.parametrize(
        ("kind", "status"), [("lost", 502), ("lost", 504), ("cut", 0), ("drop", 0), ("html", 503), ("twice", 0)]
    )
    async def test_a_set_is_taken_back_to_the_byte_whatever_was_lost(self, place, kind, status, also_reads):
        before = place.stored()
        path, undo = place.write(), place.folder / "u.ndjson"
        between = place.breaking(kind, also_reads=also_reads, status=status)
        report = await place.run(path, undo=undo, between=between)
        place.proxy.behave()
        after = place.stored()
        assert sum(report.counts.values()) == len(LINES)
        if kind in ("lost", "cut") and not also_reads:
            assert report.counts["applied"] == len(LINES)
        if kind != "twice" and also_reads:
            assert (report.counts["unknown"], len(report.left)) == (30, 30), report.counts
            assert report.counts["failed"] == 0
        taken = await place.run(undo)
        left = Counter(each.reason.split(":")[0] for each in taken.left)
        assert place.stored() == before, (report.counts, taken.counts, left)
        assert after != before

    async def test_an_undo_that_is_cut_off_itself_is_run_again(self, place):
        before = place.stored()
        path, undo = place.write(), place.folder / "u.ndjson"
        report = await place.run(path, undo=undo)
        assert report.counts["applied"] == len(LINES)
        first = await place.run(undo, between=place.breaking("lost", also_reads=True, status=502))
        place.proxy.behave()
        assert first.counts["unknown"]
        await place.run(undo)
        assert place.stored() == before

    async def test_a_set_that_is_stopped_in_the_middle_is_taken_back(self, place):
        before = place.stored()
        path, undo = place.write(), place.folder / "u.ndjson"
        place.proxy.misbehave("hang", on=f"/{place.name}/_bulk", after=2)
        sets = f"/{place.name}/_bulk"
        await cancelled(
            place.run(path, undo=undo),
            when=lambda: sum(each.path == sets for each in place.proxy.requests) >= 3,
        )
        place.proxy.behave()
        assert place.stored() != before
        await place.run(undo)
        assert place.stored() == before


class TestOnFake(Rules):
    pytestmark = pytest.mark.slow

    @pytest.fixture
    def engine_url(self):
        with start_blocking_portal() as portal:
            server = FakeElasticsearch(version="8.19.21")
            with portal.wrap_async_context_manager(server):
                yield server.url


@pytest.mark.one_engine
class TestOnServer(Rules):
    pytestmark = pytest.mark.live("elasticsearch")

    @pytest.fixture
    def engine_url(self, live_server):
        if live_server["security"]:
            pytest.skip("the proxy speaks plain HTTP, to an engine without users")
        return live_server["url"]
