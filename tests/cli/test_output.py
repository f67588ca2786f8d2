"""How data and narration are written."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import re
import sys
from contextlib import ExitStack, contextmanager, suppress
from decimal import Decimal
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli import output, streams
from dragoman.cli.import_rows import code_of, tell
from dragoman.cli.options import Options
from dragoman.cli.progress import Progress, StatusLine
from dragoman.imports.batches import no_counts
from dragoman.imports.load_run import LoadReport
from dragoman_api import events
from dragoman_api.cells import MISSING, CutBytes, CutJson, Json
from dragoman_api.changes import HttpRequest, PlannedRequest
from dragoman_api.columns import Column, ColumnKind, Note
from dragoman_api.errors import ConfigurationError
from dragoman_api.filters import TimeRange
from dragoman_api.grid import Page, RowKey


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def begin():  # within the test, since pytest sets the standard streams once more before it
        screen = Terminal()
        monkeypatch.setattr("sys.stdout", screen)
        return screen

    return begin


def page(columns, cells, **more):
    return Page(columns=[Column(name=name, type="keyword") for name in columns], cells=cells, **more)


@given(st.binary(max_size=300))
def test_bytes_are_readable_and_bounded_in_a_table_and_base64_elsewhere(data):
    shown = output.show(data)
    assert shown.replace("…", "").isascii()
    assert shown.isprintable()
    assert len(shown) <= 4 * output.SHOWN_BYTES + 20
    assert base64.b64decode(json.loads(output.dumps({"a": data}))["a"]) == data


def test_a_page_of_bytes_in_every_format(capsys):
    one = page(["a"], [[b"GIF89a\0"]])
    shown = {}
    for name in ("table", "ndjson", "csv"):
        output.write_page(one, format=name)
        shown[name] = capsys.readouterr().out
    assert shown == {"table": "a\nGIF89a\\x00\n", "ndjson": '{"a":"R0lGODlhAA=="}\n', "csv": "a\nR0lGODlhAA==\n"}
    output.write_json(output.page_document(one))
    assert json.loads(capsys.readouterr().out)["rows"] == [{"a": "R0lGODlhAA=="}]


@given(st.text())
def test_no_control_character_of_a_server_reaches_a_terminal(text):
    safe = output.plain(text)
    assert not any(ord(one) < 0x20 or 0x7F <= ord(one) < 0xA0 or one in "\u202e\u2066\u200e\u2028" for one in safe)
    if text.isascii() and text.isprintable():
        assert safe == text


def test_a_control_character_is_shown_and_not_obeyed():
    assert output.plain("a\x1b[31mb\x9b2J\u202ec\n") == "a\\x1b[31mb\\x9b2J\\u202ec\\n"
    assert output.plain_lines("a\r\n\tb\x1b]0;x\x07") == "a\n\tb\\x1b]0;x\\x07"


def test_numbers_are_written_digit_for_digit_and_json_cells_as_they_are():
    row = {"d": Decimal("1.10"), "big": 2**70, "f": 0.1, "j": Json('{"b":1.0,\n "a":[1e400]}'), "n": None, "t": True}
    text = output.dumps(row)
    assert text == '{"d":1.10,"big":1180591620717411303424,"f":0.1,"j":{"b":1.0,  "a":[1e400]},"n":null,"t":true}'


def test_a_cut_cell_and_a_broken_json_cell_become_strings():
    assert json.loads(output.dumps([CutJson('["a...'), Json('{"a":')])) == ['["a...', '{"a":']


def test_a_cut_cell_of_bytes_cannot_be_read_as_the_whole_value():
    assert output.dumps(CutBytes(b"GIF")) == '"R0lG..."'
    assert output.show(CutBytes(b"GIF")) == "GIF..."
    assert output.show(CutBytes(b"x" * 99)) == "x" * output.SHOWN_BYTES + "..."


def test_json_hides_no_control_character_and_keeps_the_value():
    text = output.dumps({"a": "\x1b\x9b\u202e\ud800", "j": Json('"\x9b"')})
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)
    assert json.loads(text) == {"a": "\x1b\x9b\u202e\ud800", "j": "\x9b"}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_what_is_written_as_json_is_read_back_the_same(value):
    assert json.loads(output.dumps(value)) == value


def test_a_piped_table_is_aligned_plain_and_whole(capsys):
    output.write_page(
        page(["_id", "total", "note"], [["8812", Decimal("941.20"), "x" * 300], ["7", 3, None]]), format="table"
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "_id    total  note"
    assert lines[1] == "8812  941.20  " + "x" * 300
    assert lines[2] == "7          3  null"


def test_null_missing_and_empty_are_told_apart_in_every_format(capsys):
    texts = [None, MISSING, "", "null", " ", '""', '"null"', "-"]
    shown = page(["n", "a"], [[at, text] for at, text in enumerate(texts)])
    output.write_page(shown, format="table")
    lines = capsys.readouterr().out.splitlines()
    assert [line[3:] for line in lines] == ["a", "null", "", '""', '"null"', '" "', r'"\"\""', r'"\"null\""', "-"]
    output.write_page(shown, format="ndjson")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [{"n": at} | ({} if text is MISSING else {"a": text}) for at, text in enumerate(texts)]
    assert json.loads(output.dumps(output.page_document(shown)))["rows"] == rows
    output.write_page(shown, format="csv")
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["n,a", "0,", "1,", '2,""', "3,null", "4, ", '5,""""""', '6,"""null"""', "7,-"]


def test_a_column_of_numbers_stays_aligned_where_some_are_missing(capsys):
    output.write_page(page(["n", "a"], [[5, "x"], [MISSING, "y"], [123, "z"]]), format="table")
    assert capsys.readouterr().out == "  n  a\n  5  x\n     y\n123  z\n"


def test_a_csv_of_one_column_has_no_empty_line(capsys):
    output.write_page(page(["a"], [[None], [MISSING], [""], ["x"]]), format="csv")
    assert capsys.readouterr().out == 'a\n""\n""\n""\nx\n'


@pytest.mark.parametrize("shape", ["table", "ndjson", "csv"])
def test_a_page_without_columns_and_rows_writes_nothing(capsys, shape):
    output.write_page(page([], []), format=shape)
    assert capsys.readouterr() == ("", "")


def test_wide_characters_keep_the_columns_aligned(capsys):
    output.write_table(["A", "B"], [["日本", "x"], ["ab", "y"]])
    assert capsys.readouterr().out == "A     B\n日本  x\nab    y\n"


def test_a_table_on_a_terminal_fits_its_width(terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    screen = terminal()
    output.write_page(page(["_id", "note"], [["1", "x" * 300]]), format="table")
    assert all(len(re.sub(r"\x1b\[\d*m", "", line)) <= 60 for line in screen.getvalue().splitlines())
    assert "…" in screen.getvalue()


def test_columns_that_do_not_fit_a_terminal_are_counted(terminal, capsys):
    screen = terminal()
    output.write_page(page([f"column_{n}" for n in range(40)], [["value of a cell"] * 40]), format="table")
    assert "column_0" in screen.getvalue()
    assert re.search(r"… \d+ more columns: use --json\n", capsys.readouterr().err)


def test_no_color_leaves_no_escape_sequence(terminal, monkeypatch):
    screen = terminal()
    output.write_table(["A"], [["null"], ["x"]])
    assert ["\x1b[2mnull" in screen.getvalue(), "\x1b[2mx" in screen.getvalue()] == [True, False]
    screen = terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    output.write_table(["A"], [["null"]])
    assert "\x1b[3" not in screen.getvalue()
    assert "[bold]" not in screen.getvalue()


def test_markup_in_a_cell_is_text(terminal):
    screen = terminal()
    output.write_table(["A"], [["[red]x[/red]"]])
    assert "[red]x[/red]" in screen.getvalue()


def test_a_piped_csv_keeps_line_breaks_and_quotes(capsys):
    output.write_page(page(["a", "b"], [['x"\n,', None], [Json("[1]"), True]]), format="csv")
    written = capsys.readouterr().out
    assert list(csv.reader(io.StringIO(written, newline=""))) == [["a", "b"], ['x"\n,', ""], ["[1]", "true"]]


def test_ndjson_is_one_line_per_row(capsys):
    output.write_page(page(["a"], [[Json('{"x":\n1}')], ["\n"]]), format="ndjson")
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"a": {"x": 1}}, {"a": "\n"}]


def test_the_document_of_a_page_says_everything():
    columns = [Column(name="a", type="long", kind=ColumnKind.INTEGER), Column(name="b", type="text", repeated=True)]
    notes = [Note(code="sort-dropped", reason="no .keyword", column="note"), Note(code="partial", reason="some")]
    shown = Page(
        columns=columns,
        cells=[[1, None], [2**53 + 1, MISSING]],
        keys=[RowKey("o", "1", guard={"seq_no": 4}), RowKey("o", ["eu", 17], "r")],
        notes=notes,
        total=7,
        total_exact=False,
        offset=40,
        next="n",
        revision="r7",
        time=TimeRange(column="at", since="2026-01-31T00:00:00Z", until="2026-12-31T00:00:00Z"),
        now="2026-12-31T12:00:00Z",
    )
    assert json.loads(output.dumps(output.page_document(shown))) == {
        "columns": [
            {"name": "a", "type": "long", "kind": "integer", "repeated": False},
            {"name": "b", "type": "text", "kind": "other", "repeated": True},
        ],
        "rows": [{"a": 1, "b": None}, {"a": 2**53 + 1}],
        "notes": [
            {"code": "sort-dropped", "column": "note", "reason": "no .keyword"},
            {"code": "partial", "reason": "some"},
        ],
        "total": 7,
        "total_exact": False,
        "offset": 40,
        "next": "n",
        "revision": "r7",
        "time": {"column": "at", "since": "2026-01-31T00:00:00Z", "until": "2026-12-31T00:00:00Z"},
        "now": "2026-12-31T12:00:00Z",
        "keys": [{"object": "o", "id": "1", "guard": {"seq_no": 4}}, {"object": "o", "id": ["eu", 17], "routing": "r"}],
    }


def test_every_note_is_told_with_its_column_and_every_line_of_its_hint(capsys):
    notes = [Note(code="a", reason="one", column="c", hint="do this\nor that"), Note(code="b", reason="two")]
    output.say_notes(notes)
    lines = capsys.readouterr().err.splitlines()
    assert (lines[0], lines[-1]) == ("  note[a]: c: one", "  note[b]: two")
    assert [line.endswith(("do this", "or that")) for line in lines[1:-1]] == [True, True]


@pytest.mark.parametrize("escape", [False, True])
def test_every_formula_of_a_line_is_counted_and_escaped_if_asked(capsys, escape):
    output.write_page(
        page(["a", "b"], [["=1", "@b"], ["x\ty,z", 3], [-2, "-cmd"], [b"\xfb\xef\xbe", ""]]),
        format="tsv",
        escape=escape,
    )
    told, mark = capsys.readouterr(), "'" if escape else ""
    assert told.out == f'a\tb\n{mark}=1\t{mark}@b\n"x\ty,z"\t3\n-2\t{mark}-cmd\n++++\t""\n'
    assert ": 3 cells" in told.err


def test_only_a_column_of_nothing_but_numbers_is_aligned_to_the_right(capsys):
    cells = [[1, "x", None, Decimal("1.5")], [22, 5, 7, MISSING], [333, 66, 8, 10.25]]
    output.write_page(page(["n", "mixed", "m", "d"], cells), format="table")
    assert capsys.readouterr().out.splitlines() == [
        "  n  mixed     m      d",
        "  1  x      null    1.5",
        " 22  5         7",
        "333  66        8  10.25",
    ]


def test_a_planned_request_is_written_with_its_statement_if_it_has_one(capsys):
    request = HttpRequest(method="PUT", path="/a", body="{}")
    for statement in ("", "make a"):
        planned = PlannedRequest(request=request, changes=[0], statement=statement)
        document = output.request_document(planned)
        assert document == msgspec.structs.asdict(request) | ({"statement": "make a"} if statement else {})
        output.write_request(planned)
        assert capsys.readouterr().out.startswith("# make a\nPUT /a" if statement else "PUT /a")


@pytest.mark.parametrize("status", no_counts())
@pytest.mark.parametrize("policy", ["fail", "skip", "overwrite"])
def test_a_load_fails_by_any_row_that_is_not_written_unless_it_was_to_be_skipped(status, policy):
    report = LoadReport(file="f", object="o", format="csv", rows=2, counts=no_counts() | {"applied": 1, status: 1})
    fine = status == "applied" or (status == "skipped" and policy == "skip")
    assert code_of(report, policy) == (None if fine else 4)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (41_000, "41.0 kB"),
        (210_400, "210 kB"),
        (5_100_000, "5.1 MB"),
        (10**16, "10000 TB"),
    ],
)
def test_sizes_are_shown_in_powers_of_a_thousand(size, shown):
    assert output.show_size(size) == shown


@pytest.mark.parametrize(("count", "shown"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (12_003, "12,003 rows")])
def test_one_row_is_singular(count, shown):
    assert output.show_rows(count) == shown


def test_a_struct_is_written_by_its_fields():
    class Thing(msgspec.Struct):
        a: int

    assert output.dumps({"x": Thing(1)}) == '{"x":{"a":1}}'


def test_exports_side_by_side_are_each_told_by_their_own_name(capsys):
    progress = Progress()
    for name in ("books", "orders"):
        progress.show(events.ExportStarted(connection="shop", object=name, target=name))
    for name, rows in (("books", 3), ("orders", 70), ("books", 4)):
        progress.show(events.ExportProgressed(connection="shop", object=name, rows=rows, bytes=1, total=2 * rows))
    about = {"connection": "shop", "sha256": "", "bytes": 1, "seconds": 1.0}
    progress.show(events.ExportFinished(object="books", target="books", rows=8, **about))
    progress.show(events.ExportFailed(connection="shop", object="orders", target="orders", code="x", reason="gone"))
    progress.close()
    assert capsys.readouterr().err == "  books  8/8  8 rows/s  done\n  orders  failed\n"


@pytest.fixture
def on_terminal(monkeypatch, tmp_path):
    """Return a function that makes stderr a real terminal for a block, and says what it has shown."""
    pty = pytest.importorskip("pty")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("dragoman.cli.progress._PATIENCE", 0.0)

    @contextmanager
    def begin(stdout):
        ours, theirs = pty.openpty()
        shown = []
        with monkeypatch.context() as patch, os.fdopen(theirs, "w") as terminal:
            patch.setattr(sys, "stderr", terminal)
            patch.setattr(sys, "stdout", stdout)
            yield shown
        with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as screen:  # so a closed terminal answers
            while part := screen.read(65536):
                shown.append(part.decode())

    return begin


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    with os.fdopen(reader), os.fdopen(writer, "w") as out:
        yield out


def export_of_books(*, code="x", reason="gone"):
    progress = Progress()
    about = {"connection": "shop", "object": "books", "target": "-"}
    progress.show(events.ExportStarted(**about))
    progress.show(events.ExportProgressed(rows=70, bytes=1, total=480, **about))
    progress.show(events.ExportFailed(code=code, reason=reason, **about))
    progress.close()


def test_beside_the_reader_of_a_pipe_a_line_moves_and_no_bar(on_terminal, pipe):
    with on_terminal(pipe) as shown:
        export_of_books()
    line = r"\r\x1b\[K  books  70/480  [\d,]+ rows/s\r\x1b\[K  books  failed\r\n"
    assert re.fullmatch(line, "".join(shown))


def test_a_reader_that_ends_early_leaves_no_line_behind(on_terminal, pipe):
    with on_terminal(pipe) as shown:
        export_of_books(reason="BrokenPipeError")
    assert "".join(shown).endswith("rows/s\r\x1b[K")


def test_an_export_that_was_interrupted_is_stopped_and_has_not_failed(capsys):
    export_of_books(code="stopped", reason="KeyboardInterrupt")
    assert capsys.readouterr().err == "  books  stopped\n"


def test_a_short_export_into_a_pipe_shows_no_moving_line(on_terminal, pipe, monkeypatch):
    monkeypatch.setattr("dragoman.cli.progress._PATIENCE", 60.0)
    with on_terminal(pipe) as shown:
        export_of_books()
    assert "".join(shown) == "  books  failed\r\n"


def test_no_line_moves_over_a_pager_that_has_the_terminal(on_terminal, pipe):
    tty = pytest.importorskip("tty")
    with on_terminal(pipe) as shown:
        tty.setcbreak(sys.stderr.fileno())
        export_of_books()
    assert "".join(shown) == "  books  failed\r\n"


def test_a_bar_moves_where_stdout_is_a_file_and_what_is_printed_meanwhile_stays_in_the_file(on_terminal, tmp_path):
    with (tmp_path / "out").open("w") as out, on_terminal(out) as shown:
        progress = Progress()
        progress.show(events.ExportStarted(connection="shop", object="books", target="x"))
        print("a script's line")
        progress.close()
    assert "━" in "".join(shown)
    assert "a script's line" not in "".join(shown)
    assert (tmp_path / "out").read_text() == "a script's line\n"


def test_a_line_of_progress_is_cut_to_the_terminal_and_shown_nowhere_else(on_terminal, pipe, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    with on_terminal(pipe) as shown:
        line = StatusLine()
        line.show("  orders  1,000 rows")
        line.clear()
        line.clear()
    assert "".join(shown) == "\r\x1b[K  orders \r\x1b[K"
    StatusLine().show("  orders")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("target", ["file", "-"])
def test_an_event_that_is_written_only_in_part_is_an_error_in_the_end(tmp_path, target, monkeypatch):
    import resource

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a part of a module would stay behind
    monkeypatch.setattr("sys.stderr", io.StringIO())

    event = events.ConnectionClosed(connection="shop")
    size, before = len(event.to_json()) + 1, resource.getrlimit(resource.RLIMIT_FSIZE)
    cleanup = ExitStack()
    with (tmp_path / "out").open("wb", buffering=0) as stdout:
        write = streams.write_events(str(tmp_path / "file") if target == "file" else "-", stdout, cleanup)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
        try:
            write(event)
            write(event)  # what happened goes on
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        write(event)
        with pytest.raises(ConfigurationError, match=r"--events .* cannot be written: "):
            cleanup.close()
    lines = (tmp_path / ("file" if target == "file" else "out")).read_text().splitlines()
    assert lines == [event.to_json(), event.to_json()[:10], event.to_json()], "no event continues a line that was cut"


def test_a_locale_that_lacks_a_letter_keeps_the_columns_aligned(monkeypatch):
    """What is shown of a letter that cannot be encoded is longer than the letter."""
    data = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(data, encoding="ascii", errors="backslashreplace"))
    output.write_table(["name", "city"], [["Ines", "Krakow"], ["Zoë", "Köln"]])
    sys.stdout.flush()
    lines = data.getvalue().decode().splitlines()
    assert lines == ["name    city", "Ines    Krakow", r"Zo\xeb  K\xf6ln"]


def test_an_empty_answer_of_the_console_says_so_and_prints_no_lone_head(capsys):
    from dragoman.cli.console import _show
    from dragoman.cli.options import Options
    from dragoman_api import HttpRequest
    from dragoman_api.console import Answer, AnswerKind

    request = HttpRequest("POST", "/v1/graphql")
    empty = Answer(kind=AnswerKind.GRID, status=200, request=request, page=page(["uuid", "title"], []))
    _show(Options(), empty, "table", first=True)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "  no rows\n")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("", "choose one by its number, 1 to 3, or by the beginning of its name"),
        ("4", "there is no choice 4: the numbers are 1 to 3"),
        ("x", "'x' is not one of them"),
        ("a", "'a' fits api-key and api"),
    ],
)
async def test_a_wrong_choice_of_a_menu_says_why_it_chooses_nothing(monkeypatch, capsys, answer, said):
    answers = iter([answer, "2"])

    async def line(question):
        return next(answers)

    monkeypatch.setattr("dragoman.cli.prompts._line", line)
    from dragoman.cli.prompts import choose

    assert await choose("Auth Method", ["api-key", "none", "api"]) == 1
    assert f"  {said}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "now", "seconds", "told"),
    [(50_000, 50_000, 5.0, "10,000 rows/s"), (50_000, 10_000, 10.0, "1,000 rows/s"), (3, 3, 1.0, "3 rows/s")],
)
def test_the_rate_of_an_import_is_of_the_rows_of_this_run_whatever_became_of_them(capsys, rows, now, seconds, told):
    counts = {**no_counts(), "applied": 405, "conflict": rows}
    report = LoadReport(file="f", object="books", format="csv", rows=rows, now=now, counts=counts, seconds=seconds)
    tell(Options(), SimpleNamespace(name="shop"), report, sent=True)
    assert f"  {told}  applied 405" in capsys.readouterr().err
