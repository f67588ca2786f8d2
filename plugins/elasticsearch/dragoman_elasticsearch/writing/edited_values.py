"""Edited values: typed by column, and put where they belong in the document."""

from __future__ import annotations

import ipaddress
import json
import re
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import Json
from dragoman_api.json_text import decode, encode
from dragoman_elasticsearch.columns import dates
from dragoman_elasticsearch.columns.field_types import Family
from dragoman_elasticsearch.grid import filter_values
from dragoman_elasticsearch.grid.cells import parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman_elasticsearch.columns.field_types import Field

Tree = dict[str, Any]

_OBJECTS = (Family.OBJECT, Family.NESTED, Family.FLATTENED, Family.RANGE, Family.POINT, Family.GEO, Family.OTHER)
_NUMBERS = re.compile(rb'(?:[^"0-9-]++|"(?:[^"\\]++|\\.)*+")++|(-?[0-9][0-9.eE+-]*+)')
_FRACTION = re.compile(r"[.eE]")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PLAIN = 1e-3, 1e7  # the server writes floats outside of it with an exponent
_object = msgspec.json.Decoder(dict[str, Raw])


def edited(field: Field, value: object) -> object:
    """Convert an edited value to the value that is stored.

    A text that is a JSON array becomes one in any column; one that is a JSON object only in a column that holds
    objects. The fragment that a cut cell shows is no JSON: given as a plain text, it is stored as one (E23).

    Raises:
        ValueError: The value does not fit the column; the message says why.
    """
    if isinstance(value, Json):
        value = _parsed(str(value), objects=True)  # JSON is taken literally, even a string
    elif isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        value = _parsed(value, objects=field.family in _OBJECTS)
    if value is None:
        return None
    if field.family is Family.NESTED:
        value = [value] if isinstance(value, dict) else value  # a bare object would be merged, an array replaces
        if isinstance(value, list) and all(isinstance(each, dict) or each is None for each in value):
            return _sendable(value)
        raise ValueError("a nested array takes a JSON array of objects")
    if field.family is Family.DATE and all(gap.name not in ("ignore_malformed", "hidden") for gap in field.gaps):
        dates.check(value, field.formats)
    if isinstance(value, list) or (isinstance(value, dict) and field.family in _OBJECTS):
        return _sendable(value)
    if field.family in (Family.OBJECT, Family.FLATTENED) or isinstance(value, dict):
        raise ValueError("it takes a JSON object" if not isinstance(value, dict) else "it does not take a JSON object")
    return _scalar(field, value)


def _parsed(text: str, *, objects: bool) -> object:
    try:
        value = parse(text)
        if "-0" in text:  # msgspec reads it as 0
            value = json.loads(
                text, parse_float=_raw, parse_int=lambda digits: _raw(digits) if digits == "-0" else int(digits)
            )
    except (ValueError, RecursionError):
        return text
    return value if objects or isinstance(value, list) else text


def _raw(digits: str) -> Raw:
    return Raw(digits.encode())


def _sendable(value: object) -> object:
    try:
        encode(value)
    except (TypeError, UnicodeEncodeError) as error:
        raise ValueError(f"it cannot be sent as JSON: {error}") from None
    return value


def _scalar(field: Field, value: object) -> object:
    if isinstance(value, bytes) and field.family is not Family.BINARY:
        raise ValueError("it takes no bytes")
    if field.family is Family.BOOLEAN:
        return filter_values.typed(field, value)
    if field.family is Family.NUMBER:
        value = bytes(value).decode() if isinstance(value, Raw) else value
        return _number(value, filter_values.typed(field, value))
    if field.family is Family.IP:
        ipaddress.ip_address(str(value))
        return str(value)
    if field.family in (Family.KEYWORD, Family.TEXT, Family.KEYED, Family.VERSION) and not isinstance(value, str):
        return encode(value).strip('"') if isinstance(value, (bool, int, float, Decimal, Raw)) else _sendable(value)
    return _sendable(value)


def _number(value: object, checked: object) -> object:
    """Return a number in the digits that were given, if that is JSON."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    return _raw(text) if _JSON_NUMBER.fullmatch(text) else checked


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
    made: Tree = {}
    for way, value in ways.items():
        if any(way[:end] in ways for end in range(1, len(way))):
            raise ValueError(f"'{way[-1]}' is changed as a whole and in part")
        at = made
        for key in way[:-1]:
            at = at.setdefault(key, {})
        at[way[-1]] = value
    return made


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
    numbers = (found[1].decode() for found in _NUMBERS.finditer(text) if found[1])
    return next((number for number in numbers if not _kept(number)), "")


def _kept(number: str) -> bool:
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
