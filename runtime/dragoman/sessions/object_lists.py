"""Lists of objects: filters that a driver ignored are applied here, and the parts of a level become one list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman_api.columns import MAX_OBJECTS, Note, Object, ObjectList, ObjectsRequest
from dragoman_api.errors import DriverFaultError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

DEEPEST = 20
"""Maximum number of levels of a tree of objects."""

EMPTY_PARTS = 1_000
"""Maximum number of successive parts of a level that list nothing."""

NOTES = 100
"""Maximum number of notes on one level; a final note says if there are more."""


def matching(request: ObjectsRequest, listed: ObjectList) -> ObjectList:
    """Return a driver's list without the objects that do not match the request."""
    text = request.contains.casefold()
    children = [child for child in listed if child.parent == request.parent and text in child.name.casefold()]
    return replace(listed, objects=children)


async def whole_level(
    request: ObjectsRequest, list_part: Callable[[ObjectsRequest], Awaitable[ObjectList]]
) -> ObjectList:
    """List all parts of one level, at most `MAX_OBJECTS` objects; a note says if there are more.

    Raises:
        DriverFaultError: The parts do not end.
    """
    objects: list[Object] = []
    notes: list[Note] = []
    seen = {request.cursor}
    empty = 0
    while True:
        part = await list_part(request)
        objects += part.objects
        notes = _joined(notes, part.notes)
        if part.next is None:
            return ObjectList(objects=objects, notes=notes)
        if len(objects) >= MAX_OBJECTS:
            reason = f"the first {len(objects):,} objects are listed; there are more"
            notes.append(_cut(reason))
            return ObjectList(objects=objects, notes=notes, next=part.next)
        if part.next in seen:
            raise DriverFaultError("the driver's list of objects does not end: a cursor repeats")
        empty = 0 if part.objects else empty + 1
        if empty > EMPTY_PARTS:
            raise DriverFaultError(f"the driver's list of objects does not end: {empty:,} parts list nothing")
        seen.add(part.next)
        request = replace(request, cursor=part.next)


async def walk(
    top: ObjectList, list_level: Callable[[str], Awaitable[ObjectList]]
) -> AsyncIterator[tuple[int, Object, list[Note]]]:
    """Yield the objects of a tree before their children, each with its level, from 0, and the notes on its children.

    A branch among its own ancestors is not listed again. Of a tree with more than `MAX_OBJECTS` objects or `DEEPEST`
    levels, a part is listed, and notes say where it ends.
    """
    room = MAX_OBJECTS - len(top.objects)
    pending = [(0, root, frozenset[str]()) for root in reversed(top.objects)]
    while pending:
        level, node, above = pending.pop()
        if not node.branch or node.name in above:
            yield level, node, []
            continue
        if level + 1 >= DEEPEST:
            yield level, node, [_cut(f"{DEEPEST} levels are listed; {node.name!r} contains more")]
            continue
        below = await list_level(node.name)
        children = below.objects[: max(room, 0)]
        room -= len(children)
        rest = len(below.objects) - len(children)
        cut = [_cut(f"{MAX_OBJECTS:,} objects are listed; {rest:,} in {node.name!r} are not")] if rest else []
        yield level, node, [*below.notes, *cut]
        pending += [(level + 1, child, above | {node.name}) for child in reversed(children)]


def _joined(notes: list[Note], additions: Sequence[Note]) -> list[Note]:
    """Return the notes and those of the additions that are new, up to the maximum."""
    if len(notes) > NOTES:
        return notes
    joined = [*notes, *(note for note in additions if note not in notes)]
    rest = "the driver told more about the objects; these notes are left out"
    return joined if len(joined) <= NOTES else [*joined[:NOTES], Note(code="notes-cut", reason=rest)]


def _cut(reason: str) -> Note:
    return Note(
        code="objects-cut", reason=reason, hint="list only names that contain a text, or what one object contains"
    )
