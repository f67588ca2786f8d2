"""A home of five years beside a new one: what it holds, and how long commands take in it: bench_old_home.py [ACTS].

ACTS (by default 1,000) are real installs, updates, rollbacks, repairs and collections of four drivers with 60 versions
each. Both homes end with the same active versions. Commands run in turns, as processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

from benchmarks.compare import introduce, measure, report

import aging
from command_line import Machine

VERSIONS = 60
ROUNDS = int(os.environ.get("ROUNDS", "15"))


def prepare(home: Path, registry: Path) -> Machine:
    """Return a machine whose home knows the registry and one connection."""
    machine = Machine(home)
    machine("registry", "add", registry)
    machine("plugins", "install", "demo", "--version", "1.0.0", "--yes")
    machine("connections", "add", "shop", "--type", "demo", "--no-connect", "--yes")
    return machine


def main(acts: int) -> None:
    introduce()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        registry = aging.publish(folder, VERSIONS)
        old, new = (prepare(folder / name, registry) for name in ("old", "new"))
        life, began = aging.Life(old.home, VERSIONS, acts), time.monotonic()
        life.live()
        print(f"\n{acts} acts in {time.monotonic() - began:.0f} s: {dict(life.done)}")
        for driver in old("plugins", "list", "--json").json["plugins"]:
            new("plugins", "install", driver["id"], "--version", driver["version"], "--yes")
        both = [aging.counts(machine.home) for machine in (old, new)]
        print(f"{'':<14}{'old':>14}{'new':>14}")
        for name in both[0]:
            print(f"{name:<14}{both[0][name]:>14,}{both[1][name]:>14,}")

        def run(machine: Machine, *words: str) -> None:
            subprocess.run(machine.words(*words), env=machine.variables(), check=True, capture_output=True)

        for words in (["plugins", "list"], ["page", "shop", "books", "--limit", "2"], ["plugins", "verify"]):
            sides = {f"{name} home": lambda at=at, words=words: run(at, *words) for name, at in
                     (("new", new), ("old", old))}  # fmt: skip
            report(" ".join(words), measure(sides, rounds=ROUNDS), baseline="new home", target="1.1 x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
