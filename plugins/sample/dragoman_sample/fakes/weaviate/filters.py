"""From a where argument to clauses that read the index."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate.clauses import Clause, Compound, Leaf, Referring, Within, is_indexed
from dragoman_sample.fakes.weaviate.errors import InvalidError, MissingIndexError, not_reproduced
from dragoman_sample.fakes.weaviate.index import date_key, int_key
from dragoman_sample.fakes.weaviate.sorting import IDS, INTERNAL
from dragoman_sample.fakes.weaviate.tokens import fold, search_terms, stopwords, tokenize
from dragoman_sample.fakes.weaviate.values import parse_date, parse_uuid
from dragoman_sample.fakes.weaviate.wherecheck import VALUES, Where, known_property, listed, value_of

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.store import Collection, Database

_CONTAINS = {"ContainsAny": "Or", "ContainsAll": "And", "ContainsNone": "Not"}
_GO = {"int": "int", "number": "float64", "text": "string", "string": "string", "date": "string", "boolean": "bool"}
_ONLY_STOPWORDS = (
    "invalid search term, only stopwords provided. Stopwords can be configured in class.invertedIndexConfig.stopwords"
)


class _StopwordsError(InvalidError):
    pass


def of_rest(where: Where) -> Where:
    """Return the filter of a batch delete in the form of GraphQL, where one member takes value and list."""
    converted: Where = {}
    for key, value in where.items():
        if key == "operands":
            converted[key] = [of_rest(operand) for operand in value]
        elif key.endswith("Array"):
            converted[key.removesuffix("Array")] = value
        elif isinstance(value, list) and key != "path":
            raise not_reproduced(f"a list in {key} of a batch delete")
        else:
            converted[key] = value
    return converted


def build(where: Where, collection: Collection, database: Database) -> Clause:
    """Return the clauses of a checked filter.

    Raises:
        InvalidError: an index is missing, or a value is none.
    """
    return _Builder(database).clause(where, collection)


class _Builder:
    """Turns validated clauses into reads of the index."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def clause(self, where: Where, collection: Collection) -> Clause:
        operator = where["operator"]
        if where.get("operands"):
            return Compound(operator, self._children(listed(where["operands"]), collection))
        kind, value = value_of(where)
        if operator in _CONTAINS:
            return self._contains(where, kind, value, collection)
        path = listed(where["path"])
        if len(path) > 1:
            return self._referring(where, collection)
        name = path[0]
        if name in INTERNAL:
            return self._internal(operator, name, kind, value)
        if name.startswith("len("):
            definition = known_property(collection, name[4:-1])
            return Leaf(operator, "length", name[4:-1], self._scalar("int", value), definition)
        return self._property(operator, known_property(collection, name), kind, value, collection)

    def _children(self, operands: list[Where], collection: Collection, *, lenient: bool = False) -> list[Clause]:
        clauses: list[Clause] = []
        for position, operand in enumerate(operands):
            try:
                clauses.append(self.clause(operand, collection))
            except _StopwordsError as reason:
                if not lenient:
                    raise _StopwordsError(f"nested query: nested clause at pos {position}: {reason}") from None
            except MissingIndexError:
                raise
            except InvalidError as reason:
                raise InvalidError(f"nested query: nested clause at pos {position}: {reason}") from None
        if not clauses:
            raise _StopwordsError(_ONLY_STOPWORDS)
        return clauses

    def _contains(self, where: Where, kind: str, value: Any, collection: Collection) -> Clause:
        if not isinstance(value, list):
            raise InvalidError(f"value type should be []{_GO[kind]} but is {_GO[kind]}")
        key = next(key for key in VALUES if key in where)
        operands = [{"operator": "Equal", "path": where["path"], key: member} for member in value]
        children = self._children(operands, collection, lenient=where["operator"] == "ContainsAny")
        if where["operator"] == "ContainsNone":
            return Compound("Not", [Compound("Or", children)])
        return Compound(_CONTAINS[where["operator"]], children)

    def _referring(self, where: Where, collection: Collection) -> Clause:
        name, target, *rest = listed(where["path"])
        known_property(collection, name)
        target_collection = self._database.resolve(target)
        assert target_collection is not None
        inner = self.clause({**where, "path": rest}, target_collection)
        return Referring(name, inner, lambda: target_collection)

    def _internal(self, operator: str, name: str, kind: str, value: Any) -> Clause:
        if not isinstance(value, str):
            raise InvalidError(f"expected value to be string, got '[]{_GO[kind]}'")
        if name in IDS:
            if operator == "IsNull":
                raise not_reproduced("IsNull of an id")
            return Leaf(operator, "id", "id", value)
        if kind == "date":
            date = parse_date(value)
            if not date:
                raise InvalidError(f"trying parse time as RFC3339 string: {_not_a_date(value)}")
            value = str(date[0] // 1_000_000)
        elif not re.fullmatch(r"[+-]?\d+", value, re.ASCII):
            raise InvalidError(f"expected value to be timestamp, got '{value}'")
        return Leaf(operator, "time", name, value)

    def _property(
        self, operator: str, definition: dict[str, Any], kind: str, value: Any, collection: Collection
    ) -> Clause:
        name, declared = definition["name"], definition["dataType"][0]
        if declared[0].isupper() and kind == "int":
            if not is_indexed(definition):
                raise not_reproduced("a count of references without an index")
            return Leaf(operator, "count", name, self._scalar(kind, value), definition)
        if operator == "IsNull":
            return Leaf(operator, "null", name, self._scalar("boolean", value), definition)
        if declared == "geoCoordinates":
            place = value["geoCoordinates"]
            return Within(name, place["latitude"], place["longitude"], value["distance"]["max"])
        base = declared.removesuffix("[]")
        if base not in ("text", "uuid", "int", "number", "boolean", "date"):
            raise not_reproduced(f"a filter on type {declared}")
        if base == "text":
            return self._text(operator, definition, self._scalar("text", value), collection)
        if operator in ("Like", "WithinGeoRange"):
            raise not_reproduced(f"{operator} on type {declared}")
        key = self._key(base, self._scalar(kind, value))
        self._check_filterable(definition)
        return Leaf(operator, "value", name, key, definition)

    def _text(self, operator: str, definition: dict[str, Any], value: str, collection: Collection) -> Clause:
        how, value = definition["tokenization"], fold(value, definition)
        left_out = stopwords(collection.definition["invertedIndexConfig"], definition)
        terms = tokenize(value, how, wildcards=True) if operator == "Like" else search_terms(value, how, left_out)
        self._check_filterable(definition)
        if not terms:
            raise _StopwordsError(_ONLY_STOPWORDS)
        leaves = [Leaf(operator, "value", definition["name"], term, definition) for term in terms]
        return Compound("And", leaves) if len(leaves) > 1 else leaves[0]

    @staticmethod
    def _check_filterable(definition: dict[str, Any]) -> None:
        if not is_indexed(definition):
            name = definition["name"]
            raise MissingIndexError(
                f"Filtering by property '{name}' requires inverted index. Is `indexFilterable` option of property"
                f" '{name}' enabled? Set it to `true` or leave empty"
            )

    @staticmethod
    def _scalar(kind: str, value: Any) -> Any:
        if isinstance(value, list):
            type_name = f"[]{_GO[kind]}"
            if kind == "text":
                raise InvalidError(f"expected value to be string, got '{type_name}'")
            raise InvalidError(f"expected value to be {_GO[kind]}, got {type_name}")
        return value

    @staticmethod
    def _key(base: str, value: Any) -> Any:
        if base == "uuid":
            try:
                return parse_uuid(value)
            except InvalidError as reason:
                raise InvalidError(f"parse uuid filter value: {reason}") from None
        if base == "date":
            if not parse_date(value):
                raise InvalidError(f"trying parse time as RFC3339 string: {_not_a_date(value)}")
            return date_key(value)
        return int_key(value) if base == "int" else value


def _not_a_date(text: str) -> str:
    rest, layout = (text[10:], "T") if re.match(r"\d{4}-\d\d-\d\d", text) else (text, "2006")
    return f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{rest}" as "{layout}"'
