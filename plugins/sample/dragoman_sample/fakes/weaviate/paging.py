"""The window: how many rows from where a request may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_sample.fakes.weaviate.errors import InvalidError
from dragoman_sample.fakes.weaviate.values import parse_uuid

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.settings import Settings


def check_window(offset: int, limit: int, settings: Settings) -> None:
    """Refuse what reaches beyond the window.

    Raises:
        InvalidError: with the server's text.
    """
    if offset + limit > settings.window:
        raise InvalidError(
            "query maximum results exceeded: the total limit calculated from the provided offset "
            f"'{offset}' and limit '{limit}' exceeds the configured value for QUERY_MAXIMUM_RESULTS "
            f"'{settings.window}'. If you've supplied a negative offset or limit, this may be an underflow error"
        )


def check_cursor(after: str, *, limit: int | None, offset: int, where: bool, sort: bool) -> str:
    """Return the id after which a cursor continues.

    Raises:
        InvalidError: it cannot be combined with the rest, or is no uuid.
    """
    if where or offset or sort:
        name = "where" if where else "offset" if offset else "sort"
        raise InvalidError(f"{name} cannot be set with after and limit parameters")
    if limit is None:
        raise InvalidError("limit parameter must be set")
    if not after:
        return ""
    try:
        return parse_uuid(after)
    except InvalidError as reason:
        raise InvalidError(f"after parameter '{after}' is not a valid uuid: {reason}") from None
