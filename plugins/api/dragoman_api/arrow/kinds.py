"""What one value is: its Arrow type, what a compiled decoder makes of its JSON, and which values fit.

A value goes through up to three steps. The decoder turns JSON into a value of `decoded`; `mend` returns the value in
the form that `build` takes, or raises ValueError if it does not fit; `build` makes an array of many such values at
once. `build` also raises if a value does not fit, so that a whole block needs no `mend` as long as everything fits.
"""

from __future__ import annotations

import base64
import re
import struct
from datetime import date
from decimal import Decimal
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ANY = b'"-0123456789[{tfn'
_TEXT, _DIGIT = b'"n', b"-0123456789n"
_DIGITS = 400
"""A number of more characters is not compared as a Decimal."""

_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?)(Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?", re.ASCII)
_INSTANT = pa.timestamp("ns", tz="UTC")
_DECIMAL = pa.decimal128(38, 18)
_NULL_TEXT = b"null"
_NULL = Raw(_NULL_TEXT)
_BLANKS = b" \t\r\n"
_SAFE, _LEAST, _MOST = 15, 2.3e-308, 1.7e308
"""A float holds all digits of a number of at most so many characters and between these: others are compared."""


class ArrowKind(NamedTuple):
    """One kind of values.

    Attributes:
        type: The Arrow type.
        decoded: What the decoder makes of a value. A number that a float may round stays JSON text.
        build: Makes an array of mended values, or of decoded ones that need no mending; None is null. Raises
            ValueError, TypeError, ArithmeticError or a pyarrow error.
        mend: Returns a decoded value as `build` takes it. Raises ValueError, TypeError or ArithmeticError.
        begins: The bytes that JSON texts of such values begin with; others need no decoder to be refused.
    """

    type: pa.DataType
    decoded: Any
    build: Callable[[Sequence[Any]], pa.Array]
    mend: Callable[[Any], Any]
    begins: bytes


_items = msgspec.json.Decoder(list[Raw]).decode
_POOL = pa.system_memory_pool()
"""Arrow's own pool asks for huge pages, which cost a table's memory several times as much when it is first used."""


def optional(type_: Any) -> Any:
    """Return a decoder's type that also takes null; JSON text already does."""
    return type_ if type_ is Raw else type_ | None


def texts_of(values: Sequence[Raw | None]) -> list[bytes | None]:
    """Return JSON texts as bytes, null as None."""
    try:
        texts = b"\n".join(values).split(b"\n")  # type: ignore[arg-type]
    except TypeError:  # some are None
        texts = []
    if len(texts) != len(values):
        texts = [_NULL_TEXT if value is None else bytes(value) for value in values]
    return [None if text == _NULL_TEXT else text for text in texts] if _NULL_TEXT in texts else [*texts]


def _unchanged(value: Any) -> Any:
    return value


def array_of(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Make an array of Python values; None is null."""
    return pa.array(values, type_, memory_pool=_POOL)


def _built(type_: pa.DataType) -> Callable[[Sequence[Any]], pa.Array]:
    return lambda values: array_of(values, type_)


def _between(low: int, high: int) -> Callable[[int], int]:
    def mend(value: int) -> int:
        if low <= value <= high:
            return value
        raise ValueError

    return mend


# numbers --------------------------------------------------------------------------------------------------------------


def exact_float(value: Raw | float | None) -> float | None:
    """Return a JSON number as a float, null as None.

    Raises:
        ValueError, InvalidOperation: It is no number, or the float does not give its digits back.
    """
    if value is None or isinstance(value, float):
        return value
    text = bytes(value).decode()
    if text == "null":
        return None
    if text[0] not in "-0123456789":
        raise ValueError
    number = float(text)
    if repr(number) == text:
        return number
    if len(text) > _DIGITS or not isfinite(number) or Decimal(text) not in (Decimal(repr(number)), Decimal(number)):
        raise ValueError
    return number


def _float(value: Raw | None) -> Raw | None:
    return None if exact_float(value) is None else value


def _floats(values: Sequence[Raw | None]) -> pa.Array:
    return _exact(array_of(texts_of(values), pa.string()))


def _exact(texts: pa.Array) -> pa.Array:
    """Return JSON numbers as floats; raise as `exact_float` if one does not give its digits back."""
    numbers = pc.cast(texts, pa.float64(), memory_pool=_POOL)
    sizes = pc.abs(numbers)
    beyond = pc.or_(pc.less(sizes, _LEAST), pc.greater(sizes, _MOST))
    doubtful = pc.or_(pc.greater(pc.binary_length(texts), _SAFE), beyond)
    if pc.any(doubtful).as_py():
        doubtful_texts = pc.filter(texts, doubtful)
        spelled = pc.cast(pc.filter(numbers, doubtful), pa.string())
        for text in pc.unique(pc.filter(doubtful_texts, pc.not_equal(doubtful_texts, spelled))).to_pylist():
            exact_float(Raw(text.encode()))
    return numbers


def _decimal(value: Raw | Decimal | None) -> Decimal | None:
    if value is None or isinstance(value, Decimal):
        return value
    text = bytes(value).decode()
    if text == "null":
        return None
    text = text[1:-1] if text[:1] == '"' else text
    if len(text) > _DIGITS or not _NUMBER.fullmatch(text):
        raise ValueError
    number = Decimal(text)
    pa.scalar(number, _DECIMAL)  # raises ArrowInvalid, a ValueError, if there are too many digits
    return number


def _decimals(values: Sequence[Any]) -> pa.Array:
    return array_of([_decimal(value) for value in values], _DECIMAL)


# texts ----------------------------------------------------------------------------------------------------------------


def _instant(value: str) -> str:
    """Return an ISO instant as Arrow reads it: a day begins at midnight, and what names no offset is UTC."""
    match = _ISO.fullmatch(value)
    if match is None:
        raise ValueError
    day, clock, offset = match.groups()
    text = f"{day}T{clock or '00:00:00'}{offset or 'Z'}"
    pc.cast(pa.scalar(text), _INSTANT)
    return text


def _instants(values: Sequence[Any]) -> pa.Array:
    return pc.cast(array_of(values, pa.string()), _INSTANT, memory_pool=_POOL)


def _day(value: str) -> str:
    if not _DAY.fullmatch(value):
        raise ValueError
    date.fromisoformat(value)
    return value


def _days(values: Sequence[Any]) -> pa.Array:
    return array_of([None if value is None else date.fromisoformat(_day(value)) for value in values], pa.date32())


def _nanoseconds(value: str) -> int:
    """Return a time of day as nanoseconds since midnight."""
    match = _CLOCK.fullmatch(value)
    if match is None:
        raise ValueError
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 + int((match[4] or "").ljust(9, "0"))


def _clock(value: str) -> str:
    _nanoseconds(value)
    return value


def _clocks(values: Sequence[Any]) -> pa.Array:
    return array_of([None if value is None else _nanoseconds(value) for value in values], pa.time64("ns"))


def _octets(value: str) -> bytes:
    """Return the bytes of a canonical base64 text: one that they give back."""
    octets = base64.b64decode(value, validate=True)
    if base64.b64encode(octets).decode() != value:
        raise ValueError
    return octets


def _base64(value: str) -> str:
    _octets(value)
    return value


def _binaries(values: Sequence[Any]) -> pa.Array:
    return array_of([None if value is None else _octets(value) for value in values], pa.binary())


def _jsons(values: Sequence[Raw | None]) -> pa.Array:
    return array_of(texts_of(values), pa.string())


TEXT = ArrowKind(pa.string(), str, _built(pa.string()), _unchanged, _TEXT)
INTEGER = ArrowKind(pa.int64(), int, _built(pa.int64()), _between(-(1 << 63), (1 << 63) - 1), _DIGIT)
UNSIGNED = ArrowKind(pa.uint64(), int, _built(pa.uint64()), _between(0, (1 << 64) - 1), _DIGIT)
FLOAT = ArrowKind(pa.float64(), Raw, _floats, _float, _DIGIT)
BOOLEAN = ArrowKind(pa.bool_(), bool, _built(pa.bool_()), _unchanged, b"tfn")
DECIMAL = ArrowKind(_DECIMAL, Raw, _decimals, _decimal, _TEXT + _DIGIT)
INSTANT = ArrowKind(_INSTANT, str, _instants, _instant, _TEXT)
DAY = ArrowKind(pa.date32(), str, _days, _day, _TEXT)
CLOCK = ArrowKind(pa.time64("ns"), str, _clocks, _clock, _TEXT)
BINARY = ArrowKind(pa.binary(), str, _binaries, _base64, _TEXT)
JSON = ArrowKind(pa.string(), Raw, _jsons, _unchanged, ANY)


# values of several parts ----------------------------------------------------------------------------------------------


def list_of(item: ArrowKind) -> ArrowKind:
    """Return the kind of arrays of such values, null among them."""
    type_ = pa.list_(item.type)

    def build(values: Sequence[Any]) -> pa.Array:
        starts: list[int | None] = []
        flat: list[Any] = []
        for value in values:
            starts.append(None if value is None else len(flat))
            if value is not None:
                flat += value
        starts.append(len(flat))
        return pa.ListArray.from_arrays(array_of(starts, pa.int32()), item.build(flat)).cast(type_)

    def mend(value: Sequence[Any]) -> list[Any]:
        return [None if element is None else item.mend(element) for element in value]

    return ArrowKind(type_, list[optional(item.decoded)], build, mend, b"[n")  # type: ignore[misc]


def many_of(item: ArrowKind) -> ArrowKind:
    """Return the kind of lists of such values, of which a row may hold one without an array around it.

    A decoded or mended value is a list, or one value as `item` has it.
    """
    lists = list_of(item)
    decoded = Raw if item.decoded is Raw else item.decoded | lists.decoded

    def build(values: Sequence[Any]) -> pa.Array:
        return lists.build([value if value is None or value.__class__ is list else [value] for value in values])

    def mend(value: Any) -> Any:
        return lists.mend(value) if value.__class__ is list else item.mend(value)

    return ArrowKind(lists.type, decoded, build, mend, item.begins + b"[")


def opened(values: Sequence[Any]) -> list[Any]:
    """Return values of which JSON texts of arrays become lists of their elements' texts, and null becomes None."""
    return [_opened(value) if value.__class__ is Raw else value for value in values]


def _opened(value: Raw) -> Any:
    if value == _NULL:
        return None
    return _items(value) if bytes(value)[:1] == b"[" else value


class Member(NamedTuple):
    """One member of an object: its name, the kind of its values, and whether every object has it, not null."""

    name: str
    kind: ArrowKind
    required: bool = False


def struct_of(members: Sequence[Member]) -> ArrowKind:
    """Return the kind of objects that have no members but these; metadata name JSON text as such."""
    metadata = {True: {"values": "json"}, False: None}
    type_ = pa.struct(
        [pa.field(member.name, member.kind.type, metadata=metadata[member.kind is JSON]) for member in members]
    )
    names = [f"m{at}" for at in range(len(members))]
    spelled = {name: member.name for name, member in zip(names, members, strict=True)}

    fields: list[Any] = []
    for name, member in zip(names, members, strict=True):
        inner = member.kind.decoded
        fields.append((name, inner) if member.required else (name, optional(inner), None))
    decoded = msgspec.defstruct("Members", fields, rename=spelled, kw_only=True, forbid_unknown_fields=True, gc=False)

    def build(values: Sequence[Any]) -> pa.Array:
        mask = array_of([value is None for value in values], pa.bool_())
        parts, absent = [], mask.true_count
        for name, member in zip(names, members, strict=True):
            get = attrgetter(name)
            part = member.kind.build([None if value is None else get(value) for value in values])
            if member.required and part.null_count > absent:
                raise ValueError
            parts.append(part)
        return pa.StructArray.from_arrays(parts, fields=list(type_), mask=mask)

    def mend(value: Any) -> Any:
        for name, member in zip(names, members, strict=True):
            if (part := getattr(value, name)) is not None:
                setattr(value, name, member.kind.mend(part))
            if member.required and getattr(value, name) is None:
                raise ValueError
        return value

    return ArrowKind(type_, decoded, build, mend, b"{n")


def vector_of(size: int) -> ArrowKind:
    """Return the kind of vectors of so many 32-bit floats; 0 stands for any number of them.

    A number fits if the nearest 32-bit float gives it back: as it is, or rounded to some number of digits.
    """
    type_ = pa.list_(pa.float32(), size) if size else pa.list_(pa.float32())

    nothing = b",".join([b"0"] * size) or None

    def build(values: Sequence[Raw | None]) -> pa.Array:
        texts = texts_of(values)
        if any(text is not None and text[:1] != b"[" for text in texts):
            raise ValueError
        mask = array_of([text is None for text in texts], pa.bool_())
        inner = [nothing if text is None else text.translate(None, _BLANKS)[1:-1] or None for text in texts]
        lists = pc.split_pattern(array_of(inner, pa.string()), ",")
        items = _narrow(_exact(lists.flatten()))
        if not size:
            return pa.ListArray.from_arrays(lists.offsets, items, type=type_, mask=mask)
        if not pc.all(pc.equal(pc.fill_null(pc.list_value_length(lists), 0), size), min_count=0).as_py():
            raise ValueError
        return pa.FixedSizeListArray.from_arrays(items, type=type_, mask=mask)

    def mend(value: Raw | None) -> Raw | None:
        if value is None or value == _NULL:
            return None
        floats = [exact_float(element) for element in _items(value)]
        if (size and len(floats) != size) or any(number is None or not _is_narrow(number) for number in floats):
            raise ValueError
        return value

    return ArrowKind(type_, Raw, build, mend, b"[n")


_PLACES = (9, 10, 8, 7, 11, None, 6, 12, 5, 13, 14, 15)
"""Digits behind the point, None for all of them; the likeliest first."""


def _is_narrow(number: float) -> bool:
    try:
        (back,) = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        return False
    spelled = (float(f"{back:.{digits}e}") for digits in range(5, 9))
    return number == back or number in spelled or any(round(back, places) == number for places in _PLACES if places)


def _narrow(numbers: pa.Array) -> pa.Array:
    """Return 32-bit floats; raise ValueError if one does not give its number back."""
    singles = pc.cast(numbers, pa.float32(), safe=False, memory_pool=_POOL)
    back = pc.cast(singles, pa.float64())
    for places in _PLACES:
        same = pc.equal(back if places is None else pc.round(back, places), numbers)
        if pc.all(same, min_count=0).as_py():
            return singles
        left = pc.invert(same)
        back, numbers = back.filter(left), numbers.filter(left)
    if not all(map(_is_narrow, numbers.to_pylist())):
        raise ValueError
    return singles
