"""Remedies are data: each surface shows them, and no text in one ever means anything to a shell or a terminal."""

from __future__ import annotations

import ast
import subprocess
from itertools import islice

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import Filter, RawQuery
from dragoman.cli import advice, app
from dragoman.cli.advice import command_words
from dragoman.cli.options import Options
from dragoman.sessions.selection_codec import SelectionTexts, parse_filter, script
from dragoman.sessions.selections import RowSelection
from dragoman.spellings import python_call
from dragoman_api.errors import QueryError
from dragoman_api.masking import UNSAFE
from dragoman_api.remedies import ABOUT_PLUGINS, ARGUMENTS, Remedy, RemedyKind
from dragoman_api.wording import shell_line, shell_word

NASTY = (
    "a$(id);id", "`id`", "a b", "it's", '"', "-x", "--help", "~", "=ls", "!!", "a\nb", "\x1b[201~id\r", "\u202egnp.exe",
    "\x9b2J", "*", "{a,b}", "\\", "é", "|", "#", "",
)  # fmt: skip
ASIDE = {RemedyKind.UNLOCK, RemedyKind.OPEN_CONNECTION, RemedyKind.USE_COLUMN, RemedyKind.ADVICE}
"""What no command does."""


def remedy(kind: RemedyKind, text: str, *, optional: bool = True) -> Remedy:
    required, further = ARGUMENTS[kind]
    arguments = dict.fromkeys([*required, *(further if optional else ())], text)
    arguments |= {"operator": "=" if "value" in arguments else "null"} if "operator" in arguments else {}
    arguments |= {"field": "ssl_mode"} if "field" in arguments else {}
    return Remedy(kind, arguments).of("shop")


def words_of_a_shell(line: str) -> list[str]:
    return words_of_lines([line])[0]


def words_of_lines(lines: list[str]) -> list[list[str]]:
    """Let one shell split lines into words."""
    program = "".join(f"set -- {line}\nprintf '%s\\0' $# \"$@\"\n" for line in lines)
    done = subprocess.run(["bash", "-c", program], capture_output=True, check=True)
    told = iter(done.stdout.decode().split("\0"))
    return [[*islice(told, int(next(told)))] for _ in lines]


@pytest.mark.parametrize("text", NASTY)
def test_a_quoted_word_is_inert_in_a_shell_and_in_a_terminal(text):
    word = shell_word(text)
    assert words_of_a_shell(word) == [text]
    assert not any(ord(character) in UNSAFE for character in word)


def test_a_word_that_no_argument_can_be_is_refused():
    with pytest.raises(ValueError, match="null"):
        shell_word("a\0b")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1))
def test_any_words_reach_a_program_unchanged(words):
    line = shell_line(words)
    assert words_of_a_shell(line) == words
    assert not any(ord(character) in UNSAFE for character in line)


@pytest.mark.parametrize("kind", RemedyKind)
def test_the_command_of_every_kind_takes_any_text_as_data(kind):
    commands = []
    for text in filter(None, NASTY):
        for optional in (True, False):
            shown = remedy(kind, text, optional=optional)
            words = command_words(shown)
            assert bool(words) == (kind not in ASIDE), kind
            commands += [words] if words else []
            assert "  " not in str(shown)
            assert str(shown), "every kind can be said"
    assert words_of_lines([shell_line(words) for words in commands]) == commands


def _parse(command, name, words, parent=None):
    context = command.make_context(name, list(words), parent, obj=None if parent else Options())
    if isinstance(command, click.Group):
        inner = command.get_command(context, words[0])
        return _parse(inner, words[0], words[1:], context)
    return context.params


@pytest.mark.parametrize("kind", [kind for kind in RemedyKind if kind not in {*ASIDE, RemedyKind.EDIT_FIELD}])
@pytest.mark.parametrize("text", ["orders", "-x", "--yes"])
def test_the_command_of_every_kind_is_one_of_the_command_line(kind, text):
    """A name that looks like an option stays a name."""
    if kind in ABOUT_PLUGINS and text != "orders":
        return  # no plugin's id begins so
    words = command_words(remedy(kind, text))
    params = _parse(app.cli, words[0], words[1:])
    assert text in str(params) or not ARGUMENTS[kind][0]
    assert not params.get("yes")


def test_a_filter_row_is_read_back_as_what_it_says():
    def row(**arguments):
        words = command_words(Remedy(RemedyKind.FILTER_ROWS, {"connection": "c", "object": "o"} | arguments))
        return parse_filter(words[words.index("--filter") + 1]) if words else None

    for value in NASTY:
        assert row(column="a 'b\"", operator="=", value=value) == Filter("a 'b\"", "=", value)
    assert row(column="x", operator="in", value="a b,-1") == Filter("x", "in", ["a b", "-1"])
    assert row(column="x", operator="null") == Filter("x", "null")
    assert row(column="x", operator="~", value="1") is None
    assert row(column="x", operator="between", value="1") is None


@pytest.mark.parametrize("kind", RemedyKind)
def test_the_call_of_every_kind_is_python_with_texts_as_literals(kind):
    for text in filter(None, NASTY):
        if call := python_call(remedy(kind, text)):
            tree = ast.parse(call, mode="eval")
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            assert used <= {"session", "Filter", "RawQuery"}
            assert call.isprintable()


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (Remedy("run-shell", {"command": "id"}), "no kind"),
        (Remedy("use-column", {}), "other arguments"),
        (Remedy("use-column", {"column": "a", "command": "id"}), "other arguments"),
        (Remedy("use-column", {"column": ""}), "empty"),
        (Remedy("use-column", {"column": "x" * 2_001}), "longer"),
    ],
)
def test_what_is_no_remedy_is_shown_nowhere(wrong, fault):
    assert fault in wrong.fault
    assert command_words(wrong.of("shop")) == []
    assert python_call(wrong) == ""


def test_a_command_line_shows_hint_and_commands_and_whose_they_are():
    error = QueryError("no", hint="look", remedies=[Remedy(RemedyKind.OPEN_OBJECT, {"object": "a b"}).of("shop")])
    assert [*advice.advice(error)] == ["hint: look", "try: dragoman page shop 'a b'"]
    error.hint_from = "driver"
    assert [*advice.advice(error)] == ["the driver suggests: look", "the driver suggests: dragoman page shop 'a b'"]
    with advice.inside("shop"):
        assert [*advice.advice(error)][1:] == ["the driver suggests: page 'a b'"]
    error.remedies = (Remedy(RemedyKind.USE_COLUMN, {"column": "a"}),)
    assert [*advice.advice(error)][1:] == ["the driver suggests: use the column 'a'"]


@pytest.mark.parametrize("text", [text for text in NASTY if text])
def test_what_the_page_offers_to_copy_is_inert_too(text):
    rows = RowSelection(object=text, filters=(Filter(text, "=", text), RawQuery("x")), tenant=text)
    line = shell_line(SelectionTexts.of(rows).command("shop"))
    assert line.isprintable()
    words = words_of_a_shell(line)
    assert text in words
    at = words.index("--raw")
    row = parse_filter(words[at - 1].removeprefix("--filter="))
    assert (row.column, row.value) == (text, text)
    ast.parse(script(rows, "shop"))
