"""The place of the cursor in a console text of REST requests: a method, a path, or a key or value of a body."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from dragoman_api.console import MAX_SUGGESTIONS, SUGGESTION_TEXT, Completion, Suggestion, SuggestionKind
from dragoman_api.errors import QueryError
from dragoman_api.json_text import encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_api.console import CompletionRequest

    Word = tuple[str, SuggestionKind, str]  # the text, what it is, a detail

METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "PATCH")

_HEAD = re.compile(rf"^[^\S\n]*({'|'.join(METHODS)})[^\S\n]+(\S*)", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"[^\S\n]*([A-Za-z]*)\Z")
_REST = re.compile(r"[\w.@*+-]*")
_BARE = re.compile(r"[\w.@*+-]*\Z")
# Possessive: no character is looked at more than twice, even if a string or a comment has no end. An object without
# inner ones is one token.
# No part that is repeated so looks ahead: Python 3.11.2 would take what it looked at.
_WITHIN = r'[^{}\[\]"#/]'
_STRING = rf'"(?:[^"\\\n]++|\\[^\n])++"|""{_WITHIN}'  # an empty one is followed by something: it begins no literal
_FLAT = rf'(?P<flat>\{{(?:{_WITHIN}++|{_STRING}|)*+(?:"")?\}}|\[(?:{_WITHIN}++|{_STRING}|)*+(?:"")?\])'
_TOKEN = re.compile(
    rf"{_FLAT}|"
    r'"{3}[^"]*+(?:"{1,2}+[^"]++|)*+(?:(?P<literal>"{3})|"{1,2}+)?|"(?P<text>(?:[^"\\\n]++|\\[^\n])*+)(?P<closed>"?)(?P<key>\s*+:)?'
    r"|(?P<comment>#[^\n]*+|//[^\n]*+)|/\*[^*]*+(?:\*++[^*/][^*]*+)*+(?:(?P<ended>\*++/)|\*++)?|(?P<open>[{\[])|(?P<close>[}\]])",
)
_DEPTH = 200
_NEAR = 4_096


class Where(StrEnum):
    """What surrounds the cursor."""

    METHOD = "method"
    PATH = "path"
    KEY = "key"
    VALUE = "value"
    NOTHING = "nothing"


class ConsolePlace(msgspec.Struct, frozen=True, kw_only=True):
    """The place of the cursor.

    Attributes:
        where: What surrounds it; ``nothing`` in a comment or after a finished body.
        typed: The characters of the word before the cursor.
        start: Where the word begins.
        end: Where it ends, which may be after the cursor.
        quoted: The word is in a string.
        method: Of the request, in capitals; empty in a method.
        path: Of the request: as far as the cursor if it is in the path.
        keys: The keys around the cursor from the outermost, an empty text for an element of an array. In a value, the
            last is its own key.
    """

    where: Where
    typed: str = ""
    start: int = 0
    end: int = 0
    quoted: bool = False
    method: str = ""
    path: str = ""
    keys: tuple[str, ...] = ()

    def complete(self, words: Iterable[Word]) -> Completion:
        """Return the words that begin as the typed one does, ignoring case, then those that contain it.

        In a body, a word that is not in a string gets its quotes.
        """
        typed = self.typed.casefold()
        starting: list[Suggestion] = []
        containing: list[Suggestion] = []
        seen: set[str] = set()
        for text, kind, detail in words:
            folded = text.casefold()
            if typed not in folded or text in seen or len(text) > SUGGESTION_TEXT - 2:
                continue
            seen.add(text)
            spelling = self._written(text)
            suggestion = Suggestion(text=spelling, kind=kind, start=self.start, end=self.end, detail=detail)
            (starting if folded.startswith(typed) else containing).append(suggestion)
        suggestions = starting + containing
        return Completion(suggestions=suggestions[:MAX_SUGGESTIONS], more=len(suggestions) > MAX_SUGGESTIONS)

    def _written(self, text: str) -> str:
        if self.where not in (Where.KEY, Where.VALUE):
            return text
        string = encode(text)
        return string[1:-1] if self.quoted else string


def find_place(request: CompletionRequest, *, separators: str = "/") -> ConsolePlace:
    """Find the place of the cursor; the text need not be complete or correct. Time grows with its length.

    Args:
        request: The text and the position.
        separators: The characters that separate the words of a path.

    Raises:
        QueryError: The position is not in the text.

    >>> from dragoman_api.console import CompletionRequest
    >>> text = 'GET /a/_search {"query": {"te'
    >>> place = find_place(CompletionRequest(text=text, position=len(text)))
    >>> place.where, place.typed, place.path, place.keys
    (<Where.KEY: 'key'>, 'te', '/a/_search', ('query',))
    """
    text, position = request.text, request.position
    if not 0 <= position <= len(text):
        raise QueryError(f"position {position} is not in the text of {len(text)} characters")
    line_at = text.rfind("\n", 0, position) + 1
    line = text[line_at:position]
    head = _last_head(text, position)
    rest = _REST.match(text, position)
    end = rest.end() if rest else position
    if head is not None and head.start(2) <= position <= head.end(2):
        path = text[head.start(2) : position]
        start = position - len(re.split(f"[{re.escape(separators)}]", path)[-1])
        return ConsolePlace(
            where=Where.PATH, typed=text[start:position], start=start, end=end, method=head[1].upper(), path=path
        )
    if (word := _WORD.match(line)) is not None and (head is None or not line.strip() or word[1]):
        inside = head is not None and _body(text, head, position)
        if not inside or not (inside.keys or inside.quoted or inside.where is Where.KEY):
            start = position - len(word[1])
            return ConsolePlace(where=Where.METHOD, typed=word[1], start=start, end=end)
        return _placed(inside, position, end)
    if head is None:
        return ConsolePlace(where=Where.NOTHING, start=position, end=position)
    return _placed(_body(text, head, position), position, end)


def _last_head(text: str, position: int) -> re.Match[str] | None:
    """Return the last line up to the position that begins with a method: looked for from the end, in growing pieces."""
    size, start = _NEAR, position
    while start:
        start = text.rfind("\n", 0, max(0, position - size)) + 1
        match = None
        for head in _HEAD.finditer(text, start):
            if head.start(2) > position:
                break
            match = head
        if match is not None:
            return match
        size *= 4
    return None


def _placed(place: ConsolePlace, position: int, end: int) -> ConsolePlace:
    if place.where is Where.NOTHING:
        return replace(place, start=position, end=position)
    return replace(place, start=position - len(place.typed), end=end)


def _body(text: str, head: re.Match[str], position: int) -> ConsolePlace:
    """Read the body as far as the cursor."""
    stack: list[tuple[bool, str]] = []  # for each open bracket: whether it is an object's, and the key before it
    key, typed, quoted, last = "", "", False, head.end(2)
    token = None
    for token in _TOKEN.finditer(text, head.end(2), position):
        kind = token.lastgroup
        if kind == "key":
            key = token["text"]
        elif kind == "flat":
            key = ""
        elif kind == "open":
            if len(stack) >= _DEPTH:
                return ConsolePlace(where=Where.NOTHING)
            stack.append((token["open"] == "{", key))
            key = ""
        elif kind == "close":
            key = ""
            if stack:
                stack.pop()
    if token is not None:
        last, ends = token.end(), token.end() == position
        if ends and (token.lastgroup == "comment" or (token.lastgroup is None and token[0][:2] in ('""', "/*"))):
            return ConsolePlace(where=Where.NOTHING)
        if ends and token["text"] is not None and not token["closed"]:
            typed, quoted, last = token["text"], True, token.start()
    if not quoted:
        match = _BARE.search(text, max(last, position - SUGGESTION_TEXT), position)
        typed = match[0] if match else ""
    before = text[last : position - len(typed) - quoted].rstrip() or text[:last].rstrip()[-1:]
    return _in_body(stack, key, before[-1:], typed, quoted=quoted, head=head)


def _in_body(
    stack: list[tuple[bool, str]], key: str, before: str, typed: str, *, quoted: bool, head: re.Match[str]
) -> ConsolePlace:
    keys = tuple(name for _, name in stack[1:])
    context = {"typed": typed, "quoted": quoted, "method": head[1].upper(), "path": head[2]}
    if not stack:
        return ConsolePlace(where=Where.NOTHING)
    if stack[-1][0] and before in ("{", ","):
        return ConsolePlace(where=Where.KEY, keys=keys, **context)  # type: ignore[arg-type]
    if stack[-1][0] and before == ":":
        return ConsolePlace(where=Where.VALUE, keys=(*keys, key), **context)  # type: ignore[arg-type]
    if not stack[-1][0] and before in ("[", ","):
        return ConsolePlace(where=Where.VALUE, keys=(*keys, ""), **context)  # type: ignore[arg-type]
    return ConsolePlace(where=Where.NOTHING)
