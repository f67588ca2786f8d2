"""Pages of the grid: by REST for all rows, by GraphQL for filtered or sorted ones (W21, W39)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman_api import DragomanError, Note, Page, PageRequest, QueryError
from dragoman_api.errors import RowNotFoundError
from dragoman_weaviate import error_answers, graphql, stored_objects
from dragoman_weaviate.columns.field_types import Family, Field
from dragoman_weaviate.columns.view import View
from dragoman_weaviate.graphql import Where
from dragoman_weaviate.http_requests import Exchange, ask, get, object_path

from .cells import cell, cells
from .filters import where_of
from .sorting import SortKeys, compile_sort

if TYPE_CHECKING:
    from dragoman_api import Cell, CellRequest, CountRequest, HttpRequest
    from dragoman_api.exchanges import Reply
    from dragoman_weaviate.stored_objects import StoredObject

WINDOW = 10_000
"""Rows that are reached by offset (W39); the server's own limit may be lower, and then it says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageQuery:
    """One page request, translated."""

    request: PageRequest
    view: View
    tenant: str | None
    fields: list[Field]
    where: Where | None
    keys: SortKeys
    notes: list[Note]

    @property
    def plain(self) -> bool:
        """Whether the page is of all rows in the server's own order, by id."""
        return self.where is None and not self.keys

    def check(self) -> None:
        """Refuse requests that the server would refuse or answer wrongly."""
        asked = self.request
        if asked.offset < 0 or asked.limit < 1:  # the server answers 200 with an empty body to a negative one
            raise QueryError(
                f"a page needs an offset of at least 0 and a limit of at least 1, not {asked.offset} and {asked.limit}"
            )
        if asked.cursor is not None and not (self.plain and self.view.features.cursor):
            raise QueryError("a cursor goes through all rows in the order of their uuids: no filter, no sort")
        reach = asked.limit + (0 if asked.cursor is not None else asked.offset)
        if reach > WINDOW:
            raise error_answers.window_exceeded(reach, WINDOW)

    def page(self) -> Exchange[Page]:
        """Fetch the page, and the total if requested."""
        requests = [self._list() if self.plain else self._search()]
        if self.request.total:
            requests.append(graphql.count([self.view.target], where=self.where, tenant=self.tenant))
        replies = yield requests
        notes = list(self.notes)
        if self.plain:
            items = stored_objects.read_list(replies[0], self.view, self.tenant)
        else:
            items, suspects = stored_objects.from_graphql(graphql.objects(replies[0], self.view), self.view)
            if wrong := (yield from stored_objects.repaired(items, suspects, self.view, self.tenant)):
                reason = f"GraphQL replaces integers beyond 32 bits by null: {wrong} rows were read again by REST"
                notes.append(Note(code="integers-repaired", reason=reason))
        if len(items) > self.request.limit:
            raise QueryError(f"the server returned {len(items):,} rows instead of {self.request.limit:,}")
        total = self._total(replies[1], notes) if self.request.total else None
        return Page(
            columns=[self.view.columns[each.name] for each in self.fields],
            cells=cells(items, self.fields),
            keys=[item.key(self.tenant) for item in items],
            notes=notes,
            total=total,
            offset=self.request.offset,
            next=self._next(items, total),
        )

    def _list(self) -> HttpRequest:
        wants_vector = any(each.family is Family.VECTOR for each in self.fields)
        place = {"offset": self.request.offset or None} if self.request.cursor is None else {}
        return get(
            "/v1/objects",
            **{"class": self.view.target},
            limit=self.request.limit,
            **place,
            after=self.request.cursor,
            include="vector" if wants_vector else None,
            tenant=self.tenant,
        )

    def _search(self) -> HttpRequest:
        return graphql.search(
            self.view,
            fields=self.fields,
            where=self.where,
            sort=self.keys,
            offset=self.request.offset,
            limit=self.request.limit,
            tenant=self.tenant,
        )

    def _total(self, reply: Reply, notes: list[Note]) -> int | None:
        try:
            return graphql.counted_of(reply, self.view.target)
        except DragomanError as error:
            notes.append(Note(code="total-unknown", reason=f"the rows were not counted: {error.message}"))
            return None

    def _next(self, items: list[StoredObject], total: int | None) -> str | None:
        if not self.plain or len(items) < self.request.limit or not self.view.features.cursor:
            return None
        return None if total == self.request.offset + len(items) else items[-1].id


def page(request: PageRequest, view: View) -> Exchange[Page]:
    """Fetch one page.

    Raises:
        WindowExceededError: It is beyond row 10,000, or past the server's own limit.
        QueryError: A column does not exist, the filter is another object's, or the server refused.
    """
    keys, notes = compile_sort(request.sort, view)
    query = _PageQuery(
        request=request,
        view=view,
        tenant=view.tenant(request.tenant),
        fields=view.choose(request.columns),
        where=where_of(request.object, request.filter),
        keys=keys,
        notes=notes,
    )
    query.check()
    return (yield from query.page())


def count(request: CountRequest, view: View) -> Exchange[int]:
    """Count rows exactly."""
    where = where_of(request.object, request.filter)
    return (yield from graphql.count_of(view, where, view.tenant(request.tenant)))


def fetch_cell(request: CellRequest, view: View) -> Exchange[Cell]:
    """Fetch one whole cell as it is now.

    Raises:
        RowNotFoundError: The row is gone.
    """
    [field] = view.choose([request.column])
    vector = field.family is Family.VECTOR
    include = "vector" if vector else None
    path = object_path(view.target, request.key.id)
    reply = yield from ask(get(path, include=include, tenant=request.key.routing))
    item = stored_objects.read_one(reply, view.target, request.key.id)
    if item is None:
        raise RowNotFoundError(f"'{view.name}' holds no object '{request.key.id}'", hint="reload the page")
    return cell(item.value(field), structured=vector)
