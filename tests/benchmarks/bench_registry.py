"""A registry of 10,000 drivers and of 100,000: searching it, describing one, writing its pages, publishing into it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from functools import partial
from itertools import count as count_from
from pathlib import Path
from typing import TYPE_CHECKING

import wheelhouse

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/support")]

from benchmarks.compare import INTERPRETER, measure, report, start_interpreter

import marketplace
from dragoman.plugins.combined_catalog import find_offer, read_offers
from dragoman.plugins.driver_search import search
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.index import search_summaries as summaries
from dragoman_registry.index.catalog import Catalog
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.index_records import Index
from dragoman_registry.publisher.pages import pages

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for count in (10_000, 100_000):
            browse(Path(folder) / str(count), count)
            shutil.rmtree(Path(folder) / str(count))
        write(Path(folder) / "pages")
        publish_into(Path(folder))


def browse(root: Path, count: int) -> None:
    """Search and describe unsigned drivers, to measure this alone; signatures have rows of their own."""
    targets = root / "targets"
    targets.mkdir(parents=True)
    catalog, small = marketplace.catalog(count), count <= 10_000
    files = (
        Index.of(catalog).files
        if small
        else {"browse": summaries.encode(map(summaries.summarise, catalog.projects)), "advisories": b"{}"}
    )
    for name, data in files.items():
        (targets / name).write_bytes(data)
    sizes = ", ".join(f"{name} of {len(data) / 1e6:.1f} MB" for name, data in files.items() if len(data) > 1_000_000)
    registries, store = [Registry("big", str(root), trust=wheelhouse.TrustedPath())], Store(root / "data")
    sides: dict[str, Callable[[], object]] = {
        "search: two words": lambda: search(store, registries, "store vectors"),
        "search: an id, compatible": lambda: search(store, registries, "store000777", compatible=True),
        "list: all of them": lambda: search(store, registries),
    }
    if small:
        sides["find one, to show or install it"] = lambda: find_offer(registries, "store000777")
        sides["read the whole catalog"] = lambda: read_offers(registries)
    title = f"{count:,} drivers, two releases each: {sizes}"
    report(title, measure(sides, rounds=3), baseline="search: two words", target="100 ms for 10,000")
    code = (
        "import sys; from pathlib import Path; from dragoman.plugins.driver_search import search;"
        "from dragoman_registry.index.registry_reader import Registry;"
        "from dragoman_registry.client.installed_drivers import Store;"
        "search(Store(Path(sys.argv[1], 'data')), [Registry('big', sys.argv[1])], 'store vectors')"
    )
    fresh = partial(subprocess.run, [sys.executable, "-c", code, str(root)], check=True)
    found = measure({INTERPRETER: start_interpreter, "search: two words": fresh}, rounds=3)
    report(f"{count:,} drivers, in a process of its own", found, baseline=INTERPRETER)


def write(root: Path) -> None:
    """Write the pages of 10,000 drivers: all of them, and those that one more release changes."""
    catalog = marketplace.catalog(10_000)
    readme = marketplace.README.encode()

    def read(name: str) -> bytes | None:
        file = root / "targets" / name
        if name.endswith("README.md"):
            return readme
        return file.read_bytes() if file.is_file() else None

    def store(changed: Catalog, projects: set[str] | None) -> int:
        written = 0
        for name, content in pages(Index.of(changed), read, publishers={}, changed=projects):
            file = root / "targets" / name
            if not file.is_file() or file.read_bytes() != content:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                written += 1
        return written

    def everything() -> int:
        shutil.rmtree(root, ignore_errors=True)
        return store(catalog, None)

    releases = iter(range(3, 30))

    def one_more() -> None:
        newer = marketplace.project(5_000, releases=next(releases))
        made = Catalog(projects=(*catalog.projects[:5_000], newer, *catalog.projects[5_001:]))
        written = store(made, {newer.project})
        assert written <= 8, f"{written} pages were written for one release"

    sides = {"every page": everything, "those of one release": one_more}
    report("Pages of 10,000 drivers, without fsync", measure(sides, rounds=1), baseline="every page")


def publish_into(folder: Path) -> None:
    """Publish one more driver into signed registries of 10 and of 10,000 drivers, of 20 for each publisher."""
    numbers = count_from(1)

    def one_more(root: Path) -> None:
        wheel = wheelhouse.Driver(f"more{next(numbers)}").write(folder / "wheels")
        publish.build([wheel], to=root)

    roots = {f"{count:,} drivers": marketplace.signed(folder / f"signed{count}", count) for count in (10, 10_000)}
    sides: dict[str, Callable[[], object]] = {name: partial(one_more, root) for name, root in roots.items()}
    report("Publish one more driver", measure(sides, rounds=3), baseline="10 drivers", target="1 s for 10,000")


if __name__ == "__main__":
    main()
