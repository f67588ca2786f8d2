"""Columns that a filter cannot match with ``any``: the host refuses such a filter before the driver is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.errors import FilterNotSupportedError
from dragoman_api.filters import Filter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman_api.columns import Description
    from dragoman_api.filters import FilterRequest

ANY = "any"
"""The key of `Column.reasons`, and the value of `FilterRequest.match`."""


def excluded(description: Description) -> dict[str, str]:
    """Return the reason of each column that a filter cannot match with ``any``."""
    return {column.name: column.reasons[ANY] for column in description.columns if ANY in column.reasons}


def check_any(request: FilterRequest, reasons: Mapping[str, str]) -> None:
    """Refuse a filter of several rows that matches ``any`` of them and names an excluded column.

    Args:
        request: The filter.
        reasons: The reason of each excluded column, by name; from `excluded`.

    Raises:
        FilterNotSupportedError: The filter names an excluded column; the details hold row, column, operator and reason.
    """
    if request.match != ANY or len(request.rows) < 2:
        return
    for number, row in enumerate(request.rows):
        if isinstance(row, Filter) and (reason := reasons.get(row.column)):
            raise FilterNotSupportedError(
                f"filter row {number + 1}: {row.column} does not combine with other rows by any: {reason}; "
                "nothing was sent",
                hint="match all rows, or filter by this column alone",
                details={"row": number, "column": row.column, "operator": str(row.op), "reason": reason},
            )
