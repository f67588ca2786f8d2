"""Sort keys: values with the server's sentinels for missing ones, and the order between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch import queries
from dragoman_sample.fakes.elasticsearch.errors import ServerError, illegal, not_reproduced, parsing
from dragoman_sample.fakes.elasticsearch.fields import FLOATS, Field, address, number, shown

if TYPE_CHECKING:
    from dragoman_sample.fakes.elasticsearch.mapping import Node
    from dragoman_sample.fakes.elasticsearch.queries import Scope
    from dragoman_sample.fakes.elasticsearch.store import Doc
    from dragoman_sample.fakes.elasticsearch.versions import Release

LONG_MAX, LONG_MIN = 2**63 - 1, -(2**63)
_OPTIONS = {"order", "missing", "mode", "nested", "unmapped_type", "numeric_type", "format"}
# Reads the value of one document: (document, position of its shard).
Reader = Callable[["Doc", int], Any]


@dataclass(frozen=True, slots=True)
class Key:
    """One checked sort key."""

    name: str
    descending: bool
    options: dict[str, Any] = field(default_factory=dict)


def check(body: Any, release: Release) -> list[Key]:
    """Read the `sort` member of a search.

    Raises:
        ServerError: for an unknown option, as a fault.
    """
    keys = []
    for item in body if isinstance(body, list) else [body]:
        entries = {item: {}} if isinstance(item, str) else item
        if not isinstance(entries, dict):
            raise ServerError("illegal_argument_exception", "malformed sort format, within the sort array", fault=True)
        for name, value in entries.items():
            options = {"order": value} if isinstance(value, str) else dict(value)
            keys.append(_key(name, options, release))
    return keys


def _key(name: str, options: dict[str, Any], release: Release) -> Key:
    for option in options.keys() - _OPTIONS:
        if option == "nested_path" and release.types:
            continue
        hint = " did you mean [nested]?" if option == "nested_path" else ""
        raise ServerError("x_content_parse_exception", f"[1:1] [field_sort] unknown field [{option}]{hint}", fault=True)
    nested = options.get("nested") or {}
    for option in nested.keys() - {"path", "filter", "nested", "max_children"}:
        raise parsing(f"[nested] unknown field [{option}]")
    if "filter" in nested:
        queries.check(nested["filter"])
    order = options.get("order", "desc" if name == "_score" else "asc")
    if order not in ("asc", "desc"):
        raise ServerError("illegal_argument_exception", f"Illegal sort order [{order}]", fault=True)
    return Key(name, order == "desc", options)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A sort key for one index: how to read a value, how to show it, and whether values are text."""

    read: Reader
    kind: str
    show: Callable[[Any], Any] = lambda value: value


def compile_key(key: Key, scope: Scope, score: float) -> Compiled:
    """Compile a key for one index.

    Raises:
        ServerError: what the shards of this index answer.
    """
    if key.name == "_score":
        return Compiled(lambda _doc, _shard: score, "FLOAT")
    if key.name == "_doc":
        return Compiled(lambda doc, _shard: doc.slot, "LONG")
    if key.name == "_shard_doc" and scope.cluster.release.parts >= (7, 12):
        return Compiled(lambda doc, shard: shard << 32 | doc.slot, "LONG")
    if key.name == "_seq_no":
        return Compiled(lambda doc, _shard: doc.seq_no, "LONG")
    if key.name == "_index":
        return Compiled(lambda doc, _shard: doc.index.name, "STRING")
    if key.name == "_id":
        if not scope.cluster.release.types:
            raise illegal(
                "Fielddata access on the _id field is disallowed, you can re-enable it by updating the dynamic cluster "
                "setting: indices.id_field_data.enabled"
            )
        return Compiled(lambda doc, _shard: doc.id, "STRING")
    target = scope.field(key.name)
    if target is None:
        return _unmapped(key, scope)
    _check_sortable(target, key, scope)
    return _field_key(target, key, scope)


def _unmapped(key: Key, scope: Scope) -> Compiled:
    kind = key.options.get("unmapped_type")
    if kind is None:
        raise scope.error(f"No mapping found for [{key.name}] in order to sort on")
    return _field_key(Field(key.name, kind), key, scope)


def _check_sortable(target: Field, key: Key, scope: Scope) -> None:
    release = scope.cluster.release
    if target.family == "text":
        where = f"Fielddata is disabled on [{key.name}] in [{scope.index.name}]. " if not release.types else ""
        raise illegal(
            f"{where}Text fields are not optimised for operations that require per-document field data like "
            "aggregations and sorting, so these operations are disabled by default. Please use a keyword field "
            f"instead. Alternatively, set fielddata=true on [{key.name}] in order to load field data by uninverting "
            "the inverted index. Note that this can use significant memory."
        )
    if not target.doc_values:
        raise illegal(
            f"Can't load fielddata on [{key.name}] because fielddata is unsupported on fields of type [{target.type}]. "
            "Use doc values instead."
        )
    if target.family in ("opaque", "range"):
        raise not_reproduced(f"sorting on {target.type}")
    if target.nested and not key.options.get("nested") and not release.types:
        raise scope.error(f"it is mandatory to set the [nested] context on the nested sort field: [{key.name}].")


def _field_key(target: Field, key: Key, scope: Scope) -> Compiled:
    descending = key.descending
    kind, missing = _missing(target, key, scope.cluster.release, descending=descending)
    choose = _chooser(key, descending=descending)
    gather = _gather(target, key, scope)
    convert = _conversion(target, key)

    def read(doc: Doc, _shard: int) -> Any:
        values = gather(doc)
        return choose([convert(value) for value in values] if convert else values) if values else missing

    if target.family == "date" and "format" in key.options:
        raise not_reproduced("format on a sort key")
    if target.family == "ip":
        return Compiled(read, "IP", lambda value: None if value is None else shown(target, value))
    if target.family == "boolean":
        return Compiled(lambda doc, shard: int(read(doc, shard)), kind)
    return Compiled(read, kind)


def _conversion(target: Field, key: Key) -> Callable[[Any], Any] | None:
    """Return what `numeric_type` makes of a value; a double has no room for every integer."""
    numeric_type = key.options.get("numeric_type")
    if numeric_type == "date_nanos" and target.type == "date":
        return lambda value: value * 1_000_000
    return float if numeric_type == "double" and target.family == "integer" else None


def _missing(target: Field, key: Key, release: Release, *, descending: bool) -> tuple[str, Any]:
    """Return the kind of the key and what stands for a missing value."""
    missing = key.options.get("missing", "_last")
    high = (missing == "_last") != descending
    if target.family in ("string", "ip", "flattened_key", "flattened"):
        if missing in ("_last", "_first"):
            return "STRING", None
        return "STRING", address(missing) if target.family == "ip" else str(missing)
    numeric = key.options.get("numeric_type")
    floats = target.type in FLOATS or numeric == "double"
    kind = "DOUBLE" if floats else "LONG"
    if missing not in ("_last", "_first"):
        return kind, float(number(missing)) if floats else int(number(missing))
    if floats:
        return kind, math.inf if high else -math.inf
    if (target.type == "date_nanos" or numeric == "date_nanos") and release.parts >= (7, 11):
        return kind, LONG_MAX if high else 0
    if target.type == "unsigned_long":  # no build at hand has it: as its range suggests
        return kind, 2**64 - 1 if high else 0
    if target.type in ("integer", "short", "byte") and release.parts >= (8, 19) and numeric is None:
        return kind, 2**31 - 1 if high else -(2**31)
    return kind, LONG_MAX if high else LONG_MIN


def _chooser(key: Key, *, descending: bool) -> Callable[[list[Any]], Any]:
    mode = key.options.get("mode", "max" if descending else "min")
    if mode in ("min", "max"):
        return min if mode == "min" else max
    if mode == "sum":
        return sum
    if mode == "avg":
        return lambda values: sum(values) / len(values)
    raise not_reproduced(f"sort mode {mode}")


def _gather(target: Field, key: Key, scope: Scope) -> Callable[[Doc], list[Any]]:
    path = target.path
    nested = key.options.get("nested") or ({"path": key.options["nested_path"]} if "nested_path" in key.options else {})
    if not nested:
        return lambda doc: doc.node.values.get(path, [])
    while "nested" in nested:
        nested = nested["nested"]
    at = nested["path"]
    if scope.index.mapping.objects.get(at) != "nested":
        raise scope.error(f"[nested] failed to find nested object under path [{at}]")
    test = queries.build(nested["filter"], replace(scope, nested=at)).test if "filter" in nested else None

    def gather(doc: Doc) -> list[Any]:
        values: list[Any] = []
        for node in doc.node.below(at):
            if test is None or test(doc, node):
                values += _values(node, path)
        return values

    return gather


def _values(node: Node, path: str) -> list[Any]:
    values = list(node.values.get(path, ()))
    for below in node.nodes:
        values += _values(below, path)
    return values


def order_value(value: Any, key: Key) -> Any:
    """Return what Python can compare in ascending order; a missing string goes where the key wants it."""
    if isinstance(value, str | bytes) or value is None:
        last = key.options.get("missing", "_last") == "_last"
        if value is None:
            return (1 if last != key.descending else -1, b"")
        return (0, value.encode() if isinstance(value, str) else value)
    return value


def cursor_value(value: Any, compiled: Compiled, key: Key, release: Release) -> Any:
    """Read one value of `search_after`.

    Raises:
        ServerError: for a value that the key cannot take.
    """
    if compiled.kind in ("STRING", "IP"):
        return None if value is None else address(value) if compiled.kind == "IP" else str(value)
    if value is None:
        status = 500 if release.parts < (8, 19) else 400
        raise ServerError(
            "illegal_argument_exception", f"Failed to parse search_after value for field [{key.name}].", status=status
        )
    if value in ("Infinity", "-Infinity"):
        return math.inf if value == "Infinity" else -math.inf
    try:
        parsed = number(value)
    except ServerError as cause:
        reason = f"Failed to parse search_after value for field [{key.name}]."
        raise ServerError("illegal_argument_exception", reason, caused_by=cause) from None
    return float(parsed) if compiled.kind in ("DOUBLE", "FLOAT") else int(parsed)
