"""Five years of use leave a home about as large as a new one: `tests/benchmarks/bench_old_home.py` does it longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import aging
from command_line import Machine
from dragoman_registry.client.installed_drivers import KEPT_UNASKED, Store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

VERSIONS, ACTS = 25, 80


@pytest.mark.timeout(600)
def test_a_home_of_years_holds_what_people_go_back_to_and_no_more(tmp_path: Path):
    machine = Machine(tmp_path / "home")
    machine("registry", "add", aging.publish(tmp_path, VERSIONS))
    life = aging.Life(machine.home, VERSIONS, ACTS, collecting=False)
    life.live()
    assert life.done["install"] > ACTS / 3
    assert set(life.done) == aging.PLAN.keys() - {"collect"}, "each kind of act was among them"
    store = Store(machine.home / "data")
    assert [one.plugin for one in store.installed()] == sorted(aging.DRIVERS)
    for name in aging.DRIVERS:
        kept = store.generations(name)
        assert len(kept) <= KEPT_UNASKED
        assert all(store.verify(one) == [] for one in kept[:2]), "one can go back"
    counted = aging.counts(machine.home)
    assert counted["trees"] <= counted["generations"] <= KEPT_UNASKED * len(aging.DRIVERS)
    assert counted["locks"] <= len(aging.DRIVERS)
    assert counted["damaged"] <= 1 + ACTS * aging.PLAN["damage"] // 100 * 90 // 365
    assert not list((machine.home / "data/store/.tmp").iterdir())
    machine("plugins", "verify")
