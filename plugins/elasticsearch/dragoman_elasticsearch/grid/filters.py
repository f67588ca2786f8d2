"""Turns filter rows into a query: each runs as asked, or is refused with a reason (E24, E34-E36)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from dragoman_api import CompiledFilter, Explanation, Filter, FilterRequest, RawQuery
from dragoman_api import Operator as Op
from dragoman_api.json_text import encode
from dragoman_api.kit.filter_rows import compile_rows
from dragoman_api.kit.page_columns import UNKNOWN
from dragoman_api.remedies import Argument, Remedy, RemedyKind
from dragoman_api.wording import as_typed
from dragoman_elasticsearch.columns.exactness import Differences
from dragoman_elasticsearch.columns.field_types import NEGATED, Family, Field
from dragoman_elasticsearch.columns.looks import Look

from .clauses import Clause, clause

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_elasticsearch.columns.grid_columns import View
    from dragoman_elasticsearch.connect import Features


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
        while "bool" in clause:  # several values, or a clause and what narrows it
            clause = (clause["bool"].get("should") or clause["bool"]["filter"])[0]
        kind = next(iter(clause))
        place = f" {self.field.field}" if self.field is not None else ""
        if self.field is not None and kind not in ("exists", "match_phrase"):
            place = f" {self.field.whole}"
        nested = f"nested({self.path[-1]}): " if self.path else ""
        return f"{nested}{'not ' if self.negated else ''}{kind}{place}"


def compile_filter(request: FilterRequest, view: View, features: Features, look: Look | None = None) -> CompiledFilter:
    """Translate filter rows, or refuse those that cannot run; the result never matches more than they say.

    Args:
        request: At least one filter row.
        view: The object's columns.
        features: What the server's version takes.
        look: The look at stored rows; it receives whether one would tell more.

    Raises:
        FilterNotSupportedError: One or several filter rows cannot run; details name the first.
    """

    def compile_row(number: int, row: Filter | RawQuery) -> _Row:
        if isinstance(row, RawQuery):
            return _raw(number, row, view)
        return _row(number, row, view, features, look=look or Look(), now=request.now)

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


def _row(number: int, row: Filter, view: View, features: Features, *, look: Look, now: str | None) -> _Row:
    field = view.find(row.column)
    if field is None:
        raise ValueError(UNKNOWN)
    operators, reasons, _ = field.support
    if row.op not in operators:
        raise ValueError(reasons.get("filter") or reasons[row.op])
    if row.group is not None and not field.nested:
        raise ValueError("it is not a leaf of a nested array, so the row cannot belong to an element group")
    compiled_row = _Row(number, {}, row.op in NEGATED, field, row.group)
    compiled_row.clause = clause(row, field, features, compiled_row.remarks, look=look, now=now)
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
