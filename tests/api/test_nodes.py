"""Several hosts: real servers on three ports, of which one is dead, hangs, answers 503, or hangs up."""

from __future__ import annotations

import re
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from api.loopback import Loopback, Reply, Request, http, serving

from dragoman_api import _transport
from dragoman_api.connections import AuthScheme, Profile, Secrets
from dragoman_api.errors import AuthenticationError, ConfigurationError, ConnectionFailedError
from dragoman_api.http import CALL_ENDS, Http
from dragoman_api.remedies import Remedy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    Answers = Callable[[Request], Reply]

HANG, RESET, AWAY = Reply(b"", "hang"), Reply(b"", "reset"), http("away", status=503)
HALF = Reply(b"HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\nhalf", "close")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def profile(*ports: int, **changes: Any) -> Profile:
    options = {"hosts": ", ".join(f"127.0.0.1:{port}" for port in ports[1:])}
    return Profile(name="shop", type="memory", host="127.0.0.1", port=ports[0], options=options, **changes)


@asynccontextmanager
async def three(*answers: Reply | Answers | None, **changes: Any) -> AsyncIterator[tuple[Http, list[Loopback]]]:
    """Serve three nodes that answer so, None for a dead one, and open a client of all."""
    async with AsyncExitStack() as stack:
        nodes = []
        for each in answers:
            if each is None:
                nodes.append(Loopback(free_port()))
            else:
                reply = each if callable(each) else (lambda _, fixed=each: fixed)
                nodes.append(await stack.enter_async_context(serving(reply)))
        yield await stack.enter_async_context(Http(profile(*(each.port for each in nodes), **changes))), nodes


def asked(nodes: list[Loopback]) -> list[int]:
    return [len(each.requests) for each in nodes]


GOOD = http('"ok"')


@pytest.mark.parametrize("bad", [None, HANG, RESET, AWAY, HALF, http(status=502), http(status=504)])
async def test_a_read_is_repeated_on_another_node(bad: Reply | None):
    async with three(bad, GOOD, GOOD) as (client, nodes):
        assert (await client.request("GET", "/", timeout=3)).json() == "ok"
        assert asked(nodes)[1:] == [1, 0]
        [fault] = client.faults
        assert fault.reason.startswith(f"127.0.0.1:{nodes[0].port}: ")
        assert (await client.request("POST", "/_search", read=True, timeout=3)).json() == "ok"
        assert asked(nodes)[1:] == [2, 0]  # the node that answered is asked first


async def test_the_node_that_answered_is_asked_first_until_it_fails():
    state = {"second": GOOD}
    async with three(None, lambda _: state["second"], GOOD) as (client, nodes):
        for _ in range(3):
            await client.get_json("/")
        assert asked(nodes) == [0, 3, 0]
        state["second"] = AWAY
        await client.get_json("/")
        assert asked(nodes) == [0, 4, 1]
        assert [each.reason for each in client.faults][1] == f"127.0.0.1:{nodes[1].port}: HTTP 503"


async def test_a_node_that_may_be_well_again_is_not_asked_before_the_one_that_answered(monkeypatch):
    monkeypatch.setattr(_transport, "_REST", 0.0)
    async with three(AWAY, GOOD, GOOD) as (client, nodes):
        for _ in range(3):
            await client.get_json("/")
        assert asked(nodes) == [1, 3, 0]
        assert client.faults == []


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
@pytest.mark.parametrize("bad", [RESET, HALF])
async def test_a_write_that_may_have_arrived_is_sent_to_no_other_node(method: str, bad: Reply):
    async with three(bad, GOOD, GOOD) as (client, nodes):
        with pytest.raises(ConnectionFailedError, match=f"127.0.0.1:{nodes[0].port}") as caught:
            await client.request(method, "/books/_doc/1", body=b"{}")
        assert caught.value.details["sent"] is True
        assert asked(nodes) == [1, 0, 0]


async def test_a_write_that_hangs_is_sent_to_no_other_node():
    async with three(HANG, GOOD, GOOD) as (client, nodes):
        with pytest.raises(ConnectionFailedError):
            await client.request("PUT", "/", timeout=0.6)
        assert asked(nodes) == [1, 0, 0]


async def test_a_write_answered_with_503_is_not_repeated():
    async with three(AWAY, GOOD, GOOD) as (client, nodes):
        assert (await client.request("POST", "/_bulk", body=b"x")).status == 503
        assert asked(nodes) == [1, 0, 0]


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
async def test_a_write_that_certainly_was_not_sent_goes_to_another_node(method: str):
    async with three(None, None, GOOD) as (client, nodes):
        assert (await client.request(method, "/", body=b"{}")).json() == "ok"
        assert asked(nodes) == [0, 0, 1]


def shares(error: ConnectionFailedError) -> list[float]:
    """Return the seconds that each node had, by what the error says."""
    return [float(each) for each in re.findall(r"within ([0-9.]+) s", error.message)]


@pytest.mark.slow
async def test_each_node_gets_an_equal_share_of_the_deadline():
    async with three(HANG, HANG, HANG) as (client, nodes):
        began = anyio.current_time()
        with pytest.raises(ConnectionFailedError) as caught:
            await client.request("GET", "/", timeout=1.5)
        assert 1.4 < anyio.current_time() - began < 6
        assert [0.2 < each <= 0.5 for each in shares(caught.value)] == [True] * 3
        assert all(f"127.0.0.1:{each.port}: " in caught.value.message for each in nodes)
    async with three(None, HANG, HANG) as (client, nodes):  # what the first one left is shared by the others
        with pytest.raises(ConnectionFailedError) as caught:
            await client.request("GET", "/", timeout=1.5)
        assert [0.5 < each <= 0.75 for each in shares(caught.value)] == [True] * 2


@pytest.mark.slow
async def test_the_deadline_of_the_call_counts_if_it_is_nearer():
    async with three(HANG, GOOD, GOOD) as (client, _):
        token = CALL_ENDS.set(anyio.current_time() + 3)
        try:
            with anyio.fail_after(2.9):
                await client.request("GET", "/", timeout=60)
        finally:
            CALL_ENDS.reset(token)


async def test_the_error_tells_the_fault_of_each_node():
    async with three(None, RESET, AWAY) as (client, nodes):
        with pytest.raises(ConnectionFailedError) as caught:
            await client.request("GET", "/")
    first, second, third = (f"127.0.0.1:{each.port}" for each in nodes)
    assert caught.value.message.startswith(f"Connection failed: {first}: nothing listens there; {second}: it gave no")
    assert caught.value.message.endswith(f"; {third}: HTTP 503")
    assert caught.value.details["sent"] is True
    async with three(None, None, None) as (client, nodes):
        with pytest.raises(ConnectionFailedError) as caught:
            await client.request("PUT", "/")
    assert caught.value.message.count("nothing listens there") == 3
    assert caught.value.details["sent"] is False


def test_the_error_of_several_nodes_has_the_details_of_all_and_the_first_advice():
    remedy = Remedy("edit-field", {"field": "ssl_mode", "value": "required"})
    errors = [
        ConnectionFailedError("a: nothing listens there", details={"sent": False}),
        ConnectionFailedError("b: it stopped", remedies=[remedy], details={"certificate": "untrusted"}),
        ConnectionFailedError("c: it hangs", hint="wait", details={"sent": False, "waited": 3}),
    ]
    error = _transport.told(errors)
    assert error.details == {"sent": True, "certificate": "untrusted", "waited": 3}
    assert (error.hint, error.remedies) == ("", (remedy,))


async def test_503_of_every_node_is_an_answer_so_that_the_caller_can_wait():
    async with three(AWAY, AWAY, AWAY) as (client, nodes):
        assert (await client.request("GET", "/")).status == 503
        assert asked(nodes) == [1, 1, 1]


async def test_what_every_node_would_say_is_an_answer_of_the_first():
    secrets = Secrets(values={"api_key": "wrong-key"})
    async with three(http(status=401), GOOD, GOOD, auth_scheme=AuthScheme.API_KEY, secrets=secrets) as (client, nodes):
        with pytest.raises(AuthenticationError):
            await client.get_json("/")
        assert asked(nodes) == [1, 0, 0]


async def test_a_redirect_to_another_host_of_the_connection_is_not_followed():
    async with serving(lambda _: GOOD) as second:
        to = http(status=307, headers=f"Location: http://127.0.0.1:{second.port}/steal\r\n")
        async with serving(lambda _: to) as first, Http(profile(first.port, second.port)) as client:
            assert (await client.request("GET", "/")).status == 307
    assert second.requests == []


async def test_a_stream_begins_on_another_node_and_is_not_repeated_once_it_has_begun():
    async with three(AWAY, GOOD, GOOD) as (client, nodes):
        async with client.stream("GET", "/") as stream:
            assert (await stream.response()).json() == "ok"
        assert asked(nodes) == [1, 1, 0]
    async with three(HALF, GOOD, GOOD) as (client, nodes):
        with pytest.raises(ConnectionFailedError, match="stopped before its end"):
            async with client.stream("GET", "/") as stream:
                await stream.response()
        assert asked(nodes) == [1, 0, 0]


@pytest.mark.slow
async def test_a_node_dies_while_many_requests_are_under_way():
    """Reads all succeed; writes succeed or are reported as perhaps applied, never sent twice."""
    served: list[str] = []

    def dying(request: Request) -> Reply:
        served.append(request.target)
        return RESET if len(served) > 20 else GOOD

    def living(request: Request) -> Reply:
        served.append(request.target)
        return GOOD

    unsure: list[tuple[str, object]] = []

    async def send(client: Http, number: int) -> None:
        method = "PUT" if number % 2 else "GET"
        try:
            assert (await client.request(method, f"/{method}{number}")).json() == "ok"
        except ConnectionFailedError as error:
            unsure.append((method, error.details["sent"]))

    async with three(dying, living, living) as (client, _), anyio.create_task_group() as tasks:
        for number in range(80):
            tasks.start_soon(send, client, number)
    writes = [each for each in served if each.startswith("/PUT")]
    assert len(writes) == len({*writes}) == 40
    assert {*unsure} == {("PUT", True)}


@pytest.mark.parametrize(
    "hosts", ["a b:c", "http://b:1", "b/c", "u@b", "b:0", "b:65536", "b:1:2", "b%2f", "[::1", "[x]:1", "[::1]b1"]
)
def test_what_is_no_host_is_refused_before_anything_is_opened(hosts: str):
    given = Profile(name="s", type="m", host="a", port=1, options={"hosts": hosts})
    with pytest.raises(ConfigurationError, match="hosts: "):
        Http(given)


def test_hosts_are_listed_once_and_first_of_all_the_connections_own():
    given = Profile(name="s", type="m", host="a", port=1, options={"hosts": "b, a:1\nc:3 [::1]:4 ::2"})
    assert given.endpoints == [("a", 1), ("b", 1), ("c", 3), ("::1", 4), ("::2", 1)]
    many = Profile(name="s", type="m", host="a", port=1, options={"hosts": " ".join(f"h{at}" for at in range(17))})
    with pytest.raises(ValueError, match="17 hosts"):
        _ = many.endpoints
