"""Finds blocking calls in the event loop: BlockBuster, with its look at the stack in a tenth of the time."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from blockbuster import BlockBuster

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from blockbuster.blockbuster import BlockBusterFunction

SCANNED = ("dragoman", "dragoman_api")
"""Packages whose blocking calls are found."""

MAY_BLOCK = {
    "dragoman/cli/connection_form.py": {"_tunnel"},  # the path that was typed, made absolute
    # A tunnel's ssh: started in the thread that outlives it, and what it prints is read from a non-blocking pipe.
    "reach/ssh_tunnel.py": {"__init__", "_read", "_reaped"},
    # plain functions, documented as such: a host with a loop to protect calls them in a thread
    "dragoman/plugins/registries.py": {"add", "remove", "list", "open"},
    "dragoman/connections/saved_connections.py": {
        "list",
        "get",
        "save",
        "remove",
        "store_secret",
        "check_name",
        "check_saved",
        "sifted",
    },
    "dragoman/cli/command_files.py": {"open_events", "check_apart"},  # before anything else is opened
    "dragoman/cli/streams.py": {"write"},  # an event is written down before anything else happens
    "dragoman/plugins/lifecycle.py": {"installed"},
    "dragoman/runtime.py": {"__init__"},
    "dragoman/folders.py": {"find_paths"},
    # a child must be started by the main thread: the signal of its parent's death follows the starting thread
    "dragoman/sandbox/bare_process.py": {"__init__"},
    "dragoman/sandbox/fork_server.py": {"__init__"},
    "<frozen importlib._bootstrap>": {"_find_and_load"},
    "runtime/test_loads.py": {"keep_moment"},  # no other request may be carried out meanwhile
}
"""Functions that may block, or call what does, by the end of their file's name."""


def make_detector() -> BlockBuster:
    """Make what finds blocking calls of the scanned packages while it is active."""
    detector = BlockBuster([*SCANNED])
    for function in detector.functions.values():
        for file, names in MAY_BLOCK.items():
            function.can_block_in(file, names)
        function.can_block_predicate = _look_once(function)
    return detector


def _look_once(function: BlockBusterFunction) -> Callable[..., bool]:
    """Decide as BlockBuster does, but match the name of each function on the stack only when it is first seen."""
    folders = tuple(importlib.import_module(name).__path__[0] for name in SCANNED)
    allows, places = function.can_block_predicate, function.can_block_functions
    verdicts: dict[int, tuple[CodeType, bool | None]] = {}

    def look(code: CodeType) -> tuple[CodeType, bool | None]:
        if any(code.co_filename.endswith(file) and code.co_name in names for file, names in places):
            return code, True
        return code, False if code.co_filename.startswith(folders) else None

    def may_block(*args: Any, **kwargs: Any) -> bool:
        if allows(*args, **kwargs):
            return True
        frame, scanned = sys._getframe(1), False
        while frame:
            code = frame.f_code
            if (verdict := verdicts.get(id(code))) is None:  # the code is kept, so that its number stays its own
                verdict = verdicts[id(code)] = look(code)
            if verdict[1]:
                return True
            scanned = scanned or verdict[1] is False
            frame = frame.f_back
        return not scanned

    return may_block
