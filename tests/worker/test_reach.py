"""What a driver's process may reach, decided without a process: hosts, ports, addresses and grants."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from contextlib import asynccontextmanager, closing
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from dragoman.sandbox.launch import Launch, granted
from dragoman.sandbox.reach import address_resolver, broker
from dragoman.sandbox.reach.address_resolver import AddressResolver, NearerError, Place
from dragoman.sandbox.reach.broker import Broker
from dragoman_registry.ip_addresses import Nearness
from dragoman_worker.channel import FrameReader
from dragoman_worker.wire import BROKER_FRAME, BrokerReply, Families, Lookup, Open, Opened, SocketRefused, decoder, pack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

OWN = (("db.example", 9200),)


def resolver(own: Any = OWN, further: Any = (), **remembered: Nearness) -> AddressResolver:
    return AddressResolver(own, further, remembered=dict(remembered))


@pytest.mark.parametrize("host", ["db.example", "DB.Example", "db.example."])
def test_the_approved_host_is_reached_at_its_port_alone(host: str):
    reach = resolver()
    assert reach.allows(host, 9200)
    assert reach.allows(host, None)
    for port in (9201, 9199, 0, 443):
        assert not reach.allows(host, port)


@pytest.mark.parametrize(
    "host",
    [
        "evil.db.example", "x.evil.db.example", "evildb.example", "db.example.evil", "db.exampl", "b.example",
        "*.db.example", "*", "", ".db.example", "db.example..", "db_example", "db.example\x00", "db.example/x",
        "user@db.example", "example", "db.example:9200", "[db.example]",
    ],
)  # fmt: skip
def test_no_name_around_the_approved_one_is_reached(host: str):
    """Such as `*.approved-host`: its owner is somebody else, or its label carries data to a name server."""
    assert not resolver().allows(host, 9200)
    assert not resolver().allows(host, None)


def test_hosts_and_ports_of_several_endpoints_are_not_mixed():
    endpoints = [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
    own, further = [(f"{host}.example", port) for host, port in endpoints[:2]], [("c.example", 3), ("d.example", 4)]
    pairs = [(host, port) for host in "abcd" for port in (1, 2, 3, 4)]
    assert [pair for pair in pairs if resolver(own, further).allows(f"{pair[0]}.example", pair[1])] == endpoints


def answering(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    asked: list[str] = []

    async def look_up(name: str) -> list[Place]:
        asked.append(name)
        families = [socket.AF_INET6 if ":" in each else socket.AF_INET for each in addresses]
        return [Place(family, (each, 0)) for family, each in zip(families, addresses, strict=True)]

    monkeypatch.setattr(address_resolver, "_look_up", look_up)
    return asked


def found(places: Iterable[Place]) -> list[str]:
    return [str(place.ip) for place in places]


async def test_a_remembered_host_leads_no_nearer_than_before(monkeypatch: pytest.MonkeyPatch):
    answering(monkeypatch, "127.0.0.1", "10.0.0.1", "93.184.216.34")
    for before, expected in (
        (Nearness.PUBLIC, ["93.184.216.34"]),
        (Nearness.PRIVATE, ["10.0.0.1", "93.184.216.34"]),
        (Nearness.LOOPBACK, ["127.0.0.1", "10.0.0.1", "93.184.216.34"]),
    ):
        reach = AddressResolver(OWN, remembered={"db.example": before})
        assert found(await reach.find("db.example")) == expected
    assert len(await resolver().find("db.example")) == 3


async def test_a_host_of_a_manifest_is_not_this_machine(monkeypatch: pytest.MonkeyPatch):
    answering(monkeypatch, "127.0.0.1")
    reach = resolver(OWN, (("cdn.example", 443),))
    assert found(await reach.find("db.example")) == ["127.0.0.1"]
    with pytest.raises(NearerError) as caught:
        await reach.find("cdn.example")
    assert (caught.value.host, caught.value.address, caught.value.errno) == ("cdn.example", "127.0.0.1", errno.EACCES)
    assert (caught.value.now, caught.value.before) == (Nearness.LOOPBACK, None)
    assert caught.value.strerror == "cdn.example leads to 127.0.0.1, this machine itself"
    answering(monkeypatch, "10.0.0.1")
    assert found(await resolver(OWN, (("cdn.example", 443),)).find("cdn.example")) == ["10.0.0.1"]
    both = resolver((("cdn.example", 443),), (("cdn.example", 443),))
    answering(monkeypatch, "127.0.0.1")
    assert found(await both.find("cdn.example")) == ["127.0.0.1"]


async def test_an_endpoint_of_credentials_is_reached_only_as_an_address_that_was_typed(monkeypatch: pytest.MonkeyPatch):
    answering(monkeypatch, "169.254.169.254")
    for before in (None, Nearness.LOOPBACK):
        with pytest.raises(NearerError) as caught:
            await AddressResolver(OWN, remembered={"db.example": before} if before else None).find("db.example")
        assert (caught.value.now, caught.value.before) == (None, before)
        assert caught.value.strerror == "db.example leads to 169.254.169.254, a cloud's credential endpoint"
    assert found(await resolver((("169.254.169.254", 80),)).find("169.254.169.254")) == ["169.254.169.254"]


async def test_an_answer_is_kept_for_ten_seconds_and_forgotten_on_request(monkeypatch: pytest.MonkeyPatch):
    asked = answering(monkeypatch, "93.184.216.34")
    now = 100.0
    monkeypatch.setattr(anyio, "current_time", lambda: now)
    reach = resolver()
    await reach.find("DB.example")
    now = 109.9
    await reach.find("db.example.")
    assert asked == ["db.example"]
    now = 110.0
    await reach.find("db.example")
    assert len(asked) == 2
    reach.forget_answer("DB.example")
    await reach.find("db.example")
    assert len(asked) == 3


async def test_what_was_reached_first_is_remembered_and_an_address_is_not(monkeypatch: pytest.MonkeyPatch):
    private, public = (Place(socket.AF_INET, (each, 0)) for each in ("10.0.0.1", "93.184.216.34"))
    reach = resolver((*OWN, ("10.0.0.1", 1)))
    reach.note("DB.example.", private)
    reach.note("db.example", public)
    reach.note("10.0.0.1", private)
    assert reach.remembered == {"db.example": Nearness.PRIVATE}
    assert private.ip == ip_address("10.0.0.1")


async def test_a_name_that_no_lookup_can_spell_is_a_failed_lookup():
    with pytest.raises(socket.gaierror) as caught:
        await address_resolver._look_up("ä" * 64)
    assert caught.value.errno == socket.EAI_NONAME
    assert await address_resolver._look_up("127.0.0.1") == [Place(socket.AF_INET, ("127.0.0.1", 0))]


# the broker -----------------------------------------------------------------------------------------------------------


class Desk:
    """A broker and the child's end of its socket."""

    def __init__(self, reach: AddressResolver, **options: Any) -> None:
        self.denied: list[tuple[str, int | None]] = []
        self.faults: list[str] = []
        self.nearer: list[tuple[str, int | None]] = []
        self.child, self.host = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.child.setblocking(False)
        self.broker = Broker(
            self.host, reach, on_denied=lambda host, port: self.denied.append((host, port)),
            on_nearer=lambda error, port: self.nearer.append((error.host, port)), on_fault=self.faults.append,
            **options,
        )  # fmt: skip


def test_grants_add_to_what_a_process_may_do_and_nothing_else():
    launch = Launch(driver="a:B", trees=(), approved=OWN)
    assert granted(launch, ["net:connection", "secrets:connection", "unheard-of=1"]) == launch
    made = granted(launch, ["net:host=a.example,b.example:8443", "memory=512MiB", "cpu=30s"])
    assert made.further == (("a.example", 443), ("b.example", 8443))
    assert (made.approved, made.memory, made.cpu, made.files) == (OWN, 512 << 20, 30, ())
    twice = granted(made, ["net:host=c.example:1"])
    assert twice.further == (*made.further, ("c.example", 1))
    assert granted(launch, ["fs:read=cert"], files={}) == launch
    cert: Any = json  # any objects stand for named files here: they are passed on as they are
    key: Any = os
    permissions = ["fs:read=cert", "fs:read=other", "fs:read=key"]
    assert granted(launch, permissions, files={"cert": cert, "key": key}).files == (cert, key)


@pytest.mark.parametrize("host", ["*.db.example", "evil.db.example", "db.example.evil"])
async def test_a_name_around_the_approved_one_is_denied_before_any_lookup(host: str, monkeypatch: pytest.MonkeyPatch):
    asked = answering(monkeypatch, "127.0.0.1")
    desk = Desk(resolver())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.broker.serve)
        reader, replies = FrameReader(limit=BROKER_FRAME), list[Any]()
        for request in (Open(1, host, 9200, 0), Lookup(2, host)):
            desk.child.sendall(pack(request))
        with anyio.fail_after(5):
            while len(replies) < 2:
                await anyio.sleep(0.01)
                try:
                    replies += map(decoder(BrokerReply).decode, reader.feed(desk.child.recv(65_536)))
                except BlockingIOError:
                    continue
        desk.child.close()
    desk.host.close()
    assert desk.denied == [(host, 9200), (host, None)]
    assert asked == []
    assert (desk.faults, desk.nearer) == ([], [])
    assert [(type(each), each.id, each.errno) for each in replies] == [
        (SocketRefused, 1, errno.EACCES), (SocketRefused, 2, errno.EACCES),
    ]  # fmt: skip


@asynccontextmanager
async def served(reach: AddressResolver, **options: Any) -> AsyncIterator[Desk]:
    """Serve a child that this test plays; afterwards the child is gone, and serving has ended by itself."""
    desk = Desk(reach, **options)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.broker.serve)
        try:
            yield desk
        finally:
            desk.child.close()
    desk.host.close()


async def answers(desk: Desk, number: int) -> dict[int, Any]:
    """Return so many replies by the number of their request; a connected socket stands beside its own."""
    reader, replies = FrameReader(limit=BROKER_FRAME), dict[int, Any]()
    with anyio.fail_after(5):
        while len(replies) < number:
            try:
                data, passed, *_ = socket.recv_fds(desk.child, 65_536, 1)
            except BlockingIOError:
                await asyncio.sleep(0.005)
                continue
            assert data, "the broker has ended"
            for reply in map(decoder(BrokerReply).decode, reader.feed(data)):
                replies[reply.id] = (reply, socket.socket(fileno=passed.pop())) if isinstance(reply, Opened) else reply
    return replies


def listening() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    return listener


async def test_a_lookup_tells_each_family_once_in_the_order_of_the_addresses(monkeypatch: pytest.MonkeyPatch):
    for addresses, families in (
        (("2001:db8::1", "93.184.216.34", "2001:db8::2"), (socket.AF_INET6, socket.AF_INET)),
        (("93.184.216.34", "2001:db8::1"), (socket.AF_INET, socket.AF_INET6)),
    ):
        answering(monkeypatch, *addresses)
        async with served(resolver()) as desk:
            desk.child.sendall(pack(Lookup(7, "db.example")))
            assert await answers(desk, 1) == {7: Families(7, families)}


async def test_over_a_route_only_the_hosts_of_a_manifest_are_looked_up_here(monkeypatch: pytest.MonkeyPatch):
    asked = answering(monkeypatch, "2001:db8::1")
    async with served(resolver(OWN, (("cdn.example", 443),)), connector=object()) as desk:
        desk.child.sendall(pack(Lookup(1, "db.example")) + pack(Lookup(2, "cdn.example")))
        assert await answers(desk, 2) == {1: Families(1, (socket.AF_INET,)), 2: Families(2, (socket.AF_INET6,))}
    assert asked == ["cdn.example"]


@pytest.mark.parametrize("family", [0, socket.AF_INET, socket.AF_UNIX])
async def test_an_approved_host_is_reached_over_the_first_address_that_answers(
    monkeypatch: pytest.MonkeyPatch, family: int
):
    """In the family that was asked for; one that no network has leaves the choice to the host."""
    with closing(listening()) as listener, closing(listening()) as closed:
        port = listener.getsockname()[1]
        closed.close()
        addresses = ("::1", "127.0.0.1") if family == socket.AF_INET else ("127.0.0.1", "::1")
        answering(monkeypatch, *addresses)
        reach = resolver((("db.example", port),))
        async with served(reach) as desk:
            desk.child.sendall(pack(Open(1, "db.example", port, family)))
            reply, found = (await answers(desk, 1))[1]
            with found:
                assert reply == Opened(1)
                assert found.getpeername() == ("127.0.0.1", port)
        assert reach.remembered == {"db.example": Nearness.LOOPBACK}
        assert (desk.denied, desk.faults, desk.nearer) == ([], [], [])


async def test_a_host_that_answers_nowhere_is_told_with_the_last_reason_and_looked_up_again(
    monkeypatch: pytest.MonkeyPatch,
):
    with closing(listening()) as listener:
        port = listener.getsockname()[1]
    asked = answering(monkeypatch, "127.0.0.1")
    reach = resolver((("db.example", port),))
    async with served(reach) as desk:
        for number, family, expected in (
            (1, 0, errno.ECONNREFUSED),
            (2, socket.AF_INET6, errno.EHOSTUNREACH),  # it has no such address
            (3, socket.AF_INET, errno.ECONNREFUSED),
        ):
            desk.child.sendall(pack(Open(number, "db.example", port, family)))
            reply = (await answers(desk, 1))[number]
            assert isinstance(reply, SocketRefused)
            assert reply.errno == expected
            assert reply.reason == os.strerror(expected) or "Connect call failed" in reply.reason
            assert len(asked) == number
    assert reach.remembered == {}


async def test_more_requests_than_run_at_once_are_all_answered(monkeypatch: pytest.MonkeyPatch):
    """Whatever became of those before."""
    answering(monkeypatch, "127.0.0.1")
    reach = AddressResolver((("db.example", 1),), remembered={"db.example": Nearness.PUBLIC})
    async with served(reach) as desk:
        for number in range(30):
            desk.child.sendall(pack(Lookup(number, "db.example") if number % 2 else Open(number, "db.example", 1, 0)))
        replies = await answers(desk, 30)
    assert {each.errno for each in replies.values()} == {errno.EACCES}
    assert {each.reason for each in replies.values()} == {
        "db.example leads to 127.0.0.1, this machine itself; it led to a public address before"
    }
    assert sorted(desk.nearer, key=str) == [("db.example", 1)] * 15 + [("db.example", None)] * 15
    assert desk.faults == []


async def test_a_failed_lookup_has_a_negative_number_and_a_slow_one_ends(monkeypatch: pytest.MonkeyPatch):
    failing: list[Any] = [socket.gaierror(socket.EAI_NONAME, "no such name"), OSError("odd"), None]

    async def look_up(name: str) -> list[Place]:
        error = failing.pop(0)
        if error is None:
            await asyncio.sleep(60)
        raise error

    monkeypatch.setattr(address_resolver, "_look_up", look_up)
    monkeypatch.setattr(broker, "_CONNECT_SECONDS", 0.05)
    async with served(resolver()) as desk:
        for number in range(3):
            desk.child.sendall(pack(Lookup(number, "db.example")))
        replies = await answers(desk, 3)
    assert replies == {
        0: SocketRefused(0, -abs(socket.EAI_NONAME), "no such name"),
        1: SocketRefused(1, errno.EHOSTUNREACH, "odd"),
        2: SocketRefused(2, errno.ETIMEDOUT, "no connection within 0.05 s"),
    }


async def test_a_child_that_asks_for_too_much_waits_for_the_next_minute(monkeypatch: pytest.MonkeyPatch):
    now, slept = 1_000.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds

    monkeypatch.setattr(anyio, "current_time", lambda: now)
    monkeypatch.setattr(anyio, "sleep", sleep)
    monkeypatch.setattr(broker, "_PER_MINUTE", 3)
    async with served(resolver()) as desk:
        for number, (passed, waited) in enumerate(
            [(0, 0), (10, 0), (10, 0), (20, 20), (0, 0), (0.5, 0), (0, 0), (0, 0), (0, 60)]
        ):
            now, slept[:] = now + passed, []
            desk.child.sendall(pack(Lookup(number, "evil.example")))
            await answers(desk, 1)
            assert sum(slept) == waited, number
    assert len(desk.denied) == 9


@pytest.mark.parametrize("sent", [b"\xff" * 64, b"\x00\x00\x00\x01\xc1"])
async def test_a_child_that_sends_no_requests_is_a_fault_and_is_served_no_more(sent: bytes):
    async with served(resolver()) as desk:
        desk.child.sendall(sent)
        with anyio.fail_after(5):
            while not desk.faults:
                await asyncio.sleep(0.005)
    [fault] = desk.faults
    assert fault.startswith("a malformed broker request: ")
