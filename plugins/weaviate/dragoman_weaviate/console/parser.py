"""A console text to requests: REST lines with an optional JSON body, and GraphQL documents (W26, W28-W30)."""

from __future__ import annotations

import re

import msgspec

from dragoman_api import ConsoleRequest, HttpRequest
from dragoman_api.json_text import decode
from dragoman_api.kit.console_text import ConsoleReader, RestLine
from dragoman_weaviate import graphql, read_or_write

# An unterminated string ends at a comment or its line's end, so that no line is scanned twice.
_TOKEN = re.compile(
    r'"""(?:\\"""|.)*?"""|"(?:[^"\\\n]++|\\[^\n])*+"|"(?:[^"\\\n#]++|\\[^\n#])*+|#[^\n]*+|[{}]', re.DOTALL
)
_JSON = re.compile(r'\{(?:\s++|#[^\n]*+)*+["}]|\[')
_WORD = re.compile(r"\{|\w+")
_PREFIXED = re.compile(r"/(v1([/?].*)?)?")
_EXAMPLE = "expected GET /v1/schema, or GraphQL: { Get { Article(limit: 10) { title _additional { id } } } }"


class _Envelope(msgspec.Struct):
    query: str


def parse(text: str) -> list[ConsoleRequest]:
    """Split a console text into requests: at REST lines, and between GraphQL operations.

    Raises:
        ConsoleSyntaxError: With line and column, both from 1.
    """
    reader = ConsoleReader(text)
    requests: list[ConsoleRequest] = []
    while reader.skip():
        start = reader.at
        if line := reader.rest_line():
            request = _rest(reader, line)
        elif _JSON.match(reader.text, start):
            request = _envelope(reader)
        else:
            request = _graphql(reader)
        writes = read_or_write.may_write(request)
        requests.append(ConsoleRequest(request=request, writes=writes, line=reader.line(start)))
    return requests


def _rest(reader: ConsoleReader, line: RestLine) -> HttpRequest:
    if not line.path.startswith("/"):
        raise reader.error(line.at, _EXAMPLE)
    path, body = reader.path(line), None
    if reader.skip() and not reader.fresh:
        body = reader.value()
        if reader.skip() and not reader.fresh:
            raise reader.error(reader.at, "there is more than one JSON value on the line")
    if _JSON.match(reader.text, reader.at):
        body = reader.value()  # a body below replaces one on the line
    return HttpRequest(line.method, path if _PREFIXED.fullmatch(path) else f"/v1{path}", body)


def _envelope(reader: ConsoleReader) -> HttpRequest:
    """Read a JSON object that holds a query and its variables."""
    start = reader.at
    text = reader.value()
    try:
        decode(text, _Envelope)
    except ValueError:
        raise reader.error(start, f'JSON alone is a request only as {{"query": …}}; {_EXAMPLE}') from None
    return HttpRequest("POST", "/v1/graphql", text)


def _graphql(reader: ConsoleReader) -> HttpRequest:
    """Read one operation and its fragments."""
    start, ends, operations = reader.at, reader.at, 0
    while reader.skip():
        word = _WORD.match(reader.text, reader.at)
        kind = word[0] if word else ""
        if kind not in ("{", "query", "fragment") or (operations and kind != "fragment"):
            break
        if kind == "{" and _JSON.match(reader.text, reader.at):
            break
        operations += kind != "fragment"
        ends = _end_of_definition(reader)
        reader.take(ends)
    if ends == start:
        word = _WORD.match(reader.text, start)
        if word and word[0] in ("mutation", "subscription"):
            raise reader.error(start, f"GraphQL only reads here: use REST lines instead of a {word[0]}")
        raise reader.error(start, _EXAMPLE)
    try:
        return graphql.query(reader.text[start:ends])
    except UnicodeEncodeError:
        raise reader.error(start, "the document is not valid Unicode") from None


def _end_of_definition(reader: ConsoleReader) -> int:
    open_braces: list[int] = []
    for token in _TOKEN.finditer(reader.text, reader.at):
        if token[0] == "{":
            open_braces.append(token.start())
        elif token[0] == "}":
            if not open_braces:
                raise reader.error(token.start(), "there is no '{' to this '}'")
            open_braces.pop()
            if not open_braces:
                return token.end()
    raise reader.error(open_braces[-1] if open_braces else reader.at, "the GraphQL document has no end")
