"""Nothing here outlives its test, so nothing has to reach the disk itself."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save the time of waiting for a disk; the crash tests run in processes of their own, where fsync is real."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def shared_path() -> Iterator[Path]:
    """Give a folder that other users may enter, in memory where there is such a place."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
