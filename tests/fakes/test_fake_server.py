"""The fake as a server: its log, its faults, TLS, and its bad days."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import aiohttp
import anyio
import pytest

from dragoman_sample.fakes.elasticsearch import ApiKey, FakeElasticsearch, User
from fakes.certificates import make_certificates

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("tls"))


async def get(server, path="/", **options):
    async with aiohttp.ClientSession() as session, session.get(server.url + path, **options) as response:
        return response.status, response.headers, await response.read()


async def test_every_request_is_logged_with_its_body():
    async with FakeElasticsearch() as server:
        async with aiohttp.ClientSession() as session:
            await session.post(f"{server.url}/_search?size=0", json={"size": 0}, headers={"X-Opaque-Id": "me"})
        (logged,) = server.requests
        assert (logged.method, logged.path, logged.query, logged.json()) == ("POST", "/_search", "size=0", {"size": 0})
        assert logged.headers["x-opaque-id"] == "me"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/_nosuch/x", None),
        ("GET", "/_search?nosuch=1", None),
        ("POST", "/_search", {"nosuch": 1}),
        ("POST", "/_search", {"query": {"nosuch": {}}}),
        ("POST", "/_search", {"query": {"bool": {"filter": [{"term": {"k": {"value": 1, "nosuch": 1}}}]}}}),
        ("POST", "/_search", {"sort": [{"k": {"nosuch": 1}}]}),
        ("PUT", "/x", {"settings": {"nosuch": 1}}),
        ("POST", "/x/_update/1", {"doc": {}, "nosuch": 1}),
    ],
)
async def test_what_no_server_knows_is_refused_and_kept_as_a_fault(method, path, body):
    async with FakeElasticsearch() as server, aiohttp.ClientSession() as session:
        async with session.request(method, server.url + path, json=body) as response:
            assert response.status in (400, 405)
        assert len(server.faults) == 1


@pytest.mark.parametrize(
    ("path", "allowed"), [("/x/_count", {"GET", "POST"}), ("/_pit", {"DELETE"}), ("/_nosuch/x/y", set())]
)
async def test_options_are_answered_with_the_methods_of_a_path_and_without_credentials(path, allowed):
    async with (
        FakeElasticsearch(api_keys=[ApiKey("id1", "secret")]) as server,
        aiohttp.ClientSession() as session,
        session.options(server.url + path) as response,
    ):
        assert (response.status, await response.read()) == (200, b"")
        assert {each for each in response.headers.get("Allow", "").split(",") if each} == allowed


async def test_an_ordinary_refusal_is_no_fault():
    async with FakeElasticsearch() as server, aiohttp.ClientSession() as session:
        async with session.post(f"{server.url}/nosuch/_search", json={}) as response:
            assert response.status == 404
        assert not server.faults


@pytest.mark.parametrize(
    ("version", "header"), [("7.10.2", None), ("7.17.29", "Elasticsearch"), ("9.5.3", "Elasticsearch")]
)
async def test_the_product_header_came_with_7_14(version, header):
    async with FakeElasticsearch(version=version) as server:
        _, headers, body = await get(server)
        assert headers.get("X-Elastic-Product") == header
        assert json.loads(body)["version"]["number"] == version


async def test_another_product_says_so():
    async with FakeElasticsearch(opensearch="2.19.1") as server:
        _, headers, body = await get(server)
        assert json.loads(body)["version"]["distribution"] == "opensearch"
        assert "X-Elastic-Product" not in headers


async def test_a_stranger_is_turned_away_without_a_product_header():
    async with FakeElasticsearch(users={"elastic": "secret"}) as server:
        status, headers, _ = await get(server)
        assert status == 401
        assert "X-Elastic-Product" not in headers
        assert len(headers.getall("WWW-Authenticate")) == 3
        status, headers, _ = await get(server, headers={"Authorization": "Basic ZWxhc3RpYzpzZWNyZXQ="})
        assert (status, headers["X-Elastic-Product"]) == (200, "Elasticsearch")


async def test_a_key_can_lose_its_right_at_any_time():
    key = ApiKey("an-id", "a-secret", cluster=(), indices={"docs": ("read",)})
    async with FakeElasticsearch(api_keys=[key], users={"reader": User("pw", ())}) as server:
        headers = {"Authorization": f"ApiKey {key.encoded}"}
        assert (await get(server, headers=headers))[0] == 403
        assert (await get(server, "/_security/_authenticate", headers=headers))[0] == 200
        assert server.security is not None
        server.security.revoke("an-id")
        status, _, body = await get(server, "/_security/_authenticate", headers=headers)
        assert status == 401
        assert b"api key [an-id] has been invalidated" in body


async def test_tls_is_checked_by_chain_and_name(certificates, tmp_path):
    trusting = ssl.create_default_context(cafile=certificates.ca)
    async with FakeElasticsearch(tls=certificates) as server:
        assert server.url.startswith("https://")
        assert (await get(server, ssl=trusting))[0] == 200
        assert (await get(server, ssl=False))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError, match="unable to get local issuer"):
            await get(server)
    named = await anyio.to_thread.run_sync(make_certificates, tmp_path / "other", "other.example")
    async with FakeElasticsearch(tls=named) as server:
        context = ssl.create_default_context(cafile=named.ca)
        with pytest.raises(aiohttp.ClientConnectorCertificateError, match="IP address mismatch"):
            await get(server, ssl=context)
        context.check_hostname = False
        assert (await get(server, ssl=context))[0] == 200


async def test_a_client_certificate_can_be_required(certificates):
    async with FakeElasticsearch(tls=certificates, require_client_certificate=True) as server:
        context = ssl.create_default_context(cafile=certificates.ca)
        with pytest.raises(aiohttp.ClientError):
            await get(server, ssl=context)
        context = ssl.create_default_context(cafile=certificates.ca)
        context.load_cert_chain(*certificates.client)
        assert (await get(server, ssl=context))[0] == 200


async def test_plain_http_to_a_tls_port_and_the_reverse_both_fail(certificates):
    async with FakeElasticsearch(tls=certificates) as server:
        plain = f"http://{server.host}:{server.port}/"
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.get(plain)
    async with FakeElasticsearch() as server, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorSSLError, match=r"(?i)wrong.version.number"):
            await session.get(f"https://{server.host}:{server.port}/")


async def test_a_proxy_page_comes_instead_of_json():
    async with FakeElasticsearch() as server:
        server.misbehave("html")
        status, headers, body = await get(server)
        assert (status, headers["Content-Type"]) == (502, "text/html")
        assert b"<html>" in body


async def test_a_body_stops_in_the_middle():
    async with FakeElasticsearch() as server:
        server.misbehave("cut")
        with pytest.raises(aiohttp.ClientPayloadError):
            await get(server)


@pytest.mark.parametrize("kind", ["drop", "hang"])
async def test_a_connection_is_dropped_or_hangs(kind):
    async with FakeElasticsearch() as server:
        server.misbehave(kind)
        with pytest.raises((aiohttp.ClientError, TimeoutError)):
            with anyio.fail_after(0.3):
                await get(server)


async def test_trouble_can_be_aimed_and_comes_to_an_end():
    async with FakeElasticsearch() as server:
        server.misbehave("status", on="/_cat", after=1, times=2, status=503)
        assert (await get(server))[0] == 200
        codes = [(await get(server, "/_cat/indices"))[0] for _ in range(4)]
        assert codes == [200, 503, 503, 200]
        server.behave()
        assert not server.troubles


async def test_a_slow_server_answers_in_the_end():
    async with FakeElasticsearch() as server:
        server.misbehave("slow", seconds=0.05)
        assert (await get(server))[0] == 200
