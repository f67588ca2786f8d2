"""The command `summarize`: what it draws, in which width, and what it says as JSON."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import Machine
from dragoman.cli import output
from dragoman.cli.grid import drawn
from dragoman_api.columns import Column, ColumnKind
from dragoman_api.summaries import Bucket, ColumnSummary, Figure, ValueCount
from dragoman_worker.hooks_and_deadlines import HOOKS
from wheelhouse import Driver, registry

CODE = "from .memory_driver import MemoryDriver as Driver\n"


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("summarized")
    wheel = Driver("memory", code=CODE, hooks=[*HOOKS], capabilities=["browse", "filter"])
    house = Machine(folder / "home")
    house("registry", "add", registry(folder / "registry", [wheel.write(folder / "wheels")]))
    house("connections", "add", "shop", "--type", "memory", "--yes")
    return house


def test_a_column_is_drawn_and_its_figures_are_json(machine):
    done = machine("summarize", "shop", "books", "stock", "--filter", "stock > 0", "--buckets", "4")
    lines = done.out.splitlines()
    assert lines[:2] == ["stock (integer)", "19 rows, 0 without a value, 4 different"]
    assert "1 ≤ x < 2" in done.out
    assert max(map(len, lines)) <= 80
    told = machine("summarize", "shop", "books", "price", "--json").json
    assert (told["rows"], told["missing"]) == (23, 6)
    assert told["maximum"] == 2**63 + 22
    assert {"value", "rows"} == {*told["values"][0]}


@pytest.mark.slow
def test_a_column_that_is_not_there_has_a_near_name(machine):
    assert "stock" in machine("summarize", "shop", "books", "stok", code=1).err
    assert machine("summarize", "shop", "books", "stock", "--values", "101", code=2).out == ""


SUMMARY = ColumnSummary(
    column=Column(name="naïve\x1b[2J", type="keyword", kind=ColumnKind.TEXT),
    rows=1_234_567, missing=3, distinct=9, minimum="a", maximum="z" * 200,
    values=[ValueCount("漢字" * 60, 1_000_000), ValueCount("b\n\x1b[31m", 1), ValueCount(None, 0)],
    buckets=[Bucket(0, 10, 7), Bucket(10, 20, 0)],
    approximate={Figure.VALUES: "shards\x1b[1m"}, absent={Figure.MISSING: "no index"},
)  # fmt: skip


@pytest.mark.parametrize("width", [30, 40, 80, 200])
@pytest.mark.parametrize("blocks", [True, False])
def test_bars_fit_the_width_and_no_control_character_gets_out(width, blocks):
    lines = drawn(SUMMARY, width=width, blocks=blocks)
    bars = [line for line in lines if line.endswith(("█", "▏", "#"))]
    assert len(bars) == 3
    assert max(map(output.width_of, bars)) <= width
    assert not any("\x1b" in line or "\n" in line for line in lines)
    assert "#" in "".join(lines) or blocks
    assert any("approximate: shards" in line for line in lines)
    assert any("not known: no index" in line for line in lines)
    assert "~" not in lines[1]
    assert "…" in bars[0]
    assert sum(f" {'≤' if blocks else '<='} x < " in line for line in lines) == len(SUMMARY.buckets)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=20), st.integers(40, 200))
def test_a_longer_bar_means_more_rows_and_some_rows_are_seen(numbers, width):
    numbers.sort(reverse=True)
    column = Column(name="c", type="long", kind=ColumnKind.INTEGER)
    made = ColumnSummary(column=column, rows=0, values=[ValueCount(at, n) for at, n in enumerate(numbers)])
    lines = drawn(made, width=width)[-len(numbers) :]
    lengths = [line.count("█") for line in lines]
    assert all(a >= b for a, b in pairwise(lengths))
    assert [line[-1] in "▏▎▍▌▋▊▉█" for line in lines] == [number > 0 for number in numbers]


@pytest.mark.parametrize(
    ("figure", "line"),
    [
        (Figure.ROWS, ["~9 rows, 2 without a value, 3 different", "from 1 to 5"]),
        (Figure.MISSING, ["9 rows, ~2 without a value, 3 different", "from 1 to 5"]),
        (Figure.DISTINCT, ["9 rows, 2 without a value, ~3 different", "from 1 to 5"]),
        (Figure.MINIMUM, ["9 rows, 2 without a value, 3 different", "from ~1 to 5"]),
        (Figure.MAXIMUM, ["9 rows, 2 without a value, 3 different", "from 1 to ~5"]),
        (Figure.VALUES, ["9 rows, 2 without a value, 3 different", "from 1 to 5"]),
    ],
)
def test_each_figure_that_is_approximate_is_marked_and_no_other(figure, line):
    column = Column(name="c", type="long", kind=ColumnKind.INTEGER)
    numbers = {"rows": 9, "missing": 2, "distinct": 3, "minimum": 1, "maximum": 5}
    assert drawn(ColumnSummary(column=column, approximate={figure: "x"}, **numbers), width=80)[1:3] == line


def test_a_figure_of_zero_is_shown_and_one_that_is_not_known_is_not():
    column = Column(name="c", type="long", kind=ColumnKind.INTEGER)
    nothing = ColumnSummary(column=column, rows=0, missing=0, distinct=0, minimum=0)
    assert drawn(nothing, width=80)[1:] == ["0 rows, 0 without a value, 0 different", "from 0 to ?"]
    assert drawn(ColumnSummary(column=column, rows=1), width=80)[1:] == ["1 row"]
