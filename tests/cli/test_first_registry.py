"""A registry that cannot be trusted is not passed over for what it claims, and everything else goes on."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

import wheelhouse
from command_line import Machine
from dragoman_registry.client.installed_drivers import Store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def team(tmp_path: Path) -> Path:
    return wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver(version="1.0.0").write(tmp_path / "w1")])


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Return the second registry: it has the same driver, newer and another publisher's, and one that it alone has."""
    wheels = [wheelhouse.Driver(name, "9.0.0", summary="theirs").write(tmp_path / "w2") for name in ("demo", "alone")]
    return wheelhouse.registry(tmp_path / "other", wheels)


@pytest.fixture
def house(tmp_path: Path, team: Path, other: Path) -> Machine:
    made = Machine(tmp_path / "home")
    made("registry", "add", team)
    made("registry", "add", other)
    (made.home / "config/connections.toml").write_text('[shop]\ntype = "demo"\n[single]\ntype = "alone"\n')
    return made


def tamper(team: Path) -> None:
    """Change what is signed."""
    file = team / "metadata/timestamp.json"
    document = json.loads(file.read_bytes())
    document["signed"]["expires"] = "2999-01-01T00:00:00Z"
    file.write_text(json.dumps(document))


def other_targets(team: Path) -> None:
    for file in (team / "targets").glob("*.types"):
        file.write_bytes(file.read_bytes().replace(b"dragoman-demo", b"dragoman-evil"))
    for file in (team / "targets").glob("*.catalog"):
        file.write_bytes(b"{}")


BREAKS = {
    "metadata changed": (tamper, "trust-failed"),
    "the index changed": (other_targets, "integrity-failed"),
    "signatures taken away": (lambda team: shutil.rmtree(team / "metadata"), "trust-failed"),
    "a pipe": (lambda team: _pipe(team / "metadata/timestamp.json"), "trust-failed"),
}


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def installed(house: Machine) -> dict[str, tuple[str, str]]:
    return {one.plugin: (one.version, one.registry) for one in Store(house.home / "data").installed()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BREAKS)
def test_what_the_first_claims_does_not_come_from_the_second_and_the_rest_does(kind, house, team):
    spoil, code = BREAKS[kind]
    spoil(team)
    for words in (["objects", "shop", "--yes"], ["plugins", "install", "demo", "--yes"]):
        done = house(*words, code=1)
        assert f"error[{code}]" in done.err, done.err
        assert "'team' claims 'demo'" in done.err
        assert installed(house) == {}
    done = house("objects", "single", "--yes")
    assert "registry team was left out: " in done.err
    assert installed(house) == {"alone": ("9.0.0", "other")}


@pytest.mark.slow
def test_a_registry_that_is_away_is_passed_over_and_that_is_said(house, team, tmp_path):
    team.rename(tmp_path / "away")
    done = house("objects", "shop", "--yes")
    assert "registry team was left out: " in done.err
    assert installed(house) == {"demo": ("9.0.0", "other")}


@pytest.mark.slow
def test_a_registry_that_was_never_trusted_here_may_claim_anything(house, team):
    shutil.rmtree(house.home / "data/tuf")
    tamper(team)
    for name in ("shop", "single"):
        assert "'team' may claim" in house("objects", name, "--yes", code=1).err
    house("registry", "remove", "team")
    assert house("objects", "single", "--yes").out


@pytest.mark.slow
def test_an_update_does_not_come_from_the_second_either(house, team):
    house("objects", "shop", "--yes")
    assert installed(house) == {"demo": ("1.0.0", "team")}
    tamper(team)
    assert "'team' claims 'demo'" in house("plugins", "update", "demo", "--yes", code=1).err
    assert installed(house) == {"demo": ("1.0.0", "team")}
    assert house("objects", "shop").out, "what is installed goes on working"


def test_a_record_of_claims_that_is_damaged_claims_everything(house, team):
    [file] = (house.home / "data/tuf").glob("team-*/claims.json")
    file.write_bytes(b"garbage")
    tamper(team)
    assert "'team' may claim 'alone'" in house("objects", "single", "--yes", code=1).err
