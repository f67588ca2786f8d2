"""Signing in: one sign-in for all callers, a rejected or expired token is replaced, and no token is ever shown."""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote_plus

import anyio
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api import AuthenticationError, DragomanError, Http, Profile, QueryError
from dragoman_api.connections import Secrets
from dragoman_api.errors import ConfigurationError
from dragoman_api.kit.sign_in import ClientCredentials, SessionToken, SignedIn, own_path

pytestmark = pytest.mark.anyio

PASSWORD, SECRET = "hunter2-and-more", "client/secret+of>9"
SESSION = SessionToken(path="/session", logout=("DELETE", "/session"))
COOKIE = SessionToken(path="/session", cookie="AuthSession")
OAUTH = ClientCredentials(path="/oauth/token", scope="read")


@dataclass
class Server:
    """A server that hands out numbered tokens, and forgets them when a test says so."""

    tokens: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)
    given: int = 0
    seconds: object = 3600
    answer: web.Response | None = None
    slow: float = 0
    leaving: float = 0
    closed: anyio.Event = field(default_factory=anyio.Event)
    forgetful: bool = False

    def issue(self) -> str:
        self.given += 1
        token = f"token-number-{self.given:04}"
        if not self.forgetful:
            self.tokens.add(token)
        return token

    async def session(self, request: web.Request) -> web.Response:
        self.log.append("sign-in")
        await anyio.sleep(self.slow)
        if self.answer is not None:
            return self.answer
        asked = await request.json()
        if asked != {"username": "ada", "password": PASSWORD}:
            return web.Response(status=401, text=f"wrong password {asked['password']}")
        token = self.issue()
        return web.json_response({"token": token}, headers={"Set-Cookie": f"AuthSession={token}; Path=/; HttpOnly"})

    async def end(self, request: web.Request) -> web.Response:
        self.log.append("sign-out")
        with anyio.move_on_after(self.leaving):
            await self.closed.wait()
        self.tokens.discard(request.headers["Authorization"].removeprefix("Bearer "))
        return web.Response()

    async def oauth(self, request: web.Request) -> web.Response:
        self.log.append("sign-in")
        await anyio.sleep(self.slow)
        if self.answer is not None:
            return self.answer
        assert request.content_type == "application/x-www-form-urlencoded"
        form = parse_qs(await request.text())
        assert form == {"grant_type": ["client_credentials"], "scope": ["read"]}
        wanted = b64encode(f"ada%40home:{quote_plus(SECRET)}".encode()).decode()
        if request.headers["Authorization"] != f"Basic {wanted}":
            return web.json_response({"error": "invalid_client"}, status=400)
        return web.json_response({"access_token": self.issue(), "token_type": "bearer", "expires_in": self.seconds})

    async def data(self, request: web.Request) -> web.Response:
        self.log.append(f"{request.method} {request.path}")
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        cookie = request.headers.get("Cookie", "").removeprefix("AuthSession=")
        if not {bearer, cookie} & self.tokens:
            return web.Response(status=401, text=f"{bearer}{cookie} is unknown")
        status = int(request.query.get("status", 200))
        return web.Response(status=status, text=json.dumps({"you": bearer or cookie}))


@asynccontextmanager
async def serving(flow, *, server=None, clock=None, password=PASSWORD, secret=SECRET):
    server = server or Server()
    app = web.Application()
    app.router.add_post("/session", server.session)
    app.router.add_delete("/session", server.end)
    app.router.add_post("/oauth/token", server.oauth)
    app.router.add_route("*", "/data", server.data)
    async with TestServer(app) as running:
        profile = Profile(
            name="s", type="t", host="127.0.0.1", port=running.port,
            options={"username": "ada", "client_id": "ada@home"},
            secrets=Secrets(values={"password": password, "client_secret": secret}),
        )  # fmt: skip
        async with Http(profile) as http:
            yield server, SignedIn(http, flow, **({"clock": clock} if clock else {}))


@pytest.mark.parametrize("flow", [SESSION, COOKIE, OAUTH], ids=["session", "cookie", "oauth"])
async def test_the_first_request_signs_in_and_the_next_ones_carry_the_token(flow):
    async with serving(flow) as (server, signed):
        assert server.log == []
        for _ in range(2):
            response = signed.check(await signed.request("GET", "/data"))
            assert response.json() == {"you": "token-number-0001"}
        assert server.log == ["sign-in", "GET /data", "GET /data"]


@pytest.mark.parametrize("flow", [SESSION, COOKIE, OAUTH], ids=["session", "cookie", "oauth"])
async def test_a_rejected_token_is_replaced_once_and_the_request_repeated(flow):
    """A restart of the server forgets all sessions; a write is repeated too, because 401 means not carried out."""
    async with serving(flow) as (server, signed):
        await signed.request("GET", "/data")
        server.tokens.clear()
        response = await signed.request("POST", "/data", body="{}")
        assert response.json() == {"you": "token-number-0002"}
        assert server.log[2:] == ["POST /data", "sign-in", "POST /data"]


async def test_a_token_that_is_rejected_at_once_is_an_error_and_no_loop():
    async with serving(SESSION, server=Server(forgetful=True)) as (server, signed):
        response = await signed.request("GET", "/data")
        with pytest.raises(AuthenticationError) as caught:
            signed.check(response)
        assert server.log == ["sign-in", "GET /data", "sign-in", "GET /data"]
        assert "token-number" not in str(caught.value)


@pytest.mark.parametrize("status", [200, 400, 403, 404, 500, 503])
async def test_only_401_asks_for_a_new_token(status):
    async with serving(SESSION) as (server, signed):
        assert (await signed.request("GET", f"/data?status={status}")).status == status
        assert server.log == ["sign-in", "GET /data"]


@pytest.mark.parametrize("flow", [SESSION, OAUTH], ids=["session", "oauth"])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
async def test_a_sign_in_is_rejected_by_any_of_three_answers(flow, status):
    """RFC 6749 5.2 and etcd: 400 for a wrong password; whatever else says nothing of the credentials."""
    async with serving(flow, server=Server(answer=web.Response(status=status, text="no"))) as (_, signed):
        with pytest.raises(DragomanError) as caught:
            await signed.request("GET", "/data")
        assert isinstance(caught.value, AuthenticationError) is (status in (400, 401, 403))


async def test_a_token_ends_by_the_time_of_its_own_sign_in():
    """At the instant itself; counted from before the request, and never by what an earlier token said."""
    clock = [0.0]
    async with serving(OAUTH, clock=lambda: clock[-1]) as (server, signed):
        server.seconds = 100
        for at, count in ((0, 1), (69.9, 1), (70, 2), (139.9, 2)):
            clock.append(at)
            await signed.request("GET", "/data")
            assert server.log.count("sign-in") == count, at
        server.seconds = None
        for at in (140, 150, 10**6):
            clock.append(at)
            await signed.request("GET", "/data")
            assert server.log.count("sign-in") == 3, at


async def test_a_slow_sign_in_makes_its_token_no_younger():
    ticks = iter([0.0])  # before the request of the sign-in
    async with serving(OAUTH, server=Server(seconds=100), clock=lambda: next(ticks, 80.0)) as (server, signed):
        await signed.request("GET", "/data")
        await signed.request("GET", "/data")
        assert server.log.count("sign-in") == 2


@pytest.mark.parametrize("flow", [SESSION, OAUTH], ids=["session", "oauth"])
@pytest.mark.parametrize("calls", [2, 20])
async def test_concurrent_callers_share_one_sign_in(flow, calls):
    """At the beginning, and after all of them met a 401."""
    async with serving(flow, server=Server(slow=0.02)) as (server, signed):
        for expected in (1, 2):
            statuses = []

            async def one(statuses=statuses):
                statuses.append((await signed.request("GET", "/data")).status)

            async with anyio.create_task_group() as tasks:
                for _ in range(calls):
                    tasks.start_soon(one)
            assert statuses == [200] * calls
            assert server.log.count("sign-in") == expected
            server.tokens.clear()


@pytest.mark.parametrize("flow", [SESSION, OAUTH], ids=["session", "oauth"])
async def test_wrong_credentials_are_an_error_and_are_sent_once_for_all_who_wait(flow):
    """A server may lock an account after a few wrong passwords."""
    async with serving(flow, server=Server(slow=0.02), password="wrong-password", secret="wrong-secret") as (
        server, signed
    ):  # fmt: skip
        caught = []

        async def one():
            try:
                await signed.request("GET", "/data")
            except AuthenticationError as error:
                caught.append(error)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(one)
        assert len({id(error) for error in caught}) == 5
        assert server.log == ["sign-in"]
        assert "wrong-" not in "".join(f"{error} {error.hint} {error.details}" for error in caught)
        with pytest.raises(AuthenticationError):
            await signed.request("GET", "/data")
        assert server.log == ["sign-in", "sign-in"]


async def test_who_waits_signs_in_if_the_one_that_did_is_cancelled():
    async with serving(SESSION, server=Server(slow=0.05)) as (_, signed):
        statuses = []

        async def cancelled():
            with anyio.move_on_after(0.02):
                await signed.request("GET", "/data")

        async def patient():
            statuses.append((await signed.request("GET", "/data")).status)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancelled)
            await anyio.sleep(0.01)
            tasks.start_soon(patient)
        assert statuses == [200]


@given(st.one_of(st.none(), st.integers(0, 10_000)), st.lists(st.integers(0, 4_000), max_size=8))
async def test_no_request_carries_a_token_that_has_expired(seconds, pauses):
    """A token is replaced before its end."""
    now = 0.0
    async with serving(OAUTH, server=Server(seconds=seconds), clock=lambda: now) as (server, signed):
        for pause in [0, *pauses]:
            now += pause
            before = server.given
            await signed.request("GET", "/data")
            if server.given > before:
                begun = now
            if seconds is not None:
                assert now - begun <= seconds
            if seconds is None:
                assert server.given == 1


@pytest.mark.parametrize("seconds", [1, 30, 3600])
async def test_a_token_is_used_for_half_of_its_time_at_least(seconds):
    now = 0.0
    async with serving(OAUTH, server=Server(seconds=seconds), clock=lambda: now) as (server, signed):
        await signed.request("GET", "/data")
        now = seconds * 0.49
        await signed.request("GET", "/data")
        assert server.given == 1


@pytest.mark.parametrize("seconds", ["3600", -1, 1.5, True, [], 10**30, 10**400])
async def test_a_strange_time_of_validity_is_no_fault(seconds):
    async with serving(OAUTH, server=Server(seconds=seconds)) as (server, signed):
        assert (await signed.request("GET", "/data")).status == 200
        assert (await signed.request("GET", "/data")).status == 200
        assert server.given == 1


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(text="<html>token-number-9999</html>"),
        web.Response(body=b"\xff\xfe"),
        web.json_response([]),
        web.json_response({"token": None, "access_token": None, "token_type": "bearer"}),
        web.json_response({"token": "", "access_token": "", "token_type": "bearer"}),
        web.json_response({"token": "a\r\nX: b", "access_token": "a\r\nX: b", "token_type": "bearer"}),
        web.json_response({"token": "ä", "access_token": "ä", "token_type": "bearer"}),
        web.json_response({"token": "x" * 20_000, "access_token": "x" * 20_000, "token_type": "bearer"}),
        web.json_response({"token": ["x"], "access_token": {"x": 1}, "token_type": "bearer"}),
        web.Response(text="x" * 400_000),
        web.Response(status=404, text="token-number-9999 no such path"),
        web.Response(status=302, headers={"Location": "https://login.example/token"}),
    ],
)
@pytest.mark.parametrize("flow", [SESSION, OAUTH], ids=["session", "oauth"])
async def test_an_answer_without_a_usable_token_is_an_error(flow, answer):
    answer = web.Response(status=answer.status, body=answer.body, headers=answer.headers)
    async with serving(flow, server=Server(answer=answer)) as (server, signed):
        with pytest.raises(QueryError) as caught:
            await signed.request("GET", "/data")
        assert server.log == ["sign-in"]
        assert answer.status != 200 or "token-number" not in str(caught.value)


async def test_a_token_of_another_type_is_refused():
    answer = web.json_response({"access_token": "mac-token-123", "token_type": "mac"})
    async with serving(OAUTH, server=Server(answer=answer)) as (_, signed):
        with pytest.raises(QueryError) as caught:
            await signed.request("GET", "/data")
        assert "mac-token" not in str(caught.value)


async def test_closing_ends_the_session_on_the_server_once():
    async with serving(SESSION) as (server, signed):
        await signed.close()
        await signed.request("GET", "/data")
        await signed.close()
        await signed.close()
        assert server.log == ["sign-in", "GET /data", "sign-out"]
        assert server.tokens == set()


async def test_closing_waits_for_the_server_only_a_little(monkeypatch):
    monkeypatch.setattr("dragoman_api.kit.sign_in._LOGOUT_SECONDS", 0.05)
    async with serving(SESSION, server=Server(leaving=0.8)) as (server, signed):
        await signed.request("GET", "/data")
        await signed.close()
        assert server.tokens == {"token-number-0001"}
        server.closed.set()


async def test_tokens_appear_in_no_error_log_or_repr(caplog):
    """A server that quotes the token in its errors, the token of an hour ago included."""
    caplog.set_level(logging.DEBUG)
    async with serving(SESSION) as (server, signed):
        texts = []
        for status in (400, 403, 404, 500):
            response = await signed.request("GET", f"/data?status={status}")
            assert "token-number" in response.text
            error = signed.error(response)
            texts += [str(error), repr(error), error.hint, repr(error.details)]
            server.tokens.clear()
        assert server.given == 4
        flow = signed._flow
        shown = flow.begin(signed._http.profile)
        texts += [
            repr(signed),
            repr(signed._tokens),
            repr(signed._tokens._token),
            repr(shown),
            repr(signed._http),
            caplog.text,
        ]
        assert "***" in "".join(texts)
        assert not [text for text in texts if "token-number" in text or PASSWORD in text]


async def test_the_pair_of_client_id_and_secret_is_masked():
    pair = b64encode(f"ada%40home:{quote_plus(SECRET)}".encode()).decode()
    answer = web.Response(status=400, text=f"Basic {pair} is wrong")
    async with serving(OAUTH, server=Server(answer=answer)) as (_, signed):
        with pytest.raises(AuthenticationError) as caught:
            await signed.request("GET", "/data")
        assert pair[8:] not in str(caught.value)


@pytest.mark.parametrize("flow", [SESSION, OAUTH], ids=["session", "oauth"])
async def test_a_missing_credential_is_told_before_anything_is_sent(flow):
    async with serving(flow) as (server, signed):
        bare = Profile(name="s", type="t", host="127.0.0.1", port=1)
        signed._http.profile = bare
        with pytest.raises(ConfigurationError):
            await signed.request("GET", "/data")
        assert server.log == []


PROFILE = Profile(name="s", type="t", host="::1", port=2379)


@pytest.mark.parametrize("address", ["/token", "http://[::1]:2379/token", "/realms/a/token?x=1"])
def test_a_token_endpoint_of_the_same_server_is_its_path(address):
    assert own_path(address, PROFILE) == "/" + address.partition("2379/")[2] if "2379" in address else address


@pytest.mark.parametrize(
    "address",
    [
        "https://login.example/token", "http://[::1]:23790/token", "http://[::1]:2379@evil.example/token",
        "https://[::1]:2379/token", "//evil.example/token", "http://[::1]:2379//evil.example/token", "token", "",
    ],
)  # fmt: skip
def test_a_token_endpoint_elsewhere_is_an_error_that_says_what_to_do(address):
    """The sandbox reaches nothing but the connection."""
    with pytest.raises(ConfigurationError) as caught:
        own_path(address, PROFILE)
    assert caught.value.hint


async def test_an_error_of_the_network_is_no_failure_of_the_credentials():
    async with serving(SESSION) as (_, signed):
        signed._http._nodes.first.origin = "http://127.0.0.1:9"
        with pytest.raises(DragomanError) as caught:
            await signed.request("GET", "/data")
        assert not isinstance(caught.value, AuthenticationError)
