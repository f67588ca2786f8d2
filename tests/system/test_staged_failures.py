"""Failures as people meet them, one by one: the exit code, what the message names, and what it advises.

The table in docs/reference/failures.md is made of what the commands print: after a deliberate change of wording,
``DRAGOMAN_GOLDEN=write python -m pytest tests/system/test_staged_failures.py``, then read the difference.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from command_line import Machine
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.elasticsearch.security import ApiKey, User
from dragoman_sample.fakes.weaviate import FakeWeaviate
from dragoman_sample.fakes.weaviate.security import User as Person
from dragoman_worker.hooks_and_deadlines import HOOKS
from fakes.certificates import make_certificates

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[2] / "docs/reference/failures.md"
HEAD = """# Failures

These are the failures that people meet most: what goes wrong, the command, its exit code, and what it prints. The tests
make this table (`tests/system/test_staged_failures.py`) on servers of their own. `HOST:PORT` stands for the servers'
addresses, `FINGERPRINT` and `DATE` for what their certificates have.

| what goes wrong | command | exit code | what is printed |
| --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Stage:
    """One failure: the connection it needs, and what must be told.

    Attributes:
        what: What goes wrong.
        words: The command, without `dragoman`.
        code: The exit code.
        error: The error's code; empty if an outcome tells the failure.
        named: Texts that the message or its advice must hold.
    """

    what: str
    words: str
    code: int
    error: str
    named: tuple[str, ...]


REJECTED = "authentication-failed"
STAGES = (
    Stage("a wrong password", "objects wrong-password", 3, REJECTED, ("HOST:PORT", "connections edit wrong-password")),
    Stage("an expired API key", "objects expired-key", 3, REJECTED, ("HOST:PORT", "connections edit expired-key")),
    Stage("a revoked API key", "objects revoked-key", 3, REJECTED, ("HOST:PORT", "connections edit revoked-key")),
    Stage("credentials left out", "objects no-credentials", 3, REJECTED, ("Auth Method", "HOST:PORT")),
    Stage("a key without rights", "page few-rights orders", 1, "access-denied", ("403",)),
    Stage("a wrong key of Weaviate", "objects wrong-key", 3, REJECTED, ("HOST:PORT", "connections edit wrong-key")),
    Stage("plain HTTP to a TLS port", "objects http-on-tls", 3, "connection-failed", ("HTTPS", "--ssl-mode verify")),
    Stage("HTTPS to a plain port", "objects tls-on-http", 3, "connection-failed", ("plain HTTP", "-mode disabled")),
    Stage("a private CA under Verify CA", "objects verify-ca", 3, "certificate-untrusted",
          ("--pin-certificate", "--ca-file")),
    Stage("a private CA under Verify Identity", "objects verify-identity", 3, "certificate-untrusted", ("--ca-file",)),
    Stage("a self-signed certificate", "objects self-signed", 3, "certificate-untrusted",
          ("SHA-256", "could not be pinned either")),
    Stage("a certificate of another name", "objects other-name", 3, "connection-failed", ("another", "verify-ca")),
    Stage("nothing listens", "objects down", 3, "connection-failed", ("HOST:PORT", "nothing listens")),
    Stage("a host name that does not exist", "objects nowhere", 3, "connection-failed", ("nowhere.invalid",)),
    Stage("a server that hangs", "objects hangs", 3, "connection-failed", ("HOST:PORT", "no answer within")),
    Stage("too many requests at once", "objects busy", 3, "connection-failed", ("HOST:PORT", "429", "wait")),
    Stage("a login page in between", "objects redirects", 3, "connection-failed", ("302", "https://login.example")),
    Stage("a proxy whose server is down", "objects proxied", 3, "connection-failed", ("HTTP 502",)),
    Stage("another product", "objects opensearch", 1, "server-not-supported", ("opensearch",)),
    Stage("a closed index", "page shop closed", 1, "query-failed", ("closed", "_open")),
    Stage("a read-only index", "update shop frozen 1 --set total=2", 4, "", ("failed", "block")),
    Stage("a misspelt object", "page shop ordres", 1, "object-not-found",
          ("did you mean orders?", "dragoman objects shop")),
    Stage("a misspelt object in a write", "insert shop ordres --set total=1", 1, "object-not-found",
          ("did you mean orders?",)),
    Stage("a misspelt object in an export", "export shop ordres", 1, "object-not-found", ("did you mean orders?",)),
    Stage("a misspelt column", "page shop orders --columns totl", 1, "query-failed",
          ("did you mean total?", "dragoman describe shop orders")),
    Stage("a misspelt column in a sort", "page shop orders --sort totl", 1, "query-failed", ("did you mean total?",)),
    Stage("a misspelt column in a filter", "count shop orders --filter 'totl > 1'", 1, "filter-not-supported",
          ("did you mean total?",)),
    Stage("a misspelt column in a write", "update shop orders 1 --set totl=2", 4, "", ("did you mean total?",)),
    Stage("a misspelt connection", "objects shpo", 2, "configuration-invalid", ("did you mean shop?",)),
    Stage("a misspelt type", "connections add x --type elasticsearhc --no-connect", 1, "plugin-not-found",
          ("did you mean elasticsearch?",)),
    Stage("a misspelt tenant", "page library Shared --tenant anna", 1, "tenant-unknown", ("did you mean ann?",)),
    Stage("a date that does not fit", "update shop orders 1 --set placed=31.01.2024", 4, "",
          ("refused", "strict_date_optional_time")),
    Stage("a date that does not fit in a filter", "page shop orders --filter 'placed > 31.01.2024'", 1,
          "filter-not-supported", ("strict_date_optional_time",)),
    Stage("a file ending of no format", "export shop orders -o orders.xlsx", 2, "format-unknown",
          (".xlsx", "--format")),
    Stage("a cursor of no page", "page shop orders --cursor abc", 1, "cursor-invalid", ("cursor",)),
)  # fmt: skip


def _ask(fake, method, path, body=""):
    with socket.create_connection(("127.0.0.1", fake.port)) as peer:
        head = f"{method} {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        peer.sendall(head.encode() + body.encode())
        answer = b"".join(iter(lambda: peer.recv(65536), b""))
    assert answer.split()[1][:2] == b"20", answer


def _rows(fake):
    fields = {"total": {"type": "long"}, "placed": {"type": "date"}}
    for name in ("orders", "closed", "frozen"):
        _ask(fake, "PUT", f"/{name}", json.dumps({"mappings": {"properties": fields}}))
        _ask(fake, "PUT", f"/{name}/_doc/1?refresh=true", '{"total":1}')
    _ask(fake, "POST", "/closed/_close")
    _ask(fake, "PUT", "/frozen/_settings", '{"index.blocks.read_only":true}')


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """One home with a connection for each kind of trouble."""
    folder = tmp_path_factory.mktemp("house")
    own, elsewhere = make_certificates(folder / "own"), make_certificates(folder / "elsewhere", "db.example")
    keys = [ApiKey("id1", "old", state="expired"), ApiKey("id2", "gone", state="revoked")]
    secured = FakeElasticsearch(
        users={"ada": User("open-sesame"), "few": User("open-sesame", indices={})}, api_keys=keys
    )
    shop, busy, redirects, hangs, proxied = (FakeElasticsearch() for _ in range(5))
    library, locked = FakeWeaviate(), FakeWeaviate(keys={"k": Person("u", admin=True)})
    tls, named = FakeElasticsearch(tls=own), FakeElasticsearch(tls=elsewhere)
    alone = make_certificates(folder / "alone")
    for kind in ("crt", "key"):
        shutil.copy(alone.folder / f"ca.{kind}", alone.folder / f"server.{kind}")
    signed = FakeElasticsearch(tls=alone)
    opensearch = FakeElasticsearch(opensearch="2.19.1")
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        for fake in (secured, shop, busy, redirects, hangs, proxied, library, locked, tls, named, signed, opensearch):
            stack.enter_context(portal.wrap_async_context_manager(fake))
        _rows(shop)
        shared = {"class": "Shared", "vectorizer": "none", "multiTenancyConfig": {"enabled": True}}
        _ask(library, "POST", "/v1/schema", json.dumps(shared))
        _ask(library, "POST", "/v1/schema/Shared/tenants", '[{"name":"ann"}]')
        busy.misbehave("answer", status=429, body={}, headers={"Retry-After": "20"})
        redirects.misbehave("answer", status=302, body={}, headers={"Location": "https://login.example/"})
        hangs.misbehave("hang")
        proxied.misbehave("html")
        machine = Machine(folder / "home", cwd=folder)
        (folder / "pw").write_text("letmein-2024")
        (folder / "right").write_text("open-sesame")
        for name, key in (("expired", keys[0].encoded), ("revoked", keys[1].encoded), ("key", "no such key")):
            (folder / name).write_text(key)

        def add(name, fake, *more, kind="elasticsearch", host="127.0.0.1"):
            port = fake.port if not isinstance(fake, int) else fake
            given = more if "--auth-method" in more else ("--auth-method", "none", *more)
            machine("-y", "connections", "add", name, "--type", kind, "--host", host, "--port", port, *given,
                    "--no-connect")  # fmt: skip

        basic = ("--auth-method", "username-password", "--username")
        add("wrong-password", secured, *basic, "ada", "--password", f"file:{folder / 'pw'}")
        add("few-rights", secured, *basic, "few", "--password", f"file:{folder / 'right'}")
        for name in ("expired", "revoked"):
            add(f"{name}-key", secured, "--auth-method", "api-key", "--api-key", f"file:{folder / name}")
        add("no-credentials", secured)
        add("wrong-key", locked, "--auth-method", "api-key", "--api-key", f"file:{folder / 'key'}", kind="weaviate")
        add("http-on-tls", tls)
        add("tls-on-http", shop, "--ssl-mode", "required-skip-verify")
        add("verify-ca", tls, "--ssl-mode", "verify-ca")
        add("verify-identity", tls, "--ssl-mode", "verify-identity")
        add("self-signed", signed, "--ssl-mode", "verify-identity")
        add("other-name", named, "--ssl-mode", "verify-identity", "--ca-file", elsewhere.ca)
        add("down", 1)
        add("nowhere", 9200, host="nowhere.invalid")
        for name, fake in (("hangs", hangs), ("busy", busy), ("redirects", redirects), ("proxied", proxied)):
            add(name, fake)
        add("opensearch", opensearch)
        add("shop", shop)
        add("library", library, kind="weaviate")
        yield machine
        hangs.behave()


@pytest.fixture(scope="module")
def told():
    """Collect what each stage printed."""
    return {}


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.what)
def test_a_staged_failure_has_its_code_and_names_what_and_the_remedy(house, monkeypatch, told, stage):
    if "hangs" in stage.words:
        monkeypatch.setitem(HOOKS, "connect", HOOKS["connect"]._replace(seconds=8.0))
    done = house(f"dragoman {stage.words}", code=None)
    said = re.sub(r"(127\.0\.0\.1|localhost):\d+", "HOST:PORT", done.said)
    assert done.code == stage.code, done
    if stage.error:
        assert f"error[{stage.error}]: " in said
    assert [text for text in stage.named if text not in said] == []
    told[stage.what] = "<br>".join(" ".join(line.split()) for line in said.splitlines() if line.strip())


def test_the_page_of_failures_is_what_the_commands_print(told):
    if len(told) < len(STAGES):
        pytest.skip("only a whole run makes the page")
    rows = []
    for stage in STAGES:
        text = told[stage.what].replace("|", "\\|")
        text = re.sub(r"\d+(\.\d+)? s\b", "N s", text)
        text = re.sub(r"([0-9A-F]{2}:){31}[0-9A-F]{2}", "FINGERPRINT", text)
        text = re.sub(r"\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d", "DATE to DATE", text)
        rows.append(f"| {stage.what} | `dragoman {stage.words}` | {stage.code} | {text} |\n")
    page = HEAD + "".join(rows)
    if os.environ.get("DRAGOMAN_GOLDEN") == "write":
        PAGE.write_text(page, encoding="utf-8")
    assert page == PAGE.read_text(encoding="utf-8")
