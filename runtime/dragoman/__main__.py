"""Where the command `dragoman` begins."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sys import UnraisableHookArgs

    from .sandbox.bare_process import Spare

OPENING = {
    "apply",
    "cell",
    "console",
    "count",
    "delete",
    "describe",
    "drop",
    "export",
    "import",
    "insert",
    "objects",
    "open",
    "page",
    "similar",
    "summarize",
    "update",
}
"""The commands that open a connection."""

FLAGS = {"--json", "--yes", "-y", "--quiet", "-q"}
"""The global options without a value, but for `--help` and `--version`."""

VALUED = {"--use", "--events", "--driver-log", "--sandbox"}
"""The global options that are followed by a value, but for `--home`."""


def command_of(words: Sequence[str]) -> str:
    """Return the first word after the global options; empty if there is none."""
    rest = iter(words)
    for word in rest:
        if word in VALUED:
            next(rest, None)
        elif word not in FLAGS and word.partition("=")[0] not in VALUED:
            return word
    return ""


def start_early(words: Sequence[str]) -> Spare | None:
    """Start the process if a command line opens a connection; else, and where that fails, the command decides.

    Args:
        words: The arguments. They are not parsed yet, so what names another folder, or only asks for help, is left.
    """
    if command_of(words) not in OPENING or any(word.startswith(("--home", "--help", "-h")) for word in words):
        return None
    if None in (sys.stdin, sys.stdout, sys.stderr):  # its descriptors would take their place
        return None
    from dragoman.sandbox.bare_process import Child

    try:
        child = Child()
    except OSError:  # the command meets it again, and reports it
        return None
    from dragoman.folders import find_paths  # beside the start of the child, which waits for what these find
    from dragoman.sandbox.bare_process import Spare
    from dragoman.sandbox.host_imports import find_host_imports
    from dragoman_api.errors import DragomanError

    try:
        return Spare(find_host_imports(find_paths().cache), started=child)
    except (DragomanError, OSError):  # as above
        child.discard()
        return None


def keep_interrupt(unraisable: UnraisableHookArgs) -> None:
    """Send an interrupt once more that a callback of the interpreter has swallowed.

    Python ignores what is raised in a `__del__` or in the callback of a weak reference, and imports have many of them.
    """
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    import _thread
    import signal
    import time

    interrupted = _thread.get_ident()

    def interrupt_later() -> None:
        time.sleep(0.01)  # sent at once, it would be raised in here, and ignored, too
        signal.pthread_kill(interrupted, signal.SIGINT)

    _thread.start_new_thread(interrupt_later, ())


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:  # answered before a parser is imported
        from dragoman.folders import installed_version

        try:
            sys.stdout.write(f"dragoman {installed_version('dragoman')}\n")
            sys.stdout.flush()
        except OSError:
            pass  # the command reports it
        else:
            return 0
    import gc

    sys.unraisablehook = keep_interrupt
    gc.set_threshold(50_000, 20, 20)  # most imported objects stay; scanning them is wasted time
    try:
        early = start_early(sys.argv[1:])
        if early is not None:
            gc.disable()  # until the command has imported what it needs
        from dragoman.cli.app import run

        from .cli.streams import ENDED, leave

        code = run(early)
    except KeyboardInterrupt:  # in the midst of an import, before there is a command that reports it
        if sys.stderr is not None:
            sys.stderr.write("\n  interrupted\n")
        return 130
    if code in ENDED:
        leave(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
