"""The engines: two packages of Debian, unpacked and never installed, and one version that Go compiles."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servers.engines import Engine, Server
from servers.faults import EngineError, Obstacle, narrate
from servers.folders import build_once, cache
from servers.go_modules import GoServer
from servers.prometheus.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.engines import Options

NEWEST = "3.16.0"

SERVER = GoServer(
    name="prometheus",
    version="0.316.0",  # as the module counts
    package="github.com/prometheus/prometheus/cmd/prometheus",
    needed=(1, 25),
    patience="some minutes",
    # Without a page of its own and without service discovery, which would bring in the clients of every cloud.
    flags=("-tags=remove_all_sd", f"-ldflags=-s -w -X github.com/prometheus/common/version.Version={NEWEST}"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusEngine(Engine):
    """A server over an empty folder.

    Attributes:
        package: The Debian package, which also names the program; empty for the compiled server.
        secured: It speaks HTTPS and asks for a user name and a password.
    """

    package: str = ""
    secured: bool = False

    @property
    def _folder(self) -> Path:
        return cache() / "debian" / self.package if self.package else SERVER.folder

    def obstacle(self) -> Obstacle | None:
        """Look for apt, or for Go."""
        if not self.package:
            return SERVER.obstacle()
        if self._folder.is_dir() or (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            return None
        return Obstacle(reason="apt-get or dpkg-deb is missing", remedy="Debian, or a system like it")

    def install(self) -> tuple[Path, bool]:
        """Unpack the package, or compile the server; its service is neither installed nor started."""
        if not self.package:
            made = SERVER.build()
            return SERVER.folder, made
        return self._folder, build_once(self._folder, self._unpack)

    def _unpack(self, folder: Path) -> None:
        narrate(f"fetching the package {self.package} …")
        for command in (["apt-get", "download", self.package], ["sh", "-c", "dpkg-deb -x ./*.deb . && rm ./*.deb"]):
            done = subprocess.run(
                command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            if done.returncode:
                remedy = f"apt-get update, then apt-get download {self.package}"
                raise EngineError(
                    self.id, f"`{command[0]}` ended with {done.returncode}", tail=done.stdout, remedy=remedy
                )

    @contextmanager
    def serve(self, folder: Path, options: Options) -> Iterator[Server]:
        """Run one server."""
        home, _ = self.install()
        program = home / "usr/bin" / self.package if self.package else SERVER.program
        node = Node(self.id, program, folder=folder, secured=self.secured, options=options)
        with node.running() as (process, record):
            yield Server(process=process, record=record)


ENGINES = [
    PrometheusEngine(
        id="prometheus-debian",
        type="prometheus",
        version="2.x",
        proves="Prometheus 2: ranges that include both of their ends, label names of letters and digits",
        package="prometheus",
    ),
    PrometheusEngine(
        id=f"prometheus-{NEWEST}",
        type="prometheus",
        version=NEWEST,
        proves="the newest Prometheus: ranges without their first instant, label names of any text, histograms",
    ),
    PrometheusEngine(
        id="prometheus-victoriametrics-debian",
        type="prometheus",
        version="1.x",
        proves="VictoriaMetrics, single node: no version, NaN as a marker, 12 digits, a delayed present",
        package="victoria-metrics",
    ),
    PrometheusEngine(
        id="prometheus-victoriametrics-debian-tls",
        type="prometheus-secured",
        version="1.x",
        proves="a user name and a password over TLS",
        package="victoria-metrics",
        secured=True,
    ),
]
