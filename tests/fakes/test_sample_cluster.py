"""The bookshop: believable, the same every time, and gone when it was asked to go."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import aiohttp
import pytest

from dragoman_sample import bookshop
from dragoman_sample import servers as samples
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from stranger import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shop():
    return {name: dict(bookshop.documents(name)) for name in samples.INDICES}


async def search(url, index, body):
    async with aiohttp.ClientSession() as session, session.post(f"{url}/{index}/_search", json=body) as response:
        return await response.json()


def test_the_data_is_the_same_on_every_run(shop):
    assert dict(bookshop.documents("orders")) == shop["orders"]
    assert (len(shop["books"]), len(shop["orders"])) == (480, 12_003)


def test_it_holds_what_a_grid_finds_hard(shop):
    assert any(len(json.dumps(book["ratings"])) > 10_000 for book in shop["books"].values())
    assert any(book["copies_sold"] > 2**53 for book in shop["books"].values())
    assert any(book["price"] is None for book in shop["books"].values())
    assert any("tags" not in book for book in shop["books"].values())
    assert "sku" not in shop["orders"]["1177"]["items"][1]
    assert shop["orders"]["1"]["ledger"] > 2**62


def test_an_order_costs_what_its_items_cost(shop):
    for order in shop["orders"].values():
        cents = sum(round(item["qty"] * item["price"] * 100) for item in order["items"])
        assert cents == round(order["total"] * 100)


async def test_the_page_of_large_orders_is_the_one_in_the_picture():
    async with FakeElasticsearch() as server:
        assert await samples.load(server.url) == ["books", "orders"]
        body = {
            "size": 2,
            "track_total_hits": True,
            "sort": [{"total": "desc"}],
            "query": {"range": {"total": {"gte": 100}}},
        }
        found = (await search(server.url, "orders", body))["hits"]
        assert found["total"]["value"] == 1_204
        assert [hit["_source"]["total"] for hit in found["hits"]] == [941.2, 903.0]
        assert [[item.get("sku") for item in hit["_source"]["items"]] for hit in found["hits"]] == [
            ["A-17", "C-03"],
            ["B-01", None],
        ]
        assert not server.faults
        await samples.remove(server.url)
        assert not server.cluster.indices


async def test_loading_never_touches_an_index_that_is_there_already():
    async with FakeElasticsearch() as server:
        server.cluster.create("shop-orders")
        with pytest.raises(RuntimeError, match="already exists"):
            await samples.load(server.url, prefix="shop-")
        assert list(server.cluster.indices) == ["shop-orders"]


def test_it_ends_when_it_is_asked_to():
    command = [sys.executable, "-m", "dragoman", "sample", "shop", "--port", "0", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ) as shop:
        port = json.loads(shop.stdout.readline())["samples"][0]["port"]
        with socket.create_connection(("127.0.0.1", port)):  # which says nothing
            shop.send_signal(signal.SIGINT)
            assert shop.wait() == 0


async def test_a_cluster_may_want_a_name_and_a_password():
    async with FakeElasticsearch(users={"elastic": "pä:ss"}) as server:
        address = f"http://elastic:p%C3%A4%3Ass@{server.host}:{server.port}"
        assert await samples.load(address, prefix="p-") == ["p-books", "p-orders"]
        await samples.remove(address, prefix="p-")


def test_the_next_free_port_is_taken_when_the_usual_one_is_busy():
    assert samples.free_port(0) == 0
    assert samples.free_port(29_200) in range(29_200, 29_300)


@pytest.mark.live("elasticsearch")
async def test_a_real_cluster_takes_the_sample_and_gives_it_back(live_server):
    if live_server["security"]:
        pytest.skip("the sample is loaded into open clusters here")
    names = await samples.load(live_server["url"], prefix="vs-")
    try:
        found = await search(live_server["url"], names[1], {"size": 0, "track_total_hits": True})
        assert found["hits"]["total"]["value"] == 12_003
    finally:
        await samples.remove(live_server["url"], prefix="vs-")
