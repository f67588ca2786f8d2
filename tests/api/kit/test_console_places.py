"""The place of the cursor in a console text: what it is in, the word before it, the keys around it."""

from __future__ import annotations

import pytest

from dragoman_api.console import MAX_SUGGESTIONS, SUGGESTION_TEXT, CompletionRequest, SuggestionKind
from dragoman_api.errors import QueryError
from dragoman_api.kit.console_places import ConsolePlace, Where, find_place


def place(text: str, position: int | None = None) -> ConsolePlace:
    return find_place(CompletionRequest(text=text, position=len(text) if position is None else position))


@pytest.mark.parametrize(
    ("text", "where", "typed", "keys"),
    [
        ("", Where.METHOD, "", ()),
        ("GE", Where.METHOD, "GE", ()),
        ("GET /a\n", Where.METHOD, "", ()),
        ('GET /a {"x":1}\nPO', Where.METHOD, "PO", ()),
        ("GET ", Where.PATH, "", ()),
        ("GET /a/_se", Where.PATH, "_se", ()),
        ('GET /a\n{"qu', Where.KEY, "qu", ()),
        ("GET /a\n{qu", Where.KEY, "qu", ()),
        ("GET /a\n{\n  ", Where.KEY, "", ()),
        ('GET /a {"q": {"a": 1, "b', Where.KEY, "b", ("q",)),
        ('GET /a {"q": {"m": [{"a": 1}, {"b', Where.KEY, "b", ("q", "m", "")),
        ('GET /a {"s": ["x", "y', Where.VALUE, "y", ("s", "")),
        ('GET /a {"s": [', Where.VALUE, "", ("s", "")),
        ('GET /a {"s": "d', Where.VALUE, "d", ("s",)),
        ('GET /a {"s": {"t": 1}, "u": "v', Where.VALUE, "v", ("u",)),
        ('POST /_bulk\n{"index":{}}\n{"na', Where.KEY, "na", ()),
        ('GET /a {"s": """ {"x": """, "y', Where.KEY, "y", ()),
        ('GET /a {"s\\"t": {"y', Where.KEY, "y", ('s\\"t',)),
        ("# GET /a", Where.NOTHING, "", ()),
        ('GET /a {"x": 1 // "y', Where.NOTHING, "", ()),
        ('GET /a {"x": 1 /* "y', Where.NOTHING, "", ()),
        ('GET /a {"x": """ text', Where.NOTHING, "", ()),
        ('GET /a {"x": 1} ', Where.NOTHING, "", ()),
        ('GET /a {"x" ', Where.NOTHING, "", ()),
        ("GET /a " + "[" * 100_000, Where.NOTHING, "", ()),
    ],
)
def test_what_the_cursor_stands_in(text, where, typed, keys):
    found = place(text)
    assert (found.where, found.typed, found.keys) == (where, typed, keys)
    assert (found.start, found.end) == (len(text) - len(typed), len(text))


def test_the_word_goes_on_behind_the_cursor_and_the_request_is_the_one_around_it():
    text = 'GET /one/_search\n{}\nPUT /two/_doc\n{"a": "bcd"}\nGET /three'
    found = place(text, text.index("cd"))
    assert (found.method, found.path, found.keys, found.quoted) == ("PUT", "/two/_doc", ("a",), True)
    assert text[found.start : found.end] == "bcd"
    assert found.typed == "b"
    path = place(text, text.index("_doc"))
    assert (path.where, path.path, text[path.start : path.end]) == (Where.PATH, "/two/", "_doc")


def test_a_name_is_written_as_json_in_a_body_and_as_it_is_in_a_path():
    words = [('say "hi"', SuggestionKind.FIELD, "")]
    assert place("GET /a {").complete(words).suggestions[0].text == '"say \\"hi\\""'
    assert place('GET /a {"say').complete(words).suggestions[0].text == 'say \\"hi\\"'
    assert place("GET /say").complete(words).suggestions[0].text == 'say "hi"'


def test_words_that_begin_alike_come_before_those_that_contain_the_word():
    words = [(text, SuggestionKind.KEYWORD, "") for text in ("match_all", "rematch", "Match", "match_all", "term")]
    assert [each.text for each in place("GET /mat").complete(words).suggestions] == ["match_all", "Match", "rematch"]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "get"])
def test_every_method_begins_a_request(method):
    found = place(f"{method} /a")
    assert (found.where, found.method, found.path) == (Where.PATH, method.upper(), "/a")


@pytest.mark.parametrize("position", [-1, 6])
def test_a_position_outside_of_the_text_is_refused(position):
    with pytest.raises(QueryError):
        place("GET /", position)


def test_words_that_are_too_many_or_too_long_for_an_answer_are_left_out():
    words = [(f"w{number}", SuggestionKind.FIELD, "") for number in range(MAX_SUGGESTIONS)]
    assert place("GET /w").complete(words).more is False
    found = place("GET /w").complete([*words, ("last", SuggestionKind.FIELD, ""), ("wl", SuggestionKind.FIELD, "")])
    assert ([each.text for each in found.suggestions], found.more) == ([text for text, *_ in words], True)
    long = [("x" * (SUGGESTION_TEXT - size), SuggestionKind.FIELD, "") for size in (1, 2)]
    [made] = place("GET /a {").complete(long).suggestions
    assert len(made.text) == SUGGESTION_TEXT
