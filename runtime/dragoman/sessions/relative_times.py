"""Times relative to now, such as ``now-1h``, ``today`` and ``last week``, and spans of time between two of them.

They count from one instant, in UTC or a time zone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from dragoman_api.columns import LISTS, Note
from dragoman_api.errors import ConfigurationError, UnsupportedOperationError
from dragoman_api.filters import Filter, RawQuery, TimeRange

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import tzinfo

    from dragoman_api.columns import TimeColumn

_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_STEPS = {"last": -1, "this": 0, "next": 1}
_UNITS = {
    "second": ("s", "sec", "secs", "second", "seconds"), "minute": ("m", "min", "mins", "minute", "minutes"),
    "hour": ("h", "hour", "hours"), "day": ("d", "day", "days"), "week": ("w", "week", "weeks"),
    "month": ("month", "months"), "quarter": ("quarter", "quarters"), "year": ("y", "year", "years"),
}  # fmt: skip
_UNIT = {word: unit for unit, words in _UNITS.items() for word in words}
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600}
_LENGTHS = {**_SECONDS, "day": 86_400, "week": 604_800}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_NOW = re.compile(r"now(?:([+-])([0-9]{1,9})([smhdw]))?")
_PERIOD = re.compile(rf"(last|this|next) (?:([0-9]{{1,5}}) ?)?({'|'.join(sorted(_UNIT, key=len, reverse=True))})")
_RELATIVE = re.compile(r"(?:now)?-([0-9]{1,9})([smhdw])|now")
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


class Span(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A span of time, as a caller gives it.

    Attributes:
        since: The first instant, ISO 8601 or relative to now (``-1h``, ``now-7d``); None for no lower bound.
        until: The instant after the last one, in the same form.
        all_time: Take all rows, even if the object has a default time window.
    """

    since: str | None = None
    until: str | None = None
    all_time: bool = False

    @classmethod
    def of(cls, time: TimeRange | None) -> Span:
        """Return the span of a range with absolute instants, such as `Page.time`; all time if there is none."""
        return cls(all_time=True) if time is None else cls(since=time.since, until=time.until)


DEFAULT = Span()
"""The default of the object's description: a time window before now, or all rows."""


def resolve_span(
    span: Span,
    time_column: TimeColumn | None,
    *,
    object: str,  # noqa: A002
    now: datetime,
) -> tuple[TimeRange | None, list[Note]]:
    """Return the range of time of a request, and a note if it is the object's default time window.

    Raises:
        ConfigurationError: The span contradicts itself, or a bound is not an instant.
        UnsupportedOperationError: The span has a bound, and there is no time column.
    """
    if span.since is None and span.until is None:
        return (None, []) if span.all_time or time_column is None else _default(time_column, now)
    since, until = (None if text is None else parse_instant(text, now=now) for text in (span.since, span.until))
    if span.all_time:
        raise ConfigurationError("a span of all time has neither since nor until")
    if time_column is None:
        reason = f"the rows of {object!r} cannot be chosen by time: the driver names no time column"
        raise UnsupportedOperationError(reason, hint="use a filter on a column")
    if since is not None and until is not None and _order(since) >= _order(until):
        raise ConfigurationError(f"since {since} is not before until {until}")
    return TimeRange(column=time_column.column, since=since, until=until), []


def _default(time_column: TimeColumn, now: datetime) -> tuple[TimeRange | None, list[Note]]:
    if time_column.window is None:
        return None, []
    since = show_instant(now - timedelta(seconds=time_column.window))
    reason = f"only rows since {since} are read, the default for this object; ask for another time, or for all of it"
    return TimeRange(column=time_column.column, since=since), [
        Note(code="time-window", column=time_column.column, reason=reason)
    ]


def _order(instant: str) -> tuple[str, str]:
    """Return a sort key for instants in UTC, whatever the number of digits of their fractions."""
    whole, _, fraction = instant.removesuffix("Z").partition(".")
    return whole, fraction.ljust(9, "0")


def whole(now: datetime) -> datetime:
    """Return the time in whole milliseconds: many time columns hold no more digits to compare with."""
    return now.replace(microsecond=now.microsecond // 1_000 * 1_000)


def whole_now(text: str | None) -> datetime:
    """Read the instant that relative times count from, in whole milliseconds; None for the current one.

    Raises:
        ConfigurationError: The text is not an instant.
    """
    now = datetime.now(UTC)
    return whole(now if text is None else datetime.fromisoformat(parse_instant(text, now=now)))


def is_relative(text: str) -> bool:
    """Return whether a text is a time relative to now.

    >>> is_relative("Last 24h"), is_relative("last night")
    (True, False)
    """
    words = _words(text)
    if text.rstrip().endswith("M"):  # a month to Elasticsearch, where m is a minute
        return False
    if words in _DAYS or _NOW.fullmatch(words):
        return True
    match = _PERIOD.fullmatch(words)
    if match is None:
        return False
    step, count, unit = match.groups()
    if count is None:  # `this h` is no English
        return unit == _UNIT[unit]
    return step != "this" and int(count) > 0


def resolve_time(text: str, *, now: datetime, zone: tzinfo = UTC) -> str:
    """Return the instant that a relative time stands for, or its period: the first instant, ``/``, and the one after.

    ``last 24h`` ends before now, and ``next 24h`` begins with it. ``last month`` without a number is the month before
    this one. Weeks begin on Monday. Seconds, minutes and hours have one length; days, weeks, months and years follow
    the calendar of the zone, so that ``last 1 day`` has 23 hours if a clock was put forward.

    Raises:
        ConfigurationError: The time lies before the year 1 or after 9999.

    >>> resolve_time("today", now=datetime(2026, 11, 23, 12, tzinfo=UTC))
    '2026-11-23T00:00:00Z/2026-11-24T00:00:00Z'
    """
    words = _words(text)
    try:
        if match := _NOW.fullmatch(words):
            if match[1] != "+":
                return to_the_millisecond(parse_instant(words, now=now))
            return to_the_millisecond(show_instant(now + timedelta(seconds=int(match[2]) * _LENGTHS[_UNIT[match[3]]])))
        first, after = _period(words, now, zone)
        return f"{show_instant(first)}/{show_instant(after)}"
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(f"{text[:100]!r} is before the year 1 or after 9999") from error


def _words(text: str) -> str:
    return " ".join(text.lower().split())


def _period(words: str, now: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    if words in _DAYS:
        return _calendar("day", now, zone, _DAYS[words])
    match = _PERIOD.fullmatch(words)
    assert match is not None
    step, count, unit = match.groups()
    unit = _UNIT[unit]
    if count is None:
        return _calendar(unit, now, zone, _STEPS[step])
    other = _moved(now, unit, int(count) * _STEPS[step], zone)
    return (other, now) if step == "last" else (now, other)


def _calendar(unit: str, now: datetime, zone: tzinfo, step: int) -> tuple[datetime, datetime]:
    """Return the calendar period that lies `step` units after the current one; before it if negative."""
    if unit in _SECONDS:  # an hour that a clock repeats is two
        length = timedelta(seconds=_SECONDS[unit])
        local = now.astimezone(zone)
        begin = local.replace(
            minute=0 if unit == "hour" else local.minute, second=local.second if unit == "second" else 0, microsecond=0
        )
        first = begin.astimezone(UTC) + step * length
        return first, first + length
    local = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
    if unit == "week":
        local -= timedelta(days=local.weekday())
    elif unit in _MONTHS:
        months = _MONTHS[unit]
        local = local.replace(month=(local.month - 1) // months * months + 1, day=1)
    return _instant(_added(local, unit, step), zone), _instant(_added(local, unit, step + 1), zone)


def _moved(now: datetime, unit: str, count: int, zone: tzinfo) -> datetime:
    if unit in _SECONDS:
        return now + timedelta(seconds=count * _SECONDS[unit])
    return _instant(_added(now.astimezone(zone).replace(tzinfo=None), unit, count), zone)


def _added(local: datetime, unit: str, count: int) -> datetime:
    """Return a local time `count` units later; a day that its month lacks becomes the last one of the month."""
    if unit in _LENGTHS:
        return local + timedelta(seconds=count * _LENGTHS[unit])
    months = local.year * 12 + local.month - 1 + count * _MONTHS[unit]
    first = local.replace(year=months // 12, month=months % 12 + 1, day=1)
    following = (first + timedelta(days=31)).replace(day=1)
    return first.replace(day=min(local.day, (following - timedelta(days=1)).day))


def _instant(local: datetime, zone: tzinfo) -> datetime:
    return local.replace(tzinfo=zone).astimezone(UTC)


def read_zone(name: str) -> tzinfo:
    """Return a time zone by its name in the IANA database.

    Raises:
        ConfigurationError: No time zone has that name, or this machine has no time zone data.
    """
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # not a name, a folder of the data base
        hint = 'time_zone = "Europe/Berlin" in config.toml, or "UTC"; without data of time zones, install tzdata'
        raise ConfigurationError(f"there is no time zone {name[:80]!r}", hint=hint) from error


def resolve_rows(
    rows: Sequence[Filter | RawQuery], columns: Collection[str], *, now: datetime, zone: str
) -> tuple[list[Filter | RawQuery], list[Note]]:
    """Replace the relative times of a filter by instants and periods.

    Args:
        rows: The filter rows.
        columns: The columns whose values are instants; in others ``today`` is a text like any other.
        now: The instant that relative times count from.
        zone: The name of the time zone.

    Returns:
        The rows, and a note for each with a relative time. A row whose value begins with ``now`` and is none of these
        forms stays as it is, for the driver; it has a note too.

    Raises:
        ConfigurationError: There is no such time zone.
    """
    resolved_rows: list[Filter | RawQuery] = []
    notes = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Filter) or row.column not in columns:
            resolved_rows.append(row)
            continue
        meanings: list[str] = []
        resolved_rows.append(_resolved(row, meanings, now=now, zone=zone))
        if meanings:
            reason = f"filter row {number}: {'; '.join(meanings)}"
            notes.append(Note(code="relative-time", column=row.column, reason=reason))
    return resolved_rows, notes


def _resolved(row: Filter, meanings: list[str], *, now: datetime, zone: str) -> Filter:
    def resolve(value: object) -> object:
        if not isinstance(value, str):
            return value
        if not is_relative(value):
            if value.startswith("now"):
                meanings.append(f"now is {show_instant(now)}")
            return value
        span = resolve_time(value, now=now, zone=read_zone(zone))
        phrase = " ".join(value.split())
        first, _, after = span.partition("/")
        meanings.append(f"{phrase!r} is {first} to before {after}, in {zone}" if after else f"{phrase!r} is {span}")
        return span

    value: object = row.value
    if isinstance(value, str) and row.op in LISTS:
        parts = [part.strip() for part in value.split(",")]
        value = [resolve(part) for part in parts] if any(map(is_relative, parts)) else value
    else:
        value = [resolve(element) for element in value] if isinstance(value, list) else resolve(value)
    if not meanings:
        return row
    return Filter(row.column, row.op, value, row.group, row.case)  # type: ignore[arg-type]


def parse_instant(text: str, *, now: datetime) -> str:
    """Return an instant as RFC 3339 text in UTC, with up to nine digits of the fraction of its second.

    Args:
        text: ``2026-11-23``, ``2026-11-23T12:00:00.5+01:00``, ``-1h``, ``now-1h`` or ``now``; UTC without an offset.
            Units are s, m, h, d and w.
        now: The current time, which relative instants count from.

    Raises:
        ConfigurationError: The text is not an instant.

    >>> parse_instant("now-1h", now=datetime(2026, 11, 23, 12, tzinfo=UTC))
    '2026-11-23T11:00:00Z'
    """
    try:
        if relative := _RELATIVE.fullmatch(text):
            seconds = int(relative[1]) * _LENGTHS[_UNIT[relative[2]]] if relative[1] else 0
            return show_instant(now - timedelta(seconds=seconds))
        if iso := _ISO.fullmatch(text):
            day, minute, second, fraction, offset = iso.groups()
            whole = datetime.fromisoformat(f"{day}T{minute or '00:00'}:{second or '00'}{offset or 'Z'}")
            return show_instant(whole, fraction=fraction or "")
    except (ValueError, OverflowError):  # the 30th of February, or before the year 1
        pass
    hint = "write 2026-11-23T12:00:00Z, or relative to now: -1h, now-7d (s, m, h, d, w)"
    raise ConfigurationError(f"{text[:100]!r} is not an instant", hint=hint)


def show_instant(instant: datetime, *, fraction: str = "") -> str:
    """Return an aware datetime as RFC 3339 text in UTC, with these digits as the fraction of its second."""
    whole = instant.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat()
    digits = fraction or f"{instant.microsecond:06}".rstrip("0")
    return f"{whole}.{digits}Z" if digits else f"{whole}Z"


def to_the_millisecond(instant: str) -> str:
    """Add milliseconds to a text of `show_instant` that has none, so that it cannot stand for a whole second.

    >>> to_the_millisecond("2026-11-23T12:00:00Z")
    '2026-11-23T12:00:00.000Z'
    """
    return instant if "." in instant else f"{instant.removesuffix('Z')}.000Z"
