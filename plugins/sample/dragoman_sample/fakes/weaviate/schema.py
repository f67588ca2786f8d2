"""Class definitions: what the server accepts, and the form in which the schema shows them."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate.errors import InvalidError, ServerError, coded, not_reproduced
from dragoman_sample.fakes.weaviate.store import Collection, Shard
from dragoman_sample.fakes.weaviate.values import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dragoman_sample.fakes.weaviate.store import Database

_VECTOR_INDEXES = json.loads(Path(__file__).with_name("vector_indexes.json").read_text())
_CLASS = re.compile(r"[A-Z][_0-9A-Za-z]{0,254}", re.ASCII)
_PROPERTY = re.compile(r"[_A-Za-z][_0-9A-Za-z]{0,230}", re.ASCII)
_RESERVED = {"_additional", "_id", "id"}
_TOKENIZATIONS = ("word", "lowercase", "whitespace", "field", "trigram")
_STRINGS = {"string": "text", "string[]": "text[]"}
_RANGES = {"int", "number", "date"}
CLASS_KEYS = {
    "class", "description", "properties", "vectorizer", "vectorIndexType", "vectorIndexConfig", "vectorConfig",
    "invertedIndexConfig", "multiTenancyConfig", "shardingConfig", "replicationConfig",
}  # fmt: skip
_PROPERTY_KEYS = {
    "name", "description", "dataType", "tokenization", "indexFilterable", "indexSearchable", "indexRangeFilters",
    "nestedProperties", "textAnalyzer",
}  # fmt: skip


def refuse_schema(message: str) -> ServerError:
    """Return the refusal of a change of the schema."""
    return ServerError(422, {"allowed": None, "error": [{"message": message}]})


def capital(name: str) -> str:
    """Return a class name as the server writes it."""
    return name[:1].upper() + name[1:]


def small(name: str) -> str:
    """Return a property name as the server writes it."""
    return name[:1].lower() + name[1:]


def create(database: Database, body: dict[str, Any]) -> Collection:
    """Make a class.

    Raises:
        ServerError: it is refused.
    """
    name = capital(body.get("class", ""))
    for position, definition_ in enumerate(body.get("properties") or ()):
        _check_tokenization(definition_, position)
    if name in database.collections:
        raise refuse_schema(f"class name {name} already exists")
    if not _CLASS.fullmatch(name):
        raise refuse_schema(f"'{name}' is not a valid class name")
    try:
        properties = [
            define_property(database, definition_, owner=name) for definition_ in body.get("properties") or ()
        ]
        _check_conflicts(name, properties)
    except InvalidError as reason:
        raise refuse_schema(str(reason)) from None
    shards = int((body.get("shardingConfig") or {}).get("desiredCount", 1))
    tenants = {"autoTenantActivation": False, "autoTenantCreation": False, "enabled": False}
    tenants |= body.get("multiTenancyConfig") or {}
    definition: dict[str, Any] = {
        "class": name,
        "invertedIndexConfig": _inverted(body.get("invertedIndexConfig") or {}),
        "multiTenancyConfig": tenants,
        "properties": properties if "properties" in body else None,
        "shardingConfig": _sharding(0 if tenants["enabled"] else shards),
        "replicationConfig": {"deletionStrategy": "TimeBasedResolution", "factor": 1, "asyncEnabled": False},
        **_vectors(body),
    }
    if body.get("description"):
        definition["description"] = body["description"]
    collection = Collection(definition, [] if tenants["enabled"] else [Shard() for _ in range(shards)])
    database.collections[name] = collection
    database.schema_version += 1
    return collection


def add_properties(
    database: Database, collection: Collection, definitions: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Add properties to a class.

    Raises:
        InvalidError: one of them is refused; none was added.
    """
    added = [define_property(database, definition, owner=collection.name) for definition in definitions]
    if not added:
        return []
    properties = [*(collection.definition["properties"] or ()), *added]
    _check_conflicts(collection.name, properties)
    collection.definition["properties"] = properties
    database.schema_version += 1
    return added


def define_property(database: Database, body: dict[str, Any], *, owner: str, nested: bool = False) -> dict[str, Any]:
    """Return a property as the schema shows it.

    Raises:
        InvalidError: it is refused.
    """
    for key in body:
        if key not in _PROPERTY_KEYS:
            raise not_reproduced(f"the member {key!r} of a property")
    name, kinds = body["name"] if nested else small(body["name"]), body["dataType"]
    if name in _RESERVED and not nested:
        raise InvalidError(f"'{name}' is a reserved property name")
    if not _PROPERTY.fullmatch(name):
        raise InvalidError(
            f"'{name}' is not a valid property name. Property names in Weaviate are restricted to valid GraphQL names,"
            " which must be “/[_A-Za-z][_0-9A-Za-z]{0,230}/”"
        )
    kind = _STRINGS.get(kinds[0], kinds[0])
    defined: dict[str, Any] = {"name": name, "dataType": [kind, *kinds[1:]]}
    if body.get("description"):
        defined["description"] = body["description"]
    if kind in ("object", "object[]"):
        defined["nestedProperties"] = _nested(database, name, body, owner)
    elif kind[:1].isupper():
        for data_type in kinds:
            if data_type not in database.collections and data_type != owner:
                raise InvalidError("bad request: reference property to nonexistent class")
    elif kind not in PRIMITIVES:
        raise InvalidError(
            f"property '{name}': invalid dataType: [{' '.join(kinds)}]: unknown primitive data type '{kind}'"
        )
    return defined | _indexes(body, kind, nested=nested)


def _nested(database: Database, name: str, body: dict[str, Any], owner: str) -> list[dict[str, Any]]:
    nested = body.get("nestedProperties")
    if not nested:
        raise InvalidError(f"property '{name}': At least one nested property is required for data type object/object[]")
    return [define_property(database, member, owner=owner, nested=True) for member in nested]


def _indexes(body: dict[str, Any], kind: str, *, nested: bool) -> dict[str, Any]:
    is_text = kind in ("text", "text[]")
    if body.get("indexSearchable") and not is_text:
        raise InvalidError(
            "`indexSearchable` is allowed only for text/text[] data types. For other data types set false or leave"
            " empty"
        )
    if body.get("indexRangeFilters") and kind not in _RANGES:
        raise InvalidError(
            "`indexRangeFilters` is allowed only for number/int/date data types. For other data types set false or"
            " leave empty"
        )
    if body.get("tokenization") and not is_text:
        raise InvalidError(f"tokenization is not allowed for data type '{kind}'")
    indexes: dict[str, Any] = {
        "indexFilterable": body.get("indexFilterable", True),
        "indexRangeFilters": body.get("indexRangeFilters", False),
        "indexSearchable": body.get("indexSearchable", is_text),
    }
    if "textAnalyzer" in body:
        if not is_text or nested:
            raise not_reproduced("a text analyzer there")
        indexes["textAnalyzer"] = body["textAnalyzer"]
    return indexes | ({"tokenization": _tokenization(body)} if is_text else {})


def _tokenization(body: dict[str, Any]) -> str:
    tokenization = body.get("tokenization") or "word"
    # The old type `string` split at white space where the new one splits at everything but letters and digits.
    return "whitespace" if tokenization == "word" and body["dataType"][0] in _STRINGS else str(tokenization)


def _check_tokenization(body: dict[str, Any], position: int) -> None:
    if body.get("tokenization", "word") not in _TOKENIZATIONS:
        text = f"properties.{position}.tokenization in body should be one of [word lowercase whitespace field trigram"
        raise coded(422, f"{text} gse kagome_kr kagome_ja gse_ch]", 606)


def _check_conflicts(owner: str, properties: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    for definition in properties:
        if definition["name"].lower() in seen:
            raise InvalidError(
                f'class "{owner}": conflict for property "{definition["name"]}": '
                "already in use or provided multiple times"
            )
        seen.add(definition["name"].lower())


def _inverted(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "bm25": {"b": 0.75, "k1": 1.2},
        "cleanupIntervalSeconds": 60,
        "stopwords": {"additions": None, "preset": "en", "removals": None},
        "usingBlockMaxWAND": True,
        **{key: value for key, value in settings.items() if value},
    }


def _sharding(count: int) -> dict[str, Any]:
    share = 128 if count else 0
    return {
        "virtualPerPhysical": share,
        "desiredCount": count,
        "actualCount": count,
        "desiredVirtualCount": share * count,
        "actualVirtualCount": share * count,
        **(
            {"key": "_id", "strategy": "hash", "function": "murmur3"}
            if count
            else {"key": "", "strategy": "", "function": ""}
        ),
    }


def _vectors(body: dict[str, Any]) -> dict[str, Any]:
    if "vectorConfig" not in body:
        if body.get("vectorizer", "none") != "none":
            raise not_reproduced("a module that makes vectors")
        kind = body.get("vectorIndexType", "hnsw")
        return {"vectorizer": "none", "vectorIndexType": kind, "vectorIndexConfig": _index(kind, body)}
    vectors = {}
    for name, options in body["vectorConfig"].items():
        kind = options.get("vectorIndexType", "hnsw")
        vectors[name] = {
            "vectorizer": options.get("vectorizer"),
            "vectorIndexType": kind,
            "vectorIndexConfig": _index(kind, options),
        }
    return {"vectorConfig": vectors}


def _index(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    if kind not in _VECTOR_INDEXES:
        raise not_reproduced(f"vector index {kind!r}")
    settings: dict[str, Any] = copy.deepcopy(_VECTOR_INDEXES[kind])
    return settings | (body.get("vectorIndexConfig") or {})
