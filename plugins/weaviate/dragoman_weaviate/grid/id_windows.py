"""Windows of ids: pages in the order of ids, without sorting everything that matches.

A search in the order of ids reads and sorts all objects that match, 10 to 15 µs each, for every page. Restricted to the
lowest ids, it sorts only the matching objects among these. Ids are usually spread evenly, so the number of objects
tells which share of the ids holds the page. If the page is not full, the window was too small, and the search is
repeated in a larger one, or in none: a window never decides which rows a page has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

if TYPE_CHECKING:
    from dragoman_weaviate.graphql import Where

_MOST = 0.25
"""The largest share of all ids: the server reads an id of a window in about a tenth of the time of a sorted object."""
EVERY = 8
"""One of so many objects matches a filter, as long as nothing is known of it."""
_SPARE = 1.5
"""How much larger a window is than expected, since ids are spread evenly only on average."""
_FEW = 16
"""Rows in a window from which the share of objects that match is estimated."""
_ALL = 2**128


class IdWindow(msgspec.Struct, frozen=True):
    """The lowest ids, or the highest.

    Attributes:
        share: Their share of all possible ids.
        descending: Whether they are the highest.
    """

    share: float
    descending: bool = False

    def around(self, where: Where | None) -> Where:
        """Return a filter for the objects in the window that match another filter."""
        width = int(self.share * _ALL)
        operator, bound = ("GreaterThanEqual", _ALL - width) if self.descending else ("LessThan", width)
        ids: Where = {"path": ["id"], "operator": operator, "valueText": str(UUID(int=bound))}
        return {"operator": "And", "operands": [where, ids]} if where else ids

    def wider(self, rows: int, window_rows: int) -> IdWindow | None:
        """Return a larger window for the same rows.

        Args:
            rows: The number of rows that it should hold.
            window_rows: The number of rows that were in this window.

        Returns:
            None if all ids should be read: too few rows are in this window, or too many ids would be in the next.
        """
        return _of(self.share * rows / window_rows, self.descending) if window_rows >= _FEW else None


def first_window(rows: int, matching: float, *, descending: bool = False) -> IdWindow | None:
    """Return the window in which the first rows should be found.

    Args:
        rows: The number of rows that it should hold.
        matching: How many objects match, about.
        descending: Whether the first rows are those with the highest ids.

    Returns:
        None if all ids should be read: too few objects match.
    """
    return _of((rows + _FEW) / matching, descending) if matching else None


def _of(expected: float, descending: bool) -> IdWindow | None:  # noqa: FBT001 - both callers pass a flag on
    share = expected * _SPARE
    return IdWindow(share, descending) if share <= _MOST else None
