"""What a driver's process may reach, decided without a process: hosts, ports, addresses and grants."""

from __future__ import annotations

import errno
import json
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from dragoman.sandbox.launch import Launch
from dragoman.sandbox.reach import address_resolver
from dragoman.sandbox.reach.address_resolver import AddressResolver, NearerError, Place
from dragoman.sandbox.reach.broker import Broker
from dragoman.sandbox.reach.grants import granted
from dragoman_registry.ip_addresses import Nearness
from dragoman_worker.frames import FrameReader
from dragoman_worker.wire import BROKER_FRAME, BrokerReply, Lookup, Open, SocketRefused, decoder, pack

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    reach = resolver((("a.example", 1), ("b.example", 2)), (("c.example", 3),))
    pairs = [(host, port) for host in "abc" for port in (1, 2, 3)]
    assert [pair for pair in pairs if reach.allows(f"{pair[0]}.example", pair[1])] == [("a", 1), ("b", 2), ("c", 3)]


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
    answering(monkeypatch, "10.0.0.1")
    assert found(await resolver(OWN, (("cdn.example", 443),)).find("cdn.example")) == ["10.0.0.1"]
    both = resolver((("cdn.example", 443),), (("cdn.example", 443),))
    answering(monkeypatch, "127.0.0.1")
    assert found(await both.find("cdn.example")) == ["127.0.0.1"]


async def test_an_endpoint_of_credentials_is_reached_only_as_an_address_that_was_typed(monkeypatch: pytest.MonkeyPatch):
    answering(monkeypatch, "169.254.169.254")
    with pytest.raises(NearerError) as caught:
        await resolver().find("db.example")
    assert (caught.value.now, caught.value.before) == (None, None)
    assert "credential" in str(caught.value)
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


# the broker -----------------------------------------------------------------------------------------------------------


class Desk:
    """A broker and the child's end of its socket."""

    def __init__(self, reach: AddressResolver) -> None:
        self.denied: list[tuple[str, int | None]] = []
        self.faults: list[str] = []
        self.nearer: list[tuple[str, int | None]] = []
        self.child, self.host = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.child.setblocking(False)
        self.broker = Broker(
            self.host, reach, pid=0, on_denied=lambda host, port: self.denied.append((host, port)),
            on_nearer=lambda error, port: self.nearer.append((error.host, port)), on_fault=self.faults.append,
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
    file: Any = json  # any object stands for a named file here: it is passed on as it is
    assert granted(launch, ["fs:read=cert", "fs:read=other"], files={"cert": file}).files == (file,)


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
