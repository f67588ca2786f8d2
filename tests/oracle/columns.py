"""What a filter row plainly means for the values that a row holds in a column, and how they are ordered.

An answer is True, False, or None where it may be either: an explanation says that the server compares otherwise.
Nothing here is the drivers' own code.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from dragoman_api import Operator as Op

from .documents import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api import Filter

    from .readings import Said

Maybe = bool | None

NEGATED = {Op.NE: Op.EQ, Op.NOT_IN: Op.IN, Op.NOT_CONTAINS: Op.CONTAINS}
LISTS = (Op.IN, Op.NOT_IN)
PATTERNS = (Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS, Op.ENDS)
COMPARED = (Op.GT, Op.GE, Op.LT, Op.LE)
VALUELESS = (Op.NULL, Op.NOT_NULL, Op.EMPTY, Op.NOT_EMPTY)

NANO = 1
MILLI = 1_000_000 * NANO
SECOND = 1_000 * MILLI


def some(answers: Iterable[Maybe]) -> Maybe:
    """Tell whether one of several is true."""
    seen = set(answers)
    return True if True in seen else None if None in seen else False


def every(answers: Iterable[Maybe]) -> Maybe:
    """Tell whether all of several are true."""
    seen = set(answers)
    return False if False in seen else None if None in seen else True


def opposite(answer: Maybe) -> Maybe:
    return None if answer is None else not answer


def listed(value: Any) -> list[Any]:
    """Return the values of a list, which may be a text with commas."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else list(value)


class MisfitError(ValueError):
    """An operand that no value of the column could have."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of one index or collection.

    Attributes:
        name: Its name in the grid.
        type: The server's type.
        mapping: Its definition, in the server's words.
        stored: JSON texts that documents hold.
        operands: Values of filter rows; what is stored, and its neighbours.
        nested: The nested array around it.
        filterable: Filter rows are made for it.
        sortable: A sort on it has an effect.
        editable: Changes are made of it.
        gaps: Arrays of it may hold nulls.
        source: The path in documents where it is not its name, as for an alias.
        mapped: It has a definition of its own.
    """

    name: str
    type: str
    mapping: dict[str, Any] = field(default_factory=dict)
    stored: Sequence[str] = ()
    operands: Sequence[Any] = ()
    nested: str = ""
    filterable: bool = True
    sortable: bool = True
    editable: bool = True
    gaps: bool = True
    source: str = ""
    mapped: bool = True

    @property
    def path(self) -> str:
        """Where documents hold it."""
        return self.source or self.name

    def meaning(self, stored: Any) -> Any:
        """Return what a stored value means, comparable with others of the column."""
        raise NotImplementedError

    def span(self, operand: Any) -> tuple[Any, Any]:
        """Return the first and the last value that equals an operand.

        Raises:
            MisfitError: No value could.
        """
        value = self.meaning(operand)
        return value, value

    def read(self, held: Sequence[Any]) -> list[Any]:
        """Return what stored values mean; others, which a lax mapping lets in, compare with nothing."""
        values = []
        for each in held:
            if each is not None:
                with suppress(MisfitError):
                    values.append(self.meaning(each))
        return values

    def rank(self, held: Sequence[Any], *, descending: bool) -> Any:
        """Return what a sort compares: of several values the smallest, descending the largest; None without one."""
        values = self.read(held)
        return (max if descending else min)(values) if values else None

    def end(self, *, descending: bool) -> Any:
        """Return the value that a server's sort does not tell from none."""
        return MISSING

    def holds(self, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        """Tell whether a row that holds these values satisfies a filter row.

        Args:
            row: The filter row.
            held: The stored scalars, nulls too.
            said: What the driver explained.

        Raises:
            MisfitError: The value of the filter row does not fit the column.
        """
        if self.admitted(held, said):
            return None
        if (positive := NEGATED.get(row.op)) is not None:
            return opposite(self.found(positive, row, held, said))
        return self.found(row.op, row, held, said)

    def admitted(self, held: Sequence[Any], said: Said) -> bool:
        """Tell whether an approximation admits any answer for a row that holds these values."""
        values = [each for each in held if each is not None]
        return (
            "any" in said.admits
            or ("nulls" in said.admits and len(values) < len(held))
            or ("malformed" in said.admits and len(self.read(held)) < len(values))
            or ("ends" in said.admits and any(map(self.far, self.read(held))))
            or ("coerced" in said.admits and any(_has_decimals(each) for each in values))
        )

    def counted(self, stored: Any) -> Any:
        """Return what a summary counts as one value."""
        return self.meaning(stored)

    def far(self, value: Any) -> bool:
        """Tell whether a value is beyond those that the server compares rightly, where it says so."""
        del value
        return False

    def found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        """Tell whether a value satisfies an operator that is no negation."""
        if op in (Op.NULL, Op.NOT_NULL):
            return any(each is not None for each in held) is (op is Op.NOT_NULL)
        values = self.read(held)
        if op is Op.IN:
            return some([self.equals(one, values, row, said) for one in listed(row.value)])
        if op is Op.EQ:
            return self.equals(row.value, values, row, said)
        if op is Op.BETWEEN:
            low, high = listed(row.value)
            first, last = self.span(low)[0], self.span(high)[1]
            return any(first <= value <= last for value in values)
        if op in COMPARED:
            first, last = self.span(row.value)
            compare = {
                Op.GT: lambda value: value > last,
                Op.GE: lambda value: value >= first,
                Op.LT: lambda value: value < first,
                Op.LE: lambda value: value <= last,
            }[op]
            return any(map(compare, values))
        raise MisfitError(f"{self.type} has no {op}")

    def equals(self, operand: Any, values: Sequence[Any], row: Filter, said: Said) -> Maybe:
        """Tell whether one of several values equals an operand."""
        first, last = self.span(operand)
        return any(first <= value <= last for value in values)


@dataclass(frozen=True, kw_only=True)
class Number(Column):
    """A column of numbers, of any width.

    Attributes:
        ends: The smallest and the largest of its type; a sort does not tell them from no value.
        form: How a floating-point type packs its values, `int` where decimals are cut off,
            the factor of a scaled one; empty for other types.
    """

    ends: tuple[int, int] | None = None
    form: str = ""

    def end(self, *, descending: bool) -> Any:
        return MISSING if self.ends is None else self.ends[not descending]

    def rank(self, held: Sequence[Any], *, descending: bool) -> Any:
        values = [self.kept(each) for each in self.read(held)]
        return (max if descending else min)(values) if values else None

    def found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        if "rounded" in said.admits and op not in VALUELESS:
            operands = row.value if isinstance(row.value, list) else [row.value]
            near = {self.kept(self.meaning(each)) for each in operands}
            if not near.isdisjoint(map(self.kept, self.read(held))):
                super().found(op, row, held, said)
                return None  # as the type keeps them, they are equal
        return super().found(op, row, held, said)

    def kept(self, value: Decimal) -> Any:
        """Return a value as its type keeps it, which is what a sort compares."""
        if not self.form:
            return value
        if self.form == "int":
            return int(value)
        if self.form.isdigit():
            return round(float(value) * int(self.form))
        return struct.unpack(self.form, struct.pack(self.form, value))[0]

    def counted(self, stored: Any) -> Any:
        kept = self.kept(self.meaning(stored))
        return Decimal(kept) / int(self.form) if self.form.isdigit() else kept

    def meaning(self, stored: Any) -> Decimal:
        try:
            return Decimal(repr(stored) if isinstance(stored, float) else str(stored))
        except InvalidOperation:
            raise MisfitError(f"{stored!r} is no number") from None


@dataclass(frozen=True, kw_only=True)
class Boolean(Column):
    """A column of booleans."""

    def rank(self, held: Sequence[Any], *, descending: bool) -> Any:
        return super().rank([False if each == "" else each for each in held], descending=descending)

    def meaning(self, stored: Any) -> bool:
        if isinstance(stored, bool):
            return stored
        if stored in ("true", "false"):
            return bool(stored == "true")
        raise MisfitError(f"{stored!r} is no boolean")


@dataclass(frozen=True, kw_only=True)
class Address(Column):
    """A column of IP addresses; one of 32 bits equals its form of 128."""

    def meaning(self, stored: Any) -> int:
        return self.span(stored)[0]

    def span(self, operand: Any) -> tuple[int, int]:
        try:
            network = ipaddress.ip_network(operand, strict=False)
        except ValueError:
            raise MisfitError(f"{operand!r} is no address") from None
        mapped = 0xFFFF << 32 if network.version == 4 else 0
        return int(network.network_address) + mapped, int(network.broadcast_address) + mapped


@dataclass(frozen=True, kw_only=True)
class Place(Column):
    """A column of points, in degrees. Elasticsearch before 8 stores no document whose array of points holds a null.

    Attributes:
        radius: Of the sphere on which distances are measured, in metres.
        margin: Within so many metres of a border, a point may count as on either side.
    """

    sortable: bool = False
    gaps: bool = False
    radius: float = 6_371_008.7714
    margin: float = 0.5

    def meaning(self, stored: Any) -> tuple[float, float]:
        try:
            if isinstance(stored, dict):
                latitude, longitude = (stored.get(short, stored.get(long)) for short, long in _DEGREES)
            else:
                latitude, longitude = stored.split(",")
            return float(latitude), float(longitude)
        except (AttributeError, TypeError, ValueError):
            raise MisfitError(f"{stored!r} is no point") from None

    def found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        if op not in (Op.NEAR, Op.IN_BOX):
            return super().found(op, row, held, said)
        test = self._near if op is Op.NEAR else self._in_box
        answers = [test(at, str(row.value)) for at in self.read(held)]
        return some([None if each is None and "border" in said.admits else bool(each) for each in answers])

    def _near(self, at: tuple[float, float], operand: str) -> Maybe:
        latitude, longitude, distance = operand.split(",")
        metres = float(distance.removesuffix("km")) * 1_000 if distance.endswith("km") else float(distance[:-1])
        one, two = (
            (math.cos(a) * math.cos(b), math.cos(a) * math.sin(b), math.sin(a))
            for a, b in (map(math.radians, each) for each in (at, (float(latitude), float(longitude))))
        )
        away = 2 * self.radius * math.asin(min(1.0, math.dist(one, two) / 2))
        return None if abs(away - metres) <= self.margin else away < metres

    def _in_box(self, at: tuple[float, float], operand: str) -> Maybe:
        south, west, north, east = map(float, operand.split(","))
        if south >= north or west == east:
            raise MisfitError(f"{operand!r} is no box")
        slack = self.margin / 100_000
        sides = (at[0] - south, north - at[0], *((at[1] - west, east - at[1]) if west <= east else ()))
        if west > east and not at[1] >= west and not at[1] <= east:
            return False
        if min(sides) < -slack:
            return False
        near = (*sides, *(at[1] - west, at[1] - east)[: 2 * (west > east)])
        return None if min(map(abs, near)) <= slack else True


_DEGREES = (("lat", "latitude"), ("lon", "longitude"))


def _has_decimals(stored: Any) -> bool:
    try:
        return Decimal(str(stored)) % 1 != 0
    except ArithmeticError:
        return False


_ISO = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?(Z|[+-]\d\d:\d\d)?)?)?)?"
)
_MONTH = re.compile(r"\d{4}(-\d\d)?")
"""A month or a year, which a filter takes whole, whatever the formats of the column are."""
_STAMP = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))"
PERIOD = re.compile(f"{_STAMP}/{_STAMP}")
"""A period, as the host writes it in place of `today`: up to the instant after its last one."""
_ROUNDED = re.compile(rf"{_STAMP}\|\|(?:([+-]\d+)d)?/([dM])")
"""Date maths that end with a rounding."""
_OWN = {
    "yyyy-MM-dd": r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)",
    "dd.MM.yyyy": r"(?P<d>\d\d)\.(?P<m>\d\d)\.(?P<y>\d{4})",
    "yyyy-MM-dd HH:mm:ss": r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d) (?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _nanos(moment: datetime) -> int:
    return ((moment - _EPOCH) // timedelta(microseconds=1)) * 1000


@dataclass(frozen=True, kw_only=True)
class Date(Column):
    """A column of moments, in nanoseconds since 1970; an operand covers the unit that it ends with.

    Attributes:
        formats: The mapping's formats; the first one that reads a text counts.
        tick: The shortest time that the column tells apart, which is what a fraction of a second covers.
        least: Descending, a sort does not tell it from no value.
    """

    formats: tuple[str, ...] = ("iso", "epoch_millis")
    tick: int = MILLI
    least: Any = MISSING

    def end(self, *, descending: bool) -> Any:
        return self.least if descending else MISSING

    def meaning(self, stored: Any) -> int:
        return self.span(stored)[0]

    def instant(self, text: str) -> int:
        """Return an instant that is written as RFC 3339, whatever the formats are."""
        found = self._read("iso", text)
        if found is None:
            raise MisfitError(f"{text!r} is no instant")
        return found[0]

    def span(self, operand: Any) -> tuple[int, int]:
        if (period := PERIOD.fullmatch(str(operand))) is not None:
            first, after = map(self.instant, period.groups())
            if first >= after:
                raise MisfitError(f"{operand!r} ends before it begins")
            return first, after - 1
        if (rounded := _ROUNDED.fullmatch(str(operand))) is not None:
            return self._rounded(self.instant(rounded[1]), rounded[2], rounded[3])
        months = _MONTH.fullmatch(str(operand)) is not None and not self.formats[0].startswith("epoch")
        for each in ("iso", *self.formats) if months else self.formats:
            if (found := self._read(each, str(operand))) is not None:
                return found
        raise MisfitError(f"{operand!r} is no date of {self.formats}")

    def found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        answer = super().found(op, row, held, said)
        if "millis" not in said.admits or op in VALUELESS or self.tick == NANO:
            return answer
        operands = listed(row.value) if op in (Op.IN, Op.BETWEEN) else [row.value]
        bounds = [bound for each in operands if PERIOD.fullmatch(str(each)) for bound in self.span(each)]
        near = {bound // MILLI for first in bounds for bound in (first, first + 1) if bound % MILLI}
        return None if any(value // MILLI in near for value in self.read(held)) else answer

    @staticmethod
    def _rounded(nanos: int, days: str, unit: str) -> tuple[int, int]:
        """Return the day, or the month, that is so many days after an instant."""
        at = _EPOCH + timedelta(microseconds=nanos // 1000) + timedelta(days=int(days or 0))
        first = at.replace(hour=0, minute=0, second=0, microsecond=0)
        after = first + timedelta(days=1)
        if unit == "M":
            first = first.replace(day=1)
            after = (first + timedelta(days=31)).replace(day=1)
        return _nanos(first), _nanos(after) - 1

    def _read(self, name: str, text: str) -> tuple[int, int] | None:
        if name in ("epoch_millis", "epoch_second"):
            unit = MILLI if name == "epoch_millis" else SECOND
            return (int(text) * unit, int(text) * unit + unit - 1) if re.fullmatch(r"-?\d{1,18}", text) else None
        if name != "iso":
            if (own := re.fullmatch(_OWN[name], text)) is None:
                return None
            given = {"H": "0", "M": "0", "S": "0"} | own.groupdict()
            try:
                moment = datetime(*(int(given[unit]) for unit in "ymdHMS"), tzinfo=UTC)
            except ValueError:
                return None
            return _nanos(moment), _nanos(moment) + (SECOND if "HH" in name else 86_400 * SECOND) - 1
        if (iso := _ISO.fullmatch(text)) is None:
            return None
        year, month, day, hour, minute, second, fraction, zone = iso.groups()
        offset = timedelta()
        if zone not in (None, "Z"):
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:])) * (-1 if zone[0] == "-" else 1)
        try:
            given = (int(each or least) for each, least in zip(iso.groups()[:6], (0, 1, 1, 0, 0, 0), strict=True))
            first = _nanos(datetime(*given, tzinfo=UTC)) - (offset // timedelta(microseconds=1)) * 1000
        except ValueError:
            return None
        if fraction:
            at = first + int(fraction.ljust(9, "0"))
            return at, at + self.tick - 1
        if second or minute or hour or day:
            unit = SECOND * (1 if second else 60 if minute else 3_600 if hour else 86_400)
            return first, first + unit - 1
        after = (int(year) + 1, 1) if month in (None, "12") else (int(year), int(month) + 1)
        last = datetime(*after, 1, tzinfo=UTC) if after[0] < 10_000 else datetime.max.replace(tzinfo=UTC)
        return first, _nanos(last) - 1


def folded(text: str) -> str:
    """Ignore letter case as the drivers say they do: of ASCII letters only."""
    return "".join(each.lower() if each.isascii() else each for each in text)


@dataclass(frozen=True, kw_only=True)
class Text(Column):
    """A column that compares whole strings, as they are; parts of strings without regard to case."""

    def meaning(self, stored: Any) -> str:
        return stored if isinstance(stored, str) else json.dumps(stored)

    def found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        values = [self.meaning(each) for each in held if each is not None]
        hidden = [
            value for value in values if said.limit is not None and len(value.encode("utf-16-le")) // 2 > said.limit
        ]
        shown = [each for each in held if each is not None and self.meaning(each) not in hidden]
        if op in (Op.NULL, Op.NOT_NULL):
            return None if hidden and not shown else super().found(op, row, held, said)
        answer = self._found(op, row, shown, said)
        return answer if answer or not hidden else None

    def _found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        values = [self.meaning(each) for each in held]
        if op is Op.EMPTY:
            return "" in values
        if op is Op.NOT_EMPTY:
            return bool(values) and "" not in values
        if op not in PATTERNS:
            return super().found(op, row, held, said)
        part, strict = self.meaning(row.value), row.case is True or said.case
        texts = values if strict else list(map(folded, values))
        part = part if strict else folded(part)
        if op is Op.STARTS:
            return any(text.startswith(part) for text in texts)
        return any(text.endswith(part) if op is Op.ENDS else part in text for text in texts)

    def equals(self, operand: Any, values: Sequence[Any], row: Filter, said: Said) -> Maybe:
        wanted = self.meaning(operand)
        if row.case is False and not said.case:
            return folded(wanted) in map(folded, values)
        return wanted in values
