"""Dates as the server reads them: optional parts, rounding of bounds, and date math."""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from dragoman_sample.fakes.elasticsearch.errors import ServerError

DEFAULT_FORMAT = "strict_date_optional_time||epoch_millis"
NANOS_FORMAT = "strict_date_optional_time_nanos||epoch_millis"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO = re.compile(
    r"(?P<y>\d{4})(?:-(?P<mo>\d{2})(?:-(?P<d>\d{2})(?:T(?:(?P<h>\d{2})(?::(?P<mi>\d{2})(?::(?P<s>\d{2})"
    r"(?:[.,](?P<f>\d{1,9}))?)?)?)?)?)?)?(?P<z>Z|[+-]\d{2}(?::?\d{2})?)?\Z"
)
_LETTERS = {
    "yyyy": r"(?P<y>\d{4})", "MM": r"(?P<mo>\d{2})", "dd": r"(?P<d>\d{2})", "HH": r"(?P<h>\d{2})",
    "mm": r"(?P<mi>\d{2})", "ss": r"(?P<s>\d{2})", "SSS": r"(?P<f>\d{3})",
}  # fmt: skip
_MATH = re.compile(r"([+-])(\d*)([yMwdhHms])|/([yMwdhHms])")
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "H": 3_600, "m": 60, "s": 1}


def parse_date(value: Any, formats: str, *, round_up: bool = False, zone: str = "", nanos: bool = False) -> int:
    """Return milliseconds (nanoseconds for date_nanos) since 1970.

    With `round_up` a missing time of day becomes the end of its unit; a missing month or day is always the first,
    which is why a month or a year covers its first day only.

    Raises:
        ServerError: parse_exception, if no format takes the value.
    """
    text = str(value)
    if text.startswith("now"):
        moment, math = _nanos(datetime.now(UTC)), text[3:]
    else:
        anchor, _, math = text.partition("||")
        moment = _anchor(anchor, formats, round_up=round_up and not math, zone=zone, nanos=nanos)
    moment = _apply(moment, math, text, round_up=round_up)
    return moment if nanos else moment // 1_000_000


def looks_like_date(text: str) -> bool:
    """Tell whether dynamic mapping makes a date of this string."""
    if text.lstrip("-").replace(".", "", 1).isdigit():
        return False
    formats = "strict_date_optional_time||yyyy/MM/dd HH:mm:ss||yyyy/MM/dd"
    return any(_read(text, name, round_up=False, zone="", nanos=False) is not None for name in formats.split("||"))


def format_millis(millis: int) -> str:
    """Write milliseconds as the default format does."""
    return _written(millis, "yyyy-MM-ddTHH:mm:ss.SSSZ")


def format_as(millis: int, name: str) -> str | None:
    """Write milliseconds as a format does; None for one that the fake does not write."""
    if name in ("strict_date_optional_time", "strict_date_optional_time_nanos"):
        return format_millis(millis)
    if name in ("epoch_millis", "epoch_second"):
        return str(millis if name == "epoch_millis" else millis // 1000)
    return _written(millis, name) if re.fullmatch(r"(?:yyyy|MM|dd|HH|mm|ss|SSS|[^A-Za-z'])+", name) else None


def _written(millis: int, pattern: str) -> str:
    moment = _EPOCH + timedelta(milliseconds=millis)
    parts = {
        "yyyy": f"{moment.year:04}", "MM": f"{moment:%m}", "dd": f"{moment:%d}", "HH": f"{moment:%H}",
        "mm": f"{moment:%M}", "SSS": f"{millis % 1000:03}", "ss": f"{moment:%S}",
    }  # fmt: skip
    return re.sub("|".join(parts), lambda directive: parts[directive[0]], pattern)


def _anchor(text: str, formats: str, *, round_up: bool, zone: str, nanos: bool) -> int:
    for name in formats.split("||"):
        millis = _read(text, name, round_up=round_up, zone=zone, nanos=nanos)
        if millis is not None:
            return millis
    reason = f"failed to parse date field [{text}] with format [{formats}]"
    why = ServerError("date_time_parse_exception", "Failed to parse with all enclosed parsers")
    cause = ServerError("illegal_argument_exception", reason, caused_by=why)
    raise ServerError("parse_exception", f"{reason}: [{reason}]", caused_by=cause)


def _read(text: str, name: str, *, round_up: bool, zone: str, nanos: bool) -> int | None:
    if name in ("epoch_millis", "epoch_second"):
        scale = 1_000_000 if name == "epoch_millis" else 1_000_000_000
        digits = re.fullmatch(r"-?\d+(\.\d+)?", text)
        return int(float(text) * scale) if digits and -(2**63) <= int(text.partition(".")[0]) < 2**63 else None
    if "optional_time" in name:
        iso_match = _ISO.match(text)
        # The nanosecond variant wants a whole time of day; the other fills in what is missing.
        if iso_match and nanos and iso_match["h"] and not iso_match["s"]:
            return None
    else:
        pattern = re.sub(r"'([^']*)'", r"\1", re.escape(name).replace("\\'", "'"))
        for letters, group in _LETTERS.items():
            pattern = pattern.replace(letters, group)
        iso_match = re.compile(pattern + r"\Z").match(text)
    return _moment(iso_match, round_up=round_up, zone=zone) if iso_match else None


def _moment(match: re.Match[str], *, round_up: bool, zone: str) -> int | None:
    parts = match.groupdict()
    last = round_up and parts.get("f") is None
    try:
        moment = datetime(
            int(parts["y"]),
            int(parts.get("mo") or 1),
            int(parts.get("d") or 1),
            int(parts.get("h") or (23 if round_up and not parts.get("h") else 0)),
            int(parts.get("mi") or (59 if round_up and not parts.get("mi") else 0)),
            int(parts.get("s") or (59 if round_up and not parts.get("s") else 0)),
            tzinfo=_zone(parts.get("z") or zone or "Z"),
        )
    except ValueError:
        return None
    fraction = int((parts.get("f") or "").ljust(9, "0")) if parts.get("f") else 999_999_999 if last else 0
    return _nanos(moment) + fraction


def _zone(text: str) -> timezone:
    if text in ("Z", "UTC"):
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)


def _nanos(moment: datetime) -> int:
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000_000 + delta.microseconds * 1_000


def _apply(nanos: int, math: str, text: str, *, round_up: bool) -> int:
    position = 0
    while position < len(math):
        step = _MATH.match(math, position)
        if step is None:
            raise ServerError("parse_exception", f"operator not supported for date math [{text}]")
        sign, count, unit, rounded = step.groups()
        if rounded:
            start = _floor(nanos, rounded)
            nanos = _add(start, 1, rounded) - 1 if round_up else start
        else:
            nanos = _add(nanos, int(count or 1) * (1 if sign == "+" else -1), unit)
        position = step.end()
    return nanos


def _floor(nanos: int, unit: str) -> int:
    moment = _EPOCH + timedelta(seconds=nanos // 1_000_000_000)
    if unit in "yM":
        moment = moment.replace(month=1 if unit == "y" else moment.month, day=1, hour=0, minute=0, second=0)
        return _nanos(moment)
    if unit == "w":
        moment = moment.replace(hour=0, minute=0, second=0) - timedelta(days=moment.weekday())
        return _nanos(moment)
    size = _SECONDS[unit] * 1_000_000_000
    return nanos // size * size


def _add(nanos: int, count: int, unit: str) -> int:
    if unit not in "yM":
        return nanos + count * _SECONDS[unit] * 1_000_000_000
    seconds, rest = divmod(nanos, 1_000_000_000)
    moment = _EPOCH + timedelta(seconds=seconds)
    months = moment.year * 12 + moment.month - 1 + count * (12 if unit == "y" else 1)
    year, month = divmod(months, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return _nanos(moment.replace(year=year, month=month + 1, day=day)) + rest
