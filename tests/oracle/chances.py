"""Random calls: columns, operators and operands as they come, edges more often than not."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dragoman_api import Filter, Sort, TimeRange
from dragoman_api import Operator as Op
from dragoman_api.exports import ExportForm
from dragoman_api.json_text import exact_number

from .calls import KINDS, Call
from .columns import LISTS, PATTERNS, VALUELESS, Column, MisfitError, Place, Text
from .documents import Digits, parsed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from .calls import Stored


TIMES = ("@timestamp", "timestamp")
"""Names of columns that a driver may take for the time column."""

INSTANTS = (
    "0999-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "2024-01-05T00:00:00Z",
    "2024-01-05T10:00:00Z", "2024-01-05T10:00:00.123Z", "2024-01-05T10:00:00.124Z", "2024-01-31T23:59:59.999Z",
    "2024-02-01T00:00:00Z", "2024-02-29T10:30:00Z", "9999-12-31T23:59:59Z",
)  # fmt: skip
FINE = ("2024-01-05T10:00:00.123456788Z", "2024-01-05T10:00:00.123456789Z", "2024-02-01T00:00:00.000000001Z")
"""Bounds of ranges of time; the finer ones are for columns with nanoseconds."""

CIRCLES = (
    "52.5,4.75,10m", "52.5,4.75,100km", "52.52,13.405,1km", "52.52,13.405,5km", "0,180,100km", "90,0,10km",
    "-10,0,20000km", "0,0,1m", "1,1,157249m", "-33.9,151.2,30km",
)  # fmt: skip
BOXES = (
    "52,13,53,14", "52.52,13.405,52.52,13.405", "-90,-180,90,180", "-10,170,10,-170", "-10,-180,10,-170", "-11,-1,-9,1",
    "0,0,0,0", "53,13,52,14",
)  # fmt: skip


def call(
    chance: Random,
    name: str,
    columns: dict[str, Column],
    rows: Sequence[Stored],
    *,
    new: str,
    into: str,
    parts: Sequence[str],
    tenant: str | None = None,
) -> Call:
    """Make a random call.

    Args:
        chance: Of its seed.
        name: The object it is made for.
        columns: The columns that the name covers.
        rows: All rows, for cells and changes.
        new: The id of a new row.
        into: The object that gets it.
        parts: Parts of texts.
        tenant: The tenant, where there are any.
    """
    kind = chance.choices(list(KINDS), weights=list(KINDS.values()))[0]
    plain = [each for each in rows if not each.odd]
    if kind in ("cell", "update", "delete") and plain:
        one = chance.choice(plain)
        where: dict[str, Any] = {"kind": kind, "object": one.object, "id": one.id, "tenant": one.tenant}
        if kind == "cell":
            return Call(column=chance.choice([*one.columns]), **where)
        return Call(values=values(chance, one.columns) if kind == "update" else {}, **where)
    if kind == "insert" or not rows:
        return Call(kind="insert", object=into, id=new, values=values(chance, columns), tenant=tenant)
    several = chance.choices((0, 1, 2, 3), weights=(2, 10, 4, 1))[0]
    filters = tuple(row(chance, columns, parts) for _ in range(several))
    common: dict[str, Any] = {
        "object": name, "rows": filters, "match": chance.choice(("all", "any")), "tenant": tenant,
        "time": time(chance, columns),
    }  # fmt: skip
    if kind == "summary":
        most = chance.choice((0, 1, 3, 10, 100)), chance.choice((0, 1, 5, 20))
        return Call(kind=kind, column=chance.choice([*columns]), most=most, **common)
    if kind == "count":
        return Call(kind=kind, **common)
    if kind == "export":
        return Call(kind=kind, form=chance.choice(list(ExportForm)), **common)
    count = chance.choices((0, 1, 2), weights=(3, 6, 3))[0]
    sort = tuple(Sort(each, chance.random() < 0.5) for each in chance.sample([*columns], min(count, len(columns))))
    offset = chance.choice((0, 0, 0, 0, 3, 17))
    return Call(
        kind=kind, sort=sort, limit=chance.choices((4, 9, 30, 1000), weights=(1, 2, 3, 6))[0], offset=offset, **common
    )


def time(chance: Random, columns: dict[str, Column]) -> TimeRange | None:
    """Make a range of time, if a column may be the time column."""
    names = [each for each in TIMES if each in columns]
    if not names or chance.random() < 0.4:
        return None
    known = (*INSTANTS, *FINE) if columns[names[0]].type == "date_nanos" else INSTANTS
    since, until = (chance.choice((None, *known)) for _ in range(2))
    if since is not None and until is not None and chance.random() < 0.8:
        since, until = sorted((since, until))
    return TimeRange(column=names[0], since=since, until=until)


def row(chance: Random, columns: dict[str, Column], parts: Sequence[str]) -> Filter:
    """Make a random filter row."""
    column = columns[chance.choice([*columns])]
    usual = [Op.EQ, Op.NE, Op.GT, Op.GE, Op.LT, Op.LE, Op.IN, Op.NOT_IN, Op.BETWEEN, Op.NULL, Op.NOT_NULL]
    if isinstance(column, Text):
        usual += [Op.EMPTY, Op.NOT_EMPTY]
        usual = list(PATTERNS) if chance.random() < 0.4 else usual
    if isinstance(column, Place):
        usual = [Op.NEAR, Op.NEAR, Op.IN_BOX, Op.IN_BOX, Op.NULL, Op.NOT_NULL]
    op = chance.choice(usual if chance.random() < 0.95 else list(Op))
    case = chance.choice((None, None, None, True, False))
    group = "1" if column.nested and chance.random() < 0.5 else None
    if op in VALUELESS:
        return Filter(column.name, op, group=group)
    if op in (Op.NEAR, Op.IN_BOX):
        return Filter(column.name, op, chance.choice(CIRCLES if op is Op.NEAR else BOXES), group=group)
    if op in LISTS:
        value: Any = chance.sample(list(column.operands), min(len(column.operands), chance.randint(1, 4)))
    elif op is Op.BETWEEN:
        value = chance.choices(column.operands, k=2)
        if chance.random() < 0.8:
            with suppress(MisfitError):
                value.sort(key=lambda each: column.span(each)[0])
    elif op in PATTERNS and chance.random() < 0.6:
        value = chance.choice(parts)
    else:
        value = chance.choice(column.operands)
    return Filter(column.name, op, value, group=group, case=case if isinstance(column, Text) else None)


def values(chance: Random, columns: dict[str, Column]) -> dict[str, Any]:
    """Make values of a change: what is given, and what must be stored."""
    able = [each for each in columns.values() if each.editable]
    made = {}
    for column in chance.sample(able, min(len(able), chance.randint(1, 2))):
        many = column.type.endswith("[]")
        text = (
            "[" + ",".join(chance.choices(column.stored, k=chance.randint(0, 3))) + "]"
            if many
            else chance.choice(column.stored)
        )
        stored = parsed(text)
        made[column.name] = (given(stored), stored)
    return made


def given(stored: Any) -> Any:
    """Return a stored value as a person's program would."""
    if isinstance(stored, list):
        return list(map(given, stored))
    if not isinstance(stored, Digits):
        return stored
    return int(stored) if re.fullmatch(r"-?\d+", stored) and stored != "-0" else exact_number(str(stored))


def value(chance: Random, column: Column) -> str:
    """Make the JSON text of a value that a document holds."""
    way = chance.random()
    if way < 0.06:
        return "null"
    if way < 0.09:
        return "[]"
    if way < 0.16:
        several = chance.choices([*column.stored, *(["null"] if column.gaps else [])], k=chance.randint(1, 3))
        return "[" + ",".join(several) + "]"
    return chance.choice(column.stored)
