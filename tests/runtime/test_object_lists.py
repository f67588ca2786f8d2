"""Objects as a tree: one level at a time, whole or in parts, with what a driver ignored done by the host."""

from __future__ import annotations

import anyio
import pytest
from msgspec.structs import replace

import wheelhouse
from dragoman.sessions.object_lists import DEEPEST, NOTES, list_level, walk
from dragoman_api.columns import MAX_OBJECTS, Note, Object, ObjectList, ObjectsRequest
from dragoman_api.errors import ConfigurationError, DriverFaultError
from dragoman_api.kit.object_lists import choose

CODE = """
from dragoman_api import Note, Object, ObjectList, Server, hookimpl

TREE = {
    None: [Object("blue", branch=True), Object("Green", branch=True), Object("solo", rows=1)],
    "blue": [Object("blue.cpu", parent="blue"), Object("blue.disk", parent="blue", branch=True)],
    "blue.disk": [Object("blue.disk.a", parent="blue.disk")],
    "Green": [],
}


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        return Server("Demo", "1")

    @hookimpl
    async def list_objects(self, request):
        if request.parent == "Green":
            return ObjectList(objects=[], notes=[Note(code="objects-hidden", reason="not for this key\\x07")])
        at = int(request.cursor or 0)
        level = TREE[request.parent]
        following = str(at + 1) if at + 1 < len(level) else None
        return ObjectList(objects=[*level[at : at + 1], Object("stray", parent="elsewhere")], next=following)
"""


@pytest.fixture
def open_tree(make_runtime):
    """Return a function that makes a runtime with a driver that lists one object at a time."""
    return lambda: make_runtime(wheelhouse.Driver("tree", code=CODE, hooks=["connect", "list_objects"]), installed=True)


async def test_a_level_in_parts_is_listed_whole_or_part_by_part(open_tree):
    async with open_tree() as runtime, runtime.open("tree") as session:
        assert [each.name for each in await session.objects()] == ["blue", "Green", "solo"]
        assert [each.name for each in await session.objects(parent="blue")] == ["blue.cpu", "blue.disk"]
        part = await session.objects(limit=1)
        assert [each.name for each in part] == ["blue"]
        part = await session.objects(limit=1, cursor=part.next)
        assert [each.name for each in part] == ["Green"]
        part = await session.objects(limit=1, cursor=part.next)
        assert ([each.name for each in part], part.next) == (["solo"], None)


async def test_names_that_do_not_contain_the_text_are_left_out_whatever_the_driver_does(open_tree):
    async with open_tree() as runtime, runtime.open("tree") as session:
        assert [each.name for each in await session.objects(contains="gReE")] == ["Green"]
        assert not await session.objects(contains="nothing")


async def test_notes_on_what_could_not_be_listed_arrive_harmless(open_tree):
    async with open_tree() as runtime, runtime.open("tree") as session:
        [note] = (await session.objects(parent="Green")).notes
    assert note.code == "objects-hidden"
    assert "\x07" not in note.reason


async def test_a_tree_is_walked_with_each_object_above_its_children(open_tree):
    async with open_tree() as runtime, runtime.open("tree") as session:
        tree = [each async for each in walk(await session.objects(), lambda name: session.objects(parent=name))]
    assert [(level, one.name) for level, one, _ in tree] == [
        (0, "blue"), (1, "blue.cpu"), (1, "blue.disk"), (2, "blue.disk.a"), (0, "Green"), (0, "solo"),
    ]  # fmt: skip
    assert [note.code for _, _, notes in tree for note in notes] == ["objects-hidden"]


async def test_a_tree_that_contains_itself_ends():
    async def again(name):
        return ObjectList(objects=[Object("loop", parent=name, branch=True)])

    top = ObjectList(objects=[Object("loop", branch=True)])
    assert [(level, one.name) async for level, one, _ in walk(top, again)] == [(0, "loop"), (1, "loop")]


async def test_a_list_whose_cursor_comes_twice_is_a_fault_and_a_long_one_is_cut_with_a_note():
    async def endless(request):
        return ObjectList(objects=[], next="same")

    with pytest.raises(DriverFaultError):
        await list_level(ObjectsRequest(), endless)

    async def long(request):
        note = Note(code="slow", reason="it is slow")
        return ObjectList(objects=[Object("x")] * 40_000, notes=[note], next=f"{request.cursor}x")

    listed = await list_level(ObjectsRequest(), long)
    assert len(listed) == MAX_OBJECTS
    assert [note.code for note in listed.notes] == ["slow", "objects-cut"]
    assert listed.next


NAMES = [f"shop-{number}" for number in range(7)]


def lister(*, obeys: str, names: list[str] = NAMES):
    """Return a driver that lists names as wanted, all of them whatever is wanted, or in parts without a search."""
    requests = []

    async def list_part(request):
        requests.append(request)
        if obeys == "nothing":
            return ObjectList(objects=[Object(name) for name in names], total=len(names))
        choice = choose(request if obeys == "all" else replace(request, contains=""), names)
        return ObjectList(objects=[Object(name) for name in choice.names], next=choice.next, total=choice.total)

    return list_part, requests


@pytest.mark.parametrize("obeys", ["all", "nothing", "limit"])
@pytest.mark.parametrize("limit", [1, 3, 7, 8])
@pytest.mark.parametrize("contains", ["", "SHOP-", "5", "none"])
async def test_parts_up_to_a_limit_tile_a_level_and_know_its_size_whatever_the_driver_does(obeys, limit, contains):
    list_part, _ = lister(obeys=obeys)
    listed, cursor, totals = [], None, set()
    while True:
        request = ObjectsRequest(contains=contains, cursor=cursor)
        part = await list_level(request, list_part, limit=limit)
        assert len(part) <= limit
        listed += [entry.name for entry in part]
        totals.add(part.total)
        if (cursor := part.next) is None:
            break
    expected = [name for name in NAMES if contains.casefold() in name]
    assert listed == expected
    assert totals - {None} == {len(expected)}  # a driver that ignores the text gives the size of something else


async def test_a_driver_is_asked_for_as_many_objects_as_are_wanted():
    list_part, requests = lister(obeys="all")
    part = await list_level(ObjectsRequest(counts=False), list_part, limit=3)
    assert [(request.limit, request.counts) for request in requests] == [(3, False)]
    assert (len(part), part.total) == (3, 7)


async def test_a_name_beyond_the_first_part_is_found_in_few_parts_although_the_driver_ignores_the_text():
    list_part, requests = lister(obeys="limit", names=[*(f"a{number:05}" for number in range(25_000)), "zoo"])
    part = await list_level(ObjectsRequest(contains="zoo"), list_part, limit=2)
    assert [entry.name for entry in part] == ["zoo"]
    assert (part.total, part.next) == (1, None)
    assert len(requests) == 4


async def test_a_list_whose_parts_never_match_ends_with_a_fault():
    async def endless(request):
        return ObjectList(objects=[Object("x")], next=f"{request.cursor}x")

    with anyio.fail_after(20), pytest.raises(DriverFaultError):
        await list_level(ObjectsRequest(contains="zoo"), endless)


async def test_objects_that_come_and_go_between_two_parts_move_no_others():
    names = [*NAMES]
    list_part, _ = lister(obeys="nothing", names=names)
    first = await list_level(ObjectsRequest(), list_part, limit=3)
    names[0:1] = ["more", "new"]
    second = await list_level(ObjectsRequest(cursor=first.next), list_part, limit=3)
    assert [entry.name for entry in (*first, *second)] == NAMES[:6]


async def test_a_total_below_what_is_listed_is_none():
    async def list_part(request):
        return ObjectList(objects=[Object("a"), Object("b")], total=1, next="x")

    assert (await list_level(ObjectsRequest(), list_part, limit=2)).total is None


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "shop-1",
        "[1]",
        '["a",-1,"b",2]',
        '["a",1,"b",0]',
        '["a",1,"b",10001]',
        '["a",1,"b",2,3]',
        '{"cursor":"a"}',
        '["a","b"]',
    ],
)
async def test_a_text_that_is_no_cursor_is_refused_before_the_driver_is_asked(cursor):
    list_part, requests = lister(obeys="all")
    with pytest.raises(ConfigurationError):
        await list_level(ObjectsRequest(cursor=cursor), list_part, limit=2)
    assert requests == []


async def test_a_limit_that_is_not_positive_is_refused(open_tree):
    async with open_tree() as runtime, runtime.open("tree") as session:
        for limit in (0, -1):
            with pytest.raises(ConfigurationError):
                await session.objects(limit=limit)


@pytest.mark.parametrize("first", [[], [Object("x")]])
async def test_a_list_whose_parts_list_nothing_ends_with_a_fault_although_every_cursor_is_new(first):
    asked = []

    async def endless(request):
        asked.append(int(request.cursor or 0))
        return ObjectList(objects=[] if asked[-1] else first, next=f"{asked[-1] + 1}")

    with anyio.fail_after(20), pytest.raises(DriverFaultError):
        await list_level(ObjectsRequest(), endless)
    assert len(asked) == len(first) + 1_001


async def test_a_level_of_as_many_objects_as_are_listed_ends_there():
    async def half(request):
        return ObjectList(objects=[Object("x")] * 50_000, next=f"{request.cursor}x")

    assert len(await list_level(ObjectsRequest(), half)) == 100_000


async def test_the_notes_on_a_level_are_bounded_and_the_last_says_so():
    async def chatty(request):
        at = int(request.cursor or 0)
        notes = [Note(code="slow", reason=f"{at}, {number}") for number in range(50)]
        return ObjectList(objects=[Object(str(at))], notes=notes, next=str(at + 1) if at < 9 else None)

    listed = await list_level(ObjectsRequest(), chatty)
    assert len(listed) == 10
    assert [note.code for note in listed.notes] == ["slow"] * NOTES + ["notes-cut"]


async def test_a_tree_without_end_is_cut_with_a_note(monkeypatch):
    """Every object contains ten more: a driver can make them up as it is asked."""
    monkeypatch.setattr("dragoman.sessions.object_lists.MAX_OBJECTS", 200)

    async def ten(name):
        return ObjectList(objects=[Object(f"{name}.{at}", parent=name, branch=True) for at in range(10)])

    with anyio.fail_after(20):
        tree = [each async for each in walk(ObjectList(objects=[Object("top", branch=True)]), ten)]
    assert len(tree) == 200
    assert "objects-cut" in {note.code for _, _, notes in tree for note in notes}


async def test_a_tree_up_to_a_limit_asks_for_no_more_levels_than_it_shows():
    parents = []

    async def three(name):
        parents.append(name)
        return ObjectList(objects=[Object(f"{name}.{at}", parent=name, branch=True) for at in range(3)])

    top = ObjectList(objects=[Object("a", branch=True), Object("b", branch=True)])
    tree = [(level, entry.name, notes) async for level, entry, notes in walk(top, three, limit=4)]
    assert [(level, name) for level, name, _ in tree] == [(0, "a"), (1, "a.0"), (1, "a.1"), (0, "b")]
    assert parents == ["a"]
    assert [(name, [note.code for note in notes]) for _, name, notes in tree if notes] == [
        ("a", ["objects-cut"]), ("a.0", ["objects-cut"]),
    ]  # fmt: skip


async def test_a_tree_that_is_too_deep_is_cut_with_a_note():
    async def one(name):
        return ObjectList(objects=[Object(f"{name}.x", parent=name, branch=True)])

    tree = [each async for each in walk(ObjectList(objects=[Object("x", branch=True)]), one)]
    assert len(tree) == DEEPEST
    assert [note.code for _, _, notes in tree for note in notes] == ["objects-cut"]
