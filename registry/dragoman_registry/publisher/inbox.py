"""Uploads that wait beside a registry, outside the served files, until an operator accepts them."""

from __future__ import annotations

import errno
import hashlib
import re
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import IndexInvalidError, PluginNotFoundError, RegistryError
from dragoman_registry.files import read_plain, remove_tree, sync, sync_tree
from dragoman_registry.trust.keys import Keys, beside
from dragoman_registry.trust.tuf_repository import Repository
from dragoman_registry.validation import Fault, Unreadable, decode

from . import publish

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RETENTION = timedelta(days=30)
ABANDONED = timedelta(hours=1)
"""Age at which a draft is abandoned: an upload's deadline is shorter."""
MAX_UPLOAD = 128 << 20
"""Maximum size of one upload in bytes."""
MAX_INBOX = 1 << 30
"""Maximum total size of waiting uploads in bytes."""
MAX_WAITING = 1000
"""Maximum number of waiting wheels: each upload checks all of them."""
MAX_RECORD = 64 << 10
_RECORD = "upload.json"
_MENDED = {"dependency-missing", "no-publisher", "type-not-bound"}
"""Faults that later events may fix: a wheel may still arrive, a publisher may still be added."""
_FILE = re.compile(r"[A-Za-z0-9_.+!-]{1,200}\.whl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A waiting wheel.

    Attributes:
        publisher: The publisher whose token came with it.
        at: Its time of arrival, UTC.
    """

    file: str
    size: int
    sha256: str
    publisher: str
    at: datetime


class Draft:
    """An upload in progress.

    Attributes:
        folder: The draft's folder; removed with its files unless the upload is kept.
        size: Number of bytes received so far.
    """

    def __init__(self, folder: Path, *, room: int) -> None:
        self.folder = folder
        self.size = 0
        self._room = room
        self._file = (folder / "content").open("wb")
        self._sha256, self._blake2 = hashlib.sha256(), hashlib.blake2b(digest_size=32)

    def write(self, data: bytes) -> None:
        """Add bytes. Raises RegistryError if they are too many."""
        self.size += len(data)
        if self.size > MAX_UPLOAD:
            raise RegistryError(f"the file is larger than {MAX_UPLOAD >> 20} MiB", code="upload-too-large")
        if self.size > self._room:
            raise RegistryError("the inbox is full", code="inbox-full", hint="ask the registry's operator")
        self._sha256.update(data)
        self._blake2.update(data)
        self._file.write(data)

    def finish(self, file: str, claimed: Mapping[str, str], *, publisher: str) -> Upload:
        """Rename the received file to its wheel name if it matches the announced digests.

        Raises:
            RegistryError: The name is invalid, or a digest differs (code ``upload-invalid``).
        """
        self.close()
        if not _FILE.fullmatch(file):
            subject = "a source archive" if file.endswith((".tar.gz", ".zip")) else repr(file[:200])
            raise RegistryError(f"{subject} is not a wheel; a registry accepts only wheels", code="upload-invalid")
        if "sha256_digest" not in claimed:
            raise RegistryError(f"{file} has no sha256_digest", code="upload-invalid")
        for name, digest in (("sha256_digest", self.sha256), ("blake2_256_digest", self._blake2.hexdigest())):
            expected = claimed.get(name, digest).lower()
            if expected != digest:
                reason = f"{file} arrived damaged: its {name} is {digest}, but {expected[:64]!r} was announced"
                raise RegistryError(reason, code="upload-invalid", hint="upload it again")
        (self.folder / "content").rename(self.folder / file)
        at = datetime.now(UTC).replace(microsecond=0)
        return Upload(file=file, size=self.size, sha256=self.sha256, publisher=publisher, at=at)

    @property
    def sha256(self) -> str:
        """The digest of the received bytes."""
        return self._sha256.hexdigest()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def judge(registry: Path, draft: Path, upload: Upload) -> tuple[Upload, bool]:
    """Drop uploads that waited too long, then keep a draft. Raises as `Inbox.keep`."""
    inbox = Inbox(registry)
    inbox.sweep()
    return inbox.keep(draft, upload)


class Inbox:
    """The uploads of a registry, in the folder ``NAME.inbox`` beside it; each in a folder named after its wheel."""

    def __init__(self, registry: Path) -> None:
        self.registry = registry.resolve()
        self.folder = self.registry.with_name(f"{self.registry.name}.inbox")

    def waiting(self) -> list[Upload]:
        """List the waiting uploads, oldest first."""
        return self._records()[0]

    def damaged(self) -> list[Fault]:
        """Find the uploads that cannot be read; they are skipped and stay until they are dropped."""
        return self._records()[1]

    def _records(self) -> tuple[list[Upload], list[Fault]]:
        uploads, faults = [], []
        for folder in self.folder.glob("[!.]*"):
            try:
                uploads += [upload] if (upload := self._read(folder.name)) else []
            except IndexInvalidError as error:
                faults.append(Fault("unreadable", error.message, folder.name))
        return sorted(uploads, key=lambda upload: (upload.at, upload.file)), faults

    def path(self, upload: Upload) -> Path:
        """Return the path of an upload's wheel."""
        return self.folder / upload.file / upload.file

    def faults(self) -> dict[str, list[Fault]]:
        """Map each waiting file to the faults that publishing all the uploads together would raise."""
        faults_by_file: dict[str, list[Fault]] = {upload.file: [] for upload in self.waiting()}
        for fault in publish.look([self.folder / file / file for file in faults_by_file], to=self.registry):
            faults_by_file[fault.where].append(fault)
        return faults_by_file

    def signed(self) -> dict[str, str]:
        """Map each upload that a publisher signed for to the role; `accept` will verify the signature."""
        repository = Repository(self.registry, Keys(beside(self.registry)))
        bytes_of = {upload.file: upload.sha256 for upload in self.waiting()}
        return {
            name: role
            for role, metadata in repository.pending().items()
            for path, target in metadata.signed.targets.items()
            if bytes_of.get(name := path.rpartition("/")[2]) == target.hashes["sha256"]
        }

    @contextmanager
    def draft(self) -> Iterator[Draft]:
        """Open a draft for an arriving upload; its files are removed unless it is kept."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        waiting = self.waiting()
        room = MAX_INBOX - sum(upload.size for upload in waiting) if len(waiting) < MAX_WAITING else 0
        folder = Path(mkdtemp(prefix=".draft-", dir=self.folder))
        try:
            with closing(Draft(folder, room=room)) as draft:
                yield draft
        finally:
            remove_tree(folder)

    def keep(self, draft: Path, upload: Upload) -> tuple[Upload, bool]:
        """Keep the wheel of a draft if it passes the wheel checks.

        Returns:
            The upload, and whether it is new: the same bytes may arrive again.

        Raises:
            WheelRejectedError: The wheel has faults that waiting cannot fix; the error lists them all.
            RegistryError: Other bytes of this name wait or are published (code ``upload-conflict``).
        """
        if publish.published(self.registry).get(upload.file) == upload.sha256:
            return upload, False
        faults = publish.look([draft / upload.file], to=self.registry)
        if {fault.code for fault in faults} - _MENDED:
            publish.refuse(faults)
        (draft / _RECORD).write_bytes(msgspec.json.encode(upload))
        sync_tree(draft)
        try:  # of two concurrent renames one fails, since a non-empty folder is not replaced
            draft.rename(self.folder / upload.file)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            waiting = self._read(upload.file)
            if waiting is None or waiting.sha256 != upload.sha256:
                raise RegistryError(
                    f"another {upload.file} is already waiting",
                    code="upload-conflict",
                    hint="raise the version, or ask the registry's operator to drop the waiting file",
                ) from error
            return waiting, False
        sync(self.folder)
        return upload, True

    def drop(self, file: str) -> Upload | None:
        """Drop an upload and return its record, if readable. Raises PluginNotFoundError if there is no such upload."""
        if not _FILE.fullmatch(file) or not (self.folder / file).is_dir():
            raise PluginNotFoundError(f"{file} is not waiting in {self.folder}", hint="dragoman registry inbox FOLDER")
        upload = None
        with suppress(IndexInvalidError):
            upload = self._read(file)
        remove_tree(self.folder / file)
        return upload

    def sweep(self, now: datetime | None = None) -> list[Upload]:
        """Drop uploads that waited too long or were published meanwhile, and drafts of a killed server."""
        now, published = now or datetime.now(UTC), publish.published(self.registry)
        for folder in self.folder.glob(".draft-*"):
            with suppress(FileNotFoundError):  # the draft may just have been kept or removed
                if folder.stat().st_mtime < (now - ABANDONED).timestamp():
                    remove_tree(folder)
        over = [u for u in self.waiting() if u.at < now - RETENTION or published.get(u.file) == u.sha256]
        for upload in over:
            remove_tree(self.folder / upload.file)
        return over

    def _read(self, file: str) -> Upload | None:
        if not _FILE.fullmatch(file):
            return None
        record = self.folder / file / _RECORD
        try:
            upload = decode(read_plain(record, limit=MAX_RECORD), Upload)
        except FileNotFoundError:
            return None
        except (OSError, Unreadable) as error:
            hint = f"dragoman registry inbox {quote(str(self.registry))} --drop {file}"
            raise IndexInvalidError(f"{record} is damaged: {error}", hint=hint) from error
        if upload.file != file:
            raise IndexInvalidError(f"{record} describes {upload.file!r}")
        return upload
