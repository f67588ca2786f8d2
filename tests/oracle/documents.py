"""Stored documents as Python values, every number with its digits."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from dragoman_api import cells

MISSING: Any = cells.MISSING


class Digits(str):
    """The text of a JSON number."""

    __slots__ = ()


def parsed(text: str | bytes) -> Any:
    """Read JSON; a number is the text it is written as."""
    return json.loads(text, parse_float=Digits, parse_int=Digits)


def written(value: Any) -> str:
    """Write what `parsed` gave, digits as they were."""
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def same(cell: Any, value: Any) -> bool:
    """Tell whether a cell shows a stored value: type, digits, order of keys."""
    if isinstance(value, (dict, list)):
        return isinstance(cell, str) and alike(parsed(cell), value)
    if isinstance(value, Digits):
        if isinstance(cell, bool) or not isinstance(cell, (int, float, Decimal)):
            return False
        if isinstance(cell, Decimal):
            return cell.as_tuple() == Decimal(value).as_tuple()
        return (repr(cell) if isinstance(cell, float) else str(cell)) == value
    return type(cell) is type(value) and bool(cell == value)


def alike(one: Any, other: Any) -> bool:
    """Compare parsed documents: types, digits and the order of keys."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [*one] == [*other] and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return type(one) is type(other) and bool(one == other)


def at(document: Any, path: str, arrays: frozenset[str] = frozenset(), before: str = "") -> Any:
    """Return what a document holds at a dotted path; MISSING for nothing.

    Behind an array there is one entry per element, None where it has no value. A bare object where `arrays` names a
    nested array is an array of one.
    """
    if isinstance(document, list):
        found = [at(each, path, arrays, before) for each in document]
        return [None if each is MISSING else each for each in found]
    if not isinstance(document, dict):
        return MISSING
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        key, rest = ".".join(parts[:end]), ".".join(parts[end:])
        if key not in document:
            continue
        if not rest:
            return document[key]
        inner, name = document[key], before + key
        if name in arrays and isinstance(inner, dict):
            inner = [inner]
        if (found := at(inner, rest, arrays, f"{name}.")) is not MISSING:
            return found
    return MISSING


def flat(value: Any) -> list[Any]:
    """Return the scalars of a value, nulls too."""
    if value is MISSING:
        return []
    return [inner for each in value for inner in flat(each)] if isinstance(value, list) else [value]


def valued(value: Any) -> Any:
    """Return a number's sign, digits and exponent, however it writes them; anything else as it is."""
    return Decimal(value).as_tuple() if isinstance(value, Digits) else value


def kept(now: Any, before: Any, rewritten: bool) -> bool:
    """Return whether a value that was not changed is as it was; numbers may be respelled where that was said."""
    if alike(now, before) or not rewritten:
        return alike(now, before)
    if isinstance(now, list) and isinstance(before, list):
        return len(now) == len(before) and all(kept(one, other, True) for one, other in zip(now, before, strict=True))
    if isinstance(now, dict) and isinstance(before, dict):
        return [*now] == [*before] and all(kept(now[key], before[key], True) for key in now)
    return isinstance(now, Digits) and isinstance(before, Digits) and float(now) == float(before)
