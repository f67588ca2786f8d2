"""Variables and expectations of a console text: what is filled in, what is refused, what an answer must be."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.console import expectations
from dragoman.console.variables import fill
from dragoman_api.changes import HttpRequest
from dragoman_api.console import Answer, AnswerKind, ConsoleRequest
from dragoman_api.errors import ConfigurationError, ConsoleSyntaxError
from dragoman_elasticsearch.connect import dialect_of
from dragoman_querydsl.console_text import parse as querydsl
from dragoman_weaviate.console_text import parse as weaviate

elasticsearch = partial(querydsl, dialect=dialect_of())
VALUES = {"a": "x", "quote": 'say "so"\nnow', "n": "5", "o": '{"k":"v"}'}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("GET /${a}/_doc/${a}", "GET /x/_doc/x"),
        ('{"q": "${quote}"}', '{"q": "say \\"so\\"\\nnow"}'),
        ('{"size": ${n}, "o": ${o}}', '{"size": 5, "o": {"k":"v"}}'),
        ('{"q": """${quote} ${a}"""}', '{"q": """say "so"\nnow x"""}'),
        ("cost $5 $a $ {a}", "cost $5 $a $ {a}"),
        ('"$${a} ${a}"', '"${a} x"'),
        ("# ${nope}\n// ${nope}\n/* ${nope} */\n${a}", "# ${nope}\n// ${nope}\n/* ${nope} */\nx"),
        ("GET /${a} # ${nope}", "GET /x # ${nope}"),
        ("# expect hits.total.value >= ${n}", "# expect hits.total.value >= 5"),
        ('{"u": "http://${a}"} // ${nope}', '{"u": "http://x"} // ${nope}'),
        ('{"escaped \\" ${quote}": 1}', '{"escaped \\" say \\"so\\"\\nnow": 1}'),
    ],
)  # fmt: skip
def test_E26_variables_are_filled_in_and_escaped_inside_strings(text: str, filled: str) -> None:
    assert fill(text, VALUES) == filled


@pytest.mark.parametrize(
    "comment",
    [
        "# expects status 200",
        "# Expect status 200",
        "#EXPECT: status 200",
        "// expected hits.total.value >= 5",
        "/* expect status 200 */",
        "/*\n * expect status 200\n */",
        "# expct status 200",
        "# expectation: status 200",
    ],
)
def test_a_comment_that_reads_like_an_expectation_is_noted_with_its_line(comment: str) -> None:
    [note] = expectations.near_misses(f"GET /\n{comment}\nGET /_cat")
    assert (note.code, note.reason.partition(":")[0]) == ("expectation-like", "line 2")
    assert "# expect status 200" in note.hint


@pytest.mark.parametrize(
    "text",
    [
        "# expect status 200",
        "# export the orders, as an expert would",
        "# now status 200 is expected",
        '{"note": "# expects status 200"}',
        "GET /a#expects",
    ],
)
def test_other_comments_and_expectations_are_not_noted(text: str) -> None:
    assert expectations.near_misses(text) == []


@pytest.mark.parametrize("text", ['"""${b"""', '"""x ${b """ ', 'GET /${b}\n"""${index}"""'])
def test_an_unknown_variable_in_a_long_string_is_named_too(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        fill(text, {"index": "x"})
    assert caught.value.code == "variable-unknown"


def test_every_unknown_variable_is_named_with_its_line() -> None:
    with pytest.raises(ConfigurationError) as caught:
        fill('GET /${indx}\n{"a": "${b}"}\n${b}', {"index": "x"})
    assert caught.value.code == "variable-unknown"
    assert caught.value.message == "no value for ${indx} (line 1), ${b} (line 2); nothing was sent"
    assert caught.value.hint == "--var indx=VALUE, or write $${indx} for the literal text"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("GET /${env:HOME}", '--var HOME="$HOME"'),
        ("GET /${}", "write $${} for the literal text"),
        ("GET /${a b}", "write $${a b} for the literal text"),
        ("GET /${a", "write $${a for the literal text"),
    ],
)
def test_the_environment_is_not_read_and_nothing_is_guessed(
    text: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    with pytest.raises(ConfigurationError) as caught:
        fill(text, {"a": "x"})
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "place"),
    [("GET /${a}", (1, 6)), ('\n{"q":\n  ${a}}', (3, 3)), ("# expect x = ${a}", (1, 14))],
)
def test_a_value_with_a_line_break_stands_in_a_string_only(text: str, place: tuple[int, int]) -> None:
    """Behind a line break another request would begin."""
    with pytest.raises(ConsoleSyntaxError, match="has a line break") as caught:
        fill(text, {"a": "x\nDELETE /books"})
    assert (caught.value.details["line"], caught.value.details["column"]) == place


@pytest.mark.parametrize("value", ['"""', 'a" ', 'ends in "'])
def test_no_value_ends_the_string_it_stands_in(value: str) -> None:
    text = 'POST /_search\n{"q": """${a}"""}'
    if value.endswith('"'):
        with pytest.raises(ConsoleSyntaxError, match='would end the """ string'):
            fill(text, {"a": value})
    else:
        assert fill(text, {"a": value}) == text.replace("${a}", value)


@given(st.text(), st.text(alphabet='GET/a{}"#\n $x\\', max_size=30))
def test_a_text_without_variables_is_left_alone(value: str, text: str) -> None:
    if "${" not in text:
        assert fill(text, {"a": value}) == text


@given(st.text())
def test_any_value_inside_a_string_comes_back_as_it_is(value: str) -> None:
    import json

    assert json.loads(fill('{"q": "${a}"}', {"a": value}))["q"] == value


# expectations

BODY = """{"hits": {"total": {"value": 12003, "relation": "eq"}, "hits": [{"_id": "a", "_score": 1.10}]},
 "settings": {"index.max_result_window": "500", "index": {"hidden": false}}, "big": 12345678901234567890123,
 "status": "green", "tags": ["x", 2, null], "when": "2024-05-01T00:00:00Z", "nothing": null}"""


def requests(*lines: int) -> list[ConsoleRequest]:
    return [ConsoleRequest(request=HttpRequest("GET", "/"), writes=False, line=line) for line in lines]


def verdicts(*rows: str, text: str = BODY, status: int = 200) -> list[str]:
    """Return what was got instead, empty for what holds."""
    [read] = expectations.read("GET /\n" + "\n".join(f"# expect {row}" for row in rows), requests(1))
    answer = Answer(kind=AnswerKind.JSON, status=status, request=HttpRequest("GET", "/"), text=text)
    return [each.got for each in expectations.judge(answer, read)]


@pytest.mark.parametrize(
    "row",
    [
        "status 200", "status = 200", "status >= 200", "status != 404",
        "hits.total.value >= 5", "hits.total.value = 12003", "hits.total.value > 12002", "hits.total.value <= 1.2003e4",
        "hits.total.value > 0",
        "hits.total.value < 20000", "hits.total.value != 5", "hits.total exists", "hits.total.value exists",
        "hits.hits.0._id = a", 'hits.hits[0]._id = "a"', "hits.hits.0._score = 1.1", "hits.hits.1 missing",
        "hits.hits.0._id.x missing", "hits.hits.x missing", "aggregations missing",
        "settings.index.max_result_window = 500", 'settings.index.max_result_window = "500"',
        "settings.index.max_result_window >= 500", "settings.index.hidden = false", "settings.index.hidden != 0",
        "big = 12345678901234567890123", "big != 12345678901234567890124",
        ".status = green", ".status contains ree", "tags contains x", "tags contains 2", "tags contains null",
        'tags = ["x", 2, null]', "hits.total contains relation", "when >= 2024-01-01", "when < 2025-01",
        "nothing = null", "nothing exists",
    ],
)  # fmt: skip
def test_what_holds(row: str) -> None:
    assert verdicts(row) == [""]


@pytest.mark.parametrize(
    ("row", "got"),
    [
        ("status 404", "200"),
        ("hits.total.value >= 20000", "12003"),
        ("hits.total.value = 12004", "12003"),
        ("hits.total.value != 12003", "12003"),
        ("hits.total.value < 12003", "12003"),
        ("hits.total.value > 12003", "12003"),
        ("hits.total.value > NaN", "12003"),
        ("hits.total.value < Infinity", "12003"),
        ("when < 2024-05-01T00:00:00Z", '"2024-05-01T00:00:00Z"'),
        ("when > 2024-05-01T00:00:00Z", '"2024-05-01T00:00:00Z"'),
        ("hits.total.valve = 12003", "nothing"),
        ("hits.total.valve != 12003", "nothing"),
        ("hits.total missing", '{"value": 12003, "relation": "eq"}'),
        ("hits.hits.0._score > 1.1", "1.10"),
        (".status = yellow", '"green"'),
        (".status >= 5", '"green"'),
        (".status >= 0", '"green"'),
        ("settings.index.hidden = 0", "false"),
        ("settings.index.hidden >= 0", "false"),
        ("tags contains y", '["x", 2, null]'),
        ("hits.total.value contains 1", "12003"),
        ("big = 12345678901234567890124", "12345678901234567890123"),
    ],
)
def test_what_does_not_hold_tells_what_was_got(row: str, got: str) -> None:
    assert verdicts(row) == [got]


@pytest.mark.parametrize("text", ["", "green open books", "[" * 100_000, '{"n": 1e99999999999999999999}', "9" * 5_000])
def test_an_answer_that_cannot_be_read_holds_no_member(text: str) -> None:
    assert verdicts("a exists", "status 200", text=text) == ["nothing", ""]


def test_a_long_value_is_cut() -> None:
    [got] = verdicts("a = 1", text='{"a": "' + "x" * 500 + '"}')
    assert len(got) == 81
    assert got.endswith("…")
    [got] = verdicts("a = 1", text='{"a": "' + "x" * 78 + '"}')
    assert got == '"' + "x" * 78 + '"'


def test_an_expectation_belongs_to_the_request_above_it() -> None:
    text = "# a file\nGET /a  # expect status 200\n{}\n// expect a = 1\n\nGET /b\n#expect b exists\n# done"
    first, second = expectations.read(text, requests(2, 6))
    assert [(each.line, each.text) for each in first] == [(2, "expect status 200"), (4, "expect a = 1")]
    assert [(each.line, each.text) for each in second] == [(7, "expect b exists")]


def test_strings_hold_no_expectations() -> None:
    text = 'GET /a\n{"s": """\n# expect status 500\n""", "t": "# expect status 500"} /* # expect status 500 */'
    assert expectations.read(text, requests(1)) == [[]]


def test_all_that_cannot_be_read_are_named() -> None:
    """One that is passed over would seem to hold."""
    text = "# expect status 200\nGET /a\n# expect great things\n{}# expect a ~ 5\n# expect\n# expected: nothing"
    with pytest.raises(ConfigurationError) as caught:
        expectations.read(text, requests(2))
    assert caught.value.code == "expectation-syntax"
    assert caught.value.message == (
        "line 1: 'expect status 200' is above the first request; line 3: 'expect great things' cannot be read; "
        "line 4: 'expect a ~ 5' cannot be read; line 5: 'expect ' cannot be read; nothing was sent"
    )


@pytest.mark.parametrize(
    "text", ['"\\' * 100_000, '"' + '\\"' * 100_000, "/* " * 100_000], ids=["quotes", "escapes", "comments"]
)
@pytest.mark.parametrize("parse", [elasticsearch, weaviate, lambda text: fill(text, {})], ids=["es", "wv", "fill"])
def test_what_has_no_end_is_looked_through_once(parse, text):
    for each in (f"GET /_search\n{text}", f"GET /_search\n{{{text}}}\nGET /"):
        with suppress(ConsoleSyntaxError):
            parse(each)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ('GET /a?q=5" # ${nope}\n${a}', 'GET /a?q=5" # ${nope}\nx'),
        ('"${a} \\"${quote}', None),
        ('/* ${a} "${quote}"', '/* x "say \\"so\\"\\nnow"'),
        ("/* ${nope} */ /* ${a}", "/* ${nope} */ /* x"),
    ],
)
def test_what_has_no_end_is_no_string_and_no_comment(text, filled):
    if filled is None:
        with pytest.raises(ConsoleSyntaxError, match="line break"):
            fill(text, VALUES)
    else:
        assert fill(text, VALUES) == filled


def test_an_expectation_behind_a_lone_quote_is_read():
    assert [each.value for [each] in expectations.read('GET /a?q=5" # expect status 200', requests(1))] == ["200"]
