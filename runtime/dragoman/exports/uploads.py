"""Files for a target that may be a URL: they are written here first, and uploaded when they are complete."""

from __future__ import annotations

import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.to_thread import run_sync

from .stores import parse_target

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def local_file(to: Path | str) -> AsyncIterator[Path]:
    """Yield the path to write; that of a URL is private, and is uploaded if the block ends without an error.

    Raises:
        ConfigurationError: As `parse_target`.
        ExportError: The upload failed; nothing of it is left.
    """
    place = await run_sync(parse_target, to)
    if isinstance(place, Path):
        yield place
        return
    folder = await run_sync(lambda: tempfile.TemporaryDirectory(prefix="dragoman-part-"))
    try:
        parent, name = place.split()
        yield Path(folder.name, name)
        await run_sync(parent.put, Path(folder.name, name), name)
    finally:
        with anyio.CancelScope(shield=True):
            await run_sync(folder.cleanup)
