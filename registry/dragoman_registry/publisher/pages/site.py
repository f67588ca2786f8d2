"""Every page of a registry, in writing order; pages that are up to date may be left out."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from .all_drivers import catalogue_pages, page_of
from .driver import driver_page
from .simple import other_pages, project_pages

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from dragoman_registry.index.catalog import Catalog
    from dragoman_registry.index.release_documents import Read


def pages(
    catalog: Catalog, read: Read, *, publishers: Mapping[str, str], changed: Collection[str] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Build the pages as pairs of path below `targets/` and content; the same input yields the same bytes.

    Args:
        catalog: The registry's catalog.
        read: Returns a file by its path below `targets/`, or None if it is missing.
        publishers: Maps each project to its publisher.
        changed: Projects whose documents may be new; pages of other projects are built only if their catalog entry
            has changed since. None for every page.
    """
    for project in catalog.projects:
        name, publisher = f"../{page_of(project.project)}", publishers.get(project.project, "")
        stamp = _stamp(project, publisher)
        if changed is not None and project.project not in changed:
            page = read(name)
            if page is not None and page.endswith(f"<!-- {stamp} -->\n".encode()):
                continue
        # The page for people comes last and carries the stamp: if it is up to date, the others are too.
        yield from project_pages(project)
        if project.releases:
            yield name, driver_page(project, read, publisher=publisher, stamp=stamp)
    yield from other_pages(catalog)
    yield from catalogue_pages(catalog)


def _stamp(*made_from: object) -> str:
    return hashlib.sha256(_generator() + msgspec.msgpack.encode(made_from)).hexdigest()


@cache
def _generator() -> bytes:
    """Return a digest of every file here that affects the pages."""
    folder = Path(__file__).parent
    files = sorted(file for file in folder.rglob("*") if file.suffix in (".py", ".html", ".css", ".js"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()
