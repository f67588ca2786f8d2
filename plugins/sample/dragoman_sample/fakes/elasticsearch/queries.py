"""Query clauses, compiled for one index into a test of its documents."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch import places, vectors
from dragoman_sample.fakes.elasticsearch.errors import ServerError, illegal, not_reproduced, parsing
from dragoman_sample.fakes.elasticsearch.fields import (
    INTEGERS,
    Field,
    Token,
    address,
    boolean,
    in_resolution,
    java_text,
    number,
    tokens,
)
from dragoman_sample.fakes.elasticsearch.store import Cluster, Index

if TYPE_CHECKING:
    from dragoman_sample.fakes.elasticsearch.mapping import Node
    from dragoman_sample.fakes.elasticsearch.store import Doc

Test = Callable[["Doc", "Node"], bool]
Score = Callable[["Doc"], float | None]
MAX_TERMS = 65_536


@dataclass(frozen=True, slots=True)
class Clause:
    """A compiled clause: its test, its score (constant: this is no relevance model), Lucene's name for it."""

    test: Test
    score: float = 1.0
    text: str = "*:*"
    score_of: Score | None = None  # where documents differ


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a clause is compiled: the index, the cluster's settings, the enclosing nested path."""

    cluster: Cluster
    index: Index
    nested: str = ""

    def error(self, reason: str, caused_by: ServerError | None = None, status: int = 400) -> ServerError:
        """Return a query_shard_exception of this index."""
        extra = {"index_uuid": self.index.uuid, "index": self.index.name}
        return ServerError("query_shard_exception", reason, status=status, caused_by=caused_by, extra=extra)

    def wrap(self, cause: ServerError) -> ServerError:
        """Return the error for a clause that could not be created."""
        if cause.kind in ("query_shard_exception", "not_reproduced"):
            return cause
        return self.error(f"failed to create query: {cause.reason}", cause)

    def expensive(self, text: str) -> None:
        """Refuse an expensive query where the cluster forbids it."""
        if not self.cluster.expensive_allowed:
            text = f"{text} when 'search.allow_expensive_queries' is set to false."
            raise ServerError("exception", text)

    def field(self, path: str) -> Field | None:
        """Return the field, unless it lies in a nested object and the clause does not (or the other way round)."""
        return self.index.mapping.field(path)


NONE = Clause(lambda _doc, _node: False, 0.0, 'MatchNoDocsQuery("")')
ALL = Clause(lambda _doc, _node: True)


def check(body: Any) -> None:
    """Refuse what no parser knows, before any shard is asked.

    Raises:
        ServerError: parsing_exception and kin, as faults.
    """
    name, argument = _single(body)
    shape = _SHAPES.get(name)
    if shape is None:
        cause = ServerError("named_object_not_found_exception", f"[1:1] unknown field [{name}]")
        raise ServerError(
            "parsing_exception", f"unknown query [{name}]", fault=True, extra={"line": 1, "col": 1}, caused_by=cause
        )
    shape(name, argument)


def build(body: Any, scope: Scope) -> Clause:
    """Compile a checked query.

    Raises:
        ServerError: what the shards of this index answer.
    """
    ((name, argument),) = body.items()
    try:
        return _BUILDERS[name](argument, scope)
    except ServerError as fault:
        # The dates of a range are read before the query is made, so their error comes bare.
        raise fault if name == "range" and fault.kind == "parse_exception" else scope.wrap(fault) from None


def _single(body: Any) -> tuple[str, Any]:
    if not isinstance(body, dict):
        raise parsing("[_na] query malformed, must start with start_object")
    if not body:
        raise ServerError("illegal_argument_exception", "query malformed, empty clause found", fault=True)
    if len(body) > 1:
        name, _second = list(body)[:2]
        raise parsing(f"[{name}] malformed query, expected [END_OBJECT] but found [FIELD_NAME]")
    return next(iter(body.items()))


def _keys(name: str, argument: Any, allowed: set[str]) -> None:
    if not isinstance(argument, dict):
        raise parsing(f"[{name}] query malformed, no start_object after query name")
    for key in argument:
        if key not in allowed:
            if name in ("bool", "nested", "query_string"):
                raise parsing(f"[{name}] query does not support [{key}]")
            raise parsing(f"[{name}] query does not support [{key}]")


def _one_field(allowed: set[str], *, short: bool = True) -> Callable[[str, Any], None]:
    def shape(name: str, argument: Any) -> None:
        if not isinstance(argument, dict):
            raise parsing(f"[{name}] query malformed, no start_object after query name")
        fields = [key for key in argument if key not in ("boost", "_name")]
        if len(fields) > 1:
            first, second = fields[:2]
            raise parsing(f"[{name}] query doesn't support multiple fields, found [{first}] and [{second}]")
        for key in fields:
            if isinstance(argument[key], dict):
                _keys(name, argument[key], allowed | {"boost", "_name"})
            elif not short or isinstance(argument[key], list):
                raise parsing(f"[{name}] query does not support [{key}]")

    return shape


def _keyed(allowed: set[str]) -> Callable[[str, Any], None]:
    return lambda name, argument: _keys(name, argument, allowed | {"boost", "_name"})


def _bool_shape(name: str, argument: Any) -> None:
    _keys(name, argument, {"must", "filter", "should", "must_not", "minimum_should_match", "boost", "_name"})
    for kind in ("must", "filter", "should", "must_not"):
        for clause in _listed(argument.get(kind, [])):
            check(clause)


def _nested_shape(name: str, argument: Any) -> None:
    _keys(name, argument, {"path", "query", "ignore_unmapped", "score_mode", "boost", "_name"})
    for needed in ("path", "query"):
        if needed not in argument:
            raise illegal(f"[nested] requires '{needed}' field")
    check(argument["query"])


def _terms_shape(name: str, argument: Any) -> None:
    if not isinstance(argument, dict):
        raise parsing(f"[{name}] query malformed, no start_object after query name")
    for key, value in argument.items():
        if key not in ("boost", "_name") and not isinstance(value, list):
            raise parsing(f"[{name}] query does not support [{key}]")


def _wrapper_shape(name: str, argument: Any) -> None:
    _keys(name, argument, {"filter", "boost", "_name"})
    check(argument["filter"])


def _script_shape(name: str, argument: Any) -> None:
    _keys(name, argument, {"query", "script", "min_score"})
    check(argument["query"])


def _place_shape(name: str, argument: Any) -> None:
    needed = {"geo_distance": {"distance"}, "geo_bounding_box": set()}[name]
    fields = {*argument} - {"distance", "ignore_unmapped"} if isinstance(argument, dict) else set()
    if len(fields) != 1 or not needed <= {*argument} or ("distance" in argument) is not bool(needed):
        raise parsing(f"[{name}] query malformed")
    shape = argument[fields.pop()]
    if {*shape} != ({"lat", "lon"} if needed else {"top_left", "bottom_right"}):
        raise parsing(f"[{name}] query malformed")


_SHAPES: dict[str, Callable[[str, Any], None]] = {
    "match_all": _keyed(set()),
    "match_none": _keyed(set()),
    "ids": _keyed({"values"}),
    "exists": _keyed({"field"}),
    "term": _one_field({"value", "case_insensitive"}),
    "terms": _terms_shape,
    "range": _one_field({"gt", "gte", "lt", "lte", "format", "time_zone", "relation"}, short=False),
    "wildcard": _one_field({"value", "wildcard", "case_insensitive", "rewrite"}),
    "prefix": _one_field({"value", "case_insensitive", "rewrite"}),
    "match_phrase": _one_field({"query", "slop", "analyzer", "zero_terms_query"}),
    "match": _one_field({"query", "operator", "lenient"}),
    "geo_distance": _place_shape,
    "geo_bounding_box": _place_shape,
    "bool": _bool_shape,
    "nested": _nested_shape,
    "constant_score": _wrapper_shape,
    "script_score": _script_shape,
    "function_score": _keyed({"query", "min_score"}),
    "query_string": _keyed({"query", "lenient", "default_field", "fields", "default_operator", "analyze_wildcard"}),
}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _field_and(argument: dict[str, Any], short: str) -> tuple[str, dict[str, Any]]:
    ((path, value),) = ((key, value) for key, value in argument.items() if key not in ("boost", "_name"))
    return path, value if isinstance(value, dict) else {short: value}


def values_test(path: str, accept: Callable[[Any], bool]) -> Test:
    """Return the test whether any indexed value of a field is accepted."""

    def test(_doc: Doc, node: Node) -> bool:
        values = node.values.get(path)
        return values is not None and any(accept(value) for value in values)

    return test


def _match_all(_argument: Any, _scope: Scope) -> Clause:
    return ALL


def _match_none(_argument: Any, _scope: Scope) -> Clause:
    return NONE


def _ids(argument: Any, _scope: Scope) -> Clause:
    ids = {str(value) for value in argument.get("values", [])}
    return Clause(lambda doc, _node: doc.id in ids, text=f"_id:({' '.join(sorted(ids))})")


def _constant(argument: Any, scope: Scope) -> Clause:
    return replace(build(argument["filter"], scope), score=1.0)


def _scored(argument: Any, scope: Scope) -> Clause:
    return build(argument["query"], scope)


def _script_scored(argument: Any, scope: Scope) -> Clause:
    scope.expensive("[script score] queries cannot be executed")
    inner, score_of = build(argument["query"], scope), vectors.compared(argument["script"], scope)
    least = argument.get("min_score", 0)
    return replace(inner, test=lambda doc, node: inner.test(doc, node) and score_of(doc) >= least, score_of=score_of)


def _term(argument: Any, scope: Scope) -> Clause:
    path, options = _field_and(argument, "value")
    if scope.cluster.release.parts < (7, 10) and "case_insensitive" in options:
        raise parsing("[term] query does not support [case_insensitive]")
    value = options.get("value")
    if value is None:
        raise illegal("value cannot be null")
    return _equal(path, [value], scope, fold=bool(options.get("case_insensitive")))


def _terms(argument: Any, scope: Scope) -> Clause:
    path, values = next((k, v) for k, v in argument.items() if k not in ("boost", "_name"))
    if len(values) > MAX_TERMS:
        raise illegal(
            f"The number of terms [{len(values)}] used in the Terms Query request has exceeded the allowed maximum of "
            f"[{MAX_TERMS}]. This maximum can be set by changing the [index.max_terms_count] index level setting."
        )
    return _equal(path, values, scope, fold=False)


_META = {"_id", "_index", "_seq_no", "_routing", "_ignored"}


def _equal(path: str, values: list[Any], scope: Scope, *, fold: bool) -> Clause:
    if path in _META:
        return _meta_equal(path, values, scope, fold=fold)
    field = scope.field(path)
    if field is None:
        return NONE
    _check_searchable(field, scope)
    accept = term_test(field, values, scope, fold=fold)
    return Clause(values_test(field.path, accept), text=f"{path}:{' '.join(map(java_text, values))}")


def _meta_equal(path: str, values: list[Any], scope: Scope, *, fold: bool) -> Clause:
    if path == "_index":
        # A wildcard in the value is expanded.
        hit = any(
            fnmatch.fnmatchcase(scope.index.name.lower() if fold else scope.index.name, java_text(value))
            for value in values
        )
        return ALL if hit else NONE
    if path == "_seq_no":
        numbers = {int(number(value)) for value in values}
        return Clause(lambda doc, _node: doc.seq_no in numbers)
    texts = {java_text(value) for value in values}
    if path == "_routing":
        return Clause(lambda doc, _node: doc.routing in texts)
    if path == "_ignored":
        return Clause(lambda doc, _node: not texts.isdisjoint(doc.ignored))
    return Clause(lambda doc, _node: doc.id in texts)


def _check_searchable(field: Field, scope: Scope) -> None:
    if field.indexed:
        return
    old = scope.cluster.release.types or field.family in ("text", "opaque")
    if not field.doc_values or old:
        raise illegal(
            f"Cannot search on field [{field.path}] since it is not indexed{'' if old else ' nor has doc values'}."
        )
    if not scope.cluster.expensive_allowed:
        reason = "since it is not indexed and 'search.allow_expensive_queries' is set to false."
        raise illegal(f"Cannot search on field [{field.path}] {reason}")


_FOLD = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})


def folded(text: str) -> str:
    """Lower ASCII letters only, which is all that `case_insensitive` does."""
    return text.translate(_FOLD)


def term_test(field: Field, values: list[Any], scope: Scope, *, fold: bool = False) -> Callable[[Any], bool]:
    """Return the test of one indexed value against the terms.

    Raises:
        ServerError: for a value that the field's type cannot read.
    """
    family = field.family
    if fold and family not in ("string", "text", "boolean", "flattened_key", "flattened"):
        raise scope.error(
            f"[{field.path}] field which is of type [{field.type}], does not support case insensitive term queries"
        )
    if family in ("range", "opaque"):
        raise scope.error(f"[{field.type}] fields do not support exact searching, use dedicated queries instead")
    if family == "date":
        spans = [(field.date(value), field.date(value, round_up=True)) for value in values]
        return lambda stored: any(low <= stored <= high for low, high in spans)
    if family == "ip":
        return _ip_test(values)
    if family == "text":
        words = {folded(java_text(value)) if fold else java_text(value) for value in values}
        return lambda stored: (
            isinstance(stored, Token) and any((folded(w) if fold else w) in words for w in stored.words)
        )
    if family in ("string", "flattened_key", "flattened"):
        texts = [field.normal(java_text(value)) for value in values]
        terms = {folded(text) if fold else text for text in texts}
        if fold and family == "string" and scope.cluster.release.parts < (8, 19):
            terms.discard("")  # with case_insensitive, the empty string finds nothing
        return lambda stored: (folded(stored) if fold else stored) in terms
    if family == "boolean":
        flags = {boolean(value) for value in values}
        return lambda stored: stored in flags
    numbers = {signed(value) for value in _numbers(field, values, scope)}
    return lambda stored: signed(stored) in numbers


def signed(value: float) -> tuple[float, float]:
    """Return what orders a number: -0.0 is another value than 0.0, and comes before it."""
    return value, math.copysign(1.0, value)


def _bound(field: Field, value: Any) -> float:
    parsed = float(number(value))
    exact = math.isinf(parsed) or field.type == "scaled_float"
    return parsed if exact else float(field.index(parsed))


def _numbers(field: Field, values: list[Any], scope: Scope) -> list[int | float]:
    numbers: list[int | float] = []  # not a set, in which -0.0 is 0.0
    bits = INTEGERS.get(field.type, 31)
    for value in values:
        parsed = number(value)
        if field.family == "float":
            if not math.isinf(parsed):
                numbers.append(field.index(parsed))
        elif parsed == int(parsed):
            if not -(2**bits) <= parsed < 2**bits:
                if scope.cluster.release.parts >= (8, 19):
                    continue
                raise illegal(
                    f"Value [{value}] is out of range for a{'n' if field.type == 'integer' else ''} {field.type}"
                )
            numbers.append(int(parsed))
    return numbers


def _ip_test(values: list[Any]) -> Callable[[bytes], bool]:
    spans = []
    for value in values:
        text, _, bits = str(value).partition("/")
        low = int.from_bytes(address(text))
        free = (128 if ":" in text else 32) - int(bits) if bits else 0
        low = low >> free << free
        spans.append((low.to_bytes(16), (low + (1 << free) - 1).to_bytes(16)))
    return lambda packed: any(low <= packed <= high for low, high in spans)


def _exists(argument: Any, scope: Scope) -> Clause:
    path = str(argument.get("field", ""))
    if path in ("_id", "_index", "_seq_no", "_source"):
        return ALL
    mapping = scope.index.mapping
    paths = [name for name in mapping.fields if fnmatch.fnmatchcase(name, path) or name.startswith(path + ".")]
    if path in mapping.aliases or (not paths and mapping.field(path) is not None):
        paths = [mapping.field(path).path]  # type: ignore[union-attr]
    if path in mapping.fields:
        paths = [path]
    if mapping.objects.get(path) == "nested" and scope.nested == path:
        return ALL
    # Without an index and without doc values nothing is left to look at: no hits, and no error.
    seen = [
        name for name in paths
        if (field := mapping.field(name)) is not None
        and (field.indexed or field.doc_values or field.type == "dense_vector")  # its values are always kept
    ]  # fmt: skip
    if not seen:
        return NONE
    return Clause(lambda _doc, node: any(name in node.values for name in seen), text=f"FieldExistsQuery [field={path}]")


def _range(argument: Any, scope: Scope) -> Clause:
    path, options = _field_and(argument, "gte")
    if path == "_seq_no":
        bounds = _number_bounds(options, whole=True)
        return Clause(lambda doc, _node: bounds[0] <= doc.seq_no <= bounds[1])
    if path in ("_id", "_index"):
        kind = f"field [{path}] of type [{path}] does not support range queries"
        raise illegal(kind[0].upper() + kind[1:])
    field = scope.field(path)
    if field is None:
        return NONE
    limits = {key: options[key] for key in ("gt", "gte", "lt", "lte") if options.get(key) is not None}
    if not limits and field.family != "flattened_key":
        return _exists({"field": path}, scope)
    _check_searchable(field, scope)
    if scope.cluster.opensearch and field.type in INTEGERS:
        if field.type == "unsigned_long" and limits.get("lt") == 2**64 - 1:
            return NONE
        below_zero = field.type != "unbelow_zero_long"
        limit = 2 ** INTEGERS[field.type]
        for bound in limits.values():
            if not (-limit if below_zero else 0) <= number(bound) < limit:
                raise illegal(f"Value [{bound}] is out of range for a {field.type}")
    low, high = _bounds(field, limits, options, scope)
    if field.family == "text":
        return Clause(values_test(field.path, lambda value: any(low(word) and high(word) for word in value.words)))
    return Clause(values_test(field.path, lambda value: low(value) and high(value)))


_Side = Callable[[Any], bool]


def _bounds(field: Field, limits: dict[str, Any], options: dict[str, Any], scope: Scope) -> tuple[_Side, _Side]:
    family = field.family
    if family == "date":
        zone, formats = options.get("time_zone", ""), options.get("format", "")
        low, high = -math.inf, math.inf
        for key, value in limits.items():
            bound = in_resolution(
                field, value, field.date(value, round_up=key in ("gt", "lte"), zone=zone, formats=formats)
            )
            if key in ("gt", "gte"):
                low = max(low, bound + (key == "gt"))
            else:
                high = min(high, bound - (key == "lt"))
        return low.__le__, high.__ge__
    if family in ("integer", "float"):
        below, above = _number_bounds(limits, whole=family == "integer")
        if family == "float":
            return _comparison(limits, lambda value: signed(_bound(field, value)), signed)
        return (lambda stored: stored >= below), (lambda stored: stored <= above)
    if family in ("string", "text"):
        scope.expensive("[range] queries on [text] or [keyword] fields cannot be executed")
        normal = field.normal
        return _comparison(limits, lambda value: normal(java_text(value)).encode(), lambda stored: stored.encode())
    if family == "flattened_key":
        scope.expensive("[range] queries on keyed [flattened] fields cannot be executed")
        both = {"gt", "gte"} & limits.keys() and {"lt", "lte"} & limits.keys()
        if not both and scope.cluster.release.parts < (9,):
            raise illegal("[range] queries on keyed [flattened] fields must include both an upper and a lower bound.")
        return _comparison(limits, java_text)
    if family == "ip":
        return _comparison(limits, address)
    if family == "boolean":
        return _comparison(limits, boolean)
    raise not_reproduced(f"range on {field.type}")


def _comparison(
    limits: dict[str, Any], read: Callable[[Any], Any], view: Callable[[Any], Any] = lambda stored: stored
) -> tuple[_Side, _Side]:
    read_ = {key: read(value) for key, value in limits.items()}
    lows = [(read_[key], key == "gt") for key in ("gt", "gte") if key in read_]
    highs = [(read_[key], key == "lt") for key in ("lt", "lte") if key in read_]
    return (
        lambda stored: all(view(stored) > bound or (not strict and view(stored) == bound) for bound, strict in lows),
        lambda stored: all(view(stored) < bound or (not strict and view(stored) == bound) for bound, strict in highs),
    )


def _number_bounds(options: dict[str, Any], *, whole: bool) -> tuple[float, float]:
    low, high = -math.inf, math.inf
    for key in ("gt", "gte", "lt", "lte"):
        if options.get(key) is None:
            continue
        value = number(options[key])
        if not whole or math.isinf(value):
            continue
        if key in ("gt", "gte"):
            low = max(low, math.floor(value) + 1 if key == "gt" else math.ceil(value))
        else:
            high = min(high, math.ceil(value) - 1 if key == "lt" else math.floor(value))
    return low, high


def _wildcard(argument: Any, scope: Scope) -> Clause:
    path, options = _field_and(argument, "value")
    pattern = options.get("value", options.get("wildcard"))
    if pattern is None:
        raise illegal("value cannot be null")
    return pattern_clause("wildcard", path, str(pattern), scope, fold=bool(options.get("case_insensitive")))


def _prefix(argument: Any, scope: Scope) -> Clause:
    path, options = _field_and(argument, "value")
    literal = re.sub(r"([\\*?])", r"\\\1", str(options.get("value"))) + "*"
    return pattern_clause("prefix", path, literal, scope, fold=bool(options.get("case_insensitive")))


def pattern_clause(kind: str, path: str, pattern: str, scope: Scope, *, fold: bool) -> Clause:
    """Compile a wildcard or prefix clause.

    Raises:
        ServerError: on a field of another type, a pattern too long, or where expensive queries are off.
    """
    if path == "_index":
        name = scope.index.name
        return ALL if wildcard(pattern, fold=fold)(name) else NONE
    optimised = " For optimised prefix queries on text fields please enable [index_prefixes]."
    if path == "_id":
        raise scope.error(_only_strings(kind, "_id", "_id"))
    field = scope.field(path)
    if field is None:
        return NONE
    if field.family == "flattened_key" and kind == "wildcard":
        raise illegal("[wildcard] queries are not currently supported on keyed [flattened] fields.")
    if field.family not in ("string", "text", "flattened", "flattened_key"):
        raise scope.error(_only_strings(kind, path, field.type))
    _check_searchable(field, scope)
    if not scope.cluster.expensive_allowed:
        tail = optimised if kind == "prefix" else ""
        raise ServerError(
            "exception",
            f"[{kind}] queries cannot be executed when 'search.allow_expensive_queries' is set to false.{tail}",
        )
    if scope.cluster.release.parts >= (7, 11):
        _check_length(pattern)
    elif field.family == "text":
        # 7.10 still puts the pattern through the analyser's lower-casing.
        pattern = pattern.lower()
    accept = wildcard(field.normal(pattern), fold=fold)
    if field.family == "text":
        return Clause(
            values_test(field.path, lambda token: any(accept(word) for word in token.words)), text=f"{path}:{pattern}"
        )
    return Clause(values_test(field.path, accept), text=f"{path}:{pattern}")


def _only_strings(kind: str, path: str, type_: str) -> str:
    kinds = "keyword, text and wildcard fields"
    return f"Can only use {kind} queries on {kinds} - not on [{path}] which is of type [{type_}]"


def _check_length(pattern: str) -> None:
    # Measured: 314 equal characters pass in *v*, 1,560 mixed ones, 998 in v*, 444 in *v.
    inner = pattern.strip("*")
    same = len(set(inner)) <= 1
    limit = 10_000
    if pattern.startswith("*") and same:
        limit = 314 if pattern.endswith("*") else 444
    elif pattern.startswith("*"):
        limit = 1_560
    elif pattern.endswith("*"):
        limit = 998
    if len(inner) > limit:
        raise ServerError(
            "too_complex_to_determinize_exception",
            f"Determinizing automaton with {len(pattern)} states and {len(pattern)} transitions would require more "
            "than 10000 effort.",
        )


def wildcard(pattern: str, *, fold: bool) -> Callable[[str], bool]:
    """Return the test of one string: `*`, `?`, and a backslash before a literal character."""
    if not pattern:
        return lambda _found: False
    parts, escaped = [], False
    for char in folded(pattern) if fold else pattern:
        if escaped:
            parts.append(re.escape(char))
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            parts.append(".*" if char == "*" else "." if char == "?" else re.escape(char))
    if escaped:
        parts.append(re.escape("\\"))
    compiled = re.compile("".join(parts), re.DOTALL)
    return lambda text: compiled.fullmatch(folded(text) if fold else text) is not None


def _match_phrase(argument: Any, scope: Scope) -> Clause:
    path, options = _field_and(argument, "query")
    return phrase_clause(path, options.get("query"), scope, slop=int(options.get("slop", 0)))


def phrase_clause(path: str, value: Any, scope: Scope, *, slop: int = 0) -> Clause:
    """Compile a phrase: words in order for text, the term itself for every other type."""
    field = scope.field(path)
    if field is None or field.family != "text":
        return _equal(path, [value], scope, fold=False)
    if slop:
        raise not_reproduced("slop")
    words = tokens(java_text(value))
    if not words:
        return NONE

    def accept(token: Any) -> bool:
        span = len(words)
        return any(token.words[at : at + span] == words for at in range(len(token.words) - span + 1))

    text = f'{path}:"{" ".join(words)}"' if len(words) > 1 else f"{path}:{words[0]}"
    return Clause(values_test(field.path, accept), text=text)


def _match(argument: Any, scope: Scope) -> Clause:
    path, options = _field_and(argument, "query")
    field = scope.field(path)
    if field is None or field.family != "text":
        return _equal(path, [options["query"]], scope, fold=False)
    every = str(options.get("operator", "or")).lower() == "and"
    words = [phrase_clause(path, word, scope) for word in tokens(java_text(options["query"]))]
    return join(words if every else [], [] if every else words, [], [])


def _bool(argument: Any, scope: Scope) -> Clause:
    groups = {
        kind: [build(clause, scope) for clause in _listed(argument.get(kind, []))]
        for kind in ("must", "filter", "should", "must_not")
    }
    limit = 1_024 if scope.cluster.release.types else 16_384
    if any(len(clauses) > limit for clauses in groups.values()):
        reason = f"maxClauseCount is set to {limit}"
        raise scope.error(f"failed to create query: {reason}", ServerError("too_many_clauses", reason))
    minimum = argument.get("minimum_should_match")
    least = int(minimum) if minimum is not None else None
    return join(groups["must"], groups["should"], groups["must_not"], groups["filter"], least)


def join(
    must: list[Clause], should: list[Clause], must_not: list[Clause], filters: list[Clause], least: int | None = None
) -> Clause:
    """Combine clauses as a bool query does."""
    if not (must or should or must_not or filters):
        return ALL
    if least is None:
        least = 0 if must or filters else min(1, len(should))
    every, none, some = [c.test for c in (*must, *filters)], [c.test for c in must_not], [c.test for c in should]

    def test(doc: Doc, node: Node) -> bool:
        if any(not accept(doc, node) for accept in every) or any(unwanted(doc, node) for unwanted in none):
            return False
        return not least or sum(accept(doc, node) for accept in some) >= least

    score = sum(clause.score for clause in must) + (1.0 if should else 0.0)
    parts = [f"+{_inner(c)}" for c in must] + [f"#{_inner(c)}" for c in filters]
    parts += [_inner(c) for c in should] + [f"-{_inner(c)}" for c in must_not]
    return Clause(test, score, " ".join(parts))


def _inner(clause: Clause) -> str:
    return f"({clause.text})" if " " in clause.text and not clause.text.startswith(("Match", "Field")) else clause.text


def _nested(argument: Any, scope: Scope) -> Clause:
    path, mapping = argument["path"], scope.index.mapping
    scope.expensive("[joining] queries cannot be executed")
    lenient = argument.get("ignore_unmapped", False)
    if mapping.objects.get(path) != "nested":
        mapped = path in mapping.objects
        if mapped and (scope.cluster.release.types or not lenient):
            raise illegal(f"[nested] nested object under path [{path}] is not of nested type")
        if lenient:
            return NONE
        reason = f"[nested] failed to find nested object under path [{path}]"
        raise scope.error(reason) if scope.cluster.release.parts >= (9,) else illegal(reason)
    inner = build(argument["query"], replace(scope, nested=path))
    return Clause(
        lambda doc, node: any(inner.test(doc, below) for below in node.below(path)),
        inner.score,
        f"ToParentBlockJoinQuery ({inner.text})",
    )


def _place(argument: Any, scope: Scope) -> Clause:
    path = next(key for key in argument if key not in ("distance", "ignore_unmapped"))
    field, shape = scope.field(path), argument[path]
    if field is None:
        if argument.get("ignore_unmapped"):
            return NONE
        raise ServerError("query_shard_exception", f"failed to find geo field [{path}]")
    if field.type != "geo_point":
        kind = "geo_distance" if "distance" in argument else "geo_bounding_box"
        raise ServerError(
            "query_shard_exception", f"Field [{path}] is of unsupported type [{field.type}] for [{kind}] query"
        )
    old = scope.cluster.release.parts < (8,)
    accept = places.circle_test(argument, shape) if "distance" in argument else places.box_test(shape, inner=old)
    return Clause(values_test(field.path, accept))


def _query_string(argument: Any, scope: Scope) -> Clause:
    from dragoman_sample.fakes.elasticsearch import query_string  # it compiles its parts with this module

    return query_string.build(argument, scope)


_BUILDERS: dict[str, Callable[[Any, Scope], Clause]] = {
    "match_all": _match_all, "match_none": _match_none, "ids": _ids, "exists": _exists, "term": _term, "terms": _terms,
    "range": _range, "wildcard": _wildcard, "prefix": _prefix, "match_phrase": _match_phrase, "match": _match,
    "bool": _bool, "nested": _nested, "constant_score": _constant, "query_string": _query_string,
    "function_score": _scored, "script_score": _script_scored,
    "geo_distance": _place, "geo_bounding_box": _place,
}  # fmt: skip
