"""The few aggregations that a console example needs: terms and the one-number metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from fakes.elasticsearch.errors import not_reproduced
from fakes.elasticsearch.fields import Token, shown

if TYPE_CHECKING:
    from fakes.elasticsearch.store import Doc

_METRICS: dict[str, Any] = {
    "min": lambda values: float(min(values)) if values else None,
    "max": lambda values: float(max(values)) if values else None,
    "sum": lambda values: float(sum(values)),
    "avg": lambda values: sum(values) / len(values) if values else None,
    "value_count": len,
    "cardinality": lambda values: len(set(values)),
}


def run(wanted: dict[str, Any], docs: list[Doc]) -> dict[str, Any]:
    """Return the `aggregations` member for the matched documents.

    Raises:
        ServerError: for any other aggregation, as a fault.
    """
    return {name: _one(body, docs) for name, body in wanted.items()}


def _one(body: dict[str, Any], docs: list[Doc]) -> dict[str, Any]:
    below = body.get("aggs", body.get("aggregations", {}))
    kinds = [kind for kind in body if kind not in ("aggs", "aggregations", "meta")]
    kind = kinds[0] if len(kinds) == 1 else ""
    if kind in _METRICS and body[kind].keys() == {"field"}:
        return {"value": _METRICS[kind]([value for doc in docs for value in _values(doc, body[kind]["field"])])}
    if kind != "terms" or not body[kind].keys() <= {"field", "size"}:
        raise not_reproduced(f"the aggregation {body}")
    path, size = body["terms"]["field"], body["terms"].get("size", 10)
    groups: dict[Any, list[Doc]] = {}
    for doc in docs:
        for value in dict.fromkeys(_values(doc, path)):
            groups.setdefault(value, []).append(doc)
    counts = Counter({value: len(members) for value, members in groups.items()})
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    buckets = [{"key": value, "doc_count": count, **run(below, groups[value])} for value, count in ranked[:size]]
    others = sum(count for _, count in ranked[size:])
    return {"doc_count_error_upper_bound": 0, "sum_other_doc_count": others, "buckets": buckets}


def _values(doc: Doc, path: str) -> list[Any]:
    target = doc.index.mapping.field(path)
    if target is None:
        return []
    return [shown(target, value) for value in doc.node.values.get(target.path, ()) if not isinstance(value, Token)]
