"""Pages of the grid: the search by offset, the switch to deep pages, and the page with its notes."""

from __future__ import annotations

import itertools
import re
import secrets
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api import DragomanError, Note, Page, PageRequest, Sort
from dragoman_api.cells import Json
from dragoman_api.errors import QueryError, RowNotFoundError, UnsupportedOperationError, WindowExceededError
from dragoman_api.json_text import encode, widened
from dragoman_api.kit import cursors
from dragoman_api.kit.exchanges import Exchange, ask, get, post
from dragoman_api.kit.filter_rows import body_of
from dragoman_api.kit.page_columns import LeftOut, ShownKeys, check_bounds, choose, columns_cut, sortable
from dragoman_api.remedies import Remedy, RemedyKind
from dragoman_querydsl import protocol
from dragoman_querydsl.columns import exactness
from dragoman_querydsl.columns.field_types import BOUNDS, SPECIAL, Family, Field
from dragoman_querydsl.columns.grid_columns import View, column
from dragoman_querydsl.objects import document
from dragoman_querydsl.protocol import target
from dragoman_querydsl.search import MATCH_ALL, READ, DecodedHit, search

from .cells import DOCUMENT, CellReader, whole
from .deep_pages import Pager, PointInTimePager, ScrollPager, SortKeys
from .filters import FilterBody, within

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dragoman_api import Cell, CellRequest, CompiledFilter, HttpRequest, RowKey
    from dragoman_querydsl.protocol import Dialect


MISSING = {"date": (-9223372036854775000, 2**63 - 1), "date_nanos": (0, 2**63 - 1)}
"""What stands for a missing date in a descending and in an ascending sort, by type (milliseconds, nanoseconds).

With `missing: _last` the server leaves out shards whose dates come after the last row that it has so far, which it
writes and reads again in the format of the field; with a number, it asks every shard. The same order, measured on 4
shards of 40 documents, of which many have no date (pages wrong, 22 to 51 of each; `500` and `400` are errors):

    format of the field        by offset: 7.10.2, 7.17.29, 8.7.1    8.19.21    in a point in time: 7.17 and 8.7    8.19
    default, epoch_*, date_time, basic_date          right          right      rows lost      rows lost, descending
    yyyy-MM-dd, dd.MM.yyyy, two formats     rows lost, 500          right      rows lost      rows lost, descending
    yyyy, HH:mm, dd.MM.yy||yyyy-MM-dd            rows lost          right      rows lost      rows lost, descending
    date_nanos, default or epoch_*                   right          right      rows lost      rows lost, descending
    date_nanos, yyyy-MM-dd or dd.MM.yyyy               400          right      rows lost      rows lost, descending

An `alias` field is like its target; runtime dates, sorts in nested arrays and other types are right everywhere. In a
point in time, shards in which no document has a date are left out. `format` in the sort key cures pages by offset on
7.x only: after a missing date, a point in time does not continue (400), and 8.7.1 cannot write one (500).

The smallest number is the first whole second: 8.7.1 cannot write -2**63 as `epoch_millis` (500). 7.10.2 cannot write
either number as `basic_date` (500), nor `_last`. Before 7.11, the server's own sentinel for `date_nanos` is no date
(500); later, it is 0.
"""

CONSTANT: dict[str, Any] = {"_id.none": {"order": "asc", "unmapped_type": "long"}}
"""A sort key by which all rows are equal: no mapping can have this field. Servers skip rows by the first key only."""

_LONGS = frozenset(name for name, (_, maximum) in BOUNDS.items() if maximum < 2**63)

_DOUBLES = frozenset(("byte", "short", "integer", "half_float", "float", "double"))

_FEWER_DIGITS = "some indices hold integers, some fractions: beyond 2^53, neighbours are ordered as if equal"


def compile_sort(sorts: Sequence[Sort], view: View, dialect: Dialect) -> tuple[SortKeys, list[Note]]:
    """Translate sort keys; a column that does not sort is dropped with a note.

    Returns:
        The server's sort keys, and notes: ``sort-dropped`` for each dropped column, ``sort-approximate`` for each
        reason why the order differs from that of the stored values.
    """
    pairs, notes = sortable(sorts, view.find, lambda field: field.support[1].get("sort", ""))
    keys: SortKeys = []
    if pairs and not dialect.skips_rightly and _skipped_wrongly(pairs[0][1]):
        keys.append(CONSTANT)
    for sort, field in pairs:
        key = _key(field, descending=sort.descending)
        keys.append({field.whole: key})
        reasons = exactness.sort_approximations(field, dialect)
        if key.get("numeric_type") == "double" and not _DOUBLES.issuperset(field.types):
            reasons.append(_FEWER_DIGITS)
        notes += (Note(code="sort-approximate", column=sort.column, reason=reason) for reason in reasons)
    return keys, notes


def _skipped_wrongly(field: Field) -> bool:
    """Return whether rows, or a shard, are skipped by an index of a field that does not fit, or that it lacks."""
    return bool(field.nested) or "scaled_float" in field.types or field.family is Family.INDEX


def _key(field: Field, *, descending: bool) -> dict[str, Any]:
    if field.family is Family.INDEX:
        return {"order": "desc" if descending else "asc"}
    # Options for missing values and arrays are explicit, so that reversing a key is symmetric.
    key: dict[str, Any] = {
        "order": "desc" if descending else "asc",
        "missing": "_last",
        "mode": "max" if descending else "min",
    }
    if field.family is Family.NUMBER and (len(field.types) > 1 or "half_float" in field.types):
        # 8.19 answers 500 to a half_float that some documents lack. A double has no room for a long.
        key["numeric_type"] = "long" if _LONGS.issuperset(field.types) else "double"
    if field.family is Family.DATE:
        kind = field.types[0]
        if len(field.types) > 1:
            kind = key["numeric_type"] = "date_nanos"
        key["missing"] = MISSING[kind][0 if descending else 1]
    if field.partial:  # else the documents of an index without the field are silently missing
        kind = "keyword" if field.keyword or field.family in (Family.KEYWORD, Family.KEYED) else field.types[0]
        key["unmapped_type"] = "double" if kind in ("scaled_float", "token_count") else kind
    nested: dict[str, Any] = {}
    for path in reversed(field.nested):
        nested = {"path": path, "nested": nested} if nested else {"path": path}
    return key | {"nested": nested} if nested else key


WINDOW = 10_000
"""Rows that are reached by offset; deep pages start after them (E41). Fixed, whatever the index's setting."""

_VOID = re.compile(r'MatchNoDocsQuery\("(.*?)"\)')
_SPELLED = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_CAUSES = 3  # maximum notes on why a query finds nothing


def preference() -> str:
    """Return a word that keeps all pages of a connection on the same shard copies, so that ties keep their order."""
    return f"dragoman-{secrets.token_hex(4)}"


class PageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One page request, translated.

    Attributes:
        request: The request.
        view: The object.
        fields: Columns of the page.
        reader: The reader of their cells.
        keys: The server's sort keys.
        notes: Notes on dropped sort keys.
        query: The server's query, with the range of time.
        raw: A Raw row is part of the query.
        window: Rows reached by offset.
        preference: The word that keeps all pages of a connection on the same shard copies.
    """

    request: PageRequest
    view: View
    fields: list[Field]
    reader: CellReader
    keys: SortKeys
    notes: list[Note]
    query: Raw
    raw: bool
    window: int
    preference: str

    @property
    def deep(self) -> bool:
        """Whether the page reaches past the window."""
        return self.request.offset + self.request.limit > self.window

    @property
    def reads_source(self) -> bool:
        """Whether documents are read: for a column, or to see what no column shows."""
        return self.reader.needs_source or self.request.columns is None

    @property
    def result_key(self) -> str:
        """The key of the result; pages of one result share a pager."""
        names = [field.name for field in self.fields]
        return encode([self.request.object, self.view.revision, self.query, self.keys, names])

    def pager(self, dialect: Dialect) -> Pager:
        """Build a pager for the result."""
        result = self.view.target, self.query, self.keys, self.window, self.preference
        if (points := dialect.snapshots) is not None and dialect.ties_as_offset:
            return PointInTimePager(*result, points=points)
        return ScrollPager(*result)

    def shallow_page(self) -> Exchange[Page]:
        """Fetch the page by offset."""
        request = self.request
        body: dict[str, Any] = {"from": request.offset, "size": request.limit, "query": self.query}
        body |= {"sort": self.keys} if self.keys else {}
        body |= {"track_total_hits": request.total} | self.options()
        where = f"/{target(request.object)}/_search?allow_partial_search_results=false&preference={self.preference}"
        try:
            answer = yield from search(where, body, READ)
        except WindowExceededError as error:
            raise (yield from _explained(error, request)) from error
        return self.page_of(answer.hits.hits, answer.notes(), answer.count)

    def request_by_offset(self) -> HttpRequest:
        """Return the request of the page, for a preview.

        Raises:
            UnsupportedOperationError: The page reaches past the window.
        """
        if self.deep:
            reason = f"a page that reaches past row {self.window:,} takes several requests, each built from an answer"
            raise UnsupportedOperationError(reason, hint="ask for earlier rows")
        [request] = next(self.shallow_page())
        return request

    def deep_page(self, pager: Pager) -> Exchange[Page]:
        """Fetch the page through a pager."""
        reason = f"rows past {self.window:,} come from a snapshot, so rows of earlier pages may repeat in it"
        try:
            hits = yield from pager.fetch(self.request.offset, self.request.limit, self.options())
        except WindowExceededError as error:
            raise (yield from _explained(error, self.request)) from error
        notes = [Note(code="snapshot", reason=reason)]
        if pager.renewed:
            pager.renewed = False
            notes.append(Note(code="snapshot-renewed", reason="the snapshot had expired; this is a newer one"))
        odd = (pager.odd.get((hit.index, hit.id)) for hit in hits)
        notes += {note.reason: note for note in odd if note}.values()
        return self.page_of(hits, notes, pager.total if self.request.total else None)

    def options(self) -> dict[str, Any]:
        """Return the members of a search that ask for what the page shows of its rows."""
        reader = self.reader
        options: dict[str, Any] = {"seq_no_primary_term": True}
        # A filtered _source comes back rewritten (1.10 as 1.1): request all of it, or none.
        options |= {} if self.reads_source else {"_source": False}
        return options | ({"fields": reader.computed} if reader.computed else {})

    def page_of(self, hits: Sequence[DecodedHit], notes: Iterable[Note], total: int | None) -> Page:
        """Return the page of the rows of an answer.

        Raises:
            QueryError: A row is of another index.
        """
        reader, view = self.reader, self.view
        strange = sorted({hit.index for hit in hits} - {*self.view.objects})
        if strange and self.view.objects == (self.view.target,):  # an alias may have new indices by now
            raise QueryError(
                f"the server returned rows of {', '.join(map(repr, strange))}, not of '{self.view.target}'"
            )
        cells = reader.cells(hits)
        left_out = LeftOut()
        if self.request.columns is None:
            _shown_keys(view).add_all([hit.source for hit in hits if hit.source], left_out)
        sorted_by = {sort.column for sort in self.request.sort}
        return Page(
            columns=[self.view.columns.get(field.name) or column(field) for field in self.fields],
            cells=cells,
            keys=[hit.key for hit in hits],
            notes=[
                *self.notes,
                *notes,
                *_row_notes(hits, view, source=self.reads_source),
                *(columns_cut(len(view.fields)) if self.request.columns is None else ()),
                *(view.left_out(field.name for field in self.fields) if hits and view.excluded else ()),
                *left_out.notes(),
                *coerced_notes(self.fields, cells, sorted_by),
            ],
            total=total,
            offset=self.request.offset,
        )


def page_query(request: PageRequest, view: View, dialect: Dialect, *, window: int, preference: str) -> PageQuery:
    """Translate a page request.

    Raises:
        QueryError: A requested column does not exist, the filter belongs to another object, the range of time cannot
            be asked for, or there is a cursor.
    """
    check_bounds(request)  # 7.17 answers a negative offset with an error of its own code
    if request.cursor is not None:
        cursors.refuse(request)
    keys, notes = compile_sort(request.sort, view, dialect)
    query, raw = filter_query(request.object, request.filter)
    fields, reader = _chosen(view, None if request.columns is None else tuple(request.columns))
    return PageQuery(
        request=request,
        view=view,
        fields=fields,
        reader=reader,
        keys=keys,
        notes=notes,
        query=query if request.time is None else within(query, request.time, view),
        raw=raw,
        window=window,
        preference=preference,
    )


def filter_query(name: str, compiled_filter: CompiledFilter | None) -> tuple[Raw, bool]:
    """Return the query of a compiled filter, and whether it holds a Raw row.

    Raises:
        QueryError: It was compiled for another object.
    """
    if compiled_filter is None or (body := body_of(compiled_filter, FilterBody, object=name)) is None:
        return MATCH_ALL, False
    return body.query, body.raw


def fetch_cell(request: CellRequest, view: View) -> Exchange[Cell]:
    """Fetch one whole cell as it is now.

    Raises:
        RowNotFoundError: The row is gone.
        QueryError: The index keeps no `_source`, or a shard that may hold the row failed.
    """
    [field] = _choose(view, [request.column])
    reader = CellReader([field], nested_names(view))
    if field.computed:  # only searches compute it
        body = {"query": {"term": {"_id": request.key.text}}, "fields": reader.computed, "_source": False}
        answer = yield from search(f"/{target(request.key.object)}/_search", body, READ)
        hit = _same_row(answer.hits.hits, request.key)
        if hit is None and (partial := answer.partial()):
            raise QueryError(f"the row cannot be read: {partial[0].reason}", hint="try again")
        if hit is None:
            raise RowNotFoundError(f"'{request.key.object}' holds no document '{request.key.text}'")
    else:
        hit = yield from stored_hit(request.key)
        if hit.source is None and reader.needs_source:
            raise QueryError("the index does not keep documents (_source), so the cell cannot be read")
    return whole(reader.columns([hit])[0][0])


def stored_hit(key: RowKey) -> Exchange[DecodedHit]:
    """Fetch one row as it is now; without a document if the index keeps none.

    Raises:
        RowNotFoundError: The row is gone.
    """
    stored = yield from document(key.object, key.text, key.routing)
    source = protocol.parsed(widened(bytes(stored.source)), DOCUMENT) if bytes(stored.source) else None
    return DecodedHit(index=stored.index, id=stored.id, source=source)


def _same_row(hits: Sequence[DecodedHit], key: RowKey) -> DecodedHit | None:
    """Return the row of a key among those that a search finds by its id: each shard may hold one of another routing."""
    hits = [hit for hit in hits if hit.id == key.text]
    match = next((hit for hit in hits if hit.routing == key.routing), None)
    return hits[0] if match is None and key.routing is None and len(hits) == 1 else match


@lru_cache(maxsize=16)
def _chosen(view: View, names: tuple[str, ...] | None) -> tuple[list[Field], CellReader]:
    fields = _choose(view, names)
    return fields, CellReader(fields, nested_names(view))


@lru_cache(maxsize=16)
def _shown_keys(view: View) -> ShownKeys:
    stored = (field for field in view.fields.values() if field.family not in SPECIAL and not field.computed)
    return ShownKeys(field.field for field in stored)


def nested_names(view: View) -> list[str]:
    """Return the names of all nested arrays."""
    return [field.name for field in view.fields.values() if field.family is Family.NESTED]


def _choose(view: View, names: Sequence[str] | None) -> list[Field]:
    return choose(names, view.fields, object=view.target, find=view.find)


def _row_notes(hits: Sequence[DecodedHit], view: View, *, source: bool) -> list[Note]:
    notes = []
    for name in sorted({name for hit in hits for name in hit.ignored}):
        if name not in view.fields and name.rpartition(".")[0] not in view.fields:
            continue  # it came after the last field that the mapping takes: a key without a column
        reason = f"some values of {name} are stored, not indexed (too long or malformed): filters and sorts miss them"
        notes.append(Note(code="value-not-indexed", column=name.removesuffix(".keyword"), reason=reason))
    if source and any(hit.source is None for hit in hits):
        notes.append(
            Note(code="source-missing", reason="the index does not keep documents (_source), so only ids are shown")
        )
    return notes


def coerced_notes(fields: Sequence[Field], cells: Sequence[Sequence[Cell]], sorted_by: Collection[str]) -> list[Note]:
    """Return notes on columns of a sort whose cells show another value than the integer that the index holds."""
    notes: list[Note] = []
    for at, field in enumerate(fields):
        if field.name in sorted_by and any(gap.name == "coerce" for gap in field.gaps):
            reasons = sorted({reason for row in cells if (reason := _coerced(row[at]))})
            notes += (Note(code="sort-approximate", column=field.name, reason=reason) for reason in reasons)
    return notes


def _coerced(cell: Cell) -> str:
    if isinstance(cell, str):
        spelled = not isinstance(cell, Json) and _SPELLED.fullmatch(cell)
        return "a stored text counts as the integer that it spells (coerce)" if spelled else ""
    if isinstance(cell, Decimal):
        decimals = cell != cell.to_integral_value()
    else:
        decimals = isinstance(cell, float) and not cell.is_integer()
    return "" if not decimals else "a stored number with decimals counts without them (coerce)"


def window_setting(name: str) -> Exchange[int]:
    """Read how far an object is reached by offset: the smallest `index.max_result_window` of its indices."""
    path = "_settings/index.max_result_window?include_defaults=true&flat_settings=true"
    reply = yield from ask(get(f"/{target(name)}/{path}"))
    answer = protocol.decode(reply, dict[str, dict[str, dict[str, str]]])
    setting = "index.max_result_window"  # set values are under `settings`, all others under `defaults`; strings
    values = (
        index_settings.get("settings", {}).get(setting) or index_settings["defaults"][setting]
        for index_settings in answer.values()
    )
    return min((int(value) for value in values), default=WINDOW)


def _explained(error: WindowExceededError, request: PageRequest) -> Exchange[WindowExceededError]:
    """Add the remedy with the index's own number (E42)."""
    try:
        window = yield from window_setting(request.object)
    except (DragomanError, LookupError):
        window = int(str(error.details["window"]))
    put = f'PUT /{target(request.object)}/_settings {{"index.max_result_window":{WINDOW}}}'
    return WindowExceededError(
        f"'{request.object}' shows its first {window:,} rows only (index.max_result_window is {window}); "
        f"rows {request.offset + 1:,} to {request.offset + request.limit:,} were asked for. {error.message}",
        hint="raise the setting, or let Paging Window of the connection follow it",
        remedies=[
            Remedy(
                RemedyKind.RAISE_SETTING,
                {"object": request.object, "setting": "index.max_result_window", "value": WINDOW, "request": put},
            ),
            Remedy(RemedyKind.EDIT_FIELD, {"field": "window", "value": "index"}),
        ],
        details=error.details,
    )


class _Explained(msgspec.Struct, frozen=True):
    explanation: str = ""
    error: str = ""


class _Validated(msgspec.Struct, frozen=True):
    explanations: list[_Explained] = []


def why_nothing(name: str, query: Raw) -> Exchange[list[Note]]:
    """Ask the server why a Raw row finds nothing: `lenient` turns bad values and patterns into an empty 200."""
    reply = yield from ask(post(f"/{target(name)}/_validate/query?explain=true", {"query": query}))
    texts = [
        explanation.explanation or explanation.error for explanation in protocol.decode(reply, _Validated).explanations
    ]
    causes = list(dict.fromkeys(cause for text in texts for cause in _causes(text)))
    return [
        Note(code="raw-query-void", reason=f"a part of the query text can match nothing: {cause}")
        for cause in causes[:_CAUSES]
    ]


def _causes(text: str) -> Iterable[str]:
    """Yield why parts of a query match nothing; a word searched in all fields may fail in some of them."""
    causes = _VOID.findall(text)
    numbers = itertools.count()
    marked = _VOID.sub(lambda _: f"\0{next(numbers)}\0", text)
    for run in re.finditer(r"(\| )?\0(\d+)\0(?: \| \0\d+\0)*( \|)?", marked):
        if run[1] is None and run[3] is None:
            yield causes[int(run[2])]
