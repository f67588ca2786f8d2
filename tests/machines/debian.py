"""Packages of Debian for any processor: chosen, checked and fetched by the apt of this machine, unpacked without it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.machines.programs import KEYRING, MachineError, call

if TYPE_CHECKING:
    from collections.abc import Iterable

MIRROR = "http://deb.debian.org"


@dataclass(frozen=True)
class Archive:
    """Suites of Debian for one processor, with a state of apt that is not this machine's.

    Attributes:
        folder: Where apt keeps its lists and what it fetched.
        processor: Debian's name of it.
        suites: Whose packages there are.
    """

    folder: Path
    processor: str
    suites: tuple[str, ...]

    def update(self) -> None:
        """Fetch the lists of packages, whose signatures apt checks."""
        for part in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        lines = []
        for suite in self.suites:
            place = "debian-security" if suite.endswith("-security") else "debian"
            lines.append(f"deb [signed-by={KEYRING}] {MIRROR}/{place} {suite} main\n")
        (self.folder / "sources.list").write_text("".join(lines))
        self._apt("apt-get", "update")

    def closure(self, packages: Iterable[str]) -> list[Path]:
        """Fetch packages and all that they depend on."""
        words = ("install", "--yes", "--no-install-recommends")
        self._apt("apt-get", *words, "--download-only", *packages)
        listed = self._apt("apt-get", *words, "--simulate", *packages)
        names = [line.split()[1] for line in listed.splitlines() if line.startswith("Inst ")]
        return [self._fetched(name) for name in names]

    def newest_kernel(self) -> Path:
        """Fetch the kernel that Debian's package for this processor leads to, without what would install it."""
        listed = self._apt("apt-cache", "depends", "--important", f"linux-image-{self.processor}")
        name = next(word for line in listed.splitlines() if "Depends:" in line for word in line.split()[1:])
        self._apt("apt-get", "download", name)
        return self._fetched(name)

    def _fetched(self, name: str) -> Path:
        (package,) = [*(self.folder / "cache/archives").glob(f"{name}_*.deb")]
        return package

    def _apt(self, program: str, *words: str) -> str:
        folder = self.folder
        options = {
            "Dir::State": folder / "state",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder / "cache",
            "Dir::Etc::SourceList": folder / "sources.list",
            "Dir::Etc::SourceParts": "-",
            "APT::Architecture": self.processor,
            "APT::Architectures": self.processor,
            "APT::Sandbox::User": "root",  # an unprivileged user of its own could not write here
        }
        settings = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return call([program, "-q", words[0], *settings, *words[1:]], folder=folder / "cache/archives")


def unpack(package: Path, folder: Path) -> None:
    """Unpack the files of a package; its scripts do not run.

    Raises:
        MachineError: The package cannot be read, or the folder not written.
    """
    read = ["dpkg-deb", "--fsys-tarfile", package]
    write = ["tar", "--extract", "--keep-directory-symlink", "--directory", folder]  # bin, lib and sbin lead into usr
    with subprocess.Popen(read, stdout=subprocess.PIPE) as reader:
        status = subprocess.run(write, stdin=reader.stdout, check=False).returncode
    if reader.returncode or status:
        raise MachineError(f"{package.name} cannot be unpacked into {folder}: is its disk full?")
