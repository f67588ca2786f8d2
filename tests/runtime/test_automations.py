"""The automations that come with dragoman: read-only connections, cut cells, limits, the audit."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from contextlib import suppress

import anyio
import pytest

import wheelhouse
from dragoman.automations.audit import Audit
from dragoman.connections.saved_connections import SavedConnection
from dragoman.spellings import spell_id
from dragoman_api.cells import CutBytes, CutJson, CutText
from dragoman_api.changes import Delete, Drop, HttpRequest, Insert, Update
from dragoman_api.errors import ConfigurationError, Refused
from dragoman_api.events import AutomationFailed, Call, ConsoleExecuted, EventsDropped
from dragoman_api.grid import RowKey
from dragoman_api.masking import Mask
from dragoman_worker.hooks_and_deadlines import HOOKS
from slow_cases import mostly_slow

MEMORY = "from .memory_driver import MemoryDriver as Driver\n"
KEY = RowKey(object="books", id="7")


@pytest.fixture
def open_memory(make_runtime, tmp_path, monkeypatch):
    """Return a function that makes a runtime with the memory driver and a `config.toml`."""
    homes = (tmp_path / f"home{number}" for number in range(9))

    def make(config, *, code=MEMORY, **options):
        home = next(homes)
        monkeypatch.setenv("DRAGOMAN_HOME", str(home))
        (home / "config").mkdir(parents=True)
        (home / "config/config.toml").write_text(config)
        return make_runtime(wheelhouse.Driver("memory", code=code, hooks=[*HOOKS]), **options)

    return make


async def write(session, *changes):
    return [outcome.status for outcome in await session.apply(await session.plan(*changes))]


async def test_a_read_only_connection_refuses_every_write_and_shows_its_plan(open_memory):
    async with open_memory('[guards.connections.memory]\nread_only = "read-only"\n') as runtime:
        async with runtime.open("memory") as session:
            assert (await session.rows("books").page(limit=1)).cells
            plan = await session.plan(Delete(KEY))
            with pytest.raises(Refused, match="memory is read-only; nothing was sent"):
                await session.apply(plan)
            with pytest.raises(Refused):
                await session.console("DELETE /books/7")
            assert await session.console("GET /books")
            assert await session.rows("books").count() == 23
        assert "call.refused" in [event.name for event in runtime.seen]


async def test_writes_are_confirmed_with_their_exact_requests_in_sight(open_memory):
    asked = []

    async def confirm(question):
        asked.append(question)
        return len(asked) > 1

    config = '[guards]\nread_only = "confirm-writes"\n'
    async with open_memory(config, confirm=confirm) as runtime, runtime.open("memory") as session:
        with pytest.raises(Refused, match="not confirmed"):
            await write(session, Delete(KEY))
        assert await write(session, Delete(KEY)) == ["applied"]
        assert asked[0].details == ("DELETE /books/7?seq=1",)


SPEAKING = """
from msgspec.structs import replace
from dragoman_api import hookimpl
from .memory_driver import MemoryDriver


class Driver(MemoryDriver):
    @hookimpl
    async def plan_change(self, request):
        plan = await super().plan_change(request)
        return replace(plan, planned=[replace(each, statement="DELETE \\x1b[2J FROM books") for each in plan.planned])
"""


async def test_a_statement_is_confirmed_and_recorded_beside_the_exact_request(open_memory):
    asked = []

    async def confirm(question):
        asked.append(question)
        return True

    config = '[guards]\naudit = true\nread_only = "confirm-writes"\n'
    async with open_memory(config, code=SPEAKING, confirm=confirm) as runtime:
        async with runtime.open("memory") as session:
            assert await write(session, Delete(KEY)) == ["applied"]
        log = runtime.paths.state / "audit.ndjson"
    [request, statement] = asked[0].details[0].split("   # ")
    assert request == "DELETE /books/7?seq=1"
    assert statement.startswith("DELETE")
    assert "\x1b" not in statement
    [record] = [line for line in map(json.loads, log.read_text().splitlines()) if line.get("call") == "apply_change"]
    assert record["requests"] == [{"method": "DELETE", "path": "/books/7?seq=1", "statement": statement}]


async def test_writes_side_by_side_are_asked_about_one_after_the_other(open_memory):
    at_once = []

    async def confirm(question):
        at_once.append(question)
        assert len(at_once) == 1
        await anyio.sleep(0.01)
        at_once.clear()
        return True

    config = '[guards]\nread_only = "confirm-writes"\n'
    async with open_memory(config, confirm=confirm) as runtime, runtime.open("memory") as session:
        plans = [await session.plan(Delete(RowKey(object="books", id=str(number)))) for number in (1, 2, 3)]
        async with anyio.create_task_group() as tasks:
            for plan in plans:
                tasks.start_soon(session.apply, plan)
        assert await session.rows("books").count() == 20


async def test_nobody_there_is_no_consent(open_memory):
    config = '[guards]\nread_only = "confirm-drops"\n'
    async with open_memory(config) as runtime, runtime.open("memory") as session:
        assert await write(session, Delete(KEY)) == ["applied"]
        with pytest.raises(Refused, match="on memory: not a terminal; nothing was sent") as caught:
            await write(session, Drop("books"))
        assert caught.value.hint == "add --yes"
        assert await session.rows("books").count() == 22


async def test_one_connection_may_do_what_the_others_may_not(open_memory):
    config = '[guards]\nread_only = "read-only"\n[guards.connections.memory]\nread_only = "off"\n'
    async with open_memory(config) as runtime, runtime.open("memory") as session:
        assert await write(session, Delete(KEY)) == ["applied"]


@pytest.mark.parametrize(
    "value",
    mostly_slow(
        [CutJson("[1,2..."), CutText("Once..."), CutBytes(b"GIF"), "[" + "1" * 9_999 + "..."], fast=[CutText("Once...")]
    ),
)
async def test_E23_what_a_grid_shows_of_a_cut_cell_is_not_stored_unless_switched_off(open_memory, value):
    async with open_memory("") as runtime, runtime.open("memory") as session:
        for change in (Update(KEY, {"tags": value}), Insert("books", {"tags": value})):
            with pytest.raises(Refused, match=r"tags of .* beginning of a longer value") as caught:
                await session.plan(change)
            key = spell_id(change.key.id) if isinstance(change, Update) else "ID"
            assert caught.value.hint.splitlines()[-1] == f"dragoman cell memory books {key} tags"
        assert await session.plan(Update(KEY, {"title": "an ellipsis..."}))
    config = "[guards.connections.memory]\ncut_cells = false\n"
    async with open_memory(config) as runtime, runtime.open("memory") as session:
        assert (await session.plan(Update(KEY, {"title": str(value)}))).requests


LIMITED = {
    "page": (
        "rows = 5",
        lambda session: session.rows("books").page(limit=6),
        "6 rows were asked for; nothing was sent",
    ),
    "heavy-page": (
        "bytes = 50",
        lambda session: session.rows("books").page(limit=5),
        r"\d+ bytes arrived; .* withheld",
    ),
    "cell": (
        "bytes = 3",
        lambda session: session.rows(KEY.object).cell(KEY, "title"),
        r"\d+ bytes arrived; .* withheld",
    ),
    "console": ("rows = 5", lambda session: session.console("GET /books"), "there are 23 rows"),
    "heavy-console": ("bytes = 50", lambda session: session.console("GET /books"), r"\d+ bytes arrived"),
    "rows": ("rows = 22", lambda session: every(session.rows("books")), "there are 23 rows"),
    "heavy-rows": ("bytes = 99", lambda session: every(session.rows("books")), r"\d+ bytes arrived"),
}


async def every(rows):
    return [row async for row in rows]


@pytest.mark.slow
async def test_a_call_that_reads_more_than_it_may_is_refused_with_what_it_reached(open_memory):
    config = "".join(f"[guards.connections.{name}.limits]\n{limit}\n" for name, (limit, *_) in LIMITED.items())
    async with open_memory(config) as runtime:
        for name, (limit, call, told) in LIMITED.items():
            runtime.connections.save(SavedConnection(name=name, type="memory", values={}))
            async with runtime.open(name) as session:
                with pytest.raises(Refused, match=told) as caught:
                    await call(session)
            what, _, most = limit.partition(" = ")
            assert caught.value.code == "limit-exceeded"
            assert caught.value.message.startswith("limits: ")
            assert caught.value.details["limit"] == what
            assert caught.value.details["reached"] > caught.value.details["most"] == int(most)
            assert f"raise {what} below [guards.connections.{name}.limits]" in caught.value.hint
            [event] = [event for event in runtime.seen if event.name == "call.refused"]
            assert (event.automation, event.connection) == ("limits", name)
            runtime.seen.clear()


async def test_one_connection_has_limits_of_its_own_and_zero_is_none(open_memory):
    config = "[guards.limits]\nrows = 5\nbytes = 50\n[guards.connections.memory.limits]\nbytes = 0\n"
    async with open_memory(config) as runtime, runtime.open("memory") as session:
        assert len((await session.rows("books").page(limit=5)).rows) == 5
        assert await session.rows(KEY.object).cell(KEY, "title")
        with pytest.raises(Refused, match="may have 5 rows"):
            await session.rows("books").page(limit=6)


async def test_an_export_beyond_its_limit_leaves_nothing_under_its_name(open_memory, tmp_path):
    async with open_memory("[guards.limits]\nbytes = 900\n") as runtime, runtime.open("memory") as session:
        with pytest.raises(Refused) as caught:
            await session.rows("books").export(to=tmp_path / "books.ndjson")
        assert caught.value.code == "limit-exceeded"
        assert not (tmp_path / "books.ndjson").exists()
        [event] = [event for event in runtime.seen if event.name == "export.failed"]
        assert event.code == "limit-exceeded"


SLOW = """
import anyio
from dragoman_api import hookimpl
from .memory_driver import MemoryDriver

class Driver(MemoryDriver):
    @hookimpl
    async def count_rows(self, request):
        await anyio.sleep(60)

    @hookimpl
    async def apply_change(self, plan):
        await anyio.sleep(1)
        return await MemoryDriver.apply_change(self, plan)

    @hookimpl
    async def export_rows(self, request):
        async for part in MemoryDriver.export_rows(self, request):
            yield part
            await anyio.sleep(60)
"""


@pytest.mark.slow
async def test_a_call_ends_when_its_seconds_are_over_but_for_what_writes(open_memory, tmp_path):
    config = "[guards.limits]\nseconds = 0.5\n"
    async with open_memory(config, code=SLOW) as runtime, runtime.open("memory") as session:
        for call in (session.rows("books").count(), session.rows("books").export(to=tmp_path / "books.ndjson")):
            with pytest.raises(Refused, match=r"may have 0\.5 seconds, .* stopped after \d") as caught:
                await call
            assert caught.value.details["limit"] == "seconds"
        assert not (tmp_path / "books.ndjson").exists()
        assert await write(session, Delete(KEY)) == ["applied"]


async def test_the_audit_tells_who_asked_for_which_requests_and_what_became_of_them(open_memory):
    async with open_memory("[guards]\naudit = true\n") as runtime:
        log = runtime.paths.state / "audit.ndjson"
        async with runtime.open("memory") as session:
            await write(session, Update(KEY, {"title": "New"}))
            await session.console('POST /books {"title": "x", "password": "hunter2", "api_key":"k\\"ey"}')
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(line["who"] and line["pid"] and line["at"].endswith("+00:00") for line in lines)
    asked = [line for line in lines if line.get("call") in ("apply_change", "execute_console")]
    assert asked[0]["connection"] == "memory"
    assert asked[0]["requests"][0]["path"].startswith("/books/7")
    events = [line["event"]["name"] for line in lines if "event" in line]
    assert {"connection.opened", "row.updated", "console.executed"} <= set(events)
    assert lines.index(asked[0]) < [line.get("event", {}).get("name") for line in lines].index("row.updated")
    assert "hunter2" not in log.read_text()
    assert 'k\\"ey' not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


async def test_the_audit_leaves_secrets_out_of_paths_as_well(tmp_path):
    audit, path = Audit(tmp_path / "log", lambda _: True), "/_x?pretty&access_token=s3same&force=true"
    await audit.before_call(Call(hook="execute_console", writes=True, requests=(HttpRequest("POST", path),)))
    await audit.on_event(ConsoleExecuted(connection="shop", method="POST", path=path, status=200, seconds=0.1))
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 2
    assert all("s3same" not in line and "access_token=***&force=true" in line for line in lines)


SECRET = "s3same-value"
BODIES = {
    "a list": '{"tokens": ["b", "%s"]}',
    "an object in an object": '{"a": {"auth": {"password": {"is": "%s"}}}}',
    "a text that is JSON": '{"source": "{\\"api_key\\": \\"%s\\"}"}',
    "lines of JSON": '{"index": {}}\n{"password": "%s"}\n',
    "a form": "user=me&password=%s",
    "GraphQL": '{"query": "mutation { login(password: \\"%s\\") }"}',
    "a header in a body": '{"headers": {"Authorization": "Basic %s"}}',
    "an address with a user": '{"remote": {"host": "https://me:%s@example.org:9200"}}',
    "no JSON": '{"password": "%s"',
    "an array in no JSON": 'tokens: ["%s", "b"',
    "JSON too deep": "[" * 2_000 + '{"password": "%s"}',
    "digits without an end": '{"n": ' + "1" * 5_000 + ', "password": "%s"}',
    "longer than is recorded": '{"password": "%s", "x": "' + "y" * 100_000 + '"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_the_audit_is_lines_of_json_without_secrets_whatever_a_request_holds(tmp_path, body):
    audit = Audit(tmp_path / "log", lambda _: True)
    request = HttpRequest("POST", f"/_x?api_key={SECRET}", body % SECRET)
    await audit.before_call(Call(hook="execute_console", writes=True, requests=(request,)))
    text = (tmp_path / "log").read_text()
    assert text.count("\n") == 1
    assert SECRET not in text
    assert json.loads(text)["requests"][0]["method"] == "POST"


@pytest.mark.parametrize("written", [str, lambda text: base64.b64encode(f"elastic:{text}".encode()).decode()])
async def test_the_audit_leaves_the_secrets_of_open_connections_out_wherever_they_are(tmp_path, written):
    audit = Audit(tmp_path / "log", lambda _: True, mask=Mask([SECRET]))
    request = HttpRequest("PUT", "/x", json.dumps({"note": f"it is {written(SECRET)}", written(SECRET): [1]}))
    await audit.before_call(Call(hook="apply_change", object="x", writes=True, requests=(request,)))
    await audit.on_event(
        ConsoleExecuted(connection="shop", method="GET", path=f"/{written(SECRET)}", status=1, seconds=1)
    )
    text = (tmp_path / "log").read_text()
    assert written(SECRET)[:12] not in text
    assert len([json.loads(line) for line in text.splitlines()]) == 2


async def test_the_audit_leaves_secrets_out_of_the_name_of_what_is_written_as_well(tmp_path):
    log, mask = tmp_path / "audit.ndjson", Mask(["s3cr3t-word"])
    audit = Audit(log, lambda _: True, mask=mask)
    for name in ("s3cr3t-word", '{"password":"hunter2x"}', "books"):
        await audit.before_call(Call(hook="apply_change", object=name, writes=True, requests=()))
    text = log.read_text()
    assert "s3cr3t" not in text
    assert "hunter2x" not in text
    assert '"object":"books"' in text


async def test_the_audit_keeps_digits_and_says_what_a_body_is(tmp_path):
    audit = Audit(tmp_path / "log", lambda _: True)
    bodies = ['{"n":1.10,"big":123456789012345678901,"z":-0.0}', '{"a":1}\n{"b":[2]}\n', "plain \x1b[31m text", None]
    requests = tuple(HttpRequest("POST", "/x", body) for body in bodies)
    await audit.before_call(Call(hook="execute_console", writes=True, requests=requests))
    text = (tmp_path / "log").read_text()
    assert '"body":{"n":1.10,"big":123456789012345678901,"z":-0.0}' in text
    assert '"lines":[{"a":1},{"b":[2]}]' in text
    assert json.loads(text)["requests"][2:] == [
        {"method": "POST", "path": "/x", "body": "plain \x1b[31m text"},
        {"method": "POST", "path": "/x"},
    ]
    assert "\x1b" not in text


async def test_a_line_of_the_audit_is_bounded_and_a_digest_stands_for_the_rest(tmp_path):
    audit = Audit(tmp_path / "log", lambda _: True)
    body = "x" * (100 << 20)
    many = tuple(HttpRequest("POST", f"/{at}", '{"a":"' + "." * 10_000 + '"}') for at in range(1_000))
    await audit.before_call(Call(hook="apply_change", writes=True, requests=(HttpRequest("POST", "/_bulk", body),)))
    await audit.before_call(Call(hook="apply_change", writes=True, requests=many))
    first, second = (tmp_path / "log").read_text().splitlines()
    assert json.loads(first)["requests"][0]["bytes"] == len(body)
    assert json.loads(first)["requests"][0]["sha256"] == hashlib.sha256(body.encode()).hexdigest()
    assert len(first) < 10_000
    *told, rest = json.loads(second)["requests"]
    assert len(told) + rest["more"] == 1_000
    assert rest["sha256"]
    assert len(second) < 2 << 20


@pytest.mark.slow
def test_lines_that_processes_append_at_the_same_time_never_mix(tmp_path):
    program = (
        "import sys, anyio; from pathlib import Path; from dragoman.automations.audit import Audit\n"
        "from dragoman_api.events import Call; from dragoman_api.changes import HttpRequest\n"
        "audit = Audit(Path(sys.argv[1]), lambda _: True)\n"
        "async def main():\n"
        "    for at in range(12):\n"
        "        request = HttpRequest('POST', '/x', '{\"a\": \"' + 'y' * 60_000 + '\"}')\n"
        "        await audit.before_call(Call(hook='apply_change', writes=True, requests=(request,)))\n"
        "anyio.run(main)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "log")]) for _ in range(2)]
    assert [each.wait() for each in running] == [0, 0]
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert len(lines) == 24
    assert len({line["pid"] for line in lines}) == 2
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


async def test_the_audit_says_where_it_lost_events_and_which_automation_failed(tmp_path):
    audit = Audit(tmp_path / "log", lambda _: True)
    await audit.on_event(EventsDropped(count=7))
    await audit.on_event(AutomationFailed(automation="guard.py", hook="on_event", reason="oops"))
    told = [json.loads(line)["event"] for line in (tmp_path / "log").read_text().splitlines()]
    assert [(event["name"], event.get("count")) for event in told] == [
        ("events.dropped", 7),
        ("automation.failed", None),
    ]


async def test_a_write_that_cannot_be_recorded_is_not_sent(open_memory):
    async with open_memory("[guards]\naudit = true\n") as runtime, runtime.open("memory") as session:
        plan = await session.plan(Delete(KEY))
        log = runtime.paths.state / "audit.ndjson"
        while not log.is_dir():  # an event that is still on its way may write the file anew
            log.unlink(missing_ok=True)
            with suppress(FileExistsError):
                log.mkdir(parents=True)
        with pytest.raises(Refused, match="audit failed with IsADirectoryError"):
            await session.apply(plan)
        assert await session.rows("books").count() == 23


def test_an_unknown_level_is_named(open_memory):
    with pytest.raises(ConfigurationError, match="read_only"):
        open_memory('[guards]\nread_only = "readonly"\n')


def test_an_installed_automation_runs_only_where_it_is_named_and_a_broken_one_is_named_too(
    open_memory, tmp_path, monkeypatch
):
    info = tmp_path / "site/team-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: team\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dragoman.automations]\nteam = team_guard\n")
    with (info / "entry_points.txt").open("a") as file:
        file.writelines(f"bad{number} = team_bad{number}\n" for number in range(3))
    text = "from dragoman_api import hookimpl\n@hookimpl\nasync def before_call(call):\n    ...\n"
    (tmp_path / "site/team_guard.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "site")
    open_memory("")
    assert "team_guard" not in sys.modules
    open_memory('automations = ["team"]\n')
    assert sys.modules.pop("team_guard")
    for number, end in enumerate(["1 / 0", "import sys; sys.exit()", "import asyncio; raise asyncio.CancelledError"]):
        (tmp_path / f"site/team_bad{number}.py").write_text(f"{end}\n")
        with pytest.raises(
            ConfigurationError, match=r"automation bad\d of config\.toml cannot be loaded from team_bad"
        ):
            open_memory(f'automations = ["team", "bad{number}"]\n')
    with pytest.raises(ConfigurationError, match="not installed: absent"):
        open_memory('automations = ["absent"]\n')
    sys.modules.pop("team_guard")
