"""What a filter and a sort plainly mean, in Python: the measure for every page of the driver."""

from __future__ import annotations

import random
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from drivers.weaviate.rig import key

from dragoman_api import Filter, Sort
from dragoman_api import Operator as Op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TYPES: dict[str, Any] = {
    "title": "text",
    "code": {"dataType": ["text"], "tokenization": "field"},
    "spaced": {"dataType": ["text"], "tokenization": "whitespace"},
    "i": "int",
    "ranged": {"dataType": ["int"], "indexFilterable": False, "indexRangeFilters": True},
    "n": "number",
    "b": "boolean",
    "d": "date",
    "u": "uuid",
    "tags": "text[]",
    "sizes": "int[]",
    "o": {"dataType": ["object"], "nestedProperties": [{"name": "k", "dataType": ["int"]}]},
}
WORDS = ["tea", "Time", "war", "peace", "Éclair", "naïve", "x1", "sea", "日本", "tees"]
CODES = ["A-1", "a-1", "B 2", " pad ", 'q"uote', "back\\slash", "two\nlines", "tab\there", "emoji😀", "", "*", "A-10"]
DATES = ["2024-01-05T00:00:00Z", "2024-01-31T23:59:59.5Z", "2023-12-31T12:00:00Z", "2024-02-01T01:00:00+02:00"]
UUIDS = [f"{at}a000000-1111-4222-8333-444444444444" for at in range(6)]
INTS = [-(2**31) - 1, -7, 0, 1, 2, 3, 99, 2**31 - 1, 2**31, 2**40, 2**53]
NUMBERS = [-1.5, 0.0, 0.1, 1e-7, 2.0, 1e21, 3.25]


def objects(count: int, seed: int = 7) -> list[dict[str, Any]]:
    """Make objects with ties, gaps, empty values and large integers."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        row: dict[str, Any] = {
            "title": chance.choice([" ".join(chance.choices(WORDS, k=chance.randint(1, 3))), "", "tea-time, war!"]),
            "code": chance.choice(CODES),
            "spaced": " ".join(chance.choices([*WORDS, "@", "a@b"], k=chance.randint(1, 2))),
            "i": chance.choice([*INTS, number]),
            "ranged": chance.randint(-5, 5),
            "n": chance.choice(NUMBERS),
            "b": chance.random() < 0.5,
            "d": chance.choice(DATES),
            "u": chance.choice(UUIDS),
            "tags": chance.choices(WORDS, k=chance.randint(0, 3)),
            "sizes": chance.choices(INTS, k=chance.randint(0, 3)),
            "o": {"k": chance.choice(INTS)},
        }
        made.append({"id": key(number)} | {name: value for name, value in row.items() if chance.random() < 0.85})
    return made


def tokens(column: str, text: str) -> list[str]:
    if column == "code":
        return [text.strip()]
    if column == "spaced":
        return text.split()
    return [word.lower() for word in re.split(r"[\W_]+", text) if word]


def flat(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def equal(column: str, cells: list[Any], value: Any) -> bool:
    if column in ("title", "code", "spaced", "tags"):
        held = {token for cell in cells for token in tokens(column, cell)}
        return set(tokens(column, str(value))) <= held
    if column == "d":
        return any(moment(cell) == moment(value) for cell in cells)
    if column in ("uuid", "u"):
        return str(value).lower() in cells
    return any(cell == value for cell in cells)


def like(column: str, cells: list[Any], pattern: str) -> bool:
    """Compare a pattern with each token; a pattern is taken apart as a text is, and keeps its wildcards."""
    held = [token for cell in cells for token in tokens(column, cell)]
    if column == "code":
        parts = [pattern.strip()]
    elif column == "spaced":
        parts = pattern.split()
    else:
        parts = [part.lower() for part in re.split(r"[^\w*?]+|_", pattern) if part]
    ways = [re.escape(part).replace(r"\*", ".*").replace(r"\?", ".") for part in parts]
    return all(any(re.fullmatch(way, token) for token in held) for way in ways)


COMPARE: dict[Op, Callable[[Any, Any], bool]] = {
    Op.GT: lambda a, b: a > b, Op.GE: lambda a, b: a >= b, Op.LT: lambda a, b: a < b, Op.LE: lambda a, b: a <= b,
}  # fmt: skip
LIKE = {Op.CONTAINS: "*{}*", Op.NOT_CONTAINS: "*{}*", Op.STARTS: "{}*", Op.ENDS: "*{}"}


def compared(column: str, op: Op, cells: list[Any], value: Any) -> bool:
    if column == "d":
        cells, value = [moment(cell) for cell in cells], moment(value)
    return any(COMPARE[op](cell, value) for cell in cells)


def holds(row: Filter, item: dict[str, Any]) -> bool:
    """Tell whether an object satisfies one filter row."""
    column, op, value = row.column, row.op, row.value
    cells = flat(item["id"] if column == "uuid" else item.get(column))
    if op in (Op.NULL, Op.NOT_NULL, Op.EMPTY, Op.NOT_EMPTY):  # with the index of nulls, empty is null and null empty
        empty = not any(cell != "" for cell in cells) if op in (Op.NULL, Op.NOT_NULL) else not any(map(str, cells))
        return empty is (op in (Op.NULL, Op.EMPTY))
    if op in LIKE:
        return like(column, cells, LIKE[op].format(value)) is not (op is Op.NOT_CONTAINS)
    if op is Op.BETWEEN:
        return compared(column, Op.GE, cells, value[0]) and compared(column, Op.LE, cells, value[1])
    if op in (Op.IN, Op.NOT_IN):
        return any(equal(column, cells, each) for each in value) is (op is Op.IN)
    if op is Op.NE and column in ("title", "spaced", "tags"):  # none of the value's words, not just not all of them
        held = {token for cell in cells for token in tokens(column, cell)}
        return not held & set(tokens(column, value))
    if op is Op.NE:
        return not equal(column, cells, value)
    return equal(column, cells, value) if op is Op.EQ else compared(column, op, cells, value)


def ordered(items: Sequence[dict[str, Any]], sort: Sequence[Sort]) -> list[dict[str, Any]]:
    """Sort as asked: nulls lowest, letter case aside, and by uuid where all is equal."""
    rows = sorted(items, key=lambda item: item["id"])
    for each in reversed(sort):
        rows.sort(key=lambda item, column=each.column: _rank(column, item), reverse=each.descending)
    return rows


def _rank(column: str, item: dict[str, Any]) -> tuple[bool, Any]:
    value = item["id"] if column == "uuid" else item.get(column)
    if value is None:
        return False, 0
    if column == "d":
        return True, moment(value).timestamp()
    return True, value.lower() if isinstance(value, str) else value
