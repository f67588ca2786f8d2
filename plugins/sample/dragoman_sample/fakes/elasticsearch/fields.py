"""Field types: how a JSON value becomes the values that queries and sorts see."""

from __future__ import annotations

import ipaddress
import math
import re
import struct
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dragoman_sample.fakes.elasticsearch import places
from dragoman_sample.fakes.elasticsearch.dates import DEFAULT_FORMAT, NANOS_FORMAT, parse_date
from dragoman_sample.fakes.elasticsearch.errors import ServerError, illegal

INTEGERS = {"byte": 7, "short": 15, "integer": 31, "long": 63, "unsigned_long": 64}
FLOATS = {"half_float": "e", "float": "f", "double": "d", "scaled_float": "d"}
COUNTS = {"token_count"}
STRINGS = {"keyword", "constant_keyword", "wildcard", "version"}
# Taken into a mapping and stored, but only `exists` means something for them here, and places for geo_point.
OPAQUE = {"binary", "geo_point", "geo_shape", "completion", "dense_vector", "rank_feature", "histogram"}
RANGES = {"integer_range", "long_range", "float_range", "double_range", "date_range", "ip_range"}
TYPES = {
    *INTEGERS,
    *COUNTS,
    *FLOATS,
    *STRINGS,
    *OPAQUE,
    *RANGES,
    "text",
    "boolean",
    "date",
    "date_nanos",
    "ip",
    "flattened",
}
PARAMETERS = {
    "type", "fields", "index", "doc_values", "ignore_above", "null_value", "format", "norms", "analyzer", "store",
    "scaling_factor", "coerce", "ignore_malformed", "path", "dims", "similarity", "eager_global_ordinals", "meta",
    "copy_to", "normalizer", "ignore_z_value", "element_type", "index_options",
}  # fmt: skip
_WORD = re.compile(r"[^\W_]+(?:['\u2019.][^\W_]+)*|\w+", re.UNICODE)


def tokens(text: str) -> list[str]:
    """Split into lower-case words, close enough to the standard analyser."""
    return [word.lower() for word in _WORD.findall(text)]


class Token:
    """One indexed text value; its words are found when somebody looks for them."""

    __slots__ = ("_text", "_words")

    def __init__(self, text: str) -> None:
        self._text = text
        self._words: list[str] | None = None

    @property
    def words(self) -> list[str]:
        """Return the words in order."""
        if self._words is None:
            self._words = tokens(self._text)
        return self._words


@dataclass(frozen=True)
class Field:
    """One leaf of a mapping, sub-fields included."""

    path: str
    type: str
    params: dict[str, Any] = field(default_factory=dict)
    nested: tuple[str, ...] = ()

    @cached_property
    def family(self) -> str:
        """Return the behaviour group: integer, float, string, text, boolean, date, ip, flattened, range, opaque."""
        if self.type in INTEGERS or self.type in COUNTS:
            return "integer"
        if self.type in FLOATS:
            return "float"
        if self.type in STRINGS:
            return "string"
        if self.type in RANGES:
            return "range"
        if self.type in OPAQUE:
            return "opaque"
        return "date" if self.type == "date_nanos" else self.type

    @cached_property
    def formats(self) -> str:
        """Return the date formats."""
        return str(self.params.get("format", NANOS_FORMAT if self.type == "date_nanos" else DEFAULT_FORMAT))

    @property
    def indexed(self) -> bool:
        """Tell whether there is an inverted index."""
        return bool(self.params.get("index", self.type not in ("binary", "dense_vector")))

    @property
    def doc_values(self) -> bool:
        """Tell whether there is a column to sort by."""
        return bool(self.params.get("doc_values", self.type not in ("text", "binary", "completion", "dense_vector")))

    def date(self, value: Any, *, round_up: bool = False, zone: str = "", formats: str = "") -> int:
        """Read a date in this field's unit."""
        nanos = self.type == "date_nanos"
        return parse_date(value, formats or self.formats, round_up=round_up, zone=zone, nanos=nanos)

    def index(self, value: Any) -> Any:
        """Return the indexed value, or None for one that is too long to be indexed.

        Raises:
            ServerError: if the value does not fit; the cause only, the caller names field and document.
        """
        if isinstance(value, dict) and self.family not in ("range", "opaque", "flattened"):
            raise illegal(f"Cannot parse object as {'number' if self.family in ('integer', 'float') else self.type}")
        return self._indexer(self, value)

    @cached_property
    def _indexer(self) -> Any:
        return _count if self.type in COUNTS else _INDEXERS[self.family]

    def normal(self, text: str) -> str:
        """Return a text as the normalizer leaves it, both of a document and of a query."""
        return text.lower() if self.params.get("normalizer") == "lowercase" else text

    def fits(self, text: str) -> bool:
        """Tell whether a text is short enough to be indexed; the server counts UTF-16."""
        limit = int(self.params.get("ignore_above", 2**31))
        return len(text) <= limit and len(text.encode("utf-16-le", "surrogatepass")) // 2 <= limit


def java_text(value: Any) -> str:
    """Write a scalar as the server does where it wants a string."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def number(value: Any) -> int | float:
    """Read a number, from a string too.

    Raises:
        ServerError: number_format_exception.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    text = java_text(value).strip()
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    raise ServerError("number_format_exception", "empty String" if not text else f'For input string: "{text}"')


def _count(_: Field, value: Any) -> int:
    return len(tokens(java_text(value)))


def _integer(self: Field, value: Any) -> int:
    parsed = number(value)
    if self.params.get("coerce") in (False, "false"):
        if isinstance(value, str):
            raise illegal("Integer value passed as String")
        if parsed != int(parsed):
            raise illegal(f"{value} cannot be converted to Integer without data loss")
    if self.type == "long" and str(value) != str(value).strip():
        raise illegal(f'For input string: "{value}"')
    bits = INTEGERS[self.type]
    if math.isinf(parsed) or not -(2**bits) <= parsed < 2**bits:
        raise illegal(f"Value [{value}] is out of range for a{'n' if self.type == 'integer' else ''} {self.type}")
    return int(parsed)


def _float(self: Field, value: Any) -> float:
    parsed = float(number(value))
    if math.isinf(parsed):
        raise illegal(f"[{self.type}] supports only finite values, but got [{'-' if parsed < 0 else ''}Infinity]")
    if self.type == "double":
        return parsed
    try:
        rounded: float = struct.unpack("<" + FLOATS[self.type], struct.pack("<" + FLOATS[self.type], parsed))[0]
    except OverflowError:
        raise illegal(f"[{self.type}] supports only finite values, but got [Infinity]") from None
    if self.type == "scaled_float":
        return round(rounded * float(self.params["scaling_factor"])) / float(self.params["scaling_factor"])
    return rounded


def _keyword(self: Field, value: Any) -> str | None:
    text = java_text(value)
    return self.normal(text) if self.fits(text) else None


def _text(_: Field, value: Any) -> Token:
    return Token(java_text(value))


def boolean(value: Any) -> bool:
    """Read true, false or their exact names.

    Raises:
        ServerError: illegal_argument_exception.
    """
    if isinstance(value, bool) or value in ("true", "false"):
        return value in (True, "true")
    raise illegal(f"Can't parse boolean value [{java_text(value)}], expected [true] or [false]")


def _boolean(_: Field, value: Any) -> bool:
    if value == "":
        return False
    try:
        return boolean(value)
    except ServerError:
        reason = f"Failed to parse value [{java_text(value)}] as only [true] or [false] are allowed."
        raise illegal(reason) from None


def _date(self: Field, value: Any) -> int:
    try:
        instant = self.date(java_text(value))
    except ServerError as fault:
        raise fault.caused_by or fault from None
    return in_resolution(self, value, instant)


def in_resolution(field: Field, value: Any, instant: int) -> int:
    """Return a date, of a document or a bound, that the field can hold.

    Raises:
        ServerError: illegal_argument_exception, if nanoseconds do not reach it.
    """
    if field.type == "date_nanos" and not 0 <= instant < 2**63:
        side = "before the epoch in 1970" if instant < 0 else "after 2262-04-11T23:47:16.854775807"
        raise illegal(f"date[{value}] is {side} and cannot be stored in nanosecond resolution")
    return instant


def address(value: Any) -> bytes:
    """Read an IP address into 16 bytes that sort right.

    Raises:
        ServerError: illegal_argument_exception.
    """
    try:
        parsed = ipaddress.ip_address(str(value))
    except ValueError:
        raise illegal(f"'{value}' is not an IP string literal.") from None
    return parsed.packed if parsed.version == 6 else b"\0" * 10 + b"\xff\xff" + parsed.packed


def _ip(_: Field, value: Any) -> bytes:
    return address(value)


def _flattened(_: Field, value: Any) -> Any:
    if not isinstance(value, dict):
        raise illegal(f"Failed to parse object: expecting token of type [START_OBJECT] but found [{value}]")
    return value


def _range(self: Field, value: Any) -> str:
    """Check a range; only that there is one means something here."""
    if self.type == "ip_range" and isinstance(value, str) and "/" in value:
        try:
            return str(ipaddress.ip_network(value, strict=False))
        except ValueError:
            raise illegal(f"Expected [ip/prefix] but was [{value}]") from None
    if not isinstance(value, dict):
        reason = f"error parsing field [{self.path}], expected an object but got {self.path.rpartition('.')[2]}"
        raise ServerError("mapper_parsing_exception", reason)
    if unknown := [name for name in value if name not in ("gt", "gte", "lt", "lte")]:
        reason = f"error parsing field [{self.path}], with unknown parameter [{unknown[0]}]"
        raise ServerError("mapper_parsing_exception", reason)
    bound = Field(self.path, self.type.removesuffix("_range"), self.params)
    low, high = (
        next((bound.index(value[name]) for name in names if value.get(name) is not None), None)
        for names in (("gte", "gt"), ("lte", "lt"))
    )
    if low is not None and high is not None and low > high:
        raise illegal(f"min value ({low}) is greater than max value ({high})")
    return repr(value)


def _opaque(self: Field, value: Any) -> str | tuple[float, float]:
    if self.type == "binary" and isinstance(value, dict):
        raise illegal("Can't get binary of an object")
    return places.indexed(value) if self.type == "geo_point" else repr(value)


_INDEXERS: dict[str, Any] = {
    "integer": _integer, "float": _float, "string": _keyword, "text": _text, "boolean": _boolean, "date": _date,
    "ip": _ip, "flattened": _flattened, "range": _range, "opaque": _opaque,
}  # fmt: skip


def shown(field_: Field, value: Any) -> Any:
    """Return an indexed value as sorts and docvalue_fields show it."""
    if field_.family == "ip":
        parsed = ipaddress.IPv6Address(value)
        return str(parsed.ipv4_mapped or parsed)
    return value
