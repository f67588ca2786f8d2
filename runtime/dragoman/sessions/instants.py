"""Instants as a person writes them: ISO 8601, or relative to now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from dragoman_api.errors import ConfigurationError

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_RELATIVE = re.compile(r"(?:now)?-([0-9]{1,9})([smhdw])|now")
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


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
            seconds = int(relative[1]) * _UNITS[relative[2]] if relative[1] else 0
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
