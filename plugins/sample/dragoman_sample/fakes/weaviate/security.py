"""Who sends a request, and what they may do: keys with an administrators' list, or keys with roles."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from typing import Any, Literal

from dragoman_sample.fakes.weaviate.errors import ServerError, coded, refused

Access = Literal["open", "keys", "roles"]
_LETTERS = {"create": "C", "read": "R", "update": "U", "delete": "D"}


@dataclass(frozen=True)
class Role:
    """A named list of what is allowed: pairs of an action and a pattern for collections."""

    name: str
    allows: tuple[tuple[str, str], ...]


_DOMAINS = ("collections", "data", "tenants", "aliases")
_VIEWS = (
    "roles", "users", "cluster", "groups", "nodes", "collections", "data", "tenants", "replicate", "aliases", "mcp",
)  # fmt: skip
VIEWER = Role("viewer", tuple((f"read_{domain}", "*") for domain in _VIEWS))
_ROOT = Role("root", tuple((f"{verb}_{domain}", "*") for domain in _DOMAINS for verb in _LETTERS))
# What a permission tells besides its action, where that is not only a collection.
_DETAILS: dict[str, dict[str, str] | None] = {
    "roles": {"role": "*", "scope": "all"}, "users": {"users": "*"}, "groups": {"group": "*", "groupType": "oidc"},
    "nodes": {"collection": "*", "verbosity": "verbose"}, "replicate": {"collection": "*", "shard": "*"},
    "cluster": None, "mcp": None,
}  # fmt: skip
_MORE = {"data": {"object": "*", "tenant": "*"}, "tenants": {"tenant": "*"}, "aliases": {"alias": "*"}}


@dataclass(frozen=True)
class User:
    """A user: administrator, or somebody with these roles; with an administrators' list a reader has none."""

    name: str
    admin: bool = False
    roles: tuple[Role, ...] = ()


def shown(user: User) -> list[dict[str, Any]] | None:
    """Return the roles of a user as own-info tells them; those of an administrator are abridged."""
    roles = (_ROOT,) if user.admin else user.roles
    return [
        {"name": role.name, "permissions": [_permission(*allowed) for allowed in role.allows]} for role in roles
    ] or None


def _permission(action: str, pattern: str) -> dict[str, Any]:
    domain = action.partition("_")[2]
    details = _DETAILS.get(domain, {"collection": pattern, **_MORE.get(domain, {})})
    return {"action": action} | ({domain: details} if details else {})


@dataclass(frozen=True)
class Principal:
    """The sender of one request."""

    access: Access
    user: User

    def may(self, action: str, collection: str) -> bool:
        """Tell whether an action (`read_data`, `create_collections`, …) on a collection is allowed."""
        if self.access == "open" or self.user.admin:
            return True
        if self.access == "keys":
            return action.startswith("read_")
        granted = ((name, pattern) for role in self.user.roles for name, pattern in role.allows)
        return any(name == action and fnmatch.fnmatchcase(collection, pattern) for name, pattern in granted)

    def require(
        self, action: str, collection: str, *, item: str = "*", resource: str = "", twice: bool = False
    ) -> None:
        """Refuse what is not allowed.

        Args:
            action: What is to be done.
            collection: The name of the collection.
            item: The object, where one is named.
            resource: Where it differs from the shards and objects of the collection.
            twice: The refusal repeats itself, as it does for PATCH and for lists.

        Raises:
            ServerError: 403.
        """
        if self.may(action, collection):
            return
        text = self.refusal(action, collection, item, resource)
        raise refused(403, f"msg:{text} code:403 err:{text}" if twice else text)

    def refusal(self, action: str, collection: str, item: str = "*", resource: str = "") -> str:
        """Return the words of a refusal."""
        verb, _, domain = action.partition("_")
        if self.access == "keys":
            where = resource or f"data/collections/{collection}/shards/*/objects/{item}"
            return (
                f"adminlist: authorization, forbidden action: user '{self.user.name}' has insufficient permissions to "
                f"{_LETTERS[verb]} [{where}]"
            )
        scope = f"Domain: {domain}, Collection: {collection}"
        scope += {"data": f", Tenant: *, Object: {item}", "tenants": ", Tenant: *"}.get(domain, "")
        return (
            f"rbac: authorization, forbidden action: user '{self.user.name}' has insufficient permissions to "
            f"{action} [[{scope}]]"
        )


@dataclass
class Security:
    """The keys of a server; without any, everybody may do everything."""

    access: Access = "open"
    keys: dict[str, User] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)

    def authenticate(self, header: str | None, token: str | None) -> Principal:
        """Find out who sends a request.

        Raises:
            ServerError: 401.
        """
        scheme, _, value = (header or "").partition(" ")
        key = value.strip() if scheme == "Bearer" else token or ""
        if self.access == "open":
            if key:
                text = (
                    "no authentication scheme is configured (API Key or OIDC), but an 'Authorization' header was"
                    " provided. Please configure an auth scheme or remove the header for anonymous access"
                )
                raise coded(401, text)
            return Principal("open", User("anonymous", admin=True))
        if not key:
            text = "anonymous access not enabled. Please authenticate through one of the available methods: [API-keys]"
            raise ServerError(401, media="text/plain", text=f'{{"code":401,"message": "{text}" }}')
        if key in self.gone:
            raise coded(401, f"unauthorized: invalid api key: {self.gone[key]}")
        if key not in self.keys:
            raise coded(401, "unauthorized: invalid api key")
        return Principal(self.access, self.keys[key])
