"""The columns of a metric, and what a filter on them becomes: label matchers, a span of time, tests here."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import ceil, floor, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dragoman_api import (
    Column,
    ColumnKind,
    CompiledFilter,
    Description,
    Explanation,
    RawQuery,
    Role,
    TimeColumn,
    Written,
)
from dragoman_api.columns import MAX_COLUMNS, NULLS, ORDER
from dragoman_api.columns import Operator as Op
from dragoman_api.filters import Filter
from dragoman_api.json_text import decode, encode
from dragoman_api.kit.filter_rows import NEGATED, compile_rows, holds, spelled
from dragoman_api.kit.operands import bounds, conditions, floating, instant, several, single, text
from dragoman_api.kit.page_columns import UNKNOWN, columns_cut
from dragoman_api.kit.row_evaluation import ValueKind, row_test
from dragoman_api.kit.views import digest
from dragoman_api.remedies import Remedy, RemedyKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dragoman_api import FilterRequest

WINDOW = 3_600
"""Seconds before now that are read if nobody names a time (M5)."""

TIME, VALUE, SERIES = "timestamp", "value", "series"
_EQUAL = (Op.EQ, Op.NE, Op.IN, Op.NOT_IN)
_LABEL = (*_EQUAL, Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS, Op.ENDS, Op.REGEX, *NULLS)
_EDIT = "the server stores what it scrapes, and its API changes no sample"
_CLASSIC = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Sample(NamedTuple):
    """One row: milliseconds since 1970, the text of its series, the labels, and a number or a histogram's JSON."""

    at: int
    series: str
    labels: dict[str, str]
    value: Any


class Query(msgspec.Struct, frozen=True):
    """The driver's form of a filter: matchers for the server, bounds in milliseconds, tests that are evaluated here."""

    matchers: list[str] = []
    since: int = 0
    until: int | None = None
    tests: list[Filter] = []
    match: str = "all"


class View(msgspec.Struct, frozen=True):
    """What was read of a metric, or of a group of metrics.

    Attributes:
        name: The object's name.
        matcher: The matcher of its names.
        labels: All label names, by the names of their columns (M7).
        columns: The columns, by name.
        quotes: The server takes a label name in quotation marks.
    """

    name: str
    matcher: str
    labels: dict[str, str]
    columns: dict[str, Column]
    quotes: bool

    @property
    def revision(self) -> str:
        """What a filter depends on."""
        return digest(sorted(self.labels))

    def spell(self, label: str) -> str:
        """Return the name of a label as a query spells it; empty if it cannot (M11)."""
        return label if _CLASSIC.fullmatch(label) else quote(label) if self.quotes else ""

    def describe(self) -> Description:
        """Describe the object."""
        columns, time = [*self.columns.values()], TimeColumn(column=TIME, window=WINDOW)
        return Description(object=self.name, columns=columns, notes=columns_cut(len(self.labels) + 3), time=time)


def column_names(labels: Iterable[str]) -> dict[str, str]:
    """Return the labels by the names of their columns, sorted: one that is called like another column has a prefix.

    >>> column_names(["le", "value"])
    {'le': 'le', 'label:value': 'value'}
    """
    return {f"label:{label}" if label in (TIME, VALUE, SERIES) or label.startswith("label:") else label: label
            for label in sorted(labels)}  # fmt: skip


def view(name: str, matcher: str, labels: Iterable[str], *, quotes: bool) -> View:
    """Build the view of an object: its time and value, the labels, and last the whole series, a part of the key."""
    names = column_names(labels)
    columns = [
        _column(TIME, "timestamp", ColumnKind.TIMESTAMP, (*_EQUAL, *ORDER), role=Role.KEY),
        _column(VALUE, "sample", ColumnKind.FLOAT, (*_EQUAL, *ORDER)),
        *(_column(column, "label", ColumnKind.TEXT, _LABEL, path=("labels", label))
          for column, label in islice(names.items(), MAX_COLUMNS - 3)),
    ]  # fmt: skip
    series = _column(SERIES, "series", ColumnKind.TEXT, (), role=Role.KEY, filter="filter by the labels of the series")
    return View(name, matcher, names, {c.name: c for c in [*columns, series]}, quotes)


def _column(name: str, server_type: str, kind: ColumnKind, operators: tuple[Op, ...], *, role: Role = Role.NONE,
            path: tuple[str, ...] = (), **reasons: str) -> Column:  # fmt: skip
    reasons |= {"edit": _EDIT}
    return Column(name=name, type=server_type, kind=kind, role=role, written=Written.NEVER, sortable=True,
                  operators=operators, reasons=reasons, path=path or (name,))  # fmt: skip


def quote(value: str) -> str:
    r"""Write a text as PromQL and MetricsQL read it.

    >>> print(quote('a"b\\'))
    "a\"b\\"
    """
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def pattern(value: str) -> str:
    """Escape a text for a regular expression of Go (RE2), which is always anchored."""
    return _SPECIAL.sub(r"\\\g<0>", value)


def instant_text(at: int) -> str:
    """Return milliseconds since 1970 as RFC 3339 in UTC. Raises OverflowError outside of the years 1 to 9999."""
    return (_EPOCH + timedelta(milliseconds=at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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


def stored(sample: Sample, column: str, view: View) -> object:
    """Return the stored value of a column; None for a label that a series lacks."""
    if column == VALUE:
        return sample.value
    return instant_text(sample.at) if column == TIME else sample.labels.get(view.labels[column])


def order(column: str, view: View) -> Callable[[Sample], Any]:
    """Return the sort key of a column: texts by code points; None, which comes last, for NaN and what has no value."""
    if column == TIME:
        return lambda sample: sample.at
    if column == SERIES:
        return lambda sample: sample.series
    if column == VALUE:
        return lambda sample: None if isinstance(sample.value, str) or isnan(sample.value) else sample.value
    label = view.labels[column]
    return lambda sample: sample.labels.get(label)
