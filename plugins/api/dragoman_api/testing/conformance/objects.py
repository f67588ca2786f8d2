"""Promises about health, objects and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dragoman_api.columns import Operator
from dragoman_api.errors import ObjectNotFoundError

if TYPE_CHECKING:
    from dragoman_api.testing.target import Target


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
        listed = await target.driver.list_objects()
        objects = {each.name: each for each in listed}
        assert len(objects) == len(listed), "a name is listed twice"
        assert target.object in objects
        assert objects[target.object].rows in (None, target.rows)

    async def test_columns_are_unique_and_one_is_the_key(self, target: Target) -> None:
        """`describe_object` names each column once; keys are read-only; no operator is repeated."""
        target.needs("describe_object")
        described = await target.describe()
        names = [column.name for column in described.columns]
        assert described.object == target.object
        assert len(names) == len(set(names)), "a column is named twice"
        assert [column.name for column in described.columns if column.key], "no column is the key"
        for column in described.columns:
            assert column.read_only or not column.key, f"{column.name} is the key and can be edited"
            assert len(column.operators) == len(set(column.operators)), column.name

    async def test_what_a_column_cannot_do_has_a_reason(self, target: Target) -> None:
        """A column that does not sort, or filter at all, says why under ``sort`` or ``filter``."""
        target.needs("describe_object")
        for column in (await target.describe()).columns:
            assert column.sortable or column.reasons.get("sort"), f"{column.name} does not sort and gives no reason"
            assert column.operators or column.reasons.get("filter"), f"{column.name} has no filter and no reason"
            unknown = {*column.reasons} - {*Operator, "sort", "filter", "edit"}
            assert not unknown, f"{column.name} has reasons for {unknown}, which are not among the known ones"

    async def test_a_missing_object_is_told(self, target: Target) -> None:
        """Describing a missing object raises ObjectNotFoundError."""
        target.needs("describe_object")
        with pytest.raises(ObjectNotFoundError):
            await target.driver.describe_object("no-such-object-here")
