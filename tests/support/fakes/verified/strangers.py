"""Requests of people with and without rights, by which the fake's security is compared with real servers."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from dragoman_sample.fakes.elasticsearch import ApiKey, FakeElasticsearch, User
from fakes.verified.comparing import plain

READS = {"readable-*": ("read", "view_index_metadata")}


def _api_key(name: str) -> dict[str, str]:
    key_id, secret = f"{name}-000000000000"[:20], f"secret-of-{name}"
    return {"id": key_id, "api_key": secret, "encoded": base64.b64encode(f"{key_id}:{secret}".encode()).decode()}


@dataclass(frozen=True)
class Knock:
    """One request, and who sends it."""

    name: str
    who: str
    method: str
    path: str
    body: str | None = None

    @property
    def key(self) -> str:
        """Return a name for the answer."""
        return f"{self.who}: {self.name}"


_PUT = [
    Knock("create", "elastic", "PUT", "/readable-v", '{"settings":{"number_of_shards":1,"number_of_replicas":0}}'),
    Knock(
        "create another", "elastic", "PUT", "/closed-v", '{"settings":{"number_of_shards":1,"number_of_replicas":0}}'
    ),
    Knock("put", "elastic", "PUT", "/readable-v/_doc/1?refresh=true", '{"k":1}'),
    Knock("put in another", "elastic", "PUT", "/closed-v/_doc/1?refresh=true", '{"k":1}'),
]
_WHO = (
    "nothing",
    "wrong password",
    "ghost",
    "revoked",
    "unknown key",
    "wrong secret",
    "not base64",
    "raw pair",
    "no colon",
    "bearer",
)
_REQUESTS = (
    ("root", "GET", "/", None),
    ("head", "HEAD", "/", None),
    ("who am I", "GET", "/_security/_authenticate", None),
    ("search", "POST", "/readable-v/_search?filter_path=hits.hits._id,hits.total", "{}"),
    ("search another", "POST", "/closed-v/_search", "{}"),
    ("search missing", "POST", "/nosuch/_search", "{}"),
    ("search all", "POST", "/*/_search?filter_path=hits.hits._index", "{}"),
    ("search missing but granted", "POST", "/readable-w/_search", "{}"),
    ("count", "POST", "/readable-v/_count", "{}"),
    ("get", "GET", "/readable-v/_doc/1", None),
    ("get another", "GET", "/closed-v/_doc/1", None),
    ("mapping", "GET", "/readable-v/_mapping", None),
    ("mapping of another", "GET", "/closed-v/_mapping", None),
    ("mapping of all", "GET", "/_mapping", None),
    ("settings", "GET", "/readable-v/_settings/index.number_of_shards", None),
    ("field_caps", "GET", "/readable-v/_field_caps?fields=k", None),
    ("field_caps of all", "GET", "/*/_field_caps?fields=k", None),
    ("field_caps of another", "GET", "/closed-v/_field_caps?fields=k", None),
    ("resolve", "GET", "/_resolve/index/*-v", None),
    ("cat", "GET", "/_cat/indices?format=json&h=index&s=index", None),
    ("health", "GET", "/_cluster/health?filter_path=status", None),
    ("stats", "GET", "/readable-v/_stats?filter_path=indices.*.shards.0.docs.count&level=shards", None),
    ("exists", "HEAD", "/closed-v", None),
    ("validate", "POST", "/readable-v/_validate/query?filter_path=valid", '{"query":{"match_all":{}}}'),
    ("pit", "POST", "/readable-v/_pit?keep_alive=1m&filter_path=_shards.failed", None),
    ("pit of another", "POST", "/closed-v/_pit?keep_alive=1m", None),
    ("write", "PUT", "/readable-v/_doc/2", "{}"),
    ("update", "POST", "/readable-v/_update/1", '{"doc":{"k":2}}'),
    ("delete", "DELETE", "/readable-v/_doc/1", None),
    ("bulk", "POST", "/readable-v/_bulk", '{"index":{"_id":"9"}}\n{}\n'),
    ("refresh", "POST", "/readable-v/_refresh", None),
    ("create index", "PUT", "/new-v", "{}"),
    ("drop", "DELETE", "/readable-v", None),
)  # fmt: skip
_CLEAN = [Knock(f"drop {name}", "elastic", "DELETE", f"/{name}") for name in ("readable-v", "closed-v")]
KNOCKS = [
    *_PUT,
    *(Knock("root", who, "GET", "/") for who in _WHO),
    *(Knock("search", who, "POST", "/readable-v/_search", "{}") for who in ("nothing", "wrong password", "revoked")),
    Knock("unknown path", "nothing", "GET", "/_nosuch/thing"),
    *(Knock(name, who, *rest) for who in ("reader", "reader key", "nobody") for name, *rest in _REQUESTS),
    Knock("who am I", "elastic", "GET", "/_security/_authenticate"),
    Knock("who am I", "full key", "GET", "/_security/_authenticate"),
    *_CLEAN,
]


# Stands for a server's list entry where there is no server: what a run without one is compared by.
SOMEBODY: dict[str, Any] = {
    "users": {name: {"password": f"{name}'s pä:ss"} for name in ("superuser", "reader", "nobody")},
    "api_keys": {name: _api_key(name) for name in ("full", "reader", "revoked")},
}


def headers(server: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return what each person sends to this server."""
    users, keys = server["users"], server["api_keys"]

    def basic(name: str, password: str) -> dict[str, str]:
        return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}

    def key(value: str) -> dict[str, str]:
        return {"Authorization": f"ApiKey {value}"}

    full = keys["full"]
    return {
        "elastic": basic("elastic", users["superuser"]["password"]),
        "reader": basic("reader", users["reader"]["password"]),
        "nobody": basic("nobody", users["nobody"]["password"]),
        "full key": key(full["encoded"]),
        "reader key": key(keys["reader"]["encoded"]),
        "revoked": key(keys["revoked"]["encoded"]),
        "unknown key": key(base64.b64encode(b"nosuchid:secret").decode()),
        "wrong secret": key(base64.b64encode(f"{full['id']}:wrong".encode()).decode()),
        "not base64": key("!not base64!"),
        "raw pair": key("nosuchid:secret"),
        "no colon": key(base64.b64encode(b"nocolon").decode()),
        "bearer": {"Authorization": f"Bearer {full['encoded']}"},
        "wrong password": basic("elastic", "wrong"),
        "ghost": basic("ghost", "x"),
        "nothing": {},
    }


def mirror(server: dict[str, Any]) -> FakeElasticsearch:
    """Return a fake with the users and keys of this server."""
    users, keys = server["users"], server["api_keys"]
    none: dict[str, tuple[str, ...]] = {}
    return FakeElasticsearch(
        version=server["version"],
        users={
            "elastic": User(users["superuser"]["password"]),
            "reader": User(users["reader"]["password"], (), READS, ("reads",)),
            "nobody": User(users["nobody"]["password"], (), none, tuple(users["nobody"].get("roles", ()))),
        },
        api_keys=[
            ApiKey(keys["full"]["id"], keys["full"]["api_key"], "full"),
            ApiKey(keys["reader"]["id"], keys["reader"]["api_key"], "reader", cluster=(), indices=READS),
            ApiKey(keys["revoked"]["id"], keys["revoked"]["api_key"], "revoked", state="revoked"),
        ],
    )


async def knock(base: str, server: dict[str, Any], ssl: Any) -> dict[str, Any]:
    """Send every request; return status, product header, challenge and body of each answer."""
    known, answers = headers(server), {}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ssl)) as session:
        for each in KNOCKS:
            media = "application/x-ndjson" if each.path.endswith("_bulk") else "application/json"
            sent = {**known[each.who], **({"Content-Type": media} if each.body else {})}
            url = URL(base + each.path, encoded=True)
            async with session.request(each.method, url, data=each.body, headers=sent) as response:
                text = await response.text()
                for name, key in server["api_keys"].items():
                    text = text.replace(key["id"], f"id-of-{name}")
                product = response.headers.get("X-Elastic-Product")
                challenge = response.headers.getall("WWW-Authenticate", [])
                body = _essence(json.loads(text)) if text else None
                answers[each.key] = [response.status, product, challenge, body]
    return answers


def _essence(body: Any) -> Any:
    found = plain(body)
    if isinstance(found, dict) and isinstance(found.get("error"), dict):
        # Which of several lacking privileges is named first is a race on the real server.
        for part in (found["error"], *found["error"].get("root_cause", [])):
            also = part.pop("suppressed", [])
            if also:
                part["reason"] = sorted([part["reason"], *(each["reason"] for each in also)])
    return found
