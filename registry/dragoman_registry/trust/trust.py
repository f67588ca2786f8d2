"""Which bytes a path of a registry must have, by signed metadata or by a list of digests shipped with the host.

`tuf_client.TufTrust` reads the signed metadata.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import msgspec

from dragoman_api.errors import TrustError
from dragoman_registry.names import Digest
from dragoman_registry.validation import Unreadable, decode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

UNSIGNED = "not-signed"
"""Error code for a path that no signature or list covers."""
PINS = "pins.json"
"""Name of the list of digests, beside `targets/`."""


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

    def admit(self, file: SignedFile) -> SignedFile:
        """Return the file with the path to read and the size and digest to require.

        Raises:
            TrustError: No signature or list covers it.
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


class Pins(msgspec.Struct, frozen=True):
    """The files shipped with the host.

    Attributes:
        label: ``release``, or ``development`` if they are signed with throwaway keys.
        root: Digest of the root of the registry they come from.
        files: Maps each path below `targets/` to its size and SHA-256.
    """

    label: str
    root: str
    files: dict[str, tuple[int, Digest]]


class Pinned:
    """Accepts exactly the files whose digests ship with the host; these never expire."""

    def __init__(self, folder: Path) -> None:
        """Set the folder; the first use reads the list."""
        self._folder = folder

    @cached_property
    def pins(self) -> Pins:
        """The list. Raises TrustError if it is missing or malformed."""
        try:
            return decode((self._folder / PINS).read_bytes(), Pins)
        except (OSError, Unreadable) as error:
            message = f"{self._folder / PINS}, the list of the drivers shipped with dragoman, is missing or damaged"
            raise TrustError(message, hint="install dragoman again") from error

    def admit(self, file: SignedFile) -> SignedFile:
        """Return a file with its size and digest from the list. Raises TrustError if the list lacks it."""
        if file.path not in self.pins.files:
            message = f"{self._folder / 'targets' / file.path} was not shipped with dragoman"
            raise TrustError(message, hint="install dragoman again", code=UNSIGNED)
        size, digest = self.pins.files[file.path]
        return agreed(file, SignedFile(path=file.path, size=size, sha256=digest), str(self._folder))

    def publishers(self) -> Mapping[str, Publisher]:
        """Return no publishers: the host's own list covers the files."""
        return {}
