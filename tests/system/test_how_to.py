"""Every command of the how-to pages, and of a day's work, runs in a shell as it is written, and prints what is shown.

A page is one story: its blocks run in their order, in one folder, on servers that hold what the page names. In what a
page shows, `…` stands for anything, and a number for any number. What cannot run here has a reason.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from anyio.from_thread import start_blocking_portal
from api import certificates

import wheelhouse
from command_line import Machine
from dragoman_api import tls
from dragoman_sample import servers as samples
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate, User
from stranger import ROOT, stranger
from terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

HOW_TO = ROOT / "docs/how-to"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OWN = {"import.md": "test_import_page.py", "use-the-shell.md": "test_shell_page.py"}
"""Pages that a test of their own types: an interrupted load, and lines at a prompt."""

DAY = "../tutorial/a-day.md"
PAGES = [
    *sorted(
        path.name
        for path in HOW_TO.glob("*.md")
        if "```console" in path.read_text(encoding="utf-8") and path.name not in OWN
    ),
    DAY,
]

ELSEWHERE = {
    "connect-to-chroma.md": {
        "dragoman": "it needs a server, of which there is no fake; drivers/chroma/test_on_server.py",
        "export VECTORS_TOKEN": "it belongs to the next line",
    },
    "connect-to-elasticsearch.md": {
        "export SHOP_KEY": "it belongs to the next line",
        "dragoman connections add shop": "es.internal has to have a certificate; drivers/elasticsearch/test_connect.py",
        "dragoman connections test shop": "the line before it does not run here",
        "dragoman connections edit sso": "auth.internal has to be a server; cli/test_token_endpoints.py",
        "export CLOUD_KEY": "it belongs to the next line",
        "dragoman connections add cloud": "it needs a deployment in the cloud",
        "dragoman connections edit shop": "shop was not saved here, and the hosts are the reader's own",
        "export GATE": "it belongs to the next line",
    },
    "connect-to-opensearch.md": {
        "dragoman": "it needs a server; drivers/opensearch/test_driver.py",
        "export LOGS_PASSWORD": "it belongs to the next line",
    },
    "connect-to-prometheus.md": {
        "dragoman console": "the fake evaluates no PromQL; drivers/prometheus/test_rules.py asks real servers",
    },
    "connect-to-solr.md": {
        "dragoman": "it needs a server, of which there is no fake; drivers/solr/test_on_server.py",
        "export SEARCH_PASSWORD": "it belongs to the next line",
    },
    "connect-to-weaviate.md": {
        "dragoman connections edit library": "the hosts are the reader's own",
        "export GATE": "it belongs to the next line",
    },
    "connect-through-a-proxy-or-ssh.md": {
        "export PROXY_PASSWORD": "it belongs to the next line",
        "dragoman connections add shop": "it needs a proxy or an sshd; cli/test_connect_via.py",
        "dragoman connections test shop": "the line before it does not run here",
        "ssh ops@bastion.example": "it needs another machine; worker/test_ssh_tunnel.py",
    },
    "export.md": {
        "error[connection-failed]": "the server has to go away; system/test_export_resumes.py",
        "dragoman export shop orders -o orders.ndjson --resume": "the line before it does not run here",
        "dragoman export shop orders --parts 256": "it needs a cluster; system/test_exports_in_parts.py",
        "pip install": "it installs from the web",
        "export AWS_ENDPOINT_URL": "it belongs to the next line",
        "dragoman export shop orders --parts 64 -o s3": "it needs a store; stores/test_exports_to_s3.py",
        "dragoman export shop orders --parts 1 --format": "it needs a store; stores/test_exports_to_s3.py",
    },
    "filter-and-page.md": {
        "dragoman similar vectors": "it needs a server, of which there is no fake; drivers/chroma/test_on_server.py",
    },
    "find-drivers.md": {"xdg-open": "it opens a browser; browser/test_marketplace.py opens the page"},
    "run-a-registry.md": {
        "dragoman driver publish": "it stands in the folder of a driver; authoring/test_publish.py",
        "dragoman registry add https://": "a server on the web; registry/publisher/test_serve.py",
        "dragoman registry mirror https://": "a server on the web; registry/publisher/test_mirror.py",
    },
    "serve-a-registry.md": {
        "dragoman registry serve": "it serves until it is stopped; registry/publisher/test_serve.py",
        "pip install": "pip as a process; registry/publisher/test_serve.py",
        "uv pip": "uv as a process; registry/publisher/test_serve.py",
        "twine upload": "twine as a process; registry/publisher/test_serve.py",
        "uv publish": "uv as a process; registry/publisher/test_serve.py",
        "dragoman registry inbox": "it needs an upload; registry/publisher/test_serve.py",
        "dragoman driver publish": "it stands in the folder of a driver; authoring/test_publish.py",
        "cp copy/metadata": "the line before it does not run here",
        "dragoman registry accept": "nothing was uploaded; registry/publisher/test_serve.py",
    },
    "trust-a-certificate.md": {
        "dragoman objects shop": "the server has to change its certificate; cli/test_pinned_certificates.py",
    },
    "use-the-console.md": {"dragoman console vectors": "drivers/weaviate/console/test_console_answers.py asks such"},
    "install-upgrade-remove.md": {
        "uv tool": "it needs the web; system/test_release.py installs from wheels",
        "pipx": "it needs the web",
        "pip ": "it needs the web",
        "dragoman workbench": "it serves until it is stopped; cli/test_sample.py",
        "dragoman uninstall": "it asks; cli/test_uninstall.py",
    },
    "use-the-workbench.md": {
        "uv tool install": "it installs from the web",
        "dragoman workbench": "it serves until it is stopped; workbench/test_command.py",
        "ssh -L": "it needs another machine",
    },
    "write-a-driver.md": {
        "dragoman connections add mine": "it needs the service of the example; test_docs.py browses one",
        "dragoman page mine NAME": "the line before it does not run here",
        "dragoman driver publish": "the example has no tests of its own; authoring/test_publish.py",
    },
}
"""Why a command does not run here, by its beginning or that of what it prints, and the test that runs it."""


def blocks(page: str) -> list[str]:
    """Return the console blocks of a page."""
    return [text for kind, text in FENCE.findall((HOW_TO / page).read_text(encoding="utf-8")) if kind == "console"]


def fenced(page: str, language: str, number: int = 0) -> str:
    found = [text for kind, text in FENCE.findall((HOW_TO / page).read_text(encoding="utf-8")) if kind == language]
    return found[number]


def steps(block: str) -> list[tuple[str, list[str]]]:
    """Return each command of a block with the lines that it is to print."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def reason(page: str, command: str, shown: list[str]) -> str:
    """Return why a command does not run here; empty if it does."""
    why = ELSEWHERE.get(page, {}).items()
    return next((text for start, text in why if any(line.startswith(start) for line in (command, *shown))), "")


@pytest.mark.parametrize("page", ELSEWHERE)
def test_every_reason_is_needed_and_names_a_test_that_exists(page):
    lines = [line.removeprefix("$ ") for block in blocks(page) for line in block.splitlines()]
    for start, why in ELSEWHERE[page].items():
        assert any(line.startswith(start) for line in lines), f"{page} shows no {start!r} any more"
        for path in re.findall(r"\S+\.py", why):
            assert (ROOT / "tests" / path).is_file(), path


@pytest.mark.parametrize("test", OWN.values())
def test_a_page_with_a_test_of_its_own_has_one(test):
    assert (ROOT / "tests/system" / test).is_file()


def as_shown(line: str) -> re.Pattern[str]:
    """Return what a shown line stands for."""
    text = re.sub(r"\s+", " ", line.strip())
    parts = re.findall(r"\w*…|(?<![A-Za-z])\d(?:[\d.,]*\d)?|\w+|\W", text)
    escaped = "".join(
        ".*" if part.endswith("…") else r"\d[\d.,]*" if part[0].isdigit() else re.escape(part) for part in parts
    )
    return re.compile(escaped)


def test_a_shown_line_stands_for_any_number_but_for_no_other_word():
    shown = as_shown("  orders  12,003/12,003  196,000 rows/s  done")
    assert shown.search("orders 3/12,003 5 rows/s done")
    assert not shown.search("orders 3/12,003 5 rows/s failed")
    assert as_shown("signed (sha256 7be1…) · open").search("signed (sha256 9abc) · open")


@dataclass
class World:
    """The servers, the folder and the home of one page."""

    machine: Machine
    folder: Path
    stack: ExitStack
    typed: dict[str, tuple[str, str]] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    instead: dict[str, str] = field(default_factory=dict)

    @cached_property
    def portal(self) -> Any:
        return self.stack.enter_context(start_blocking_portal())

    @cached_property
    def shop(self) -> FakeElasticsearch:
        """The sample cluster, saved as `shop`."""
        server = self.cluster("shop")
        self.portal.call(samples.load, server.url)
        return server

    def cluster(self, name: str) -> FakeElasticsearch:
        server = FakeElasticsearch(version="8.19.21")
        self.stack.enter_context(self.portal.wrap_async_context_manager(server))
        add = f"dragoman connections add {name} --type elasticsearch --host localhost --port {server.port}"
        self.machine(f"{add} --auth none --yes")
        return server

    @cached_property
    def library(self) -> FakeWeaviate:
        """An empty instance of Weaviate, saved as `library`."""
        server = FakeWeaviate()
        self.stack.enter_context(self.portal.wrap_async_context_manager(server))
        self.machine(f"dragoman connections add library --type weaviate --port {server.port} --yes")
        return server

    def send(self, server: Any, method: str, path: str, body: object = None) -> Any:
        import urllib.request

        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        kind = "application/x-ndjson" if path.endswith("_bulk") else "application/json"
        request = urllib.request.Request(server.url + path, data, {"Content-Type": kind}, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def run(self, command: str, shown: list[str]) -> None:
        """Run a command in a shell, and compare how it ends and what it prints."""
        typed = command
        for old, new in self.replaced.items():
            typed = typed.replace(old, new)
        if command in self.typed:
            question, answer = self.typed[command]
            terminal = Terminal(self.machine, *typed.split()[1:])
            terminal.answer(question, answer)
            code, out = terminal.end()
        else:
            done = subprocess.run(
                ["bash", "-c", typed], env=self.variables, cwd=self.folder, stdin=subprocess.DEVNULL, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=170, check=False,
            )  # fmt: skip
            code, out = done.returncode, done.stdout
        said = f"$ {typed}\n{out}-> {code}"
        fails = any(line.startswith("error[") for line in shown)
        assert code == self.codes.get(command, code if fails and code else 0), said
        lines = [re.sub(r"\s+", " ", line) for line in out.splitlines()]
        at = 0
        for line in shown:
            each, told = as_shown(line), line.startswith("  ")  # on stderr, which a pipe may take before the rows
            found = next(
                (number for number in range(0 if told else at, len(lines)) if each.search(lines[number])), None
            )
            assert found is not None, f"{each.pattern!r} is not in\n{said}"
            at = at if told else found + 1

    @cached_property
    def variables(self) -> dict[str, str]:
        given = self.machine.variables(LANG="C.UTF-8", DRAGOMAN_LIBRARY_KEY="a key")
        return given | {"PATH": f"{self.folder.parent / 'bin'}{os.pathsep}{given['PATH']}"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    folder, programs = tmp_path / "work", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    (programs / "dragoman").write_text(f'#!/bin/sh\nexec {sys.executable} -m dragoman "$@"\n')
    (programs / "dragoman").chmod(0o755)
    (programs / "pip").write_text(f'#!/bin/sh\nexec {sys.executable} -m pip --disable-pip-version-check "$@"\n')
    (programs / "pip").chmod(0o755)
    with ExitStack() as stack:
        yield World(stranger(tmp_path / "home", cwd=folder), folder, stack)


def automate(world: World) -> None:
    assert world.shop
    port = world.shop.port
    world.machine(
        f"dragoman connections add prod --type elasticsearch --host localhost --port {port} --auth none --yes"
    )
    world.write("guard.py", fenced("automate.md", "python"))
    shutil.copyfile(HOW_TO / "recipes/nightly_export.py", world.folder / "nightly.py")


def connect_to_weaviate(world: World) -> None:
    keyed = FakeWeaviate(keys={"a key": User("admin", admin=True)})
    world.stack.enter_context(world.portal.wrap_async_context_manager(keyed))
    world.replaced = {"add library": "add keyed", "test library": "test keyed", "LIBRARY_KEY=…": "LIBRARY_KEY='a key'",
                      "db.internal": f"127.0.0.1 --port {keyed.port}"}  # fmt: skip
    text, number = {"name": "title", "dataType": ["text"]}, {"name": "total", "dataType": ["number"]}
    post = lambda path, body: world.send(world.library, "POST", path, body)  # noqa: E731
    post("/v1/schema", {"class": "Book", "vectorizer": "none", "properties": [text]})
    emma = {"class": "Book", "id": "36ddd591-2dee-4e7e-a3cc-eb86d30a4303", "properties": {"title": "Emma"}}
    post("/v1/objects", emma | {"vector": [0.5, 1.0, 0.25]})
    tenants = {"multiTenancyConfig": {"enabled": True}, "vectorizer": "none"}
    post("/v1/schema", {"class": "Orders", "properties": [number], **tenants})
    post("/v1/schema/Orders/tenants", [{"name": "ann"}])


CHANGES = [
    {"op": "update", "object": "orders", "id": "5", "set": {"total": 1.5}},
    {"op": "delete", "object": "orders", "id": "7"},
]


def day(world: World) -> None:
    assert world.shop


def edit(world: World) -> None:
    server = world.shop
    world.write("changes.ndjson", "".join(f"{json.dumps(line)}\n" for line in CHANGES))
    world.send(server, "DELETE", "/books")
    types = {
        "title": {"type": "text"},
        "price": {"type": "double"},
        "author": {"properties": {"name": {"type": "text"}}},
    }
    settings = {"number_of_shards": 1}
    world.send(server, "PUT", "/books", {"settings": settings, "mappings": {"properties": types}})
    for number in [17, *range(100, 140), 19]:  # the last one has the sequence number 41
        world.send(server, "PUT", f"/books/_doc/{number}?refresh=true", {"title": "x", "price": 1.5})
    world.typed = {"dragoman drop shop books": ("books", "books")}


def export(world: World) -> None:
    server = world.shop
    for number, text in enumerate(("=1+1", "@2")):
        world.send(server, "PUT", f"/orders/_doc/f{number}?refresh=true", {"note": text, "status": "open"})


def connect_to_prometheus(world: World) -> None:
    port = world.stack.enter_context(world.portal.wrap_async_context_manager(samples.serving_metrics()))
    world.replaced = {"prometheus.internal": f"localhost --port {port}"}


def filter_and_page(world: World) -> None:
    server = world.shop
    logs = {"@timestamp": {"type": "date"}, "client": {"type": "ip"}, "place": {"type": "geo_point"}}
    world.send(server, "PUT", "/logs", {"mappings": {"properties": logs}})
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    line = {"@timestamp": now, "client": "10.0.0.7", "place": {"lat": 52.52, "lon": 13.405}}
    world.send(server, "PUT", "/logs/_doc/1?refresh=true", line)
    types = [
        {"name": name, "dataType": [kind]}
        for name, kind in (("sizes", "int[]"), ("shelf", "uuid"), ("lent", "date"), ("place", "geoCoordinates"))
    ]
    world.send(world.library, "POST", "/v1/schema", {"class": "Books", "vectorizer": "none", "properties": types})
    year = {"name": "year", "dataType": ["int"]}
    world.send(world.library, "POST", "/v1/schema", {"class": "Article", "vectorizer": "none", "properties": [year]})
    for number, row_id in enumerate(("0b8c2f7e-3c1d-4b0a-9d55-2f1e6a7c8b90", "36ddd591-2dee-4e7e-a3cc-eb86d30a4303")):
        article = {"class": "Article", "id": row_id, "properties": {"year": 1970}, "vector": [1.0, number / 2]}
        world.send(world.library, "POST", "/v1/objects", article)


def keep_drivers(world: World) -> None:
    """Install an older version first: there is then one to update and one to go back to."""
    older = world.folder.parent / "older/elasticsearch"
    for name in ("elasticsearch", "querydsl"):
        shutil.copytree(ROOT / "plugins" / name, older.with_name(name), ignore=shutil.ignore_patterns("__pycache__"))
    about = (older / "pyproject.toml").read_text()
    assert about.count('version = "1.0.0"') == 1
    (older / "pyproject.toml").write_text(about.replace('version = "1.0.0"', 'version = "0.9.0"'))
    wheels = [*wheelhouse.project_wheels("plugins/elasticsearch"), wheelhouse.project_wheels(str(older))[0]]
    world.machine("registry", "build", *wheels, "--to", world.folder.parent / "team")
    world.machine("registry", "add", world.folder.parent / "team")
    world.machine("dragoman plugins install elasticsearch --version 0.9.0 --yes")


def recipes(world: World) -> None:
    assert world.shop
    lines = [{"op": "update", "object": "orders", "id": str(at), "set": {"note": "seen"}} for at in range(100, 218)]
    lines.insert(41, {"op": "update", "object": "orders", "id": "5", "set": {"items.qty": 1}})
    world.write("changes.ndjson", "".join(f"{json.dumps(line)}\n" for line in lines))
    apply = "dragoman apply shop changes.ndjson"
    world.codes = {f"{apply} --dry-run": 4, f"{apply} --undo undo.ndjson": 4}


def release(world: World) -> None:
    world.write("phrase.txt", "correct horse battery")
    (world.folder / "phrase.txt").chmod(0o600)
    world.run("dragoman registry init DIR/registry --keys DIR --passphrase file:phrase.txt", [])


def run_a_registry(world: World) -> None:
    wheelhouse.Driver("demo", "0.1.0").write(world.folder / "dist")
    for version in ("0.1.0", "0.2.0"):
        types = [{"name": "meilisearch", "label": "Meilisearch"}]
        wheelhouse.Driver("meili", version, types=types).write(world.folder.parent / "meili")
    world.instead = {"dragoman driver publish": "dragoman registry build ../meili/*.whl --to team --sign ada.pem"}


def trust_a_certificate(world: World) -> None:
    made = certificates.make(world.folder.parent)
    shown = FakeElasticsearch(tls=Alone(made.server("self")))
    world.stack.enter_context(world.portal.wrap_async_context_manager(shown))
    pinned = tls.fingerprint(ssl.PEM_cert_to_DER_cert(made.text("self")))
    world.replaced = {"--host es.internal": f"--host localhost --port {shown.port}", "7B:E1:…": pinned}


@dataclass(frozen=True)
class Alone:
    """A server's side of TLS with a certificate of its own."""

    context: ssl.SSLContext

    def server_context(self, **_: bool) -> ssl.SSLContext:
        return self.context


def use_the_console(world: World) -> None:
    server = world.shop
    world.send(server, "DELETE", "/books")
    world.send(
        server, "PUT", "/books", {"mappings": {"properties": {"title": {"type": "text"}, "tag": {"type": "keyword"}}}}
    )
    world.send(server, "PUT", "/books/_doc/9?refresh=true", {"title": "Emma", "tag": "novel"})
    world.write("smoke.es", fenced("use-the-console.md", "text"))


def write_a_driver(world: World) -> None:
    package = world.folder / "dragoman_demo"
    package.mkdir()
    (package / "__init__.py").touch()
    for language, name in (
        ("python", "dragoman_demo/driver.py"),
        ("json", "dragoman_demo/driver.json"),
        ("toml", "pyproject.toml"),
    ):
        world.write(name, fenced("write-a-driver.md", language))


PREPARED = {
    DAY: day,
    "automate.md": automate, "connect-to-prometheus.md": connect_to_prometheus,
    "connect-to-weaviate.md": connect_to_weaviate, "edit.md": edit, "export.md": export,
    "filter-and-page.md": filter_and_page, "keep-drivers.md": keep_drivers, "recipes.md": recipes,
    "release.md": release, "run-a-registry.md": run_a_registry, "trust-a-certificate.md": trust_a_certificate,
    "use-the-console.md": use_the_console, "write-a-driver.md": write_a_driver,
}  # fmt: skip
"""What a page needs to be there, by its name."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_runs_as_it_is_written(world, page):
    PREPARED.get(page, lambda _: None)(world)
    for block in blocks(page):
        exports = ""
        for command, shown in steps(block):
            if reason(page, command, shown):
                if other := next((each for start, each in world.instead.items() if command.startswith(start)), ""):
                    world.run(other, [])
            elif command.startswith("export "):
                exports += f"{command}; "
            else:
                world.run(exports + command, shown)
