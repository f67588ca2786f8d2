"""Locks between processes: a descriptor holds each lock, so the lock ends with its process at the latest."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel32.CreateFileW.restype = wintypes.HANDLE
    _READ_WRITE, _SHARE_ALL, _OPEN_ALWAYS = 0xC0000000, 7, 4
    _EXCLUSIVE, _AT_ONCE, _LOCK_VIOLATION = 2, 1, 33

    class _Overlapped(ctypes.Structure):
        _fields_ = (("internal", ctypes.c_void_p * 2), ("offset", wintypes.DWORD * 2), ("event", wintypes.HANDLE))

    def open_file(path: Path, *, mode: int) -> int:
        """Open or create a file to lock; it can still be renamed and removed."""
        handle = _kernel32.CreateFileW(str(path), _READ_WRITE, _SHARE_ALL, None, _OPEN_ALWAYS, 0, None)
        if handle == wintypes.HANDLE(-1).value:
            raise ctypes.WinError(ctypes.get_last_error())
        return msvcrt.open_osfhandle(handle, os.O_RDWR | os.O_BINARY)

    def open_folder(folder: Path) -> int:
        """Open the lock file of a folder, since Windows cannot lock folders; it is in `PARENT.locks`."""
        beside = folder.resolve(strict=True).parent
        locks = beside.with_name(f"{beside.name}.locks")
        locks.mkdir(exist_ok=True)
        return open_file(locks / folder.name, mode=0)

    def acquire(descriptor: int, *, shared: bool = False, wait: bool = True) -> bool:
        """Take the lock, exclusive or shared; return whether it was taken."""
        # The lock blocks reads and writes of the locked byte, so lock one far beyond the end of the file.
        where = _Overlapped(offset=(0, 0x7FFFFFFF))
        flags = (0 if shared else _EXCLUSIVE) | (0 if wait else _AT_ONCE)
        handle = wintypes.HANDLE(msvcrt.get_osfhandle(descriptor))
        if not _kernel32.LockFileEx(handle, flags, 0, 1, 0, ctypes.byref(where)):
            if (code := ctypes.get_last_error()) != _LOCK_VIOLATION:
                raise ctypes.WinError(code)
            return False
        return True

    def holds(descriptor: int, path: Path) -> bool:
        """Check whether the descriptor's file still has this path; a locked folder keeps its path."""
        return path.is_dir() or (path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()))

else:
    import fcntl

    def open_file(path: Path, *, mode: int) -> int:
        """Open or create a file to lock; do not follow a symbolic link."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, mode)

    def open_folder(folder: Path) -> int:
        """Open a folder to lock; it need not be writable."""
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def acquire(descriptor: int, *, shared: bool = False, wait: bool = True) -> bool:
        """Take the lock, exclusive or shared; return whether it was taken."""
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def holds(descriptor: int, path: Path) -> bool:
        """Check whether the descriptor's file still has this path; another process may have removed or replaced it."""
        try:
            return os.path.samestat(os.fstat(descriptor), path.stat())
        except FileNotFoundError:
            return False
