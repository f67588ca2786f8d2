"""Where the command `dragoman` begins."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and give its exit code."""
    if sys.argv[1:] == ["--version"]:  # answered before a parser is imported
        from dragoman.versions import installed_version

        sys.stdout.write(f"dragoman {installed_version('dragoman')}\n")
        return 0
    from dragoman.cli.app import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
