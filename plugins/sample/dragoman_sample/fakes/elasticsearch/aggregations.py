"""The few aggregations that a console example and the summary of a column need."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch import queries
from dragoman_sample.fakes.elasticsearch.dates import format_as
from dragoman_sample.fakes.elasticsearch.errors import not_reproduced
from dragoman_sample.fakes.elasticsearch.fields import Field, Token, shown
from dragoman_sample.fakes.elasticsearch.queries import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman_sample.fakes.elasticsearch.mapping import Node
    from dragoman_sample.fakes.elasticsearch.store import Cluster, Doc

    Members = list[tuple[Doc, Node]]

_METRICS: dict[str, Any] = {
    "min": lambda values: float(min(values)) if values else None,
    "max": lambda values: float(max(values)) if values else None,
    "sum": lambda values: float(sum(values)),
    "avg": lambda values: sum(values) / len(values) if values else None,
    "value_count": len,
    "cardinality": lambda values: len(set(values)),
}
_OPTIONS = {"cardinality": {"precision_threshold"}}
_INDEX = Field(path="_index", type="keyword")
_ROWS_FIRST = [{"rows": "desc"}, {"_key": "asc"}]


def run(aggregations: dict[str, Any], docs: list[Doc], cluster: Cluster) -> dict[str, Any]:
    """Return the `aggregations` member for the matched documents.

    Raises:
        ServerError: for any other aggregation, as a fault.
    """
    return _all(aggregations, [(doc, doc.node) for doc in docs], cluster)


def _all(aggregations: dict[str, Any], members: Members, cluster: Cluster) -> dict[str, Any]:
    return {name: _one(body, members, cluster) for name, body in aggregations.items()}


def _one(body: dict[str, Any], members: Members, cluster: Cluster) -> dict[str, Any]:
    below = body.get("aggs", body.get("aggregations", {}))
    kinds = [kind for kind in body if kind not in ("aggs", "aggregations", "meta")]
    kind = kinds[0] if len(kinds) == 1 else ""
    if kind in _METRICS and {"field"} <= body[kind].keys() <= {"field"} | _OPTIONS.get(kind, set()):
        return _metric(kind, body[kind]["field"], members)
    if (bucketed := _BUCKETED.get(kind)) is None:
        raise not_reproduced(f"the aggregation {body}")
    return bucketed(body[kind], below, members, cluster)


def _metric(kind: str, path: str, members: Members) -> dict[str, Any]:
    pairs = [pair for member in members for pair in _values(member, path)]
    figure = _METRICS[kind]([value for _, value in pairs])
    field = pairs[0][0] if pairs else None
    if kind not in ("min", "max") or field is None or field.family != "date":
        return {"value": figure}
    figure = float(_millis(field, int(figure)))
    return {"value": figure, "value_as_string": _date_text(field, int(figure))}


def _millis(field: Field, value: Any) -> Any:
    """Cut nanoseconds off, as aggregations do."""
    return value // 1_000_000 if field.type == "date_nanos" else value


def _date_text(field: Field, millis: int) -> str:
    text = format_as(millis, field.formats.split("||")[0])
    if text is None:
        raise not_reproduced(f"a date in the format {field.formats}")
    return text


def _key(field: Field, value: Any) -> dict[str, Any]:
    if field.family == "boolean":
        return {"key": int(value), "key_as_string": str(value).lower()}
    if field.family == "date":
        return {"key": value, "key_as_string": _date_text(field, value)}
    return {"key": value}


def _terms(options: dict[str, Any], below: Any, members: Members, cluster: Cluster) -> dict[str, Any]:
    if (
        not options.keys() <= {"field", "size", "shard_size", "order"}
        or options.get("order", _ROWS_FIRST) != _ROWS_FIRST
    ):
        raise not_reproduced(f"the aggregation terms of {options}")
    groups: dict[Any, Members] = {}
    fields: dict[Any, Field] = {}
    for member in members:
        fields_by_value = {_millis(field, value): field for field, value in _values(member, options["field"])}
        fields |= fields_by_value
        for value in fields_by_value:
            groups.setdefault(value, []).append(member)
    ordered = options.get("order") is not None
    counts = Counter({value: len(_rows(group) if ordered else group) for value, group in groups.items()})
    ranked = [value for value, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    size = options.get("size", 10)
    buckets = [
        {**_key(fields[value], value), "doc_count": len(groups[value]), **_all(below, groups[value], cluster)}
        for value in ranked[:size]
    ]
    others = sum(len(groups[value]) for value in ranked[size:])
    error = -1 if ordered and others else 0
    return {"doc_count_error_upper_bound": error, "sum_other_doc_count": others, "buckets": buckets}


def _filter(query: Any, below: Any, members: Members, cluster: Cluster) -> dict[str, Any]:
    queries.check(query)
    tests: dict[str, queries.Test] = {}
    matching = []
    for doc, node in members:
        if doc.index.name not in tests:
            tests[doc.index.name] = queries.build(query, Scope(cluster, doc.index, node.path)).test
        if tests[doc.index.name](doc, node):
            matching.append((doc, node))
    return {"doc_count": len(matching), **_all(below, matching, cluster)}


def _filters(options: Any, below: Any, members: Members, cluster: Cluster) -> dict[str, Any]:
    if options.keys() != {"filters"} or not isinstance(options["filters"], list):
        raise not_reproduced(f"the aggregation filters of {options}")
    return {"buckets": [_filter(query, below, members, cluster) for query in options["filters"]]}


def _date_range(options: Any, below: Any, members: Members, cluster: Cluster) -> dict[str, Any]:
    """Count the rows that have a value in a range, each once for a range; a bound that is not given is open."""
    if options.keys() != {"field", "format", "ranges"} or options["format"] != "strict_date_optional_time":
        raise not_reproduced(f"the aggregation date_range of {options}")
    buckets = []
    for bounds in options["ranges"]:
        low, high = (_instant(bounds[end]) if end in bounds else None for end in ("from", "to"))
        matching = [
            member
            for member in members
            if any(
                (low is None or _millis(field, value) >= low) and (high is None or _millis(field, value) < high)
                for field, value in _values(member, options["field"])
            )
        ]
        buckets.append({"doc_count": len(matching), **_all(below, matching, cluster)})
    return {"buckets": buckets}


def _date_histogram(options: Any, below: Any, members: Members, cluster: Cluster) -> dict[str, Any]:
    """Count the rows of each day, month or year, those without rows too, in UTC."""
    if options.keys() != {"field", "calendar_interval"} or options["calendar_interval"] not in ("day", "month", "year"):
        raise not_reproduced(f"the aggregation date_histogram of {options}")
    groups: dict[datetime, Members] = {}
    field: Field | None = None
    for member in members:
        for field, value in _values(member, options["field"]):
            begin = _begin(datetime.fromtimestamp(_millis(field, value) // 1_000, UTC), options["calendar_interval"])
            if member not in groups.setdefault(begin, []):
                groups[begin].append(member)
    buckets = []
    at = min(groups, default=datetime.max.replace(tzinfo=UTC))
    while field is not None and at <= max(groups):
        rows = groups.get(at, [])
        key = round(at.timestamp() * 1_000)
        text = _date_text(field, key)
        buckets.append({"key_as_string": text, "key": key, "doc_count": len(rows), **_all(below, rows, cluster)})
        at = _begin(
            at + timedelta(days={"day": 1, "month": 31, "year": 366}[options["calendar_interval"]]),
            options["calendar_interval"],
        )
    return {"buckets": buckets}


def _begin(at: datetime, interval: str) -> datetime:
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return day if interval == "day" else day.replace(day=1, month=at.month if interval == "month" else 1)


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() * 1_000


def _nested(options: Any, below: Any, members: Members, cluster: Cluster) -> dict[str, Any]:
    inner = [(doc, deep) for doc, node in members for deep in node.below(options["path"])]
    return {"doc_count": len(inner), **_all(below, inner, cluster)}


def _reverse_nested(options: Any, below: Any, members: Members, cluster: Cluster) -> dict[str, Any]:
    if options:
        raise not_reproduced(f"the aggregation reverse_nested of {options}")
    rows = _rows(members)
    return {"doc_count": len(rows), **_all(below, rows, cluster)}


def _rows(members: Members) -> Members:
    return list({id(doc): (doc, doc.node) for doc, _ in members}.values())


_BUCKETED: dict[str, Callable[[Any, Any, Members, Cluster], dict[str, Any]]] = {
    "terms": _terms,
    "filter": _filter,
    "filters": _filters,
    "date_histogram": _date_histogram,
    "date_range": _date_range,
    "nested": _nested,
    "reverse_nested": _reverse_nested,
}


def _values(member: tuple[Doc, Node], path: str) -> list[tuple[Field, Any]]:
    doc, node = member
    if path == "_index":
        return [(_INDEX, doc.index.name)]
    target = doc.index.mapping.field(path)
    if target is None:
        return []
    return [
        (target, shown(target, value)) for value in node.values.get(target.path, ()) if not isinstance(value, Token)
    ]
