"""Filter rows in detail: the bounds, the negations and the words of what is sent, and of what is said about it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.weaviate.rig import OnFake, OnServer, Rig, key
from drivers.weaviate.views import view

from dragoman_api import CompiledFilter, Filter, FilterNotSupportedError, FilterRequest
from dragoman_weaviate.grid.filters import compile_filter

if TYPE_CHECKING:
    from dragoman_weaviate.columns.grid_columns import View

A, B = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"


def compiled(*rows: Filter, match: str = "all", of: View | None = None) -> CompiledFilter:
    return compile_filter(FilterRequest(object="Book", rows=list(rows), match=match), of or view())


def where(*rows: Filter, match: str = "all", of: View | None = None) -> Any:
    return json.loads(compiled(*rows, match=match, of=of).body)["where"]


def notes(row: Filter, of: View | None = None) -> list[str]:
    [explained] = compiled(row, of=of).rows
    assert explained.exact is not bool(explained.approximations)
    return list(explained.approximations)


def refusal(row: Filter, of: View | None = None) -> str:
    with pytest.raises(FilterNotSupportedError) as caught:
        compiled(row, of=of)
    return str(caught.value.details["reason"])


def tokenized(kind: str) -> View:
    return view({"t": {"dataType": ["text"], "tokenization": kind}})


@pytest.mark.parametrize(
    ("column", "given"), [("shelf", [A, B]), ("shelf", f"{A.upper()}, {B}"), ("shelf", [A, B, A.upper()])]
)
def test_a_list_of_uuids_in_a_property_is_one_clause(column: str, given: object) -> None:
    """W16: only the list of the id itself has to be spelled out."""
    assert where(Filter(column, "in", given)) == {"path": ["shelf"], "operator": "ContainsAny", "valueText": [A, B]}
    assert where(Filter(column, "not-in", given)) == {
        "path": ["shelf"], "operator": "ContainsNone", "valueText": [A, B],
    }  # fmt: skip


def test_a_negated_list_of_ids_excludes_each():
    """W16."""
    each = [{"path": ["id"], "operator": "NotEqual", "valueText": value} for value in (A, B)]
    assert where(Filter("uuid", "not-in", [A, B])) == {"operator": "And", "operands": each}
    assert where(Filter("uuid", "not-in", [A])) == each[0]
    assert where(Filter("uuid", "in", A)) == {"path": ["id"], "operator": "Equal", "valueText": A}


DAY = ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z")


def compared(operator: str, value: str) -> dict[str, Any]:
    return {"path": ["published"], "operator": operator, "valueDate": value}


INSIDE = {
    "operator": "And", "operands": [compared("GreaterThanEqual", DAY[0]), compared("LessThan", DAY[1])],
}  # fmt: skip


@pytest.mark.parametrize(
    ("op", "value", "sent"),
    [
        ("=", "/".join(DAY), INSIDE),
        ("in", ["/".join(DAY)], INSIDE),
        ("in", ["/".join(DAY), DAY[1]], {"operator": "Or", "operands": [INSIDE, compared("Equal", DAY[1])]}),
        ("!=", "/".join(DAY), {"operator": "Not", "operands": [INSIDE]}),
        ("not-in", ["/".join(DAY)], {"operator": "Not", "operands": [INSIDE]}),
        (">", "/".join(DAY), compared("GreaterThanEqual", DAY[1])),
        (">=", "/".join(DAY), compared("GreaterThanEqual", DAY[0])),
        ("<", "/".join(DAY), compared("LessThan", DAY[0])),
        ("<=", "/".join(DAY), compared("LessThan", DAY[1])),
        ("between", ["/".join(DAY), DAY[1]], {
            "operator": "And",
            "operands": [compared("GreaterThanEqual", DAY[0]), compared("LessThanEqual", DAY[1])],
        }),
    ],
)  # fmt: skip
def test_a_period_is_its_bounds(op: str, value: object, sent: dict[str, Any]) -> None:
    """W12: dates have no unit that stands for a day; the host writes a period in place of `today`."""
    assert where(Filter("published", op, value)) == sent
    told = ["dates outside 1677-09-22 to 2262-04-10 compare as other dates"]
    absent = ["rows without 'published' match too"] if op in ("!=", "not-in") else []
    assert sorted(notes(Filter("published", op, value))) == sorted(told + absent)


def test_a_period_that_the_server_would_read_otherwise_is_refused() -> None:
    several = view({"dates": {"dataType": ["date[]"]}})
    assert "different elements" in refusal(Filter("dates", "=", "/".join(DAY)), of=several)
    assert "different elements" in refusal(Filter("dates", "in", [DAY[1], "/".join(DAY)]), of=several)
    assert where(Filter("dates", ">", "/".join(DAY)), of=several)["operator"] == "GreaterThanEqual"
    assert "below 1.33" in refusal(Filter("published", "!=", "/".join(DAY)), of=view(version=(1, 32, 9)))
    assert "ends before it begins" in refusal(Filter("published", "=", "/".join(reversed(DAY))))
    assert "outside 1677" in refusal(Filter("published", "=", f"1500-01-01T00:00:00Z/{DAY[0]}"))


@pytest.mark.parametrize("op", ["=", "!=", "in", "not-in", "<=", "between"])
def test_a_period_is_judged_by_a_look_at_stored_rows_as_an_instant_is(op: str) -> None:
    value = ["/".join(DAY), DAY[1]] if op in ("between", "in", "not-in") else "/".join(DAY)
    request = FilterRequest(object="Book", rows=[Filter("published", op, value)])
    for stored, seen in ((DAY[0], False), ("1500-01-01T00:00:00Z", True)):
        [row] = compile_filter(request, view(), sample={"published": [[DAY[0]], [DAY[0], stored]]}).rows
        far = "dates outside 1677-09-22 to 2262-04-10 compare as other dates"
        assert [each.startswith(far) for each in row.unlikely] == [True] * (not seen)
        assert any(each.startswith(far) for each in row.approximations) is seen


def test_near_is_a_range_of_coordinates_and_their_only_filter() -> None:
    """W38: the server answers others with nothing."""
    here = view({"place": {"dataType": ["geoCoordinates"]}})
    sent = {"geoCoordinates": {"latitude": 52.5, "longitude": 13.25}, "distance": {"max": 5000.0}}
    assert where(Filter("place", "near", "52.5,13.25,5km"), of=here) == {
        "path": ["place"], "operator": "WithinGeoRange", "valueGeoRange": sent,
    }  # fmt: skip
    assert "not a distance" in refusal(Filter("place", "near", "52.5,13.25,5"), of=here)
    assert "no filter by a box; use near" in refusal(Filter("place", "in-box", "1,2,3,4"), of=here)
    assert "coordinates take only near" in refusal(Filter("place", "null"), of=here)
    assert "only coordinates take it" in refusal(Filter("pages", "near", "52.5,13.25,5km"))


@pytest.mark.parametrize(
    ("column", "value", "fits"),
    [
        ("pages", 2**63 - 513, True), ("pages", 2**63, False), ("pages", -(2**63), True),
        ("pages", -(2**63) - 1, False), ("pages", f"+{2**63 - 513}", True), ("pages", "9" * 40, False),
        ("pages", "9" * 41, False), ("pages", 1.5, False),
        ("price", "1e308", True), ("price", "1e309", False), ("price", "-inf", False), ("price", True, False),
        ("published", "2024-02-29T23:59:59Z", True), ("published", "2023-02-29T23:59:59Z", False),
        ("published", " 2024-02-29T23:59:59.5+01:30 ", True), ("published", "2024-02-29T24:00:00Z", False),
        ("published", "2024-02-29T23:59:59+25:00", False),
    ],
)  # fmt: skip
def test_a_value_fits_up_to_its_bound(column: str, value: object, fits: bool) -> None:
    """W12."""
    for op in ("=", ">", "<="):
        if fits:
            assert where(Filter(column, op, value))["path"] == [column]
        else:
            assert refusal(Filter(column, op, value))


@pytest.mark.parametrize("value", [2**63 - 512, 2**63 - 1, f"+{2**63 - 1}"])
def test_an_integer_that_compares_as_the_smallest_is_refused(value: object) -> None:
    """W12: the nearest 64-bit float is 2^63, which is no integer of the server."""
    for row in (
        *(Filter("pages", op, value) for op in ("=", "!=", ">", ">=", "<", "<=")),
        *(Filter("pages", op, [1, value]) for op in ("in", "not-in", "between")),
    ):
        assert refusal(row) == f"{int(str(value))} compares as the smallest integer, -2^63"


@pytest.mark.parametrize(("value", "said"), [(2**53, 0), (2**53 + 1, 1), (-(2**53), 0), (-(2**53) - 1, 1)])
def test_an_integer_beyond_53_bits_is_approximate_in_every_place(value: int, said: int) -> None:
    for row in (
        Filter("pages", ">", value),
        Filter("pages", "in", [1, value]),
        Filter("pages", "between", [value, 2**62]),
    ):
        found = [note for note in notes(row) if "2^53" in note]
        assert len(found) == (1 if row.op == "between" else said)
    assert len([n for n in notes(Filter("pages", "between", [value, 5])) if "2^53" in n]) == said


def test_the_bounds_of_between_are_the_given_ones():
    """W17."""
    found = where(Filter("published", "between", ["2024-01-01T00:00:00Z", "2024-12-31T00:00:00Z"]))
    assert [(each["operator"], each["valueDate"]) for each in found["operands"]] == [
        ("GreaterThanEqual", "2024-01-01T00:00:00Z"), ("LessThanEqual", "2024-12-31T00:00:00Z"),
    ]  # fmt: skip
    for given in ([1], [1, 2, 3], ",", "1,"):
        assert "two bounds" in refusal(Filter("pages", "between", given))
    for given in (["", 1], [1, ""]):
        assert "'' is not an integer" in refusal(Filter("pages", "between", given))


@pytest.mark.parametrize("op", ["=", "!=", "in", "not-in", "contains", "not-contains"])
def test_a_negation_says_that_rows_without_a_value_match(op: str) -> None:
    """W13, W15, W16: and nothing else says so."""
    said = [each for each in notes(Filter("code", op, "tea")) if each == "rows without 'code' match too"]
    assert len(said) == (op in ("!=", "not-in", "not-contains"))


@pytest.mark.parametrize(("column", "op", "said"), [
    ("title", "null", True), ("title", "not-null", True), ("sizes", "null", True), ("tags", "not-null", True),
    ("pages", "null", False), ("shelf", "not-null", False), ("available", "null", False),
])  # fmt: skip
def test_an_empty_value_counts_as_null_where_one_can_be_empty(column: str, op: str, said: bool) -> None:
    """W18: rows older than the property are among those that are not known to have a value, from 1.33 on."""
    empty = ["empty values count as null too"] if said else []
    older = [f"rows written before '{column}' was added to the collection are missing"] if op == "null" else []
    filled = {"path": [column], "operator": "IsNull", "valueBoolean": False}
    complement = {"operator": "Not", "operands": [filled]}
    assert notes(Filter(column, op)) == empty
    assert where(Filter(column, op)) == (complement if op == "null" else filled)
    old = view(version=(1, 32, 9))
    assert notes(Filter(column, op), of=old) == [*empty, *older]
    assert where(Filter(column, op), of=old) == filled | {"valueBoolean": op == "null"}


def test_rows_without_a_value_are_empty_and_never_filled():
    """W19."""
    assert notes(Filter("title", "empty")) == ["rows without 'title' match too"]
    assert notes(Filter("title", "not-empty")) == []
    assert notes(Filter("tags", "not-empty")) == []


@pytest.mark.parametrize(
    ("kind", "keeps"), [("field", True), ("whitespace", True), ("word", False), ("lowercase", False)]
)
def test_letter_case_is_as_the_tokenization_keeps_it(kind: str, keeps: bool) -> None:
    """W13."""
    said = "letter case is compared" if keeps else "letter case is not compared"
    for op in ("=", "contains", "in", "!="):
        assert said in notes(Filter("t", op, "Tea", case=not keeps), of=tokenized(kind))
        for case in (keeps, None):
            assert not any(
                "letter case" in each for each in notes(Filter("t", op, "Tea", case=case), of=tokenized(kind))
            )


@pytest.mark.parametrize(
    ("kind", "value", "finds"),
    [
        ("word", "@", False), ("word", "a@", True), ("word", "_", False), ("field", "@", True), ("field", " ", False),
        ("lowercase", "@", True), ("whitespace", "@", True), ("whitespace", " ", False), ("lowercase", "\t", False),
        ("field", "?", False), ("field", "*?* ", False), ("field", "?a", True), ("word", "?", False),
    ],
)  # fmt: skip
def test_a_pattern_needs_something_to_search_for(kind: str, value: str, finds: bool) -> None:
    """W15, W38: a bare `*` or `?` would find every text."""
    for op in ("contains", "starts", "ends", "not-contains"):
        if finds:
            assert compiled(Filter("t", op, value), of=tokenized(kind)).rows
        else:
            assert "nothing to search for" in refusal(Filter("t", op, value), of=tokenized(kind))


@pytest.mark.parametrize("value", ["a*b", "a?b", "?a", "a*"])
@pytest.mark.parametrize("kind", ["field", "word", "whitespace", "lowercase"])
def test_a_wildcard_is_said_to_be_one_under_every_tokenization(kind: str, value: str) -> None:
    """W15: it cannot be escaped."""
    for op in ("contains", "starts", "ends", "not-contains"):
        said = [note for note in notes(Filter("t", op, value), of=tokenized(kind)) if note.startswith("* and ?")]
        assert len(said) == 1
        assert not any(note.startswith("* and ?") for note in notes(Filter("t", op, "ab"), of=tokenized(kind)))


def test_what_a_pattern_finds_is_said_by_how_a_text_is_split():
    """W15."""
    words = "compares words: finds them in any order, anywhere in the text"
    for kind, value, said in (
        ("word", "tea", []), ("word", "tea-time", [words]), ("word", "tea time", [words]),
        ("whitespace", "tea-time", []), ("whitespace", "tea time", [words]), ("lowercase", "a\tb", [words]),
    ):  # fmt: skip
        assert notes(Filter("t", "contains", value), of=tokenized(kind)) == said
    for op in ("starts", "ends"):
        assert notes(Filter("t", op, "tea"), of=tokenized("word")) == [f"finds texts in which any word {op} with it"]
    space = "white space around the text is not compared"
    for op in ("contains", "starts", "ends"):
        found = notes(Filter("t", op, "tea"), of=tokenized("field"))
        assert found == [space, "texts with line breaks may be missed"]
    negated = notes(Filter("t", "not-contains", "tea"), of=tokenized("field"))
    absent, lines = "rows without 't' match too", "texts with line breaks match although they contain it"
    assert negated == [absent, space, lines]


def test_stopwords_are_those_of_the_word_tokenization_alone():
    """W13."""
    assert "stopwords" in refusal(Filter("t", "=", "the and"), of=tokenized("word"))
    assert any("stopwords" in note for note in notes(Filter("t", "=", "the tea"), of=tokenized("word")))
    for kind in ("lowercase", "whitespace", "field"):
        assert not any("stopwords" in note for note in notes(Filter("t", "=", "the tea"), of=tokenized(kind)))
        assert where(Filter("t", "=", "the"), of=tokenized(kind))["valueText"] == "the"


def test_what_a_word_of_a_list_is_compared_with_is_said_once():
    several = notes(Filter("title", "in", ["tea", "sea", "war and peace"]))
    assert len(several) == len(set(several)) == 2
    assert len(notes(Filter("code", "in", ["a", "b"]))) == 1


def test_a_list_needs_values():
    """W16."""
    for given in ([], "", [""]):
        assert refusal(Filter("pages", "in", given)) == "the list of values is empty"
    for given in ("1,,2", "1,", ["", "a"]):
        assert refusal(Filter("code", "in", given)) == "a value between the commas is empty"


@pytest.mark.parametrize("op", ["=", ">", ">=", "<", "<=", "between", "in", "not-in", "!="])
def test_a_number_with_the_index_for_ranges_alone_takes_every_comparison(op: str) -> None:
    """W13, W14."""
    ranged = view({"i": {"dataType": ["int"], "indexFilterable": False, "indexRangeFilters": True}})
    [column] = [each for each in ranged.describe().columns if each.name == "i"]
    given = [1, 2] if op in ("between", "in", "not-in") else 1
    if op in column.operators:
        assert where(Filter("i", op, given), of=ranged)
    else:
        assert refusal(Filter("i", op, given), of=ranged) == column.reasons[op]


def test_an_explanation_shows_the_beginning_of_a_long_clause():
    for length, whole in ((200, True), (400, False)):
        [row] = compiled(Filter("code", "=", "x" * length)).rows
        assert (row.clause.endswith("…"), len(row.clause) <= 301) == (not whole, True)
        assert row.row == 0
    rows = compiled(Filter("pages", "=", 1), Filter("code", "=", "x"), Filter("pages", ">", 1)).rows
    assert [(each.row, each.exact) for each in rows] == [(0, True), (1, False), (2, False)]


def test_the_first_of_several_refused_rows_is_named():
    """W38: with its reason, whatever follows it."""
    for first, second in (("pages", "price"), ("price", "pages")):
        with pytest.raises(FilterNotSupportedError) as caught:
            compiled(Filter(first, "=", "x"), Filter("title", "=", "tea"), Filter(second, "=", "x"))
        assert caught.value.details["column"] == first
        assert second in caught.value.message


class Rules:
    async def test_every_bound_includes_or_excludes_as_it_says(self, wv: Rig):
        """W14, W17: results, from below and from above."""
        name = await wv.collection({"i": "int", "n": "number"}, [{"i": at, "n": at / 2} for at in range(6)])
        for column, at in (("i", 3), ("n", 1.5)):
            for op, expected in (
                ("=", [3]), ("!=", [0, 1, 2, 4, 5]), (">", [4, 5]), (">=", [3, 4, 5]), ("<", [0, 1, 2]),
                ("<=", [0, 1, 2, 3]),
            ):  # fmt: skip
                assert await wv.numbers(name, Filter(column, op, at)) == expected, (column, op)
        assert await wv.numbers(name, Filter("i", "between", [1, 4])) == [1, 2, 3, 4]
        assert await wv.numbers(name, Filter("n", "between", [0.5, 1])) == [1, 2]

    async def test_lists_of_uuids_take_and_leave_the_named_rows(self, wv: Rig):
        """W16: of a property and of the row itself."""
        rows = [{"u": A}, {"u": B}, {"u": key(9)}, {}]
        name = await wv.collection({"u": "uuid"}, rows)
        assert await wv.numbers(name, Filter("u", "in", [A, B])) == [0, 1]
        assert await wv.numbers(name, Filter("u", "not-in", [A, B])) == [2, 3]
        assert await wv.numbers(name, Filter("u", "not-in", [A])) == [1, 2, 3]
        assert await wv.numbers(name, Filter("uuid", "in", [key(0), key(2)])) == [0, 2]
        assert await wv.numbers(name, Filter("uuid", "not-in", [key(0), key(2)])) == [1, 3]

    async def test_a_number_with_the_index_for_ranges_alone_is_compared_right(self, wv: Rig):
        """W13: also rows without a value."""
        spec = {"dataType": ["int"], "indexFilterable": False, "indexRangeFilters": True}
        name = await wv.collection({"i": spec}, [{"i": 1}, {"i": 2}, {}, {"i": 3}])
        for op, value, expected in (
            ("=", 2, [1]), ("!=", 2, [0, 2, 3]), (">", 1, [1, 3]), ("<=", 2, [0, 1]), ("between", [2, 3], [1, 3]),
        ):  # fmt: skip
            assert await wv.numbers(name, Filter("i", op, value)) == expected, op

    async def test_a_question_mark_stands_for_one_character_of_a_whole_text(self, wv: Rig):
        """W15: under the tokenization field."""
        spec = {"dataType": ["text"], "tokenization": "field"}
        name = await wv.collection({"c": spec}, [{"c": "A-1"}, {"c": "A-22"}, {"c": "B?1"}, {"c": "xA-1x"}])
        assert await wv.numbers(name, Filter("c", "starts", "A-?")) == [0, 1]
        assert await wv.numbers(name, Filter("c", "ends", "-?")) == [0]
        assert await wv.numbers(name, Filter("c", "contains", "A?1")) == [0, 3]
        assert await wv.numbers(name, Filter("c", "not-contains", "A?1")) == [1, 2]


class TestClausesOnFake(OnFake, Rules):
    pass


@pytest.mark.one_engine
class TestClausesOnServer(OnServer, Rules):
    pass
