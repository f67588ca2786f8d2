"""Whole commands as a person types them, each beside a bare interpreter, all in one run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/support")]

from benchmarks.compare import INTERPRETER, measure, report, start_interpreter

from stranger import serve_sample


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, serve_sample() as port:
        home = Path(folder) / "dragoman"
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment = {**kept, "DRAGOMAN_HOME": str(home), "HOME": folder}

        def run(*words: str) -> None:
            subprocess.run([sys.executable, "-m", "dragoman", *words], check=True, capture_output=True, env=environment)

        def from_nothing() -> None:
            shutil.rmtree(home / "data", ignore_errors=True)  # as on a machine that has only connections.toml
            run("page", "shop", "books", "--limit", "10")

        address = ["--host", "127.0.0.1", "--port", str(port)]
        run("connections", "add", "shop", "--type", "elasticsearch", *address, "--yes")
        report(
            "Commands that start no driver",
            measure(
                {
                    INTERPRETER: start_interpreter,
                    "--version": lambda: run("--version"),
                    "plugins list": lambda: run("plugins", "list"),
                }
            ),
            baseline=INTERPRETER,
            target="--version 60 ms, plugins list 120 ms",
        )
        report(
            "One-shot page of 10 rows, driver installed",
            measure({INTERPRETER: start_interpreter, "page": lambda: run("page", "shop", "books", "--limit", "10")}),
            baseline=INTERPRETER,
            target="400 ms",
        )
        line = {"_DRAGOMAN_COMPLETE": "zsh_complete", "COMP_LINE": "dragoman page shop books --filter 'pri"}
        command = [sys.executable, "-m", "dragoman"]

        def complete() -> None:
            done = subprocess.run(command, check=False, capture_output=True, env={**environment, **line}, text=True)
            if "price >= " not in done.stdout:
                raise SystemExit(f"it is not completed: {done.stdout}{done.stderr}")

        report(
            "Completion in a shell, a column from the names kept",
            measure({INTERPRETER: start_interpreter, "a line's last word": complete}, rounds=15),
            baseline=INTERPRETER,
            target="150 ms",
        )
        sides = {INTERPRETER: start_interpreter, "install and page": from_nothing}
        if uv := shutil.which("uv"):  # for orientation: it checks, confines and syncs nothing
            [wheel] = (ROOT / "runtime/dragoman/bundled").rglob("*.whl")
            command = [uv, "pip", "install", "-q", "--no-index", "--no-deps", "--target", f"{folder}/uv", str(wheel)]
            sides["uv pip install --target"] = lambda: subprocess.run([*command, "--reinstall"], check=True)
        report(
            "Saved connection with a missing driver to its first page, smoke test and fsyncs included",
            measure(sides, rounds=5),
            baseline=INTERPRETER,
            target="1.5 s",
        )


if __name__ == "__main__":
    main()
