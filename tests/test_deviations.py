"""The page of deviations names rules, and switches that are there."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import click
import pytest

import dragoman
from dragoman.settings import Settings

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference/deviations.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| [A-Z]\d+[ ,]", line)
]


@pytest.fixture(scope="module")
def options() -> set[str]:
    """Name every option of the command line and, as it would be given there, every field of a driver's form."""
    from dragoman.cli import app

    found: set[str] = set()

    def walk(command: click.Command) -> None:
        for parameter in command.params:
            found.update(parameter.opts)
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                walk(command.get_command(click.Context(command), name))

    walk(app.cli)
    for manifest in ROOT.glob("plugins/*/*/driver.json"):
        fields = json.loads(manifest.read_text(encoding="utf-8"))["form"]
        found.update("--" + field["name"].replace("_", "-") for field in fields)
    return found


def test_the_page_is_read():
    assert len(ROWS) > 25
    assert {len(row) for row in ROWS} == {5}
    assert all(cell for row in ROWS for cell in row)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}-{at}" for at, row in enumerate(ROWS)])
def test_every_switch_on_the_page_is_there(row, options):
    text = " ".join(row)
    assert set(re.findall(r"(--[a-z][a-z-]+)", text)) <= options
    for group, name in re.findall(r"`(\w+)\.(\w+) = ", text):
        settings = {field.name: field.type for field in _fields(Settings)}
        assert name in {field.name for field in _fields(settings[group])}
    for name, argument in re.findall(r"`([A-Z]\w+)\((\w+)=", text):
        assert argument in inspect.signature(getattr(dragoman, name)).parameters


def _fields(struct):
    import msgspec

    return msgspec.structs.fields(struct)


def test_every_rule_with_a_row_is_marked_on_the_page_of_rules():
    page = PAGE.with_name("rules.md").read_text(encoding="utf-8")
    marked = set(re.findall(r"^\| ([A-Z]\d+) \| .*\(\[deviation\]\(deviations\.md\)\) \| ", page, re.MULTILINE))
    assert marked == {rule for row in ROWS for rule in re.findall(r"[A-Z]\d+", row[0])}


def test_a_row_names_a_switch_or_says_that_nothing_is_lost():
    ways = ("`", "the console", "kept", "write the day")
    assert [row[0] for row in ROWS if not row[4].startswith(ways) and "`" not in row[4]] == []


def test_rules_that_are_met_in_another_way_are_on_the_page():
    """The rules of which it is known that more, or something else, is done."""
    more = {"E3", "E8", "E10", "E16", "E17", "E22", "E23", "E24", "E25", "E26", "E28", "E29", "E30", "E31", "E32"}
    more |= {"E45", "W40"}
    assert more | {"E34", "E35", "E36", "E37", "E38", "E39", "E41", "E42", "P2", "P3"} <= {row[0] for row in ROWS}
