"""The health of a cluster, and its nodes: what they do, and how full their memory and their disks are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from dragoman_api import DragomanError, Note
from dragoman_api.connections import ServerNode, ServerStatus
from dragoman_api.errors import AccessDeniedError, AuthenticationError
from dragoman_api.kit.exchanges import Exchange, get

from . import protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_api.replies import Reply

_FIELDS = "name,node.role,master,version,heap.current,heap.max,disk.used,disk.total"
NODES = f"/_cat/nodes?format=json&bytes=b&s=name&h={_FIELDS}"
"""The path that lists nodes: one request, whatever number of indices there is."""

CLUSTER = "/_cluster/health"
"""The path that tells how the cluster is, and how many shards have no node."""

_HIDDEN = Note(
    code="nodes-hidden",
    reason="the credentials may not list the nodes",
    hint="grant the cluster privilege monitor; on OpenSearch, cluster_monitor",
)
_NUMBER = re.compile(r"[0-9]{1,18}")
_ELECTED = "*"
_TIERS = "hwcfs"
_ROLES = {
    "m": "master-eligible", "d": "data", "h": "hot data", "w": "warm data", "c": "cold data", "f": "frozen data",
    "s": "content data", "i": "ingest", "l": "machine learning", "t": "transform", "r": "remote clusters",
    "v": "voting only", "-": "coordinating",
}  # fmt: skip
"""The roles by their letters, in the order in which they are said."""


_MISSING = {
    "yellow": ": they are copies, so no row is missing",
    "red": ": some hold rows that no page can show now",
}


class _Cluster(msgspec.Struct, frozen=True):
    status: str | None = None
    active: int = msgspec.field(name="active_shards", default=0)
    initializing: int = msgspec.field(name="initializing_shards", default=0)
    unassigned: int = msgspec.field(name="unassigned_shards", default=0)

    def notes(self) -> Iterator[Note]:
        """Say why the cluster is not green."""
        if self.unassigned > 0:
            total = self.active + self.initializing + self.unassigned
            missing = _MISSING.get(self.status or "", "")  # what another word means is not known here
            reason = f"{self.unassigned:,} of {total:,} shards are on no node{missing}"
            yield Note(code="shards-unassigned", reason=reason)


class _Node(msgspec.Struct, frozen=True):
    name: str
    letters: str | None = msgspec.field(name="node.role", default=None)
    master: str | None = None
    version: str | None = None
    heap: str | None = msgspec.field(name="heap.current", default=None)
    heap_max: str | None = msgspec.field(name="heap.max", default=None)
    disk: str | None = msgspec.field(name="disk.used", default=None)
    disk_total: str | None = msgspec.field(name="disk.total", default=None)

    def roles(self) -> Iterator[str]:
        """Yield what the node does. One with the role of all data may hold that of every tier."""
        if self.master == _ELECTED:
            yield "elected master"
        letters = self.letters or ""
        for letter, role in _ROLES.items():
            if letter not in letters or (letter in _TIERS and "d" in letters):
                continue
            if letter != "m" or self.master != _ELECTED:
                yield role


def read_status() -> Exchange[ServerStatus]:
    """Read how the cluster is, and list its nodes.

    Raises:
        AuthenticationError: 401.
        ConnectionFailedError: The server does not answer.
    """
    listing, health = yield (get(NODES), get(CLUSTER))
    nodes, notes = _nodes(listing)
    cluster = _cluster(health)
    return ServerStatus(
        state=protocol.condition(cluster.status),
        nodes=nodes,
        notes=[*cluster.notes(), *notes],
    )


def _cluster(reply: Reply) -> _Cluster:
    """Read the health; empty if it is hidden, or a hosted service tells none, as its nodes say so."""
    try:
        return protocol.decode(reply, _Cluster)
    except AuthenticationError:
        raise
    except DragomanError:
        return _Cluster()


def _nodes(reply: Reply) -> tuple[list[ServerNode], list[Note]]:
    try:
        listed = protocol.decode(reply, list[_Node])
    except AuthenticationError:
        raise
    except AccessDeniedError:
        return [], [_HIDDEN]
    except DragomanError as error:  # a hosted service that has no nodes for its users
        return [], [Note(code="nodes-unknown", reason=f"the nodes cannot be read: {error.message}")]
    nodes = [
        ServerNode(
            name=node.name,
            roles=", ".join(node.roles()),
            version=node.version or "",
            memory=_bytes(node.heap),
            memory_limit=_bytes(node.heap_max),
            disk=_bytes(node.disk),
            disk_limit=_bytes(node.disk_total),
        )
        for node in listed
    ]
    return nodes, []


def _bytes(text: str | None) -> int | None:
    return int(text) if text and _NUMBER.fullmatch(text) else None
