"""Periods of time in filter rows: the first instant, ``/``, and the instant after the last one.

The host writes them where a person says ``today`` or ``last 24h``; a person may also write one. A row compares with the
whole period: equal is in it, greater is after it, less is before it.
"""

from __future__ import annotations

from typing import NamedTuple

from dragoman_api.columns import Operator as Op

from . import operands


class Period(NamedTuple):
    """A period: its first instant and the instant after its last one, both RFC 3339."""

    first: str
    after: str


def period(value: object) -> Period | None:
    """Read a period; None if the value is anything else, such as one instant.

    Raises:
        ValueError: It ends before it begins.

    >>> period("2026-11-23T00:00:00Z/2026-11-24T00:00:00Z")
    Period(first='2026-11-23T00:00:00Z', after='2026-11-24T00:00:00Z')
    """
    if not isinstance(value, str) or "/" not in value:
        return None
    try:
        first, after = map(operands.timestamp, value.split("/"))
    except ValueError:
        return None
    if operands.instant(first) >= operands.instant(after):
        raise ValueError(f"{value} is no period: it ends before it begins")
    return Period(first, after)


def conditions(op: Op, value: object) -> list[tuple[Op, object]]:
    """Return the comparisons with single instants that together mean one with a period, or with two bounds.

    Args:
        op: ``=``, ``between`` or a comparison.
        value: A period, an instant, or for ``between`` a pair of them.

    Returns:
        Comparisons of which all must hold for one value; the row's own if there is nothing to split.

    Raises:
        ValueError: A period ends before it begins, or there are not two bounds.

    >>> conditions(Op.GT, "2026-11-23T00:00:00Z/2026-11-24T00:00:00Z")
    [(<Operator.GE: '>='>, '2026-11-24T00:00:00Z')]
    """
    if op is Op.BETWEEN:
        low, high = operands.bounds(value)
        return [*conditions(Op.GE, low), *conditions(Op.LE, high)]
    if (span := period(value)) is None:
        return [(op, value)]
    begins, ends = (Op.GE, span.first), (Op.LT, span.after)
    parts = {
        Op.EQ: (begins, ends), Op.GE: (begins,), Op.LE: (ends,), Op.GT: ((Op.GE, span.after),),
        Op.LT: ((Op.LT, span.first),),
    }  # fmt: skip
    return [*parts[op]]
