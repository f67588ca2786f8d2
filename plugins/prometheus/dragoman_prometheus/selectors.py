"""The columns of a metric, and what a filter on them becomes: label matchers, a span of time, tests here."""

from __future__ import annotations

import re
from itertools import islice
from math import ceil, floor, inf, isnan
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
from dragoman_api.json_text import decode
from dragoman_api.kit.filter_rows import NEGATED, compile_rows, spelled
from dragoman_api.kit.operands import bounds, conditions, floating, instant, several, single, text
from dragoman_api.kit.page_columns import UNKNOWN, columns_cut
from dragoman_api.kit.views import digest
from dragoman_api.remedies import Remedy, RemedyKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dragoman_api import Filter, FilterRequest

WINDOW = 3_600
"""Seconds before now that are read if nobody names a time (M5)."""

TIME, VALUE, SERIES = "timestamp", "value", "series"
_EQUAL = (Op.EQ, Op.NE, Op.IN, Op.NOT_IN)
_LABEL = (*_EQUAL, Op.CONTAINS, Op.NOT_CONTAINS, Op.STARTS, Op.ENDS, Op.REGEX, *NULLS)
_EDIT = "the server stores what it scrapes, and its API changes no sample"
_CLASSIC = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_NOT_FINITE = {"nan": "NaN", "inf": "+Inf", "+inf": "+Inf", "-inf": "-Inf"}


class Sample(NamedTuple):
    """One row: milliseconds since 1970, the text of its series, the labels, and a number or a histogram's JSON."""

    at: int
    series: str
    labels: dict[str, str]
    value: Any


class Test(msgspec.Struct, frozen=True):
    """A filter row that is evaluated here: comparisons of which all must hold, in one of several alternatives."""

    column: str
    negated: bool
    alternatives: list[list[tuple[Op, int | str | None]]]
    fold: bool = False


class Query(msgspec.Struct, frozen=True):
    """The driver's form of a filter: matchers for the server, bounds in milliseconds, tests that are evaluated here."""

    matchers: list[str] = []
    since: int = 0
    until: int | None = None
    tests: list[Test] = []
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


def compile_filter(request: FilterRequest, view: View) -> CompiledFilter:
    """Compile filter rows (M8 to M11). With ``any``, all of them are evaluated here: matchers only hold together."""
    united = request.match == "any" and len(request.rows) > 1

    def compile_row(number: int, row: Filter | RawQuery) -> tuple[Query, Explanation]:
        query, clause = _compile(row, view, united=united)
        folds = not isinstance(row, RawQuery) and row.case is False
        reasons = ["letters compare by the server's simple case folding"] if folds and not query.tests else []
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
    body = msgspec.json.encode(query).decode()
    return CompiledFilter(object=view.name, body=body, rows=[row for _, row in parts], revision=view.revision)


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
    test = _test(row, column.name)
    if column.name == TIME and not united and not test.negated and len(test.alternatives) == 1:
        [together] = test.alternatives
        since = max((int(at or 0) for op, at in together if op is Op.GE), default=0)
        until = min((int(at or 0) for op, at in together if op is Op.LT), default=None)
        clause = f"{since / 1000:.3f} <= time" + (f" < {until / 1000:.3f}" if until is not None else "")
        return Query(since=since, until=until), clause
    if (label := view.labels.get(column.name)) is not None and not united:
        if name := view.spell(label):
            matcher = _matcher(name, row, test)
            return Query([matcher]), f"{{{matcher}}}"
        if row.op is Op.REGEX:
            raise ValueError(f"this server takes no label name such as {label!r} in a query")
    if row.op is Op.REGEX:
        raise ValueError("a pattern runs on the server only, and there all rows of a filter must hold")
    return Query(tests=[test]), f"evaluated here: {spelled(row)}"


def _matcher(label: str, row: Filter, test: Test) -> str:
    """Write a label matcher. A positive one never matches a series without the label, a negated one does (M9)."""
    op = NEGATED.get(row.op, row.op)
    if op in NULLS:
        return f'{label}{"=" if op is Op.NULL else "!="}""'
    values = [str(value) for [(_, value)] in test.alternatives]
    if op is Op.EQ and not test.fold:
        return f"{label}{'!=' if test.negated else '='}{quote(values[0])}"
    before, after = (".*" if op in (Op.CONTAINS, Op.ENDS) else ""), (".*" if op in (Op.CONTAINS, Op.STARTS) else "")
    inner = values[0] if op is Op.REGEX else before + "|".join(map(pattern, values)) + after
    expression = (
        inner if op is Op.IN and not test.fold else f"(?{'i' if test.fold else ''}s:{inner})"
    )  # a dot is any letter
    return f"{label}{'!~' if test.negated else '=~'}{quote(expression)}" + (f',{label}!=""' if op is Op.REGEX else "")


def _test(row: Filter, column: str) -> Test:
    """Read the operands of a filter row. Raises ValueError with a reason."""
    op = NEGATED.get(row.op, row.op)
    if op in NULLS:
        return Test(column, False, [[(op, None)]])  # noqa: FBT003
    values = several(row.value) if op is Op.IN else [row.value]
    single_op = Op.EQ if op is Op.IN else op
    if column == TIME:
        alternatives = [[at for part in conditions(single_op, v) for at in _instants(*part)] for v in values]
    else:
        read = _number if column == VALUE else _label
        alternatives = [
            [(at, read(v)) for at, v in zip((Op.GE, Op.LE), bounds(value), strict=True)]
            if op is Op.BETWEEN
            else [(single_op, read(value))] for value in values
        ]  # fmt: skip
    return Test(column, row.op in NEGATED, alternatives, fold=column not in (TIME, VALUE) and row.case is False)


def _instants(op: Op, value: object) -> list[tuple[Op, int | str | None]]:
    """Return comparisons with whole milliseconds, of which the server's times consist."""
    at = instant(value) * 1000
    lower = (Op.GE, floor(at) + 1 if op is Op.GT else ceil(at))
    upper = (Op.LT, floor(at) + 1 if op in (Op.LE, Op.EQ) else ceil(at))
    return [lower, upper] if op is Op.EQ else [lower] if op in (Op.GT, Op.GE) else [upper]


def _number(value: object) -> str:
    special = _NOT_FINITE.get(str(value).strip().lower())
    return special or repr(floating(single(value)))


def _label(value: object) -> str:
    if not (read := text(single(value))):
        raise ValueError("no label has an empty text: an empty one is none, so use 'null'")
    return read


_COMPARE: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: lambda a, b: a == b, Op.GT: lambda a, b: a > b, Op.GE: lambda a, b: a >= b, Op.LT: lambda a, b: a < b,
    Op.LE: lambda a, b: a <= b, Op.CONTAINS: lambda a, b: b in a, Op.STARTS: lambda a, b: a.startswith(b),
    Op.ENDS: lambda a, b: a.endswith(b),
}  # fmt: skip


def predicate(query: Query, view: View) -> Callable[[Sample], bool]:
    """Return the function that evaluates the tests of a filter."""
    tests = [_predicate(test, view) for test in query.tests]
    join = any if query.match == "any" else all
    return lambda row: join(test(row) for test in tests)


def _predicate(test: Test, view: View) -> Callable[[Sample], bool]:
    label = view.labels.get(test.column)
    change: Callable[[Any], str] = str.casefold if test.fold else str
    alternatives = [
        [(op, change(at) if label is not None else float(at) if isinstance(at, str) else at) for op, at in together]
        for together in test.alternatives
    ]

    def holds(row: Sample) -> bool:
        cell: Any = row.at if test.column == TIME else row.value if label is None else row.labels.get(label)
        cell = change(cell) if label is not None and cell is not None else cell
        return any(all(_holds(op, cell, at) for op, at in together) for together in alternatives) is not test.negated

    return holds


def _holds(op: Op, cell: Any, value: Any) -> bool:
    if op in NULLS:
        return (cell is None) is (op is Op.NULL)
    if cell is None or isinstance(cell, str) is not isinstance(value, str):  # a histogram is no number
        return False
    return _COMPARE[op](cell, value) or (op is Op.EQ and cell != cell and value != value)


def order(column: str, view: View) -> Callable[[Sample], tuple[int, Any]]:
    """Return the sort key of a column: texts by code points, NaN above all numbers; what has no value comes last."""
    if column == TIME:
        return lambda row: (0, row.at)
    if column == SERIES:
        return lambda row: (0, row.series)
    label = view.labels.get(column)
    if label is not None:
        return lambda row: (0, row.labels[label]) if label in row.labels else (1, "")
    return lambda row: (2, 0.0) if isinstance(row.value, str) else (1, inf) if isnan(row.value) else (0, row.value)
