"""The built page: its files by address, found once at the start, so that no request names a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""Kinds of files that are served; others are not."""
INDEX = "index.html"
ICON_CACHE = "private, max-age=3600"
"""For files without a digest in their name: a browser asks for the icon again whenever the address changes."""
NOT_BUILT = (
    '<!doctype html><meta charset="utf-8"><title>dragoman</title><h1>The page is not built</h1>'
    "<p>From a checkout: <code>make workbench</code>. From a wheel, install it again: "
    "<code>pip install --force-reinstall dragoman-workbench</code>.\n"
)


class Asset(NamedTuple):
    """One file of the page."""

    path: Path
    kind: str
    cache: str


def find_assets(folder: Path) -> dict[str, Asset]:
    """Return the files below a folder by address (``/``, ``/assets/index-1f2e.js``); links are left out. Blocks."""
    assets = {}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_symlink() or not path.is_file() or path.suffix not in TYPES:
            continue
        name = path.relative_to(folder).as_posix()
        hashed = name.startswith("assets/")  # Vite puts a digest into these names
        cache = "private, max-age=31536000, immutable" if hashed else "no-store" if name == INDEX else ICON_CACHE
        assets["/" if name == INDEX else f"/{name}"] = Asset(path, TYPES[path.suffix], cache)
    return assets
