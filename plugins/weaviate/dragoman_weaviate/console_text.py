"""Console texts: split into requests, REST or GraphQL (W26, W28-W30), and completed with what the schema names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from dragoman_api import ConsoleRequest, HttpRequest
from dragoman_api.console import MAX_SUGGESTIONS, Completion, CompletionRequest, Suggestion, SuggestionKind
from dragoman_api.json_text import decode
from dragoman_api.kit.console_places import METHODS, ConsolePlace, Where, find_place
from dragoman_api.kit.console_text import ConsoleReader, RestLine
from dragoman_weaviate import graphql, protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dragoman_api.kit.console_places import Word

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
        writes = protocol.may_write(request)
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


PATHS = (
    "schema", "objects", "batch/objects", "graphql", "meta", "nodes", "aliases", "backups/filesystem",
    "cluster/statistics", "users/own-info", "authz/roles", ".well-known/ready", ".well-known/live",
)  # fmt: skip
_ROOTS = ("Get", "Aggregate")
_ADDITIONAL = ("id", "vector", "creationTimeUnix", "lastUpdateTimeUnix", "distance", "certainty", "score")
_ARGUMENTS = ("where", "limit", "offset", "sort", "after", "tenant", "nearVector", "nearObject", "bm25", "hybrid")
_NAMED = ("schema", "objects", "class", "collection")
_START = re.compile(r"^(?:[^\S\n]*\{|query\b|[^\S\n]*(?:GET|POST|PUT|DELETE|HEAD|PATCH)\b)", re.MULTILINE)
_NAME = re.compile(
    r'"""[^"]*+(?:"{1,2}+[^"]++|)*+(?:"""|"{1,2}+)?|"(?:[^"\\\n]++|\\[^\n])*+"?|#[^\n]*+|[{}()]|[A-Za-z_]\w*+'
)
_TYPED = re.compile(r"\w*\Z", re.ASCII)
_REST = re.compile(r"\w*", re.ASCII)


def complete(request: CompletionRequest, schema: Mapping[str, Sequence[tuple[str, str]]]) -> Completion:
    """Suggest how to continue a text.

    Args:
        request: The text and the place.
        schema: The properties of each collection, with their types.

    Raises:
        QueryError: The position is not in the text.
    """
    place = find_place(request)
    before = request.text[: request.position]
    if place.where is Where.PATH:
        return place.complete(_paths(place, schema))
    if place.where is Where.METHOD and not _opened(before):
        return place.complete((method, SuggestionKind.METHOD, "") for method in METHODS)
    return _complete_graphql(request, schema)


def _paths(place: ConsolePlace, schema: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[Word]:
    path, _, _ = place.path.lstrip("/").rpartition("/")
    at = "" if place.path.startswith("/") else "/"
    if path.removeprefix("v1").strip("/") in _NAMED:
        yield from ((name, SuggestionKind.OBJECT, "collection") for name in schema)
    elif path in ("", "v1"):
        yield from ((f"{at}v1/{route}" if not path else route, SuggestionKind.PATH, "") for route in PATHS)


def _opened(before: str) -> int:
    """Return how many braces are open at the end of the last operation; 0 if there is none."""
    return len(_names(before)) if before else 0


def _names(before: str) -> list[str]:
    """Return the name before each open brace or parenthesis, from the outermost; a parenthesis is marked."""
    stack: list[str] = []
    name = ""
    starts = [match.start() for match in _START.finditer(before)]
    for token in _NAME.finditer(before, starts[-1] if starts else 0):
        text = token[0]
        if text in "{(":
            stack.append(name if text == "{" else f"({name}")
            name = ""
        elif text in "})":
            closed = stack.pop() if stack else ""
            name = closed.removeprefix("(")
        elif text[0] not in '"#':
            name = text
    return stack


def _complete_graphql(request: CompletionRequest, schema: Mapping[str, Sequence[tuple[str, str]]]) -> Completion:
    match = _TYPED.search(request.text, max(0, request.position - 200), request.position)
    typed = match[0] if match else ""
    rest = _REST.match(request.text, request.position)
    start, end = request.position - len(typed), rest.end() if rest else request.position
    words = list(_members(_names(request.text[:start]), schema))
    fitting = [word for word in words if word[0].casefold().startswith(typed.casefold())]
    return Completion(
        suggestions=[
            Suggestion(text=text, kind=kind, start=start, end=end, detail=detail)
            for text, kind, detail in fitting[:MAX_SUGGESTIONS]
        ],
        more=len(fitting) > MAX_SUGGESTIONS,
    )


def _members(names: Sequence[str], schema: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[Word]:
    if len(names) == 1:
        yield from ((root, SuggestionKind.KEYWORD, "") for root in _ROOTS)
    elif len(names) == 2 and names[1] in _ROOTS:
        yield from ((name, SuggestionKind.OBJECT, "collection") for name in schema)
    elif len(names) == 3 and names[2].startswith("("):
        yield from ((argument, SuggestionKind.KEYWORD, "argument") for argument in _ARGUMENTS)
    elif len(names) == 3 and names[2] in schema:
        yield from ((name, SuggestionKind.FIELD, kind) for name, kind in schema[names[2]])
        yield ("_additional" if names[1] == "Get" else "meta", SuggestionKind.KEYWORD, "")
    elif names and names[-1] == "_additional":
        yield from ((member, SuggestionKind.KEYWORD, "") for member in _ADDITIONAL)
    elif names and names[-1] == "meta":
        yield "count", SuggestionKind.KEYWORD, ""
