"""Console texts: split into requests, each value as it was typed, each fault with its place, in linear time."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api.errors import ConsoleSyntaxError
from dragoman_api.kit import console_text
from dragoman_api.kit.console_text import ConsoleReader, bounded, ndjson, rest_requests

ALL = ("#", "//", "/*")


def read(text: str, *, comments: tuple[str, ...] = ALL, literals: bool = True) -> list[tuple[str, str, list[str], int]]:
    """Read REST requests with any number of values; each with its line."""
    reader = ConsoleReader(text, comments=comments, literals=literals)
    found = []
    while reader.skip():
        if (line := reader.rest_line()) is None:
            raise reader.error(reader.at, "a method and a path")
        found.append((line.method, reader.path(line), reader.values(), reader.line(line.at)))
    return found


# what is read

GAPS = st.sampled_from([" ", "\n", "\n\n", " # c\n", "// {\n", "/* GET /x\n */", '\t/* " */\n', "/**/"])
SCALARS = st.one_of(
    st.sampled_from(["1", "-0", "1.10", "1e400", "9" * 30, "true", "null"]), st.text().map(json.dumps),
    st.sampled_from(['"# x"', '"/* x"', '"// x"', '"\\""', '""', '"GET /x"', '"{"']),
)  # fmt: skip


TOKENS = st.recursive(
    SCALARS.map(lambda text: [text]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda all_: ["[", *joined(all_), "]"]),
        st.lists(inner, max_size=3).map(lambda all_: ["{", *joined([['"k"', ":", *each] for each in all_]), "}"]),
    ),
    max_leaves=6,
)
HEADS = st.tuples(st.sampled_from(["GET", "post", "Put"]), st.sampled_from(["/", "/a", "/a/_doc/1?x=#y"]))


def joined(values: list[list[str]]) -> list[str]:
    """Join the tokens of several values by commas."""
    return [token for number, each in enumerate(values) for token in ([",", *each] if number else each)]


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, list[tuple[str, str, list[str], int]]]:
    """Make a console text and what is in it: no comment changes a value, and no value a request."""
    text, told = "".join(draw(st.lists(GAPS, max_size=2))) + "\n", []
    for method, path in draw(st.lists(HEADS, max_size=4)):
        line, values = text.count("\n") + 1, []
        text += f"{method} {path} "
        for tokens in draw(st.lists(TOKENS, max_size=3)):
            text += "\n"
            for token in tokens:
                text += draw(st.sampled_from(["", "", ""]) | GAPS) + token
            values.append("".join(tokens))
        text += "".join(draw(st.lists(GAPS, max_size=2))) + "\n"
        told.append((method.upper(), path.replace("#", "%23"), values, line))
    return text, told


@given(texts())
@pytest.mark.slow
def test_every_value_is_read_whatever_stands_between(made: tuple[str, list[tuple[str, str, list[str], int]]]) -> None:
    text, told = made
    found = read(text)
    assert [(method, path, line) for method, path, _, line in found] == [
        (method, path, line) for method, path, _, line in told
    ]
    for (_, _, values, _), (_, _, wanted, _) in zip(found, told, strict=True):
        assert [same(value) for value in values] == [same(value) for value in wanted]


MARKS = ["{", "}", "[", "]", '"a"', '"#', '"http://x"', ",", ":", "5", " # c\n", "// {\n", "/*\n*/", "/*"]
MARKS += ['"""', "\n", "\nGET /"]


@given(st.lists(st.sampled_from(MARKS), max_size=16).map("".join), st.sampled_from([1, 3, 20]))
def test_no_value_and_no_fault_depends_on_where_a_stretch_ends(text: str, size: int) -> None:
    """The reader removes comments stretch by stretch, and first tries a way that is quick and sometimes fails."""

    def outcome(size: int) -> object:
        with mock.patch.multiple(console_text, _SHORT=size, _STRETCH=size):
            try:
                return read("GET /\n" + text)
            except ConsoleSyntaxError as error:
                return error.message

    assert outcome(size) == outcome(10_000)


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["a # b"]', '["a # b"]'),
        ('["a", # b"\n"c // d"]', '["a", \n"c // d"]'),
        ('{"a": "http://b/ // c"}', '{"a": "http://b/ // c"}'),
        ('["#", "//" // "\n]', '["#", "//" \n]'),
    ],
)
def test_a_mark_in_a_string_begins_no_comment(
    text: str, value: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_text, "_SHORT", size)
    assert read(f"PUT /a\n[ # c\n]\n{text}\nPUT /b\n{text}") == [
        ("PUT", "/a", ["[ \n]", value], 1),
        ("PUT", "/b", [value], 5 + text.count("\n")),
    ]


def same(value: str) -> Any:
    """Read JSON with every digit as it is written."""
    return json.loads(value, parse_float=str, parse_int=str, object_pairs_hook=list)


@given(st.text(alphabet='GET /a{}"\\#\n *_:1,[]é', max_size=60), st.booleans(), st.sampled_from([("#",), ALL, ()]))
def test_a_fault_is_a_place_in_the_text(text: str, literals: bool, comments: tuple[str, ...]) -> None:
    try:
        found = read(text, comments=comments, literals=literals)
    except ConsoleSyntaxError as error:
        lines = text.split("\n")
        line, column = int(str(error.details["line"])), int(str(error.details["column"]))
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 1
        return
    for _, path, values, _ in found:
        assert path.startswith("/")
        assert not path.startswith("//")
        assert path.isascii()
        for value in values:
            json.loads(value)


def test_a_literal_is_a_string_that_keeps_its_lines() -> None:
    [(_, _, [value], _)] = read('POST /\n{"q": """say "hi"\n\\d+"""}')
    assert json.loads(value) == {"q": 'say "hi"\n\\d+'}
    assert value.count("\n") == 1
    [(_, _, values, _)] = read('POST /\n"""a\nb"""\n5\n""')
    assert values == ['"a\\nb"', "5", '""']


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("x", 1, 1),
        ('GET /\n{"a": 1 /* c\n */, x}', 3, 6),
        ('GET /\n{"a": """x\ny""", "b": }', 3, 12),
        ('GET /\n# c\n{"a":1', 3, 7),
        ("GET /\n{} []", 2, 4),
        ("GET /\n[1, # c\n}", 3, 1),
        ("GET /\n{} /* c", 2, 4),
        ('GET /\n[ # c\n"""', 3, 1),
        ("GET /\n# c\n5 x", 3, 3),
        ('GET /\n[ # c\n"a" "b", /*', 3, 5),
        ('GET /\n[ # c\n"a\n", /*', 3, 3),
    ],
)
def test_a_fault_behind_comments_has_its_own_place(text: str, line: int, column: int) -> None:
    with pytest.raises(ConsoleSyntaxError) as caught:
        read(text)
    assert caught.value.details == {"line": line, "column": column}


def test_comments_are_those_that_were_asked_for() -> None:
    with pytest.raises(ConsoleSyntaxError):
        read("GET /\n{} // c", comments=("#",))
    assert read("GET /\n{} # c", comments=("#",)) == [("GET", "/", ["{}"], 1)]


@pytest.mark.parametrize("text", ["/*", "/* c", "# c\n /* c *", "/**/ /*"])
def test_a_comment_without_an_end_is_a_fault_whatever_would_follow(text: str) -> None:
    """A driver takes what follows as it stands: it must not take half a comment."""
    with pytest.raises(ConsoleSyntaxError):
        ConsoleReader(text, comments=ALL).skip()


@pytest.mark.parametrize("mark", [chr(at) for at in range(0x21, 0x7F) if chr(at) not in '#?"{\\'])
def test_a_path_is_sent_as_it_was_typed(mark: str) -> None:
    assert read(f"GET /a{mark}b")[0][1] == f"/a{mark}b"


def test_a_letter_of_a_path_that_is_not_ascii_is_encoded() -> None:
    assert read("GET /aé%C3%A9/_search?q=ü")[0][1] == "/a%C3%A9%C3%A9/_search?q=%C3%BC"


def test_a_request_does_not_begin_in_the_middle_of_a_line_that_was_taken() -> None:
    reader = ConsoleReader("USE GET /a")
    assert reader.take(4) == "USE "
    assert reader.rest_line() is None


def test_many_values_are_one_line_each() -> None:
    reader = ConsoleReader('POST /_bulk\n{"a":\n 1.10}\n{"b": 2}')
    assert reader.skip()
    line = reader.rest_line()
    assert line is not None
    assert ndjson(reader, line, reader.values()) == '{"a":1.10}\n{"b": 2}\n'
    with pytest.raises(ConsoleSyntaxError):
        ndjson(reader, line, ['{"a":\nNaN}'])


def test_a_rest_request_has_one_body() -> None:
    found = rest_requests('GET /a\nPUT /b {"n":\n1} # c\n', lambda request: request.method == "PUT")
    assert [(str(each.request), each.writes, each.line) for each in found] == [
        ("GET /a", False, 1),
        ('PUT /b\n{"n":\n1}', True, 2),
    ]
    with pytest.raises(ConsoleSyntaxError) as caught:
        rest_requests("GET /a\n\nGET /b\n{}\n{}", lambda _: False)
    assert caught.value.details["line"] == 3


# how long it takes


@pytest.mark.parametrize(
    "piece",
    [
        '{"index":{}}\n', "5 # c\n", "[5 # c\n]\n", '"""a"""\n', "GET /\n", "\n", "{", "[ # c\n", '"', '"\n', "/*",
        "//", '{"a":"\\', " ", "# c\n", "[\n", '"""\\', "/* */", "5,", "1",
    ],
)  # fmt: skip
def test_reading_takes_time_in_proportion_to_the_text(piece: str) -> None:
    def seconds(times: int, begin: str) -> float:
        began = time.process_time()
        with suppress(ConsoleSyntaxError):
            read(begin + piece * times)
        return time.process_time() - began

    def in_proportion(begin: str) -> bool:
        return seconds(8_000, begin) < 40 * max(seconds(800, begin), 0.001)

    for begin in ("POST /_bulk\n", "POST /_bulk\n[1 # c\n]\n", "POST /_bulk\n{"):
        assert in_proportion(begin) or in_proportion(begin), begin  # a busy machine may hold up one of two


@pytest.mark.parametrize(
    ("at", "size", "end"),
    [
        (0, 99, 10),  # all of it
        (0, 4, 2),  # the last line that ends within
        (3, 4, 7),
        (0, 1, 2),  # the line of the place, if none ends within
        (3, 2, 7),
        (8, 1, 10),  # the last line, which has no end
    ],
)
def test_a_stretch_ends_with_a_line_and_not_with_the_text(at: int, size: int, end: int):
    assert bounded("ab\ncdef\ngh", at, size) == end


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("GET /my index/_search", "write a blank in a path as %20"),
        ("GET /my index/_search\n{}", "write a blank in a path as %20"),
        ("GET /a GET /b", "write a blank in a path as %20"),
        ('GET /a {"x": """y""""}', "cannot end with one"),
        ('GET /a {"x": """"y""""}', "cannot end with one"),
        ('GET /a {"x": """y""", "z": }', "the body is not valid JSON"),
    ],
)
def test_what_a_person_meant_is_said_where_the_text_is_no_request(text: str, reason: str) -> None:
    reader = ConsoleReader(text, comments=("#",), literals=True)
    assert reader.skip()
    assert reader.rest_line() is not None
    with pytest.raises(ConsoleSyntaxError, match=reason):
        reader.values()


def test_lines_are_counted_in_any_order_of_places() -> None:
    reader = ConsoleReader("a\nb\nc")
    assert [reader.line(at) for at in (4, 1, 5, 2, 0)] == [3, 1, 3, 2, 1]


def test_three_double_quotes_mean_nothing_where_there_are_no_literals() -> None:
    with pytest.raises(ConsoleSyntaxError, match="the body is not valid JSON"):
        read('GET /a {"x": """"y""""}', literals=False)


@pytest.mark.parametrize("text", ["GET /a true", "GET /a null # c", 'GET /a """text"""', "GET /a 5", "GET /a # my a"])
def test_a_body_on_the_line_of_its_path_is_no_part_of_the_path(text: str) -> None:
    reader = ConsoleReader(text, comments=("#",), literals=True)
    assert reader.skip()
    assert reader.rest_line() is not None
    assert len(reader.values()) == ("# my" not in text)
