"""What signatures cost: reading them, installing through them, and publishing into a large registry."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/support")]

from benchmarks.compare import INTERPRETER, measure, report, start_interpreter

import marketplace
import wheelhouse
from dragoman_registry.files import write
from dragoman_registry.index.catalog import Types
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.index_records import Index, encode
from dragoman_registry.sources import open_source
from dragoman_registry.trust.keys import Keys, beside, new_key, own_key
from dragoman_registry.trust.roles import patterns
from dragoman_registry.trust.tuf_client import TufTrust
from dragoman_registry.trust.tuf_repository import Repository
from stranger import serve_sample
from trust_attacks import served

DRIVERS, PUBLISHERS = 10_000, 1_000


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        team = folder / "team"
        publish.build(wheelhouse.project_wheels("plugins/elasticsearch"), to=team)
        refresh(team, folder)
        first_page(team, folder)
        publishing(folder / "large")


def refresh(team: Path, folder: Path) -> None:
    """Read and verify everything up to the binding of types; `again` finds that nothing is new."""
    caches = (folder / f"cache-{number}" for number in count())

    def read(location: str, cache: Path) -> None:
        trust = TufTrust(open_source(location), where=location, cache=cache, first_use=True)
        Registry("team", location, trust=trust).types()

    with served(team) as url:
        sides = {
            "unsigned, from a disk": lambda: Registry("team", str(team), trust=wheelhouse.TrustedPath()).types(),
            "signed, from a disk, first": lambda: read(str(team), next(caches)),
            "signed, from a disk, again": lambda: read(str(team), folder / "kept"),
            "signed, over HTTP, first": lambda: read(url, next(caches)),
            "signed, over HTTP, again": lambda: read(url, folder / "kept-http"),
        }
        report("Refresh of signed metadata", measure(sides), baseline="unsigned, from a disk")


def first_page(team: Path, folder: Path) -> None:
    """Open a saved connection whose driver is missing, in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with serve_sample() as port, served(team) as url:
        address = ["--host", "127.0.0.1", "--port", str(port)]
        root = Repository(team, Keys(beside(team))).root_digest

        def home(name: str, location: str) -> dict[str, str]:
            environment = {**kept, "DRAGOMAN_HOME": str(folder / name), "HOME": str(folder)}

            def run(*words: str) -> None:
                command = [sys.executable, "-m", "dragoman", *words]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

            if location:
                run("registry", "add", location, "--name", "team", "--root", root)
            run("connections", "add", "shop", "--type", "elasticsearch", *address, "--yes")
            return environment

        def from_nothing(environment: dict[str, str]) -> None:
            shutil.rmtree(Path(environment["DRAGOMAN_HOME"]) / "data", ignore_errors=True)
            command = [sys.executable, "-m", "dragoman", "page", "shop", "books", "--limit", "10"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

        bundled, disk, web = home("bundled", ""), home("disk", str(team)), home("web", url)
        sides = {
            INTERPRETER: start_interpreter,
            "pinned, from the host itself": lambda: from_nothing(bundled),
            "signed, from a disk": lambda: from_nothing(disk),
            "signed, over HTTP": lambda: from_nothing(web),
        }
        report(
            "Saved connection with a missing driver to its first page",
            measure(sides, rounds=5),
            baseline=INTERPRETER,
            target="1.5 s, signed",
        )


def publishing(root: Path) -> None:
    """Publish one wheel at a time into a registry of 10,000 drivers by 1,000 publishers."""
    publish.init(root)
    repository, catalog = Repository(root, Keys(beside(root))), marketplace.catalog(DRIVERS)
    keys = [new_key().public_key for _ in range(PUBLISHERS)]
    for number, key in enumerate(keys):
        mine = catalog.projects[number * 10 : number * 10 + 10]
        repository.delegate(f"pub-p{number}", key, [path for each in mine for path in patterns(each.project)])
    types = {kind.name: project.project for project in catalog.projects for kind in project.types}
    for name, data in Index.of(catalog).files.items():
        digest = repository.vouch("advisories" if name == "advisories" else "index", name, data)
        write(root / f"targets/{digest}.{name}", data)
    data = encode(Types(types=types))
    digest = repository.vouch("targets", "types", data)
    write(root / f"targets/{digest}.types", data)
    repository.commit()
    acme = own_key(root.parent / "acme.pem")
    publish.add_publisher(
        root, "acme", key=acme.with_suffix(".pub"), projects=["dragoman-demo"], types=["demo"]
    )  # and makes all the pages, once
    versions = (f"1.{number}.0" for number in count())

    def one() -> None:
        wheel = wheelhouse.Driver(version=next(versions)).write(root.parent / "wheels")
        publish.build([wheel], to=root, sign=acme)

    sides = {INTERPRETER: start_interpreter, "build, sign, accept, pages": one}
    report("One wheel into an index of 10,000 drivers", measure(sides, rounds=5), baseline=INTERPRETER)


if __name__ == "__main__":
    main()
