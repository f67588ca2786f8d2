"""OAuth client credentials: a second server that hands out tokens, and what becomes of requests meanwhile."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from api.loopback import Reply, http, serving

from dragoman_api import AuthenticationError, ConnectionFailedError, Http, Profile
from dragoman_api.connections import AuthScheme, Secrets, SslMode
from dragoman_api.endpoints import token_url
from dragoman_api.errors import ConfigurationError, DragomanError
from token_endpoint import CLIENT, SECRET, TokenEndpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from api.loopback import Loopback, Request


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    """Run a token endpoint."""
    with TokenEndpoint() as made:
        yield made


def profile(port: int, url: str, *, secret: str = SECRET, **changes: Any) -> Profile:
    options = {"token_url": url, "client_id": CLIENT, "scope": "read write", **changes.pop("options", {})}
    given = {"host": "127.0.0.1", "port": port, "secrets": Secrets(values={"client_secret": secret}), **changes}
    return Profile(name="shop", type="memory", auth_scheme=AuthScheme.CLIENT_CREDENTIALS, options=options, **given)


@asynccontextmanager
async def database(endpoint: TokenEndpoint, **changes: Any) -> AsyncIterator[tuple[Http, Loopback, list[str]]]:
    """Yield a client, what the database saw, and the texts that were hidden."""
    hidden: list[str] = []

    def reply(request: Request) -> Reply:
        sound = request.headers.get("authorization", "").removeprefix("Bearer ") in endpoint.tokens
        return http('"ok"') if sound else http("no such token", status=401)

    async with serving(reply) as server:
        given = profile(server.port, endpoint.url, **changes)
        async with Http(given, on_token=hidden.append) as client:
            yield client, server, hidden


async def test_one_token_serves_many_requests_and_the_secret_goes_to_the_endpoint_alone(
    endpoint: TokenEndpoint,
) -> None:
    async with database(endpoint, options={"headers": "X-Tenant: blue"}) as (client, server, hidden):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(client.get_json, "/")
        assert await client.get_json("/") == "ok"
    assert endpoint.forms == [{"grant_type": "client_credentials", "scope": "read write"}]
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer token-number-0001"}
    assert "X-Tenant" not in endpoint.heads[0]
    assert endpoint.heads[0]["Content-Type"] == "application/x-www-form-urlencoded"
    assert {"token-number-0001", SECRET} <= {*hidden}


@pytest.mark.parametrize("seconds", [0, 1, 40])
async def test_a_token_is_replaced_before_it_ends(endpoint: TokenEndpoint, monkeypatch, seconds: int) -> None:
    endpoint.seconds = seconds
    async with database(endpoint) as (client, _, _):
        now = [1000.0]
        monkeypatch.setattr(client._tokens, "_clock", lambda: now[0])
        await client.get_json("/")
        now[0] += seconds / 4
        await client.get_json("/")
        assert len(endpoint.forms) == (2 if seconds == 0 else 1)
        now[0] += seconds / 2
        await client.get_json("/")
    assert len(endpoint.forms) == (3 if seconds == 0 else 2)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_rejected_token_is_replaced_once_and_the_request_repeated(endpoint: TokenEndpoint, method: str) -> None:
    """A server that answers 401 has not carried out the request, so a write is repeated, too."""
    async with database(endpoint) as (client, server, _):
        await client.get_json("/")
        endpoint.tokens.clear()  # the issuer has revoked it
        answer = await client.request(method, "/next", body=None if method == "GET" else "{}")
        assert answer.status == 200
        async with client.stream("GET", "/stream") as stream:
            assert b"".join([chunk async for chunk in stream]) == b'"ok"'
        endpoint.tokens.clear()
        async with client.stream("GET", "/stream") as stream:
            assert stream.status == 200
        assert len(endpoint.forms) == 3
    assert [request.target for request in server.requests] == ["/", "/next", "/next", "/stream", "/stream", "/stream"]


async def test_a_new_token_that_is_rejected_too_ends_it(endpoint: TokenEndpoint) -> None:
    rejects = f"rejected the token of {endpoint.server}"
    async with (
        serving(lambda _: http("go away", status=401)) as server,
        Http(profile(server.port, endpoint.url)) as client,
    ):
        with pytest.raises(AuthenticationError, match=rejects) as caught:
            await client.get_json("/")
    assert len(endpoint.forms) == len(server.requests) == 2
    assert "token-number" not in caught.value.message


async def test_a_wrong_secret_is_told_once_and_never_shown(endpoint: TokenEndpoint) -> None:
    failures: list[DragomanError] = []
    async with database(endpoint, secret="wrong-secret-of-mine") as (client, server, _):

        async def ask() -> None:
            try:
                await client.get_json("/")
            except DragomanError as error:
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(ask)
    assert len(endpoint.forms) == 1
    assert server.requests == []
    assert [type(each) for each in failures] == [AuthenticationError] * 4
    for each in failures:
        assert each.message.startswith(f"Authentication failed: the token endpoint {endpoint.server} rejected")
        assert "(401): " in each.message
        assert "invalid_client" in each.message
        assert "wrong-secret" not in f"{each.message}{each.hint}{each.details}"
        assert each.details["sent"] is False


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((500, b"oops", {}), "answered HTTP 500: oops"),
        ((302, b"", {"Location": "https://elsewhere.example/"}), "answered HTTP 302"),
        ((200, b"<html>welcome</html>", {}), "answered with no JSON"),
        ((200, b"[]", {}), "answered with a token that is not of type Bearer"),
        ((200, b'{"access_token": "t0ken-here", "token_type": "mac"}', {}), "not of type Bearer"),
        ((200, b'{"token_type": "Bearer"}', {}), "no access_token that a header can carry"),
        ((200, b'{"access_token": "t0ken\\r\\nX: y", "token_type": "Bearer"}', {}), "no access_token that a header"),
        ((200, '{"access_token": "t0kén", "token_type": "Bearer"}'.encode(), {}), "no access_token that a header"),
        ((200, b" " * 2**19, {}), "longer than"),
    ],
)
async def test_an_endpoint_that_hands_out_no_token_is_told_and_nothing_is_sent(
    endpoint: TokenEndpoint, answer: tuple[int, bytes, dict[str, str]], reason: str
) -> None:
    endpoint.answer = answer
    async with database(endpoint) as (client, server, _):
        with pytest.raises(ConnectionFailedError) as caught:
            await client.post_json("/", {})
    assert f"Connection failed: the token endpoint {endpoint.server}" in caught.value.message
    assert reason in caught.value.message
    assert "t0ken" not in caught.value.message
    assert caught.value.details["sent"] is False
    assert server.requests == []


async def test_an_endpoint_that_is_away_is_told_and_the_next_request_asks_again(endpoint: TokenEndpoint) -> None:
    async with database(endpoint) as (client, server, _):
        endpoint.__exit__()
        with pytest.raises(ConnectionFailedError, match=f"the token endpoint {endpoint.server}: nothing listens there"):
            await client.get_json("/")
        endpoint.__enter__()
        assert await client.get_json("/") == "ok"
    assert len(server.requests) == 1


@pytest.mark.parametrize("mode", [SslMode.DISABLED, SslMode.PREFERRED, SslMode.VERIFY_CA])
async def test_the_endpoints_certificate_and_name_are_checked_whatever_the_ssl_mode(certs, mode: SslMode) -> None:
    for name, trusted in (("good", True), ("misnamed", False), ("self", False)):
        with TokenEndpoint(tls=certs.server(name)) as endpoint:
            given = profile(1, endpoint.url, ssl_mode=mode, skip_tls_verification=True, ca_pem=certs.text("ca"))
            async with Http(given) as client:
                with pytest.raises(ConnectionFailedError) as caught:
                    await client.get_json("/", timeout=5)
            assert bool(endpoint.forms) is trusted
            assert (f"the token endpoint {endpoint.server}: its certificate" in caught.value.message) is not trusted


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("https://auth.example.com/token", (True, "auth.example.com", 443, "/token")),
        ("https://auth.example.com:8443/realms/a/token?x=1", (True, "auth.example.com", 8443, "/realms/a/token?x=1")),
        ("http://localhost:8080/token", (False, "localhost", 8080, "/token")),
        ("http://127.0.0.1/t", (False, "127.0.0.1", 80, "/t")),
        ("https://[::1]:9/t", (True, "::1", 9, "/t")),
    ],
)
def test_a_token_url_means_a_server_and_a_path(text: str, meant: tuple[object, ...]) -> None:
    assert tuple(token_url(text)) == meant


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("auth.example.com/token", "is not an address that begins with https://"),
        ("ftp://auth.example.com/token", "is not an address that begins with https://"),
        ("http://auth.example.com/token", "the secret would travel unencrypted"),
        ("https://me:pw@auth.example.com/token", "^names a user; enter the address alone"),
        ("https:///token", "is not a host"),
        ("https://auth.example.com:0/token", "does not end in a TCP port"),
        ("https://auth.example.com/to ken", "contains a character"),
        ("https://auth.example.com/token#part", "contains a character"),
        ("https://auth.example.com/\r\nX: y", "contains a character"),
        ("https://" + "a" * 3000, "characters"),
    ],
)
def test_what_is_no_token_url_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        token_url(text)
    with pytest.raises(ConfigurationError):
        Http(profile(1, text))


@pytest.mark.parametrize("missing", ["client_id", "client_secret", "token_url"])
def test_an_incomplete_client_is_refused_before_anything_is_sent(missing: str) -> None:
    given = {"options": {missing: ""}} if missing != "client_secret" else {"secret": ""}
    with pytest.raises(ConfigurationError):
        Http(profile(1, "https://auth.example.com/token", **given))


def test_what_the_connection_reaches_contains_the_endpoint_only_with_this_method() -> None:
    made = profile(9200, "https://auth.example.com/token", options={"hosts": "es2"})
    assert made.reach == [("127.0.0.1", 9200), ("es2", 9200), ("auth.example.com", 443)]
    assert made.endpoints == [("127.0.0.1", 9200), ("es2", 9200)]
    other = Profile(name="x", type="y", host="h", port=1, auth_scheme=AuthScheme.BEARER, options=made.options)
    assert other.reach == [("h", 1), ("es2", 1)]
    assert json.dumps(str(made)).count(SECRET) == 0
