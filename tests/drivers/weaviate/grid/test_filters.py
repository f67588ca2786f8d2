"""Filter rows: each runs as asked or is refused with its reason; what the server answers wrongly never leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.weaviate.rig import INDEXED
from drivers.weaviate.views import view

from dragoman_api import CompiledFilter, Filter, FilterNotSupportedError, FilterRequest, RawQuery
from dragoman_api import Operator as Op
from dragoman_weaviate.graphql import literal
from dragoman_weaviate.grid.filters import compile_filter

if TYPE_CHECKING:
    from dragoman_weaviate.columns.grid_columns import View

OLD = (1, 32, 9)


def compiled(*rows: Filter | RawQuery, match: str = "all", of: View | None = None) -> CompiledFilter:
    return compile_filter(FilterRequest(object="Book", rows=list(rows), match=match), of or view())


def where(*rows: Filter, match: str = "all", of: View | None = None) -> Any:
    return json.loads(compiled(*rows, match=match, of=of).body)["where"]


def notes(row: Filter, of: View | None = None) -> str:
    return "; ".join(compiled(row, of=of).rows[0].approximations)


def refusal(row: Filter | RawQuery, of: View | None = None) -> str:
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled(row, of=of)
    assert caught.value.message.endswith("nothing was sent")
    return str(caught.value.details["reason"])


# W12: values ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "given", "name", "sent"),
    [
        ("pages", "12", "valueInt", 12),
        ("pages", 2**53, "valueInt", 2**53),
        ("pages", 3.0, "valueInt", 3),
        ("price", "1.5", "valueNumber", 1.5),
        ("available", "1", "valueBoolean", True),
        ("available", False, "valueBoolean", False),
        ("published", "2024-05-01T10:00:00+02:00", "valueDate", "2024-05-01T10:00:00+02:00"),
        ("published", "2024-05-01T10:00:00.123456789Z", "valueDate", "2024-05-01T10:00:00.123456789Z"),
        ("shelf", "ABCDEF0011112222333344445555FFFF", "valueText", "abcdef00-1111-2222-3333-44445555ffff"),
        ("uuid", "ABCDEF00-1111-2222-3333-44445555FFFF", "valueText", "abcdef00-1111-2222-3333-44445555ffff"),
        ("title", "tea", "valueText", "tea"),
        ("tags", "one", "valueText", "one"),
        ("sizes", "7", "valueInt", 7),
    ],
)
def test_a_value_is_typed_by_its_property(column, given, name, sent):
    """W12: an int is a number, an array takes one element, a uuid is written as it is stored."""
    path = ["id"] if column == "uuid" else [column]
    assert where(Filter(column, "=", given)) == {"path": path, "operator": "Equal", name: sent}


@pytest.mark.parametrize(
    ("column", "given"),
    [
        ("pages", "12.5"),
        ("pages", True),
        ("pages", 2**63),
        ("price", "nan"),
        ("price", "1e999"),
        ("available", "yes"),
        ("published", "2024-05-01"),
        ("published", "2024-05-01T10:00:00"),
        ("published", "2024-13-01T10:00:00Z"),
        ("published", "2024-05-01t10:00:00z"),
        ("shelf", "nope"),
        ("uuid", "nope"),
        ("sizes", "[1,2]"),
        ("sizes", [1, 2]),
        ("title", None),
        ("title", "\ud83d"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_before_anything_is_sent(wording, column, given):
    """W12, W38: the server would take a bad list element for 0, and upper case for nothing."""
    wording(refusal(Filter(column, "=", given)))


def test_a_bad_element_of_a_list_is_refused(wording):
    """W12: the server takes it for 0."""
    wording(refusal(Filter("pages", "in", "1,a")))
    wording(refusal(Filter("pages", "not-in", [1, 1.5])))


def test_integers_past_53_bits_are_compared_with_a_caveat(wording):
    wording(notes(Filter("pages", "=", 2**53 + 1)))
    assert notes(Filter("pages", "=", 2**53)) == ""


def test_values_are_escaped_as_the_server_reads_them():
    """W12: quotes, backslashes and control characters escaped, other scripts and emoji as they are."""
    text = 'a"b\\c\nd\x01e😀ü'
    assert literal(where(Filter("code", "=", text))) == (
        '{path:["code"],operator:Equal,valueText:"a\\"b\\\\c\\nd\\u0001e😀ü"}'
    )


# W13-W17: operators --------------------------------------------------------------------------------------------------


def test_equals_and_not_equals(wording):
    """W13."""
    assert where(Filter("pages", "=", 1))["operator"] == "Equal"
    assert where(Filter("pages", "!=", 1))["operator"] == "NotEqual"
    wording(notes(Filter("pages", "!=", 1)))


def test_equality_of_words_is_called_approximate(wording):
    """W13: the server compares tokens."""
    wording(notes(Filter("title", "=", "War and Peace")))
    wording(notes(Filter("code", "=", "A-1")))
    wording(refusal(Filter("title", "=", "@@@")))
    wording(refusal(Filter("title", "=", "")))


def test_words_that_are_not_indexed_are_said(wording):
    """W13, W16: alone the server refuses them, or leaves them out of a list without a word."""
    wording(refusal(Filter("title", "=", "the")))
    wording(refusal(Filter("title", "in", "tea,The")))
    wording(notes(Filter("title", "=", "war and peace")))
    own = INDEXED | {"stopwords": {"preset": "none", "additions": ["tea"], "removals": None}}
    wording(refusal(Filter("title", "=", "tea"), of=view(index=own)))
    wording(notes(Filter("title", "=", "the"), of=view(index=own)))
    wording(notes(Filter("code", "=", "the")))


def test_a_range_index_alone_asks_for_the_complement(wording):
    """W13: with indexRangeFilters only, NotEqual misses rows without a value."""
    spec = {"dataType": ["int"], "indexFilterable": False, "indexRangeFilters": True}
    equal = {"path": ["i"], "operator": "Equal", "valueInt": 1}
    assert where(Filter("i", "!=", 1), of=view({"i": spec})) == {"operator": "Not", "operands": [equal]}
    wording(refusal(Filter("i", "!=", 1), of=view({"i": spec}, version=OLD)))
    both = {"dataType": ["int"], "indexRangeFilters": True}
    assert where(Filter("i", "!=", 1), of=view({"i": both})) == equal | {"operator": "NotEqual"}


@pytest.mark.parametrize("op", [">", ">=", "<", "<="])
def test_comparisons_take_numbers_and_dates_only(wording, op):
    """W14: the server would compare texts, uuids and truth values byte by byte."""
    names = {">": "GreaterThan", ">=": "GreaterThanEqual", "<": "LessThan", "<=": "LessThanEqual"}
    for column, value in (("pages", 1), ("price", 1.5), ("published", "2024-01-01T00:00:00Z"), ("sizes", 1)):
        assert where(Filter(column, op, value))["operator"] == names[op]
    for column in ("title", "available", "shelf", "uuid", "tags"):
        wording(refusal(Filter(column, op, "1")))


@pytest.mark.parametrize(("op", "pattern"), [("contains", "*tea*"), ("starts", "tea*"), ("ends", "*tea")])
def test_patterns_are_like_with_wildcards(wording, op, pattern):
    """W15."""
    assert where(Filter("title", op, "tea")) == {"path": ["title"], "operator": "Like", "valueText": pattern}
    for column in ("pages", "available", "published", "shelf", "uuid", "sizes"):
        wording(refusal(Filter(column, op, "tea")))


def test_not_contains_needs_a_working_not(wording):
    """W15: `Not` is in the enumeration long before it works."""
    like = {"path": ["title"], "operator": "Like", "valueText": "*tea*"}
    assert where(Filter("title", "not-contains", "tea")) == {"operator": "Not", "operands": [like]}
    wording(refusal(Filter("title", "not-contains", "tea"), of=view(version=OLD)))


@pytest.mark.parametrize("value", ["@", "", " ", "...", "*", "?", "😀"])
def test_a_pattern_that_would_find_every_text_is_refused(wording, value):
    """W15, W38: `contains @` becomes a bare `*` on words."""
    wording(refusal(Filter("title", "contains", value)))


def test_what_a_pattern_really_finds_is_said(wording):
    """W15: it is compared with each token."""
    assert notes(Filter("title", "contains", "tea")) == ""
    wording(notes(Filter("title", "contains", "tea time")))
    wording(notes(Filter("title", "starts", "tea")))
    wording(notes(Filter("code", "contains", "a*b")))
    wording(notes(Filter("code", "contains", "A-1")))
    wording(notes(Filter("code", "not-contains", "A-1")))


def test_patterns_do_not_meet_pieces_of_words(wording):
    """W15: trigrams and the splitters for other scripts."""
    spec = {"dataType": ["text"], "tokenization": "trigram"}
    wording(refusal(Filter("t", "contains", "tea"), of=view({"t": spec})))


def test_old_servers_take_characters_for_an_expression(wording):
    """W15: before 1.24 a dot matched anything, and a parenthesis was an error."""
    for version in ((1, 22, 12), (1, 23, 4)):
        wording(refusal(Filter("code", "contains", "a.b"), of=_old(version)))
    assert where(Filter("code", "contains", "a.b"), of=_old((1, 22, 13)))["valueText"] == "*a.b*"


def _old(version: tuple[int, int, int]) -> View:
    return view({"code": {"dataType": ["text"], "tokenization": "field"}}, version=version)


def test_lists_are_contains_any_and_contains_none(wording):
    """W16: the value is comma-separated, or a list."""
    assert where(Filter("pages", "in", [3, 0, 2, 0]))["valueInt"] == [3, 0, 2]
    any_of = {"path": ["pages"], "operator": "ContainsAny", "valueInt": [1, 2]}
    assert where(Filter("pages", "in", "1, 2")) == where(Filter("pages", "in", [1, 2, 1])) == any_of
    assert where(Filter("pages", "not-in", "1,2")) == any_of | {"operator": "ContainsNone"}
    wording(refusal(Filter("pages", "in", [])))
    wording(refusal(Filter("pages", "in", "1,,2")))
    wording(refusal(Filter("title", "in", "tea,@")))


def test_below_1_33_a_negated_list_is_spelled_out(wording):
    """W16."""
    each = [{"path": ["pages"], "operator": "NotEqual", "valueInt": value} for value in (1, 2)]
    assert where(Filter("pages", "not-in", "1,2"), of=view(version=OLD)) == {"operator": "And", "operands": each}
    wording(refusal(Filter("sizes", "not-in", "1"), of=view(version=(1, 23, 9))))


def test_lists_of_uuids_and_of_old_servers_are_alternatives():
    """W16."""
    ids = ["00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"]
    each = [{"path": ["id"], "operator": "Equal", "valueText": value} for value in ids]
    assert where(Filter("uuid", "in", [ids[0].upper(), ids[1]])) == {"operator": "Or", "operands": each}
    old = where(Filter("pages", "in", "1,2"), of=view(version=(1, 20, 0)))
    assert [old["operator"], len(old["operands"])] == ["Or", 2]


def test_between_has_two_included_bounds(wording):
    """W17."""
    assert where(Filter("pages", "between", "1,9")) == {
        "operator": "And",
        "operands": [
            {"path": ["pages"], "operator": "GreaterThanEqual", "valueInt": 1},
            {"path": ["pages"], "operator": "LessThanEqual", "valueInt": 9},
        ],
    }
    for value in ("1", "1,", "1,2,3", [1, None]):
        wording(refusal(Filter("pages", "between", value)))
    wording(refusal(Filter("sizes", "between", "1,9")))


# W18-W20: what needs an index, and what does not exist ---------------------------------------------------------------


def test_nulls_need_their_index(wording):
    """W18: checked in the schema, before anything is sent."""
    filled = {"path": ["pages"], "operator": "IsNull", "valueBoolean": False}
    assert where(Filter("pages", "null")) == {"operator": "Not", "operands": [filled]}
    assert where(Filter("pages", "not-null")) == filled
    assert where(Filter("pages", "null"), of=view(version=OLD)) == filled | {"valueBoolean": True}
    wording(notes(Filter("title", "null")))
    wording(refusal(Filter("pages", "null"), of=view(index={})))


@pytest.mark.parametrize("column", ["place", "phone", "cover", "author", "vector"])
@pytest.mark.parametrize("op", ["=", "!=", ">", "contains", "in", "null", "not-null", "empty"])
def test_what_the_server_answers_with_nothing_is_refused(column, op):
    """W18, W38: coordinates, phones and blobs give an empty set for `is null` and for `is not null`, no error."""
    assert refusal(Filter(column, op, "1"))


def test_emptiness_needs_its_index(wording):
    """W19: and a length is no property of a number or a uuid."""
    empty = {"path": ["len(title)"], "operator": "Equal", "valueInt": 0}
    filled = empty | {"operator": "GreaterThan"}
    assert where(Filter("title", "empty")) == {"operator": "Not", "operands": [filled]}
    assert where(Filter("title", "empty"), of=view(version=OLD)) == empty
    assert where(Filter("title", "empty"), of=view(index={"indexPropertyLength": True})) == empty
    assert where(Filter("tags", "not-empty")) == {"path": ["len(tags)"], "operator": "GreaterThan", "valueInt": 0}
    wording(notes(Filter("title", "empty")))
    assert notes(Filter("title", "empty"), of=view(index={"indexPropertyLength": True})) == ""
    wording(refusal(Filter("title", "empty"), of=view(index={})))
    for column in ("shelf", "uuid", "pages", "available"):
        wording(refusal(Filter(column, "empty")))


def test_regular_expressions_have_no_equivalent(wording):
    """W20: the filter says why, and nothing is sent."""
    wording(refusal(Filter("title", "regex", "a.*")))
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled(Filter("pages", ">", 1), Filter("title", "regex", "a.*"))
    assert caught.value.details["column"] == "title"


# W38 -----------------------------------------------------------------------------------------------------------------


def test_a_property_without_an_index_is_refused(wording):
    """W38."""
    off = {"indexFilterable": False, "indexSearchable": False}
    wording(refusal(Filter("t", "=", "tea"), of=view({"t": {"dataType": ["text"]} | off})))
    searchable = {"dataType": ["text"], "indexFilterable": False, "indexSearchable": True}
    assert where(Filter("t", "=", "tea"), of=view({"t": searchable}))["operator"] == "Equal"


def test_a_raw_row_an_unknown_column_and_an_element_group_are_refused(wording):
    """W38: a row is never left out."""
    wording(refusal(RawQuery("anything")))
    wording(refusal(Filter("nope", "=", 1)))
    wording(refusal(Filter("pages", "=", 1, group="1")))


def test_every_row_that_cannot_run_is_told_at_once(wording):
    """W38."""
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled(Filter("title", "regex", "a"), Filter("pages", "=", "x"))
    wording(caught.value.message)
    wording(caught.value.message)


def test_rows_are_joined_as_asked():
    both = [Filter("pages", ">", 1), Filter("price", "<", 2)]
    assert where(*both)["operator"] == "And"
    assert where(*both, match="any")["operator"] == "Or"
    with pytest.raises(FilterNotSupportedError):
        compiled(*both, match="some")


def test_letter_case_follows_the_tokenization(wording):
    wording(notes(Filter("title", "=", "Tea", case=True)))
    wording(notes(Filter("code", "=", "Tea", case=False)))
    wording(notes(Filter("code", "=", "Tea", case=True)))


SAME, PATTERN = "= != in not-in", "contains not-contains starts ends"
NULL, LENGTH, ORDER = "null not-null", "empty not-empty", "> >= < <="
COLUMNS: list[tuple[Any, str, bool]] = [
    ("text", f"{SAME} {PATTERN} {NULL} {LENGTH}", True),
    ("string", f"{SAME} {PATTERN} {NULL} {LENGTH}", True),
    ("text[]", f"{SAME} {PATTERN} {NULL} {LENGTH}", False),
    *(({"dataType": ["text"], "tokenization": each}, f"{SAME} {PATTERN} {NULL} {LENGTH}", True)
      for each in ("word", "lowercase", "whitespace", "field")),
    *(({"dataType": ["text"], "tokenization": each}, f"{SAME} {NULL} {LENGTH}", True)
      for each in ("trigram", "gse", "kagome_ja", "")),
    *((each, f"{SAME} {ORDER} between {NULL}", True) for each in ("int", "number", "date")),
    *((f"{each}[]", f"{SAME} {ORDER} {NULL} {LENGTH}", False) for each in ("int", "number", "date")),
    ("boolean", f"{SAME} {NULL}", True),
    ("boolean[]", f"{SAME} {NULL} {LENGTH}", False),
    ("uuid", f"{SAME} {NULL}", False),
    ("uuid[]", f"{SAME} {NULL} {LENGTH}", False),
    ("geoCoordinates", "near", False),
    *((each, "", False)
      for each in ("phoneNumber", "blob", "blobHash", "object", "object[]", "Author", "newer", "newer[]")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "takes", "sorts"), COLUMNS, ids=str)
def test_a_column_takes_the_operators_of_its_type_and_sorts_by_it(kind: Any, takes: str, sorts: bool) -> None:
    """W12 to W20, W38: what `describe` says, whole, and what each index and each older server takes away."""
    tokenized = {"tokenization": "word"} if kind in ("string", "text", "text[]") else {}
    spec = kind if isinstance(kind, dict) else {"dataType": [kind], **tokenized}
    array, text = spec["dataType"][0].endswith("[]"), spec["dataType"][0].startswith(("text", "string"))

    def taken(flags: dict[str, bool] | None = None, **more: Any) -> set[str]:
        return {str(op) for op in view({"c": spec | (flags or {})}, **more).columns["c"].operators}

    full, negated = {*takes.split()}, {"!=", "not-in"}
    assert taken() == full
    column = view({"c": spec}).columns["c"]
    assert (column.sortable, column.repeated) == (sorts, array and spec["dataType"] != ["object[]"])
    assert taken(index={"indexPropertyLength": True}) == full - {"null", "not-null"}
    assert taken(index={"indexNullState": True}) == full - {"empty", "not-empty"}
    assert taken(version=(1, 32, 9)) == full - {"not-contains"}
    assert taken(version=(1, 23, 9)) == full - {"not-contains"} - (negated if array else set())
    off = {"indexFilterable": False, "indexSearchable": False}
    assert taken(off) == set()
    assert taken(off | {"indexSearchable": True}) == (full if text else set())
    ranged = off | {"indexRangeFilters": True}
    assert taken(ranged) == full
    assert taken(ranged, version=(1, 32, 9)) == full - {"not-contains"} - negated
    assert taken({"indexRangeFilters": True}, version=(1, 32, 9)) == full - {"not-contains"}


def test_the_columns_of_every_row_take_few_operators():
    columns = view().columns
    assert ({*map(str, columns["uuid"].operators)}, columns["uuid"].sortable) == ({*SAME.split()}, True)
    assert (columns["vector"].operators, columns["vector"].sortable) == ((), False)


def test_each_operator_a_column_announces_compiles():
    """What `describe` says and what compiles are the same list."""
    examples = {
        "pages": 1, "sizes": 1, "price": 1.5, "available": True, "published": "2024-01-01T00:00:00Z",
        "place": "52.52,13.405,5km",
    }  # fmt: skip
    shelf = "00000000-0000-4000-8000-00000000000a"
    for version in ((1, 38, 11), (1, 24, 0), (1, 19, 0)):
        seen = view(version=version)
        for column in seen.describe().columns:
            value = examples.get(column.name, shelf if column.name in ("uuid", "shelf") else "tea")
            for op in Op:
                given = [value, value] if op in (Op.BETWEEN, Op.IN, Op.NOT_IN) else value
                row = Filter(column.name, op, None if op in (Op.NULL, Op.NOT_NULL) else given)
                if op in column.operators:
                    assert compiled(row, of=seen).rows[0].clause
                else:
                    assert refusal(row, of=seen) == column.reasons.get("filter", column.reasons.get(op))
