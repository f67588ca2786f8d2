"""JSON text: encoded and read with every digit, decoded with one kind of error."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from .cells import Json

if TYPE_CHECKING:
    from decimal import Decimal

T = TypeVar("T")

MAX_DIGITS = 4_300
"""Maximum digits of an integer that Python and msgspec read and print; a longer one is a Decimal."""

_ZERO = "e-0000"  # appended to an integer that is too long, and to -0; the number keeps its value
_LONG = re.compile(  # an unclosed string, and digits that are not an integer, are consumed: no byte is scanned twice
    rb'"(?:[^"\\]++|\\[^\n])*+"?|(-0(?![0-9])|-[0-9]{%d,}+|[0-9]{%d,}+)(?![.eE])|[0-9]++' % (MAX_DIGITS, MAX_DIGITS + 1)
)
_DIGITS = b"0123456789"
_SIGNED = re.compile(rb"-0(?![0-9.eE])")
_WIDENED = re.compile(rf'"(?:[^"\\]++|\\[^\n])*+"?|(-0|-?[0-9]{{{MAX_DIGITS},}}+){_ZERO}(?![0-9])|[0-9]++')

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
        check_once(data)
    return value


def check_once(text: bytes) -> None:
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


def exact_number(text: str) -> float | Decimal | Json:
    """Read a JSON number that has a fraction or an exponent, and keep every digit.

    Use it as msgspec's `float_hook`. A number outside Decimal's range stays text.

    >>> exact_number("1.5"), exact_number("1.10"), exact_number("1e400"), exact_number("1e99999999999999999999")
    (1.5, Decimal('1.10'), Decimal('1E+400'), '1e99999999999999999999')
    """
    value = float(text)
    if repr(value) == text:
        return value
    from decimal import Decimal, InvalidOperation

    try:
        return Decimal(text if len(text) <= MAX_DIGITS else narrowed(text))
    except InvalidOperation:
        return Json(text)


def widened(json: bytes) -> bytes:
    """Add an exponent of zero to the integers of a JSON text that would not be read as integers: too long ones, and -0.

    `exact_number` reads them; `narrowed` removes the exponent if they stay text.
    """
    if not (has_signed_zero(json) or _has_long_run(json)):
        return json
    return _LONG.sub(lambda match: match[1] + _ZERO.encode() if match[1] else match[0], json)


def _has_long_run(json: bytes) -> bool:
    """Return whether a text holds `MAX_DIGITS` digits in a row: such a run covers one of the places looked at."""
    for at in range(MAX_DIGITS, len(json) + 1, MAX_DIGITS):
        if json[at - 1] in _DIGITS:
            before, behind = json[at - MAX_DIGITS : at], json[at : at + MAX_DIGITS]
            spare = len(before.rstrip(_DIGITS)) + len(behind.lstrip(_DIGITS))
            if len(before) + len(behind) - spare >= MAX_DIGITS:
                return True
    return False


def has_signed_zero(json: bytes) -> bool:
    """Return whether a JSON text may hold the integer -0, whose sign is lost unless the text is `widened`."""
    return _SIGNED.search(json) is not None


def narrowed(json: str) -> str:
    """Remove the exponents that `widened` added."""
    return _WIDENED.sub(lambda match: match[1] or match[0], json) if _ZERO in json else json
