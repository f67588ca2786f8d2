"""Collections and objects of Weaviate, from a seed: each type and tokenization, several shards, tenants."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from drivers.weaviate.rig import key
from msgspec import structs

from dragoman_api import Filter
from dragoman_api import Operator as Op
from dragoman_api.exports import ExportForm
from dragoman_api.grid import RowKey

from . import chances
from .calls import DifferenceError, Stored
from .columns import (
    PATTERNS,
    PERIOD,
    SECOND,
    VALUELESS,
    Boolean,
    Column,
    Date,
    MisfitError,
    Number,
    Place,
    Text,
    listed,
    some,
)
from .documents import MISSING, Digits, flat, parsed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from .calls import Call
    from .columns import Maybe
    from .readings import Said

LIKE = {Op.CONTAINS: "*{}*", Op.STARTS: "{}*", Op.ENDS: "*{}"}
STOPWORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "for",
        "if",
        "in",
        "into",
        "is",
        "it",
        "no",
        "not",
        "of",
        "on",
        "or",
        "such",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "will",
        "with",
    ]
)
"""Words that the server's preset `en` does not index."""


@dataclass(frozen=True, kw_only=True)
class Property(Column):
    """A property: null where it has no value."""

    def found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        values = [each for each in held if each is not None]
        if op in (Op.NULL, Op.NOT_NULL) and "empty" in said.admits:
            if self.type.endswith("[]") and values and not any(values):
                return None
            return any(each != "" for each in values) is (op is Op.NOT_NULL)
        if op is Op.EMPTY:
            return not values if "absent" in said.admits else None
        if op is Op.NOT_EMPTY:
            return bool(values)
        return super().found(op, row, held, said)


@dataclass(frozen=True, kw_only=True)
class Tokens(Property, Text):
    """A text, which the server keeps and compares as tokens."""

    tokenization: str = "word"

    def tokens(self, text: str, *, pattern: bool = False) -> list[str]:
        """Take a text apart as the server does; a pattern keeps its wildcards."""
        if self.tokenization == "field":
            return [text.strip()]
        if self.tokenization in ("whitespace", "lowercase"):
            return (text if self.tokenization == "whitespace" else text.lower()).split()
        return [each.lower() for each in re.split(r"[^\w*?]+|_" if pattern else r"[\W_]+", text) if each]

    def rank(self, held: Sequence[Any], *, descending: bool) -> Any:
        found = super().rank(held, descending=descending)
        return None if found is None else found.lower()

    def holds(self, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        if "dotted" in said.admits:
            row, held = structs.replace(row, value=_undotted(row.value)), _undotted(held)
        if row.op is Op.NE and "words" in said.admits:  # as documented: none of its words
            words = set(self.tokens(str(row.value))) - STOPWORDS
            return not words & {token for each in held if each for token in self.tokens(each)}
        return super().holds(row, held, said)

    def found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        values = [each for each in held if each is not None]
        if op in (Op.EMPTY, Op.NOT_EMPTY):
            filled = bool(values) if self.type.endswith("[]") else any(values)
            return filled is (op is Op.NOT_EMPTY)
        if op in (Op.NULL, Op.NOT_NULL):
            return Property.found(self, op, row, held, said)
        if op in PATTERNS:
            return self._like(op, str(row.value), values, said)
        if op is Op.IN:
            return some([self._equals(str(each), values, said) for each in listed(row.value)])
        if op is Op.EQ:
            return self._equals(str(row.value), values, said)
        raise MisfitError(f"a text has no {op}")

    def _equals(self, wanted: str, values: Sequence[str], said: Said) -> Maybe:
        if self.tokenization == "trigram":
            return True if wanted in values and len(wanted) > 2 else None
        if "words" in said.admits:
            words = set(self.tokens(wanted))
            if "stopwords" in said.admits:
                words -= STOPWORDS
            return words <= {token for each in values for token in self.tokens(each)}
        if "trimmed" in said.admits:
            return wanted.strip() in [each.strip() for each in values]
        return wanted in values

    def _like(self, op: Op, part: str, values: Sequence[str], said: Said) -> Maybe:
        if self.tokenization == "trigram":
            return None
        if not {"words", "trimmed", "wild", "lines"} & said.admits:  # exact: a part of the text, whatever its case
            keeps = self.tokenization in ("field", "whitespace")
            texts = list(values) if keeps else [each.lower() for each in values]
            wanted = part if keeps else part.lower()
            if op is Op.CONTAINS:
                return any(wanted in text for text in texts)
            return any(text.startswith(wanted) if op is Op.STARTS else text.endswith(wanted) for text in texts)
        parts = self.tokens(LIKE[op].format(part), pattern=True)
        ways = [re.escape(each).replace(r"\*", ".*").replace(r"\?", ".") for each in parts]
        held = [token for each in values for token in self.tokens(each)]
        if "lines" in said.admits:
            loose = any("\n" in each for each in held)
            answer = all(any(re.fullmatch(way, each) for each in held) for way in ways)
            return answer if answer or not loose else None
        return all(any(re.fullmatch(way, each) for each in held) for way in ways)


@dataclass(frozen=True, kw_only=True)
class Amount(Property, Number):
    """A number: 64-bit floating point, integers too beyond 2^53."""

    def found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        if "floats" in said.admits and op not in VALUELESS:
            operands = row.value if isinstance(row.value, list) else [row.value]
            rounded = [Decimal(float(self.meaning(each))) for each in operands]
            value: Any = [str(each) for each in rounded] if isinstance(row.value, list) else str(rounded[0])
            row = Filter(row.column, row.op, value)
            held = [Digits(Decimal(float(each))) for each in self.read(held)]
        return super().found(op, row, held, said)

    def far(self, value: Any) -> bool:
        return self.type.startswith("int") and bool(value >= 2**63 - 512)


def _undotted(value: Any) -> Any:
    """Return a text with i for İ, or a list of such texts."""
    if isinstance(value, list):
        return [_undotted(each) for each in value]
    return value.replace("İ", "i") if isinstance(value, str) else value


_FIRST, _LAST = -9_223_286_400 * SECOND, 9_223_286_400 * SECOND
"""1677-09-22 and 2262-04-11, between which nanoseconds since 1970 have 64 bits."""


@dataclass(frozen=True, kw_only=True)
class Moment(Property, Date):
    """A date: one moment."""

    def far(self, value: Any) -> bool:
        return not _FIRST <= value < _LAST

    tick: int = 1

    def counted(self, stored: Any) -> str:
        return str(stored)  # as it was written

    def span(self, operand: Any) -> tuple[int, int]:
        if PERIOD.fullmatch(str(operand)):
            return super().span(operand)
        if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", str(operand).strip()):
            raise MisfitError(f"{operand!r} is no time stamp")
        first, _ = super().span(str(operand).strip())
        return first, first


@dataclass(frozen=True, kw_only=True)
class Spot(Property, Place):
    """A place, of which the server takes a circle only."""

    sortable: bool = False
    radius: float = 6_371_000.0
    margin: float = 3.0

    def found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        return Place.found(self, op, row, held, said)


@dataclass(frozen=True, kw_only=True)
class Identity(Property, Text):
    """A uuid."""

    def meaning(self, stored: Any) -> str:
        try:
            return str(UUID(str(stored)))
        except ValueError:
            raise MisfitError(f"{stored!r} is no uuid") from None

    def found(self, op: Op, row: Filter, held: Sequence[Any], said: Said) -> Maybe:
        return Property.found(self, op, row, held, said)


@dataclass(frozen=True, kw_only=True)
class Truth(Property, Boolean):
    """A boolean."""


@dataclass(frozen=True, kw_only=True)
class Opaque(Property):
    """What takes no filter."""

    sortable: bool = False

    def meaning(self, stored: Any) -> Any:
        return json.dumps(stored)


def _texts(*texts: str) -> tuple[str, ...]:
    return tuple(json.dumps(each, ensure_ascii=False) for each in texts)


STRINGS = (
    "tea", "Tea time", "time tea", "green-tea", "tea, time!", "", "war and peace", "the tea", "peace", "x1",
    "Éclair", "naïve", "日本", "A-1", "a-1", " pad ", 'q"uote', "back\\slash", "two\nlines", "tab\there", "emoji😀",
    "*", "A-10", "a@b", "@", "seaside tea", "snake_case", "İ", "ß",
)  # fmt: skip
PARTS = (
    "te",
    "TE",
    "a",
    "sea",
    "A-",
    "@",
    "é",
    "É",
    "1",
    " ",
    "tea t",
    "e*",
    "?",
    "ine",
    "_",
    "日",
    "-",
    "ea",
)
INTS = (
    "0", "1", "-1", "7", "99", str(2**31 - 1), str(2**31), str(-(2**31) - 1), str(2**40), str(2**53 - 1),
    str(2**53), str(2**53 + 1), str(2**63 - 1), str(-(2**63)), str(-(2**53)),
)  # fmt: skip
NUMBERS = (
    "0",
    "0.1",
    "-0.0",
    "1e-7",
    "1e21",
    "1e308",
    "4.9e-324",
    "3.25",
    "-1.5",
    "9007199254740993",
    "1.10",
    "2",
)
MOMENTS = (
    "2024-01-05T00:00:00Z", "2024-01-05T00:00:00.5Z", "2024-01-31T23:59:59.999999999Z",
    "2023-12-31T12:00:00Z", "1970-01-01T00:00:00Z", "2024-02-01T01:00:00+02:00", "1969-12-31T23:59:59.999Z",
    "2024-01-04T23:00:00-01:00", "1677-09-22T00:00:00Z", "2262-04-11T00:00:00Z", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
)  # fmt: skip
PERIODS = (
    "2024-01-05T00:00:00Z/2024-01-06T00:00:00Z", "2024-01-05T00:00:00.5Z/2024-02-01T00:00:00Z",
    "2023-12-31T23:00:00+01:00/2024-01-31T23:59:59.999999999Z", "2024-02-01T00:00:00Z/2024-01-01T00:00:00Z",
    "1969-12-31T00:00:00Z/1970-01-01T00:00:00Z",
)  # fmt: skip
UUIDS = tuple(f"{at}a000000-1111-4222-8333-444444444444" for at in range(5))


def _text(name: str, tokenization: str, *, many: bool = False) -> Tokens:
    kind = "text[]" if many else "text"
    mapping = {"dataType": [kind], "tokenization": tokenization}
    stored = _texts(*STRINGS)
    return Tokens(
        name=name,
        type=kind,
        mapping=mapping,
        stored=stored,
        operands=STRINGS,
        tokenization=tokenization,
        sortable=not many,
    )


def _others(
    name: str, server: str, kind: type[Column], stored: Sequence[str], operands: Sequence[Any], **more: Any
) -> list[Column]:
    """Make a property of a type, and one of its arrays."""
    mapping = {"dataType": [server], **more}
    one = kind(name=name, type=server, mapping=mapping, stored=stored, operands=operands)
    several = mapping | {"dataType": [f"{server}[]"]}
    return [one, replace(one, name=f"{name}s", type=f"{server}[]", mapping=several, sortable=False)]


_RANGED = {"indexFilterable": False, "indexRangeFilters": True}
COLUMNS: tuple[Column, ...] = (
    *(_text(name, name) for name in ("word", "lowercase", "whitespace", "field", "trigram")),
    _text("words", "word", many=True),
    _text("fields", "field", many=True),
    *_others("int", "int", Amount, INTS, (*INTS, 1.0, 5, "1.5")),
    Amount(
        name="ranged", type="int", mapping={"dataType": ["int"], **_RANGED}, stored=INTS[:8], operands=(*INTS[:8], 50)
    ),
    *_others("number", "number", Amount, NUMBERS, (*NUMBERS, 0.1, 3, "0.10000000000000000555")),
    *_others("date", "date", Moment, _texts(*MOMENTS), (*MOMENTS, *PERIODS, "2024-01-05")),
    *_others("flag", "boolean", Truth, ("true", "false"), (True, False, "true")),
    *(
        replace(each, sortable=False)
        for each in _others("shelf", "uuid", Identity, _texts(*UUIDS), (*UUIDS, UUIDS[1].upper(), "nope"))
    ),
    Opaque(
        name="thing",
        type="object",
        operands=(1,),
        stored=('{"k":1}', '{"k":2,"w":"a"}', '{"w":"b"}'),
        editable=False,
        mapping={
            "dataType": ["object"],
            "nestedProperties": [{"name": "k", "dataType": ["int"]}, {"name": "w", "dataType": ["text"]}],
        },
    ),
    Spot(
        name="place",
        type="geoCoordinates",
        operands=("52.5,4.75",),
        mapping={"dataType": ["geoCoordinates"]},
        editable=False,
        stored=(
            '{"latitude":52.5,"longitude":4.75}',
            '{"latitude":-10,"longitude":0}',
            '{"latitude":0,"longitude":180}',
            '{"latitude":0,"longitude":-180}',
            '{"latitude":1,"longitude":1}',
            '{"latitude":52.52,"longitude":13.405}',
        ),
    ),
)
KEY = Identity(
    name="uuid", type="key", operands=(*map(key, range(6)), key(3).upper(), "nope"), mapped=False, editable=False
)
"""The key of every object."""

NUMBER = Amount(name="nr", type="int", mapping={"dataType": ["int"]}, operands=(0, 1, 5, 17, 100), editable=False)
"""Every object holds its number, by which an exported line is found again."""


@dataclass
class WeaviateWorld:
    """One collection with objects."""

    tells_missing: ClassVar = False  # the server stores no nulls
    name: str
    properties: dict[str, Column]
    rows: list[Stored]
    shards: int = 1
    tenants: tuple[str, ...] = ()
    index: dict[str, bool] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    _changed: set[tuple[str, str | None]] = field(default_factory=set)

    # what rows hold

    def columns(self, name: str) -> list[Column]:
        return list(self.properties.values()) if name == self.name else []

    def held(self, row: Stored, column: Column) -> Any:
        return row.value.get(column.name, MISSING) if column.mapped else row.id

    def scalars(self, row: Stored, column: Column) -> list[Any]:
        return flat(self.held(row, column))

    def elements(self, row: Stored, array: str) -> list[Stored]:
        raise AssertionError(f"{array} is no nested array")

    def same(self, cell: Any, value: Any) -> bool:
        return equal(parsed(cell) if isinstance(value, (dict, list)) else cell, value)

    def key(self, row: Stored) -> RowKey:
        return RowKey(row.object, row.id, row.tenant)

    def targets(self, name: str, tenant: str | None) -> list[Stored]:
        return [row for row in self.rows if row.tenant == tenant]

    def time_column(self, name: str) -> str:
        return ""

    def nulls_first(self, *, descending: bool) -> bool:
        return not descending

    def of_line(self, form: ExportForm, lines: Sequence[bytes], rows: Sequence[Stored]) -> Counter[str]:
        by_number = {self.numbers[row.id]: row for row in rows}
        found: Counter[str] = Counter()
        for line in lines:
            item = parsed(line)
            properties = item if form is ExportForm.DOCUMENTS else item["properties"]
            row = by_number.get(int(properties["nr"]))
            if row is None or not equal(properties, row.value):
                raise DifferenceError("export", row.value if row else "objects that are stored", line)
            if form is not ExportForm.DOCUMENTS and item["id"] != row.id:
                raise DifferenceError("export", row.id, line)
            found[row.id] += 1
        return found

    def wrong_document(
        self, row: Stored, got: Any, values: dict[str, Any], *, rewritten: bool
    ) -> tuple[str, Any] | None:
        del rewritten
        if got is None:
            return "the object", row.value
        for name, value in values.items():
            column = self.properties[name]
            meant = [[column.meaning(each) for each in flat(one)] for one in (got.get(name, MISSING), value)]
            if isinstance(column, Amount):
                meant = [list(map(float, each)) for each in meant]
            if meant[0] != meant[1]:
                return name, value
        left = {name: value for name, value in row.value.items() if name not in values}
        return next(((name, value) for name, value in left.items() if not equal(got.get(name, MISSING), value)), None)

    # on a server

    async def build(self, rig: Any) -> None:
        """Make the collection and store the objects; what the server made of them is what is stored."""
        definition: dict[str, Any] = {
            "class": self.name, "vectorizer": "none", "vectorIndexType": "flat", "invertedIndexConfig": self.index,
            "properties": [{"name": name, **each.mapping} for name, each in self.properties.items() if each.mapped],
        }  # fmt: skip
        definition |= (
            {"multiTenancyConfig": {"enabled": True}}
            if self.tenants
            else {"shardingConfig": {"desiredCount": self.shards}}
        )
        await rig.call("POST", "/v1/schema", definition)
        rig.made.append(self.name)
        if self.tenants:
            await rig.call("POST", f"/v1/schema/{self.name}/tenants", [{"name": each} for each in self.tenants])
        items = [self._item(row) for row in self.rows]
        if items:
            done = await rig.call("POST", "/v1/batch/objects", '{"objects":[' + ",".join(items) + "]}")
            failed = [each["result"] for each in done if each["result"].get("errors")]
            assert not failed, str(failed)[:1000]
        stored: dict[str, Any] = {}
        for tenant in self.tenants or (None,):
            more = f"&tenant={tenant}" if tenant else ""
            reply = await rig.raw("GET", f"/v1/objects?class={self.name}&limit=1000{more}")
            stored |= {each["id"]: each["properties"] for each in parsed(reply.body)["objects"] or []}
        self.rows = [replace(row, value=stored[row.id]) for row in self.rows]
        await rig.driver.describe_object(self.name)

    def _item(self, row: Stored) -> str:
        tenant = f'"tenant":"{row.tenant}",' if row.tenant else ""
        return f'{{"class":"{row.object}","id":"{row.id}",{tenant}"properties":{row.text}}}'

    async def remove(self, rig: Any) -> None:
        """Remove the collection."""
        await rig.raw("DELETE", f"/v1/schema/{self.name}")
        rig.made.remove(self.name)

    async def document(self, rig: Any, key: RowKey) -> Any:
        self._changed.add((key.id, key.routing))
        tenant = f"?tenant={key.routing}" if key.routing else ""
        reply = await rig.raw("GET", f"/v1/objects/{key.object}/{key.id}{tenant}")
        return parsed(reply.body)["properties"] if reply.status == 200 else None

    async def restore(self, rig: Any) -> None:
        by_id = {row.id: row for row in self.rows}
        for each, tenant in self._changed:
            await rig.raw("DELETE", f"/v1/objects/{self.name}/{each}" + (f"?tenant={tenant}" if tenant else ""))
            if (row := by_id.get(each)) is not None:
                await rig.call("POST", "/v1/objects", self._item(row))
        self._changed.clear()

    # smaller

    def smaller(self, rows: Sequence[Stored], columns: frozenset[str] | None, tag: str) -> WeaviateWorld:
        """Make the world with fewer rows and columns, under another name."""
        name = f"{self.name.split('_')[0]}_{tag}"
        kept = {
            each: column
            for each, column in self.properties.items()
            if columns is None or each in columns or each in ("uuid", "nr")
        }
        fewer = []
        for row in rows:
            members = parsed(row.text)
            from .documents import written

            text = written({each: value for each, value in members.items() if each in kept})
            fewer.append(replace(row, object=name, columns=kept, text=text))
        return replace(self, name=name, properties=kept, rows=fewer, _changed=set())

    def renamed(self, call: Call, tag: str) -> Call:
        """Make a call for the smaller world."""
        return replace(call, object=f"{self.name.split('_')[0]}_{tag}")

    def shown(self) -> str:
        """Write the world."""
        properties = [{"name": name, **each.mapping} for name, each in self.properties.items() if each.mapped]
        head = f"{self.name} shards={self.shards} tenants={self.tenants} index={self.index} {json.dumps(properties)}"
        return "\n".join([head, *(f"{row.id} {row.tenant or ''} {row.text}" for row in self.rows)])

    # calls

    def call(self, chance: Random) -> Call:
        """Make a random call."""
        tenant = chance.choice(self.tenants) if self.tenants else None
        return chances.call(
            chance, self.name, self.properties, self.rows, new=key(9_999), into=self.name, parts=PARTS, tenant=tenant,
        )  # fmt: skip


def equal(got: Any, stored: Any) -> bool:
    """Compare values as the server keeps them: numbers are 64-bit floats, keys have no order."""
    if isinstance(stored, dict):
        return (
            isinstance(got, dict)
            and got.keys() == stored.keys()
            and all(equal(got[key], stored[key]) for key in stored)
        )
    if isinstance(stored, list):
        return isinstance(got, list) and len(got) == len(stored) and all(map(equal, got, stored))
    if isinstance(stored, Digits):
        return (
            not isinstance(got, bool) and isinstance(got, (int, float, Decimal, Digits)) and float(got) == float(stored)
        )
    return type(got) is type(stored) and bool(got == stored)


def world(chance: Random, name: str, takes: frozenset[str]) -> WeaviateWorld:
    """Make a world from a seed."""
    chosen = chance.sample(COLUMNS, chance.randint(5, 9))
    columns: dict[str, Column] = {"uuid": KEY, "nr": NUMBER} | {each.name: each for each in chosen}
    tenants = ("one", "two") if chance.random() < 0.15 else ()
    name = f"O{name[1:]}_0"
    rows, numbers = [], {}
    for number in range(chance.choices((0, 5, 25, 60), weights=(1, 3, 6, 6))[0]):
        members = {"nr": str(number)}
        for each in chosen:
            if chance.random() < 0.85:
                many = each.type.endswith("[]")
                several = chance.choices(each.stored, k=chance.randint(0, 3)) if many else []
                members[each.name] = "[" + ",".join(several) + "]" if many else chance.choice(each.stored)
        text = "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in members.items()) + "}"
        tenant = chance.choice(tenants) if tenants else None
        rows.append(Stored(object=name, id=key(number), text=text, value={}, columns=columns, tenant=tenant))
        numbers[key(number)] = number
    every = {"indexNullState": True, "indexPropertyLength": True, "indexTimestamps": True}
    return WeaviateWorld(
        name=name, properties=columns, rows=rows, shards=chance.choice((1, 1, 3)), tenants=tenants, numbers=numbers,
        index=every if chance.random() < 0.8 else {},
    )  # fmt: skip


async def taken(rig: Any) -> frozenset[str]:
    """Find the columns that a server takes: all."""
    return frozenset(each.name for each in COLUMNS)
