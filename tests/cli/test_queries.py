"""Saved queries: kept beside a connection or in a shared folder, asked for as @NAME, and default columns of objects."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest
from anyio import run
from msgspec.structs import replace

from browsing import Asked, Recorder
from dragoman import FileFormat, Filter, RawQuery, RowKey, Session, Sort
from dragoman.cli.export import export
from dragoman.cli.grid import cell, count, page, summarize
from dragoman.cli.options import Options
from dragoman.cli.read_options import RowChoice
from dragoman.sessions.relative_times import Span
from dragoman.sessions.saved_queries import MAX_FILE
from dragoman.sessions.selection_codec import SelectionTexts
from dragoman_api.columns import Operator

FILTERS = [Filter("a", Operator.EQ, "1"), Filter("b", Operator.IN, ["2", "3"], "g"), RawQuery("raw")]
READ = ["--filter", "a = 1", "--filter", "b in 2,3 @g", "--raw", "raw", "--match", "any", "--tenant", "north"]
READ += ["--revision", "r7", "--since", "-1d", "--until", "now", "--now", "2026-12-31T12:00:00Z"]
ROWS = {
    "filters": FILTERS,
    "match": "any",
    "tenant": "north",
    "revision": "r7",
    "span": Span(since="-1d", until="now"),
    "now": "2026-12-31T12:00:00Z",
}
PAGE = ["--sort=-total", "--sort=id", "--limit", "7", "--offset", "40", "--columns", "id,total", "--no-total"]
PAGE += ["--cursor", "next", "--residual", "500"]
PAGED = {"sort": [Sort("total", True), Sort("id")], "columns": ["id", "total"], "residual": 500}
PLACE = {"limit": 7, "offset": 40, "total": False, "cursor": "next"}
FIRST = {"limit": 100, "offset": 0, "total": True, "cursor": None}
EXPORT = ["--output", "there.csv", "--format", "csv", "--compress", "gzip", "--columns", "a,b", "--lists", "b"]
EXPORT += ["--resume", "--keep-alive", "2m", "--no-manifest", "--strict", "--escape-formulas"]
EXPORTED = {"format": FileFormat("csv", compression="gzip", escape=True, strict=True, lists=["b"])}
EXPORTED |= {"resume": True, "keep_alive": 120, "manifest": False}
WHOLE = {"format": FileFormat(), "resume": False, "keep_alive": None, "manifest": True}


class Reads(Recorder):
    """Stands for a session and its rows: what is asked comes with the selection."""

    def rows(self, name, **choice):
        return Session.rows(self, name, **choice)

    def select(self, selection):
        rows = Reads(choice=(selection,))
        rows.selection = selection
        return rows


@pytest.mark.parametrize(
    ("command", "words", "asked"),
    [
        (page, [*READ, *PAGE], ("page", (), PLACE, ROWS | PAGED)),
        (page, [], ("page", (), FIRST, {})),
        (page, ["--all-time"], ("page", (), FIRST, {"span": Span(all_time=True)})),
        (count, READ, ("count", (), {}, ROWS)),
        (count, [], ("count", (), {}, {})),
        (
            summarize,
            ["total", *READ, "--values", "3", "--buckets", "4"],
            ("summarize", ("total",), {"values": 3, "buckets": 4}, ROWS),
        ),
        (summarize, ["total"], ("summarize", ("total",), {"values": 10, "buckets": 10}, {})),
        (export, [*READ, *EXPORT], ("export", (Path("there.csv"),), EXPORTED, ROWS | {"columns": ["a", "b"]})),
        (export, ["-o", "there"], ("export", (Path("there"),), WHOLE, {})),
        (
            cell,
            ["17", "title", "--routing", "r", "--revision", "r7"],
            ("cell", (RowKey("books", "17", "r"), "title"), {}, {"revision": "r7"}),
        ),
    ],
)
def test_every_option_of_a_read_reaches_the_session(monkeypatch, command, words, asked):
    async def as_typed(_options, _connection, choice):
        return choice

    monkeypatch.setattr("dragoman.cli.grid.with_defaults", as_typed)
    options = Options()
    options.shared = Reads("shop")
    with (
        pytest.raises(Asked) as caught,
        command.make_context(command.name, ["shop", "books", *words], obj=options) as ctx,
    ):
        run(partial(ctx.invoke, command.callback, **ctx.params))
    *call, selection = caught.value.args
    method, positional, named, choice = asked
    assert call == [method, positional, named]
    if "now" not in choice:
        selection = replace(selection, now=None)  # a page and a count have one instant for all their calls
    assert selection == Reads().rows("books", **choice).selection


@pytest.fixture
def saved(own):
    own("queries", "save", "shop", "dear", "books", "--filter", "price >= 10", "--sort=-price", "--columns", "id,price")
    return own


def connections(machine):
    return machine.home / "config/connections.toml"


def test_a_saved_query_is_a_page_a_count_an_export_and_a_summary(saved):
    assert (
        saved("page", "shop", "@dear").out
        == "id                   price\n2   1180591620717411303424\n1                     12.5\n"
    )
    assert saved("count", "shop", "@dear").out == "2\n"
    exported = saved("export", "shop", "@dear")
    assert [json.loads(line)["id"] for line in exported.out.splitlines()] == ["1", "2"]
    assert "a sort orders the rows of pages only" in exported.err
    assert "note" not in saved("page", "shop", "@dear").err


@pytest.mark.slow
def test_options_of_the_command_line_add_filters_and_replace_the_rest(saved):
    assert saved("count", "shop", "@dear", "--filter", "price >= 100").out == "1\n"
    done = saved("page", "shop", "@dear", "--sort", "price", "--columns", "id")
    assert done.out == "id\n1\n2\n"
    assert [*saved("page", "shop", "@dear", "--columns", "*", "--json").json["rows"][0]] == [
        "id",
        "title",
        "price",
        "tags",
    ]


def test_a_query_is_shown_as_the_command_that_it_stands_for(saved):
    words = ["books", "--raw", "a", "--match", "any", "--tenant", "north", "--since=-1h", "--until", "now"]
    words += ["--now", "2026-12-31T12:00:00Z", "--residual", "50"]
    saved("queries", "save", "shop", "some", *words)
    assert saved("queries", "show", "shop", "some").out == f"dragoman page shop {' '.join(words)}\n"
    saved("queries", "save", "shop", "all", "books", "--all-time")
    assert saved("queries", "show", "shop", "all").out == "dragoman page shop books --all-time\n"


def test_what_the_command_line_names_replaces_that_of_the_query_and_filters_are_added():
    query = SelectionTexts(
        object="books", filters=["a"], match="any", raw=["r"], sort=["-x"], columns=["x"], tenant="north", since="-1h",
        residual=50,
    )  # fmt: skip

    def over(**fields):
        return RowChoice(SelectionTexts(object="@some", **fields), frozenset(fields)).over(query).texts

    assert over() == query
    assert over(filters=["b"], raw=["c"]) == replace(query, filters=["a", "b"], raw=["r", "c"])
    assert over(match="all") == replace(query, match="all")
    assert over(sort=["z"], columns=["z"]) == replace(query, sort=["z"], columns=["z"])
    assert over(columns=None).columns is None
    assert over(tenant="south", residual=7) == replace(query, tenant="south", residual=7)
    for time in ({"all_time": True}, {"until": "now"}):  # the span as a whole
        assert over(**time) == replace(query, since=None, **time)


def test_an_object_whose_name_begins_with_an_at_sign_is_written_twice(own):
    assert "'@books'" in own("page", "shop", "@@books", code=1).err


def test_an_unknown_query_has_near_misses_and_a_name_is_taken_once(saved):
    done = saved("page", "shop", "@deer", code=2)
    assert "shop has no query called 'deer' (did you mean dear?)" in done.err
    assert "try: dragoman queries list shop" in done.err
    assert "has a query called 'dear' already" in saved("queries", "save", "shop", "dear", "orders", code=2).err
    saved("queries", "save", "shop", "dear", "orders", "--replace")
    assert saved("queries", "show", "shop", "@dear").out == "dragoman page shop orders\n"
    saved("queries", "remove", "shop", "dear")
    assert saved("queries", "list", "shop").out == ""
    assert saved("queries", "remove", "shop", "dear", code=2).out == ""
    assert "no connection is called 'shoop'" in saved("queries", "list", "shoop", code=2).err
    assert "cannot name a query" in saved("queries", "save", "shop", "../x", "books", code=2).err
    assert "error[filter-syntax]" in saved("queries", "save", "shop", "x", "books", "--filter", "price>=1", code=2).err


@pytest.mark.slow
def test_a_page_is_saved_as_it_was_asked_for_unless_it_fails(own):
    done = own("page", "shop", "books", "--filter", "price >= 10", "--sort", "price", "--save-as", "cheap")
    assert "saved as @cheap" in done.err
    assert (
        own("queries", "show", "shop", "cheap").out == "dragoman page shop books --filter 'price >= 10' --sort price\n"
    )
    own("page", "shop", "@cheap", "--filter", "price >= 100", "--save-as", "cheaper")
    assert own("count", "shop", "@cheaper").out == "1\n"
    own("page", "shop", "boks", "--save-as", "wrong", code=1)
    assert "wrong" not in own("queries", "list", "shop").out


def test_comments_and_other_entries_of_the_file_survive_and_so_do_queries(saved):
    file = connections(saved)
    file.write_text("# mine\n" + file.read_text().replace("[shop]", "[shop] # the shop"))
    saved("queries", "save", "shop", "more", "orders")
    saved("connections", "edit", "shop", "--host", "127.0.0.1", "--no-connect")
    text = file.read_text()
    assert text.startswith("# mine\n")
    assert "[shop] # the shop" in text
    assert [each["name"] for each in saved("queries", "list", "shop", "--json").json["queries"]] == ["dear", "more"]
    assert (file.stat().st_mode & 0o777) == 0o600


@pytest.mark.slow
def test_default_columns_and_sort_of_an_object_are_told_and_can_be_ignored(own):
    file = connections(own)
    file.write_text(file.read_text() + '\n[shop.object-defaults.books]\ncolumns = ["id", "price"]\nsort = ["-price"]\n')
    done = own("page", "shop", "books")
    assert done.out.split("\n")[0].split() == ["id", "price"]
    assert "defaults of books: columns id,price, sort -price (--columns '*' ignores them)" in done.err
    whole = own("page", "shop", "books", "--columns", "*")
    assert whole.out.split("\n")[0].split() == ["id", "title", "price", "tags"]
    assert "defaults" not in whole.err
    assert own("page", "shop", "books", "--columns", "id", "--sort", "id").err.count("defaults") == 0
    file.write_text(file.read_text().replace('["-price"]', "5"))
    assert "[shop.object-defaults.books]" in own("page", "shop", "books", code=2).err


def test_a_shared_folder_is_read_with_care(own, tmp_path):
    folder = tmp_path / "queries"
    folder.mkdir()
    (own.home / "config/config.toml").write_text((own.home / "config/config.toml").read_text() + "\n")
    settings = own.home / "config/config.toml"
    settings.write_text(f'queries = "{folder}"\n' + settings.read_text())
    (folder / "dear.toml").write_text('object = "books"\nfilters = ["price >= 10"]\n')
    (folder / "secret.toml").write_text('object = "books"\nhost = "elsewhere"\n')
    (folder / "long.toml").write_text('object = "books"\n' + "#" * MAX_FILE)
    (folder / "broken.toml").write_text('object = "books')
    (folder / "latin.toml").write_bytes(b'object = "b\xfccher"\n')
    os.mkfifo(folder / "pipe.toml")
    assert own("count", "shop", "@dear").out == "2\n"
    found = own("queries", "list", "shop", "--json").json
    assert [(each["name"], each["place"]) for each in found["queries"]] == [("dear", "team")]
    assert {*found["unusable"]} >= {"secret", "long", "broken", "latin"}
    assert "host" in found["unusable"]["secret"]
    for name in ("secret", "long", "pipe", "../../config/config"):
        own("page", "shop", f"@{name}", code=2)
    own("queries", "save", "shop", "dear", "orders")
    assert own("queries", "show", "shop", "dear").out == "dragoman page shop orders\n"
    own("queries", "remove", "shop", "dear")
    assert "shared folder" in own("queries", "remove", "shop", "dear", code=2).err
    settings.write_text(settings.read_text().replace(str(folder), "queries"))
    assert "no absolute path" in own("queries", "list", "shop", code=2).err
