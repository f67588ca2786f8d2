"""JSON text: encoded with every digit, decoded with one kind of error."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")

_encoder = msgspec.json.Encoder(decimal_format="number")


def encode(value: object) -> str:
    """Encode JSON text; Decimal keeps its digits, Raw its bytes."""
    return _encoder.encode(value).decode()


def decode(text: bytes | str, kind: type[T] | msgspec.json.Decoder[T]) -> T:
    """Decode untrusted JSON text, by type or decoder; integers keep every digit, and Raw parts are valid UTF-8.

    Raises:
        ValueError: The text is not JSON, not of that type, not UTF-8, nested too deeply, or has a number out of range.
    """
    if isinstance(text, str):
        text = text.encode()  # msgspec rejects subclasses of str
    elif not text.isascii():
        text.decode()
    try:
        return kind.decode(text) if isinstance(kind, msgspec.json.Decoder) else msgspec.json.decode(text, type=kind)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def indented(text: bytes) -> str:
    """Indent untrusted JSON text. Raises ValueError as `decode` does."""
    try:
        return msgspec.json.format(text, indent=2).decode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
