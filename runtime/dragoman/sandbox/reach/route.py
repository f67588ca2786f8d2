"""The route to a server that is not reached directly: an HTTP proxy or an SSH tunnel, as saved and as used."""

from __future__ import annotations

import errno
import re
from contextlib import suppress
from ipaddress import ip_address
from shlex import join
from typing import TYPE_CHECKING, Protocol

import msgspec

from dragoman.references import Reference, from_table
from dragoman_api.errors import ConfigurationError
from dragoman_registry.ip_addresses import MAX_HOST, canonical

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from .address_resolver import NearerError

KEY = "connect-via"
"""The key of its table in `connections.toml`; the hyphen keeps it apart from the fields of any driver's form."""

IDENTITY = "ssh-identity"
"""Name of the file of a private key among a connection's references."""
PASSWORD = "proxy-password"  # noqa: S105 - a name
"""Name of the proxy's password among a connection's secrets."""

_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_USER = re.compile(r"[^:\x00-\x1f\x7f]{0,255}")
_SSH_USER = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?")
_FILE = re.compile(r"[/~][^\x00-\x1f\x7f%$]*")
_ADDRESS = re.compile(r"(?:([^@]*)@)?(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
_SSH = "--ssh USER@bastion.example:22"
_PROXY = "--proxy http://proxy.example:3128"
NAME = "{name}"
"""Stands in a hint for the connection's name, which a route does not know."""


class HttpProxy(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP proxy, which connects to the server on request (CONNECT).

    Attributes:
        host: Its name or address.
        port: Its port.
        user: The user for Basic authentication; empty for none.
        password: Reference to that user's password. Only the host sends it, and only to the proxy.

    Raises:
        ConfigurationError: A value cannot be used.
    """

    host: str
    port: int
    user: str = ""
    password: Reference | None = None

    def __post_init__(self) -> None:
        if not is_host(self.host):
            raise ConfigurationError(f"proxy: {self.host[:80]!r} is not a host", hint=_PROXY)
        if not 1 <= self.port <= 65535:
            raise ConfigurationError(f"proxy: {self.port} is not a TCP port", hint=_PROXY)
        if not _USER.fullmatch(self.user):
            raise ConfigurationError("proxy-user: it contains a colon or a control character, or is too long")
        if self.password is not None and not self.user:
            raise ConfigurationError("proxy-password: there is no user that it belongs to", hint="--proxy-user NAME")
        if self.password is not None and self.password.scheme == "path":
            raise ConfigurationError("proxy-password: it is not a reference to a secret", hint="env:NAME")

    def __str__(self) -> str:
        return f"the HTTP proxy {self.address}"

    @property
    def address(self) -> str:
        """Its host and port, as in a URL."""
        return authority(self.host, self.port)

    @property
    def table(self) -> dict[str, str | Reference]:
        """The table that represents it in `connections.toml`."""
        rest = {"user": self.user, "password": self.password}
        return {"proxy": f"http://{self.address}"} | {key: value for key, value in rest.items() if value}

    @property
    def references(self) -> dict[str, Reference]:
        """What the host resolves when it opens the connection, by a name that no field of a form has."""
        return {PASSWORD: self.password} if self.password else {}


class SshTunnel(msgspec.Struct, frozen=True, kw_only=True):
    """A host that the user's own `ssh` signs in to, and that connects to the server from there (``ssh -W``).

    No value can be read as an option or an expansion by `ssh`, or by a ProxyCommand of the user's configuration.

    Attributes:
        host: Its name or address, or a name of the user's SSH configuration.
        user: The user there; empty for that of the configuration.
        port: Its port; None for that of the configuration.
        identity: The file of the private key; None for those of the configuration and the agent.

    Raises:
        ConfigurationError: A value cannot be used.
    """

    host: str
    user: str = ""
    port: int | None = None
    identity: Reference | None = None

    def __post_init__(self) -> None:
        if not _plain(self.host):
            raise ConfigurationError(f"ssh: {self.host[:80]!r} is not a host", hint=_SSH)
        if not _SSH_USER.fullmatch(self.user):
            raise ConfigurationError(f"ssh: {self.user[:80]!r} is not a user", hint=_SSH)
        if self.port is not None and not 1 <= self.port <= 65535:
            raise ConfigurationError(f"ssh: {self.port} is not a TCP port", hint=_SSH)
        if self.identity is not None and (self.identity.scheme != "path" or not _FILE.fullmatch(self.identity.target)):
            reason = "it is not the path of a file, or contains %, $ or a control character, which ssh would expand"
            raise ConfigurationError(f"ssh-identity: {reason}", hint="--ssh-identity PATH")

    def __str__(self) -> str:
        return f"the SSH tunnel over {self.address}"

    @property
    def address(self) -> str:
        """Its user, host and port, as they are entered."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (f"{self.user}@" if self.user else "") + host + (f":{self.port}" if self.port else "")

    @property
    def command(self) -> str:
        """The command that signs in to it by hand."""
        words = ["ssh"]
        if self.identity is not None:
            words += ["-i", self.identity.target]
        if self.port is not None:
            words += ["-p", str(self.port)]
        return join([*words, (f"{self.user}@" if self.user else "") + self.host])

    @property
    def table(self) -> dict[str, str | Reference]:
        """The table that represents it in `connections.toml`."""
        return {"ssh": self.address} | ({"identity": self.identity} if self.identity else {})

    @property
    def references(self) -> dict[str, Reference]:
        """What the host opens when it opens the connection, by a name that no field of a form has."""
        return {IDENTITY: self.identity} if self.identity else {}


Route = HttpProxy | SshTunnel


def parse_proxy(url: str, *, user: str = "", password: Reference | None = None) -> HttpProxy:
    """Read a proxy's URL, such as ``http://proxy.example:3128``.

    Raises:
        ConfigurationError: It is not such a URL, or a kind of proxy that dragoman does not use. The message does not
            repeat a password in it.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigurationError(f"proxy: it is not a URL ({type(error).__name__})", hint=_PROXY) from None
    if "@" in parts.netloc:
        hint = f"{_PROXY} --proxy-user NAME --proxy-password env:NAME"
        raise ConfigurationError("proxy: a URL with a user in it would repeat the password in messages", hint=hint)
    if parts.scheme == "https":
        reason = "TLS to the proxy would have to end in the host, which passes the driver an open socket and no bytes"
        raise ConfigurationError(f"proxy: https:// is not supported: {reason}", hint=_PROXY)
    if parts.scheme != "http":
        raise ConfigurationError(f"proxy: {parts.scheme[:20]}:// is not supported, only http:// (CONNECT)", hint=_PROXY)
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ConfigurationError("proxy: only a host and a port are used, not a path or a query", hint=_PROXY)
    if port is None:
        raise ConfigurationError("proxy: the URL names no port, and proxies have no usual one", hint=_PROXY)
    return HttpProxy(host=host, port=port, user=user, password=password)


def parse_ssh(text: str, *, identity: Reference | None = None) -> SshTunnel:
    """Read ``[USER@]HOST[:PORT]``. Raises ConfigurationError."""
    match = _ADDRESS.fullmatch(text)
    if match is None or match[1] == "":
        raise ConfigurationError(f"ssh: {text[:80]!r} is not [USER@]HOST[:PORT]", hint=_SSH)
    port = int(match[3]) if match[3] else None
    return SshTunnel(host=match[2].strip("[]"), user=match[1] or "", port=port, identity=identity)


def read_route(table: Mapping[str, object]) -> Route:
    """Read the table of `connections.toml`. Raises ConfigurationError."""
    values = {key: from_table(value) if isinstance(value, dict) else value for key, value in table.items()}
    match values:
        case {"proxy": str(url), **rest} if not rest.keys() - {"user", "password"}:
            user, password = rest.get("user", ""), rest.get("password")
            if isinstance(user, str) and isinstance(password, Reference | None):
                return parse_proxy(url, user=user, password=password)
        case {"ssh": str(address), **rest} if not rest.keys() - {"identity"}:
            if isinstance(identity := rest.get("identity"), Reference | None):
                return parse_ssh(address, identity=identity)
    hint = 'proxy = "http://example.com:3128", and if it wants them user = "NAME", password = { env = "NAME" }'
    raise ConfigurationError(f"{KEY}: not a table that names a proxy or an SSH host", hint=hint)


def is_host(text: str) -> bool:
    """Return whether a text is a host name or address that can be written into a request or an argument as it is."""
    return _plain(canonical(text))


def _plain(name: str) -> bool:
    with suppress(ValueError):
        return "%" not in str(ip_address(name))
    return len(name) <= MAX_HOST and bool(_NAME.fullmatch(name))


def authority(host: str, port: int) -> str:
    """Return host and port as one text; an IPv6 address is in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class RouteError(OSError):
    """What is between this machine and a server cannot be used, or refuses.

    Its `strerror` is for the driver's process, which learns neither names nor the words of what is in between.

    Attributes:
        reason: One clause for a person; its subject is what is in between.
        hint: What to do. It may contain `NAME`.
        nearer: Set if the name of what is in between resolves to a nearer address than allowed.
    """

    def __init__(
        self, subject: str, reason: str, *, words: str = "", hint: str = "", nearer: NearerError | None = None
    ) -> None:
        """Build the error.

        Args:
            subject: What is in between, for a person.
            reason: What it does wrong, without names and without words of its own.
            words: Its own words, harmless and short.
            hint: What to do.
            nearer: As the attribute.
        """
        super().__init__(errno.EPROTO, f"what is between this machine and the server {reason}")
        self.reason = f"{subject} {reason}{f': {words}' if words else ''}"
        self.hint, self.nearer = hint, nearer


class RouteConnector(Protocol):
    """Connects to servers over a route."""

    async def connect(self, host: str, port: int) -> socket.socket:
        """Return a socket on which everything goes to, and comes from, a host and port. Raises RouteError."""

    async def close(self) -> None:
        """End what it started, if anything."""
