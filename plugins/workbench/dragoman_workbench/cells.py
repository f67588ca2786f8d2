"""Cells, values and keys of rows as the page sees them: digits, bytes and JSON stay as they are."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman import RowKey
from dragoman_api.cells import CutBytes, CutJson, CutText, Json, as_bytes
from dragoman_api.errors import ConfigurationError
from dragoman_api.json_text import MAX_DIGITS, decode, exact_number

from .messages.rows import Bar, FrequentValue, GridRow, PageAnswer, Summarized

if TYPE_CHECKING:
    from dragoman import Page
    from dragoman_api import Cell as Value
    from dragoman_api import RowId
    from dragoman_api.summaries import ColumnSummary

    from .messages.base import Cell


def shown(value: Value) -> Cell:
    """Return a cell as the page sees it.

    >>> shown(12345678901234567890), shown(Decimal("1.10")), shown(CutText("abc")), shown(None), shown(())
    (('integer', '12345678901234567890'), ('decimal', '1.10'), ('cut-text', 'abc'), None, ('missing', ''))
    """
    match value:
        case None | bool():
            return value
        case CutJson():
            return "cut-json", str(value)
        case Json():
            return "json", str(value)
        case CutText():
            return "cut-text", str(value)
        case str():
            return value
        case int():
            return "integer", str(value)
        case float() | Decimal():
            return "decimal", str(value)
        case tuple():  # MISSING
            return "missing", ""
        case CutBytes():
            return "cut-bytes", base64.b64encode(value).decode()
    return "bytes", base64.b64encode(value).decode()


def entered(cell: Cell, *, column: str) -> Any:
    """Return the value that a person entered in a cell.

    Raises:
        ConfigurationError: It is not a value: a cut or a missing value, or a text that is not what its tag says (code
            ``value-invalid``).
    """
    if cell is None or isinstance(cell, bool | str):
        return cell
    tag, text = cell
    try:
        match tag:
            case "integer":
                return _integer(text)
            case "decimal":
                return _decimal(text)
            case "json":
                value = decode(text, msgspec.json.Decoder(float_hook=exact_number))
                return Json(text) if isinstance(value, list | dict) else value
            case "bytes":
                return as_bytes(text)
    except ValueError as error:
        reason = f"{column}: {text[:80]!r} cannot be stored: {error}"
        raise ConfigurationError(reason, code="value-invalid", details={"column": column}) from error
    cut_reason = "only the beginning of the value is here; fetch all of it first"
    reason = f"{column}: {'a change cannot remove a field; null stores a null' if tag == 'missing' else cut_reason}"
    raise ConfigurationError(reason, code="value-invalid", details={"column": column})


def _integer(text: str) -> int | float | Decimal | Json:
    if not text.removeprefix("-").isdecimal() or not text.isascii():
        raise ValueError("it is not a whole number")
    if len(text) > MAX_DIGITS or (text.startswith("-") and not text.strip("-0")):
        return exact_number(f"{text}e0")  # too long for an integer; and no integer has a sign of zero
    return int(text)


def _decimal(text: str) -> int | float | Decimal | Json:
    value = decode(text, msgspec.json.Decoder(float_hook=exact_number))
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Json):
        raise ValueError("it is not a number")  # noqa: TRY004 - one kind of error for all faults
    return value


def spelled(id: RowId) -> str:  # noqa: A002 - the contract's word
    r"""Return a row's id for people.

    >>> spelled("17"), spelled(["eu", 17])
    ('17', '["eu",17]')
    """
    return id if isinstance(id, str) else msgspec.json.encode(id).decode()


def key_text(key: RowKey) -> str:
    """Return a row's key as the page keeps it."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(key)).decode()


def read_key(text: str) -> RowKey:
    """Return the key that a page sent back.

    Raises:
        ConfigurationError: It is not a key.
    """
    try:
        return msgspec.msgpack.decode(base64.b64decode(text, altchars=b"-_", validate=True), type=RowKey)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise ConfigurationError("this is not the key of a row", code="key-invalid") from error


def answer_page(page: Page, *, seconds: float) -> PageAnswer:
    """Return a page as the page of the workbench sees it."""
    keys: list[RowKey | None] = [*page.keys] if page.keys else [None] * len(page.cells)
    return PageAnswer(
        columns=page.columns,
        rows=[_row(key, cells) for key, cells in zip(keys, page.cells, strict=True)],
        notes=page.notes,
        total=page.total,
        total_exact=page.total_exact,
        offset=page.offset,
        next=page.next,
        revision=page.revision,
        seconds=seconds,
        time=page.time,
        now=page.now,
    )


def answer_similar(page: Page, origin: RowKey, *, seconds: float) -> PageAnswer:
    """Return the rows nearest to a row as one whole page: the distances, which come last, are its first column."""
    answer = answer_page(page, seconds=seconds)
    return msgspec.structs.replace(
        answer,
        columns=[*answer.columns[-1:], *answer.columns[:-1]],
        rows=[msgspec.structs.replace(row, cells=[*row.cells[-1:], *row.cells[:-1]]) for row in answer.rows],
        total=len(answer.rows),
        total_exact=True,
        near=spelled(origin.id),
    )


def _row(key: RowKey | None, cells: list[Value]) -> GridRow:
    has_id = key is not None and key.id not in ("", b"")
    return GridRow(
        id="" if key is None else spelled(key.id),
        key=key_text(key) if has_id and key is not None else None,
        cells=[*map(shown, cells)],
    )


def answer_summary(summary: ColumnSummary, *, seconds: float) -> Summarized:
    """Return a summary as the page of the workbench sees it."""
    return Summarized(
        column=summary.column,
        rows=summary.rows,
        missing=summary.missing,
        values=[
            FrequentValue(cell=shown(frequent_value.value), rows=frequent_value.rows)
            for frequent_value in summary.values
        ],
        distinct=summary.distinct,
        minimum=shown(summary.minimum),
        maximum=shown(summary.maximum),
        bars=[
            Bar(lower=shown(bucket.lower), upper=shown(bucket.upper), rows=bucket.rows) for bucket in summary.buckets
        ],
        approximate={figure.value: reason for figure, reason in summary.approximate.items()},
        absent={figure.value: reason for figure, reason in summary.absent.items()},
        notes=summary.notes,
        seconds=seconds,
    )
