"""One helper process for the wheels of all tests, a folder that others may enter, and golden files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman_registry.isolation import Apart
from shared_isolation import one_process_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def apart() -> Iterator[Apart]:
    """Start the helper process of all tests."""
    with Apart() as apart:
        yield apart


@pytest.fixture(autouse=True, scope="module")
def one_process(apart: Apart) -> Iterator[None]:
    """Check the wheels of all tests in one process; tests in `test_one_publisher` hold that it is apart."""
    with one_process_apart(apart):
        yield


@pytest.fixture
def shared_path() -> Iterator[Path]:
    """A folder that other users may enter, in memory if possible."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def golden() -> Callable[[str, list[str]], None]:
    """A comparison of lines with a file beside this one; `DRAGOMAN_GOLDEN=write` writes the file anew."""

    def compare(name: str, lines: list[str]) -> None:
        file = Path(__file__).with_name(name)
        if os.environ.get("DRAGOMAN_GOLDEN") == "write":
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        assert lines == file.read_text(encoding="utf-8").splitlines()

    return compare
