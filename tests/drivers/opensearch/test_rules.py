"""Rules of OpenSearch, on real servers: each where it differs from Elasticsearch."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from drivers.opensearch.rig import on_server

from dragoman_api import (
    CountRequest,
    ExportRequest,
    Filter,
    Json,
    ObjectsRequest,
    PageRequest,
    QueryError,
    RowKey,
    Sort,
    UnsupportedOperationError,
    Update,
)
from dragoman_api import Operator as Op
from dragoman_api.changes import OutcomeStatus
from dragoman_api.console import ConsoleText
from dragoman_api.exports import ExportForm
from dragoman_api.grid import SimilarRequest
from dragoman_api.summaries import Figure, SummaryRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivers.elasticsearch.rig import Rig

pytestmark = [pytest.mark.live("opensearch"), pytest.mark.timeout(180)]

SHARD_DOC = (3, 3)
"""The first version whose points in time have a tiebreaker."""


@pytest.fixture
async def server(live_server: dict[str, Any]) -> AsyncIterator[Rig]:
    async with on_server(live_server, options={"window": "index"}) as rig:
        yield rig


async def two_indices(server: Rig, rows: int = 30) -> str:
    """Make two indices of several shards, whose rows are reached ten at a time, and an alias of both."""
    settings = {"number_of_shards": 2, "index.max_result_window": 10}
    documents = [{"n": number % 3} for number in range(rows)]
    names = [await server.index({"n": {"type": "integer"}}, documents, settings=settings) for _ in range(2)]
    alias = f"{names[0]}-both"
    actions = [{"add": {"index": name, "alias": alias}} for name in names]
    await server.call("POST", "/_aliases", {"actions": actions})
    return alias


@pytest.mark.parametrize("sort", [(), (Sort("n"),), (Sort("n", descending=True),)], ids=["none", "up", "down"])
async def test_O5_deep_pages_of_several_indices_have_every_row_once(server: Rig, sort: tuple[Sort, ...]) -> None:
    alias = await two_indices(server)
    seen = []
    for offset in range(0, 60, 7):
        page = await server.page(alias, sort=sort, offset=offset, limit=7)
        seen += [(key.object, key.id) for key in page.keys]
    assert len(seen) == len(set(seen)) == 60


async def test_O5_an_export_of_several_indices_has_every_row_once(server: Rig) -> None:
    alias = await two_indices(server)
    request = ExportRequest(object=alias, form=ExportForm.ROWS)
    parts = [part async for part in server.driver.export_rows(request)]
    lines = [line for part in parts for line in part.data.splitlines()]
    assert len(lines) == len(set(lines)) == 60
    lines = [line for part in parts for line in part.data.splitlines()]
    assert len(lines) == len(set(lines)) == 60


async def test_O3_O4_exports_use_points_in_time_from_3_3_on_and_deep_pages_scroll(server: Rig) -> None:
    """Each context is freed at the end."""
    alias = await two_indices(server)
    await server.page(alias, offset=20, limit=5)
    assert server.sent("POST", "scroll=")
    assert not server.sent("POST", "/_search/point_in_time")
    await server.driver.close()
    assert [each.path for each in server.sent("DELETE")] == ["/_search/scroll"]
    async for _ in server.driver.export_rows(ExportRequest(object=alias)):
        pass
    last = server.sent("DELETE")[-1]
    assert last.path == ("/_search/point_in_time" if server.version >= SHARD_DOC else "/_search/scroll")
    left = await server.raw("GET", "/_search/point_in_time/_all")
    assert left.status == 404 or not json.loads(left.body)["pits"]


async def test_O6_strings_that_are_not_indexed_count_as_null_and_the_filter_says_so(server: Rig) -> None:
    name = await server.index({"k": {"type": "keyword", "ignore_above": 3}}, [{"k": "long"}, {"k": "b"}, {}])
    compiled = await server.filter(name, Filter("k", Op.NULL))
    assert [row.exact for row in compiled.rows] == [False]
    assert await server.ids(name, Filter("k", Op.NULL)) == ["0", "2"]


async def test_O8_a_flat_object_is_a_column_whose_keys_filter_as_texts(server: Rig) -> None:
    documents = [{"f": {"a": "x", "n": 10}}, {"f": {"a": "y", "n": 9}}, {"f": {}}, {"f": {"a": ["X", "z"]}}, {}]
    name = await server.index({"f": {"type": "flat_object"}, "k": {"type": "keyword"}}, documents)
    columns = {column.name: column for column in (await server.driver.describe_object(name)).columns}
    assert [column for column in columns if column.startswith("f")] == ["f"]
    assert columns["f"].type == "flat_object"
    assert not columns["f"].sortable
    assert await server.ids(name, Filter("f.a", Op.EQ, "x")) == ["0"]
    assert await server.ids(name, Filter("f.a", Op.IN, "x,z")) == ["0", "3"]
    assert await server.ids(name, Filter("f.a", Op.NULL)) == ["2", "4"]
    assert await server.ids(name, Filter("f.n", Op.BETWEEN, "1,5")) == ["0"]
    page = await server.page(name, sort=[Sort("f.a")])
    assert [note.code for note in page.notes if note.column == "f.a"] == ["sort-dropped"]
    assert len(page.keys) == 5


async def test_O9_a_derived_field_is_no_column(server: Rig) -> None:
    """The server neither sorts by one nor knows which rows have it."""
    script = {"source": "emit(doc['n'].value * 2)"}
    mapping = {"derived": {"twice": {"type": "long", "script": script}}}
    name = await server.index({"n": {"type": "integer"}}, [{"n": 2}, {"n": 1}], mapping=mapping)
    description = await server.driver.describe_object(name)
    assert [column.name for column in description.columns] == ["_id", "_index", "_score", "n"]
    page = await server.page(name, sort=[Sort("n")])
    assert [key.id for key in page.keys] == ["1", "0"]


async def test_O10_an_index_that_derives_its_documents_says_so(server: Rig) -> None:
    settings = {"number_of_shards": 1, "number_of_replicas": 0, "index.derived_source.enabled": True}
    properties = {"k": {"type": "keyword"}, "n": {"type": "integer"}}
    name = "t-derived-source"
    await server.raw("DELETE", f"/{name}")
    answer = await server.raw("PUT", f"/{name}", {"settings": settings, "mappings": {"properties": properties}})
    if answer.status == 400:
        pytest.skip("this version stores all documents")
    server.made.append(name)
    await server.load(name, [{"k": ["b", "a", "a"], "n": 1}])
    page = await server.page(name)
    assert "documents-rebuilt" in {note.code for note in (await server.driver.describe_object(name)).notes}
    [outcome] = await server.apply(Update(page.keys[0], {"k": Json('["c", "b"]')}))
    assert outcome.status is OutcomeStatus.REFUSED


@pytest.mark.parametrize("kind", ["date", "date_nanos"])
@pytest.mark.parametrize("descending", [False, True])
async def test_O12_a_sort_by_a_date_that_some_rows_lack_has_every_row(
    server: Rig, kind: str, *, descending: bool
) -> None:
    """With `_last`, 3.9.0 does not answer a descending sort of `date_nanos`."""
    documents = [{"d": f"20{10 + number % 20}-01-1{number % 9}"} if number % 3 else {} for number in range(90)]
    settings = {"number_of_shards": 4, "index.max_result_window": 1_000}
    name = await server.index({"d": {"type": kind}}, documents, settings=settings)
    seen = []
    for offset in (0, 30, 60):
        page = await server.page(name, sort=[Sort("d", descending=descending)], offset=offset, limit=30)
        seen += [key.id for key in page.keys]
    assert len(set(seen)) == 90
    assert {*seen[60:]} == {str(number) for number in range(0, 90, 3)}


async def test_O13_what_frees_the_contexts_of_others_is_a_write(server: Rig) -> None:
    parsed = await server.driver.parse_console(
        ConsoleText(
            "POST /books/_search/point_in_time?keep_alive=1m\n\n"
            'DELETE /_search/point_in_time\n{"pit_id": ["x"]}\n\n'
            "DELETE /_search/point_in_time/_all"
        )
    )
    assert [request.writes for request in parsed] == [False, False, True]


async def test_O14_hidden_indices_and_those_of_streams_are_not_listed(server: Rig) -> None:
    template = {"index_patterns": ["t-stream*"], "data_stream": {}, "template": {"settings": {"number_of_replicas": 0}}}
    await server.call("PUT", "/_index_template/t-streams", template)
    await server.call("PUT", "/_data_stream/t-stream")
    try:
        row = {"@timestamp": "2024-01-05", "a": 1}
        await server.call("PUT", "/t-stream/_create/1?refresh=true", row)
        listing = await server.driver.list_objects(ObjectsRequest())
        assert not [item.name for item in listing if item.name.startswith((".", "t-stream"))]
        page = await server.page("t-stream")
        assert [key.id for key in page.keys] == ["1"]
        [outcome] = await server.apply(Update(page.keys[0], {"a": 2}))
        assert outcome.status is OutcomeStatus.APPLIED
        assert await server.driver.count_rows(CountRequest(object="t-stream")) == 1
    finally:
        await server.raw("DELETE", "/_data_stream/t-stream")
        await server.raw("DELETE", "/_index_template/t-streams")


async def test_O1_a_cluster_that_hides_its_version_is_opensearch(live_server: dict[str, Any]) -> None:
    async with on_server(live_server) as rig:
        setting = {"compatibility.override_main_response_version": True}
        if (await rig.raw("PUT", "/_cluster/settings", {"persistent": setting})).status != 200:
            pytest.skip("3.x does not know the setting")
        try:
            async with on_server(live_server) as other:
                name = await other.index({"n": {"type": "integer"}}, [{"n": 1}])
                assert (await other.page(name)).total == 1
        finally:
            await rig.call("PUT", "/_cluster/settings", {"persistent": dict.fromkeys(setting)})


async def test_O11_whole_documents_come_without_a_parameter_for_vectors(server: Rig) -> None:
    name = await server.index({"n": {"type": "integer"}}, [{"n": 1}])
    await server.driver.fetch_page(PageRequest(object=name))
    assert not server.sent(path="exclude_vectors")


async def test_O15_O16_an_unsigned_long_filters_up_to_its_greatest_value_and_does_not_sort(server: Rig) -> None:
    values = [0, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
    name = await server.index({"u": {"type": "unsigned_long"}}, [{"u": value} for value in values])
    for bound in values:
        below = [str(number) for number, value in enumerate(values) if value < bound]
        assert await server.ids(name, Filter("u", Op.LT, str(bound))) == below
    page = await server.page(name, sort=[Sort("u")])
    assert [note.code for note in page.notes if note.column == "u"] == ["sort-dropped"]
    summary = await server.driver.summarize_column(SummaryRequest(object=name, column="u"))
    assert (summary.rows, summary.missing) == (5, 0)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("column", ["s", "l.n", "l.d"])
async def test_O17_pages_sorted_by_any_number_have_all_rows_in_order(
    server: Rig, column: str, *, descending: bool
) -> None:
    """Without a count as well, which is when the server skips rows of pages by offset."""
    leaves = {"n": {"type": "long"}, "d": {"type": "double"}}
    properties = {"s": {"type": "scaled_float", "scaling_factor": 100}, "l": {"type": "nested", "properties": leaves}}
    places = [number * 37 % 200 for number in range(200)]
    documents = [{"s": at / 4, "l": [{"n": at, "d": at / 4}]} if at < 180 else {} for at in places]
    name = await server.index(properties, documents, settings={"number_of_shards": 3, "index.max_result_window": 70})
    seen = []
    for offset in (0, 70, 140):
        sort = [Sort(column, descending=descending)]
        page = await server.page(name, sort=sort, offset=offset, limit=70, total=bool(offset))
        seen += [places[int(key.id)] for key in page.keys]
    expected = sorted(range(180), reverse=descending)
    assert (seen[:180], len({*seen})) == (expected, 200)


async def test_O18_the_total_of_not_null_counts_texts_without_a_word(server: Rig) -> None:
    name = await server.index({"t": {"type": "text"}}, [{"t": ""}])
    page = await server.page(name, Filter("t", Op.NOT_NULL))
    assert (len(page.keys), page.total) == (1, 1)


async def test_O19_a_histogram_that_an_index_has_no_room_for_is_absent_with_a_reason(server: Rig) -> None:
    small = await server.index({"n": {"type": "integer"}}, [{"n": 1}])
    great = await server.index({"n": {"type": "long"}}, [{"n": 5 * 10**15}])
    summary = await server.driver.summarize_column(SummaryRequest(object=f"{small},{great}", column="n", buckets=10))
    assert (summary.rows, summary.maximum, list(summary.buckets)) == (2, 5 * 10**15, [])
    assert "smaller numbers" in summary.absent[Figure.BUCKETS]


async def test_O21_a_sort_by_the_index_has_an_answer_where_the_first_index_is_empty(server: Rig) -> None:
    names = sorted([await server.index({}, name=f"same-{at}") for at in range(2)])
    await server.load(names[1], [{"n": 1}])
    for descending in (False, True):
        page = await server.page(",".join(names), sort=[Sort("_index", descending=descending)], limit=1)
        assert [key.object for key in page.keys] == [names[1]]
    summary = await server.driver.summarize_column(SummaryRequest(object=",".join(names), column="_index"))
    assert (summary.minimum, summary.maximum) == (names[1], names[1])


PLUGIN = (2,)
"""The major versions whose servers of these tests have the k-NN plugin; that of others is not published alone."""


def _product(one: list[float], other: list[float]) -> float:
    return sum(number * further for number, further in zip(one, other, strict=True))


SPACES = {
    "l2": math.dist,
    "cosinesimil": lambda one, other: 1 - _product(one, other) / math.hypot(*one) / math.hypot(*other),
    "innerproduct": lambda one, other: -_product(one, other),
}


async def test_O22_rows_are_near_by_the_index_of_lucene_and_by_the_plugins_script_elsewhere(server: Rig) -> None:
    keyword = {"type": "keyword"}
    if server.version[0] not in PLUGIN:
        reply = await server.raw("PUT", "/t-vectors", {"mappings": {"properties": {"v": {"type": "knn_vector"}}}})
        assert (reply.status, b"No handler for type [knn_vector]" in reply.body) == (400, True)
        with pytest.raises(UnsupportedOperationError, match="has no vectors"):
            await server.driver.similar_rows(SimilarRequest(object=await server.index({"k": keyword}), vector=[1.0]))
        return
    vectors = [[0.6, 0.8], [0.8, 0.6], [0.0, 1.0], [-2.0, 1.0], [1.0, 0.5]]
    documents = [*({"k": "a", "v": vector} for vector in vectors), {"k": "b", "v": [1.0, 1.0]}, {"k": "a"}]
    for space, distance in SPACES.items():
        for engine in ("lucene", ""):
            method = {"name": "hnsw", "engine": "lucene", "space_type": space}
            mapping = {"type": "knn_vector", "dimension": 2} | ({"method": method} if engine else {"space_type": space})
            settings = {"index.knn": bool(engine), "number_of_shards": 2}
            name = await server.index({"k": keyword, "v": mapping}, documents, settings=settings)
            compiled = await server.filter(name, Filter("k", "=", "a"))
            request = SimilarRequest(object=name, filter=compiled, key=RowKey(name, "0"), limit=3)
            page = await server.driver.similar_rows(request)
            nearest = sorted((distance(vectors[0], vector), str(at)) for at, vector in enumerate(vectors) if at)[:3]
            assert [key.id for key in page.keys] == [row for _, row in nearest], (space, engine)
            assert [cells[-1] for cells in page.cells] == pytest.approx([far for far, _ in nearest], abs=1e-5)
            codes = ["distance-measure", *(["nearest-approximate"] if engine else [])]
            assert [note.code for note in page.notes] == codes
    with pytest.raises(QueryError, match="have 2 numbers, not 1"):
        await server.driver.similar_rows(SimilarRequest(object=name, vector=[1.0]))
    lacking = f"{name},{await server.index({'k': keyword}, [{'k': 'a'}])}"
    assert len((await server.driver.similar_rows(SimilarRequest(object=lacking, vector=[1.0, 2.0]))).keys) == 6
