"""Requests of a driver that speaks REST, and the hooks of the kit that send them."""

from __future__ import annotations

import anyio
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace

from dragoman_api import AuthenticationError, ConsoleText, Http, HttpRequest, Profile, QueryError
from dragoman_api.changes import Delete, Plan, PlannedRequest
from dragoman_api.grid import RowKey
from dragoman_api.kit.console_answers import RestConsole
from dragoman_api.kit.derived_hooks import PingByPath
from dragoman_api.kit.rest import RestClient
from dragoman_api.kit.writing import WholeRows


class Driver(WholeRows, RestConsole, PingByPath):
    def error(self, reply):
        return AuthenticationError("the key is no key") if reply.status == 401 else super().error(reply)

    async def stored(self, key: RowKey):
        return {"n": 1}


@pytest.fixture
async def driver():
    async def answer(request: web.Request) -> web.Response:
        if request.headers.get("X-Key") != "right":
            return web.Response(status=401)
        return web.json_response({"path": request.path})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    profile = Profile(name="x", type="demo", host="127.0.0.1", port=0)
    async with TestServer(app) as server, Http(replace(profile, port=server.port)) as http:
        driver = Driver()
        driver.http, driver.headers = http, {"X-Key": "right"}
        yield driver


async def apply(driver):
    row = Delete(RowKey("books", "a"))
    planned = PlannedRequest(request=HttpRequest("DELETE", "/a"), changes=[0])
    [outcome] = await driver.apply_change(Plan(changes=[row], planned=[planned]))
    return outcome


async def test_every_request_carries_the_headers_of_the_driver(driver):
    [request] = await driver.parse_console(ConsoleText("GET /x"))
    assert (await driver.execute_console(request)).status == 200
    assert (await driver.ping()).ok
    assert (await apply(driver)).status == "applied"
    assert await driver.ask(HttpRequest("GET", "/a"), dict[str, str]) == {"path": "/a"}


async def test_every_error_is_what_the_driver_makes_of_its_status(driver):
    driver.headers = {}
    [request] = await driver.parse_console(ConsoleText("GET /x"))
    assert "no key" in (await driver.execute_console(request)).notes[0].reason
    assert (await driver.ping()).reason == "Authentication failed: the key is no key"
    outcome = await apply(driver)
    assert (outcome.status, "no key" in outcome.reason) == ("failed", True)
    with pytest.raises(AuthenticationError, match="no key"):
        await driver.ask(HttpRequest("GET", "/a"), dict[str, str])


@pytest.mark.parametrize("kind", [list[str], dict[str, int]])
async def test_an_answer_of_another_type_is_an_error(driver, kind):
    with pytest.raises(QueryError, match=r"the answer of .* cannot be read: .*Expected"):
        await driver.ask(HttpRequest("GET", "/a"), kind)


async def test_what_asks_may_be_sent_twice_and_what_is_sent_may_not():
    sent = []

    class Recorded:
        async def request(self, method, path, *, read, **options):
            sent.append((method, read))
            return web.Response(body=b"1")

    client = RestClient()
    client.http = Recorded()
    await client.ask(HttpRequest("POST", "/search"), int)
    await client.send(HttpRequest("POST", "/write"))
    assert sent == [("POST", True), ("POST", False)]


@pytest.mark.parametrize(
    ("asks", "read", "statuses", "pauses"),
    [
        ([429, 429, 200], True, 3, [0.2, 0.6]),
        ([429, 200], False, 1, []),
        ([503, 200], True, 1, []),  # not what this driver takes for busy
        ([429, 429, 429, 429, 200], True, 4, [0.2, 0.6, 1.8]),
    ],
)
async def test_a_read_is_sent_again_while_the_server_is_busy(monkeypatch, asks, read, statuses, pauses):
    sent, slept = [], []

    class Busy:
        async def request(self, method, path, **options):
            sent.append(method)
            return web.Response(status=asks[len(sent) - 1])

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr("dragoman_api.kit.retries.anyio.sleep", sleep)
    monkeypatch.setattr("dragoman_api.kit.retries.jittered", lambda pause: pause)
    client = RestClient()
    client.http = Busy()
    reply = await client.send(HttpRequest("POST", "/search"), read=read)
    assert (len(sent), slept, reply.status) == (statuses, pauses, asks[statuses - 1])


async def test_a_server_that_asks_for_more_time_than_there_is_gets_no_second_request():
    class Busy:
        async def request(self, method, path, **options):
            return web.Response(status=429, headers={"Retry-After": "60"})

    client = RestClient()
    client.http = Busy()
    with anyio.fail_after(5):
        assert (await client.send(HttpRequest("GET", "/a"))).status == 429
