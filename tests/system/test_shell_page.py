"""Every line that the page about the shell shows is typed at a terminal, over the sample cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command_line import Machine
from screens import Screen
from stranger import serve_sample

PAGE = Path(__file__).parents[2] / "docs/how-to/use-the-shell.md"

pytestmark = pytest.mark.slow


def typed():
    """Return the lines of the page, those of a text of several lines together."""
    texts = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = []
    for line in "".join(texts).splitlines():
        if line.startswith("shop> "):
            found.append([line.removeprefix("shop> ")])
        else:
            found[-1].append(line.strip().removeprefix("...").strip())
    return found


def test_every_line_of_the_page_works(tmp_path):
    with serve_sample() as port:
        house = Machine(tmp_path / "home")
        house(
            "connections", "add", "shop", "--type", "elasticsearch", "--host", "127.0.0.1", "--port", str(port), "--yes"
        )
        for line in re.findall(r"^\$ (dragoman page .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
            house(line)
        shell = Screen(house, "open", "shop", columns=130, rows=50, PAGER="cat")
        try:
            lines = typed()
            assert len(lines) > 13
            quits = lines.pop(lines.index(["quit"]))
            for first, *more in lines:
                _type(shell, first, more)
                assert "error[" not in shell.shown
                assert "note[http-error]" not in shell.shown
                assert "unknown command" not in shell.shown
            shell.type(*quits)
            assert shell.end(seconds=60) == 0
        finally:
            shell.kill()


def _type(shell, first, more):
    if first.startswith("watch"):
        shell.ready()
        shell.type(first)
        head = f"every {first.split()[1]} s"
        shell.until(lambda: shell.lines[0].startswith(head) or f"\n{head}" in shell.shown)
        shell.press("ctrl-c")
        shell.ready()
    elif more:
        shell.ready()
        for line in (first, *more):
            shell.type(line)
        shell.until(lambda: "paid" in shell.shown.rpartition(more[-2])[2])
        shell.ready()
    else:
        shell.run(first)
