"""Schedulers and workers of Dask as processes of their own, each worker with its own home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

T = TypeVar("T")


def until(condition: Callable[[], T], process: subprocess.Popen[Any] | None = None) -> T:
    """Wait until a condition holds, for two minutes, while a process runs."""
    for _ in range(2400):
        if found := condition():
            return found
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("it never happened")


@contextmanager
def scheduler(
    folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a scheduler on the loopback; yield its address and its process. It is open unless the environment has TLS."""
    file = folder / "scheduler"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
               "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file)]  # fmt: skip
    command += ["--protocol", "tls"] if environment else []
    process = subprocess.Popen(
        command, env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(file.exists)
        yield until(lambda: _address(file)), process
    finally:
        end(process)


def _address(path: Path) -> str:
    try:
        return str(json.loads(path.read_text())["address"])
    except ValueError:
        return ""


@contextmanager
def worker(
    address: str, home: Path, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker whose home is another one."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard", "--nworkers", "1",
               "--local-directory", str(folder), "--dashboard-address", "127.0.0.1:0",
               "--death-timeout", "30"]  # fmt: skip
    log = folder.with_suffix(".log")
    with log.open("wb") as told:
        process = subprocess.Popen(
            command,
            env={**os.environ, **(environment or {}), "DRAGOMAN_HOME": str(home)},
            stdout=subprocess.DEVNULL,
            stderr=told,
        )
    try:
        until(lambda: "Registered to:" in log.read_text(), process)
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """End a process, by force if it takes long."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def encryption(folder: Path) -> dict[str, str]:
    """Write certificates of a cluster; return the settings of Dask that name them, as its environment has them."""
    from distributed import Security

    made: Any = Security.temporary()
    settings = {"REQUIRE_ENCRYPTION": "true", "TLS__CA_FILE": _written(folder / "ca.pem", made.tls_ca_file)}
    for role in ("scheduler", "worker", "client"):
        for what in ("cert", "key"):
            text = getattr(made, f"tls_{role}_{what}")
            settings[f"TLS__{role.upper()}__{what.upper()}"] = _written(folder / f"{role}-{what}.pem", text)
    return {f"DASK_DISTRIBUTED__COMM__{name}": value for name, value in settings.items()}


def _written(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)
