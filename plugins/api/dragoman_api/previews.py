"""Previews of reads: which requests would be sent for a page or a count."""

from __future__ import annotations

import msgspec

from .grid import CountRequest, PageRequest


class PreviewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The read whose requests are wanted: either a page or a count.

    Attributes:
        page: The request that `fetch_page` would receive; None for a count.
        count: The request that `count_rows` would receive; None for a page.
    """

    page: PageRequest | None = None
    count: CountRequest | None = None

    def __post_init__(self) -> None:
        if (self.page is None) is (self.count is None):
            raise ValueError("a preview is of either a page or a count")

    @property
    def read(self) -> PageRequest | CountRequest:
        """The read itself."""
        request = self.page or self.count
        assert request is not None
        return request
