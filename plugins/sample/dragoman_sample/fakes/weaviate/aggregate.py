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


def rows(call: Call, collection: Collection, arguments: dict[str, Any], asked: list[Asked]) -> list[Answer]:
    """Return the rows of an `Aggregate`.

    Raises:
        InvalidError: the server answers this error in place of the class.
    """
    parts = list(retrieve.matched(call, collection, arguments))
    if "groupBy" in arguments:
        path = arguments["groupBy"] if isinstance(arguments["groupBy"], list) else [arguments["groupBy"]]
        if not path:
            raise InvalidError(f"could not extract groupBy path: missing an argument after '{collection.name}'")
        if asked or len(path) > 1:
            raise not_reproduced("figures of groups")
        limit = _GROUPS if arguments.get("limit") is None else arguments["limit"]
        groups = _merged(_most(_rows_by_value(collection, path[0], found), limit) for _, found in parts)
        return [
            {"meta": {"count": count}, "groupedBy": {"path": path, "value": _text(value)}} for value, count in groups
        ]
    found: Answer = {"meta": {"count": sum(len(each) for _, each in parts)}}
    for each in asked:
        if each.kind == "blob":
            raise InvalidError(f"shard shard: aggregate properties: property {each.name}: unrecoginzed dataType blob")
        if each.kind[0].isupper() or not each.figures <= _READ:
            raise not_reproduced(f"{sorted(each.figures)} of a property of type {each.kind}")
        shards = [_of_shard(collection, shard, part, each, filtered="where" in arguments) for shard, part in parts]
        found[each.name] = _combined(shards, each)
    return [found]


def _rows_by_value(collection: Collection, name: str, found: Iterable[Stored]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    kind = collection.properties.get(name, {}).get("dataType", [""])[0].removesuffix("[]")
    for item in found:
        value = item.properties.get(name)
        if value is not None and kind not in ("text", "int", "number", "boolean", "date", "uuid"):
            raise not_reproduced(f"groups by type {kind}")
        held = value if isinstance(value, list) else [] if value is None else [value]
        counts.update({float(each) if kind in ("int", "number") else each for each in held})
    return counts


def _most(counts: Counter[Any], limit: int) -> list[tuple[Any, int]]:
    """Return the most frequent values of one shard; at least one, whatever the limit."""
    return counts.most_common(max(limit, 1))


def _merged(shards: Iterable[list[tuple[Any, int]]]) -> list[tuple[Any, int]]:
    """Add up what shards reported. What one of them left out stays out."""
    found: Counter[Any] = Counter()
    for each in shards:
        for value, count in each:
            found[value] += count
    return found.most_common()


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else go_float(value) if isinstance(value, float) else value


@dataclass
class _Values:
    """The values of one shard, each with how often it occurs, and the place by which the server orders it."""

    counts: Counter[Any]
    places: dict[Any, Any]


def _of_shard(collection: Collection, shard: Shard, found: list[Stored], asked: Asked, *, filtered: bool) -> _Values:
    if filtered or asked.kind.endswith("[]") or asked.kind == "text":
        counts = Counter(_stored(found, asked.name))
        if asked.kind == "text" and not filtered:
            counts = Counter({_escaped(value): number for value, number in counts.items()})
        return _Values(counts, {value: date_key(value) if "date" in asked.kind else value for value in counts})
    if not collection.properties[asked.name].get("indexFilterable"):
        reason = f"could not find bucket for prop {asked.name}"
        raise InvalidError(f"shard shard: aggregate properties: property {asked.name}: {reason}")
    keys = bucket(collection, shard, "value", asked.name).documents
    of_index = {_of_nanoseconds(key) if asked.kind == "date" else key: key for key in keys}
    return _Values(Counter({value: len(keys[key]) for value, key in of_index.items()}), of_index)


def _escaped(text: str) -> str:
    """Write a text as the server keeps it in JSON, from which these figures are cut."""
    inner = json.dumps(text, ensure_ascii=False)[1:-1]
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", inner)


def _stored(found: Iterable[Stored], name: str) -> Iterator[Any]:
    for item in found:
        value = item.properties.get(name)
        yield from value if isinstance(value, list) else [] if value is None else [value]


def _combined(shards: list[_Values], asked: Asked) -> Answer:
    found: Answer = {"type": asked.kind, "count": sum(each.counts.total() for each in shards)}
    kind = asked.kind.removesuffix("[]")
    if kind == "text":
        top = _merged(_most(each.counts, asked.top) for each in shards)
        found["topOccurrences"] = [{"value": value, "occurs": count} for value, count in top]
    elif kind == "boolean":
        found |= {"totalTrue": sum(each.counts[True] for each in shards)}
        found |= {"totalFalse": sum(each.counts[False] for each in shards)}
    else:
        ends = [sorted(each.counts, key=each.places.__getitem__) for each in shards if each.counts]
        real = (lambda text: parse_date(text)[0]) if kind == "date" else lambda value: value  # type: ignore[index]
        low, high = (
            min((each[0] for each in ends), key=real, default=None),
            max((each[-1] for each in ends), key=real, default=None),
        )
        found |= {"minimum": low, "maximum": high}
        if kind != "date":
            found |= {name: number(found[name]) for name in ("minimum", "maximum") if found[name] is not None}
    return found


def _of_nanoseconds(key: int) -> str:
    second, rest = divmod(key, _SECOND)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"
