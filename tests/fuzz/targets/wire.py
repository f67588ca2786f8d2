"""The sockets between the host and a driver's process: frames, messages, values, in both directions."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import redirect_stdout
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import strategies as st
from msgspec.msgpack import Ext
from tests.worker.fuzz import CALL, Fuzzed, real

from dragoman.cli import output
from dragoman.sandbox.conversation import PendingCall
from dragoman_api import events
from dragoman_api.grid import Page
from dragoman_registry.ip_addresses import canonical
from dragoman_worker import values
from dragoman_worker.channel import FROM_CHILD, FROM_HOST, FrameError, FrameReader, frame
from dragoman_worker.hooks_and_deadlines import EXPORT, HOOKS
from dragoman_worker.wire import (
    BROKER_FRAME,
    MALFORMED,
    BrokerReply,
    BrokerRequest,
    ChildMessage,
    HookCall,
    HostMessage,
    Sandboxed,
    decoder,
)

from ..grammar import hostile_text, split
from ..target import Bounds, Broken, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hypothesis.strategies import DrawFn, SearchStrategy

_names = [*HOOKS]

# what a child sends ---------------------------------------------------------------------------------------------------


def _to_host(_: Path) -> Callable[[bytes], object]:
    class Pipe(io.RawIOBase):
        def read(self, _size: int = -1) -> bytes | None:
            return None

    runner = asyncio.Runner()

    async def take(data: bytes) -> None:
        hook, _, stream = data.partition(b"\n")
        name = hook.decode(errors="replace")
        _look_at_lengths(stream)
        taker.take(name if name in HOOKS else _names[0], stream)

    async def made() -> Fuzzed:
        return Fuzzed(Pipe())

    taker = runner.run(made())
    return lambda data: runner.run(take(data))


def _look_at_lengths(stream: bytes) -> None:
    """See that a length out of bounds ends the reading where it stands, however much is still to come."""
    at, wrong = 0, False
    while len(stream) - at >= 4 and not wrong:
        length = int.from_bytes(stream[at : at + 4], "little")
        wrong, at = not 0 < length <= FROM_CHILD, at + 4 + length
    try:
        FrameReader(limit=FROM_CHILD).feed(stream)
    except FrameError:
        wrong = not wrong
    if wrong:
        raise Broken("length: a frame out of bounds is waited for, or one within them is refused")


def _answers(_: Path) -> Callable[[bytes], object]:
    """Put a result together and show it, as every surface does."""
    runner, read = asyncio.Runner(), decoder(ChildMessage)

    async def take(data: bytes) -> None:
        hook, _, stream = data.partition(b"\n")
        name = hook.decode(errors="replace")
        reply = PendingCall(HOOKS[name if name in HOOKS and name != EXPORT else "fetch_page"].result)
        for body in FrameReader(limit=FROM_CHILD).feed(stream):
            message = read.decode(body)
            if type(message).__name__ in ("Part", "Result", "Chunk"):
                reply.take(message)
        if reply.future.done():
            _show(reply.future.result())

    return lambda data: runner.run(take(data))


def _show(value: Any) -> None:
    if isinstance(value, list):
        json.loads(output.dumps(value), parse_int=str, parse_float=str)
    page = value if isinstance(value, Page) else getattr(value, "page", None)
    if not isinstance(page, Page):
        return
    for format_ in output.FORMATS:
        with redirect_stdout(io.StringIO()) as shown:
            if format_ == "json":
                output.write_json(output.page_document(page))
            else:
                output.write_page(page, format=format_)
        shown.getvalue().encode()
    event = events.PageFetched(
        connection="c", object=page.columns[0].name if page.columns else "", rows=len(page.cells), seconds=0.0
    )
    json.loads(event.to_json())


_LONG = 4_400
_CELLS = (
    0, 1.5, True, None, "text", 2**63, -(2**63), Decimal("1.10"), Ext(1, b"\xff" * 9), Ext(1, b"\x7f" * 1_800), Ext(2,
    b"1e9999999"),
    Ext(2, b"9" * _LONG), Ext(2, b"NaN"), Ext(2, b"sNaN"), Ext(2, b"-0E-4300"), Ext(2, b"1E4300"), Ext(3, b"[1"),
    Ext(3, b"[" * 5_000 + b"]" * 5_000),
    Ext(3, b'{"a":1e999}'), Ext(3, b"9" * 5_000), Ext(3, b"\xff"), Ext(4, b"[1..."), Ext(4, b""), Ext(5, b""), Ext(-1,
    b"x"), float("inf"), "\u202e\x1b[2J",
    [1], {"a": 1}, b"x",
)  # fmt: skip


@st.composite
def _results(draw: DrawFn) -> bytes:
    """Make a stream of parts and a result: what is right, with cells, counts, names and paths that are not."""
    cells: list[list[Any]] = []
    width = draw(st.integers(0, 4))
    for _ in range(draw(st.integers(0, 5))):
        row = [
            draw(st.one_of(st.sampled_from(_CELLS), hostile_text().map(_whole), st.integers(-9, 9)))
            for _ in range(width)
        ]
        cells.append(row if draw(st.integers(0, 15)) else row[1:])
    columns = [{"name": _whole(draw(hostile_text())), "type": "keyword", "kind": "text"} for _ in range(width)]
    page = {"columns": columns, "cells": [], "total": draw(st.sampled_from((0, None, -1, 2**63, "x"))), "keys": []}
    hook, value = draw(
        st.sampled_from(
            (
                ("fetch_page", page),
                (
                    "execute_console",
                    {"kind": "table", "status": 200, "page": page, "request": {"method": "GET", "path": "/"}},
                ),
            )
        )
    )
    path = "cells" if hook == "fetch_page" else "page.cells"
    part = {
        "t": "part", "id": CALL, "path": path if draw(st.integers(0, 9)) else draw(st.sampled_from(("", "columns",
        "page", "a.b", "cells.cells", "next.page.cells"))),
        "piece": cells, "extended": draw(st.booleans()) or True, "json": draw(st.lists(st.integers(-1, 5), max_size=2)),
    }  # fmt: skip
    made = [msgspec.msgpack.encode(part)] * draw(st.sampled_from((1, 1, 0, 2)))
    made.append(msgspec.msgpack.encode({"t": "res", "id": CALL, "value": value}))
    return hook.encode() + b"\n" + b"".join(map(frame, made))


def _whole(text: str) -> str:
    return text.encode(errors="replace").decode()


@st.composite
def _streams(draw: DrawFn) -> bytes:
    """Make a stream of honest messages, of built ones, of wrong lengths and of deep values."""
    hook = draw(st.sampled_from(_names))
    honest = [stream for name, stream in real().items() if name.startswith(hook) or not draw(st.integers(0, 9))] or [
        b""
    ]
    deep = draw(st.sampled_from((b"\x91", b"\x81\xa1x", b"\x92\xc0", b"\xdd\xff\xff\xff\xff"))) * draw(
        st.sampled_from((1, 500, 20_000))
    )
    result = b"\x83\xa1t\xa3res\xa2id\x01\xa5value"
    pieces = st.one_of(
        st.sampled_from(honest), _results().map(lambda data: data.partition(b"\n")[2]), st.just(frame(result + deep)),
        st.just(frame(result + b"\xc0")), st.sampled_from((bytes(4), b"\xff\xff\xff\xff", frame(b"\xc1"),
        frame(b"\x80"))), st.binary(max_size=40),
        st.builds(_error, hostile_text(), hostile_text()),
    )  # fmt: skip
    return hook.encode() + b"\n" + b"".join(draw(st.lists(pieces, min_size=1, max_size=4)))


def _error(code: str, message: str) -> bytes:
    made = {
        "t": "err",
        "id": CALL,
        "code": _whole(code),
        "family": "trust-failed",
        "message": _whole(message),
        "details": {"a": 2**64 - 1},
    }
    return frame(msgspec.msgpack.encode(made))


# what a host sends, the broker, the trial -----------------------------------------------------------------------------


def _to_child(_: Path) -> Callable[[bytes], object]:
    read = decoder(HostMessage)

    def run(data: bytes) -> None:
        for body in FrameReader(limit=FROM_HOST).feed(data):
            message = read.decode(body)
            if isinstance(message, HookCall) and message.hook in HOOKS:
                request = values.decode_request(HOOKS[message.hook].request, message.request)
                values.encode_request(request)

    return run


def _calls() -> SearchStrategy[bytes]:
    keys = {"object": "o", "id": "1", "routing": None, "guard": {"a": 1}}
    requests: dict[str, Any] = {
        "plan_change": {"changes": [{"type": "Update", "key": keys, "values": {"a": Ext(1, b"\xff" * 9), "b": Ext(3,
        b"[]")}}]},
        "fetch_page": {"object": "o", "offset": 2**62, "limit": -1, "sort": [{"column": "a"}]},
        "describe_object": "x", "parse_console": {"text": "GET /"}, "nothing": None,
    }  # fmt: skip
    made = st.builds(
        lambda hook, given: frame(msgspec.msgpack.encode({"t": "call", "id": 1, "hook": hook, "request": given})),
        st.sampled_from([*requests]), st.one_of(st.sampled_from([*requests.values()]), st.sampled_from(_CELLS)),
    )  # fmt: skip
    others = st.sampled_from([frame(msgspec.msgpack.encode(each)) for each in (
        {"t": "cancel", "id": 1}, {"t": "credit", "id": 1, "n": 2**63}, {"t": "secret", "values": {"a": "b"}},
    )])  # fmt: skip
    return st.lists(st.one_of(made, others, st.binary(max_size=30)), max_size=4).map(b"".join)


def _broker(_: Path) -> Callable[[bytes], object]:
    asked, told, trial = decoder(BrokerRequest), decoder(BrokerReply), decoder(Sandboxed)

    def run(data: bytes) -> None:
        who, stream = split(data, 2)
        for body in FrameReader(limit=BROKER_FRAME).feed(stream):
            if who == b"child":
                told.decode(body)
            elif who == b"trial":
                trial.decode(body)
            else:
                request = asked.decode(body)
                once = canonical(request.host)
                if canonical(once) != once:
                    raise Broken(f"canonical: {request.host!r} becomes {once!r}, and that another name")

    return run


_HOSTS = (
    "127.0.0.1.", "127.1", "0x7f.1", "[::1]", "::ffff:127.0.0.1", "fe80::1%eth0", "a..", ".", "", "ſ.example",
    "a\u3002example", "１２７.0.0.1",
    "xn--", "xn--a", "\u00ad", "a" * 64 + ".example", "é" * 300, "a.\u200bexample", "İ", "ß.example", "ﬁ",
    "localhost.localdomain.",
)  # fmt: skip


def _asks() -> SearchStrategy[bytes]:
    hosts = st.one_of(st.sampled_from(_HOSTS), hostile_text().map(_whole), st.text(max_size=30).map(_whole))
    made = st.builds(
        lambda kind, host, port: frame(msgspec.msgpack.encode({"t": kind, "id": 1, "host": host, **port})),
        st.sampled_from(("lookup", "open")), hosts, st.sampled_from(({}, {"port": 80}, {"port": -1}, {"port": 65_536,
        "family": 10})),
    )  # fmt: skip
    stream = st.lists(st.one_of(made, st.binary(max_size=30)), max_size=3).map(b"".join)
    return st.tuples(st.sampled_from((b"host", b"host", b"child", b"trial")), stream).map(b"\n%%\n".join)


_TAKEN = (*values.FAULTS, FrameError)
_WIRE = Bounds(seconds=0.3, mb_per_kb=1, largest=400_000)
TARGETS = (
    Target(name="frames-to-host", parses="dragoman.sandbox.conversation:Conversation._receive", make=_to_host,
    grammar=_streams, bounds=_WIRE),
    Target(name="driver-results", parses="dragoman_worker.values:Assembly, dragoman.cli.output", make=_answers,
    grammar=_results,
           allowed=_TAKEN, bounds=_WIRE),
    Target(name="frames-to-child", parses="dragoman_worker.service:Service._receive", make=_to_child, grammar=_calls,
    allowed=_TAKEN,
           bounds=_WIRE),
    Target(name="broker", parses="dragoman.sandbox.reach.broker:Broker.serve", make=_broker, grammar=_asks,
    allowed=(*MALFORMED, FrameError)),
)  # fmt: skip
