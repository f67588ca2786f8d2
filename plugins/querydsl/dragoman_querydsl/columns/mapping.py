"""Turns mappings and field capabilities of one or several indices into fields and columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from dragoman_api import Note
from dragoman_api import Operator as Op
from dragoman_api.columns import MAX_DIMENSIONS
from dragoman_api.errors import ObjectNotFoundError
from dragoman_api.kit.views import digest
from dragoman_api.remedies import Remedy, RemedyKind
from dragoman_querydsl import protocol

from . import exactness
from .field_types import DATE_FORMAT, Family, Field, VectorMapping, family_of
from .grid_columns import View, column

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHADOWED = (
    "a runtime field ({}) takes the place of the mapped one ({}): the column shows, filters and sorts by what is "
    "computed; documents and exports hold what is stored"
)
_ANY = frozenset(("nested", "object", "passthrough"))
_COMPUTED = frozenset(("composite", "lookup"))

SETTINGS = (
    "index.mode",
    "index.mapping.coerce",
    "index.mapping.ignore_above",
    "index.mapping.ignore_malformed",
    "index.mapping.source.mode",
    "index.derived_source.enabled",
)
"""The settings that change what an index makes of its documents."""
VECTORS_APART = "index.mapping.exclude_source_vectors"
"""Whether an index keeps vectors apart from documents; since 9.2, and by default for an index made since then."""
NEAR = ("dense_vector", "knn_vector")
"""The types of vectors by which rows are near."""
SPACES = {"cosinesimil": "cosine", "innerproduct": "max_inner_product", "l2": "l2_norm"}
"""What the k-NN plugin calls the ways to compare vectors; a mapping that names none means `l2`."""
_VECTORS = frozenset(("dense_vector", "rank_vectors", "sparse_vector"))
_DEFAULTS: Mapping[str, Mapping[str, str]] = {}

SPECIAL = (
    Field(name="_id", types=("_id",), family=Family.ID, field="_id"),
    Field(name="_index", types=("_index",), family=Family.INDEX, field="_index"),
    Field(name="_score", types=("_score",), family=Family.SCORE, field="_score"),
)
"""The columns every index has (E18)."""


class TypeCapabilities(msgspec.Struct, frozen=True):
    """The capabilities of one type of a field, merged over all indices of a target, or over those it names."""

    searchable: bool = True
    aggregatable: bool = True
    indices: list[str] | None = None


class FieldCaps(msgspec.Struct, frozen=True):
    """An answer of `_field_caps`."""

    indices: list[str] = []
    fields: dict[str, dict[str, TypeCapabilities]] = {}
    failed_indices: int = 0


class IndexMapping(msgspec.Struct, frozen=True):
    """One index of an answer of `_mapping`; equal mappings have equal bytes."""

    mappings: Raw = Raw(b"{}")


class _Group(msgspec.Struct, frozen=True, kw_only=True):
    """Indices that have the same mapping and the same settings, and whether a part of them is hidden."""

    indices: tuple[str, ...]
    mapping: dict[str, Any]
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)
    hidden: bool = False


class _Leaf(msgspec.Struct, frozen=True, kw_only=True):
    """One field of one mapping, before indices are merged; `hides` is the type of the mapped field of its name."""

    name: str
    spec: dict[str, Any]
    keys: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    runtime: bool = False
    hides: str = ""
    copied: tuple[str, ...] = ()
    group: _Group

    @property
    def type(self) -> str:
        return str(self.spec.get("type", "object"))

    @property
    def computed(self) -> bool:
        """Whether it has values that are not stored; a runtime field without a script reads the stored ones."""
        return self.runtime and ("script" in self.spec or self.type in _COMPUTED)

    def indexed(self, *, keyword: bool) -> exactness.Indexed:
        """Return how the field is indexed, or its keyword sub-field."""
        spec = self.spec["fields"]["keyword"] if keyword else self.spec
        full = spec if self.runtime else exactness.with_settings(spec, self.group.settings)
        read = self.runtime and not self.computed
        return exactness.Indexed(spec=full, copied=self.copied, hidden=self.group.hidden, read=read)


def _excluded(name: str, source: dict[str, Any]) -> bool:
    """Return whether stored documents leave out a field, by the `_source` of a mapping that keeps documents."""
    names = (name, *_parents(name))
    included, left_out = (
        any(fnmatchcase(path, pattern) for pattern in source.get(key, ()) for path in names)
        for key in ("includes", "excludes")
    )
    return left_out or bool(source.get("includes") and not included)


def rebuilds_documents(settings: Mapping[str, str]) -> bool:
    """Return whether an index with these settings rebuilds its documents: the mapping does not always say so."""
    if settings.get("index.derived_source.enabled") == "true":  # of OpenSearch
        return True
    by_mode = "synthetic" if settings.get("index.mode") in ("logsdb", "time_series") else ""
    return settings.get("index.mapping.source.mode", by_mode) == "synthetic"


def _keeps_none(source: dict[str, Any]) -> bool:
    return source.get("enabled") is False or source.get("mode") == "disabled"


def read(
    name: str,
    mappings: dict[str, IndexMapping] | None,
    caps: FieldCaps,
    settings: Mapping[str, Mapping[str, str]] | None = _DEFAULTS,
    *,
    vectors_apart: Collection[str] = (),
    orders_unsigned: bool = True,
) -> View:
    """Merge the answers of `_mapping`, `_field_caps` and `_settings` into one view.

    Args:
        name: The requested name.
        mappings: Mappings by concrete index; None if the credentials may not see them.
        caps: The capabilities of all fields.
        settings: By concrete index and dotted name, those that `SETTINGS` lists; None if the credentials may not see
            them.
        vectors_apart: The concrete indices that keep their vectors apart from their documents, or may do so.
        orders_unsigned: The server sorts an `unsigned_long` in the right order.

    Raises:
        ObjectNotFoundError: No index has this name.
    """
    notes: list[Note] = []
    indices = caps.indices if mappings is None else list(mappings)
    if mappings is None:
        reason = "the credentials may not read the mapping (view_index_metadata): columns come from field capabilities"
        notes.append(Note(code="mapping-hidden", reason=reason))
    silent = caps.failed_indices or len({*indices}.difference(caps.indices))  # 7.10 just leaves them out
    if silent:
        reason = f"{silent} of the indices behind this name did not report what their fields can do"
        notes.append(Note(code="capabilities-partial", reason=f"{reason}: some columns or types may be missing"))
    if not indices:
        raise ObjectNotFoundError(f"no index matches '{name}'", remedies=[Remedy(RemedyKind.LIST_OBJECTS)])
    groups = _from_caps(caps) if mappings is None else list(_groups(mappings, settings))
    merged: dict[str, list[_Leaf]] = {}
    for group in groups:
        for leaf in _leaves(group):
            merged.setdefault(leaf.name, []).append(leaf)
    fields = [
        field if orders_unsigned or "unsigned_long" not in field.types else replace(field, misordered=True)
        for field in _fields(merged, caps.fields, groups)
    ]
    notes += (
        Note(code="type-conflict", column=field.name, reason=field.conflict or f"mapped as {', '.join(field.types)}")
        for field in fields
        if len(field.types) > 1 or field.conflict
    )
    notes += (
        Note(code="field-shadowed", column=leaf.name, reason=_SHADOWED.format(leaf.type, leaf.hides))
        for leaf in {leaf.name: leaf for leaves in merged.values() for leaf in leaves if leaf.hides}.values()
    )
    ordered = {field.name: field for field in (*SPECIAL, *sorted(fields, key=lambda field: field.name.casefold()))}
    decoded = [group.mapping for group in groups]
    sources = [mapping.get("_source") or {} for mapping in decoded]
    excluded = {
        field.name: "; ".join(texts)
        for field in fields
        if not field.computed and (texts := [_pruned(source) for source in sources if _excluded(field.field, source)])
    }
    apart = frozenset(vectors_apart)
    vectors = {
        leaf.name: None for leaves in merged.values() for leaf in leaves
        if leaf.type in _VECTORS and not apart.isdisjoint(leaf.group.indices)
        and leaf.spec.get("index", True) not in (False, "false")
    }  # fmt: skip
    time = time_column(ordered, stream=all("_data_stream_timestamp" in mapping for mapping in decoded))
    return View(
        target=name,
        objects=tuple(indices),
        fields=ordered,
        columns={
            field.name: column(
                field,
                stored=any(not _keeps_none(source) and not _excluded(field.field, source) for source in sources),
                excluded=excluded.get(field.name, ""),
                time=field.name == time,
            )
            for field in ordered.values()
        },
        revision=digest(caps if mappings is None else mappings),
        structure=_structure(mappings) if mappings is not None else "",
        notes=tuple(notes),
        synthetic=any(
            source["mode"] == "synthetic" if source.get("mode") else rebuilds_documents(group.settings)
            for source, group in zip(sources, groups, strict=True)
        ),
        pruned=next(filter(None, map(_pruned, sources)), ""),
        excluded=excluded,
        vectors_apart=tuple(vectors),
        routed=bool(decoded)
        and all((mapping.get("_routing") or {}).get("required") in (True, "true") for mapping in decoded),
        hidden=mappings is None,
        time=time,
    )


def _groups(mappings: dict[str, IndexMapping], settings: Mapping[str, Mapping[str, str]] | None) -> Iterator[_Group]:
    # Rotated indices share their mapping byte for byte: read each distinct one once.
    distinct: dict[tuple[bytes, tuple[tuple[str, str], ...]], list[str]] = {}
    for index, mapping in mappings.items():
        index_settings = (settings or _DEFAULTS).get(index, {})
        pairs = tuple((key, index_settings[key]) for key in SETTINGS if key in index_settings)
        distinct.setdefault((bytes(mapping.mappings), pairs), []).append(index)
    for (text, pairs), indices in distinct.items():
        yield _Group(
            indices=tuple(indices),
            mapping=protocol.parsed(text, dict[str, Any]),
            settings=dict(pairs),
            hidden=settings is None,
        )


def _pruned(source: dict[str, Any]) -> str:
    return "; ".join(f"_source.{key}: {', '.join(source[key])}" for key in ("excludes", "includes") if source.get(key))


def _structure(mappings: dict[str, IndexMapping]) -> str:
    first = {bytes(mapping.mappings): index for index, mapping in reversed(mappings.items())}
    text = msgspec.json.encode({index: {"mappings": Raw(text)} for text, index in reversed(first.items())})
    return msgspec.json.format(text, indent=2).decode()


def _leaves(group: _Group) -> Iterator[_Leaf]:
    root = _Leaf(name="", spec={}, group=group)
    mapped = {leaf.name: leaf for leaf in _walk(group.mapping.get("properties") or {}, root)}
    copied: dict[str, list[str]] = {}
    for leaf in mapped.values():
        copy_to = leaf.spec.get("copy_to") or ()
        for target in [copy_to] if isinstance(copy_to, str) else copy_to:
            copied.setdefault(target, []).append(leaf.name)
    for name, spec in (group.mapping.get("runtime") or {}).items():  # the server takes it in place of a mapped one
        hidden = mapped.pop(name, None)
        keys = hidden.keys if hidden else tuple(name.split("."))
        leaf = _Leaf(name=name, spec=spec, keys=keys, runtime=True, group=group)
        yield replace(leaf, hides=hidden.type) if hidden and leaf.computed else leaf
    for leaf in mapped.values():
        yield replace(leaf, copied=tuple(copied[leaf.name])) if leaf.name in copied else leaf


def _unmapped(name: str, mapping: dict[str, Any]) -> bool:
    """Return whether a mapping that lacks a field lets its index store it all the same."""
    dynamic = None
    at: dict[str, Any] | None = mapping
    for key in name.split("."):
        if at is None or at.get("enabled") in (False, "false"):
            break
        dynamic = at.get("dynamic", dynamic)
        at = (at.get("properties") or {}).get(key)
    return str(dynamic).lower() == "false" or (at or {}).get("enabled") in (False, "false")


def _walk(properties: dict[str, Any], parent: _Leaf) -> Iterator[_Leaf]:
    for key, spec in properties.items():
        name = f"{parent.name}.{key}" if parent.name else key
        leaf = replace(parent, name=name, spec=spec, keys=(*parent.keys, key))
        children = spec.get("properties")
        if leaf.type == "nested":
            yield leaf
            leaf = replace(leaf, nested=(*leaf.nested, name))
        elif not children or leaf.type not in _ANY:
            yield leaf
        yield from _walk(children or {}, leaf)


def _fields(
    merged: dict[str, list[_Leaf]], caps: dict[str, dict[str, TypeCapabilities]], groups: list[_Group]
) -> list[Field]:
    fields = {name: _field(leaves, caps, groups) for name, leaves in merged.items()}
    for name, leaves in merged.items():
        if leaves[-1].type != "alias":
            continue
        target = fields.get(str(leaves[-1].spec.get("path")))
        if target is not None and all(leaf.spec.get("path") == target.name for leaf in leaves):
            # An index that lacks the alias has the field all the same, and would answer for it.
            within = (
                tuple(index for leaf in leaves for index in leaf.group.indices) if len(leaves) < len(groups) else ()
            )
            fields[name] = replace(target, name=name, alias=True, within=within)
    # One index may map a field that another maps as an object: no request fits both. A dotted name needs no object.
    objects = {
        ".".join(leaf.keys[:end])
        for leaves in merged.values()
        for leaf in leaves
        if not leaf.runtime
        for end in range(1, len(leaf.keys))
    }
    for name in fields.keys() & objects:
        if fields[name].family is not Family.NESTED:
            fields[name] = replace(fields[name], conflict="an object in one index and a single field in another")
    return [
        replace(field, arrayless=True) if any(fields[path].partial for path in field.nested) else field
        for field in fields.values()
    ]


def _parents(name: str) -> Iterator[str]:
    at = name.find(".")
    while at > 0:
        yield name[:at]
        at = name.find(".", at + 1)


def _field(leaves: list[_Leaf], caps: dict[str, dict[str, TypeCapabilities]], groups: list[_Group]) -> Field:
    first, last = leaves[0], leaves[-1]
    types = tuple(dict.fromkeys(leaf.type for leaf in leaves))
    families = {family_of(kind) for kind in types}
    family = families.pop() if len(families) == 1 else Family.MIXED
    keyword = f"{first.name}.keyword" if family is Family.TEXT and all(map(_has_keyword, leaves)) else None
    searchable, aggregatable = _capabilities(caps.get(keyword or first.name))
    indexed = [leaf.indexed(keyword=keyword is not None) for leaf in leaves]
    having = {id(leaf.group) for leaf in leaves}
    lacking = [group for group in groups if id(group) not in having]
    if any(_unmapped(first.name, group.mapping) for group in lacking):
        indexed.append(exactness.Indexed(spec={}, unmapped=True))
    alike = len({(leaf.nested, leaf.computed) for leaf in leaves}) == 1
    return Field(
        name=first.name,
        types=types,
        family=family,
        field=first.name,
        keys=last.keys,
        keyword=keyword,
        nested=first.nested,
        searchable=searchable,
        aggregatable=aggregatable,
        exists=any(_capabilities(caps.get(first.name))),
        computed=last.computed,
        gaps=exactness.gaps(indexed),
        formats=tuple(dict.fromkeys(str(leaf.spec.get("format") or DATE_FORMAT) for leaf in leaves)),
        partial=bool(lacking),
        dimensions=_dimensions([leaf.spec for leaf in leaves]),
        vectors=tuple(dict.fromkeys(_vectors(leaf.spec) for leaf in leaves if leaf.type in NEAR)),
        conflict="" if alike else "nested or computed in one index, and not in another",
    )


def _dimensions(specs: list[dict[str, Any]]) -> int | None:
    """Return the dimensions of vectors, 0 if the mappings differ or say none; None for another field."""
    bits = ("bit", "binary")
    if any(
        spec.get("type") not in NEAR or spec.get("element_type") in bits or spec.get("data_type") in bits
        for spec in specs
    ):
        return None
    sizes = {spec.get("dims", spec.get("dimension")) for spec in specs}
    size = sizes.pop() if len(sizes) == 1 else None
    return size if isinstance(size, int) and 0 < size <= MAX_DIMENSIONS else 0


def _vectors(spec: dict[str, Any]) -> VectorMapping:
    if spec.get("type") == "knn_vector":
        method = spec.get("method") or {}
        space = "that of a model" if "model_id" in spec else method.get("space_type") or spec.get("space_type") or "l2"
        return VectorMapping(
            similarity=SPACES.get(space, space),
            bytes=spec.get("data_type") == "byte",
            indexed=method.get("engine") == "lucene",
            quantized="encoder" in (method.get("parameters") or {}),
        )
    kind = (spec.get("index_options") or {}).get("type", "")
    return VectorMapping(
        similarity=str(spec.get("similarity", "")),
        bytes=spec.get("element_type") == "byte",
        indexed=spec.get("index") in (True, "true"),
        quantized=str(kind).startswith(("int", "bbq")),
    )


def _capabilities(types: dict[str, TypeCapabilities] | None) -> tuple[bool, bool]:
    if types is None:  # inside `enabled: false`, or nothing was indexed
        return False, False
    searchable = all(capabilities.searchable for capabilities in types.values())
    return searchable, all(capabilities.aggregatable for capabilities in types.values())


def _has_keyword(leaf: _Leaf) -> bool:
    return bool((leaf.spec.get("fields") or {}).get("keyword", {}).get("type") == "keyword")


def _from_caps(caps: FieldCaps) -> list[_Group]:
    """Rebuild mappings from capabilities, which need no more than the right to read.

    They name the indices of each type where a field has several.
    """
    several = {name: types for name, types in caps.fields.items() if len(types) > 1}
    distinct: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for index in caps.indices:
        own_types = (
            (name, kind) for name, types in several.items() for kind in types if index in (types[kind].indices or ())
        )
        distinct.setdefault(tuple(own_types), []).append(index)
    return [
        _Group(
            indices=tuple(indices),
            mapping=_rebuilt(
                {name: next(iter(types), "object") for name, types in caps.fields.items() if name not in several}
                | dict(own_types)
            ),
            hidden=True,
        )
        for own_types, indices in distinct.items()
    ]


def _rebuilt(types: dict[str, str]) -> dict[str, Any]:
    root: dict[str, Any] = {"properties": {}}
    nodes = {"": root}
    for name in sorted(types):
        if name.startswith("_"):
            continue
        parent, _, key = name.rpartition(".")
        while parent not in nodes:  # an object without an entry of its own
            parent, _, front = parent.rpartition(".")
            key = f"{front}.{key}"
        spec: dict[str, Any] = {"type": types[name]}
        under = "properties" if nodes[parent].get("type", "object") in _ANY else "fields"
        nodes[parent].setdefault(under, {})[key] = nodes[name] = spec
    return root


_NAMES = ("@timestamp", "timestamp")  # the first is the one of every data stream
_ISO = ("strict_date_optional_time", "date_optional_time")
_HARMLESS = {"date", "format"}  # a range has a format of its own, and bounds as fine as the column


def time_column(fields: Mapping[str, Field], *, stream: bool) -> str:
    """Return the name of the time column; empty if there is none, or one of two.

    Args:
        fields: All fields, by column name.
        stream: All indices belong to data streams.
    """
    candidates = _NAMES[:1] if stream else _NAMES
    names = [name for name in candidates if name in fields and fields[name].family is Family.DATE]
    return names[0] if len(names) == 1 and _exact(fields[names[0]]) else ""


def _exact(field: Field) -> bool:
    """Return whether a range of instants finds exactly the rows whose stored values lie in it."""
    if field.alias or field.computed or field.conflict or Op.BETWEEN not in field.support[0]:
        return False
    harmless = _HARMLESS
    if {*field.types} == {"date"} and all(name.startswith(_ISO) for name in field.formats):
        harmless = harmless | {"ignore_malformed"}  # a full instant is never malformed there
    return {gap.name for gap in field.gaps} <= harmless
