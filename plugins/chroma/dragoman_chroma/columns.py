"""Columns of a collection, from a sample of its records, and the numbers that the server keeps as they are. Pure.

The rule of a measured fact is in parentheses, as in C12.
"""

from __future__ import annotations

from decimal import Decimal
from math import isinf
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dragoman_api import Column, ColumnKind, Role, Written
from dragoman_api.columns import NULLS
from dragoman_api.columns import Operator as Op
from dragoman_api.kit import operands, row_evaluation
from dragoman_api.kit.page_columns import kinds_of
from dragoman_api.kit.row_evaluation import ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SAMPLE = 200
"""Records from which the metadata columns of a collection are learnt."""
ID, DOCUMENT, URI, EMBEDDING = "id", "document", "uri", "embedding"
OWN = (ID, DOCUMENT, URI, EMBEDDING)
METADATA = "metadata."  # before the name of a key that is spelled like another column
NO_SORT = "Chroma has no order; the rows of a page can be sorted here, if the call allows it"
NO_FILTER = "the values are of several kinds or vectors, which Chroma compares with nothing"
EQUAL = {Op.EQ: "$eq", Op.NE: "$ne", Op.IN: "$eq", Op.NOT_IN: "$ne"}
ORDERED = {Op.GT: "$gt", Op.GE: "$gte", Op.LT: "$lt", Op.LE: "$lte"}
_COMPARED = {
    ValueKind.TEXT: (*EQUAL, Op.EMPTY),
    ValueKind.NUMBER: (*EQUAL, *ORDERED, Op.BETWEEN),
    ValueKind.BOOLEAN: (*EQUAL,),
}
NO_CONDITION = "Chroma has no such condition on it"


def key_of(name: str) -> str:
    """Return the metadata key of a column (C14).

    >>> key_of("year"), key_of("metadata.id")
    ('year', 'id')
    """
    return name.removeprefix(METADATA)


def name_of(key: str) -> str:
    """Return the column of a metadata key (C14)."""
    return METADATA + key if key in OWN or key.startswith(METADATA) else key


def columns_of(metadatas: Iterable[Mapping[str, Any]], dimension: int | None) -> dict[str, Column]:
    """Return the columns of a collection: its own, and the metadata keys of some records with the kinds of values."""
    rows = [{name_of(key): value for key, value in metadata.items()} for metadata in metadatas]
    arrays = [{name: item} for row in rows for name, value in row.items() if isinstance(value, list) for item in value]
    inner, outer = kinds_of(arrays), kinds_of(rows)
    columns = [
        _column(ID, ColumnKind.TEXT, role=Role.KEY, written=Written.INSERT, path=(ID,)),
        _column(DOCUMENT, ColumnKind.TEXT, path=(DOCUMENT,)),
        _column(URI, ColumnKind.TEXT, path=(URI,)),
    ]
    for name, kind in outer.items():
        repeated = kind is ColumnKind.JSON and name in inner
        columns.append(
            _column(name, inner[name] if repeated else kind, repeated=repeated, path=("metadata", key_of(name)))
        )
    columns.append(_column(EMBEDDING, ColumnKind.FLOAT, repeated=True, path=(EMBEDDING,), dimensions=dimension or 0))
    return {column.name: column for column in columns}


def _column(name: str, kind: ColumnKind, **options: Any) -> Column:
    column = Column(name=name, type=("array of " if options.get("repeated") else "") + kind, kind=kind, **options)
    compared = value_kind(column)
    reasons = {"sort": NO_SORT}
    if name == ID:
        reasons |= {
            "edit": "the id of a record cannot be changed",
            "any": "Chroma joins ids and conditions by 'and' only",
        }
    operators: tuple[Op, ...] = ()
    if name == DOCUMENT:
        operators = (Op.CONTAINS, Op.NOT_CONTAINS, *NULLS)
    elif name == ID:
        operators = (Op.EQ, Op.IN)
    elif name != URI and compared is not None:
        operators = _COMPARED[compared] if not column.repeated else (*EQUAL,)
    if not operators:
        reasons["filter"] = (
            NO_FILTER if compared is None else f"{NO_CONDITION}; it can be evaluated here, if the call allows it"
        )
    return replace(column, operators=operators, reasons=reasons)


def value_kind(column: Column) -> ValueKind | None:
    """Return how the values of a column compare; None if they do not."""
    return None if column.name == EMBEDDING else row_evaluation.value_kind(column.kind)


def kept(value: object) -> float:
    """Read a float that the server keeps as it is (C18). Raises ValueError for any other number."""
    number = operands.floating(value)
    if Decimal(repr(number)) != operands.decimal(value) or not survives(number) or repr(number) == "-0.0":
        raise ValueError(f"Chroma reads and stores {value} as another number")
    return number


def survives(number: float) -> bool:
    """Return whether the server reads a float as it is: its parser rounds twice where digits are many (C18).

    >>> survives(0.1), survives(4.561046178936247e-13), survives(-7.312715117751976e-237)
    (True, True, False)
    """
    digits, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = digits.partition(".")
    power = int(exponent or 0) - len(fraction)
    try:
        scale = float(f"1e{abs(power)}")
        read = float(int(whole + fraction)) / scale if power < 0 else float(int(whole + fraction)) * scale
    except OverflowError:
        return False
    return not isinf(scale) and read == abs(number)
