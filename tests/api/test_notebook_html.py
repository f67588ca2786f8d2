"""Pages and answers as notebooks show them: readable, bounded, and never more than text."""

from __future__ import annotations

from decimal import Decimal
from html.parser import HTMLParser

import pytest

from dragoman_api.cells import MISSING, CutBytes, CutJson, CutText, Json
from dragoman_api.changes import HttpRequest
from dragoman_api.columns import Column, ColumnKind, Note
from dragoman_api.console import Answer, AnswerKind
from dragoman_api.grid import Page
from dragoman_api.notebook_html import SHOWN_CHARACTERS, SHOWN_COLUMNS, SHOWN_ROWS, SHOWN_TEXT

VOID = {"br", "img"}
ALLOWED = {"div", "table", "thead", "tbody", "tr", "th", "td", "span", "code", "ul", "li", "pre"}


class Read(HTMLParser):
    """The elements of a fragment, and the text of each cell; fails on what is not closed or not expected."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.cells, self.heads, self.notes, self.text = [], [], [], [], ""
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED, tag
        assert {name for name, _ in attrs} <= {"style", "title"}, attrs
        self.open.append(tag)
        for kind, into in (("td", self.cells), ("th", self.heads), ("li", self.notes)):
            if tag == kind:
                into.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        for kind, into in (("td", self.cells), ("th", self.heads), ("li", self.notes)):
            if kind in self.open:
                into[-1] += data


def page(*values, notes=(), **more):
    columns = [Column(name=f"c{at}", type="keyword") for at in range(len(values))]
    return Page(columns=columns, cells=[[*values]], notes=list(notes), **more)


def test_null_missing_and_empty_look_different_and_digits_stay():
    values = (None, MISSING, "", "null", 2**63 + 1, Decimal("1.10"), True, Json('{"a":1.0}'), b"\x00\xff")
    shown = Read(page(*values)._repr_html_()).cells
    assert shown[:4] == ["null", "–", '""', "null"]  # noqa: RUF001
    assert "italic" in page(None)._repr_html_()
    assert "italic" not in page("null")._repr_html_()
    assert shown[4:] == ["9223372036854775809", "1.10", "true", '{"a":1.0}', "2 bytes: 00 ff"]


@pytest.mark.parametrize("value", [CutText("abc"), CutJson('{"a":'), CutBytes(b"abc")])
def test_a_cut_value_is_marked(value):
    [shown] = Read(page(value)._repr_html_()).cells
    assert shown.rstrip(")").endswith(("…", "(cut"))


def test_a_long_value_is_shown_in_part_with_its_length():
    [shown] = Read(page("x" * 5_000)._repr_html_()).cells
    assert shown.count("x") == SHOWN_CHARACTERS
    assert "5,000 characters" in shown


def test_rows_and_columns_have_a_bound_and_it_is_said():
    many = Page(
        columns=[Column(name=f"c{at}", type="long", kind=ColumnKind.INTEGER) for at in range(150)],
        cells=[[1] * 150] * 250,
        total=1_000,
        total_exact=False,
        offset=10,
    )
    read = Read(many._repr_html_())
    assert (len(read.heads), len(read.cells)) == (SHOWN_COLUMNS, SHOWN_COLUMNS * SHOWN_ROWS)
    assert "150 more rows not shown here" in read.text
    assert "50 more columns not shown here" in read.text
    assert "rows 11–260 of at least 1,000" in read.text  # noqa: RUF001


def test_notes_stand_beneath_with_their_column():
    notes = [
        Note(code="sort-dropped", column="note", reason="text field"),
        Note(code="partial", reason="a shard failed"),
    ]
    read = Read(page(1, notes=notes)._repr_html_())
    assert read.notes == ["sort-dropped: note: text field", "partial: a shard failed"]


def test_an_empty_page_says_so():
    assert "no rows of 0" in Read(Page(columns=[], total=0)._repr_html_()).text


HOSTILE = "<script>alert(1)</script>\"' onmouseover=x&lt;\x1b[31m\u202e</td></table><img src=x>"


def test_whatever_a_server_says_is_text():
    column = Column(name=HOSTILE, type=HOSTILE)
    note = Note(code="x", column=HOSTILE, reason=HOSTILE)
    hostile = Page(columns=[column], cells=[[HOSTILE], [Json(HOSTILE)], [CutText(HOSTILE)]], notes=[note])
    html = hostile._repr_html_()
    read = Read(html)  # only known elements and attributes, each closed
    assert "<script>alert(1)</script>" in read.heads[0]
    assert all("onmouseover" in cell for cell in read.cells)
    assert not {"\x1b", "\u202e"} & {*html}


def test_an_answer_shows_its_status_and_rows_or_text():
    request = HttpRequest(method="GET", path="/")
    rows = Answer(kind=AnswerKind.GRID, status=200, request=request, page=page(7), title=HOSTILE)
    assert Read(rows._repr_html_()).cells == ["7"]
    text = Answer(kind=AnswerKind.JSON, status=404, request=request, text=HOSTILE + "x" * 30_000, failed="not found")
    read = Read(text._repr_html_())
    assert "404 · not found" in read.text
    assert "<script>" in read.text
    assert f"{len(HOSTILE) + 30_000 - SHOWN_TEXT:,} more characters" in read.text
