"""Every page of a registry, in the order in which they are written; those that are up to date may be left out."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from .catalogue import catalogue_pages, page_of
from .driver import driver_page
from .simple import other_pages, project_pages

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from dragoman_registry.documents import Read
    from dragoman_registry.index import Catalog


def pages(
    catalog: Catalog, read: Read, *, publishers: Mapping[str, str], changed: Collection[str] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Make the pages: path below `targets/` → content. The same catalog and files give the same bytes.

    Args:
        catalog: What the registry offers.
        read: Gives a file by its path below `targets/`, None where there is none.
        publishers: Who may publish each project.
        changed: Projects whose documents may be new. Of the others only those come whose entry in the catalog is not
            the one their page was made from. None for every page.
    """
    for project in catalog.projects:
        name, publisher = f"../{page_of(project.project)}", publishers.get(project.project, "")
        stamp = _stamp(project, publisher)
        if changed is not None and project.project not in changed:
            made = read(name)
            if made is not None and made.endswith(f"<!-- {stamp} -->\n".encode()):
                continue
        # The page for people comes last and carries the stamp: where it is in order, the others are.
        yield from project_pages(project)
        if project.releases:
            yield name, driver_page(project, read, publisher=publisher, stamp=stamp)
    yield from other_pages(catalog)
    yield from catalogue_pages(catalog)


def _stamp(*made_from: object) -> str:
    return hashlib.sha256(_generator() + msgspec.msgpack.encode(made_from)).hexdigest()


@cache
def _generator() -> bytes:
    """Give a digest of everything here that decides what a page looks like."""
    here = Path(__file__).parent
    files = sorted(file for file in here.rglob("*") if file.suffix in (".py", ".html", ".css", ".js"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()
