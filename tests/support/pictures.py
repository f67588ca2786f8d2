"""Pictures of the documentation: each holds the names of what it shows, so that a test can tell an old one."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_HEAD = b"\x89PNG\r\n\x1a\n"
_KEYWORD = b"Description\0"


def caption(path: Path, names: Sequence[str]) -> None:
    """Write the names of what a picture shows into it."""
    chunks = [chunk for chunk in _chunks(path.read_bytes()) if not chunk[1].startswith(_KEYWORD)]
    chunks.insert(1, (b"tEXt", _KEYWORD + "; ".join(names).encode("latin-1")))
    path.write_bytes(_HEAD + b"".join(map(_packed, chunks)))


def captions(path: Path) -> list[str]:
    """Return the names of what a picture shows."""
    [text] = [data for kind, data in _chunks(path.read_bytes()) if kind == b"tEXt" and data.startswith(_KEYWORD)]
    return text.removeprefix(_KEYWORD).decode("latin-1").split("; ")


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_HEAD)
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        yield kind, data[at + 8 : at + 8 + size]
        at += 12 + size


def _packed(chunk: tuple[bytes, bytes]) -> bytes:
    kind, data = chunk
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
