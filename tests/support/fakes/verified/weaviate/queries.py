"""GraphQL: every operator on every type, sorts, pages, cells, and what is refused."""

# ruff: noqa: E501 - one request on one line is what makes it a table

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fakes.verified.weaviate.asks import KINDS, TOKENIZATIONS, Ask, graphql, uid

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCALAR = {
    "int": "valueInt", "number": "valueNumber", "boolean": "valueBoolean", "date": "valueDate", "uuid": "valueText",
    "text": "valueText",
}  # fmt: skip
_COMPARISONS = ("Equal", "NotEqual", "GreaterThan", "GreaterThanEqual", "LessThan", "LessThanEqual")
_VALUES: dict[str, list[Any]] = {
    "int": [1, 7, 2**31, 2**53],
    "number": [1.5, 0, -0.1],
    "boolean": [True, False],
    "date": ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.1Z", "1500-06-01T12:00:00.123456789Z", "2020-02-29T00:00:00Z"],
    "uuid": [uid(500), uid(500).upper(), uid(499)],
}  # fmt: skip
_TEXTS = [
    "Hello World", "hello", "World hello", "spaced", "  spaced  ", "the", "the hello", "", "@", "émoji", "😀", "STRASSE",
    "foo@bar.com", "Line1", "a*b?c", "hel", "quote \" back \\ tab\t end",
]  # fmt: skip
_LIKES = [
    "hello", "hello*", "*ello", "*ell*", "H*", "h?llo", "*@*", "*.*", "* *", "*O B*", "Line1*", "*ine*", "*1\n*", "foo* ",
    "", "@", "*", "*o w*", "hello world", "*\\**", "*😀*", "*bar*",
]  # fmt: skip


def clause(path: str | list[str], operator: str, **value: Any) -> str:
    """Write one clause."""
    ((name, given),) = value.items()
    return (
        f"{{path:{json.dumps([path] if isinstance(path, str) else path)} operator:{operator} {name}:{_literal(given)}}}"
    )


def _literal(value: Any) -> str:
    return value if isinstance(value, str) and value.startswith("\0") else json.dumps(value, ensure_ascii=False)


def found(where: str, name: str = "") -> Ask:
    """Ask which objects match; all of them fit in the page, so that nothing stops early."""
    return graphql(f"{{ Get {{ VfDoc(where:{where} limit:100) {{ _additional {{ id }} }} }} }}", name or where)


def _operators() -> Iterator[Ask]:
    for name, kind in KINDS.items():
        base = kind.removesuffix("[]")
        if base not in _VALUES:
            continue
        for operator in _COMPARISONS:
            for value in _VALUES[base]:
                yield found(clause(name, operator, **{_SCALAR[base]: value}))
        for operator in ("ContainsAny", "ContainsAll", "ContainsNone"):
            for values in (_VALUES[base][:1], _VALUES[base], _VALUES[base][:2]):
                yield found(clause(name, operator, **{_SCALAR[base]: values}))
    for name in ("range", "both"):
        for operator in _COMPARISONS:
            yield found(clause(name, operator, valueInt=2))
    for name in (*TOKENIZATIONS, "only"):
        for value in _TEXTS:
            yield found(clause(name, "Equal", valueText=value))
        for value in ("hello", "Hello World", "the"):
            yield found(clause(name, "NotEqual", valueText=value))
        for pattern in _LIKES:
            yield found(clause(name, "Like", valueText=pattern))
        for operator in ("ContainsAny", "ContainsAll", "ContainsNone"):
            for values in (["hello"], ["hello", "the"], ["Hello World", "émoji"], ["the"]):
                yield found(clause(name, operator, valueText=values))
        yield found(clause(name, "GreaterThan", valueText="m"))
    for value in ("red", "Red car", "blue"):
        yield found(clause("ts", "Equal", valueText=value))
        yield found(clause("ts", "NotEqual", valueText=value))
        yield found(clause("ts", "Like", valueText=f"*{value[1:]}*"))
        yield found(clause("ts", "ContainsAll", valueText=[value, "blue"]))


def _states() -> Iterator[Ask]:
    names = (
        "w",
        "f",
        "i",
        "n",
        "b",
        "d",
        "u",
        "ts",
        "is",
        "us",
        "geo",
        "phone",
        "blob",
        "ref",
        "o",
        "noidx",
        "range",
        "none",
    )
    for name in (*names, "only", "both"):
        for absent in (True, False):
            yield found(clause(name, "IsNull", valueBoolean=absent))
        for operator, value in (("Equal", 0), ("GreaterThan", 0), ("Equal", 5), ("NotEqual", 0), ("LessThanEqual", 2)):
            yield found(clause(f"len({name})", operator, valueInt=value))
    for operator in ("Equal", "GreaterThan", "NotEqual", "LessThan"):
        yield found(clause("ref", operator, valueInt=1))


def _ids() -> Iterator[Ask]:
    for path in ("id", "_id"):
        for operator in (*_COMPARISONS, "Like"):
            for value in (uid(3), uid(3).upper(), "00000000-0000-0000-4", "", "0*4"):
                yield found(clause(path, operator, valueText=value))
        yield found(clause(path, "ContainsAny", valueText=[uid(3), uid(4), uid(77)]))
        yield found(clause(path, "ContainsNone", valueText=[uid(3), uid(4), uid(77)]))
    yield found(clause("id", "Equal", valueInt=3))
    yield found(clause("_creationTimeUnix", "GreaterThan", valueText="1"))
    yield found(clause("_creationTimeUnix", "LessThan", valueDate="2020-01-01T00:00:00Z"))
    yield found(clause("_lastUpdateTimeUnix", "GreaterThan", valueText="x"))
    yield found(clause("_lastUpdateTimeUnix", "GreaterThan", valueInt=5))
    yield found(clause("_lastUpdateTimeUnix", "GreaterThan", valueDate="2024-01-01"))


def _combined() -> Iterator[Ask]:
    one, two = clause("i", "GreaterThan", valueInt=2), clause("w", "Like", valueText="h*")
    none, stop = clause("u", "NotEqual", valueText=uid(500)), clause("w", "Equal", valueText="the")
    for operator in ("And", "Or"):
        for parts in ((one, two), (one, one), (one,), (none, two), (none, one, two), (stop, two)):
            yield found(f"{{operator:{operator} operands:[{' '.join(parts)}]}}")
        yield found(f"{{operator:Not operands:[{{operator:{operator} operands:[{one} {none}]}}]}}")
    for part in (one, two, none, clause("range", "Equal", valueInt=2), clause("f", "Like", valueText="*ine*")):
        yield found(f"{{operator:Not operands:[{part}]}}")
        yield found(f"{{operator:Not operands:[{{operator:Not operands:[{part}]}}]}}")
        yield found(f"{{operator:And operands:[{{operator:Not operands:[{part}]}} {one}]}}")
    yield found(f"{{operator:Not operands:[{one} {two}]}}")
    yield found("{operator:And operands:[]}")
    yield found("{operator:And}")
    yield found(f'{{operator:And path:["i"] operands:[{one}]}}')
    yield found(f"{{operator:And valueInt:1 operands:[{one}]}}")
    yield found(
        '{path:["geo"] operator:WithinGeoRange valueGeoRange:{geoCoordinates:{latitude:52 longitude:5} distance:{max:50000}}}'
    )
    yield found(clause(["ref", "VfTarget", "name"], "Equal", valueText="second"))
    yield found(clause(["ref", "VfTarget"], "Equal", valueText="second"))
    yield found(clause(["ref", "Nope", "name"], "Equal", valueText="second"))


def _refused() -> Iterator[Ask]:
    for name in ("i", "n", "b", "d", "u", "ts", "geo", "phone", "blob", "ref", "o", "oo", "w", "noidx", "none", "nope"):
        for member, value in (
            ("valueInt", 1),
            ("valueText", "x"),
            ("valueNumber", 1.5),
            ("valueBoolean", True),
            ("valueDate", "x"),
        ):
            yield found(clause(name, "Equal", **{member: value}))
    for value in (2**63, 1.5, "1"):
        yield found(clause("i", "Equal", valueInt=value))
    for values in ([1, 1.5], [2**70, 1], []):
        yield found(clause("i", "ContainsAny", valueInt=values))
    yield found(clause("i", "ContainsAny", valueInt=1))
    yield found(clause("w", "ContainsAny", valueText="x"))
    yield found(clause("w", "Equal", valueText=["x"]))
    yield found(clause("i", "Equal", valueInt=[1]))
    yield found(clause("u", "Like", valueText="x*"))
    yield found(clause("u", "Equal", valueText="nope"))
    yield found(clause("d", "Equal", valueDate="2024-01-01"))
    yield found(clause("d", "IsNull", valueText="x"))
    yield found(clause("len(w)", "Equal", valueText="x"))
    yield found(clause("len(w)", "GreaterThan", valueInt=-1))
    yield found(clause("w", "Regex", valueText="x"))
    for path in ('t"]}}', "a b", "", "o.a", "oo[1].x"):
        yield found(clause(path, "Equal", valueText="x"))
    yield found('{path:[] operator:Equal valueText:"x"}')
    yield found('{path:["w"] operator:Equal}')
    yield found('{operator:Equal valueText:"x"}')
    yield found('{path:["w"] valueText:"x"}')
    plain = "{ Get { VfPlain(where:%s) { i } } }"
    for where in (
        clause("i", "IsNull", valueBoolean=True),
        clause("len(t)", "Equal", valueInt=1),
        clause("_creationTimeUnix", "GreaterThan", valueText="1"),
    ):
        yield graphql(plain % where)
        yield graphql(f"{{ Aggregate {{ VfPlain(where:{where}) {{ meta {{ count }} }} }} }}")


def _sorts() -> Iterator[Ask]:
    names = (
        "w",
        "f",
        "i",
        "n",
        "b",
        "d",
        "u",
        "ts",
        "is",
        "ns",
        "ds",
        "bs",
        "us",
        "geo",
        "phone",
        "blob",
        "ref",
        "o",
        "nope",
    )
    for name in (*names, "_id", "id", "_creationTimeUnix", "range", "none"):
        for order in ("asc", "desc"):
            sort = f'[{{path:["{name}"] order:{order}}} {{path:["_id"]}}]'
            yield graphql(f"{{ Get {{ VfDoc(sort:{sort} limit:100) {{ _additional {{ id }} }} }} }}")
    yield graphql('{ Get { VfDoc(sort:{path:["i"]}) { i } } }')
    yield graphql('{ Get { VfDoc(sort:[{path:["i"] order:up}]) { i } } }')
    yield graphql("{ Get { VfDoc(sort:[{path:[]}]) { i } } }")
    yield graphql('{ Get { VfDoc(sort:[{path:["ref" "VfTarget" "name"]}]) { i } } }')
    yield graphql('{ Get { VfDoc(sort:[{path:["nope"]} {path:["u"]}]) { i } } }')


_ALL = (_operators, _states, _ids, _combined, _refused, _sorts)
QUERIES = list({each.name: each for part in _ALL for each in part()}.values())
