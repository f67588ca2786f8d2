"""Unpacked wheels, read-only, each under the digest of its content."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import RegistryError
from dragoman_registry.files import freeze, holds, open_folder, remove_tree, share, sync, sync_tree, try_lock
from dragoman_registry.names import LISTING
from dragoman_registry.validation import Fault, Unreadable, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LOCK_KEPT = 86_400.0
"""Seconds after which an installation lock goes; its note on a failure is for installers that wait for it."""


class Trees:
    """The trees below one folder.

    Attributes:
        folder: The folder that holds them. Installers take its lock shared; the collector takes it exclusively.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "trees"
        self._drafts, self._locks = root / ".tmp", root / ".locks"

    def path(self, digest: str) -> Path:
        """Return the path of a tree."""
        return self.folder / digest

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Sweep the folders of crashed owners, then make a folder to prepare a tree in, and lock it for the block."""
        self.sweep()
        descriptor = None
        while descriptor is None:
            path = self._drafts / os.urandom(16).hex()
            path.mkdir(parents=True)
            try:
                descriptor = try_lock(path, folder=True)
            except FileNotFoundError:
                continue  # a sweep took the new folder for abandoned
            except BaseException:
                path.rmdir()
                raise
        try:
            yield path
        finally:
            remove_tree(path)
            os.close(descriptor)

    def installation_lock(self, digest: str) -> Path:
        """Return the path of the lock that an installer of a wheel holds."""
        return self._locks / f"{digest}.lock"

    def sweep_locks(self) -> None:
        """Remove the installation locks that have not been taken for `LOCK_KEPT`, and that nobody holds."""
        for path in self._locks.iterdir() if self._locks.is_dir() else ():
            with suppress(OSError):  # one that stays is harmless
                if not _is_old(path) or (descriptor := try_lock(path)) is None:
                    continue
                try:
                    if _is_old(descriptor):  # it may have been taken, and have a note, since
                        path.unlink()
                finally:
                    os.close(descriptor)

    def sweep(self) -> None:
        """Remove the staging folders whose owner is dead."""
        for folder in self._drafts.iterdir() if self._drafts.is_dir() else ():
            try:
                descriptor = try_lock(folder, folder=True)
            except FileNotFoundError:
                continue
            if descriptor is not None:
                remove_tree(folder)
                os.close(descriptor)

    def keep(self, folder: Path) -> str:
        """Move a prepared folder into the store; its content is synced to disk before the rename.

        Args:
            folder: A folder in staging; it no longer exists afterwards.

        Returns:
            The tree's digest. Raises OSError if the disk fails; no tree has changed.
        """
        listing = {name: _digest(folder / name) for name in _files(folder)}
        (folder / LISTING).write_bytes(msgspec.json.encode(dict(sorted(listing.items()))))
        digest = _digest(folder / LISTING)
        tree = self.path(digest)
        freeze(folder)
        sync_tree(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        if tree.exists() and self.verify(digest):
            tree.chmod(0o755)
            tree.rename(folder.with_name(f"{digest}.damaged"))
        try:
            folder.rename(tree)
        except OSError as error:
            # Another installer has already stored the same content.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            tree.chmod(0o555)
        for place in (tree, self.folder, self.root):
            sync(place)
        return digest

    def digests(self) -> list[str]:
        """List the digests of the stored trees."""
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []

    def size(self, digest: str) -> int:
        """Return the total size of a tree's files in bytes."""
        return sum((self.path(digest) / name).stat().st_size for name in _files(self.path(digest)))

    def leased(self, digest: str) -> bool:
        """Check whether a living process runs from a tree; a crash releases the lease."""
        try:
            descriptor = try_lock(self.path(digest), folder=True)
        except FileNotFoundError:
            return False
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is None

    def discard(self, digest: str) -> bool:
        """Remove a tree unless a process runs from it; rename it first, so that no process finds half a tree."""
        if (descriptor := try_lock(self.path(digest), folder=True)) is None:
            return False
        try:
            with self.staging() as staging:
                self.path(digest).chmod(0o755)
                self.path(digest).rename(staging / digest)
        finally:
            os.close(descriptor)
        return True

    def verify(self, digest: str) -> list[Fault]:
        """Compare a tree with its listing and the listing with the tree's name; list every bad file."""
        try:
            return self._verify(digest)
        except OSError as error:
            return [Fault("unreadable", f"It cannot be read: {error.strerror}.", str(error.filename))]

    def _verify(self, digest: str) -> list[Fault]:
        root = self.path(digest)
        if not (root / LISTING).is_file():
            return [Fault("missing", "It is missing or incomplete.", str(root))]
        if _digest(root / LISTING) != digest:
            return [Fault("changed", "It was changed after installation.", str(root / LISTING))]
        try:
            listing = decode((root / LISTING).read_bytes(), dict[str, str])
        except Unreadable as error:
            return [Fault("unreadable", f"It cannot be read: {error}.", str(root / LISTING))]
        file_names = set(_files(root)) - {LISTING}
        faults = [Fault("missing", "It is missing.", str(root / name)) for name in sorted(listing.keys() - file_names)]
        faults += [Fault("unlisted", "It was added.", str(root / name)) for name in sorted(file_names - listing.keys())]
        return faults + [
            Fault("changed", "It was changed after installation.", str(root / name))
            for name in sorted(file_names & listing.keys())
            if _digest(root / name) != listing[name]
        ]


@contextmanager
def leasing(trees: Iterable[Path]) -> Iterator[None]:
    """Lease trees so that they are not collected while the block runs and this process lives.

    A file system without locks has no leases, and needs none: a collector could not lock the trees there, either.

    Raises:
        RegistryError: A tree has just been collected (code ``integrity-failed``).
    """
    with ExitStack() as leases:
        for tree in trees:
            try:
                descriptor = _leased(tree)
                leases.callback(os.close, descriptor)
                exists = holds(descriptor, tree)
            except FileNotFoundError:
                exists = False
            if not exists:
                message = f"{tree} was collected before it could be opened"
                raise RegistryError(message, code="integrity-failed", hint="open it again")
        yield


def _leased(tree: Path) -> int:
    try:
        return share(tree)
    except OSError as error:
        if error.errno != errno.ENOLCK:
            raise
        return open_folder(tree)


def _is_old(lock: Path | int) -> bool:
    return time.time() - os.stat(lock).st_mtime > LOCK_KEPT  # noqa: PTH116 - perhaps a descriptor


def _files(root: Path) -> list[str]:
    paths = []
    for folder, _, names in os.walk(root):
        prefix = os.path.relpath(folder, root).replace(os.sep, "/")
        paths += [name if prefix == "." else f"{prefix}/{name}" for name in names]
    return paths


def _digest(path: Path) -> str:
    if path.is_symlink():
        return "a symbolic link"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
