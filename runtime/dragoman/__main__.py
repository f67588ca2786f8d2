"""Where the command `dragoman` begins."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and give its exit code."""
    if sys.argv[1:] == ["--version"]:  # answered before a parser is imported
        from dragoman.versions import installed_version

        sys.stdout.write(f"dragoman {installed_version('dragoman')}\n")
        return 0
    import gc

    gc.set_threshold(50_000, 20, 20)  # most of what is imported stays: to look through it now and then is in vain
    from dragoman.cli.app import run

    code = run()
    gc.freeze()  # and so it is at the end, where the interpreter would look through it three times
    return code


if __name__ == "__main__":
    sys.exit(main())
