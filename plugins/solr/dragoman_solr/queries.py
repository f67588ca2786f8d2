"""Filter rows and sort keys in Solr's JSON query language, and the body of a search. Pure.

The rule of a measured fact is in parentheses, as in S10.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman_api import ColumnKind, CompiledFilter, Explanation, Filter, RawQuery
from dragoman_api.columns import NULLS, PATTERNS
from dragoman_api.columns import Operator as Op
from dragoman_api.json_text import encode
from dragoman_api.kit import operands
from dragoman_api.kit.filter_rows import NEGATED, compile_rows
from dragoman_api.kit.page_columns import UNKNOWN, sortable

from .fields import VERSION, View, scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import Column, FilterRequest, Note, Sort

MOST_CLAUSES = 1_000  # of one search; the server takes 1,024 (S15)
_LONGEST = 1_000  # characters of a pattern
_WORDS = "finds the words of the text next to each other, as the field's analyzer splits and changes them"
_LETTERS = "of a letter, only its own small and capital form are the same: not ß and SS"
_OPERATOR = re.compile(r"([^\w\s])")
ALL = "*:*"


class Filters(msgspec.Struct, frozen=True):
    """A compiled filter: conditions of which all must hold."""

    conditions: list[Any] = []


def exists(name: str) -> dict[str, Any]:
    """Return the condition that a field has a value; a range would leave NaN out (S9)."""
    return {"lucene": {"query": re.sub(r"(\W)", r"\\\1", name) + ":*"}}


def none_of(*conditions: Any) -> dict[str, Any]:
    """Return the condition that none holds; without what it takes away from, it would find nothing (S13)."""
    return {"bool": {"must": [ALL], "must_not": [*conditions]}}


def compile_filter(request: FilterRequest, view: View) -> CompiledFilter:
    """Translate filter rows into conditions.

    Raises:
        FilterNotSupportedError: A filter row cannot run.
    """
    left = MOST_CLAUSES

    def compile_row(_: int, row: Filter | RawQuery) -> tuple[Any, list[str], list[str]]:
        nonlocal left
        condition, approximations, unlikely = _row(row, view, alone=request.match == "all" or len(request.rows) == 1)
        left -= encode(condition).count('"f":"') + encode(condition).count('"lucene":')
        if left < 0:
            raise ValueError(f"the filter has more than the {MOST_CLAUSES:,} conditions that one search takes")
        return condition, approximations, unlikely

    compiled = compile_rows(request, compile_row, hint=lambda _: "a Raw row takes a query in Solr's own syntax")
    conditions = [condition for condition, _, _ in compiled]
    if request.match == "any" and len(conditions) > 1:
        conditions = [{"bool": {"should": conditions}}]
    rows = [
        Explanation(row=number, clause=encode(condition), exact=not (approximations or unlikely),
                    approximations=approximations, unlikely=unlikely)
        for number, (condition, approximations, unlikely) in enumerate(compiled)
    ]  # fmt: skip
    return CompiledFilter(object=request.object, body=encode(Filters(conditions)), rows=rows, revision=view.revision)


def _row(row: Filter | RawQuery, view: View, *, alone: bool) -> tuple[Any, list[str], list[str]]:
    """Return the condition of a filter row, and how it differs from what the row says."""
    if isinstance(row, RawQuery):
        if not alone:
            raise ValueError("Solr takes a query that only excludes for none inside another one")
        return {"lucene": {"query": row.text}}, [], []
    if (column := view.columns.get(row.column)) is None:
        raise ValueError(UNKNOWN)
    if row.op not in column.operators:
        raise ValueError(column.reasons.get("filter") or f"Solr has no such condition on a field of type {column.type}")
    if row.group is not None:
        raise ValueError("the values of a field are single ones, so that a group has no meaning")
    op, tokenized = NEGATED.get(row.op, row.op), view.fields[row.column].tokenized
    if op in NULLS:
        return (exists(row.column) if op is Op.NOT_NULL else none_of(exists(row.column))), [], []
    pattern = op in PATTERNS and not tokenized
    if row.case is False and not pattern and column.kind is ColumnKind.TEXT and not tokenized:
        raise ValueError("Solr compares the letter case of this field")
    if row.case is True and tokenized:
        raise ValueError("the analyzer of the field decides about letter case")
    folded = pattern and row.case is not True
    condition = _positive(row, op, column, view)
    condition = condition if op is row.op else none_of(condition)
    return condition, [_WORDS] if tokenized else [], [_LETTERS] if folded else []


def _positive(row: Filter, op: Op, column: Column, view: View) -> Any:
    name, class_name = row.column, view.classes[row.column]

    def read(value: object) -> str:
        operand = scalar(operands.single(value), column, class_name)
        return (
            encode(operand)
            if isinstance(operand, bool)
            else repr(operand)
            if isinstance(operand, float)
            else str(operand)
        )

    if view.fields[name].tokenized:
        return {"field": {"f": name, "query": operands.text(operands.single(row.value))}}
    if op in PATTERNS:
        return _matches(name, _pattern(op, operands.text(operands.single(row.value)), fold=row.case is not True))
    if op is Op.EMPTY:
        return _equal(name, "", column)
    if op is Op.NOT_EMPTY:
        return _matches(name, "..*")
    if op is Op.IN:
        values = operands.several(row.value, empty=column.kind is ColumnKind.TEXT)
        choices = [_between(name, column, value, Op.EQ, read) for value in values]
        return choices[0] if len(choices) == 1 else {"bool": {"should": choices}}
    return _between(name, column, row.value, op, read)


def _between(name: str, column: Column, value: object, op: Op, read: Any) -> Any:
    """Return one comparison with a value, a period, or two bounds, all of which hold for the same value."""
    if column.kind is ColumnKind.TIMESTAMP:
        parts = operands.conditions(op, value)
    elif op is Op.BETWEEN:
        low, high = operands.bounds(value)
        parts = [(Op.GE, low), (Op.LE, high)]
    else:
        parts = [(op, value)]
    bounds = {part: read(operand) for part, operand in parts}
    if Op.EQ in bounds:
        return _equal(name, bounds[Op.EQ], column)
    if column.kind is ColumnKind.TEXT:
        return _texts(name, bounds, column)
    zeros = {Op.GE: "-0.0", Op.LT: "-0.0", Op.GT: "0.0", Op.LE: "0.0"}  # the two differ for the server (S10)
    if column.kind is ColumnKind.FLOAT:
        bounds = {part: zeros[part] if float(bound) == 0 else bound for part, bound in bounds.items()}
    return _range(name, bounds)


def _texts(name: str, bounds: dict[Op, str], column: Column) -> Any:
    """Return a range of texts; the server reads an empty bound as another text (S11)."""
    if bounds.get(Op.LT) == "":
        return none_of(ALL)
    if bounds.get(Op.GT) == "":
        return _matches(name, "..*")
    if bounds.get(Op.LE) == "":
        low = bounds.get(Op.GE, "")
        return _equal(name, "", column) if low == "" else none_of(ALL)
    return _range(name, {part: bound for part, bound in bounds.items() if bound != ""})


def _range(name: str, bounds: dict[Op, str]) -> Any:
    low, high = bounds.get(Op.GE, bounds.get(Op.GT)), bounds.get(Op.LE, bounds.get(Op.LT))
    opening, closing = "{" if Op.GT in bounds else "[", "}" if Op.LT in bounds else "]"
    texts = ["*" if bound is None else _quoted(bound) for bound in (low, high)]
    return {"lucene": {"df": name, "query": f"{opening}{texts[0]} TO {texts[1]}{closing}"}}


def _quoted(text: str) -> str:
    """Return a bound in quotes; a backslash before a quote would be read with it (S11)."""
    return '"' + text.replace("\\", "\\u005c").replace('"', "\\u0022") + '"'


def _equal(name: str, text: str, column: Column) -> Any:
    if column.kind is ColumnKind.FLOAT and float(text) == 0:
        return _range(name, {Op.GE: "-0.0", Op.LE: "0.0"})
    return {"field": {"f": name, "query": text}}


def _matches(name: str, pattern: str) -> Any:
    return {"lucene": {"df": name, "query": f"/{pattern}/"}}


def _pattern(op: Op, text: str, *, fold: bool) -> str:
    if len(text) > _LONGEST:
        raise ValueError(f"the pattern has {len(text):,} characters; {_LONGEST:,} are the most")
    body = "".join(_letter(letter, fold=fold) for letter in text)
    return f"{'' if op is Op.STARTS else '.*'}{body}{'' if op is Op.ENDS else '.*'}" or ".*"


def _letter(letter: str, *, fold: bool) -> str:
    same = {letter, *(folded for folded in (letter.lower(), letter.upper()) if len(folded) == 1)} if fold else {letter}
    escaped = [_OPERATOR.sub(r"\\\1", variant) for variant in sorted(same)]
    return escaped[0] if len(escaped) == 1 else f"[{''.join(escaped)}]"


def sort_keys(sorts: Sequence[Sort], view: View) -> tuple[str, list[Note]]:
    """Return a sort without ties, in which documents without a value come last (S17), and notes on dropped keys."""
    sort_columns, notes = sortable(sorts, view.columns.get, lambda column: column.reasons.get("sort", ""))
    keys = []
    for sort, column in sort_columns:
        absent = [] if column.is_key else [f"if(exists({column.name}),0,1) asc"]
        keys += [*absent, f"{column.name} {'desc' if sort.descending else 'asc'}"]
    unique = [] if not view.key or any(column.is_key for _, column in sort_columns) else [f"{view.key} asc"]
    return ",".join([*keys, *unique]), notes


def search(view: View, filters: Filters, names: Sequence[str] | None = None, **parts: Any) -> str:
    """Return the body of a search: the settings of the handler decide neither parser nor form (S8)."""
    hidden = [name for name in view.columns if not view.fields[name].returned]
    fields = ["*", *hidden]
    if names is not None and all(view.fields[name].simple for name in (*names, view.key) if name):
        fields = [*dict.fromkeys([view.key, VERSION, *names])] if view.key else [*names]
    params = {"wt": "json", "defType": "lucene", **parts.pop("params", {})}
    return encode({"query": ALL, "filter": filters.conditions, "fields": fields, **parts, "params": params})
