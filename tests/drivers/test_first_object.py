"""A driver that knows what is read first asks for its definition in the round trip that identifies the server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from drivers.rigging import profile_of

from dragoman_api import AuthenticationError, Filter, FilterRequest, HttpRequest, PageRequest
from dragoman_api.errors import DragomanError, ObjectNotFoundError
from dragoman_api.http import Http
from dragoman_api.testing.target import opened
from dragoman_elasticsearch.driver import Driver as Elasticsearch
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate
from dragoman_weaviate.driver import Driver as Weaviate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

SECONDS = 5
MAPPINGS = {"mappings": {"properties": {"n": {"type": "integer"}}}}
COLLECTION = {"class": "Books", "properties": [{"name": "n", "dataType": ["int"]}]}


class Meeting:
    """Holds the answers of a server back until as many requests have arrived as are expected together."""

    def __init__(self, server: Any) -> None:
        self.sizes: list[int] = []
        self._waiting, self._expected, self._met = 0, 0, anyio.Event()
        self._answer, server.answer = server.answer, self.answer

    def expect(self, *sizes: int) -> None:
        """Say how many requests come together, one number for each round trip."""
        self.sizes[:] = sizes

    async def answer(self, request: web.BaseRequest, path: str, query: str, raw: bytes) -> web.Response:
        if self._waiting == 0:
            self._expected, self._met = self.sizes.pop(0) if self.sizes else 1, anyio.Event()
        self._waiting += 1
        met = self._met
        if self._waiting == self._expected:
            self._waiting = 0
            met.set()
        with anyio.fail_after(SECONDS):
            await met.wait()
        result: web.Response = await self._answer(request, path, query, raw)
        return result


class Place:
    """A fake server with one object of one row, and a driver for it."""

    def __init__(self, server: Any, driver: type[Any], name: str, reads: list[str]) -> None:
        self.server, self.driver, self.name, self.reads = server, driver, name, reads
        self.profile = profile_of(server.url, name="shop", type=driver.__module__.split("_")[1].partition(".")[0])

    @property
    def paths(self) -> list[str]:
        return sorted(request.path for request in self.server.requests)

    async def send(self, method: str, path: str, body: object = None) -> None:
        async with Http(self.profile) as http:
            reply = await http.request(method, path, body=None if body is None else json.dumps(body))
            assert reply.status < 300, reply.body

    def forget(self) -> None:
        self.server.requests.clear()


@pytest.fixture(params=["elasticsearch", "weaviate"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    if request.param == "elasticsearch":
        async with FakeElasticsearch(version="8.19.21") as es:
            reads = ["/books/_field_caps", "/books/_mapping", "/books/_settings"]
            place = Place(es, Elasticsearch, "books", reads)
            await place.send("PUT", "/books", MAPPINGS)
            await place.send("PUT", "/books/_doc/1?refresh=true", {"n": 7})
            yield place
    else:
        async with FakeWeaviate() as weaviate:
            place = Place(weaviate, Weaviate, "Books", ["/v1/schema/Books"])
            await place.send("POST", "/v1/schema", COLLECTION)
            await place.send("POST", "/v1/objects", {"class": "Books", "properties": {"n": 7}})
            yield place


def shortened(paths: list[str]) -> list[str]:
    return [path.partition("/index.")[0] for path in paths]


async def test_a_first_page_takes_two_round_trips(place: Place) -> None:
    """Those of the identification and of the definition are under way together; those of the page come after."""
    identifies = ["/"] if place.driver is Elasticsearch else ["/v1/meta", "/v1/users/own-info"]
    place.forget()
    Meeting(place.server).expect(len(identifies) + len(place.reads), 2)
    driver = place.driver()
    async with opened(driver, place.profile, first_object=place.name):
        assert shortened(place.paths) == sorted([*identifies, *place.reads])
        place.forget()
        description = await driver.describe_object(place.name)
        assert "n" in [column.name for column in description.columns]
        assert place.paths == []
        page = await driver.fetch_page(PageRequest(object=place.name))
        assert [row["n"] for row in page.rows] == [7]


async def test_what_was_read_ahead_serves_one_description_only(place: Place) -> None:
    driver = place.driver()
    async with opened(driver, place.profile, first_object=place.name):
        await driver.describe_object(place.name)
        place.forget()
        await driver.describe_object(place.name)
        assert shortened(place.paths) == place.reads


async def test_a_driver_that_does_not_know_what_is_read_first_asks_for_nothing_more(place: Place) -> None:
    place.forget()
    async with opened(place.driver(), place.profile):
        assert not [path for path in place.paths if place.name in path]


@pytest.mark.parametrize("name", ["absent", "Absent", "_x", "", "a/b"])
async def test_a_wrong_first_object_is_no_error_of_the_connection(place: Place, name: str) -> None:
    driver = place.driver()
    async with opened(driver, place.profile, first_object=name):
        with pytest.raises(DragomanError) as caught:
            await driver.describe_object(name)
        assert isinstance(caught.value, ObjectNotFoundError) or name in ("_x", "", "a/b")
        assert "n" in [column.name for column in (await driver.describe_object(place.name)).columns]


@pytest.mark.parametrize("kind", ["drop", "status", "garbage"])
async def test_a_definition_that_cannot_be_read_ahead_is_read_again(place: Place, kind: Any) -> None:
    for path in place.reads:
        place.server.misbehave(kind, on=path, times=1 if kind != "drop" else 3)
    driver = place.driver()
    async with opened(driver, place.profile, first_object=place.name):
        place.server.behave()
        place.forget()
        if kind == "garbage":  # an answer, however bad, is the server's
            with pytest.raises(DragomanError):
                await driver.describe_object(place.name)
        await driver.describe_object(place.name)
        assert shortened(place.paths) == place.reads


async def test_the_error_of_the_identification_is_the_one_that_is_raised(place: Place) -> None:
    place.server.misbehave("status", status=401)
    with pytest.raises(AuthenticationError):
        async with opened(place.driver(), place.profile, first_object=place.name):
            pytest.fail("it connected")


async def test_a_definition_that_hangs_holds_the_connection_up_for_seconds_only(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_api.kit.exchanges.AHEAD_SECONDS", 0.05)
    for path in place.reads:
        place.server.misbehave("hang", on=path)
    driver = place.driver()
    async with opened(driver, place.profile, first_object=place.name):
        place.server.behave()
        assert "n" in [column.name for column in (await driver.describe_object(place.name)).columns]


async def test_what_was_read_ahead_is_not_taken_when_it_is_old(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = place.driver()
    async with opened(driver, place.profile, first_object=place.name):
        place.forget()
        now = anyio.current_time()
        monkeypatch.setattr(anyio, "current_time", lambda: now + 3)
        await driver.describe_object(place.name)
        assert shortened(place.paths) == place.reads


async def test_what_was_read_ahead_is_not_kept_for_nobody(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = place.driver()
    async with opened(driver, place.profile, first_object=place.name):
        now = anyio.current_time()
        monkeypatch.setattr(anyio, "current_time", lambda: now + 3)
        await driver.ping()
        assert driver._exchanges._ahead is None


async def test_a_filter_is_compiled_for_the_version_that_answered(place: Place) -> None:
    """The definition was requested before the version was known."""
    driver = place.driver()
    async with opened(driver, place.profile, first_object=place.name):
        await driver.describe_object(place.name)
        compiled = await driver.compile_filter(FilterRequest(object=place.name, rows=[Filter("n", "=", "7")]))
        page = await driver.fetch_page(PageRequest(object=place.name, filter=compiled))
        assert [row["n"] for row in page.rows] == [7]


async def test_what_was_read_ahead_is_not_taken_after_a_write(place: Place) -> None:
    driver = place.driver()
    async with opened(driver, place.profile, first_object=place.name):
        await driver._exchanges.send(HttpRequest("DELETE", "/v1/nothing"))
        place.forget()
        await driver.describe_object(place.name)
        assert shortened(place.paths) == place.reads
