"""What every test gets: one event loop backend, and a home of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# Generated examples are as good on a busy machine; pytest's own time limit ends a test that hangs.
settings.register_profile("dragoman", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dragoman")

MAY_BLOCK = {
    # plain functions, documented as such: a host with a loop to protect calls them in a thread
    "dragoman/plugins/registries.py": {"add", "remove", "list"},
    "dragoman/connections.py": {"list", "get", "save", "remove", "store_secret", "resolve_secret", "check_name"},
    "dragoman/cli/options.py": {"write"},  # an event is written down before anything else happens
    "dragoman/plugins/lifecycle.py": {"installed"},
    "dragoman/runtime.py": {"__init__"},
    # a child must be started by the main thread: the signal of its parent's death follows the starting thread
    "dragoman/sandbox/child.py": {"__init__"},
    "<frozen importlib._bootstrap>": {"_find_and_load"},
}


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


@pytest.fixture(autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """Let a blocking call in the event loop fail the test that makes it."""
    with blockbuster_ctx(["dragoman", "dragoman_api"]) as detector:
        for function in detector.functions.values():
            for file, names in MAY_BLOCK.items():
                function.can_block_in(file, names)
        yield
