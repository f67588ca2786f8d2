"""Promises about health, objects and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from dragoman_api.columns import Object, ObjectList, ObjectsRequest, Operator, Written
from dragoman_api.errors import ObjectNotFoundError

if TYPE_CHECKING:
    from dragoman_api.testing.target import Target


async def _level(target: Target, request: ObjectsRequest) -> list[Object]:
    """List one level of objects, part by part."""
    objects: list[Object] = []
    seen: set[str] = set()
    while True:
        part: ObjectList = await target.driver.list_objects(request)
        objects += [child for child in part if child.parent == request.parent]
        if part.next is None:
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
