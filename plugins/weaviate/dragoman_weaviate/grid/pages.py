"""Pages of the grid: by REST for all rows, by GraphQL for filtered or sorted ones (W21, W39)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from dragoman_api import DragomanError, Note, Page, PageRequest, QueryError, UnsupportedOperationError
from dragoman_api.errors import RowNotFoundError
from dragoman_api.kit import cursors, similar_rows
from dragoman_api.kit.exchanges import Exchange, ask, get
from dragoman_api.kit.filter_rows import body_of
from dragoman_api.kit.page_columns import KEYS, LeftOut, check_bounds, columns_cut, sortable
from dragoman_api.kit.residual import Residual, residual_of
from dragoman_weaviate import graphql, protocol, stored_objects
from dragoman_weaviate.columns.field_types import Family, Field
from dragoman_weaviate.columns.grid_columns import View
from dragoman_weaviate.graphql import Where
from dragoman_weaviate.protocol import object_path
from dragoman_weaviate.stored_objects import cell, cells

from .filters import FilterBody, sort_kind, stored_value, where_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman_api import Cell, CellRequest, CountRequest, HttpRequest, Sort
    from dragoman_api.grid import SimilarRequest
    from dragoman_api.replies import Reply
    from dragoman_weaviate.stored_objects import StoredObject

_MOST = 0.25
"""The largest share of all ids: the server reads an id of a window in about a tenth of the time of a sorted object."""
EVERY = 8
"""One of so many objects matches a filter, as long as nothing is known of it."""
_SPARE = 1.5
"""How much larger a window is than expected, since ids are spread evenly only on average."""
_FEW = 16
"""Rows in a window from which the share of objects that match is estimated."""
_ALL = 2**128


class IdWindow(msgspec.Struct, frozen=True):
    """The lowest ids, or the highest.

    Attributes:
        share: Their share of all possible ids.
        descending: Whether they are the highest.
    """

    share: float
    descending: bool = False

    def around(self, where: Where | None) -> Where:
        """Return a filter for the objects in the window that match another filter."""
        width = int(self.share * _ALL)
        operator, bound = ("GreaterThanEqual", _ALL - width) if self.descending else ("LessThan", width)
        ids: Where = {"path": ["id"], "operator": operator, "valueText": str(UUID(int=bound))}
        return {"operator": "And", "operands": [where, ids]} if where else ids

    def wider(self, rows: int, window_rows: int) -> IdWindow | None:
        """Return a larger window for the same rows.

        Args:
            rows: The number of rows that it should hold.
            window_rows: The number of rows that were in this window.

        Returns:
            None if all ids should be read: too few rows are in this window, or too many ids would be in the next.
        """
        return _of(self.share * rows / window_rows, self.descending) if window_rows >= _FEW else None


def first_window(rows: int, matching: float, *, descending: bool = False) -> IdWindow | None:
    """Return the window in which the first rows should be found.

    Args:
        rows: The number of rows that it should hold.
        matching: How many objects match, about.
        descending: Whether the first rows are those with the highest ids.

    Returns:
        None if all ids should be read: too few objects match.
    """
    return _of((rows + _FEW) / matching, descending) if matching else None


def _of(expected: float, descending: bool) -> IdWindow | None:  # noqa: FBT001 - both callers pass a flag on
    share = expected * _SPARE
    return IdWindow(share, descending) if share <= _MOST else None


WINDOW = 10_000
"""Rows that are reached by offset (W39); the server's own limit may be lower, and then it says so."""


_COUNTS = 100  # numbers of objects that are remembered of one collection


class _PageQuery(msgspec.Struct, kw_only=True):
    """One page request, translated; `after` is the id at which its cursor points."""

    request: PageRequest
    view: View
    tenant: str | None
    fields: list[Field]
    where: Where | None
    keys: SortKeys
    notes: list[Note]
    residual: Residual | None = None
    after: str | None = None

    @property
    def _offset(self) -> int:
        """The first row to read."""
        return self.request.offset if self.residual is None else 0

    @property
    def _limit(self) -> int:
        """The number of rows to read."""
        return self.request.limit if self.residual is None else self.residual.limit

    @property
    def _all(self) -> object:
        """What names the number of all objects among those that were counted."""
        return self.tenant, ""

    @property
    def _counted(self) -> object:
        """What names the number of objects that match."""
        return self.tenant, hash(graphql.literal(self.where)) if self.where is not None else ""  # a text may be long

    @property
    def _reach(self) -> int:
        """The number of rows up to the last one to read."""
        return self._offset + self._limit

    @property
    def _read(self) -> list[Field]:
        """The columns to read."""
        evaluated = [] if self.residual is None else [self.view.fields[name] for name in self.residual.columns]
        return [*self.fields, *(field for field in evaluated if field not in self.fields)]

    @property
    def plain(self) -> bool:
        """Whether the page is of all rows in the server's own order, by id."""
        return self.where is None and not self.keys

    def check(self) -> None:
        """Refuse requests that the server would refuse or answer wrongly."""
        request = self.request
        check_bounds(request)  # the server answers 200 with an empty body to a negative offset
        if self.residual is not None and request.cursor is not None:
            reason = "a cursor goes on after a page, and a page that is evaluated here is one of an offset"
            raise QueryError(reason, code=cursors.INVALID)
        if request.cursor is not None:
            if not (self.plain and self.view.features.cursor):
                reason = "a cursor goes through all rows in the order of their uuids: no filter, no sort"
                raise QueryError(reason, code=cursors.INVALID)
            self.after = cursors.unseal(request.cursor, cursors.query_of(request), str)
        if self.residual is not None and not 1 <= self.residual.limit <= WINDOW:
            raise QueryError(f"at most {WINDOW:,} rows can be read to be evaluated here, not {self.residual.limit:,}")
        reach = self._limit + (0 if self.after is not None else self._offset)
        if reach > WINDOW:
            raise protocol.window_exceeded(reach, WINDOW)

    def requests(self) -> Exchange[tuple[IdWindow | None, list[HttpRequest]]]:
        """Return the requests of the page, with the ids among which it should be."""
        window = yield from self._window()
        requests = [self._list() if self.plain else self._search(window)]
        if self.request.total or self.residual is not None:
            requests.append(graphql.count([self.view.target], where=self.where, tenant=self.tenant))
        return window, requests

    def page(self) -> Exchange[Page]:
        """Fetch the page, and the total if requested."""
        return (yield from stored_objects.following(self.view, self.tenant, self._fetch))

    def _fetch(self) -> Exchange[Page]:
        window, requests = yield from self.requests()
        replies = yield requests
        notes = list(self.notes)
        if self.plain:
            items = stored_objects.read_list(replies[0], self.view, self.tenant)
        else:
            rows = graphql.first_objects(replies[0], self.view)
            if rows is None:
                rows = graphql.objects((yield from ask(self._search(to_the_end=True))), self.view)
            if window is not None and len(rows) < self._limit:
                rows = yield from self._outside(window, rows)
            items = yield from _whole(rows, self._read, self.view, self.tenant, notes)
        if self.request.columns is None:
            notes += columns_cut(len(self.view.fields))
        notes += _left_out(items, self.view)
        if len(items) > self._limit:
            raise QueryError(f"the server returned {len(items):,} rows instead of {self._limit:,}")
        total = self._total(replies[1], notes) if len(requests) > 1 else None
        exact = True
        if self.residual is not None:
            fields = self.view.fields
            chosen = self.residual.cut(
                self.request, items, lambda item, name: stored_value(item, fields[name]), matched=total
            )
            items, total, exact = chosen.rows, chosen.total, chosen.total_exact
            notes += chosen.notes
        return Page(
            columns=[self.view.columns[field.name] for field in self.fields],
            cells=cells(items, self.fields),
            keys=[item.key(self.tenant) for item in items],
            notes=notes,
            total=total,
            total_exact=exact,
            offset=self.request.offset,
            next=self._next(items, total),
        )

    def _window(self) -> Exchange[IdWindow | None]:
        """Return the ids among which the page should be, if it is in their order; None for all ids."""
        if self.plain or not graphql.by_id(self.where, self.keys, self.view):
            return None
        descending = any(down for _, down in self.keys)
        counts = self.view.counts
        if counts.keys().isdisjoint((self._counted, self._all)):
            try:
                counts[self._all] = yield from graphql.count_of(self.view, None, self.tenant)
            except DragomanError:
                return None
        matching = counts.get(self._counted, counts.get(self._all, 0) / EVERY)
        return first_window(self._reach, matching, descending=descending)

    def _outside(self, window: IdWindow, rows: list[dict[str, Any]]) -> Exchange[list[dict[str, Any]]]:
        """Return the objects of a page that a window did not fill: from a larger one, or from all ids."""
        wider = window.wider(self._reach, self._offset + len(rows)) if rows else None
        if wider is not None:
            rows = graphql.objects((yield from ask(self._search(wider))), self.view)
        if wider is None or len(rows) < self._limit:
            rows = graphql.objects((yield from ask(self._search())), self.view)
        return rows

    def _list(self) -> HttpRequest:
        wants_vector = any(field.family is Family.VECTOR for field in self.fields)
        place = {"offset": self._offset or None} if self.after is None else {}
        return get(
            "/v1/objects",
            **{"class": self.view.target},
            limit=self._limit,
            **place,
            after=self.after,
            include="vector" if wants_vector else None,
            tenant=self.tenant,
        )

    def _search(self, window: IdWindow | None = None, *, to_the_end: bool = False) -> HttpRequest:
        return graphql.search(
            self.view,
            fields=self._read,
            where=window.around(self.where) if window is not None else self.where,
            sort=self.keys,
            offset=self._offset,
            limit=self._limit,
            tenant=self.tenant,
            to_the_end=to_the_end,
        )

    def _total(self, reply: Reply, notes: list[Note]) -> int | None:
        try:
            counted = graphql.counted_of(reply, self.view.target)
        except DragomanError as error:
            notes.append(Note(code="total-unknown", reason=f"the rows were not counted: {error.message}"))
            return None
        counts = self.view.counts
        if len(counts) > _COUNTS:
            counts.clear()
        counts[self._counted] = counted
        if counted > counts.get(self._all, counted):
            counts[self._all] = counted
        return counted

    def _next(self, items: list[StoredObject], total: int | None) -> str | None:
        if (
            not self.plain
            or self.residual is not None
            or len(items) < self.request.limit
            or not self.view.features.cursor
        ):
            return None
        if total == self.request.offset + len(items):
            return None
        return cursors.seal(cursors.query_of(self.request), items[-1].id)


def _whole(
    rows: list[dict[str, Any]], fields: Sequence[Field], view: View, tenant: str | None, notes: list[Note]
) -> Exchange[list[StoredObject]]:
    """Return the objects of a search; what GraphQL leaves out of them is read again by REST, which notes say."""
    items, suspects = stored_objects.from_graphql(rows, view)
    if wrong := (yield from stored_objects.repaired(items, suspects, view, tenant)):
        reason = f"GraphQL replaces integers beyond 32 bits by null: {wrong} rows were read again by REST"
        notes.append(Note(code="integers-repaired", reason=reason))
    if lacking := (yield from stored_objects.with_all_references(items, fields, view, tenant)):
        targets = "to collections without the tenant" if tenant in view.unfollowed else "to objects that are gone"
        reason = f"a search leaves out references {targets}: {lacking} rows were read again by REST"
        notes.append(Note(code="references-repaired", reason=reason))
    return items


def _left_out(items: Sequence[StoredObject], view: View) -> list[Note]:
    left_out = LeftOut()
    for item in items:
        if item.properties and not item.properties.keys() <= view.properties:
            left_out.add(KEYS, item.properties.keys() - view.properties)
    return left_out.notes()


def similar(request: SimilarRequest, view: View) -> Exchange[Page]:
    """Find the rows nearest to a row, a vector or a text.

    Raises:
        RowNotFoundError: The row is gone.
        UnsupportedOperationError: The collection has no vectors, or the server computes none of a text for it.
        QueryError: A column does not exist, the row has no vector, or the server refused.
        FilterNotSupportedError: The filter is evaluated here in part.
    """
    key = request.key
    tenant = view.tenant(request.tenant or (key.routing if key is not None else None))
    where = where_of(request.object, request.filter, operation="a search for similar rows")
    fields = view.choose(request.columns)
    _, vector_name = similar_rows.vector_column(request, view.columns.values())
    if request.text is not None and not view.collection.vectorizers:
        reason = f"the server computes no vectors for '{view.name}', so none of a text"
        raise UnsupportedOperationError(reason, hint="give the vector of the text")
    near, limit = graphql.near_to(request, vector_name), request.limit + (key is not None)  # the row is found, too

    def fetch() -> Exchange[Page]:
        search = graphql.search(view, fields=fields, where=where, limit=limit, tenant=tenant, near=near)
        try:
            rows = graphql.objects((yield from ask(search)), view)
        except QueryError as error:
            if 'Unknown argument "nearText"' in error.message:
                reason = f"the server has no module that computes a vector of a text for '{view.name}'"
                raise UnsupportedOperationError(reason, hint="give the vector of the text") from error
            if key is None or "nearObject params" not in error.message:
                raise
            reply = yield from ask(get(object_path(view.target, key.text), tenant=tenant))
            if stored_objects.read_one(reply, view.target, key.text) is None:
                raise _gone(view, key.text) from error
            raise QueryError(f"the object '{key.text}' has no vector {vector_name}".rstrip()) from error
        try:
            distances = [float(cell(row["_additional"]["distance"])) for row in rows]  # type: ignore[arg-type]
        except (LookupError, TypeError, ValueError) as error:
            raise QueryError("the server's answer is wrong: a row has no distance") from error
        notes = [similar_rows.MISSED, *(columns_cut(len(view.fields)) if request.columns is None else [])]
        items = yield from _whole(rows, fields, view, tenant, notes)
        page = Page(
            columns=[view.columns[field.name] for field in fields],
            cells=cells(items, fields),
            keys=[item.key(tenant) for item in items],
            notes=[*notes, *_left_out(items, view)],
        )
        return similar_rows.nearest(request, page, distances, view.columns)

    return (yield from stored_objects.following(view, tenant, fetch))


def _gone(view: View, key: str) -> RowNotFoundError:
    hint = "it may have been deleted: read the page again"
    return RowNotFoundError(f"'{view.name}' holds no object '{key}'", hint=hint)


def page(request: PageRequest, view: View) -> Exchange[Page]:
    """Fetch one page.

    Raises:
        WindowExceededError: It is beyond row 10,000, or past the server's own limit.
        QueryError: A column does not exist, the filter is another object's, or the server refused.
        FilterNotSupportedError: The filter is evaluated here in part, and the page does not allow it.
    """
    return (yield from _query(request, view).page())


def preview(request: PageRequest | CountRequest, view: View) -> Exchange[list[HttpRequest]]:
    """Return the requests of a page or a count; raises what these raise before they send."""
    if isinstance(request, PageRequest):
        _, requests = yield from _query(request, view).requests()
        return requests
    where = where_of(request.object, request.filter, operation="a count")
    return [graphql.count([view.target], where=where, tenant=view.tenant(request.tenant))]


def _query(request: PageRequest, view: View) -> _PageQuery:
    keys, notes = compile_sort(request.sort, view)
    body = body_of(request.filter, FilterBody, object=request.object) or FilterBody()
    residual, notes = residual_of(request, body.residual, notes, lambda name: sort_kind(name, view))
    if residual is not None and residual.sort:
        keys = []
    else:
        notes += notes_on_case(request.sort, view)
    query = _PageQuery(
        request=request,
        view=view,
        tenant=view.tenant(request.tenant),
        fields=view.choose(request.columns),
        where=body.where,
        keys=keys,
        notes=notes,
        residual=residual,
    )
    query.check()
    return query


def count(request: CountRequest, view: View) -> Exchange[int]:
    """Count rows exactly."""
    where = where_of(request.object, request.filter, operation="a count")
    return (yield from graphql.count_of(view, where, view.tenant(request.tenant)))


def fetch_cell(request: CellRequest, view: View) -> Exchange[Cell]:
    """Fetch one whole cell as it is now.

    Raises:
        RowNotFoundError: The row is gone.
    """
    [field] = view.choose([request.column])
    vector = field.family is Family.VECTOR
    include = "vector" if vector else None
    path = object_path(view.target, request.key.text)
    reply = yield from ask(get(path, include=include, tenant=request.key.routing))
    item = stored_objects.read_one(reply, view.target, request.key.text)
    if item is None:
        raise _gone(view, request.key.text)
    return cell(item.value(field), structured=vector)


SortKeys = list[tuple[list[str], bool]]


def notes_on_case(sorts: Sequence[Sort], view: View) -> list[Note]:
    """Return a note for each sort key of texts, which the server compares in lower case (measured)."""
    reason = "the server sorts texts whatever their case"
    fields = [(sort, view.fields[sort.column]) for sort in sorts]
    return [
        Note(code="sort-approximate", column=sort.column, reason=reason)
        for sort, field in fields
        if field.family is Family.TEXT and not field.sort_reason
    ]


def compile_sort(sorts: Sequence[Sort], view: View) -> tuple[SortKeys, list[Note]]:
    """Translate sort keys; a column that does not sort properly is dropped with a note.

    Returns:
        Paths, each with whether it descends, and a note ``sort-dropped`` for each dropped column.
    """
    server_keys, notes = sortable(sorts, view.fields.get, lambda field: field.sort_reason)
    return [
        (["_id"] if field.family is Family.ID else field.path, sort.descending) for sort, field in server_keys
    ], notes
