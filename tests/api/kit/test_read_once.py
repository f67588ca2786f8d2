"""What is read once is kept; what could not be read is tried again after a while."""

from __future__ import annotations

import anyio
import pytest

from dragoman_api.errors import QueryError
from dragoman_api.kit import views
from dragoman_api.kit.views import ReadOnce

pytestmark = pytest.mark.anyio


async def test_a_value_is_read_once_also_by_several_at_a_time():
    asked = []

    async def read(name):
        asked.append(name)
        await anyio.sleep(0.01)
        return name.upper()

    once = ReadOnce(read)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(once.get, "a")
    assert await once.get("a") == "A"
    assert asked == ["a"]
    once.keep("a", "other")
    assert await once.get("a") == "other"
    for number in range(views._MOST):
        once.keep(f"n{number}", "x")
    assert await once.get("a") == "A"
    assert asked == ["a", "a"]


async def test_what_fails_or_takes_long_is_none_and_is_asked_again_later(monkeypatch):
    monkeypatch.setattr(views, "_SECONDS", 0.05)
    asked = []

    async def read(name):
        asked.append(name)
        if name == "slow":
            await anyio.sleep(10)
        raise QueryError("no")

    once = ReadOnce(read)
    for name in ("slow", "bad"):
        assert await once.get(name) is None
        assert await once.get(name) is None
    assert asked == ["slow", "bad"]
    monkeypatch.setattr(views, "_PAUSE", 0.0)
    assert await ReadOnce(read).get("bad") is None
    fresh = ReadOnce(read)
    await fresh.get("bad")
    await anyio.sleep(0.01)
    await fresh.get("bad")
    assert asked == ["slow", "bad", "bad", "bad", "bad"]


@pytest.mark.parametrize(("value", "reads"), [(0, 1), ("", 1), ({}, 1), (False, 1), (None, 2)])
async def test_what_is_empty_was_read_and_only_none_is_read_again(monkeypatch, value, reads):
    monkeypatch.setattr(views, "_PAUSE", 0.0)
    asked = []

    async def read(name):
        asked.append(name)
        return value

    once = ReadOnce(read)
    for _ in range(2):
        assert await once.get("a") == value
        await anyio.sleep(0.01)
    assert len(asked) == reads


async def test_what_was_read_is_kept_however_long_ago_that_was(monkeypatch):
    monkeypatch.setattr(views, "_PAUSE", 0.0)
    asked = []

    async def read(name):
        asked.append(name)
        return name.upper()

    once = ReadOnce(read)
    for _ in range(2):
        assert await once.get("a") == "A"
        await anyio.sleep(0.01)
    assert asked == ["a"]
