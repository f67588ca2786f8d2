"""Texts of a console: of both drivers, the variables and expectations in them, and what an answer is held against."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from dragoman.console import expectations, variables
from dragoman_api import Answer, AnswerKind, HttpRequest
from dragoman_api.errors import ConfigurationError, ConsoleSyntaxError
from dragoman_elasticsearch.connect import dialect_of
from dragoman_querydsl import console_text as querydsl
from dragoman_weaviate import console_text as weaviate

from ..grammar import RAW, SECTION, json_of, pasted, split
from ..target import Bounds, Broken, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hypothesis.strategies import SearchStrategy

    from dragoman_api import ConsoleRequest


_elasticsearch = partial(querydsl.parse, dialect=dialect_of())


def _parser(parse: Callable[[str], list[ConsoleRequest]]) -> Callable[[Path], Callable[[bytes], object]]:
    def run(data: bytes) -> None:
        requests = parse(data.decode(errors="surrogatepass"))
        for each in requests:
            path, body = each.request.path, each.request.body
            if (
                not path.startswith("/")
                or path.startswith("//")
                or not path.isascii()
                or not path.isprintable()
                or "#" in path
            ):
                raise Broken(f"path: {path!r}")
            if body is not None:
                body.encode()

    def safe(data: bytes) -> None:
        try:
            data.decode(errors="surrogatepass")
        except UnicodeDecodeError:
            data = data.decode(errors="replace").encode()
        run(data)

    return lambda _: safe


_TEXT = (
    "GET /_search", "POST /a/_doc", "get /", "PUT /a/_doc/1", "DELETE /a", "HEAD /", "GET //a.example/",
    "POST /_bulk", "GET http://a.example/",
    '{"query": {"match_all": {}}}', "{", "}", "[", "]", '"', '"""', "/*", "/* ", "*/", "//", "#", "\\",
    '{"a": """x\ny"""}',
    '{"index": {}}', "\n", "\n\n", "\t",
    '"a\\u0000"', "# expect status 200", "${x}", "$${", "GET /%2e%2e/", "GET /a?b#c", "\r\n", "\u2028", "\ufeff",
    *RAW[:8], *RAW[9:12],
)  # fmt: skip
_GRAPHQL = (
    "{ Get { Article { title _additional { id } } } }", "{ Aggregate { A { meta { count } } } }",
    "query Q { Get { A { t } } }", "fragment F on A { t }",
    "mutation { x }", "{", "}", '"', '"""', "#", "GET /v1/schema", "POST /v1/objects", "GET /v2",
    '{"query": "{Get{A{t}}}"}', '{"query": 1}', "[", "]", "\n", "(limit: 1)",
    "...F", "\\", "\u2028", "\ufeff", "where:{path:[\"a\"]}", *RAW[:8],
)  # fmt: skip


_HEADS = ("GET /_search", "POST /a/_doc", "POST /_bulk", "PUT /a/_doc/1")
_BODIES = ('{"query": {"match_all": {}}}', '{"index": {}}', '{"a": """x\ny"""}', "", *RAW)


def _requests() -> SearchStrategy[bytes]:
    """Make requests with bodies, so that what is wrong is not always in the first line."""
    bodies = st.lists(st.sampled_from(_BODIES), max_size=3).map("\n".join)
    each = st.tuples(st.sampled_from(_HEADS), bodies).map("\n".join)
    return st.lists(each, min_size=1, max_size=4).map(lambda all_: "\n".join(all_).encode(errors="surrogatepass"))


def _variables(_: Path) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        source, value = (part.decode(errors="replace") for part in split(data, 2))
        _look_for(value)
        variables.fill(source, {"x": value, "y": "1"})

    return run


def _look_for(value: str) -> None:
    """See that a value in a string is that string's, whatever it holds: it begins no member and no request."""
    [request] = _elasticsearch(variables.fill('POST /a\n{"k": "${x}"}\n', {"x": value}))
    if json.loads(request.request.body or "") != {"k": value}:
        raise Broken(f"value: it is not where it was put, but {request.request.body!r}")


def _expectations(_: Path) -> Callable[[bytes], object]:
    request = HttpRequest("GET", "/")

    def run(data: bytes) -> None:
        source, body = (part.decode(errors="replace") for part in split(data, 2))
        requests = _elasticsearch("GET /\n")
        for found in expectations.read(f"GET /\n{source}\n", requests):
            for verdict in expectations.judge(
                Answer(kind=AnswerKind.JSON, status=200, request=request, text=body), found
            ):
                str(verdict).encode()

    return run


_EXPECT = (
    "# expect status 200", "// expect a.b >= 5", "# expect hits.total.value = 1", "# expect a[0] contains \"x\"",
    "# expect a exists", "# expect a != ",
    "# expect a < 1e400", "# expect a = 1e999999999", "# expect a > 0e99999999999999999999", "# expect a = NaN",
    "# expect a > sNaN", "# expect a.a.a.a.a.a missing", "# expect a[999999999] missing",
    "/*", "*/", '"', "\n", "# expect a > " + "9" * 4_400, "# expect a = " + "[" * 5_000,
    "# expect " + "a." * 200 + "a exists", "# expect a > ٣", "# expect a > 1_0",
)  # fmt: skip
_ANSWER = {
    "hits": {"total": {"value": 3}},
    "a": {"b": 5, "a": {"a": {"a": "x"}}},
    "a.b": [1, 2],
    "c": ["1", "NaN", 10**30],
}


_MEANT = (ConfigurationError, ConsoleSyntaxError)
TARGETS = (
    Target(name="console-elasticsearch", parses="dragoman_querydsl.console_text:parse",
    make=_parser(_elasticsearch),
           grammar=lambda: st.one_of(pasted(_TEXT, glue=("\n", "\n", " ", "")), _requests()), allowed=_MEANT),
    Target(name="console-weaviate", parses="dragoman_weaviate.console_text:parse", make=_parser(weaviate.parse),
           grammar=lambda: pasted(_GRAPHQL, glue=("\n", "\n", " ", "")), allowed=_MEANT),
    Target(name="variables", parses="dragoman.console.variables:fill", make=_variables, allowed=_MEANT,
           grammar=lambda: st.tuples(pasted((*_TEXT[:30], "${y}", "${", "}")), pasted(_TEXT,
           most=3)).map(SECTION.join)),
    Target(name="expectations", parses="dragoman.console.expectations:judge", make=_expectations, allowed=_MEANT,
           grammar=lambda: st.tuples(pasted(_EXPECT, most=6, glue=("\n", "\n", "")),
           json_of(_ANSWER)).map(SECTION.join),
           bounds=Bounds(mb_per_kb=1)),
)  # fmt: skip
