"""The manifest of a driver, `driver.json`: its claims, readable without running its code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import ClassVar, Literal

import msgspec

from dragoman_api.connections import AuthScheme, FieldKind, FieldValue, FormField
from dragoman_registry.ip_addresses import Nearness, is_literal, nearness
from dragoman_registry.names import Digest, PluginId, TypeName, WheelName

FORBID: dict[str, str] = {"extra": "forbid"}
MAX_MANIFEST = 1 << 20
"""Maximum bytes of a manifest."""

MANIFEST_VERSION = 1
"""Version of the format."""

MAX_LABEL = 100
"""Maximum characters of a label: it appears in questions, and must not crowd out the question."""

MAX_TEXT = 4_096
"""Maximum characters of any other text, or entries of a list: lists of many drivers show them all."""

BASELINE = frozenset({"net:connection", "net:sign-in", "secrets:connection"})
"""Permissions granted without asking: the opened connection's address and its own credentials. A connection's token
endpoint is asked about by itself."""

ACTED_ON = {
    "host": FieldKind.TEXT,
    "port": FieldKind.INTEGER,
    "hosts": FieldKind.TEXT,
    "cloud_id": FieldKind.TEXT,
    "auth_method": FieldKind.CHOICE,
    "ssl_mode": FieldKind.CHOICE,
    "skip_tls_verification": FieldKind.SWITCH,
}
"""Fields that the host acts on by name, and their kinds: no form may hide one or make a person's choice."""

PERSONS_OWN = frozenset({"hosts", "cloud_id", "token_url"})
"""Fields without a default: a person chooses which servers are reached."""

LOCAL = ("localhost", "127.0.0.1", "::1")
"""Allowed defaults of a host: a person chooses every other address."""

Capability = Literal[
    "browse", "sort", "filter", "edit", "drop", "console", "export", "tenants", "raw-filter", "revisions", "time-range"
]


class Surface(StrEnum):
    """The surface on which a person uses a driver (P6)."""

    CLI = "cli"
    DESKTOP = "desktop"
    PHONE = "phone"
    TABLET = "tablet"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseType:
    """A type of database: its name in saved connections, and its label."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID

    name: TypeName
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthMethod:
    """One authentication method: its value in the form, and how the credential is sent."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID

    value: str
    label: str
    scheme: AuthScheme


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDocs:
    """A page of the product's maker that explains requests of the console.

    A driver names its pages here, and not while it runs: an address that it made from what it has read would carry that
    away with a click.

    Attributes:
        requests: Paths, each of which may have a method before it: ``GET /*/_search``. A ``*`` stands for one segment,
            and ``**`` at the end for any number of them.
        url: An https address of a named host. Only a person's browser opens it, when the person asks for it.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID

    requests: tuple[str, ...]
    url: str

    def explains(self, method: str, path: str) -> bool:
        """Check whether the page is about a request; what follows a question mark does not matter.

        >>> page = RequestDocs(requests=("/*/_search", "PUT /_cat/**"), url="https://example.org/")
        >>> page.explains("GET", "/books/_search?size=1"), page.explains("GET", "/_cat"), page.explains("PUT", "/_cat")
        (True, False, True)
        """
        segments = path.partition("?")[0].strip("/").split("/")
        return any(_is_like(request, method, segments) for request in self.requests)


def _is_like(request: str, method: str, segments: list[str]) -> bool:
    its_method, _, pattern = request.rpartition(" ")
    parts = pattern.strip("/").split("/")
    if its_method not in ("", method):
        return False
    if parts[-1] == "**":
        parts.pop()
        segments = segments[: len(parts)]
    return len(parts) == len(segments) and all(
        part in ("*", segment) for part, segment in zip(parts, segments, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One wheel of a release's closed set, for one platform or for all."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID

    file: WheelName
    sha256: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A driver's claims; the smoke test checks them, and hooks decide at run time.

    Attributes:
        manifest_version: Version of this format.
        id: The plugin's id, also the name of its entry point.
        label: The display name, with the product's name (P4).
        summary: One sentence.
        types: Database types it serves.
        host_api: Range of `dragoman-api` versions, equal to the wheel's own requirement.
        entry: Location of the driver class, ``package.module:Class``.
        import_names: Top-level modules the wheel may contain.
        hooks: Hooks it implements.
        capabilities: What a person can do with it.
        server_versions: Supported versions of the product, as its makers write them.
        form: Fields of a connection, rendered before install.
        auth_methods: How each choice of the field `auth_method` is sent.
        permissions: Requested permissions, from a closed vocabulary.
        excluded_surfaces: Surfaces on which it is not available (P6).
        dependencies: Wheels beyond the API's own dependencies, for every platform.
        licence: An SPDX expression.
        docs: A URL, or the name of a file in the release's documentation.
        console_example: One reading request on one line, with which a console begins.
        console_docs: Pages on requests of the console; the first one that is about a request counts.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID

    manifest_version: Literal[1]
    id: PluginId
    label: str
    summary: str
    types: tuple[DatabaseType, ...]
    host_api: str
    entry: str
    import_names: tuple[str, ...]
    hooks: tuple[str, ...]
    capabilities: tuple[Capability, ...]
    server_versions: tuple[str, ...]
    form: tuple[FormField, ...]
    auth_methods: tuple[AuthMethod, ...]
    permissions: tuple[str, ...]
    licence: str
    docs: str = ""
    console_example: str = ""
    console_docs: tuple[RequestDocs, ...] = ()
    excluded_surfaces: tuple[Surface, ...] = ()
    dependencies: tuple[Dependency, ...] = ()

    @property
    def beyond_baseline(self) -> tuple[str, ...]:
        """The permissions that need a person's consent."""
        return tuple(name for name in self.permissions if name not in BASELINE)

    def request_docs(self, method: str, path: str) -> str:
        """Return the address of the page on a request; empty if there is none."""
        return next((page.url for page in self.console_docs if page.explains(method, path)), "")

    def default(self, field: str) -> FieldValue:
        """Return the default of a form field, or None."""
        return next((entry.default for entry in self.form if entry.name == field), None)

    def scheme(self, auth_method: str | None) -> AuthScheme:
        """Return how the credential of an authentication method is sent."""
        return next((entry.scheme for entry in self.auth_methods if entry.value == auth_method), AuthScheme.NONE)


def decode(data: bytes) -> Manifest:
    """Read a manifest that was checked on arrival."""
    return msgspec.json.decode(data, type=Manifest)


def encode(manifest: Manifest) -> bytes:
    """Encode a manifest with every key, in one fixed order."""
    return msgspec.json.encode(manifest)


_WORDS = {
    "net:connection": "reaches the connection's host and port",
    "net:sign-in": "reaches the token endpoint that you agree to",
    "secrets:connection": "is given that connection's credentials",
    "native-code": "contains compiled code",
}
_VERBS = {"net:host": "reaches", "fs:read": "reads the file chosen as", "memory": "uses up to", "cpu": "computes up to"}


def plain_permissions(permissions: tuple[str, ...]) -> tuple[str, ...]:
    """Describe a driver's permissions in plain words.

    >>> plain_permissions(("net:connection", "net:host=example.org"))
    ("reaches the connection's host and port", 'reaches example.org')
    >>> plain_permissions(("net:host=example.org,127.0.0.1:6379",))
    ('reaches example.org, 127.0.0.1:6379 (this machine itself)',)
    """
    return tuple(_WORDS.get(name) or _in_words(name) for name in permissions)


def _in_words(permission: str) -> str:
    kind, _, value = permission.partition("=")
    parts = [_host(part) if kind == "net:host" else part for part in value.split(",")]
    return f"{_VERBS.get(kind, kind)} {', '.join(parts)}".rstrip()


def _host(text: str) -> str:
    host = text.partition(":")[0]
    is_local = host == "localhost" or host.endswith(".localhost")
    is_local = is_local or (is_literal(host) and nearness(ip_address(host)) is Nearness.LOOPBACK)
    return f"{text} (this machine itself)" if is_local else text


def describe_reach(permissions: tuple[str, ...]) -> str:
    """Describe what a driver can reach, as one cell of a list.

    >>> describe_reach(("net:connection", "net:sign-in"))
    "the connection's host and port, and the token endpoint that you agree to"
    """
    phrases = [words for words in plain_permissions(permissions) if words.startswith("reaches ")]
    *first, last = [words.removeprefix("reaches ") for words in phrases] or ["nothing"]
    return ", ".join([*first, f"and {last}"]) if first else last
