"""Turns filter rows into a query: each runs as asked, or is refused with a reason (E24, E34-E36).

A range of time is a clause, exact to the resolution of its column. Measured on 7.10.2, 7.17.29, 8.19.21 and 9.5.3: a
`date` is cut off to whole milliseconds when it is stored, and so is a bound; a `date_nanos` keeps nine digits, and a
bound before 1970 or after 2262 fails the search.

A sample of stored rows shows whether they hold values by which an index differs from its documents. One search per
mapping reads the numbers and booleans of the first rows of each shard. Rows of which the server left out a value
(`_ignored`) score more than the others, so that it finds them wherever they are. Measured on 8.19.21 with 150,000 rows
in 3 shards: 4 ms on the server.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import CompiledFilter, Explanation, Filter, FilterRequest, RawQuery
from dragoman_api import Operator as Op
from dragoman_api.errors import QueryError
from dragoman_api.json_text import encode
from dragoman_api.kit import operands
from dragoman_api.kit.filter_rows import compile_rows
from dragoman_api.kit.page_columns import UNKNOWN
from dragoman_api.remedies import Argument, Remedy, RemedyKind
from dragoman_api.wording import as_typed
from dragoman_querydsl.columns.exactness import Differences
from dragoman_querydsl.columns.field_types import BOUNDS, NEGATED, Family, Field, Look, Sample, StoredValues
from dragoman_querydsl.protocol import target
from dragoman_querydsl.search import READ, search

from .clauses import Clause, clause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dragoman_api import TimeRange
    from dragoman_api.kit.exchanges import Exchange
    from dragoman_querydsl.columns.grid_columns import View
    from dragoman_querydsl.protocol import Dialect


class FilterBody(msgspec.Struct, frozen=True):
    """The driver's own form of a compiled filter."""

    query: Raw
    raw: bool = False


class _Row(msgspec.Struct):
    """One translated filter row; its negation is kept apart, since nested wrappers go between the two."""

    number: int
    clause: Clause
    negated: bool = False
    field: Field | None = None
    group: str | None = None
    remarks: Differences = msgspec.field(default_factory=Differences)
    mates: list[int] = msgspec.field(default_factory=list)

    @property
    def path(self) -> tuple[str, ...]:
        return self.field.nested if self.field is not None else ()

    @property
    def label(self) -> str:
        clause = self.clause
        while "bool" in clause or "function_score" in clause:  # several values, or a clause and what narrows it
            inner = clause.get("bool") or {"filter": [clause["function_score"]["query"]]}
            clause = (inner.get("should") or inner["filter"])[0]
        kind = next(iter(clause))
        place = f" {self.field.field}" if self.field is not None else ""
        if self.field is not None and kind not in ("exists", "match_phrase"):
            place = f" {self.field.whole}"
        nested = f"nested({self.path[-1]}): " if self.path else ""
        return f"{nested}{'not ' if self.negated else ''}{kind}{place}"


def compile_filter(request: FilterRequest, view: View, dialect: Dialect, look: Look | None = None) -> CompiledFilter:
    """Translate filter rows, or refuse those that cannot run; the result never matches more than they say.

    Args:
        request: At least one filter row.
        view: The object's columns.
        dialect: What the server's version takes.
        look: The look at stored rows; it receives whether one would tell more.

    Raises:
        FilterNotSupportedError: One or several filter rows cannot run; details name the first.
    """

    def compile_row(number: int, row: Filter | RawQuery) -> _Row:
        if isinstance(row, RawQuery):
            return _raw(number, row, view)
        return _row(number, row, view, dialect, look=look or Look(), now=request.now)

    rows = compile_rows(request, compile_row, hint=partial(_remedy, view=view, object=request.object))
    clauses = _joined(rows, request.match)
    body = FilterBody(Raw(encode(_combine(clauses, request.match)).encode()), any(row.field is None for row in rows))
    return CompiledFilter(
        object=request.object,
        body=encode(body),
        rows=[
            Explanation(
                row=row.number,
                clause=row.label,
                exact=not (row.remarks.approximations or row.remarks.unlikely),
                approximations=row.remarks.approximations,
                unlikely=row.remarks.unlikely,
                same_element=row.mates,
            )
            for row in rows
        ],
        revision=view.revision,
    )


def _remedy(row: Filter | RawQuery, view: View, object: str) -> str | Remedy:  # noqa: A002 - the contract's word
    if isinstance(row, RawQuery):
        return ""
    field = view.find(row.column)
    if field is not None and field.family is Family.NESTED:
        leaves = [leaf for leaf in view.fields.values() if field.name in leaf.nested]
        leaf = next((leaf for leaf in leaves if row.op in leaf.support[0]), leaves[0] if leaves else field)
        arguments: dict[str, Argument] = {"object": object, "column": leaf.name, "operator": str(row.op)}
        if row.value is not None:
            arguments["value"] = as_typed(row.value)
        return Remedy(RemedyKind.FILTER_ROWS, arguments)
    if row.op is Op.REGEX and field is not None:
        return Remedy(RemedyKind.QUERY_ROWS, {"object": object, "query": f"{field.whole}:/{row.value}/"})
    return Remedy(RemedyKind.DESCRIBE_OBJECT, {"object": object})


def _raw(number: int, row: RawQuery, view: View) -> _Row:
    if not row.text.strip():
        raise ValueError("an empty query finds nothing; remove the row")
    hidden = [name for name, field in view.fields.items() if field.nested and f"{name}:" in row.text]
    notes = [f"the Raw row does not look into nested arrays: '{name}' has no value for it" for name in hidden]
    # Without `lenient`, a word searched in all fields fails on the first number or date.
    return _Row(number, {"query_string": {"query": row.text, "lenient": True}}, remarks=Differences(notes))


def _row(number: int, row: Filter, view: View, dialect: Dialect, *, look: Look, now: str | None) -> _Row:
    field = view.find(row.column)
    if field is None:
        raise ValueError(UNKNOWN)
    operators, reasons, _ = field.support
    if row.op not in operators:
        raise ValueError(reasons.get("filter") or reasons[row.op])
    if row.group is not None and not field.nested:
        raise ValueError("it is not a leaf of a nested array, so the row cannot belong to an element group")
    compiled_row = _Row(number, {}, row.op in NEGATED, field, row.group)
    compiled_row.clause = clause(row, field, dialect, compiled_row.remarks, look=look, now=now)
    if field.within:
        compiled_row.clause = {"bool": {"filter": [compiled_row.clause, {"terms": {"_index": list(field.within)}}]}}
    if row.op in (Op.NE, Op.NOT_IN, Op.NOT_CONTAINS):
        compiled_row.remarks.approximations.append(f"rows without '{row.column}' match too")
    return compiled_row


def _joined(rows: list[_Row], match: str) -> list[tuple[Clause, bool]]:
    """Return one clause per filter row or same-element group (E35), and whether each may score."""
    groups: dict[tuple[str, tuple[str, ...]], list[_Row]] = {}
    for row in rows:
        if row.group is not None:
            groups.setdefault((row.group, row.path), []).append(row)
    clauses: list[tuple[Clause, bool]] = []
    done: set[int] = set()
    for row in rows:
        mates = groups.get((row.group, row.path), []) if row.group is not None else []
        if row.number in done:
            continue
        if len(mates) < 2:
            if any(other.group == row.group and other is not row for other in rows if row.group is not None):
                row.remarks.approximations.append(f"no other row of element {row.group} is on '{row.path[-1]}'")
            clauses.append((_negate(_wrap(row.clause, [row]), negated=row.negated), row.field is None))
            continue
        inner = [_negate(mate.clause, negated=mate.negated) for mate in mates]
        clauses.append((_wrap(_combine([(part, False) for part in inner], match), mates), False))
        for mate in mates:
            mate.mates = [other.number for other in mates if other is not mate]
            done.add(mate.number)
    return clauses


def _negate(clause: Clause, *, negated: bool) -> Clause:
    return {"bool": {"must_not": [clause]}} if negated else clause


def _wrap(clause: Clause, rows: Iterable[_Row]) -> Clause:
    return nested(clause, [row.field for row in rows if row.field is not None])


def nested(clause: Clause, fields: Sequence[Field]) -> Clause:
    """Wrap a clause in the nested arrays around its fields, which are the same for all."""
    for path in reversed(fields[0].nested if fields else ()):
        around: Clause = {"path": path, "query": clause}
        if any(field.partial for field in fields):  # an index that lacks the array would fail the search
            around["ignore_unmapped"] = True
        clause = {"nested": around}
    return clause


def _combine(clauses: list[tuple[Clause, bool]], match: str) -> Clause:
    if len(clauses) == 1:
        return clauses[0][0]
    if match == "any":
        return {"bool": {"should": [clause for clause, _ in clauses], "minimum_should_match": 1}}
    parts = {
        "filter": [clause for clause, scores in clauses if not scores],
        "must": [clause for clause, scores in clauses if scores],
    }
    return {"bool": {name: part for name, part in parts.items() if part}}


FORMAT = "strict_date_optional_time_nanos"
"""The format of the bounds, whatever the column's own is."""

_FIRST, _LAST = Decimal(0), Decimal("9223372036.854775807")  # seconds that a date_nanos holds
_DIGITS = {"date": 3, "date_nanos": 9}  # of the fraction of a second
_NOTHING: dict[str, Any] = {"match_none": {}}


def within(query: Raw, time: TimeRange | None, view: View) -> Raw:
    """Narrow a query to a range of time; the scores of its rows stay.

    Raises:
        QueryError: The range is of another column than the object's time column, or a bound is finer than the column,
            no instant, or beyond what all indices of the object hold.
    """
    if time is None:
        return query
    if not view.time or time.column != view.time:
        hint = "describe the object again; or use a filter on a column"
        raise QueryError(f"'{view.target}' has no time column '{time.column}'", hint=hint)
    clause = _clause(time, view.fields[view.time])
    return Raw(encode({"bool": {"must": [query], "filter": [clause]}}).encode())


def _clause(time: TimeRange, field: Field) -> dict[str, Any]:
    bounds: dict[str, str] = {}
    for name, text in (("gte", time.since), ("lt", time.until)):
        if text is None:
            continue
        at = _instant(text, field)
        if "date_nanos" in field.types and not _FIRST <= at <= _LAST:
            if len(field.types) > 1:
                reason = f"{text} is out of range: an index behind this name holds '{field.name}' from 1970 to 2262"
                raise QueryError(reason, hint="choose the time in one index at a time")
            if (at < _FIRST) is (name == "lt"):
                return _NOTHING
            continue
        bounds[name] = text.strip()
    if not bounds:
        return {"exists": {"field": field.field}}
    return {"range": {field.field: {**bounds, "format": FORMAT}}}


def _instant(text: str, field: Field) -> Decimal:
    try:
        at = operands.instant(text)
    except ValueError as error:
        raise QueryError(f"a range of '{field.name}' has a bound that is not an instant: {error}") from error
    digits = min(_DIGITS[kind] for kind in field.types)
    if at != round(at, digits):
        reason = f"'{field.name}' holds {digits} digits of a second, so no range of it can begin or end at {text}"
        raise QueryError(reason, hint=f"write at most {digits} digits after the decimal point")
    return at


SAMPLE_ROWS = 200
"""Rows that a look reads at most."""

SAMPLE_BYTES = 2 << 20
"""Bytes of its answer at most."""

_COLUMNS = 100  # whose values it reads; filters on the others are explained as if there were no look
_VALUES = 2_000  # of one column
_REPORTED = {"ignore_above", "ignore_malformed"}  # gaps of which `_ignored` tells the rows
_TYPES = {*BOUNDS, "float", "half_float", "boolean"}


def take_sample(view: View) -> Exchange[Sample | None]:
    """Read a sample of an object; None if there are no rows, which says nothing of those to come.

    Raises:
        DragomanError: The server refused.
    """
    columns = [field for field in view.fields.values() if _is_read(field, view)][:_COLUMNS]
    limited = [field.whole for field in view.fields.values() if {gap.name for gap in field.gaps} & _REPORTED]
    ignored = {"constant_score": {"filter": {"terms": {"_ignored": limited}}, "boost": 2}}
    body: dict[str, Any] = {
        "size": SAMPLE_ROWS,
        "track_total_hits": False,
        "timeout": "1s",
        "_source": [field.field for field in columns] or False,
        "query": {"bool": {"should": [*([ignored] if limited else []), {"match_all": {}}]}},
    }
    if len(view.objects) > 1:
        # Rows with equal scores come from the first index only; this orders the first rows of all shards by chance.
        chance = {"function_score": {"random_score": {"seed": 1, "field": "_seq_no"}}}
        body["rescore"] = {"window_size": SAMPLE_ROWS, "query": {"rescore_query": chance}}
    answer = yield from search(f"/{target(view.target)}/_search", body, READ)
    hits = answer.hits.hits
    if not hits:
        return None
    documents = [hit.source for hit in hits]
    return Sample(
        columns={field.name: stored for field in columns if (stored := _stored(documents, field)).rows},
        ignored={name: hit.id for hit in reversed(hits) for name in hit.ignored},
        complete=not answer.partial() and sum(bool(hit.ignored) for hit in hits) < SAMPLE_ROWS,
    )


def _is_read(field: Field, view: View) -> bool:
    """Return whether documents show what a column holds, in few bytes."""
    left_out = field.computed or {field.name, field.field} & {*view.excluded} or "*" in field.field
    return not left_out and field.family in (Family.NUMBER, Family.BOOLEAN) and bool(_TYPES & {*field.types})


def _stored(documents: Sequence[dict[str, Any] | None], field: Field) -> StoredValues:
    path = field.field.split(".")
    value_lists = [values for document in documents if (values := [*values_at(document, path)])]
    return StoredValues(tuple(value for values in value_lists for value in values)[:_VALUES], len(value_lists))


def values_at(node: Any, path: Sequence[str]) -> Iterator[Any]:
    """Yield the values of a field in a document; a key may spell several parts of the path (`{"a.b": 1}`)."""
    if isinstance(node, list):
        for element in node:
            yield from values_at(element, path)
    elif not path:
        if node is not None and not isinstance(node, dict):
            yield node
    elif isinstance(node, dict):
        for end in range(1, len(path) + 1):
            yield from values_at(node.get(".".join(path[:end])), path[end:])
