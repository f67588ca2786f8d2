"""Values on the wire: types that msgpack lacks, and results that travel in parts.

msgpack has no Decimal and no integers beyond 64 bits. These, the raw JSON text of `Json`, and bytes in cells are
extension types. `MISSING` is an empty array, which msgspec writes and reads by itself: a page may have a million.
A result above 1 MiB is split at its lists and texts, and each part is decoded on its own, within bounds.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal, DecimalException
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw
from msgspec.msgpack import Ext
from msgspec.structs import replace

from dragoman_api.cells import CELL_BUDGET, MISSING, Cell, CutBytes, CutJson, CutText, Json
from dragoman_api.changes import Change, Insert, InsertBatch, Plan, PlanRequest, Update
from dragoman_api.columns import MAX_COLUMNS, MAX_OBJECTS, Description, ObjectList
from dragoman_api.console import MAX_SUGGESTIONS, SUGGESTION_TEXT, Answer, Completion
from dragoman_api.filters import Filter, FilterRequest
from dragoman_api.grid import MAX_ROWS, CellColumns, Page
from dragoman_api.summaries import MAX_BUCKETS, MAX_VALUES, ColumnSummary

from .channel import FROM_CHILD
from .wire import MALFORMED, PART, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from typing_extensions import Buffer

_INT, _DECIMAL, _JSON, _CUT_JSON, _CUT_TEXT, _BYTES, _CUT_BYTES = 1, 2, 3, 4, 5, 6, 7
_TEXT_KINDS: dict[int, type[str]] = {_JSON: Json, _CUT_JSON: CutJson, _CUT_TEXT: CutText}
_TEXT_CODES: dict[type, int] = {kind: code for code, kind in _TEXT_KINDS.items()}
_MAX_DIGITS = 4_300  # Python refuses to print a longer integer; longer numbers travel as JSON text
_MAX_BITS = 14_280
_ENVELOPE = 1_000  # bytes that a message may add to its value
_TEXT_PIECE = PART // 4  # characters, of at most four bytes each
_ONE_ELEMENT = 0x91  # msgpack's first byte of a list of one element, which cannot be split

MAX_RESULT = 64 << 20
"""Maximum size of all parts of one result in bytes."""

MAX_ELEMENTS = 2_000_000
"""Maximum number of cells and list elements of one result: two bytes on the wire can take sixty in memory."""

_JSON_KINDS = {Json, NoneType, tuple}
_PLAIN_KINDS = {NoneType, bool, int, float, str, tuple}
_MARKED_KINDS = {NoneType, str, tuple}
_THAWED_KINDS = {NoneType, bool, float, str, tuple, Json, CutJson, CutText}
_Meta = msgspec.Meta
_Plain = None | bool | int | float | str | tuple[()]
_PLAIN_CELLS: Any = Annotated[list[Annotated[list[_Plain], _Meta(max_length=MAX_COLUMNS)]], _Meta(max_length=MAX_ROWS)]
_CELLS: Any = Annotated[list[Annotated[list[_Plain | Ext], _Meta(max_length=MAX_COLUMNS)]], _Meta(max_length=MAX_ROWS)]


Slice = tuple[Raw, bool, tuple[int, ...]]
"""Encoded rows, whether they need extension types, and which columns hold only JSON texts."""


class ValueFaultError(ValueError):
    """A value cannot be sent, or received data is malformed."""


FAULTS = (*MALFORMED, ValueFaultError)
"""Every exception that reading a child's value may raise."""


def _extension(value: object) -> Ext:
    """Encode a type that msgspec hands over: subclasses of str and Decimal. It writes plain Decimals as text itself."""
    if (code := _TEXT_CODES.get(type(value))) is not None:
        return Ext(code, str(value).encode())
    if isinstance(value, Decimal):
        text = str(value)
        short = len(text) <= _MAX_DIGITS or len(value.as_tuple().digits) <= _MAX_DIGITS
        fits = short and value.is_finite() and abs(value.adjusted()) <= _MAX_DIGITS
        return Ext(_DECIMAL if fits else _JSON, text.encode())
    raise ValueFaultError(f"a value of type {type(value).__name__} cannot leave the driver")


_encoder = msgspec.msgpack.Encoder(enc_hook=_extension)


def freeze(value: object) -> object:
    """Replace big integers, Decimals and bytes with extension types, at any depth of lists and dicts."""
    match value:
        case bool():
            return value
        case int() if not -(1 << 63) <= value < 1 << 64:
            if value.bit_length() > _MAX_BITS:
                return _extension(Decimal(value))
            return Ext(_INT, value.to_bytes(value.bit_length() // 8 + 1, signed=True))
        case Decimal():
            return _extension(value)
        case bytes():  # msgpack has them, but msgspec has no union of texts and bytes
            return Ext(_CUT_BYTES if isinstance(value, CutBytes) else _BYTES, value)
        case list() | tuple():
            return [freeze(item) for item in value]
        case dict():
            return {key: freeze(item) for key, item in value.items()}
    return value


def thaw(value: object) -> Any:
    """Reverse `freeze` and restore `Json` texts.

    Raises:
        ValueFaultError: An extension type is unknown or malformed.
    """
    match value:
        case Ext():
            return _thaw_extension(value.code, value.data)
        case list():
            return [thaw(item) for item in value]
        case dict():
            return {key: thaw(item) for key, item in value.items()}
    return value


def _thaw_extension(code: int, content: Buffer) -> int | Decimal | str | bytes:
    data = bytes(content)
    if code in (_BYTES, _CUT_BYTES):
        return data if code == _BYTES else CutBytes(data)
    if (kind := _TEXT_KINDS.get(code)) is not None:
        return kind(data.decode())
    if code == _INT and len(data) <= _MAX_BITS // 8 + 1:
        whole = int.from_bytes(data, signed=True)
        if whole.bit_length() <= _MAX_BITS:
            return whole
    if code == _DECIMAL and len(data) <= 2 * _MAX_DIGITS:
        try:
            number = Decimal(data.decode())
        except DecimalException:
            raise ValueFaultError("a Decimal that is not a number") from None
        # An exponent of a billion takes ten bytes here, and a gigabyte where it is printed.
        if number.is_finite() and abs(number.adjusted()) <= _MAX_DIGITS:
            return number
    raise ValueFaultError(f"an unknown or malformed extension type {code} of {len(data):,} bytes")


def encode(value: object, encoder: msgspec.msgpack.Encoder = _encoder) -> bytes:
    """Encode a request or a result whose big integers and Decimals are frozen.

    Raises:
        ValueFaultError: A value in it cannot travel.
    """
    try:
        return encoder.encode(value)
    except (OverflowError, UnicodeEncodeError, TypeError, RecursionError) as error:
        raise ValueFaultError(f"a value cannot leave this process: {error}") from error


def encode_request(request: object) -> bytes:
    """Encode a hook's argument: values of changes frozen, long integers of filter rows as digits.

    Raises:
        ValueFaultError: A value in it cannot travel.
    """
    if isinstance(request, FilterRequest):
        rows = [replace(row, value=_digits(row.value)) if isinstance(row, Filter) else row for row in request.rows]
        return encode(replace(request, rows=rows))
    if isinstance(request, Plan) and request.number:
        return encode(Plan(planned=[], number=request.number))
    return encode(_with_changes(request, freeze))


def _digits(value: Any) -> Any:
    """Replace an integer of more than 64 bits with its text, which a driver reads like a value that was typed."""
    if isinstance(value, (list, tuple)):
        return [_digits(item) for item in value]
    return str(Decimal(value)) if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64 else value


def decode_request(kind: Any, body: Raw) -> Any:
    """Decode a hook's argument. It comes from the trusted host and is not checked further."""
    return _with_changes(decoder_of(kind).decode(body), thaw)


def _with_changes(request: Any, convert: Callable[[object], Any]) -> Any:
    if not isinstance(request, (PlanRequest, Plan)):
        return request
    batch = request.changes
    if isinstance(batch, InsertBatch):
        return replace(request, changes=replace(batch, values=convert(batch.values))) if batch.values else request
    changes = [_converted(change, convert) for change in batch]
    if isinstance(request, Plan):
        return replace(request, changes=changes, undo=[_converted(change, convert) for change in request.undo])
    return replace(request, changes=changes)


def _converted(change: Change, convert: Callable[[object], Any]) -> Change:
    if isinstance(change, (Insert, Update)) and change.values:
        return replace(change, values=convert(change.values))
    return change


def _encode_cells(cells: Sequence[list[Cell]]) -> Slice:
    columns: list[Any]
    if isinstance(cells, CellColumns) and cells.untouched:
        columns, json = list(cells.columns), cells.json
    else:
        columns = [*zip(*cells, strict=True)]
        json = frozenset(at for at, column in enumerate(columns) if _is_json(column))
        for at in json:
            columns[at] = [str(cell) if cell.__class__ is Json else cell for cell in columns[at]]
    kinds = {at: set(map(type, column)) for at, column in enumerate(columns) if at not in json}
    if all(kind <= _PLAIN_KINDS for kind in kinds.values()):
        with suppress(ValueFaultError):  # raised for integers beyond 64 bits
            rows: list[Any] = [*zip(*columns, strict=True)]
            return Raw(encode(rows or [*cells])), False, tuple(sorted(json))
    for at, kind in kinds.items():
        if not kind <= _THAWED_KINDS:
            columns[at] = [cell if cell.__class__ in _THAWED_KINDS else freeze(cell) for cell in columns[at]]
    return Raw(encode(list(zip(*columns, strict=True)))), True, tuple(sorted(json))


def _is_json(column: Sequence[Cell]) -> bool:
    """Return whether the texts of a column are all JSON."""
    kinds = set(map(type, column))
    return Json in kinds and kinds <= _JSON_KINDS


def _with_cells(summary: ColumnSummary, convert: Callable[[object], Any]) -> ColumnSummary:
    """Return a summary whose cells are frozen or thawed."""
    return replace(
        summary,
        values=[replace(count, value=convert(count.value)) for count in summary.values],
        buckets=[
            replace(bucket, lower=convert(bucket.lower), upper=convert(bucket.upper)) for bucket in summary.buckets
        ],
        minimum=convert(summary.minimum),
        maximum=convert(summary.maximum),
    )


# splitting a result ---------------------------------------------------------------------------------------------------


def take_apart(value: Any, *, call: int, cut: Callable[[Any], Any] = lambda value: value) -> tuple[list[Part], bytes]:
    """Split a hook's result: its cells always, other lists, texts and bytes if the rest exceeds one part.

    Args:
        value: The result.
        call: The number of the call.
        cut: Cuts what exceeds a budget. A page whose encoded cells are shorter than any budget is not passed to it.

    Returns:
        The parts in order, each of about `PART` bytes at most unless it has one element only, and the encoded rest.

    Raises:
        ValueFaultError: A value in it cannot travel, or the result is too large.
    """
    _check_shape(value)
    parts: list[Part] = []
    if isinstance(value, Page):
        page, slices = _page_slices(value, cut) if value.cells else (value, ())
        parts += (Part(call, "cells", *piece) for piece in slices)
        whole = replace(page, cells=[])
    else:
        value = cut(value)
        if isinstance(value, ColumnSummary):
            value = _with_cells(value, freeze)
        value = _with_changes(value, freeze)
        whole = _without(value, "", parts, call, large=False)
    rest = encode(whole)
    if len(rest) > PART:
        rest = encode(_without(value if isinstance(value, bytes) else whole, "", parts, call, large=True))
    longest = max(len(rest), *(len(memoryview(part.piece)) for part in parts), 0)
    if longest > FROM_CHILD - _ENVELOPE:
        raise ValueFaultError(f"one element of the answer has {longest:,} bytes; {FROM_CHILD:,} are allowed")
    size = len(rest) + sum(len(memoryview(part.piece)) + _ENVELOPE for part in parts)
    if size > MAX_RESULT:
        raise ValueFaultError(
            f"the answer has {size:,} bytes; {MAX_RESULT:,} are allowed: ask for fewer rows or columns"
        )
    return parts, rest


def _without(value: Any, path: str, parts: list[Part], call: int, *, large: bool) -> Any:
    """Move cells, or everything large, from a value to the parts."""
    if isinstance(value, msgspec.Struct):
        changed: dict[str, Any] = {}
        for name in value.__struct_fields__:
            field, at = getattr(value, name), f"{path}.{name}" if path else name
            if name == "cells" and field and isinstance(value, Page):
                parts += (Part(call, at, *piece) for piece in _cell_slices(field))
                changed[name] = []
            elif isinstance(field, msgspec.Struct) or (large and _is_large(field)):
                changed[name] = _without(field, at, parts, call, large=large)
        return replace(value, **changed) if changed else value
    if large and isinstance(value, (list, str, bytes)):
        parts += (Part(call, path, Raw(piece), extended=isinstance(value, bytes)) for piece in _slices(value))
        return freeze(type(value)())
    return freeze(value) if isinstance(value, (int, Decimal, bytes)) else value


def _is_large(value: object) -> bool:
    return isinstance(value, (list, str)) and len(encode(value)) > _TEXT_PIECE


def _slices(value: Sequence[Any] | str | bytes) -> Iterator[bytes]:
    if isinstance(value, (str, bytes)):
        for at in range(0, len(value), _TEXT_PIECE):
            piece = value[at : at + _TEXT_PIECE]
            yield encode(str(piece) if isinstance(piece, str) else piece)
        return
    encoded = encode(value)
    if len(encoded) <= PART or len(value) == 1:
        yield encoded
    else:
        for half in _halves(value):
            yield from _slices(half)


def _page_slices(page: Page, cut: Callable[[Any], Any]) -> tuple[Page, Iterable[Slice]]:
    """Return a page within its budgets, and its encoded rows in slices."""
    encoded: Slice | None = None
    with suppress(ValueFaultError):  # it may be in what is cut
        encoded = _encode_cells(page.cells)
    if encoded is None or len(encoded[0]) > CELL_BUDGET:
        whole = replace(page, cells=list(page.cells))
        if (shorter := cut(whole)) is not whole:
            page, encoded = shorter, None
    return page, _cell_slices(page.cells, encoded)


def _cell_slices(cells: Sequence[list[Cell]], encoded: Slice | None = None) -> Iterator[Slice]:
    encoded = encoded or _encode_cells(cells)
    if len(encoded[0]) <= PART or len(cells) == 1:
        yield encoded
    else:
        for half in _halves(cells):
            yield from _cell_slices(half)


def _halves(values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    middle = len(values) // 2
    return values[:middle], values[middle:]


# joining its parts ----------------------------------------------------------------------------------------------------


@cache
def decoder_of(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return the one decoder of a type."""
    return msgspec.msgpack.Decoder(kind)


@cache
def _piece_type(kind: Any, path: str) -> Any:
    """Return the type of a piece at a path of a result: a list, `str`, or `Page` for the cells of a page."""
    owner: Any = None
    for name in path.split(".") if path else ():
        owner = next(
            (item for item in _members(kind) if isinstance(item, type) and issubclass(item, msgspec.Struct)), None
        )
        if owner is None or name not in owner.__struct_fields__:
            raise ValueFaultError(f"a part of {path!r}, a field that the result does not have")
        kind = get_type_hints(owner)[name]
    if owner is Page and path.endswith("cells"):
        return Page
    for item in _members(kind):
        if item is str or get_origin(item) is list:
            return item
    raise ValueFaultError(f"a part of {path!r}, which does not travel in parts")


def _members(kind: Any) -> tuple[Any, ...]:
    return (kind,) if isinstance(kind, type) or get_origin(kind) in (list, dict) else get_args(kind)


class Assembly:
    """Joins the parts of one result, with bounds on each part and on the whole."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._pieces: dict[str, list[Any]] = {}
        self._size = self._elements = 0

    def add(self, part: Part) -> None:
        """Add one part.

        Raises:
            FAULTS: The part is malformed, belongs to no field, or exceeds a bound.
        """
        path, piece = part.path, part.piece
        self._size += len(memoryview(piece)) + _ENVELOPE
        if self._size > MAX_RESULT:
            raise ValueFaultError(f"a result of more than {MAX_RESULT:,} bytes")
        view = memoryview(piece)
        if len(view) > PART + _ENVELOPE and view[0] != _ONE_ELEMENT:  # a larger part would hold up the host
            raise ValueFaultError(f"a part of {len(view):,} bytes; {PART:,} are allowed")
        kind = _piece_type(self._kind, path)
        pieces = self._pieces.setdefault(path, [])
        if kind is Page:
            cells = decoder_of(_CELLS if part.extended else _PLAIN_CELLS).decode(piece)
            if part.extended:
                _thaw_cells(cells)
            for at in part.json:
                _mark_texts(cells, at)
            pieces += cells
            self._count(sum(map(len, cells)))
            if len(pieces) > MAX_ROWS:
                raise ValueFaultError(f"a page of more than {MAX_ROWS:,} rows")
        elif kind is str:
            pieces.append(decoder_of(bytes if part.extended else str).decode(piece))
        else:
            elements = decoder_of(kind).decode(piece)
            pieces += elements
            self._count(len(elements))

    def _count(self, elements: int) -> None:
        self._elements += elements
        _check_elements(self._elements)

    def finish(self, rest: Raw) -> Any:
        """Return the whole result.

        Raises:
            FAULTS: The rest is malformed, does not fit the parts, or exceeds a bound.
        """
        value = decoder_of(self._kind).decode(rest)
        if self._kind is Cell:
            value = thaw(value)
        for path, pieces in self._pieces.items():
            value = _put(value, path.split(".") if path else [], pieces)
        _check_shape(value)
        return _with_cells(value, thaw) if isinstance(value, ColumnSummary) else _with_changes(value, thaw)


def _thaw_cells(cells: list[list[Any]]) -> None:
    for row in cells:
        for at, cell in enumerate(row):
            if type(cell) is Ext:
                row[at] = _thaw_extension(cell.code, cell.data)


def _mark_texts(cells: list[list[Any]], at: int) -> None:
    """Convert the texts of a column, which travelled as plain texts, to JSON."""
    for row in cells:
        if len(row) <= at:
            raise ValueFaultError(f"a row without column {at:,}")
        cell = row[at]
        if cell.__class__ is str:
            row[at] = Json(cell)
        elif cell is not None and cell is not MISSING:
            raise ValueFaultError(f"a {type(cell).__name__} in a column of JSON texts")


def _put(value: Any, path: list[str], pieces: list[Any]) -> Any:
    if path:
        if not isinstance(value, msgspec.Struct):
            raise ValueFaultError(f"a part of {path[0]!r}, a field that the result does not have")
        return replace(value, **{path[0]: _put(getattr(value, path[0]), path[1:], pieces)})
    if isinstance(value, (str, bytes)):
        if {type(piece) for piece in pieces} - {str if isinstance(value, str) else bytes}:
            raise ValueFaultError("parts of another type than their value")
        return type(value)("".join(pieces)) if isinstance(value, str) else type(value)(b"".join(pieces))
    if isinstance(value, list):
        return pieces
    raise ValueFaultError("parts of a value that is not a list, text or bytes")


def _check_elements(elements: int) -> None:
    if elements > MAX_ELEMENTS:
        raise ValueFaultError(
            f"an answer of {elements:,} cells or elements; {MAX_ELEMENTS:,} are allowed: ask for fewer rows or columns"
        )


def _check_shape(value: object) -> None:
    """Check that lists are within bounds, and that a page's rows, keys and columns fit together."""
    page = value.page if isinstance(value, Answer) else value
    if isinstance(page, ObjectList) and len(page) > MAX_OBJECTS:
        raise ValueFaultError(f"{len(page):,} objects; {MAX_OBJECTS:,} are allowed")
    if isinstance(page, (Page, Description)) and len(page.columns) > MAX_COLUMNS:
        raise ValueFaultError(f"{len(page.columns):,} columns; {MAX_COLUMNS:,} are allowed")
    if isinstance(page, ColumnSummary):
        _check_summary(page)
    if isinstance(page, Completion):
        _check_completion(page)
    if not isinstance(page, Page):
        return
    cells: Any = page.cells
    by_column = isinstance(cells, CellColumns)
    _check_elements(len(cells) * len(cells.columns) if by_column else sum(map(len, cells)))
    if len(cells) > MAX_ROWS:
        raise ValueFaultError(f"a page of {len(cells):,} rows; {MAX_ROWS:,} are allowed")
    widths = {len(cells.columns)} if by_column else set(map(len, cells))
    if (cells and widths != {len(page.columns)}) or (by_column and set(map(len, cells.columns)) - {len(cells)}):
        raise ValueFaultError(f"a row whose length differs from the page's {len(page.columns):,} columns")
    if by_column:
        _check_marks(page, cells)
    if page.keys and len(page.keys) != len(page.cells):
        raise ValueFaultError(f"{len(page.keys):,} row keys for {len(page.cells):,} rows")


def _check_marks(page: Page, cells: CellColumns) -> None:
    """Check that columns marked as JSON hold texts: the host ends a driver that sends anything else there."""
    for at in cells.json:
        if not 0 <= at < len(cells.columns):
            raise ValueFaultError(f"column {at:,} is marked as JSON, but the page does not have it")
        if others := set(map(type, cells.columns[at])) - _MARKED_KINDS:
            names = ", ".join(sorted(kind.__name__ for kind in others))
            raise ValueFaultError(f"column {page.columns[at].name!r} is marked as JSON, but holds {names}")


def _check_summary(summary: ColumnSummary) -> None:
    counts = (("values", len(summary.values), MAX_VALUES), ("buckets", len(summary.buckets), MAX_BUCKETS))
    for field, count, limit in counts:
        if count > limit:
            raise ValueFaultError(f"{count:,} {field} of a summary; {limit} are allowed")
    numbers = [summary.rows, summary.missing or 0, summary.distinct or 0]
    numbers += [value.rows for value in summary.values]
    numbers += [bucket.rows for bucket in summary.buckets]
    if not all(0 <= number < 1 << 64 for number in numbers):
        raise ValueFaultError("a figure of a summary is not a number of rows")


def _check_completion(completion: Completion) -> None:
    if (count := len(completion.suggestions)) > MAX_SUGGESTIONS:
        raise ValueFaultError(f"{count:,} suggestions; {MAX_SUGGESTIONS} are allowed")
    for suggestion in completion.suggestions:
        if len(suggestion.text) > SUGGESTION_TEXT:
            raise ValueFaultError(
                f"a suggestion of {len(suggestion.text):,} characters; {SUGGESTION_TEXT:,} are allowed"
            )
        if not 0 <= suggestion.start <= suggestion.end:
            raise ValueFaultError(f"a suggestion for the characters from {suggestion.start:,} to {suggestion.end:,}")
