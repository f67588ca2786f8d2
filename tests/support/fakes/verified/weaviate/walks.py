"""Walks through pages, right and wrong ones, over one shard and over three."""

# ruff: noqa: E501 - one request on one line is what makes it a table

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakes.verified.weaviate.asks import Ask, get, graphql, post, prop, uid
from fakes.verified.weaviate.queries import clause

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS = 50
_PAGE = 15
_I, _NAME = 'path:["i"]', 'path:["name"]'
_IDS = '{path:["_id"]}'


def _setup() -> Iterator[Ask]:
    for name, shards in (("VfOne", 1), ("VfThree", 3)):
        properties = [
            prop("i", "int"),
            prop("name", "text"),
            prop("d", "date"),
            prop("tag", "text", tokenization="field"),
        ]
        properties += [prop("ts", "text[]"), prop("fast", "int", indexRangeFilters=True)]
        definition = {"class": name, "properties": properties, "shardingConfig": {"desiredCount": shards}}
        inverted = {"indexNullState": True, "indexPropertyLength": True, "indexTimestamps": True}
        yield post(f"make {name}", "/schema", {**definition, "invertedIndexConfig": inverted})
        for number in range(_ROWS):
            yield post(f"put {number} in {name}", "/objects", _row(name, number), alike="status")


def _row(name: str, number: int) -> dict[str, Any]:
    # The order in which they come, which is kept only of those that come one by one, is not that of any value.
    value = number * 37 % _ROWS
    values = {"i": value, "name": f"name{value % 7}", "d": f"20{value:02d}-01-01T00:00:00Z", "fast": value}
    values |= {"tag": f"tag{value:02d}", "ts": ["x"] * (value % 3)}
    return {"class": name, "id": uid(number), "properties": values}


_LONE = clause("i", "GreaterThan", valueInt=5)
_FILTERS = [
    "", _LONE, f"{{operator:And operands:[{_LONE} {_LONE}]}}", f"{{operator:And operands:[{_LONE}]}}",
]  # fmt: skip
_OTHERS = [
    clause("i", "LessThan", valueInt=45), clause("tag", "Like", valueText="tag*"), clause("len(tag)", "GreaterThan", valueInt=0),
    clause("id", "GreaterThan", valueText="00000000-0000-0000-1"), clause("_creationTimeUnix", "GreaterThan", valueText="1"),
    clause("fast", "GreaterThan", valueInt=5), clause("i", "NotEqual", valueInt=5), clause("i", "ContainsNone", valueInt=[5, 6]),
    clause("name", "ContainsAny", valueText=[f"name{number}" for number in range(6)]), f"{{operator:Or operands:[{_LONE}]}}",
    f"{{operator:Not operands:[{{operator:Not operands:[{_LONE}]}}]}}",
]  # fmt: skip


def _walks() -> Iterator[Ask]:
    sorts = {"": "i", f"[{{{_I} order:desc}} {_IDS}]": "i", f"[{{{_NAME}}} {_IDS}]": "name", f"[{{{_NAME}}}]": "name"}
    for where in _FILTERS:
        for sort, name in sorts.items():
            for fields in dict.fromkeys((name, "tag")):
                # With nothing to sort by, the shards stand in the order in which they happen to answer.
                chance = fields == "tag" and sort == f"[{{{_NAME}}}]" and where
                yield from _walk(where, sort, fields, ("VfOne",) if chance else ("VfOne", "VfThree"))
    for where in _OTHERS:
        for sort in [*sorts][:2]:
            yield from _walk(where, sort, "i", ("VfOne", "VfThree"))


def _walk(where: str, sort: str, fields: str, names: tuple[str, ...]) -> Iterator[Ask]:
    arguments = (
        f"limit:{_PAGE} offset:$offset" + (f" where:{where}" if where else "") + (f" sort:{sort}" if sort else "")
    )
    for name in names:
        query = f"{{ Get {{ {name}({arguments}) {{ {fields} _additional {{ id }} }} }} }}"
        # Where an id goes among three shards is the server's own affair, and with it which rows are doubled.
        sure = where.count('path:["i"] operator:GreaterThan') == 1 and "Not" not in where and _NAME not in sort
        yield graphql(query, pages=_PAGE, alike="all" if name == "VfOne" else "doubled" if sure else "order")


def _lists() -> Iterator[Ask]:
    for name in ("VfOne", "VfThree"):
        for more in ("", "&sort=name,_id&order=asc,asc", "&sort=i&order=desc", "&sort=_id&order=desc"):
            path = f"/v1/objects?class={name}&limit={_PAGE}&offset=$offset{more}"
            yield Ask(f"list {path}", "GET", path, pages=_PAGE)
        for after in ("", uid(3), "00000000-0000-0000-5000-000000000000"):
            yield get(f"/objects?class={name}&limit=7&after={after}")


WALKS = [*_setup(), *_walks(), *_lists()]
