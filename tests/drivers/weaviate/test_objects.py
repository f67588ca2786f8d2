"""What can be browsed: collections and their columns."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from drivers.replies import Answers, reply
from drivers.weaviate.rig import TYPES, OnFake, OnServer, Rig, key
from drivers.weaviate.views import view
from msgspec.structs import replace

from dragoman_api import Filter, ObjectsRequest
from dragoman_api.errors import ObjectNotFoundError, QueryError
from dragoman_api.kit.exchanges import send_all
from dragoman_weaviate import objects
from dragoman_weaviate.columns import grid_columns
from dragoman_weaviate.protocol import Features

SCHEMA = {"classes": [{"class": "Zoo"}, {"class": "Art"}, {"class": "Mix", "multiTenancyConfig": {"enabled": True}}]}


def listed(counts, *, aliases=None, status=200):
    answers = Answers(reply(SCHEMA), reply(aliases or {"aliases": []}), reply(counts, status=status))
    return answers, answers.run(objects.list_objects(Features()))


def test_collections_are_listed_by_name_with_their_counts():
    """W8: from `GET /v1/schema`, which gives another order each time."""
    one = [{"meta": {"count": 1}}]
    answers, found = listed({"data": {"Aggregate": {"Art": one, "Zoo": one}}})
    assert [(each.name, each.rows, each.kind) for each in found] == [
        ("Art", 1, "collection"),
        ("Mix", None, "collection"),
        ("Zoo", 1, "collection"),
    ]
    assert answers.asked[0].path == "/v1/schema"
    assert "Mix" not in answers.asked[2].body  # a count of a collection with tenants needs one


def test_collections_are_listed_where_nothing_can_be_counted():
    """W8: GraphQL switched off, or not allowed to this key."""
    _, found = listed({"error": [{"message": "graphql api is disabled"}]}, status=422)
    assert [each.rows for each in found] == [None, None, None]
    assert [note.code for note in found.notes] == ["rows-unknown"]
    assert "2 objects" in found.notes[0].reason  # one with tenants has no number of its own
    assert "graphql api is disabled" in found.notes[0].reason


def test_aliases_are_listed_behind_the_collections():
    counts = {name: [{"meta": {"count": 0}}] for name in ("Art", "Zoo")}
    _, found = listed({"data": {"Aggregate": counts}}, aliases={"aliases": [{"alias": "Now", "class": "Art"}]})
    assert (found.objects[-1].name, found.objects[-1].kind) == ("Now", "alias")
    assert found.notes == []


def test_a_database_without_collections_is_empty_and_no_failure():
    """W8: GraphQL has no provider then."""
    answers = Answers(reply({"classes": []}), reply({}, status=403), reply({}, status=401))
    found = answers.run(objects.list_objects(Features()))
    assert (found.objects, [note.code for note in found.notes]) == ([], ["objects-hidden"])
    assert "403" in found.notes[0].reason


def granted(*collections):
    """Return roles that may read these collections."""
    return [
        {"permissions": [{"action": "read_collections", "collections": {"collection": each}}]} for each in collections
    ]


@pytest.mark.parametrize(
    ("roles", "hidden"),
    [
        (granted("*"), False),
        (granted("A*", "*"), False),
        (granted("A*"), True),
        ([{"permissions": [{"action": "read_data", "data": {"collection": "*"}}]}], True),
        ([{"permissions": [{"action": "update_collections", "collections": {"collection": "*"}}]}], True),
        ([*granted("A*"), *granted("*")], False),  # by the second of two roles
        ([], True),
        (None, True),  # an administrators' list, or a key without a role: the server gives the same answer
    ],
)
def test_an_empty_list_says_that_collections_may_be_hidden_unless_the_key_sees_all(roles, hidden):
    answers = Answers(reply({"classes": []}), reply({"aliases": []}), reply({"roles": roles, "username": "k"}))
    found = answers.run(objects.list_objects(Features()))
    assert [note.code for note in found.notes] == ["objects-hidden"] * hidden


def test_aliases_that_may_not_be_listed_are_noted():
    answers = Answers(reply(SCHEMA), reply({}, status=403), reply({"data": {"Aggregate": {}}}))
    found = answers.run(objects.list_objects(Features()))
    assert [each.name for each in found] == ["Art", "Mix", "Zoo"]
    assert [note.code for note in found.notes] == ["objects-hidden", "rows-unknown"]


def test_the_uuid_is_the_first_column_and_the_vector_the_last(wording):
    """W10: the uuid read-only."""
    columns = view().describe().columns
    first, last = columns[0], columns[-1]
    assert (first.name, first.role, first.written, first.sortable) == ("uuid", "key", "insert", True)
    assert (last.name, last.kind, last.written, last.dimensions) == ("vector", "json", "always", 0)
    assert {column.name for column in columns if column.dimensions is not None} == {"vector"}
    assert {column.type: column.members for column in columns if column.members} == {
        "geoCoordinates": ("latitude", "longitude")
    }
    wording(first.reasons["edit"])


def test_columns_are_the_properties_in_the_order_of_the_schema():
    """W11: type is the server's own word."""
    columns = view().describe().columns[1:-1]
    assert [column.name for column in columns] == list(TYPES)
    assert {column.name: (column.type, column.kind) for column in columns} == {
        "title": ("text", "text"),
        "code": ("text", "text"),
        "pages": ("int", "integer"),
        "price": ("number", "float"),
        "available": ("boolean", "boolean"),
        "published": ("date", "timestamp"),
        "shelf": ("uuid", "text"),
        "tags": ("text[]", "text"),
        "sizes": ("int[]", "integer"),
        "place": ("geoCoordinates", "geo"),
        "phone": ("phoneNumber", "json"),
        "cover": ("blob", "binary"),
        "author": ("object", "json"),
    }
    assert [column.name for column in columns if column.repeated] == ["tags", "sizes"]
    assert view({"digest": "blobHash"}).describe().columns[1].kind == "binary"


def test_properties_that_are_called_like_our_columns_are_qualified():
    """W10: neither hides the other."""
    names = [column.name for column in view({"uuid": "text", "vector": "int", "x": "int"}).describe().columns]
    assert names == ["uuid", "properties.uuid", "properties.vector", "x", "vector"]


def test_a_cross_reference_is_a_property():
    """W9: shown as JSON, neither filtered nor edited in the grid."""
    column = view({"by": {"dataType": ["Author", "Editor"]}}).describe().columns[1]
    assert (column.name, column.type, column.kind, column.written) == ("by", "Author, Editor", "json", "never")
    assert not column.operators
    assert "append" in column.reasons["edit"]


def test_the_structure_is_the_servers_own():
    seen = view()
    assert json.loads(seen.describe().structure)["class"] == "Book"


def test_a_collection_with_tenants_says_so(wording):
    """W33: and an export, a page or a count without one is refused before anything is sent."""
    seen = view(multiTenancyConfig={"enabled": True})
    assert [note.code for note in seen.describe().notes] == ["tenants"]
    with pytest.raises(QueryError) as caught:
        seen.tenant(None)
    assert caught.value.code == "tenant-required"
    assert seen.tenant("ann") == "ann"
    with pytest.raises(QueryError) as caught:
        view().tenant("ann")
    assert caught.value.code == "tenant-unknown"
    wording(caught.value.message)


@pytest.mark.parametrize("name", ["no such", "a/b", "../schema", "Book?x", "", "x" * 300, "A{B}"])
def test_a_name_that_is_none_never_reaches_a_path(name):
    with pytest.raises(ObjectNotFoundError):
        Answers().run(grid_columns.view(name, Features()))


@pytest.mark.parametrize("bad", ["a b", "a){b", "1st", "x" * 232])
def test_names_that_cannot_stand_in_graphql_are_refused(wording, bad):
    definition = {"class": "Book", "properties": [{"name": bad, "dataType": ["text"]}]}
    with pytest.raises(QueryError) as caught:
        Answers(reply(definition)).run(grid_columns.view("Book", Features()))
    wording(caught.value.message)


class Rules:
    @pytest.mark.timeout(1_500)  # a real server takes a while to make collections
    @pytest.mark.parametrize("many", [8, pytest.param(300, marks=pytest.mark.one_engine)])
    async def test_W8_a_long_list_comes_in_parts_each_with_its_counts(self, wv: Rig, many: int):
        prefix = f"T{uuid4().hex[:8]}Many"
        names = [f"{prefix}{number:03}" for number in range(many)]
        wv.made += names

        async def create(name: str) -> None:
            tenants = {"multiTenancyConfig": {"enabled": True}} if name == names[3] else {}
            definition = {"class": name, "properties": [{"name": "t", "dataType": ["text"]}], "vectorizer": "none"}
            await wv.call("POST", "/v1/schema", definition | tenants)

        await send_all(names, create, at_once=4)
        await wv.load(names[-1], [{"t": "a"}, {"t": "b"}])
        rows = dict.fromkeys(names, 0) | {names[-1]: 2, names[3]: None}
        request = ObjectsRequest(contains=prefix.lower(), limit=many // 4)
        parts = [await wv.driver.list_objects(request)]
        while parts[-1].next is not None:
            parts.append(await wv.driver.list_objects(replace(request, cursor=parts[-1].next)))
        assert [entry.name for part in parts for entry in part] == names
        assert {entry.name: entry.rows for part in parts for entry in part} == rows
        assert {part.total for part in parts} == {many}
        assert [note.code for part in parts for note in part.notes] == []
        whole = await wv.driver.list_objects(ObjectsRequest())
        assert {entry.name: entry.rows for entry in whole if entry.name in names} == rows
        only_names = await wv.driver.list_objects(ObjectsRequest(counts=False))
        assert [entry.name for entry in only_names] == [entry.name for entry in whole]

    async def test_a_collection_is_an_object_and_its_rows_have_a_uuid(self, wv: Rig):
        """W1."""
        name = await wv.collection({"title": "text"}, [{"title": "a"}, {"title": "b"}])
        objects = {each.name: each for each in await wv.driver.list_objects(ObjectsRequest())}
        assert objects[name].rows == 2
        page = await wv.page(name)
        assert sorted(each.id for each in page.keys) == sorted([key(0), key(1)])
        assert {each.object for each in page.keys} == {name}

    async def test_names_are_listed_in_order(self, wv: Rig):
        """W8: the server's own order is random."""
        for letter in "CAB":
            await wv.collection({"t": "text"}, name=letter)
        names = [each.name for each in await wv.driver.list_objects(ObjectsRequest())]
        assert names == sorted(names)

    async def test_named_vectors_are_shown_as_an_object(self, wv: Rig):
        """W10: in one column, by REST and by GraphQL."""
        config = {each: {"vectorizer": {"none": {}}, "vectorIndexType": "flat"} for each in ("front", "back")}
        both, one = {"front": [1.5, 0.1], "back": [1e-7]}, {"front": [1, 2]}
        rows = [{"t": "alpha", "vectors": both}, {"t": "beta", "vectors": one}]
        name = await wv.collection({"t": "text"}, rows, vectorConfig=config)
        for page in (await wv.page(name), await wv.page(name, Filter("t", "in", "alpha,beta"))):
            cells = {row["t"]: json.loads(row["vector"]) for row in page.rows}
            assert cells == {"alpha": both, "beta": one}

    async def test_properties_called_uuid_and_vector_keep_their_values(self, wv: Rig):
        """W10: in pages of both kinds, in filters and in changes."""
        row = {"uuid": "mine", "vector": 7, "vector_": 8}
        name = await wv.collection({"uuid": "text", "vector": "int", "vector_": "int"}, [{"properties": row}])
        for filters in ([], [Filter("properties.vector", "=", 7)]):
            [found] = (await wv.page(name, *filters)).rows
            assert (found["uuid"], found["properties.uuid"], found["properties.vector"]) == (key(0), "mine", 7)
        assert await wv.ids(name, Filter("uuid", "=", key(0)), Filter("properties.uuid", "=", "mine")) == [key(0)]

    async def test_a_cross_reference_is_shown_as_json(self, wv: Rig):
        """W9: by REST and by GraphQL."""
        author = await wv.collection({"n": "text"}, [{"n": "Ada"}], name="Author")
        beacon = {"beacon": f"weaviate://localhost/{author}/{key(0)}"}
        name = await wv.collection({"t": "text", "by": author}, [{"t": "alpha", "by": [beacon]}, {"t": "beta"}])
        plain, filtered = await wv.page(name), await wv.page(name, Filter("t", "in", "alpha,beta"))
        cells = [{row["t"]: row["by"] for row in page.rows} for page in (plain, filtered)]
        assert cells[0] == cells[1]
        assert json.loads(cells[0]["alpha"])[0]["beacon"] == beacon["beacon"]
        assert cells[0]["beta"] is None

    async def test_a_collection_is_browsed_by_its_alias(self, wv: Rig):
        """The rows say the collection's own name, so that a change finds them."""
        name = await wv.collection({"t": "text"}, [{"t": "alpha"}])
        await wv.call("POST", "/v1/aliases", {"alias": f"{name}Now", "class": name})
        try:
            assert f"{name}Now" in [
                each.name for each in await wv.driver.list_objects(ObjectsRequest()) if each.kind == "alias"
            ]
            page = await wv.page(f"{name}Now", Filter("t", "=", "alpha"))
            assert [each.object for each in page.keys] == [name]
            assert (await wv.driver.describe_object(f"{name}Now")).notes[0].code == "alias"
        finally:
            await wv.call("DELETE", f"/v1/aliases/{name}Now")

    async def test_a_missing_collection_is_told(self, wv: Rig):
        with pytest.raises(ObjectNotFoundError):
            await wv.driver.describe_object("NoSuchCollection")


class TestCollectionsOnFake(OnFake, Rules):
    pass


class TestCollectionsOnServer(OnServer, Rules):
    pass
