"""Bodies of requests in which one part is extreme, for every request that a struct describes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec.inspect import (
    BoolType,
    DateTimeType,
    DictType,
    EnumType,
    ListType,
    LiteralType,
    NoneType,
    StrType,
    StructType,
    UnionType,
    VarTupleType,
    type_info,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import msgspec
    from msgspec.inspect import Type

EXTREMES = [
    b"null", b"true", b"0", b"-1", b"1e400", b"-0.0", b"9" * 30, b"9" * 6_000, b'""', rb'"\u0000"', rb'"\ud800"',
    b'"' + b"a" * 70_000 + b'"', b'"*"', b'"../x"', b"[]", b"{}", b"[" * 5_000, b'[null,["a",{}]]', b'"-1h"',
    b'"now-999999999w"', b'"0001-01-01T00:00:00+14:00"', b'"0001-01-01T00:00:00Z"', b'"9999-12-31T23:59:59-14:00"',
    b'"9999-12-31T23:59:59.999999Z"', b'"2026-01-01T00:00:00"',
]  # fmt: skip
"""JSON texts that stand in place of every part."""
Way = tuple[str | int, ...]


def extreme_bodies(kind: type[msgspec.Struct], /, **usual: object) -> Iterator[bytes]:
    """Return bodies for a request: the first has all parts, and in each other one, a part of it is extreme.

    Args:
        kind: The request.
        usual: Usual values of parts at any depth, by name.
    """
    body = _usual(type_info(kind), usual)
    yield _encode(body)
    for way in _ways(body):
        for extreme in EXTREMES:
            yield _encode(_with(body, way, extreme))


def _usual(kind: Type, usual: dict[str, Any], name: str = "") -> Any:
    if name in usual:
        return usual[name]
    match kind:
        case StructType():
            tag = {kind.tag_field: kind.tag} if kind.tag_field else {}
            return tag | {field.encode_name: _usual(field.type, usual, field.encode_name) for field in kind.fields}
        case UnionType():
            return _usual(kind.types[0], usual)
        case ListType() | VarTupleType():
            return [_usual(kind.item_type, usual)]
        case DictType():
            return {"a": _usual(kind.value_type, usual)}
        case LiteralType():
            return kind.values[0]
        case EnumType():
            return next(iter(kind.cls)).value
        case NoneType():
            return None
        case BoolType():
            return False
        case DateTimeType():
            return "2026-01-01T00:00:00Z"
        case StrType():
            return "a" * max(1, kind.min_length or 0)
    return getattr(kind, "ge", None) or 1


def _ways(body: Any, way: Way = ()) -> Iterator[Way]:
    if way:
        yield way
    for key, part in body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ():
        yield from _ways(part, (*way, key))


def _with(body: Any, way: Way, extreme: bytes) -> Any:
    if not way:
        return extreme
    key, *others = way
    changed = body.copy()
    changed[key] = _with(body[key], tuple(others), extreme)
    return changed


def _encode(body: Any) -> bytes:
    match body:
        case bytes():
            return body
        case dict():
            return b"{%s}" % b",".join(b"%s:%s" % (_encode(key), _encode(part)) for key, part in body.items())
        case list():
            return b"[%s]" % b",".join(map(_encode, body))
    return json.dumps(body).encode()
