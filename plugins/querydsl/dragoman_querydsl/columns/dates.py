"""Dates: whether a value fits the formats of a date column, so far as that can be told without the server."""

from __future__ import annotations

import re
from calendar import monthrange, timegm
from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman_api.kit.operands import Period, period

if TYPE_CHECKING:
    from collections.abc import Iterable

_CLOCK = r"T(?:(?:[01]?[0-9]|2[0-4])(?::?[0-5]?[0-9](?::?[0-5]?[0-9](?:[.,][0-9]{1,9})?)?)?)?"
_ZONE = r"(?:Z|[+-][0-9:]{1,9}|[A-Za-z][A-Za-z_/+0-9:-]*)"
_DAY = rf"(?:{_CLOCK}{_ZONE}?|Z|[+-][0-9:]{{1,9}})?"
_ISO = re.compile(rf"[+-]?(?P<y>[0-9]{{4,9}})(?:Z|-(?P<M>[0-9]{{2}})(?:Z|-(?P<d>[0-9]{{2}}){_DAY})?)?")
_LOOSE = re.compile(rf"[+-]?(?P<y>[0-9]{{1,9}})(?:Z|-(?P<M>[0-9]{{1,2}})(?:Z|-(?P<d>[0-9]{{1,2}}){_DAY})?)?")
_EPOCH = re.compile(r"-?[0-9]+(?:\.[0-9]*)?")
_NAMED = {
    "strict_date_optional_time": _ISO,
    "strict_date_optional_time_nanos": _ISO,
    "date_optional_time": _LOOSE,
    "epoch_millis": _EPOCH,
    "epoch_second": _EPOCH,
}
_UTC = re.compile(
    r"(?P<y>[0-9]{4})-(?P<M>[0-9]{2})-(?P<d>[0-9]{2})T(?P<H>[0-9]{2}):(?P<m>[0-9]{2}):(?P<s>[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]{1,9}))?Z"
)
_NOW = re.compile(r"now([-+/].*)?")
_MATHS_UNITS = "yMwdhHms"
_PATTERN = re.compile(r"(y{4}|u{4}|MM|dd|HH|mm|ss|SSS)|([-/.: ])")
_PARTS = {"yyyy": r"(?P<y>[0-9]{4})", "uuuu": r"(?P<y>[0-9]{4})", "MM": r"(?P<M>[0-9]{2})", "dd": r"(?P<d>[0-9]{2})",
          "HH": r"[0-9]{2}", "mm": r"[0-9]{2}", "ss": r"[0-9]{2}", "SSS": r"[0-9]{3}"}  # fmt: skip


def check(value: object, formats: Iterable[str]) -> None:
    """Refuse a value that no format of a column reads as a date.

    Args:
        value: The value to be stored: a text or a number, or a list of them.
        formats: The column's formats, one per mapping, each with its alternatives.

    Raises:
        ValueError: It is not a date; the message names the formats. A value that only the server can judge passes.
    """
    formats = [*formats]
    for element in value if isinstance(value, list) else [value]:
        if element is None or isinstance(element, dict | list):
            continue
        text = element if isinstance(element, str) else _digits(element)
        if not may_read(text, formats):
            excerpt = text if len(text) <= 80 else f"{text[:80]}…"
            raise ValueError(f"'{excerpt}' is not a date in the format {' or '.join(_names(formats))}")


def respelled(text: str, formats: Iterable[str]) -> str:
    """Return an instant as a column's formats take it: unchanged if one reads it, or if none can spell all of it.

    Tables hold instants of UTC, whatever the formats of the column that they come from.

    >>> respelled("2024-01-31T00:00:00Z", ["dd.MM.yyyy"]), respelled("2024-01-31T00:00:00Z", ["epoch_second"])
    ('31.01.2024', '1706659200')
    """
    formats = [*formats]
    instant = _UTC.fullmatch(text)
    if instant is None or may_read(text, formats):
        return text
    spelled = (_spelled(name.removeprefix("8"), instant) for name in _names(formats))
    return next((spelling for spelling in spelled if spelling), text)


def _spelled(name: str, instant: re.Match[str]) -> str:
    """Return an instant in one format; empty if the format cannot spell all of it."""
    parts = instant.groupdict("")
    if name in ("epoch_second", "epoch_millis"):
        fraction = parts.pop("fraction").rstrip("0")
        digits = 0 if name == "epoch_second" else 3
        if len(fraction) > digits:
            return ""
        seconds = timegm(tuple(int(part) for part in parts.values()))
        return f"{seconds * 10**digits + (int(fraction.ljust(digits, '0')) if digits else 0)}"
    reader = _reader(name)
    if reader is None or name in _NAMED:
        return ""
    of_name = {"yyyy": "y", "uuuu": "y", "MM": "M", "dd": "d", "HH": "H", "mm": "m", "ss": "s"}
    left = {"M": "01", "d": "01", "H": "00", "m": "00", "s": "00"}
    fraction = parts["fraction"].rstrip("0").ljust(3, "0")
    format_parts = {of_name[part[1]] for part in _PATTERN.finditer(name) if part[1] in of_name}
    has_fraction = "SSS" in name
    lost = any(parts[part] != nothing for part, nothing in left.items() if part not in format_parts)
    if lost or "y" not in format_parts or (fraction != "000" if not has_fraction else len(fraction) > 3):
        return ""
    return _PATTERN.sub(lambda part: part[2] or (fraction if part[1] == "SSS" else parts[of_name[part[1]]]), name)


def may_read(text: str, formats: Iterable[str]) -> bool:
    """Return whether a format of a column reads a text as a date, or may read it: some only the server knows.

    >>> may_read("31.01.2024", ["dd.MM.yyyy"]), may_read("2024-01-31", ["dd.MM.yyyy"])
    (True, False)
    """
    readers = [_reader(name) for name in _names(formats)]
    return None in readers or any(reader and _reads(reader, text) for reader in readers)


def is_iso(text: str) -> bool:
    """Return whether a text is a date or a part of one as ISO 8601 writes it: `2024`, `2024-01-31T12:00:00Z`."""
    return _reads(_ISO, text)


def anchored(text: str, now: str | None) -> str:
    """Let date maths count from one instant: the server would read its own clock for each request.

    >>> anchored("now-1d/d", "2026-11-23T12:00:00Z")
    '2026-11-23T12:00:00Z||-1d/d'
    """
    if now is None or _NOW.fullmatch(text) is None:
        return text
    maths = text.removeprefix("now")
    if maths:
        return f"{now}||{maths}"
    return now if "." in now else f"{now.removesuffix('Z')}.000Z"  # else the server takes the whole second


def period_of(text: str) -> Period | None:
    """Return the period that a date stands for: one that is written as such, or date maths that end with a rounding.

    Its bounds are as the server reads them. It would round `2024-01-31||/d` up to the last millisecond only.

    Raises:
        ValueError: The period ends before it begins.

    >>> period_of("2024-01-31||/M")
    Period(first='2024-01-31||/M', after='2024-01-31||+1M/M')
    """
    front, slash, unit = text[:-2], text[-2:-1], text[-1:]
    if slash != "/" or unit not in _MATHS_UNITS or not (text.startswith("now") or "||" in front):
        return period(text)
    return Period(text, f"{front}+1{unit}/{unit}")


def _names(formats: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name for alternatives in formats for name in alternatives.split("||")))


def _digits(value: object) -> str:
    return bytes(value).decode() if isinstance(value, Raw) else str(value).lower()


def _reader(name: str) -> re.Pattern[str] | None:
    """Return the pattern of a format; None for one that only the server knows."""
    name = name.removeprefix("8")
    if name in _NAMED:
        return _NAMED[name]
    parts = [*_PATTERN.finditer(name)]
    fields = [part[1] for part in parts if part[1]]
    if "".join(part[0] for part in parts) != name or len(fields) != len({*fields}) or not {"yyyy", "uuuu"} & {*fields}:
        return None
    return re.compile("".join(_PARTS[part[1]] if part[1] else re.escape(part[2]) for part in parts), re.ASCII)


def _reads(reader: re.Pattern[str], text: str) -> bool:
    match = reader.fullmatch(text)
    if match is None:
        return False
    parts = match.groupdict()
    month, day = int(parts.get("M") or 1), int(parts.get("d") or 1)
    year = int(parts.get("y") or 2000)
    return 1 <= month <= 12 and 1 <= day <= (monthrange(2000 + year % 400, month)[1])
