"""The recipes of the documentation on real servers, run as a person would run them."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import threading
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import quote

import pytest
from anyio.from_thread import start_blocking_portal

from dragoman_sample import servers as samples
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from stranger import ROOT, stranger

pytestmark = [pytest.mark.one_engine, pytest.mark.timeout(300)]
RECIPES = ROOT / "docs/how-to/recipes"
PREFIX = "dragoman-recipes-"
BOOKS, ORDERS = f"{PREFIX}books", f"{PREFIX}orders"


class Relay:
    """Stands before a server, so that it can be cut off and come back."""

    def __init__(self, host, port):
        self._target, self._open = (host, port), []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            with suppress(OSError):
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target) if self._target else None
                if server is None:
                    client.close()
                    continue
                self._open += [client, server]
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=_pump, args=ends, daemon=True).start()

    @contextmanager
    def cut(self):
        """Let nobody through, and end what is open."""
        target, self._target = self._target, None
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        yield
        self._target = target


def _pump(source, sink):
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def machine(tmp_path):
    return stranger(tmp_path / "home", cwd=tmp_path)


def save(machine, name, server, *, port=None):
    """Save a connection to a real server by the command line; its port may be a relay's."""
    words = ["--type", server["type"], "--host", server["host"], "--port", str(port or server["port"])]
    if server["tls"]:
        words += ["--ssl-mode", "verify-identity", "--ca-file", server["ca_file"]]
    if server["type"] == "weaviate" and server["api_keys"]:
        machine.more["SECRET"] = server["api_keys"]["admin"]
        words += ["--auth", "api-key", "--api-key", "env:SECRET"]
    elif server["type"] == "elasticsearch" and server["security"]:
        machine.more["SECRET"] = server["users"]["superuser"]["password"]
        words += ["--auth", "username-password", "--username", "elastic", "--password", "env:SECRET"]
    else:
        words += ["--auth", "none"]
    machine(f"dragoman connections add {name} {shlex.join(words)} --yes")


@pytest.fixture
def bookshop(live_server, machine):
    """Load the sample into the engine beside an empty fake cluster, both saved, and take it away again."""
    scheme = "https" if live_server["tls"] else "http"
    user = live_server["users"]["superuser"] if live_server["security"] else None
    credentials = f"{quote(user['username'])}:{quote(user['password'])}@" if user else ""
    url = f"{scheme}://{credentials}{live_server['host']}:{live_server['port']}"
    with start_blocking_portal() as portal, ExitStack() as stack:
        attic = FakeElasticsearch(version="8.19.21")
        stack.enter_context(portal.wrap_async_context_manager(attic))
        portal.call(lambda: samples.load(url, prefix=PREFIX, verify=False))
        stack.callback(portal.call, lambda: samples.remove(url, prefix=PREFIX, verify=False))
        save(machine, "shop", live_server)
        machine(f"dragoman connections add attic --type elasticsearch --port {attic.port} --auth none --yes")
        yield


def ask(machine, request):
    return json.loads(machine(f"dragoman console shop {shlex.quote(request)}").out)


def documents(machine, connection):
    file = machine.cwd / f"{connection}.ndjson"
    machine(f"dragoman export {connection} {BOOKS} --format rows -o {file}")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {row["_id"]: row["_source"] for row in rows}


@pytest.mark.live("elasticsearch")
def test_what_changed_is_exported_and_changes_are_taken_back_on_a_real_engine(live_server, machine, bookshop):
    nightly = f"dragoman run {RECIPES}/nightly_export.py shop backup"
    told = machine(nightly).out
    assert f"{ORDERS}: 12,003 documents" in told
    assert f"{BOOKS}: 480 documents" in told
    assert PREFIX not in machine(nightly).out, "nothing had changed"
    before = ask(machine, f"GET /{ORDERS}/_doc/8812")["_source"]
    lines = [
        {"op": "update", "object": ORDERS, "id": "8812", "set": {"status": "paid"}},
        {"op": "delete", "object": ORDERS, "id": "1177"},
    ]
    (machine.cwd / "changes.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert "POST /" in machine("dragoman apply shop changes.ndjson --dry-run").out
    assert "applied 2" in machine("dragoman apply shop changes.ndjson --undo undo.ndjson --yes").err
    assert f"{ORDERS}: 12,002 documents" in machine(nightly).out
    assert "applied 2" in machine("dragoman apply shop undo.ndjson --yes").err
    assert ask(machine, f"GET /{ORDERS}/_doc/8812")["_source"] == before
    assert ask(machine, f"GET /{ORDERS}/_doc/1177")["found"]


@pytest.mark.live("elasticsearch")
def test_a_pipeline_holds_a_real_engine_to_what_it_expects(machine, bookshop, live_server):
    smoke = f"dragoman console shop -f {RECIPES}/smoke.es --stop-on-error --var index="
    assert machine(smoke + ORDERS).out.count("ok") == 2
    assert "FAILED" in machine(f"{smoke}{PREFIX}nowhere", code=1).out


@pytest.mark.live("elasticsearch")
def test_documents_move_away_from_a_real_engine_and_back(machine, bookshop, live_server):
    move, before = f"dragoman run {RECIPES}/move_documents.py", documents(machine, "shop")
    fields = ask(machine, f"GET /{BOOKS}/_mapping")[BOOKS]["mappings"]
    made = f"PUT /{BOOKS}\n{json.dumps({'mappings': fields})}"
    machine(f"dragoman console attic {shlex.quote(made)}")
    assert machine(f"{move} shop {BOOKS} attic").out == "moved 480\n"
    assert documents(machine, "attic") == before
    assert documents(machine, "shop") == {}
    assert machine(f"{move} attic {BOOKS} shop").out == "moved 480\n"
    assert documents(machine, "shop") == before


@pytest.mark.live("elasticsearch", "weaviate")
def test_a_real_server_that_cannot_be_reached_is_told_once_and_opened_again(live_server, machine):
    if live_server["type"] == "weaviate" and live_server["settings"]:
        pytest.skip("this engine is set up for rules of its own")
    relay = Relay(live_server["host"], live_server["port"])
    save(machine, "watched", live_server, port=relay.port)
    words = machine.words("run", str(RECIPES / "watch_health.py"), "watched", "0.2")
    watch = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=machine.variables())
    try:
        assert watch.stdout.readline().split()[1] == "ok"
        with relay.cut():
            assert watch.stdout.readline().split()[1] == "failed"
        assert watch.stdout.readline().split()[1] == "ok"
        watch.send_signal(signal.SIGINT)
        assert watch.wait(30) == 130
    finally:
        watch.kill()
        watch.stdout.close()


COLLECTION = "RecipeBook"
CLASS = {"class": COLLECTION, "vectorizer": "none", "properties": [{"name": "title", "dataType": ["text"]}]}
ID = "6f1d9a52-0000-4000-8000-00000000000{}"


@pytest.mark.live("weaviate")
def test_a_file_of_changes_is_reviewed_and_applied_on_a_real_weaviate(live_server, machine):
    if live_server["settings"]:
        pytest.skip("this engine is set up for rules of its own")
    save(machine, "shop", live_server)
    machine(f"dragoman console shop {shlex.quote(f'POST /schema {json.dumps(CLASS)}')}")
    try:
        lines = [
            {"op": "insert", "object": COLLECTION, "id": ID.format(at), "set": {"title": f"{at}"}} for at in (1, 2)
        ]
        (machine.cwd / "changes.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        assert COLLECTION in machine("dragoman apply shop changes.ndjson --dry-run").out
        assert machine(f"dragoman count shop {COLLECTION}").out == "0\n"
        assert "applied 2" in machine("dragoman apply shop changes.ndjson --yes").err
        assert machine(f"dragoman count shop {COLLECTION}").out == "2\n"
        expects = f"{{ Aggregate {{ {COLLECTION} {{ meta {{ count }} }} }} }}\n# expect status 200\n"
        (machine.cwd / "smoke.graphql").write_text(expects)
        assert "ok" in machine("dragoman console shop -f smoke.graphql --stop-on-error").out
    finally:
        machine(f"dragoman console shop 'DELETE /schema/{COLLECTION}'")
