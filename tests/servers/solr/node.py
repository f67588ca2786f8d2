"""One running server: its home, its process, and the record that says how to reach it."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
from base64 import b64encode
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from servers.faults import EngineError
from servers.processes import Process, free_ports
from servers.rest import Rest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from servers.engines import Options

CONFIGSET = "tests"
"""The set of settings from which tests create cores."""

_HOST = "127.0.0.1"


class Node:
    """A server over an empty folder, which creates cores from one set of settings."""

    def __init__(
        self, name: str, java: Sequence[str], *, version: str, folder: Path, secured: bool, options: Options
    ) -> None:
        """Choose a port, and passwords where they are asked for."""
        self._name, self._java, self._version = name, java, version
        self._home, self._options = folder, options
        (self._port,) = free_ports(1)
        self._url = f"http://{_HOST}:{self._port}"
        names = ("owner", "reader") if secured else ()
        self._users = {user: {"username": user, "password": secrets.token_urlsafe(24)} for user in names}

    @contextmanager
    def running(self) -> Iterator[tuple[Process, dict[str, Any]]]:
        """Run the server: entered, it answers; left, it is gone."""
        began = time.monotonic()
        shutil.copytree(Path(__file__).parent / "configset", self._home / "configsets" / CONFIGSET / "conf")
        (self._home / "solr.xml").write_text("<solr/>")
        if self._users:
            (self._home / "security.json").write_text(json.dumps(self._security()))
        scratch = self._home / "tmp"
        scratch.mkdir()
        command = [*self._java, f"-Djava.io.tmpdir={scratch}", "launch.Launch", str(self._home), str(self._port)]
        process = Process(self._name, command, folder=self._home)
        try:
            owner = self._users.get("owner")
            pair = b64encode(f"{owner['username']}:{owner['password']}".encode()).decode() if owner else ""
            rest = Rest(self._url, authorization=f"Basic {pair}" if pair else "")
            process.wait_until(lambda: _is_ready(rest), seconds=self._options.patience)
            yield process, self._record(process, rest, began)
        finally:
            process.stop()

    def _security(self) -> dict[str, Any]:
        credentials = {user["username"]: _hashed(user["password"]) for user in self._users.values()}
        rights = [
            {"name": "read", "role": ["owner", "reader"]},
            {"name": "schema-read", "role": ["owner", "reader"]},
            {"name": "core-admin-read", "role": ["owner", "reader"]},
            {"name": "config-read", "role": ["owner", "reader"]},
            {"name": "metrics-read", "role": ["owner", "reader"]},
            {"name": "all", "role": "owner"},
        ]
        return {
            "authentication": {"class": "solr.BasicAuthPlugin", "blockUnknown": True, "credentials": credentials},
            "authorization": {
                "class": "solr.RuleBasedAuthorizationPlugin",
                "permissions": rights,
                "user-role": {user: user for user in self._users},
            },
        }

    def _record(self, process: Process, rest: Rest, began: float) -> dict[str, Any]:
        _, system = rest.send("GET", "/solr/admin/info/system")
        version = system["lucene"]["solr-spec-version"]
        if version != self._version:
            raise EngineError(self._name, f"the server tells version {version}", tail=process.tail())
        return {
            "type": "solr-secured" if self._users else "solr",
            "engine": self._name,
            "version": version,
            "url": self._url,
            "host": _HOST,
            "port": self._port,
            "security": bool(self._users),
            "tls": False,
            "users": self._users,
            "pid": process.pid,
            "supervisor": os.getpid(),
            "data_dir": str(self._home),
            "started_in": round(time.monotonic() - began, 2),
        }


def _hashed(password: str) -> str:
    """Return a password as the server keeps it: twice hashed with its salt, and the salt."""
    salt = secrets.token_bytes(32)
    digest = hashlib.sha256(hashlib.sha256(salt + password.encode()).digest()).digest()
    return f"{b64encode(digest).decode()} {b64encode(salt).decode()}"


def _is_ready(rest: Rest) -> bool:
    try:
        status, _ = rest.send("GET", "/solr/admin/cores?action=STATUS")
    except OSError:
        return False
    return status == 200
