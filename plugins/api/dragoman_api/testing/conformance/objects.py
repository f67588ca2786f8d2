"""Promises about the objects of a connection, their names and their columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from dragoman_api.columns import Object, ObjectList, ObjectsRequest, Operator, Written
from dragoman_api.errors import DragomanError, ObjectNotFoundError, QueryError
from dragoman_api.filters import Filter
from dragoman_api.grid import Sort
from dragoman_api.testing.target import hooks_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from dragoman_api.testing.target import Target

HOSTILE = 'it\'s "$(id)" & 100% \\ ü; --help'
"""A name that any quoting, escaping or shell would change."""
_COMMAND = re.compile(r"\bdragoman [a-z]|`|\$ ")


async def _error(call: Awaitable[Any], name: str = HOSTILE) -> DragomanError:
    """Return the error of a call about something that does not exist."""
    try:
        answer = await call
    except DragomanError as error:
        return error
    pytest.fail(f"there is no {name!r}, and the driver answers {answer!r:.300}")


def _quotes(name: str) -> bool:
    """Return whether a name is that of nothing, in quotes or with escapes."""
    return name != HOSTILE and any(part in name for part in ("$(id)", "24%28id", "help"))


async def _level(target: Target, request: ObjectsRequest) -> list[Object]:
    """List one level of objects, part by part."""
    objects: list[Object] = []
    seen: set[str] = set()
    totals: set[int] = set()
    number, text = 0, request.contains.casefold()
    while True:
        part: ObjectList = await target.driver.list_objects(request)
        objects += [child for child in part if child.parent == request.parent]
        number += sum(child.parent == request.parent and text in child.name.casefold() for child in part)
        totals |= set() if part.total is None else {part.total}
        if part.next is None:
            assert totals <= {number}, f"`total` is {totals}, and {number} objects match"
            return objects
        assert part.next not in seen, "a cursor repeats"
        seen.add(part.next)
        request = replace(request, cursor=part.next)


async def _tree(target: Target) -> list[Object]:
    """List the objects of all levels."""
    objects, branches = list[Object](), list[str | None]([None])
    for parent in branches:
        assert len(branches) == len(set(branches)), "a branch is listed below itself, or twice"
        level = await _level(target, ObjectsRequest(parent=parent))
        objects += level
        branches += [child.name for child in level if child.branch]
    return objects


class ObjectConformance:
    """Promises to a sidebar and the head of a grid."""

    async def test_an_open_connection_is_healthy(self, target: Target) -> None:
        """`ping` of a working connection says ok, without a reason."""
        target.needs("ping")
        health = await target.driver.ping()
        assert health.ok, health.reason

    async def test_a_status_names_nodes_once_and_says_what_is_wrong(self, target: Target) -> None:
        """`read_status` names each node, no name twice, with figures that can be, and conditions in words."""
        target.needs("read_status")
        status = await target.driver.read_status()
        names = [node.name for node in status.nodes]
        assert all(names), "a node has no name"
        assert len(names) == len(set(names)), "a node is named twice"
        states = [status.state, *(node.state for node in status.nodes), *status.objects.values()]
        assert all(state.word.strip() for state in states if state), "a condition has no word; None says nothing"
        for node in status.nodes:
            for figure in ("rows", "memory", "memory_limit", "disk", "disk_limit"):
                amount = getattr(node, figure)
                assert amount is None or amount >= 0, f"{figure} of {node.name} is {amount}"

    async def test_objects_are_listed_once_each(self, target: Target) -> None:
        """`list_objects` names the object, no name twice, and its number of rows, if any, is right."""
        target.needs("list_objects")
        listed = await _tree(target)
        objects = {listed_object.name: listed_object for listed_object in listed}
        assert len(objects) == len(listed), "a name is listed twice"
        assert target.object in objects
        assert objects[target.object].rows in (None, target.rows)

    async def test_parts_of_a_list_of_objects_tile_it(self, target: Target) -> None:
        """`list_objects` in parts of one names the same objects as in one part, in the same order."""
        target.needs("list_objects")
        whole = await _level(target, ObjectsRequest())
        assert await _level(target, ObjectsRequest(limit=1)) == whole

    async def test_a_text_selects_names_whatever_their_case_and_counts_select_none(self, target: Target) -> None:
        """`list_objects` names every object that contains a text, and the same ones without counts."""
        target.needs("list_objects")
        whole = [listed_object.name for listed_object in await _level(target, ObjectsRequest())]
        without_counts = await _level(target, ObjectsRequest(counts=False))
        assert [listed_object.name for listed_object in without_counts] == whole
        for name in whole[:3]:
            for text in {name.upper(), name.lower(), name[len(name) // 2 :]}:
                listed = await _level(target, ObjectsRequest(contains=text))
                names = {listed_object.name for listed_object in listed}
                lost = [match for match in whole if text.casefold() in match.casefold() and match not in names]
                assert not lost, f"names that contain {text!r} are not listed: {lost}"

    async def test_columns_are_unique_and_one_is_the_key(self, target: Target) -> None:
        """`describe_object` names each column once; no update may name a key; no operator is repeated."""
        target.needs("describe_object")
        described = await target.describe()
        names = [column.name for column in described.columns]
        assert described.object == target.object
        assert len(names) == len(set(names)), "a column is named twice"
        assert [column.name for column in described.columns if column.is_key], "no column is the key"
        for column in described.columns:
            always = column.written is Written.ALWAYS
            assert not (always and column.is_key), f"{column.name} is the key and can be edited"
            assert always or column.reasons.get("edit"), f"{column.name} cannot be edited and gives no reason"
            assert len(column.operators) == len(set(column.operators)), column.name

    async def test_what_a_column_cannot_do_has_a_reason(self, target: Target) -> None:
        """A column that does not sort, or filter at all, says why under ``sort`` or ``filter``."""
        target.needs("describe_object")
        for column in (await target.describe()).columns:
            assert column.sortable or column.reasons.get("sort"), f"{column.name} does not sort and gives no reason"
            assert column.operators or column.reasons.get("filter"), f"{column.name} has no filter and no reason"
            unknown = {*column.reasons} - {*Operator, "any", "sort", "filter", "edit"}
            assert not unknown, f"{column.name} has reasons for {unknown}, which are not among the known ones"

    async def test_a_missing_object_is_told(self, target: Target) -> None:
        """Describing a missing object raises ObjectNotFoundError."""
        target.needs("describe_object")
        with pytest.raises(ObjectNotFoundError):
            await target.driver.describe_object("no-such-object-here")

    async def test_a_name_is_never_read_as_more_than_a_name(self, target: Target) -> None:
        """A name with characters of a path, a query, a shell or a quotation is that of no object, and changes no other.

        The error is ObjectNotFoundError, or a QueryError that says why there can be none.
        """
        target.needs("describe_object")
        name = target.object
        for hostile in (
            *(f"{name}{end}" for end in ("/", "?", "?x=1", "#", "#x", "/../" + name, "/.", "%00", "\n", " ", "'", '"')),
            *(f"{start}{name}" for start in ("../", "/", "./", "%2e%2e%2f", " ")),
            HOSTILE,
        ):
            error = await _error(target.driver.describe_object(hostile), hostile)
            assert isinstance(error, ObjectNotFoundError | QueryError), f"{hostile!r}: {error!r}"
        assert (await target.describe()).object == name

    async def test_remedies_name_things_as_the_server_spells_them(self, target: Target) -> None:
        """Hint and remedies of an error hold no command, and names in remedies are neither quoted nor escaped."""
        target.needs("describe_object", "fetch_page")
        columns = [column.name for column in (await target.describe()).columns]
        errors = [
            await _error(target.driver.describe_object(HOSTILE)),
            await _error(target.page(sort=[Sort(HOSTILE)])),
            await _error(target.page(columns=[HOSTILE])),
        ]
        if "compile_filter" in hooks_of(target.driver):
            errors.append(await _error(target.compile(Filter(HOSTILE, Operator.EQ, HOSTILE))))
            errors += [await _error(target.compile(Filter(name, Operator.IN_BOX, HOSTILE))) for name in columns[:3]]
        for error in errors:
            assert not _COMMAND.search(error.hint), f"the hint {error.hint!r} holds a command; name a remedy instead"
            for remedy in error.remedies:
                assert not remedy.fault, remedy.fault
                for argument in ("object", "column"):
                    name = str(remedy.arguments.get(argument, ""))
                    assert not _quotes(name), f"{argument} {name!r} of a remedy is quoted; dragoman quotes it"
