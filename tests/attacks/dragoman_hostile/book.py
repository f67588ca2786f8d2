"""What all attacks share: where they are written down, what they aim at, and how they end."""

from __future__ import annotations

import errno
import inspect
import os
import re
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Targets = SimpleNamespace
"""Paths, ports and process numbers that the host can reach, or a refusal would prove nothing."""

ATTACKS: dict[str, Callable[[Targets], object]] = {}

SENTINEL = re.compile(rb"dragoman-sentinel-[0-9a-f]{32}")
"""What the secrets of others look like; the pattern is no match of itself."""

_LOOKUPS = {getattr(socket, name): name for name in dir(socket) if name.startswith("EAI_")}


class FoiledError(Exception):
    """The attack failed in a way that is no errno; the text says which."""


class UnsupportedError(Exception):
    """This machine has not what the attack is aimed at."""


def attack(function: Callable[[Targets], object]) -> Callable[[Targets], object]:
    """Write an attack down under its name. It succeeds when it returns."""
    ATTACKS[function.__name__] = function
    return function


async def outcome(name: str, targets: Targets) -> str:
    """Make one attack and tell its end: ``succeeded``, an errno's name, or what else foiled it."""
    try:
        result = ATTACKS[name](targets)
        if inspect.isawaitable(result):
            await _wait(result)
    except FoiledError as error:
        return str(error)
    except UnsupportedError as error:
        return f"unsupported: {error}"
    except socket.gaierror as error:
        return _LOOKUPS.get(error.errno, str(error))
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    except MemoryError:
        return "MemoryError"
    return "succeeded"


async def _wait(result: Awaitable[object]) -> None:
    await result


def check_sentinel(data: bytes) -> None:
    """Succeed only with a secret in hand."""
    if SENTINEL.search(data) is None:
        raise FoiledError("absent")


def in_a_fork(act: Callable[[], object]) -> None:
    """Run an action in a new process if one can be started, so that a success ends only that; else in this one."""
    try:
        child = os.fork()
    except OSError:
        act()
        return
    if not child:
        code = 255
        try:
            act()
            code = 0
        except OSError as error:
            code = error.errno or 254
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        raise UnsupportedError(f"the kernel answers it by signal {os.WTERMSIG(status)}")
    if code := os.waitstatus_to_exitcode(status):
        raise OSError(code, os.strerror(code))
