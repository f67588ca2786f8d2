"""The kit's proxy: what it records, what it passes on, and what it spoils."""

from __future__ import annotations

from contextlib import asynccontextmanager
from io import BytesIO
from itertools import pairwise

import aiohttp
import anyio
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from dragoman_api import HttpRequest
from dragoman_api._transport import send_once
from dragoman_api.testing import Proxy, RecordedRequest

pytestmark = pytest.mark.anyio


class Server:
    """Answers every request with what it got."""

    def __init__(self):
        self.paths, self.headers, self.bodies = [], [], []
        self.app = web.Application(client_max_size=2**23)
        self.app.router.add_route("*", "/{tail:.*}", self.answer)

    async def answer(self, request):
        self.paths.append(request.raw_path)
        self.headers.append(request.headers)
        self.bodies.append(await request.read())
        if "stream" in request.path:
            answer = web.StreamResponse(headers={"X-Kind": "stream"})
            await answer.prepare(request)
            for part in (b"one", b"two"):
                await answer.write(part)
                await anyio.sleep(0.2)
            return answer
        headers = [("Content-Encoding", "gzip"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
        return web.Response(status=207, headers=headers, body=b"not zipped" * 100)


@asynccontextmanager
async def proxied():
    server = Server()
    async with (
        TestServer(server.app) as fake,
        Proxy(f"http://{fake.host}:{fake.port}/") as proxy,
        aiohttp.ClientSession(
            auto_decompress=False, skip_auto_headers=["Content-Type"], middlewares=(send_once,)
        ) as client,
    ):

        async def send(method, path, **options):
            async with client.request(method, URL(proxy.url + path, encoded=True), **options) as answer:
                return answer.status, answer.headers, await answer.read()

        yield server, proxy, send


async def test_it_records_method_path_headers_and_body_as_they_were_sent_and_passes_them_on():
    path, body = "/b%2Fooks/ä%20".replace("ä", "%c3%A4") + "?q=a%2Bb&q=%20", b'\xff{"a": 1.0}\n'
    async with proxied() as (server, proxy, send):
        status, headers, answer = await send("PUT", path, data=body, headers={"X-One": "1", "Authorization": "Basic x"})
        [request] = proxy.requests
        assert isinstance(request, RecordedRequest)
        assert (request.method, request.path, request.body) == ("PUT", path, body)
        assert (request.headers["x-one"], request.headers["Authorization"]) == ("1", "Basic x")
        assert (server.paths, server.bodies) == ([path], [body])
        hop = ("Host", "Connection")
        passed, arrived = (
            {n: v for n, v in heads.items() if n not in hop} for heads in (request.headers, server.headers[0])
        )
        assert passed == arrived
        assert (status, answer, headers.getall("Set-Cookie")) == (207, b"not zipped" * 100, ["a=1", "b=2"])
        assert headers["Content-Encoding"] == "gzip"


async def test_a_body_of_several_megabytes_passes_whole():
    """The limit of a server is the server's own: an answer of the proxy would pass for it."""
    async with proxied() as (server, _, send):
        status, _, _ = await send("PUT", "/large", data=BytesIO(b"x" * 2**22))
    assert (status, [len(body) for body in server.bodies]) == (207, [2**22])


async def test_its_log_names_requests_as_a_driver_does():
    async with proxied() as (_, proxy, send):
        await send("GET", "/a")
        await send("POST", "/b", data="{}\n", headers={"Content-Type": "application/x-ndjson"})
        assert proxy.log == [HttpRequest("GET", "/a"), HttpRequest("POST", "/b", "{}\n", "application/x-ndjson")]


async def test_an_answer_passes_while_it_arrives():
    async with (
        proxied() as (_, proxy, _),
        aiohttp.ClientSession() as client,
        client.get(f"{proxy.url}/stream") as answer,
    ):
        times = [anyio.current_time() async for _ in answer.content.iter_any()]
        assert answer.headers["X-Kind"] == "stream"
    assert any(later - earlier > 0.1 for earlier, later in pairwise(times))


async def test_from_the_named_request_on_the_server_works_and_its_answers_are_lost():
    async with proxied() as (server, proxy, send):
        with proxy.lose(HttpRequest("PUT", "/b", "2"), 504):
            assert (await send("GET", "/a"))[0] == 207
            assert (await send("PUT", "/b", data="1"))[0] == 207
            status, headers, _ = await send("PUT", "/b", data="2")
            assert (status, headers["Content-Type"]) == (504, "text/html")
            assert (await send("GET", "/a"))[0] == 504
        assert (await send("GET", "/a"))[0] == 207
        assert server.paths == ["/a", "/b", "/b", "/a", "/a"]


async def test_a_lost_answer_of_status_0_ends_the_connection_after_the_server_worked():
    async with proxied() as (server, proxy, send):
        with proxy.lose(HttpRequest("DELETE", "/b"), 0), pytest.raises(aiohttp.ClientError):
            await send("DELETE", "/b")
        assert server.paths == ["/b"]


async def test_a_closed_connection_keeps_the_request_from_the_server():
    async with proxied() as (server, proxy, send):
        with proxy.spoil("closed", path="/b", after=1):
            await send("POST", "/b", data="1")
            await send("POST", "/a", data="2")
            with pytest.raises(aiohttp.ClientError):
                await send("POST", "/b", data="3")
        assert (server.bodies, len(proxy.requests)) == ([b"1", b"2"], 3)


async def test_an_answer_that_is_cut_has_its_head_and_half_of_its_body():
    async with proxied() as (_, proxy, _), aiohttp.ClientSession(auto_decompress=False) as client:
        with proxy.spoil("cut"):
            async with client.get(f"{proxy.url}/a") as answer:
                assert answer.headers["Content-Length"] == "1000"
                with pytest.raises(aiohttp.ClientPayloadError):
                    await answer.read()


async def test_a_delayed_answer_is_the_same_later():
    async with proxied() as (_, proxy, send):
        with proxy.spoil("delayed", seconds=0.3):
            begun = anyio.current_time()
            assert (await send("GET", "/a"))[0] == 207
            assert anyio.current_time() - begun >= 0.3


async def test_a_server_that_does_not_answer_is_a_connection_that_ends():
    async with Proxy("http://127.0.0.1:9") as proxy, aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.ClientError):
            await client.post(f"{proxy.url}/a")
        assert [str(request) for request in proxy.log] == ["POST /a"]
