"""Promises about exports."""

from __future__ import annotations

from base64 import b64encode
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from dragoman_api.cells import MISSING, Json
from dragoman_api.exports import ExportForm, ExportRequest
from dragoman_api.testing.conformance.filters import announced

if TYPE_CHECKING:
    from dragoman_api.exports import ExportPart
    from dragoman_api.testing.target import Target


class ExportConformance:
    """Promises to a person who exports data."""

    async def test_an_export_is_whole_lines_of_json(self, target: Target) -> None:
        """Every part ends with a line break and states its number of lines; each line is one JSON object."""
        for part in await _export(target):
            assert part.data.endswith(b"\n") or part.rows == 0
            lines = part.data.splitlines()
            assert len(lines) == part.rows
            assert all(isinstance(msgspec.json.decode(line), dict) for line in lines)

    async def test_an_export_has_every_row_once(self, target: Target) -> None:
        """An export as rows has one line for each row and no line twice; one as documents has as many lines."""
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

    async def test_an_exported_row_holds_each_column_where_its_path_says(self, target: Target) -> None:
        """For every column with a path, the value at `Column.path` is the value that a page shows.

        If the driver tells missing fields from nulls, the member of a missing one is not there.
        """
        target.needs("describe_object", "export_rows", "fetch_page")
        columns = [column for column in (await target.describe()).columns if column.path]
        if not (keys := [column.path for column in columns if column.is_key]):
            pytest.skip("exported rows have no key to find them by")
        names = [column.name for column in columns]
        lines = _lines(await _export(target, form=ExportForm.ROWS, columns=names))
        exported = {tuple(_find(row, key) for key in keys): row for row in map(msgspec.json.decode, lines)}
        for row in await target.all_rows(columns=names):
            exported_row = exported[tuple(map(_json, row.key.id if isinstance(row.key.id, list) else [row.key.id]))]
            for column in [column for column in columns if not row.is_cut(column.name)]:
                cell = row[column.name]
                page_value = msgspec.json.decode(cell.encode()) if isinstance(cell, Json) else _json(cell)
                place = f"{column.name} of {row.key.id!r}"
                assert _find(exported_row, column.path) == page_value, place
                if target.tells_missing:
                    assert row.is_missing(column.name) is (_find(exported_row, column.path, MISSING) is MISSING), place

    async def test_an_export_goes_on_behind_a_checkpoint(self, target: Target) -> None:
        """An export stopped after a part and resumed at its checkpoint yields the rest: no row twice, none missing."""
        target.needs("describe_object", "export_rows")
        await target.describe()
        request = ExportRequest(object=target.object, form=ExportForm.ROWS)
        async with aclosing(target.driver.export_rows(request)) as stream:
            first = await anext(stream)
        if first.checkpoint is None:
            pytest.skip("exports cannot be resumed")
        rest = await _export(target, form=ExportForm.ROWS, checkpoint=first.checkpoint)
        lines = _lines([first, *rest])
        assert len(lines) == len(set(lines)) == target.rows


async def _export(target: Target, **options: Any) -> list[ExportPart]:
    target.needs("describe_object", "export_rows")
    await target.describe()
    parts: list[ExportPart] = []
    async with aclosing(target.driver.export_rows(ExportRequest(object=target.object, **options))) as stream:
        async for part in stream:
            parts.append(part)
            assert sum(p.rows for p in parts) <= target.rows, "the export has more rows than the object"
    return parts


def _json(value: object) -> object:
    """Return a value as a line of JSON holds it."""
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _find(row: Any, path: tuple[str, ...], nothing: Any = None) -> Any:
    """Follow a path: the last member as it stands, else part by part through objects and arrays."""
    for member in path[:-1]:
        row = row[member]
    return _follow(row, path[-1], nothing)


def _follow(value: Any, name: str, nothing: Any = None) -> Any:
    if isinstance(value, list):
        return [_follow(item, name) for item in value]
    if not isinstance(value, dict) or name in value:
        return value[name] if isinstance(value, dict) else nothing
    ends = [end for end in range(len(name) - 1, 0, -1) if name[end] == "." and name[:end] in value]
    candidates = (_follow(value[name[:end]], name[end + 1 :], nothing) for end in ends)
    return next((candidate for candidate in candidates if candidate is not nothing), nothing)


def _lines(parts: list[ExportPart]) -> list[bytes]:
    return [line for part in parts for line in part.data.splitlines()]
