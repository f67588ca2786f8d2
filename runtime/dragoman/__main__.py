"""Where the command `dragoman` begins."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:  # answered before a parser is imported
        from dragoman.installed_versions import installed_version

        try:
            sys.stdout.write(f"dragoman {installed_version('dragoman')}\n")
            sys.stdout.flush()
        except OSError:
            pass  # the command reports it
        else:
            return 0
    import gc

    gc.set_threshold(50_000, 20, 20)  # most imported objects stay; scanning them is wasted time
    from dragoman.cli.early_start import start_early

    early = start_early(sys.argv[1:])
    from dragoman.cli.app import run
    from dragoman.cli.signals import ENDED, leave

    code = run(early)
    if code in ENDED:
        leave(code)
    gc.freeze()  # spare the interpreter three scans at exit
    return code


if __name__ == "__main__":
    sys.exit(main())
