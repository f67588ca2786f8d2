"""The kept corpus of every parser of strangers' bytes holds, and a short search beside it finds nothing new."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LARGEST = 2_000_000
"""Bytes of the whole corpus."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="what an input costs is read from /proc")
@pytest.mark.timeout(600)
def test_every_parser_survives_the_corpus_and_what_is_tried_beside_it_is_told() -> None:
    words = [sys.executable, "-m", "tests.fuzz", "--seconds=0.4", "--seed=1", "--json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert len(found) > 30
    new = [(each["target"], finding) for each in found for finding in each["findings"] if not finding["known"]]
    for name, finding in new:
        print(f"{name}: {finding}")
    assert not [each for each in new if each[1]["kept"]]  # what time and luck find is for `make fuzz` to judge


@pytest.mark.skipif(sys.platform != "linux", reason="what an input costs is read from /proc")
def test_what_a_target_is_said_to_parse_is_there() -> None:
    from tests.fuzz.table import TARGETS

    for each in TARGETS.values():
        for place in each.parses.split(", "):
            module, _, name = place.partition(":")
            attrgetter(name)(import_module(module)) if name else import_module(module)


def test_the_corpus_stays_small() -> None:
    files = [path for path in (ROOT / "tests" / "fuzz" / "corpus").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST
    assert max(path.stat().st_size for path in files) <= 64_000
