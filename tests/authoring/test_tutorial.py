"""The tutorial for authors, followed word by word: every command typed, every line it shows compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from authoring.conftest import free_port

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs/tutorial/first-driver.md"
FENCE = re.compile(r"(?:`(?P<file>[\w.]+)`[^`]*\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "\x02"


def steps(port: int) -> list[tuple[str, list[str]]]:
    """Return the commands of the page in order, each with its expected lines; a file to save is a command too."""
    text, found = PAGE.read_text(encoding="utf-8").replace("7700", str(port)), []
    for block in FENCE.finditer(text):
        if block["kind"] == "console":
            for line in block["text"].splitlines():
                if line.startswith("$ "):
                    found.append((line[2:], []))
                else:
                    found[-1][1].append(line)
        elif block["kind"] in ("diff", "json"):
            assert block["file"], f"the page does not say where to save:\n{block['text'][:200]}"
            found.append((f"cat > {block['file']} <<'END'\n{block['text']}END", []))
    return found


def pattern(shown: str) -> re.Pattern[str]:
    """Make a pattern of a line as the page shows it: digests, times, folders and padding are examples."""
    escaped = re.escape(shown.strip()).replace("…", ".*")
    escaped = re.sub(r"sha256\\ [0-9a-f]+", r"sha256 [0-9a-f]+", escaped)
    escaped = re.sub(r"root\\ [0-9a-f]+", r"root [0-9a-f]+", escaped)
    escaped = escaped.replace(r"sandbox\ full", r"sandbox (?:full|partial: .*?)")
    escaped = re.sub(r"\d+(?=\\ (?:passed|skipped))", r"\\d+", escaped)  # the kit grows
    spaced = re.sub(r"(\\ )+", r"\\s+", escaped)
    return re.compile(rf"^\s*{spaced}\s*$", re.MULTILINE)


@pytest.fixture(scope="module")
def typed(tmp_path_factory) -> list[tuple[str, list[str], str]]:
    """Type the whole page into one shell."""
    folder, todo = tmp_path_factory.mktemp("author"), steps(free_port())
    script = "set -m\nexec 2>&1\n"
    # What runs in the background keeps its output to itself, and ends with a shell that is killed.
    for command, _ in todo:
        quiet = re.sub(r"^(.*) &$", r"timeout 340 \1 >/dev/null &", command)
        script += f"{quiet}\necho '{MARK}'$?\n"
    home = {"HOME": str(folder), "DRAGOMAN_HOME": str(folder / "home"), "LANG": "C.UTF-8"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env={"PATH": path, **home}, capture_output=True, text=True, timeout=330
    )
    said = re.split(rf"{MARK}(\d+)\n", done.stdout)
    assert len(said) == 2 * len(todo) + 1, done.stdout[-3000:] + done.stderr
    return [(*step, status, out) for step, out, status in zip(todo, said[::2], said[1::2], strict=False)]


@pytest.mark.timeout(340)
def test_every_command_of_the_tutorial_succeeds_and_says_what_the_page_shows(typed):
    faults = []
    for command, shown, status, out in typed:
        if status != "0":
            faults.append(f"$ {command}\n{out}\nended with {status}")
        faults += [f"$ {command}\n{out}\ndoes not show: {line}" for line in shown if not pattern(line).search(out)]
    assert not faults, "\n\n".join(faults)


@pytest.mark.timeout(340)
def test_the_tutorial_goes_from_nothing_to_another_home(typed):
    """P3: in the second home nothing but the registry is known, and opening installs the driver."""
    commands = [command for command, *_ in typed]
    for verb in ("driver new", "driver check", "driver test", "driver link", "driver publish", "registry add"):
        assert any(f"dragoman {verb}" in command for command in commands), verb
    first = commands.index("dragoman registry add ../team")
    assert any("DRAGOMAN_HOME" in command for command in commands[:first])
    assert "installed orbit 0.1.0" in typed[first + 1][3]
