"""GraphQL: filtered or sorted searches, and counts. Another search interface would replace this module alone.

Three rules keep pages from being wrong without an error (W21); all three are kept here and nowhere else:
a lone clause is sent twice under And, the last sort key is `_id`, and every sorted property is selected.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from . import error_answers
from .columns.field_types import Family, Field, family_of
from .columns.schema import Count
from .http_requests import Exchange, ask, post

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dragoman_api import HttpRequest
    from dragoman_api.exchanges import Reply

    from .columns.schema import Property
    from .columns.view import View

Where = dict[str, Any]
PropertyPath = list[str]

_PHONE = "input internationalFormatted nationalFormatted national valid countryCode defaultCountry"
_ADDITIONAL = "id creationTimeUnix lastUpdateTimeUnix"


class _Error(msgspec.Struct):
    message: str = ""


class _Meta(msgspec.Struct):
    count: Count


class _Counted(msgspec.Struct):
    meta: _Meta


class _Data(msgspec.Struct, rename="pascal"):
    get: dict[str, list[dict[str, Any]] | None] | None = None
    aggregate: dict[str, list[_Counted] | None] | None = None


class _Answer(msgspec.Struct):
    data: _Data | None = None
    errors: list[_Error] | None = None


_answer = msgspec.json.Decoder(_Answer, float_hook=Raw)


def literal(value: Any) -> str:
    r"""Return a value as a GraphQL literal.

    Variables carry neither lists nor large integers; escaped surrogate pairs are accepted and match nothing, so
    other characters stay as they are.

    >>> print(literal({"path": ["a"], "operator": "Equal", "valueText": 'x"y'}))
    {path:["a"],operator:Equal,valueText:"x\"y"}
    """
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_operator(key, each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(literal, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _operator(key: str, value: Any) -> str:
    return value if key in ("operator", "order") else literal(value)


def search(
    view: View,
    *,
    fields: Iterable[Field],
    where: Where | None = None,
    sort: Sequence[tuple[PropertyPath, bool]] = (),
    offset: int = 0,
    limit: int,
    tenant: str | None = None,
) -> HttpRequest:
    """Build the search for the sorted objects that match a filter.

    Args:
        view: The collection.
        fields: The requested columns.
        where: The filter.
        sort: Paths, each with whether it descends.
        offset: Rows to skip.
        limit: Rows at most; the server's default varies.
        tenant: The tenant.
    """
    arguments = [f"limit:{limit}"] + ([f"offset:{offset}"] if offset else [])
    arguments += _scope(_doubled(where), tenant)
    keys = [*sort] if any(path in (["_id"], ["id"]) for path, _ in sort) else [*sort, (["_id"], False)]
    order = [{"path": path, "order": "desc" if down else "asc"} for path, down in keys]
    arguments.append(f"sort:{literal(order)}")
    chosen = {each.prop: each for each in fields if each.prop}
    sorted_by = {path[0] for path, _ in sort}
    chosen |= {each.prop: each for each in view.fields.values() if each.prop and each.prop in sorted_by}
    selection = [_selected(each) for each in chosen.values()]
    additional = _ADDITIONAL + (_vectors(view) if any(each.family is Family.VECTOR for each in fields) else "")
    text = f"{{Get{{{view.target}({','.join(arguments)}){{{' '.join(selection)} _additional{{{additional}}}}}}}}}"
    return query(text)


def _doubled(where: Where | None) -> Where | None:
    # A lone clause stops reading the index after offset + limit documents, before they are sorted.
    if where is None or len(where.get("operands") or ()) > 1:
        return where
    return {"operator": "And", "operands": [where, where]}


def _scope(where: Where | None, tenant: str | None) -> list[str]:
    return ([f"where:{literal(where)}"] if where else []) + ([f"tenant:{literal(tenant)}"] if tenant else [])


def _vectors(view: View) -> str:
    return f" vectors{{{' '.join(view.named_vectors)}}}" if view.named_vectors else " vector"


def _selected(field: Field) -> str:
    if field.spec is None:
        return ""
    return _selection(field.spec)


def _selection(spec: Property | Any) -> str:
    family, _ = family_of(spec.data_type)
    match family:
        case Family.GEO:
            inner = "latitude longitude"
        case Family.PHONE:
            inner = _PHONE
        case Family.OBJECT:
            inner = " ".join(map(_selection, spec.nested))
        case Family.REFERENCE:
            inner = " ".join(f"...on {target}{{__typename _additional{{id}}}}" for target in spec.data_type)
        case _:
            return str(spec.name)
    return f"{spec.name}{{{inner}}}"


def count(names: Iterable[str], *, where: Where | None = None, tenant: str | None = None) -> HttpRequest:
    """Build the request that counts matching objects in each collection; a lone clause counts correctly."""
    scope = ",".join(_scope(where, tenant))
    arguments = f"({scope})" if scope else ""
    return query(f"{{Aggregate{{{' '.join(f'{name}{arguments}{{meta{{count}}}}' for name in names)}}}}}")


def query(text: str) -> HttpRequest:
    """Build the request for a GraphQL text."""
    return post("/v1/graphql", {"query": text})


def objects(reply: Reply, view: View) -> list[dict[str, Any]]:
    """Read the objects of a search.

    Raises:
        DragomanError: The server refused, or answered in part: errors come with status 200.
    """
    answer = _read(reply)
    found = answer.data.get.get(view.target) if answer.data and answer.data.get else None
    if answer.errors or found is None:
        raise error_answers.refused(_texts(answer), status=reply.status)
    return found


def counted(reply: Reply) -> dict[str, int]:
    """Read counts by collection; one that failed is left out.

    Raises:
        DragomanError: Nothing was counted.
    """
    answer = _read(reply)
    data = answer.data.aggregate if answer.data else None
    counts = {name: each[0].meta.count for name, each in (data or {}).items() if each}
    if not counts:
        raise error_answers.refused(_texts(answer), status=reply.status)
    return counts


def counted_of(reply: Reply, name: str) -> int:
    """Read the count of one collection. Raises DragomanError where it was not counted."""
    counts = counted(reply)
    if name not in counts:
        raise error_answers.refused([f"the answer counts {', '.join(counts)}, not {name}"], status=reply.status)
    return counts[name]


def count_of(view: View, where: Where | None, tenant: str | None) -> Exchange[int]:
    """Count the objects that match a filter."""
    reply = yield from ask(count([view.target], where=where, tenant=tenant))
    return counted_of(reply, view.target)


def _read(reply: Reply) -> _Answer:
    return error_answers.decode(reply, _answer)


def _texts(answer: _Answer) -> list[str]:
    return [each.message for each in answer.errors or []] or ["the answer contains neither data nor a reason"]
