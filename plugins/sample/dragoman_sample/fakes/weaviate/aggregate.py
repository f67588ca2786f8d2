"""Aggregates as the server makes them: of each shard by itself, then merged, cut lists and all."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate import retrieve
from dragoman_sample.fakes.weaviate.errors import InvalidError, not_reproduced
from dragoman_sample.fakes.weaviate.index import bucket, date_key
from dragoman_sample.fakes.weaviate.values import go_float, number, parse_date

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dragoman_sample.fakes.weaviate.calls import Call
    from dragoman_sample.fakes.weaviate.store import Collection, Shard, Stored

_TOP = 5
_GROUPS = 100
_SECOND = 10**9
_READ = {"count", "type", "minimum", "maximum", "totalTrue", "totalFalse", "topOccurrences", "__typename"}

Answer = dict[str, Any]


@dataclass
class Asked:
    """One property of an aggregate: its type, the figures, and how many frequent texts."""

    name: str
    kind: str
    figures: set[str] = field(default_factory=set)
    top: int = _TOP


def rows(call: Call, collection: Collection, arguments: dict[str, Any], properties: list[Asked]) -> list[Answer]:
    """Return the rows of an `Aggregate`.

    Raises:
        InvalidError: the server answers this error in place of the class.
    """
    parts = list(retrieve.matched(call, collection, arguments))
    if "groupBy" in arguments:
        path = arguments["groupBy"] if isinstance(arguments["groupBy"], list) else [arguments["groupBy"]]
        if not path:
            raise InvalidError(f"could not extract groupBy path: missing an argument after '{collection.name}'")
        if properties or len(path) > 1:
            raise not_reproduced("figures of groups")
        limit = _GROUPS if arguments.get("limit") is None else arguments["limit"]
        groups = _merged(_most(_rows_by_value(collection, path[0], answer), limit) for _, answer in parts)
        return [
            {"meta": {"count": count}, "groupedBy": {"path": path, "value": _text(value)}} for value, count in groups
        ]
    answer: Answer = {"meta": {"count": sum(len(item) for _, item in parts)}}
    for item in properties:
        if item.kind == "blob":
            raise InvalidError(f"shard shard: aggregate properties: property {item.name}: unrecoginzed dataType blob")
        if item.kind[0].isupper() or not item.figures <= _READ:
            raise not_reproduced(f"{sorted(item.figures)} of a property of type {item.kind}")
        shards = [_of_shard(collection, shard, part, item, filtered="where" in arguments) for shard, part in parts]
        answer[item.name] = _combined(shards, item)
    return [answer]


def _rows_by_value(collection: Collection, name: str, items: Iterable[Stored]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    kind = collection.properties.get(name, {}).get("dataType", [""])[0].removesuffix("[]")
    for item in items:
        value = item.properties.get(name)
        if value is not None and kind not in ("text", "int", "number", "boolean", "date", "uuid"):
            raise not_reproduced(f"groups by type {kind}")
        members = value if isinstance(value, list) else [] if value is None else [value]
        counts.update({float(member) if kind in ("int", "number") else member for member in members})
    return counts


def _most(counts: Counter[Any], limit: int) -> list[tuple[Any, int]]:
    """Return the most frequent values of one shard; at least one, whatever the limit."""
    return counts.most_common(max(limit, 1))


def _merged(shards: Iterable[list[tuple[Any, int]]]) -> list[tuple[Any, int]]:
    """Add up what shards reported. What one of them left out stays out."""
    totals: Counter[Any] = Counter()
    for counts in shards:
        for value, count in counts:
            totals[value] += count
    return totals.most_common()


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else go_float(value) if isinstance(value, float) else value


@dataclass
class _Values:
    """The values of one shard, each with how often it occurs, and the place by which the server orders it."""

    counts: Counter[Any]
    places: dict[Any, Any]


def _of_shard(collection: Collection, shard: Shard, items: list[Stored], query: Asked, *, filtered: bool) -> _Values:
    if filtered or query.kind.endswith("[]") or query.kind == "text":
        counts = Counter(_stored(items, query.name))
        if query.kind == "text" and not filtered:
            counts = Counter({_escaped(value): number for value, number in counts.items()})
        return _Values(counts, {value: date_key(value) if "date" in query.kind else value for value in counts})
    if not collection.properties[query.name].get("indexFilterable"):
        reason = f"could not find bucket for prop {query.name}"
        raise InvalidError(f"shard shard: aggregate properties: property {query.name}: {reason}")
    keys = bucket(collection, shard, "value", query.name).documents
    of_index = {_of_nanoseconds(key) if query.kind == "date" else key: key for key in keys}
    return _Values(Counter({value: len(keys[key]) for value, key in of_index.items()}), of_index)


def _escaped(text: str) -> str:
    """Write a text as the server keeps it in JSON, from which these figures are cut."""
    inner = json.dumps(text, ensure_ascii=False)[1:-1]
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", inner)


def _stored(items: Iterable[Stored], name: str) -> Iterator[Any]:
    for item in items:
        value = item.properties.get(name)
        yield from value if isinstance(value, list) else [] if value is None else [value]


def _combined(shards: list[_Values], query: Asked) -> Answer:
    answer: Answer = {"type": query.kind, "count": sum(shard.counts.total() for shard in shards)}
    kind = query.kind.removesuffix("[]")
    if kind == "text":
        top = _merged(_most(shard.counts, query.top) for shard in shards)
        answer["topOccurrences"] = [{"value": value, "occurs": count} for value, count in top]
    elif kind == "boolean":
        answer |= {"totalTrue": sum(shard.counts[True] for shard in shards)}
        answer |= {"totalFalse": sum(shard.counts[False] for shard in shards)}
    else:
        ends = [sorted(shard.counts, key=shard.places.__getitem__) for shard in shards if shard.counts]
        real = (lambda text: parse_date(text)[0]) if kind == "date" else lambda value: value  # type: ignore[index]
        low, high = (
            min((shard[0] for shard in ends), key=real, default=None),
            max((shard[-1] for shard in ends), key=real, default=None),
        )
        answer |= {"minimum": low, "maximum": high}
        if kind != "date":
            answer |= {name: number(answer[name]) for name in ("minimum", "maximum") if answer[name] is not None}
    return answer


def _of_nanoseconds(key: int) -> str:
    second, rest = divmod(key, _SECOND)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"
