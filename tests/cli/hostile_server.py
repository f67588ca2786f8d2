"""A database server that turns hostile when told to, in a process of its own: `python hostile_server.py KIND`.

A fake server behind it answers as a real one does. A line `{"attack": NAME, "on": TEXT}` on stdin has each request that
holds the text answered by the attack, and is answered with what was seen since the last line. Every attack ends by
itself.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
from yarl import URL

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Callable, Iterable, Iterator

SECRET = "hunter2-of-the-hostile-server"
SECONDS, BYTES = 40.0, 1 << 30  # after either, an endless attack ends
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
PLAIN = b"Content-Type: application/json\r\nX-Elastic-Product: Elasticsearch\r\n"
GZIP = b"Content-Encoding: gzip\r\n"
OK = b"HTTP/1.1 200 OK\r\n" + PLAIN
_OWN = ("content-length", "transfer-encoding", "connection", "date", "server")
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

Pieces = "Iterator[bytes | float]"
"""What an attack sends: bytes, and seconds to wait."""


def whole(body: bytes, *, status: bytes = b"200 OK", more: bytes = b"") -> bytes:
    """Make a whole answer."""
    return b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n%b\r\n" % (status, PLAIN, len(body), more) + body


def again(part: bytes, *, pause: float = 0) -> Pieces:
    """Send the same for ever."""
    while True:
        yield part
        if pause:
            yield pause


def then(first: bytes, rest: Pieces) -> Pieces:
    yield first
    yield from rest


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def bomb() -> Pieces:
    """Send 64 GiB of zeros, a thousandth of it on the wire."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield OK + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    zeros = bytes(1 << 20)
    for _ in range(64 << 10):
        if packed := packer.compress(zeros):
            yield chunk(packed)


def redirect(to: str, status: int = 302) -> Pieces:
    yield b"HTTP/1.1 %d Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (status, to.encode())


def failing(status: int, text: str, more: bytes = b"") -> Pieces:
    """Fail as both servers do: with an object, a list and a text in it."""
    error = {
        "type": text,
        "reason": text,
        "root_cause": [{"type": text, "reason": text, "index": text}],
        "message": text,
    }
    yield whole(json.dumps({"error": error, "status": status}).encode(), status=b"%d X" % status, more=more)


def attacks(canary: int) -> dict[str, Callable[[], Pieces]]:
    """Name every attack; `canary` is a port on loopback that must not be reached."""
    far = b"a" * 65_536
    said = f"password {SECRET} {ESCAPES} of {SECRET}"
    return {
        "silence": lambda: iter([SECONDS]),
        "hang up": lambda: iter([]),
        "endless body": lambda: then(CHUNKED, again(chunk(b" " * 65_536))),
        "endless body without a length": lambda: then(OK + b"\r\n", again(b" " * 65_536)),
        "endless body of one text": lambda: then(CHUNKED + chunk(b'{"a":"'), again(chunk(far))),
        "trickled body": lambda: then(CHUNKED, again(chunk(b" "), pause=0.1)),
        "trickled head": lambda: then(b"HTTP/1.1 200 OK\r\n", again(b"a", pause=0.1)),
        "trickled header lines": lambda: then(OK, again(b"a: b\r\n", pause=0.1)),
        "endless header line": lambda: then(OK + b"a: ", again(far)),
        "endless header lines": lambda: then(OK, again(b"a: b\r\n" * 10_000)),
        "endless status line": lambda: then(b"HTTP/1.1 200 ", again(far)),
        "endless 100 Continue": lambda: again(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000),
        "trickled 100 Continue": lambda: again(b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.1),
        "endless 103 Early Hints": lambda: again(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" * 1_000),
        "101 Switching Protocols": lambda: then(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", again(far)
        ),
        "gzip bomb": bomb,
        "gzip bomb in one piece": lambda: iter([whole(gzip.compress(bytes(200 << 20)), more=GZIP)]),
        "gzip twice": lambda: iter([whole(gzip.compress(gzip.compress(b"{}")), more=b"%b, gzip\r\n" % GZIP[:-2])]),
        "no gzip": lambda: iter([whole(b"{}", more=GZIP)]),
        "an encoding that no client asked for": lambda: iter([whole(b"{}", more=b"Content-Encoding: br\r\n")]),
        "depth": lambda: iter([whole(b"[" * 1_000_000)]),
        "depth of objects": lambda: iter([whole(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)]),
        "5,000 digits": lambda: iter([whole(b"9" * 5_000)]),
        "NaN": lambda: iter([whole(b'{"took": NaN, "hits": Infinity}')]),
        "no JSON": lambda: iter([whole(b"<html>" + ESCAPES.encode() + b"</html>")]),
        "no UTF-8": lambda: iter([whole(b'{"a":"\xff\xfe"}')]),
        "nothing": lambda: iter([whole(b"")]),
        "length beyond the body": lambda: iter([OK + b"Content-Length: 900\r\n\r\n{}"]),
        "length beyond all bounds": lambda: iter([OK + b"Content-Length: 999999999999999999999999\r\n\r\n{}"]),
        "length of terabytes": lambda: iter([OK + b"Content-Length: 9999999999999\r\n\r\n{}"]),
        "negative length": lambda: iter([OK + b"Content-Length: -1\r\n\r\n{}"]),
        "two lengths": lambda: iter([OK + b"Content-Length: 2\r\nContent-Length: 9\r\n\r\n{}"]),
        "length and chunks": lambda: iter([OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"]),
        "chunks that are none": lambda: iter([CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n"]),
        "a chunk of 2^64 bytes": lambda: iter([CHUNKED + b"ffffffffffffffff\r\n{}"]),
        "a chunk cut off": lambda: iter([CHUNKED + b"5\r\n{}"]),
        "endless chunk size": lambda: then(CHUNKED, again(b"0" * 65_536)),
        "endless chunk extension": lambda: then(CHUNKED + b"2;", again(far)),
        "endless trailers": lambda: then(CHUNKED + chunk(b"{}") + b"0\r\n", again(b"a: b\r\n" * 10_000)),
        "HTTP/0.9": lambda: iter([b'{"took":1}\n']),
        "bytes that are no HTTP": lambda: iter([bytes(range(256)) * 64]),
        "status 999": lambda: iter([whole(b"{}", status=b"999 X")]),
        "status with escapes": lambda: iter([whole(b"{}", status=b"500 \x1b[2Jowned")]),
        "a header with NUL": lambda: iter([OK + b"a: b\x00c\r\nContent-Length: 2\r\n\r\n{}"]),
        "one cookie of a megabyte": lambda: iter([whole(b"{}", more=b"Set-Cookie: a=%b\r\n" % (b"b" * 1_000_000))]),
        "10,000 cookies": lambda: iter([whole(b"{}", more=b"Set-Cookie: a=b; Domain=.\r\n" * 10_000)]),
        "two answers": lambda: iter([whole(b"{}") + whole(b'{"error":"of another"}')]),
        "an answer after the end": lambda: iter([whole(b"{}", more=b"Connection: close\r\n") + whole(b'{"a":1}')]),
        "redirect to another port": lambda: redirect(f"http://127.0.0.1:{canary}/"),
        "redirect to another name": lambda: redirect(f"http://localhost:{canary}/", 301),
        "redirect without a scheme": lambda: redirect(f"//127.0.0.2:{canary}/", 307),
        "redirect to metadata": lambda: redirect("http://169.254.169.254/latest/", 303),
        "redirect to a file": lambda: redirect("file:///etc/passwd", 308),
        "redirect with the secret": lambda: redirect(f"http://127.0.0.1:{canary}/?{SECRET}%1b[2J"),
        "400 with the secret": lambda: failing(400, said),
        "401 with the secret": lambda: failing(401, said),
        "403 with the secret": lambda: failing(403, said),
        "404 with the secret": lambda: failing(404, said),
        "500 with the secret": lambda: failing(500, said),
        "422 with half of the secret at the end": lambda: failing(422, "x" * 250 + SECRET * 400),
    }  # fmt: skip


def made_up(kind: str) -> dict[str, Callable[[], Pieces]]:
    """Name the answers that are right as HTTP and JSON, and made up; none is made before it is asked for."""
    name = f"books{ESCAPES}"
    if kind == "elasticsearch":
        told: dict[str, Callable[[], Any]] = {
            "100,000 columns": lambda: mapped({f"f{number}": {"type": "keyword"} for number in range(100_000)}),
            "escapes in columns": lambda: mapped({name: {"type": "keyword"}}),
            "escapes in names": lambda: resolved([name]),
            "1,000,000 objects": lambda: resolved(f"i{at:07}" for at in range(1_000_000)),
        }
    else:
        told = {
            "100,000 columns": lambda: {"class": "Books", "properties": [text(f"f{at}") for at in range(100_000)]},
            "escapes in columns": lambda: {"class": "Books", "properties": [{"name": name, "dataType": [name]}]},
            "escapes in names": lambda: {"classes": [{"class": name}]},
            "1,000,000 objects": lambda: {"classes": [{"class": f"C{at:07}"} for at in range(1_000_000)]},
        }
    return {each: (lambda made=made: iter([whole(json.dumps(made()).encode())])) for each, made in told.items()}


def resolved(names: Iterable[str]) -> dict[str, Any]:
    return {"indices": [{"name": name, "attributes": ["open"]} for name in names]}


def mapped(properties: dict[str, Any]) -> dict[str, Any]:
    return {"books": {"mappings": {"properties": properties}}}


def text(name: str) -> dict[str, Any]:
    return {"name": name, "dataType": ["text"]}


class Front:
    """Stands before the fake server."""

    def __init__(self, kind: str, inner: int, canary: int, session: aiohttp.ClientSession) -> None:
        self._inner, self._session = inner, session
        self._attacks: dict[str, Any] = {**attacks(canary), **made_up(kind)}
        self._attack: Any = None
        self._on = b""
        self.attacked = 0

    def arm(self, attack: str, on: str) -> None:
        self._attack, self._on, self.attacked = self._attacks[attack] if attack else None, on.encode(), 0

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Answer requests, each by the attack or by the fake server."""
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                body = await reader.readexactly(int(length[0].split(b":")[1]) if length else 0)
                if self._attack is None or self._on not in head.partition(b"\r\n")[0] + body:
                    await self._forward(head, body, writer)
                    continue
                self.attacked += 1
                await _send(self._attack(), writer)
                break
        with suppress(OSError):
            writer.close()

    async def _forward(self, head: bytes, body: bytes, writer: StreamWriter) -> None:
        line, *lines = head.decode("latin-1").strip().split("\r\n")
        method, path, _ = line.split(" ")
        given = [(name, value.strip()) for name, _, value in (each.partition(":") for each in lines)]
        address = URL(f"http://127.0.0.1:{self._inner}{path}", encoded=True)
        async with self._session.request(method, address, headers=given, data=body or None) as answer:
            data = await answer.read()
        kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in _OWN]
        told = [f"HTTP/1.1 {answer.status} X", *(f"{name}: {value}" for name, value in kept)]
        writer.write("\r\n".join([*told, f"Content-Length: {len(data)}", "", ""]).encode() + data)
        await writer.drain()


async def _send(pieces: Iterator[bytes | float], writer: StreamWriter) -> None:
    end, room = time.monotonic() + SECONDS, BYTES
    for piece in pieces:
        if isinstance(piece, float):
            await asyncio.sleep(piece)
        else:
            room -= len(piece)
            writer.write(piece)
            await writer.drain()
        if writer.transport.is_closing() or room < 0 or time.monotonic() > end:
            break


async def _load(fake: Any, kind: str) -> None:
    headers = {"Authorization": f"Bearer {SECRET}"} if kind == "weaviate" else None
    async with aiohttp.ClientSession(fake.url, headers=headers) as session:
        if kind == "elasticsearch":
            lines = "".join(f'{{"index":{{"_id":"{n}"}}}}\n{{"n":{n}}}\n' for n in range(3))
            done = await session.post(
                "/books/_bulk?refresh=true", data=lines, headers={"Content-Type": "application/x-ndjson"}
            )
        else:
            await session.post(
                "/v1/schema", json={"class": "Books", "properties": [{"name": "n", "dataType": ["int"]}]}
            )
            objects = [
                {"class": "Books", "id": f"00000000-0000-0000-0000-00000000000{n}", "properties": {"n": n}}
                for n in range(3)
            ]
            done = await session.post("/v1/batch/objects", json={"objects": objects})
        assert done.status == 200, await done.text()


async def main(kind: str) -> None:
    """Serve until stdin ends."""
    sys.path.append(str(Path(__file__).parents[1] / "support"))
    if kind == "elasticsearch":
        from dragoman_sample.fakes.elasticsearch import FakeElasticsearch

        fake: Any = FakeElasticsearch()
    else:
        from dragoman_sample.fakes.weaviate import FakeWeaviate
        from dragoman_sample.fakes.weaviate.security import User

        fake = FakeWeaviate(keys={SECRET: User("u", admin=True)})
    reached = 0

    async def canary(reader: StreamReader, writer: StreamWriter) -> None:
        nonlocal reached
        reached += 1
        writer.close()

    async with fake, aiohttp.ClientSession(auto_decompress=False) as session:
        await _load(fake, kind)
        trap = await asyncio.start_server(canary, "127.0.0.1", 0)
        trapped = trap.sockets[0].getsockname()[1]
        other = await asyncio.start_server(canary, "127.0.0.2", trapped)
        front = Front(kind, fake.port, trapped, session)
        server = await asyncio.start_server(front.serve, "127.0.0.1", 0, limit=1 << 24)
        print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            seen = {"attacked": front.attacked, "canary": reached}
            front.arm(**json.loads(line))
            await asyncio.sleep(0.02)  # a driver sees that its connections have ended before it is asked again
            print(json.dumps(seen), flush=True)
        server.close()
        trap.close()
        other.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
