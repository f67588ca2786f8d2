"""One running gateway: its keys, its process, and the record that says how to reach it."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from servers.faults import EngineError
from servers.processes import Process, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.engines import Options

_HOST = "127.0.0.1"
_REGION = "us-east-1"


class Node:
    """A gateway over an empty folder."""

    def __init__(self, name: str, program: Path, *, version: str, folder: Path, room: int, options: Options) -> None:
        """Choose a port and invent keys."""
        self._name, self._program, self._version = name, program, version
        self._home, self._room, self._options = folder, room, options
        (self._port,) = free_ports(1)
        self._url = f"http://{_HOST}:{self._port}"
        self._users = {
            user: {"access_key": user, "secret_key": secrets.token_urlsafe(24)} for user in ("owner", "reader")
        }

    @contextmanager
    def running(self) -> Iterator[tuple[Process, dict[str, Any]]]:
        """Run the gateway: entered, it answers and its users are made; left, it is gone."""
        began = time.monotonic()
        for name in ("objects", "users"):
            (self._home / name).mkdir()
        owner = self._users["owner"]
        keys = {"ROOT_ACCESS_KEY": owner["access_key"], "ROOT_SECRET_KEY": owner["secret_key"]}
        environment = {"PATH": os.environ.get("PATH", ""), **keys}
        process = Process(self._name, self._command(), folder=self._home, environment=environment)
        try:
            process.wait_until(self._answers, seconds=self._options.patience)
            self._make_reader()
            yield process, self._record(process, began)
        finally:
            process.stop()

    def _command(self) -> list[str]:
        objects = str(self._home / "objects")
        command = [str(self._program), "--port", f"{_HOST}:{self._port}", "--region", _REGION, "--quiet"]
        command += ["--iam-dir", str(self._home / "users"), "posix", objects]
        if not self._room:
            return command
        mount = f'mount -t tmpfs -o size={self._room} tmpfs {objects} && exec "$@"'
        return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh", *command]

    def _answers(self) -> bool:
        # A proxy of the environment has no business between this machine and itself.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            opener.open(self._url, timeout=5).close()
        except urllib.error.HTTPError as refusal:  # it wants a signature
            refusal.close()
            return True
        except OSError:
            return False
        return True

    def _make_reader(self) -> None:
        owner, reader = self._users["owner"], self._users["reader"]
        command = [str(self._program), "admin", "--endpoint-url", self._url, "--region", _REGION, "create-user"]
        command += ["--access", reader["access_key"], "--secret", reader["secret_key"], "--role", "user"]
        keys = {"ADMIN_ACCESS_KEY": owner["access_key"], "ADMIN_SECRET_KEY": owner["secret_key"]}
        done = subprocess.run(
            command, env=keys, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode:
            raise EngineError(self._name, "the user `reader` could not be made", tail=done.stdout)

    def _record(self, process: Process, began: float) -> dict[str, Any]:
        return {
            "type": "s3-full" if self._room else "s3",
            "engine": self._name,
            "version": self._version,
            "url": self._url,
            "host": _HOST,
            "port": self._port,
            "region": _REGION,
            "security": True,
            "tls": False,
            "users": self._users,
            "pid": process.pid,
            "supervisor": os.getpid(),
            "data_dir": str(self._home),
            "started_in": round(time.monotonic() - began, 2),
        }
