"""Collections in detail: many of them, odd ones, and the columns of one by name."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import OnFake, OnServer, Rig, key
from drivers.weaviate.views import view

from dragoman_api import Filter, ObjectList, ObjectsRequest, PageRequest, Sort
from dragoman_api.columns import MAX_COLUMNS
from dragoman_api.errors import ObjectNotFoundError, QueryError
from dragoman_weaviate import objects
from dragoman_weaviate.columns import grid_columns
from dragoman_weaviate.columns.field_types import Collection, is_collection
from dragoman_weaviate.grid import pages
from dragoman_weaviate.protocol import Features
from dragoman_weaviate.stored_objects import StoredObject, same


def counted(*names: str, count: int = 1) -> Any:
    return reply({"data": {"Aggregate": {name: [{"meta": {"count": count}}] for name in names}}})


@pytest.mark.parametrize("number", [49, 50, 51, 230])
def test_many_collections_are_counted_fifty_at_a_time(number: int) -> None:
    """W8: each once, and all of them; at most four requests are under way."""
    names = [f"C{at:03}" for at in range(number)]
    schema = reply({"classes": [{"class": name} for name in reversed(names)]})
    batches = [names[at : at + 50] for at in range(0, number, 50)]
    script = Answers(schema, reply({"aliases": []}), *(counted(*each, count=at) for at, each in enumerate(batches)))
    found = script.run(objects.list_objects(Features()))
    assert [(each.name, each.rows) for each in found] == [(name, int(name[1:]) // 50) for name in names]
    assert [str(each.body).count("meta{count}") for each in script.asked[2:]] == [len(each) for each in batches]
    assert max(map(len, script.together)) == max(2, min(4, len(batches)))


def test_counts_that_fail_in_one_of_several_requests_leave_the_others_and_say_why():
    names = [f"C{at:03}" for at in range(150)]
    schema = reply({"classes": [{"class": name} for name in names]})
    refused = reply({"errors": [{"message": "no"}]})
    script = Answers(schema, reply({"aliases": []}), counted(*names[:50]), refused, counted(*names[100:]))
    found = script.run(objects.list_objects(Features()))
    assert {each.name for each in found if each.rows is None} == {*names[50:100]}
    [note] = found.notes
    assert (note.code, "50 objects" in note.reason, note.reason.endswith(": no")) == ("rows-unknown", True, True)


def test_only_the_collections_of_a_part_are_counted_and_those_with_the_text() -> None:
    names = ["Alpha", "Beta", "Gamma", "Delta"]
    schema = reply({"classes": [{"class": name} for name in names]})
    aliases = reply({"aliases": [{"alias": "Omega"}, {"alias": "Eta"}]})

    def part(*counts: str, **wanted: object) -> ObjectList:
        script = Answers(schema, aliases, *([counted(*counts)] if counts else []))
        request = ObjectsRequest(**wanted)  # type: ignore[arg-type]
        return script.run(objects.list_objects(Features(), request))

    first = part("Alpha", "Beta", limit=2)
    assert ([each.name for each in first], first.total) == (["Alpha", "Beta"], 6)
    second = part("Delta", "Gamma", limit=3, cursor=first.next)
    assert [(each.name, each.kind) for each in second] == [
        ("Delta", "collection"), ("Gamma", "collection"), ("Eta", "alias"),
    ]  # fmt: skip
    last = part(limit=3, cursor=second.next)
    assert ([each.name for each in last], last.next) == (["Omega"], None)
    matches = part("Beta", limit=3, contains="ET")
    assert ([each.name for each in matches], matches.total, matches.next) == (["Beta", "Eta"], 2, None)
    assert {each.rows for each in part(counts=False)} == {None}


def test_a_collection_that_could_not_be_counted_is_listed_without_a_number():
    schema = reply({"classes": [{"class": "A"}, {"class": "B"}]})
    aggregate = {"A": [{"meta": {"count": 0}}], "B": None}
    errors = [{"message": "shard missing"}]
    script = Answers(schema, reply({"aliases": []}), reply({"data": {"Aggregate": aggregate}, "errors": errors}))
    found = script.run(objects.list_objects(Features()))
    assert [(each.name, each.rows) for each in found] == [("A", 0), ("B", None)]
    assert [note.code for note in found.notes] == ["rows-unknown"]


@pytest.mark.parametrize(("status", "names"), [(200, ["A", "a1", "b2"]), (403, ["A"]), (404, ["A"]), (500, ["A"])])
def test_aliases_are_shown_in_order_where_they_may_be_read(status: int, names: list[str]) -> None:
    aliases = reply({"aliases": [{"alias": "b2"}, {"alias": "a1"}]}, status)
    script = Answers(reply({"classes": [{"class": "A"}]}), aliases, counted("A"))
    assert [each.name for each in script.run(objects.list_objects(Features()))] == names


def test_a_server_without_aliases_is_not_asked_for_them():
    script = Answers(reply({"classes": [{"class": "A"}]}), counted("A"))
    assert len(script.run(objects.list_objects(Features((1, 31, 9))))) == 1
    assert [each.path for each in script.asked] == ["/v1/schema", "/v1/graphql"]


def test_a_collection_has_the_name_that_was_asked_for_but_for_its_letter_case():
    old = Features((1, 31, 0))
    for asked, found, right in (
        ("Book", "Book", True),
        ("book", "Book", True),
        ("BOOK", "Book", True),
        ("A", "B", False),
    ):
        script = Answers(reply({"class": found}))
        if right:
            assert script.run(grid_columns.view(asked, old)).target == found
        else:
            with pytest.raises(QueryError, match="instead of"):
                script.run(grid_columns.view(asked, old))
            assert Answers(reply({"class": found})).run(grid_columns.view(asked, Features())).target == found


@pytest.mark.parametrize(
    ("name", "right"),
    [("A", True), ("a", True), ("A1_", True), ("1A", False), ("_A", False), ("A" * 255, True), ("A" * 256, False),
     ("A\n", False), ("Ä", False), ("A-B", False)],
)  # fmt: skip
def test_a_name_of_a_collection_is_bounded(name: str, right: bool) -> None:
    assert is_collection(name) is right
    if not right:
        with pytest.raises(ObjectNotFoundError):
            Answers().run(grid_columns.view(name, Features()))


@pytest.mark.parametrize(
    ("definition", "odd"),
    [
        ({}, []),
        ({"properties": [{"name": "x" * 231, "dataType": ["text"]}]}, []),
        ({"properties": [{"name": "x" * 232, "dataType": ["text"]}]}, ["x" * 232]),
        ({"properties": [{"name": "by", "dataType": ["Author", "a b"]}]}, ["a b"]),
        ({"properties": [{"name": "n", "dataType": ["int[]"]}]}, []),
        ({"properties": [{"name": "n", "dataType": ["int[][]"]}]}, ["int[][]"]),
        ({"properties": [{"name": "o", "dataType": ["object"], "nestedProperties": [
            {"name": "a-b", "dataType": ["text"]}, {"name": "c", "dataType": ["d e"]}]}]}, ["a-b", "d e"]),
        ({"vectorConfig": {"a": {}, "b-c": {}}}, ["b-c"]),
        ({"class": "a b", "properties": [{"name": "1", "dataType": []}]}, ["a b", "1"]),
    ],
)  # fmt: skip
def test_every_odd_name_is_found(definition: dict[str, Any], odd: list[str]) -> None:
    """None of them may go into a path or a query."""
    assert msgspec.convert({"class": "Book"} | definition, Collection).odd == odd


@pytest.mark.parametrize(
    ("flags", "takes"),
    [
        ({}, False),
        ({"indexFilterable": True}, True),
        ({"indexRangeFilters": True}, True),
        ({"indexSearchable": True}, False),
    ],
)
def test_a_flag_that_the_server_leaves_out_is_off(flags: dict[str, bool], takes: bool) -> None:
    """W38: without an index there is no filter."""
    definition = {"class": "Book", "properties": [{"name": "i", "dataType": ["int"], **flags}]}
    seen = Answers(reply(definition)).run(grid_columns.view("Book", Features()))
    assert bool(seen.columns["i"].operators) is takes


@pytest.mark.parametrize(("types", "repeated"), [([], False), (["newer"], False), (["newer[]"], True)])
def test_a_type_that_the_driver_does_not_know_is_an_array_only_if_it_says_so(types: list[str], repeated: bool) -> None:
    definition = {"class": "Book", "properties": [{"name": "x", "dataType": types}]}
    seen = Answers(reply(definition)).run(grid_columns.view("Book", Features()))
    assert seen.columns["x"].repeated is repeated


def test_a_text_takes_filters_with_either_of_its_indexes():
    for flags, takes in (({}, False), ({"indexFilterable": True}, True), ({"indexSearchable": True}, True)):
        definition = {
            "class": "Book",
            "properties": [{"name": "t", "dataType": ["text"], "tokenization": "word", **flags}],
        }
        seen = Answers(reply(definition)).run(grid_columns.view("Book", Features()))
        assert bool(seen.columns["t"].operators) is takes


def test_the_modules_that_compute_vectors_are_named_once_and_none_is_not_one():
    def vectorizers(**more: Any) -> list[str]:
        return view(**more).collection.vectorizers

    assert vectorizers(vectorizer="none") == vectorizers(vectorizer="") == vectorizers() == []
    assert vectorizers(vectorizer="text2vec-b") == ["text2vec-b"]
    given = [{"text2vec-b": {}}, "text2vec-a", {"none": {}}, {"text2vec-b": {}}, {}]
    config = {f"v{at}": {"vectorizer": each} for at, each in enumerate(given)}
    assert vectorizers(vectorConfig=config) == ["text2vec-a", "text2vec-b"]


def test_stopwords_are_the_preset_with_its_changes():
    def words(**given: Any) -> frozenset[str]:
        return view(index={"stopwords": given}).collection.index.stopwords.words

    assert {"the", "and"} <= words() == words(preset="en")
    assert words(preset="none") == frozenset()
    assert words(preset="none", additions=["Tea", "sea"]) == {"Tea", "sea"}  # in the letter case that they have
    assert words(removals=["the"]) == words() - {"the"}
    assert words(removals=["THE"]) == words()
    assert words(additions=["x"], removals=["x"]) == words()


# one collection -------------------------------------------------------------------------------------------------------


def test_columns_are_chosen_by_name_in_the_given_order():
    asked = PageRequest(object="Book", columns=["pages", "uuid", "title"], total=False)
    row = {"class": "Book", "id": key(1), "properties": {"title": "tea", "pages": 3}}
    page = Answers(reply({"objects": [row]})).run(pages.page(asked, view()))
    assert [each.name for each in page.columns] == ["pages", "uuid", "title"]
    assert [list(each.to_dict().values()) for each in page.rows] == [[3, key(1), "tea"]]
    with pytest.raises(QueryError) as caught:
        Answers().run(pages.page(PageRequest(object="Book", columns=["pages", "nope", "no"]), view()))
    assert caught.value.details["column"] == "nope"
    assert "'nope', 'no'" in caught.value.message


def test_as_many_columns_as_can_be_shown_are_described():
    for number, codes in ((MAX_COLUMNS - 2, []), (MAX_COLUMNS - 1, ["columns-cut"])):
        described = view({f"c{at}": "int" for at in range(number)}).describe()
        assert len(described.columns) == MAX_COLUMNS
        assert [each.code for each in described.notes] == codes
    wide = view({f"c{at}": "int" for at in range(MAX_COLUMNS)})
    assert len(wide.choose(None)) == MAX_COLUMNS


def test_vectors_with_names_are_one_column_that_names_them():
    assert [(each.type, each.path) for each in view().describe().columns[-1:]] == [("vector", ("vector",))]
    [last] = view(vectorConfig={"front": {}, "back": {}}).describe().columns[-1:]
    assert (last.type, last.path) == ("vectors front, back", ("vectors",))
    assert (last.members, last.dimensions) == (("front", "back"), 0)


@pytest.mark.parametrize("many", [True, False])
def test_vectors_of_which_an_object_has_several_under_one_name_stay_json(many):
    index = {"vectorIndexConfig": {"distance": "dot", "multivector": {"enabled": many, "aggregation": "maxSim"}}}
    [last] = view(vectorConfig={"front": {}, "words": index}).describe().columns[-1:]
    assert (last.members, last.dimensions) == (((), None) if many else (("front", "words"), 0))


@pytest.mark.parametrize(
    ("vector", "vectors", "found"),
    [
        (b"[0.5]", b"", b"[0.5]"),
        (b"", b'{"front":[0.5]}', b'{"front":[0.5]}'),
        (b"[]", b'{"front":[0.5]}', b'{"front":[0.5]}'),
        (b"[0.5]", b"{}", b"[0.5]"),
        (b"[0.5]", b"null", b"[0.5]"),
        (b"[0.5]", b'{"front":[0.5]}', b'{"front":[0.5]}'),
        (b"[]", b"{}", None),
        (b"null", b"null", None),
        (b"", b"", None),
    ],
)
def test_a_cell_holds_the_vectors_that_an_object_has(vector, vectors, found):
    [field] = [each for each in view(vectorConfig={"front": {}}).fields.values() if each.name == "vector"]
    item = StoredObject(collection="Book", id="1", vector=msgspec.Raw(vector), vectors=msgspec.Raw(vectors))
    assert item.value(field) == (None if found is None else msgspec.Raw(found))


@pytest.mark.parametrize(
    ("properties", "vector", "holds"),
    [
        (b'{"n":1.0,"m":null}', b"[0.1]", True), (b'{"n":1}', b"", True), (b'{"n":2}', b"", False),
        (b'{"n":1}', b"[0.2]", False), (b'{"n":1}', b"[0.1", False), (b'[{"n":1}]', b"", False),
        (b'{"n":1}', b"[1e300]", False), (b'{"n":1}', b"[" * 100_000, False),
    ],
)  # fmt: skip
def test_an_object_holds_what_was_sent_by_value_and_never_what_cannot_be_read(properties, vector, holds):
    item = StoredObject(collection="Book", id="1", properties={"n": 1}, vector=msgspec.Raw(b"[0.10000000149011612]"))
    assert same(item, msgspec.Raw(properties), msgspec.Raw(vector), msgspec.Raw()) is holds


def test_a_column_says_where_its_value_lies_in_a_row():
    paths = {each.name: each.path for each in view({"uuid": "text", "t": "text"}).describe().columns}
    assert paths == {
        "uuid": ("id",),
        "properties.uuid": ("properties", "uuid"),
        "t": ("properties", "t"),
        "vector": ("vector",),
    }


def test_an_alias_is_said_and_its_collection_is_used():
    seen = Answers(reply({"class": "Book"})).run(grid_columns.view("Now", Features()))
    assert [each.code for each in seen.describe().notes] == ["alias"]
    assert (seen.describe().object, seen.target) == ("Now", "Book")
    assert view().describe().notes == []


# a page of several rules ----------------------------------------------------------------------------------------------


def asked(**more: Any) -> str:
    script = Answers(reply({"data": {"Get": {"Book": []}}}))
    request = PageRequest(object="Book", sort=[Sort("pages")], total=False, **more)
    script.run(pages.page(request, view()))
    return str(json.loads(script.asked[0].body or "")["query"])


def test_a_searched_page_begins_where_it_was_asked_to():
    """W2: an offset of 0 is left out."""
    assert asked(offset=20, limit=10).startswith("{Get{Book(limit:10,offset:20,")
    assert asked(offset=0, limit=10).startswith("{Get{Book(limit:10,sort")


def test_a_page_may_have_a_single_row():
    assert asked(limit=1).startswith("{Get{Book(limit:1,")
    row = {"class": "Book", "id": key(1), "properties": {}}
    plain = PageRequest(object="Book", limit=1, total=False)
    assert len(Answers(reply({"objects": [row]})).run(pages.page(plain, view())).cells) == 1


class Rules:
    async def test_searched_pages_follow_one_another(self, wv: Rig):
        """W2, W21: filtered and sorted, every row once."""
        name = await wv.collection({"i": "int"}, [{"i": at} for at in range(25)], shards=3)
        for descending in (False, True):
            seen: list[Any] = []
            for offset in range(0, 25, 10):
                page = await wv.page(
                    name, Filter("i", ">=", 2), sort=[Sort("i", descending=descending)], offset=offset, limit=10
                )
                assert (page.offset, page.total) == (offset, 23)
                seen += [row["i"] for row in page.rows]
            assert seen == sorted(range(2, 25), reverse=descending)

    async def test_the_columns_of_a_page_are_those_asked_for(self, wv: Rig):
        name = await wv.collection({"t": "text", "i": "int"}, [{"t": "tea", "i": 4}])
        for rows in ([], [Filter("i", "=", 4)]):
            page = await wv.page(name, *rows, columns=["i", "t"])
            assert [list(row.to_dict().items()) for row in page.rows] == [[("i", 4), ("t", "tea")]]


class TestDetailsOnFake(OnFake, Rules):
    pass


@pytest.mark.one_engine
class TestDetailsOnServer(OnServer, Rules):
    pass
