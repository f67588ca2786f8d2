"""Versions of what is installed beside the host, without the price of importlib.metadata (some 40 ms)."""

from __future__ import annotations

import os
import sys


def installed_version(distribution: str) -> str:
    """Return the version of an installed distribution, from the name of its metadata folder.

    Raises:
        importlib.metadata.PackageNotFoundError: It is not installed.
    """
    start = distribution.replace("-", "_") + "-"
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - pathlib costs more than the rest of this
        except OSError:
            continue
        for name in names:
            if name.startswith(start) and name.endswith(".dist-info"):
                return name.removeprefix(start).removesuffix(".dist-info")
    from importlib.metadata import version

    return version(distribution)
