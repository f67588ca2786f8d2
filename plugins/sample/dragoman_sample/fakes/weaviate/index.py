"""The inverted index of one shard: sorted keys with the documents that have them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate.sorting import TIMESTAMPS
from dragoman_sample.fakes.weaviate.tokens import fold, tokenize
from dragoman_sample.fakes.weaviate.values import parse_date

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dragoman_sample.fakes.weaviate.store import Collection, Shard, Stored

_NO_LENGTH = {"int", "number", "boolean", "date", "geoCoordinates", "phoneNumber", "blob", "object", "object[]"}
_NO_NULL = {"geoCoordinates", "phoneNumber", "blob"}


@dataclass
class Bucket:
    """Keys in the order of their bytes, each with its documents."""

    keys: list[Any]
    documents: dict[Any, set[int]]

    def equal(self, key: Any) -> set[int]:
        """Return the documents that have this key."""
        return self.documents.get(key, set())

    def read(self, keys: Iterable[Any], limit: int) -> set[int]:
        """Return the documents of several keys; reading ends with the key that reaches the limit, 0 is none."""
        documents: set[int] = set()
        for key in keys:
            documents |= self.documents[key]
            if limit and len(documents) >= limit:
                break
        return documents

    def compared(self, operator: str, key: Any) -> Iterator[Any]:
        """Return the keys for which a comparison holds, smallest first."""
        place = bisect_left(self.keys, key)
        present = self.keys[place : place + 1] == [key]
        if operator.startswith("Greater"):
            yield from self.keys[place + (present and operator == "GreaterThan") :]
        else:
            yield from self.keys[: place + (present and operator == "LessThanEqual")]


def bucket(collection: Collection, shard: Shard, kind: str, name: str) -> Bucket:
    """Return the `value`, `null`, `length` or `count` index of a property, or that of `id` or a timestamp."""
    cached = shard.buckets.get((kind, name))
    if cached and cached[0] == shard.version:
        current: Bucket = cached[1]
        return current
    keys = _keys(collection, kind, name)
    documents: dict[Any, set[int]] = {}
    for item in shard.objects.values():
        for key in keys(item):
            documents.setdefault(key, set()).add(item.doc)
    rebuilt = Bucket(sorted(documents), documents)
    shard.buckets[kind, name] = (shard.version, rebuilt)
    return rebuilt


def has_length(kind: str) -> bool:
    """Tell whether there is an index of lengths for this type."""
    return kind not in _NO_LENGTH


def _keys(collection: Collection, kind: str, name: str) -> Callable[[Stored], Iterable[Any]]:
    if kind == "id":
        return lambda item: (item.id,)
    if kind == "time":
        return lambda item: (str(getattr(item, TIMESTAMPS[name])),)
    definition = collection.properties[name]
    of_type = definition["dataType"][0]
    if kind == "count":
        return lambda item: (len(item.properties.get(name) or ()),)
    if kind == "null":
        silent = of_type in _NO_NULL
        return lambda item: () if silent or name not in item.noted else (item.properties.get(name) in (None, "", []),)
    if kind == "length":
        counts_absent = collection.indexes("NullState")
        return lambda item: _length(
            item.properties.get(name), of_type, counts_absent=counts_absent and name in item.noted
        )
    return lambda item: value_keys(of_type, item.properties.get(name), definition)


def _length(value: Any, kind: str, *, counts_absent: bool) -> tuple[int, ...]:
    if value is None:
        return (0,) if counts_absent else ()
    # The length of a uuid is not kept, though its absence is.
    return () if kind == "uuid" else (len(value),)


def value_keys(kind: str, value: Any, definition: dict[str, Any]) -> Iterable[Any]:
    """Return the keys of a stored value."""
    if value is None:
        return ()
    if kind.endswith("[]"):
        return {key for member in value for key in value_keys(kind[:-2], member, definition)}
    if kind == "text":
        return set(tokenize(fold(value, definition), definition.get("tokenization", "")))
    if kind == "date":
        return (date_key(value),)
    if kind == "int":
        return (int_key(value),)
    if kind in ("number", "boolean", "uuid"):
        return (value,)
    return ()


def int_key(value: int) -> int:
    """Return an integer as the index holds it: a float once, and what does not fit into 64 bits is the smallest."""
    rounded = int(float(value))
    return rounded if rounded < 2**63 else -(2**63)


def date_key(text: str) -> int:
    """Return a date as the index holds it: 64 bits of nanoseconds, which overflow outside 1678 to 2262."""
    date = parse_date(text)
    assert date is not None
    return (date[0] + 2**63) % 2**64 - 2**63
