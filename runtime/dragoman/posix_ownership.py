"""Owners and modes of files on POSIX, judged as ssh judges them."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import sys
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

assert sys.platform != "win32"

_ACCESS_LIST = "system.posix_acl_access"
_LINKS = 40
"""Links in a path at most, as in Linux itself."""


def find(path: Path, *, chosen: Path | None, secret: bool) -> tuple[str, str] | None:
    """Find an exposure, as `file_ownership.find_exposure` says: the reason and the remedy."""
    trusted, real = {0, os.geteuid()}, Path(os.path.realpath(path))
    if chosen:
        with suppress(OSError):
            trusted.add(chosen.stat().st_uid)
    for place in _places(path):
        try:
            about = place.lstat()
        except OSError:  # the code that uses the file reports that
            return None
        if about.st_uid not in trusted and place in (real, real.parent):
            remedy = f"check it, then: chown {os.geteuid()} {quote(str(place))}"
            return f"{place} belongs to the user {_user(about.st_uid)}", remedy
        if found := _open_to_others(place, about, last=place == real, secret=secret and place == real):
            return found
    return None


def _places(path: Path) -> Iterator[Path]:
    """Yield each folder and link on the way to a file, then the file, as the kernel resolves them."""
    home: list[Path] = []
    with suppress(RuntimeError):  # a user unknown to the system
        home = [Path.home(), Path(os.path.realpath(Path.home()))]
    at, links, rest = Path("/"), 0, list(reversed(path.absolute().parts[1:]))
    while rest:
        if (part := rest.pop()) == "..":
            at = at.parent
            continue
        at /= part
        if at.is_symlink() and links < _LINKS:
            links, target = links + 1, at.readlink()
            at = Path("/") if target.is_absolute() else at.parent
            rest += reversed(target.parts[target.is_absolute() :])
        elif not any(at in each.parents for each in home):
            yield at


def _open_to_others(place: Path, about: os.stat_result, *, last: bool, secret: bool) -> tuple[str, str] | None:
    """Return how other users have access by a mode, and the remedy; None if they have none."""
    mode, name = about.st_mode, quote(str(place))
    shown = f"{place} has mode {stat.S_IMODE(mode):04o}"
    kept = stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX) and not last  # as /tmp: only owners can replace its files
    if not (kept or _read_only(place)) and (who := _who(place, about, stat.S_IWOTH)):
        return f"{shown}, so that {who} can write it", f"check it, then: chmod go-w {name}"
    if secret and (who := _who(place, about, stat.S_IROTH)):
        return f"{shown}, so that {who} can read the secrets in it", f"chmod 600 {name}"
    return None


def _who(place: Path, about: os.stat_result, right: int) -> str:
    """Name the parties besides the owner that have a right, given as its "others" bit; empty for none."""
    if about.st_mode & right:
        return "every user"
    if not about.st_mode & right << 3:
        return ""
    if sys.platform == "linux":
        with suppress(OSError):
            os.getxattr(place, _ACCESS_LIST)
            return "the users in its access list"
    return group_of(about.st_gid, {0, about.st_uid, os.geteuid()})


def group_of(number: int, owners: set[int]) -> str:
    """Return the name of a group that may have members besides root and the owner; empty for the owner's own group.

    The owner's own groups are root's, one named like its only member, and an unnamed group of this process, as in
    containers. A system may not list the members of other groups if its users come from a directory service.
    """
    try:
        group = grp.getgrgid(number)
    except KeyError:
        own = number in (os.getegid(), *os.getgroups(), *owners)
        return "" if own else f"the group {number}"
    names = {*map(_user, owners)}
    private = number == 0 or (
        group.gr_name in names and all(each.pw_uid in owners for each in pwd.getpwall() if each.pw_gid == number)
    )
    return "" if private and names.issuperset(group.gr_mem) else f"the group {group.gr_name}"


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _read_only(place: Path) -> bool:
    with suppress(OSError):
        return bool(os.statvfs(place).f_flag & os.ST_RDONLY)
    return False
