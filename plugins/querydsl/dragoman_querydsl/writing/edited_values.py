"""Edited values: typed by column, and put where they belong in the document."""

from __future__ import annotations

import base64
import ipaddress
import re
import sys
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import Json
from dragoman_api.json_text import decode, encode
from dragoman_querydsl.columns import dates
from dragoman_querydsl.columns.field_types import Family
from dragoman_querydsl.grid import clauses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman_querydsl.columns.field_types import Field

Tree = dict[str, Any]

_OBJECTS = (Family.OBJECT, Family.NESTED, Family.FLATTENED, Family.RANGE, Family.POINT, Family.GEO, Family.OTHER)
_TEXTS = (Family.KEYWORD, Family.TEXT, Family.KEYED, Family.VERSION)
_TEXT_TYPES = {"completion", "semantic_text", "annotated_text"}
_OTHERS = rb'[^"0-9-]++|"(?:[^"\\]++|\\.)*+"'
_NUMBERS = re.compile(rb"(?:%b)(?:%b|)*+|(-?[0-9][0-9.eE+-]*+)" % (_OTHERS, _OTHERS))
_FRACTION = re.compile(r"[.eE]")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PLAIN = 1e-3, 1e7  # the server writes floats outside of it with an exponent
_object = msgspec.json.Decoder(dict[str, Raw])
_array = msgspec.json.Decoder(list[Raw])


def edited(field: Field, value: object) -> object:
    """Convert an edited value to the value that is stored, see `Values`.

    JSON is stored in its own bytes. Whether the server takes a number or a boolean where texts are mapped, and a text
    where numbers are, is the server's to say: many documents hold them. A text is stored as it is where texts are
    mapped; elsewhere it is what a person typed.

    Raises:
        ValueError: The value does not fit the column; the message says why.
    """
    if isinstance(value, Json):
        json = decode(value, Raw)
        if bytes(json) == b"null":
            return None
        _check(field, json)
        return json
    if isinstance(value, str):
        try:
            value = _read(field, value)
        except ValueError:
            if not _is_sloppy(field):
                raise
    if isinstance(value, bytes):
        if field.family is not Family.BINARY:
            raise ValueError("it takes no bytes")
        value = base64.b64encode(value).decode()
    _check(field, value)
    return sendable(value)


def opens(value: object, *signs: bytes) -> bool:
    """Return whether the JSON text of a value begins with one of some signs: ``{`` and ``[``."""
    if isinstance(value, Raw):
        return bytes(value)[:1] in signs
    return (isinstance(value, dict) and b"{" in signs) or (isinstance(value, list | tuple) and b"[" in signs)


def _read(field: Field, text: str) -> object:
    """Return what a typed text stands for in a column."""
    family = field.family
    if family in _TEXTS or (family is Family.OTHER and {*field.types} <= _TEXT_TYPES):
        return text
    if text.lstrip()[:1] in ("[", "{"):
        try:
            json = bytes(decode(text, Raw))
        except ValueError:
            json = b""
        if json[:1] == b"[" or (json and family in _OBJECTS):
            return Raw(json)
    match family:
        case Family.NUMBER:
            exact = clauses.typed(field, text)
            return _raw(text.strip()) if _JSON_NUMBER.fullmatch(text.strip()) else exact
        case Family.BOOLEAN:
            return text if not text else clauses.typed(field, text)
        case Family.IP:
            ipaddress.ip_address(text)
        case Family.DATE if field.formats_known:
            return dates.respelled(text, field.formats)
    return text


def _is_sloppy(field: Field) -> bool:
    """Return whether the index stores values that it cannot index."""
    return any(gap.name == "ignore_malformed" for gap in field.gaps)


def _raw(digits: str) -> Raw:
    return Raw(digits.encode())


def sendable(value: object) -> object:
    """Return a value that JSON can hold. Raises ValueError for another one."""
    try:
        encode(value)
    except (TypeError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError(f"it cannot be sent as JSON: {error}") from None
    if (number := _no_number(value)) is not None:
        raise ValueError(f"{number} is not a value of a document")
    return value


def _no_number(value: object) -> float | Decimal | None:
    """Return a number in a value that JSON lacks; an encoder writes null for it."""
    match value:
        case float() | Decimal():
            return None if isfinite(value) else value
        case list() | tuple():
            return next((number for item in value if (number := _no_number(item)) is not None), None)
        case dict():
            return _no_number([*value.values()])
    return None


def _check(field: Field, value: object) -> None:
    """Refuse a value that no document of the index can hold there; an object that is not indexed may be anything."""
    if value is None:
        return
    family = field.family
    if family is Family.DATE and field.formats_known and not _is_sloppy(field):
        dates.check([*map(_text_or_digits, _items(value) or [value])], field.formats)
    if opens(value, b"["):
        if family is Family.NESTED and not all(map(_is_object, _items(value))):
            raise ValueError("a nested array takes a JSON array of objects")
        return
    if opens(value, b"{"):
        if family not in _OBJECTS and not _is_sloppy(field):
            raise ValueError("it does not take a JSON object")
        return
    if family is Family.NESTED:
        raise ValueError("a nested array takes a JSON array of objects")
    if family is Family.FLATTENED:
        raise ValueError("it takes a JSON object")
    if isinstance(value, str | Raw):  # as it was typed, or as JSON spells it
        return
    if family in (Family.NUMBER, Family.BOOLEAN):
        if not isinstance(value, bool) or family is Family.NUMBER:
            clauses.typed(field, value)
    elif family is Family.IP:
        ipaddress.ip_address(str(value))


def _items(value: object) -> list[object]:
    """Return the elements of an array; none for another value."""
    if isinstance(value, Raw):
        return [*_array.decode(value)] if opens(value, b"[") else []
    return [*value] if isinstance(value, list | tuple) else []


def _is_object(item: object) -> bool:
    """Return whether an element of a nested array is an object, null or a further array, which the server flattens."""
    if opens(item, b"["):
        return all(map(_is_object, _items(item)))
    return item is None or opens(item, b"{", b"n")


def _text_or_digits(item: object) -> object:
    """Return an element as dates are checked: a text without quotes."""
    if opens(item, b'"'):
        return decode(bytes(item), str)  # type: ignore[call-overload]  # it is Raw
    return None if opens(item, b"n") else {} if opens(item, b"{") else item


def spelled(document: bytes, field: Field) -> tuple[str, ...]:
    """Return how a document spells the path to a column: `{"a.b":1}` and `{"a":{"b":1}}` are both legal.

    An edit in the other form would add a second key beside the first, and both would be indexed.

    Raises:
        ValueError: The path leads through an array, which the edit would replace.
    """
    return _spelled(document, field.name.split("."), field.keys)


def _spelled(document: bytes, parts: Sequence[str], mapped: tuple[str, ...]) -> tuple[str, ...]:
    """Spell the rest of a path in one object; `mapped` is how the mapping spells it."""
    keys = _object.decode(document)
    for end in range(len(parts), 0, -1):
        literal = ".".join(parts[:end])
        if literal not in keys:
            continue
        if end == len(parts):
            return (literal,)
        inner, mine = bytes(keys[literal]), mapped[0] == literal
        if inner[:1] == b"[" and (mine or b"{" in inner):
            raise ValueError(f"'{literal}' is an array in this document, and the edit would replace it")
        if inner[:1] == b"{":
            return (literal, *_spelled(inner, parts[end:], mapped[1:] if mine else tuple(parts[end:])))
        if mine:
            return mapped
        # Without subobjects, `cpu` and `cpu.max` are two fields side by side.
    return mapped


def tree(ways: Mapping[tuple[str, ...], object]) -> Tree:
    """Build nested objects that hold values at their paths.

    Raises:
        ValueError: One path is a part of another.
    """
    root: Tree = {}
    for way, value in ways.items():
        if any(way[:end] in ways for end in range(1, len(way))):
            raise ValueError(f"'{way[-1]}' is changed as a whole and in part")
        at = root
        for key in way[:-1]:
            at = at.setdefault(key, {})
        at[way[-1]] = value
    return root


def replaced(document: bytes, way: Sequence[str], value: object) -> bytes:
    """Return a document with one value replaced; all others keep their bytes and their order."""
    keys = _object.decode(document) if document[:1] == b"{" else {}
    inner = replaced(bytes(keys.get(way[0], b"")), way[1:], value) if way[1:] else encode(value).encode()
    keys[way[0]] = Raw(inner)
    return msgspec.json.encode(keys)


def whole(text: str) -> bytes:
    """Return the bytes of a document that is written unchanged.

    Raises:
        ValueError: It is not a JSON object.
    """
    try:
        decode(text, _object)
    except ValueError as error:
        raise ValueError(f"the document is not a JSON object: {error}") from None
    return text.encode()


def respelled(text: bytes) -> str:
    """Return the first number of a JSON text that the server would write with other digits; empty for none.

    `_update` decodes the document and writes every number anew (seen on 7.10 to 8.19).
    """
    numbers = (match[1].decode() for match in _NUMBERS.finditer(text) if match[1])
    return next((number for number in numbers if not _keeps_digits(number)), "")


def _keeps_digits(number: str) -> bool:
    if not _FRACTION.search(number):
        return number != "-0"
    value = float(number)
    if value == 0 or _PLAIN[0] <= abs(value) < _PLAIN[1]:
        return repr(value) == number
    # As Java writes it: 1.5E10. Before Java 19 large numbers may have more digits; subnormal ones have others.
    if not sys.float_info.min <= abs(value) < 2**53:
        return False
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{len(rest) + int(exponent)}" == number
