"""A machine's job: each part in turn, its answer as a line of JSON for whoever started the machine."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import anyio
from tests.main_job import Installed, JobError, do, sample_cluster

from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.launch import Launch
from dragoman_api.errors import SandboxError

INSTALLED = Path("/machine/installed")
PORTS = Path("/sys/class/virtio-ports")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")


def doctor() -> dict[str, Any]:
    """Tell what `dragoman doctor` says to root and to an ordinary user."""
    answer: dict[str, Any] = {"kernel": platform.release(), "processor": platform.machine()}
    for user, become in (("root", ()), ("ordinary user", NOBODY)):
        folder = Path("/tmp", user.replace(" ", "-"))
        folder.mkdir()
        if become:
            os.chown(folder, 65534, 65534)
        command = [*become, "/srv/tests/bin/python", "-m", "dragoman", "doctor", "--json"]
        environment = {"PATH": os.environ["PATH"], "DRAGOMAN_HOME": str(folder), "HOME": str(folder)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd="/")
        print(done.stdout, done.stderr)
        answer[user] = json.loads(done.stdout)["sandbox"]
    return answer | {"require": required()}


def required() -> str:
    """Start a driver's process that must be at `full`, and tell whether it starts, or how dragoman refuses."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tiny.py").write_text("class Driver: ...\n")
        launch = Launch(driver="tiny:Driver", trees=(Path(folder),), policy="require")

        async def start() -> str:
            async with Worker(launch):
                return "starts"

        try:
            return anyio.run(start)
        except SandboxError as error:
            return f"refused: {error.message}"


def tests(words: list[str]) -> dict[str, Any]:
    """Run tests, and count how they ended."""
    report = Path("/tmp/report.xml")
    report.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--color=no",
        "-p",
        "no:cacheprovider",
        f"--junit-xml={report}",
        *words,
    ]
    ended = subprocess.run(command, check=False).returncode
    counts = {"passed": 0, "skipped": 0, "failed": 0}
    failures, skips = [], []
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        if (skip := case.find("skipped")) is not None:
            counts["skipped"] += 1
            skips.append(f"{name}: {skip.get('message')}")
        elif case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
            failures.append(name)
        else:
            counts["passed"] += 1
    return {**counts, "failures": failures, "skips": skips, "status": ended}


def first_hour() -> dict[str, Any]:
    """Connect, page, filter, edit and export, with the program that the release's wheels installed."""
    shutil.copytree(
        "/srv/tests/lib",
        INSTALLED / "lib",
        dirs_exist_ok=True,
        symlinks=True,
        ignore=lambda _, names: [name for name in names if name.startswith(("dragoman", "_editable_impl_dragoman"))],
    )
    folder = Path("/tmp/first-hour")
    folder.mkdir()
    try:
        with sample_cluster() as port:
            do(Installed(INSTALLED / "bin/dragoman", folder, port))
    except JobError as error:
        return {"passed": 0, "skipped": 0, "failed": 1, "failures": [str(error)]}
    return {"passed": 1, "skipped": 0, "failed": 0, "failures": []}


def main() -> None:
    """Do all parts of the job."""
    job = json.loads(Path("/machine/job.json").read_text())
    os.environ |= job["environment"]
    (port,) = [entry for entry in PORTS.iterdir() if (entry / "name").read_text().strip() == "answers"]
    with Path("/dev", port.name).open("w") as answers:
        for part in job["parts"]:
            print(f"== {part['name']}", flush=True)
            began = time.monotonic()
            if part["name"] == "doctor":
                answer = doctor()
            elif part["name"] == "first hour":
                answer = first_hour()
            else:
                answer = tests(part["words"])
            line = {"part": part["name"], "seconds": round(time.monotonic() - began), **answer}
            print(json.dumps(line, indent=1), flush=True)
            answers.write(json.dumps(line) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
