"""Bytes that a child might send, and the host's own path for them; the corpus beside it keeps what is worth sending.

A file of the corpus holds frames as they stand on the control socket; its name begins with the hook they answer.
`python tests/worker/fuzz.py` writes them anew from what the host's own encoder makes.
"""

from __future__ import annotations

import struct
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dragoman.sandbox.conversation import ExportReply, PendingCall, PendingCalls
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.launch import Launch
from dragoman_api.cells import CutJson, CutText, Json
from dragoman_api.changes import HttpRequest, Outcome, OutcomeStatus, Plan, PlannedRequest
from dragoman_api.columns import Column, Condition, ConditionLevel, Description, Note, Object, ObjectList
from dragoman_api.connections import Health, Server, ServerNode, ServerStatus
from dragoman_api.console import Answer, AnswerKind, ConsoleRequest
from dragoman_api.errors import AccessDeniedError
from dragoman_api.grid import Page, RowKey
from dragoman_worker.channel import FROM_CHILD, FrameError, FrameReader, frame
from dragoman_worker.hooks_and_deadlines import EXPORT, HOOKS
from dragoman_worker.values import encode, take_apart
from dragoman_worker.wire import CREDITS, Chunk, Failure, Ready, Result, Sandboxed, pack

if TYPE_CHECKING:
    import io
    import random
    from collections.abc import Iterator

CORPUS = Path(__file__).parent / "corpus"
CALL = 1
MARKS = (
    b"\x00", b"\x7f", b"\x80", b"\x90", b"\xc0", b"\xc1", b"\xc4\xff", b"\xc7\x08\x01", b"\xcb\x7f\xf8", b"\xcf\xff",
    b"\xd3\x80", b"\xd9\xff", b"\xda\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xdd\xff\xff\xff\xff",
    b"\xde\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xff", b"\xa1t", b"\xff\xfe\xed",
)  # fmt: skip


class Fuzzed(Worker):
    """A worker without a process. It handles arriving bytes as usual and counts condemnations."""

    def __init__(self, pipe: io.RawIOBase) -> None:
        super().__init__(Launch(driver="none:None", trees=()))
        self.condemned: list[str] = []
        self._pipe = pipe

    def _condemn(self, reason: str) -> None:
        self.condemned.append(reason)

    def take(self, hook: str, stream: bytes, *, chunk: int = 1 << 16) -> bool:
        """Feed a stream to a host that waits for one answer; tell whether it would go on with this child."""
        self.condemned.clear()
        self._calls = PendingCalls(on_disobedience=lambda: None)
        self._step = None
        reply = ExportReply(self._pipe) if hook == EXPORT else PendingCall(HOOKS[hook].result)
        assert self._calls.add(reply) == CALL
        frames = FrameReader(limit=FROM_CHILD)
        for at in range(0, len(stream), chunk):
            try:
                bodies = frames.feed(stream[at : at + chunk])
            except FrameError as error:
                self._condemn(str(error))
                break
            for body in bodies:
                self._receive(body)
                if self.condemned:
                    return False
        if isinstance(reply, PendingCall) and reply.future.done():
            reply.future.exception()
        return not self.condemned


def seeds() -> list[tuple[str, str, bytes]]:
    """Return the corpus: hook, name and frames of each file."""
    files = sorted(CORPUS.glob("*.frames"))
    return [(path.name.partition(".")[0], path.stem, path.read_bytes()) for path in files]


def mutations(rng: random.Random, corpus: list[tuple[str, str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Spoil entries of the corpus, for ever: bodies, lengths, order, and two of them mixed."""
    while True:
        hook, _, stream = rng.choice(corpus)
        frames = bodies_of(stream)
        at = rng.randrange(len(frames))
        for _ in range(rng.choice((1, 1, 2, 4, 16))):
            frames[at] = spoil(rng, frames[at], bodies_of(rng.choice(corpus)[2]))
        if rng.random() < 0.1:
            rng.shuffle(frames)
        spoiled = b"".join(struct.pack("<I", len(body)) + body for body in frames)
        if rng.random() < 0.05:  # the length itself
            spoiled = rng.randbytes(4) + spoiled[4:]
        yield hook, spoiled


def spoil(rng: random.Random, body: bytes, others: list[bytes]) -> bytes:
    """Change one thing of one message."""
    start = rng.randrange(len(body) + 1)
    end = min(len(body), start + rng.choice((0, 1, 2, 8, 64)))
    match rng.randrange(6):
        case 0:
            return body[:start] + bytes([rng.randrange(256)]) + body[start + 1 :]
        case 1:
            return body[:start] + rng.choice(MARKS) + body[end:]
        case 2:
            return body[:start] + body[end:]
        case 3:
            return body[:end] + body[start:end] * rng.choice((1, 3, 200)) + body[end:]
        case 4:
            other = rng.choice(others)
            return body[:start] + other[rng.randrange(len(other) + 1) :]
        case _:
            deep = rng.choice((b"\x91", b"\x81\xa1x", b"\x92\xc0")) * rng.choice((10, 500, 20_000))
            return body[:start] + deep + body[start:]


def bodies_of(stream: bytes) -> list[bytes]:
    """Cut a stream into messages, whatever its lengths say."""
    bodies, at = [], 0
    while at < len(stream):
        (length,) = struct.unpack_from("<I", stream.ljust(at + 4, b"\0"), at)
        bodies.append(stream[at + 4 : at + 4 + length])
        at += 4 + length
    return bodies or [b""]


def real() -> dict[str, bytes]:
    """Make what an honest child sends: an answer of every hook, an error, the messages of the start."""
    key, note = RowKey("things", "id-1", "blue"), Note(code="cut", reason="a note")
    columns = [Column(name=name, type="keyword") for name in ("a", "b", "c", "d", "e")]
    cells = [
        [2**70, Decimal("1.10"), Json('["x"]'), CutJson("[1..."), None],
        [1.5, True, "text", -1, CutText("ü...")],
    ]
    request = HttpRequest("POST", "/_bulk", '{"x": 1}')
    done = [Outcome(change=0, status=OutcomeStatus.APPLIED, key=key), Outcome(change=1, status=OutcomeStatus.CONFLICT)]
    page = Page(columns=columns, cells=cells, keys=[key, key], total=2, notes=[note])
    answers: dict[str, Any] = {
        "connect": Server("Demo", "1.2.3", notes=["it is old"]),
        "ping": Health(ok=False, reason="tired"),
        "read_status": ServerStatus(
            state=Condition("yellow", ConditionLevel.WARNING),
            nodes=[
                ServerNode(
                    name="a", state=Condition("up", ConditionLevel.GOOD), roles="data", version="1", rows=3, disk=9
                )
            ],
            objects={"things": Condition("READONLY")},
            notes=[note],
        ),
        "close": None,
        "list_objects": ObjectList(objects=[Object("things", rows=12, branch=True), Object("x", parent="y")], next="2"),
        "describe_object": Description(object="things", columns=columns, structure='{"a": 1}'),
        "fetch_page": page,
        "fetch_cell": Json('{"deep": [1, 2, 3]}'),
        "count_rows": 2**40,
        "plan_change": Plan(planned=[PlannedRequest(request=request, changes=[0])], refusals=done, notes=[note]),
        "apply_change": done,
        "parse_console": [ConsoleRequest(request=request, writes=True)],
        "execute_console": Answer(kind=AnswerKind.TABLE, status=200, request=request, page=page, text='{"took": 1}'),
    }
    streams = {}
    for hook, answer in answers.items():
        parts, rest = take_apart(answer, call=CALL)
        streams[f"{hook}.real"] = b"".join(map(pack, (*parts, Result(CALL, Raw(rest)))))
    chunks = [Chunk(id=CALL, size=100, rows=3, total=9, checkpoint="c1"), Chunk(id=CALL, size=0, rows=0)]
    streams[f"{EXPORT}.real"] = b"".join(map(pack, (*chunks, Result(CALL, Raw(encode(None))))))
    error = AccessDeniedError("you may not", hint="ask", details={"status": 403, "path": "/x"})
    streams["list_objects.real-error"] = pack(Failure.of(CALL, error))
    report = Sandboxed(layers=("seccomp",), failures={"landlock": "EPERM"}, landlock_abi=7, probes={}, missing=("/x",))
    head = b"\x83\xa1t\xa3res\xa2id\x01\xa5value"
    hostile = {
        "start": pack(report) + pack(Ready(("connect", "ping"))),
        "empty": bytes(4),
        "long": b"\xff\xff\xff\xff" + bytes(64),
        "deep": frame(head + b"\x91" * 4_000),
        "promises": frame(head + b"\xdd\xff\xff\xff\xff"),
        "nils": frame(head + b"\xdd\x00\x00\x10\x00" + b"\xc0" * 4_096),
        "letters": frame(b"\x81\xa1t\xa2\xff\xff"),
        "kind": frame(b"\x81\xa1t\xa3boo"),
        "number": pack(Result(99, Raw(encode(None)))),
        "piece": pack(Chunk(id=CALL, size=1, rows=1)),
    }
    streams |= {f"ping.hostile-{name}": stream for name, stream in hostile.items()}
    streams["export_rows.hostile-credit"] = pack(Chunk(id=CALL, size=0, rows=0)) * (CREDITS + 1)
    return streams


if __name__ == "__main__":
    CORPUS.mkdir(exist_ok=True)
    for name, stream in real().items():
        (CORPUS / f"{name}.frames").write_bytes(stream)
        sys.stdout.write(f"{name}: {len(stream)} bytes\n")
