"""The console, its history, exports as downloads and into a folder, and what the page remembers."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from contextlib import nullcontext
from types import SimpleNamespace

import aiohttp
import anyio
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace

from browsing import signed_in
from dragoman import Answer, Page, RowSelection, Runtime
from dragoman_api.changes import HttpRequest
from dragoman_api.columns import Column, Note
from dragoman_api.console import AnswerKind, ConsoleRequest
from dragoman_api.errors import DragomanError, Refused
from dragoman_api.hookspecs import hookimpl
from dragoman_workbench.access import Door
from dragoman_workbench.downloads import Downloads
from dragoman_workbench.event_stream import EventStream
from dragoman_workbench.messages.work import ExecuteAsked, ExportAsked, ExportJob
from dragoman_workbench.remembered import Remembered
from dragoman_workbench.routes.console import ConsoleRoutes
from dragoman_workbench.routes.exports import ExportRoutes
from slow_cases import mostly_slow

BOOKS, CSV = {"object": "books"}, {"format": "csv"}
TEXT = "GET /_cat/indices\n\nGET /books/_count\n\nDELETE /books/_doc/none\n"


async def test_requests_are_parsed_and_marked(shop_tab, sample_port):
    found = (await shop_tab("console/parse", connection="shop", text=TEXT))["requests"]
    assert [(each["line"], each["writes"]) for each in found] == [(1, False), (3, False), (5, True)]
    pages = "https://www.elastic.co/docs/api/doc/elasticsearch/"
    assert [each["docs"].removeprefix(pages) for each in found] == [
        "operation/operation-cat-indices",
        "operation/operation-count",
        "",
    ]
    assert found[1]["curl"] == f"curl -X GET http://127.0.0.1:{sample_port}/books/_count"


async def test_the_request_at_a_line_is_sent(shop_tab):
    told = await shop_tab("console/execute", connection="shop", text=TEXT, line=4)
    [answer] = told["answers"]
    assert (answer["line"], answer["status"]) == (3, 200)
    assert "count" in answer["text"]
    assert answer["seconds"] > 0


async def test_an_answer_names_the_lines_of_its_request_whether_one_is_sent_or_all(shop_tab):
    for line, lines in ((None, [(1, 2), (3, 4), (5, 0)]), (4, [(3, 4)]), (6, [(5, 0)])):
        told = await shop_tab("console/execute", connection="shop", text=TEXT, line=line, remember=False)
        assert [(answer["line"], answer["until"]) for answer in told["answers"]] == lines


async def test_aggregations_are_tables_beside_their_text(shop_tab):
    text = 'POST /orders/_search\n{"size": 0, "aggs": {"status": {"terms": {"field": "status"}}}}'
    [answer] = (await shop_tab("console/execute", connection="shop", text=text))["answers"]
    buckets = json.loads(answer["text"])["aggregations"]["status"]["buckets"]
    rows = [[bucket["key"], ["integer", str(bucket["doc_count"])]] for bucket in buckets]
    assert (answer["kind"], [row["cells"] for row in answer["page"]["rows"]]) == ("table", rows)
    assert [column["role"] for column in answer["page"]["columns"]] == ["key", ""]


async def test_a_line_belongs_to_the_request_that_begins_at_or_above_it(shop_tab):
    for line, first in ((1, 1), (2, 1), (3, 3), (5, 5), (99, 5)):
        told = await shop_tab("console/execute", connection="shop", text=TEXT, line=line, remember=False)
        assert [answer["line"] for answer in told["answers"]] == [first]
    failure = await shop_tab.failure("console/execute", connection="shop", text=f"\n{TEXT}", line=1)
    assert failure["code"] == "console-syntax"


HTTP = HttpRequest(method="GET", path="/a")
TABLE = Answer(
    kind=AnswerKind.TABLE,
    status=200,
    request=HTTP,
    page=Page(columns=[Column(name="n", type="integer")], cells=[[7]]),
    notes=[Note(code="cut", reason="some")],
    title="Rows",
)
PARTLY = HttpRequest(method="GET", path="/b")
LOST = Answer(kind=AnswerKind.TEXT, status=200, request=PARTLY, text="partly", failed="a shard")


@pytest.mark.parametrize(
    ("answer", "stops"),
    [
        (TABLE, False),
        (replace(TABLE, status=399), False),
        (replace(TABLE, status=400), True),
        (LOST, True),
        (replace(TABLE, next=LOST), True),
        (replace(TABLE, next=replace(LOST, failed="")), False),
        (replace(TABLE, next=replace(LOST, failed="", status=503)), True),
    ],
)
async def test_any_part_of_an_answer_that_failed_stops_a_run_and_every_part_is_shown(answer, stops):
    requests = [ConsoleRequest(request=HTTP, writes=False, line=line) for line in (1, 3, 7)]

    class Session:
        async def session(self, _):
            return self

        async def parse(self, _, *, variables):
            assert variables == {"a": "b"}
            return requests

        async def execute(self, request):
            assert request.tabular
            return answer if request.line != 1 else TABLE

    asked = ExecuteAsked(connection="shop", text="", variables={"a": "b"}, stop_on_error=True, remember=False)
    ran = await ConsoleRoutes(Session(), None).execute(asked)
    parts = [answer] if answer.next is None else [answer, answer.next]
    assert [told.line for told in ran.answers] == [1] + [3] * len(parts) + ([] if stops else [7] * len(parts))
    assert [unsent.line for unsent in ran.unsent] == ([7] if stops else [])
    for told, part in zip(ran.answers[1:], parts, strict=False):
        names = ("kind", "status", "request", "text", "notes", "title", "failed")
        assert [getattr(told, name) for name in names] == [getattr(part, name) for name in names]
        assert (told.page and told.page.rows[0].cells) == (part.page and [("integer", "7")])


def remembering(home, mask=str):
    return Remembered(home / "state" / "kept", change_file=Runtime(home, spare=False).change_file, mask=mask)


async def test_a_history_keeps_the_newest_texts_of_its_own_connection(home, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.remembered.MAX_ENTRIES", 3)
    monkeypatch.setattr("dragoman_workbench.remembered.MAX_TEXT", 5)
    remembered = remembering(home)
    for text in ("a", "b", "c", "b", "12345", "12345", "123456", " ", ""):
        await remembered.note("shop", text)
    await remembered.note("Shop", "other")
    histories = [[entry.text for entry in await remembered.history(name)] for name in ("shop", "Shop", "none")]
    assert histories == [["12345", "b", "c"], ["other"], []]
    assert len({name.name.lower() for name in (home / "state" / "kept").glob("history-*.json")}) == 2


async def test_what_is_nested_too_deeply_is_no_preference_and_no_history(home):
    remembered, deep = remembering(home), "[" * 100_000 + "]" * 100_000
    with pytest.raises(DragomanError, match="is not JSON"):
        await remembered.set("a", deep)
    await remembered.note("shop", "a")
    [file] = (home / "state" / "kept").glob("history-*.json")
    file.write_text(f'[{{"at":1,"text":"b","deep":{deep}}}]')
    assert await remembered.history("shop") == []


async def test_preferences_are_bounded_masked_and_the_one_set_longest_ago_goes(home, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.remembered.MAX_PREFERENCES", 2)
    remembered = remembering(home, lambda text: text.replace("secret", "***"))
    value = json.dumps({"secret": ["a secret", {"b": "secret"}, 1.5, False, None, 0]})
    for key in ("a", "b", "a", "c"):
        await remembered.set(key, value)
    masked = {"***": ["a ***", {"b": "***"}, 1.5, False, None, 0]}
    values = await remembered.preferences("")
    assert {key: json.loads(text) for key, text in values.items()} == {"a": masked, "c": masked}


async def test_tickets_are_bounded_expire_and_are_taken_back_one_by_one(monkeypatch):
    monkeypatch.setattr("dragoman_workbench.downloads.MAX_TICKETS", 3)
    downloads = Downloads(None)
    tickets = [downloads.offer(None, file="x", seconds=seconds) for seconds in (60, 60, 60, 60)]
    assert [downloads.waits(ticket) for ticket in tickets] == [False, True, True, True]
    downloads.withdraw(tickets[1])
    assert [downloads.waits(ticket) for ticket in tickets] == [False, False, True, True]
    late = downloads.offer(None, file="x", seconds=-1)
    assert not downloads.waits(late)
    for ticket in (late, tickets[1], "guess"):
        with pytest.raises(web.HTTPNotFound):
            await downloads.answer(None, ticket)


async def test_whoever_fetches_a_ticket_is_no_guest_and_gets_the_name_whole(shop_tab, monkeypatch):
    lines, welcome = [], Door.welcome
    asked = {"connection": "shop", "rows": BOOKS, "to": "download", "file": "bücher 1;a=b.csv", "format": CSV}
    ticket = (await shop_tab("exports/start", **asked))["ticket"]
    monkeypatch.setattr(Door, "welcome", lambda door, line: [lines.append(line), welcome(door, line)])
    async with aiohttp.ClientSession(shop_tab.place.url) as http, http.get(f"/download/{ticket}") as answer:
        disposition = answer.headers["Content-Disposition"]
        assert disposition == "attachment; filename=b_cher_1_a_b.csv; filename*=UTF-8''b%C3%BCcher%201%3Ba%3Db.csv"
        assert await answer.read()
    assert len(lines) == 1


SOME = "GET /nothing\n\nGET /books/_count\n\nGET /orders/_count\n"


async def test_a_run_goes_on_after_an_answer_that_fails_as_the_command_line_does(shop_tab):
    ran = await shop_tab("console/execute", connection="shop", text=SOME)
    assert [answer["status"] for answer in ran["answers"]] == [404, 200, 200]
    assert ran["unsent"] == []


async def test_a_run_that_is_to_stop_names_what_was_not_sent(shop_tab):
    ran = await shop_tab("console/execute", connection="shop", text=SOME, stop_on_error=True)
    assert [answer["status"] for answer in ran["answers"]] == [404]
    assert [(one["line"], one["method"], one["path"]) for one in ran["unsent"]] == [
        (3, "GET", "/books/_count"),
        (5, "GET", "/orders/_count"),
    ]


class _Veto:
    """A guard that refuses one path."""

    @hookimpl
    async def before_call(self, call):
        if any(request.path == "/books/_count" for request in call.requests):
            raise Refused("not these")


async def test_a_run_that_a_guard_ends_names_what_was_not_sent(shop_home):
    async with signed_in(shop_home, use=[_Veto()]) as tab:
        await tab("open", connection="shop")
        ran = await tab("console/execute", connection="shop", text=SOME)
        assert [answer["status"] for answer in ran["answers"]] == [404]
        assert "not these" in ran["error"]["message"]
        assert [one["path"] for one in ran["unsent"]] == ["/orders/_count"]


async def test_what_a_person_no_longer_waits_for_is_not_sent(shop_home, monkeypatch):
    """Stop ends a run after the request that is under way."""
    sent = []

    class Slow:
        @hookimpl
        async def before_call(self, call):
            if call.hook == "execute_console":
                sent.append(call.requests[0].path)
                started.set()
                await anyio.sleep(0.2)

    started, ended = anyio.Event(), anyio.Event()
    told = ConsoleRoutes.execute

    async def execute(self, asked):
        answer = await told(self, asked)
        ended.set()
        return answer

    monkeypatch.setattr(ConsoleRoutes, "execute", execute)
    async with signed_in(shop_home, use=[Slow()]) as tab:
        await tab("open", connection="shop")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: tab("console/execute", connection="shop", text=SOME))
            await started.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await ended.wait()
        assert sent == ["/nothing"]


async def test_variables_are_filled_in(shop_tab):
    told = await shop_tab(
        "console/execute", connection="shop", text="GET /${index}/_count", variables={"index": "books"}
    )
    assert told["answers"][0]["status"] == 200
    failure = await shop_tab.failure("console/parse", connection="shop", text="GET /${index}/_count")
    assert failure["code"] == "variable-unknown"


async def test_a_text_is_completed_at_the_cursor(shop_tab):
    asked = {"connection": "shop", "text": "# \N{GRINNING FACE}\nGET /ord/_search\n"}
    told = await shop_tab("console/complete", **asked, position=12)
    found = next(each for each in told["suggestions"] if "orders" in each["text"])
    assert asked["text"][found["start"] : found["end"]].lstrip("/").startswith("ord")
    assert found["kind"] in ("object", "path")
    assert (await shop_tab.failure("console/complete", **asked, position=1000))["code"]


async def test_digits_of_an_answer_survive(shop_tab):
    body = '{"query":{"match_none":{}},"_source":["a"],"size":0}'
    told = await shop_tab("console/execute", connection="shop", text=f"POST /books/_search\n{body}")
    assert told["answers"][0]["request"]["body"] == body


async def test_the_history_survives_a_restart_and_holds_no_secrets(shop_home):
    secret = "hunter2-hunter2"
    text = f'POST /_security/api_key\n{{"name":"x","password":"{secret}"}}'
    async with signed_in(shop_home) as tab:
        await tab("open", connection="shop")
        for each in (text, "GET /", "GET /"):
            await tab("console/execute", connection="shop", text=each)
        await tab("console/execute", connection="shop", text="GET /_cat", remember=False)
    async with signed_in(shop_home) as tab:
        entries = (await tab("console/history", connection="shop"))["entries"]
        assert [each["text"].splitlines()[0] for each in entries] == ["GET /", "POST /_security/api_key"]
    for path in (shop_home / "state").rglob("*"):
        assert not path.is_file() or secret not in path.read_text()


async def test_no_text_that_is_kept_holds_the_connections_own_secret(shop_home, sample_port):
    """Under an innocent name, in a filter, a draft or a history: the runtime knows the secret wherever it stands."""
    secret = "correct-horse-9"
    entered = {"host": "127.0.0.1", "port": str(sample_port), "auth_method": "username-password", "username": "elastic"}
    fields = {name: {"kind": "value", "value": value} for name, value in entered.items()}
    fields["password"] = {"kind": "secret", "value": secret}
    basic = base64.b64encode(f"elastic:{secret}".encode()).decode()
    text = f'POST /books/_search\n{{"query":{{"term":{{"title":"{secret}"}}}},"ext":"{basic}"}}'
    rows = {"object": "books", "filters": [{"type": "filter", "column": "title", "op": "=", "value": secret}]}
    async with signed_in(shop_home) as tab:
        await tab("connections/save", name="guarded", type="elasticsearch", fields=fields)
        await tab("open", connection="guarded")
        await tab("console/execute", connection="guarded", text=text)
        await tab("preferences/set", key="console/guarded", value=json.dumps(text))
        failure = await tab.failure("queries/save", connection="guarded", name="mine", rows=rows)
        assert failure["code"] == "secret-in-query"
        [entry] = (await tab("console/history", connection="guarded"))["entries"]
        values = (await tab("preferences"))["values"]
        assert entry["text"].startswith("POST /books/_search")
        assert values["console/guarded"]
    files = [path.read_text() for path in (shop_home / "state" / "workbench").rglob("*") if path.is_file()]
    files.append((shop_home / "config" / "connections.toml").read_text())
    assert not [word for text in files for word in (secret, basic) if word in text]


@pytest.mark.slow
async def test_an_export_is_downloaded_once_by_its_ticket(shop_tab):
    asked = {"connection": "shop", "to": "download", "file": "orders.csv", "format": CSV}
    export = await shop_tab("exports/start", **asked, rows={"object": "orders", "columns": ["_id", "total"]})
    assert export["state"] == "waiting"
    async with shop_tab.http.get(f"/download/{export['ticket']}") as answer:
        assert answer.headers["Content-Disposition"] == "attachment; filename=orders.csv; filename*=UTF-8''orders.csv"
        data = await answer.read()
    [done] = (await shop_tab("exports"))["exports"]
    assert (done["state"], done["bytes"], done["ticket"]) == ("finished", len(data), "")
    assert done["sha256"] == hashlib.sha256(data).hexdigest()
    assert data.splitlines()[0] == b"_id,total"
    assert len(data.splitlines()) == done["rows"] + 1
    async with shop_tab.http.get(f"/download/{export['ticket']}") as answer:
        assert answer.status == 404


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (400, {"format": ""}), (400, {"format": "arrow"}), (400, {"format": "nonsense"}), (400, {"format": None}),
        (400, {"format": "csv", "compression": "nonsense"}), (400, {"format": "csv", "compression": ""}),
        (400, {"format": "csv", "strict": True}), (422, {"format": "parquet"}),
    ],
)  # fmt: skip
async def test_a_download_that_cannot_be_is_refused_when_it_is_asked_for(shop_tab, status, content):
    """A ticket for it would lead to a download that ends early, without a word in the browser."""
    asked = {"connection": "shop", "rows": BOOKS, "to": "download", "file": "books", "format": content}
    assert (await shop_tab.failure("exports/start", **asked, status=status))["message"]
    assert (await shop_tab("exports"))["exports"] == []


async def test_a_file_that_cannot_be_is_refused_when_its_export_is_asked_for(shop_home, tmp_path):
    async with signed_in(shop_home, export_folder=tmp_path) as tab:
        await tab("open", connection="shop")
        for file, content in [("a.zip", CSV), ("a.parquet", {"format": "parquet", "compression": "bzip2"})]:
            asked = {"connection": "shop", "rows": BOOKS, "to": "folder", "file": file, "format": content}
            assert (await tab.failure("exports/start", **asked))["message"]
        assert (await tab("exports"))["exports"] == []


async def test_an_export_goes_into_the_folder_with_progress(shop_home, tmp_path):
    folder = tmp_path / "exports"
    folder.mkdir()
    async with signed_in(shop_home, export_folder=folder) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        await tab("open", connection="shop")
        assert (await tab("state"))["export_folder"] == str(folder)
        asked = {
            "connection": "shop",
            "rows": {
                "object": "orders",
                "filters": [{"type": "filter", "column": "total", "op": ">=", "value": "100"}],
            },
            "to": "folder",
            "file": "orders.ndjson.gz",
            "format": {"format": "documents", "compression": "gzip"},
        }
        export = await tab("exports/start", **asked)
        done = (await tab.told("export", id=export["id"], state="finished"))["export"]
        lines = gzip.decompress((folder / "orders.ndjson.gz").read_bytes()).splitlines()
        assert len(lines) == done["rows"] == int((await tab("count", connection="shop", rows=asked["rows"]))["rows"])
        assert all(json.loads(line)["total"] >= 100 for line in lines)
        assert (await tab.failure("exports/start", **asked))["code"] == "file-exists"
        tasks.cancel_scope.cancel()


@pytest.mark.slow
async def test_two_exports_of_one_object_tell_their_own_progress(shop_home, tmp_path):
    async with signed_in(shop_home, export_folder=tmp_path) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        await tab("open", connection="shop")
        asked = {"connection": "shop", "to": "folder"}
        row = {"type": "filter", "column": "total", "op": ">=", "value": "100"}
        filtered = {"object": "orders", "filters": [row]}
        some = await tab("exports/start", **asked, rows=filtered, file="some.ndjson")
        every = await tab("exports/start", **asked, rows={"object": "orders"}, file="every.ndjson")
        for export in (some, every):
            rows = (await tab.told("export", id=export["id"], state="finished"))["export"]["rows"]
            told = [each["export"] for each in tab.events if each["kind"] == "export"]
            totals = {each["total"] for each in told if each["id"] == export["id"]}
            assert totals == {None, rows}
        tasks.cancel_scope.cancel()


class Failing:
    """Stands for open connections, and rows of them, whose exports fail."""

    def __init__(self, error):
        self.error = error

    def busy(self, _):
        return nullcontext()

    async def session(self, _):
        return self

    def select(self, _):
        return self

    async def export(self, *_, **__):
        raise self.error


@pytest.mark.parametrize(
    ("error", "to", "rows", "resumable"),
    [
        (DragomanError("x", code="connection-failed"), "folder", 1, True),
        (DragomanError("x", code="connection-failed"), "folder", 0, False),
        (DragomanError("x", code="connection-failed"), "download", 1, False),
        (OSError(5, "gone"), "download", 1, False),
        *((DragomanError("x", code=code), "folder", 1, False) for code in (
            "resume-refused", "export-running", "export-not-resumable", "context-lost", "limit-exceeded", "file-exists",
        )),
    ],
)  # fmt: skip
async def test_an_export_that_failed_can_go_on_where_that_helps(error, to, rows, resumable):
    runtime = SimpleNamespace(add_sink=lambda _: None)
    room = ExportRoutes(
        runtime, Failing(error), stream=EventStream(), work=None, downloads=Downloads(None), folder=None
    )
    asked = {"connection": "shop", "file": "x", "to": to}
    for number in ("this", "other"):
        room._jobs.tell(ExportJob(id=number, object="books", state="running", rows=rows, **asked))
    await room._run("this", ExportAsked(**asked, rows=RowSelection(object="books")), "there", target_name="there")
    this, other = room.all
    assert (this.state, this.resumable, other.state) == ("failed", resumable, "running")
    assert (this.error.code, this.rows) == ("export-failed" if isinstance(error, OSError) else error.code, rows)


async def test_exports_that_wait_or_run_are_bounded(shop_tab, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.routes.jobs.MAX_RUNNING", 2)
    asked = {"connection": "shop", "rows": BOOKS, "to": "download", "file": "x.ndjson"}
    exports = [await shop_tab("exports/start", **asked) for _ in range(2)]
    assert (await shop_tab.failure("exports/start", **asked))["code"] == "too-many"
    await shop_tab("exports/cancel", id=exports[1]["id"])
    await shop_tab("exports/start", **asked)
    states = {export["id"]: export["state"] for export in (await shop_tab("exports"))["exports"]}
    assert [*states.values()] == ["waiting", "cancelled", "waiting"]


async def test_only_an_export_that_ended_early_can_be_resumed(shop_home, tmp_path):
    async with signed_in(shop_home, export_folder=tmp_path) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        await tab("open", connection="shop")
        asked = {"connection": "shop", "rows": BOOKS}
        done = await tab("exports/start", **asked, to="folder", file="books.ndjson")
        await tab.told("export", id=done["id"], state="finished")
        waiting = await tab("exports/start", **asked, to="download", file="books.ndjson")
        await tab("exports/cancel", id=waiting["id"])
        for number in (done["id"], waiting["id"], "nothing"):
            assert (await tab.failure("exports/resume", id=number))["code"] == "resume-refused"
        assert [each["state"] for each in (await tab("exports"))["exports"]] == ["finished", "cancelled"]
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    "name",
    mostly_slow(
        [
            "../x",
            "a/b",
            "/etc/x",
            "a\\b",
            ".hidden",
            "..",
            "con",
            "NUL.txt",
            "a:b",
            "a\nb",
            "a\0",
            "x ",
            "x.",
            "é" * 150,
            "*",
        ],
        fast=["../x", "NUL.txt", "a\0"],
    ),
)
async def test_an_export_is_not_written_elsewhere(shop_home, tmp_path, name):
    async with signed_in(shop_home, export_folder=tmp_path) as tab:
        await tab("open", connection="shop")
        failure = await tab.failure("exports/start", connection="shop", rows=BOOKS, to="folder", file=name)
        assert failure["code"] == "name-invalid"


async def test_without_a_folder_there_are_only_downloads(shop_tab):
    asked = {"connection": "shop", "rows": BOOKS, "to": "folder", "file": "x.ndjson"}
    failure = await shop_tab.failure("exports/start", **asked)
    assert (failure["hint"], "--export-to" in failure["remedy"]["target"]) == ("", True)


async def test_an_export_that_fails_says_why_and_a_download_breaks_off(shop_tab):
    asked = {"connection": "shop", "rows": {"object": "nothing"}, "to": "download", "file": "x.ndjson"}
    export = await shop_tab("exports/start", **asked)
    with pytest.raises(aiohttp.ClientError):
        async with shop_tab.http.get(f"/download/{export['ticket']}") as answer:
            await answer.read()
    [done] = (await shop_tab("exports"))["exports"]
    assert done["state"] == "failed"
    assert "nothing" in done["error"]["message"]


async def test_a_download_whose_browser_is_gone_is_cancelled(monkeypatch):
    class Here:
        async def run(self, work, *, abortable):
            await work()

    monkeypatch.setattr("dragoman_workbench.downloads.welcome", lambda request: None)
    downloads, errors, begun, ended = Downloads(Here()), [], anyio.Event(), anyio.Event()

    async def handle(request):
        async def write(stream):
            begun.set()
            await anyio.sleep_forever()

        try:
            return await downloads.answer(request, downloads.offer(write, file="x"))
        except BaseException as error:
            errors.append(type(error))
            raise
        finally:
            ended.set()

    app = web.Application()
    app.router.add_get("/", handle)
    async with TestServer(app) as server, aiohttp.ClientSession() as http:
        answer = await http.get(server.make_url("/"))
        await begun.wait()
        answer.close()
        await ended.wait()
    assert errors == [anyio.get_cancelled_exc_class()]


async def test_a_download_that_no_browser_fetches_is_cancelled(shop_tab, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.downloads.TICKET_SECONDS", -1)
    asked = {"connection": "shop", "rows": BOOKS, "to": "download", "file": "x.ndjson"}
    export = await shop_tab("exports/start", **asked)
    await shop_tab("exports/cancel", id=export["id"])
    assert [each["state"] for each in (await shop_tab("exports"))["exports"]] == ["cancelled"]


async def test_preferences_survive_a_restart(shop_home):
    async with signed_in(shop_home) as tab:
        await tab("preferences/set", key="grid/shop/orders", value='{"hidden":["a"]}')
        await tab("preferences/set", key="grid/shop/books", value="[1]")
        await tab("preferences/set", key="grid/shop/books", value=None)
        failure = await tab.failure("preferences/set", key="x", value="{")
        assert failure["code"] == "bad-request"
    async with signed_in(shop_home) as tab:
        assert (await tab("preferences", prefix="grid/"))["values"] == {"grid/shop/orders": '{"hidden":["a"]}'}
        assert (await tab("preferences", prefix="console/"))["values"] == {}


async def test_a_damaged_file_of_preferences_is_replaced(shop_home):
    folder = shop_home / "state" / "workbench"
    folder.mkdir(parents=True)
    (folder / "preferences.json").write_text("{")
    async with signed_in(shop_home) as tab:
        assert (await tab("preferences"))["values"] == {}
        await tab("preferences/set", key="a", value="1")
        assert (await tab("preferences"))["values"] == {"a": "1"}
