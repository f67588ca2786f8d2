"""The interface of trust: which bytes a path of a registry must have.

Its implementations use signed metadata (`tuf_client.TufTrust`) or a list of digests shipped with the host
(`pinned.Pinned`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dragoman_api.errors import TrustError

if TYPE_CHECKING:
    from collections.abc import Mapping

UNSIGNED = "not-signed"
"""Error code for a path that no signature or list covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedFile:
    """A file of a registry.

    Attributes:
        path: Path below `targets/`, with forward slashes.
        size: Exact number of bytes if the digest is known, otherwise the maximum to read.
        sha256: Required digest; None for an unsigned file of the index.
    """

    path: str
    size: int
    sha256: str | None = None


class Trust(Protocol):
    """Decides which bytes to accept."""

    def admit(self, target: SignedFile) -> SignedFile:
        """Return the target with the path to read and the size and digest to require.

        Raises:
            TrustError: No signature or list covers the target.
            RegistryError: The signatures or the list cannot be read.
        """
        ...

    def publishers(self) -> Mapping[str, Publisher]:
        """Map each project to its publisher. Raises as `admit`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """The publisher whose signature a driver needs.

    Attributes:
        name: The registry operator's name for the publisher.
        keys: Identifiers of the publisher's keys.
    """

    name: str
    keys: tuple[str, ...]


class TrustedPath:
    """Accepts any bytes at a location; only a registry's operator may use it, never the host."""

    def admit(self, target: SignedFile) -> SignedFile:
        """Accept the target unchanged."""
        return target

    def publishers(self) -> Mapping[str, Publisher]:
        """Return no publishers."""
        return {}


def agreed(requested: SignedFile, vouched: SignedFile, where: str) -> SignedFile:
    """Return the vouched file after comparing it with the requested one.

    Raises:
        TrustError: The catalog names other bytes, or the file is larger than the limit.
    """
    if requested.sha256 not in (None, vouched.sha256):
        text = f"the catalog of {where} and the signature name different bytes for {requested.path}"
        details = {"path": requested.path, "expected": vouched.sha256, "actual": requested.sha256}
        raise TrustError(text, hint="tell the registry's operator; nothing was installed", details=details)
    if requested.sha256 is None and vouched.size > requested.size:
        raise TrustError(f"{requested.path} of {where} has {vouched.size} bytes; at most {requested.size} are read")
    return vouched
