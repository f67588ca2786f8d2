"""Console texts: split into requests (E26), and completed.

A request is a line of method and path, with optional JSON bodies and comments. Methods, paths, the members of bodies,
the query language, and the names of indices and fields are completed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman_api import ConsoleRequest, HttpRequest
from dragoman_api.console import Completion, SuggestionKind
from dragoman_api.kit.console_places import METHODS, ConsolePlace, Where, find_place
from dragoman_api.kit.console_text import ConsoleReader, RestLine, ndjson
from dragoman_querydsl import protocol
from dragoman_querydsl.protocol import NDJSON, Words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dragoman_api.console import CompletionRequest
    from dragoman_api.kit.console_places import Word
    from dragoman_querydsl.columns.grid_columns import View
    from dragoman_querydsl.protocol import Dialect

_MANY_ROWS = (["_bulk"], ["_msearch"])


def parse(text: str, dialect: Dialect) -> list[ConsoleRequest]:
    """Split a console text into requests.

    Comments and byte order marks are removed: the server would store them with the document, and its later
    answers would be invalid JSON.

    Raises:
        ConsoleSyntaxError: With line and column, both from 1.
    """
    reader = ConsoleReader(text, comments=("#", "//", "/*"), literals=True)
    requests: list[ConsoleRequest] = []
    while reader.skip():
        line = reader.rest_line()
        if line is None:
            raise reader.error(reader.at, "expected a method and a path: GET /_search")
        request = _request(reader, line)
        writes = dialect.may_write(request.method, request.path, request.body or "")
        requests.append(ConsoleRequest(request=request, writes=writes, line=reader.line(line.at)))
    return requests


def _request(reader: ConsoleReader, line: RestLine) -> HttpRequest:
    path, values = reader.path(line), reader.values()
    if len(values) > 1 or (values and protocol.segments(path)[-1:] in _MANY_ROWS):
        return HttpRequest(line.method, path, ndjson(reader, line, values), NDJSON)
    return HttpRequest(line.method, path, values[0] if values else None)


ROOT = (
    "_search", "_cat/indices?v", "_cat/aliases?v", "_cat/shards?v", "_cat/nodes?v", "_cat/health?v", "_cat/count?v",
    "_cluster/health", "_cluster/settings", "_cluster/stats", "_nodes/stats", "_aliases", "_alias", "_analyze", "_bulk",
    "_count", "_data_stream", "_field_caps?fields=*", "_index_template", "_ingest/pipeline", "_mapping", "_mget",
    "_msearch", "_reindex", "_resolve/index/*", "_search/scroll", "_settings", "_stats", "_tasks", "_template",
)  # fmt: skip
"""Paths that begin without an index."""

OF_INDEX = (
    "_search", "_doc", "_count", "_mapping", "_settings", "_bulk", "_update", "_create", "_source", "_alias",
    "_analyze", "_close", "_delete_by_query", "_explain", "_field_caps?fields=*", "_flush", "_forcemerge", "_mget",
    "_msearch", "_open", "_refresh", "_segments", "_stats", "_update_by_query",
    "_validate/query?explain",
)  # fmt: skip
"""Paths after an index."""

PARAMETERS = (
    "allow_no_indices", "expand_wildcards", "filter_path", "flat_settings", "format", "from", "human",
    "ignore_unavailable", "include_defaults", "preference", "pretty", "q", "refresh", "routing", "scroll", "size",
    "sort", "timeout", "track_total_hits", "v", "_source",
)  # fmt: skip
"""Parameters after a path."""

QUERIES = (
    "bool", "match", "match_all", "match_none", "match_phrase", "match_phrase_prefix", "multi_match", "term", "terms",
    "range", "exists", "prefix", "wildcard", "regexp", "fuzzy", "ids", "nested", "query_string", "simple_query_string",
    "constant_score", "dis_max", "function_score", "script_score", "geo_distance", "geo_bounding_box", "has_child",
    "has_parent", "more_like_this", "boosting", "terms_set", "intervals",
)  # fmt: skip

AGGREGATIONS = (
    "terms", "date_histogram", "histogram", "range", "date_range", "filter", "filters", "nested", "reverse_nested",
    "avg", "sum", "min", "max", "stats", "extended_stats", "value_count", "cardinality", "percentiles",
    "percentile_ranks", "top_hits", "missing", "composite", "global", "significant_terms", "rare_terms",
    "auto_date_histogram", "geo_bounds", "geotile_grid", "bucket_sort", "bucket_selector", "derivative",
    "cumulative_sum", "aggs",
)  # fmt: skip

TYPES = (
    "keyword", "text", "long", "integer", "short", "byte", "double", "float", "half_float", "scaled_float",
    "unsigned_long", "date", "date_nanos", "boolean", "binary", "ip", "nested", "object",
    "geo_point", "geo_shape", "alias", "completion", "search_as_you_type", "wildcard",
    "constant_keyword", "integer_range", "long_range", "float_range", "double_range", "date_range", "ip_range",
)  # fmt: skip

SEARCH = (
    "query", "size", "from", "sort", "_source", "aggs", "track_total_hits", "fields", "docvalue_fields",
    "stored_fields", "highlight", "post_filter", "search_after", "pit", "collapse", "min_score",
    "timeout", "terminate_after", "seq_no_primary_term", "version", "explain", "profile", "rescore", "script_fields",
    "suggest", "slice",
)  # fmt: skip

BODIES = {
    "_search": SEARCH,
    "_async_search": SEARCH,
    "_msearch": (*SEARCH, "index"),
    "_count": ("query",),
    "_delete_by_query": ("query", "max_docs", "slice"),
    "_update_by_query": ("query", "script", "max_docs", "slice", "conflicts"),
    "_validate": ("query",),
    "_explain": ("query",),
    "_reindex": ("source", "dest", "script", "conflicts", "max_docs"),
    "_bulk": ("index", "create", "update", "delete", "doc", "doc_as_upsert"),
    "_update": ("doc", "doc_as_upsert", "script", "upsert", "detect_noop"),
    "_aliases": ("actions",),
    "_analyze": ("analyzer", "text", "field", "tokenizer", "filter", "char_filter"),
    "_mapping": ("properties", "dynamic", "_source", "_routing", "_meta"),
    "_settings": ("index", "number_of_replicas", "refresh_interval"),
    "_mget": ("docs", "ids"),
    "": ("settings", "mappings", "aliases"),
}
"""Members of a body, by the endpoint; an empty one is an index itself."""

_TERM = ("value", "boost", "case_insensitive")
_MATCH = ("query", "operator", "fuzziness", "minimum_should_match", "analyzer", "boost", "lenient", "zero_terms_query")
_PATTERN = ("value", "case_insensitive", "rewrite", "boost")
FIELD_OPTIONS = {
    "term": _TERM,
    "match": _MATCH,
    "match_phrase": ("query", "slop", "analyzer", "boost"),
    "match_phrase_prefix": ("query", "slop", "max_expansions", "boost"),
    "range": ("gte", "gt", "lte", "lt", "format", "time_zone", "relation", "boost"),
    "prefix": _PATTERN,
    "wildcard": _PATTERN,
    "regexp": (*_PATTERN, "flags", "max_determinized_states"),
    "fuzzy": ("value", "fuzziness", "prefix_length", "max_expansions", "transpositions"),
    "terms": (),
    "terms_set": ("terms", "minimum_should_match_field"),
    "intervals": ("match", "prefix", "wildcard", "all_of", "any_of"),
    "sort": ("order", "missing", "mode", "nested", "unmapped_type", "numeric_type", "format"),
    "geo_distance": ("lat", "lon"),
    "geo_bounding_box": ("top_left", "bottom_right"),
}
"""Clauses whose members are fields, and the options below a field."""

MEMBERS = {
    "bool": ("must", "filter", "should", "must_not", "minimum_should_match", "boost"),
    "nested": ("path", "query", "score_mode", "ignore_unmapped", "inner_hits"),
    "constant_score": ("filter", "boost"),
    "dis_max": ("queries", "tie_breaker"),
    "function_score": ("query", "functions", "boost_mode", "score_mode", "boost"),
    "script_score": ("query", "script", "min_score"),
    "multi_match": ("query", "fields", "type", "operator", "fuzziness", "minimum_should_match", "tie_breaker"),
    "query_string": ("query", "default_field", "fields", "default_operator", "lenient", "analyze_wildcard"),
    "simple_query_string": ("query", "fields", "default_operator", "flags", "lenient"),
    "exists": ("field",),
    "ids": ("values",),
    "has_child": ("type", "query", "score_mode", "min_children", "max_children"),
    "has_parent": ("parent_type", "query", "score"),
    "boosting": ("positive", "negative", "negative_boost"),
    "more_like_this": ("fields", "like", "min_term_freq", "max_query_terms"),
    "highlight": ("fields", "pre_tags", "post_tags", "fragment_size", "number_of_fragments"),
    "collapse": ("field", "inner_hits"),
    "pit": ("id", "keep_alive"),
    "slice": ("id", "max", "field"),
    "script": ("source", "lang", "params", "id"),
    "knn": ("field", "query_vector", "k", "num_candidates", "filter"),
    "source": ("index", "query", "size", "_source", "remote"),
    "dest": ("index", "op_type", "pipeline", "routing"),
    "mappings": ("properties", "dynamic", "_source", "_routing", "_meta", "dynamic_templates"),
    "settings": ("number_of_shards", "number_of_replicas", "refresh_interval", "analysis", "index"),
    "terms_aggregation": ("field", "size", "order", "min_doc_count", "missing", "include", "exclude", "shard_size"),
    "date_histogram_aggregation": (
        "field", "calendar_interval", "fixed_interval", "format", "time_zone", "min_doc_count", "extended_bounds",
        "offset", "missing",
    ),
    "histogram_aggregation": ("field", "interval", "min_doc_count", "extended_bounds", "offset", "missing"),
    "range_aggregation": ("field", "ranges", "keyed"),
    "date_range_aggregation": ("field", "ranges", "format", "time_zone"),
    "nested_aggregation": ("path",),
    "filters_aggregation": ("filters", "other_bucket_key"),
    "composite_aggregation": ("sources", "size", "after"),
    "top_hits_aggregation": ("size", "from", "sort", "_source"),
    "aggregation": ("field", "missing", "script"),
}  # fmt: skip
"""Members of an object, by the key before it; of an aggregation, by its type and ``_aggregation``."""

MAPPED = (
    "type", "fields", "properties", "index", "doc_values", "format", "ignore_above", "analyzer", "normalizer",
    "null_value", "copy_to", "coerce", "ignore_malformed", "path", "dynamic",
)  # fmt: skip
"""Members of a field's mapping."""

VALUES = {
    "order": ("asc", "desc"),
    "operator": ("and", "or"),
    "default_operator": ("and", "or"),
    "score_mode": ("avg", "sum", "min", "max", "none"),
    "mode": ("min", "max", "avg", "sum", "median"),
    "conflicts": ("proceed", "abort"),
    "calendar_interval": ("minute", "hour", "day", "week", "month", "quarter", "year"),
    "missing": ("_last", "_first"),
    "lang": ("painless", "expression"),
    "dynamic": ("strict", "runtime"),
}
"""Texts that are a member's value."""


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
        words: What is completed for this product only.
    """

    place: ConsolePlace
    words: Words
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
            return place.complete(_paths(place, names, self.words))
        if place.where is Where.NOTHING:
            return Completion(suggestions=[])
        fields = _fields(view) if view is not None else []
        if place.where is Where.KEY:
            return place.complete(_keys(place, fields, self.words))
        return place.complete(_values(place, fields, names, self.words))


def ask(request: CompletionRequest, words: Words) -> CompletionPlace:
    """Find the place of the cursor, and what completing it needs.

    Args:
        request: The text and the cursor.
        words: What is completed for this product only.

    Raises:
        QueryError: The position is not in the text.
    """
    place = find_place(request, separators="/,?&")
    if place.where is Where.PATH:
        return CompletionPlace(place, words, names="/" not in place.path.lstrip("/") and "?" not in place.path)
    if place.where in (Where.KEY, Where.VALUE):
        target = place.path.lstrip("/").partition("?")[0].partition("/")[0]
        key = place.keys[-1] if place.keys else ""
        target = "" if target.startswith("_") else target
        return CompletionPlace(place, words, names=key in ("index", "_index"), target=target)
    return CompletionPlace(place, words)


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


def _paths(place: ConsolePlace, names: Sequence[str], own: Words) -> Iterator[Word]:
    root = (*ROOT, *own.paths)
    path, slash, _ = place.path.lstrip("/").rpartition("/")
    if "?" in place.path:
        yield from _words(PARAMETERS)
    elif not slash:
        at = "" if place.path.startswith("/") else "/"
        indices = place.path.rpartition(",")[0]
        yield from _words((at * (not indices) + name for name in names), SuggestionKind.OBJECT)
        if not indices:
            yield from _words((at + endpoint for endpoint in root), SuggestionKind.PATH)
    elif path.startswith("_"):
        rests = (endpoint.removeprefix(f"{path}/") for endpoint in root if endpoint.startswith(f"{path}/"))
        yield from _words(rests, SuggestionKind.PATH)
    elif "/" not in path:
        yield from _words((*OF_INDEX, *own.of_index), SuggestionKind.PATH)


def _endpoint(path: str) -> str:
    parts = [part for part in path.partition("?")[0].split("/") if part.startswith("_")]
    return parts[0] if parts else ""


def _keys(place: ConsolePlace, fields: list[Word], own: Words) -> Iterator[Word]:
    """Yield what may be a key in the object around the cursor."""
    keys = [key for key in place.keys if key]
    if not keys:
        yield from _top(place, fields, own)
        return
    last = keys[-1]
    before = keys[-2] if len(keys) > 1 else ""
    third = keys[-3] if len(keys) > 2 else ""
    if before in _AGGS:  # the object of one aggregation
        yield from _words((*AGGREGATIONS, *own.aggregations))
    elif third in _AGGS and last not in _AGGS and last not in _QUERY_KEYS:
        yield from _words(MEMBERS.get(f"{last}_aggregation", MEMBERS["aggregation"]))
    elif last in _AGGS:
        return  # a name that the person makes up
    elif last in _QUERY_KEYS:
        yield from _words((*QUERIES, *own.queries))
    elif last in FIELD_OPTIONS or last in ("fields", "runtime_mappings"):
        yield from fields
        if last == "sort":
            yield from ((name, SuggestionKind.KEYWORD, detail) for name, detail in _SPECIAL)
    elif before in FIELD_OPTIONS:
        yield from _words(FIELD_OPTIONS[before])
    elif last in MEMBERS:
        yield from _words((*MEMBERS[last], *(own.mappings if last == "mappings" else ())))
    elif last == "properties" or last in ("doc", "upsert"):
        yield from fields
    elif before == "properties":
        yield from _words(MAPPED)


def _top(place: ConsolePlace, fields: list[Word], own: Words) -> Iterator[Word]:
    endpoint = _endpoint(place.path)
    if endpoint in ("_doc", "_create", "_source"):
        yield from fields
    else:
        members = BODIES.get(endpoint, ())
        yield from _words(members)
        if members[: len(SEARCH)] == SEARCH:
            yield from _words(own.search)
        if endpoint == "_mapping":
            yield from _words(own.mappings)
        if endpoint == "_bulk":
            yield from fields


def _values(place: ConsolePlace, fields: list[Word], names: Sequence[str], own: Words) -> Iterator[Word]:
    """Yield what may be a value at the cursor."""
    keys = [key for key in place.keys if key]
    last = keys[-1] if keys else ""
    if last in ("index", "_index"):
        yield from _words(names, SuggestionKind.OBJECT)
    elif last in _FIELD_KEYS or last in _FIELD_LISTS:
        yield from fields
    elif last == "type" and "properties" in keys:
        yield from _words((*TYPES, *own.types))
    yield from _words(VALUES.get(last, ()))
