"""A stranger's machine for tests: a home of its own in an empty environment, and the sample cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from command_line import Machine

ROOT = Path(__file__).parents[2]


def stranger(folder: Path, **more: Any) -> Machine:
    """Return a stranger's machine: a folder as its HOME, nothing of the tests' environment, commands as processes."""
    folder.mkdir(parents=True, exist_ok=True)
    return Machine(folder / "dragoman", **{"inside": False, "bare": True, **more})


def connected(folder: Path, *, port: int, cwd: Path | None = None) -> Machine:
    """Return a stranger's machine with the connection `shop` to an Elasticsearch at this port."""
    machine = stranger(folder, port=port, **({"cwd": cwd} if cwd else {}))
    machine("dragoman connections add shop --type elasticsearch --port $PORT --auth none --yes")
    return machine


@contextmanager
def serve_sample():
    """Serve the sample cluster in a process of its own, and yield its port."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests/support")])}
    server = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "sample", "shop", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    try:
        port = json.loads(server.stdout.readline())["samples"][0]["port"]
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).close()
        yield port
    finally:
        server.kill()  # it keeps nothing; `tests/fakes/test_samples.py` holds that it ends when it is asked to
        server.wait()
        server.stdout.close()
