"""What every way to a server that is not reached directly has in common: how it is used, and how it fails."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import socket

    from .address_resolver import NearerError

NAME = "{name}"
"""Stands in a hint for the connection's name, which a way does not know."""


class ViaError(OSError):
    """What is between this machine and a server cannot be used, or refuses.

    Its `strerror` is for the driver's process, which learns neither names nor the words of what is in between.

    Attributes:
        reason: One clause for a person; its subject is what is in between.
        hint: What to do. It may contain `NAME`.
        nearer: Set if the name of what is in between resolves to a nearer address than allowed.
    """

    def __init__(
        self, who: str, reason: str, *, said: str = "", hint: str = "", nearer: NearerError | None = None
    ) -> None:
        """Build the error.

        Args:
            who: What is in between, for a person.
            reason: What it does wrong, without names and without words of its own.
            said: Its own words, harmless and short.
            hint: What to do.
            nearer: As the attribute.
        """
        super().__init__(errno.EPROTO, f"what is between this machine and the server {reason}")
        self.reason = f"{who} {reason}{f': {said}' if said else ''}"
        self.hint, self.nearer = hint, nearer


class Way(Protocol):
    """Connects to servers by way of something in between."""

    async def connect(self, host: str, port: int) -> socket.socket:
        """Return a socket on which everything goes to, and comes from, a host and port. Raises ViaError."""

    async def close(self) -> None:
        """End what it started, if anything."""
