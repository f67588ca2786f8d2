"""Checkpoints of loads: which rows of a file have their outcome, which are in doubt, and which were not sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman_api.json_text import decode
from dragoman_registry import files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_MOST = 4 << 20  # bytes of a checkpoint

Range = tuple[int, int]
"""The numbers of the first and the last row of a range."""


class LoadCheckpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of a load's rows, on disk before the next ones are sent.

    Attributes:
        identity: Properties that another run must share to be the same load, by name.
        read: The number of rows that were read; all but those of the next two attributes have an outcome.
        doubt: The rows that were sent, but have no answer on disk.
        waiting: The rows that were certainly not sent.
        bytes: The number of bytes of the file that were read for these rows.
        sha256: The SHA-256 digest of these bytes, in hexadecimal.
        counts: The number of rows per outcome.
        rejected: The size of the file of rejected rows, in bytes.
        undo: The size of the undo file, in bytes.
        undo_from: The place in the undo file, in bytes, after which the lines of all rows in doubt are.
        started: When the load's first run began: ISO 8601, in UTC.
        resumed: How often the load was resumed.
    """

    version: Literal[1] = 1
    identity: dict[str, Any]
    read: int
    doubt: list[Range]
    waiting: list[Range]
    bytes: int
    sha256: str
    counts: dict[str, int]
    rejected: int
    undo: int
    undo_from: int
    started: str
    resumed: int


def checkpoint_path(file: Path) -> Path:
    """Return the path of the checkpoint of a file's load."""
    return file.with_name(f".{file.name}.import")


def read_checkpoint(file: Path) -> LoadCheckpoint | None:
    """Read the checkpoint of a file's load; None if it is missing, unreadable, or of another user.

    Another user could have rows skipped as if they were written.
    """
    try:
        return decode(files.read_plain(checkpoint_path(file), limit=_MOST, own=True), LoadCheckpoint)
    except (OSError, ValueError):
        return None


def unfinished(file: Path) -> bool:
    """Return whether a load of this file can be resumed."""
    return bool(file.name) and read_checkpoint(file) is not None


def ranges(numbers: Iterable[int]) -> list[Range]:
    """Return sorted numbers as ranges.

    >>> ranges([1, 2, 3, 7, 9, 10])
    [(1, 3), (7, 7), (9, 10)]
    """
    spans: list[Range] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return spans


def merged(parts: Sequence[Range]) -> list[Range]:
    """Return the ranges in order, with those that touch merged.

    >>> merged([(5, 9), (1, 4), (20, 21)])
    [(1, 9), (20, 21)]
    """
    spans: list[Range] = []
    for first, last in sorted(parts):
        if spans and spans[-1][1] >= first - 1:
            spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
        else:
            spans.append((first, last))
    return spans


class Places:
    """Tells for increasing numbers whether they lie in some ranges."""

    def __init__(self, parts: Sequence[Range]) -> None:
        self._left = merged(parts)
        self._left.reverse()

    def __contains__(self, number: object) -> bool:
        assert isinstance(number, int)
        while self._left and self._left[-1][1] < number:
            self._left.pop()
        return bool(self._left) and self._left[-1][0] <= number
