"""Objects as a tree: one level at a time, whole or in parts, with what a driver ignored done by the host."""

from __future__ import annotations

import anyio
import pytest

import wheelhouse
from dragoman.sessions.session import DEEPEST, NOTES, walk, whole_level
from dragoman_api.columns import MAX_OBJECTS, Note, Object, ObjectList, ObjectsRequest
from dragoman_api.errors import DriverFaultError

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
        assert ([each.name for each in part], part.next) == (["blue"], "1")
        part = await session.objects(limit=1, cursor=part.next)
        assert ([each.name for each in part], part.next) == (["Green"], "2")


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
        await whole_level(ObjectsRequest(), endless)

    async def long(request):
        note = Note(code="slow", reason="it is slow")
        return ObjectList(objects=[Object("x")] * 40_000, notes=[note], next=f"{request.cursor}x")

    listed = await whole_level(ObjectsRequest(), long)
    assert MAX_OBJECTS <= len(listed) < MAX_OBJECTS + 40_000
    assert [note.code for note in listed.notes] == ["slow", "objects-cut"]
    assert listed.next


@pytest.mark.parametrize("first", [[], [Object("x")]])
async def test_a_list_whose_parts_list_nothing_ends_with_a_fault_although_every_cursor_is_new(first):
    asked = []

    async def endless(request):
        asked.append(int(request.cursor or 0))
        return ObjectList(objects=[] if asked[-1] else first, next=f"{asked[-1] + 1}")

    with anyio.fail_after(20), pytest.raises(DriverFaultError):
        await whole_level(ObjectsRequest(), endless)
    assert len(asked) == len(first) + 1_001


async def test_a_level_of_as_many_objects_as_are_listed_ends_there():
    async def half(request):
        return ObjectList(objects=[Object("x")] * 50_000, next=f"{request.cursor}x")

    assert len(await whole_level(ObjectsRequest(), half)) == 100_000


async def test_the_notes_on_a_level_are_bounded_and_the_last_says_so():
    async def chatty(request):
        at = int(request.cursor or 0)
        notes = [Note(code="slow", reason=f"{at}, {number}") for number in range(50)]
        return ObjectList(objects=[Object(str(at))], notes=notes, next=str(at + 1) if at < 9 else None)

    listed = await whole_level(ObjectsRequest(), chatty)
    assert len(listed) == 10
    assert [note.code for note in listed.notes] == ["slow"] * NOTES + ["notes-cut"]


async def test_a_tree_without_end_is_cut_with_a_note(monkeypatch):
    """Every object contains ten more: a driver can make them up as it is asked."""
    monkeypatch.setattr("dragoman.sessions.session.MAX_OBJECTS", 200)

    async def ten(name):
        return ObjectList(objects=[Object(f"{name}.{at}", parent=name, branch=True) for at in range(10)])

    with anyio.fail_after(20):
        tree = [each async for each in walk(ObjectList(objects=[Object("top", branch=True)]), ten)]
    assert len(tree) == 200
    assert "objects-cut" in {note.code for _, _, notes in tree for note in notes}


async def test_a_tree_that_is_too_deep_is_cut_with_a_note():
    async def one(name):
        return ObjectList(objects=[Object(f"{name}.x", parent=name, branch=True)])

    tree = [each async for each in walk(ObjectList(objects=[Object("x", branch=True)]), one)]
    assert len(tree) == DEEPEST
    assert [note.code for _, _, notes in tree for note in notes] == ["objects-cut"]
