"""The console: requests as ``METHOD /path`` with a JSON body below. Pure."""

from __future__ import annotations

import json
import re

from dragoman_api import ConsoleRequest, HttpRequest
from dragoman_api.errors import ConsoleSyntaxError

_LINE = re.compile(r"(GET|HEAD|PUT|POST|DELETE)\s+(/\S*)\s*")
_READS = ("_find", "_explain", "_all_docs", "_dbs_info", "_bulk_get")  # what POST asks without changing anything


def parse(text: str) -> list[ConsoleRequest]:
    """Split a text into requests; a line that begins with a method begins one."""
    requests: list[ConsoleRequest] = []
    begun: list[tuple[int, str, str, list[str]]] = []
    for number, written in enumerate(text.splitlines(), 1):
        line = "" if written.startswith("#") else written  # a comment keeps its place
        if found := _LINE.fullmatch(line):
            begun.append((number, found[1], found[2], []))
        elif line.strip() and not begun:
            raise _fault("a request begins with a method and a path", number, 1)
        elif begun:
            begun[-1][3].append(line)
    for number, method, path, lines in begun:
        body = "\n".join(lines).strip() or None
        if body is not None:
            try:
                json.loads("\n".join(lines))
            except json.JSONDecodeError as error:
                raise _fault(error.msg, number + error.lineno, error.colno) from error
        last = path.partition("?")[0].rpartition("/")[2]
        writes = method not in ("GET", "HEAD") and not (method == "POST" and last in _READS)
        requests.append(ConsoleRequest(request=HttpRequest(method, path, body), writes=writes, line=number))
    return requests


def _fault(reason: str, line: int, column: int) -> ConsoleSyntaxError:
    return ConsoleSyntaxError(f"line {line}: {reason}", details={"line": line, "column": column})
