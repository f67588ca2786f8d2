"""What a driver claims about the parts of an export is compared with the parts, and its notes are bounded."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from dragoman.exports.export_run import NOTES, add_notes
from dragoman.sessions.driver_calls import _fault, counted
from dragoman_api.columns import Note
from dragoman_api.errors import DriverFaultError
from dragoman_api.exports import ExportForm, ExportPart, ExportRequest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

REQUEST = ExportRequest(object="books", checkpoint="5")


def part(data: bytes, rows: int, checkpoint: str | None = None) -> ExportPart:
    return ExportPart(data=data, rows=rows, checkpoint=checkpoint)


async def taken(*parts: ExportPart, form: ExportForm = ExportForm.DOCUMENTS) -> tuple[list[ExportPart], str]:
    """Return the parts that pass, and why no more did."""
    closed, passed, reason = [], [], ""

    async def stream() -> AsyncGenerator[ExportPart, None]:
        try:
            for each in parts:
                yield each
        finally:
            closed.append(True)

    request = ExportRequest(object="books", checkpoint="5", form=form)
    try:
        async for each in counted(stream(), request):
            passed.append(each)  # noqa: PERF401 - what passed before an error counts
    except DriverFaultError as error:
        reason = error.message if "driver check finds it" in str(error.hint) else "it says nothing of what to do"
    assert closed == [True]
    return passed, reason


GOOD = part(b"1\n2\n", 2, "7")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (part(b"3\n4", 1), "a part of the export ends inside a line"),
        (part(b"3", 0), "a part of the export ends inside a line"),
        (part(b"\n", 1), "a part of the export has an empty line"),
        (part(b"\n3\n", 2), "a part of the export has an empty line"),
        (part(b"3\n\n4\n", 3), "a part of the export has an empty line"),
        (part(b"3\n4\n\n", 3), "a part of the export has an empty line"),
        (part(b"3\n4\n", 3), "the driver claims 3 rows for a part that has 2 lines"),
        (part(b"3\n4\n", 1), "the driver claims 1 rows for a part that has 2 lines"),
        (part(b"", 1), "the driver claims 1 rows for a part that has 0 lines"),
        (part(b"3\n", 1, "7"), "the driver's checkpoint did not advance, so resuming there would repeat rows"),
    ],
)
async def test_a_part_that_is_not_what_it_claims_ends_an_export_after_those_before(
    wrong: ExportPart, reason: str
) -> None:
    assert await taken(GOOD, wrong, part(b"5\n", 1, "9")) == ([GOOD], f"after row 2: {reason}")
    assert await taken(GOOD, part(b"3\n4\n5\n", 3, "10"), wrong) == (
        ([GOOD, part(b"3\n4\n5\n", 3, "10")], f"after row 5: {reason}") if wrong.checkpoint is None
        else ([GOOD, part(b"3\n4\n5\n", 3, "10"), wrong], "")
    )  # fmt: skip


async def test_the_first_checkpoint_lies_behind_the_one_that_was_asked_for() -> None:
    passed, reason = await taken(part(b"1\n", 1, "5"))
    assert (passed, "did not advance" in reason) == ([], True)


async def test_a_part_without_rows_may_repeat_a_checkpoint_and_one_without_a_checkpoint_repeats_none() -> None:
    parts = (part(b"", 0, "5"), GOOD, part(b"", 0, "7"), part(b"3\n", 1), part(b"4\n", 1), part(b"5\n", 1, "10"))
    assert await taken(*parts) == ([*parts], "")


async def test_a_row_has_one_line_but_in_the_bulk_form_at_least_one() -> None:
    two_lines = part(b'{"index":{}}\n{"a":1}\n', 1)
    for form, passes in ((ExportForm.DOCUMENTS, False), (ExportForm.ROWS, False), (ExportForm.BULK, True)):
        assert bool((await taken(two_lines, form=form))[0]) == passes
    _, reason = await taken(part(b'{"index":{}}\n{"a":1}\n', 3), form=ExportForm.BULK)
    assert "claims 3 rows for a part that has 2 lines" in reason


def notes(number: int, code: str = "slow") -> list[Note]:
    return [Note(code=code, reason=str(at)) for at in range(number)]


@pytest.mark.parametrize(
    ("before", "more", "kept"),
    [(0, NOTES, NOTES), (0, NOTES + 1, NOTES), (NOTES - 1, 1, NOTES), (NOTES - 1, 2, NOTES), (NOTES, 0, NOTES)],
)
def test_notes_are_kept_up_to_a_bound_and_the_last_tells_that_there_are_more(before: int, more: int, kept: int) -> None:
    found = notes(before)
    add_notes(found, notes(more), rows=12_345)
    cut = [note for note in found if note.code == "notes-cut"]
    assert len(found) - len(cut) == kept == 50
    assert [note.reason for note in cut] == (
        ["the driver told more about rows after the first 12,345; these notes are left out"]
        if before + more > NOTES
        else []
    )
    if cut:
        add_notes(found, notes(3), rows=99_999)
        assert len(found) == NOTES + 1


def test_notes_that_are_not_the_drivers_take_no_room() -> None:
    found = notes(7, "window")
    add_notes(found, notes(NOTES), rows=1, known=7)
    assert (len(found), found[-1].code) == (NOTES + 7, "slow")
    add_notes(found, notes(1), rows=2, known=7)
    assert (len(found), found[-1].code) == (NOTES + 8, "notes-cut")
    add_notes(found, notes(1), rows=3, known=7)
    assert len(found) == NOTES + 8


@pytest.mark.parametrize("longest", [0, 2, 200, 3_000])
def test_lines_are_counted_and_empty_ones_found_whatever_their_length(longest):
    dice = random.Random(longest)
    for _ in range(300):
        least = dice.choice([0, 1, 1, 1])
        lines = [b"x" * dice.randint(least, max(longest, 1)) for _ in range(dice.randint(1, 40))]
        data = b"".join(line + b"\n" for line in lines)
        fault = _fault(part(data, len(lines)), ExportForm.ROWS)
        assert fault == ("a part of the export has an empty line" if b"" in lines else ""), data
        assert b"" in lines or "has" in _fault(part(data, len(lines) + 1), ExportForm.ROWS)
