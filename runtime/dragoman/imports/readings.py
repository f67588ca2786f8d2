"""Readings: how a table spells numbers, days, times, true and false, and the spelling that every column takes.

A reading has a name, under which commands, scripts and checkpoints know it: ``decimal-comma``, ``decimal-point``,
``day-first``, ``month-first`` or ``year-first``, the last three perhaps with a time zone (``day-first@Europe/Berlin``);
the words for true and false (``ja/nein``, ``x/`` where an empty field is false); or ``plain``. A reading only changes
how a value is spelled: no number is parsed, so none of its digits is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from unicodedata import normalize

import msgspec

from dragoman_api.columns import ColumnKind
from dragoman_api.errors import ConfigurationError
from dragoman_api.wording import quoted

PLAIN = "plain"
"""The name of the reading of fields that stand for themselves."""

DECIMAL_COMMA = "decimal-comma"
"""The reading of numbers as most of Europe writes them; points, blanks or apostrophes may part the thousands."""

DECIMAL_POINT = "decimal-point"
"""The reading of numbers as English writes them; commas, blanks or apostrophes may part the thousands."""

NUMBERS = (ColumnKind.INTEGER, ColumnKind.FLOAT, ColumnKind.UNSIGNED, ColumnKind.DECIMAL)
TIMES = (ColumnKind.DATE, ColumnKind.TIMESTAMP)
_TRUTHS = (ColumnKind.BOOLEAN,)

READ_KINDS = (*NUMBERS, *TIMES, *_TRUTHS)
"""The kinds of columns for which readings are proposed."""

USUAL = (
    DECIMAL_COMMA, DECIMAL_POINT, "day-first", "month-first", "year-first", "yes/no", "y/n", "ja/nein", "j/n",
    "wahr/falsch", "oui/non", "vrai/faux", "sí/no", "si/no", "sì/no", "vero/falso", "sim/não", "tak/nie", "ano/ne",
    "igen/nem", "kyllä/ei", "да/нет", "1/0", "x/",
)  # fmt: skip
"""The readings that are proposed; other words for true and false can be wishes."""

_BLANK = " \u00a0\u202f\u2009"
_MINUS = ("-", "\u2212")
_WORD = 40  # characters of a word for true or false
_LONGEST = 1_000  # characters of a field that can be a word, with blanks around it; of a longer one no form is made
_SHOWN = 80  # characters of a value in a reason
_ORDERS = {"day-first": "dmy", "month-first": "mdy", "year-first": "ymd"}
_SUCH_DAYS = {"dmy": "31.12.2026", "mdy": "12/31/2026", "ymd": "2026-12-31"}
_INSTANT = re.compile(
    r"(?P<first>[0-9]{1,4})(?P<sign>[./-]) ?(?P<second>[0-9]{1,2})(?P=sign) ?(?P<third>[0-9]{1,4})"
    r"(?:,?[ T\u00a0\u202f]+(?P<hour>[0-9]{1,2})(?P<colon>[:.])(?P<minute>[0-9]{2})"
    r"(?:(?P=colon)(?P<seconds>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    r"(?:[ \u00a0\u202f]?(?P<half>[AaPp])\.?[Mm]\.?)?(?P<offset>Z|[+-][0-9]{2}:[0-9]{2})?)?"
)


class FieldReading(msgspec.Struct, frozen=True, kw_only=True):
    """How fields spell values.

    Attributes:
        name: Its name.
        kinds: The kinds of columns that take its values, the narrowest first; a column of texts takes the texts.
        expected: What a field is to be, with an example.
        respell: Returns the usual spelling of a field for a column of a kind; raises ValueError if it does not fit.
        fills: An empty field has a value.
    """

    name: str
    kinds: tuple[ColumnKind, ...]
    expected: str
    respell: Callable[[str, ColumnKind | None], str]
    fills: bool = False


class FieldReader(msgspec.Struct, frozen=True):
    """Reads the fields of one column.

    Attributes:
        respell: Returns the usual spelling of a field; raises ValueError with what was expected if it does not fit.
        fills: An empty field has a value.
    """

    respell: Callable[[str], str]
    fills: bool


FieldReadings = Mapping[str, Sequence[str]]
"""How a file's columns are read: the name of a reading, and the kind of the values it writes; an empty kind is text."""


def field_reader(column: str, reading: Sequence[str]) -> FieldReader:
    """Return what reads the fields of a column.

    >>> field_reader("price", ("decimal-comma", "float")).respell("n/a")
    Traceback (most recent call last):
    ValueError: its column 'price' holds 'n/a', which is not a number with a decimal comma, such as 1.234,5
    """
    name, kind_name = reading
    kind = ColumnKind(kind_name) if kind_name else None
    form = reading_named(name)
    expected = form.expected if kind is not ColumnKind.DATE else f"{form.expected}, without a time"

    def respell(field: str) -> str:
        try:
            return form.respell(field, kind)
        except ValueError as error:
            why = f": {error}" if str(error) else ""
        text = f"its column {column!r} holds {quoted(str(field)[:_SHOWN])}, which is not {expected}{why}"
        raise ValueError(text)

    return FieldReader(respell, form.fills)


def check_resumed(readings: FieldReadings, wishes: Mapping[str, str]) -> None:
    """Raise ConfigurationError if a caller wishes for other readings than an interrupted load had."""
    for column, reading in wishes.items():
        if (before := readings.get(column, (PLAIN,))[0]) != reading:
            text = f"the interrupted load read {column!r} as {before}, not as {reading[:_SHOWN]}"
            raise ConfigurationError(text, hint="resume with the arguments of the first run", code="resume-refused")


@lru_cache(256)
def reading_named(name: str) -> FieldReading:
    """Return the reading with a name.

    Raises:
        ConfigurationError: There is none, or no such time zone.

    >>> reading_named("decimal-comma").respell("1.234,50", None)
    '1234.50'
    >>> reading_named("day-first@Europe/Berlin").respell("1.4.2026 14:30", None)
    '2026-04-01T14:30:00+02:00'
    """
    if name == DECIMAL_COMMA:
        return _number(name, ",", ".")
    if name == DECIMAL_POINT:
        return _number(name, ".", ",")
    order, at, zone = name.partition("@")
    if order in _ORDERS and (zone or not at):
        return _days(name, _ORDERS[order], _zone(zone) if at else UTC)
    true, sign, false = name.partition("/")
    if sign and "/" not in false and max(len(true), len(false)) <= _WORD and true.strip() and _key(true) != _key(false):
        return _words(name, true, false)
    hint = "use one of: plain, decimal-comma, decimal-point, day-first, month-first, year-first, words such as ja/nein"
    raise ConfigurationError(f"{name[:_SHOWN]!r} is no reading of a column", hint=hint, code="value-invalid")


def _number(name: str, comma: str, separator: str) -> FieldReading:
    pattern = re.compile(
        rf"([+\-\u2212]?)([1-9][0-9]{{0,2}}(?:([{separator}'\u2019{_BLANK}])[0-9]{{3}}(?:\3[0-9]{{3}})*)|0|[1-9][0-9]*)"
        rf"(?:\{comma}([0-9]+))?([eE][+-]?[0-9]{{1,3}})?"
    )

    def respell(field: str, _kind: ColumnKind | None) -> str:
        if (match := pattern.fullmatch(field.strip(_BLANK))) is None:
            raise ValueError
        sign, digits, parting, fraction, exponent = match.groups(default="")
        if parting and exponent:  # one digit stands before the point of 1.234E5, whose thousands nothing parts
            raise ValueError
        whole = digits.replace(parting, "") if parting else digits
        return f"{'-' if sign in _MINUS else ''}{whole}{'.' if fraction else ''}{fraction}{exponent}"

    expected = f"a number with a decimal {'comma' if comma == ',' else 'point'}, such as 1{separator}234{comma}5"
    return FieldReading(name=name, kinds=NUMBERS, expected=expected, respell=respell)


def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = "name one as the time zone database does, such as Europe/Berlin"
        raise ConfigurationError(f"there is no time zone {name[:_SHOWN]!r}", hint=hint, code="value-invalid") from None


def _days(name: str, order: str, zone: tzinfo) -> FieldReading:
    def respell(field: str, kind: ColumnKind | None) -> str:
        if (match := _INSTANT.fullmatch(field.strip(_BLANK))) is None:
            raise ValueError
        parts = dict(zip(order, match.group("first", "second", "third"), strict=True))
        if len(parts["y"]) != 4 or max(len(parts["d"]), len(parts["m"])) > 2:
            raise ValueError
        hour, minute, seconds = match.group("hour", "minute", "seconds")
        if hour is not None and kind is ColumnKind.DATE:
            raise ValueError
        hours = int(hour or 0)
        if (half := match["half"]) is not None:
            if not 1 <= hours <= 12:
                raise ValueError("there is no such hour")
            hours = hours % 12 + (12 if half in "Pp" else 0)
        try:
            day = date(int(parts["y"]), int(parts["m"]), int(parts["d"]))
            moment = time(hours, int(minute or 0), int(seconds or 0))
        except ValueError:
            raise ValueError("there is no such day or time") from None
        if hour is None and kind is not ColumnKind.TIMESTAMP:
            return day.isoformat()
        local = datetime.combine(day, moment)
        fraction = f".{match['fraction']}" if match["fraction"] else ""
        return f"{local.isoformat()}{fraction}{match['offset'] or _offset(local, zone)}"

    return FieldReading(name=name, kinds=TIMES, expected=f"a day such as {_SUCH_DAYS[order]}", respell=respell)


def _offset(local: datetime, zone: tzinfo) -> str:
    """Return the offset from UTC of a local time. Raises ValueError if clocks show it never, or twice."""
    if zone is UTC:
        return "Z"
    earlier, later = (local.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    if earlier != later:
        raise ValueError(f"clocks in {zone} show that time {'twice' if earlier > later else 'never'}")
    seconds = int(earlier.total_seconds())
    if seconds % 60:
        raise ValueError(f"clocks in {zone} were set to the second then")
    return f"{'-' if seconds < 0 else '+'}{abs(seconds) // 3600:02}:{abs(seconds) // 60 % 60:02}"


def _key(word: str) -> str:
    return normalize("NFC", word.strip(_BLANK)).casefold()


def _words(name: str, true: str, false: str) -> FieldReading:
    spellings = {_key(true): "true", _key(false): "false"}

    def respell(field: str, _kind: ColumnKind | None) -> str:
        if len(field) > _LONGEST:
            raise ValueError
        try:
            return spellings[_key(field)]
        except KeyError:
            raise ValueError from None

    fills = not _key(false)
    expected = f"{true!r} or {'nothing' if fills else repr(false)}"
    return FieldReading(name=name, kinds=_TRUTHS, expected=expected, respell=respell, fills=fills)
