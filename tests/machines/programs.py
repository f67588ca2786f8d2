"""Programs of this machine that make and boot others, with a clear error where one is missing or fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.machines.kinds import Processor

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
NEEDED = {
    "apt-cache": "apt",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "git": "git",
    "mkfs.ext4": "e2fsprogs",
    "setpriv": "util-linux",
    "tar": "tar",
    "unshare": "util-linux",
    "uv": "",
}
"""Program → Debian's package of it; empty for one that pip installs."""


class MachineError(Exception):
    """A machine cannot be made or started here, or ended early."""


def find(program: str) -> str | None:
    """Find a program on the path, where administrators' programs are, or in this environment; None if it is missing."""
    folders = [os.environ.get("PATH", ""), "/usr/sbin", "/sbin", str(Path(sys.executable).parent)]
    return shutil.which(program, path=os.pathsep.join(folders))


def check_programs(processor: Processor) -> None:
    """Look for all that making and booting a machine takes, before any of it runs.

    Raises:
        MachineError: Something is missing; the message names all of it, and how to get it.
    """
    needed = {processor.qemu: processor.package, **NEEDED}
    packages = {program: package for program, package in needed.items() if find(program) is None}
    if not KEYRING.exists():
        packages[str(KEYRING)] = "debian-archive-keyring"
    if not packages:
        return
    ways = []
    if of_debian := sorted({package for package in packages.values() if package}):
        ways.append(f"on Debian: apt install {' '.join(of_debian)}")
    ways += [f"pip install {program}" for program, package in packages.items() if not package]
    raise MachineError(f"missing here: {', '.join(packages)}; {'; '.join(ways)}")


def call(command: Sequence[str | Path], *, folder: Path | None = None) -> str:
    """Run a program to its end, and return what it printed.

    Raises:
        MachineError: It is missing or failed; the message has what it said.
    """
    name, *words = command
    program = find(str(name))
    if program is None:
        raise MachineError(f"{name} is missing")
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MachineError(
            f"{' '.join(map(str, command[:3]))} … ended with status {done.returncode}:\n{done.stderr.strip()}"
        )
    return done.stdout
