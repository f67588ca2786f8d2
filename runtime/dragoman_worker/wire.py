"""The messages between the host and a driver's process. One wheel ships both ends, so they always agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from dragoman_api.columns import MAX_COLUMNS, Note
from dragoman_api.remedies import MOST, Remedy

from .channel import frame

if TYPE_CHECKING:
    from dragoman_api.errors import Detail, DragomanError

PART = 1 << 20
"""Maximum size of one part of a result in bytes."""

EXPORT_PART = 32 << 20
"""Maximum size of one part of an export in bytes."""

PART_NOTES = 50
"""Maximum number of notes on one part of an export."""

CREDITS = 4
"""The parts of a stream that the child may send before the host asks for more."""

PLAN_DROPPED = "plan_dropped"
"""The detail of an error, True, of a call that names a plan which the driver's process does not keep."""

LEARNED_TOKEN = 1 << 13
"""Maximum length of a token that the host masks, in characters; of a longer one it masks the beginning."""

MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, MemoryError)
"""Every exception that a decoder may raise for a child's bytes. Each of them ends the child."""

Name = Annotated[str, msgspec.Meta(max_length=100)]
Text = Annotated[str, msgspec.Meta(max_length=4_000)]


class Message(msgspec.Struct, frozen=True, tag_field="t", forbid_unknown_fields=True):
    """The base of all messages. The field `t` tells them apart."""


# host to child ----------------------------------------------------------------------------------------------------


class Lockdown(msgspec.Struct, frozen=True, kw_only=True):
    """What the child has to give up.

    Attributes:
        layers: Any of ``landlock``, ``seccomp``, ``capabilities``, ``limits``.
        readable: Files and directories it may read.
        files: Regular files it may read, by path, device and inode. Another file at the same path is not granted.
        listable: Directories it may list without reading.
        memory: Maximum address space in bytes.
        descriptors: Maximum number of open descriptors.
        cpu: Maximum processor time in seconds. None sets no limit.
        secret_file: A file that the host can read, for the negative self-test.
        writable_dir: A directory that the host can write to, for the negative self-test.
        program: An executable file, for the negative self-test.
    """

    layers: tuple[str, ...]
    readable: tuple[str, ...]
    files: tuple[tuple[str, int, int], ...] = ()
    listable: tuple[str, ...] = ()
    memory: int
    descriptors: int
    cpu: int | None = None
    secret_file: str
    writable_dir: str
    program: str


class Config(Message, frozen=True, tag="config", kw_only=True):
    """How to lock down and which driver to load: everything but the secret. A driver `under_test` may not block."""

    lockdown: Lockdown
    trees: tuple[str, ...]
    driver: str
    under_test: bool = False


class Secret(Message, frozen=True, tag="secret"):
    """The connection's profile with its credentials, sent once the lock-down is proven. It is never printed."""

    profile: msgspec.Raw

    def __repr__(self) -> str:
        return "Secret(…)"


class HookCall(Message, frozen=True, tag="call"):
    """One hook call. `request` is the hook's encoded argument."""

    id: int
    hook: str
    request: msgspec.Raw


class Credit(Message, frozen=True, tag="credit"):
    """The host has taken `n` parts of a stream."""

    id: int
    n: int


class Cancel(Message, frozen=True, tag="cancel"):
    """The caller no longer waits for this call."""

    id: int


HostMessage = Config | Secret | HookCall | Credit | Cancel

# child to host ----------------------------------------------------------------------------------------------------


class Sandboxed(Message, frozen=True, tag="sandboxed", kw_only=True):
    """The lock-down's report. Trusted code sends it before any driver code runs.

    Attributes:
        layers: The layers that hold.
        failures: The reason for each layer that does not.
        landlock_abi: The kernel's Landlock ABI, 0 for none.
        probes: Whether the kernel refused, by probe of the self-test.
        missing: Paths that were to be granted and do not exist.
    """

    layers: Annotated[tuple[Name, ...], msgspec.Meta(max_length=10)]
    failures: Annotated[dict[Name, Text], msgspec.Meta(max_length=10)]
    landlock_abi: int
    probes: Annotated[dict[Name, bool], msgspec.Meta(max_length=20)]
    missing: Annotated[tuple[Text, ...], msgspec.Meta(max_length=1_000)]


class Ready(Message, frozen=True, tag="ready"):
    """The driver is imported and implements these hooks."""

    hooks: Annotated[tuple[Name, ...], msgspec.Meta(max_length=100)]


class Part(Message, frozen=True, tag="part"):
    """A piece of a result that is too large for one frame. It precedes its `Result`.

    Attributes:
        id: The number of the call.
        path: The dotted name of the field that the piece belongs to, empty for the result itself.
        piece: Elements of a list, characters of a text, or bytes.
        extended: Whether its cells contain extension types; for a value of its own, whether it is bytes.
        json: The columns whose texts are all JSON. They travel as plain texts.
    """

    id: int
    path: Name
    piece: msgspec.Raw
    extended: bool = False
    json: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(max_length=MAX_COLUMNS)] = ()


class Result(Message, frozen=True, tag="res"):
    """The end of a call, with everything that its parts did not carry."""

    id: int
    value: msgspec.Raw


class Chunk(Message, frozen=True, tag="chunk", kw_only=True):
    """Announces bytes of an export, which are in the pipe or follow at once. The fields are those of `ExportPart`."""

    id: int
    size: Annotated[int, msgspec.Meta(ge=0, le=EXPORT_PART)]
    rows: Annotated[int, msgspec.Meta(ge=0)]
    total: Annotated[int, msgspec.Meta(ge=0)] | None = None
    checkpoint: Annotated[str, msgspec.Meta(max_length=65_536)] | None = None
    notes: Annotated[list[Note], msgspec.Meta(max_length=PART_NOTES)] = []
    turned_away: Annotated[int, msgspec.Meta(ge=0)] = 0


class Failure(Message, frozen=True, tag="err", kw_only=True):
    """An error, which ends a call or the start (id 0). `family` is the code of the error's class."""

    id: int
    code: Name
    family: Name = ""
    message: Text
    hint: Text = ""
    details: Annotated[
        dict[Name, Annotated[str, msgspec.Meta(max_length=4_000)] | int | float | bool | None],
        msgspec.Meta(max_length=50),
    ] = {}
    remedies: Annotated[list[Remedy], msgspec.Meta(max_length=MOST)] = []

    @classmethod
    def of(cls, call: int, error: DragomanError) -> Failure:
        """Return the message for an error, cut to the size that a frame may have."""
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
            remedies=[remedy for remedy in error.remedies if not remedy.fault][:MOST],
        )


class Learned(Message, frozen=True, tag="learned"):
    """A token that the driver learned while signing in; the host masks it from now on."""

    token: Annotated[str, msgspec.Meta(max_length=LEARNED_TOKEN)]

    def __repr__(self) -> str:
        return "Learned(…)"


ChildMessage = Sandboxed | Ready | Part | Result | Chunk | Failure | Learned

# the broker's socket ------------------------------------------------------------------------------------------------

BROKER_FRAME = 4_096


HostName = Annotated[str, msgspec.Meta(max_length=1_024)]


class Lookup(Message, frozen=True, tag="lookup"):
    """Asks in which address families a name has addresses. The child never receives the addresses."""

    id: int
    host: HostName


class Open(Message, frozen=True, tag="open"):
    """Asks for a connected socket. Family 0 leaves the choice of IPv4 or IPv6 to the host."""

    id: int
    host: HostName
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)]
    family: int = 0


BrokerRequest = Lookup | Open


class Families(Message, frozen=True, tag="found"):
    """The address families of a name, in the order to try them."""

    id: int
    families: tuple[int, ...]


class Opened(Message, frozen=True, tag="opened"):
    """A connected socket comes beside this message."""

    id: int


class SocketRefused(Message, frozen=True, tag="refused"):
    """The host did not connect. Negative numbers are errors of `getaddrinfo`."""

    id: int
    errno: int
    reason: str


class Pipe(Message, frozen=True, tag="pipe"):
    """The write end of an export's pipe comes with this message, as in `Opened`. `id` is the number of the call."""

    id: int


BrokerReply = Families | Opened | SocketRefused | Pipe

encode = msgspec.msgpack.Encoder().encode
"""Encodes a message."""


def pack(message: Message) -> bytes:
    """Encode a message as one frame."""
    return frame(encode(message))


def decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """Build a decoder for a union of messages."""
    return msgspec.msgpack.Decoder(kind)
