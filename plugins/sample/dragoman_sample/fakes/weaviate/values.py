"""What the server makes of a value it is asked to store: checks by type, and the form in which it comes back."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import struct
import uuid
from decimal import Decimal
from typing import Any

from dragoman_sample.fakes.weaviate.errors import InvalidError, not_reproduced

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII)
_UUID = re.compile(
    r"(?:urn:uuid:)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|\{[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\}|[0-9a-f]{32}",
    re.ASCII | re.IGNORECASE,
)
_NAMES = {"int": "integer", "geoCoordinates": "geoCoordinates", "phoneNumber": "phoneNumber"}
# Parsing phone numbers is a library of its own; these are the ones that were asked of a real server.
_PHONES = {
    ("+49 171 1234567", ""): (49, 1711234567, "+49 171 1234567", "0171 1234567"),
    ("0171 1234567", "DE"): (49, 1711234567, "+49 171 1234567", "0171 1234567"),
    ("+1 212 555 0123", ""): (1, 2125550123, "+1 212-555-0123", "(212) 555-0123"),
}


_NO_COUNTRY = (
    "invalid phone number: invalid or missing defaultCountry - this field is optional if the specified number is in the"
    " international format, but required if the number is in national format, use ISO 3166-1 alpha-2"
)


class Literal(float):
    """A number of a request that was not written as an integer, with its text."""

    text: str

    def __new__(cls, text: str) -> Literal:
        """Keep the text beside the value."""
        number = super().__new__(cls, text)
        number.text = text
        return number


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def load(raw: bytes) -> Any:
    """Read a body the way the server does: a lone half of a surrogate pair becomes U+FFFD."""
    text = raw.decode(errors="replace")
    value = json.loads(text, parse_float=Literal)
    return _without_surrogates(value) if _SURROGATE.search(text) else value


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(member) for key, member in value.items()}
    return [_without_surrogates(member) for member in value] if isinstance(value, list) else value


def number(value: float) -> int | float:
    """Return a number as the server's JSON writes it: an integral one has no fraction."""
    real = float(value)
    return int(Decimal(repr(real))) if real.is_integer() and abs(real) < 1e21 else real


def go_float(value: float) -> str:
    """Return a float in the fewest digits, with an exponent from a million on and below a ten-thousandth.

    >>> [go_float(each) for each in (21.0, 1e6, 1234567.5, 0.0001, 1e-5, -0.0)]
    ['21', '1e+06', '1.2345675e+06', '0.0001', '1e-05', '-0']
    """
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    place = len(digits) + exponent - 1
    if value and not -5 < place < 6:
        rest = "".join(map(str, digits[1:]))
        return f"{'-' * sign}{digits[0]}{'.' + rest if rest else ''}e{'-' if place < 0 else '+'}{abs(place):02}"
    return f"{Decimal(repr(value)).normalize():f}" if value else "-0" if sign else "0"


def go(value: Any) -> str:
    """Return a value as the server's messages show it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Literal):
        return value.text
    if value is None:
        return "<nil>"
    if isinstance(value, list):
        return "[" + " ".join(map(go, value)) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go(value[key])}" for key in sorted(value)) + "]"
    return str(value)


def go_type(value: Any) -> str:
    """Return the type of a value as the server's messages show it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "json.Number"
    if isinstance(value, str):
        return "string"
    return "<nil>" if value is None else "[]interface {}" if isinstance(value, list) else "map[string]interface {}"


def parse_uuid(text: str) -> str:
    """Return a uuid in the form in which it is stored.

    Raises:
        InvalidError: in the words of the server's parser.
    """
    if _UUID.fullmatch(text):
        return str(uuid.UUID(text))
    if len(text) in (36, 38, 45, 32):
        raise InvalidError("invalid UUID format")
    raise InvalidError(f"invalid UUID length: {len(text.encode())}")


def parse_date(text: str) -> tuple[int, str] | None:
    """Return nanoseconds since 1970 and the form in which a date is stored, `None` for what is no date."""
    match = _DATE.fullmatch(text)
    if not match:
        return None
    *numbers, fraction, zone = match.groups()
    year, month, day, hour, minute, second = map(int, numbers)
    digits = (fraction or "")[:9]
    offset = 0 if zone == "Z" else (int(zone[1:3]) * 60 + int(zone[4:])) * (-1 if zone[0] == "-" else 1)
    try:
        # Year 0 exists for the server; no test needs it.
        moment = dt.datetime(year, month, day, hour, minute, second, tzinfo=dt.UTC)
    except ValueError:
        return None
    seconds = (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(seconds=1)
    nanoseconds = (seconds - offset * 60) * 10**9 + int(digits.ljust(9, "0"))
    significant = digits.rstrip("0")
    return nanoseconds, text[:19] + (f".{significant}" if significant else "") + ("Z" if not offset else zone)


def check(kind: str, value: Any, name: str, of_class: str) -> Any:
    """Return the value of a property in the form in which it is stored.

    Raises:
        InvalidError: the server refuses it.
    """
    try:
        if kind.endswith("[]"):
            return _array(kind[:-2], value)
        return _SCALARS[kind](value)
    except InvalidError as reason:
        label = _NAMES.get(kind.removesuffix("[]"), kind.removesuffix("[]"))
        label += " array" if kind.endswith("[]") else ""
        raise InvalidError(f"invalid {label} property '{name}' on class '{of_class}': {reason}") from None


def _array(kind: str, value: Any) -> list[Any]:
    label = _NAMES.get(kind, kind)
    if not isinstance(value, list):
        article = "an" if label == "integer" else "a"
        raise InvalidError(f"not {article} {label} array, but {go_type(value)}")
    try:
        return [_SCALARS[kind](member) for member in value]
    except InvalidError:
        # For numbers too the server speaks of integers here.
        label = "integer" if kind == "number" else label
        raise InvalidError(f"invalid {label} array value: {go(value)}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidError(f"not a string, but {go_type(value)}")
    return value


def _integer(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidError(f"requires an integer, the given value is '{go(value)}'")
    if isinstance(value, float) or not -(2**63) <= value < 2**63:
        raise InvalidError(f"the JSON number '{go(value)}' could not be converted to an int")
    return number(value)


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidError(f"requires a float, the given value is '{go(value)}'")
    if math.isinf(value):
        raise InvalidError(f"the JSON number '{go(value)}' could not be converted to a float.")
    return number(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidError(f"not a bool, but {go_type(value)}")
    return value


def _date(value: Any) -> str:
    date = parse_date(value) if isinstance(value, str) else None
    if not date:
        raise InvalidError(f"requires a string with a RFC3339 formatted date, but the given value is '{go(value)}'")
    return date[1]


def _uuid(value: Any) -> str:
    try:
        return parse_uuid(value if isinstance(value, str) else "")
    except InvalidError:
        raise InvalidError(f"requires a string of UUID format, but the given value is '{go(value)}'") from None


def _blob(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidError(f"not a blob base64 string, but {go_type(value)}")
    if not _BASE64.fullmatch(value):
        raise InvalidError("not a valid blob base64 string")
    return value


def _geo(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise InvalidError(f"geoCoordinates must be a map, but got: {go_type(value)}")
    for name in ("longitude", "latitude"):
        if name not in value:
            raise InvalidError(f"geoCoordinates is missing required field '{name}'")
    for name in ("longitude", "latitude"):
        if isinstance(value[name], bool) or not isinstance(value[name], int | float):
            raise InvalidError(f"invalid {name}: must be json.Number or float, but got {go_type(value[name])}")
    return {name: float32(value[name]) for name in ("latitude", "longitude")}


def float32(value: float) -> int | float:
    """Return the shortest decimal that is this number in 32 bits."""
    single = struct.unpack("f", struct.pack("f", value))[0]
    for digits in range(1, 10):
        shorter = float(f"{single:.{digits}g}")
        if struct.unpack("f", struct.pack("f", shorter))[0] == single:
            return number(shorter)
    return number(single)


def _phone(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidError(f"phoneNumber must be a map, but got: {go_type(value)}")
    if "input" not in value:
        raise InvalidError("phoneNumber is missing required field 'input'")
    if not isinstance(value["input"], str):
        raise InvalidError("phoneNumber.input must be a string")
    country = value.get("defaultCountry", "")
    if not isinstance(country, str):
        raise InvalidError("phoneNumber.defaultCountry must be a string")
    if not country and not value["input"].startswith("+"):
        raise InvalidError(_NO_COUNTRY)
    parsed = _PHONES.get((value["input"], country.upper()))
    if not parsed:
        raise not_reproduced(f"the phone number {value['input']!r} in {country!r}")
    code, national, international, formatted = parsed
    phone = {"countryCode": code, "input": value["input"], "internationalFormatted": international}
    phone |= {"national": national, "nationalFormatted": formatted, "valid": True}
    return phone | ({"defaultCountry": country.upper()} if country else {})


_SCALARS = {
    "text": _text,
    "int": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
    "uuid": _uuid,
    "blob": _blob,
    "geoCoordinates": _geo,
    "phoneNumber": _phone,
}
PRIMITIVES = {*_SCALARS, *(f"{kind}[]" for kind in ("text", "int", "number", "boolean", "date", "uuid"))}
