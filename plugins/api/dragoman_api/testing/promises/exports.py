"""Promises about exports."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from dragoman_api.exports import ExportForm, ExportRequest
from dragoman_api.testing.promises.filters import announced

if TYPE_CHECKING:
    from dragoman_api.exports import ExportPart
    from dragoman_api.testing.target import Target


class ExportPromises:
    """What a person relies on who takes the data away."""

    async def test_an_export_is_whole_lines_of_json(self, target: Target) -> None:
        """Every part ends a line, counts its lines, and each line is one JSON object."""
        for part in await _export(target):
            assert part.data.endswith(b"\n") or part.rows == 0
            lines = part.data.splitlines()
            assert len(lines) == part.rows
            assert all(isinstance(msgspec.json.decode(line), dict) for line in lines)

    async def test_an_export_has_every_row_once(self, target: Target) -> None:
        """As rows no line comes twice, and there are as many as rows; as documents, as many."""
        lines = _lines(await _export(target, form=ExportForm.ROWS))
        assert len(lines) == len(set(lines)) == target.rows
        assert len(_lines(await _export(target))) == target.rows

    async def test_an_export_under_a_filter_has_what_the_filter_leaves(self, target: Target) -> None:
        """A filtered export has as many lines as the filter counts rows."""
        target.needs("export_rows")
        for _, row in (await announced(target))[:6]:
            compiled = await target.compile(row)
            lines = _lines(await _export(target, filter=compiled, form=ExportForm.ROWS))
            assert len(lines) == len(set(lines)) == await target.count(where=compiled), row

    async def test_an_export_goes_on_behind_a_checkpoint(self, target: Target) -> None:
        """Resumed at the checkpoint of a part, an export gives the rest: no row twice, none missing."""
        parts = await _export(target, form=ExportForm.ROWS)
        if parts[0].checkpoint is None:
            pytest.skip("exports cannot be resumed")
        rest = await _export(target, form=ExportForm.ROWS, checkpoint=parts[0].checkpoint)
        lines = _lines([parts[0], *rest])
        assert len(lines) == len(set(lines)) == target.rows


async def _export(target: Target, **more: Any) -> list[ExportPart]:
    target.needs("describe_object", "export_rows")
    await target.describe()
    parts: list[ExportPart] = []
    async with aclosing(target.driver.export_rows(ExportRequest(object=target.object, **more))) as stream:
        async for part in stream:
            parts.append(part)
            assert sum(each.rows for each in parts) <= target.rows, "the export has more rows than the object"
    return parts


def _lines(parts: list[ExportPart]) -> list[bytes]:
    return [line for part in parts for line in part.data.splitlines()]
