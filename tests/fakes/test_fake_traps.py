"""Traps that only time, breakage or a global state can show; each was measured on a real server before."""

from __future__ import annotations

import gzip
import json

import aiohttp
import anyio
import pytest

from dragoman_sample.fakes.elasticsearch import FakeElasticsearch


async def ask(server, method, path, body=None, *, raw=None, headers=None):
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    media = {"Content-Type": "application/json"} if data is not None else {}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, server.url + path, data=data, headers={**media, **(headers or {})}) as response,
    ):
        text = await response.read()
        return response.status, json.loads(text) if text else None


async def fill(server, index="x", count=3, refresh="true"):
    lines = "".join(f'{{"index":{{"_id":"{at}"}}}}\n{{"n":{at}}}\n' for at in range(count))
    await ask(server, "POST", f"/{index}/_bulk?refresh={refresh}", raw=lines.encode())


@pytest.fixture
async def server():
    async with FakeElasticsearch() as fake:
        yield fake
        assert not fake.faults


@pytest.fixture
async def old_server():
    async with FakeElasticsearch(version="7.17.29") as fake:
        yield fake


async def total(server, path="/x/_search"):
    return (await ask(server, "POST", path, {}))[1]["hits"]["total"]["value"]


async def test_a_write_is_seen_by_searches_only_after_a_refresh(server):
    await fill(server, refresh="false")
    assert await total(server) == 0
    assert (await ask(server, "GET", "/x/_doc/1"))[0] == 200
    await ask(server, "POST", "/x/_refresh")
    assert await total(server) == 3


async def test_the_background_refresh_happens_within_its_interval(server):
    await ask(server, "PUT", "/x", {"settings": {"refresh_interval": "50ms"}})
    await fill(server, refresh="false")
    await anyio.sleep(0.06)
    assert await total(server) == 3


async def test_wait_for_waits_for_somebody_when_there_is_no_background_refresh(server):
    await ask(server, "PUT", "/x", {"settings": {"refresh_interval": "-1"}})
    order = []

    async def write():
        await ask(server, "PUT", "/x/_doc/1?refresh=wait_for", {})
        order.append("written")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        await anyio.sleep(0.05)
        order.append("refresh")
        await ask(server, "POST", "/x/_refresh")
    assert order == ["refresh", "written"]


async def test_a_point_in_time_does_not_see_later_writes(server):
    await fill(server)
    pit = (await ask(server, "POST", "/x/_pit?keep_alive=1m"))[1]["id"]
    await ask(server, "DELETE", "/x/_doc/1?refresh=true")
    _, found = await ask(server, "POST", "/_search", {"pit": {"id": pit}, "sort": ["n"]})
    assert [hit["_id"] for hit in found["hits"]["hits"]] == ["0", "1", "2"]
    assert await total(server) == 2


async def test_an_expired_point_in_time_is_404_with_one_cause_per_shard(server):
    await ask(server, "PUT", "/x", {"settings": {"number_of_shards": 3}})
    pit = (await ask(server, "POST", "/x/_pit?keep_alive=1ms"))[1]["id"]
    await anyio.sleep(0.01)
    status, body = await ask(server, "POST", "/_search", {"pit": {"id": pit}})
    assert status == 404
    assert [cause["type"] for cause in body["error"]["root_cause"]] == ["search_context_missing_exception"] * 3


@pytest.mark.slow
async def test_a_page_keeps_its_point_in_time_alive(server):
    await fill(server)
    pit = (await ask(server, "POST", "/x/_pit?keep_alive=1s"))[1]["id"]
    for _ in range(3):
        await anyio.sleep(0.4)
        assert (await ask(server, "POST", "/_search", {"pit": {"id": pit, "keep_alive": "1s"}}))[0] == 200


async def test_a_dropped_index_under_a_point_in_time_is_503_and_no_node_is_down(server):
    await fill(server)
    pit = (await ask(server, "POST", "/x/_pit?keep_alive=1m"))[1]["id"]
    await ask(server, "DELETE", "/x")
    status, body = await ask(server, "POST", "/_search", {"pit": {"id": pit}})
    assert (status, body["error"]["root_cause"][0]["type"]) == (503, "no_shard_available_action_exception")
    assert body["error"]["root_cause"][0]["reason"] is None
    status, body = await ask(server, "POST", "/_search?allow_partial_search_results=false", {"pit": {"id": pit}})
    assert (status, body["error"]["type"]) == (404, "index_not_found_exception")


async def test_slices_of_a_point_in_time_tile_the_result(server):
    await ask(server, "PUT", "/x", {"settings": {"number_of_shards": 3}})
    await fill(server, count=100)
    pit = (await ask(server, "POST", "/x/_pit?keep_alive=1m"))[1]["id"]
    for count in (2, 3, 5, 7, 10):
        seen = []
        for number in range(count):
            body = {"size": 100, "pit": {"id": pit}, "sort": ["_shard_doc"], "slice": {"id": number, "max": count}}
            seen += [hit["_id"] for hit in (await ask(server, "POST", "/_search", body))[1]["hits"]["hits"]]
        assert sorted(seen, key=int) == [str(at) for at in range(100)]


async def test_a_walk_by_pages_is_complete_and_resumes(server):
    await ask(server, "PUT", "/x", {"settings": {"number_of_shards": 3}})
    await fill(server, count=1_000)
    pit = (await ask(server, "POST", "/x/_pit?keep_alive=1m"))[1]["id"]
    seen, after = [], None
    while True:
        body = {
            "size": 70,
            "pit": {"id": pit},
            "sort": ["_doc", "_shard_doc"],
            "_source": False,
            "track_total_hits": False,
        }
        if after:
            body["search_after"] = after
        page = (await ask(server, "POST", "/_search", body))[1]["hits"]
        assert "total" not in page
        if not page["hits"]:
            break
        seen += [hit["_id"] for hit in page["hits"]]
        after = page["hits"][-1]["sort"]
        assert len(after) == 2
    assert len(seen) == len(set(seen)) == 1_000


async def test_ties_are_lost_without_the_tiebreaker(server):
    await fill(server, count=10)
    await ask(server, "POST", "/x/_bulk?refresh=true", raw=b"".join(b'{"index":{}}\n{"n":4}\n' for _ in range(20)))
    pit = (await ask(server, "POST", "/x/_pit?keep_alive=1m"))[1]["id"]
    first = {"size": 10, "pit": {"id": pit}, "sort": ["n"]}
    last = (await ask(server, "POST", "/_search", first))[1]["hits"]["hits"][-1]["sort"]
    assert last[0] == 4
    rest = (await ask(server, "POST", "/_search", {**first, "size": 100, "search_after": last[:1]}))[1]["hits"]["hits"]
    assert len(rest) == 5
    rest = (await ask(server, "POST", "/_search", {**first, "size": 100, "search_after": last}))[1]["hits"]["hits"]
    assert len(rest) == 20


@pytest.mark.parametrize(
    ("version", "status", "kind"),
    [("7.17.29", 500, "exception"), ("8.19.21", 429, "too_many_scroll_contexts_exception")],
)
async def test_too_many_scrolls_are_refused_in_two_ways(version, status, kind):
    async with FakeElasticsearch(version=version) as server:
        await fill(server)
        await ask(server, "PUT", "/_cluster/settings", {"transient": {"search.max_open_scroll_context": 2}})
        for _ in range(2):
            assert (await ask(server, "POST", "/x/_search?scroll=1m", {}))[0] == 200
        found, body = await ask(server, "POST", "/x/_search?scroll=1m", {})
        assert (found, body["error"]["root_cause"][0]["type"]) == (status, kind)


async def test_a_failing_shard_gives_a_partial_page_unless_that_is_refused(server):
    await ask(server, "PUT", "/x", {"settings": {"number_of_shards": 2}})
    await fill(server, count=20)
    server.cluster.failing_shards.add(("x", 0))
    status, body = await ask(server, "POST", "/x/_search", {"size": 20})
    assert (status, body["_shards"]["failed"], body["_shards"]["failures"][0]["shard"]) == (200, 1, 0)
    assert 0 < body["hits"]["total"]["value"] < 20
    assert (await ask(server, "POST", "/x/_search?allow_partial_search_results=false", {}))[0] == 500


async def test_a_data_stream_takes_only_new_documents(server):
    template = {"index_patterns": ["logs-*"], "data_stream": {}, "template": {"settings": {"number_of_replicas": 0}}}
    await ask(server, "PUT", "/_index_template/logs", template)
    status, made = await ask(server, "POST", "/logs-a/_doc?refresh=true", {"@timestamp": "2026-01-01", "m": 1})
    backing = made["_index"]
    assert (status, backing.startswith(".ds-logs-a-"), backing.endswith("-000001")) == (201, True, True)
    for method, path in (("PUT", "/logs-a/_doc/1"), ("POST", "/logs-a/_update/1"), ("DELETE", "/logs-a/_doc/1")):
        status, body = await ask(server, method, path, None if method == "DELETE" else {"doc": {}})
        assert (status, body["error"]["reason"]) == (
            400,
            "only write ops with an op_type of create are allowed in data streams",
        )
    assert (await ask(server, "POST", f"/{backing}/_update/{made['_id']}", {"doc": {"m": 2}}))[0] == 200
    status, body = await ask(server, "PUT", f"/{backing}/_doc/{made['_id']}", {"@timestamp": "2026-01-01"})
    assert "op_type=index and no if_primary_term and if_seq_no set targeting backing indices" in body["error"]["reason"]
    status, body = await ask(server, "DELETE", "/logs-a")
    assert (status, body["error"]["excluded_ds"]) == (404, "true")
    status, body = await ask(server, "DELETE", f"/{backing}")
    assert "is the write index for data stream [logs-a]" in body["error"]["reason"]
    _, listed = await ask(server, "GET", "/_cat/indices?format=json&h=index")
    assert listed == [{"index": backing}]
    _, found = await ask(server, "GET", "/_resolve/index/logs-*")
    assert (found["indices"], [stream["name"] for stream in found["data_streams"]]) == ([], ["logs-a"])


async def test_an_unknown_post_below_a_missing_index_creates_it_on_7(old_server):
    assert (await ask(old_server, "POST", "/made/_anything", {}))[0] == 400
    assert (await ask(old_server, "HEAD", "/made"))[0] == 200
    assert old_server.faults


async def test_numbers_change_where_the_answer_is_written_anew(server):
    raw = b'{"b":1e400, "a":1.10, "e":1E5, "i":123456789012345678901234567890}'
    mapping = {"mappings": {"dynamic": False}}
    await ask(server, "PUT", "/x", mapping)
    await ask(server, "PUT", "/x/_doc/1?refresh=true", raw=raw)
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{server.url}/x/_search") as response:
            assert raw in await response.read()
        async with session.get(f"{server.url}/x/_search?filter_path=hits.hits._source") as response:
            anew = '{"b":"Infinity","a":1.1,"e":100000.0,"i":123456789012345678901234567890}'
            assert anew in await response.text()


async def test_gzip_is_given_when_asked_for(server):
    await fill(server)
    connection = aiohttp.ClientSession(auto_decompress=False)
    async with connection as session:
        async with session.get(f"{server.url}/x/_search", headers={"Accept-Encoding": "gzip"}) as response:
            assert response.headers["Content-Encoding"] == "gzip"
            assert json.loads(gzip.decompress(await response.read()))["hits"]["total"]["value"] == 3
        async with session.get(f"{server.url}/x/_search", headers={"Accept-Encoding": "identity"}) as response:
            assert "Content-Encoding" not in response.headers


async def test_a_body_that_is_too_large_gets_a_bare_413(server):
    async with aiohttp.ClientSession() as session:
        headers = {"Content-Length": str(101 * 2**20), "Content-Type": "application/json"}
        async with session.post(f"{server.url}/x/_bulk", headers=headers, expect100=False, data=None) as response:
            assert (response.status, await response.read()) == (413, b"")
            assert "X-Elastic-Product" not in response.headers


async def test_a_long_url_is_refused(server):
    status, body = await ask(server, "GET", "/x/_search?q=" + "a" * 4_100)
    assert (status, body["error"]["type"]) == (400, "too_long_http_line_exception")


@pytest.mark.slow
async def test_twelve_thousand_documents_are_searched(server):
    await fill(server, count=12_000)
    _, found = await ask(
        server, "POST", "/x/_search", {"sort": [{"n": "desc"}], "query": {"range": {"n": {"gte": 100}}}}
    )
    assert found["hits"]["hits"][0]["sort"] == [11_999]
