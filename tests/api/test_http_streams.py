"""Answers that are read in chunks, from servers on loopback that stall, die, and send bombs."""

from __future__ import annotations

import gzip
import tracemalloc
from typing import Any

import anyio
import pytest
from api.loopback import Reply, http, serving
from api.test_http import always, profile

from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.errors import AuthenticationError, ConnectionFailedError, QueryError
from dragoman_api.http import Http
from dragoman_api.replies import CHUNK

CHUNKED = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\nX-Kind: rows\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def drain(client: Http, sizes: list[int], **options: Any) -> None:
    """Read a stream to its end, and note the length of each chunk as it comes."""
    async with client.stream("GET", "/", **options) as stream:
        async for each in stream:
            sizes.append(len(each))  # noqa: PERF401 - what came before an error counts


async def test_chunks_arrive_while_the_answer_goes_on():
    reply = Reply(CHUNKED + chunk(b'{"event":1}\n'), "hang")
    async with serving(always(reply)) as server, Http(profile(server.port)) as client:
        with anyio.fail_after(5):
            async with client.stream("GET", "/watch?follow=true") as stream:
                assert (stream.status, stream.headers["x-kind"]) == (200, "rows")
                assert await anext(aiter(stream)) == b'{"event":1}\n'
    assert server.requests[0].target == "/watch?follow=true"


async def test_a_whole_answer_comes_in_bounded_chunks_and_its_connection_is_used_again():
    body = bytes(range(256)) * (CHUNK // 64)
    async with serving(always(http(body))) as server, Http(profile(server.port)) as client:
        for _ in range(2):
            async with client.stream("POST", "/query", body="q") as stream:
                chunks = [each async for each in stream]
            assert b"".join(chunks) == body
            assert max(map(len, chunks)) <= CHUNK
        assert (server.connections, server.requests[1].body) == (1, b"q")


async def test_leaving_early_ends_the_connection_and_not_the_client():
    reply = Reply(CHUNKED + chunk(b"x" * 100) * 100, "hang")
    async with serving(always(reply)) as server, Http(profile(server.port)) as client:
        for connections in (1, 2):
            async with client.stream("GET", "/") as stream:
                async for _ in stream:
                    break
            assert server.connections == connections


@pytest.mark.parametrize("then", ["close", "reset"])
async def test_a_server_that_dies_in_the_middle_is_told_after_what_it_sent(then):
    reply = Reply(CHUNKED + chunk(b"one\n"), then)
    async with serving(always(reply)) as server, Http(profile(server.port)) as client:
        sizes: list[int] = []
        with pytest.raises(ConnectionFailedError) as caught:
            await drain(client, sizes)
    assert sizes in ([4], [])
    assert caught.value.message.startswith(f"Connection failed: 127.0.0.1:{server.port}: ")
    assert caught.value.details["sent"] is True


async def test_a_silent_server_ends_the_stream_at_the_deadline_of_one_chunk():
    reply = Reply(CHUNKED + chunk(b"one\n"), "hang")
    async with serving(always(reply)) as server, Http(profile(server.port)) as client:
        with anyio.fail_after(5), pytest.raises(ConnectionFailedError, match=r"0\.2 s"):
            await drain(client, [], timeout=0.2)


async def test_an_error_of_the_caller_is_not_taken_for_the_servers():
    async with serving(always(http(b"x"))) as server, Http(profile(server.port)) as client:
        for error in (TimeoutError("mine"), OSError("mine")):
            with pytest.raises(type(error), match="mine"):
                async with client.stream("GET", "/"):
                    raise error


async def test_a_bomb_of_gzip_is_read_in_bounded_chunks_and_ends_at_the_limit():
    bomb = gzip.compress(bytes(128 << 20), 9)
    reply = http(bomb, headers="Content-Encoding: gzip\r\n")
    async with serving(always(reply)) as server, Http(profile(server.port)) as client:
        sizes: list[int] = []
        tracemalloc.start()
        try:
            with pytest.raises(QueryError) as caught:
                await drain(client, sizes, limit=64 << 20)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert caught.value.details == {"limit": 64 << 20}
    assert max(sizes) <= CHUNK
    assert (60 << 20) < sum(sizes) <= 64 << 20
    assert peak < 32 << 20


async def test_bytes_that_do_not_decompress_are_told():
    reply = http(b"no gzip at all", headers="Content-Encoding: gzip\r\n")
    async with serving(always(reply)) as server, Http(profile(server.port)) as client:
        with pytest.raises(ConnectionFailedError, match="cannot be decoded"):
            await drain(client, [])


async def test_an_error_answer_becomes_the_error_of_its_status_without_secrets():
    given: dict[str, Any] = {"auth_scheme": AuthScheme.BEARER, "secrets": Secrets(values={"api_key": "hunter2"})}
    reply = http(b"hunter2 is no key", status=401)
    async with serving(always(reply)) as server, Http(profile(server.port, **given)) as client:
        async with client.stream("GET", "/") as stream:
            response = await stream.response()
        with pytest.raises(AuthenticationError) as caught:
            client.check(response)
    assert "hunter2" not in caught.value.message
    assert "is no key" in caught.value.message


@pytest.mark.parametrize(("method", "path"), [("GET", "http://evil.example/"), ("G T", "/")])
async def test_a_stream_reaches_what_a_request_reaches_and_nothing_else(method, path):
    async with serving(always(http())) as server, Http(profile(server.port)) as client:
        with pytest.raises(QueryError) as caught:
            async with client.stream(method, path):
                pass
    assert caught.value.details["sent"] is False
    assert server.connections == 0


async def test_a_kept_connection_that_was_closed_is_opened_again_for_a_read_only():
    async with serving(always(http(then="close"))) as server, Http(profile(server.port)) as client:
        for _ in range(2):
            async with client.stream("GET", "/") as stream:
                assert b"".join([each async for each in stream]) == b"{}"
    assert len(server.requests) == 2
