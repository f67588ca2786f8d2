"""Pictures of the documentation: one can hold the names of what it shows, so that a test can tell an old one."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_FORM = b"WEBP"
_KIND = b"NAME"
"""A chunk of our own, which readers of WebP pass over."""


def caption(path: Path, names: Sequence[str]) -> None:
    """Write the names of what a picture shows into it."""
    chunks = [(kind, data) for kind, data in _chunks(path.read_bytes()) if kind != _KIND]
    body = b"".join(_packed(kind, data) for kind, data in [*chunks, (_KIND, "; ".join(names).encode())])
    path.write_bytes(b"RIFF" + struct.pack("<I", len(_FORM + body)) + _FORM + body)


def captions(path: Path) -> list[str]:
    """Return the names of what a picture shows."""
    [text] = [data for kind, data in _chunks(path.read_bytes()) if kind == _KIND]
    return text.decode().split("; ")


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 12
    while at < len(data):
        kind, size = struct.unpack_from("<4sI", data, at)
        yield kind, data[at + 8 : at + 8 + size]
        at += 8 + size + size % 2


def _packed(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
