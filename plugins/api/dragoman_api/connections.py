"""A saved connection as its driver receives it, and the form that it is entered in, as data."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from . import endpoints
from .columns import Condition, Note
from .endpoints import Endpoint, endpoint_name, more_hosts, token_url

if TYPE_CHECKING:
    from collections.abc import Mapping

FieldValue = str | int | bool | None


class SslMode(StrEnum):
    """The use of TLS (E12 to E14, W7); every mode but Disabled is HTTPS, and none falls back to HTTP."""

    DISABLED = "disabled"
    PREFERRED = "preferred"
    REQUIRED_SKIP_VERIFY = "required-skip-verify"
    REQUIRED = "required"
    VERIFY_CA = "verify-ca"
    VERIFY_IDENTITY = "verify-identity"

    @property
    def https(self) -> bool:
        """Whether requests use TLS."""
        return self is not SslMode.DISABLED

    @property
    def verifies(self) -> bool:
        """Whether the certificate chain is checked."""
        return self in (SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY)


class AuthScheme(StrEnum):
    """How a credential becomes an Authorization header."""

    NONE = "none"
    BASIC = "basic"
    API_KEY = "ApiKey"
    BEARER = "Bearer"
    CLIENT_CREDENTIALS = "client-credentials"
    """A token that `Http` gets from the token endpoint, a second server."""


class Secrets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The credentials of one connection; never printed."""

    values: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Secrets({', '.join(f'{name}=…' for name in sorted(self.values))})"

    def get(self, name: str) -> str:
        """Return one secret; empty if it is missing."""
        return self.values.get(name, "")

    @property
    def texts(self) -> list[str]:
        """Every text to mask: the secrets, and each value of the secret headers."""
        try:
            return [*self.values.values(), *endpoints.headers(self.get("secret_headers")).values()]
        except ValueError:  # they are refused before anything is sent
            return [*self.values.values()]


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One saved connection, resolved, as a driver's `connect` receives it.

    Attributes:
        name: The connection's name.
        type: The database type.
        host: Host name or address, IPv6 without brackets.
        port: TCP port.
        ssl_mode: TLS mode.
        skip_tls_verification: Trust any certificate, even under the verify modes (E8, W6).
        auth_scheme: How the credential is sent.
        ca_pem: Certificates to trust besides the system's, as PEM text.
        client_certificate: Path of a PEM file with certificate and key, readable in the sandbox; empty for none.
        pinned: ``HOST:PORT`` → the certificate that a person pinned for it, base64 of DER.
        options: All other values of the form, by field name.
        secrets: Credentials; the driver receives them only after the sandbox has been proven.
    """

    name: str
    type: str
    host: str
    port: int
    ssl_mode: SslMode = SslMode.DISABLED
    skip_tls_verification: bool = False
    auth_scheme: AuthScheme = AuthScheme.NONE
    ca_pem: str = ""
    client_certificate: str = ""
    pinned: dict[str, str] = {}
    options: dict[str, str | int | bool | None] = {}
    secrets: Secrets = Secrets()

    @property
    def endpoints(self) -> list[Endpoint]:
        """Every host and port of the database: its own first, then those of the option ``hosts``.

        Raises:
            ValueError: The option ``hosts`` does not hold hosts.
        """
        extra_hosts = more_hosts(str(self.options.get("hosts") or ""), self.port)
        return list(dict.fromkeys([(self.host, self.port), *extra_hosts]))

    @property
    def token_endpoint(self) -> Profile | None:
        """The OAuth token endpoint as if it were a connection without credentials; None for other auth methods.

        Its certificate and name are always checked. Raises ValueError if the option ``token_url`` is no such address.
        """
        if self.auth_scheme is not AuthScheme.CLIENT_CREDENTIALS:
            return None
        url = token_url(str(self.options.get("token_url") or ""))
        return msgspec.structs.replace(
            self,
            host=url.host,
            port=url.port,
            ssl_mode=SslMode.VERIFY_IDENTITY if url.https else SslMode.DISABLED,
            skip_tls_verification=False,
            auth_scheme=AuthScheme.NONE,
            client_certificate="",
            options={},
            secrets=Secrets(),
        )

    @property
    def reach(self) -> list[Endpoint]:
        """Every host and port that the driver's process may reach: the database's, then a token endpoint's.

        Raises:
            ValueError: The option ``hosts`` does not hold hosts, or ``token_url`` is no address.
        """
        token = self.token_endpoint
        return list(dict.fromkeys([*self.endpoints, *([(token.host, token.port)] if token else [])]))

    @property
    def pinned_certificate(self) -> bytes:
        """The certificate that is pinned for the host and port, as DER; empty for none."""
        return b64decode(self.pinned.get(endpoint_name(self.host, self.port), ""))

    @property
    def path_prefix(self) -> str:
        """The path that precedes the path of every request, such as ``/es``; empty for none.

        Raises:
            ValueError: The option ``path_prefix`` is not a path prefix.
        """
        return endpoints.path_prefix(str(self.options.get("path_prefix") or ""))

    @property
    def base_url(self) -> str:
        """Scheme, host, port and path prefix, without a slash at the end. Raises as `path_prefix`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.ssl_mode.https else 'http'}://{host}:{self.port}{self.path_prefix}"

    @property
    def where(self) -> str:
        """Host, port and path prefix, as messages name the server. Raises as `path_prefix`."""
        return f"{self.host}:{self.port}{self.path_prefix}"


class Server(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The server that answered.

    Attributes:
        product: Its name, for example ``Elasticsearch``.
        version: The version that the server reports; empty if it reports none.
        notes: Remarks for a person: limited rights, an untested version.
    """

    product: str
    version: str = ""
    notes: list[str] = []


class Health(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of a health check: `ok`, or a reason and the code of its error."""

    ok: bool
    reason: str = ""
    code: str = ""


_Amount = Annotated[int, msgspec.Meta(ge=0)]


class ServerNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node of a server, as the server knows it.

    Attributes:
        name: Its name.
        state: Its condition; None when unknown.
        roles: What it does, in the server's words; empty when unknown.
        version: The version that it runs; empty when unknown.
        rows: Number of rows on it, None when unknown.
        memory: Bytes of memory in use, None when unknown.
        memory_limit: Bytes of memory that it may use, None when unknown.
        disk: Bytes of disk in use, by whatever is on that disk; None when unknown.
        disk_limit: Bytes that the disk holds, None when unknown.
    """

    name: str
    state: Condition | None = None
    roles: str = ""
    version: str = ""
    rows: _Amount | None = None
    memory: _Amount | None = None
    memory_limit: _Amount | None = None
    disk: _Amount | None = None
    disk_limit: _Amount | None = None


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a server is: more than `Health`, which says only whether it answers.

    Attributes:
        state: The condition of the whole; None when unknown.
        nodes: Its nodes, in an order that stays; empty when unknown.
        objects: Conditions of objects by name, those that `Object.state` does not tell.
        notes: Why the whole is not well, and what could not be read.
    """

    state: Condition | None = None
    nodes: list[ServerNode] = []
    objects: dict[str, Condition] = {}
    notes: list[Note] = []


class FieldKind(StrEnum):
    """The kind of a field, which decides how its value is entered and checked."""

    TEXT = "text"
    INTEGER = "integer"
    SWITCH = "switch"
    CHOICE = "choice"
    SECRET = "secret"  # noqa: S105 - a kind of field
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value of a choice and its label."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field of a connection's form.

    Attributes:
        name: Key in `connections.toml`, and option on the command line (``auth_method`` is ``--auth-method``).
        label: The label that a person reads.
        kind: The kind of input.
        default: The initial value; None for an empty field.
        choices: The values of a choice.
        visible_if: Fields and the values they must have for this one to be shown; empty for always.
        advanced: The field belongs to the Advanced section.
        required: The field must not be empty while it is visible.
        help: A help text of one sentence.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    name: str
    label: str
    kind: FieldKind = FieldKind.TEXT
    default: FieldValue = None
    choices: tuple[Choice, ...] = ()
    visible_if: dict[str, tuple[str, ...]] = field(default_factory=dict)
    advanced: bool = False
    required: bool = False
    help: str = ""

    def visible(self, values: Mapping[str, FieldValue]) -> bool:
        """Check whether the field is visible, given these values (E7)."""
        return all(str(values.get(name)) in allowed for name, allowed in self.visible_if.items())
