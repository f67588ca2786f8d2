"""Promises about exports that are split into shares."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from dragoman_api.errors import DragomanError
from dragoman_api.exports import NO_SNAPSHOT, ExportForm, ExportRequest, SnapshotHold, SplitRequest
from dragoman_api.testing.conformance.filters import announced

if TYPE_CHECKING:
    from dragoman_api.exports import ExportSplit
    from dragoman_api.testing.target import Target


class ShareConformance:
    """Promises to a person who lets several processes export one object."""

    async def test_the_shares_of_an_export_are_the_whole(self, target: Target) -> None:
        """For any number of shares, read in any order, each row is in exactly one of them."""
        target.needs("describe_object", "export_rows", "split_export")
        await target.describe()
        request = ExportRequest(object=target.object, form=ExportForm.ROWS)
        whole = sorted(await _lines(target, request))
        for number in (1, 2, 3, 7, 100):
            split = await _split(target, request, number)
            assert 1 <= len(split.shares) <= number
            assert split.total in (None, target.rows)
            shares = [await _lines(target, request, share) for share in reversed(split.shares)]
            assert sorted(line for lines in shares for line in lines) == whole, f"{number} shares"
            await _free(target, split)

    async def test_the_shares_of_a_filtered_export_are_what_the_filter_leaves(self, target: Target) -> None:
        """The shares of a filtered export hold the rows of that export, each once."""
        target.needs("describe_object", "compile_filter", "export_rows", "split_export")
        for _, row in (await announced(target))[:3]:
            where = await target.compile(row)
            request = ExportRequest(object=target.object, form=ExportForm.ROWS, filter=where)
            whole = sorted(await _lines(target, request))
            split = await _split(target, request, 3)
            shares = [await _lines(target, request, share) for share in split.shares]
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
            assert await _lines(target, request, share) == await _lines(target, request, share)
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
            await _lines(target, request, split.shares[0])

    async def test_a_share_of_another_export_is_refused(self, target: Target) -> None:
        """A share is an error for another form of export, and so is a text that is no share."""
        target.needs("describe_object", "export_rows", "split_export")
        await target.describe()
        split = await _split(target, ExportRequest(object=target.object), 2)
        for share in (split.shares[0], "1abc", ""):
            with pytest.raises(DragomanError):
                await _lines(target, ExportRequest(object=target.object, form=ExportForm.ROWS), share)
        await _free(target, split)


async def _split(target: Target, request: ExportRequest, number: int) -> ExportSplit:
    split: ExportSplit = await target.driver.split_export(SplitRequest(export=request, shares=number))
    return split


async def _free(target: Target, split: ExportSplit) -> None:
    if split.snapshot:
        await target.driver.hold_snapshot(SnapshotHold(snapshot=split.snapshot, seconds=0))


async def _lines(target: Target, request: ExportRequest, share: str | None = None) -> list[bytes]:
    lines: list[bytes] = []
    options: dict[str, Any] = {"share": share, "keep_alive": 120 if share is not None else 0}
    async with aclosing(target.driver.export_rows(replace(request, **options))) as stream:
        async for part in stream:
            assert share is None or part.checkpoint is None, "a share has no checkpoints"
            lines += part.data.splitlines()
            assert len(lines) <= target.rows, "the export has more rows than the object"
    return lines
