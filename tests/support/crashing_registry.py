"""Killing the making of a registry at each step that changes something on disk: `crashing_registry.py FOLDER SCENARIO`.

For n = 1, 4, 7, …, or for each n in a thorough run, a forked child works on a copy and kills itself at the n-th step.
Then another looks at what is left as clients would, one that saw the state before and one that is new; does the work
again; and looks once more.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
from pathlib import Path

import wheelhouse
from crashing import Bomb, child
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.isolation import Apart
from dragoman_registry.publisher import publish
from dragoman_registry.publisher.verify import verify
from dragoman_registry.sources import open_source
from dragoman_registry.trust.keys import beside
from dragoman_registry.trust.tuf_client import TufTrust
from shared_isolation import one_process_apart
from thorough import THOROUGH
from trust_attacks import Case, driver

SCENARIOS = ("publish", "accept", "rotate", "init")


def look(root: Path, cache: Path, versions: tuple[set[str], ...]) -> None:
    """Hold what must be true of any state that somebody finds: all of what it offers is there, and signed."""
    trust = TufTrust(open_source(str(root)), where=str(root), cache=cache, first_use=True)
    registry = Registry("r", str(root), trust=trust)
    releases = registry.releases(registry.types()["demo"])
    assert {release.version for release in releases} in versions, releases
    for release in releases:
        assert registry.manifest(release).id == "demo"
        promised = registry.admitted(release.wheels[0], release)
        assert (root / "targets" / promised.path).stat().st_size == promised.size
    for page in root.glob("targets/simple/*/index.v1+json"):
        for file in json.loads(page.read_bytes())["files"]:
            assert (page.parent / file["url"]).is_file(), file


def main(folder: Path, scenario: str) -> None:
    case = Case(folder / "case", http=False)
    wheel, acme = driver(case.folder, "1.1.0"), case.key("acme")
    old, new = {"1.0.0"}, {"1.0.0", "1.1.0"}
    look(case.root, folder / "seen", (old,))
    if scenario == "accept":
        hidden = beside(case.root).rename(folder / "away")
        publish.build([wheel], to=case.root, sign=acme)
        hidden.rename(beside(case.root))

    def work(root: Path) -> None:
        if scenario == "publish":
            publish.build([wheel], to=root, sign=acme)
        elif scenario == "accept":
            wheelhouse.accept(root)
        elif scenario == "rotate":
            publish.sign(root, rotate=["targets", "index", "timestamp", "root"])
        else:
            publish.build([driver(case.folder)], to=root)

    after = {"rotate": old, "init": old}.get(scenario, new)
    for fuse in range(1, 1000, 1 if THOROUGH else 3):
        home = folder / f"home-{fuse}"
        root = home / "registry"
        home.mkdir()
        if scenario != "init":
            shutil.copytree(case.root, root)
            shutil.copytree(beside(case.root), beside(root))
            shutil.copytree(folder / "seen", home / "seen")
        bomb = Bomb(fuse)

        def run(bomb: Bomb = bomb, root: Path = root) -> None:
            bomb.arm()
            work(root)
            print(json.dumps({"steps": len(bomb.log), "log": bomb.log}), flush=True)

        died = child(run) == -signal.SIGKILL

        def again(home: Path = home, root: Path = root, died: bool = died) -> None:
            if scenario != "init":
                for cache in (home / "seen", home / "new"):
                    look(root, cache, (old, after) if died else (after,))
            work(root)
            assert not verify(root), verify(root)
            for cache in (home / "seen", home / "new"):
                look(root, cache, (after,))

        assert child(again) == 0, f"after step {fuse}: {bomb.log[-3:]}"
        shutil.rmtree(home)
        if not died:
            return


if __name__ == "__main__":
    with Apart() as apart, one_process_apart(apart):
        apart.call(len, "")  # before anything forks
        main(Path(sys.argv[1]), sys.argv[2])
