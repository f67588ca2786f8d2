"""Files for a target that may be a URL: they are written on this machine, and uploaded when they are complete."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from dragoman.folders import scratch_folder

from .stores import parse_target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


@asynccontextmanager
async def local_file(
    to: Path | str, *, confirm: Callable[[], object]
) -> AsyncIterator[tuple[Path, Callable[[], object]]]:
    """Yield the path to write to, and a function to call before its file is complete.

    For a URL, the path is a private one, and its file is uploaded if the block ends without an error.

    Args:
        to: The path or the URL of the file.
        confirm: Called before the file appears at its place; if it raises an error, nothing of the file is left.

    Raises:
        ConfigurationError: It is a URL that holds a password or options, or the package for it is missing.
        ExportError: The upload failed; nothing of the file is left.
    """
    place = await run_sync(parse_target, to)
    if isinstance(place, Path):
        yield place, confirm
        return
    scratch = scratch_folder()
    folder = await run_sync(scratch.__enter__)
    try:
        parent, name = place.split()
        yield folder / name, lambda: None
        await run_sync(partial(parent.put, folder / name, name, confirm=confirm))
    finally:
        with anyio.CancelScope(shield=True):
            await run_sync(scratch.__exit__, None, None, None)
