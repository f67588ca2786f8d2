"""The Chroma engine: pip installs `chromadb`, whose program `chroma` is the server."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servers.engines import Engine, Server
from servers.faults import EngineError, Obstacle, narrate
from servers.folders import build_once, cache
from servers.processes import Process, free_ports
from servers.rest import Rest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.engines import Options

VERSION = "1.5.9"
_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChromaEngine(Engine):
    """The server without users, which it has not had since 1.0."""

    @property
    def _folder(self) -> Path:
        return cache() / "chroma" / f"{VERSION}-{sys.version_info.major}.{sys.version_info.minor}"

    def obstacle(self) -> Obstacle | None:
        """Look for the module that makes environments."""
        if importlib.util.find_spec("ensurepip"):
            return None
        return Obstacle(
            reason="Python lacks ensurepip, so it makes no environment", remedy="apt-get install python3-venv"
        )

    def install(self) -> tuple[Path, bool]:
        """Install the wheel and what it needs, about 400 MB."""
        made = build_once(self._folder, self._build)
        return self._folder, made

    def _build(self, folder: Path) -> None:
        narrate(f"installing chromadb {VERSION}; this takes a minute or two, once …")
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", f"chromadb=={VERSION}"],
        ):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode:
                problem = f"`{' '.join(command[:4])} …` ended with {done.returncode}"
                raise EngineError(self.id, problem, tail="\n".join(done.stdout.splitlines()[-15:]))

    @contextmanager
    def serve(self, folder: Path, options: Options) -> Iterator[Server]:
        """Run a server over an empty folder."""
        self.install()
        began = time.monotonic()
        (port,) = free_ports(1)
        program = [str(self._folder / "bin" / "python"), "-c", "from chromadb.cli.cli import app; app()"]
        command = [*program, "run", "--host", _HOST, "--port", str(port), "--path", str(folder / "data")]
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "ANONYMIZED_TELEMETRY": "False"}
        process = Process(self.id, command, folder=folder, environment=environment)
        try:
            rest = Rest(f"http://{_HOST}:{port}")
            process.wait_until(lambda: _is_ready(rest), seconds=options.patience)
            record = {
                "type": "chroma",
                "engine": self.id,
                "version": VERSION,
                "url": f"http://{_HOST}:{port}",
                "host": _HOST,
                "port": port,
                "security": False,
                "tls": False,
                "pid": process.pid,
                "supervisor": os.getpid(),
                "data_dir": str(folder),
                "started_in": round(time.monotonic() - began, 2),
            }
            yield Server(process=process, record=record)
        finally:
            process.stop()


def _is_ready(rest: Rest) -> bool:
    try:
        return rest.send("GET", "/api/v2/heartbeat")[0] == 200
    except OSError:
        return False


ENGINES = [
    ChromaEngine(
        id=f"chroma-{VERSION}",
        type="chroma",
        version=VERSION,
        proves="a vector store without sort, order and compare-and-set",
    )
]
