"""The early start of a driver's process, which imports beside the command line instead of after it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # without typing, which the child need not wait for
if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.sandbox.bare_process import Spare

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
    "summarize",
    "update",
}
"""The commands that open a connection."""


def start_early(words: Sequence[str]) -> Spare | None:
    """Start the process if a command line opens a connection; else, and where that fails, the command decides.

    Args:
        words: The arguments. They are not parsed yet, so what names another folder, or only asks for help, is left.
    """
    if not words or words[0] not in OPENING or any(word.startswith(("--home", "--help", "-h")) for word in words):
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
