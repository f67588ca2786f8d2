"""The bytes of a file to import: decompressed as they are read, and hashed as the file holds them."""

from __future__ import annotations

import codecs
import hashlib
import io
import zlib
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

import msgspec

from dragoman.exports.formats import COMPRESSED, PACKED, format_of_ending, zstd
from dragoman_api.errors import ConfigurationError
from dragoman_registry import files

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = 1 << 18
"""The number of bytes that are read at a time."""

DAMAGED = "import-file-damaged"
"""The code of the error for a file that is truncated or damaged."""

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
_LONGEST = max(map(len, _MAGIC))
FORMATS = ("documents", "ndjson", "json", "rows", "csv", "tsv", "bulk", "parquet")
"""The values of `--format`: the formats of an export that an import reads back."""

_MOST = 1 << 20  # bytes of a manifest


class _Hashed(io.RawIOBase):
    """A stream that counts and hashes the bytes that are read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._head = stream, b""
        self.bytes, self.digest = 0, hashlib.sha256()

    def peek(self, size: int) -> bytes:
        """Return the first bytes; the next reads return them again."""
        while len(self._head) < size and (data := self._stream.read(size - len(self._head))):
            self._head += data
        return self._head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        data = data or self._stream.read(len(buffer)) or b""
        buffer[: len(data)] = data
        self.bytes += len(data)
        self.digest.update(data)
        return len(data)


class _Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...


ENCODINGS = (
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "windows-1250", "windows-1251", "windows-1252", "iso-8859-1",
    "iso-8859-15", "mac-roman",
)  # fmt: skip
"""How a file may spell its characters; an import reads UTF-8 unless it is told otherwise."""

_UTF_16 = (b"\xff", b"\xfe")
"""First bytes of UTF-16 with its byte order mark; no UTF-8 has them."""


class ImportSource:
    """One file, or standard input, in decompressed blocks.

    Attributes:
        name: The name of the file in messages.
        size: The size of the file in bytes; None for a stream.
        compression: The compression by the first bytes of the file: ``gzip``, ``bzip2``, ``zstd`` or None.
    """

    def __init__(
        self,
        path: Path,
        *,
        stdin: BinaryIO | None = None,
        compression: str | None = None,
        encoding: str | None = None,
    ) -> None:
        """Open the file.

        Args:
            path: The path of the file.
            stdin: A stream to read instead of the file.
            compression: The compression that the file's name stands for.
            encoding: One of `ENCODINGS`; None for UTF-8.

        Raises:
            ConfigurationError: There is no such encoding, or the file cannot be read, or is not compressed as its name
                says.
        """
        if encoding is not None and encoding not in ENCODINGS:
            raise ConfigurationError(f"unknown encoding {encoding[:40]!r}", hint=f"use one of: {', '.join(ENCODINGS)}")
        self._decoder = None if encoding in (None, "utf-8") else codecs.getincrementaldecoder(encoding)()
        self.name = "standard input" if stdin is not None else str(path)
        try:
            stream = stdin if stdin is not None else path.open("rb")
            self.size = None if stdin is not None else path.stat().st_size
            self._raw = _Hashed(stream)
            head = self._raw.peek(_LONGEST)
        except OSError as error:
            raise ConfigurationError(f"{self.name} cannot be read: {error.strerror}") from error
        self._close = stream.close if stdin is None else lambda: None
        self.compression = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
        if compression and head and self.compression != compression:
            actual_compression = self.compression or "not compressed"
            self.close()
            text = f"{self.name} should be {compression} by its name, but its bytes are {actual_compression}"
            raise ConfigurationError(text, hint="rename it, so that its ending says what it is", code="format-unknown")
        self._stream = _unpacked(self.compression, self._raw)
        self._begun = False

    def read(self) -> bytes:
        """Return the next block in UTF-8; empty at the end.

        Raises:
            ConfigurationError: The bytes cannot be read or decompressed (code ``import-file-damaged``), or the first
                ones are those of UTF-16.
        """
        block = self._unpacked_block()
        if self._decoder is not None:
            return self._decoded(block)
        if not self._begun and (block[:1] in _UTF_16 or 0 in block[:2]):
            text = f"{self.name} begins with bytes of UTF-16, and an import reads UTF-8"
            mark = "" if block[:1] in _UTF_16 else "-be" if block[0] == 0 else "-le"
            raise ConfigurationError(text, hint=f"--encoding utf-16{mark}")
        self._begun = True
        return block

    def _unpacked_block(self) -> bytes:
        try:
            return self._stream.read1(BLOCK)
        except EOFError as error:
            raise self._damaged(f"the {self.compression} stream ends in its middle") from error
        except (OSError, ValueError, zlib.error) as error:
            raise self._damaged(str(error)) from error
        except Exception as error:  # zstd's error, of a package that may be missing
            if self.compression != "zstd":
                raise
            raise self._damaged(str(error)) from error

    def _decoded(self, block: bytes) -> bytes:
        """Return a block in UTF-8, with the next one if it holds no whole character; empty at the end."""
        assert self._decoder is not None
        try:
            while not (text := self._decoder.decode(block, not block)) and block:
                block = self._unpacked_block()
        except UnicodeError as error:
            raise self._damaged(f"it has another encoding: {error}") from error
        return text.encode()

    def _damaged(self, reason: str) -> ConfigurationError:
        return ConfigurationError(f"{self.name} is damaged: {reason}", code=DAMAGED)

    @property
    def place(self) -> tuple[int, str]:
        """The number of the file's bytes that were read, and their SHA-256 digest in hexadecimal."""
        return self._raw.bytes, self._raw.digest.hexdigest()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        self._close()


def _unpacked(compression: str | None, raw: _Hashed) -> _Readable:
    """Return a stream of the decompressed bytes; those before any damage can be read."""
    buffered = io.BufferedReader(raw, max(BLOCK, io.DEFAULT_BUFFER_SIZE))
    if compression is None:
        return buffered
    if compression == "gzip":
        from gzip import GzipFile

        return GzipFile(fileobj=buffered, mode="rb")
    if compression == "bzip2":
        from bz2 import BZ2File

        return BZ2File(cast("BinaryIO", buffered))
    return cast("_Readable", zstd().ZstdFile(buffered))


def digest_of(path: Path, size: int | None = None) -> str:
    """Return the SHA-256 digest of the first `size` bytes of a file, or of all. Raises OSError if it cannot be read."""
    digest, left = hashlib.sha256(), size
    with path.open("rb") as file:
        while data := file.read(BLOCK if left is None else min(BLOCK, left)):
            digest.update(data)
            left = None if left is None else left - len(data)
    return digest.hexdigest()


class _Noted(msgspec.Struct):
    code: str


class ExportManifest(msgspec.Struct):
    """The fields that an import reads of an export's manifest, which anyone may have written.

    Attributes:
        format: The name of the file's format, as ``csv``.
        bytes: The file's size.
        notes: The codes of the notes on the file.
    """

    format: str
    bytes: int
    notes: list[_Noted] = []

    @property
    def escaped(self) -> bool:
        """Whether the export put an apostrophe before formulas."""
        return any(note.code == "formulas-escaped" for note in self.notes)


def choose(path: Path | None, *, format: str | None) -> tuple[str, str | None]:  # noqa: A002 - the option's name
    """Choose the format of a file, and the compression that its name stands for.

    Args:
        path: The file; None for standard input.
        format: The format that the caller named; None to find it out.

    Returns:
        The format, and ``gzip``, ``bzip2``, ``zstd`` or None.

    Raises:
        ConfigurationError: There is no such format, or neither a manifest nor the name tells the format.
    """
    if format is not None and format not in FORMATS:
        raise ConfigurationError(f"unknown format {format!r}", hint=f"use one of: {', '.join(FORMATS)}")
    suffixes = [suffix.lower() for suffix in path.suffixes] if path else []
    outer = COMPRESSED.get(suffixes[-1]) if suffixes else None
    inner = suffixes[:-1] if outer else suffixes
    if suffixes and suffixes[-1] in PACKED:
        hint = f"unpack it first, or pack it again as one of {', '.join(COMPRESSED)}"
        text = f"{path} is packed in a way that an import does not read: {suffixes[-1]}"
        raise ConfigurationError(text, hint=hint, code="format-unknown")
    manifest = read_manifest(path) if path and not format else None
    format_name = format or (manifest and manifest.format) or format_of_ending(inner, FORMATS, what="an import")
    format_name = "documents" if format_name == "ndjson" else format_name
    if format_name == "parquet" and (outer or path is None):
        text = "a Parquet file has internal compression and cannot be streamed"
        raise ConfigurationError(text, hint="name a file that ends in .parquet")
    return format_name, outer


def read_manifest(path: Path) -> ExportManifest | None:
    """Return the manifest beside an exported file; None if there is none, or it does not fit the file."""
    try:
        data = files.read_plain(path.with_name(f"{path.name}.manifest.json"), limit=_MOST)
        manifest = msgspec.json.decode(data, type=ExportManifest)
        return manifest if manifest.bytes == path.stat().st_size and manifest.format in FORMATS else None
    except (OSError, ValueError):
        return None
