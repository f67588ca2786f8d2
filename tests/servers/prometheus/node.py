"""One running server: its process, and the record that says how to reach it."""

from __future__ import annotations

import os
import secrets
import time
from base64 import b64encode
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from servers.certificates import make_certificates
from servers.faults import EngineError
from servers.processes import Process, free_ports
from servers.rest import Rest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.engines import Options

_HOST = "127.0.0.1"
_FOREVER = "100y"


class Node:
    """A server over an empty folder, which takes samples of any time by remote write."""

    def __init__(self, name: str, program: Path, *, folder: Path, secured: bool, options: Options) -> None:
        """Choose a port, and a password where one is asked for."""
        self._name, self._program, self._home, self._options = name, program, folder, options
        (self._port,) = free_ports(1)
        self._url = f"{'https' if secured else 'http'}://{_HOST}:{self._port}"
        self._users = {"reader": {"username": "reader", "password": secrets.token_urlsafe(24)}} if secured else {}
        if secured:
            make_certificates(folder)

    @contextmanager
    def running(self) -> Iterator[tuple[Process, dict[str, Any]]]:
        """Run the server: entered, it answers; left, it is gone."""
        began = time.monotonic()
        (self._home / "prometheus.yml").write_text("global: {scrape_interval: 1h}\n")
        environment = {"PATH": os.environ.get("PATH", "")}
        process = Process(self._name, self._command(), folder=self._home, environment=environment)
        try:
            rest = self._rest()
            process.wait_until(lambda: _is_ready(rest), seconds=self._options.patience)
            yield process, self._record(process, rest, began)
        finally:
            process.stop()

    def _command(self) -> list[str]:
        data, listen = str(self._home / "data"), f"{_HOST}:{self._port}"
        if self._program.name == "victoria-metrics":
            command = [f"-storageDataPath={data}", f"-httpListenAddr={listen}", f"-retentionPeriod={_FOREVER}"]
            for user in self._users.values():
                shown = self._home / self._options.certificate
                command += ["-tls", f"-tlsCertFile={shown}.crt", f"-tlsKeyFile={shown}.key"]
                command += [f"-httpAuth.username={user['username']}", f"-httpAuth.password={user['password']}"]
            return [str(self._program), *command]
        command = [
            f"--storage.tsdb.path={data}",
            f"--web.listen-address={listen}",
            "--web.enable-remote-write-receiver",
        ]
        command += [f"--config.file={self._home / 'prometheus.yml'}", f"--storage.tsdb.retention.time={_FOREVER}"]
        command += ["--enable-feature=native-histograms"] if self._name.endswith("debian") else []
        return [str(self._program), *command]

    def _rest(self) -> Rest:
        user = next(iter(self._users.values()), None)
        pair = b64encode(f"{user['username']}:{user['password']}".encode()).decode() if user else ""
        authority = self._home / "ca.crt" if user else None
        return Rest(self._url, authority=authority, authorization=f"Basic {pair}" if pair else "")

    def _record(self, process: Process, rest: Rest, began: float) -> dict[str, Any]:
        status, build = rest.send("GET", "/api/v1/status/buildinfo")
        if status != 200:
            raise EngineError(self._name, f"the build information has status {status}", tail=process.tail())
        secured = bool(self._users)
        return {
            "type": "prometheus-secured" if secured else "prometheus",
            "engine": self._name,
            "version": build["data"].get("version", ""),
            "url": self._url,
            "host": _HOST,
            "port": self._port,
            "security": secured,
            "tls": secured,
            "ca_file": str(self._home / "ca.crt") if secured else None,
            "stranger_ca_file": str(self._home / "stranger.crt") if secured else None,
            "certificate": self._options.certificate if secured else None,
            "users": self._users,
            "pid": process.pid,
            "supervisor": os.getpid(),
            "data_dir": str(self._home),
            "started_in": round(time.monotonic() - began, 2),
        }


def _is_ready(rest: Rest) -> bool:
    try:
        status, _ = rest.send("GET", "/api/v1/labels")  # needs the store, which opens last
    except OSError:
        return False
    return status == 200
