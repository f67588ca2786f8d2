"""What the attacks aim at: files, servers and secrets that are really there."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import sysconfig
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

WELCOME = b"HTTP/1.0 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nwelcome"


def lay_out(folder: Path, secret: str) -> dict[str, str]:
    """Make a user's home with secrets in it, and a directory where every user may write."""
    home, scratch = folder / "home", folder / "scratch"
    scratch.mkdir()
    scratch.chmod(0o777)
    paths = {"key": home / ".ssh/id_ed25519", "foreign": home / "secrets.toml", "spoil": home / "notes.txt"}
    paths["other_driver"] = folder / "store/other/driver.py"
    for path in paths.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{secret}\n")
        path.chmod(0o600)
    (home / "link").symlink_to(paths["key"])
    return {
        **{name: str(path) for name, path in paths.items()},
        "link": str(home / "link"),
        "home": str(home),
        "scratch": str(scratch),
        "unix": str(scratch / "stream"),
        "unix_datagrams": str(scratch / "datagrams"),
        "abstract": f"dragoman-{os.getpid()}",
    }


def lying_around() -> list[str]:
    """Name files that this host can read and no driver needs."""
    needed = (*map(sysconfig.get_path, ("stdlib", "platstdlib")), sys.prefix, "/etc/ssl", "/etc/localtime")
    found: list[str] = []
    python = f"/etc/python{sys.version_info.major}.{sys.version_info.minor}"  # Debian's library links into it
    for top in (python, "/etc", "/home", "/opt", "/root", "/srv", "/usr/bin", "/usr/share/doc", "/var"):
        walk = (f"{folder}/{name}" for folder, _, names in os.walk(top) for name in names)
        readable = (path for path in walk if not path.startswith(needed) and os.access(path, os.R_OK))
        found += islice((path for path in readable if os.path.isfile(path)), 40)  # noqa: PTH113 - thousands of them
    return found


@contextmanager
def inherited(path: str) -> Iterator[None]:
    """Hold a file open in a way that programs inherit."""
    descriptor = os.open(path, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        yield
    finally:
        os.close(descriptor)


async def _welcome(reader: StreamReader, writer: StreamWriter) -> None:
    """Greet every client, even one that does not speak first."""
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(0.05):
            await reader.read(1000)
    with suppress(OSError):
        writer.write(WELCOME)
        await writer.drain()
        writer.close()


class _Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, address: object) -> None:
        if address:
            self._transport.sendto(b"welcome", address)  # type: ignore[attr-defined]


@asynccontextmanager
async def serving(targets: dict[str, str]) -> AsyncIterator[SimpleNamespace]:
    """Serve the approved endpoint and everything that must not be reached; give their ports."""
    loop = asyncio.get_running_loop()
    other = socket.create_server(("127.0.0.1", 0))
    other.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 5)
    other_port = other.getsockname()[1]

    async def approved(reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            if b"/redirect" in await reader.readline():
                location = f"Location: http://127.0.0.1:{other_port}/\r\nContent-Length: 0\r\n\r\n"
                writer.write(f"HTTP/1.1 302 Found\r\n{location}".encode())
            await reader.read()
            writer.close()

    async with AsyncExitStack() as stack:
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0" + targets["abstract"])
        abstract.listen()
        servers = [
            await asyncio.start_server(_welcome, sock=other),
            await asyncio.start_server(_welcome, "127.0.0.2", other_port),
            await asyncio.start_unix_server(_welcome, targets["unix"]),
            await asyncio.start_unix_server(_welcome, sock=abstract),
            await asyncio.start_server(approved, "127.0.0.1", 0),
        ]
        for server in servers:
            stack.callback(server.close)
        udp, _ = await loop.create_datagram_endpoint(_Echo, local_addr=("127.0.0.1", 0))
        path: Any = targets["unix_datagrams"]
        datagrams, _ = await loop.create_datagram_endpoint(_Echo, local_addr=path, family=socket.AF_UNIX)
        stack.callback(udp.close)
        stack.callback(datagrams.close)
        yield SimpleNamespace(
            port=servers[-1].sockets[0].getsockname()[1],
            other_port=other_port,
            other_host="127.0.0.2",
            udp_port=udp.get_extra_info("sockname")[1],
        )
