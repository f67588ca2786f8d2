"""Files of signed metadata in a registry folder: parse one, list their versions, follow the chain of roots."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Metadata, MetaFile, Root
from tuf.api.serialization import DeserializationError

from dragoman_api.errors import IndexInvalidError, TrustError
from dragoman_registry.files import read_plain

if TYPE_CHECKING:
    from pathlib import Path

_FILE = re.compile(r"([1-9][0-9]{0,8})\.([\w-]+)\.json", re.ASCII)
MAX_ROLE = 32 << 20
"""Maximum size of a role's file in bytes; clients have the same limit."""


def parse_metadata(path: Path, kind: type[Any]) -> Metadata[Any]:
    """Parse a file of metadata, without verifying its signatures.

    Raises:
        IndexInvalidError: It is missing, unreadable, malformed, or of another kind.
    """
    try:
        metadata: Metadata[Any] = Metadata.from_bytes(read_plain(path, limit=MAX_ROLE))
    except FileNotFoundError as error:
        raise IndexInvalidError(f"{path} is missing from the registry", details={"path": str(path)}) from error
    except OSError as error:
        text = f"{path} cannot be read: {error.strerror or error}"
        raise IndexInvalidError(text, details={"path": str(path)}) from error
    except DeserializationError as error:
        raise IndexInvalidError(f"{path} is not valid: {error}", details={"path": str(path)}) from error
    if not isinstance(metadata.signed, kind):
        raise IndexInvalidError(f"{path} is not {kind.__name__.lower()} metadata", details={"path": str(path)})
    return metadata


def read_roots(folder: Path, first_root: Path) -> Metadata[Root]:
    """Follow the chain of roots, each signed by the previous one, and return the last.

    Args:
        folder: The folder of metadata.
        first_root: The copy of the first root beside the keys; the first root must match it.

    Raises:
        IndexInvalidError: A root is missing, unreadable, malformed, or of another kind.
        TrustError: The first root is another one, or a later one is not signed by its predecessor.
    """
    path = folder / "1.root.json"
    root = parse_metadata(path, Root)
    if first_root.is_file() and first_root.read_bytes() != read_plain(path, limit=MAX_ROLE):
        text = f"{path} is not the root that was made with the keys in {first_root.parent}"
        raise TrustError(text, hint="the folder was changed; restore it from a copy", code="root-mismatch")
    while (path := folder / f"{root.signed.version + 1}.root.json").is_file():
        following = parse_metadata(path, Root)
        for authority in (root, following):
            try:
                authority.signed.verify_delegate("root", following.signed_bytes, following.signatures)
            except (RepositoryError, ValueError) as error:
                raise TrustError(f"{path} is not signed with the keys of the previous root") from error
        root = following
    return root


def versions_in(folder: Path) -> dict[str, set[int]]:
    """Map each role to the versions of its metadata on disk, accepted or not."""
    versions: dict[str, set[int]] = {}
    for file in folder.iterdir():
        if match := _FILE.fullmatch(file.name):
            versions.setdefault(match[2], set()).add(int(match[1]))
    return versions


def describe_file(version: int, data: bytes) -> MetaFile:
    """Return what a snapshot or timestamp says of a file: version, length and digest."""
    return MetaFile(version, len(data), {"sha256": hashlib.sha256(data).hexdigest()})
