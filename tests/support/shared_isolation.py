"""One process for all wheels that a test has checked apart, instead of a new one for each call of `verify`."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING
from unittest.mock import patch

from dragoman_registry.publisher import mirror, publish, upload_requests
from dragoman_registry.publisher.verify import __name__ as verify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_registry.isolation import Apart


@contextmanager
def one_process_apart(apart: Apart) -> Iterator[None]:
    """Share one process, which the first call starts.

    Forked children may share it, one at a time, if it runs before they do.
    """
    with (
        patch(f"{verify}.Apart", lambda: nullcontext(apart)),
        patch.object(publish, "Apart", lambda: nullcontext(apart)),
        patch.object(mirror, "Apart", lambda: nullcontext(apart)),
    ):
        yield


@contextmanager
def one_process_for_uploads(apart: Apart) -> Iterator[None]:
    """Judge uploads in one process; where its end is the matter, each needs one of its own."""
    with patch.object(upload_requests, "Apart", lambda: _Lasting(apart)):
        yield


class _Lasting:
    def __init__(self, apart: Apart) -> None:
        self.call = apart.call

    def end(self) -> None:
        """Let it work on."""
