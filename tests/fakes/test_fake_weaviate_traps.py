"""The traps that a driver must not fall into are really there: wrong pages, lost integers, writes that go astray."""

from __future__ import annotations

from contextlib import asynccontextmanager

import aiohttp
import pytest

from dragoman_sample.fakes.weaviate import FakeWeaviate

ROWS, PAGE = 200, 20
LONE = '{path:["i"] operator:GreaterThan valueInt:10}'
TWICE = f"{{operator:And operands:[{LONE} {LONE}]}}"
IDS = '{path:["_id"]}'
BY_NAME = f'[{{path:["name"]}} {IDS}]'
DOWN = f'[{{path:["i"] order:desc}} {IDS}]'


def uid(number):
    return f"00000000-0000-4000-8000-{number * 7919 % 10_000:04d}{number:08d}"


@asynccontextmanager
async def loaded(shards):
    async with FakeWeaviate() as server, aiohttp.ClientSession(server.url) as session:
        properties = [{"name": "i", "dataType": ["int"]}, {"name": "name", "dataType": ["text"]}]
        definition = {"class": "Doc", "properties": properties, "shardingConfig": {"desiredCount": shards}}
        await session.post("/v1/schema", json=definition)
        values = [number * 37 % ROWS for number in range(ROWS)]
        objects = [
            {"class": "Doc", "id": uid(number), "properties": {"i": value, "name": f"n{value % 7}"}}
            for number, value in enumerate(values)
        ]
        await session.post("/v1/batch/objects", json={"objects": objects})
        yield session


async def ask(session, query):
    async with session.post("/v1/graphql", json={"query": query}) as response:
        return await response.json()


async def walk(session, where="", sort="", fields="i name"):
    rows = []
    while True:
        given = (
            f"limit:{PAGE} offset:{len(rows)}"
            + (f" where:{where}" if where else "")
            + (f" sort:{sort}" if sort else "")
        )
        answer = await ask(session, f"{{ Get {{ Doc({given}) {{ {fields} _additional {{ id }} }} }} }}")
        page = answer["data"]["Get"]["Doc"]
        rows += page
        if len(page) < PAGE:
            return [row["_additional"]["id"] for row in rows]


def oracle(*, key, reverse=False, lowest=11):
    rows = [(number * 37 % ROWS, uid(number)) for number in range(ROWS)]
    kept = sorted((row for row in rows if row[0] >= lowest), key=lambda row: row[1])
    return [row[1] for row in sorted(kept, key=key, reverse=reverse)]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize(
    ("sort", "key", "reverse"), [(DOWN, lambda row: row[0], True), (BY_NAME, lambda row: row[0] % 7, False)]
)
async def test_a_page_is_right_under_the_three_rules(shards, sort, key, reverse):
    async with loaded(shards) as session:
        assert await walk(session, TWICE, sort) == oracle(key=key, reverse=reverse)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("where", [LONE, f"{{operator:And operands:[{LONE}]}}"])
async def test_a_filter_of_one_clause_doubles_rows_and_looks_well(shards, where):
    async with loaded(shards) as session:
        ids = await walk(session, where, DOWN)
        assert len(ids) == ROWS - 11
        assert len(set(ids)) < len(ids)


async def test_without_the_id_as_last_key_rows_are_doubled_over_several_shards():
    async with loaded(3) as session:
        for where in ("", TWICE):
            ids = await walk(session, where, '[{path:["name"]}]')
            assert len(set(ids)) < len(ids)
    async with loaded(1) as session:
        assert len(set(await walk(session, TWICE, '[{path:["name"]}]'))) == ROWS - 11


async def test_a_sort_key_that_is_not_selected_doubles_rows_over_several_shards():
    async with loaded(3) as session:
        ids = await walk(session, TWICE, BY_NAME, "i")
        assert len(set(ids)) < len(ids)
        assert len(set(await walk(session, TWICE, BY_NAME, "i other: name"))) == ROWS - 11


async def test_a_filtered_page_without_a_sort_doubles_rows_over_several_shards():
    async with loaded(3) as session:
        ids = await walk(session, TWICE)
        assert len(set(ids)) < len(ids)


async def test_a_count_is_right_whatever_the_filter():
    async with loaded(3) as session:
        answer = await ask(session, f"{{ Aggregate {{ Doc(where:{LONE}) {{ meta {{ count }} }} }} }}")
        assert answer == {"data": {"Aggregate": {"Doc": [{"meta": {"count": ROWS - 11}}]}}}


async def test_the_schema_has_no_order():
    async with FakeWeaviate() as server, aiohttp.ClientSession(server.url) as session:
        for name in "ABCDEFGH":
            await session.post("/v1/schema", json={"class": name})
        seen = set()
        for _ in range(5):
            async with session.get("/v1/schema") as response:
                seen.add(tuple(each["class"] for each in (await response.json())["classes"]))
        assert len(seen) > 1


async def test_an_integer_of_more_than_32_bits_is_lost_by_graphql_alone():
    async with FakeWeaviate() as server, aiohttp.ClientSession(server.url) as session:
        properties = [{"name": "i", "dataType": ["int"]}, {"name": "is", "dataType": ["int[]"]}]
        await session.post("/v1/schema", json={"class": "Doc", "properties": properties})
        values = {"i": 2**40, "is": [1, 2**40]}
        await session.post("/v1/objects", json={"class": "Doc", "id": uid(1), "properties": values})
        answer = await ask(session, "{ Get { Doc { i is } } }")
        assert answer["data"]["Get"]["Doc"] == [{"i": None, "is": [1, None]}]
        async with session.get(f"/v1/objects/Doc/{uid(1)}") as response:
            assert (await response.json())["properties"] == values


async def test_a_write_makes_what_it_names_and_overwrites_what_it_finds():
    async with FakeWeaviate() as server, aiohttp.ClientSession(server.url) as session:
        await session.post("/v1/objects", json={"class": "Doc", "id": uid(1), "properties": {"naem": "a slip"}})
        assert [*server.database.collections["Doc"].properties] == ["naem"]
        again = {"objects": [{"class": "Doc", "id": uid(1), "properties": {"naem": "b"}}]}
        async with session.post("/v1/batch/objects", json=again) as response:
            assert (await response.json())[0]["result"] == {"status": "SUCCESS"}
        assert server.database.collections["Doc"].find(uid(1), "").properties == {"naem": "b"}


async def test_a_delete_without_a_class_reaches_every_class():
    async with FakeWeaviate() as server, aiohttp.ClientSession(server.url) as session:
        for name in ("A", "B"):
            await session.post("/v1/objects", json={"class": name, "id": uid(1)})
        await session.delete(f"/v1/objects/{uid(1)}", params={"class": "A"})
        assert not any(each.find(uid(1), "") for each in server.database.everywhere())


async def test_a_class_with_tenants_spoils_the_delete_without_a_class():
    async with FakeWeaviate() as server, aiohttp.ClientSession(server.url) as session:
        await session.post("/v1/objects", json={"class": "A", "id": uid(1)})
        await session.post("/v1/schema", json={"class": "Mt", "multiTenancyConfig": {"enabled": True}})
        async with session.delete(f"/v1/objects/{uid(1)}", params={"class": "A"}) as response:
            assert response.status == 422
        assert server.database.collections["A"].find(uid(1), "")


async def test_operators_are_younger_than_the_server():
    async with FakeWeaviate(version="1.32.0") as server, aiohttp.ClientSession(server.url) as session:
        await session.post("/v1/schema", json={"class": "Doc", "properties": [{"name": "i", "dataType": ["int"]}]})
        for where in (f"{{operator:Not operands:[{LONE}]}}", '{path:["i"] operator:ContainsNone valueInt:[1]}'):
            answer = await ask(session, f"{{ Get {{ Doc(where:{where}) {{ i }} }} }}")
            assert "unrecognized operator" in answer["errors"][0]["message"]
