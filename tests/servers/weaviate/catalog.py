"""The Weaviate engines: one build, started in the ways that answer differently."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servers.engines import Engine, Server
from servers.faults import Obstacle
from servers.weaviate.build import SERVER, VERSION
from servers.weaviate.node import Access, Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from servers.engines import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class WeaviateEngine(Engine):
    """The server with one kind of protection and some settings of its own."""

    access: Access
    tls: bool
    settings: tuple[tuple[str, str], ...]

    def obstacle(self) -> Obstacle | None:
        """Look for Go, and for openssl where there is TLS."""
        if self.tls and not shutil.which("openssl"):
            return Obstacle(reason="openssl is not on the path", remedy="apt-get install openssl")
        return SERVER.obstacle()

    def install(self) -> tuple[Path, bool]:
        """Build the server; all engines share it."""
        made = SERVER.build()
        return SERVER.folder, made

    @contextmanager
    def serve(self, folder: Path, options: Options) -> Iterator[Server]:
        """Run one node."""
        self.install()
        node = Node(self.id, access=self.access, tls=self.tls, settings=self.settings, folder=folder, options=options)
        with node.running() as (process, record):
            yield Server(process=process, record=record)


def _engine(
    suffix: str, access: Access, proves: str, *, tls: bool = False, settings: Mapping[str, str] | None = None
) -> WeaviateEngine:
    return WeaviateEngine(
        id=f"weaviate-{VERSION}{suffix}",
        type="weaviate",
        version=VERSION,
        proves=proves,
        # The ports for gRPC and for the cluster's data have no setting for an address.
        exposed=True,
        access=access,
        tls=tls,
        settings=tuple((settings or {}).items()),
    )


_SMALL = {
    "QUERY_MAXIMUM_RESULTS": "50",
    "QUERY_DEFAULTS_LIMIT": "25",
    "AUTOSCHEMA_ENABLED": "false",
    "MAXIMUM_CONCURRENT_GET_REQUESTS": "1",
}

ENGINES = [
    _engine("", Access.KEYS, "API keys of an administrator and of a reader"),
    _engine("-rbac", Access.ROLES, "roles: one collection only, nothing at all; rotated and deactivated keys"),
    _engine("-tls", Access.KEYS, "API keys over TLS", tls=True),
    _engine("-open", Access.OPEN, "no authentication"),
    _engine("-no-graphql", Access.OPEN, "GraphQL switched off", settings={"DISABLE_GRAPHQL": "true"}),
    _engine("-small", Access.OPEN, "a window of 50 rows, and no schema made on the fly", settings=_SMALL),
    _engine("-tenants", Access.KEYS, "tenants: they break the routes without a collection for the whole server"),
]
