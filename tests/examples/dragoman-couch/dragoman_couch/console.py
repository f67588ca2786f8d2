"""The console: requests as ``METHOD /path`` with a JSON body. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.kit.console_text import rest_requests

if TYPE_CHECKING:
    from dragoman_api import ConsoleRequest, HttpRequest

READS = ("_find", "_explain", "_all_docs", "_dbs_info", "_bulk_get")  # what POST asks without changing anything


def parse(text: str) -> list[ConsoleRequest]:
    """Split a text into requests; a line that begins with a method begins one."""
    return rest_requests(text, may_write)


def may_write(request: HttpRequest) -> bool:
    """Return whether a request may change something."""
    last = request.path.partition("?")[0].rpartition("/")[2]
    return request.method not in ("GET", "HEAD") and not (request.method == "POST" and last in READS)
