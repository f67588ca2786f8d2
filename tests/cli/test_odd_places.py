"""Closed and full streams, names that are not UTF-8, homes that are no folders, and Python without docstrings."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli.app import Narration, execute
from dragoman.cli.options import Options
from dragoman.folders import find_paths
from dragoman_api.errors import ConfigurationError
from slow_cases import mostly_slow

ODD = os.fsdecode(b"/tmp/a\xffb")
FULL = "No space left on device"
CLOSED = "stdout: Bad file descriptor"
STREAMS = [  # a command, with its redirections; its exit code; and what it tells on stderr
    ("plugins list --json >&-", 1, CLOSED),
    ("plugins list --json >/dev/full", 1, FULL),
    ("plugins list --json >&- 2>&-", 1, ""),
    ("plugins list --json 2>/dev/full", 0, ""),
    ("plugins list --json 2>&-", 0, ""),
    ("connections list >&-", 0, "No saved connections"),  # there is no data
    ("connections list <&-", 0, "No saved connections"),
    ("connections list >&- <&- 2>&-", 0, ""),
    ("--version >&-", 1, CLOSED),
    ("--version >/dev/full", 1, FULL),
    ("--version 2>&-", 0, ""),
    ("--help >/dev/full", 1, FULL),
    ("--help >&-", 1, CLOSED),
    ("nosuch 2>/dev/full", 2, ""),
    ("nosuch 2>&-", 2, ""),
    ("nosuch >&-", 2, "No such command"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "code", "told"), mostly_slow(STREAMS, fast=[STREAMS[0], STREAMS[9]]))
def test_data_that_cannot_be_written_fails_the_command_and_narration_that_cannot_does_not(
    tmp_path, command, code, told
):
    script = f"{Path(sys.executable).parent / 'dragoman'} {command}"
    variables = {**os.environ, "DRAGOMAN_HOME": str(tmp_path / "home")}
    done = subprocess.run(["/bin/sh", "-c", script], env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, told in done.stderr, "Traceback" in done.stderr) == (code, True, False), done


def test_narration_is_lost_where_nobody_can_read_it():
    full = os.open("/dev/full", os.O_WRONLY)
    narration = Narration(io.BufferedWriter(io.FileIO(full, "w", closefd=False)), encoding="utf-8", line_buffering=True)
    assert narration.write("a line\n") == 7
    narration.flush()
    print("another", file=narration)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, full)  # so that what waits can be written, and the end of it all is quiet
    narration.close()
    os.close(full)
    os.close(null)


@pytest.mark.parametrize(
    "words",
    [
        ["export", "shop", "books", "-o", ODD],
        ["--home", ODD, "connections", "list"],
        ["registry", "add", ODD],
        ["import", "shop", "books", ODD],
        ["connections", "add", ODD],
        ["page", "shop", "books", f"--events={ODD}"],
    ],
)
def test_a_name_that_is_not_utf_8_is_refused_before_anything_happens(capsys, words):
    assert execute(words, Options(), wait=lambda work: pytest.fail(f"it ran {work}")) == 2
    assert r"a\xffb on the command line is not UTF-8; nothing was done" in capsys.readouterr().err


@pytest.mark.parametrize("home", ["/dev/null", "/dev/full/x", "FILE", "FILE/a/b", ODD])
def test_a_home_that_can_be_no_folder_is_told_with_what_to_set(tmp_path, monkeypatch, home):
    (tmp_path / "file").touch()
    home = home.replace("FILE", str(tmp_path / "file"))
    for variables in ({"DRAGOMAN_HOME": home}, {"HOME": home}):
        for name in ("DRAGOMAN_HOME", *(name for name in os.environ if name.startswith("XDG_"))):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(ConfigurationError, match=r"cannot be used: .*(is not a folder|is not UTF-8)") as caught:
            find_paths()
        assert caught.value.hint == "set DRAGOMAN_HOME to a folder that you can write"


@pytest.mark.parametrize(("words", "told"), [
    (["--help"], "One grid and one console for databases without SQL"),
    (["connections", "--help"], "Save, change and test connections"),
    (["connections", "test", "--help"], "Open a connection and check that it works"),
])  # fmt: skip
@pytest.mark.slow
def test_help_is_the_same_without_docstrings(words, told):
    said = [
        subprocess.run([sys.executable, *switch, "-m", "dragoman", *words], capture_output=True, text=True, check=True)
        for switch in ([], ["-OO"])
    ]
    assert said[0].stdout == said[1].stdout
    assert told in said[0].stdout
