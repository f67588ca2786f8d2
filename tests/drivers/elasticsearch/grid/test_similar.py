"""Rows near a row or a vector: by an index of vectors, else by a script, on fakes and on real servers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.rig import OLD, OnServer, Rig, on_fake

from dragoman_api import Filter, QueryError, RowKey, UnsupportedOperationError
from dragoman_api.errors import RowNotFoundError
from dragoman_api.grid import SimilarRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dragoman_api import Page

BY_INDEX = (8, 4)
"""The first version whose searches take `knn`."""
MEASURES = ("cosine", "l2_norm", "dot_product", "max_inner_product")
VECTORS = [[0.6, 0.8], [0.8, 0.6], [0.0, 1.0], [-0.6, -0.8], [1.0, 0.0]]


def mapped(similarity: str = "l2_norm", **more: Any) -> dict[str, Any]:
    """Return the mapping of a vector that is indexed with all of its digits."""
    options = {"type": "hnsw", "m": 16, "ef_construction": 100}
    return {"type": "dense_vector", "dims": 2, "index": True, "similarity": similarity, "index_options": options} | more


def properties(vector: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"k": {"type": "keyword"}, "v": mapped() if vector is None else vector}


async def near(es: Rig, name: str, *rows: Filter, **request: Any) -> Page:
    await es.driver.describe_object(name)
    compiled = await es.filter(name, *rows) if rows else None
    page: Page = await es.driver.similar_rows(SimilarRequest(object=name, filter=compiled, **request))
    return page


async def distances(es: Rig, name: str, *rows: Filter, **request: Any) -> list[tuple[str, Any]]:
    page = await near(es, name, *rows, **request)
    return [(key.text, cells[-1]) for key, cells in zip(page.keys, page.cells, strict=True)]


def expected(measure: str, origin: list[float], vector: list[float]) -> float:
    """Return a distance as Python computes it."""
    product = sum(one * other for one, other in zip(origin, vector, strict=True))
    if measure == "l2_norm":
        return math.dist(origin, vector)
    return 1 - product / math.hypot(*origin) / math.hypot(*vector) if measure == "cosine" else -product


def line(count: int) -> list[dict[str, Any]]:
    return [{"k": "odd" if at % 2 else "even", "v": [float(at), 1.0]} for at in range(count)]


class Rules:
    """What near rows are, wherever vectors are indexed."""

    async def test_they_come_nearest_first_under_a_filter_and_without_the_row_itself(self, es: Rig) -> None:
        """E46."""
        name = await es.index(properties(), [*line(20), {"k": "odd"}], settings={"number_of_shards": 2})
        origin = RowKey(name, "3")
        assert {row for row, _ in await distances(es, name, key=origin, limit=2)} == {"2", "4"}
        assert [row for row, _ in await distances(es, name, vector=[9, 1], limit=1)] == ["9"]
        found = await distances(es, name, Filter("k", "=", "odd"), key=origin, limit=4)
        assert ({row for row, _ in found[:2]}, [row for row, _ in found[2:]]) == ({"1", "5"}, ["7", "9"])
        assert [distance for _, distance in found] == pytest.approx([2, 2, 4, 6], rel=1e-4)
        assert await distances(es, name, Filter("k", "=", "neither"), key=origin) == []
        assert len(await distances(es, name, vector=[0, 0], limit=1_000)) == 20
        page = await near(es, name, key=origin, limit=2, columns=["k"])
        assert [column.name for column in page.columns] == ["k", "_distance"]
        assert [note.code for note in page.notes] == ["distance-measure", "nearest-approximate"]

    @pytest.mark.parametrize("measure", MEASURES)
    async def test_a_distance_is_that_of_the_measure_of_the_index_and_the_page_says_which(
        self, es: Rig, measure: str
    ) -> None:
        """E46: each grows with what is between two vectors."""
        if measure == "max_inner_product" and es.version < (8, 11):
            pytest.skip("it came with 8.11")
        name = await es.index(properties(mapped(measure)), [{"v": vector} for vector in VECTORS])
        for key, origin in enumerate(VECTORS):
            found = dict(await distances(es, name, key=RowKey(name, str(key))))
            others = {str(at): expected(measure, origin, each) for at, each in enumerate(VECTORS) if at != key}
            assert found == pytest.approx(others, abs=1e-5)
        [said] = [
            note.reason for note in (await near(es, name, vector=[1, 0])).notes if note.code == "distance-measure"
        ]
        assert {"cosine": "cosine", "l2_norm": "Euclidean"}.get(measure, "negative dot product") in said

    async def test_bytes_are_compared_as_well(self, es: Rig) -> None:
        """E46."""
        if es.version < (8, 6):
            pytest.skip("vectors of bytes came with 8.6")
        for measure in ("cosine", "dot_product"):
            vector = {"type": "dense_vector", "dims": 2, "element_type": "byte", "index": True, "similarity": measure}
            name = await es.index(properties(vector), [{"v": [10, 0]}, {"v": [0, 10]}, {"v": [10, 5]}])
            found = dict(await distances(es, name, key=RowKey(name, "0")))
            others = {"1": expected(measure, [10, 0], [0, 10]), "2": expected(measure, [10, 0], [10, 5])}
            assert found == pytest.approx(others, abs=1e-2)

    async def test_a_row_of_another_index_with_the_same_id_is_not_the_row_itself(self, es: Rig) -> None:
        """E46."""
        names = [await es.index(properties(), [{"v": [at, 1.0]}]) for at in range(2)]
        lacking = await es.index({"k": {"type": "keyword"}}, [{"k": "a"}])
        page = await near(es, ",".join(names), key=RowKey(names[0], "0"))
        assert [(key.object, key.id) for key in page.keys] == [(names[1], "0")]
        with pytest.raises(UnsupportedOperationError, match="script_lang not supported"):
            await near(es, f"{names[0]},{lacking}", vector=[1, 1])

    async def test_a_quantized_index_says_that_its_distances_are_not_exact(self, es: Rig) -> None:
        """E46."""
        if es.version < (8, 12):
            pytest.skip("quantization came with 8.12")
        vector = mapped(index_options={"type": "int8_hnsw", "m": 16, "ef_construction": 100})
        name = await es.index(properties(vector), [{"v": [1.0, 2.0]}, {"v": [2.0, 2.0]}])
        codes = [note.code for note in (await near(es, name, key=RowKey(name, "0"))).notes]
        assert codes == ["distance-measure", "nearest-approximate", "distance-approximate"]

    async def test_what_has_no_near_rows_says_why(self, es: Rig) -> None:
        """E47, E48."""
        name = await es.index(properties(mapped("cosine")), [{"v": [1.0, 2.0]}, {"k": "none"}, {"v": [2.0, 2.0]}])
        for request, kind, text in (
            ({"text": "tea"}, UnsupportedOperationError, "no vector of a text"),
            ({"vector": [1.0]}, QueryError, "have 2 numbers, not 1"),
            ({"vector": [0.0, 0.0]}, QueryError, "zeros has no direction"),
            ({"key": RowKey(name, "1")}, QueryError, "no vector 'v'"),
            ({"key": RowKey(name, "gone")}, RowNotFoundError, "'gone'"),
            ({"vector": [1.0, 1.0], "column": "k"}, QueryError, "no vectors of the name 'k'"),
        ):
            with pytest.raises(kind, match=text):
                await near(es, name, **request)
        plain = await es.index({"k": {"type": "keyword"}}, [{"k": "a"}])
        with pytest.raises(UnsupportedOperationError, match="has no vectors"):
            await near(es, plain, vector=[1.0])
        nested = {"n": {"type": "nested", "properties": {"v": {"type": "dense_vector", "dims": 2, "index": False}}}}
        with pytest.raises(UnsupportedOperationError, match="a row has several"):
            await near(es, await es.index(nested), vector=[1.0, 1.0])
        both = [await es.index(properties(mapped(measure))) for measure in ("cosine", "l2_norm")]
        with pytest.raises(UnsupportedOperationError, match="in different ways"):
            await near(es, ",".join(both), vector=[1.0, 1.0])

    async def test_vectors_without_an_index_need_a_script_and_the_refusal_says_so(self, es: Rig) -> None:
        """E47: the servers of these tests run no scripts."""
        name = await es.index(properties({"type": "dense_vector", "dims": 2, "index": False}), [{"v": [1.0, 2.0]}])
        with pytest.raises(UnsupportedOperationError, match=r"no index of these vectors.*script_lang not supported"):
            await near(es, name, vector=[1.0, 1.0])
        setting = "search.allow_expensive_queries"
        await es.call("PUT", "/_cluster/settings", {"transient": {setting: False}})
        try:
            with pytest.raises(UnsupportedOperationError, match=setting):
                await near(es, name, vector=[1.0, 1.0])
        finally:
            await es.call("PUT", "/_cluster/settings", {"transient": {setting: None}})


class TestSimilarOnFake(Rules):
    @pytest.fixture(params=["8.19.21", "9.5.3"])
    async def es(self, request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
        async with on_fake(request.param) as rig:
            yield rig


class TestSimilarOnServer(Rules, OnServer):
    @pytest.fixture(autouse=True)
    def indexed(self, es: Rig) -> None:
        if es.version < BY_INDEX:
            pytest.skip("searches take `knn` since 8.4")


class TestScripts:
    """E47: what a server with painless answers; the real servers of these tests have none."""

    @pytest.fixture(params=["8.19.21", OLD])
    async def es(self, request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
        async with on_fake(request.param) as rig:
            assert rig.fake is not None
            rig.fake.cluster.painless = True
            yield rig

    async def test_vectors_without_an_index_are_all_compared(self, es: Rig) -> None:
        vector = {"type": "dense_vector", "dims": 2} | ({} if es.version < (8, 0) else {"index": False})
        documents = [*({"k": "a", "v": each} for each in VECTORS), {"k": "a"}, {"k": "a", "v": [0.0, 0.0]}, {"k": "b"}]
        name = await es.index(properties(vector), documents)
        page = await near(es, name, Filter("k", "=", "a"), key=RowKey(name, "0"))
        found = {key.text: cells[-1] for key, cells in zip(page.keys, page.cells, strict=True)}
        others = {str(at): expected("cosine", VECTORS[0], each) for at, each in enumerate(VECTORS) if at}
        assert found == pytest.approx(others, abs=1e-6)
        assert [cells[-1] for cells in page.cells] == sorted(found.values())
        assert [note.code for note in page.notes] == ["distance-measure"]

    @pytest.mark.parametrize("measure", MEASURES)
    async def test_an_index_that_lacks_the_column_makes_the_others_be_compared_by_a_script(
        self, es: Rig, measure: str
    ) -> None:
        if es.version < (8, 0):
            pytest.skip("indexed vectors came with 8.0")
        name = await es.index(properties(mapped(measure)), [{"v": vector} for vector in VECTORS])
        lacking = await es.index({"k": {"type": "keyword"}}, [{"k": "a"}])
        found = dict(await distances(es, f"{name},{lacking}", vector=VECTORS[1]))
        others = {str(at): expected(measure, VECTORS[1], each) for at, each in enumerate(VECTORS)}
        assert found == pytest.approx(others, abs=1e-6)
