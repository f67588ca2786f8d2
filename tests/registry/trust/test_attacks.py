"""What thieves and tricksters can do to a signed registry: each row of the page about trust, from disk and by HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trust_attacks import ATTACKS, BLOCK, PAGE, SAFE, attempt

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("http", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["disk", "http"])
@pytest.mark.parametrize("one", ATTACKS, ids=lambda one: one.name)
@pytest.mark.slow
def test_an_attack_ends_as_the_page_says_and_never_in_other_code(one, http: bool, tmp_path: Path):
    assert attempt(one, tmp_path, http=http) == one.ends


def test_the_page_about_trust_lists_every_attack_with_its_end():
    found = BLOCK.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    rows = {line.strip("| ") for line in found[0].splitlines() if line.startswith("| ")}
    for one in ATTACKS:
        end = SAFE.get(one.ends) or f"refused: `{one.ends}`"
        assert f"{one.holds} | {one.does} | {end}" in rows, f"{one.name}: run tests/support/trust_attacks.py"
    assert len(rows) == len(ATTACKS) + 2
