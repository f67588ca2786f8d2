"""The S3 engines: one build, with room and without."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servers.engines import Engine, Server
from servers.faults import Obstacle
from servers.go_modules import GoServer
from servers.versitygw.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.engines import Options

VERSION = "1.8.0"

SERVER = GoServer(
    name="versitygw",
    version=VERSION,
    package="github.com/versity/versitygw/cmd/versitygw",
    needed=(1, 25),
    patience="a minute or two",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Engine(Engine):
    """The gateway over a folder, or over a small disk in memory.

    Attributes:
        room: The bytes of the disk; 0 for the folder.
    """

    room: int = 0

    def obstacle(self) -> Obstacle | None:
        """Look for Go, and for a way to mount a disk."""
        if self.room and not _mounts():
            remedy = "root on Linux, or sysctl kernel.unprivileged_userns_clone=1"
            return Obstacle(reason="a small disk cannot be mounted here", remedy=remedy)
        return SERVER.obstacle()

    def install(self) -> tuple[Path, bool]:
        """Build the server; both engines share it."""
        made = SERVER.build()
        return SERVER.folder, made

    @contextmanager
    def serve(self, folder: Path, options: Options) -> Iterator[Server]:
        """Run one gateway."""
        self.install()
        node = Node(self.id, SERVER.program, version=VERSION, folder=folder, room=self.room, options=options)
        with node.running() as (process, record):
            yield Server(process=process, record=record)


def _mounts() -> bool:
    if not shutil.which("unshare"):
        return False
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return not subprocess.run(command, capture_output=True, check=False).returncode


ENGINES = [
    S3Engine(
        id=f"versitygw-{VERSION}",
        type="s3",
        version=VERSION,
        proves="S3: keys, rights, uploads in pieces, writes that must not replace",
    ),
    S3Engine(
        id=f"versitygw-{VERSION}-full",
        type="s3-full",
        version=VERSION,
        proves="S3 without room: a disk of 1 MiB",
        room=1 << 20,
    ),
]
