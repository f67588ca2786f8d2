"""What stands after ``try:`` is one command that can be pasted where it is printed; all other advice is no ``try:``."""

from __future__ import annotations

import ast
import shlex
from functools import cache
from pathlib import Path

import click
import pytest

from corpora import every_row
from dragoman.cli import advice, app
from dragoman.cli.options import Options
from sources import nodes_of

ROOT = Path(__file__).parents[2]
SOURCES = ("runtime/dragoman", "registry/dragoman_registry", "plugins/api/dragoman_api")
HINTS = ("hint", "instead", "remedy", "action")


@pytest.mark.parametrize(
    ("hint", "in_shell", "in_open"),
    [
        ("dragoman objects shop", "try: dragoman objects shop", "try: objects"),
        ("dragoman page shop 'a b'", "try: dragoman page shop 'a b'", "try: page 'a b'"),
        ("dragoman page --help", "try: dragoman page --help", "try: help page"),
        ("dragoman --help", "try: dragoman --help", "try: help"),
        ("dragoman page other x", "try: dragoman page other x", "hint: outside of this shell: dragoman page other x"),
        ("dragoman doctor", "try: dragoman doctor", "try: doctor"),
        ("pipx inject dragoman 'dragoman[zstd]'", "try: pipx inject dragoman 'dragoman[zstd]'",
         "hint: outside of this shell: pipx inject dragoman 'dragoman[zstd]'"),
        ("dragoman console shop 'GET /a b'", "try: dragoman console shop 'GET /a b'", "try: console GET /a b"),
        ("pip install setuptools>=68", "try: pip install 'setuptools>=68'",
         "hint: outside of this shell: pip install 'setuptools>=68'"),
        ("dragoman drop shop a$(id);b --yes", "try: dragoman drop shop 'a$(id);b' --yes", "try: drop 'a$(id);b' --yes"),
        ("dragoman cell shop -- t -x1 c", "try: dragoman cell shop -- t -x1 c", "try: cell -- t -x1 c"),
        ("name it with -o", "hint: name it with -o", "hint: name it with -o"),
        ("dragoman registry init FOLDER", "hint: dragoman registry init FOLDER", "hint: dragoman registry init FOLDER"),
        ("dragoman plugins show NAME", "hint: dragoman plugins show NAME", "hint: dragoman plugins show NAME"),
        ("dragoman page '", "hint: dragoman page '", "hint: dragoman page '"),
    ],
)  # fmt: skip
def test_a_command_is_written_for_the_place_where_it_is_printed(hint, in_shell, in_open):
    assert [*advice.lines(hint)] == [in_shell]
    with advice.inside("shop"):
        assert [*advice.lines(hint)] == [in_open]


def test_a_command_names_the_home_that_the_command_line_named():
    with advice.at_home(lambda: "/a b", ["objects", "shop", "--home=/a b"]):
        assert [*advice.lines("dragoman objects shop")] == ["try: dragoman --home '/a b' objects shop"]
        assert [*advice.lines("pip install x")] == ["try: pip install x"]
        with advice.inside("shop"):
            assert [*advice.lines("dragoman objects shop")] == ["try: objects"]
    with advice.at_home(lambda: "/a b", ["objects", "shop"]):  # another process has it from the environment
        assert [*advice.lines("dragoman objects shop")] == ["try: dragoman objects shop"]


def test_further_advice_stands_on_a_line_of_its_own():
    assert [*advice.lines("dragoman doctor\nor wait\n")] == ["try: dragoman doctor", "hint: or wait"]
    assert [*advice.lines("")] == []


COMMAND = "try: dragoman"


def _texts(node):
    """Yield the texts that an expression can have, with a word in place of what is computed."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(part.value if isinstance(part, ast.Constant) else "demo" for part in parts)
        case ast.IfExp(body=one, orelse=other):
            yield from _texts(one)
            yield from _texts(other)
        case ast.BoolOp(values=values):
            for each in values:
                yield from _texts(each)


@cache
def _hints():
    return list(_find_hints())


def _find_hints():
    for root in SOURCES:
        for path in sorted((ROOT / root).rglob("*.py")):
            for node in nodes_of(path):
                given = []
                if isinstance(node, ast.Call):
                    given += [each.value for each in node.keywords if each.arg in HINTS]
                    if isinstance(node.func, ast.Attribute) and node.func.attr in ("advise", "say_hint"):
                        given += node.args[:1]
                if isinstance(node, ast.Assign):
                    names = [each.id for each in node.targets if isinstance(each, ast.Name)]
                    given += [node.value] if any(name.strip("_").lower() in HINTS for name in names) else []
                for each in given:
                    yield from ((f"{path.name}:{node.lineno}", text) for text in _texts(each))


def _parse(command, name, words, parent=None):
    """Parse words as a command does, without running it."""
    context = command.make_context(name, words, parent, obj=None if parent else Options())
    if isinstance(command, click.Group):
        inner = command.get_command(context, words[0]) if words else None
        assert inner is not None, f"{name} has no command {words[:1]}"
        _parse(inner, words[0], words[1:], context)


def test_every_command_of_the_sources_parses():
    lines = [(where, line) for where, hint in _hints() for line in advice.lines(hint)]
    commands = [(where, shlex.split(line.removeprefix("try: "))) for where, line in lines if line.startswith(COMMAND)]
    assert len(commands) > 30
    with every_row() as row:
        for where, words in commands:
            if "--help" in words or words[1:3] == ["plugins", "demo"]:  # the verb is computed
                continue
            with row(where, *words):
                _parse(app.cli, words[0], words[1:])


def test_no_hint_hides_a_command_behind_words_or_words_behind_a_command():
    with every_row() as row:
        for where, hint in _hints():
            for line in advice.lines(hint):
                with row(where, line):
                    assert not (line.startswith("try: ") and any(sign in line for sign in ("; ", ", or ", "     ")))


def test_what_the_golden_messages_say_to_try_can_be_pasted():
    told = (Path(__file__).parent / "messages.golden").read_text().splitlines()
    tried = [line.strip().removeprefix("try: ") for line in told if line.startswith("  try: ")]
    assert len(tried) > 10
    for line in tried:
        words = shlex.split(line)
        assert words[0] in advice.PROGRAMS
        if words[0] == "dragoman" and "--help" not in words:
            _parse(app.cli, words[0], words[1:])
