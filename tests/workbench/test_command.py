"""The command: how it begins, what it prints, and that it ends when it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.cli import workbench
from dragoman_api.installation import add_command


@contextmanager
def started(dragoman, *words, **more):
    """Start the command as a process, and yield it with its first line."""
    process = subprocess.Popen(
        [*dragoman.words("workbench", *words)],
        env=dragoman.variables(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_within_a_second(dragoman, home, number):
    with started(dragoman, "--no-browser") as (process, line):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}\n", line)
        listener = socket.create_connection(("127.0.0.1", int(re.search(r":(\d+)/", line)[1])))
        began = time.monotonic()
        process.send_signal(number)
        assert process.wait(timeout=20) == 0
        assert time.monotonic() - began < (1.0 if os.getloadavg()[0] < 2 else 10.0)
        listener.close()
    assert [*(home / "state" / "workbench").glob("open-*")] == []


def test_the_browser_gets_a_file_and_never_the_token(dragoman, home, tmp_path):
    told = tmp_path / "told"
    browser = tmp_path / "browser.sh"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}.part\nmv {told}.part {told}\n')
    browser.chmod(0o755)
    with started(dragoman, "--json", BROWSER=str(browser)) as (process, line):
        place = json.loads(line)
        for _ in range(400):
            if told.exists():
                break
            time.sleep(0.05)
        assert told.read_text().strip() == f"file://{place['file']}"
        token = re.search(r"#token=([\w-]+)", Path(place["file"]).read_text())[1]
        assert token not in line
        assert token not in Path(f"/proc/{process.pid}/cmdline").read_text()


def test_without_its_wheel_the_command_says_how_to_get_it(dragoman, monkeypatch):
    monkeypatch.setattr(workbench, "PACKAGE", "dragoman_workbench_that_is_missing")
    ended = dragoman("workbench", code=2)
    assert "error[extra-missing]" in ended.err
    assert f"try: {add_command('dragoman[workbench]')}\n" in ended.err


def test_an_error_inside_the_wheel_is_not_taken_for_its_absence(dragoman, monkeypatch):
    monkeypatch.setitem(sys.modules, "dragoman_workbench.serving", None)
    ended = dragoman("workbench", code=None)
    assert ended.code != 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing", "--no-browser"], "no connection is called 'nothing'"),
        (["--export-to", "/nothing/there", "--no-browser"], "is not a folder"),
        (["--port", "70000"], "70000"),
    ],
)
def test_what_cannot_be_served_is_refused_at_once(dragoman, words, said):
    assert said in dragoman("workbench", *words, code=2).err


@pytest.mark.slow
def test_a_port_that_is_taken_is_told(dragoman):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = dragoman.process("workbench", "--no-browser", "--port", taken.getsockname()[1], code=2)
        port = taken.getsockname()[1]
        assert f"the workbench cannot listen on port {port}: Address already in use\n" in ended.err
        assert "--port 0" in ended.err


@pytest.mark.slow
def test_the_start_does_not_wait_for_the_systems_certificates():
    """aiohttp would load them as it is imported, which takes a tenth of the start; the workbench speaks no TLS."""
    code = (
        "from dragoman.cli import workbench; workbench._serving(); from aiohttp import connector;"
        "print(type(connector._SSL_CONTEXT_VERIFIED).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "LateContext"
