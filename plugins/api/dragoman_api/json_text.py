"""JSON text: encoded with every digit, decoded with one kind of error."""

from __future__ import annotations

import json
from typing import Any, TypeVar

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


def decode_once(text: bytes | str, kind: type[T] | msgspec.json.Decoder[T]) -> T:
    """Decode untrusted JSON text, in which no object may hold a name twice: only one of the two values would remain.

    Whoever decodes parts that stay Raw compares these.

    Args:
        text: The text.
        kind: A type or decoder that keeps every member.

    Raises:
        ValueError: The text is not valid, see `decode`, or a name occurs twice.
    """
    value = decode(text, kind)
    data = text.encode() if isinstance(text, str) else text
    # Each lost member is a colon less, as is each colon that the text spells by its code.
    if data.count(b":") != _encoder.encode(value).count(b":") or b"u003" in data:
        expect_once(data)
    return value


def expect_once(text: bytes) -> None:
    """Check that no object of a JSON text holds a name twice. Raises ValueError if one does, or if it is not JSON."""
    try:
        json.loads(text, object_pairs_hook=_once, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"{name[:80]!r} occurs twice")
        members[name] = value
    return members


def indented(text: bytes) -> str:
    """Indent untrusted JSON text. Raises ValueError as `decode` does."""
    try:
        return msgspec.json.format(text, indent=2).decode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
