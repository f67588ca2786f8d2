"""The recipes of the documentation, run as a person would run them."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from dragoman_sample import servers as samples
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from stranger import ROOT, stranger

pytestmark = pytest.mark.slow

RECIPES = ROOT / "docs/how-to/recipes"


@pytest.fixture(scope="module")
def clusters():
    """Serve the sample, and an empty cluster beside it."""
    with start_blocking_portal() as portal:
        full, empty = (portal.wrap_async_context_manager(FakeElasticsearch(version="8.19.21")) for _ in "12")
        with full as source, empty as target:
            portal.call(samples.load, source.url)
            yield source, target


@pytest.fixture(scope="module")
def machine(clusters, tmp_path_factory):
    folder = tmp_path_factory.mktemp("night")
    shell = stranger(folder / "home", cwd=folder)
    for name, cluster in zip(("shop", "attic"), clusters, strict=True):
        shell(f"dragoman connections add {name} --type elasticsearch --port {cluster.port} --auth none --yes")
    return shell


def ask(cluster, method, path, body=None):
    data = None if body is None else json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(cluster.url + path, data, headers, method=method)) as answer:
        return json.load(answer)


def test_only_what_changed_since_the_last_night_is_exported(machine, clusters):
    recipe = f"dragoman run {RECIPES}/nightly_export.py shop backup"
    first = machine(recipe).out
    assert "orders: 12,003 documents" in first
    assert "books: 480 documents" in first
    [file] = machine.cwd.glob("backup/*/books.ndjson.gz")
    assert len(gzip.decompress(file.read_bytes()).splitlines()) == 480
    assert json.loads(Path(f"{file}.manifest.json").read_text())["rows"] == 480
    assert machine(recipe).out == ""
    machine("dragoman update shop books 17 --set price=12.5 --yes")
    assert machine(recipe).out.startswith("books: 480 documents")


def test_documents_move_with_their_ids_and_a_second_run_ends_what_the_first_began(machine, clusters):
    source, target = clusters
    recipe = f"dragoman run {RECIPES}/move_documents.py shop books attic"
    before = {hit["_id"]: hit["_source"] for hit in ask(source, "GET", "/books/_search?size=1000")["hits"]["hits"]}
    ask(target, "PUT", "/books", ask(source, "GET", "/books")["books"] | {"settings": {}, "aliases": {}})
    ask(target, "PUT", "/books/_doc/17", before["17"])  # arrived before an interruption
    ask(target, "PUT", "/books/_doc/18?refresh=true", {"title": "somebody else's"})
    told = machine(recipe, code=4)
    assert told.out == "moved 479, not copied 1\n"
    assert [hit["_id"] for hit in ask(source, "GET", "/books/_search")["hits"]["hits"]] == ["18"]
    ask(target, "DELETE", "/books/_doc/18?refresh=true")
    assert machine(recipe).out == "moved 1\n"
    assert machine(recipe).out == "nothing there\n"
    moved = {hit["_id"]: hit["_source"] for hit in ask(target, "GET", "/books/_search?size=1000")["hits"]["hits"]}
    assert moved == before


def test_a_connection_that_fails_is_told_once_and_opened_again(tmp_path, machine):
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(FakeElasticsearch(version="8.19.21")) as cluster:
            port = cluster.port
            machine(f"dragoman connections add watched --type elasticsearch --port {port} --auth none --yes")
            words = machine.words("run", str(RECIPES / "watch_health.py"), "watched", "0.2")
            watch = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=machine.variables())
            assert watch.stdout.readline().split()[1:] == ["ok", "Elasticsearch", "8.19.21"]
        assert " failed " in watch.stdout.readline()
        with portal.wrap_async_context_manager(FakeElasticsearch(version="8.19.21", port=port)):
            assert watch.stdout.readline().split()[1] == "ok"
            watch.send_signal(signal.SIGINT)
            assert watch.wait(20) == 130
        watch.stdout.close()


def test_a_console_file_is_a_smoke_test_of_a_pipeline(machine):
    smoke = f"dragoman console shop -f {RECIPES}/smoke.es --stop-on-error --var index="
    assert machine(smoke + "orders").out.count("ok") == 2
    told = machine(smoke + "nowhere", code=1)
    assert "FAILED" in told.out
    assert "smoke.es:9" in told.out


def test_a_file_of_changes_is_reviewed_applied_and_taken_back(machine, clusters):
    before = ask(clusters[0], "GET", "/orders/_doc/8812")["_source"]
    lines = [
        {"op": "update", "object": "orders", "id": "8812", "set": {"status": "paid"}},
        {"op": "delete", "object": "orders", "id": "1177"},
    ]
    (machine.cwd / "changes.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert "POST /" in machine("dragoman apply shop changes.ndjson --dry-run").out
    assert "applied 2" in machine("dragoman apply shop changes.ndjson --undo undo.ndjson --yes").err
    assert ask(clusters[0], "GET", "/orders/_doc/8812")["_source"]["status"] == "paid"
    assert "applied 2" in machine("dragoman apply shop undo.ndjson --yes").err
    assert ask(clusters[0], "GET", "/orders/_doc/8812")["_source"] == before
    assert ask(clusters[0], "GET", "/orders/_doc/1177")["found"]
