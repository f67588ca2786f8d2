"""Completion of console texts: methods, paths, the members of bodies, names of indices and fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_api.console import Completion, SuggestionKind
from dragoman_api.kit.console_places import METHODS, ConsolePlace, Where, find_place

from . import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dragoman_api.console import CompletionRequest
    from dragoman_api.kit.console_places import Word
    from dragoman_elasticsearch.columns.grid_columns import View

_QUERY_KEYS = ("query", "filter", "must", "should", "must_not", "post_filter", "queries", "positive", "negative")
_AGGS = ("aggs", "aggregations")
_FIELD_KEYS = ("field", "default_field", "path", "minimum_should_match_field")
_FIELD_LISTS = ("fields", "_source", "docvalue_fields", "stored_fields", "sort", "includes", "excludes")
_SPECIAL = (("_score", "the score"), ("_doc", "the order of the index"))


class CompletionPlace(msgspec.Struct, frozen=True):
    """One place of a console text, and what must be known of the server to complete it.

    Attributes:
        place: The place.
        names: Names of objects are wanted.
        target: The object whose fields are wanted; empty for none.
    """

    place: ConsolePlace
    names: bool = False
    target: str = ""

    def complete(self, names: Sequence[str] = (), view: View | None = None) -> Completion:
        """Return the suggestions.

        Args:
            names: Names of objects.
            view: The object whose fields are wanted; None if it could not be read.
        """
        place = self.place
        if place.where is Where.METHOD:
            return place.complete((method, SuggestionKind.METHOD, "") for method in METHODS[:5])
        if place.where is Where.PATH:
            return place.complete(_paths(place, names))
        if place.where is Where.NOTHING:
            return Completion(suggestions=[])
        fields = _fields(view) if view is not None else []
        return place.complete(_keys(place, fields) if place.where is Where.KEY else _values(place, fields, names))


def ask(request: CompletionRequest) -> CompletionPlace:
    """Find the place of the cursor, and what completing it needs.

    Raises:
        QueryError: The position is not in the text.
    """
    place = find_place(request, separators="/,?&")
    if place.where is Where.PATH:
        return CompletionPlace(place, names="/" not in place.path.lstrip("/") and "?" not in place.path)
    if place.where in (Where.KEY, Where.VALUE):
        target = place.path.lstrip("/").partition("?")[0].partition("/")[0]
        key = place.keys[-1] if place.keys else ""
        return CompletionPlace(place, names=key in ("index", "_index"), target="" if target.startswith("_") else target)
    return CompletionPlace(place)


def _words(texts: Iterable[str], kind: SuggestionKind = SuggestionKind.KEYWORD, detail: str = "") -> Iterator[Word]:
    return ((text, kind, detail) for text in texts)


def _fields(view: View) -> list[Word]:
    suggestions: list[Word] = []
    for field in view.fields.values():
        if field.name != "_score":
            suggestions.append((field.name, SuggestionKind.FIELD, field.type))
        if field.keyword:
            suggestions.append((field.keyword, SuggestionKind.FIELD, "keyword"))
    return suggestions


def _paths(place: ConsolePlace, names: Sequence[str]) -> Iterator[Word]:
    path, slash, _ = place.path.lstrip("/").rpartition("/")
    if "?" in place.path:
        yield from _words(words.PARAMETERS)
    elif not slash:
        at = "" if place.path.startswith("/") else "/"
        indices = place.path.rpartition(",")[0]
        yield from _words((at * (not indices) + name for name in names), SuggestionKind.OBJECT)
        if not indices:
            yield from _words((at + endpoint for endpoint in words.ROOT), SuggestionKind.PATH)
    elif path.startswith("_"):
        rests = (endpoint.removeprefix(f"{path}/") for endpoint in words.ROOT if endpoint.startswith(f"{path}/"))
        yield from _words(rests, SuggestionKind.PATH)
    elif "/" not in path:
        yield from _words(words.OF_INDEX, SuggestionKind.PATH)


def _endpoint(path: str) -> str:
    parts = [part for part in path.partition("?")[0].split("/") if part.startswith("_")]
    return parts[0] if parts else ""


def _keys(place: ConsolePlace, fields: list[Word]) -> Iterator[Word]:
    """Yield what may be a key in the object around the cursor."""
    keys = [key for key in place.keys if key]
    if not keys:
        yield from _top(place, fields)
        return
    last = keys[-1]
    before = keys[-2] if len(keys) > 1 else ""
    third = keys[-3] if len(keys) > 2 else ""
    if before in _AGGS:  # the object of one aggregation
        yield from _words(words.AGGREGATIONS)
    elif third in _AGGS and last not in _AGGS and last not in _QUERY_KEYS:
        yield from _words(words.MEMBERS.get(f"{last}_aggregation", words.MEMBERS["aggregation"]))
    elif last in _AGGS:
        return  # a name that the person makes up
    elif last in _QUERY_KEYS:
        yield from _words(words.QUERIES)
    elif last in words.FIELD_OPTIONS or last in ("fields", "runtime_mappings"):
        yield from fields
        if last == "sort":
            yield from ((name, SuggestionKind.KEYWORD, detail) for name, detail in _SPECIAL)
    elif before in words.FIELD_OPTIONS:
        yield from _words(words.FIELD_OPTIONS[before])
    elif last in words.MEMBERS:
        yield from _words(words.MEMBERS[last])
    elif last == "properties" or last in ("doc", "upsert"):
        yield from fields
    elif before == "properties":
        yield from _words(words.MAPPED)


def _top(place: ConsolePlace, fields: list[Word]) -> Iterator[Word]:
    endpoint = _endpoint(place.path)
    if endpoint in ("_doc", "_create", "_source"):
        yield from fields
    else:
        yield from _words(words.BODIES.get(endpoint, ()))
        if endpoint == "_bulk":
            yield from fields


def _values(place: ConsolePlace, fields: list[Word], names: Sequence[str]) -> Iterator[Word]:
    """Yield what may be a value at the cursor."""
    keys = [key for key in place.keys if key]
    last = keys[-1] if keys else ""
    if last in ("index", "_index"):
        yield from _words(names, SuggestionKind.OBJECT)
    elif last in _FIELD_KEYS or last in _FIELD_LISTS:
        yield from fields
    elif last == "type" and "properties" in keys:
        yield from _words(words.TYPES)
    yield from _words(words.VALUES.get(last, ()))
