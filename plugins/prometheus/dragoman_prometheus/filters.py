"""Filter rows as label matchers of a selector, a span of time, and tests that are evaluated here."""

from __future__ import annotations

from math import ceil, floor, isnan
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import (
    CompiledFilter,
    Explanation,
    RawQuery,
)
from dragoman_api.columns import NULLS, ORDER
from dragoman_api.columns import Operator as Op
from dragoman_api.filters import Filter
from dragoman_api.json_text import decode, encode
from dragoman_api.kit.filter_rows import NEGATED, compile_rows, holds, spelled
from dragoman_api.kit.operands import bounds, conditions, floating, instant, several, single, text
from dragoman_api.kit.page_columns import UNKNOWN
from dragoman_api.kit.row_evaluation import ValueKind, row_test
from dragoman_api.remedies import Remedy, RemedyKind

from .columns import TIME, VALUE, Sample, View, pattern, quote, stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_api import FilterRequest


class Query(msgspec.Struct, frozen=True):
    """The driver's form of a filter: matchers for the server, bounds in milliseconds, tests that are evaluated here."""

    matchers: list[str] = []
    since: int = 0
    until: int | None = None
    tests: list[Filter] = []
    match: str = "all"


def compile_filter(request: FilterRequest, view: View) -> CompiledFilter:
    """Compile filter rows (M8 to M11). With ``any``, all of them are evaluated here: matchers only hold together."""
    united = request.match == "any" and len(request.rows) > 1

    def compile_row(number: int, row: Filter | RawQuery) -> tuple[Query, Explanation]:
        query, clause = _compile(row, view, united=united)
        folds = isinstance(row, Filter) and row.case is False and not query.tests
        reasons = ["letters compare by the server's simple case folding"] if folds else []
        return query, Explanation(row=number, clause=clause, exact=not reasons, approximations=reasons)

    hint = Remedy(RemedyKind.DESCRIBE_OBJECT, {"object": view.name})
    parts = compile_rows(request, compile_row, hint=lambda _: hint)
    queries = [query for query, _ in parts]
    query = Query(
        [matcher for query in queries for matcher in query.matchers],
        max(query.since for query in queries),
        min((query.until for query in queries if query.until is not None), default=None),
        [test for query in queries for test in query.tests],
        request.match,
    )
    rows = [explanation for _, explanation in parts]
    return CompiledFilter(object=view.name, body=encode(query), rows=rows, revision=view.revision)


def query_of_row(row_id: object, view: View) -> Query | None:
    """Return the query of a row: its time, and what a query can spell of its series. None if that is no id."""
    try:
        at, labels = msgspec.convert(row_id, tuple[str, str])
        first, names = int(instant(at) * 1000), decode(labels, dict[str, str])
    except ValueError:
        return None
    matchers = [f"{name}={quote(value)}" for label, value in names.items() if (name := view.spell(label))]
    return Query(matchers, first, first + 1)


def _compile(row: Filter | RawQuery, view: View, *, united: bool) -> tuple[Query, str]:
    """Compile one filter row. Raises ValueError with the reason why it cannot run."""
    if isinstance(row, RawQuery):
        raise ValueError("there is no Raw row here: write PromQL in the console")  # noqa: TRY004
    if (column := view.columns.get(row.column)) is None:
        raise ValueError(UNKNOWN)
    if row.op not in column.operators:
        raise ValueError(column.reasons.get("filter") or f"a column of type {column.type} has no '{row.op}'")
    row = _with_texts(row)
    label = view.labels.get(row.column)
    if label is not None and not united and (name := view.spell(label)):
        matcher = _matcher(name, row)
        return Query([matcher]), f"{{{matcher}}}"
    if row.op is Op.REGEX:
        reason = "a pattern runs on the server only, and there all rows of a filter must hold"
        raise ValueError(reason if united else f"this server takes no label name such as {label!r} in a query")
    _test(row)
    if row.column == TIME and not united and row.op in (Op.EQ, *ORDER):
        return _span(row)
    return Query(tests=[row]), f"evaluated here: {spelled(row)}"


def _with_texts(row: Filter) -> Filter:
    """Return a filter row with its operands as texts, and with its letter case."""
    read: Callable[[object], str] = {VALUE: _number, TIME: text}.get(row.column, _label)
    value: Any = None
    if row.op in (Op.IN, Op.NOT_IN):
        value = [*map(read, several(row.value))]
    elif row.op is Op.BETWEEN:
        value = [*map(read, bounds(row.value))]
    elif row.op not in NULLS:
        value = read(row.value)
    return Filter(row.column, row.op, value, case=row.case is not False)


def _number(value: object) -> str:
    word = str(single(value)).strip().lower()
    return word if word in ("nan", "inf", "+inf", "-inf") else repr(floating(value))


def _label(value: object) -> str:
    if not (label := text(single(value))):
        raise ValueError("no label has an empty text: an empty one is none, so use 'null'")
    return label


def _matcher(label: str, row: Filter) -> str:
    """Write a label matcher. A positive one never matches a series without the label, a negated one does (M9)."""
    op, negation = NEGATED.get(row.op, row.op), "!" if row.op in NEGATED else ""
    if op in NULLS:
        return f'{label}{"=" if op is Op.NULL else "!="}""'
    values = row.value if isinstance(row.value, list) else [row.value]
    if op is Op.EQ and row.case:
        return f"{label}{negation}={quote(str(row.value))}"
    expression = "|".join(str(value) if op is Op.REGEX else pattern(str(value)) for value in values)
    expression = (".*" if op in (Op.CONTAINS, Op.ENDS) else "") + expression
    expression += ".*" if op in (Op.CONTAINS, Op.STARTS) else ""
    expression = f"(?{'' if row.case else 'i'}s:{expression})"  # a dot is any letter
    return f"{label}{negation or '='}~{quote(expression)}" + (f',{label}!=""' if op is Op.REGEX else "")


def _span(row: Filter) -> tuple[Query, str]:
    """Return a filter row on the time as whole milliseconds, of which the server's times consist."""
    since, until = 0, None
    for op, value in conditions(row.op, row.value):
        at = instant(value) * 1000
        first, after = ceil(at), floor(at) + 1
        if op in (Op.EQ, Op.GE, Op.GT):
            since = after if op is Op.GT else first
        if op in (Op.EQ, Op.LE, Op.LT):
            until = first if op is Op.LT else after
    clause = f"{since / 1000:.3f} <= time" + (f" < {until / 1000:.3f}" if until is not None else "")
    return Query(since=since, until=until), clause


def predicate(query: Query, view: View) -> Callable[[Sample], bool]:
    """Return the function that evaluates the filter rows that are left to the driver."""
    tests = [(row.column, _test(row)) for row in query.tests]
    join = any if query.match == "any" else all
    return lambda sample: join(test(stored(sample, column, view)) for column, test in tests)


def _test(row: Filter) -> Callable[[object], bool]:
    """Return the test of a stored value. Raises ValueError if an operand is none of its column."""
    if row.column != VALUE:
        return row_test(row, ValueKind.TIMESTAMP if row.column == TIME else ValueKind.TEXT)
    op = NEGATED.get(row.op, row.op)
    numbers = [float(str(value)) for value in (row.value if isinstance(row.value, list) else [row.value])]
    positive = Filter(VALUE, op, [*numbers] if isinstance(row.value, list) else numbers[0])
    finds_nan = op in (Op.EQ, Op.IN) and any(map(isnan, numbers))  # NaN equals itself here

    def test(value: object) -> bool:
        number = isinstance(value, float) and (bool(holds(positive, value)) or (finds_nan and isnan(value)))
        return number is (op is row.op)  # a histogram is no number

    return test
