"""Rows near a row or a vector: order, filters, names of vectors, tenants and refusals, on fakes and on real servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import OnFake, OnServer, Rig, key, needs, on_server
from drivers.weaviate.views import view

from dragoman_api import Filter, QueryError, RowKey, UnsupportedOperationError
from dragoman_api.errors import RowNotFoundError
from dragoman_api.grid import SimilarRequest
from dragoman_weaviate import graphql
from dragoman_weaviate.grid import pages

if TYPE_CHECKING:
    from dragoman_api import Page

NAMED = {"vectorConfig": {name: {"vectorizer": {"none": {}}, "vectorIndexType": "hnsw"} for name in ("front", "side")}}
TYPES = {"n": "int", "t": "text"}


def vector(number: int) -> list[float]:
    """Return vectors whose angles, and so their distances by cosine, grow with the difference of their numbers."""
    return [1.0, number / 10]


def objects(count: int = 30) -> list[dict[str, Any]]:
    return [{"n": at, "t": "odd" if at % 2 else "even", "vector": vector(at)} for at in range(count)]


async def near(wv: Rig, name: str, *rows: Filter, **request: Any) -> Page:
    compiled = await wv.filter(name, *rows) if rows else None
    await wv.driver.describe_object(name)
    page: Page = await wv.driver.similar_rows(SimilarRequest(object=name, filter=compiled, **request))
    return page


async def numbers(wv: Rig, name: str, *rows: Filter, **request: Any) -> list[Any]:
    return [row["n"] for row in (await near(wv, name, *rows, **request)).rows]


class Rules:
    """What near rows are."""

    async def test_they_come_nearest_first_under_a_filter_and_without_the_row_itself(self, wv: Rig) -> None:
        name = await wv.collection(TYPES, objects())
        origin = RowKey(name, key(3))
        assert await numbers(wv, name, key=origin, limit=4) == [4, 2, 5, 1]
        assert await numbers(wv, name, vector=vector(3), limit=3) == [3, 4, 2]
        assert await numbers(wv, name, Filter("n", ">", 10), key=origin, limit=3) == [11, 12, 13]
        assert await numbers(wv, name, Filter("n", "<=", 2), key=origin, limit=9) == [2, 1, 0]
        assert await numbers(wv, name, Filter("t", "=", "odd"), Filter("n", "!=", 5), key=origin, limit=2) == [1, 7]
        assert await numbers(wv, name, Filter("n", ">", 99), key=origin) == []
        page = await near(wv, name, key=origin, limit=2, columns=["t"])
        assert [column.name for column in page.columns] == ["t", "_distance"]
        assert [note.code for note in page.notes] == ["nearest-approximate"]

    async def test_large_integers_and_the_guard_of_a_row_are_those_of_a_page(self, wv: Rig) -> None:
        """Rule 1 of W21: GraphQL loses integers beyond 32 bits, so that such rows are read again."""
        rows = [{"n": 2**40 + at, "vector": vector(at)} for at in range(4)]
        name = await wv.collection(TYPES, rows)
        page = await near(wv, name, vector=vector(0))
        assert [row["n"] for row in page.rows] == [2**40 + at for at in range(4)]
        assert "integers-repaired" in [note.code for note in page.notes]
        assert {key.id: key for key in page.keys} == {key.id: key for key in (await wv.page(name)).keys}

    async def test_each_of_several_vectors_has_a_name(self, wv: Rig) -> None:
        rows = [{"n": at, "vectors": {"front": vector(at), "side": [*vector(5 - at), 1]}} for at in range(6)]
        name = await wv.collection(TYPES, [*rows, {"n": 6, "vectors": {"front": vector(6)}}], **NAMED)
        origin = RowKey(name, key(5))
        assert await numbers(wv, name, key=origin, column="vector.front", limit=2) == [6, 4]
        assert await numbers(wv, name, key=origin, column="vector.side", limit=9) == [4, 3, 2, 1, 0]
        for column in (None, "vector", "vector.back"):
            with pytest.raises(QueryError) as caught:
                await near(wv, name, key=origin, column=column)
            assert "vector.front, vector.side" in caught.value.hint
        with pytest.raises(QueryError, match="has no vector side"):
            await near(wv, name, key=RowKey(name, key(6)), column="vector.side")

    async def test_what_has_no_near_rows_says_why(self, wv: Rig) -> None:
        name = await wv.collection(TYPES, [*objects(3), {"n": 9}])
        with pytest.raises(RowNotFoundError, match="holds no object"):
            await near(wv, name, key=RowKey(name, key(77)))
        with pytest.raises(QueryError, match=r"has no vector$"):
            await near(wv, name, key=RowKey(name, key(3)))
        with pytest.raises(QueryError, match="vector lengths don't match"):
            await near(wv, name, vector=[1.0, 2.0, 3.0])
        with pytest.raises(UnsupportedOperationError, match="computes no vectors"):
            await near(wv, name, text="tea")
        with pytest.raises(QueryError, match="nosuch"):
            await near(wv, name, vector=vector(1), columns=["nosuch"])
        with pytest.raises(QueryError, match="no vectors of the name 't'"):
            await near(wv, name, vector=vector(1), column="t")

    async def test_a_tenant_has_near_rows_of_its_own(self, wv: Rig) -> None:
        """W33: the key of a row names its tenant, and a call without one is refused."""
        name = await wv.collection(TYPES, multiTenancyConfig={"enabled": True})
        await wv.call("POST", f"/v1/schema/{name}/tenants", [{"name": "ann"}, {"name": "bob"}])
        await wv.load(name, objects(4), tenant="ann")
        await wv.load(name, [{"n": 99, "vector": vector(1)}], tenant="bob")
        assert await numbers(wv, name, key=RowKey(name, key(1), "ann")) == [2, 0, 3]
        assert await numbers(wv, name, vector=vector(1), tenant="bob") == [99]
        with pytest.raises(QueryError) as caught:
            await near(wv, name, vector=vector(1))
        assert caught.value.code == "tenant-required"


class TestOnFake(OnFake, Rules):
    pass


class TestOnServer(OnServer, Rules):
    pass


class TestServersOfTheirOwnKind:
    pytestmark = pytest.mark.live("weaviate")

    async def test_without_graphql_there_are_no_near_rows(self, live_server: dict[str, Any]) -> None:
        needs(live_server, DISABLE_GRAPHQL="true")
        async with on_server(live_server) as wv:
            name = await wv.collection(TYPES, objects(2))
            with pytest.raises(QueryError) as caught:
                await near(wv, name, vector=vector(1))
            assert caught.value.code == "graphql-unavailable"


def test_a_search_names_an_object_a_vector_or_a_text() -> None:
    origin = SimilarRequest(object="Books", key=RowKey("Books", key(1)))
    assert graphql.near_to(origin, "") == f'nearObject:{{id:"{key(1)}"}}'
    near = SimilarRequest(object="Books", vector=[1.0, 1e-07])
    assert graphql.near_to(near, "side") == 'nearVector:{vector:[1.0,1e-07],targetVectors:["side"]}'
    text = SimilarRequest(object="Books", text='te"a')
    assert graphql.near_to(text, "") == 'nearText:{concepts:["te\\"a"]}'


@pytest.mark.parametrize("distance", [None, "near", {}])
def test_a_row_without_a_distance_is_an_error(distance: Any) -> None:
    books = view({"n": "int"})
    rows = [{"n": 1, "_additional": {"id": key(1), "distance": distance}}]
    answers = Answers(reply({"data": {"Get": {books.target: rows}}}))
    with pytest.raises(QueryError, match="no distance"):
        answers.run(pages.similar(SimilarRequest(object=books.name, vector=[1.0]), books))


def test_a_server_without_a_module_for_texts_says_so() -> None:
    """The collection has a vectorizer, but it computes no vectors of a search's text (seen of text2vec-bigram)."""
    books = view({"n": "int"}, vectorizer="text2vec-bigram")
    message = 'Unknown argument "nearText" on field "Book" of type "GetObjectsObj".'
    answers = Answers(reply({"errors": [{"message": message}]}))
    with pytest.raises(UnsupportedOperationError, match="no module that computes a vector of a text"):
        answers.run(pages.similar(SimilarRequest(object=books.name, text="tea"), books))
    assert "nearText" in (answers.asked[0].body or "")


def test_a_search_for_what_is_near_has_no_other_order() -> None:
    """Rule 2 of the other searches adds an order by id, where several shards hold the rows."""
    books = view({"n": "int"}, shardingConfig={"actualCount": 3}, replicationConfig={"factor": 1})
    assert "sort:" in (graphql.search(books, fields=(), limit=3).body or "")
    search = graphql.search(books, fields=(), limit=3, near="nearVector:{vector:[1.0]}")
    assert "sort:" not in (search.body or "")
    assert "distance" in (search.body or "")
