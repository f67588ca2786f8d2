"""Lists of objects: levels, whole or in parts, and trees, within bounds whatever a driver does with a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec.structs import replace

from dragoman_api.columns import MAX_OBJECTS, Note, Object, ObjectList, ObjectsRequest
from dragoman_api.errors import ConfigurationError, DriverFaultError
from dragoman_api.wording import quoted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

DEEPEST = 20
"""Maximum number of levels of a tree of objects."""

EMPTY_PARTS = 1_000
"""Maximum number of successive parts of a level that list nothing."""

NOTES = 100
"""Maximum number of notes on one level; a final note says if there are more."""


LIMIT = ObjectsRequest().limit
"""Maximum number of objects that a driver is asked for at once."""


class _Place(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Where a list of objects continues.

    Attributes:
        cursor: The driver's cursor of a part; None for the first.
        skipped: The number of matching objects of that part that were listed before.
        last: The name of the last of them.
        limit: The limit with which the driver was asked for the part, which is a part of that size only.
    """

    cursor: str | None = None
    skipped: Annotated[int, msgspec.Meta(ge=0)] = 0
    last: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=LIMIT)] = LIMIT

    def rest(self, objects: list[Object]) -> list[Object]:
        """Return what was not yet listed of a part, which may have changed meanwhile."""
        if not self.skipped:
            return objects
        names = [listed_object.name for listed_object in objects]
        return objects[names.index(self.last) + 1 if self.last in names else self.skipped :]


_place = msgspec.json.Decoder(_Place)


def _place_of(cursor: str | None, *, limit: int) -> _Place:
    try:
        place = _Place() if cursor is None else _place.decode(cursor)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"{quoted(cursor)} is not the cursor of a list of objects") from error
    return place if place.skipped else replace(place, limit=limit)


async def list_level(
    request: ObjectsRequest, list_part: Callable[[ObjectsRequest], Awaitable[ObjectList]], *, limit: int | None = None
) -> ObjectList:
    """List one level, whole or up to a limit, at most `MAX_OBJECTS` objects; a note says if a whole level has more.

    Drivers may ignore what a request wants. Objects that do not match are left out, and those beyond the limit are
    left to the next list. Of a driver that ignores the text, larger parts are searched for it.

    Args:
        request: The request; its cursor is `ObjectList.next` of an earlier list.
        list_part: Asks the driver for one part.
        limit: The maximum number of objects; None for the whole level.

    Raises:
        ConfigurationError: The cursor is not one of a list of objects.
        DriverFaultError: The parts do not end.
    """
    cap = MAX_OBJECTS if limit is None else min(limit, MAX_OBJECTS)
    from_start = request.cursor is None
    text = request.contains.casefold()
    place = _place_of(request.cursor, limit=min(cap, LIMIT))
    objects: list[Object] = []
    notes: list[Note] = []
    seen = {place.cursor}
    empty = 0
    obeyed = True
    while True:
        part = await list_part(replace(request, cursor=place.cursor, limit=place.limit))
        matching = [child for child in part if child.parent == request.parent and text in child.name.casefold()]
        obeyed = obeyed and len(matching) == len(part)
        notes = _joined(notes, part.notes)
        rest = place.rest(matching)
        room = cap - len(objects)
        objects += rest[:room]
        following: _Place | None = None
        if len(rest) > room:
            following = _Place(place.cursor, len(matching) - len(rest) + room, objects[-1].name, place.limit)
        elif part.next is not None:
            following = _Place(part.next, limit=place.limit if obeyed else LIMIT)
        if following is None or len(objects) >= cap:
            break
        if following.cursor in seen:
            raise DriverFaultError("the driver's list of objects does not end: a cursor repeats")
        empty = 0 if matching else empty + 1
        if empty > EMPTY_PARTS:
            raise DriverFaultError(f"the driver's list of objects does not end: {empty:,} parts list nothing")
        seen.add(following.cursor)
        place = following
    total = part.total if obeyed and (part.total or 0) >= len(objects) else None
    if following is None and from_start:
        total = len(objects)
    elif part.next is None and from_start and place.cursor is None:
        total = len(matching)  # one part has the whole level, beyond the limit
    if following is not None and limit is None:
        remainder = "there are more" if total is None else f"there are {total:,}"
        notes.append(_cut(f"the first {len(objects):,} objects are listed; {remainder}"))
    cursor = None if following is None else msgspec.json.encode(following).decode()
    return ObjectList(objects=objects, notes=notes, next=cursor, total=total)


async def walk(
    top: ObjectList, list_children: Callable[[str], Awaitable[ObjectList]], *, limit: int | None = None
) -> AsyncIterator[tuple[int, Object, list[Note]]]:
    """Yield the objects of a tree before their children, each with its level, from 0, and the notes on its children.

    A branch among its own ancestors is not listed again. Of a tree with more objects than the limit (at most
    `MAX_OBJECTS`) or `DEEPEST` levels, a part is listed, and notes say where it ends.
    """
    cap = MAX_OBJECTS if limit is None else min(limit, MAX_OBJECTS)
    room = cap - len(top.objects)
    full = False
    pending = [(0, root, frozenset[str]()) for root in reversed(top.objects)]
    while pending:
        level, node, above = pending.pop()
        if not node.branch or node.name in above or full:
            yield level, node, []
            continue
        if level + 1 >= DEEPEST:
            yield level, node, [_cut(f"{DEEPEST} levels are listed; {node.name!r} contains more")]
            continue
        if room <= 0:
            full = True
            yield level, node, [_cut(f"{cap:,} objects are listed; what {node.name!r} and others contain is not")]
            continue
        below = await list_children(node.name)
        children = below.objects[:room]
        room -= len(children)
        rest = len(below.objects) - len(children)
        cut = [_cut(f"{cap:,} objects are listed; {rest:,} in {node.name!r} are not")] if rest else []
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
