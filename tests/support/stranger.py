"""A stranger's machine for tests: a home of its own in an empty environment, and the sample cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.main_job import sample_cluster as serve_sample

from command_line import Machine

__all__ = ["ROOT", "connected", "serve_sample", "stranger"]

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
