"""The seam of trust: which bytes a path of a registry must have.

Today a registry is trusted by its configured path, and each file by the digest its index gives. Signed metadata
takes the same place: it admits a target only if its own digest of the path agrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A file of a registry.

    Attributes:
        path: Below `targets/`, with forward slashes.
        size: Exact number of bytes where a digest is known, else the most that will be read.
        sha256: Digest the bytes must have; None for a file of the index itself.
    """

    path: str
    size: int
    sha256: str | None = None


class Trust(Protocol):
    """Decide which bytes to accept."""

    def admit(self, target: Target) -> Target:
        """Give the target with the size and digest to hold it to.

        Raises:
            TrustError: The target is not vouched for.
        """
        ...


class TrustedPath:
    """Trust what lies at the configured location."""

    def admit(self, target: Target) -> Target:
        """Take the index at its word."""
        return target
