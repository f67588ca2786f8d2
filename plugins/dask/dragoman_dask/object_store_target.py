"""An object store as the target of an export in parts: a claim that its owner renews says which process writes."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from dragoman.extending import PartResult
from dragoman_api.columns import Note
from dragoman_api.errors import DragomanError, ExportError

from .object_stores import stop_if_cancelled
from .target import DONE, MANIFEST, MOST, OWN, PLAN, PROBE, PartsTarget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman.extending import Split

    from .object_stores import ObjectStore
    from .target import PartsResult

_CLAIM = f"{OWN}claim-"
"""The beginning of a claim's name. Claims are numbered: the next number takes over from a process that died."""

RENEW_SECONDS = 10.0
LEASE_SECONDS = 40.0
"""The number of seconds without a renewal after which the process of a claim counts as dead."""

UNCLAIMED = "target-not-claimed"
"""The code of the note that the object store lets two exports into one target."""


_MOST_OF_A_CLAIM = 64 << 10  # bytes
_NAME = re.compile(rf"{re.escape(_CLAIM)}\d{{5,9}}", re.ASCII)


def _claims(names: Iterable[str]) -> list[str]:
    """Return the names of claims, the newest last."""
    return sorted(filter(_NAME.fullmatch, names), key=lambda name: int(name.removeprefix(_CLAIM)))


class _Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a claim: a random token, its process, and the number of its renewals."""

    token: str
    host: str
    pid: int
    renewals: int = 0


class _Done(msgspec.Struct, frozen=True, kw_only=True):
    """A complete part, and the mark that the object store has for its file."""

    part: PartResult
    mark: str


class ObjectStoreTarget(PartsTarget):
    """A folder in an object store, which every process of the export reaches with its own credentials."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.name = self.address = store.url
        self.everywhere = store.protocol != "memory"
        self._own: _Claim | None = None
        self._number = 0
        self._exclusive = True
        self._left = threading.Event()
        self._checking = threading.Lock()
        self._renewing: threading.Thread | None = None
        self._lost: DragomanError | None = None
        self._done: list[_Done] = []

    # the claim --------------------------------------------------------------------------------------------------------

    def _take(self, *, resume: bool) -> None:
        names = self._store.names()
        claims = _claims(names)
        if resume and PLAN not in names:
            raise self.nothing(complete=MANIFEST in names)
        if claims:
            self._number = int(claims[-1].removeprefix(_CLAIM))
            self._await_end(claims[-1])
        own = _Claim(token=secrets.token_hex(16), host=socket.gethostname(), pid=os.getpid())
        self._number += 1
        try:
            self._exclusive = self._store.create(self._claim_name, msgspec.json.encode(own))
        except FileExistsError:
            raise self._running(self._read_claim(self._claim_name)) from None
        self._own, self.claim = own, own.token
        self._renewing = threading.Thread(target=self._renew, name="dragoman-claim", daemon=True)
        self._renewing.start()
        for name in claims:
            self._store.remove(name)

    @property
    def _claim_name(self) -> str:
        return f"{_CLAIM}{self._number:05}"

    def _newest_claim(self) -> _Claim | None:
        claims = _claims(self._store.names())
        return self._read_claim(claims[-1]) if claims else None

    def _read_claim(self, name: str) -> _Claim | None:
        try:
            return msgspec.json.decode(self._store.read(name, limit=_MOST_OF_A_CLAIM), type=_Claim)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError:  # a file server shows it while it is written
            return _Claim(token="", host="", pid=0)

    def _await_end(self, name: str) -> None:
        """Wait until a claim is gone, or has not been renewed for so long that its process must have died.

        Raises:
            ExportError: The claim was renewed: its process is alive.
        """
        first, until = self._read_claim(name), time.monotonic() + LEASE_SECONDS
        while first is not None and time.monotonic() < until:
            stop_if_cancelled()
            time.sleep(min(1.0, LEASE_SECONDS / 10))
            now = self._read_claim(name)
            if now is not None and now != first:
                raise self._running(now)
            if now is None:
                return

    def _running(self, claim: _Claim | None) -> ExportError:
        of = f" (process {claim.pid} on {claim.host})" if claim and claim.pid else ""
        hint = "wait for it, or choose another folder"
        return ExportError(f"another export{of} is writing {self.name}", hint=hint, code="export-running")

    def _renew(self) -> None:
        """Renew the claim until the export ends; a failed renewal is repeated, and only a newer claim ends it."""
        while not self._left.wait(RENEW_SECONDS):
            try:
                with self._checking:
                    self._check_claim()
                    assert self._own is not None
                    self._own = msgspec.structs.replace(self._own, renewals=self._own.renewals + 1)
                    self._store.write(self._claim_name, msgspec.json.encode(self._own))
            except DragomanError as error:
                if error.code == "export-running":
                    self._lost = error
                    return

    def _check_claim(self) -> None:
        """Raise ExportError if another process took over."""
        if self._lost is not None:
            raise self._lost
        newest_claim = self._newest_claim()
        if self._own is None or newest_claim is None or newest_claim.token != self._own.token:
            raise self._running(newest_claim)

    @property
    def notes(self) -> list[Note]:
        """Whether the object store could let two exports in."""
        if self._exclusive:
            return []
        reason = f"{self.name} cannot refuse a second claim, so an export that began at the same moment may not be seen"
        return [Note(code=UNCLAIMED, reason=reason)]

    def leave(self) -> None:
        """Remove the claim."""
        if self._own is None:
            return
        self._left.set()
        if self._renewing is not None:
            self._renewing.join()
        with suppress(DragomanError):  # another process waits until the claim has run out
            self._store.remove(self._claim_name)
        self._own = None

    def _holds(self, claim: str) -> bool:
        newest_claim = self._newest_claim()
        return newest_claim is not None and newest_claim.token == claim

    def probe(self, claim: str) -> None:
        """Write a file and remove it, in a worker. Raises ExportError, also if the coordinator's claim is not there."""
        if not self._holds(claim):
            hint = "give every worker the same endpoint and account, as AWS_ENDPOINT_URL or in a configuration file"
            raise ExportError(f"{self.name} is another place here: the claim of the export is not in it", hint=hint)
        name = f"{PROBE}{secrets.token_hex(6)}"
        self._store.write(name, b"")
        self._store.remove(name)

    # the parts --------------------------------------------------------------------------------------------------------

    def _others(self) -> list[str]:
        names = self._store.names()
        claims = _claims(names)
        return [name for name in names if name not in claims]

    def _read_plan(self) -> bytes:
        return self._store.read(PLAN, limit=MOST)

    def begin(self, split: Split) -> None:
        """Record a new export."""
        self._store.write(PLAN, msgspec.json.encode(split))

    def file(self, name: str) -> str:
        """Return the URL of a part."""
        return f"{self.name}/{name}"

    def size(self, name: str) -> int:
        """Return the size of a part in bytes, as this process sees it; -1 if it is not there."""
        return self._store.size(name)

    def done(self, split: Split) -> dict[int, PartResult]:
        """Return the parts of an unfinished export that are complete, by number; a file that was changed is not.

        A file whose mark is the recorded one is not read.
        """
        parts: dict[int, PartResult] = {}
        with suppress(FileNotFoundError, msgspec.MsgspecError):
            recorded = msgspec.json.decode(self._store.read(DONE, limit=MOST), type=list[_Done])
            marks = {record.part.file: record.mark for record in recorded}
            lines = [msgspec.json.encode(record.part) for record in recorded]
            for number, part in self.known(split, lines).items():
                mark = self._store.mark(part.file)
                if (mark and mark == marks[part.file]) or self._sha256(part.file) == part.sha256:
                    parts[number] = part
                    self._done.append(_Done(part=part, mark=mark))
        return parts

    def _sha256(self, name: str) -> str:
        digest = hashlib.sha256()
        try:
            for piece in self._store.read_pieces(name):
                digest.update(piece)
        except FileNotFoundError:
            return ""
        return digest.hexdigest()

    def record(self, part: PartResult) -> None:
        """Record a complete part."""
        if self._lost is not None:
            raise self._lost
        self._done.append(_Done(part=part, mark=self._store.mark(part.file)))
        self._store.write(DONE, msgspec.json.encode(self._done))

    def finish(self, result: PartsResult) -> None:
        """Write the manifest, then remove what was needed to continue."""
        with self._checking:
            self._check_claim()
        try:
            self._store.create(MANIFEST, msgspec.json.format(msgspec.json.encode(result)) + b"\n")
        except FileExistsError:
            raise ExportError(
                f"{self.name} holds a complete export", hint="choose another folder", code="target-occupied"
            ) from None
        with suppress(DragomanError):  # it is complete; what is left does no harm
            self._tidy({part.file for part in result.parts})

    def digest(self) -> str:
        """Return the SHA-256 digest of the manifest, in hexadecimal."""
        return self._sha256(MANIFEST)

    def discard(self, split: Split) -> None:
        """Remove the parts and all else of an export that cannot be continued."""
        files = {split.file(number) for number in range(len(split.shares))}
        with self._checking:
            self._check_claim()
        self._tidy(files)
        for name in self._store.names():
            if name in files:
                self._store.remove(name)

    def _tidy(self, files: set[str]) -> None:
        self._store.abort_uploads(files)
        for name in self._store.names():
            if name in (PLAN, DONE) or name.startswith(PROBE):
                self._store.remove(name)

    def unfinished(self) -> bool:
        """Return whether the folder holds an export in parts that may be continued."""
        names = self._store.names()
        return PLAN in names and MANIFEST not in names
