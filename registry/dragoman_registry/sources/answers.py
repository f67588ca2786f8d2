"""What kind of answer came from a web server, judged before anything is parsed or compared with a digest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from dragoman_api.errors import IndexInvalidError, RegistryError

if TYPE_CHECKING:
    from http.client import HTTPMessage
    from urllib.error import HTTPError

FORBIDDEN = 403
_SHOWN = 300  # maximum characters to show of a reason, which a server may have written
_SIGN_IN = "open it in a browser: a network's sign-in page or a proxy may have answered in place of the registry"
_PAGES = (b"<!doctype html", b"<html", b"<?xml")
_INDEX = ("catalog", "types", "advisories")
_STATUSES = {
    401: ("wants a user and a password", "let your own proxy add them; a registry's address holds none"),
    FORBIDDEN: ("is forbidden: the server answered 403", ""),
    407: ("cannot be read: a proxy wants a user and a password (HTTP 407)", ""),
    511: ("cannot be read: the network wants you to sign in (HTTP 511)", _SIGN_IN),
}


def unreachable(url: str, reason: object, *, hint: str = "", status: int | None = None) -> RegistryError:
    """Build the error of a file that could not be read, with the proxy if one is used.

    Args:
        url: Its address.
        reason: Why, as a clause after a colon.
        hint: What to do.
        status: The status of the answer, if one came.
    """
    return _failure(url, f"cannot be read: {str(reason)[:_SHOWN]}", hint=hint, status=status)


def of_status(url: str, path: str, error: HTTPError) -> RegistryError:
    """Build the error that the status of an unsuccessful answer stands for."""
    code, reason = error.code, str(error.reason)
    if code in (404, 410):
        return IndexInvalidError(f"{url} is missing from the registry (HTTP {code})", details={"path": path})
    if code in _STATUSES:
        clause, hint = _STATUSES[code]
        if code == FORBIDDEN:
            hint = f"ask the registry's operator for read access; on S3, to list it, too: curl -I {url}"
        return _failure(url, clause, hint=hint, status=code)
    hint = _SIGN_IN if 300 <= code <= 399 else ""
    return unreachable(url, f"HTTP {code} {reason}", hint=hint, status=code)


def is_missing(error: RegistryError) -> bool:
    """Return whether a file is missing, or may be: stores that hide their lists answer 403 for it."""
    return isinstance(error, IndexInvalidError) or error.details.get("status") == FORBIDDEN


def judge(url: str, status: int, headers: HTTPMessage) -> None:
    """Refuse an answer that cannot be a whole file as it is stored. Raises RegistryError."""
    if status != 200:
        raise unreachable(url, f"the server answered HTTP {status} instead of the file", status=status)
    encoding = str(headers.get("Content-Encoding", "identity")).strip().lower()
    if encoding not in ("", "identity"):
        reason = f"the answer is compressed (Content-Encoding: {encoding[:40]}), which was not asked for"
        raise unreachable(url, reason, hint="let the server, or the proxy before it, send files as they are stored")


def judge_beginning(url: str, path: str, head: bytes, headers: HTTPMessage) -> None:
    """Refuse an answer whose first bytes are those of a web page, or of no file of that name. Raises RegistryError.

    Args:
        url: Its address.
        path: Its path in the registry.
        head: The first bytes.
        headers: The answer's.
    """
    beginning = head[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()[:64].lower()
    kind = str(headers.get("Content-Type", ""))[:60]
    is_json = path.endswith(".json") or path.rpartition("/")[2].rpartition(".")[2] in _INDEX
    if beginning.startswith(_PAGES) or ((is_json or path.endswith(".whl")) and beginning.startswith(b"<")):
        remark = f" ({kind})" if kind else ""
        raise unreachable(url, f"the answer is a web page{remark}, not the file", hint=_SIGN_IN)
    if is_json and beginning and not beginning.startswith((b"{", b"[")):
        raise unreachable(url, f"the answer is not JSON{f' but {kind}' if kind else ''}", hint=_SIGN_IN)


def _failure(url: str, clause: str, *, hint: str, status: int | None) -> RegistryError:
    details: dict[str, str | int] = {"url": url}
    route = url
    if status is not None:
        details["status"] = status
    if proxy := _proxy_of(url):
        address, variable = proxy
        route += f", through the proxy {address} of {variable},"
        details["proxy"] = address
        hint = hint or f"check {variable}, or except the host: NO_PROXY={urlsplit(url).hostname}"
    text = f"{route} {clause}"
    return RegistryError(text, code="registry-unreachable", hint=hint or "dragoman registry list", details=details)


def _proxy_of(url: str) -> tuple[str, str] | None:
    """Return the proxy of the environment for an address, without its password, and the variable that names it."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or not parts.hostname or proxy_bypass(parts.netloc):
        return None
    name = f"{parts.scheme}_proxy"
    variable = next(
        (spelling for spelling in (name, name.upper()) if os.environ.get(spelling)), "the system's settings"
    )
    place = urlsplit(proxy if "://" in proxy else f"http://{proxy}").netloc.rpartition("@")[2]
    return f"http://{place}"[:_SHOWN], variable
