"""Finds blocking calls in the event loop: BlockBuster's list, with a look at the stack in a tenth of its time."""

from __future__ import annotations

import importlib
import sys
from asyncio import Handle, _get_running_loop
from contextlib import contextmanager
from functools import wraps
from threading import local
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from blockbuster import BlockBuster, BlockingError, blockbuster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType

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
    # a few small files of the environment, when a command fails for what is not installed
    "dragoman_api/installation.py": {"add_command", "upgrade_command"},
    "dragoman/cli/command_files.py": {"open_to_append", "check_apart"},  # before anything else is opened
    "dragoman/cli/streams.py": {"write"},  # an event is written down before anything else happens
    "dragoman/plugins/lifecycle.py": {"installed"},
    "dragoman/runtime.py": {"__init__"},
    "sessions/relative_times.py": {"read_zone"},  # a small file of the system or of a package, once
    "dragoman/folders.py": {"find_paths"},
    # a child must be started by the main thread: the signal of its parent's death follows the starting thread
    "dragoman/sandbox/bare_process.py": {"__init__"},
    "dragoman/sandbox/fork_server.py": {"__init__"},
    "<frozen importlib._bootstrap>": {"_find_and_load"},
    "support/wheelhouse.py": {"project_wheels"},  # the first test that needs a driver's wheels builds them for all
    "runtime/test_loads.py": {"keep_moment"},  # no other request may be carried out meanwhile
}
"""Functions that may block, or call what does, by the end of their file's name."""


STEP = Handle._run.__code__
"""The step of an event loop, below which nothing can hold it up."""


class Calls(local):
    """What a thread does at this moment."""

    looked_at = False
    """Whether it is in a call that was looked at: what this calls in turn belongs to it."""


class Detector:
    """Finds blocking calls of the scanned packages while it acts.

    The functions that may block stay wrapped between tests. To exchange them twice for each test costs more than to
    ask whether it acts, and the interpreter forgets what it has learned about every place that calls one.
    """

    def __init__(self) -> None:
        self.acts = False
        self._folders = tuple(importlib.import_module(name).__path__[0] for name in SCANNED)
        self._calls = Calls()

    @contextmanager
    def wrapping(self) -> Iterator[Detector]:
        """Wrap the functions that may block."""
        detector = BlockBuster([*SCANNED])
        for function in detector.functions.values():
            for file, names in MAY_BLOCK.items():
                function.can_block_in(file, names)
        with patch.object(blockbuster, "_wrap_blocking", self._wrap):
            detector.activate()
        try:
            yield self
        finally:
            detector.deactivate()

    def _wrap(
        self,
        scanned: Sequence[str],
        excluded: Sequence[str],
        function: Callable[..., Any],
        name: str,
        places: list[tuple[str, Any]],
        allows: Callable[..., bool],
    ) -> Callable[..., Any]:
        calls, verdicts = self._calls, {}

        @wraps(function)  # a task of Dask may name it
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not self.acts or _get_running_loop() is None or calls.looked_at:
                return function(*args, **kwargs)
            calls.looked_at = True
            try:
                if not allows(*args, **kwargs) and self._blocks(places, verdicts):
                    raise BlockingError(name)
                return function(*args, **kwargs)
            finally:
                calls.looked_at = False

        return wrapper

    def _blocks(self, places: list[tuple[str, Any]], verdicts: dict[int, tuple[CodeType, bool | None]]) -> bool:
        """Return whether a function on the stack is of a scanned package, and none is a place that may block.

        What runs the loop is not looked at. A function is matched with the places only when it is first seen; the
        verdicts keep its code, so that the number stays its own.
        """
        frame, scanned = sys._getframe(2), False
        while frame and (code := frame.f_code) is not STEP:
            if (verdict := verdicts.get(id(code))) is None:
                verdict = verdicts[id(code)] = code, self._look(code, places)
            if verdict[1]:
                return False
            scanned = scanned or verdict[1] is False
            frame = frame.f_back
        return scanned

    def _look(self, code: CodeType, places: list[tuple[str, Any]]) -> bool | None:
        if any(code.co_filename.endswith(file) and code.co_name in names for file, names in places):
            return True
        return False if code.co_filename.startswith(self._folders) else None
