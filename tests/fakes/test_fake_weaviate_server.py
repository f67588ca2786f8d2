"""The fake Weaviate as a server: its log, its faults, keys, TLS, and its bad days."""

from __future__ import annotations

import ssl
import time

import aiohttp
import pytest

from dragoman_sample.fakes.weaviate import FakeWeaviate, User
from fakes.certificates import make_certificates

KEYS = {"admin-key": User("admin", admin=True), "reader-key": User("reader")}


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("tls"))


async def get(server, path="/v1/meta", **options):
    async with aiohttp.ClientSession() as session, session.get(server.url + path, **options) as response:
        return response.status, await response.read()


def bearer(key):
    return {"headers": {"Authorization": f"Bearer {key}"}}


async def test_every_request_is_logged_with_its_body():
    async with FakeWeaviate() as server:
        async with aiohttp.ClientSession() as session:
            await session.post(f"{server.url}/v1/graphql", json={"query": "{ x }"}, headers={"X-Me": "me"})
        (logged,) = server.requests
        assert (logged.method, logged.path, logged.json()) == ("POST", "/v1/graphql", {"query": "{ x }"})
        assert logged.headers["x-me"] == "me"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/nosuch", None),
        ("GET", "/v1/objects?class=Doc&nosuch=1", None),
        ("POST", "/v1/objects", {"class": "Doc", "nosuch": 1}),
        ("POST", "/v1/schema", {"class": "Other", "nosuch": 1}),
        ("POST", "/v1/graphql", {"query": "{ Get { Doc { i } } }", "nosuch": 1}),
        ("POST", "/v1/graphql", {"query": '{ Get { Doc(bm25:{query:"x"}) { i } } }'}),
        ("POST", "/v1/graphql", {"query": "{ __schema { types { name } } }"}),
    ],
)
async def test_what_the_fake_does_not_know_is_refused_and_kept_as_a_fault(method, path, body):
    async with FakeWeaviate() as server, aiohttp.ClientSession() as session:
        await session.post(f"{server.url}/v1/schema", json={"class": "Doc", "properties": []})
        async with session.request(method, server.url + path, json=body) as response:
            assert response.status in (404, 501)
        assert len(server.faults) == 1


async def test_an_ordinary_refusal_is_no_fault():
    async with FakeWeaviate() as server:
        assert (await get(server, "/v1/objects?class=Nosuch"))[0] == 404
        assert not server.faults


async def test_a_key_can_be_revoked_in_the_middle_of_work():
    async with FakeWeaviate(keys=KEYS) as server:
        assert (await get(server, **bearer("reader-key")))[0] == 200
        server.revoke("reader-key")
        status, body = await get(server, **bearer("reader-key"))
        assert (status, b"invalid api key: invalid token" in body) == (401, True)
        assert (await get(server, **bearer("admin-key")))[0] == 200


async def test_a_server_without_keys_refuses_one():
    async with FakeWeaviate() as server:
        assert (await get(server, **bearer("any")))[0] == 401
        assert (await get(server))[0] == 200


async def test_tls(certificates):
    async with FakeWeaviate(tls=certificates) as server:
        trusted = ssl.create_default_context(cafile=certificates.ca)
        assert (await get(server, ssl=trusted))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await get(server)


@pytest.mark.parametrize(
    ("kind", "status", "body"),
    [
        ("html", 502, b"<html>"),
        ("empty", 200, b""),
        ("garbage", 200, b'{"data"'),
    ],
)
async def test_it_can_answer_nonsense(kind, status, body):
    async with FakeWeaviate() as server:
        server.misbehave(kind, times=1)
        found = await get(server)
        assert found[0] == status
        assert found[1].startswith(body)
        assert bool(found[1]) == bool(body)
        assert (await get(server))[1].startswith(b"{")


async def test_it_can_answer_anything_after_some_good_answers():
    async with FakeWeaviate() as server:
        server.misbehave("answer", on="/v1/meta", after=1, status=429, body={"error": [{"message": "slow down"}]})
        assert [(await get(server))[0] for _ in range(3)] == [200, 429, 429]
        assert (await get(server, "/v1/schema"))[0] == 200
        server.behave()
        assert (await get(server))[0] == 200


async def test_it_can_break_off_and_hang_up():
    async with FakeWeaviate() as server:
        server.misbehave("cut", times=1)
        with pytest.raises(aiohttp.ClientPayloadError):
            await get(server)
        server.behave()
        server.misbehave("drop", times=2)
        with pytest.raises(aiohttp.ClientConnectionError):
            await get(server)


@pytest.mark.slow
async def test_it_can_be_slow_and_never_answer():
    async with FakeWeaviate() as server:
        server.misbehave("slow", times=1, seconds=0.2)
        began = time.monotonic()
        assert (await get(server))[0] == 200
        assert time.monotonic() - began >= 0.2
        server.misbehave("hang")
        with pytest.raises(TimeoutError):
            await get(server, timeout=aiohttp.ClientTimeout(total=0.2))
