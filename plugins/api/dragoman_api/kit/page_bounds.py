"""Bounds of a page that servers answer wrongly, or with an error of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.errors import QueryError

if TYPE_CHECKING:
    from dragoman_api.grid import PageRequest


def check_bounds(request: PageRequest) -> None:
    """Check that a page begins at an offset of 0 or more and has rows.

    Raises:
        QueryError: It does not.

    >>> from dragoman_api.grid import PageRequest
    >>> check_bounds(PageRequest(object="books", offset=-1))
    Traceback (most recent call last):
    dragoman_api.errors.QueryError: a page needs an offset of at least 0 and a limit of at least 1, not -1 and 100
    """
    offset, limit = request.offset, request.limit
    if offset < 0 or limit < 1:
        raise QueryError(f"a page needs an offset of at least 0 and a limit of at least 1, not {offset} and {limit}")
