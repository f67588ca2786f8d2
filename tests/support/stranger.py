"""A stranger's machine for tests: a home of its own, a shell to type into, and the sample cluster."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass
class Result:
    """What a command printed, and how it ended."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@dataclass
class Shell:
    """Types commands as a person would, in one home."""

    home: Path
    cwd: Path
    port: int
    more: dict[str, str] = field(default_factory=dict)

    def words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "dragoman", *words]

    def variables(self, **more: str) -> dict[str, str]:
        home = {"HOME": str(self.home), "DRAGOMAN_HOME": str(self.home / "dragoman")}
        return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color", **home, **self.more, **more}

    def __call__(self, command: str, *, stdin: str = "", status: int | None = 0) -> Result:
        words = shlex.split(command.replace("$PORT", str(self.port)))
        assert words[0] == "dragoman"
        done = subprocess.run(
            self.words(*words[1:]),
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.cwd,
            timeout=50,
            env=self.variables(),
        )
        result = Result(done.returncode, done.stdout, done.stderr)
        if status is not None:
            assert result.status == status, f"{command}\n--- stdout\n{result.out}\n--- stderr\n{result.err}"
        return result


@contextmanager
def serve_sample():
    """Serve the sample cluster in a process of its own, and give its port."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests/support")])}
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.demo.sample", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    try:
        port = json.loads(server.stdout.readline())["port"]
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).close()
        yield port
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(10)
        server.stdout.close()
