"""A console text to requests: REST lines with an optional JSON body, and GraphQL documents (W26, W28-W30)."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

from dragoman_api import ConsoleRequest, HttpRequest
from dragoman_api.errors import ConsoleSyntaxError
from dragoman_weaviate import graphql, read_or_write

# An unterminated string ends at a comment or its line's end, so that no line is scanned twice.
_TOKEN = re.compile(r'"""(?:\\"""|.)*?"""|"(?:[^"\\\n]|\\[^\n])*+"|"(?:[^"\\\n#]|\\[^\n#])*+|#[^\n]*|[{}]', re.DOTALL)
_REST = re.compile(r"(?im)^[^\S\n]*(?P<method>GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)[^\S\n]+(?P<path>\S+)(?=\s|$)")
_JSON = re.compile(r'\{\s*["}]|\[')
_WORD = re.compile(r"\{|\w+")
_PREFIXED = re.compile(r"/(v1([/?].*)?)?")
_VISIBLE = "".join(map(chr, range(0x21, 0x7F))).replace("#", "")
_EXAMPLE = "expected GET /v1/schema, or GraphQL: { Get { Article(limit: 10) { title _additional { id } } } }"
# Digits stay text: Python refuses integers of more than 4,300 digits.
_decoder = json.JSONDecoder(parse_int=str, parse_float=str)


def parse(text: str) -> list[ConsoleRequest]:
    """Split a console text into requests: at REST lines, and between GraphQL operations.

    Raises:
        ConsoleSyntaxError: With line and column, both from 1.
    """
    return _Parser(text.removeprefix("\ufeff")).requests()


class _Parser:
    """Parses one text; comments are blanked for parsing, and sent unchanged with GraphQL."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blank = _TOKEN.sub(lambda found: " " * len(found[0]) if found[0][0] == "#" else found[0], text)
        self.at = 0

    def requests(self) -> list[ConsoleRequest]:
        found: list[ConsoleRequest] = []
        while self._skip():
            start = self.at
            line_start = self.text.rfind("\n", 0, start) + 1
            if rest := _REST.match(self.blank, line_start):
                request = self._rest(rest)
            elif _JSON.match(self.blank, start):
                request = self._envelope()
            else:
                request = self._graphql()
            line = self.text.count("\n", 0, start) + 1
            found.append(ConsoleRequest(request=request, writes=read_or_write.may_write(request), line=line))
        return found

    def _skip(self) -> bool:
        self.at = len(self.blank) - len(self.blank[self.at :].lstrip())
        return self.at < len(self.blank)

    def _rest(self, head: re.Match[str]) -> HttpRequest:
        path = self._path(head)
        ends = self.blank.find("\n", head.end())
        ends = len(self.blank) if ends < 0 else ends
        body = None
        self.at = head.end()
        if self._skip() and self.at < ends:
            body = self._json()
            if self._skip() and self.at < ends:
                raise self._error(self.at, "there is more than one JSON value on the line")
        self.at = max(self.at, ends)
        if self._skip() and _JSON.match(self.blank, self.at):
            body = self._json()  # a body below replaces one on the line
        return HttpRequest(head["method"].upper(), path, body)

    def _path(self, head: re.Match[str]) -> str:
        given = head["path"]
        if not given.startswith("/"):
            raise self._error(head.start("method"), _EXAMPLE)
        if given.startswith("//"):  # credentials must not go to another host
            reason = "a path begins with one '/': requests go to the connection's host only"
            raise self._error(head.start("path"), reason)
        try:
            encoded = quote(given, safe=_VISIBLE).rstrip("?")
        except UnicodeEncodeError:
            raise self._error(head.start("path"), "the path is not valid Unicode") from None
        return encoded if _PREFIXED.fullmatch(encoded) else f"/v1{encoded}"

    def _json(self) -> str:
        """Consume one JSON value."""
        start = self.at
        try:
            _, self.at = _decoder.raw_decode(self.blank, start)
            self.blank[start : self.at].encode()
        except json.JSONDecodeError as error:
            raise self._error(error.pos, f"the body is not valid JSON: {error.msg}") from None
        except (RecursionError, UnicodeEncodeError) as error:
            raise self._error(start, f"the body cannot be sent: {error}") from None
        return self.blank[start : self.at]

    def _envelope(self) -> HttpRequest:
        """Consume a JSON object that holds a query and its variables."""
        start = self.at
        text = self._json()
        value = _decoder.decode(text)
        if not isinstance(value, dict) or not isinstance(value.get("query"), str):
            raise self._error(start, f'JSON alone is a request only as {{"query": …}}; {_EXAMPLE}')
        return HttpRequest("POST", "/v1/graphql", text)

    def _graphql(self) -> HttpRequest:
        """Consume one operation and its fragments."""
        start, ends, operations = self.at, self.at, 0
        while self._skip():
            word = _WORD.match(self.blank, self.at)
            kind = word[0] if word else ""
            if kind not in ("{", "query", "fragment") or (operations and kind != "fragment"):
                break
            if kind == "{" and _JSON.match(self.blank, self.at):
                break
            operations += kind != "fragment"
            ends = self._balanced()
        if ends == start:
            word = _WORD.match(self.blank, start)
            if word and word[0] in ("mutation", "subscription"):
                raise self._error(start, f"GraphQL only reads here: use REST lines instead of a {word[0]}")
            raise self._error(start, _EXAMPLE)
        self.at = ends
        try:
            return graphql.query(self.text[start:ends])
        except UnicodeEncodeError:
            raise self._error(start, "the document is not valid Unicode") from None

    def _balanced(self) -> int:
        """Consume one definition, and return its end."""
        open_braces: list[int] = []
        for token in _TOKEN.finditer(self.blank, self.at):
            if token[0] == "{":
                open_braces.append(token.start())
            elif token[0] == "}":
                if not open_braces:
                    raise self._error(token.start(), "there is no '{' to this '}'")
                open_braces.pop()
                if not open_braces:
                    self.at = token.end()
                    return token.end()
        raise self._error(open_braces[-1] if open_braces else self.at, "the GraphQL document has no end")

    def _error(self, at: int, reason: str) -> ConsoleSyntaxError:
        line, column = self.text.count("\n", 0, at) + 1, at - self.text.rfind("\n", 0, at)
        return ConsoleSyntaxError(f"line {line}, column {column}: {reason}", details={"line": line, "column": column})
