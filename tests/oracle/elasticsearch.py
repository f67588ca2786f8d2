"""Mappings and documents of Elasticsearch and OpenSearch, from a seed: every type, several shards, an alias of two."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dragoman_api import Operator as Op
from dragoman_api.exports import ExportForm
from dragoman_api.grid import RowKey

from . import chances
from .calls import DifferenceError, Stored
from .columns import Address, Boolean, Column, Date, Number, Place, Text, some
from .documents import MISSING, alike, at, flat, kept, parsed, same, valued, written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from dragoman_api import Filter

    from .calls import Call
    from .columns import Maybe
    from .readings import Said

_WORD = re.compile(r"[A-Za-z0-9]+")
_PLAIN = re.compile(r"[A-Za-z0-9 ,!-]*")


@dataclass(frozen=True, kw_only=True)
class Words(Text):
    """An analysed text without a keyword sub-field: words, in their order, anywhere in it."""

    sortable: bool = False

    def found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        if op in (Op.NULL, Op.NOT_NULL) or "words" not in said.admits:
            return super().found(op, row, held, said)
        values = [self.meaning(each) for each in held if each is not None]
        operands = (
            [row.value] if op is not Op.IN else row.value if isinstance(row.value, list) else row.value.split(",")
        )
        return some([self._phrase(str(each), value) for each in operands for value in values])

    @staticmethod
    def _phrase(part: str, text: str) -> Maybe:
        if not (_PLAIN.fullmatch(part) and _PLAIN.fullmatch(text) and _WORD.search(part)):
            return None  # where the words of other texts end is the server's to know
        wanted, words = (_WORD.findall(each.lower()) for each in (part, text))
        return any(words[start : start + len(wanted)] == wanted for start in range(len(words)))


@dataclass(frozen=True, kw_only=True)
class Keyed(Text):
    """A dotted key of a flattened field, or of a flat object, which alone has a definition."""


def _texts(*texts: str) -> tuple[str, ...]:
    return tuple(json.dumps(each, ensure_ascii=False) for each in texts)


STRINGS = (
    "", "a", "A", "ab", "Ab", "b", "B", "ba", "é", "É", "ß", "İ", "日本", "😀", "a*b", "a?b", "a\\b", "1.0", "01",
    " lead", "trail ", "null", "true", "long enough to be cut", "K", "\ufb00", "a/b", 'q"uote', "two\nlines", "zz",
)  # fmt: skip
PARTS = (
    "a",
    "A",
    "b",
    "*",
    "?",
    "\\",
    "é",
    "É",
    "k",
    " ",
    "0",
    "日",
    "l",
    "\n",
    '"',
)
PHRASES = (
    "tea", "Tea time", "time tea", "green tea", "tea, time!", "tea-time", "", "war and peace", "peace", "1 tea",
    "été 2024", "don't", "tea tea time",
)  # fmt: skip
MOMENTS = (
    "2024-01-05", "2024-01-05T10:00:00Z", "2024-01-05T10:00:00.123Z", "2024-01-31T23:59:59.999Z", "2024-02-01",
    "2024-02-29T12:30:00+02:00", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "2023-12-31", "0999-01-01",
    "9999-12-31T23:59:59Z",
)  # fmt: skip
PERIODS = (
    "2024-01-05T00:00:00Z/2024-01-06T00:00:00Z", "2024-01-05T10:00:00.123Z/2024-02-01T00:00:00Z",
    "2023-12-31T23:00:00+01:00/2024-02-01T00:00:00.000000001Z", "2024-02-01T00:00:00Z/2024-01-01T00:00:00Z",
    "2024-01-05T10:00:00.5Z||/d", "2024-02-01T09:00:00Z||-1d/d", "2024-01-31T09:00:00Z||/M",
)  # fmt: skip
SPANS = (
    *MOMENTS,
    *PERIODS,
    "2024-01",
    "2024-02",
    "2024",
    "1970",
    "2024-01-05T10",
    "2024-01-05T10:00",
    "2024-01-05T10:00:00.1Z",
)
INTEGERS = {"byte": 7, "short": 15, "integer": 31, "long": 63}
REALS = {
    "double": (
        "0.1", "1.10", "-0.0", "1e2", "1E-7", "12345678.5", "9007199254740993", "9007199254740992", "1e308",
        "4.9e-324", "-1.5",
        "0.1234567890123456789", "0", "-0", "3", "100000000000000000000000",
    ),
    "float": ("0.1", "1.10", "-0.0", "1e2", "16777216", "16777217", "3.4e38", "1E-7", "12345678.5", "-1.5", "0", "3"),
    "half_float": ("0.1", "1.10", "-0.0", "1e2", "2048", "2049", "65504", "-1.5", "0", "3"),
    "scaled_float": ("0.1", "1.10", "-0.0", "1e2", "1.115", "1.11", "12345678.5", "-1.5", "0", "3"),
}  # fmt: skip


def _integers(name: str) -> Number:
    bits = INTEGERS[name]
    edges = {0, 1, -1, 2, 7, 99, -(2**bits), 2**bits - 1, 2**bits - 2, -(2**bits) + 1}
    edges |= {2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1} if name == "long" else set()
    stored = tuple(map(str, sorted(edges)))
    operands = (*sorted(edges), *(str(each) for each in sorted(edges)[:3]), 1.0, "1.5", 3.5)
    ends = (-(2**bits), 2**bits - 1)
    return Number(name=name[0] + "_int", type=name, mapping={"type": name}, stored=stored, operands=operands, ends=ends)


def _reals(name: str) -> Number:
    mapping = {"type": name} | ({"scaling_factor": 100} if name == "scaled_float" else {})
    operands = (*REALS[name], 0.1, 1.1, 3, 100, "1e2", -0.0, "1.100000001")
    form = {"half_float": "e", "float": "f", "double": "d"}.get(name, "100")
    return Number(name=name, type=name, mapping=mapping, stored=REALS[name], operands=operands, form=form)


def _dates(name: str, formats: str, *, stored: Sequence[str], operands: Sequence[Any] = (), kind: str = "date") -> Date:
    names = tuple("iso" if each.startswith("strict") else each for each in formats.split("||")) if formats else None
    mapping = {"type": kind} | ({"format": formats} if formats else {})
    more: dict[str, Any] = {"formats": names} if names else {}
    more |= {"tick": 1, "least": 0} if kind == "date_nanos" else {}
    return Date(name=name, type=kind, mapping=mapping, stored=stored, operands=operands, **more)


_UNSIGNED = ("0", "1", str(2**53 + 1), str(2**63), str(2**63 - 1), str(2**64 - 1))
_DAYS = ("2024-01-05", "2024-01-31", "2024-02-01", "2023-12-31", "1969-12-31")
_GERMAN = ("05.01.2024", "31.01.2024", "01.02.2024", "31.12.2023", "31.12.1969")
_TIMES = ("2024-01-05 10:00:00", "2024-01-05", "2024-01-31 23:59:59", "1969-12-31 00:00:00")
_FINE = (
    "2024-01-05T10:00:00.123456789Z", "2024-01-05T10:00:00.123456788Z", "2024-01-05", "1970-01-01T00:00:00Z",
    "2024-02-01T00:00:00.000000001Z", "2200-01-01",
)  # fmt: skip
_SECONDS = ("0", "1704448800", "1704448801", "1706745600", "951782400")
_MILLIS = ("0", "1704448800123", "1704448800124", "1706745600000", "951782400000")

COLUMNS: tuple[Column, ...] = (
    Text(name="word", type="keyword", mapping={"type": "keyword"}, stored=_texts(*STRINGS), operands=STRINGS),
    Text(
        name="short",
        type="keyword",
        mapping={"type": "keyword", "ignore_above": 3},
        stored=_texts(*STRINGS),
        operands=STRINGS,
    ),
    Text(
        name="title",
        type="text",
        stored=_texts(*STRINGS),
        operands=STRINGS,
        mapping={"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 8}}},
    ),
    Words(name="prose", type="text", mapping={"type": "text"}, stored=_texts(*PHRASES), operands=PHRASES),
    *map(_integers, INTEGERS),
    Number(
        name="unsigned",
        type="unsigned_long",
        mapping={"type": "unsigned_long"},
        stored=_UNSIGNED,
        operands=_UNSIGNED,
        ends=(0, 2**64 - 1),
    ),
    *map(_reals, REALS),
    _dates("date", "", stored=(*_texts(*MOMENTS), "1704448800123"), operands=SPANS),
    _dates("fine", "", stored=_texts(*_FINE), operands=(*_FINE, *PERIODS, *SPANS[:5], "2024-01"), kind="date_nanos"),
    _dates("@timestamp", "", stored=(*_texts(*MOMENTS), "1704448800123", "1704448800124"), operands=SPANS),
    _dates("timestamp", "", stored=_texts(*_FINE), operands=(*_FINE, *SPANS[:5], "2024-01"), kind="date_nanos"),
    _dates(
        "day", "yyyy-MM-dd", stored=_texts(*_DAYS), operands=(*_DAYS, *PERIODS[:2], *PERIODS[4:], "2024-01", "2024")
    ),
    _dates("german", "dd.MM.yyyy", stored=_texts(*_GERMAN), operands=(*_GERMAN, *PERIODS[:1], *PERIODS[4:])),
    _dates("time", "yyyy-MM-dd HH:mm:ss||yyyy-MM-dd", stored=_texts(*_TIMES), operands=_TIMES),
    _dates("seconds", "epoch_second", stored=_SECONDS, operands=(*_SECONDS, *PERIODS[:2], *PERIODS[4:])),
    _dates("millis", "epoch_millis", stored=_MILLIS, operands=_MILLIS),
    Boolean(
        name="flag",
        type="boolean",
        mapping={"type": "boolean"},
        stored=("true", "false", '"true"'),
        operands=(True, False, "true"),
    ),
    Address(
        name="address",
        type="ip",
        mapping={"type": "ip"},
        stored=_texts(
            "10.0.0.1", "10.0.0.255", "9.255.255.255", "2001:db8::2", "2001:DB8::3", "::ffff:10.0.0.1", "::1"
        ),
        operands=("10.0.0.1", "10.0.0.0/24", "2001:db8::2", "2001:0DB8:0::2", "::", "10.0.1.0", "2001:db8::/32"),
    ),
    Place(
        name="spot",
        type="geo_point",
        mapping={"type": "geo_point"},
        stored=(
            *_texts("52.52,13.405", "52.5,4.75", "0,180", "0,-180", "90,0", "-33.9,151.2"),
            '{"lat":52.525,"lon":13.41}',
            '{"lat":1,"lon":1}',
            '{"lat":-10,"lon":0}',
            '{"lat":0,"lon":0}',
        ),
        operands=("52.52,13.405",),
        editable=False,
    ),
    Text(
        name="void",
        type="keyword",
        mapping={"type": "keyword", "null_value": "NONE"},
        stored=_texts("NONE", "a", "b"),
        operands=("NONE", "a"),
    ),
    Text(
        name="folded",
        type="keyword",
        mapping={"type": "keyword", "normalizer": "lowercase"},
        stored=_texts("a", "A", "b", "B"),
        operands=("a", "A", "b"),
    ),
    Number(
        name="lax",
        type="integer",
        mapping={"type": "integer", "ignore_malformed": True},
        operands=(1, 2, 3),
        stored=("1", "2", '"none"', "3"),
    ),
    Text(
        name="also",
        type="alias",
        mapping={"type": "alias", "path": "word"},
        operands=STRINGS,
        source="word",
        editable=False,
    ),
    Text(
        name="label",
        type="keyword",
        mapping={"type": "keyword"},
        stored=("100", "true", "12345678901234567890", '"1.10"', '"a"'),
        operands=("1.10", "1.1", "100", 100, True, "12345678901234567890", "a"),
        editable=False,
    ),
    Text(
        name="unsorted",
        type="keyword",
        mapping={"type": "keyword", "doc_values": False},
        stored=_texts("a", "A", "b", ""),
        operands=("a", "A", "b", ""),
        sortable=False,
    ),
    Number(
        name="shown",
        type="integer",
        mapping={"type": "integer", "index": False},
        stored=("1", "2", "3"),
        operands=(1, 2, 4),
    ),
    Text(
        name="copied",
        type="keyword",
        mapping={"type": "keyword", "copy_to": "gathered"},
        stored=_texts("a", "b", "c"),
        operands=("a", "b"),
    ),
    Text(
        name="gathered",
        type="keyword",
        mapping={"type": "keyword"},
        stored=_texts("a", "d"),
        operands=("a", "b", "d"),
    ),
    Number(
        name="loose",
        type="integer",
        mapping={"type": "integer"},
        stored=("1", "1.7", '"12"', "2", "-1.2"),
        operands=(1, 2, 12, -1, "1.7"),
        editable=False,
        form="int",
    ),
    Boolean(
        name="mark",
        type="boolean",
        mapping={"type": "boolean"},
        stored=("true", "false", '""'),
        operands=(True, False),
        editable=False,
    ),
    Keyed(
        name="flat.k",
        type="flattened",
        stored=_texts("a", "b", "10", "9"),
        operands=("a", "b", "10", "9"),
        mapping={"type": "flattened"},
        editable=False,
    ),
    Keyed(
        name="fluid.k",
        type="flat_object",
        stored=_texts("a", "b", "10", "9"),
        operands=("a", "b", "10", "9"),
        mapping={"type": "flat_object"},
        sortable=False,
        editable=False,
    ),
    Text(
        name="thing.word",
        type="keyword",
        mapping={"type": "keyword"},
        stored=_texts("a", "A", "b", ""),
        operands=("a", "b", ""),
    ),
    Number(name="thing.n", type="long", mapping={"type": "long"}, stored=("1", "2", "3"), operands=(1, 2, 4)),
    Text(
        name="list.word",
        type="keyword",
        mapping={"type": "keyword"},
        stored=_texts("a", "A", "b", ""),
        operands=("a", "b", ""),
        nested="list",
        editable=False,
    ),
    Number(
        name="list.n",
        type="long",
        mapping={"type": "long"},
        stored=("1", "2", "3"),
        operands=(1, 2, 3, 4),
        nested="list",
        editable=False,
    ),
)


COMMENT = "/* odd */"
"""What the server's parser takes and keeps, and no other reads."""

SPECIAL = (
    Text(
        name="_id",
        type="_id",
        operands=("a1", "b2", "A1", "nope"),
        mapped=False,
        sortable=False,
        editable=False,
    ),
    Text(name="_index", type="_index", operands=("-a", "-b", "oracle", "A", "nope"), mapped=False, editable=False),
)
"""The columns that every index has."""


@dataclass(frozen=True, kw_only=True)
class Index:
    """One index: its columns, and how it keeps its rows."""

    name: str
    columns: dict[str, Column]
    shards: int = 1
    window: int = 10_000

    @property
    def body(self) -> dict[str, Any]:
        """What creates it."""
        properties: dict[str, Any] = {}
        for each in self.columns.values():
            front, _, leaf = each.name.rpartition(".")
            if not each.mapped:
                continue
            if isinstance(each, Keyed):
                properties[front] = each.mapping
            elif front:
                kind = {"type": "nested"} if each.nested else {}
                properties.setdefault(front, kind | {"properties": {}})["properties"][leaf] = each.mapping
            else:
                properties[each.name] = each.mapping
        settings = {"number_of_shards": self.shards, "number_of_replicas": 0, "index.max_result_window": self.window}
        settings["refresh_interval"] = "50ms"  # a write waits for it
        return {"settings": settings, "mappings": {"dynamic": False, "properties": properties}}


class ElasticWorld:
    """One or two indices and an alias of both, with documents."""

    tells_missing = True

    def __init__(self, indices: Sequence[Index], rows: Sequence[Stored], *, alias: str = "") -> None:
        self.indices, self.rows, self.alias = list(indices), list(rows), alias
        self.arrays = frozenset(each.nested for index in indices for each in index.columns.values() if each.nested)
        self._changed: set[str] = set()
        self._times: dict[str, str] = {}

    # what rows hold

    def columns(self, name: str) -> list[Column]:
        return [each for index in self.indices if name in (index.name, self.alias) for each in index.columns.values()]

    def held(self, row: Stored, column: Column) -> Any:
        if not column.mapped:
            return row.id if column.name == "_id" else row.object
        return at(row.value, column.path, self.arrays)

    def scalars(self, row: Stored, column: Column) -> list[Any]:
        if not column.mapped:
            return [self.held(row, column)]
        name = column.path
        if row.element:
            name = name.removeprefix(f"{column.nested}.")
        return flat(at(row.value, name))

    def elements(self, row: Stored, array: str) -> list[Stored]:
        found = row.value.get(array)
        found = found if isinstance(found, list) else [found]
        return [replace(row, element=True, value=each) for each in found if isinstance(each, dict)]

    def same(self, cell: Any, value: Any) -> bool:
        return same(cell, value)

    def key(self, row: Stored) -> RowKey:
        return RowKey(row.object, row.id)

    def targets(self, name: str, tenant: str | None) -> list[Stored]:
        return [row for row in self.rows if name in (row.object, self.alias)]

    def time_column(self, name: str) -> str:
        return self._times.get(name, "")

    def nulls_first(self, *, descending: bool) -> bool:
        return False

    def of_line(self, form: ExportForm, lines: Sequence[bytes], rows: Sequence[Stored]) -> Counter[str]:
        by_id = {row.id: row for row in rows}
        found: Counter[str] = Counter()
        if form is ExportForm.DOCUMENTS:  # a document has no key: the bytes must be those of one row each
            texts: dict[bytes, list[Stored]] = {}
            for row in rows:
                texts.setdefault(row.text.encode(), []).append(row)
            for line in lines:
                left = texts.get(line) or [row for row in rows if row.odd and _shows(line, row)]
                if not left:
                    raise DifferenceError("export", "stored documents, byte for byte", line)
                found[left.pop().id] += 1
            return found
        pairs = (
            zip(lines[::2], lines[1::2], strict=True) if form is ExportForm.BULK else ((line, b"") for line in lines)
        )
        for first, second in pairs:
            head = parsed(first.replace(COMMENT.encode(), b""))
            head = head["index"] if form is ExportForm.BULK and "index" in head else head.get("create", head)
            if (row := by_id.get(head["_id"])) is not None:
                document = second if form is ExportForm.BULK else first
                if row.text.encode() not in document and not (row.odd and _shows(document, row)):
                    raise DifferenceError("export", row.text, document)
            found[head["_id"]] += 1
        return found

    def wrong_document(
        self, row: Stored, got: Any, values: dict[str, Any], *, rewritten: bool
    ) -> tuple[str, Any] | None:
        columns = {name: each for index in self.indices for name, each in index.columns.items()}
        for name, value in values.items():
            found = at(got, name)
            truth = isinstance(columns[name], Boolean) and isinstance(found, bool)  # typed by its column
            if not (
                alike(found, value)
                or valued(found) == valued(value)
                or (truth and columns[name].meaning(value) is found)
            ):
                return name, value
        left = [(path, value) for path, value in _leaves(row.value) if path not in values]
        now = dict(_leaves(got))
        return next(((path, value) for path, value in left if not kept(now.get(path, MISSING), value, rewritten)), None)

    # on a server

    async def build(self, rig: Any) -> None:
        """Make the indices and store the documents."""
        for index in self.indices:
            await rig.call("PUT", f"/{index.name}", index.body)
            rig.made.append(index.name)
        lines = []
        for row in self.rows:
            lines += [json.dumps({"index": {"_index": row.object, "_id": row.id}}), row.text]
        if lines:
            answer = await rig.call("POST", "/_bulk?refresh=true", "\n".join(lines) + "\n")
            if answer["errors"]:
                raise AssertionError([each for each in answer["items"] if each["index"]["status"] >= 300][:3])
        names = [each.name for each in self.indices]
        if self.alias:
            await rig.call(
                "POST", "/_aliases", {"actions": [{"add": {"index": name, "alias": self.alias}} for name in names]}
            )
            names.append(self.alias)
        for name in names:
            time = (await rig.driver.describe_object(name)).time
            self._times[name] = time.column if time is not None else ""

    async def remove(self, rig: Any) -> None:
        """Remove the indices."""
        for index in self.indices:
            await rig.raw("DELETE", f"/{index.name}")
            rig.made.remove(index.name)

    async def document(self, rig: Any, key: RowKey) -> Any:
        self._changed.add(key.id)
        reply = await rig.raw("GET", f"/{key.object}/_source/{key.id}")
        return parsed(reply.body) if reply.status == 200 else None

    async def restore(self, rig: Any) -> None:
        by_id = {row.id: row for row in self.rows}
        for each in self._changed:
            if (row := by_id.get(each)) is not None:
                await rig.raw("PUT", f"/{row.object}/_doc/{row.id}?refresh=true", row.text)
            else:
                await rig.raw("DELETE", f"/{self.indices[0].name}/_doc/{each}?refresh=true")
        self._changed.clear()

    # smaller

    def smaller(self, rows: Sequence[Stored], columns: frozenset[str] | None, tag: str) -> ElasticWorld:
        """Make the world with fewer rows and columns, under other names."""
        names = {each.name: f"{each.name.split('.')[0]}.{tag}" for each in self.indices}
        indices = [
            replace(each, name=names[each.name], columns=each.columns if columns is None else {
                name: column for name, column in each.columns.items()
                if name in columns or any(needs in columns and column.name == other.source
                                          for needs, other in each.columns.items())})
            for each in self.indices
        ]  # fmt: skip
        by_name = {each.name: each for each in indices}
        kept = []
        for row in rows:
            columns_now = by_name[names[row.object]].columns
            text, value = row.text, row.value
            if columns is not None and not row.odd:
                roots = {each.path.split(".")[0] for each in columns_now.values()} | set(columns_now)
                value = {key: each for key, each in row.value.items() if key in roots}
                text = written(value)
            kept.append(replace(row, object=names[row.object], columns=columns_now, text=text, value=value))
        return ElasticWorld(indices, kept, alias=f"{self.alias.split('.')[0]}.{tag}" if self.alias else "")

    def renamed(self, call: Call, tag: str) -> Call:
        """Make a call for the smaller world."""
        return replace(call, object=f"{call.object.split('.')[0]}.{tag}")

    def shown(self) -> str:
        """Write the world as requests a person could send."""
        lines = [f"PUT /{each.name} {json.dumps(each.body)}" for each in self.indices]
        if self.alias:
            lines.append(f"alias {self.alias} of {', '.join(each.name for each in self.indices)}")
        return "\n".join([*lines, *(f"PUT /{row.object}/_doc/{row.id} {row.text}" for row in self.rows)])

    # calls

    def call(self, chance: Random) -> Call:
        """Make a random call."""
        names = [each.name for each in self.indices] + ([self.alias] * 3 if self.alias else [])
        name = chance.choice(names)
        columns: dict[str, Column] = {}
        for index in self.indices:
            if name in (index.name, self.alias):
                columns = index.columns | columns
        return chances.call(chance, name, columns, self.rows, new="new", into=self.indices[0].name, parts=PARTS)


def _shows(line: bytes, row: Stored) -> bool:
    """Tell whether a line holds an odd document, which nothing but the server's own parser reads, as JSON."""
    found = parsed(line.replace(COMMENT.encode(), b""))
    return any(kept(each, row.value, True) for each in (found, found.get("_source")))


def _leaves(value: Any, before: str = "") -> list[tuple[str, Any]]:
    """Return what a document holds by dotted path; arrays are leaves."""
    if not isinstance(value, dict):
        return [(before.removesuffix("."), value)]
    return [leaf for key, each in value.items() for leaf in _leaves(each, f"{before}{key}.")]


def _document(chance: Random, columns: dict[str, Column]) -> str:
    members: list[tuple[str, str]] = []
    inner: dict[str, list[Column]] = {}
    for each in columns.values():
        front, _, _leaf = each.name.rpartition(".")
        if each.source or not each.mapped:
            continue
        if front:
            inner.setdefault(front, []).append(each)
        elif chance.random() < 0.8:
            members.append((each.name, chances.value(chance, each)))
    for front, leaves in inner.items():
        if chance.random() < 0.2:
            continue
        nested = bool(leaves[0].nested)
        way = chance.random()
        if isinstance(leaves[0], Keyed):
            members.append((front, _object(chance, leaves)))
        elif not nested and way < 0.15:
            members += [(each.name, chances.value(chance, each)) for each in leaves]
        elif (nested and way < 0.85) or way < 0.3:
            members.append((front, "[" + ",".join(_object(chance, leaves) for _ in range(chance.randint(0, 3))) + "]"))
        else:
            members.append((front, _object(chance, leaves)))
    chance.shuffle(members)
    blank = chance.choice(("", "", " "))
    return "{" + f",{blank}".join(f"{json.dumps(name)}:{blank}{text}" for name, text in members) + "}"


def _object(chance: Random, leaves: Sequence[Column]) -> str:
    held = [each for each in leaves if chance.random() < 0.8]
    return (
        "{"
        + ",".join(f"{json.dumps(each.name.rpartition('.')[2])}:{chances.value(chance, each)}" for each in held)
        + "}"
    )


def world(chance: Random, name: str, takes: frozenset[str]) -> ElasticWorld:
    """Make a world from a seed.

    Args:
        chance: The seed's.
        name: The prefix of its names.
        takes: Names of the columns that the server takes.
    """
    able = [each for each in COLUMNS if each.name in takes]
    chosen = {each.name: each for each in chance.sample(able, min(len(able), chance.randint(5, 9)))}
    if "also" in chosen:
        chosen |= {each.name: each for each in able if each.name == "word"}
    if "copied" in chosen:
        chosen |= {each.name: each for each in able if each.name == "gathered"}
    several = chance.random() < 0.4
    indices = []
    for letter in "ab" if several else "a":
        columns = chosen if letter == "a" else {key: each for key, each in chosen.items() if chance.random() < 0.8}
        if letter == "b" and {"i_int", "l_int"} & chosen.keys() and chance.random() < 0.5:
            longs = next(each for each in COLUMNS if each.name == "l_int")
            columns |= {key: replace(longs, name=key) for key in ("i_int",) if key in chosen}
        columns = {key: each for key, each in (columns or chosen).items() if not each.source or each.source in columns}
        if "copied" in columns:  # a server without dynamic mapping takes no value for a field that it does not know
            columns["gathered"] = chosen["gathered"]
        columns |= {each.name: each for each in SPECIAL}
        window = chance.choice((10_000, 10_000, 10))
        indices.append(
            Index(name=f"{name}-{letter}.0", columns=columns, shards=chance.choice((1, 1, 2, 3)), window=window)
        )
    rows = []
    for index in indices:
        for number in range(chance.choices((0, 5, 25, 40), weights=(1, 3, 6, 6))[0]):
            text = _document(chance, index.columns)
            odd = number == 3 and chance.random() < 0.2
            value = parsed(text)
            text = text.replace("{", f"{{{COMMENT}", 1) if odd else text
            rows.append(
                Stored(
                    object=index.name,
                    id=f"{index.name[-3]}{number}",
                    text=text,
                    value=value,
                    columns=index.columns,
                    odd=odd,
                )
            )
    chance.shuffle(rows)
    return ElasticWorld(indices, rows, alias=f"{name}.0" if several else "")


async def taken(rig: Any) -> frozenset[str]:
    """Find the columns that a server takes: not every build has every type."""
    found, by_name = set(), {each.name: each for each in COLUMNS}
    for each in COLUMNS:
        needed = {name: column for name, column in by_name.items() if name == each.source}
        index = Index(name="oracle-probe", columns=needed | {each.name: each})
        if (await rig.raw("PUT", "/oracle-probe", index.body)).status == 200:
            found.add(each.name)
            await rig.raw("DELETE", "/oracle-probe")
    return frozenset(found)
