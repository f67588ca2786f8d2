"""Pages of objects by REST: sorted or not, by offset or after a cursor, never filtered."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.weaviate import paging, search
from dragoman_sample.fakes.weaviate.calls import Reply
from dragoman_sample.fakes.weaviate.errors import InvalidError, ServerError, coded, refused
from dragoman_sample.fakes.weaviate.objects import rendered, with_vector
from dragoman_sample.fakes.weaviate.sorting import Key, check_sort
from dragoman_sample.fakes.weaviate.tenants import check

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.calls import Call


def show(call: Call) -> Reply:
    """Answer a page of one class, or of all of them, one after another."""
    limit, offset = _number(call, "limit"), _number(call, "offset")
    included = with_vector(call)
    if "class" not in call.params:
        return _all(call, limit, offset or 0, included=included)
    collection = call.collection(call.params["class"])
    call.principal.require("read_data", collection.name if collection else call.params["class"], twice=True)
    if not collection:
        return Reply(status=404, empty=True)
    if (limit is not None and limit < 0) or (offset or 0) < 0:
        return Reply(empty=True)
    try:
        sort = _sort(call)
        check_sort(collection, sort)
    except InvalidError as reason:
        raise _refusal(reason, "sorting") from None
    after = _after(call, limit, offset or 0, sort=bool(sort))
    count = call.settings.page if limit is None else limit
    try:
        paging.check_window(offset or 0, count, call.settings)
    except InvalidError as reason:
        raise _refusal(reason, "offset or limit") from None
    tenant = call.params.get("tenant", "")
    try:
        check(collection, tenant)
    except InvalidError as reason:
        text = f"search index {collection.name.lower()}"
        raise refused(422, f"msg:{text} code:422 err:{reason}") from None
    items = search.page(collection, tenant, sort=sort, limit=count, offset=offset or 0, after=after)
    return _reply([rendered(item, collection, with_vector=included) for item in items])


def _reply(items: list[dict[str, Any]], deprecations: list[Any] | None = ()) -> Reply:  # type: ignore[assignment]
    body: dict[str, Any] = {"deprecations": None if deprecations is None else [], "objects": items}
    return Reply(body | ({"totalResults": len(items)} if items else {}))


def _all(call: Call, limit: int | None, offset: int, *, included: bool) -> Reply:
    if "after" in call.params:
        text = "after parameter not allowed, cursor must be specific to one class, set class query param"
        raise refused(500, f"list objects: {text}")
    count = call.settings.page if limit is None else limit
    try:
        paging.check_window(offset, count, call.settings)
    except InvalidError as reason:
        raise refused(500, f"list objects: {reason}") from None
    rows = []
    classes = list(call.database.everywhere())
    for collection in random.sample(classes, len(classes)):
        call.principal.require("read_data", collection.name)
        if collection.has_tenants:
            continue
        items = search.page(collection, "", sort=[], limit=offset + count, offset=0, after=None)
        rows += [rendered(item, collection, with_vector=included) for item in items]
    return _reply(rows[offset : offset + count], None)


def _number(call: Call, name: str) -> int | None:
    text = call.params.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise coded(422, f'{name} in query must be of type int64: "{text}"', 601) from None


def _sort(call: Call) -> list[Key]:
    names = [name for name in call.params.get("sort", "").split(",") if name]
    orders = call.params.get("order", "").split(",")
    # An order that is none, and one that is missing, mean ascending.
    return [
        Key((name,), "desc" if orders[place : place + 1] == ["desc"] else "asc") for place, name in enumerate(names)
    ]


def _after(call: Call, limit: int | None, offset: int, *, sort: bool) -> str | None:
    if "after" not in call.params:
        return None
    try:
        return paging.check_cursor(call.params["after"], limit=limit, offset=offset, where=False, sort=sort)
    except InvalidError as reason:
        raise _refusal(reason, "cursor api: invalid 'after' parameter") from None


def _refusal(reason: InvalidError, message: str) -> ServerError:
    return refused(422, f"msg:{message} code:400 err:{reason}")
