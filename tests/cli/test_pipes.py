"""Pipes without a writer: a command that waits for one ends on Ctrl-C and SIGTERM, or does not read it at all."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from slow_cases import mostly_slow

WAITING = {"apply FILE": ["apply", "shop", "PIPE", "--yes"], "apply -": ["apply", "shop", "-", "--yes"],
           "console -f": ["console", "shop", "-f", "PIPE"]}  # fmt: skip


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "number", "code"),
    mostly_slow(
        [(words, *end) for words in WAITING for end in ((signal.SIGINT, 130), (signal.SIGTERM, 143))],
        fast=[("apply FILE", signal.SIGTERM, 143), *((words, signal.SIGINT, 130) for words in WAITING)],
    ),
)
def test_what_waits_for_a_pipe_ends_when_it_is_asked_to(own, pipe, words, number, code):
    words = [str(pipe) if word == "PIPE" else word for word in WAITING[words]]
    process = subprocess.Popen(
        own.words(*words, "--events", "-"), env=own.variables(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert "connection.opened" in process.stdout.readline()
        time.sleep(1)  # so that it waits; a test that is too early only shows less
        process.send_signal(number)
        assert process.wait(timeout=30) == code
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_pipe_beside_an_export_is_no_checkpoint_of_it(own, tmp_path):
    os.mkfifo(tmp_path / ".books.ndjson.checkpoint")
    done = own.process("export", "shop", "books", "-o", tmp_path / "books.ndjson", "--resume", code=1)
    assert "error[resume-refused]: " in done.err
    assert "no readable checkpoint" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_lock_that_is_a_pipe_or_a_device_is_named_and_not_read(own, what):
    lock = own.home / "data/plugins.lock"
    lock.unlink()
    if what == "pipe":
        os.mkfifo(lock)
    else:
        lock.symlink_to("/dev/zero")
    told = own.process("plugins", "install", "demo", "--version", "1.0.0", "--yes", code=2).err
    assert "regular file" in told
