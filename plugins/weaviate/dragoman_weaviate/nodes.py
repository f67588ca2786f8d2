"""The nodes, and the conditions of the collections, which are those of their shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Raw

from dragoman_api import DragomanError, Note
from dragoman_api.columns import Condition, ConditionLevel
from dragoman_api.connections import ServerNode, ServerStatus
from dragoman_api.errors import AccessDeniedError, AuthenticationError, QueryError
from dragoman_api.kit.exchanges import Exchange, ask, get

from . import protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

_NOTHING = Raw(b"null")
_HIDDEN = Note(
    code="nodes-hidden",
    reason="the key may not read the nodes",
    hint="grant it the permission read_nodes, with the verbosity verbose for the states of collections",
)
_NODES = {
    "HEALTHY": ConditionLevel.GOOD,
    "UNHEALTHY": ConditionLevel.BAD,
    "UNAVAILABLE": ConditionLevel.BAD,
    "TIMEOUT": ConditionLevel.WARNING,
}
_SHARDS = {
    "READY": ConditionLevel.GOOD, "LAZY_LOADING": ConditionLevel.GOOD, "INDEXING": ConditionLevel.WARNING,
    "LOADING": ConditionLevel.WARNING, "READONLY": ConditionLevel.WARNING,
}  # fmt: skip
_ORDER = (ConditionLevel.GOOD, ConditionLevel.UNKNOWN, ConditionLevel.WARNING, ConditionLevel.BAD)


class _Shard(msgspec.Struct, frozen=True):
    collection: str | None = msgspec.field(name="class", default=None)
    status: str | None = msgspec.field(name="vectorIndexingStatus", default=None)


class _Stats(msgspec.Struct, frozen=True):
    objects: int | None = msgspec.field(name="objectCount", default=None)


class _Node(msgspec.Struct, frozen=True):
    name: str
    status: str | None = None
    version: str | None = None
    mode: str | None = msgspec.field(name="operationalMode", default=None)
    stats: Raw = _NOTHING
    shards: Raw = _NOTHING

    @property
    def state(self) -> Condition | None:
        """Its health; that it takes no writes, or no reads, is a part of it."""
        status, mode = self.status or "", self.mode or ""
        level = _NODES.get(status, ConditionLevel.UNKNOWN)
        if mode in ("", "ReadWrite"):
            return Condition(status, level) if status else None
        return Condition(f"{status} {mode}".strip(), max(level, ConditionLevel.WARNING, key=_ORDER.index))

    @property
    def rows(self) -> int | None:
        """Its number of objects; None for a figure that is none, such as the -1 of what is not loaded."""
        stats = _part(self.stats, _Stats)
        count = stats.objects if stats else None
        return count if count is not None and 0 <= count < 2**63 else None


class _Nodes(msgspec.Struct, frozen=True):
    nodes: list[Raw] | None = None


def _part(text: Raw, kind: type[T]) -> T | None:
    """Decode a part of the answer; None for one of another form, which hides nothing beside it."""
    try:
        return protocol.decode_part(text, kind)
    except QueryError:
        return None


def read_status(*, with_shards: bool) -> Exchange[ServerStatus]:
    """Read the nodes, and with their shards the conditions of collections.

    Args:
        with_shards: Ask for the shards. Each tenant is one, so a server may have very many.

    Raises:
        AuthenticationError: 401.
        ConnectionFailedError: The server does not answer.
    """
    reply = yield from ask(get("/v1/nodes", output="verbose" if with_shards else "minimal"))
    try:
        texts = protocol.decode(reply, _Nodes).nodes or []
    except AuthenticationError:
        raise
    except AccessDeniedError:
        return ServerStatus(notes=[_HIDDEN])
    except DragomanError as error:
        return ServerStatus(notes=[Note(code="nodes-unknown", reason=f"the nodes cannot be read: {error.message}")])
    nodes = [node for node in (_part(text, _Node) for text in texts) if node is not None]
    rest = len(texts) - len(nodes)
    reason = f"{rest} of {len(texts)} nodes cannot be read: the answer tells of them in an unknown form"
    return ServerStatus(
        notes=[Note(code="nodes-unknown", reason=reason)] if rest else [],
        nodes=[
            ServerNode(
                name=node.name,
                state=node.state,
                version=node.version or "",
                rows=node.rows,
            )
            for node in sorted(nodes, key=lambda node: node.name)
        ],
        objects=_collections(nodes) if with_shards else {},
    )


def _collections(nodes: Sequence[_Node]) -> dict[str, Condition]:
    """Return the worst condition of each collection's shards, on whatever node."""
    conditions: dict[str, Condition] = {}
    texts = [text for node in nodes for text in _part(node.shards, list[Raw]) or []]
    for shard in (_part(text, _Shard) for text in texts):
        if shard is None or not shard.status or not shard.collection:
            continue
        other = conditions.get(shard.collection)
        condition = Condition(shard.status, _SHARDS.get(shard.status, ConditionLevel.UNKNOWN))
        if other is None or _ORDER.index(condition.level) > _ORDER.index(other.level):
            conditions[shard.collection] = condition
    return conditions
