"""Spans of time, revisions, cursors and trees of objects on the command line, on a driver that has all of them."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from command_line import Machine
from slow_cases import mostly_slow
from wheelhouse import Driver, registry

HOOKS = ["compile_filter", "connect", "count_rows", "describe_object", "export_rows", "fetch_page", "list_objects"]
CODE = """
import anyio
import msgspec
from dragoman_api import Column, CompiledFilter, Description, Explanation, ExportPart, Object, ObjectList, Page
from dragoman_api import QueryError, Server, TimeColumn, hookimpl

TREE = {None: ["db", "logs"], "db": ["db/cpu", "db/mem"]}


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        return Server("Demo", "1")

    @hookimpl
    async def list_objects(self, request):
        names = TREE.get(request.parent, [])
        return ObjectList(objects=[Object(name, parent=request.parent, branch=name in TREE) for name in names])

    @hookimpl
    async def describe_object(self, name):
        columns = [
            Column(name="time", type="timestamp", kind="timestamp", role="time", written="insert"),
            Column(name="host", type="tag", role="key", written="never", reasons={"any": "tags are ANDed"}),
        ]
        time = None if name == "logs" else TimeColumn(column="time", window=3600)
        return Description(object=name, columns=columns, time=time)

    @hookimpl
    async def compile_filter(self, request):
        body = " ".join(str(each.value) for each in request.rows)
        return CompiledFilter(object=request.object, body=body, rows=[Explanation(row=0, clause=body or "x")])

    @hookimpl
    async def fetch_page(self, request):
        if request.object == "db/mem":
            await anyio.sleep(1.1)  # instants have whole seconds here
        if request.cursor not in (None, "next"):
            raise QueryError("the cursor is not one of this query", hint="read the first page", code="cursor-invalid")
        span = [request.time.since, request.time.until] if request.time else [None, None]
        body = request.filter.body if request.filter else None
        cells = [[*span, request.revision, request.residual, request.offset, body]]
        names = ("since", "until", "revision", "residual", "offset", "filter")
        columns = [Column(name=name, type="text") for name in names]
        revision = request.revision or "r7"
        more = 'a "b" $(c)' if request.object == "logs" else "next"
        return Page(columns=columns, cells=cells, offset=request.offset, next=more, revision=revision)

    @hookimpl
    async def count_rows(self, request):
        return 0 if request.time is None else 1

    @hookimpl
    async def export_rows(self, request):
        yield ExportPart(data=msgspec.json.encode(request.time or {}) + b"\\\\n", rows=1)
"""


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """Make a home with a connection to a driver of time series."""
    folder = tmp_path_factory.mktemp("timed")
    capabilities = ["browse", "export", "filter", "time-range", "revisions"]
    wheel = Driver("timed", code=CODE.replace("\\\\n", "\\n"), hooks=HOOKS, capabilities=capabilities)
    house = Machine(folder / "home")
    house("registry", "add", registry(folder / "registry", [wheel.write(folder / "wheels")]))
    house("connections", "add", "shop", "--type", "timed", "--yes")
    return house


def row(done):
    return done.json["rows"][0]


def test_a_span_is_exact_or_relative_to_now(timed):
    exact = timed("page", "shop", "db/cpu", "--since", "2026-11-23", "--until", "2026-11-23T12:00:00+01:00", "--json")
    assert (row(exact)["since"], row(exact)["until"]) == ("2026-11-23T00:00:00Z", "2026-11-23T11:00:00Z")
    assert exact.json["notes"] == []
    for since in ("-1h", "now-1h"):
        relative = row(timed("page", "shop", "db/cpu", "--since", since, "--json"))
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", relative["since"])
        assert relative["until"] is None


@pytest.mark.slow
@pytest.mark.parametrize("command", mostly_slow(["page", "count", "export"], fast=["count"]))
def test_no_instant_is_a_refusal_that_says_what_to_write(timed, command):
    done = timed(command, "shop", "db/cpu", "--since", "yesterday", code=2)
    assert done.out == ""
    assert "-1h" in done.err
    assert timed(command, "shop", "logs", "--since", "-1h", code=1).out == ""


@pytest.mark.slow
def test_the_default_window_is_said_by_every_command_that_reads(timed):
    for words in (["page"], ["count"], ["export"]):
        assert "note[time-window]: time: " in timed(*words, "shop", "db/cpu").err, words
        assert "time-window" not in timed(*words, "shop", "db/cpu", "--all-time").err, words
    assert [note["code"] for note in timed("count", "shop", "db/cpu", "--json").json["notes"]] == ["time-window"]
    assert timed("count", "shop", "db/cpu", "--all-time").out == "0\n"


def test_all_pages_of_the_shell_show_one_revision_and_keep_span_and_residual(timed):
    lines = ["page db/cpu --since 2026-11-23 --residual 50 --json", "next --json", "next"]
    done = timed("open", "shop", typed="\n".join([lines[0], "next", "next"]))
    pages = [line for line in done.out.splitlines() if line.startswith("{")]
    assert len(pages) == 3
    for page, (revision, offset) in zip(pages, [("", 0), ("r7", 1), ("r7", 2)], strict=True):
        assert f'"since":"2026-11-23T00:00:00Z","until":null,"revision":"{revision}","residual":50' in page
        assert f'"offset":{offset},' in page


@pytest.mark.slow
@pytest.mark.parametrize("words", mostly_slow(["", "--since -1h", "--since -2h --until now-1h"], fast=["--since -1h"]))
def test_the_pages_of_the_shell_keep_the_instants_of_the_first(timed, words):
    done = timed("open", "shop", typed=f"page db/mem --json {words}\nnext --json\n")
    first, following = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    assert (first["rows"][0]["offset"], following["rows"][0]["offset"]) == (0, 1)
    assert following["time"] == first["time"]
    for found in (first, following):
        assert [found["rows"][0][name] for name in ("since", "until")] == [
            found["time"][name] for name in ("since", "until")
        ]


@pytest.mark.slow
def test_the_hint_to_the_next_page_names_the_instants_of_this_one(timed):
    said = re.search(r"next: (--since \S+ --cursor next)", timed("page", "shop", "db/cpu").err)
    assert said is not None
    found = timed("page", "shop", "db/cpu", *said[1].split(), "--json").json
    assert found["time"]["since"] == said[1].split()[1]


RELATIVE = "--filter 'time in last 1h' --all-time"


@pytest.mark.slow
def test_the_pages_of_a_walk_count_relative_times_from_one_instant(timed):
    """In the shell, by the printed hint, and by `now` of a page as JSON."""
    done = timed("open", "shop", typed=f"page db/mem --json {RELATIVE}\nnext --json\n")
    first, following = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    assert first["rows"][0]["filter"].endswith(f"/{first['now']}']")
    assert (following["now"], following["rows"][0]["filter"]) == (first["now"], first["rows"][0]["filter"])
    words = ["page", "shop", "db/mem", *shlex.split(RELATIVE)]
    shown = timed(*words, "--explain")
    hint = shlex.split(re.search(r"next: (--now \S+ --cursor next)", shown.err)[1])
    assert timed(*words, *hint, "--json").json["rows"][0]["filter"] in shown.out
    assert "note[relative-time]: time: filter row 1: 'last 1h' is " in shown.err
    last = timed(*words, "--last", "--json").json
    assert last["now"] == last["rows"][0]["filter"].partition("/")[2].removesuffix("']")


@pytest.mark.slow
@pytest.mark.parametrize("command", mostly_slow(["page", "count", "export"], fast=["page"]))
def test_an_instant_to_count_from_is_taken_by_every_command_that_reads(timed, command):
    done = timed(command, "shop", "db/cpu", *shlex.split(RELATIVE), "--now", "2026-11-23T12:00:00Z")
    assert "'last 1h' is 2026-11-23T11:00:00Z to before 2026-11-23T12:00:00Z, in UTC" in done.err
    assert "not an instant" in timed(command, "shop", "db/cpu", "--now", "soon", code=2).err


@pytest.mark.slow
def test_a_saved_query_counts_from_each_call_anew(timed):
    timed("page", "shop", "db/cpu", *shlex.split(RELATIVE), "--save-as", "recent")
    assert "last 1h" in timed("queries", "show", "shop", "recent").out
    found = [timed("page", "shop", "@recent", "--all-time", "--json").json for _ in range(2)]
    assert found[0]["now"] < found[1]["now"]
    timed("queries", "remove", "shop", "recent")


def test_a_printed_cursor_can_be_pasted_into_a_shell(timed):
    said = timed("page", "shop", "logs").err
    words = shlex.split(next(line for line in said.splitlines() if "next: " in line).partition("next: ")[2])
    assert words[-2:] == ["--cursor", 'a "b" $(c)']


@pytest.mark.slow
def test_the_last_rows_are_those_that_were_counted(timed):
    found = timed("page", "shop", "db/mem", "--last", "--limit", "1", "--json").json
    assert [note["code"] for note in found["notes"]] == ["time-window"]


def test_a_revision_of_an_earlier_page_is_read_again(timed):
    assert row(timed("page", "shop", "db/cpu", "--revision", "r3", "--json"))["revision"] == "r3"


@pytest.mark.slow
def test_a_cursor_of_no_page_fails_and_says_what_to_do(timed):
    done = timed("page", "shop", "db/cpu", "--cursor", "abc", code=1)
    assert done.out == ""
    assert "error[cursor-invalid]" in done.err
    assert "read the first page" in done.err
    assert row(timed("page", "shop", "db/cpu", "--cursor", "next", "--json"))["offset"] == 0


def test_objects_are_a_tree_and_a_branch_or_a_part_of_a_name_can_be_asked_for(timed):
    names = [line.split("  -")[0].rstrip() for line in timed("objects", "shop").out.splitlines()[1:]]
    assert names == ["db", "  db/cpu", "  db/mem", "logs"]
    assert [one["name"] for one in timed("objects", "shop", "--parent", "db", "--json").json["objects"]] == [
        "db/cpu",
        "db/mem",
    ]
    assert [one["name"] for one in timed("objects", "shop", "--contains", "LOG", "--json").json["objects"]] == ["logs"]


@pytest.mark.slow
def test_a_description_shows_what_is_written_roles_reasons_and_the_time_column(timed):
    lines = timed("describe", "shop", "db/cpu").out.splitlines()
    assert lines[1].split() == ["time", "timestamp", "time", "insert-only"]
    assert lines[2].split() == ["host", "tag", "key", "read-only"]
    assert "no match any on host: tags are ANDed" in lines
    assert "time column: time; only the last 3,600 s are read by default" in lines
    assert "time column" not in timed("describe", "shop", "logs").out
