"""The requests by which the fake is compared with real servers, in the order in which they are sent.

Every index of the table begins with `vf-`, so that a shared server is left as it was found.
"""
# ruff: noqa: E501 - one request on one line is what makes it a table

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ask:
    """One request, on which releases it is sent, and which parts of the answers must be alike.

    `alike` is `all` (the whole body, volatile parts aside), `error` (types and root causes), `hits` (ids, sort
    values, total, failed shards), `items` (the status of each item of a bulk request) or `status`.
    """

    name: str
    method: str
    path: str
    body: Any = None
    alike: str = "all"
    since: tuple[int, ...] = (7, 10)
    until: tuple[int, ...] = (99,)
    media: str = "application/json"
    keep: tuple[tuple[str, str], ...] = ()

    def raw(self, kept: dict[str, str]) -> bytes | None:
        """Return the body, with what earlier answers gave (`$name`) put in."""
        if self.body is None:
            return None
        if isinstance(self.body, bytes):
            return self.body
        text = self.body if isinstance(self.body, str) else json.dumps(self.body, ensure_ascii=False)
        for name, value in kept.items():
            text = text.replace(f"${name}", value)
        return text.encode()

    def fits(self, version: tuple[int, ...]) -> bool:
        """Tell whether this release is asked."""
        return self.since <= version < self.until


def lines(*values: Any) -> str:
    """Return NDJSON."""
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


MAIN = {
    "settings": {"number_of_shards": 2, "number_of_replicas": 0},
    "mappings": {
        "properties": {
            "k": {"type": "keyword"},
            "t": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 10}}},
            "tx": {"type": "text"},
            "n": {"type": "integer"},
            "l": {"type": "long"},
            "f": {"type": "double"},
            "hf": {"type": "half_float"},
            "b": {"type": "boolean"},
            "d": {"type": "date"},
            "dn": {"type": "date_nanos"},
            "ip": {"type": "ip"},
            "bin": {"type": "binary"},
            "al": {"type": "alias", "path": "k"},
            "no": {"type": "keyword", "index": False, "doc_values": False},
            "nd": {"type": "keyword", "index": False},
            "nv": {"type": "keyword", "doc_values": False},
            "nu": {"type": "keyword", "null_value": "NULL"},
            "o": {"properties": {"x": {"type": "long"}}},
            "off": {"type": "object", "enabled": False},
            "ne": {
                "type": "nested",
                "properties": {
                    "a": {"type": "integer"},
                    "k": {"type": "keyword"},
                    "in": {"type": "nested", "properties": {"z": {"type": "integer"}}},
                },
            },
        }
    },
}
DOCS = [
    {"k": "a", "t": "Hello World", "tx": "The quick brown fox", "n": 1, "l": 2**53 + 1, "f": 1.5, "b": True,
     "d": "2024-01-05T10:00:00Z", "dn": "2024-01-05T10:00:00.123456789Z", "ip": "10.0.0.1",
     "ne": [{"a": 1, "k": "x"}, {"a": 2}], "no": "z", "nd": "z", "nv": "z", "o": {"x": 5}, "hf": 1.5},
    {"k": "B", "t": "hello", "tx": "A quick red fox", "n": 2, "l": 2**63 - 1, "f": -2.25, "b": False,
     "d": "2024-01-31", "ip": "10.0.0.20", "ne": {"a": 3, "k": "y"}, "nu": None, "off": {"q": 1}},
    {"k": ["c", "a"], "t": "", "n": [7, 3], "l": -(2**63), "d": "2024-02-01T00:00:00.000Z",
     "ne": [{"a": 5, "k": "x", "in": [{"z": 1}, {"z": 9}]}, {"a": 1, "k": "z"}]},
    {"k": "Ünder*s?", "t": "HELLO", "n": None, "tx": [], "d": "2025-06-30T23:59:59.999Z", "ne": []},
    {},
    {"k": "", "t": "a very long text that is not in the sub-field", "n": 2, "dn": "2023-12-31T00:00:00Z", "ip": "::1"},
]  # fmt: skip


def _search(name: str, body: Any, **more: Any) -> Ask:
    return Ask(name, "POST", more.pop("path", "/vf-a/_search"), body, more.pop("alike", "hits"), **more)


def _filter(name: str, query: Any, **more: Any) -> Ask:
    body = {"size": 50, "_source": False, "sort": ["_doc"], "query": query}
    return _search(f"filter: {name}", body, **more)


def _sort(name: str, sort: Any, **more: Any) -> Ask:
    return _search(f"sort: {name}", {"size": 50, "_source": False, "sort": sort}, **more)


def _text(name: str, text: str, **more: Any) -> Ask:
    return _filter(f"query_string {name}", {"query_string": {"query": text, "lenient": True}}, **more)


POINT = {"lat": 1, "lon": 2}
STRANGE: list[Any] = [
    None, [], [None], [[]], "", [""], "x", True, 1, 1.5, -1, 1e300, "1", "1.5", " 1 ", [1, None], [[1, 2], [3]], {"q": 1},
    [{"q": 1}, None], POINT, [POINT], [POINT, None], [None, POINT], [2, 1], [[2, 1], None], [None, [2, 1]], [[2, 1], [None]],
    "1,2", ["1,2", None], "POINT (2 1)", {"lat": 1}, {"lat": "1", "lon": "2"}, {"lat": 91, "lon": 2}, [200, 1], [2, 1, 3],
    [2, 1, None], [2, None], [2], {**POINT, "z": 3}, {"type": "Point", "coordinates": [2, 1]}, "u09", "u0!", "2024-01-01",
    "2024-13-01", "10.0.0.1", "::1", "10.0.0.0/8", "aGk=", "a b=", {"gte": 1, "lte": 2}, {"gte": 1}, {"gte": 2, "lte": 1},
    {"gte": None}, {"gte": 1, "z": 1}, {"gte": "x"}, "true", 2**63, -(2**63), 2**64, "9" * 30,
]  # fmt: skip
"""Values that fit few types, written to a field of each."""
TAKERS = (
    "byte", "long", "float", "double", "boolean", "date", "ip", "keyword", "text", "binary", "geo_point", "integer_range",
    "ip_range", "date_range",
)  # fmt: skip


def _strange(kind: str) -> Ask:
    writes = (line for at, value in enumerate(STRANGE) for line in ({"index": {"_id": str(at)}}, {kind: value}))
    return Ask(f"strange values: {kind}", "POST", "/vf-v/_bulk", lines(*writes), "items", media="application/x-ndjson")


SEED = [
    Ask("create", "PUT", "/vf-a", MAIN),
    Ask("create again", "PUT", "/vf-a", alike="error"),
    Ask("create a second", "PUT", "/vf-b", {
        "settings": {"number_of_shards": 1, "number_of_replicas": 0},
        "mappings": {"properties": {"k": {"type": "keyword"}, "n": {"type": "keyword"}, "z": {"type": "integer"}}},
        "aliases": {"vf-one": {}},
    }),
    Ask("create with flattened", "PUT", "/vf-f", {
        "settings": {"number_of_shards": 1, "number_of_replicas": 0}, "mappings": {"properties": {"fl": {"type": "flattened"}}},
    }, since=(7, 17)),
    Ask("bulk of flattened", "POST", "/vf-f/_bulk?refresh=true", lines(
        {"index": {"_id": "1"}}, {"fl": {"a": "x", "b": "y"}}, {"index": {"_id": "2"}}, {}, {"index": {"_id": "3"}}, {"fl": {"a": "w"}},
    ), media="application/x-ndjson", since=(7, 17)),
    Ask("create for half_float", "PUT", "/vf-h", {
        "settings": {"number_of_shards": 1, "number_of_replicas": 0}, "mappings": {"properties": {"hf": {"type": "half_float"}}},
    }),
    Ask("bulk of half_float", "POST", "/vf-h/_bulk?refresh=true", lines(
        *(line for at in range(20) for line in ({"index": {"_id": str(at)}}, {"hf": at / 4} if at % 3 else {}))
    ), "status", media="application/x-ndjson"),
    Ask("create with a bad name", "PUT", "/vf-A"),
    Ask("create with a bad type", "PUT", "/vf-x", {"mappings": {"properties": {"x": {"type": "nosuch"}}}}, "error"),
    Ask("create with a bad parameter", "PUT", "/vf-x", {"mappings": {"properties": {"x": {"type": "keyword", "foo": 1}}}}, "error"),
    Ask("create with a bad setting", "PUT", "/vf-x", {"settings": {"foo": 1}}, "error"),
    Ask("create with a bad key", "PUT", "/vf-x", {"foo": {}}, "status"),
    Ask("bulk", "POST", "/vf-a/_bulk?refresh=true", lines(
        *(line for at, doc in enumerate(DOCS, 1) for line in ({"index": {"_id": str(at)}}, doc))
    ), media="application/x-ndjson"),
    Ask("bulk on another", "POST", "/_bulk?refresh=true", lines(
        {"index": {"_index": "vf-b", "_id": "b1"}}, {"k": "a", "n": "1", "z": 4},
        {"create": {"_index": "vf-b", "_id": "b1"}}, {"k": "a"},
        {"create": {"_index": "vf-b", "_id": "b2"}}, {"k": "b", "n": "two", "z": 1},
        {"update": {"_index": "vf-b", "_id": "b2"}}, {"doc": {"z": 2}},
        {"update": {"_index": "vf-b", "_id": "nope"}}, {"doc": {"z": 2}},
        {"delete": {"_index": "vf-b", "_id": "nope"}},
        {"index": {"_index": "vf-b", "_id": "bad"}}, {"z": "abc"},
    ), media="application/x-ndjson"),
    Ask("bulk without the last newline", "POST", "/vf-a/_bulk", b'{"index":{"_id":"1"}}', media="application/x-ndjson"),
    Ask("bulk with a bad action", "POST", "/_bulk", lines({"foo": {"_id": "1"}}, {}), "error", since=(8,)),
    Ask("aliases", "POST", "/_aliases", {"actions": [
        {"add": {"index": "vf-a", "alias": "vf-both"}}, {"add": {"index": "vf-b", "alias": "vf-both"}},
    ]}),
]  # fmt: skip

LISTS = [
    Ask("root", "GET", "/", alike="all"),
    Ask("cat", "GET", "/_cat/indices/vf-*?format=json&h=index,docs.count,pri,rep,status,health&s=index"),
    Ask("cat: unknown columns vanish", "GET", "/_cat/indices/vf-*?format=json&h=nosuch"),
    Ask("cat: every column", "GET", "/_cat/indices/vf-*?format=json&s=index:desc"),
    Ask("cat aliases", "GET", "/_cat/aliases/vf-both?format=json&h=alias,index&s=index", alike="status"),
    Ask("mapping", "GET", "/vf-a/_mapping"),
    Ask("mapping by alias", "GET", "/vf-both/_mapping"),
    Ask("mapping of nothing", "GET", "/nosuch/_mapping"),
    Ask("field_caps", "POST", "/vf-a/_field_caps?fields=*", alike="caps"),
    Ask("field_caps of two", "POST", "/vf-a,vf-b/_field_caps?fields=*", alike="caps"),
    Ask("field_caps without fields", "POST", "/vf-a/_field_caps", alike="status"),
    Ask(
        "settings: default window",
        "GET",
        "/vf-a/_settings/index.max_result_window?include_defaults=true&flat_settings=true",
    ),
    Ask("settings: nothing set", "GET", "/vf-a/_settings/index.max_result_window?flat_settings=true"),
    Ask("resolve", "GET", "/_resolve/index/vf-*"),
    Ask("resolve nothing", "GET", "/_resolve/index/nosuch"),
    Ask("head", "HEAD", "/vf-a", alike="status"),
    Ask("head of nothing", "HEAD", "/nosuch", alike="status"),
    Ask("no handler", "PUT", "/vf-a/_foo/bar/baz", {}),
    Ask("unknown api", "GET", "/_nosuch"),
    Ask("unknown api below", "GET", "/_nosuch/x"),
    Ask("wrong method", "POST", "/_nosuch", alike="status"),
    Ask("unknown below an index", "POST", "/vf-a/_foo", {}),
    Ask("unknown parameter", "POST", "/vf-a/_search?nosuch=1", {}, "error"),
    Ask("no security", "GET", "/_security/_authenticate", alike="status"),
    Ask("text body", "POST", "/vf-a/_search", b"{}", media="text/plain"),
    Ask("bad json", "POST", "/vf-a/_search", b"{", "status"),
    Ask("unknown body key", "POST", "/vf-a/_search", {"foo": 1}, "error"),
    Ask("unknown body object", "POST", "/vf-a/_search", {"foo": {}}, "error"),
    Ask("unknown query", "POST", "/vf-a/_search", {"query": {"foo": {}}}, "error"),
    Ask("unknown query key", "POST", "/vf-a/_search", {"query": {"term": {"k": {"value": "a", "foo": 1}}}}, "error"),
    Ask("unknown bool key", "POST", "/vf-a/_search", {"query": {"bool": {"foo": []}}}, "status"),
    Ask("two queries", "POST", "/vf-a/_search", {"query": {"term": {"k": "a"}, "exists": {"field": "k"}}}, "error"),
    Ask("two fields", "POST", "/vf-a/_search", {"query": {"term": {"k": "a", "n": 1}}}, "error"),
    Ask("duplicate key", "POST", "/vf-a/_search", b'{"size":1,"size":2}', "status"),
    Ask("count with size", "POST", "/vf-a/_count", {"size": 1}, "error"),
    Ask("count", "POST", "/vf-a/_count", {"query": {"range": {"n": {"gte": 2}}}}),
    Ask("count nothing", "POST", "/nosuch/_count", {}),
]

FILTERS = [
    _filter("term keyword", {"term": {"k": "a"}}),
    _filter("term folded is ASCII only", {"term": {"k": {"value": "üNDER*S?", "case_insensitive": True}}}),
    _filter("term folded", {"term": {"k": {"value": "b", "case_insensitive": True}}}),
    _filter("term empty", {"term": {"k": ""}}),
    _filter("term on text looks at tokens", {"term": {"t": "Hello"}}),
    _filter("term on an ignored value", {"term": {"t.keyword": "a very long text that is not in the sub-field"}}),
    _filter("term number", {"term": {"n": 2}}),
    _filter("term number as text", {"term": {"n": "2.0"}}),
    _filter("term half number", {"term": {"n": 1.5}}),
    _filter("term bad number", {"term": {"n": "abc"}}, alike="all"),
    _filter("term out of range", {"term": {"n": 1099511627776}}, alike="error"),
    _filter("term folded on a number", {"term": {"n": {"value": 2, "case_insensitive": True}}}, alike="error"),
    _filter("term 64 bits", {"term": {"l": 2**53 + 1}}),
    _filter("term boolean", {"term": {"b": "true"}}),
    _filter("term bad boolean", {"term": {"b": "yes"}}, alike="error"),
    _filter("term date is the day", {"term": {"d": "2024-01-05"}}),
    _filter("term month is its first day", {"term": {"d": "2024-01"}}),
    _filter("term month rounded", {"term": {"d": "2024-01||/M"}}),
    _filter("term bad date", {"term": {"d": "abc"}}, alike="error"),
    _filter("term nanoseconds", {"term": {"dn": "2024-01-05T10:00:00.123456789Z"}}),
    _filter("nanoseconds want seconds", {"term": {"dn": "2024-01-05T10:00"}}, alike="error", since=(7, 17)),
    _filter("term ip", {"term": {"ip": "10.0.0.1"}}),
    _filter("term ip block", {"term": {"ip": "10.0.0.0/24"}}),
    _filter("range ip block", {"range": {"ip": {"gte": "10.0.0.0/24"}}}, alike="error"),
    _filter("term alias", {"term": {"al": "a"}}),
    _filter("term flattened key", {"term": {"fl.a": "x"}}, path="/vf-f/_search", since=(7, 17)),
    _filter("term flattened root", {"term": {"fl": "y"}}, path="/vf-f/_search", since=(7, 17)),
    _filter("term unmapped", {"term": {"zz": 1}}),
    _filter("term null", {"term": {"k": {"value": None}}}, alike="status"),
    _filter("term _id", {"term": {"_id": "1"}}),
    _filter("term _index expands", {"term": {"_index": "vf-*"}}),
    _filter("term not searchable", {"term": {"no": "z"}}, alike="error"),
    _filter("term without index", {"term": {"nd": "z"}}, alike="error"),
    _filter("term without doc values", {"term": {"nv": "z"}}),
    _filter("term null_value", {"term": {"nu": "NULL"}}),
    _filter("terms", {"terms": {"k": ["a", "B"]}}),
    _filter("terms of no list", {"terms": {"k": "a"}}, alike="error"),
    _filter("terms bad number", {"terms": {"n": [1, "x"]}}, alike="error"),
    _filter("terms _id", {"terms": {"_id": ["1", "3"]}}),
    _filter("ids", {"ids": {"values": ["1", "3"]}}),
    _filter("exists", {"exists": {"field": "n"}}),
    _filter("exists text counts the empty", {"exists": {"field": "t"}}),
    _filter("exists sub-field misses the long", {"exists": {"field": "t.keyword"}}),
    _filter("exists null_value", {"exists": {"field": "nu"}}),
    _filter("exists object", {"exists": {"field": "o"}}),
    _filter("exists nested parent", {"exists": {"field": "ne"}}),
    _filter("exists nested leaf at root", {"exists": {"field": "ne.a"}}),
    _filter("exists without index and values", {"exists": {"field": "no"}}),
    _filter("exists without index", {"exists": {"field": "nd"}}),
    _filter("exists without values", {"exists": {"field": "nv"}}),
    _filter("exists disabled", {"exists": {"field": "off"}}),
    _filter("exists binary", {"exists": {"field": "bin"}}),
    _filter("exists unmapped", {"exists": {"field": "zz"}}),
    _filter("exists _id", {"exists": {"field": "_id"}}),
    _filter("range number", {"range": {"n": {"gt": 1, "lte": 3}}}),
    _filter("range fraction on integer", {"range": {"n": {"gt": 1.5, "lt": 2.5}}}),
    _filter("range double", {"range": {"f": {"gte": -2.25, "lt": 1.5}}}),
    _filter("range bad number", {"range": {"n": {"gte": "abc"}}}, alike="error"),
    _filter("range date gt excludes the day", {"range": {"d": {"gt": "2024-01-05"}}}),
    _filter("range date lte includes the day", {"range": {"d": {"lte": "2024-01-05"}}}),
    _filter("range month", {"range": {"d": {"gte": "2024-01", "lte": "2024-01"}}}),
    _filter("range month by date math", {"range": {"d": {"gte": "2024-01||/M", "lt": "2024-01||+1M/M"}}}),
    _filter("range date with zone", {"range": {"d": {"gte": "2024-01-05T11:00:00", "time_zone": "+01:00"}}}),
    _filter("range date with format", {"range": {"d": {"gte": "31/01/2024", "format": "dd/MM/yyyy"}}}),
    _filter("range bad date", {"range": {"d": {"gte": "x"}}}, alike="error"),
    _filter("range keyword", {"range": {"k": {"gte": "a", "lt": "c"}}}),
    _filter("range text tokens", {"range": {"tx": {"gte": "r", "lt": "s"}}}),
    _filter("range boolean", {"range": {"b": {"gte": False}}}),
    _filter("range empty is exists", {"range": {"n": {}}}),
    _filter("range flattened needs both", {"range": {"fl.a": {"gte": "a"}}}, alike="error", path="/vf-f/_search", since=(7, 17)),
    _filter("range _id", {"range": {"_id": {"gte": "1"}}}, alike="status"),
    _filter("range _seq_no", {"range": {"_seq_no": {"gt": 0}}}),
    _filter("range bad key", {"range": {"n": {"foo": 1}}}, alike="error"),
    _filter("range of no object", {"range": {"n": 1}}, alike="error"),
    _filter("wildcard", {"wildcard": {"k": "*a*"}}),
    _filter("wildcard folded", {"wildcard": {"t.keyword": {"value": "HEL*", "case_insensitive": True}}}),
    _filter("wildcard folded is ASCII only", {"wildcard": {"k": {"value": "ü*", "case_insensitive": True}}}),
    _filter("wildcard escapes", {"wildcard": {"k": "Ünder\\*s\\?"}}),
    _filter("wildcard needless escape", {"wildcard": {"k": "\\a"}}),
    _filter("wildcard star matches empty", {"wildcard": {"k": "*"}}),
    _filter("wildcard empty pattern", {"wildcard": {"k": ""}}),
    _filter("wildcard on tokens", {"wildcard": {"tx": "qu*"}}),
    _filter("wildcard upper case on tokens", {"wildcard": {"tx": "Qu*"}}),
    _filter("wildcard number", {"wildcard": {"n": "1*"}}, alike="error"),
    _filter("wildcard date", {"wildcard": {"d": "1*"}}, alike="error"),
    _filter("wildcard _id", {"wildcard": {"_id": "1*"}}, alike="error"),
    _filter("wildcard flattened key", {"wildcard": {"fl.a": "x*"}}, alike="error", path="/vf-f/_search", since=(7, 17)),
    _filter("wildcard flattened root", {"wildcard": {"fl": "x*"}}, path="/vf-f/_search", since=(7, 17)),
    _filter("wildcard unmapped", {"wildcard": {"zz": "x*"}}),
    _filter("wildcard object", {"wildcard": {"o": "x*"}}),
    _filter("wildcard too long", {"wildcard": {"k": "*" + "a" * 315 + "*"}}, alike="status"),
    _filter("wildcard just short enough", {"wildcard": {"k": "*" + "a" * 314 + "*"}}),
    _filter("match_phrase", {"match_phrase": {"tx": "quick brown"}}),
    _filter("match_phrase order", {"match_phrase": {"tx": "brown quick"}}),
    _filter("match_phrase on keyword", {"match_phrase": {"k": "a"}}),
    _filter("must_not", {"bool": {"must_not": [{"term": {"k": "a"}}]}}),
    _filter("should", {"bool": {"should": [{"term": {"k": "a"}}, {"term": {"n": 2}}], "minimum_should_match": 1}}),
    _filter("should beside filter is free", {"bool": {"filter": [{"exists": {"field": "n"}}], "should": [{"term": {"k": "a"}}]}}),
    _filter("too many clauses", {"bool": {"should": [{"term": {"k": str(n)}} for n in range(1_025)]}}, alike="error"),
    _filter("nested", {"nested": {"path": "ne", "query": {"term": {"ne.a": 1}}}}),
    _filter("nested same element", {"nested": {"path": "ne", "query": {"bool": {"filter": [{"term": {"ne.a": 1}}, {"term": {"ne.k": "x"}}]}}}}),
    _filter("nested two elements", {"bool": {"filter": [
        {"nested": {"path": "ne", "query": {"term": {"ne.a": 1}}}}, {"nested": {"path": "ne", "query": {"term": {"ne.k": "x"}}}},
    ]}}),
    _filter("nested without the wrapper", {"term": {"ne.a": 1}}),
    _filter("nested outside negation", {"bool": {"must_not": [{"nested": {"path": "ne", "query": {"term": {"ne.k": "x"}}}}]}}),
    _filter("nested inside negation", {"nested": {"path": "ne", "query": {"bool": {"must_not": [{"term": {"ne.k": "x"}}]}}}}),
    _filter("nested inner path alone", {"nested": {"path": "ne.in", "query": {"term": {"ne.in.z": 9}}}}),
    _filter("nested in nested", {"nested": {"path": "ne", "query": {"nested": {"path": "ne.in", "query": {"term": {"ne.in.z": 9}}}}}}),
    _filter("nested has elements", {"nested": {"path": "ne", "query": {"exists": {"field": "ne"}}}}),
    _filter("nested root field inside", {"nested": {"path": "ne", "query": {"term": {"k": "a"}}}}),
    _filter("nested unmapped", {"nested": {"path": "zz", "query": {"match_all": {}}}}, alike="error"),
    _filter("nested unmapped ignored", {"nested": {"path": "zz", "query": {"match_all": {}}, "ignore_unmapped": True}}),
    _filter("nested on an object", {"nested": {"path": "o", "query": {"match_all": {}}, "ignore_unmapped": True}}, alike="status"),
]  # fmt: skip

TEXTS = [
    _text("word", "quick"),
    _text("two words", "quick red"),
    _text("and", "quick AND red"),
    _text("not", "NOT quick"),
    _text("signs", "+quick -red"),
    _text("field", "n:2"),
    _text("comparison", "n:>1"),
    _text("comparisons", "n:>=2 AND n:<7"),
    _text("range", "n:[2 TO 7}"),
    _text("open range", "n:[2 TO *]"),
    _text("phrase", 'tx:"quick brown"'),
    _text("keyword phrase", 'k:"a"'),
    _text("wildcard", "tx:qu*"),
    _text("wildcard lower-cased", "tx:QU*"),
    _text("question mark", "tx:f?x"),
    _text("parentheses", "(k:a OR k:B) AND n:2"),
    _text("exists", "_exists_:ip"),
    _text("star", "*"),
    _text("field star", "n:*"),
    _text("unmapped field", "nosuch:1"),
    _text("bad value is swallowed", "n:abc"),
    _text("nested leaf is not seen", "ne.a:1"),
    _text("empty", ""),
    _text("blank", "  "),
    _text("escaped", "k:Ünder\\*s\\?"),
    _text("operators without rank", "k:a OR k:B AND n:2"),
    _text("bad parenthesis", "k:(", alike="all"),
    _text("bad quote", 'k:"x', alike="status"),
    _text("bad operator", "AND", alike="status"),
    _text("bad range", "n:[1 TO", alike="status"),
    _filter("query_string strict and bad", {"query_string": {"query": "n:abc"}}, alike="error"),
    _filter("query_string bad key", {"query_string": {"query": "a", "foo": 1}}, alike="error"),
    *(
        Ask(
            f"validate {text}",
            "POST",
            "/vf-b/_validate/query?explain=true",
            {"query": {"query_string": {"query": text, "lenient": True}}},
        )
        for text in (
            "z:abc",
            "nosuch:1",
            "k:a AND n:two",
            "k:a n:two",
            'k:"a b"',
            "NOT k:a",
            "k:a*",
            "(k:a OR n:2) AND k:b",
        )
    ),
    Ask("validate a bad term", "POST", "/vf-b/_validate/query", {"query": {"term": {"z": "abc"}}}),
]

SORTS = [
    _sort("integer", [{"n": "asc"}, "_doc"]),
    _sort("integer descending", [{"n": "desc"}, "_doc"]),
    _sort("missing first", [{"n": {"order": "asc", "missing": "_first"}}, "_doc"]),
    _sort("missing first descending", [{"n": {"order": "desc", "missing": "_first"}}, "_doc"]),
    _sort("long keeps its digits", [{"l": "asc"}, "_doc"]),
    _sort("double", [{"f": "asc"}, "_doc"]),
    _sort("double descending", [{"f": "desc"}, "_doc"]),
    _sort("keyword", [{"k": "asc"}, "_doc"]),
    _sort("keyword descending", [{"k": "desc"}, "_doc"]),
    _sort("boolean", [{"b": "asc"}, "_doc"]),
    _sort("date", [{"d": "desc"}, "_doc"]),
    _sort("nanoseconds", [{"dn": "asc"}, "_doc"]),
    _sort("nanoseconds descending", [{"dn": "desc"}, "_doc"]),
    _sort("ip", [{"ip": "asc"}, "_doc"]),
    _sort("alias", [{"al": "asc"}, "_doc"]),
    _sort("flattened key", [{"fl.a": "asc"}, "_doc"], path="/vf-f/_search", since=(7, 17)),
    _sort("sub-field", [{"t.keyword": "asc"}, "_doc"]),
    _sort("half_float", [{"hf": "asc"}], path="/vf-h/_search"),
    _search(
        "sort: half_float with gaps and a full page", {"size": 5, "sort": ["hf"]}, path="/vf-h/_search", alike="error"
    ),
    _search(
        "sort: half_float as double",
        {"size": 5, "_source": False, "sort": [{"hf": {"numeric_type": "double"}}]},
        path="/vf-h/_search",
    ),
    _sort("_id", [{"_id": "asc"}], alike="error"),
    _sort("_index", [{"_index": "asc"}, "_doc"]),
    _sort("_seq_no", [{"_seq_no": "asc"}, "_doc"]),
    _sort("text", [{"tx": "asc"}], alike="all"),
    _sort("unmapped", [{"zz": "asc"}], alike="all"),
    _sort("unmapped with a type", [{"zz": {"order": "asc", "unmapped_type": "long"}}, "_doc"]),
    _sort("object", [{"o": "asc"}], alike="error"),
    _sort("nested parent", [{"ne": "asc"}], alike="error"),
    _sort("without doc values", [{"nv": "asc"}], alike="all"),
    _sort("nested leaf without its path", [{"ne.a": "asc"}], alike="error"),
    _sort("nested leaf", [{"ne.a": {"order": "asc", "nested": {"path": "ne"}}}, "_doc"]),
    _sort("nested leaf descending", [{"ne.a": {"order": "desc", "nested": {"path": "ne"}}}, "_doc"]),
    _sort("nested leaf with mode", [{"ne.a": {"order": "desc", "mode": "min", "nested": {"path": "ne"}}}, "_doc"]),
    _sort("nested leaf with filter", [{"ne.a": {"nested": {"path": "ne", "filter": {"term": {"ne.k": "z"}}}}}, "_doc"]),
    _sort("nested in nested", [{"ne.in.z": {"order": "desc", "nested": {"path": "ne.in"}}}, "_doc"]),
    _sort("nested_path", [{"ne.a": {"nested_path": "ne"}}], alike="status"),
    _sort("unknown option", [{"n": {"foo": 1}}], alike="status"),
    _sort("_score alone shows no values", ["_score"]),
    _sort("_shard_doc without a point in time", ["_shard_doc"], alike="status"),
    _search("mixed types", {"sort": ["n"], "size": 20}, path="/vf-a,vf-b/_search", alike="error"),
    _search("one index lacks the field", {"sort": ["z"], "size": 20, "_source": False}, path="/vf-a,vf-b/_search"),
    _search(
        "one index lacks the field, refused",
        {"sort": ["z"]},
        path="/vf-a,vf-b/_search?allow_partial_search_results=false",
        alike="error",
    ),
    _search("several indices", {"sort": [{"k": "asc"}], "size": 20, "_source": False}, path="/vf-both/_search"),
    _search("ties go by shard", {"size": 20, "_source": False}, path="/vf-a,vf-b/_search"),
]

PAGES = [
    _search("source as stored", {"query": {"ids": {"values": ["1", "3"]}}, "sort": ["_doc"]}, alike="all"),
    _search("source filtered", {"query": {"ids": {"values": ["3"]}}, "_source": ["ne.a", "k"]}, alike="all"),
    _search("source excluded", {"query": {"ids": {"values": ["3"]}}, "_source": {"excludes": ["ne", "d"]}}, alike="all"),
    _search("sequence numbers", {"query": {"ids": {"values": ["2"]}}, "seq_no_primary_term": True, "version": True}, alike="all"),
    _search("no stored fields", {"query": {"ids": {"values": ["2"]}}, "stored_fields": "_none_", "_source": False}, alike="all"),
    _search("doc values", {"query": {"ids": {"values": ["3"]}}, "_source": False, "docvalue_fields": ["k", "n", "d", "al"]}, alike="all"),
    _search("fields", {"query": {"ids": {"values": ["1"]}}, "_source": False, "fields": ["k", "n", "d", "ip"]}, alike="all"),
    _search("total off", {"track_total_hits": False, "size": 1, "_source": False}, alike="all"),
    _search("total bounded", {"track_total_hits": 2, "size": 0}, alike="all"),
    _search("window", {"from": 9_999, "size": 2}, alike="all"),
    _search("filter scores nothing", {"query": {"bool": {"filter": [{"term": {"k": "a"}}]}}, "_source": False}, alike="all"),
    _search("negative from", {"from": -1}, alike="status"),
    _search("negative size", {"size": -1}, alike="status"),
    _search("search_after without sort", {"search_after": [1]}, alike="all"),
    _search("search_after too short", {"search_after": [1], "sort": ["n", "k"]}, alike="all"),
    _search("search_after with from", {"search_after": [1], "sort": ["n"], "from": 1}, alike="error"),
    _search("search_after", {"search_after": [2], "sort": ["n"], "_source": False}),
    _search("search_after in words", {"search_after": ["2"], "sort": ["n"], "_source": False}),
    _search("search_after sentinel", {"search_after": ["Infinity", 0], "sort": ["f", "_seq_no"], "_source": False}),
    _search("search_after null", {"search_after": [None], "sort": ["k"], "_source": False}),
    _search("search_after null number", {"search_after": [None], "sort": ["n"]}, alike="status"),
    _search("search_after bad", {"search_after": ["x"], "sort": ["n"]}, alike="status"),
    _search("slice alone", {"slice": {"id": 0, "max": 2}}, alike="error"),
    _search("scroll with from", {"from": 1}, path="/vf-a/_search?scroll=1m", alike="all"),
    _search("scroll without total", {"track_total_hits": False}, path="/vf-a/_search?scroll=1m", alike="status"),
    _search("scroll too large", {"size": 10_001}, path="/vf-a/_search?scroll=1m", alike="error"),
    _search("preference", {"_source": False, "sort": ["_doc"]}, path="/vf-a/_search?preference=_shards:1"),
    _search("preference nowhere", {"_source": False}, path="/vf-a/_search?preference=_shards:99"),
    _search("size in the url", None, path="/vf-a/_search?size=1&sort=n:desc&_source=false"),
    _search("aggregation", {"size": 0, "aggs": {"by": {"terms": {"field": "k"}}, "top": {"max": {"field": "n"}}}}, alike="all"),
    Ask("filter_path", "POST", "/vf-a/_search?filter_path=hits.hits._id,_shards.total", {"size": 2, "sort": ["_doc"]}),
    Ask("filter_path excludes", "POST", "/vf-a/_count?filter_path=-_shards", {}),
    Ask("pretty", "GET", "/vf-a/_doc/1?pretty", alike="all"),
    Ask("msearch", "POST", "/_msearch", lines({"index": "vf-a"}, {"size": 0}, {"index": "nosuch"}, {}), "status", media="application/x-ndjson"),
    # Points in time.
    Ask("pit without keep_alive", "POST", "/vf-a/_pit", alike="error"),
    Ask("pit", "POST", "/vf-a/_pit?keep_alive=1m", keep=(("pit", "id"),)),
    Ask("pit page", "POST", "/_search", '{"size":2,"_source":false,"pit":{"id":"$pit","keep_alive":"1m"},"sort":["n",{"_shard_doc":"asc"}]}', "pit"),
    Ask("pit adds the tiebreaker", "POST", "/_search", '{"size":9,"_source":false,"pit":{"id":"$pit"},"sort":["n"]}', "pit"),
    Ask("pit without sort has no values", "POST", "/_search", '{"size":2,"_source":false,"pit":{"id":"$pit"}}', "hits"),
    Ask("pit loses ties without tiebreaker", "POST", "/_search", '{"size":9,"_source":false,"pit":{"id":"$pit"},"sort":["n"],"search_after":[2]}', "pit"),
    Ask("pit after a whole key", "POST", "/_search", '{"size":9,"_source":false,"pit":{"id":"$pit"},"sort":["n"],"search_after":[2,0]}', "pit"),
    Ask("pit with an index", "POST", "/vf-a/_search", '{"pit":{"id":"$pit"}}', "error"),
    Ask("pit with routing", "POST", "/_search?routing=1", '{"pit":{"id":"$pit"}}', "status"),
    Ask("pit slice 0", "POST", "/_search", '{"size":9,"_source":false,"pit":{"id":"$pit"},"sort":["_shard_doc"],"slice":{"id":0,"max":2}}', "pit"),
    Ask("pit slice 1", "POST", "/_search", '{"size":9,"_source":false,"pit":{"id":"$pit"},"sort":["_shard_doc"],"slice":{"id":1,"max":2}}', "pit"),
    Ask("pit bad slice", "POST", "/_search", '{"pit":{"id":"$pit"},"slice":{"id":2,"max":2}}', "status"),
    Ask("pit by _doc walks", "POST", "/_search", '{"size":9,"_source":false,"pit":{"id":"$pit"},"sort":["_doc"]}', "pit"),
    Ask("pit too large", "POST", "/_search", '{"size":10001,"pit":{"id":"$pit"}}', "error"),
    Ask("pit garbage", "POST", "/_search", {"pit": {"id": "abc"}}, "error"),
    Ask("pit close", "DELETE", "/_pit", '{"id":"$pit"}'),
    Ask("pit close again", "DELETE", "/_pit", '{"id":"$pit"}'),
    Ask("pit closed", "POST", "/_search", '{"pit":{"id":"$pit"}}', "error"),
    Ask("pit garbage close", "DELETE", "/_pit", {"id": "abc"}, "error"),
    Ask("pit list close", "DELETE", "/_pit", {"id": ["abc"]}, "status"),
    Ask("pit of nothing", "POST", "/nosuch/_pit?keep_alive=1m", alike="error"),
    Ask("pit of an empty pattern", "POST", "/vf-nosuch*/_pit?keep_alive=1m", alike="status"),
    Ask("pit too long", "POST", "/vf-a/_pit?keep_alive=2d", alike="status"),
    # Scrolls.
    Ask("scroll", "POST", "/vf-a/_search?scroll=1m", {"size": 4, "sort": ["n", "_seq_no"], "_source": False}, "hits", keep=(("scroll", "_scroll_id"),)),
    Ask("scroll on", "POST", "/_search/scroll", '{"scroll":"1m","scroll_id":"$scroll"}', "hits"),
    Ask("scroll past the end", "POST", "/_search/scroll", '{"scroll":"1m","scroll_id":"$scroll"}', "hits"),
    Ask("scroll clear", "DELETE", "/_search/scroll", '{"scroll_id":["$scroll"]}'),
    Ask("scroll clear again", "DELETE", "/_search/scroll", '{"scroll_id":["$scroll"]}'),
    Ask("scroll gone", "POST", "/_search/scroll", '{"scroll":"1m","scroll_id":"$scroll"}', "error"),
    Ask("scroll garbage", "POST", "/_search/scroll", {"scroll": "1m", "scroll_id": "abc"}, "error"),
]  # fmt: skip

WRITES = [
    Ask("get", "GET", "/vf-a/_doc/1"),
    Ask("get missing", "GET", "/vf-a/_doc/nope"),
    Ask("get of nothing", "GET", "/nosuch/_doc/1", alike="error"),
    Ask("get by two", "GET", "/vf-both/_doc/1", alike="error"),
    Ask("get source", "GET", "/vf-a/_source/2"),
    Ask("mget", "POST", "/vf-a/_mget", {"ids": ["1", "nope"]}),
    Ask("put", "PUT", "/vf-b/_doc/w1?refresh=true", b'{"k":"w",  "z":1.10, "u":"\\u00fc"}', "error"),
    Ask("put bytes", "PUT", "/vf-b/_doc/w1?refresh=true", b'{"k":"w",  "z":1, "x":1.10, "e":1E5, "u":"\\u00fc", "i":123456789012345678}'),
    Ask("source keeps bytes", "GET", "/vf-b/_source/w1", alike="bytes"),
    Ask("search keeps bytes", "POST", "/vf-b/_search?filter_path=hits.hits._source", {"query": {"ids": {"values": ["w1"]}}}, "bytes"),
    Ask("dynamic mapping", "GET", "/vf-b/_mapping"),
    Ask("put more dynamic", "PUT", "/vf-b/_doc/w2?refresh=true", {
        "s": "text", "day": "2024-01-05", "num": 5, "fl": 1.5, "bo": True, "nul": None, "em": [], "ob": {"in": {"x": 1}},
        "arr": [{"p": 1}, {"q": "x"}], "no_date": "2024", "with.dots": 1, "eo": {},
    }),
    Ask("dynamic mapping again", "GET", "/vf-b/_mapping"),
    Ask("update noop", "POST", "/vf-b/_update/w1", {"doc": {"k": "w"}}),
    Ask("update rewrites the source", "POST", "/vf-b/_update/w1?refresh=true", {"doc": {"z": 2}}),
    Ask("source after update", "GET", "/vf-b/_source/w1", alike="bytes"),
    Ask("update missing", "POST", "/vf-b/_update/nope", {"doc": {"z": 1}}),
    Ask("update guarded missing", "POST", "/vf-b/_update/nope?if_seq_no=1&if_primary_term=1", {"doc": {"z": 1}}),
    Ask("update stale", "POST", "/vf-b/_update/w1?if_seq_no=1&if_primary_term=1", {"doc": {"z": 1}}),
    Ask("update half guarded", "POST", "/vf-b/_update/w1?if_seq_no=1", {"doc": {"z": 1}}),
    Ask("update unknown key", "POST", "/vf-b/_update/w1", {"doc": {}, "foo": 1}, "error"),
    Ask("update of nothing", "POST", "/vf-b/_update/w1", {}),
    Ask("update guarded with upsert", "POST", "/vf-b/_update/w1?if_seq_no=1&if_primary_term=1", {"doc": {}, "upsert": {}}),
    Ask("update guarded with retries", "POST", "/vf-b/_update/w1?if_seq_no=1&if_primary_term=1&retry_on_conflict=2", {"doc": {}}),
    Ask("update bad value", "POST", "/vf-b/_update/w1", {"doc": {"z": "abc"}}),
    Ask("update object into a number", "POST", "/vf-b/_update/w1", {"doc": {"z": {"a": 1}}}, "status"),
    Ask("update metadata", "POST", "/vf-b/_update/w1", {"doc": {"_id": "x"}}, "error"),
    Ask("update upserts", "POST", "/vf-b/_update/up?refresh=true", {"doc": {"z": 1}, "doc_as_upsert": True}),
    Ask("update merges deeply", "POST", "/vf-b/_update/w2?refresh=true", {"doc": {"ob": {"in": {"y": 2}}, "arr": {"p": 3}}}),
    Ask("source after merge", "GET", "/vf-b/_source/w2"),
    Ask("nested leaf edit", "POST", "/vf-a/_update/1?refresh=true", {"doc": {"ne.a": 77}}, "error"),
    Ask("phantom nested object", "POST", "/vf-a/_search", {"_source": False, "query": {"nested": {"path": "ne", "query": {"term": {"ne.a": 77}}}}}, "hits"),
    Ask("alias field write", "PUT", "/vf-a/_doc/al", {"al": "x"}, "error"),
    Ask("create over", "PUT", "/vf-b/_doc/w1?op_type=create", {"z": 1}),
    Ask("create with a bad value", "PUT", "/vf-b/_doc/w1?op_type=create", {"z": "x"}, "error"),
    Ask("_create over", "PUT", "/vf-b/_create/w1", {"z": 1}),
    Ask("create guarded", "PUT", "/vf-b/_doc/w1?op_type=create&if_seq_no=1&if_primary_term=1", {"z": 1}),
    Ask("put guarded missing", "PUT", "/vf-b/_doc/nope?if_seq_no=1&if_primary_term=1", {"z": 1}),
    Ask("put versioned", "PUT", "/vf-b/_doc/w1?version=1", {"z": 1}, "status"),
    Ask("put without body", "PUT", "/vf-b/_doc/w1", None, "status"),
    Ask("put an array", "PUT", "/vf-b/_doc/w9", [], "status"),
    Ask("put duplicate keys", "PUT", "/vf-b/_doc/w9", b'{"a":1,"a":2}', "status"),
    Ask("put a long id", "PUT", "/vf-b/_doc/" + "x" * 513, {"z": 1}, "error"),
    Ask("put an odd id", "PUT", "/vf-b/_doc/a%2Fb%25%20%C3%BC%3F?refresh=true", {"z": 9}),
    Ask("get an odd id", "GET", "/vf-b/_doc/a%2Fb%25%20%C3%BC%3F"),
    Ask("delete an odd id", "DELETE", "/vf-b/_doc/a%2Fb%25%20%C3%BC%3F?refresh=true"),
    Ask("delete missing", "DELETE", "/vf-b/_doc/nope"),
    Ask("delete guarded missing", "DELETE", "/vf-b/_doc/nope2?if_seq_no=1&if_primary_term=1"),
    Ask("delete with a body", "DELETE", "/vf-b/_doc/nope", {}, "status"),
    Ask("delete by two", "DELETE", "/vf-both/_doc/1", alike="error"),
    Ask("routed", "PUT", "/vf-a/_doc/r1?routing=x&refresh=true", {"k": "routed"}),
    Ask("get routed wrongly", "GET", "/vf-a/_doc/r1?routing=zzz", alike="status"),
    Ask("get routed", "GET", "/vf-a/_doc/r1?routing=x"),
    Ask("search routed", "POST", "/vf-a/_search", {"query": {"term": {"_routing": "x"}}}, "all"),
    # A comment stays in the stored bytes, and every answer with them is no JSON.
    Ask("put with a comment", "PUT", "/vf-b/_doc/c1?refresh=true", b'{"z":1} // c', "status"),
    Ask("comment in the answer", "POST", "/vf-b/_search", {"query": {"ids": {"values": ["c1"]}}}, "broken"),
    Ask("comment parsed away", "POST", "/vf-b/_search?filter_path=*", {"query": {"ids": {"values": ["c1"]}}}),
    Ask("delete the comment", "DELETE", "/vf-b/_doc/c1?refresh=true", alike="status"),
    Ask("write to two", "PUT", "/vf-both/_doc/1", {"z": 1}, "error"),
    Ask("update creates the index", "POST", "/vf-new/_update/1", {"doc": {"z": 1}}),
    Ask("which is there now", "HEAD", "/vf-new", alike="status"),
    Ask("lower the window", "PUT", "/vf-b/_settings", {"index": {"max_result_window": 100}}),
    Ask("settings: lowered window", "GET", "/vf-b/_settings/index.max_result_window?include_defaults=true&flat_settings=true"),
    Ask("lowered window", "POST", "/vf-b/_search", {"from": 99, "size": 2}, "error"),
    Ask("block writes", "PUT", "/vf-b/_settings", {"index.blocks.read_only_allow_delete": True}),
    Ask("blocked", "PUT", "/vf-b/_doc/w1", {"z": 1}, "blocked"),
    Ask("blocked delete", "DELETE", "/vf-b/_doc/w1", alike="status"),
    Ask("blocked bulk", "POST", "/vf-b/_bulk", lines({"index": {"_id": "1"}}, {"z": 1}), "status", media="application/x-ndjson"),
    Ask("unblock", "PUT", "/vf-b/_settings", {"index.blocks.read_only_allow_delete": None}),
    Ask("close", "POST", "/vf-new/_close", alike="status"),
    Ask("cat closed", "GET", "/_cat/indices/vf-new?format=json&h=index,status,docs.count,store.size"),
    Ask("search closed", "POST", "/vf-new/_search", {}, "error"),
    Ask("field_caps closed", "POST", "/vf-new/_field_caps?fields=*", alike="status"),
    Ask("drop by alias", "DELETE", "/vf-both", alike="error"),
    Ask("drop nothing", "DELETE", "/nosuch"),
    Ask("drop the new", "DELETE", "/vf-new"),
    Ask("drop the flattened", "DELETE", "/vf-f", since=(7, 17)),
    Ask("drop by wildcard", "DELETE", "/vf-h*", since=(8,), alike="error"),
    Ask("drop three", "DELETE", "/vf-a,vf-b,vf-h"),
]  # fmt: skip

EXPENSIVE = [
    Ask(
        "expensive off", "PUT", "/_cluster/settings", {"transient": {"search.allow_expensive_queries": False}}, "status"
    ),
    _filter("expensive wildcard", {"wildcard": {"k": "a*"}}, alike="error"),
    _filter("expensive prefix", {"prefix": {"k": "a"}}, alike="error"),
    _filter("expensive range on keyword", {"range": {"k": {"gte": "a"}}}, alike="error"),
    _filter("expensive nested", {"nested": {"path": "ne", "query": {"term": {"ne.a": 1}}}}, alike="error"),
    _filter("expensive swallowed by query_string", {"query_string": {"query": "k:a*", "lenient": True}}),
    _filter("cheap term", {"term": {"k": {"value": "A", "case_insensitive": True}}}),
    _filter("cheap range", {"range": {"n": {"gte": 2}}}),
    _filter("cheap phrase", {"match_phrase": {"tx": "quick brown"}}),
    _filter("cheap wildcard on _index", {"wildcard": {"_index": "vf-*"}}),
    _sort("cheap nested", [{"ne.a": {"nested": {"path": "ne"}}}, "_doc"]),
    Ask("expensive on", "PUT", "/_cluster/settings", {"transient": {"search.allow_expensive_queries": None}}, "status"),
]

_GUARD = {"if_seq_no": 0, "if_primary_term": 1}
_STALE = {"if_seq_no": 77, "if_primary_term": 1}
SETS = [
    Ask("create for sets of changes", "PUT", "/vf-e", {
        "settings": {"number_of_shards": 1, "number_of_replicas": 0},
        "mappings": {"properties": {"k": {"type": "keyword"}, "n": {"type": "integer"}}},
    }),
    *(Ask(f"put {key} for sets of changes", "PUT", f"/vf-e/_doc/{key}", {"k": "a"}) for key in ("1", "2", "3", "r?routing=x%2Fy")),
    Ask("bulk with guards", "POST", "/vf-e/_bulk?refresh=wait_for", lines(
        {"update": {"_id": "1", **_GUARD}}, {"doc": {"k": "b"}}, {"update": {"_id": "2", **_STALE}}, {"doc": {"k": "b"}},
        {"update": {"_id": "nope", **_GUARD}}, {"doc": {"k": "b"}}, {"update": {"_id": "1"}}, {"doc": {"k": "b"}},
        {"index": {"_id": "2", "if_seq_no": 1, "if_primary_term": 1}}, {"k": "c"}, {"index": {"_id": "nope", **_GUARD}}, {"k": "c"},
        {"index": {"_id": "3", **_STALE}}, {"k": "c"}, {"create": {"_id": "1"}}, {"k": "c"}, {"create": {"_id": "a/%\""}}, {"k": "c"},
        {"delete": {"_id": "3", **_STALE}}, {"delete": {"_id": "nope", **_GUARD}}, {"delete": {"_id": "nope"}},
        {"create": {"_id": "bad"}}, {"n": "abc"}, {"update": {"_id": "r", "routing": "x/y", "if_seq_no": 3, "if_primary_term": 1}}, {"doc": {"k": "d"}},
    ), media="application/x-ndjson"),
    Ask("bulk with an id of 513 bytes", "POST", "/vf-e/_bulk", lines({"create": {"_id": "x" * 513}}, {"k": "c"}, {"create": {"_id": "y"}}, {"k": "c"}), "error", media="application/x-ndjson"),
    Ask("bulk with half a guard", "POST", "/vf-e/_bulk", lines({"index": {"_id": "2", "if_seq_no": 1}}, {"k": "c"}), "error", media="application/x-ndjson"),
    Ask("bulk updates what has no index", "POST", "/vf-g/_bulk", lines({"update": {"_id": "1", **_GUARD}}, {"doc": {"k": "b"}}), media="application/x-ndjson"),
    Ask("and makes it", "GET", "/vf-g/_settings/index.number_of_shards"),
    Ask("drop what was made", "DELETE", "/vf-g"),
    Ask("bulk deletes from no index", "POST", "/vf-g/_bulk", lines({"delete": {"_id": "1"}}), media="application/x-ndjson"),
    Ask("and makes none", "HEAD", "/vf-g"),
    Ask("mget with routing", "POST", "/vf-e/_mget", {"docs": [{"_id": "1"}, {"_id": "r", "routing": "x/y"}, {"_id": "nope"}]}),
    Ask("mget from no index", "POST", "/vf-g/_mget", {"docs": [{"_id": "1"}]}),
    Ask("put without the routing loses it", "PUT", "/vf-e/_doc/r", {"k": "e"}),
    Ask("it is lost", "GET", "/vf-e/_doc/r"),
    Ask("drop sets of changes", "DELETE", "/vf-e"),
]  # fmt: skip

VALUES = [
    Ask("create for strange values", "PUT", "/vf-v", {
        "settings": {"number_of_shards": 1, "number_of_replicas": 0},
        "mappings": {"properties": {kind: {"type": kind} for kind in TAKERS}},
    }),
    *map(_strange, TAKERS),
    Ask("drop strange values", "DELETE", "/vf-v"),
]  # fmt: skip

TABLE = [*SEED, *LISTS, *FILTERS, *TEXTS, *SORTS, *PAGES, *EXPENSIVE, *WRITES, *SETS, *VALUES]
