"""JSON as the server reads and writes it: strict on keys, lenient on comments, Java's idea of a float."""

from __future__ import annotations

import json
import math
import re
from codecs import BOM_UTF8
from typing import Any

from dragoman_sample.fakes.elasticsearch.errors import ServerError

_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


class Spelled(float):
    """A number with decimals or an exponent, as it is written: a string field indexes the text."""

    digits: str

    def __new__(cls, digits: str) -> Spelled:
        """Read the number."""
        instance = super().__new__(cls, digits)
        instance.digits = digits
        return instance

    def __str__(self) -> str:
        return self.digits


class _DuplicateKeyError(ValueError):
    pass


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _DuplicateKeyError(f"Duplicate field '{key}'")
    return members


def _constant(name: str) -> Any:
    raise ValueError(f"Non-standard token '{name}'")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=Spelled)


def decode(raw: bytes) -> Any:
    """Parse one JSON value; `//` and `/* */` comments and a byte order mark are let through, as the server does.

    Raises:
        ServerError: for anything else that is not JSON, duplicate keys included.
    """
    try:
        text = raw.removeprefix(BOM_UTF8).decode()
        try:
            return _DECODER.decode(text)
        except _DuplicateKeyError:
            raise
        except ValueError:
            bare = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", text)
            return _DECODER.decode(bare)
    except (ValueError, RecursionError) as fault:
        ended = isinstance(fault, json.JSONDecodeError) and fault.pos >= len(fault.doc.rstrip())
        kind = "json_e_o_f_exception" if ended else "json_parse_exception"
        reason = f"Unexpected end-of-input: {fault}" if ended else str(fault)
        raise ServerError(kind, reason) from None


def java_float(value: float) -> str:
    """Write a float as Java's Double.toString does; infinities become strings, as in the server's builder."""
    if math.isinf(value) or math.isnan(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else format(value, "f")
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits = len(mantissa.lstrip("-").partition(".")[0])
        if abs(value) >= 1:
            mantissa = repr(float(f"{mantissa}e-{digits - 1}"))
            return f"{mantissa}E{digits - 1}"
        shift = -math.floor(math.log10(abs(value)))
        return f"{float(f'{mantissa}e{shift}')!r}E-{shift}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


_string = json.encoder.encode_basestring


def encode(value: Any) -> str:
    """Write a value compactly, floats in Java's notation."""
    # Exact types first: a page of ten thousand hits comes through here.
    kind = type(value)
    if kind is str:
        return _string(value)
    if kind is Raw:
        text: str = value.text
        return text
    if kind is dict:
        return "{" + ",".join([f"{_string(str(key))}:{encode(member)}" for key, member in value.items()]) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join([encode(member) for member in value]) + "]"
    if kind is int:
        return repr(value)
    if value is None or kind is bool:
        return "null" if value is None else "true" if value else "false"
    return java_float(value) if isinstance(value, float) else json.dumps(value)


def pretty(value: Any, depth: int = 0) -> str:
    """Write a value as the server does for `?pretty`: two spaces, and a space before the colon."""
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict) and value:
        members = (f"{inner}{_string(str(key))} : {pretty(member, depth + 1)}" for key, member in value.items())
        return "{\n" + ",\n".join(members) + f"\n{outer}}}"
    if isinstance(value, list | tuple) and value:
        return "[\n" + ",\n".join(inner + pretty(member, depth + 1) for member in value) + f"\n{outer}]"
    if isinstance(value, dict | list | tuple):
        return "{ }" if isinstance(value, dict) else "[ ]"
    return encode(value)


class Raw:
    """Bytes that go into an answer as they are: a stored `_source`."""

    __slots__ = ("text",)

    def __init__(self, raw: bytes) -> None:
        # surrogateescape would hide stored bytes that are not UTF-8; the server never stores such.
        self.text = raw.decode("utf-8")

    def parsed(self) -> Any:
        """Return the value, as a re-serialising answer needs it."""
        return decode(self.text.encode())


def parsed(value: Any) -> Any:
    """Replace every raw part by its parsed value."""
    if isinstance(value, Raw):
        return value.parsed()
    if isinstance(value, dict):
        return {key: parsed(member) for key, member in value.items()}
    if isinstance(value, list):
        return [parsed(member) for member in value]
    return value


def pick(value: Any, includes: list[str], excludes: list[str]) -> Any:
    """Keep the members whose dotted paths match, as `_source` filters and `filter_path` do.

    `*` matches one name or a part of it, `**` any number of names; a matched object keeps all its members
    (for `_source` filters call with patterns that say so).
    """
    picked = _pick(
        value, (), [_compiled(text) for text in includes], [_compiled(text) for text in excludes], inside=not includes
    )
    return {} if picked is _NOTHING and isinstance(value, dict) else picked


_NOTHING = object()
_Pattern = list[re.Pattern[str] | None]


def _compiled(pattern: str) -> _Pattern:
    # None stands for `**`.
    return [
        None if name == "**" else re.compile(".*".join(map(re.escape, name.split("*"))) + r"\Z", re.DOTALL)
        for name in pattern.split(".")
    ]


def _match(pattern: _Pattern, path: tuple[str, ...]) -> str:
    """Return `full`, `part` (the path may still lead to a match) or an empty string."""
    if not path:
        return "full" if all(name is None for name in pattern) else "part"
    if not pattern:
        return "full"
    if pattern[0] is None:
        return max(_match(pattern[1:], path), _match(pattern, path[1:]), key=["", "part", "full"].index)
    return _match(pattern[1:], path[1:]) if pattern[0].match(path[0]) else ""


def _pick(value: Any, path: tuple[str, ...], inc: list[_Pattern], exc: list[_Pattern], *, inside: bool) -> Any:
    if path:
        if any(_match(pattern, path) == "full" for pattern in exc):
            return _NOTHING
        if not inside:
            matches = {_match(pattern, path) for pattern in inc}
            inside = "full" in matches
            if matches <= {""}:
                return _NOTHING
    if isinstance(value, list):
        picked = (_pick(member, path, inc, exc, inside=inside) for member in value)
        items = [item for item in picked if item is not _NOTHING]
        return items if items or inside else _NOTHING
    if isinstance(value, dict):
        members = {}
        for key, member in value.items():
            # A key that holds dots is matched as if it were a path.
            item = _pick(member, (*path, *key.split(".")), inc, exc, inside=inside)
            if item is not _NOTHING:
                members[key] = item
        return members if members or inside else _NOTHING
    return value if inside else _NOTHING
