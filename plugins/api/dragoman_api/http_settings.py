"""What decides where an HTTP request goes: its path, and from the connection's form a path prefix and extra headers.

Each function reads one text, and raises ValueError with a reason that follows the name of the field.
"""

from __future__ import annotations

import re
from typing import NewType

MOST_HEADERS = 20
"""Maximum number of extra headers."""

LONGEST_PATH = 1 << 17
"""Maximum length of a request's path with its query, in characters."""

_PREFIX_LENGTH = 200
_HEADERS_LENGTH = 8 * 2**10  # servers refuse more than 8 KiB of headers, or of one
# Visible ASCII. yarl drops '#…' and a '?' without a query; some clients read '\\' as '/', so '/\\host' as '//host'.
_PATH = re.compile(r"/(?![/\\])[!\"$->@-\[\]-~]*(\?[!\"$-\[\]-~]+)?")
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


RequestPath = NewType("RequestPath", str)
"""The path of one request, with its query, as `request_path` returns it."""


def request_path(text: str) -> RequestPath:
    r"""Return the path of a request, with its query: joined to an address, it can only lead to that address.

    It begins with exactly one slash and holds visible ASCII characters, percent-encoded, without ``#`` and ``\``: no
    client reads a scheme, a user, a host or a port in it, and no terminal anything that is not visible.

    >>> request_path("/books/_doc/a%2Fb?refresh=true")
    '/books/_doc/a%2Fb?refresh=true'

    Raises:
        ValueError: It is no such path.
    """
    if len(text) > LONGEST_PATH:
        raise ValueError(f"the path has {len(text):,} characters; {LONGEST_PATH:,} are the most")
    if not _PATH.fullmatch(text):
        beginning = f"{text[:120]!r}{'…' if len(text) > 120 else ''}"
        raise ValueError(
            f"the path {beginning} cannot be sent: it must begin with one '/', be percent-encoded and not end in '?'"
        )
    return RequestPath(text)


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
