"""One process for all wheels that a test has checked apart, instead of a new one for each call of `verify`."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING
from unittest.mock import patch

from dragoman_registry.isolation import Apart
from dragoman_registry.publisher import mirror, publish, upload_requests
from dragoman_registry.publisher.verify import __name__ as verify

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def one_process_apart() -> Iterator[Apart]:
    """Share one process, which the first call starts.

    Forked children may share it, one at a time, if it runs before they do.
    """
    with (
        Apart() as apart,
        patch(f"{verify}.Apart", lambda: nullcontext(apart)),
        patch.object(publish, "Apart", lambda: nullcontext(apart)),
        patch.object(mirror, "Apart", lambda: nullcontext(apart)),
    ):
        yield apart


@contextmanager
def one_process_for_uploads() -> Iterator[None]:
    """Judge uploads in one process; where its end is the matter, each needs one of its own."""
    with Apart() as apart, patch.object(upload_requests, "Apart", lambda: _Lasting(apart)):
        yield


class _Lasting:
    def __init__(self, apart: Apart) -> None:
        self.call = apart.call

    def end(self) -> None:
        """Let it work on."""
