"""Uploads that wait beside a registry, outside what it serves, until somebody who may publish takes them in."""

from __future__ import annotations

import errno
import hashlib
import re
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import IndexInvalidError, PluginNotFoundError, RegistryError

from . import publish
from .files import remove_tree, sync, sync_tree
from .trust.keys import Keys, beside
from .trust.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .validation import Fault

RETENTION = timedelta(days=30)
ABANDONED = timedelta(hours=1)
"""How old a draft is when nobody can be writing it any more: an upload has a deadline."""
MAX_WHEEL = 128 << 20
"""Bytes of one upload at most."""
MAX_INBOX = 1 << 30
"""Bytes of everything that waits, at most."""
_RECORD = "upload.json"
_MENDED = {"dependency-missing", "no-publisher", "type-not-bound"}
"""Faults that waiting mends: a wheel that may still come, a publisher who may still be added."""
_FILE = re.compile(r"[A-Za-z0-9_.+!-]{1,200}\.whl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A wheel that waits.

    Attributes:
        file: Its name.
        size: Bytes.
        sha256: Of its bytes.
        publisher: Whose token it came with.
        at: When it came, UTC.
    """

    file: str
    size: int
    sha256: str
    publisher: str
    at: datetime


class Draft:
    """An upload while it arrives.

    Attributes:
        folder: Removed with everything in it, unless the upload is kept.
        size: Bytes so far.
    """

    def __init__(self, folder: Path, *, room: int) -> None:
        self.folder = folder
        self.size = 0
        self._room = room
        self._file = (folder / "content").open("wb")
        self._sha256, self._blake2 = hashlib.sha256(), hashlib.blake2b(digest_size=32)

    def write(self, data: bytes) -> None:
        """Add bytes. Raises RegistryError when they are too many."""
        self.size += len(data)
        if self.size > MAX_WHEEL:
            raise RegistryError(f"the file is larger than {MAX_WHEEL >> 20} MiB", code="upload-too-large")
        if self.size > self._room:
            raise RegistryError("the inbox is full", code="inbox-full", hint="ask the registry's operator")
        self._sha256.update(data)
        self._blake2.update(data)
        self._file.write(data)

    def finish(self, file: str, claimed: Mapping[str, str]) -> Path:
        """Give the bytes their name, if they are those that were announced.

        Raises:
            RegistryError: The name is none, or a digest differs (code ``upload-invalid``).
        """
        self.close()
        if not _FILE.fullmatch(file):
            what = "a source archive" if file.endswith((".tar.gz", ".zip")) else repr(file[:200])
            raise RegistryError(f"{what} is no wheel; a registry of drivers takes only wheels", code="upload-invalid")
        if "sha256_digest" not in claimed:
            raise RegistryError(f"{file} came without its sha256_digest", code="upload-invalid")
        for name, digest in (("sha256_digest", self.sha256), ("blake2_256_digest", self._blake2.hexdigest())):
            wanted = claimed.get(name, digest).lower()
            if wanted != digest:
                reason = f"{file} arrived damaged: its {name} is {digest}, {wanted[:64]!r} was announced"
                raise RegistryError(reason, code="upload-invalid", hint="upload it again")
        return (self.folder / "content").rename(self.folder / file)

    @property
    def sha256(self) -> str:
        """Give the digest of what arrived."""
        return self._sha256.hexdigest()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Inbox:
    """The uploads of a registry, in the folder ``NAME.inbox`` beside it; each in a folder named after its wheel.

    Attributes:
        registry: The registry.
        folder: Where they wait.
    """

    def __init__(self, registry: Path) -> None:
        self.registry = registry.resolve()
        self.folder = self.registry.with_name(f"{self.registry.name}.inbox")

    def waiting(self) -> list[Upload]:
        """Read what waits, oldest first."""
        found = [upload for folder in self.folder.glob("[!.]*") if (upload := self._read(folder.name))]
        return sorted(found, key=lambda upload: (upload.at, upload.file))

    def path(self, upload: Upload) -> Path:
        """Give where the wheel lies."""
        return self.folder / upload.file / upload.file

    def faults(self) -> dict[str, list[Fault]]:
        """Look at all that waits as publishing it together would: file name → what would be refused."""
        found: dict[str, list[Fault]] = {upload.file: [] for upload in self.waiting()}
        for fault in publish.look([self.folder / file / file for file in found], to=self.registry):
            found[fault.where].append(fault)
        return found

    def signed(self) -> dict[str, str]:
        """Tell which uploads their publishers have signed for, as `accept` will verify: file name → role."""
        ledger = Ledger(self.registry, Keys(beside(self.registry)))
        bytes_of = {upload.file: upload.sha256 for upload in self.waiting()}
        return {
            name: role
            for role, metadata in ledger.pending().items()
            for path, target in metadata.signed.targets.items()
            if bytes_of.get(name := path.rpartition("/")[2]) == target.hashes["sha256"]
        }

    @contextmanager
    def draft(self) -> Iterator[Draft]:
        """Make a place for an upload that arrives; nothing of it is left unless it is kept."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        room = MAX_INBOX - sum(upload.size for upload in self.waiting())
        folder = Path(mkdtemp(prefix=".draft-", dir=self.folder))
        try:
            with closing(Draft(folder, room=room)) as draft:
                yield draft
        finally:
            remove_tree(folder)

    def keep(self, draft: Draft, wheel: Path, *, publisher: str) -> tuple[Upload, bool]:
        """Let a wheel that passes the preflight wait.

        Returns:
            The upload, and whether it is new: the same bytes may come again.

        Raises:
            WheelRejectedError: With every fault that waiting does not mend.
            RegistryError: Other bytes of this name wait or are published (code ``upload-conflict``).
        """
        upload = Upload(
            file=wheel.name,
            size=draft.size,
            sha256=draft.sha256,
            publisher=publisher,
            at=datetime.now(UTC).replace(microsecond=0),
        )
        if publish.published(self.registry).get(upload.file) == upload.sha256:
            return upload, False
        faults = publish.look([wheel], to=self.registry)
        if {fault.code for fault in faults} - _MENDED:
            publish.refuse(faults)
        (draft.folder / _RECORD).write_bytes(msgspec.json.encode(upload))
        sync_tree(draft.folder)
        try:  # the name of the folder decides between two at once: a folder that holds something is not replaced
            draft.folder.rename(self.folder / upload.file)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            waiting = self._read(upload.file)
            if waiting is None or waiting.sha256 != upload.sha256:
                raise RegistryError(
                    f"{upload.file} waits already with other bytes",
                    code="upload-conflict",
                    hint="raise the version, or ask the registry's operator to drop what waits",
                ) from error
            return waiting, False
        sync(self.folder)
        return upload, True

    def drop(self, file: str) -> Upload:
        """Throw an upload away. Raises PluginNotFoundError if it does not wait."""
        if (upload := self._read(file)) is None:
            raise PluginNotFoundError(f"no {file} waits in {self.folder}", hint="dragoman registry inbox FOLDER")
        remove_tree(self.folder / file)
        return upload

    def sweep(self, now: datetime | None = None) -> list[Upload]:
        """Drop what waited too long, what was published meanwhile, and drafts that a killed server left."""
        now, published = now or datetime.now(UTC), publish.published(self.registry)
        for folder in self.folder.glob(".draft-*"):
            with suppress(FileNotFoundError):  # it may just have been kept, or removed
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
            return msgspec.json.decode(record.read_bytes(), type=Upload)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            hint = f"remove {record.parent}"
            raise IndexInvalidError(f"{record} is damaged: {error}", hint=hint) from error
