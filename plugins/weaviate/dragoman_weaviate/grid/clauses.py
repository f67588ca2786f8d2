"""Turns one filter row into a clause, with notes on what the server really compares."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman_api import Filter
from dragoman_api import Operator as Op
from dragoman_weaviate.columns.field_types import EMPTINESS, LISTS, NEGATED, NULLS, PATTERNS, Family, Field

from . import filter_values

if TYPE_CHECKING:
    from dragoman_weaviate.connect import Features
    from dragoman_weaviate.graphql import Where


_COMPARE = {
    Op.EQ: "Equal",
    Op.NE: "NotEqual",
    Op.GT: "GreaterThan",
    Op.GE: "GreaterThanEqual",
    Op.LT: "LessThan",
    Op.LE: "LessThanEqual",
}
_LIKE = {Op.CONTAINS: "*{}*", Op.NOT_CONTAINS: "*{}*", Op.STARTS: "{}*", Op.ENDS: "*{}"}
_OLD_LITERAL = re.compile(r"[\w\s*?-]*")


def clause(row: Filter, field: Field, features: Features, notes: list[str]) -> Where:
    """Translate one row.

    Args:
        row: A row whose operator the column takes.
        field: The column.
        features: What the server's version takes.
        notes: Receives a note for whatever is not exact.

    Raises:
        ValueError: The value does not fit; the message says why.
    """
    if row.op in NULLS:
        if field.array or field.family is Family.TEXT:
            notes.append("empty values count as null too")
        return {"path": field.path, "operator": "IsNull", "valueBoolean": row.op is Op.NULL}
    if row.op in EMPTINESS:
        if row.op is Op.EMPTY and field.index.index_null_state:
            notes.append(f"rows without '{field.name}' match too")
        operator = "Equal" if row.op is Op.EMPTY else "GreaterThan"
        return {"path": [f"len({field.prop})"], "operator": operator, "valueInt": 0}
    if row.op in NEGATED:
        notes.append(f"rows without '{field.name}' match too")
    if field.family is Family.TEXT:
        _say_case(row, field, notes)
    if row.op in PATTERNS:
        return _pattern(row, field, features, notes)
    if row.op is Op.BETWEEN:
        return _between(row, field, notes)
    if row.op in LISTS:
        return _list(row, field, features, notes)
    value = _value(row.value, field, notes)
    if row.op is Op.NE and field.range_only:  # the index for ranges omits rows without a value
        return {"operator": "Not", "operands": [_compare(Op.EQ, field, value)]}
    return _compare(row.op, field, value)


def _compare(op: Op, field: Field, value: filter_values.Scalar) -> Where:
    return {"path": field.path, "operator": _COMPARE[op], filter_values.VALUES[field.family]: value}


def _value(given: object, field: Field, notes: list[str]) -> filter_values.Scalar:
    value = filter_values.typed(field, given)
    if isinstance(value, str) and field.family is Family.TEXT:
        _say_tokens(value, field, notes)
    if field.family is Family.INT and abs(int(value)) > filter_values.EXACT:
        _once(notes, "integers beyond 2^53 are compared as 64-bit floats")
    return value


def _between(row: Filter, field: Field, notes: list[str]) -> Where:
    given = filter_values.values(row.value)
    if len(given) != 2 or "" in given or None in given:
        raise ValueError("it takes two bounds, both included: 10,20")
    low, high = (_value(each, field, notes) for each in given)
    return {"operator": "And", "operands": [_compare(Op.GE, field, low), _compare(Op.LE, field, high)]}


def _list(row: Filter, field: Field, features: Features, notes: list[str]) -> Where:
    given = filter_values.values(row.value)
    if not given or given == [""]:
        raise ValueError("the list of values is empty")
    if "" in given:
        raise ValueError("a value between the commas is empty")
    several = list(dict.fromkeys(_value(each, field, notes) for each in given))
    each_by_itself = field.family is Family.ID
    if row.op is Op.IN:
        if features.contains and not each_by_itself:
            return {"path": field.path, "operator": "ContainsAny", filter_values.VALUES[field.family]: several}
        return _joined("Or", [_compare(Op.EQ, field, value) for value in several])
    if features.negation and not each_by_itself:
        return {"path": field.path, "operator": "ContainsNone", filter_values.VALUES[field.family]: several}
    return _joined("And", [_compare(Op.NE, field, value) for value in several])


def _joined(operator: str, operands: list[Where]) -> Where:
    return operands[0] if len(operands) == 1 else {"operator": operator, "operands": operands}


def _pattern(row: Filter, field: Field, features: Features, notes: list[str]) -> Where:
    value = str(filter_values.typed(field, row.value))
    _say_pattern(value, row.op, field, notes)
    if not features.literal_patterns and not _OLD_LITERAL.fullmatch(value):
        raise ValueError("this version of the server treats characters other than letters and digits as a pattern")
    like: Where = {"path": field.path, "operator": "Like", "valueText": _LIKE[row.op].format(value)}
    return {"operator": "Not", "operands": [like]} if row.op is Op.NOT_CONTAINS else like


def _tokenization(field: Field) -> str:
    return field.spec.tokenization if field.spec is not None else ""


def _say_case(row: Filter, field: Field, notes: list[str]) -> None:
    keeps = _tokenization(field) in ("field", "whitespace")
    if row.case is not None and row.case is not keeps:
        notes.append("letter case is compared" if keeps else "letter case is not compared")


def _say_tokens(value: str, field: Field, notes: list[str]) -> None:
    """Note what an equality with a text really compares: tokens (W13)."""
    if field.exact_tokens:
        _once(notes, "white space around the text is not compared")
        return
    if not _has_token(value, field):
        raise ValueError(f"{value!r} contains no word, and the collection compares words")
    stopwords = field.index.stopwords.words if _tokenization(field) == "word" else frozenset()
    words = re.findall(r"[^\W_]+", value.lower())
    if words and stopwords.issuperset(words):
        raise ValueError(f"{value!r} contains only words that the collection does not index (stopwords)")
    if not stopwords.isdisjoint(words):
        _once(notes, "words that are not indexed (stopwords) are left out")
    _once(notes, "compares words: a text that contains them all matches, in any order")


def _has_token(value: str, field: Field) -> bool:
    if _tokenization(field) in ("whitespace", "lowercase"):
        return bool(value.strip())
    return any(character.isalnum() for character in value)


def _say_pattern(value: str, op: Op, field: Field, notes: list[str]) -> None:
    """Note what a pattern really finds: it is compared with each token (W15)."""
    if not value.strip(" *?\t\r\n") or not (field.exact_tokens or _has_token(value, field)):
        raise ValueError(f"{value!r} contains nothing to search for; the server would find every text")
    if "*" in value or "?" in value:
        notes.append("* and ? stand for any characters; they cannot be escaped")
    if field.exact_tokens:
        missed = "match although they contain it" if op is Op.NOT_CONTAINS else "may be missed"
        notes.append(f"texts with line breaks {missed}; white space around the text is not compared")
        return
    whole = value.isalnum() if _tokenization(field) == "word" else not any(map(str.isspace, value))
    if not whole:
        notes.append("compares words: finds them in any order, anywhere in the text")
    elif op in (Op.STARTS, Op.ENDS):
        notes.append(f"finds texts in which any word {op} with it")


def _once(notes: list[str], note: str) -> None:
    if note not in notes:
        notes.append(note)
