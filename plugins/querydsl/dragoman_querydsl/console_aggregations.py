"""Aggregations as tables: a table for each chain of nested buckets, a row for each of its innermost buckets.

A column is named by the aggregation that gives it: the key of a bucket by the bucket aggregation, a single value by the
metric, and everything else by aggregation and member (`days.doc_count`, `load.95.0`). Rows repeat what the buckets
around them give. Values that belong to no bucket form one row, the first table.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Raw

from dragoman_api import Note
from dragoman_api.columns import Role
from dragoman_api.json_text import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_LEVELS = 32
"""Maximum number of aggregations inside one another; a deeper answer is no table."""

_BOUNDS = ("from", "from_as_string", "to", "to_as_string")

Path = tuple[str, ...]
"""Names of aggregations, the outermost first."""


class ColumnPlace(NamedTuple):
    """A column's place in an answer: an aggregation and a member of it, empty for its key or only value."""

    path: Path
    member: str


Record = dict[ColumnPlace, Any]


class Table:
    """The rows of one chain of buckets, and what the server said about the chain."""

    def __init__(self, path: Path, keys: dict[ColumnPlace, None]) -> None:
        """Make an empty table; `keys` are the places of all keys of buckets, in order."""
        self.path, self._keys = path, keys
        self.records: list[Record] = []
        self.title = " > ".join(path)

    def rows(self) -> tuple[list[str], list[dict[str, Any]], dict[str, Role]]:
        """Return the names of the columns in order, the rows by name, and what columns are for, by name."""
        names = _names(dict.fromkeys(place for record in self.records for place in record))
        rows = [{names[place]: value for place, value in record.items()} for record in self.records]
        return list(names.values()), rows, {names[place]: role for place, role in self._roles(names).items()}

    def _roles(self, places: Iterable[ColumnPlace]) -> dict[ColumnPlace, Role]:
        """Tell the keys of the buckets from their bounds; a key that has a text is named by that."""
        present, roles = {*places}, dict[ColumnPlace, Role]()
        for place in [place for place in self._keys if place in present]:
            text = ColumnPlace(place.path, "key_as_string")
            roles[place] = Role.KEY if place.member or text not in present else Role.SERVER
            roles |= {bound: Role.SERVER for member in _BOUNDS if (bound := ColumnPlace(place.path, member)) in present}
            if text in present and not place.member:
                roles[text] = Role.KEY
        return roles


class Tables:
    """The tables of an answer with aggregations.

    Attributes:
        notes: What the server left out of the buckets, or only estimated.
    """

    def __init__(self, aggregations: Mapping[str, Any]) -> None:
        """Read the member `aggregations` of an answer.

        Raises:
            ValueError: It is nested too deeply.
        """
        self._tables: dict[Path, Table] = {}
        self._keys: dict[ColumnPlace, None] = {}
        self._others: dict[Path, int] = {}
        self._unsure: dict[Path, None] = {}
        self._after: dict[Path, Any] = {}
        self._walk(aggregations, (), {})

    def __iter__(self) -> Iterator[Table]:
        return iter(self._tables.values())

    @property
    def notes(self) -> list[Note]:
        """The notes on the buckets of all tables."""
        notes = []
        for path, number in self._others.items():
            reason = f"{' > '.join(path)}: {number:,} documents are in buckets that the answer leaves out"
            notes.append(Note(code="buckets-cut", reason=reason, hint="ask for more with a larger size"))
        for path in self._unsure:
            reason = f"{' > '.join(path)}: the server only estimates the numbers of documents"
            notes.append(Note(code="buckets-approximate", reason=reason, hint="raise shard_size"))
        for path, key in self._after.items():
            reason = f"{' > '.join(path)}: more buckets may follow"
            notes.append(Note(code="buckets-continue", reason=reason, hint=f'"after": {encode(key)}'))
        return notes

    def _walk(self, level: Mapping[str, Any], path: Path, above: Record) -> None:
        """Read the aggregations of one bucket, or of the whole answer."""
        if len(path) > MAX_LEVELS:
            raise ValueError("the aggregations are nested too deeply")
        values: Record = {}
        inner: dict[Path, list[tuple[Record, Mapping[str, Any]]]] = {}
        for name, result in level.items():
            where = (*path, name)
            if not isinstance(result, dict):
                values[ColumnPlace(where, "")] = result
            elif (buckets := self._buckets(where, result)) is not None:
                inner[where] = buckets
            else:
                values |= _values(where, result)
        row = above | values
        if not path:
            row = {}
            if values:
                self._table((), title=", ".join(dict.fromkeys(place.path[0] for place in values))).append(values)
        elif not inner:
            self._table(path).append(row)
        for where, buckets in inner.items():
            if not buckets:  # the row stays, without columns of the buckets that it lacks
                self._table(where).extend([row] if row else [])
            for members, below in buckets:
                self._walk(below, where, row | members)

    def _table(self, path: Path, title: str = "") -> list[Record]:
        table = self._tables.setdefault(path, Table(path, self._keys))
        table.title = title or table.title
        return table.records

    def _buckets(self, path: Path, result: dict[str, Any]) -> list[tuple[Record, Mapping[str, Any]]] | None:
        """Return the columns of each bucket and the aggregations in it; None if the result has no buckets."""
        if "buckets" not in result:
            members, below = _split(path, result)
            return [(members, below)] if "doc_count" in result and _has_buckets(below) else None
        self._note(path, result)
        buckets = result["buckets"]
        if isinstance(buckets, dict):
            buckets = [{"key": key, **bucket} for key, bucket in buckets.items()]
        # A bucket without a name is known by its place in the request.
        rows: list[tuple[Record, Mapping[str, Any]]] = [
            _split(path, {"key": at, **bucket}) for at, bucket in enumerate(buckets)
        ]
        for bucket in buckets:
            key = bucket.get("key")
            self._keys |= dict.fromkeys(ColumnPlace(path, name) for name in (key if isinstance(key, dict) else ("",)))
        return rows

    def _note(self, path: Path, result: Mapping[str, Any]) -> None:
        others, error = result.get("sum_other_doc_count"), result.get("doc_count_error_upper_bound")
        if isinstance(others, int) and others > 0:
            self._others[path] = self._others.get(path, 0) + others
        if isinstance(error, int) and error != 0:  # -1 if the server does not know
            self._unsure[path] = None
        if "after_key" in result and result["buckets"]:
            self._after[path] = result["after_key"]


def _has_buckets(level: Mapping[str, Any]) -> bool:
    inner = [result for result in level.values() if isinstance(result, dict)]
    return any("buckets" in result for result in inner) or any(
        _has_buckets(result) for result in inner if "doc_count" in result
    )


def _split(path: Path, bucket: Mapping[str, Any]) -> tuple[Record, dict[str, Any]]:
    """Tell a bucket's own members from the aggregations in it, which are the objects."""
    members: Record = {}
    key = bucket.get("key")
    if isinstance(key, dict):  # composite
        members = {ColumnPlace(path, name): value for name, value in key.items()}
    elif "key" in bucket:
        members[ColumnPlace(path, "")] = key
    below = {}
    for name, value in bucket.items():
        if name in ("key", "meta"):
            continue
        if isinstance(value, dict):
            below[name] = value
        else:
            members[ColumnPlace(path, name)] = value
    return members, below


def _values(path: Path, result: Mapping[str, Any]) -> Record:
    """Return the columns of a metric, or of a single bucket and the metrics in it."""
    if "doc_count" in result:
        members, below = _split(path, result)
        for name, value in below.items():
            members |= _values((*path, name), value)
        return members
    hits = result.get("hits")
    if isinstance(hits, dict) and isinstance(hits.get("hits"), list):  # top_hits
        return {ColumnPlace(path, ""): hits["hits"]}
    values = result.get("values")
    if isinstance(values, list):  # percentiles that are not keyed
        result = {
            f"{_text(percentile['key'])}{name.removeprefix('value')}": value
            for percentile in values
            for name, value in percentile.items()
            if name != "key"
        }
    elif isinstance(values, dict):
        result = values
    flat = _flat({name: value for name, value in result.items() if name != "meta"})
    return {ColumnPlace(path, "" if name == "value" else name): value for name, value in flat}


def _text(key: Any) -> str:
    return bytes(key).decode() if isinstance(key, Raw) else str(key)


def _flat(members: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in members.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _names(places: dict[ColumnPlace, None]) -> dict[ColumnPlace, str]:
    """Name each column; two of the same name are told apart by the aggregations around them.

    >>> list(_names({ColumnPlace(("a", "x"), ""): None, ColumnPlace(("a",), "n"): None}).values())
    ['x', 'a.n']
    >>> list(_names({ColumnPlace(("a", "x"), ""): None, ColumnPlace(("x",), ""): None}).values())
    ['a>x', 'x']
    """
    short = {place: _joined(place.path[-1:], place.member) for place in places}
    counts = Counter(short.values())
    names = {place: name if counts[name] == 1 else _joined(place.path, place.member) for place, name in short.items()}
    final_names: set[str] = set()
    for place in names:
        while names[place] in final_names:  # an aggregation may be called as a member of another one
            names[place] += "'"
        final_names.add(names[place])
    return names


def _joined(path: Path, member: str) -> str:
    name = ">".join(path)
    return f"{name}.{member}" if member else name
