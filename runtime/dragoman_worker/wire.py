"""The messages between the host and a driver's process; both ends ship together, so they always agree."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.errors import Detail, DragomanError, from_code

from .frames import frame

PART = 1 << 20
"""Bytes of one part of a result at most."""

EXPORT_PART = 32 << 20
"""Bytes of one part of an export at most."""

CREDITS = 4
"""Parts of a stream that may be on their way before the host asks for more."""

MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, MemoryError)
"""All that a decoder may raise for bytes from a child; each of them ends the child."""

Name = Annotated[str, msgspec.Meta(max_length=100)]
Text = Annotated[str, msgspec.Meta(max_length=4_000)]


class Message(msgspec.Struct, frozen=True, tag_field="t", forbid_unknown_fields=True):
    """The base of all messages: the field `t` tells them apart."""


# host to child ----------------------------------------------------------------------------------------------------


class Lockdown(msgspec.Struct, frozen=True, kw_only=True):
    """What the child is to give up.

    Attributes:
        layers: Of ``landlock``, ``seccomp``, ``capabilities``, ``limits``; on Windows ``job``.
        readable: Files and directories it may read.
        listable: Directories it may list without reading.
        memory: Bytes of address space.
        descriptors: Open descriptors.
        cpu: Seconds of processor time; None for no bound but deadlines.
        secret_file: A file the host can read, for the negative self-test.
        writable_dir: A directory the host can write in, for the negative self-test.
        program: An executable file, for the negative self-test.
    """

    layers: tuple[str, ...]
    readable: tuple[str, ...]
    listable: tuple[str, ...] = ()
    memory: int
    descriptors: int
    cpu: int | None = None
    secret_file: str
    writable_dir: str
    program: str


class Config(Message, frozen=True, tag="config", kw_only=True):
    """Everything but the secret: how to lock down and which driver to load."""

    lockdown: Lockdown
    trees: tuple[str, ...]
    driver: str


class Secret(Message, frozen=True, tag="secret"):
    """The credentials, once the lock-down is proven; never printed."""

    values: dict[str, str]

    def __repr__(self) -> str:
        return "Secret(…)"


class Call(Message, frozen=True, tag="call"):
    """One hook call; `request` is the hook's one argument, encoded."""

    id: int
    hook: str
    request: msgspec.Raw


class Credit(Message, frozen=True, tag="credit"):
    """The host has taken so many parts of a stream."""

    id: int
    n: int


class Cancel(Message, frozen=True, tag="cancel"):
    """Nobody waits for this call any more."""

    id: int


HostMessage = Config | Secret | Call | Credit | Cancel

# child to host ----------------------------------------------------------------------------------------------------


class Sandboxed(Message, frozen=True, tag="sandboxed", kw_only=True):
    """What was enforced and what the self-test found; sent by trusted code, before any driver code runs.

    Attributes:
        layers: Those that the kernel took.
        failures: Layer → why it could not be had.
        landlock_abi: 0 for no Landlock.
        probes: Probe of the self-test → refused by the kernel.
        missing: Paths to grant that are not there.
    """

    layers: Annotated[tuple[Name, ...], msgspec.Meta(max_length=10)]
    failures: Annotated[dict[Name, Text], msgspec.Meta(max_length=10)]
    landlock_abi: int
    probes: Annotated[dict[Name, bool], msgspec.Meta(max_length=20)]
    missing: Annotated[tuple[Text, ...], msgspec.Meta(max_length=1_000)]


class Ready(Message, frozen=True, tag="ready"):
    """The driver is imported; these are the hooks it implements."""

    hooks: Annotated[tuple[Name, ...], msgspec.Meta(max_length=100)]


class Part(Message, frozen=True, tag="part"):
    """A piece of a result that is too large for one frame, ahead of its `Result`.

    Attributes:
        id: Of the call.
        path: Dotted name of the result's field that the piece belongs to; empty for the result itself.
        piece: Elements of a list, or characters of a text.
        extended: Cells among it need extension types.
        json: Columns whose texts are all JSON; they travel as plain texts.
    """

    id: int
    path: Name
    piece: msgspec.Raw
    extended: bool = False
    json: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(max_length=MAX_COLUMNS)] = ()


class Result(Message, frozen=True, tag="res"):
    """The end of a call, with what its parts did not carry."""

    id: int
    value: msgspec.Raw


class Chunk(Message, frozen=True, tag="chunk", kw_only=True):
    """Some bytes of an export are in the pipe, or about to be; fields as of `ExportPart`."""

    id: int
    size: Annotated[int, msgspec.Meta(ge=0, le=EXPORT_PART)]
    rows: Annotated[int, msgspec.Meta(ge=0)]
    total: Annotated[int, msgspec.Meta(ge=0)] | None = None
    checkpoint: Annotated[str, msgspec.Meta(max_length=65_536)] | None = None


class Failure(Message, frozen=True, tag="err", kw_only=True):
    """The end of a call, or of the start (id 0), by an error; `family` is the code of its class."""

    id: int
    code: Name
    family: Name = ""
    message: Text
    hint: Text = ""
    details: Annotated[
        dict[Name, Annotated[str, msgspec.Meta(max_length=4_000)] | int | float | bool | None],
        msgspec.Meta(max_length=50),
    ] = {}

    @classmethod
    def of(cls, call: int, error: DragomanError) -> Failure:
        """Describe an error, cut to what a frame may carry."""
        details: dict[str, Detail] = {
            name[:100]: value[:4_000] if isinstance(value, str) else value
            for name, value in list(error.details.items())[:50]
        }
        return cls(
            id=call,
            code=error.code[:100],
            family=type(error).code[:100],
            message=error.message[:4_000],
            hint=error.hint[:4_000],
            details=details,
        )

    def to_error(self) -> DragomanError:
        """Build the same class of error again."""
        return from_code(self.code, self.message, hint=self.hint, details=self.details, family=self.family)


ChildMessage = Sandboxed | Ready | Part | Result | Chunk | Failure

# the broker's socket ------------------------------------------------------------------------------------------------

BROKER_FRAME = 4_096


HostName = Annotated[str, msgspec.Meta(max_length=1_024)]


class Lookup(Message, frozen=True, tag="lookup"):
    """The child asks in which address families a name has addresses; it never sees them."""

    id: int
    host: HostName


class Open(Message, frozen=True, tag="open"):
    """The child asks for a connected socket; family 0 leaves IPv4 or IPv6 to the host."""

    id: int
    host: HostName
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)]
    family: int = 0


BrokerRequest = Lookup | Open


class Found(Message, frozen=True, tag="found"):
    """The families, in the order in which they should be tried."""

    id: int
    families: tuple[int, ...]


class Opened(Message, frozen=True, tag="opened", omit_defaults=True):
    """The socket travels with this message: beside it, or as a share, which only Windows has."""

    id: int
    share: bytes = b""


class Refused(Message, frozen=True, tag="refused"):
    """There is no socket, and why; a negative number is one of `getaddrinfo`."""

    id: int
    errno: int
    reason: str


class Pipe(Message, frozen=True, tag="pipe", omit_defaults=True):
    """The write end of an export's pipe travels with this message, as of `Opened`; `id` is that of the call."""

    id: int
    share: bytes = b""


BrokerReply = Found | Opened | Refused | Pipe

_encoder = msgspec.msgpack.Encoder()


def pack(message: Message) -> bytes:
    """Encode a message as one frame."""
    return frame(_encoder.encode(message))


def decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """Build a decoder for a union of messages."""
    return msgspec.msgpack.Decoder(kind)
