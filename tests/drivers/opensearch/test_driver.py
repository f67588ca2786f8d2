"""The OpenSearch driver by itself and on fakes: which servers it takes, its points in time, its refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.test_conformance import target_of
from drivers.opensearch.fake_rig import VERSIONS, on_fake
from drivers.replies import Answers, reply

from dragoman_api import ExportRequest, Filter, HttpRequest, PageRequest, Profile, Sort
from dragoman_api import Operator as Op
from dragoman_api.connections import AuthScheme, Secrets
from dragoman_api.errors import AuthenticationError, QueryError, ServerNotSupportedError
from dragoman_api.exports import ExportForm, SplitRequest
from dragoman_api.remedies import Remedy
from dragoman_api.summaries import Figure, SummaryRequest
from dragoman_api.testing import DriverConformance, Target
from dragoman_elasticsearch import connect as elasticsearch
from dragoman_opensearch import driver
from dragoman_opensearch.driver import POINTS, TAGLINE, Driver, dialect_of, identify
from dragoman_querydsl import objects, protocol
from dragoman_querydsl.grid.deep_pages import ScrollPager
from dragoman_querydsl.grid.pages import CONSTANT, compile_sort
from dragoman_querydsl.search import MATCH_ALL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivers.elasticsearch.rig import Rig

    from dragoman_api import Server
    from dragoman_querydsl.columns.grid_columns import View
    from dragoman_querydsl.protocol import Dialect


class TestConformanceOnFake(DriverConformance):
    @pytest.fixture(scope="class", params=VERSIONS)
    async def target(self, request: pytest.FixtureRequest) -> AsyncIterator[Target]:
        async with on_fake(request.param) as es:
            yield await target_of(es, rows=30, plugin="opensearch")


@pytest.mark.slow
class TestConformanceInTheSandbox(DriverConformance):
    @pytest.fixture(scope="class")
    async def target(self) -> AsyncIterator[Target]:
        async with on_fake("2.19.6", confined=True) as es:
            yield await target_of(es, plugin="opensearch")


def read_view(mappings: dict[str, Any], capabilities: dict[str, Any]) -> View:
    """Return the view of one index, as the server describes it."""
    answers = Answers(
        reply({"x": {"mappings": mappings}}),
        reply({"indices": ["x"], "fields": capabilities}),
        reply({"x": {"settings": {}}}),
    )
    return answers.run(objects.view("x"))


def about(number: str = "2.19.6", *, tagline: str = TAGLINE, distribution: str = "opensearch") -> dict[str, Any]:
    named = {"distribution": distribution} if distribution else {}
    return {"name": "n1", "version": {"number": number, **named}, "tagline": tagline}


def identified(*answers: Any, **options: Any) -> tuple[Server, Dialect]:
    given = Profile(name="shop", type="opensearch", host="h", port=9200, options=options)
    return Answers(*answers).run(identify(given))


@pytest.mark.parametrize(
    ("number", "snapshots"), [("2.0.0", None), ("2.19.6", None), ("3.2.9", None), ("3.3.0", POINTS)]
)
def test_versions_2_and_3_are_taken_and_exports_scroll_where_points_in_time_lose_rows(number: str, snapshots: Any):
    """O1, O4."""
    server, dialect = identified(reply(about(number)))
    assert (server.product, server.version, server.notes) == ("OpenSearch", number, [])
    assert dialect.snapshots == snapshots
    assert dialect.case_insensitive
    assert (dialect.finds_ignored, dialect.asks_for_vectors, dialect.ties_as_offset) == (False, False, False)


def test_a_server_that_calls_itself_7_10_2_is_known_by_its_tagline():
    """O1."""
    server, dialect = identified(reply(about("7.10.2", distribution="")))
    assert (server.version, dialect) == ("7.10.2", dialect_of())
    assert "override_main_response_version" in server.notes[0]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (about("1.3.20"), "OpenSearch 1.3.20 answered"),
        (about("4.0.0"), "OpenSearch 4.0.0 answered"),
        (about("5.0", distribution="other"), "other 5.0 answered"),
        (about("7.10.2", distribution="", tagline="Mine"), "calls itself 7.10.2 and is not OpenSearch"),
        ("<html>", "answers no JSON"),
        ([], "answers no JSON"),
        (about("many"), "opensearch many answered"),
    ],
)
def test_other_servers_are_refused_by_name(answer: Any, told: str):
    """O1."""
    with pytest.raises(ServerNotSupportedError) as caught:
        identified(reply(answer))
    assert told in caught.value.message


def test_a_newer_major_version_is_taken_by_a_switch():
    server, dialect = identified(reply(about("4.1.0")), untested_versions=True)
    assert (server.notes, dialect.snapshots) == (["OpenSearch 4.1.0 is newer than this driver and untested"], POINTS)


def test_each_of_the_two_drivers_names_the_other():
    of_elastic = {"version": {"number": "8.19.21"}, "tagline": elasticsearch.TAGLINE}
    given = Profile(name="shop", type="elasticsearch", host="h", port=9200)
    for exchange, answer, kind in (
        (identify(given), of_elastic, "elasticsearch"),
        (elasticsearch.identify(given), about(), "opensearch"),
        (elasticsearch.identify(given), about("7.10.2", distribution=""), "opensearch"),
    ):
        with pytest.raises(ServerNotSupportedError) as caught:
            Answers(reply(answer)).run(exchange)
        text = f"save a connection of the type {kind}: that driver works with it"
        assert caught.value.remedies == (Remedy("advice", {"text": text}),)


def test_credentials_that_may_not_see_the_version_connect_with_what_all_have():
    """O2."""
    server, dialect = identified(reply("", 403), reply({"user_name": "x"}))
    assert (server.version, dialect) == ("", dialect_of())
    assert "cluster:monitor/main" in server.notes[0]
    with pytest.raises(ServerNotSupportedError, match="403"):
        identified(reply("", 403), reply("", 404))
    for answers in ([reply("Unauthorized", 401)], [reply("", 403), reply("Unauthorized", 401)]):
        with pytest.raises(AuthenticationError):
            identified(*answers)


def test_a_full_queue_has_a_name_of_its_own_and_waiting_helps():
    """O7: also for too many scrolls and points in time."""
    error = {"type": "rejected_execution_exception", "reason": "rejected execution"}
    answer = reply({"error": {**error, "root_cause": [error]}, "status": 429}, 429)
    fault = protocol.read(answer)
    assert (fault.busy, fault.unsure) == (True, False)
    assert "wait" in protocol.exception(fault).hint


def test_rejected_credentials_say_that_the_plugin_serves_https():
    given = Profile(name="shop", type="opensearch", host="h", port=9200, auth_scheme=AuthScheme.BASIC,
                    options={"username": "u"}, secrets=Secrets(values={"password": "p"}))  # fmt: skip
    error = Driver().rejected(AuthenticationError("no"), given)
    assert "the security plugin serves HTTPS" in str(error.hint)


def test_points_in_time_have_their_own_path_and_member():
    """O3."""
    opening = POINTS.open("a,b", keep_alive="60s")
    assert (opening.method, opening.path) == (
        "POST", "/a,b/_search/point_in_time?keep_alive=60s&allow_partial_pit_creation=false",
    )  # fmt: skip
    closing = POINTS.close("x")
    assert (closing.method, closing.path, json.loads(closing.body or "")) == (
        "DELETE", "/_search/point_in_time", {"pit_id": "x"},
    )  # fmt: skip
    dialect = driver.Driver.dialect
    assert dialect.reads(opening)
    assert dialect.reads(closing)
    assert dialect.may_write("POST", "/a/_pit")
    assert not elasticsearch.dialect_of().may_write("POST", "/a/_pit")
    assert elasticsearch.dialect_of().may_write("POST", "/a/_search/point_in_time")


def test_a_scroll_is_never_moved_on_twice():
    """A second request would skip the rows of the first one's answer."""
    assert not driver.Driver.dialect.reads(HttpRequest("POST", "/_search/scroll", '{"scroll_id": "x"}'))


def test_rows_of_several_indices_are_told_apart():
    """O5: `_shard_doc` counts the shards of each index from 0."""
    assert {*POINTS.tiebreakers} == {"_shard_doc", "_index"}


def test_names_are_listed_without_the_statistics_of_all_shards():
    assert dialect_of().resolves_names


def test_a_server_that_denies_its_version_and_knows_no_security_plugin_is_another():
    with pytest.raises(ServerNotSupportedError, match="403 to GET / and 400"):
        identified(reply("", 403), reply({"error": "no handler found"}, 400))


def test_a_flat_object_is_one_column_whose_keys_compare_as_texts_and_do_not_sort():
    """O8: the capabilities are those of 2.19.6, which name the field once more, with a dot behind it."""
    capabilities = {"flat_object": {"type": "flat_object", "searchable": True, "aggregatable": False}}
    view = read_view({"properties": {"f": {"type": "flat_object"}}}, {"f": capabilities, "f.": capabilities})
    assert [*view.columns] == ["_id", "_index", "_score", "f"]
    key = view.find("f.a.b")
    assert key is not None
    assert (key.types, key.keys) == (("flat_object",), ("f", "a", "b"))
    operators, reasons, sortable = key.support
    assert {Op.EQ, Op.IN, Op.NULL} <= {*operators}
    assert (sortable, reasons["sort"]) == (False, "it has no doc values, which a sort needs")


def test_an_index_that_derives_its_documents_is_asked_for_and_says_so():
    """O10: the mapping does not show it."""
    asked = Answers(
        reply({"x": {"mappings": {"properties": {"k": {"type": "keyword"}}}}}),
        reply({"indices": ["x"], "fields": {"k": {"keyword": {"searchable": True, "aggregatable": True}}}}),
        reply({"x": {"settings": {"index.derived_source.enabled": "true"}}}),
    )
    assert asked.run(objects.view("x")).synthetic
    assert "index.derived_source.enabled" in asked.asked[2].path
    settings = Answers(reply({"x": {"settings": {"index.derived_source.enabled": "true"}}}))
    own_settings = settings.run(objects.index_settings("x"))
    assert own_settings is not None
    assert own_settings["x"].synthetic
    assert "index.derived_source.enabled" in settings.asked[0].path


class TestOnFake:
    @pytest.fixture(params=VERSIONS)
    async def es(self, request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
        async with on_fake(request.param) as es:
            yield es

    async def test_pages_past_the_window_follow_those_before_it(self, es: Rig) -> None:
        documents = [{"n": at % 7} for at in range(10_050)]
        name = await es.index({"n": {"type": "integer"}}, documents, settings={"number_of_shards": 2})
        await es.driver.describe_object(name)
        keys = set()
        for offset in (0, 5_000, 9_950, 10_000):
            request = PageRequest(object=name, offset=offset, limit=50, sort=[Sort("n")], columns=["_id", "n"])
            keys |= {key.id for key in (await es.driver.fetch_page(request)).keys}
        assert len(keys) == 200

    async def test_an_export_has_every_row_of_several_indices_once(self, es: Rig) -> None:
        names = [
            await es.index(
                {"n": {"type": "integer"}}, [{"n": at} for at in range(30)], settings={"number_of_shards": 2}
            )
            for _ in range(2)
        ]
        await es.driver.describe_object(",".join(names))
        request = ExportRequest(object=",".join(names), form=ExportForm.ROWS)
        rows = [json.loads(line) for part in [part async for part in es.driver.export_rows(request)]
                for line in bytes(part.data).splitlines()]  # fmt: skip
        assert sorted(row["_source"]["n"] for row in rows) == sorted([*range(30)] * 2)

    async def test_an_export_is_split_where_points_in_time_lose_no_row(self, es: Rig) -> None:
        name = await es.index({"n": {"type": "integer"}}, [{"n": at} for at in range(30)])
        await es.driver.describe_object(name)
        request = SplitRequest(export=ExportRequest(object=name, keep_alive=60), shares=3)
        split = await es.driver.split_export(request)
        assert [note.code for note in split.notes] == ([] if es.version >= (3, 3) else ["no-snapshot"])
        assert len(split.shares) == (3 if es.version >= (3, 3) else 1)

    async def test_the_greatest_unsigned_long_has_all_others_below_it(self, es: Rig) -> None:
        """O15."""
        values = [0, 2**63, 2**64 - 2, 2**64 - 1]
        name = await es.index({"u": {"type": "unsigned_long"}}, [{"u": value} for value in values])
        assert await es.ids(name, Filter("u", Op.LT, str(2**64 - 1))) == ["0", "1", "2"]

    async def test_an_unsigned_long_does_not_sort_and_says_why(self, es: Rig) -> None:
        """O16."""
        name = await es.index({"u": {"type": "unsigned_long"}}, [{"u": [2**63, 7]}, {}])
        [column] = [item for item in (await es.driver.describe_object(name)).columns if item.name == "u"]
        assert not column.sortable
        assert "arrays of unsigned_long" in column.reasons["sort"]
        page = await es.page(name, sort=[Sort("u")])
        assert [note.code for note in page.notes if note.column == "u"] == ["sort-dropped"]

    @pytest.mark.parametrize("column", ["s", "l.n"])
    async def test_deep_pages_of_every_number_have_all_rows(self, es: Rig, column: str) -> None:
        """O17."""
        properties = {
            "s": {"type": "scaled_float", "scaling_factor": 100},
            "l": {"type": "nested", "properties": {"n": {"type": "long"}}},
        }
        documents = [{"s": at / 4, "l": [{"n": at % 7}]} for at in range(40)]
        keys = set()
        async with on_fake(".".join(map(str, es.version)), options={"window": "index"}) as rig:
            name = await rig.index(
                properties, documents, settings={"number_of_shards": 2, "index.max_result_window": 10}
            )
            for offset in (0, 20):
                page = await rig.page(name, sort=[Sort(column)], offset=offset, limit=20)
                keys |= {key.id for key in page.keys}
        assert len(keys) == 40

    async def test_the_total_of_not_null_counts_texts_without_a_word(self, es: Rig) -> None:
        """O18."""
        name = await es.index({"t": {"type": "text"}}, [{"t": ""}, {"t": "a"}, {}])
        compiled = await es.filter(name, Filter("t", Op.NOT_NULL))
        page = await es.page(name, Filter("t", Op.NOT_NULL))
        assert (len(page.keys), page.total) == (2, 2)
        assert compiled.rows[0].clause == "exists t"

    async def test_a_histogram_of_a_long_and_an_integer_is_refused_where_it_has_no_room(self, es: Rig) -> None:
        """O19."""
        small = await es.index({"n": {"type": "integer"}}, [{"n": 1}])
        great = await es.index({"n": {"type": "long"}}, [{"n": 5 * 10**15}])
        summary = await es.driver.summarize_column(SummaryRequest(object=f"{small},{great}", column="n", buckets=10))
        assert summary.rows == 2
        assert not summary.buckets
        assert "smaller numbers" in summary.absent[Figure.BUCKETS]


def test_a_scroll_that_ends_before_its_total_is_no_page():
    """O17: some sorts lose rows without an error."""
    first = {
        "_scroll_id": "s",
        "hits": {"total": {"value": 3, "relation": "eq"}, "hits": [{"_index": "x", "_id": "1"}]},
    }
    answers = Answers(reply(first), reply({"_scroll_id": "s", "hits": {"hits": []}}))
    pager = ScrollPager("x", MATCH_ALL, [{"n": {"order": "asc"}}], 10, "word")
    with pytest.raises(QueryError, match="ended at row 1 of 3"):
        answers.run(pager.fetch(0, 3, {}))


def test_a_sort_by_the_index_has_a_constant_key_before_it():
    """O21: 3.9.0 asks for a range of `_index`, which it does not have; Elasticsearch needs no such key."""
    view = read_view({"properties": {"n": {"type": "integer"}}}, {"n": {"integer": {}}})
    for dialect, constant in ((dialect_of(), [CONSTANT]), (elasticsearch.dialect_of(), [])):
        assert compile_sort([Sort("_index")], view, dialect)[0] == [*constant, {"_index": {"order": "asc"}}]
    assert compile_sort([Sort("n"), Sort("_index")], view, dialect_of())[0][-1] == {"_index": {"order": "asc"}}
    assert CONSTANT not in compile_sort([Sort("n"), Sort("_index")], view, dialect_of())[0]
