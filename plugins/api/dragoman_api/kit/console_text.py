"""Console texts: splitting them into requests, with a line and a column for every fault.

A text is read once from its beginning to its end, in time that is proportional to its length, whatever it holds.

JSON in it may have comments. Each character is looked at once, by regular expressions whose parts never give back what
they matched. No part that is repeated so looks ahead: Python 3.11.2 would take what it looked at.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import msgspec

from dragoman_api.changes import HttpRequest, request_path
from dragoman_api.console import ConsoleRequest
from dragoman_api.errors import ConsoleSyntaxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_METHOD = r"(?i:GET|POST|PUT|DELETE|HEAD|PATCH|OPTIONS)"
_HEAD = re.compile(rf"(?P<method>{_METHOD})(?:[^\S\n]+(?P<path>(?![#{{]|//\s)\S+))?(?=\s|\Z)")
_NEXT_HEAD = re.compile(rf"\n[^\S\n]*+{_HEAD.pattern}")
_WORD = re.compile(r"(?!(true|false|null)\b)[A-Za-z_*%.][^\s{]*(?=\s|\Z)")  # the rest of a path, and no JSON
_BLOCK = re.compile(r"(?:[^\n]*\S[^\n]*(?:\n|$))+")  # lines that are not empty
_NEAR = 8
_ELSEWHERE = re.compile(r"[/\\]{2}|/?\\|@|[A-Za-z][A-Za-z0-9+.-]*://")
_VISIBLE = "".join(map(chr, range(0x21, 0x7F))).replace("#", "").replace("\\", "")
# Digits stay text: Python refuses integers of more than 4,300 digits.
_decoder = json.JSONDecoder(parse_int=str, parse_float=str)
_SHORT = 4_096
_STRETCH = 16_384  # characters of which the comments are removed together, or twice as many until they hold a value


class RestLine(NamedTuple):
    """The first line of a REST request: a method, and a path as it was typed.

    Attributes:
        method: In capitals.
        path: Empty if there is none.
        at: The place of the method in the text.
        path_at: The place of the path, or where the method ends.
    """

    method: str
    path: str
    at: int
    path_at: int


class ConsoleReader:
    r"""Reads a console text piece by piece; the caller decides what comes next.

    >>> reader = ConsoleReader('PUT /a  # note\n{"n": 1.10, # why\n "m": 2}')
    >>> reader.skip(), reader.rest_line()
    (True, RestLine(method='PUT', path='/a', at=0, path_at=4))
    >>> reader.values()
    ['{"n": 1.10, \n "m": 2}']

    Attributes:
        text: The text, without a byte order mark.
        at: The place that is read next, from 0.
        fresh: Only blanks and comments are between `at` and the beginning of its line; see `skip`.
    """

    def __init__(self, text: str, *, comments: Sequence[str] = ("#",), literals: bool = False) -> None:
        r"""Begin to read a text.

        Args:
            text: The text.
            comments: What begins a comment: any of ``#`` and ``//``, which reach to the end of the line, and ``/*``.
            literals: A text between three double quotes is a JSON string, in which a backslash has no meaning.
        """
        self.text = text.removeprefix("\ufeff")
        self.at = 0
        self.fresh = True
        self._literals = literals
        self._syntax = CommentSyntax(comments, literals=literals)
        self._plain = True  # so far, no value held a comment or a literal
        self._stretch: Stretch | None = None  # what follows, without comments, up to the next REST line at most
        self._head: tuple[int, re.Match[str] | None] = -1, None  # the last REST line that was seen ahead, and where
        self._line = (0, 1)

    def skip(self) -> bool:
        """Skip blanks and comments, and return whether anything is left.

        Raises:
            ConsoleSyntaxError: A comment has no end.
        """
        if self.fresh and self._head[0] == self.at:
            return True
        gap = self._syntax.gap.match(self.text, self.at)
        assert gap is not None  # nothing is a gap, too
        self.at = gap.end()
        self.fresh = self.fresh or "\n" in gap[0]
        if self._syntax.blocks and self.text.startswith("/*", self.at):
            raise self.error(self.at, "/* has no end")
        return self.at < len(self.text)

    def rest_line(self) -> RestLine | None:
        """Read a method and a path if the line begins with a method, after `skip`."""
        head = self._match_head()
        if head is None:
            return None
        self._stretch = None
        self.at, self.fresh = head.end(), False
        path_at = head.end() if head["path"] is None else head.start("path")
        return RestLine(head["method"].upper(), head["path"] or "", head.start("method"), path_at)

    def _match_head(self) -> re.Match[str] | None:
        if self._head[0] == self.at:
            return self._head[1]
        return _HEAD.match(self.text, self.at) if self.fresh else None

    def values(self) -> list[str]:
        """Read the JSON values up to the next REST line, each in the digits and the order that were typed.

        Raises:
            ConsoleSyntaxError: A value is not JSON, or two are on one line.
        """
        values: list[str] = []
        while self.skip() and self._match_head() is None:
            if values and not self.fresh:
                raise self.error(self.at, "a second JSON value on one line")
            if not values and not self.fresh and _WORD.match(self.text, self.at):
                raise self.error(self.at, "the path ends before this; write a blank in a path as %20")
            values.append(self.value())
            if self.fresh:  # at the next REST line
                break
        return values

    def take(self, end: int) -> str:
        """Read the text up to a place, whatever it is."""
        start, self.at, self.fresh, self._stretch = self.at, end, False, None
        return self.text[start:end]

    def value(self) -> str:
        """Read one JSON value, without its comments.

        Raises:
            ConsoleSyntaxError: There is none.
        """
        start, self.fresh = self.at, False
        value = self._plain_value()
        if value is None and self._stretch is None:
            value = self._lone_value()
        if value is None:
            value = self._commented_value()
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self.error(start, f"the body cannot be sent: {error}") from None
        return value

    def _plain_value(self) -> str | None:
        """Read a value that is JSON as it stands; None if it is not, after which no other value is tried."""
        if not self._plain:
            return None
        start = self.at
        try:
            _, end = _decoder.raw_decode(self.text, start)
        except (json.JSONDecodeError, RecursionError):
            self._plain = False  # each failure takes as long as all that was read before
            return None
        if self._literals and self.text.startswith('""', start) and self.text.startswith('"', end):
            return None
        self.at = end
        return self.text[start:end]

    def _lone_value(self) -> str | None:
        """Read a value up to the next REST line if it is short and its comments are easy to tell."""
        end = bounded(self.text, self.at, _SHORT)
        if (head := _NEXT_HEAD.search(self.text, self.at, end)) is not None:
            end = head.start()
        elif end < len(self.text):
            return None
        value = self._syntax.without_likely(self.text[self.at : end]).rstrip()
        try:
            _, whole = _decoder.raw_decode(value)
        except (json.JSONDecodeError, RecursionError):
            return None
        if whole < len(value):
            return None
        self.at = end
        self._go_to(head)
        return value

    def _commented_value(self) -> str:
        """Read a value that may hold comments and literals."""
        start, size = self.at, _STRETCH
        while True:
            if anew := self._stretch is None:
                self._stretch = self._syntax.stretch(self.text, start, size, until=_NEXT_HEAD)
            stretch = self._stretch
            begin = after_blanks(stretch.text, stretch.at)
            try:
                _, end = _decoder.raw_decode(stretch.text, begin)
            except json.JSONDecodeError as error:
                if not stretch.cut:
                    raise self._not_json(stretch, error) from None
                self._stretch, size = None, size * 2 if anew else size  # the value may end later
                continue
            except RecursionError as error:
                raise self.error(start, f"the body cannot be sent: {error}") from None
            stretch.at, self.at = end, stretch.origin(end)
            if after_blanks(stretch.text, end) == len(stretch.text):
                self._go_to(stretch.following)
            return stretch.text[begin:end]

    def _not_json(self, stretch: Stretch, error: json.JSONDecodeError) -> ConsoleSyntaxError:
        if stretch.unended and error.pos >= len(stretch.text):
            return self.error(stretch.end, f"{stretch.unended} has no end")
        at = stretch.origin(error.pos)
        if self._literals and '""""' in self.text[max(0, at - _NEAR) : at + _NEAR]:
            reason = "a text between three double quotes cannot end with one"
            return self.error(at, f'{reason}: write it as a JSON string, with \\" for each')
        return self.error(at, f"the body is not valid JSON: {error.msg}")

    def _go_to(self, head: re.Match[str] | None) -> None:
        if head is not None:
            self.at, self.fresh = head.start("method"), True
            self._head = self.at, head

    def line(self, at: int) -> int:
        """Return the line of a place, from 1; quick if places are asked for in their order."""
        before, line = self._line if at >= self._line[0] else (0, 1)
        line += self.text.count("\n", before, at)
        self._line = at, line
        return line

    def error(self, at: int, reason: str) -> ConsoleSyntaxError:
        """Build an error at a place, with line and column from 1."""
        line, column = self.line(at), at - self.text.rfind("\n", 0, at)
        return ConsoleSyntaxError(f"line {line}, column {column}: {reason}", details={"line": line, "column": column})

    def path(self, line: RestLine) -> str:
        """Return the path of a REST line as it is sent: from its first slash, percent-encoded.

        Raises:
            ConsoleSyntaxError: It names another host, to which credentials must not go, or cannot be sent.
        """
        if _ELSEWHERE.match(line.path):
            reason = "a path begins with one '/': requests go to the connection's host only"
            raise self.error(line.path_at, reason)
        try:
            plain = line.path.isascii() and line.path.isprintable() and not {*"#\\"} & {*line.path}
            encoded = (line.path if plain else quote(line.path, safe=_VISIBLE)).rstrip("?")
        except UnicodeEncodeError:
            raise self.error(line.path_at, "the path is not valid Unicode") from None
        try:
            return request_path(encoded if encoded.startswith("/") else f"/{encoded}")
        except ValueError as error:
            raise self.error(line.path_at, str(error)) from None


def ndjson(reader: ConsoleReader, line: RestLine, values: Sequence[str]) -> str:
    """Write JSON values one per line, as endpoints for many rows take them.

    Raises:
        ConsoleSyntaxError: A value cannot be written on one line.
    """
    try:
        return "".join([f"{_on_one_line(value)}\n" for value in values])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise reader.error(line.at, f"the body cannot be written line by line: {error}") from None


def _on_one_line(value: str) -> str:
    return msgspec.json.format(value, indent=-1) if "\n" in value else value


class TextBlock(NamedTuple):
    """A part of a console text between empty lines, for a language whose requests are texts of any form.

    Attributes:
        text: Its lines without those that begin with ``#``.
        line: The line of the console text that `text` begins in, from 1.
        source: All its lines, as they were typed.
        at: The place of `source` in the console text.
    """

    text: str
    line: int
    source: str
    at: int


def text_blocks(reader: ConsoleReader) -> Iterator[TextBlock]:
    r"""Split a text at empty lines; blocks of nothing but comments are left out.

    >>> [block[:2] for block in text_blocks(ConsoleReader("# all\nSELECT 1\n  FROM a\n\n# none\n\nSELECT 2"))]
    [('SELECT 1\n  FROM a', 2), ('SELECT 2', 7)]
    """
    for match in _BLOCK.finditer(reader.text):
        lines = match[0].split("\n")
        numbers = [number for number, line in enumerate(lines) if not line.lstrip().startswith("#")]
        if text := "\n".join(lines[number] for number in numbers).strip():
            first = next(number for number in numbers if lines[number].strip())
            yield TextBlock(text, reader.line(match.start()) + first, match[0], match.start())


def rest_requests(text: str, may_write: Callable[[HttpRequest], bool]) -> list[ConsoleRequest]:
    r"""Split a text into REST requests, each with at most one JSON value; ``#`` begins a comment.

    >>> [str(each.request) for each in rest_requests('GET /a\n# next\nPUT /b {"n": 1}', lambda request: True)]
    ['GET /a', 'PUT /b\n{"n": 1}']

    Args:
        text: The text.
        may_write: Whether a request may change something; True if in doubt.

    Raises:
        ConsoleSyntaxError: With line and column, both from 1.
    """
    reader = ConsoleReader(text)
    requests: list[ConsoleRequest] = []
    while reader.skip():
        line = reader.rest_line()
        if line is None:
            raise reader.error(reader.at, "a request begins with a method and a path: GET /")
        path, values = reader.path(line), reader.values()
        if len(values) > 1:
            raise reader.error(line.at, "a request has at most one JSON value")
        request = HttpRequest(line.method, path, values[0] if values else None)
        requests.append(ConsoleRequest(request=request, writes=may_write(request), line=reader.line(line.at)))
    return requests


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
        self.gap = re.compile(rf"\s*+(?:(?:{comment})\s*+|)*+", re.DOTALL)
        self._run = re.compile(rf"(?P<plain>{plain}(?:(?:{'|'.join(inner)}){plain}|)*+){special}?", re.DOTALL)
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
