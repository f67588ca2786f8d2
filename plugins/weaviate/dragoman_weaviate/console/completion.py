"""Completion of console texts: REST lines, and collections and properties in GraphQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman_api.console import MAX_SUGGESTIONS, Completion, CompletionRequest, Suggestion, SuggestionKind
from dragoman_api.kit.console_places import METHODS, ConsolePlace, Where, find_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dragoman_api.kit.console_places import Word

PATHS = (
    "schema", "objects", "batch/objects", "graphql", "meta", "nodes", "aliases", "backups/filesystem",
    "cluster/statistics", "users/own-info", "authz/roles", ".well-known/ready", ".well-known/live",
)  # fmt: skip
_ROOTS = ("Get", "Aggregate")
_ADDITIONAL = ("id", "vector", "creationTimeUnix", "lastUpdateTimeUnix", "distance", "certainty", "score")
_ARGUMENTS = ("where", "limit", "offset", "sort", "after", "tenant", "nearVector", "nearObject", "bm25", "hybrid")
_NAMED = ("schema", "objects", "class", "collection")
_START = re.compile(r"^(?:[^\S\n]*\{|query\b|[^\S\n]*(?:GET|POST|PUT|DELETE|HEAD|PATCH)\b)", re.MULTILINE)
_TOKEN = re.compile(
    r'"""[^"]*+(?:"{1,2}+[^"]++)*+(?:"""|"{1,2}+)?|"(?:[^"\\\n]++|\\[^\n])*+"?|#[^\n]*+|[{}()]|[A-Za-z_]\w*+'
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
    return _graphql(request, schema)


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
    for token in _TOKEN.finditer(before, starts[-1] if starts else 0):
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


def _graphql(request: CompletionRequest, schema: Mapping[str, Sequence[tuple[str, str]]]) -> Completion:
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
