"""GraphQL: cells, documents of every shape, limits, strings, counts, and what is refused before anything is read."""

# ruff: noqa: E501 - one request on one line is what makes it a table

from __future__ import annotations

from typing import TYPE_CHECKING

from fakes.verified.weaviate.asks import KINDS, OBJECTS, Ask, graphql, post, uid
from fakes.verified.weaviate.queries import clause

if TYPE_CHECKING:
    from collections.abc import Iterator


def _cells() -> Iterator[Ask]:
    nested = "a x is deep { c k }"
    phone = "input internationalFormatted nationalFormatted national valid countryCode defaultCountry"
    scalars = " ".join(name for name in KINDS if name not in ("geo", "phone", "ref"))
    whole = (
        f"w l s f g {scalars} geo {{ latitude longitude }} phone {{ {phone} }} o {{ {nested} }} oo {{ {nested} }}"
        " ref { ... on VfTarget { name _additional { id } } } noidx range both only none"
        " _additional { id vector creationTimeUnix lastUpdateTimeUnix score explainScore certainty distance }"
    )
    yield graphql(f'{{ Get {{ VfDoc(limit:{len(OBJECTS)} sort:[{{path:["_id"]}}]) {{ {whole} }} }} }}', "all cells")
    yield graphql("{ Get { VfNamed(limit:9) { t _additional { id vector vectors { one two } } } } }")
    yield graphql(
        "{ Get { VfDoc(limit:2) { x: w y: w __typename ref { __typename ... on VfTarget { n: name } } } __typename } }"
    )
    yield graphql("query Q { Get { VfDoc(limit:1) { i } } }")
    yield post(
        "operation name",
        "/graphql",
        {"query": "query A { Get { VfDoc(limit:1) { i } } } query B { Get { VfPlain { i } } }", "operationName": "B"},
    )
    yield post(
        "no operation name",
        "/graphql",
        {"query": "query A { Get { VfDoc(limit:1) { i } } } query B { Get { VfPlain { i } } }"},
    )
    yield post(
        "unknown operation name",
        "/graphql",
        {"query": "query A { Get { VfDoc(limit:1) { i } } }", "operationName": "B"},
    )
    yield graphql('{ Get { VfDoc(limit:1) { i } VfPlain(where:{path:["nope"] operator:Equal valueInt:1}) { i } } }')
    yield graphql("{ Get { VfDoc(limit:1) { i } } Aggregate { VfDoc { meta { count } } } }")
    yield post(
        "a variable",
        "/graphql",
        {
            "query": 'query($v:IntGetObjectsVfDoc){ Get { VfDoc(limit:9 where:{path:["i"] operator:Equal valueInt:$v}) { i } } }',
            "variables": {"v": 7},
        },
    )
    yield post(
        "a limit as a variable",
        "/graphql",
        {"query": "query($l:Int){ Get { VfDoc(limit:$l) { i } } }", "variables": {"l": 1}},
        alike="head",
    )
    yield graphql("query { Get { VfDoc(limit:1) { ...F } } } fragment F on VfDoc { i }", alike="head")
    yield graphql('{ Get { VfDoc(limit:9 sort:[{path:["_id"]}]) { ref { ...T } } } } fragment T on VfTarget { name }')


def _near() -> Iterator[Ask]:
    where = 'where:{path:["i"] operator:GreaterThan valueInt:0}'
    for arguments in (
        "limit:5 nearVector:{vector:[2, 0.1, 2]}", "limit:2 offset:1 nearVector:{vector:[2, 0.1, 2]}",
        f"limit:9 nearVector:{{vector:[2, 0.1, 2]}} {where}", f'limit:3 nearObject:{{id:"{uid(3)}"}}',
        f'limit:3 nearObject:{{id:"{uid(3)}"}} {where}', f'limit:3 nearObject:{{id:"{uid(999)}"}}',
        "limit:3 nearVector:{vector:[2, 0.1]}", 'limit:3 nearText:{concepts:["x"]}',
    ):  # fmt: skip
        yield graphql(f"{{ Get {{ VfDoc({arguments}) {{ _additional {{ id }} }} }} }}")
    for arguments in (
        "nearVector:{vector:[1, 2]}", 'nearVector:{vector:[1, 2] targetVectors:["one"]}',
        f'nearObject:{{id:"{uid(2)}" targetVectors:["one"]}}', f'nearObject:{{id:"{uid(1)}" targetVectors:["two"]}}',
        'nearVector:{vector:[1, 2] targetVectors:["three"]}', 'nearVector:{vector:[1] targetVectors:["two"]}',
    ):  # fmt: skip
        yield graphql(f"{{ Get {{ VfNamed(limit:3 {arguments}) {{ _additional {{ id }} }} }} }}")


def _limits() -> Iterator[Ask]:
    for arguments in (
        "limit:0", "limit:-1", "limit:10001", "limit:10000", "offset:3", "offset:9999 limit:2", "limit:3 offset:13",
        f'limit:3 after:"{uid(3)}"', 'limit:3 after:""', 'after:"x" limit:3', f'after:"{uid(3)}"',
        f'limit:3 offset:1 after:"{uid(3)}"', f'limit:3 offset:0 after:"{uid(3)}"',
        f'limit:3 sort:[{{path:["i"]}}] after:"{uid(3)}"', f'limit:10001 after:"{uid(3)}"',
        f'limit:3 after:"{uid(3)}" where:{clause("i", "GreaterThan", valueInt=1)}', "limit:1 limit:2", 'limit:"1"', "bogus:1",
        'tenant:"x"', "limit:1.5", "limit:2147483648", "where:1", "where:{bogus:1}", "limit:1 where:{}",
    ):  # fmt: skip
        yield graphql(f"{{ Get {{ VfDoc({arguments}) {{ _additional {{ id }} }} }} }}")
    for query in (
        "", "{", "{ Get }", "{ Get { VfDoc } }", "{ Get { VfDoc { } } }", "{ Get { VfDoc { nope } } }", "{ Get { vfDoc { i } } }",
        "{ Nope { x } }", "{ Get { VfDoc { i { x } } } }", "{ Get { VfDoc { geo } } }", "{ Get { VfDoc { _additional { vectors { one } } } } }",
        "mutation { x }", "subscription { x }", "{ Get { VfDoc(where:null) { i } } }", "{ Get { VfDoc(limit:1) { i nope nope2 } } }",
        "{ Get { VfDoc(limit:1) { ref { ... on VfPlain { i } } } } }", "# only\n", "{ Get { VfDoc(limit:1) {\n  i\n  nope\n} } }",
        "{ Aggregate { VfDoc { nope } } }", "{ Aggregate { VfDoc(limit:3) { meta { count } } } }", "{ Get { VfDoc(limit:1) { i } } } {",
        "query { Get { VfDoc(limit:1) { ...Nope } } }",
    ):  # fmt: skip
        yield graphql(query, f"query {query!r}")


def _strings() -> Iterator[Ask]:
    for text in (
        r"\u0068ello", r"caf\u00e9", r"\ud83d\ude00", r"\u{1F600}", r"\x", r"a\/b", r"\"", "\u0001", "\t", "a\nb", r"\u0001", "😀",
    ):  # fmt: skip
        where = f'{{path:["f"] operator:Like valueText:"*{text}*"}}'
        yield graphql(f"{{ Get {{ VfDoc(limit:100 where:{where}) {{ _additional {{ id }} }} }} }}", f"string {text!r}")
    block = '{path:["f"] operator:Equal valueText:"""hello"""}'
    yield graphql(f"{{ Get {{ VfDoc(limit:9 where:{block}) {{ _additional {{ id }} }} }} }}", "block string")


def _counts() -> Iterator[Ask]:
    for where in (
        clause("i", "GreaterThan", valueInt=2),
        clause("w", "Like", valueText="h*"),
        clause("u", "NotEqual", valueText=uid(500)),
        clause("geo", "IsNull", valueBoolean=True),
        clause("nope", "Equal", valueInt=1),
    ):
        yield graphql(f"{{ Aggregate {{ VfDoc(where:{where}) {{ meta {{ count }} }} }} }}")


DOCUMENTS = [*_cells(), *_near(), *_limits(), *_strings(), *_counts()]
