"""Do the main job with one package at its lowest declared version, each in turn: `python -m tests.single_floors dist`.

The others are as new as they may be, so a floor that holds only beside other old packages fails here. Packages
may follow the folder; by default, all that a distribution declares.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from packaging.requirements import Requirement
from tests.installs import SYSTEM_CERTS, uv
from tests.lowest_versions import declared, lowest_versions
from tests.main_job import Installed, JobError, do, sample_cluster

JOBS = {
    ("dragoman", "arrow"): ["arrow"],
    ("dragoman", "author"): ["author"],
    ("dragoman", "publish"): ["author"],
    ("dragoman", "otel"): ["otel"],
    ("dragoman", "zstd"): ["zstd"],
    ("dragoman-api", "testing"): ["author"],
    ("dragoman-dask", ""): ["dask", "cluster"],
    ("dragoman-dask", "s3"): ["dask"],
    ("dragoman-mcp", ""): ["mcp"],
    ("dragoman-workbench", ""): ["workbench"],
}
"""What is done besides the main job with a package that is declared there."""


def jobs(name: str) -> list[str]:
    """List what a package is tried with besides the main job."""
    places = [(project, extra) for project, extra, requirement in declared() if requirement.name == name]
    return list(dict.fromkeys(job for place in places for job in JOBS.get(place, [])))


def install(folder: Path, release: Path, pin: str) -> Path:
    """Install everything into an empty environment with one package as pinned, and return the program."""
    wheels = {path.name.split("-")[0]: path for path in release.glob("*.whl")}
    host = f"dragoman[author,arrow,mcp,otel,workbench,zstd] @ {wheels.pop('dragoman').as_uri()}"
    dask = f"dragoman-dask[s3] @ {wheels.pop('dragoman_dask').as_uri()}"
    target = ["--python", folder / "env/bin/python", host, dask, *wheels.values(), pin]
    for words in (["venv", "-q", "--python", sys.executable, folder / "env"], ["pip", "install", "-q", *target]):
        environment = {**SYSTEM_CERTS, **os.environ}
        done = subprocess.run([uv(), *words], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise JobError(done.stderr)
    return folder / "env/bin/dragoman"


def main(release: Path, pins: list[str]) -> int:
    """Try each, and print how it went; 1 if any failed."""
    began, failed = time.monotonic(), []
    with sample_cluster() as port:
        for pin in pins:
            folder = Path(tempfile.mkdtemp(prefix="dragoman-floor-"))
            extras = jobs(Requirement(pin).name)
            try:
                do(Installed(install(folder, release, pin), folder, port), extras)
            except (JobError, subprocess.TimeoutExpired) as error:
                failed.append(pin)
                print(f"{pin}: FAILED\n{error}", flush=True)
            else:
                print(f"{pin}: {', '.join(['main job', *extras])}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    passed = f"{len(pins) - len(failed)} of {len(pins)} floors hold alone"
    print(f"{passed} ({time.monotonic() - began:.0f} s){''.join(f'; {pin} does not' for pin in failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("release", type=Path)
    parser.add_argument("packages", nargs="*")
    arguments = parser.parse_args()
    lowest = lowest_versions()
    pins = [f"{name}=={lowest[name]}" for name in arguments.packages or sorted(lowest)]
    sys.exit(main(arguments.release.resolve(), pins))
