"""JSON with comments and literals: a stretch of a text without them, and where each of its places was before.

Each character is looked at once, by regular expressions whose parts never give back what they matched. No part that is
repeated so looks ahead: Python 3.11.2 would take what it looked at.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMENTS = {"#": r"#[^\n]*+", "//": r"//[^\n]*+", "/*": r"/\*.*?\*/"}
_BLANKS = re.compile(r"\s*+")
_REST = r'[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"?'
_STRING = f'"{_REST}'  # without an end it ends with its line, as JSON has it
_FILLED = rf'"(?:[^"\\\n]|\\[^\n]){_REST}'  # not empty, so that it is no part of three double quotes


class Stretch:
    """A stretch of a text without comments and literals.

    Attributes:
        end: Where the stretch ends in the original text.
        cut: It ends there only because it is long enough.
        unended: What has no end, a comment or a literal, if the stretch ends before one; else empty.
        following: The match of what ended the stretch, if something did.
        at: The place in `text` that is read next.
    """

    __slots__ = ("_offsets", "_origins", "_parts", "_size", "at", "cut", "end", "following", "unended")

    def __init__(self, start: int) -> None:
        self._offsets, self._origins = [0], [start]
        self._parts: list[str] = []
        self._size = 0
        self.at, self.end = 0, start
        self.cut, self.unended = False, ""
        self.following: re.Match[str] | None = None

    @property
    def text(self) -> str:
        """What is left."""
        if len(self._parts) != 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0]

    def origin(self, at: int) -> int:
        """Return where a place of `text` is in the original text."""
        piece = bisect_right(self._offsets, at) - 1
        return self._origins[piece] + at - self._offsets[piece]

    def add(self, part: str) -> None:
        """Add a part of the text."""
        self._parts.append(part)
        self._size += len(part)

    def go_to(self, origin: int) -> None:
        """Add what follows from a place of the original text."""
        self._offsets.append(self._size)
        self._origins.append(origin)


class CommentSyntax:
    """What a comment is, and whether there are literals.

    Attributes:
        gap: Matches blanks and comments.
        blocks: A comment may begin with ``/*``.
    """

    def __init__(self, comments: Sequence[str], *, literals: bool) -> None:
        """Begin with the comments: any of ``#`` and ``//``, which reach to the end of the line, and ``/*``.

        Args:
            comments: The comments.
            literals: A text between three double quotes is a string, in which a backslash has no meaning.
        """
        self.blocks = "/*" in comments
        comment = "|".join(_COMMENTS[opener] for opener in comments) or "(?!)"
        block = rf"|(?P<block>{_COMMENTS['/*']})" if self.blocks else ""
        ended = "|".join(_COMMENTS[opener] for opener in comments if opener != "/*") or "(?!)"
        starts = "".join(sorted({opener[0] for opener in comments}))
        opened = "".join(opener[1] for opener in comments if opener[0] == "/")  # after a slash
        strings = [_FILLED, rf'""[^"{starts}]'] if literals else [_STRING]
        inner = [*strings, *([rf'/[^"{starts}{opened}]'] if opened else [])]
        plain = rf'[^"{starts}]*+'
        literal = r'|"{3}(?P<literal>.*?)"{3}' if literals else ""
        special = rf"(?:(?P<comment>{ended}){block}{literal})"
        marks = [opener for opener in comments if opener != "/*"]
        self._likely = [re.compile(rf"{mark}(?<=[\s,{{}}\[\]]{mark})[^\n]*+") for mark in marks]
        self.gap = re.compile(rf"\s*+(?:(?:{comment})\s*+)*+", re.DOTALL)
        self._run = re.compile(rf"(?P<plain>{plain}(?:(?:{'|'.join(inner)}){plain})*+){special}?", re.DOTALL)
        self._special = re.compile(special, re.DOTALL)

    def without_likely(self, text: str) -> str:
        """Return a text without what most probably is a comment up to the end of its line.

        The result is JSON only if each of them was one: a string that lost its end has none on its line.
        """
        for likely in self._likely:
            text = likely.sub("", text)
        return text

    def stretch(self, text: str, start: int, size: int, *, until: re.Pattern[str]) -> Stretch:
        """Return a text without comments and literals, from a place that is not inside of one.

        Args:
            text: The text.
            start: The place.
            size: The characters after which it ends, at the end of a line.
            until: The stretch ends before it, unless that is in a comment or a literal. It begins with a line break.
        """
        stretch, at = Stretch(start), start
        stretch.end = self._bound(stretch, text, at, size, until)
        while True:
            run = self._run.match(text, at, stretch.end)
            assert run is not None  # nothing is a run, too
            begins = run.end("plain")
            stretch.add(text[at:begins])
            if begins == stretch.end:
                return stretch
            match = run if run.end() > begins else self._special.match(text, begins)  # it may end after the bound
            if match is None and (single := _single(text, begins)):
                stretch.add(single)
                at = begins + len(single)
                continue
            if match is None:
                stretch.unended = '"""' if text[begins] == '"' else "/*"
                stretch.cut, stretch.following, stretch.end = False, None, begins
                return stretch
            at = match.end()
            if match.lastgroup != "comment":
                replaced, lines = _replacement(text[begins:at])
                stretch.go_to(begins)
                stretch.add(replaced)
                stretch.go_to(at)
                stretch.add(lines)
            stretch.go_to(at)
            if at > stretch.end:
                stretch.end = self._bound(stretch, text, at, max(0, start + size - at), until)

    def _bound(self, stretch: Stretch, text: str, at: int, size: int, until: re.Pattern[str]) -> int:
        end = bounded(text, at, size)
        stretch.following = until.search(text, at, end)
        stretch.cut = stretch.following is None and end < len(text)
        return stretch.following.start() if stretch.following else end


def _single(text: str, at: int) -> str:
    """Return what begins no comment and no literal: a slash, an empty string, or a quote that ends its line."""
    if text[at] == "/":
        return "" if text.startswith("/*", at) else "/"
    return "" if text.startswith('"""', at) else '""' if text.startswith('""', at) else '"'


def bounded(text: str, at: int, size: int) -> int:
    """Return where the last line ends within some characters from a place, or else the line of that place."""
    if at + size >= len(text):
        return len(text)
    line = text.rfind("\n", at, at + size)
    line = line if line >= 0 else text.find("\n", at + size)
    return line if line >= 0 else len(text)


def after_blanks(text: str, at: int) -> int:
    """Return the first place at or after another one that is not blank, or the end of the text."""
    blanks = _BLANKS.match(text, at)
    assert blanks is not None  # nothing is blank, too
    return blanks.end()


def _replacement(written: str) -> tuple[str, str]:
    """Return what stands for a block comment or a literal, and its line breaks: a server's errors keep their line."""
    if written.startswith('"'):
        return json.dumps(written[3:-3], ensure_ascii=False), "\n" * written.count("\n")
    return " ", "\n" * written.count("\n")
