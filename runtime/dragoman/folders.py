"""File locations on disk; quick to import, since a command finds them before all else."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from dragoman_api.errors import ConfigurationError, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME_VARIABLE = "DRAGOMAN_HOME"
"""The one variable that redirects everything."""
_ACCESS_LIST = "system.posix_acl_access"
_LINKS = 40
"""Links in a path at most, as in Linux itself."""


class Paths(NamedTuple):
    """The four root folders: configuration, installed data, state (what happened) and cache."""

    config: Path
    data: Path
    state: Path
    cache: Path

    @property
    def connections(self) -> Path:
        """The file of saved connections."""
        return self.config / "connections.toml"

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.config / "config.toml"


def find_paths(home: Path | None = None) -> Paths:
    """Find the roots: below `home`, else below DRAGOMAN_HOME, else in the platform's usual places.

    Raises:
        ConfigurationError: Other users can change the files there, and so choose which code runs.
    """
    paths = _find_paths(home)
    for root in paths:
        _check_folder(root)
    for path in (paths.config, paths.data, paths.state, paths.cache, paths.settings, paths.data / "state.db"):
        check_own(path)
    return paths


def _find_paths(home: Path | None) -> Paths:
    root = home or (Path(value) if (value := os.environ.get(HOME_VARIABLE)) else None)
    if root is not None:
        root = root.expanduser().absolute()
        return Paths(root / "config", root / "data", root / "state", root / "cache")
    from platformdirs import PlatformDirs

    dirs = PlatformDirs("dragoman", appauthor=False)
    return Paths(dirs.user_config_path, dirs.user_data_path, dirs.user_state_path, dirs.user_cache_path)


def share_home(paths: Paths) -> int | None:
    """Keep others from removing these folders while this process uses them. Blocks.

    Returns:
        A descriptor that holds a shared lock until it is closed; None where nothing can be locked, or removed.

    Raises:
        ConfigurationError: They are being removed.
    """
    from dragoman_registry.files import open_folder, take_lock

    try:
        paths.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = open_folder(paths.data)
    except OSError:
        return None
    try:
        if take_lock(descriptor, paths.data, shared=True, wait=False):
            return descriptor
    except OSError:  # the file system has no locks
        os.close(descriptor)
        return None
    os.close(descriptor)
    reason = "dragoman uninstall is removing the files of dragoman"
    raise ConfigurationError(reason, hint="try again when it has ended")


@contextmanager
def sole_use(paths: Paths) -> Iterator[None]:
    """Hold these folders alone during the block: no process that uses them runs, or begins to. Blocks.

    Raises:
        Refused: A process uses them.
    """
    from dragoman_registry.files import open_folder, take_lock

    with ExitStack() as stack:
        with suppress(OSError):  # there is no folder, or no lock
            descriptor = open_folder(paths.data)
            stack.callback(os.close, descriptor)
            if not take_lock(descriptor, paths.data, wait=False):
                users = ", ".join(_lock_holders(descriptor))
                reason = f"a dragoman process uses {paths.data}{f' (process {users})' if users else ''}"
                raise Refused(f"{reason}; nothing was removed", hint="end it, then: dragoman uninstall")
        yield


def _lock_holders(descriptor: int) -> list[str]:
    """Return the numbers of the processes that lock a file, as the kernel tells them."""
    status = os.fstat(descriptor)
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    return sorted({words[4] for line in lines if device in (words := line.split()) and words[1] != "->"})


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a fresh folder that only this user can enter, and remove it with its contents at the end. Blocks.

    All that is written for a moment goes into one, and a library that spills or caches is told to do it there. A folder
    that a library chooses by itself, such as ``dask-scratch-space``, another user may have made first.

    Raises:
        ConfigurationError: Others can replace folders in the folder for temporary files (TMPDIR).
    """
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="dragoman-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        check_own(folder)
        yield folder


def _check_folder(root: Path) -> None:
    """Refuse a root that is no folder, or lies below something else, such as /dev/null, or is not UTF-8."""
    hint = f"set {HOME_VARIABLE} to a folder that you can write"
    try:
        str(root).encode()
    except UnicodeEncodeError:
        escaped = ascii(os.fsencode(root))[2:-1]
        reason = f"{escaped} cannot be used: it is not UTF-8, and paths are kept as text"
        raise ConfigurationError(reason, hint=hint) from None
    for folder in (root, *root.parents):
        if os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises for impossible names
            return
        if os.path.lexists(folder) and not os.path.islink(folder):  # noqa: PTH114 - as above
            raise ConfigurationError(f"{root} cannot be used: {folder} is not a folder", hint=hint)


class Exposure(NamedTuple):
    """Why another user may have written a file.

    Attributes:
        reason: Which file or folder, with its mode, and who can do what.
        remedy: A command that ends it.
    """

    reason: str
    remedy: str


def check_own(path: Path, *, chosen: Path | None = None, secret: bool = False) -> None:
    """Refuse a file or folder that others can change; same arguments as `find_exposure`.

    Raises:
        ConfigurationError: Others can change it; nothing was read.
    """
    if exposure := find_exposure(path, chosen=chosen, secret=secret):
        raise ConfigurationError(f"{exposure.reason}; nothing was read from there", hint=exposure.remedy)


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
        None if there is no exposure.
    """
    trusted, real = {0, os.geteuid()}, Path(os.path.realpath(path))
    if chosen:
        with suppress(OSError):
            trusted.add(chosen.stat().st_uid)
    for place in _places(path):
        try:
            status = place.lstat()
        except OSError:  # the code that uses the file reports that
            return None
        if status.st_uid not in trusted and place in (real, real.parent):
            remedy = f"check it, then: chown {os.geteuid()} {quote(str(place))}"
            return Exposure(f"{place} belongs to the user {_user(status.st_uid)}", remedy)
        if exposure := _open_to_others(place, status, last=place == real, secret=secret and place == real):
            return exposure
    return None


def in_private_group() -> bool:
    """Return whether the group of new files has no other members."""
    return not _group_of(os.getegid(), {0, os.geteuid()})


def shared(folder: Path) -> bool:
    """Return whether every user may create files in a folder, as in /tmp."""
    return bool(folder.stat().st_mode & stat.S_IWOTH)


def _places(path: Path) -> Iterator[Path]:
    """Yield each folder and link on the way to a file, then the file, as the kernel resolves them."""
    above: set[Path] = set()
    with suppress(RuntimeError):  # a user unknown to the system
        home = Path.home()
        above = {*home.parents, *Path(os.path.realpath(home)).parents}
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
        elif at not in above:
            yield at


def _open_to_others(place: Path, status: os.stat_result, *, last: bool, secret: bool) -> Exposure | None:
    """Return how other users have access by a mode; None if they have none."""
    mode, name = status.st_mode, quote(str(place))
    clause = f"{place} has mode {stat.S_IMODE(mode):04o}"
    sticky = stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX) and not last  # as /tmp: only owners can replace its files
    if not (sticky or _read_only(place)) and (who := _who(place, status, stat.S_IWOTH)):
        return Exposure(f"{clause}, so that {who} can write it", f"check it, then: chmod go-w {name}")
    if secret and (who := _who(place, status, stat.S_IROTH)):
        return Exposure(f"{clause}, so that {who} can read the secrets in it", f"chmod 600 {name}")
    return None


def _who(place: Path, status: os.stat_result, right: int) -> str:
    """Name the parties besides the owner that have a right, given as its "others" bit; empty for none."""
    if status.st_mode & right:
        return "every user"
    if not status.st_mode & right << 3:
        return ""
    if sys.platform == "linux":
        with suppress(OSError):
            os.getxattr(place, _ACCESS_LIST)
            return "the users in its access list"
    return _group_of(status.st_gid, {0, status.st_uid, os.geteuid()})


def _group_of(number: int, owners: set[int]) -> str:
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
        group.gr_name in names and all(user.pw_uid in owners for user in pwd.getpwall() if user.pw_gid == number)
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


def installed_version(distribution: str) -> str:
    """Return the version of an installed distribution, from its metadata folder: importlib.metadata takes 40 ms more.

    Raises importlib.metadata.PackageNotFoundError: It is not installed.
    """
    start = distribution.replace("-", "_") + "-"
    for folder in sys.path:
        with suppress(OSError):
            for name in os.listdir(folder or "."):  # noqa: PTH208 - pathlib costs more than the rest of this
                if name.startswith(start) and name.endswith(".dist-info"):
                    return name.removeprefix(start).removesuffix(".dist-info")
    from importlib.metadata import version

    return version(distribution)
