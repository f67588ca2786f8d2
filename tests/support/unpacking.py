"""Unpacks archives on every Python that the project runs on: 3.11.0 to 3.11.3 have no argument for a filter."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def unpack(path: Path, folder: Path) -> None:
    """Unpack a tar archive into a folder; nothing of it lands elsewhere where this Python can hold to that."""
    with tarfile.open(path) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
