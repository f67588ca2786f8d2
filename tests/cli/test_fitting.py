"""A table fits the terminal: what is cut is marked and counted, and elsewhere nothing is cut."""

from __future__ import annotations

import io
import os

import pytest

from dragoman.cli import output
from dragoman.cli.vertical_rows import write_rows
from dragoman_api.cells import MISSING
from dragoman_api.columns import Column, ColumnKind
from dragoman_api.grid import Page

LONG = "ab " * 70_000


def page(*rows, names=("id", "body", "more")):
    columns = [Column(name=name, type="text", kind=ColumnKind.TEXT) for name in names]
    return Page(columns=columns, cells=[[*row] for row in rows], keys=[], offset=4)


@pytest.fixture
def shown(monkeypatch, capsys):
    """Return what a terminal of a width shows of a page."""

    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self):
            return True

    def show(found, *, columns, terminal=True, **more):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("NO_COLOR", "1")
        out = Terminal() if terminal else io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdout", out)
            patch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((columns, 24)))
            write_rows(found, format="table", **{"vertical": None, "wide": False, "escape": False, **more})
        return out.getvalue(), capsys.readouterr().err

    return show


def test_a_long_cell_takes_one_line_of_a_terminal_and_is_counted(shown):
    text, said = shown(page(["1", LONG, "x"], ["2", "short", "y"]), columns=90)
    assert len(text) < 400
    assert "…" in text
    assert "note[cut-to-fit]: 1 cell is cut" in said
    assert shown(page(["1", "short", "x"]), columns=90)[1] == ""


def test_wide_and_a_pipe_cut_nothing(shown):
    for text, said in (
        shown(page(["1", LONG, "x"]), columns=90, wide=True),
        shown(page(["1", LONG, "x"]), columns=90, terminal=False),
        shown(page(["1", LONG, "x"]), columns=90, wide=True, vertical=True),
        shown(page(["1", LONG, "x"]), columns=90, terminal=False, vertical=True),
    ):
        assert LONG.rstrip() in text
        assert said == ""


def test_an_expanded_row_has_a_line_for_each_column_and_a_long_value_few(shown):
    tea = "\N{TEACUP WITHOUT HANDLE}"
    text, said = shown(page(["1", LONG, None], ["2", tea * 40, MISSING]), columns=40, vertical=True)
    lines = text.splitlines()
    assert lines[0] == "- row 5 --------------------------------"
    assert lines[1:3] == ["id    1", f"body  {LONG[:34].rstrip()}"]
    assert lines[5].endswith("…")
    assert lines[6] == "more  null"
    assert lines[7].startswith("- row 6 ---")
    assert [line.count(tea) for line in lines[9:]] == [17, 17, 6]
    assert max(map(output.width_of, lines)) <= 40
    assert "1 cell is cut" in said


def test_only_a_narrow_terminal_without_room_expands_rows_by_itself(shown):
    many = page(*[["x" * 30] * 4], names=("a", "b", "c", "d"))
    assert shown(many, columns=70)[0].startswith("- row 5 ---")
    assert not shown(many, columns=70, vertical=False)[0].startswith("-")
    assert not shown(many, columns=70, wide=True)[0].startswith("-")
    assert not shown(many, columns=70, terminal=False)[0].startswith("-")
    assert not shown(many, columns=80)[0].startswith("-")
    assert not shown(page(["1", "b", "c"]), columns=40)[0].startswith("-")
