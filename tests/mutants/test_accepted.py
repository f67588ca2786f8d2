"""A survivor is accepted at a line, so that a change of the line asks for its reason again."""

from __future__ import annotations

from tests.mutants.accepted import accepted
from tests.mutants.table import ROOT, file_of


def test_every_line_of_an_accepted_survivor_still_stands():
    modules = {survivor.module for survivor in accepted()}
    lines = {
        module: {line.strip() for line in (ROOT / file_of(module)).read_text(encoding="utf-8").splitlines()}
        for module in modules
    }
    gone = [
        f"{survivor.module}: {survivor.line}" for survivor in accepted() if survivor.line not in lines[survivor.module]
    ]
    assert not gone, "change or delete their entries in tests/mutants/accepted.toml:\n" + "\n".join(gone)


def test_every_accepted_survivor_has_a_reason():
    assert not [survivor for survivor in accepted() if len(survivor.why) <= 20]
