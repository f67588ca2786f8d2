"""Where requests go, as a person enters it: hosts and ports, a Cloud ID, a path prefix, extra headers.

The host computes from them what a driver may reach, without running any code of the driver. Each function reads one
text, and raises ValueError with a reason that follows the name of the field.
"""

from __future__ import annotations

import ipaddress
import re
from base64 import b64decode
from typing import NamedTuple

Endpoint = tuple[str, int]
"""A host, IPv6 without brackets, and a port."""

MOST_HOSTS = 16
"""Maximum number of hosts besides the first."""

_CLOUD_ID_LENGTH = 1_000
_HOST_LENGTH = 253
_HOST = re.compile(r"[^\s/\\@?#\[\]:%]+")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_PORT = re.compile(r"[0-9]{1,5}")
_CLOUD_PORT = 443
_TOKEN_URL_LENGTH = 2_000
_TOKEN_PATH = re.compile(r"/(?!/)[!\"$-~]*")

MOST_HEADERS = 20
"""Maximum number of extra headers."""

_PREFIX_LENGTH = 200
_HEADERS_LENGTH = 8 * 2**10  # servers refuse more than 8 KiB of headers, or of one
_SEGMENT = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@-]+")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_HEADER_VALUE = re.compile(r"[!-~]([ \t!-~]*[!-~])?")

_OWN = {
    "host", "authorization", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection",
    "cookie", "set-cookie", "accept", "accept-encoding", "keep-alive", "te", "trailer", "upgrade", "expect", "range",
    "http2-settings",
}  # fmt: skip
"""Headers that frame a request, sign in, or choose the form of an answer: dragoman sets them, or no header may."""

_METHOD = re.compile(r"x-(http-)?method.*")  # would turn a read into a write after the guards have seen it


def endpoint_name(host: str, port: int) -> str:
    """Return a host and a port as one text.

    >>> endpoint_name("es.example.com", 9200), endpoint_name("::1", 9200)
    ('es.example.com:9200', '[::1]:9200')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def more_hosts(text: str, port: int) -> list[Endpoint]:
    """Return further hosts of a connection, separated by commas, spaces or lines.

    >>> more_hosts("es2, es3:9201 [::1]:9202", 9200)
    [('es2', 9200), ('es3', 9201), ('::1', 9202)]

    Args:
        text: The hosts, each with a port unless it is the usual one.
        port: The port of those without one.

    Raises:
        ValueError: One of them is not a host and a port, or there are too many.
    """
    parts = [part for part in re.split(r"[,\s]+", text) if part]
    if len(parts) > MOST_HOSTS:
        raise ValueError(f"has {len(parts)} hosts; {MOST_HOSTS} are allowed")
    return list(dict.fromkeys(_endpoint(part, port) for part in parts))


def _endpoint(text: str, usual: int) -> Endpoint:
    host, colon, port = text.rpartition(":")
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        sound = bool(closed) and _is_ipv6(host) and colon in ("", ":")
    elif text.count(":") > 1:
        host, colon, port, sound = text, "", "", _is_ipv6(text)
    else:
        host = host if colon else text
        sound = bool(_HOST.fullmatch(host)) and len(host) <= _HOST_LENGTH
    if not sound:
        raise ValueError(f"{text[:100]!r} is not a host and a port, such as es2.example.com:9200")
    return host, _port(port, text) if colon else usual


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.IPv6Address(text).scope_id is None
    except ValueError:
        return False


def _port(text: str, whole: str) -> int:
    if not _PORT.fullmatch(text) or not 1 <= int(text) <= 65535:
        raise ValueError(f"{whole[:100]!r} does not end in a TCP port")
    return int(text)


class TokenUrl(NamedTuple):
    """The address of an OAuth token endpoint, read: whether it is HTTPS, its server, and its path with any query."""

    https: bool
    host: str
    port: int
    path: str


def token_url(text: str) -> TokenUrl:
    """Return what the address of a token endpoint means.

    >>> token_url("https://auth.example.com/realms/shop/token")
    TokenUrl(https=True, host='auth.example.com', port=443, path='/realms/shop/token')

    Raises:
        ValueError: It is not such an address, or would send the secret unencrypted to another machine.
    """
    if len(text) > _TOKEN_URL_LENGTH:
        raise ValueError(f"has {len(text):,} characters; a token URL has {_TOKEN_URL_LENGTH:,} at most")
    scheme, _, rest = text.partition("://")
    if scheme not in ("https", "http") or not rest:
        raise ValueError(f"{text[:100]!r} is not an address that begins with https://")
    server, _, path = rest.partition("/")
    if "@" in server:  # the reason must not show a password
        raise ValueError("names a user; enter the address alone, and Client ID and Client Secret by themselves")
    if not _TOKEN_PATH.fullmatch(f"/{path}"):
        raise ValueError(f"{text[:100]!r} contains a character that an address cannot have, or a #")
    host, port = _endpoint(server, 443 if scheme == "https" else 80)
    if scheme == "http" and not _is_loopback(host):
        raise ValueError(f"{text[:100]!r} is plain HTTP: the secret would travel unencrypted")
    return TokenUrl(scheme == "https", host, port, f"/{path}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def cloud_id(text: str) -> Endpoint:
    """Return the host and port of the cluster that an Elastic Cloud ID means; it is always reached by HTTPS.

    A Cloud ID is a label, a colon, and the base64 of ``domain[:port]$cluster[:port]$…``.

    >>> from base64 import b64encode
    >>> cloud_id("my-deployment:" + b64encode(b"eu-west-1.aws.found.io:9243$0123abcd$4567").decode())
    ('0123abcd.eu-west-1.aws.found.io', 9243)

    Raises:
        ValueError: It is malformed, or does not mean a host name on a network; the reason says what is wrong.
    """
    if len(text) > _CLOUD_ID_LENGTH:
        raise ValueError(f"has {len(text):,} characters; a Cloud ID has {_CLOUD_ID_LENGTH:,} at most")
    domain, cluster = _cloud_parts(text.strip())
    domain, colon, port = domain.partition(":")
    cluster, colon_of_cluster, port_of_cluster = cluster.partition(":")
    host = f"{cluster}.{domain}"
    for label in host.split("."):
        if not _LABEL.fullmatch(label):
            raise ValueError(f"means the host {host[:100]!r}, which is not a host name")
    # A last label that is a number would make it an address in some resolver's eyes.
    last = host.rpartition(".")[2].lower()
    if len(host) > _HOST_LENGTH or "." not in domain or last == "localhost" or not last[0].isalpha():
        raise ValueError(f"means the host {host[:100]!r}, which is not the name of a host on the internet")
    if colon_of_cluster:
        colon, port = colon_of_cluster, port_of_cluster
    return host.lower(), _port(port, f"{host}:{port}") if colon else _CLOUD_PORT


def _cloud_parts(text: str) -> tuple[str, str]:
    """Return the domain and the cluster of a Cloud ID, each perhaps with a port."""
    encoded = text.rpartition(":")[2]
    if not encoded:
        raise ValueError("has nothing after its label; copy the whole Cloud ID, such as label:ZXUt…")
    try:
        decoded = b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode("ascii")
    except ValueError as error:
        raise ValueError("is not base64 of plain text after its label; copy it again") from error
    parts = decoded.split("$")
    if not 2 <= len(parts) <= 4 or not all(parts[:2]):
        raise ValueError("does not contain a domain and a cluster, separated by $; copy it again")
    return parts[0], parts[1]


def path_prefix(text: str) -> str:
    """Return the path that precedes every request's own path, such as ``/es``; empty for none.

    >>> path_prefix("es/"), path_prefix("/search/v8"), path_prefix("/")
    ('/es', '/search/v8', '')

    Raises:
        ValueError: It has an empty or a dot segment, a query, an escape or another character, or is too long.
    """
    inner = text.strip("/")
    if not inner and len(text) <= 1:
        return ""
    if len(text) > _PREFIX_LENGTH:
        raise ValueError(f"has {len(text):,} characters; a path prefix has {_PREFIX_LENGTH} at most")
    if "://" in text:
        raise ValueError(f"{text!r} is an address; enter its path alone, such as /es")
    for segment in text.removeprefix("/").removesuffix("/").split("/"):
        if segment in (".", ".."):
            raise ValueError(f"{text!r} contains the segment {segment!r}, which leads elsewhere")
        if not _SEGMENT.fullmatch(segment):
            fault = f"the segment {segment!r}" if segment else "an empty segment"
            raise ValueError(f"{text!r} contains {fault}; a prefix is a plain path, without a query and without %")
    return f"/{inner}"


def headers(text: str) -> dict[str, str]:
    r"""Return extra headers by name. They stand on lines of their own, or in one line, separated by ``;``.

    >>> headers("X-Tenant: blue; X-Team: search"), headers("Prefer: a; b\n")
    ({'X-Tenant': 'blue', 'X-Team': 'search'}, {'Prefer': 'a; b'})

    Raises:
        ValueError: There are too many, or one of them is malformed, named twice, or not a person's to set. The reason
            contains no value.
    """
    if len(text) > _HEADERS_LENGTH:
        raise ValueError(f"has {len(text):,} characters; {_HEADERS_LENGTH:,} are allowed")
    values_by_name: dict[str, str] = {}
    entries = text.replace("\r\n", "\n").split("\n" if "\n" in text else ";")
    for number, entry in enumerate(filter(str.strip, entries), 1):
        name, colon, value = entry.partition(":")
        name, value = name.strip(), value.strip(" \t")
        if not colon or not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"entry {number} is not a header of the form Name: value")
        if name.lower() in _OWN or name.lower().startswith("proxy-") or _METHOD.fullmatch(name.lower()):
            raise ValueError(f"{name} is not an extra header: it would change what a request is, or who sends it")
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"the value of {name} is empty, or contains a character that a header cannot carry")
        if name.lower() in map(str.lower, values_by_name):
            raise ValueError(f"{name} is there twice")
        values_by_name[name] = value
    if len(values_by_name) > MOST_HEADERS:
        raise ValueError(f"has {len(values_by_name)} headers; {MOST_HEADERS} are allowed")
    return values_by_name
