"""One running server: its environment, its process, and the record that says how to reach it."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any

from servers.certificates import make_certificates
from servers.faults import EngineError
from servers.processes import Process, free_neighbours, free_ports
from servers.rest import Rest
from servers.weaviate.build import SERVER, VERSION
from servers.weaviate.keys import make_keys, make_users

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from servers.engines import Options

_HOST = "127.0.0.1"


class Access(Enum):
    """Who may do what."""

    OPEN = "open"
    KEYS = "keys"
    ROLES = "roles"


class Node:
    """A server in an empty folder."""

    def __init__(
        self,
        name: str,
        *,
        access: Access,
        tls: bool,
        settings: Sequence[tuple[str, str]],
        folder: Path,
        options: Options,
    ) -> None:
        """Choose ports and keys, and write the certificates."""
        self._name = name
        self._access = access
        self._tls = tls
        self._settings = dict(settings)
        self._home = folder
        self._options = options
        self._port, self._grpc, self._gossip, self._data = free_ports(4)
        self._raft = free_neighbours()
        self._url = f"{'https' if tls else 'http'}://{_HOST}:{self._port}"
        self._keys = make_keys() if access is not Access.OPEN else {}
        if tls:
            make_certificates(folder)

    @contextmanager
    def running(self) -> Iterator[tuple[Process, dict[str, Any]]]:
        """Run the server: entered, it answers and its users are made; left, it is gone."""
        began = time.monotonic()
        process = Process(self._name, self._command(), folder=self._home, environment=self._environment())
        try:
            rest = self._rest()
            process.wait_until(lambda: _is_ready(rest), seconds=self._options.patience)
            record = self._record(process, rest)
            record["started_in"] = round(time.monotonic() - began, 2)
            yield process, record
        finally:
            process.stop()

    def _command(self) -> list[str]:
        if not self._tls:
            return [str(SERVER.program), "--scheme", "http", "--host", _HOST, "--port", str(self._port)]
        shown = self._home / self._options.certificate
        return [
            *(str(SERVER.program), "--scheme", "https", "--tls-host", _HOST, "--tls-port", str(self._port)),
            *("--tls-certificate", f"{shown}.crt", "--tls-key", f"{shown}.key"),
        ]

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "PERSISTENCE_DATA_PATH": str(self._home / "data"),
            "CLUSTER_HOSTNAME": "node1",
            "CLUSTER_IN_LOCALHOST": "true",
            # Required where only lo is up: the server looks for a private address otherwise, and ends.
            "CLUSTER_BIND_ADDR": _HOST,
            "CLUSTER_ADVERTISE_ADDR": _HOST,
            "CLUSTER_GOSSIP_BIND_PORT": str(self._gossip),
            "CLUSTER_DATA_BIND_PORT": str(self._data),
            "RAFT_PORT": str(self._raft),
            # On one machine the server looks for this one beside the other, wherever it was told to put it.
            "RAFT_INTERNAL_RPC_PORT": str(self._raft + 1),
            "RAFT_BOOTSTRAP_EXPECT": "1",
            "RAFT_TIMEOUTS_MULTIPLIER": "1",  # ready after 2 seconds instead of 6
            "GRPC_PORT": str(self._grpc),
            "DEFAULT_VECTORIZER_MODULE": "none",
            "ENABLE_MODULES": "",
            "API_BASED_MODULES_DISABLED": "true",
            "DISABLE_TELEMETRY": "true",
            "GO_PROFILING_DISABLE": "true",
            # A developer's disk is often fuller than the server likes.
            "DISK_USE_WARNING_PERCENTAGE": "0",
            "DISK_USE_READONLY_PERCENTAGE": "0",
            **self._access_settings(),
            **self._settings,
        }

    def _access_settings(self) -> dict[str, str]:
        if self._access is Access.OPEN:
            return {"AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "true"}
        keys = {
            "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
            "AUTHENTICATION_APIKEY_ENABLED": "true",
            "AUTHENTICATION_APIKEY_USERS": ",".join(self._keys),
            "AUTHENTICATION_APIKEY_ALLOWED_KEYS": ",".join(self._keys.values()),
        }
        if self._access is Access.KEYS:
            return keys | {
                "AUTHORIZATION_ADMINLIST_ENABLED": "true",
                "AUTHORIZATION_ADMINLIST_USERS": "admin",
                "AUTHORIZATION_ADMINLIST_READONLY_USERS": "reader",
            }
        return keys | {
            "AUTHORIZATION_RBAC_ENABLED": "true",
            "AUTHORIZATION_RBAC_ROOT_USERS": "admin",
            "AUTHENTICATION_DB_USERS_ENABLED": "true",
        }

    def _rest(self) -> Rest:
        authority = self._home / "ca.crt" if self._tls else None
        key = self._keys.get("admin")
        return Rest(self._url, authority=authority, authorization=f"Bearer {key}" if key else "")

    def _record(self, process: Process, rest: Rest) -> dict[str, Any]:
        status, meta = rest.send("GET", "/v1/meta")
        version = meta["version"] if status == 200 else f"status {status}"
        if version != VERSION:
            raise EngineError(self._name, f"GET /v1/meta tells version {version}", tail=process.tail())
        more = make_users(rest) if self._access is Access.ROLES else {}
        return {
            "type": "weaviate",
            "engine": self._name,
            "version": version,
            "url": self._url,
            "host": _HOST,
            "port": self._port,
            "grpc_port": self._grpc,
            "security": bool(self._keys),
            "access": self._access.value,
            "settings": self._settings,
            "tls": self._tls,
            "ca_file": str(self._home / "ca.crt") if self._tls else None,
            "stranger_ca_file": str(self._home / "stranger.crt") if self._tls else None,
            "certificate": self._options.certificate if self._tls else None,
            "api_keys": self._keys | more,
            "pid": process.pid,
            "supervisor": os.getpid(),
            "data_dir": str(self._home),
        }


def _is_ready(rest: Rest) -> bool:
    try:
        status, _ = rest.send("GET", "/v1/.well-known/ready")
    except OSError:
        return False
    return status == 200
