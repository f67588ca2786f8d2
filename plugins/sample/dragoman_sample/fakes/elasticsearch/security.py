"""Users and API keys, and the answers to those who have none or too little."""

from __future__ import annotations

import base64
import binascii
import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dragoman_sample.fakes.elasticsearch.errors import ServerError

if TYPE_CHECKING:
    from dragoman_sample.fakes.elasticsearch.versions import Release

# What grants an action, in the words of the 403 of 8.x: cluster privileges, or index privileges.
CLUSTER_ACTIONS = {
    "cluster:monitor/main": "monitor,manage,all",
    "cluster:monitor/health": "monitor,manage,all",
    "cluster:monitor/state": "cross_cluster_replication,read_ccr,transport_client,manage_ccr,monitor,manage,all",
    "cluster:admin/settings/update": "manage,all",
    "indices:admin/index_template/put": "manage_index_templates,manage,all",
}
INDEX_ACTIONS = {
    "indices:admin/mappings/get": "view_index_metadata,manage,all",
    "indices:admin/get": "view_index_metadata,manage,all",
    "indices:monitor/settings/get": "monitor,view_index_metadata,manage,all",
    "indices:admin/aliases/get": "view_index_metadata,manage,all",
    "indices:admin/resolve/index": "view_index_metadata,manage,read,all",
    "indices:monitor/stats": "monitor,cross_cluster_replication,manage,all",
    "indices:admin/mapping/put": "manage,all",
    "indices:admin/settings/update": "manage,all",
    "indices:admin/aliases": "manage,all",
    "indices:admin/open": "manage,all",
    "indices:admin/validate/query": "view_index_metadata,manage,all",
    "indices:data/read/search": "read,all",
    "indices:data/read/get": "read,all",
    "indices:data/read/mget": "read,all",
    "indices:data/read/field_caps": "view_index_metadata,manage,read,all",
    "indices:data/read/open_point_in_time": "read,all",
    "indices:data/write/index": "create_doc,create,index,write,all",
    "indices:data/write/update": "index,write,all",
    "indices:data/write/delete": "delete,write,all",
    "indices:data/write/bulk": "create_doc,create,delete,index,write,all",
    "indices:data/write/bulk[s]": "create_doc,create,delete,index,write,all",
    "indices:admin/create": "create_index,manage,all",
    "indices:admin/delete": "delete_index,manage,all",
    "indices:admin/refresh": "maintenance,manage,all",
}


@dataclass
class User:
    """A user; one without limits is a superuser."""

    password: str
    cluster: tuple[str, ...] = ("all",)
    indices: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"*": ("all",)})
    roles: tuple[str, ...] = ("superuser",)


@dataclass
class ApiKey:
    """An API key; `encoded` is what a client sends."""

    id: str
    secret: str
    name: str = "key"
    owner: str = "elastic"
    cluster: tuple[str, ...] = ("all",)
    indices: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"*": ("all",)})
    state: str = "valid"

    @property
    def encoded(self) -> str:
        """Return base64 of `id:secret`."""
        return base64.b64encode(f"{self.id}:{self.secret}".encode()).decode()


@dataclass(frozen=True)
class Principal:
    """Who sent a request."""

    user: str
    roles: tuple[str, ...]
    cluster: tuple[str, ...]
    indices: Mapping[str, tuple[str, ...]]
    key: ApiKey | None = None

    def _words(self, release: Release) -> str:
        if self.key is not None:
            return f"API key id [{self.key.id}] of user [{self.user}]"
        roles = f" with effective roles [{','.join(self.roles)}]" if release.parts >= (8, 0) else ""
        return f"user [{self.user}]{roles}"

    def check_cluster(self, action: str, release: Release) -> None:
        """Refuse an action on the cluster that no privilege grants."""
        granting = CLUSTER_ACTIONS[action]
        if set(granting.split(",")).isdisjoint(self.cluster):
            raise self._refusal(action, release, "", f"the cluster privileges [{granting}]")

    def allows(self, action: str, name: str) -> bool:
        """Tell whether an action on one index is granted."""
        granting = set(INDEX_ACTIONS[action].split(","))
        return any(
            fnmatch.fnmatchcase(name, pattern) and granting & set(privileges)
            for pattern, privileges in self.indices.items()
        )

    def check_index(self, action: str, name: str, release: Release) -> None:
        """Refuse an action on an index that no privilege grants; without a name, one that is granted nowhere."""
        granting = INDEX_ACTIONS[action]
        if (
            self.allows(action, name)
            if name
            else any(set(granting.split(",")) & set(privileges) for privileges in self.indices.values())
        ):
            return
        where = f" on indices [{name}]" if name and action != "indices:data/write/bulk" else ""
        raise self._refusal(action, release, where, f"the index privileges [{granting}]")

    def _refusal(self, action: str, release: Release, where: str, granting: str) -> ServerError:
        tail = f"{where}, this action is granted by {granting}" if release.parts >= (7, 12) else ""
        reason = f"action [{action}] is unauthorized for {self._words(release)}{tail}"
        return ServerError("security_exception", reason, status=403)


class Security:
    """The users and keys of one server."""

    def __init__(self, users: Mapping[str, User | str], keys: list[ApiKey]) -> None:
        self.users = {name: User(user) if isinstance(user, str) else user for name, user in users.items()}
        self.keys = {key.id: key for key in keys}

    def revoke(self, key_id: str) -> None:
        """Make a key invalid from now on."""
        self.keys[key_id].state = "revoked"

    def authenticate(self, header: str | None, uri: str, release: Release) -> Principal:
        """Return who sends this Authorization header.

        Raises:
            ServerError: 401, in the words of the release.
        """
        scheme, _, value = (header or "").partition(" ")
        if scheme.lower() == "basic":
            return self._basic(value.strip(), uri, release)
        if scheme.lower() == "apikey":
            return self._key(value.strip(), uri, release)
        if header is not None and scheme.lower() == "bearer":
            raise self._rejected("oauth2 token: invalid token", uri, release)
        raise _unauthorized(f"missing authentication credentials for REST request [{uri}]", release)

    def _basic(self, value: str, uri: str, release: Release) -> Principal:
        try:
            name, _, password = base64.b64decode(value).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise _unauthorized("failed to authenticate", release) from None
        user = self.users.get(name)
        if user is None or user.password != password:
            raise _unauthorized(f"unable to authenticate user [{name}] for REST request [{uri}]", release)
        return Principal(name, user.roles, user.cluster, user.indices)

    def _key(self, value: str, uri: str, release: Release) -> Principal:
        strange = next((char for char in value if not (char.isascii() and (char.isalnum() or char in "+/="))), None)
        if strange is not None:
            raise self._rejected(f"API key: Illegal base64 character {ord(strange):x}", uri, release)
        try:
            key_id, colon, secret = base64.b64decode(value).decode("latin-1").partition(":")
        except binascii.Error:
            raise self._rejected("API key: Input byte array has wrong 4-byte ending unit", uri, release) from None
        if not colon:
            raise self._rejected("API key: invalid ApiKey value", uri, release)
        key = self.keys.get(key_id)
        if key is None:
            raise self._rejected(f"API key: unable to find apikey with id {key_id}", uri, release)
        if key.state == "revoked":
            raise self._rejected(f"API key: api key [{key_id}] has been invalidated", uri, release)
        if key.secret != secret:
            raise self._rejected(f"API key: invalid credentials for API key [{key_id}]", uri, release)
        if key.state == "expired":
            raise self._rejected("API key: api key is expired", uri, release)
        return Principal(key.owner, (), key.cluster, key.indices, key)

    @staticmethod
    def _rejected(why: str, uri: str, release: Release) -> ServerError:
        if release.types:
            return _unauthorized(f"missing authentication credentials for REST request [{uri}]", release)
        reason = "unable to authenticate with provided credentials and anonymous access is not allowed for this request"
        return _unauthorized(reason, release, additional_unsuccessful_credentials=why)


def _unauthorized(reason: str, release: Release, **extra: Any) -> ServerError:
    comma = "" if release.parts < (8,) else ","
    schemes = [f'Basic realm="security"{comma} charset="UTF-8"', 'Bearer realm="security"', "ApiKey"]
    headers = [("WWW-Authenticate", scheme) for scheme in schemes]
    extra["header"] = {"WWW-Authenticate": schemes}
    return ServerError("security_exception", reason, status=401, headers=headers, extra=extra)


def describe(principal: Principal, release: Release) -> dict[str, Any]:
    """Return the answer of `_security/_authenticate`."""
    realm = {"name": "_es_api_key", "type": "_es_api_key"}
    if principal.key is None:
        realm = {"name": "default_file", "type": "file"}
    body = {
        "username": principal.user, "roles": list(principal.roles), "full_name": None, "email": None, "metadata": {},
        "enabled": True, "authentication_realm": realm, "lookup_realm": realm,
        "authentication_type": "api_key" if principal.key else "realm",
    }  # fmt: skip
    if principal.key is not None and release.parts >= (8,):
        body["api_key"] = {"name": principal.key.name, "id": principal.key.id}
    return body
