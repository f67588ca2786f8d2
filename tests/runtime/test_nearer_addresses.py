"""A saved name may move, yet never nearer to this machine than it led when a person first connected."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import anyio
import pytest

import wheelhouse
from dragoman.connections.saved_connections import SavedConnection
from dragoman_api.errors import ConfigurationError, ConnectionFailedError, PermissionDeniedError
from fake_network import CODE, Names
from slow_cases import mostly_slow

PUBLIC, OTHER_PUBLIC, PRIVATE, OTHER_PRIVATE = "8.8.8.8", "9.9.9.9", "10.0.0.7", "192.168.1.9"
LINK_LOCAL, LOOPBACK, METADATA = "169.254.7.7", "127.0.0.1", "169.254.169.254"
HOST = "es.example"
FORM = [*wheelhouse.manifest()["form"], {"name": "hosts", "label": "More Hosts", "advanced": True}]


@pytest.fixture
def names(monkeypatch) -> Names:
    """Make up what names lead to."""
    return Names(monkeypatch)


@pytest.fixture
async def port():
    """Yield the port of a server that says hello, wherever it is reached."""

    async def greet(stream):
        async with stream:
            await stream.send(b"hello\n")

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, greet)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


@pytest.fixture
async def place(make_runtime, names, port):
    """Open a connection whose name leads somewhere; yield what was asked and tried."""
    asked, runtimes = [], []

    class Place:
        """A home with one connection."""

        answer = None
        permissions = ()

        @asynccontextmanager
        async def opened(self, *addresses, host=HOST, permissions=(), hosts=""):
            names.answers[host], names.tried[:] = list(addresses), []

            async def confirm(question):
                asked.append(question)
                return self.answer

            driver = wheelhouse.Driver(
                code=CODE, hooks=["connect", "describe_object"],
                permissions=["net:connection", "secrets:connection", *permissions], form=FORM,
            )  # fmt: skip
            if not runtimes:
                runtimes.append(make_runtime(driver, installed=True))
                saved = SavedConnection(name="demo", type="demo", values={"host": host, "port": port, "hosts": hosts})
                runtimes[0].connections.save(saved, replace=True)
            from dragoman.runtime import Runtime

            async with Runtime(spare=False, confirm=None if self.answer is None else confirm) as runtime:
                runtime.seen = []
                runtime.add_sink(runtime.seen.append)
                self.runtime = runtime
                async with runtime.open("demo") as session:
                    yield session

        async def open(self, *addresses, **options):
            async with self.opened(*addresses, **options):
                return list(names.tried)

        async def refused(self, *addresses, **options):
            with pytest.raises(PermissionDeniedError) as caught:
                await self.open(*addresses, **options)
            assert caught.value.code == "address-refused"
            return caught.value

        async def save(self, name="demo", **values):
            connections = self.runtime.connections
            before = connections.get("demo").values
            saved = SavedConnection(name=name, type="demo", values={**before, **values})
            await anyio.to_thread.run_sync(lambda: connections.save(saved, replace=True))

    made = Place()
    made.asked, made.names = asked, names
    return made


@pytest.mark.parametrize(
    ("first", "later"),
    mostly_slow(
        [
            (PUBLIC, LOOPBACK),
            (PUBLIC, LINK_LOCAL),
            (PUBLIC, PRIVATE),
            (PUBLIC, "::ffff:127.0.0.1"),
            (PRIVATE, LOOPBACK),
            (LINK_LOCAL, LOOPBACK),
        ],
        fast=[(PUBLIC, "::ffff:127.0.0.1")],
    ),
)
async def test_a_name_that_leads_nearer_than_at_first_is_refused_before_anything_is_sent(place, first, later):
    assert await place.open(first) == [first]
    error = await place.refused(later)
    assert place.names.tried == []
    assert f"{HOST} leads to {later}" in error.message
    assert "nothing was sent there" in error.message
    assert error.hint.splitlines()[0] == f"dragoman connections edit demo --host {HOST}"
    [denied] = {(each.host, each.address) for each in place.runtime.seen if each.name == "connection.denied"}
    assert denied == (HOST, later)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "later"),
    mostly_slow(
        [
            (PRIVATE, OTHER_PRIVATE),
            (PUBLIC, OTHER_PUBLIC),
            (PRIVATE, "100.64.0.9"),
            (PRIVATE, PUBLIC),
            (LOOPBACK, PRIVATE),
            (LOOPBACK, LOOPBACK),
        ],
        fast=[(PRIVATE, PUBLIC)],
    ),
)
async def test_a_name_may_move_within_its_class_and_away(place, first, later):
    await place.open(first)
    assert await place.open(later) == [later]
    assert await place.open(first) == [first], "a laptop comes home again"


@pytest.mark.parametrize("address", mostly_slow([METADATA, "168.63.129.16", "fd00:ec2::254"], fast=[METADATA]))
async def test_a_name_never_leads_to_where_a_cloud_gives_out_credentials(place, address):
    place.answer = True
    error = await place.refused(address, host="metadata.google.internal")
    assert (place.names.tried, place.asked) == ([], [])
    assert error.details["now"] == "metadata"
    assert "address itself, as Host" in error.hint


@pytest.mark.slow
async def test_such_an_address_is_reached_where_a_person_entered_it(place):
    assert await place.open(METADATA, host=METADATA) == [METADATA]
    assert await place.open(METADATA, host=METADATA) == [METADATA]


@pytest.mark.parametrize(
    "host",
    mostly_slow(
        ["2852039166", "0xa9.0xfe.0xa9.0xfe", "::ffff:169.254.169.254", "169.254.169.254."], fast=["2852039166"]
    ),
)
async def test_another_spelling_of_it_is_not_entering_it(place, host):
    place.names.answers["::ffff:169.254.169.254"] = ["::ffff:169.254.169.254"]
    place.names.answers[METADATA] = [METADATA]
    assert (await place.refused(METADATA, host=host)).details["now"] == "metadata"
    assert place.names.tried == []


@pytest.mark.slow
async def test_of_a_mixed_answer_only_what_is_not_nearer_is_used(place):
    await place.open(PUBLIC)
    place.names.dead.add(OTHER_PUBLIC)
    with pytest.raises(ConnectionFailedError):
        await place.open(LOOPBACK, OTHER_PUBLIC, METADATA, PRIVATE)
    assert place.names.tried == [OTHER_PUBLIC]
    assert await place.open(LOOPBACK, PUBLIC) == [PUBLIC]


@pytest.mark.slow
async def test_a_person_who_agrees_is_not_asked_again(place):
    await place.open(PUBLIC)
    place.answer = True
    assert await place.open(LOOPBACK) == [LOOPBACK]
    [question] = place.asked
    assert question.subject == "address"
    assert "this machine itself; it led to a public address before" in question.details[0]
    assert await place.open(LOOPBACK) == [LOOPBACK]
    assert len(place.asked) == 1


@pytest.mark.slow
async def test_a_person_who_does_not_agree_is_told_and_nothing_changes(place):
    await place.open(PUBLIC)
    place.answer = False
    for _ in range(2):
        await place.refused(LOOPBACK)
    assert len(place.asked) == 2
    assert place.names.tried == []


@pytest.mark.slow
async def test_what_is_remembered_belongs_to_one_connection_and_one_host(place):
    await place.open(PUBLIC)
    await place.refused(LOOPBACK)
    await place.save(host="moved.example")
    assert await place.open(LOOPBACK, host="moved.example") == [LOOPBACK]
    await place.save(host=HOST)
    await place.refused(LOOPBACK)


@pytest.mark.slow
async def test_what_is_remembered_goes_with_the_connection(place):
    await place.open(PUBLIC)
    saved = place.runtime.connections.get("demo")
    place.runtime.connections.remove("demo")
    place.runtime.connections.save(saved)
    assert await place.open(LOOPBACK) == [LOOPBACK]


@pytest.mark.slow
async def test_a_connection_that_failed_is_no_first_one(place):
    place.names.dead.add(PUBLIC)
    with pytest.raises(ConnectionFailedError):
        await place.open(PUBLIC)
    assert await place.open(LOOPBACK) == [LOOPBACK]


async def test_a_name_that_moves_while_it_is_open_is_refused_too(place, port, monkeypatch):
    monkeypatch.setattr("dragoman.sandbox.reach.address_resolver._FRESH", 0.0)
    async with place.opened(PUBLIC) as session:
        place.names.answers[HOST] = [LOOPBACK]
        with pytest.raises(ConnectionFailedError, match=rf"{HOST} leads to 127\.0\.0\.1, this machine"):
            await session.describe(f"{HOST} {port}")
        assert place.names.tried == [PUBLIC]
        place.names.answers[HOST] = [OTHER_PUBLIC]
        await session.describe(f"{HOST} {port}")


@pytest.mark.slow
async def test_a_home_that_cannot_be_written_is_told_and_does_not_hold_up(place, monkeypatch):
    from dragoman.sandbox.reach.address_history import AddressHistory

    def full(*_):
        raise OSError(28, "No space left on device")

    await place.open(PUBLIC)
    await place.save(host="new.example")
    monkeypatch.setattr(AddressHistory, "note", full)
    async with place.opened(PRIVATE, host="new.example") as session:
        assert any(
            "address of its host cannot be recorded" in each and "[Errno 28]" in each for each in session.warnings
        )


@pytest.mark.slow
async def test_a_damaged_memory_is_told_with_the_remedy(place):
    await place.open(PUBLIC)
    path = place.runtime.paths.data / "reached.json"
    assert json.loads(path.read_text()) == {"demo": {HOST: "public"}}
    for data in (b'{"demo": {"es.example": "near"}}', b"{", b"[]", b'{"\xb2": {}}', b'{"a":' * 5_000):
        path.write_bytes(data)
        with pytest.raises(ConfigurationError, match=r"reached\.json cannot be read") as caught:
            await place.open(LOOPBACK)
        assert caught.value.code == "state-damaged"
        assert "remove" in caught.value.hint


@pytest.mark.slow
async def test_the_hosts_of_a_manifest_lead_to_this_machine_only_where_a_person_agrees(place, port):
    further = f"login.example:{port}"
    place.names.answers["login.example"] = [LOOPBACK]
    async with place.opened(PUBLIC, permissions=[f"net:host={further}"]) as session:
        with pytest.raises(ConnectionFailedError, match=r"login\.example leads to 127\.0\.0\.1"):
            await session.describe(f"login.example {port}")
        assert place.names.tried == [PUBLIC]
    place.names.answers["login.example"] = [PRIVATE]
    async with place.opened(PUBLIC) as session:
        await session.describe(f"login.example {port}")
        assert place.names.tried == [PUBLIC, PRIVATE]


async def test_further_hosts_of_the_connection_are_reached_at_their_ports_and_no_others_are(place, port):
    place.names.answers |= {"two.example": [PRIVATE], "three.example": [PRIVATE]}
    async with place.opened(PUBLIC, hosts=f"two.example:{port}, three.example:1") as session:
        await session.describe(f"two.example {port}")
        for elsewhere in (f"three.example {port}", f"four.example {port}", "two.example 1"):
            with pytest.raises(ConnectionFailedError, match="does not allow"):
                await session.describe(elsewhere)
        assert place.names.tried == [PUBLIC, PRIVATE]
        assert "four.example" not in place.names.looked_up


@pytest.mark.slow
async def test_what_is_remembered_holds_for_each_host_of_a_connection(place, port):
    place.names.answers["two.example"] = [PUBLIC]
    async with place.opened(PUBLIC, hosts=f"two.example:{port}") as session:
        await session.describe(f"two.example {port}")
    known = await anyio.to_thread.run_sync(place.runtime.connections.reached.of, "demo")
    assert known.keys() == {HOST, "two.example"}
    place.names.answers["two.example"] = [LOOPBACK]
    async with place.opened(PUBLIC) as session:
        with pytest.raises(ConnectionFailedError, match=r"two\.example leads to 127\.0\.0\.1"):
            await session.describe(f"two.example {port}")
        assert place.names.tried == [PUBLIC]


@pytest.mark.parametrize("address", [METADATA])
async def test_a_further_host_never_leads_to_where_a_cloud_gives_out_credentials(place, port, address):
    place.names.answers["two.example"] = [address]
    async with place.opened(PUBLIC, hosts=f"two.example:{port}") as session:
        with pytest.raises(ConnectionFailedError, match="a cloud's credential endpoint"):
            await session.describe(f"two.example {port}")
        assert place.names.tried == [PUBLIC]
