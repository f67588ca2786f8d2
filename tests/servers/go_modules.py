"""Servers that are published as Go modules: Go fetches them into the cache, checks their sums and compiles them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from servers.faults import EngineError, Obstacle, narrate
from servers.folders import build_once, cache

if TYPE_CHECKING:
    from pathlib import Path

_FLAGS = ("-trimpath", "-modcacherw", "-ldflags=-s -w")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoServer:
    """One version of a server.

    Attributes:
        name: Its name, also that of its folder in the cache.
        version: Its version.
        package: The package that is compiled; its last part is the name of the program.
        needed: The Go that the module asks for; from 1.21 on Go fetches a newer one by itself, unless it was told not
            to.
        patience: What a person is told about the time that it takes.
        flags: Flags of the compilation after the usual ones, which they replace.
    """

    name: str
    version: str
    package: str
    needed: tuple[int, int]
    patience: str
    flags: tuple[str, ...] = ()

    @property
    def _module(self) -> str:
        return f"{self.package}@v{self.version}"

    def obstacle(self) -> Obstacle | None:
        """Look for a Go that can build the server."""
        go = _go()
        wanted = f"{self.needed[0]}.{self.needed[1]}"
        if not go:
            remedy = f"install Go {wanted} or newer (https://go.dev/dl)"
            return Obstacle(reason="Go (go) is not on the path", remedy=remedy)
        release = tuple(map(int, re.findall(r"\d+", go["GOVERSION"])[:2]))
        fetches = release >= (1, 21) and go["GOTOOLCHAIN"] != "local"
        if release >= self.needed or fetches:
            return None
        return Obstacle(
            reason=f"needs Go {wanted} or newer; found {go['GOVERSION']}",
            remedy="install a newer one (https://go.dev/dl), or let Go fetch it: GOTOOLCHAIN=auto",
        )

    @property
    def folder(self) -> Path:
        """Name the server's folder; its name changes with the version of Go and with how it is built."""
        digest = hashlib.sha256(f"{_go()} {self._module} {(*_FLAGS, *self.flags)}".encode()).hexdigest()
        return cache() / self.name / f"{self.version}-{digest[:12]}"

    def build(self) -> bool:
        """Make the folder unless it is there; tell whether this call made it."""
        return build_once(self.folder, self._compile)

    @property
    def program(self) -> Path:
        """Name the server's program."""
        return self.folder / self.package.rpartition("/")[2]

    def _compile(self, folder: Path) -> None:
        narrate(f"fetching and compiling {self.name} {self.version}; this takes {self.patience}, once …")
        environment = {
            **os.environ,
            "GOBIN": str(folder),
            "GOMODCACHE": str(cache() / "go" / "mod"),
            "GOCACHE": str(folder / "objects"),
            "CGO_ENABLED": "0",
        }
        command = ["go", "install", *_FLAGS, *self.flags, self._module]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode:
            tail = "\n".join(done.stdout.splitlines()[-15:])
            remedy = f"a look at what Go says, with the network up: go install {self._module}"
            subject, problem = f"{self.name} {self.version}", f"`go install` ended with {done.returncode}"
            raise EngineError(subject, problem, tail=tail, remedy=remedy)
        shutil.rmtree(folder / "objects")


def _go() -> dict[str, str]:
    """Ask Go for its version and for whether it may fetch another; `{}` where there is none."""
    try:
        said = subprocess.run(["go", "env", "-json", "GOVERSION", "GOTOOLCHAIN"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    found: dict[str, str] = json.loads(said.stdout)
    return found
