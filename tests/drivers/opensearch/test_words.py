"""What the console of OpenSearch completes: words of this product, and none of those that only Elasticsearch has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.opensearch.fake_rig import on_fake
from drivers.opensearch.rig import on_server

from dragoman_api.console import CompletionRequest
from dragoman_opensearch.driver import WORDS
from dragoman_querydsl import console_text as text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivers.elasticsearch.rig import Rig

IN_STOCK = {"geo_shape", "knn_vector", "geotile_grid", "geo_bounds"}
"""Words of modules and plugins that the stock distribution has and the servers of these tests lack."""
UNKNOWN = ("no handler found", "invalid_index_name_exception")


async def completed(rig: Rig, before: str) -> set[str]:
    """Return all that is suggested at the end of a text."""
    answer = await rig.driver.complete_console(CompletionRequest(text=before, position=len(before)))
    return {suggestion.text for suggestion in answer.suggestions}


@pytest.mark.parametrize(
    ("before", "offered", "absent"),
    [
        ("GET /_p", {"_plugins/_sql", "_plugins/_security/authinfo"}, {"_pit"}),
        ("POST /_q", set(), {"_query"}),
        ("GET /_s", {"_search/point_in_time", "_search"}, {"_security/_authenticate", "_sql"}),
        ("GET /_search/", {"point_in_time", "pipeline", "scroll"}, set()),
        ("POST /books/_", {"_search/point_in_time?keep_alive=1m", "_search"}, {"_pit?keep_alive=1m"}),
        ('GET /a/_search\n{"', {"derived", "query"}, {"knn", "runtime_mappings"}),
        ('GET /a/_search\n{"query":{"', {"term"}, {"knn"}),
        ('GET /a/_search\n{"aggs":{"x":{"', {"terms"}, {"top_metrics"}),
        ('PUT /a\n{"mappings":{"', {"derived", "properties"}, {"runtime"}),
        ('PUT /a/_mapping\n{"', {"derived", "properties"}, {"runtime"}),
        ('PUT /a\n{"mappings":{"properties":{"x":{"type":"', {"flat_object"}, {"flattened", "dense_vector"}),
    ],
)  # fmt: skip
async def test_words_of_the_product_are_completed_and_others_are_not(
    before: str, offered: set[str], absent: set[str]
) -> None:
    """O20."""
    async with on_fake("3.9.0") as rig:
        words = await completed(rig, before)
    assert offered <= words
    assert not absent & words


@pytest.fixture
async def server(live_server: dict[str, Any]) -> AsyncIterator[Rig]:
    async with on_server(live_server) as rig:
        yield rig


@pytest.mark.live("opensearch")
async def test_O20_the_server_knows_every_word_that_is_completed(server: Rig) -> None:
    """Paths, clauses, aggregations and types, but those of plugins and of modules that only a distribution has."""
    name = await server.index({"n": {"type": "integer"}}, [{"n": 1}])
    paths = [f"/{path}" for path in (*text.ROOT, *WORDS.paths) if not path.startswith("_plugins")]
    paths += [f"/{name}/{path}" for path in (*text.OF_INDEX, *WORDS.of_index)]
    unknown = []
    for path in paths:
        bare = path.partition("?")[0]
        answers = [(await server.raw("GET", whole)).text for whole in (path, f"{bare}/1")]  # some need an id
        unknown += [path] if all(any(words in answer for words in UNKNOWN) for answer in answers) else []
    for clause in {*text.QUERIES, *WORDS.queries} - IN_STOCK:
        answer = await server.raw("POST", f"/{name}/_validate/query", json.dumps({"query": {clause: {}}}))
        unknown += [clause] if f"unknown query [{clause}]" in answer.text else []
    for aggregation in {*text.AGGREGATIONS, *WORDS.aggregations} - IN_STOCK - {"aggs"}:
        answer = await server.raw("POST", f"/{name}/_search", json.dumps({"aggs": {"x": {aggregation: {}}}}))
        unknown += [aggregation] if "Unknown aggregation type" in answer.text else []
    for kind in {*text.TYPES, *WORDS.types} - IN_STOCK:
        mapping = {"mappings": {"properties": {"x": {"type": kind}}}}
        answer = await server.raw("PUT", f"/{name}-{kind}", json.dumps(mapping))
        server.made += [f"{name}-{kind}"] if answer.status == 200 else []
        unknown += [kind] if f"No handler for type [{kind}]" in answer.text else []
    assert unknown == []
