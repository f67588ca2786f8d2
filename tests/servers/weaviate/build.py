"""Builds the server in the cache: Go fetches its modules, checks their sums and compiles them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from servers.faults import EngineError, Obstacle, narrate
from servers.folders import build_once, cache

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "1.38.11"

_MODULE = f"github.com/weaviate/weaviate/cmd/weaviate-server@v{VERSION}"
_NEEDED = (1, 26)
"""The Go that the module asks for; from 1.21 on Go fetches a newer one by itself, unless it was told not to."""

_FLAGS = ("-trimpath", "-modcacherw", "-ldflags=-s -w")


def go_obstacle() -> Obstacle | None:
    """Look for a Go that can build the server."""
    go = _go()
    if not go:
        return Obstacle(reason="Go (go) is not on the path", remedy="install Go 1.26 or newer (https://go.dev/dl)")
    release = tuple(map(int, re.findall(r"\d+", go["GOVERSION"])[:2]))
    fetches = release >= (1, 21) and go["GOTOOLCHAIN"] != "local"
    if release >= _NEEDED or fetches:
        return None
    return Obstacle(
        reason=f"needs Go {_NEEDED[0]}.{_NEEDED[1]} or newer; found {go['GOVERSION']}",
        remedy="install a newer one (https://go.dev/dl), or let Go fetch it: GOTOOLCHAIN=auto",
    )


def build_folder() -> Path:
    """Name the folder of the server; its name changes with the version of Go and with how it is built."""
    digest = hashlib.sha256(f"{_go()} {_MODULE} {_FLAGS}".encode()).hexdigest()
    return cache() / "weaviate" / f"{VERSION}-{digest[:12]}"


def build() -> bool:
    """Make the folder unless it is there; tell whether this call made it."""
    return build_once(build_folder(), _compile)


def binary() -> Path:
    """Name the server's program."""
    return build_folder() / "weaviate-server"


def _compile(folder: Path) -> None:
    narrate(f"fetching and compiling Weaviate {VERSION}; this takes minutes, once …")
    environment = {
        **os.environ,
        "GOBIN": str(folder),
        "GOMODCACHE": str(cache() / "go" / "mod"),
        "GOCACHE": str(folder / "objects"),
        "CGO_ENABLED": "0",
    }
    command = ["go", "install", *_FLAGS, _MODULE]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        remedy = f"a look at what Go says, with the network up: go install {_MODULE}"
        raise EngineError(f"weaviate {VERSION}", f"`go install` ended with {done.returncode}", tail=tail, remedy=remedy)
    shutil.rmtree(folder / "objects")


def _go() -> dict[str, str]:
    """Ask Go for its version and for whether it may fetch another; `{}` where there is none."""
    try:
        said = subprocess.run(["go", "env", "-json", "GOVERSION", "GOTOOLCHAIN"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    found: dict[str, str] = json.loads(said.stdout)
    return found
