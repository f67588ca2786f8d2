"""Edited values and where they belong in a document: typed by column, spelled as the document spells its keys."""

from __future__ import annotations

import ipaddress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import Json
from dragoman_api.exchanges import encode

from . import literals
from .documents import number, parse
from .fields import Family

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .fields import Field

Tree = dict[str, Any]

_OBJECTS = (Family.OBJECT, Family.NESTED, Family.FLATTENED, Family.RANGE, Family.GEO, Family.OTHER)
_object = msgspec.json.Decoder(dict[str, Raw])


def edited(field: Field, value: object) -> object:
    """Turn an edit into what is stored.

    A text that is a JSON array becomes one in any column; one that is a JSON object only in a column that holds
    objects. The fragment that a cut cell shows is no JSON: given as a plain text, it is stored as one (E23).

    Raises:
        ValueError: The value does not fit the column; the text says why.
    """
    if isinstance(value, Json):
        value = _parsed(str(value), objects=True)  # whatever it is, a text included, it is meant so
    elif isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        value = _parsed(value, objects=field.family in _OBJECTS)
    if value is None:
        return None
    if field.family is Family.NESTED:
        value = [value] if isinstance(value, dict) else value  # a bare object would be merged, an array replaces
        if isinstance(value, list) and all(isinstance(each, dict) or each is None for each in value):
            return _sendable(value)
        raise ValueError("a nested array takes a JSON array of objects")
    if isinstance(value, list) or (isinstance(value, dict) and field.family in _OBJECTS):
        return _sendable(value)
    if field.family in (Family.OBJECT, Family.FLATTENED) or isinstance(value, dict):
        raise ValueError("it takes a JSON object" if not isinstance(value, dict) else "it takes no JSON object")
    return _scalar(field, value)


def _parsed(text: str, *, objects: bool) -> object:
    try:
        value = parse(text)
    except (msgspec.DecodeError, UnicodeError):
        return text
    return value if objects or isinstance(value, list) else text


def _sendable(value: object) -> object:
    try:
        encode(value)
    except (TypeError, UnicodeEncodeError) as error:
        raise ValueError(f"it cannot be sent as JSON: {error}") from None
    return value


def _scalar(field: Field, value: object) -> object:
    if field.family in (Family.NUMBER, Family.BOOLEAN):
        return literals.typed(field, value)
    if field.family is Family.IP:
        return str(ipaddress.ip_address(str(value)))
    if field.family in (Family.KEYWORD, Family.TEXT, Family.KEYED) and not isinstance(value, str):
        return encode(value).strip('"') if isinstance(value, (bool, int, float, Decimal)) else _sendable(value)
    return _sendable(value)


def spelled(document: bytes, field: Field) -> tuple[str, ...]:
    """Tell how a document spells the way to a column: `{"a.b":1}` and `{"a":{"b":1}}` are both legal.

    An edit in the other form would add a second key beside the first, and both would be indexed.

    Raises:
        ValueError: The way leads through an array, which the edit would replace.
    """
    way = _spelled(document, field.name.split("."))
    return way or field.keys


def _spelled(document: bytes, parts: Sequence[str]) -> tuple[str, ...] | None:
    keys = _object.decode(document)
    for end in range(len(parts), 0, -1):
        literal = ".".join(parts[:end])
        if literal not in keys:
            continue
        if end == len(parts):
            return (literal,)
        inner = bytes(keys[literal])
        if inner[:1] == b"[":
            raise ValueError(f"'{literal}' is an array in this document, and the edit would replace it")
        below = _spelled(inner, parts[end:]) if inner[:1] == b"{" else None
        return (literal, *(below or parts[end:]))
    return None


def tree(ways: Mapping[tuple[str, ...], object]) -> Tree:
    """Make the tree of objects that holds values at their ways.

    Raises:
        ValueError: One value stands in the way of another.
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
    """Write a document with one value replaced; all others keep their bytes and their order."""
    keys = _object.decode(document) if document[:1] == b"{" else {}
    inner = replaced(bytes(keys.get(way[0], b"")), way[1:], value) if way[1:] else encode(value).encode()
    keys[way[0]] = Raw(inner)
    return msgspec.json.encode(keys)


def whole(text: str) -> bytes:
    """Give the bytes of a document that is written as it stands.

    Raises:
        ValueError: It is no JSON object.
    """
    try:
        _object.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ValueError(f"the document is no JSON object: {error}") from None
    return text.encode()


def rewritten(document: bytes) -> str:
    """Give the first number whose digits the server changes when it writes the document anew; empty for none."""
    found: list[str] = []

    def look(text: str) -> float:
        if isinstance(number(text), Decimal):
            found.append(text)
        return 0.0

    msgspec.json.Decoder(float_hook=look).decode(document)
    return found[0] if found else ""
