"""One request of a table, and the data that all tables begin with.

Every class begins with `Vf`, so that a shared server is left as it was found.
"""

# ruff: noqa: E501 - one request on one line is what makes it a table

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ask:
    """One request, who sends it, and what must be alike in two answers.

    `alike` is `all`, `set` (lists in any order), `status`, or `head` (the first line of each message). With `pages` the
    body is a query with `$offset` in it, sent again and again: alike must be the ids of all pages (`all`); where which
    rows are doubled is chance, their number and that some are (`doubled`); and that only if some are (`order`).
    """

    name: str
    method: str
    path: str
    body: Any = None
    who: str = "admin"
    alike: str = "all"
    media: str = "application/json"
    pages: int = 0

    def raw(self) -> bytes | None:
        """Return the body."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body, ensure_ascii=False).encode()


def uid(number: int) -> str:
    """Return the uuid of a test object, with letters in it; their order is not that of the numbers."""
    return f"00000000-0000-0000-{number * 7919 % 10_000:04d}-abc{number:09d}"


def post(name: str, path: str, body: Any, **more: Any) -> Ask:
    """Return a POST."""
    return Ask(name, "POST", f"/v1{path}", body, **more)


def get(path: str, name: str = "", **more: Any) -> Ask:
    """Return a GET, named after its path."""
    return Ask(name or f"GET {path}", "GET", f"/v1{path}", **more)


def graphql(query: str, name: str = "", **more: Any) -> Ask:
    """Return a query, named after itself."""
    return post(name or query, "/graphql", {"query": query}, **more)


def prop(name: str, kind: str, **more: Any) -> dict[str, Any]:
    """Return a property."""
    return {"name": name, "dataType": [kind], **more}


KINDS = {
    "i": "int", "n": "number", "b": "boolean", "d": "date", "u": "uuid", "ts": "text[]", "is": "int[]", "ns": "number[]",
    "bs": "boolean[]", "ds": "date[]", "us": "uuid[]", "geo": "geoCoordinates", "phone": "phoneNumber", "blob": "blob",
    "ref": "VfTarget", "uuid": "text", "vector": "text",
}  # fmt: skip
TOKENIZATIONS = {"w": "word", "l": "lowercase", "s": "whitespace", "f": "field", "g": "trigram"}
_NESTED = [
    prop("a", "int"),
    prop("x", "text"),
    prop("is", "int[]"),
    prop("deep", "object[]", nestedProperties=[prop("c", "text"), prop("k", "int")]),
]
_ALL = {"indexNullState": True, "indexPropertyLength": True, "indexTimestamps": True}
DOC = {
    "class": "VfDoc",
    "invertedIndexConfig": _ALL,
    "properties": [
        *(prop(name, "text", tokenization=how) for name, how in TOKENIZATIONS.items()),
        *(prop(name, kind) for name, kind in KINDS.items()),
        prop("o", "object", nestedProperties=_NESTED),
        prop("oo", "object[]", nestedProperties=_NESTED),
        prop("noidx", "int", indexFilterable=False),
        prop("range", "int", indexFilterable=False, indexRangeFilters=True),
        prop("both", "int", indexRangeFilters=True),
        prop("only", "text", indexFilterable=False),
        prop("none", "text", indexFilterable=False, indexSearchable=False),
    ],
}
_PLAIN = {"class": "VfPlain", "properties": [prop("i", "int"), prop("t", "text")]}
_NAMED = {
    "class": "VfNamed",
    "properties": [prop("t", "text")],
    "vectorConfig": {
        "one": {"vectorizer": {"none": {}}, "vectorIndexType": "flat"},
        "two": {"vectorizer": {"none": {}}},
    },
}


def link(number: int, of_class: str = "VfTarget") -> dict[str, str]:
    """Return a reference."""
    return {"beacon": f"weaviate://localhost/{of_class}/{uid(number)}"}


def _texts(text: str) -> dict[str, str]:
    return {**dict.fromkeys(TOKENIZATIONS, text), "only": text}


OBJECTS: list[dict[str, Any]] = [
    {**_texts("Hello World"), "i": 1, "n": 1.5, "b": True, "d": "2024-01-01T00:00:00Z", "u": uid(500), "noidx": 1, "range": 1},
    {**_texts("hello"), "i": 2, "n": 2, "b": False, "d": "2024-01-01T01:00:00.100+01:00", "u": uid(501), "range": 2, "both": 2},
    {**_texts("  spaced  "), "i": 2**31 - 1, "n": 1e21, "d": "1500-06-01T12:00:00.123456789Z", "both": 3},
    {**_texts("Line1\nLine2 foo@bar.com"), "i": 2**31, "n": -0.1, "d": "9999-12-31T23:59:59Z"},
    {**_texts("the of and"), "i": 2**53, "n": 0},
    {**_texts(""), "i": -(2**31) - 1, "ts": [], "is": [], "us": []},
    {**_texts("émoji 😀 Straße"), "i": -5, "ts": ["red car", "blue"], "is": [1, 2**40], "ns": [1, 2.5], "bs": [True, False]},
    {**_texts("a*b?c"), "ts": ["Red"], "is": [3], "ds": ["2024-01-01T00:00:00Z", "2020-02-29T00:00:00Z"], "us": [uid(500)]},
    {"geo": {"latitude": 52.366667, "longitude": 4.9}, "phone": {"input": "+49 171 1234567"}, "blob": "aGVsbG8="},
    {"geo": {"latitude": -33.8, "longitude": 151.2}, "phone": {"input": "0171 1234567", "defaultCountry": "de"}},
    {"ref": [link(900)], "uuid": "a property", "vector": "another one", "i": 7},
    {"ref": [link(900), link(901)], "o": {"a": 2**40, "x": "in", "is": [1, 2**40], "deep": [{"c": "d", "k": 2**33}]}},
    {"oo": [{"a": 1}, {"x": "y", "deep": [{"c": "z"}]}], "o": {}, "i": 7},
    {},
    {**_texts("quote \" back \\ tab\t end"), "i": 3, "range": -1, "b": True},
]  # fmt: skip

SETUP = [
    post("make VfTarget", "/schema", {"class": "VfTarget", "properties": [prop("name", "text")]}),
    *(post(f"make {each['class']}", "/schema", each) for each in (DOC, _PLAIN, _NAMED)),
    *(
        post(f"put target {number}", "/objects", {"class": "VfTarget", "id": uid(number), "properties": {"name": name}})
        for number, name in ((900, "first"), (901, "second"))
    ),
    *(
        post(f"put {number}", "/objects", {"class": "VfDoc", "id": uid(number), "properties": each, "vector": [number, 0.1, 2]})
        for number, each in enumerate(OBJECTS)
    ),
    post("put in VfPlain", "/objects", {"class": "VfPlain", "id": uid(0), "properties": {"i": 1, "t": "x"}}),
    post("put one vector", "/objects", {"class": "VfNamed", "id": uid(1), "vectors": {"one": [1, 2]}}),
    post("put two vectors", "/objects", {"class": "VfNamed", "id": uid(2), "vectors": {"one": [1, 2.5], "two": [0.1]}}),
]  # fmt: skip

CLASSES = ("VfDoc", "VfTarget", "VfPlain", "VfNamed", "VfOne", "VfThree", "VfA", "VfB", "VfAuto", "VfMt", "VfGrown")
