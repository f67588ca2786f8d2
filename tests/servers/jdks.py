"""Finds the Java development kits of this machine without running them."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Jdk:
    """One development kit and its feature release (17, 21, …)."""

    home: Path
    release: int

    def tool(self, name: str) -> str:
        """Name one of its programs."""
        return str(self.home / "bin" / name)


def find_jdk(lowest: int, highest: int | None = None) -> Jdk | None:
    """Choose a kit: `JAVA_HOME`, else the one behind `javac`, else the newest beside it or in a usual place."""
    for kit in known_jdks():
        if lowest <= kit.release and (highest is None or kit.release <= highest):
            return kit
    return None


def known_jdks() -> list[Jdk]:
    """List the kits found, the preferred one first, each once."""
    preferred = [kit for home in _preferred_homes() if (kit := _read(home))]
    parents = [kit.home.parent for kit in preferred] + _usual_parents()
    others = [kit for parent in parents for home in _children(parent) if (kit := _read(home))]
    others.sort(key=lambda kit: kit.release, reverse=True)
    return list({kit.home: kit for kit in [*preferred, *others]}.values())


def _preferred_homes() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named)
    if compiler := shutil.which("javac"):
        yield Path(compiler).resolve().parent.parent


def _usual_parents() -> list[Path]:
    return [
        Path("/usr/lib/jvm"),
        Path("/opt/java"),
        Path("/Library/Java/JavaVirtualMachines"),
        Path.home() / ".sdkman/candidates/java",
        Path.home() / ".jdks",
    ]


def _children(parent: Path) -> Iterator[Path]:
    if parent.is_dir():
        for child in sorted(parent.iterdir()):
            yield child / "Contents" / "Home" if (child / "Contents").is_dir() else child


def _read(home: Path) -> Jdk | None:
    """Read a kit's own description; a folder without a compiler is none."""
    home = home.resolve()
    try:
        about = (home / "release").read_text(errors="replace")
    except OSError:
        return None
    found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', about, re.MULTILINE)
    if not found or not (home / "bin" / "javac").exists():
        return None
    return Jdk(home=home, release=int(found[1]))
