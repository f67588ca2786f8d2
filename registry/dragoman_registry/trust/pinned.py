"""Trust in the files shipped with the host: a list of their digests, which never expires."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.errors import TrustError
from dragoman_registry.names import Digest
from dragoman_registry.validation import Unreadable, decode

from .interface import UNSIGNED, Publisher, SignedFile, agreed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PINS = "pins.json"
"""Name of the list of digests, beside `targets/`."""


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

    def admit(self, target: SignedFile) -> SignedFile:
        """Return a file with its size and digest from the list. Raises TrustError if the list lacks it."""
        if target.path not in self.pins.files:
            message = f"{self._folder / 'targets' / target.path} was not shipped with dragoman"
            raise TrustError(message, hint="install dragoman again", code=UNSIGNED)
        size, digest = self.pins.files[target.path]
        return agreed(target, SignedFile(path=target.path, size=size, sha256=digest), str(self._folder))

    def publishers(self) -> Mapping[str, Publisher]:
        """Return no publishers: the host's own list covers the files."""
        return {}
