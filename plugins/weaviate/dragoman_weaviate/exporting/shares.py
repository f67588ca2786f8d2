"""Split an export into shares that several processes read: ranges of ids."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from dragoman_api import Note
from dragoman_api.exports import NO_SNAPSHOT, ExportSplit
from dragoman_api.kit import cursors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import ExportRequest
    from dragoman_api.exports import SplitRequest

_IDS = 2**128
_UNPINNED = (
    "this server has no snapshots: the parts are one state of the data only if nothing is written until the end; a row "
    "that is written meanwhile is in its part as it is when it is read, or not at all"
)


class Share(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One range of ids.

    Attributes:
        after: The id before its first one; empty for the start.
        last: Its last id; empty for the end.
        total: The number of rows of all shares, if it is known.
    """

    after: str
    last: str
    total: int | None


def ranges_of_ids(number: int) -> list[tuple[str, str]]:
    """Divide all ids into ranges of equal length: the id before the first one, empty for the start, and the last."""
    bounds = [str(UUID(int=_IDS * at // number - 1)) for at in range(1, number)]
    return list(zip(["", *bounds], [*bounds, ""], strict=True))


def split(request: SplitRequest, total: int | None, notes: Sequence[Note]) -> ExportSplit:
    """Divide an export into ranges of ids, not into more than it has rows; its shares repeat none of its notes."""
    number = request.shares if total is None else max(1, min(request.shares, total))
    query = cursors.query_of(request.export)
    shares = [cursors.seal(query, Share(after=after, last=last, total=total)) for after, last in ranges_of_ids(number)]
    return ExportSplit(shares=shares, total=total, notes=[Note(code=NO_SNAPSHOT, reason=_UNPINNED), *notes])


def read(request: ExportRequest) -> Share:
    """Read the text of a share.

    Raises:
        QueryError: It is not one, or belongs to another export (code ``export-not-resumable``).
    """
    query, hint = cursors.query_of(request), "split the export again"
    text, code = request.share or "", "export-not-resumable"
    return cursors.unseal(text, query, Share, what="share", code=code, hint=hint)
