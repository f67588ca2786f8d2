"""Which request goes where, and which parameters a route takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from dragoman_sample.fakes.weaviate import admin, batch, endpoint, listing, objects, references
from dragoman_sample.fakes.weaviate.errors import coded, not_reproduced

if TYPE_CHECKING:
    from dragoman_sample.fakes.weaviate.calls import Call, Reply

Handler = Callable[["Call"], "Reply"]
_EVERYWHERE = {"access_token"}
_LIST = {"class", "limit", "offset", "after", "include", "sort", "order", "tenant", "consistency_level"}
_ONE = {"include", "tenant", "consistency_level"}
# The route without a class has no parameter for one; it is sent all the same, and ignored.
_BARE = _ONE | {"class"}


@dataclass(frozen=True)
class Route:
    """Methods with their handlers, parameters, and whether a key is looked at."""

    path: str
    handlers: dict[str, Handler]
    params: frozenset[str] = frozenset()
    open: bool = False


def _route(path: str, params: set[str] | None = None, *, open: bool = False, **handlers: Handler) -> Route:  # noqa: A002
    return Route(path, handlers, frozenset((params or set()) | _EVERYWHERE), open)


ROUTES = [
    _route("/", open=True, GET=admin.links),
    _route("/v1", open=True, GET=admin.links),
    _route("/v1/meta", GET=admin.meta),
    _route("/v1/.well-known/ready", open=True, GET=admin.nothing),
    _route("/v1/.well-known/live", open=True, GET=admin.nothing),
    _route("/v1/nodes", {"output"}, GET=admin.nodes),
    _route("/v1/users/own-info", GET=admin.own_info),
    _route("/v1/schema", {"consistency"}, GET=admin.show_schema, POST=admin.create_class),
    _route("/v1/schema/{class}", {"consistency"}, GET=admin.show_class, DELETE=admin.delete_class),
    _route("/v1/schema/{class}/properties", POST=admin.add_property),
    _route(
        "/v1/schema/{class}/tenants",
        GET=admin.show_tenants,
        POST=admin.add_tenants,
        PUT=admin.change_tenants,
        DELETE=admin.delete_tenants,
    ),
    _route("/v1/schema/{class}/tenants/{tenant}", GET=admin.show_tenant, HEAD=admin.show_tenant),
    _route("/v1/aliases", {"class"}, GET=admin.show_aliases, POST=admin.add_alias),
    _route("/v1/aliases/{alias}", DELETE=admin.delete_alias),
    _route("/v1/graphql", POST=endpoint.answer),
    _route("/v1/graphql/batch", POST=endpoint.answer_many),
    _route("/v1/aggregate/{class}", POST=admin.search_is_off),
    _route("/v1/batch/objects", {"tenant", "consistency_level"}, POST=batch.create, DELETE=batch.delete),
    _route("/v1/objects/validate", POST=objects.validate),
    _route("/v1/objects", _LIST, GET=listing.show, POST=objects.create),
    _route(
        "/v1/objects/{id}",
        _BARE,
        GET=objects.read,
        HEAD=objects.read,
        PATCH=objects.patch,
        PUT=objects.replace,
        DELETE=objects.delete,
    ),
    _route(
        "/v1/objects/{class}/{id}",
        _ONE,
        GET=objects.read,
        HEAD=objects.read,
        PATCH=objects.patch,
        PUT=objects.replace,
        DELETE=objects.delete,
    ),
    _route(
        "/v1/objects/{class}/{id}/references/{property}",
        _ONE,
        POST=references.add,
        PUT=references.replace,
        DELETE=references.remove,
    ),
]
_PATTERNS: dict[int, list[tuple[re.Pattern[str], Route]]] = {}
"""The routes by the number of their slashes."""
for _entry in ROUTES:
    _pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", _entry.path))
    _PATTERNS.setdefault(_entry.path.count("/"), []).append((_pattern, _entry))


def find(method: str, path: str) -> tuple[Route, Handler, dict[str, str]]:
    """Return the route of a request.

    Raises:
        ServerError: there is none, or not with this method.
    """
    clean = re.sub(r"/+", "/", path)
    clean = clean.rstrip("/") or "/"
    for pattern, route in _PATTERNS.get(clean.count("/"), ()):
        match = pattern.fullmatch(clean)
        if not match:
            continue
        if method not in route.handlers:
            methods = ",".join(sorted(route.handlers))
            raise coded(405, f"method {method} is not allowed, but [{methods}] are")
        return route, route.handlers[method], {name: unquote(value) for name, value in match.groupdict().items()}
    error = coded(404, f"path {path} was not found")
    error.fault = f"no route {method} {path}"
    raise error


def check_params(route: Route, params: dict[str, str]) -> None:
    """Refuse a parameter that the route does not take; the real server would ignore it.

    Raises:
        ServerError: not reproduced.
    """
    for name in params:
        if name not in route.params:
            raise not_reproduced(f"the parameter {name!r} of {route.path}")
