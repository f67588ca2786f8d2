"""A console text to requests: lines of method and path with optional JSON bodies, and comments (E26)."""

from __future__ import annotations

from dragoman_api import ConsoleRequest, HttpRequest
from dragoman_api.kit.console_text import ConsoleReader, RestLine, ndjson
from dragoman_elasticsearch import read_or_write
from dragoman_elasticsearch.http_requests import NDJSON

_MANY_ROWS = (["_bulk"], ["_msearch"])


def parse(text: str) -> list[ConsoleRequest]:
    """Split a console text into requests.

    Comments and byte order marks are removed: the server would store them with the document, and its later
    answers would be invalid JSON.

    Raises:
        ConsoleSyntaxError: With line and column, both from 1.
    """
    reader = ConsoleReader(text, comments=("#", "//", "/*"), literals=True)
    requests: list[ConsoleRequest] = []
    while reader.skip():
        line = reader.rest_line()
        if line is None:
            raise reader.error(reader.at, "expected a method and a path: GET /_search")
        request = _request(reader, line)
        writes = read_or_write.may_write(request.method, request.path, request.body or "")
        requests.append(ConsoleRequest(request=request, writes=writes, line=reader.line(line.at)))
    return requests


def _request(reader: ConsoleReader, line: RestLine) -> HttpRequest:
    path, values = reader.path(line), reader.values()
    if len(values) > 1 or (values and read_or_write.segments(path)[-1:] in _MANY_ROWS):
        return HttpRequest(line.method, path, ndjson(reader, line, values), NDJSON)
    return HttpRequest(line.method, path, values[0] if values else None)
