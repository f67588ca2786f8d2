"""A console text to requests: lines of method and path with optional JSON bodies, and comments (E26)."""

from __future__ import annotations

import json
import re
from itertools import chain
from urllib.parse import quote

import msgspec

from dragoman_api import ConsoleRequest, HttpRequest
from dragoman_api.errors import ConsoleSyntaxError
from dragoman_elasticsearch import read_or_write
from dragoman_elasticsearch.http_requests import NDJSON

_TOKEN = re.compile(
    r"""
    (?P<request> ^[^\S\n]* (?P<method>GET|POST|PUT|DELETE|HEAD|PATCH|OPTIONS)
                 (?: [^\S\n]+ (?P<path> (?![\#{] | //\s) \S+ ) )? (?=\s|$) )
    | \"{3} (?P<literal>.*?) \"{3}
    | (?P<comment> \#[^\n]* | //[^\n]* | /\*.*?\*/ )
    | (?P<open> \"{3} | /\* )
    | (?P<string> " (?: [^"\\\n] | \\[^\n] )*+ "? )
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"//|[A-Za-z][A-Za-z0-9+.-]*://")
_VISIBLE = "".join(map(chr, range(0x21, 0x7F))).replace("#", "")
# Digits stay text: Python refuses integers of more than 4,300 digits.
_decoder = json.JSONDecoder(parse_int=str, parse_float=str)


def parse(text: str) -> list[ConsoleRequest]:
    """Split a console text into requests.

    Comments and byte order marks are removed: the server would store them with the document, and its later
    answers would be invalid JSON.

    Raises:
        ConsoleSyntaxError: With line and column, both from 1.
    """
    text = text.removeprefix("\ufeff")
    requests: list[ConsoleRequest] = []
    start, body, head = 0, "", None
    for token in chain(_TOKEN.finditer(text), [None]):
        body += text[start : token.start() if token else len(text)]
        if token is None or token["request"] is not None:
            requests += _finished(text, head, body)
            head, body = token, ""
        elif token["open"] is not None:
            raise _error(text, token.start(), f"{token['open']} has no end")
        else:
            body += _replacement(token)
        start = token.end() if token else len(text)
    return requests


def _error(text: str, at: int, reason: str) -> ConsoleSyntaxError:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return ConsoleSyntaxError(f"line {line}, column {column}: {reason}", details={"line": line, "column": column})


def _replacement(token: re.Match[str]) -> str:
    """Return the replacement of a string or a comment; line breaks stay, so that errors keep their line."""
    if token["string"] is not None:
        return token[0]
    lines = "\n" * token[0].count("\n")
    if token["literal"] is not None:
        return json.dumps(token["literal"], ensure_ascii=False) + lines
    # Keep the column of what follows a comment.
    return lines + " " * len(token[0].rpartition("\n")[2]) if token[0].startswith("/*") else ""


def _finished(text: str, head: re.Match[str] | None, body: str) -> list[ConsoleRequest]:
    if head is None:
        if body.strip():
            raise _error(text, len(body) - len(body.lstrip()), "expected a method and a path: GET /_search")
        return []
    method, path = head["method"].upper(), _path(text, head)
    values = _values(text, head, body)
    content = body.strip() or None
    kind = "application/json"
    if len(values) > 1 or (values and read_or_write.segments(path)[-1:] in (["_bulk"], ["_msearch"])):
        content, kind = "".join(f"{value}\n" for value in values), NDJSON
    request = HttpRequest(method, path, content, kind)
    line = text.count("\n", 0, head.start("method")) + 1
    return [ConsoleRequest(request=request, writes=read_or_write.may_write(method, path, content or ""), line=line)]


def _path(text: str, head: re.Match[str]) -> str:
    given = head["path"] or "/"
    if _ELSEWHERE.match(given):  # credentials must not go to another host
        reason = "a path begins with one '/': requests go to the connection's host only"
        raise _error(text, head.start("path"), reason)
    try:
        encoded = quote(given, safe=_VISIBLE).rstrip("?")
    except UnicodeEncodeError:
        raise _error(text, head.start("path"), "the path is not valid Unicode") from None
    return encoded if encoded.startswith("/") else f"/{encoded}"


def _values(text: str, head: re.Match[str], body: str) -> list[str]:
    """Return the JSON values of a body, each on one line if there are several."""
    values: list[str] = []
    at = ends = 0
    while (at := len(body) - len(body[at:].lstrip())) < len(body):
        if values and "\n" not in body[ends:at]:
            raise _at(text, head, body, at, "a second JSON value on one line")
        try:
            _, ends = _decoder.raw_decode(body, at)
            value = body[at:ends]
            value.encode()
        except json.JSONDecodeError as error:
            raise _at(text, head, body, error.pos, f"the body is not valid JSON: {error.msg}") from None
        except (RecursionError, UnicodeEncodeError) as error:
            raise _at(text, head, body, at, f"the body cannot be sent: {error}") from None
        values.append(msgspec.json.format(value, indent=-1) if "\n" in value else value)
        at = ends
    return values


def _at(text: str, head: re.Match[str], body: str, at: int, reason: str) -> ConsoleSyntaxError:
    """Build an error at a place of the body, which has the text's lines and begins after the path."""
    before = body[:at]
    if (lines := before.count("\n")) == 0:
        return _error(text, head.end() + at, reason)
    start = head.end()
    for _ in range(lines):
        start = text.index("\n", start) + 1
    return _error(text, start + len(before) - before.rfind("\n") - 1, reason)
