"""The broker: the connection's host and port can be reached, nothing else, and nothing else is even looked up."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import ssl
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from anyio.streams.tls import TLSStream

from dragoman.sandbox.reach.broker import Broker
from dragoman_api.columns import ObjectsRequest
from dragoman_api.errors import DriverFaultError
from dragoman_worker.channel import FrameReader
from dragoman_worker.wire import Pipe, decoder
from fake_network import Names

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.worker.conftest import Workshop

    from dragoman.sandbox.reach.address_resolver import AddressResolver

CLIENT = """
async def attempt(name):
    host, port = json.loads(name)
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return [type(error).__name__, error.errno]
    writer.write(b"ping")
    text = (await reader.read(100)).decode()
    peer = writer.get_extra_info("peername")
    writer.close()
    return [text, list(peer)]

class Driver:
    @hookimpl
    async def connect(self, profile, http):
        self.http = http
        return Server("x")

    @hookimpl
    async def describe_object(self, name):
        return Description(object=name, columns=[], structure=json.dumps(await attempt(name)))

    @hookimpl
    async def list_objects(self, request):
        response = await self.http.request("GET", "/hello")
        return ObjectList(objects=[Object(response.text, response.status)])
"""


@asynccontextmanager
async def server(host: str = "127.0.0.1", *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Answer `ping` with `pong`, and HTTP with a page."""

    async def serve(raw: Any) -> None:
        async with raw:  # the test may end amid a handshake
            with suppress(ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream):  # it may end without a word
                await answer(raw if tls is None else await TLSStream.wrap(raw, ssl_context=tls))

    async def answer(stream: Any) -> None:
        request = await stream.receive()
        http = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        await stream.send(http if request.startswith(b"GET") else b"pong")

    listener = await anyio.create_tcp_listener(local_host=host)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


async def ask(worker: Any, host: str, port: int) -> Any:
    return json.loads((await worker.call("describe_object", json.dumps([host, port]))).structure)


async def test_the_approved_pair_is_reached_by_name_and_by_address(workshop: Workshop) -> None:
    async with (
        server() as port,
        workshop.worker(CLIENT, approved=(("LocalHost.", port), ("127.0.0.1", port))) as worker,
    ):
        assert (await ask(worker, "localhost", port))[0] == "pong"
        assert await ask(worker, "127.0.0.1", port) == ["pong", ["127.0.0.1", port]]
    assert workshop.denied == []


async def test_an_ipv6_server_is_reached_and_its_address_is_readable(workshop: Workshop) -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback here")
    async with server("::1") as port, workshop.worker(CLIENT, approved=(("::1", port), ("localhost", port))) as worker:
        assert (await ask(worker, "::1", port))[1][:2] == ["::1", port]


async def test_the_http_helper_works_through_it(workshop: Workshop) -> None:
    async with (
        server() as port,
        workshop.worker(CLIENT, approved=(("localhost", port),), host="localhost", port=port) as worker,
    ):
        await worker.call("connect")
        [page] = await worker.call("list_objects", ObjectsRequest())
        assert (page.name, page.rows) == ("hello", 200)


async def test_other_ports_and_hosts_are_denied_and_named(workshop: Workshop) -> None:
    start = workshop.worker
    async with server() as port, server() as other, start(CLIENT, approved=(("127.0.0.1", port),)) as worker:
        for host, number in (("127.0.0.1", other), ("127.0.0.2", port), ("localhost", port), ("::1", port)):
            assert await ask(worker, host, number) == ["PermissionError", errno.EACCES]
        assert (await ask(worker, "127.0.0.1", port))[0] == "pong"
    assert workshop.denied == [("127.0.0.1", other), ("127.0.0.2", port), ("localhost", port), ("::1", port)]


async def test_a_host_that_is_called_like_a_secret_is_told_masked(workshop: Workshop) -> None:
    async with workshop.worker(CLIENT, secrets={"password": "correct-horse"}) as worker:
        await ask(worker, "correct-horse.evil.example", 443)
    assert workshop.denied == [("***.evil.example", 443)]


async def test_no_lookup_is_made_for_a_name_that_is_not_approved(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    real = anyio.getaddrinfo

    async def spy(host: str, *arguments: Any, **options: Any) -> Any:
        looked_up.append(host)
        return await real(host, *arguments, **options)

    monkeypatch.setattr(anyio, "getaddrinfo", spy)
    async with server() as port, workshop.worker(CLIENT, approved=(("localhost", port),)) as worker:
        assert (await ask(worker, "the-password-is-hunter2.evil.example", port))[1] == errno.EACCES
        assert (await ask(worker, "localhost", port))[0] == "pong"
    assert set(looked_up) == {"localhost"}


async def test_a_failed_lookup_and_a_closed_port_say_which(workshop: Workshop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    async with workshop.worker(CLIENT, approved=(("no-such-host.invalid", 1), ("127.0.0.1", closed))) as worker:
        assert (await ask(worker, "no-such-host.invalid", 1))[0] == "gaierror"
        assert await ask(worker, "127.0.0.1", closed) == ["ConnectionRefusedError", errno.ECONNREFUSED]


async def test_sixty_connections_at_once_all_arrive(workshop: Workshop) -> None:
    source = CLIENT.replace(
        "await attempt(name)", "[r[0] for r in await asyncio.gather(*[attempt(name) for _ in range(60)])]"
    )
    async with server() as port, workshop.worker(source, approved=(("127.0.0.1", port),)) as worker:
        assert await ask(worker, "127.0.0.1", port) == ["pong"] * 60


@pytest.mark.parametrize(
    "junk", ["b'\\x00\\x00\\x00\\x00'", "b'\\xff\\xff\\xff\\xff'", "b'\\x02\\x00\\x00\\x00\\xc1\\xc1'"]
)
async def test_a_malformed_request_ends_the_child(workshop: Workshop, junk: str) -> None:
    body = f"socket.socket(fileno=os.dup(int(sys.argv[2]))).send({junk}); time.sleep(5)"
    async with workshop.attempting(body) as worker:
        with pytest.raises(DriverFaultError, match="malformed broker request"), anyio.fail_after(3):
            await worker.call("describe_object", "x")


async def test_a_child_that_does_not_read_its_refusals_is_ended(workshop: Workshop) -> None:
    body = """
    import msgspec
    body = msgspec.msgpack.encode({"t": "open", "id": 1, "host": "evil.example", "port": 1})
    request = len(body).to_bytes(4, "little") + body
    broker = socket.socket(fileno=os.dup(int(sys.argv[2])))
    broker.setblocking(True)
    while True:
        broker.sendall(request)
    """
    async with workshop.attempting(body) as worker:
        with pytest.raises(DriverFaultError, match="read no replies"), anyio.fail_after(20):
            await worker.call("describe_object", "x")


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Make up what names lead to."""
    return Names(monkeypatch)


async def test_what_is_compared_is_what_is_looked_up_and_connected_to(workshop: Workshop, names: Names) -> None:
    spellings = ("127.0.0.1.", "0x7f.1", "2130706433", "127.1", "0177.0.0.1")
    names.answers |= {spelling: ["10.0.0.7"] for spelling in spellings}
    async with server() as port, workshop.worker(CLIENT, approved=(("127.0.0.1", port),)) as worker:
        for spelling in spellings:
            assert (await ask(worker, spelling, port))[0] == "pong"
        assert set(names.tried) == {"127.0.0.1"}
        for other in ("::ffff:127.0.0.1", "127.0.0.1%2e", "127.0.0.1..", "[::1]", "localhost.", "127.0.0.1%lo"):
            assert await ask(worker, other, port) == ["PermissionError", errno.EACCES]
    assert set(names.tried) == {"127.0.0.1"}


async def test_a_connection_goes_to_what_the_lookup_before_it_found(workshop: Workshop, names: Names) -> None:
    class Rebinding(dict[str, list[str]]):
        def get(self, name: str, _default: Any = None) -> Any:
            return ["127.0.0.1"] if names.looked_up.count(name) == 1 else ["10.0.0.7"]

    names.answers = Rebinding()
    async with (
        server() as port,
        workshop.worker(CLIENT, approved=(("es.example", port),), host="es.example", port=port) as worker,
    ):
        await worker.call("connect")
        [page] = await worker.call("list_objects", ObjectsRequest())
        assert page.name == "hello"
    assert (names.looked_up, names.tried) == (["es.example"], ["127.0.0.1"])


async def test_where_nothing_answers_any_more_the_name_is_looked_up_again(workshop: Workshop, names: Names) -> None:
    names.answers["es.example"] = ["10.0.0.7"]
    async with server() as port, workshop.worker(CLIENT, approved=(("es.example", port),)) as worker:
        assert (await ask(worker, "es.example", port))[0] == "pong"
        names.dead.add("10.0.0.7")
        names.answers["es.example"] = ["10.0.0.8"]
        assert (await ask(worker, "es.example", port))[0] == "ConnectionRefusedError"
        assert (await ask(worker, "es.example", port))[0] == "pong"
    assert names.tried == ["10.0.0.7", "10.0.0.7", "10.0.0.8"]


@pytest.mark.parametrize("host", ["a" * 64 + ".invalid", "a..invalid", "nul\0.invalid"])
async def test_a_host_that_is_no_name_is_told_and_ends_nothing(workshop: Workshop, host: str) -> None:
    async with server() as port, workshop.worker(CLIENT, approved=((host, 1), ("127.0.0.1", port))) as worker:
        assert (await ask(worker, host, 1))[0] == "gaierror"
        assert (await ask(worker, "127.0.0.1", port))[0] == "pong"


async def test_the_write_end_of_a_pipe_arrives_with_the_number_of_its_call(tmp_path: Path) -> None:
    faults: list[str] = []
    host, child = socket.socketpair()
    with host, child, (tmp_path / "end").open("wb", buffering=0) as end:
        broker = Broker(
            host,
            cast("AddressResolver", None),
            on_denied=lambda *_: None,
            on_nearer=lambda *_: None,
            on_fault=faults.append,
        )
        broker.hand_over(7, end)
        data, [passed], *_ = socket.recv_fds(child, 1024, 1)
        os.write(passed, b"rows")
        os.close(passed)
        [body] = FrameReader(limit=1024).feed(data)
        assert decoder(Pipe).decode(body) == Pipe(7)
        assert (tmp_path / "end").read_bytes() == b"rows"
        for number in range(100_000):
            broker.hand_over(number, end)
            if faults:
                break
        assert faults == ["requests and read no replies"]
        child.close()
        broker.hand_over(8, end)
    assert len(faults) == 1


async def test_a_socket_that_gets_the_number_of_a_closed_brokers_can_be_watched_at_once() -> None:
    host, child = socket.socketpair()
    with host, child, socket.create_server(("127.0.0.1", 0)) as listening:
        broker = Broker(
            host,
            cast("AddressResolver", None),
            on_denied=lambda *_: None,
            on_nearer=lambda *_: None,
            on_fault=lambda _: None,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(broker.serve)
            await anyio.wait_all_tasks_blocked()
            number = host.fileno()
            broker.close()  # as when a driver's process ends while another driver connects
            with socket.socket() as following:
                assert following.fileno() == number
                following.settimeout(0)
                await asyncio.get_running_loop().sock_connect(following, listening.getsockname())
