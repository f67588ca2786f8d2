"""The command `summarize`: one column at a glance, drawn with bars that need no colour."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click

from . import output
from .global_options import CONNECTION, OBJECT, Command, completed
from .opening import opens
from .queries import queried
from .read_options import FILTER, TIME, RowChoice, choosing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.sessions.session import Session
    from dragoman_api.summaries import ColumnSummary

    from .options import Options

WIDEST_BAR = 40
NARROWEST_BAR = 5
_BLOCKS = " ▏▎▍▌▋▊▉█"


@click.command(cls=Command)
@CONNECTION
@OBJECT
@click.argument("column", shell_complete=completed("column"))
@choosing(*FILTER, "tenant", "revision", *TIME, "now")
@click.option(
    "--values", default=10, show_default=True, type=int, help="Number of the most frequent values, at most 100."
)
@click.option("--buckets", default=10, show_default=True, type=int, help="Maximum number of buckets, at most 50.")
@queried
@opens
async def summarize(
    options: Options, session: Session, *, choice: RowChoice, column: str, values: int, buckets: int
) -> None:
    """Summarize a column: frequent values, rows without a value, extremes, and how numbers and dates are spread."""
    rows = choice.rows(session)
    summary = await rows.summarize(column, values=values, buckets=buckets)
    if options.json:
        output.write_json(summary)
    else:
        room = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
        for line in drawn(summary, width=room, blocks=_takes_blocks()):
            output.write_text(line)
    output.say_notes(summary.notes)


def _takes_blocks() -> bool:
    try:
        _BLOCKS.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def drawn(found: ColumnSummary, *, width: int, blocks: bool = True) -> list[str]:
    """Return a summary as lines for a terminal.

    Args:
        found: The summary.
        width: Columns of the terminal.
        blocks: Draw bars with block characters; else with number signs.
    """
    lines = [output.plain(f"{found.column.name} ({found.column.type})")]
    lines += _figures(found)
    values = [(output.show(frequency.value), frequency.rows) for frequency in found.values]
    if values:
        lines += ["", *_bars("VALUE", values, width=width, blocks=blocks, right=found.column.kind.numeric)]
    buckets = [
        (f"{output.show(bucket.lower)} ≤ x < {output.show(bucket.upper)}", bucket.rows) for bucket in found.buckets
    ]
    if not blocks:
        buckets = [(text.replace("≤", "<="), rows) for text, rows in buckets]
    if buckets:
        lines += ["", *_bars("RANGE", buckets, width=width, blocks=blocks, right=True)]
    remarks = [f"{figure} is approximate: {reason}" for figure, reason in found.approximate.items()]
    remarks += [f"{figure} is not known: {reason}" for figure, reason in found.absent.items()]
    return lines + (["", *map(output.plain, remarks)] if remarks else [])


def _figures(summary: ColumnSummary) -> list[str]:
    def about(name: str) -> str:
        return "~" if name in summary.approximate else ""

    counts = [f"{about('rows')}{output.show_rows(summary.rows)}"]
    if summary.missing is not None:
        counts.append(f"{about('missing')}{summary.missing:,} without a value")
    if summary.distinct is not None:
        counts.append(f"{about('distinct')}{summary.distinct:,} different")
    lines = [", ".join(counts)]
    if summary.minimum is not None or summary.maximum is not None:
        low, high = (
            output.show(extreme) if extreme is not None else "?" for extreme in (summary.minimum, summary.maximum)
        )
        lines.append(f"from {about('minimum')}{low} to {about('maximum')}{high}")
    return lines


def _bars(title: str, rows: Sequence[tuple[str, int]], *, width: int, blocks: bool, right: bool) -> list[str]:
    """Return one line per row: its label, cut to what fits, its number, and a bar in proportion to the greatest."""
    counts = [f"{number:,}" for _, number in rows]
    wide = max(map(len, [*counts, "ROWS"]))
    room = max(width - wide - 2 * len(output.GAP) - NARROWEST_BAR - 1, 1)
    labels = [_cut(label, room) for label, _ in rows]
    label = max(map(output.width_of, [*labels, title]))
    bar = max(min(WIDEST_BAR, width - label - wide - 2 * len(output.GAP) - 1), 0)
    maximum = max((number for _, number in rows), default=0)
    lines = [output.GAP.join([_padded(title, label, right=right), "ROWS".rjust(wide)])]
    for text, count, (_, number) in zip(labels, counts, rows, strict=True):
        drawing = _bar(number / maximum if maximum else 0, bar, blocks=blocks)
        line = output.GAP.join([_padded(text, label, right=right), count.rjust(wide), drawing])
        lines.append(line.rstrip())
    return lines


def _bar(share: float, width: int, *, blocks: bool) -> str:
    """Draw a share of a width; anything but nothing is visible."""
    if not blocks:
        return "#" * max(round(share * width), int(share > 0 and width > 0))
    eighths = max(round(share * width * 8), int(share > 0 and width > 0))
    return _BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8].strip()


def _cut(text: str, room: int) -> str:
    if output.width_of(text) <= room:
        return text
    while text and output.width_of(text) > room - 1:
        text = text[: min(len(text) - 1, room)]
    return f"{text}…"


def _padded(text: str, width: int, *, right: bool) -> str:
    blank = " " * max(width - output.width_of(text), 0)
    return blank + text if right else text + blank
