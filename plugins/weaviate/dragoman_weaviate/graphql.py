"""GraphQL: filtered or sorted searches, and counts. Another search interface would replace it and `aggregates` alone.

Three rules keep pages from being wrong without an error (W21); all three are kept here and nowhere else:

1. A lone clause that reads several keys of an index stops after offset + limit objects, before they are sorted. It is
   negated twice, which lifts the limit and evaluates it once; or the page is in the order in which the keys are read.
   For an upper bound of integers, the same request counts those whose key is not in their order: if there are any, the
   page has to be asked for again.
2. Rows have one order. The last sort key is `_id`, unless one shard on one node holds all rows: it lists them by a
   number of its own, which is the same for each page. Several shards each give their first rows by that number, and are
   merged by id, so pages overlap. Replicas number their objects each for itself, in the order in which writes reach
   them, and any of them may answer, so without `_id` two pages could come from two orders. An id is the same on all.
   `grid.pages` keeps the server from sorting all that match.
3. Every sorted property is selected, since shards are merged by what is selected.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman_api.kit.exchanges import Exchange, ask, post

from . import protocol
from .columns.field_types import Count, Family, Field, family_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dragoman_api import HttpRequest
    from dragoman_api.grid import SimilarRequest
    from dragoman_api.replies import Reply

    from .columns.field_types import Property
    from .columns.grid_columns import View

Where = dict[str, Any]
PropertyPath = list[str]

_LOWER_BOUNDS = frozenset({"GreaterThan", "GreaterThanEqual"})
_UPPER_BOUNDS = frozenset({"LessThan", "LessThanEqual"})
_OVERFLOWN = -(2**63)
"""The key of integers that do not fit into 64 bits as floats: they sort last and are read first."""
_ONE_KEY = frozenset({"Equal", "IsNull", "ContainsAny", "ContainsNone", "Not"})
"""Operators that read one key of an index, or read each of several to the end."""
_PHONE = "input internationalFormatted nationalFormatted national valid countryCode defaultCountry"
_ADDITIONAL = "id creationTimeUnix lastUpdateTimeUnix"


class _Error(msgspec.Struct):
    message: str = ""


class _Meta(msgspec.Struct):
    count: Count


class _Count(msgspec.Struct):
    meta: _Meta


class _Data(msgspec.Struct, rename="pascal"):
    get: dict[str, list[dict[str, Any]] | None] | None = None
    aggregate: dict[str, list[_Count] | None] | None = None


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
        return "{" + ",".join(f"{key}:{_operator(key, member)}" for key, member in value.items()) + "}"
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
    to_the_end: bool = False,
    near: str = "",
) -> HttpRequest:
    """Build the search for the sorted objects that match a filter, or for the nearest of them.

    Args:
        view: The collection.
        fields: The requested columns.
        where: The filter.
        sort: Paths, each with whether it descends.
        offset: Rows to skip.
        limit: The maximum number of rows; the server's default varies.
        tenant: The tenant; no references are selected if its searches cannot follow them.
        to_the_end: Read the filter to its end, whatever the order; asked for if `first_objects` found none.
        near: What the objects are near to, see `near_to`. They come nearest first, with their distances: such a search
            reads its filter to the end.
    """
    doubt = None
    read_by = None if to_the_end or near else _read_by(where, view)
    if read_by is not None and (not sort or sort[0] == (read_by, False)):
        sort = sort or [(read_by, False)]
        doubt = _overflowing(where)
    else:
        where = _complete(where, view)
    arguments = [f"limit:{limit}"] + ([f"offset:{offset}"] if offset else [])
    arguments += [*([near] if near else []), *scope(where, tenant)]
    keys = [*sort]
    ordered = bool(near) or any(path in (["_id"], ["id"]) for path, _ in keys)
    if not ordered and (keys or not view.collection.one_part):
        keys.append((["_id"], False))
    order = [{"path": path, "order": "desc" if down else "asc"} for path, down in keys]
    arguments += [f"sort:{literal(order)}"] if order else []
    chosen = {field.prop: field for field in fields if field.prop}
    if tenant in view.unfollowed:
        chosen = {name: field for name, field in chosen.items() if field.family is not Family.REFERENCE}
    sorted_by = {path[0] for path, _ in sort}
    chosen |= {field.prop: field for field in view.fields.values() if field.prop and field.prop in sorted_by}
    selection = [_selected(field) for field in chosen.values()]
    additional = (
        _ADDITIONAL
        + (" distance" if near else "")
        + (_vectors(view) if any(field.family is Family.VECTOR for field in fields) else "")
    )
    text = f"Get{{{view.target}({','.join(arguments)}){{{' '.join(selection)} _additional{{{additional}}}}}}}"
    return query(f"{{{text}{_counts([view.target], doubt, tenant) if doubt else ''}}}")


def near_to(request: SimilarRequest, vector_name: str) -> str:
    """Return the argument of a search for what is near to an object, a vector or a text; the name may be empty."""
    target = {"targetVectors": [vector_name]} if vector_name else {}
    if request.key is not None:
        return f"nearObject:{literal({'id': request.key.text} | target)}"
    if request.vector is not None:
        return f"nearVector:{literal({'vector': request.vector} | target)}"
    return f"nearText:{literal({'concepts': [request.text]} | target)}"


def by_id(where: Where | None, sort: Sequence[tuple[PropertyPath, bool]], view: View) -> bool:
    """Return whether a search orders its objects by their ids, and by nothing else."""
    if sort:
        return [path for path, _ in sort] == [["_id"]]
    return where is not None and not view.collection.one_part and _read_by(where, view) is None


def _read_by(where: Where | None, view: View) -> PropertyPath | None:
    """Return the property in whose order a lone comparison reads its index, if rows can be in that order too.

    The server reads keys in ascending order, each with all its objects, until it has offset + limit objects: the first
    ones in the order of the property. Numbers are sorted exactly as their keys are. Exceptions are the largest
    integers, whose keys overflow, so that an upper bound reads them first (`_overflowing`), and far dates. An index for
    ranges is not read by keys.
    """
    if where is None or where["operator"] not in _LOWER_BOUNDS | _UPPER_BOUNDS or not view.features.ordered_keys:
        return None
    field = next((candidate for candidate in view.fields.values() if [candidate.prop] == where["path"]), None)
    if field is None or field.array or field.spec is None or field.spec.ranged:
        return None
    if field.family is Family.INT and where["operator"] in _LOWER_BOUNDS and float(where["valueInt"]) <= _OVERFLOWN:
        return None
    return field.path if field.family in (Family.INT, Family.NUMBER) else None


def _overflowing(where: Where | None) -> Where | None:
    """Return a filter for the integers that an upper bound reads first and a sort puts last; None for other clauses.

    It reads one key, so it costs next to nothing. The key is also that of -2^63 itself, which is in its place.
    """
    if where is None or where["operator"] not in _UPPER_BOUNDS or "valueInt" not in where:
        return None
    return {"path": where["path"], "operator": "Equal", "valueInt": _OVERFLOWN}


def _complete(where: Where | None, view: View) -> Where | None:
    """Return a filter that finds all its objects before they are sorted (rule 1)."""
    if where is None or len(where.get("operands") or ()) > 1 or where["operator"] in _ONE_KEY:
        return where
    if where["operator"] == "NotEqual" and view.features.complement:
        return where
    if not view.features.negation:
        return {"operator": "And", "operands": [where, where]}
    return {"operator": "Not", "operands": [{"operator": "Not", "operands": [where]}]}


def scope(where: Where | None, tenant: str | None) -> list[str]:
    """Return the arguments that restrict a collection to a filter and a tenant."""
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
    return query(f"{{{_counts(names, where, tenant)}}}")


def _counts(names: Iterable[str], where: Where | None, tenant: str | None) -> str:
    inner = ",".join(scope(where, tenant))
    arguments = f"({inner})" if inner else ""
    return f"Aggregate{{{' '.join(f'{name}{arguments}{{meta{{count}}}}' for name in names)}}}"


def query(text: str) -> HttpRequest:
    """Build the request for a GraphQL text."""
    return post("/v1/graphql", {"query": text})


def objects(reply: Reply, view: View) -> list[dict[str, Any]]:
    """Read the objects of a search.

    Raises:
        DragomanError: The server refused, or answered in part: errors come with status 200.
    """
    return _objects(_read(reply), view, reply.status)


def first_objects(reply: Reply, view: View) -> list[dict[str, Any]] | None:
    """Read the objects of a search; None if they need not be the first ones, and have to be read `to_the_end`.

    Raises:
        DragomanError: The server refused, or answered in part: errors come with status 200.
    """
    answer = _read(reply)
    if answer.data and answer.data.aggregate is not None and _counted(answer.data.aggregate) != {view.target: 0}:
        return None
    return _objects(answer, view, reply.status)


def _objects(answer: _Answer, view: View, status: int) -> list[dict[str, Any]]:
    rows = answer.data.get.get(view.target) if answer.data and answer.data.get else None
    if answer.errors or rows is None:
        raise protocol.refused(_texts(answer), status=status)
    return rows


def counted(reply: Reply) -> dict[str, int]:
    """Read counts by collection; one that failed is left out.

    Raises:
        DragomanError: Nothing was counted.
    """
    answer = _read(reply)
    counts = _counted((answer.data.aggregate if answer.data else None) or {})
    if not counts:
        raise protocol.refused(_texts(answer), status=reply.status)
    return counts


def _counted(data: Mapping[str, list[_Count] | None]) -> dict[str, int]:
    return {name: counts[0].meta.count for name, counts in data.items() if counts}


def counted_of(reply: Reply, name: str) -> int:
    """Read the count of one collection. Raises DragomanError where it was not counted."""
    counts = counted(reply)
    if name not in counts:
        raise protocol.refused([f"the answer counts {', '.join(counts)}, not {name}"], status=reply.status)
    return counts[name]


def count_of(view: View, where: Where | None, tenant: str | None) -> Exchange[int]:
    """Count the objects that match a filter."""
    reply = yield from ask(count([view.target], where=where, tenant=tenant))
    return counted_of(reply, view.target)


def _read(reply: Reply) -> _Answer:
    return protocol.decode(reply, _answer)


def _texts(answer: _Answer) -> list[str]:
    return [error.message for error in answer.errors or []] or ["the answer contains neither data nor a reason"]
