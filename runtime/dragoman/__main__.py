"""Where the command `dragoman` begins."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command line and give its exit code."""
    if sys.argv[1:] == ["--version"]:  # answered before a parser is imported
        sys.stdout.write(f"dragoman {_version()}\n")
        return 0
    from dragoman.cli.app import run

    return run()


def _version() -> str:
    """Read the version from the name of the installed metadata; importlib.metadata alone would cost 40 ms."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - pathlib costs more than the rest of this
        except OSError:
            continue
        for name in names:
            if name.startswith("dragoman-") and name.endswith(".dist-info"):
                return name.removeprefix("dragoman-").removesuffix(".dist-info")
    from importlib.metadata import version

    return version("dragoman")


if __name__ == "__main__":
    sys.exit(main())
