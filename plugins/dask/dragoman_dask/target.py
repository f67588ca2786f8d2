"""The target of an export in parts: its claim, its complete parts, and the manifest that comes last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING

import msgspec

from dragoman.extending import PartResult, Split
from dragoman_api.columns import Note
from dragoman_api.errors import ExportError
from dragoman_api.file_versions import refuse_newer
from dragoman_api.filters import Explanation
from dragoman_api.json_text import decode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MANIFEST = "manifest.json"
"""The name of the manifest; its presence means that every part is complete."""

OWN = ".export."
"""The beginning of names that are not for readers; such files are gone when the export is complete."""

PLAN, DONE = f"{OWN}json", f"{OWN}done"
MOST = 256 << 20
"""Maximum size of such a file in bytes: 1,024 shares of at most 64,000 characters, and a filter."""

PROBE = f"{OWN}worker-"
"""The beginning of the name of a file that a worker writes to find out whether it can write here."""


class PartsTarget(ABC):
    """The target of one export in parts, for the process that coordinates it. Every method blocks.

    Attributes:
        name: The path or the URL of the target.
        address: The same for other processes; a path is absolute.
        claim: The text that a worker finds in the target as long as this process has claimed it.
        everywhere: Whether processes on other machines can write to the target.
    """

    name: str
    address: str
    claim: str = ""
    everywhere: bool = True

    def open(self, *, resume: bool) -> Split | None:
        """Claim the target for this process; return the unfinished export to continue, None for a new one.

        Raises:
            ExportError: Another export is writing there (code ``export-running``), the target holds something else
                (``target-occupied``), or there is nothing to continue (``resume-refused``).
        """
        self._take(resume=resume)
        try:
            return self._content(resume=resume)
        except BaseException:
            self.leave()
            raise

    def _content(self, *, resume: bool) -> Split | None:
        others = self._others()
        complete, unfinished = MANIFEST in others, PLAN in others
        if resume and (complete or not unfinished):
            raise self.nothing(complete=complete)
        if resume:
            try:
                plan = self._read_plan()
                refuse_newer(f"{self.name.rstrip('/')}/{PLAN}", plan)
                return decode(plan, Split)
            except (OSError, ValueError) as error:
                raise ExportError(
                    f"the unfinished export in {self.name} cannot be read: {error}",
                    hint=f"remove {quote(self.name)} and export again",
                    code="resume-refused",
                ) from error
        if others:
            content = "a complete export" if complete else "an unfinished export" if unfinished else repr(others[0])
            also = ", or continue it with --resume" if unfinished and not complete else ""
            hint = f"choose another folder{also}"
            raise ExportError(f"{self.name} holds {content}; nothing was written", hint=hint, code="target-occupied")
        return None

    def nothing(self, *, complete: bool = False) -> ExportError:
        """Return the error for a target with nothing to continue."""
        reason = f"the export in {self.name} is complete" if complete else f"{self.name} holds no unfinished export"
        return ExportError(reason, hint="export without --resume, into another folder", code="resume-refused")

    def known(self, split: Split, lines: Iterable[bytes]) -> dict[int, PartResult]:
        """Return the recorded parts of an export by number; a later record of a part replaces an earlier one."""
        numbers = {split.file(number): number for number in range(len(split.shares))}
        parts: dict[int, PartResult] = {}
        for line in lines:
            with suppress(msgspec.MsgspecError, KeyError):  # the last line may be torn
                part = msgspec.json.decode(line, type=PartResult)
                parts[numbers[part.file]] = part
        return parts

    @property
    def notes(self) -> list[Note]:
        """Notes on the target for the user."""
        return []

    @abstractmethod
    def _take(self, *, resume: bool) -> None:
        """Claim the target for this process."""

    @abstractmethod
    def _others(self) -> list[str]:
        """Return the names in the target, without those of claims."""

    @abstractmethod
    def _read_plan(self) -> bytes:
        """Return the bytes of the recorded plan. Raises OSError."""

    @abstractmethod
    def begin(self, split: Split) -> None:
        """Record a new export."""

    @abstractmethod
    def file(self, name: str) -> Path | str:
        """Return where a part is written: a path, or a URL."""

    @abstractmethod
    def size(self, name: str) -> int:
        """Return the size of a part in bytes, as this process sees it; -1 if it is not there."""

    @abstractmethod
    def done(self, split: Split) -> dict[int, PartResult]:
        """Return the parts of an unfinished export that are complete, by number; a file that was changed is not."""

    @abstractmethod
    def record(self, part: PartResult) -> None:
        """Record a complete part."""

    @abstractmethod
    def finish(self, result: PartsResult) -> None:
        """Write the manifest, then remove what was needed to continue."""

    @abstractmethod
    def digest(self) -> str:
        """Return the SHA-256 digest of the manifest, in hexadecimal."""

    @abstractmethod
    def discard(self, split: Split) -> None:
        """Remove the parts and all else of an export that cannot be continued."""

    @abstractmethod
    def leave(self) -> None:
        """Release the target; remove a folder that this export made if nothing was written to it."""

    @abstractmethod
    def unfinished(self) -> bool:
        """Return whether the target holds an export in parts that may be continued."""

    def confirm(self, claim: str) -> None:
        """Check in a worker that the export goes on, before a part gets its name.

        Otherwise, a worker whose coordinator was killed could replace a part of a later export.

        Args:
            claim: The coordinator's claim.

        Raises:
            ExportError: The export has ended, or another process has the target.
        """
        if not self._holds(claim):
            hint = "nothing is to be done: what replaced this part, or removed it, is as it should be"
            reason = f"the export in {self.name} no longer needs this part"
            raise ExportError(reason, hint=hint, code="export-running")

    @abstractmethod
    def _holds(self, claim: str) -> bool:
        """Return whether the claim is in the target, as this process sees it."""

    @abstractmethod
    def probe(self, claim: str) -> None:
        """Write a file and remove it, in a worker.

        Args:
            claim: The coordinator's claim.

        Raises:
            ExportError: This process cannot write here, or has another target under this name.
        """


class PartsResult(msgspec.Struct, frozen=True, kw_only=True):
    """A complete export in parts, as the manifest in its folder describes it.

    Attributes:
        target: The path or the URL of the folder.
        connection: The connection's name.
        object: The exported object.
        tenant: The tenant whose rows were exported; None for an object without tenants.
        revision: The revision that the rows were read at; empty if the caller named none.
        time: The span of time that the rows lie in: ``column``, ``since`` and ``until``; None for all rows.
        filter: How each filter row was applied.
        format: ``documents``, ``rows``, ``json``, ``csv``, ``tsv``, ``bulk``, ``arrow`` or ``parquet``.
        compression: ``gzip``, ``bzip2``, ``zstd`` or None.
        columns: A table's columns in order; for other formats the requested ones, None for all.
        rows: The number of rows in all parts.
        total: The number of rows that the server counted at the start; None if it did not.
        snapshot: Whether all parts are of one snapshot of the server.
        bytes: The size of all parts.
        parts: The parts, in the order of their numbers.
        server: The server's product and version.
        driver: The plugin's id and version.
        dragoman: The version of dragoman that coordinated the export.
        started: When the first run began: ISO 8601, in UTC.
        finished: When the export was complete: ISO 8601, in UTC.
        seconds: The duration of the last run.
        notes: Notes for the user.
    """

    target: str
    connection: str
    object: str
    tenant: str | None
    revision: str
    time: dict[str, str | None] | None
    filter: list[Explanation]
    format: str
    compression: str | None
    columns: list[str] | None
    rows: int
    total: int | None
    snapshot: bool
    bytes: int
    parts: list[PartResult]
    server: str
    driver: str
    dragoman: str
    started: str
    finished: str
    seconds: float
    notes: list[Note] = []
