"""What finds blocking calls in the event loop of a test, which every test has around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from blockbuster import BlockingError

import dragoman

FOLDER = Path(dragoman.__file__).parent


def calling(file, name, act):
    """Return a function of a file, as its code object says, that calls another."""
    names = {}
    exec(compile(f"def {name}(act): return act()", str(file), "exec"), names)
    return lambda: names[name](act)


def block():
    return Path("/").stat()


async def test_a_call_that_blocks_beneath_a_function_of_a_package_is_found():
    with pytest.raises(BlockingError):
        calling(FOLDER / "sessions/session.py", "page", block)()


@pytest.mark.parametrize(
    ("file", "name", "outer"),
    [
        (FOLDER / "plugins/registries.py", "list", None),  # may block
        (FOLDER / "plugins/registries.py", "list", (FOLDER / "sessions/session.py", "page")),
        (FOLDER / "sessions/session.py", "page", (FOLDER / "plugins/registries.py", "list")),
        (FOLDER.with_name("elsewhere") / "session.py", "page", None),  # of no package
    ],
)
async def test_a_call_that_may_block_is_let_through(file, name, outer):
    act = calling(file, name, block)
    assert calling(*outer, act)() if outer else act()


def test_without_a_loop_every_call_may_block():
    assert calling(FOLDER / "sessions/session.py", "page", block)()


async def test_a_namesake_elsewhere_may_not_block():
    with pytest.raises(BlockingError):
        calling(FOLDER / "plugins/another.py", "list", block)()
