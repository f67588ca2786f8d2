"""Edited values: typed by property; unknown nested keys are refused, since the server would create them."""

from __future__ import annotations

import base64
import binascii
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api.cells import Json, is_cut
from dragoman_api.json_text import decode, decode_once, encode, exact_number
from dragoman_api.kit import operands
from dragoman_weaviate.columns import field_types
from dragoman_weaviate.columns.field_types import Family, family_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_weaviate.columns.field_types import PropertyBase

_exact = msgspec.json.Decoder(float_hook=exact_number)
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG = b"0" * 16  # no number of fewer digits is rounded
_misfit = ValueError  # a wrong type is a fault of the value, too
_WANTED = (
    dict.fromkeys((Family.TEXT, Family.DATE, Family.UUID, Family.BLOB), "a text")
    | dict.fromkeys((Family.INT, Family.NUMBER), "a number")
    | {Family.BOOLEAN: "a boolean"}
)
_STRUCTURED = (Family.OBJECT, Family.GEO, Family.PHONE)
_NAMED, _NAME = 5, 100  # names of vectors in a message, and their characters
_PHONE_TYPED = ("input", "defaultCountry")
_PHONE_COMPUTED = ("internationalFormatted", "nationalFormatted", "national", "valid", "countryCode")


def edited(spec: PropertyBase, value: object, *, exact: bool = False) -> Any:
    """Convert an edited value to the value that is stored, see `Values`; None deletes the property.

    The server stores no value of another kind than the property's, so one is refused.

    Args:
        spec: The property, or a key of an object.
        value: A text, a number, a list or an object; arrays and objects may come as JSON text.
        exact: A text is one, and not what a person typed.

    Raises:
        ValueError: The value does not fit; the message says why.
    """
    if is_cut(value):
        raise _misfit("the value is only the beginning of a long one; fetch the whole cell and edit that")
    family, array = family_of(spec.data_type)
    typed = isinstance(value, str) and not isinstance(value, Json) and not exact
    if isinstance(value, Json) or (typed and (array or family in _STRUCTURED)):
        value = _parsed(str(value))
    if value is None:
        return None
    if isinstance(value, bytes) and family is not Family.BLOB:
        raise _misfit("it takes no bytes")
    if not array:
        return _element(spec, family, value, typed=typed)
    if not isinstance(value, list | tuple):
        raise _misfit(f"a property of type {spec.data_type[0]} takes a JSON array")
    if any(element is None for element in value):
        raise ValueError("the server stores no null in an array")
    return [_element(spec, family, element, typed=False) for element in value]


def vectors(value: object, names: Sequence[str]) -> dict[str, Raw]:
    """Return the members of an object that hold its vectors; their numbers keep their digits.

    Args:
        value: A JSON array of numbers; where vectors have names, a JSON object of such arrays.
        names: The names of the collection's vectors; empty if it has a single one without a name.

    Raises:
        ValueError: The value does not fit; the message says why.
    """
    if is_cut(value):
        raise _misfit("the value is only the beginning of a long one; fetch the whole cell")
    text = str(value) if isinstance(value, str) else encode(value)
    try:
        if not names:
            decode(text, list[float])
            return {"vector": Raw(text.encode())}
        vectors_by_name = decode_once(text, dict[str, list[float | list[float]]])
    except ValueError as error:
        if text.lstrip()[:1] == ("[" if names else "{"):
            raise _misfit(misplaced(names, Raw(text.encode()))) from None
        form = f"a JSON object of arrays of numbers, by {', '.join(names)}" if names else "a JSON array of numbers"
        raise _misfit(f"it takes {form}: {error}") from None
    if unknown := [name for name in vectors_by_name if name not in names]:
        raise ValueError(f"the collection has no vector {unknown[0]!r}; it has {', '.join(names)}")
    return {"vectors": Raw(text.encode())}


def misplaced(names: Sequence[str], value: Raw) -> str:
    """Say why a vector without a name has no place among named ones, or the reverse."""
    if names:
        return f"it takes a JSON object of arrays of numbers, by {_listed(names)}: the value is a vector without a name"
    try:
        value_names = _listed([*decode(bytes(value), dict[str, Raw])])
    except ValueError:
        value_names = "an object"
    return f"it takes a JSON array of numbers: the value has vectors by name ({value_names})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:_NAME] for name in names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def merged_vectors(before: Raw, edits: Raw) -> Raw:
    """Return the vectors by name that an object has after some of them are written."""
    stored = decode(bytes(before), dict[str, Raw]) if bytes(before)[:1] == b"{" else {}
    return Raw(encode(stored | decode(bytes(edits), dict[str, Raw])).encode())


def large_integers(value: Any) -> bool:
    """Return whether a value holds an integer that the server will round."""
    if isinstance(value, dict):
        return any(map(large_integers, value.values()))
    if isinstance(value, list):
        return any(map(large_integers, value))
    return isinstance(value, int) and abs(value) > field_types.EXACT


def rounded(entry: Any, stored: Any) -> tuple[object, float] | None:
    """Return the first number that has more digits than the stored 64-bit float holds, and that float; None for none.

    Args:
        entry: The value as it was entered; arrays and objects may be JSON text.
        stored: The value that is stored for it.
    """
    if isinstance(stored, float):
        exact = isinstance(entry, float) or Decimal(str(entry).strip()) == Decimal(repr(stored))
        return None if exact else (entry, stored)
    if not isinstance(stored, list | dict):
        return None
    if isinstance(entry, str):
        entry = _parsed(str(entry)) if _has_long_number(entry.encode()) else stored
    if isinstance(stored, list):
        pairs = [*zip(entry, stored, strict=True)]
    else:
        pairs = [(entry.get(name, value), value) for name, value in stored.items()]
    return next(filter(None, (rounded(*pair) for pair in pairs)), None)


def _has_long_number(text: bytes) -> bool:
    """Return whether a JSON text may hold a number that is rounded; it is much faster than reading all numbers."""
    return _LONG in text.translate(_DIGITS, b".")


def exact_document(document: bytes) -> dict[str, Any]:
    """Return the properties of a document with all digits if it may hold a number that is rounded, else nothing."""
    return decode(document, _exact) if _has_long_number(document) else {}


def unknown_keys(value: object, properties: Sequence[PropertyBase], before: str = "") -> list[str]:
    """Return the keys of an object that are not in the schema: the server would create them as properties."""
    if isinstance(value, list):
        return [name for element in value for name in unknown_keys(element, properties, before)]
    if not isinstance(value, dict):
        return []
    specs = {spec.name: spec for spec in properties}
    if value.keys() <= specs.keys() and not any(isinstance(member, dict | list) for member in value.values()):
        return []
    unknown = []
    for name, member in value.items():
        if name not in specs:
            unknown.append(before + str(name))
        elif family_of(specs[name].data_type)[0] is Family.OBJECT:
            unknown += unknown_keys(member, specs[name].nested, f"{before}{name}.")
    return unknown


def _kind(value: object) -> str:
    match value:
        case str() | bytes():
            return "a text"
        case bool():
            return "a boolean"
        case dict():
            return "an object"
        case list() | tuple():
            return "an array"
    return "a number"


def _parsed(text: str) -> object:
    try:
        return decode_once(text, _exact)
    except ValueError as error:
        raise ValueError(f"it takes JSON, and {text[:80]!r} is not JSON: {error}") from None


def _element(spec: PropertyBase, family: Family, value: object, *, typed: bool) -> Any:
    """Return one value as it is stored.

    Args:
        spec: The property.
        family: Its family.
        value: The value.
        typed: It is a text that a person typed; any other value keeps its kind.
    """
    kind = _WANTED.get(family)
    if kind and not typed and _kind(value) != kind:
        raise _misfit(f"a property of type {spec.data_type[0]} takes {kind}, not {_kind(value)}")
    match family:
        case Family.INT:
            return operands.integer(value)
        case Family.NUMBER:
            return operands.floating(value)
        case Family.BOOLEAN:
            return operands.boolean(value, digits=True)
        case Family.DATE:
            return operands.timestamp(value)
        case Family.UUID:
            return operands.uuid(value)
        case Family.BLOB:
            return _blob(value)
        case Family.GEO:
            return _coordinates(value)
        case Family.PHONE:
            return _phone(value)
        case Family.OBJECT:
            return _object(spec, value)
    if isinstance(value, (dict, list)):
        raise _misfit("it takes a text")
    return operands.text(value)


def _blob(value: object) -> str:
    text = base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
    try:
        if text and base64.b64decode(text, validate=True):
            return text
    except (binascii.Error, ValueError):
        pass
    raise ValueError("it takes base64")


def _coordinates(value: object) -> dict[str, float]:
    if not isinstance(value, dict) or set(value) != {"latitude", "longitude"}:
        raise ValueError('it takes {"latitude": …, "longitude": …}')
    if any(_kind(coordinate) != "a number" for coordinate in value.values()):
        raise ValueError("latitude and longitude are numbers")
    return {name: operands.floating(coordinate) for name, coordinate in value.items()}


def _phone(value: object) -> dict[str, str]:
    members = {*_PHONE_TYPED, *_PHONE_COMPUTED}
    texts = isinstance(value, dict) and all(isinstance(value.get(name), str | None) for name in _PHONE_TYPED)
    if not isinstance(value, dict) or not texts or "input" not in value or not set(value) <= members:
        raise ValueError('it takes {"input": "020 1234567", "defaultCountry": "nl"}; the server computes the rest')
    return {name: operands.text(value[name]) for name in _PHONE_TYPED if value.get(name)}


def _object(spec: PropertyBase, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _misfit("it takes a JSON object")
    if unknown := unknown_keys(value, spec.nested):
        raise ValueError(f"the schema has no key {', '.join(unknown)}, and the server would make it")
    specs = {nested.name: nested for nested in spec.nested}
    return {name: edited(specs[name], member, exact=True) for name, member in value.items() if member is not None}
