"""The words of a line of `dragoman open`; a console text is one of them, as it was typed."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

_CONSOLE = re.compile(r"\s*console(?=[ \n]|\Z)[ \n]*")
_TAKES_BODY = re.compile(r"(POST|PUT|PATCH)\b[^{\[\n]*", re.IGNORECASE)
_TEXTS = re.compile(r'""".*?(?:"""|\Z)|"(?:[^"\\\n]|\\.)*"?', re.DOTALL)


class LineWord(NamedTuple):
    """The word at the cursor, which may be unfinished.

    Attributes:
        start: Number of characters before it.
        text: What it means, without quotes.
        quote: The quote that is open, if any.
    """

    start: int
    text: str
    quote: str


def split_words(line: str) -> list[str]:
    """Return the words of a line, as a shell would."""
    line = line.strip()
    if line.startswith("\\"):
        return line.split()
    if is_console(line):
        text, _ = console_text(line)
        return ["console", *([text] if text else [])]
    try:
        return shlex.split(line)
    except ValueError:
        return [line]


def split(text: str) -> tuple[list[str], LineWord]:
    """Split a line into the words before the cursor and the one at it.

    >>> split("page orders --filter 'total >")
    (['page', 'orders', '--filter'], LineWord(start=21, text='total >', quote="'"))
    >>> split("page ")
    (['page'], LineWord(start=5, text='', quote=''))
    """
    words: list[str] = []
    start, word, quote, escaped, inside = 0, "", "", False, False
    for at, letter in enumerate(text):
        if not inside and not quote and not escaped:
            if letter.isspace():
                continue
            start, word, inside = at, "", True
        if escaped:
            word, escaped = word + letter, False
        elif letter == "\\" and quote != "'" and text[at : at + 2] != "\\x":
            escaped = True
        elif quote:
            quote, word = ("", word) if letter == quote else (quote, word + letter)
        elif letter in "'\"":
            quote = letter
        elif letter.isspace():
            words.append(word)
            inside = False
        else:
            word += letter
    return words, LineWord(start, word, quote) if inside else LineWord(len(text), "", "")


def is_console(line: str) -> bool:
    """Return whether a line is a console text: the command, and neither options nor a quoted text after it."""
    match = _CONSOLE.match(line)
    return match is not None and line[match.end() :][:1] not in ("'", '"', "-")


def console_text(line: str) -> tuple[str, int]:
    """Return the text after the command, and the number of characters before it."""
    match = _CONSOLE.match(line)
    before = match.end() if match else 0
    return line[before:], before


def goes_on(line: str, *, position: int) -> bool:
    r"""Return whether Enter begins another line of a console text; a blank line or a text that is complete ends it.

    >>> [goes_on(line, position=len(line)) for line in ("page orders", "console GET /", "console GET /x {", "console")]
    [False, False, True, True]
    >>> [goes_on(line, position=len(line)) for line in ("console POST /x\n{}", "console POST /x\n{}\n  ")]
    [True, False]
    """
    if not is_console(line):
        return False
    text, _ = console_text(line)
    if "\n" in line:
        return "\n" in line[position:] or bool(line.rpartition("\n")[2].strip())
    return not text.strip() or bool(_TAKES_BODY.fullmatch(text.strip())) or _is_open(text)


def _is_open(text: str) -> bool:
    """Return whether a bracket or a text is not closed; brackets in texts do not count."""
    bare = _TEXTS.sub(lambda match: '"' if _is_cut(match[0]) else "", text)
    return '"' in bare or sum(map(bare.count, "{[(")) > sum(map(bare.count, "}])"))


def _is_cut(quoted: str) -> bool:
    mark = '"""' if quoted.startswith('"""') else '"'
    return len(quoted) < 2 * len(mark) or not quoted.endswith(mark)
