"""What every test gets: one event loop backend, and a home of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def anyio_backend() -> str:
    """Name the one event loop that aiohttp knows."""
    return "asyncio"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Redirect everything that dragoman keeps on disk into the test's own folder."""
    path = tmp_path / "home"
    monkeypatch.setenv("DRAGOMAN_HOME", str(path))
    return path
