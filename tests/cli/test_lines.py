"""The lines of `dragoman open`: their words, how they go on, and what is kept of them."""

from __future__ import annotations

import stat

import pytest

from dragoman.cli import line_prompt
from dragoman.cli.line_prompt import LineHistory
from dragoman.cli.word_completion import goes_on, split, split_words
from dragoman_api.masking import Mask


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("page orders --filter 'total >= 5'", ["page", "orders", "--filter", "total >= 5"]),
        ('console GET /x?q="a b"  ', ["console", 'GET /x?q="a b"']),
        ('console "GET /x" --json', ["console", "GET /x", "--json"]),
        ("console -f smoke.es", ["console", "-f", "smoke.es"]),
        ("console\nPOST /x\n{}\n", ["console", "POST /x\n{}"]),
        ("console", ["console"]),
        ("consoles x", ["consoles", "x"]),
        ("page 'or", ["page 'or"]),
        ("", []),
    ],
)
def test_a_console_text_is_one_word_as_it_was_typed(line, words):
    assert split_words(line) == words


@pytest.mark.parametrize(
    ("line", "on"),
    [
        ("page {", False),
        ("console", True),
        ("console GET /x", False),
        ("console DELETE /x", False),
        ("console POST /x", True),
        ('console POST /x {"a": 1}', False),
        ("console POST /x {", True),
        ('console POST /x {"a": "}', True),
        ('console POST /x {"a": "{"}', False),
        ('console POST /x {"a": """b', True),
        ("console { Get { Book {", True),
        ("console { Get { Book } }", False),
        ("console POST /x\n{}", True),
        ("console POST /x\n{}\n", False),
        ("console POST /x {\n\n  ", False),
        ("console 'POST /x {", False),
    ],
)
def test_enter_goes_on_with_a_console_text_until_it_is_complete_or_a_line_is_blank(line, on):
    assert goes_on(line, position=len(line)) is on


def test_enter_in_the_middle_of_a_text_divides_a_line():
    assert goes_on("console POST /x\n\n{}\n", position=len("console POST /x"))


@pytest.mark.parametrize(
    ("text", "words", "word"),
    [
        ("", [], (0, "", "")),
        ("page  or", ["page"], (6, "or", "")),
        ("page 'a b' --filter \"x = \\\"y", ["page", "a b", "--filter"], (20, 'x = "y', '"')),
        ("page a\\ b", ["page"], (5, "a b", "")),
        ("\\x o", ["\\x"], (3, "o", "")),
    ],
)
def test_the_word_at_the_cursor_is_found_with_its_open_quote(text, words, word):
    assert split(text) == (words, word)


@pytest.fixture
def history(tmp_path):
    return LineHistory(tmp_path / "state/history.jsonl", mask=Mask(["open sesame"]).request)


@pytest.mark.parametrize(
    "line",
    [
        "page books --filter 'title = open sesame'",
        "console GET /x?api_key=abc",
        'console POST /_security/user/x {"password" : "abc"}',
        'console POST /x\n{"client_secret": "abc"}',
        "connections add x --api-key abc",
        "connections add x --password=abc",
        "connections add x --set access_token=abc",
        "console GET /x --var token=abc",
        "connections add x --header 'Authorization: Basic YWJjZGVmZ2g='",
        "connections add x --header 'X-Any: Bearer YWJjZGVmZ2g='",
        "registry add https://user:abc@example.org/",
        "  count books",
        "count " + "x" * 20_000,
    ],
)
def test_a_line_that_may_hold_a_secret_or_is_not_meant_to_stay_is_not_kept(history, line):
    history.add(line)
    assert history.lines() == []


def test_other_lines_are_kept_for_their_owner_alone(history, tmp_path):
    lines = ["page books --sort -price", 'console POST /x\n{"tokenizer": "standard"}', "describe \N{BLACK STAR}"]
    for line in lines:
        history.add(f"{line}\n")
    assert history.lines() == lines
    assert stat.S_IMODE((tmp_path / "state/history.jsonl").stat().st_mode) == 0o600
    assert (tmp_path / "state/history.jsonl").read_bytes().isascii()


def test_the_history_is_bounded_and_a_damaged_line_is_left_out(history, tmp_path, monkeypatch):
    file = tmp_path / "state/history.jsonl"
    history.add("first")
    file.write_bytes(file.read_bytes() + b'{"no": "text"}\nno json\n"\\ud800"\n' + b"[" * 100_000 + b"\n")
    monkeypatch.setattr(line_prompt, "MAX_LINES", 10)
    for number in range(12):
        history.add(f"count {number}")
    assert history.lines() == [f"count {number}" for number in range(7, 12)]
    assert len(file.read_bytes().splitlines()) == 5
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    monkeypatch.setattr(line_prompt, "MAX_FILE", 20)
    assert history.lines()[-1] == "count 11"
    assert file.stat().st_size <= 20


def test_a_history_that_cannot_be_used_is_none(tmp_path):
    (tmp_path / "history").mkdir()
    broken = LineHistory(tmp_path / "history", mask=str)
    broken.add("count books")
    assert broken.lines() == []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("")
    (tmp_path / "link").symlink_to(elsewhere)
    LineHistory(tmp_path / "link", mask=str).add("count books")
    assert elsewhere.read_text() == ""
