"""Checks of file owners: like ssh, trust files that lead to code or secrets only from this user and root."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, NamedTuple

from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


class Exposure(NamedTuple):
    """Why another user may have written a file.

    Attributes:
        reason: Which file or folder, with its mode, and who can do what.
        remedy: A command that ends it.
    """

    reason: str
    remedy: str


def expect_own(path: Path, *, chosen: Path | None = None, secret: bool = False) -> None:
    """Refuse a file or folder that others can change; same arguments as `find_exposure`.

    Raises:
        ConfigurationError: Others can change it; nothing was read.
    """
    if found := find_exposure(path, chosen=chosen, secret=secret):
        raise ConfigurationError(f"{found.reason}; nothing was read from there", hint=found.remedy)


def find_exposure(path: Path, *, chosen: Path | None = None, secret: bool = False) -> Exposure | None:
    """Find users besides the owner and root who can change a file or folder, or a folder or link leading to it.

    It and its folder must belong to this user or root. A group without other members exposes nothing: with a umask of
    002, it can write all of a user's files. Folders above the user's home, which the system manages, and read-only
    mounts expose nothing either.

    Args:
        path: A missing file exposes nothing if no other user can create it.
        chosen: A person has just named the file, so its owner is trusted as well.
        secret: Users who can read it count as well.

    Returns:
        None if there is no exposure, and on Windows, where nothing is checked.
    """
    if sys.platform != "win32":
        from .posix_ownership import find

        if found := find(path, chosen=chosen, secret=secret):
            return Exposure(*found)
    return None


def in_private_group() -> bool:
    """Return whether the group of new files has no other members."""
    others = ""
    if sys.platform != "win32":
        from .posix_ownership import group_of

        others = group_of(os.getegid(), {0, os.geteuid()})
    return not others


def shared(folder: Path) -> bool:
    """Return whether every user may create files in a folder, as in /tmp."""
    return sys.platform != "win32" and bool(folder.stat().st_mode & stat.S_IWOTH)
