"""The processes that this one has started, as the kernel tells them; Linux only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.sandbox.fork_server import ThreadForks

LASTING_FORKS: list[ThreadForks] = []
"""What other threads of the test run keep a fork server with."""


def children() -> set[str]:
    """Name the living ones, but for the fork servers that the test run keeps."""
    from dragoman.sandbox.fork_server import forks_here

    mine = f"PPid:\t{Path('/proc/self').resolve().name}\n"
    kept = {str(forks.server.process.pid) for forks in (forks_here(), *LASTING_FORKS) if forks.server}
    return {path.parent.name for path in Path("/proc").glob("[0-9]*/status") if _lives(path, mine)} - kept


def _lives(path: Path, parent: str) -> bool:
    try:
        text = path.read_text()
    except OSError:  # it has just ended
        return False
    return parent in text and "State:\tZ" not in text
