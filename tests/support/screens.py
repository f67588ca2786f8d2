"""A terminal with a screen: keys go to a command as from a keyboard, and the screen is what a person would see.

`terminal.Terminal` reads a stream of text; a program that moves the cursor needs this one.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import termios
import time

import pyte

KEYS = {
    "enter": "\r", "tab": "\t", "escape": "\x1b", "alt-enter": "\x1b\r", "up": "\x1b[A", "ctrl-c": "\x03",
    "ctrl-d": "\x04", "ctrl-r": "\x12", "ctrl-u": "\x15",
}  # fmt: skip


class _Answering(pyte.HistoryScreen):
    """A screen that answers the questions of a program, as terminals do."""

    def __init__(self, columns, rows, answer):
        super().__init__(columns, rows, history=5_000, ratio=0.5)
        self._answer = answer

    def write_process_input(self, data):
        self._answer(data)

    def report_device_status(self, mode, private=False):
        super().report_device_status(mode)


class Screen:
    """A pseudo terminal of a size, with the command on its other side."""

    def __init__(self, house, *words, columns=100, rows=30, program=None, **variables):
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (rows, columns))
        environment = house.variables(**{"TERM": "xterm-256color", **variables})
        self.process = subprocess.Popen(
            program or house.words(*words), env=environment, stdin=slave, stdout=slave, stderr=slave, cwd=house.cwd,
            start_new_session=True, preexec_fn=lambda: _own_terminal(slave),
        )  # fmt: skip
        os.close(slave)
        self.screen = _Answering(columns, rows, self._send)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""

    def _send(self, text):
        os.write(self._master, text.encode())

    def press(self, *keys):
        """Press keys by name."""
        for key in keys:
            self._send(KEYS[key])

    def type(self, text, *, enter=True):
        """Type a text as it is."""
        self._send(text + ("\r" if enter else ""))

    @property
    def lines(self):
        """What is on the screen, and above it."""
        above = ["".join(line[at].data for at in range(self.screen.columns)) for line in self.screen.history.top]
        return [line.rstrip() for line in [*above, *self.screen.display]]

    @property
    def shown(self):
        """All lines, as one text."""
        return "\n".join(self.lines).rstrip()

    def prompts(self, name="shop"):
        """Count the prompts with nothing behind them, the last line of all."""
        return self.shown.splitlines()[-1:] == [f"{name}>"]

    def until(self, holds, *, seconds=15.0):
        """Read until a text is shown, or until a condition holds; gives all that is shown."""
        deadline = time.monotonic() + seconds
        wanted = holds if callable(holds) else lambda: holds in self.shown
        while not wanted():
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._master], [], [], max(left, 0))
            assert ready, f"not shown within {seconds} s: {holds!r}\n{self.shown}"
            assert self._read(), f"it ended without {holds!r}\n{self.shown}"
        return self.shown

    def ready(self, name="shop"):
        """Read until the prompt waits for a line."""
        return self.until(lambda: self.prompts(name))

    def run(self, line, *, name="shop"):
        """Type a line and give what it shows, until the next prompt."""
        self.ready(name)
        mark = f"{name}> {line}"
        before = self.lines.count(mark)
        self.type(line)
        self.until(lambda: self.lines.count(mark) > before and self.prompts(name))
        return self.shown.rpartition(f"{mark}\n")[2].rpartition("\n")[0].strip("\n")

    def _read(self):
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return b""
        self.raw += data
        self._stream.feed(data)
        return data

    def interrupt(self):
        """Press Ctrl-C while the terminal is in line mode."""
        os.killpg(os.tcgetpgrp(self._master), signal.SIGINT)

    def end(self, *, seconds=10):
        """Wait for the end and give the exit code."""
        deadline = time.monotonic() + seconds
        while select.select([self._master], [], [], max(deadline - time.monotonic(), 0))[0] and self._read():
            pass
        code = self.process.wait(timeout=max(deadline - time.monotonic(), 1))
        os.close(self._master)
        return code

    def kill(self):
        """End the command if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def _own_terminal(slave):
    import fcntl

    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
