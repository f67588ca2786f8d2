"""Mappings: fields by path, dynamic additions, and a document taken apart into what is indexed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch import places
from dragoman_sample.fakes.elasticsearch.dates import looks_like_date
from dragoman_sample.fakes.elasticsearch.errors import ServerError, illegal, not_reproduced
from dragoman_sample.fakes.elasticsearch.fields import FLOATS, INTEGERS, PARAMETERS, TYPES, Field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman_sample.fakes.elasticsearch.versions import Release

_ROOT_KEYS = {
    "properties",
    "subobjects",
    "dynamic",
    "_source",
    "_meta",
    "_routing",
    "date_detection",
    "numeric_detection",
}


@dataclass(slots=True)
class Node:
    """The indexed values of a document or of one nested object, with the nested objects below it."""

    path: str = ""
    values: dict[str, list[Any]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    def below(self, path: str) -> Iterator[Node]:
        """Yield the nested objects of this path, however deep."""
        for node in self.nodes:
            if node.path == path:
                yield node
            if path.startswith(node.path + "."):
                yield from node.below(path)

    def count(self) -> int:
        """Return how many Lucene documents this is: itself and every nested object."""
        return 1 + sum(node.count() for node in self.nodes)


class Mapping:
    """The mapping of one index."""

    def __init__(
        self, release: Release, body: dict[str, Any] | None = None, settings: dict[str, Any] | None = None
    ) -> None:
        self.release = release
        # Index settings that hold for every field which does not say otherwise.
        self.defaults = {
            key: value
            for key in ("coerce", "ignore_above", "ignore_malformed")
            if (value := (settings or {}).get(f"index.mapping.{key}")) is not None
        }
        self.body: dict[str, Any] = {}
        self.fields: dict[str, Field] = {}
        self.objects: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.flats: set[str] = set()  # prefixes below which there are no objects
        self.merge(body or {})

    def merge(self, body: dict[str, Any]) -> None:
        """Add what a PUT of a mapping brings; a field cannot change its type.

        Raises:
            ServerError: for an unknown key, type or parameter.
        """
        for key in body:
            if key not in _ROOT_KEYS or (key == "subobjects" and self.release.parts < (8, 3)):
                reason = f"Root mapping definition has unsupported parameters:  [{key} : {body[key]}]"
                raise ServerError("mapper_parsing_exception", reason, fault=True)
        merged = {**self.body, **{key: value for key, value in body.items() if key != "properties"}}
        flat = merged.get("subobjects") is False
        properties = _merged(self.body.get("properties", {}), body.get("properties", {}), "", flat=flat)
        if properties:
            merged["properties"] = properties
        fields, objects, aliases, flats = self.fields, self.objects, self.aliases, self.flats
        self.fields, self.objects, self.aliases, self.flats = {}, {}, {}, {""} if flat else set()
        try:
            self._walk(properties, "", ())
        except ServerError:
            self.fields, self.objects, self.aliases, self.flats = fields, objects, aliases, flats
            raise
        self.body = merged

    def _walk(self, properties: dict[str, Any], prefix: str, nested: tuple[str, ...]) -> None:
        for name, definition in properties.items():
            path = prefix + name
            kind = definition.get("type", "object")
            if kind in ("object", "nested"):
                self.objects[path] = "disabled" if definition.get("enabled") in (False, "false") else kind
                below = (*nested, path) if kind == "nested" else nested
                self.flats |= {f"{path}."} if definition.get("subobjects") is False else set()
                self._walk(definition.get("properties", {}), f"{path}.", below)
            elif kind == "alias":
                self.aliases[path] = definition["path"]
            else:
                self._leaf(path, definition, nested)

    def _leaf(self, path: str, definition: dict[str, Any], nested: tuple[str, ...]) -> None:
        kind, name = definition["type"], path.rpartition(".")[2]
        if kind not in TYPES:
            reason = f"No handler for type [{kind}] declared on field [{name}]"
            if self.release.parts >= (8, 8):
                reason = (
                    f"The mapper type [{kind}] declared on field [{name}] does not exist. It might have been created "
                    "within a future version or requires a plugin to be installed. Check the documentation."
                )
            raise self._unparsable(reason)
        unknown = definition.keys() - PARAMETERS
        if kind == "boolean" and self.release.types:
            unknown |= definition.keys() & {"ignore_malformed"}
        for key in unknown:
            reason = f"unknown parameter [{key}] on mapper [{name}] of type [{kind}]"
            raise self._unparsable(reason)
        self.fields[path] = Field(path, kind, {**self.defaults, **definition}, nested)
        for sub, below in definition.get("fields", {}).items():
            self._leaf(f"{path}.{sub}", below, nested)

    def _unparsable(self, reason: str) -> ServerError:
        kind, typed = "mapper_parsing_exception", " [_doc]" if self.release.types else ""
        cause = ServerError(kind, reason)
        return ServerError(kind, f"Failed to parse mapping{typed}: {reason}", caused_by=cause, fault=True)

    def field(self, path: str) -> Field | None:
        """Return the field a query means by this path: aliases followed, `flattened` keys found."""
        path = self.aliases.get(path, path)
        target = self.fields.get(path)
        if target is None and "." in path:
            for cut in (path[: dot.start()] for dot in re.finditer(r"\.", path)):
                root = self.fields.get(cut)
                if root is not None and root.type == "flattened":
                    return Field(path, "flattened_key", root.params, root.nested)
        return target

    def nested_paths(self, path: str) -> tuple[str, ...]:
        """Return the nested paths that enclose a field or an object, outermost first."""
        names = path.split(".")
        prefixes = (".".join(names[:end]) for end in range(1, len(names) + 1))
        return tuple(prefix for prefix in prefixes if self.objects.get(prefix) == "nested")

    def shown(self) -> dict[str, Any]:
        """Return the mapping as the server prints it, names in order."""
        return _sorted(self.body)

    def parse(self, document: dict[str, Any], doc_id: str) -> tuple[Node, list[str]]:
        """Take a document apart; unmapped names are added to the mapping first.

        Returns:
            The indexed root, and the fields that were left out for their length.

        Raises:
            ServerError: if a value does not fit its field.
        """
        parser = _Parser(self, doc_id)
        parser.members(document, "", parser.root)
        if parser.added:
            self.merge({"properties": parser.added})
            parser = _Parser(self, doc_id)
            parser.members(document, "", parser.root)
        return parser.root, sorted(parser.ignored)


def _merged(old: dict[str, Any], new: dict[str, Any], prefix: str, *, flat: bool = False) -> dict[str, Any]:
    merged = dict(old)
    for name, definition in new.items():
        if "." in name and not flat:
            first, _, rest = name.partition(".")
            name, definition = first, {"properties": {rest: definition}}
        if "properties" in definition and not definition["properties"] and "type" not in definition:
            definition = {"type": "object", **{k: v for k, v in definition.items() if k != "properties"}}
        present = merged.get(name)
        if present is None:
            options = {key: value for key, value in definition.items() if key != "properties"}
            flatter = definition.get("subobjects") is False
            below = _merged({}, definition.get("properties", {}), f"{prefix}{name}.", flat=flatter)
            if below and options.get("type") == "object":
                del options["type"]
            merged[name] = {**options, **({"properties": below} if below else {})}
            if not merged[name]:
                merged[name] = {"type": "object"}
            continue
        was, now = (
            present.get("type", "object"),
            definition.get("type", "object" if "properties" in definition else None),
        )
        if now is not None and was != now:
            raise illegal(f"mapper [{prefix}{name}] cannot be changed from type [{was}] to [{now}]")
        flatter = present.get("subobjects") is False
        below = _merged(
            present.get("properties", {}), definition.get("properties", {}), f"{prefix}{name}.", flat=flatter
        )
        merged[name] = {**present, **definition, **({"properties": below} if below else {})}
        if below and merged[name].get("type") == "object":
            del merged[name]["type"]
    return merged


def _sorted(body: dict[str, Any]) -> dict[str, Any]:
    ordered = {key: value for key, value in body.items() if key != "properties"}
    if "properties" in body:
        properties = body["properties"]
        ordered["properties"] = {name: _sorted(properties[name]) for name in sorted(properties)}
    return ordered


class _Parser:
    """One pass over one document."""

    def __init__(self, mapping: Mapping, doc_id: str) -> None:
        self.mapping, self.doc_id = mapping, doc_id
        self.root = Node()
        self.added: dict[str, Any] = {}
        self.ignored: set[str] = set()

    def members(self, value: dict[str, Any], prefix: str, node: Node) -> None:
        mapping = self.mapping
        for key, member in value.items():
            path = prefix + key
            if any(prefix.startswith(flat) for flat in mapping.flats) and isinstance(member, dict):
                self.members(member, f"{path}.", node)
            elif "." in key and self.enclosing(path, node):
                self.dotted(prefix, key, member, node)
            elif path in mapping.fields:
                self.leaf(mapping.fields[path], member, node)
            elif mapping.objects.get(path) == "disabled":
                continue
            elif path in mapping.aliases:
                reason = f"Cannot write to a field alias [{path}]."
                if mapping.release.types:
                    raise ServerError("mapper_parsing_exception", "failed to parse", caused_by=illegal(reason))
                raise self.fault(self.fault_kind(), reason)
            elif path in mapping.objects:
                self.object(path, member, node)
            elif "." in key and not any(path.startswith(flat) for flat in mapping.flats):
                self.dotted(prefix, key, member, node)
            else:
                self.unmapped(path, member, node, value)

    def enclosing(self, path: str, node: Node) -> str | None:
        """Return the nested object that a dotted name passes through on its way, if any."""
        paths = self.mapping.nested_paths(path)
        return next((name for name in paths if len(name) > len(node.path) and name != path), None)

    def dotted(self, prefix: str, key: str, member: Any, node: Node) -> None:
        first, _, rest = key.partition(".")
        if (enclosing := self.enclosing(prefix + key, node)) and self.mapping.release.types:
            reason = (
                f"Cannot add a value for field [{prefix}{key}] since one of the intermediate objects is mapped "
                f"as a nested object: [{enclosing}]"
            )
            raise ServerError("mapper_parsing_exception", reason)
            # From 8.0 the dotted key is read as one more object of the array.
        self.members({first: {rest: member}}, prefix, node)

    def object(self, path: str, value: Any, node: Node) -> None:
        nested = self.mapping.objects[path] == "nested"
        for item in value if isinstance(value, list) else [value]:
            if item is None:
                continue
            if isinstance(item, list):
                self.object(path, item, node)
                continue
            if not isinstance(item, dict):
                kind = self.fault_kind()
                reason = f"object mapping for [{path}] tried to parse field [{path.rpartition('.')[2]}] as object, "
                raise self.fault(kind, reason + "but found a concrete value")
            target = node
            if nested:
                target = Node(path)
                node.nodes.append(target)
            self.members(item, f"{path}.", target)

    def leaf(self, target: Field, value: Any, node: Node) -> None:
        if target.type == "geo_point" and isinstance(value, list) and not places.is_pair(value):
            for item in value:
                if item is None and self.mapping.release.parts < (8,):
                    self.malformed(target, item, ServerError("parse_exception", "geo_point expected"))
                else:
                    self.single(target, item, node)
        elif isinstance(value, list) and target.family != "opaque":
            for item in value:
                self.leaf(target, item, node)
        else:
            self.single(target, value, node)

    def single(self, target: Field, value: Any, node: Node) -> None:
        for subfield in (
            target,
            *(self.mapping.fields[f"{target.path}.{sub}"] for sub in target.params.get("fields", ())),
        ):
            own = value
            if value is None and subfield.type != "flattened":  # there it stands for nulls inside the object
                own = subfield.params.get("null_value")
            if (
                value == ""
                and subfield.type in (*INTEGERS, *FLOATS)
                and subfield.params.get("coerce") not in (False, "false")
            ):
                own = subfield.params.get("null_value")
            if own is not None:
                self.index(subfield, own, node)
        copies = target.params.get("copy_to", ()) if value is not None else ()
        for name in [copies] if isinstance(copies, str) else copies:
            if name not in self.mapping.fields:
                raise not_reproduced("copy_to a field that is not mapped")
            self.leaf(self.mapping.fields[name], value, node)

    def index(self, target: Field, value: Any, node: Node) -> None:
        try:
            _refuse_newer(target, value, self.mapping.release.parts)
            indexed = target.index(value)
        except ServerError as cause:
            self.malformed(target, value, cause)
            return
        if indexed is None:
            # Up to 7.10 only malformed values were told as ignored.
            if self.mapping.release.parts >= (7, 11):
                self.ignored.add(target.path)
        elif target.family == "flattened":
            for path, leaf in _leaves(indexed, "", target.params.get("null_value")):
                if not target.fits(leaf):
                    continue  # and `_ignored` does not tell
                node.values.setdefault(target.path, []).append(leaf)
                node.values.setdefault(target.path + path, []).append(leaf)
        else:
            node.values.setdefault(target.path, []).append(indexed)

    def malformed(self, target: Field, value: Any, cause: ServerError) -> None:
        if target.params.get("ignore_malformed"):
            self.ignored.add(target.path)
            return
        preview = _preview(value)
        text = f"failed to parse field [{target.path}] of type [{target.type}] in document with id '{self.doc_id}'."
        raise self.fault(self.fault_kind(), f"{text} Preview of field's value: '{preview}'", caused_by=cause) from None

    def unmapped(self, path: str, value: Any, node: Node, _: Any) -> None:
        if path in ("_id", "_index", "_routing", "_source", "_seq_no", "_version", "_ignored"):
            reason = f"Field [{path}] is a metadata field and cannot be added inside a document. "
            raise self.fault(self.fault_kind(), reason + "Use the index API request parameters.")
        dynamic = self.dynamic(path)
        if dynamic == "false":
            return
        definition = _guess(value)
        if definition is None:
            return
        if dynamic == "strict":
            parent, _, name = path.rpartition(".")
            reason = (
                f"mapping set to strict, dynamic introduction of [{name}] within [{parent or '_doc'}] is not allowed"
            )
            raise self.fault("strict_dynamic_mapping_exception", reason)
        if any(path.startswith(flat) for flat in self.mapping.flats):
            raise not_reproduced("a new field where there are no subobjects")
        additions = Mapping(self.mapping.release, {"properties": {path: definition}})
        self.added = _merged(self.added, additions.body["properties"], "")

    def dynamic(self, path: str) -> str:
        """Return what the nearest object around a field says of new fields."""
        at: Any = self.mapping.body
        dynamic = at.get("dynamic", "true")
        for key in path.split("."):
            at = at.get("properties", {}).get(key)
            if not isinstance(at, dict):
                break
            dynamic = at.get("dynamic", dynamic)
        return str(dynamic).lower()

    def fault_kind(self) -> str:
        return "document_parsing_exception" if self.mapping.release.parts >= (8, 8) else "mapper_parsing_exception"

    def fault(self, kind: str, reason: str, *, caused_by: ServerError | None = None) -> ServerError:
        # The position in the text is not worth a parser of our own; the server's own differs by one for some values.
        where = "[1:1] " if self.mapping.release.parts >= (8, 8) else ""
        return ServerError(kind, where + reason, caused_by=caused_by)


def _guess(value: Any) -> dict[str, Any] | None:
    """Return what dynamic mapping makes of a value; nothing for null and an empty array."""
    if isinstance(value, list):
        guesses = [guess for guess in map(_guess, value) if guess is not None]
        if guesses and "properties" in guesses[0]:
            below: dict[str, Any] = {}
            for guess in guesses:
                below = _merged(below, guess.get("properties", {}), "")
            return {"properties": below}
        return guesses[0] if guesses else None
    if isinstance(value, dict):
        below = {key: guess for key, guess in ((k, _guess(v)) for k, v in value.items()) if guess is not None}
        return {"properties": below}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "long"}
    if isinstance(value, float):
        return {"type": "float"}
    if isinstance(value, str):
        if looks_like_date(value):
            return {"type": "date"}
        return {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    return None


def _preview(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={_preview(member)}" for key, member in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refuse_newer(target: Field, value: Any, release: tuple[int, ...]) -> None:
    """Refuse what only newer releases take."""
    members = {"lat", "lon", "geohash"}
    if target.type == "geo_point" and release < (8,) and isinstance(value, dict) and value.keys() - members:
        raise ServerError("parse_exception", "field must be either [lat], [lon] or [geohash]")
    least = 0 if release < (8,) else 1 - 2**63 if release < (9,) else -(2**63)
    if target.family == "date" and isinstance(value, int) and value < least:
        raise illegal(f"failed to parse date field [{value}] with format [{target.formats}]")


def _leaves(value: Any, path: str, null: str | None) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(member, f"{path}.{key}", null)
    elif isinstance(value, list):
        for member in value:
            yield from _leaves(member, path, null)
    elif value is not None or null is not None:
        yield path, _preview(null if value is None else value)
