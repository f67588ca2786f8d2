"""The `hits` member of a search: metadata, `_source` as stored, fields, sort values."""

from __future__ import annotations

import fnmatch
import math
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch.dates import format_millis
from dragoman_sample.fakes.elasticsearch.errors import illegal, not_reproduced
from dragoman_sample.fakes.elasticsearch.fields import Token, shown
from dragoman_sample.fakes.elasticsearch.jsontext import Raw, encode, pick

if TYPE_CHECKING:
    from dragoman_sample.fakes.elasticsearch.search import Found
    from dragoman_sample.fakes.elasticsearch.store import Doc
    from dragoman_sample.fakes.elasticsearch.versions import Release


class Writer:
    """Writes the hits of one search."""

    def __init__(self, body: dict[str, Any], release: Release, result: Found) -> None:
        self.body, self.release, self.found = body, release, result
        self.source = source_filter(body.get("_source", True), release)
        names = [key.name for key in result.keys]
        # A sort by score alone is the default order, and shows no sort values.
        self.sorted = bool(names) and names != ["_score"]
        self.scored = not self.sorted or "_score" in names or bool(body.get("track_scores"))
        self.bare = body.get("stored_fields") == "_none_"
        if body.get("stored_fields") not in (None, "_none_"):
            raise not_reproduced("stored_fields")

    def write(self, page: list[tuple[list[Any], int, Doc]]) -> dict[str, Any]:
        """Return `max_score` and `hits`."""
        scores = [self.found.score(doc) for _, _, doc in page]
        best = max(scores, default=None) if self.scored else None
        return {"max_score": best, "hits": [self._hit(values, doc) for values, _, doc in page]}

    def _hit(self, values: list[Any], doc: Doc) -> dict[str, Any]:
        hit: dict[str, Any] = {"_index": doc.index.name}
        if self.release.types:
            hit["_type"] = "_doc"
        if not self.bare:
            hit["_id"] = doc.id
        if self.body.get("version"):
            hit["_version"] = doc.version
        if self.body.get("seq_no_primary_term"):
            hit["_seq_no"], hit["_primary_term"] = doc.seq_no, 1
        hit["_score"] = self.found.score(doc) if self.scored else None
        if not self.bare:
            if doc.routing is not None:
                hit["_routing"] = doc.routing
            if doc.ignored:
                hit["_ignored"] = doc.ignored
            source = self.source(whole(doc, self.body.get("_source"))) if doc.source else None
            if source is not None:
                hit["_source"] = source
        fields = self._fields(doc)
        if fields:
            hit["fields"] = fields
        if self.sorted:
            compiled = self.found.compiled[doc.index.name]
            hit["sort"] = [sort_text(how.show(value)) for how, value in zip(compiled, values, strict=True)]
        return hit

    def _fields(self, doc: Doc) -> dict[str, list[Any]]:
        shown_: dict[str, list[Any]] = {}
        for member in ("docvalue_fields", "fields"):
            for entry in self.body.get(member, ()):
                pattern = entry["field"] if isinstance(entry, dict) else entry
                if pattern == "_seq_no":
                    raise illegal("Cannot fetch values for internal field [_seq_no].")
                mapping = doc.index.mapping
                for name in [*mapping.fields, *mapping.aliases]:
                    target = mapping.field(name)
                    if target is None or target.nested or not fnmatch.fnmatchcase(name, pattern):
                        continue
                    date_format = entry.get("format", "") if isinstance(entry, dict) else ""
                    values = [
                        _field_value(target, value, date_format) for value in doc.node.values.get(target.path, ())
                    ]
                    if values and not isinstance(doc.node.values[target.path][0], Token):
                        if member == "docvalue_fields":
                            # Columns are sorted, and keywords kept once.
                            values = sorted(set(values) if target.family in ("string", "ip") else values)
                        shown_[name] = values
        return shown_


def _field_value(target: Any, value: Any, date_format: str) -> Any:
    if target.type == "date_nanos" and ("nanos" in target.formats or date_format.endswith("_nanos")):
        return f"{format_millis(value // 1_000_000)[:-1]}{value % 1_000_000:06}".rstrip("0").ljust(23, "0") + "Z"
    return format_millis(value) if target.type == "date" else shown(target, value)


def sort_text(value: Any) -> Any:
    """Return a sort value as JSON can hold it."""
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def whole(doc: Doc, selection: Any) -> bytes:
    """Return a document's bytes before they are filtered: since 9.2, without vectors unless they are asked for.

    Vectors that are indexed lie apart from the document, which is written anew with them at its end.
    """
    index = doc.index
    excluded = index.settings.get("index.mapping.exclude_source_vectors", index.release.parts >= (9, 2))
    fields = {
        field.path: field for field in index.mapping.fields.values() if field.type in ("dense_vector", "sparse_vector")
    }
    if excluded in (False, "false") or not fields or not doc.source:
        return doc.source
    if any(field.nested for field in fields.values()):
        raise not_reproduced("vectors in nested objects")
    value = Raw(doc.source).parsed()
    without = pick(value, [], list(fields))
    if not isinstance(selection, dict) or selection.get("exclude_vectors", True):
        return encode(without).encode()
    if not any(field.params.get("index", True) for field in fields.values()):
        return doc.source
    vectors = {name: value[name] for name in sorted(fields) if name in value}
    floats = {name: [float(number) for number in vector] for name, vector in vectors.items()}
    return encode({**without, **floats}).encode()


def source_filter(selection: Any, release: Release) -> Any:
    """Return what turns stored bytes into the `_source` of an answer, or None where it is not wanted."""
    if selection is True or (isinstance(selection, dict) and {*selection} == {"exclude_vectors"}):
        return Raw
    if selection is False:
        return lambda _source: None
    if isinstance(selection, dict):
        includes = selection.get("includes", selection.get("include", []))
        excludes = selection.get("excludes", selection.get("exclude", []))
    else:
        includes, excludes = selection, []
    patterns = [[globs] if isinstance(globs, str) else list(globs or ()) for globs in (includes, excludes)]

    def filtered(source: bytes) -> Any:
        picked = pick(Raw(source).parsed(), *patterns)
        # A filtered source comes out of a hash map on 7.x: keys in another order than they were stored in.
        if release.types and isinstance(picked, dict):
            picked = dict(reversed(picked.items()))
        return Raw(encode(picked).encode())

    return filtered
