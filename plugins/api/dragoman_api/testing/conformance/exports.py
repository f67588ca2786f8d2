"""Promises about exports."""

from __future__ import annotations

from base64 import b64encode
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace

from dragoman_api.cells import MISSING, Json
from dragoman_api.errors import DragomanError
from dragoman_api.exports import NO_SNAPSHOT, ExportForm, ExportRequest, SnapshotHold, SplitRequest
from dragoman_api.testing.conformance.filters import announced
from dragoman_api.testing.target import decoded, with_digits

if TYPE_CHECKING:
    from dragoman_api.exports import ExportPart, ExportSplit
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
        exported = {tuple(_find(row, key) for key in keys): row for row in map(decoded, lines)}
        for row in await target.all_rows(columns=names):
            exported_row = exported[tuple(map(_json, row.key.id if isinstance(row.key.id, list) else [row.key.id]))]
            for column in [column for column in columns if not row.is_cut(column.name)]:
                cell = row[column.name]
                page_value = decoded(cell) if isinstance(cell, Json) else _json(cell)
                place = f"{column.name} of {row.key.id!r}"
                assert with_digits(_find(exported_row, column.path)) == with_digits(page_value), place
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


class ShareConformance:
    """Promises to a person who lets several processes export one object."""

    async def test_the_shares_of_an_export_are_the_whole(self, target: Target) -> None:
        """For any number of shares, read in any order, each row is in exactly one of them."""
        target.needs("describe_object", "export_rows", "split_export")
        await target.describe()
        request = ExportRequest(object=target.object, form=ExportForm.ROWS)
        whole = sorted(await _share_lines(target, request))
        for number in (1, 2, 3, 7, 100):
            split = await _split(target, request, number)
            assert 1 <= len(split.shares) <= number
            assert split.total in (None, target.rows)
            shares = [await _share_lines(target, request, share) for share in reversed(split.shares)]
            assert sorted(line for lines in shares for line in lines) == whole, f"{number} shares"
            await _free(target, split)

    async def test_the_shares_of_a_filtered_export_are_what_the_filter_leaves(self, target: Target) -> None:
        """The shares of a filtered export hold the rows of that export, each once."""
        target.needs("describe_object", "compile_filter", "export_rows", "split_export")
        for _, row in (await announced(target))[:3]:
            where = await target.compile(row)
            request = ExportRequest(object=target.object, form=ExportForm.ROWS, filter=where)
            whole = sorted(await _share_lines(target, request))
            split = await _split(target, request, 3)
            shares = [await _share_lines(target, request, share) for share in split.shares]
            assert sorted(line for lines in shares for line in lines) == whole, row
            await _free(target, split)

    async def test_a_share_read_again_is_the_same(self, target: Target) -> None:
        """A share yields the same bytes each time while its snapshot is held; without one, a note says so."""
        target.needs("describe_object", "export_rows", "split_export")
        await target.describe()
        request = ExportRequest(object=target.object)
        split = await _split(target, request, 2)
        if not split.snapshot:
            assert NO_SNAPSHOT in [note.code for note in split.notes], "no note says what is not guaranteed"
        for share in split.shares:
            assert await _share_lines(target, request, share) == await _share_lines(target, request, share)
        await _free(target, split)

    async def test_a_snapshot_is_held_until_it_is_freed(self, target: Target) -> None:
        """`hold_snapshot` is true for a held snapshot, and false once it was freed; then its shares are errors."""
        target.needs("describe_object", "export_rows", "split_export")
        await target.describe()
        request = ExportRequest(object=target.object)
        split = await _split(target, request, 2)
        if not split.snapshot:
            pytest.skip("the server has no snapshots")
        hold = target.driver.hold_snapshot
        assert await hold(SnapshotHold(snapshot=split.snapshot, seconds=120)) is True
        assert await hold(SnapshotHold(snapshot=split.snapshot, seconds=0)) is True
        assert await hold(SnapshotHold(snapshot=split.snapshot, seconds=120)) is False
        with pytest.raises(DragomanError):
            await _share_lines(target, request, split.shares[0])

    async def test_a_share_of_another_export_is_refused(self, target: Target) -> None:
        """A share is an error for another form of export, and so is a text that is no share."""
        target.needs("describe_object", "export_rows", "split_export")
        await target.describe()
        split = await _split(target, ExportRequest(object=target.object), 2)
        for share in (split.shares[0], "1abc", ""):
            with pytest.raises(DragomanError):
                await _share_lines(target, ExportRequest(object=target.object, form=ExportForm.ROWS), share)
        await _free(target, split)


async def _split(target: Target, request: ExportRequest, number: int) -> ExportSplit:
    split: ExportSplit = await target.driver.split_export(SplitRequest(export=request, shares=number))
    return split


async def _free(target: Target, split: ExportSplit) -> None:
    if split.snapshot:
        await target.driver.hold_snapshot(SnapshotHold(snapshot=split.snapshot, seconds=0))


async def _share_lines(target: Target, request: ExportRequest, share: str | None = None) -> list[bytes]:
    lines: list[bytes] = []
    options: dict[str, Any] = {"share": share, "keep_alive": 120 if share is not None else 0}
    async with aclosing(target.driver.export_rows(replace(request, **options))) as stream:
        async for part in stream:
            assert share is None or part.checkpoint is None, "a share has no checkpoints"
            lines += part.data.splitlines()
            assert len(lines) <= target.rows, "the export has more rows than the object"
    return lines
