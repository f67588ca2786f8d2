"""The seam of trust: which bytes a path of a registry must have.

Signed metadata stands behind it (`client.TufTrust`), or a list of digests that came with the host (`Pinned`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import msgspec

from dragoman_api.errors import TrustError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

UNSIGNED = "not-signed"
"""Code of the error for a path that nobody vouches for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A file of a registry.

    Attributes:
        path: Below `targets/`, with forward slashes.
        size: Exact number of bytes where a digest is known, else the most that will be read.
        sha256: Digest the bytes must have; None for a file of the index that nobody signed.
    """

    path: str
    size: int
    sha256: str | None = None


class Trust(Protocol):
    """Decide which bytes to accept."""

    def admit(self, target: Target) -> Target:
        """Give the target with the path to read, and the size and digest to hold it to.

        Raises:
            TrustError: The target is not vouched for.
            RegistryError: What vouches for it cannot be read.
        """
        ...

    def publishers(self) -> Mapping[str, Publisher]:
        """Give who may publish what: project → publisher. Raises as `admit`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Whose signature a driver needs.

    Attributes:
        name: As the registry's operator calls them.
        keys: Identifiers of the keys that may sign for them.
    """

    name: str
    keys: tuple[str, ...]


class Pins(msgspec.Struct, frozen=True):
    """The files that came with the host.

    Attributes:
        label: ``release``, or ``development`` where they are signed with throwaway keys.
        root: Digest of the root of the registry they were taken from.
        files: Path below `targets/` → size and SHA-256.
    """

    label: str
    root: str
    files: dict[str, tuple[int, str]]


class TrustedPath:
    """Trust what lies at a location: for the one who makes the registry, never for the host."""

    def admit(self, target: Target) -> Target:
        """Take the index at its word."""
        return target

    def publishers(self) -> Mapping[str, Publisher]:
        """Know nobody."""
        return {}


class Pinned:
    """Trust exactly the files whose digests came with the host; nothing here expires."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; the list is read when it is first asked for."""
        self._folder = folder

    @cached_property
    def pins(self) -> Pins:
        """Read the list. Raises TrustError if it is missing or malformed."""
        try:
            return msgspec.json.decode((self._folder / PINS).read_bytes(), type=Pins)
        except (OSError, msgspec.DecodeError) as error:
            message = f"the list of the drivers that came with dragoman, {self._folder / PINS}, is missing or damaged"
            raise TrustError(message, hint="install dragoman again") from error

    def admit(self, target: Target) -> Target:
        """Hold a file to the size and digest of the list."""
        if target.path not in self.pins.files:
            message = f"{self._folder / 'targets' / target.path} did not come with dragoman"
            raise TrustError(message, hint="install dragoman again", code=UNSIGNED)
        size, digest = self.pins.files[target.path]
        return agreed(target, Target(path=target.path, size=size, sha256=digest), str(self._folder))

    def publishers(self) -> Mapping[str, Publisher]:
        """Know nobody: the host itself vouches for the files."""
        return {}


PINS = "pins.json"
"""Name of the list of digests, beside `targets/`."""


def agreed(asked: Target, vouched: Target, where: str) -> Target:
    """Give what is vouched for, if nobody says otherwise and it is not beyond its bound.

    Raises:
        TrustError: The catalog names other bytes, or the file is larger than such a file may be.
    """
    if asked.sha256 not in (None, vouched.sha256):
        text = f"the catalog of {where} names other bytes for {asked.path} than were signed"
        details = {"path": asked.path, "expected": vouched.sha256, "actual": asked.sha256}
        raise TrustError(text, hint="tell whoever runs the registry; nothing was installed", details=details)
    if asked.sha256 is None and vouched.size > asked.size:
        raise TrustError(f"{asked.path} of {where} is signed with {vouched.size} bytes, at most {asked.size} are read")
    return vouched
