"""A terminal for tests: types into a command as a person does, and reads what is shown."""

from __future__ import annotations

import errno
import os
import pty
import re
import select
import subprocess
import termios
import time


class Terminal:
    """A pseudo terminal with the command on its other side."""

    def __init__(self, house, *words, **variables):
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, 160))
        self.process = subprocess.Popen(
            house.words(*words), env=house.variables(NO_COLOR="1", **variables), stdin=slave, stdout=slave,
            stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def until(self, text, *, seconds=20.0):
        """Read until a text was shown, and give what was shown before it."""
        deadline = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self._master], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} was not shown within {seconds} s: {self.seen!r}"
            assert self._read(), f"it ended without showing {text!r}: {self.seen!r}"
        before, _, self.seen = self.seen.partition(text)
        return before

    def _read(self):
        try:
            data = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""
        self.seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data.decode(errors="replace")).replace("\r\n", "\n")
        return data

    def type(self, text, *, enter=True):
        os.write(self._master, (text + ("\n" if enter else "")).encode())

    def answer(self, question, text):
        """Wait for a question and type the answer; gives what was shown before the question."""
        before = self.until(question)
        self.type(text)
        return before

    def end(self):
        """Wait for the end and give the exit code with the rest of what was shown."""
        while self._read():
            pass
        os.close(self._master)
        return self.process.wait(timeout=10), self.seen
