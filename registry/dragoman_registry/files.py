"""Crash-safe files: atomic replacement, fsync of folders, locks between processes."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, BinaryIO

from dragoman_api.errors import RegistryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader

OPEN = 0o666
"""The mode of a new file that anybody may read; the umask narrows it."""
PRIVATE = 0o600

LOCK_SECONDS = 30.0
"""Seconds to wait for another process that changes the same file."""
MAX_STATE = 64 << 20
"""Maximum bytes of a file that `change` changes."""

_LOCKLESS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF}
"""Errors of a file system that has no locks, such as some network file systems."""
_ELSEWHERE = "set DRAGOMAN_HOME to a folder"
_REFUSED = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space in {folder}"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), f"make {{folder}} writable, or {_ELSEWHERE} that is"),
    errno.EROFS: f"{_ELSEWHERE} that can be written",
    errno.ENOLCK: f"{_ELSEWHERE} on a disk of this machine",
    errno.EIO: "check the disk of {folder}",
}
_USED_UP = {
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "close some connections, or allow more open files: ulimit -n 8192"),
    **dict.fromkeys((errno.ENOMEM, errno.EAGAIN), "end other programs: memory, or the number of processes, is used up"),
}
_DRAFT = re.compile(r"[0-9a-f]{12}\.tmp")
_FORBIDDEN = frozenset('<>:"|?*\\') | set(map(chr, range(32))) | {"\x7f"}
_PORTS = {f"{port}{number}" for port in ("com", "lpt") for number in "123456789¹²³"}
_DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$"} | _PORTS


def remedy(error: OSError, folder: Path | None = None) -> str:
    """Return what a person can do about an error of the system; empty if unknown.

    Args:
        error: The error.
        folder: The folder of dragoman's that was to be written; None if it was something else.
    """
    if folder is None:
        return _USED_UP.get(error.errno or 0, "")
    return {**_REFUSED, **_USED_UP}.get(error.errno or 0, "").format(folder=quote(str(folder)))


def sync(path: Path) -> None:
    """Sync a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_new(path: Path, *, mode: int) -> BinaryIO:
    """Create a new file for writing; never write through an existing file or link.

    Raises:
        FileExistsError: The name is taken.
        OSError: It cannot be created.
    """
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))


def mode_beside(path: Path, *, source: Path | int | None) -> int:
    """Return the mode for a new file with data of another one, so that nobody can read it who cannot read that one.

    The umask narrows it further. The group's rights are kept only if the new file will have the same group.

    Args:
        path: The new file.
        source: The other file or its descriptor. None, like a pipe or a file that is gone, does not say who may read
            it: then only this user can.
    """
    if source is not None:
        with suppress(OSError):
            status, folder = os.stat(source), path.parent.stat()  # noqa: PTH116 - perhaps of a descriptor
            if stat.S_ISREG(status.st_mode):
                group = folder.st_gid if folder.st_mode & stat.S_ISGID else os.getegid()
                return _narrowed(OPEN, status, group=group, listed=_has_access_list(source))
    return PRIVATE


def _narrowed(mode: int, status: os.stat_result, *, group: int, listed: bool) -> int:
    """Narrow a mode to the rights that an existing file gives to others, for a new file of a group."""
    rights = stat.S_IMODE(status.st_mode)
    if group != status.st_gid or listed:  # what all users may do, the members of any group may do
        rights = rights & ~0o070 | (rights & 0o007) << 3
    return mode & (rights | PRIVATE)


def _has_access_list(file: Path | int) -> bool:
    """Return whether a file has an access list, whose members the bits of its group stand for."""
    if sys.platform == "linux":
        with suppress(OSError):
            return bool(os.getxattr(file, "system.posix_acl_access"))
    return False


@contextmanager
def replacing(path: Path, *, mode: int = OPEN, durable: bool = True) -> Iterator[BinaryIO]:
    """Replace a whole file; after an error in the block, or if `durable` after a crash, it keeps the old bytes.

    The new file gives other users no right that `mode` or the old file does not give them.
    """
    status, listed = None, False
    with suppress(OSError):  # there is no old file
        status, listed = path.stat(), _has_access_list(path)
    # Other users may write to the folder, so create a new file with an unpredictable name.
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open_new(draft, mode=mode if status is None else mode & (status.st_mode | PRIVATE)) as file:
            if status is not None:
                _take_rights(file.fileno(), status, listed=listed)
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)


def _take_rights(handle: int, status: os.stat_result, *, listed: bool) -> None:
    """Give a new, empty file the group of the one that it replaces; without it, the group gets no special rights."""
    if os.fstat(handle).st_gid != status.st_gid:
        with suppress(OSError):  # this user is no member
            os.fchown(handle, -1, status.st_gid)
    own = os.fstat(handle)
    mode = stat.S_IMODE(own.st_mode)
    if (narrow := _narrowed(mode, status, group=own.st_gid, listed=listed)) != mode:
        os.fchmod(handle, narrow)


def find_drafts(*files: Path) -> list[Path]:
    """Find the drafts that `replacing` left in one folder when its process was killed.

    Hold the lock under which the files are written; otherwise a draft may still be in use.
    """
    heads = tuple(f".{file.name}." for file in files)
    try:
        with os.scandir(files[0].parent) as entries:
            return sorted(Path(entry.path) for entry in entries if _is_draft(entry, heads))
    except FileNotFoundError:
        return []


def _is_draft(entry: os.DirEntry[str], heads: tuple[str, ...]) -> bool:
    has_draft_name = any(entry.name.startswith(head) and _DRAFT.fullmatch(entry.name, len(head)) for head in heads)
    return has_draft_name and entry.is_file(follow_symlinks=False)


def sweep_drafts(*files: Path) -> None:
    """Remove the drafts that `find_drafts` finds; hold the lock under which the files are written."""
    for draft in find_drafts(*files):
        with suppress(OSError):  # a leftover draft is harmless
            draft.unlink()


class NotPlainError(OSError):
    """The path is a pipe, a device or a socket instead of a file."""


def open_plain(path: Path) -> BufferedReader:
    """Open a file for reading; refuse pipes and devices, which may block forever.

    Raises:
        NotPlainError: It is not a plain file.
        OSError: It cannot be read.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK
    file = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotPlainError(errno.EINVAL, "it is not a regular file", str(path))
    return file


def read_plain(path: Path, *, limit: int, own: bool = False) -> bytes:
    """Read a plain file.

    Args:
        path: The file.
        limit: Maximum bytes.
        own: Refuse a file of another user.

    Raises:
        NotPlainError: It is not a plain file.
        OSError: It cannot be read, is larger, or belongs to another user.
    """
    with open_plain(path) as file:
        if own and os.fstat(file.fileno()).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user", str(path))
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit} bytes", str(path))
    return data


def write(path: Path, data: bytes, *, mode: int = OPEN, durable: bool = True) -> None:
    """Replace a whole file; after a crash it holds either the old bytes or the new ones.

    If the new bytes depend on the old ones, use `change`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, mode=mode, durable=durable) as file:
        file.write(data)


def below(root: Path, name: str) -> Path:
    """Return the path of a file below a folder, for an untrusted name.

    Args:
        root: The folder.
        name: A path relative to it, with forward slashes.

    Raises:
        RegistryError: The path leads out of the folder, directly or through a link, or some system does not allow
            the name (code ``path-refused``).
    """
    reason = next(filter(None, map(unfit_name, name.split("/"))), "")
    if not reason and not (path := root / name).parent.resolve().is_relative_to(root.resolve()):
        reason = "a link leads out of the folder"
    if reason:
        quoted_name = f"{name[:200]!a}{'…' if len(name) > 200 else ''}"
        text = f"{quoted_name} cannot be written below {root}: {reason}"
        raise RegistryError(text, code="path-refused", hint="report the name to its author; nothing was written")
    return path


def unfit_name(name: str) -> str:
    """Return why some system does not allow a name in a path; empty if all do."""
    if name in ("", ".", ".."):
        return "it is absolute or leads out of the folder"
    if not _FORBIDDEN.isdisjoint(name) or not name.isprintable():
        return "it has characters that file names cannot have"
    if name.endswith((".", " ")) or name.partition(".")[0].rstrip().lower() in _DEVICES:
        return "Windows reserves this name"
    return "a part of it is longer than 255 bytes" if len(name.encode()) > 255 else ""


def write_below(root: Path, name: str, data: bytes) -> None:
    """Replace a file below a folder as `write` does. Raises as `below`."""
    write(below(root, name), data)


def add_name(path: Path, further: Path) -> None:
    """Add a second name for a file in its folder: a hard link, or a copy if the file system has no links.

    Replace an existing file of that name unless it has the same bytes.
    """
    if further.is_file():
        if further.samefile(path) or further.read_bytes() == path.read_bytes():
            return
        further.unlink()
    try:
        os.link(path, further)
    except OSError:
        write(further, path.read_bytes())
    else:
        sync(further.parent)


def sync_tree(root: Path) -> None:
    """Sync every file and folder below `root` to disk, deepest folders first."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))


def freeze(root: Path) -> None:
    """Make everything below `root` read-only; `root` itself stays writable, so that it can be renamed."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            Path(folder, name).chmod(0o444)
        if Path(folder) != root:
            Path(folder).chmod(0o555)


def remove_tree(root: Path) -> None:
    """Remove a folder, including parts that are read-only or closed even to their owner; ignore missing files."""
    with suppress(FileNotFoundError):
        root.chmod(stat.S_IRWXU)
    for folder, names, _ in os.walk(root):
        for path in (Path(folder, name) for name in names):
            if not path.is_symlink():
                with suppress(FileNotFoundError):
                    path.chmod(stat.S_IRWXU)  # before the walk enters it
    shutil.rmtree(root, ignore_errors=True)


def try_lock(path: Path, *, folder: bool = False, mode: int = 0o644) -> int | None:
    """Try to lock a folder, or a file that is created if missing, without waiting.

    Returns:
        A descriptor that holds the lock until it is closed or the process dies; None if the lock is taken.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    while True:
        descriptor = open_folder(path) if folder else open_lock_file(path, mode=mode)
        try:
            acquired = take_lock(descriptor, path, wait=False)
        except BaseException:
            os.close(descriptor)
            raise
        if not acquired:
            os.close(descriptor)
            return None
        if holds(descriptor, path):
            return descriptor
        os.close(descriptor)  # its last owner removed it meanwhile, so another process could lock a new one


def share(folder: Path) -> int:
    """Take a shared lock on a folder, waiting for it; the folder need not be writable."""
    descriptor = open_folder(folder)
    try:
        take_lock(descriptor, folder, shared=True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock on a file or folder, and hold it during the block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = open_folder(path) if path.is_dir() else open_lock_file(path, mode=0o644)
    try:
        take_lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """Keep every other process and thread from changing a file during the block, however the block ends.

    The lock is a file beside it, ``.NAME.lock``, which stays; it ends with its process at the latest.

    Raises:
        OSError: Another process holds the lock for `LOCK_SECONDS`, or the folder cannot be written, or its file system
            has no locks; the message says which.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock, until, pause = path.with_name(f".{path.name}.lock"), time.monotonic() + LOCK_SECONDS, 0.001
    while (descriptor := try_lock(lock, mode=0o600)) is None:
        if time.monotonic() > until:
            reason = f"another process has kept it locked for {LOCK_SECONDS:g} s (see: fuser {lock})"
            raise TimeoutError(errno.ETIMEDOUT, reason, str(path))
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    try:
        yield
    finally:
        os.close(descriptor)


def change(path: Path, edit: Callable[[bytes], bytes], *, mode: int = PRIVATE, durable: bool = True) -> None:
    """Change a file that several processes may change: lock it, read it again, change it, write it.

    Args:
        path: The file.
        edit: Makes the new contents of the present ones, which are empty if there is no file. What it raises leaves the
            file as it is. It must not wait for anything.
        mode: The mode of a new file.
        durable: The change survives a crash of the machine.

    Raises:
        OSError: Another process holds the lock for `LOCK_SECONDS`, the folder has no locks, or the file cannot be read
            or written.
    """
    with exclusively(path):
        try:
            before = read_plain(path, limit=MAX_STATE)
        except FileNotFoundError:
            before = b""
        after = edit(before)
        if after != before:
            sweep_drafts(path)
            write(path, after, mode=mode, durable=durable)


def open_lock_file(path: Path, *, mode: int) -> int:
    """Open or create a file to lock; do not follow a symbolic link."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode)


def open_folder(folder: Path) -> int:
    """Open a folder to lock; it need not be writable."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)


def take_lock(descriptor: int, path: Path, *, shared: bool = False, wait: bool = True) -> bool:
    """Take the lock on an open file or folder, exclusive or shared; return whether it was taken.

    Raises:
        OSError: Its file system has no locks (ENOLCK, whatever the system itself says).
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _LOCKLESS:
            raise
        reason = f"its file system cannot lock files ({error.strerror})"
        raise OSError(errno.ENOLCK, reason, str(path)) from error
    return True


def holds(descriptor: int, path: Path) -> bool:
    """Check whether the descriptor's file still has this path; another process may have removed or replaced it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
