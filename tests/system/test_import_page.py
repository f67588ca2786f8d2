"""The page on imports: every command on it runs, in its order, on two clusters."""

from __future__ import annotations

import json
import re
import shlex
import urllib.request

import pytest
from anyio.from_thread import start_blocking_portal

from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate
from stranger import ROOT, stranger

pytestmark = pytest.mark.slow

TEXT = (ROOT / "docs/how-to/import.md").read_text(encoding="utf-8")
LINES = [
    line[2:] for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines() if line.startswith("$ ")
]  # fmt: skip


@pytest.fixture(scope="module")
def clusters():
    with start_blocking_portal() as portal:
        shop, attic = (portal.wrap_async_context_manager(FakeElasticsearch(version="8.19.21")) for _ in "12")
        with shop as one, attic as other:
            yield one, other


def send(server, method, path, body):
    kind = {"Content-Type": "application/x-ndjson" if "_bulk" in path else "application/json"}
    request = urllib.request.Request(server.url + path, body.encode(), kind, method=method)
    urllib.request.urlopen(request).close()


@pytest.mark.timeout(180)
def test_every_command_of_the_page_runs_in_its_order(clusters, tmp_path):
    shell = stranger(tmp_path / "home", cwd=tmp_path)
    for name, server in zip(("shop", "attic"), clusters, strict=True):
        shell(f"dragoman connections add {name} --type elasticsearch --port {server.port} --auth none --yes")
    mapping = '{"mappings":{"properties":{"status":{"type":"keyword"}}}}'
    for server, name in ((clusters[0], "orders"), (clusters[0], "copies"), (clusters[1], "orders")):
        send(server, "PUT", f"/{name}", mapping)
    rows = "".join(f'{{"index":{{"_id":"{at}"}}}}\n{{"status":"{("open", "paid")[at % 2]}"}}\n' for at in range(50))
    send(clusters[0], "POST", "/orders/_bulk?refresh=true", rows)
    prices = ["n/a", *(f"{at}.5" for at in range(1, 21))]
    items = "".join(f"{at},{at:05},{price}\n" for at, price in enumerate(prices, 1))
    (tmp_path / "items.csv").write_text(f"id,zip,price\n{items}")
    send(
        clusters[0], "PUT", "/sales", '{"mappings":{"properties":{"total":{"type":"double"},"placed":{"type":"date"}}}}'
    )
    sales = "".join(f"0,{at:02};{at % 28 + 1}.1.2026\n" for at in range(39))
    (tmp_path / "sales.csv").write_text(f"total;placed\n1.234,50;31.12.2026 14:30\n{sales}")
    seen = set()
    for line in [line for line in LINES if " lab " not in line]:
        if line.startswith("head"):
            assert '"code":"conflict"' in (tmp_path / "orders.rows.rejected.ndjson").read_text().splitlines()[0]
            continue
        parts = [part.strip() for part in line.split(" | ")]
        code = 4 if line in seen else 0
        confirmed = ["--yes"] if "items.csv" in line or "sales.csv" in line else []  # it asks on a terminal
        typed = ""
        for part in parts:
            done = shell(*shlex.split(part)[1:], *confirmed, typed=typed, code=code)
            typed = done.out
        seen.add(line)
        if "sales.csv" in line:
            shown = TEXT.partition(f"$ {line}\n")[2].partition("?")[0]
            assert shown in done.err
    assert {line.split()[1] for line in LINES if line.startswith("dragoman")} == {"copy", "export", "import"}


ARTICLES = {"class": "Articles", "vectorizer": "none", "properties": [{"name": "text", "dataType": ["text"]}]}
NAMED = {name: {"vectorizer": {"none": {}}, "vectorIndexType": "hnsw"} for name in ("title", "abstract")}
PAPERS = {"class": "Papers", "vectorConfig": NAMED, "properties": ARTICLES["properties"]}
ID = "00000000-0000-0000-0000-00000000000a"


@pytest.mark.timeout(180)
def test_vectors_are_moved_between_collections_as_the_page_says(tmp_path):
    lines = [line for line in LINES if " lab " in line and " shop " not in line]
    assert len(lines) == 3
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(FakeWeaviate()) as server:
        shell = stranger(tmp_path / "home", cwd=tmp_path)
        shell(f"dragoman connections add lab --type weaviate --port {server.port} --auth none --yes")
        for collection in (ARTICLES, PAPERS):
            send(server, "POST", "/v1/schema", json.dumps(collection))
        send(server, "POST", "/v1/objects", json.dumps({"class": "Articles", "id": ID, "vector": [1.5, 2.0]}))
        shell("dragoman export lab Articles -o articles.csv --columns uuid,text,vector")
        stored = []
        for line in lines:
            shell(*shlex.split(line)[1:])
            target, other = ("Articles", "Papers") if "--map title=vector" in line else ("Papers", "Articles")
            with urllib.request.urlopen(f"{server.url}/v1/objects/{target}/{ID}?include=vector") as answer:
                stored.append(json.load(answer))
            send(server, "DELETE", f"/v1/objects/{other}/{ID}", "")  # the next line copies back, under the same id
    assert [row.get("vectors") or row.get("vector") for row in stored] == [
        {"title": [1.5, 2.0]}, [1.5, 2.0], {"title": [1.5, 2.0]},
    ]  # fmt: skip
