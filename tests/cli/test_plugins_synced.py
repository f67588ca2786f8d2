"""`plugins sync` from another person's lock: what it names is installed, or skipped and reported, one by one."""

from __future__ import annotations

import json

import pytest
from cli.test_plugins_decided import GREEDY, house, opened, store, team  # noqa: F401 - fixtures

import wheelhouse
from dragoman_registry.client import lockfile
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.publisher import publish


def entry(registry, project, version="1.0.0"):
    """Return what a lock says of a release."""
    [release] = [
        one
        for one in Registry("x", str(registry), trust=wheelhouse.TrustedPath()).releases(project)
        if one.version == version
    ]
    return lockfile.lock_release(release)


def write(house, entries):  # noqa: F811
    house.home.joinpath("data").mkdir(exist_ok=True)
    house.home.joinpath("data/plugins.lock").unlink(missing_ok=True)
    for plugin, locked in entries.items():
        (file := house.home / "data/plugins.lock").write_bytes(lockfile.updated(file, plugin, locked))


def installed(house):  # noqa: F811
    return {one.plugin: one.version for one in store(house).installed()}


def skipped(house, *words):  # noqa: F811
    """Sync, and return the skipped drivers with their reasons."""
    done = house("plugins", "sync", "--json", *words, code=1).json
    return {plugin: error["message"] for plugin, error in done["skipped"].items()}


@pytest.mark.slow
def test_one_entry_that_no_registry_knows_stops_no_other(house, team):  # noqa: F811
    known = entry(team, "demo", "1.1.0")
    write(house, {"aaa": known, "demo": known, "zzz": known})
    done = house("plugins", "sync", code=1)
    assert [line.split()[:2] for line in done.out.splitlines()] == [
        ["installed", "demo"], ["skipped", "aaa:"], ["skipped", "zzz:"],
    ]  # fmt: skip
    assert "no configured registry has a plugin called 'aaa'" in done.out
    assert "try: dragoman plugins browse" in done.err
    assert installed(house) == {"demo": "1.1.0"}
    assert set(skipped(house)) == {"aaa", "zzz"}
    assert set(json.loads((house.home / "data/plugins.lock").read_text())["plugins"]) == {"aaa", "demo", "zzz"}


@pytest.mark.slow
def test_what_the_lock_does_not_name_is_told_beside_what_was_installed(house, team, tmp_path):  # noqa: F811
    wheelhouse.registry(team, [wheelhouse.Driver("other").write(tmp_path / "wheels")])
    house("plugins", "install", "other")
    write(house, {"demo": entry(team, "demo")})
    done = house("plugins", "sync")
    assert [line.split(maxsplit=1) for line in done.out.splitlines()] == [
        ["installed", "demo 1.0.0"], ["differs", "other is installed and not locked"],
    ]  # fmt: skip


# hostile and outdated locks -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_yanked_release_is_installed_since_the_lock_names_its_bytes(house, team):  # noqa: F811
    locked = entry(team, "demo")
    publish.mark(team, project="demo", version="1.0.0", status="yanked", reason="old")
    write(house, {"demo": locked})
    assert house("plugins", "sync").out.split() == ["installed", "demo", "1.0.0"]


def test_a_quarantined_release_is_skipped_and_what_is_installed_stays(house, team):  # noqa: F811
    locked = entry(team, "demo")
    house("plugins", "install", "demo", "--version", "1.1.0")
    publish.mark(team, project="demo", version="1.0.0", status="quarantined", reason="sends data elsewhere")
    write(house, {"demo": locked})
    assert "1.0.0 skipped: sends data elsewhere" in skipped(house)["demo"]
    assert installed(house) == {"demo": "1.1.0"}
    assert skipped(house, "--yes")  # consent is not what it lacks


@pytest.mark.slow
def test_a_quarantined_release_whose_files_are_kept_is_not_made_active_again(house, team):  # noqa: F811
    locked = entry(team, "demo")
    for version in ("1.0.0", "1.1.0"):
        house("plugins", "install", "demo", "--version", version)
    publish.mark(team, project="demo", version="1.0.0", status="quarantined", reason="sends data elsewhere")
    write(house, {"demo": locked})
    assert "sends data elsewhere" in skipped(house)["demo"]
    assert installed(house) == {"demo": "1.1.0"}


@pytest.mark.slow
def test_what_is_quarantined_since_it_was_synced_does_not_run(house, team):  # noqa: F811
    write(house, {"demo": entry(team, "demo")})
    house("plugins", "sync")
    publish.mark(team, project="demo", version="1.0.0", status="quarantined", reason="sends data elsewhere")
    assert house("plugins", "sync", "--json").json == {"installed": [], "differences": [], "skipped": {}}
    assert "demo 1.0.0 must not run: sends data elsewhere" in opened(house, code=1).err


@pytest.mark.slow
def test_a_downgrade_that_the_lock_names_is_made(house, team):  # noqa: F811
    locked = entry(team, "demo")
    house("plugins", "install", "demo", "--version", "1.1.0")
    write(house, {"demo": locked})
    assert house("plugins", "sync").out.split() == ["installed", "demo", "1.0.0"]
    assert installed(house) == {"demo": "1.0.0"}


@pytest.mark.slow
def test_a_pin_does_not_stop_what_the_lock_names(house, team):  # noqa: F811
    locked = entry(team, "demo")
    house("plugins", "install", "demo", "--version", "1.1.0")
    house("plugins", "pin", "demo")
    write(house, {"demo": locked})
    assert house("plugins", "sync").out.split() == ["installed", "demo", "1.0.0"]


def test_wider_permissions_wait_for_consent_and_nothing_else_does(house, team, tmp_path):  # noqa: F811
    wide = [wheelhouse.Driver(version="2.0.0", permissions=GREEDY), wheelhouse.Driver("other")]
    wheelhouse.registry(team, [one.write(tmp_path / "wheels") for one in wide])
    house("plugins", "install", "demo", "--version", "1.1.0")
    write(house, {"demo": entry(team, "demo", "2.0.0"), "other": entry(team, "other")})
    done = house("plugins", "sync", code=1)
    assert "demo asks for net:host=example.org; nothing was installed" in " ".join(done.out.split())
    assert "try: dragoman plugins sync --yes" in done.err
    assert installed(house) == {"demo": "1.1.0", "other": "1.0.0"}
    house("plugins", "sync", "--yes")
    assert installed(house) == {"demo": "2.0.0", "other": "1.0.0"}


@pytest.mark.slow
def test_a_lock_from_elsewhere_grants_no_more_than_opening_does(house, team, tmp_path):  # noqa: F811
    wide = wheelhouse.Driver("wide", permissions=GREEDY).write(tmp_path / "wheels")
    wheelhouse.registry(team, [wide])
    write(house, {"wide": entry(team, "wide"), "demo": entry(team, "demo")})
    assert "wide asks for net:host=example.org; nothing was installed" in skipped(house)["wide"]
    assert installed(house) == {"demo": "1.0.0"}
    assert house("plugins", "sync", "--yes").out.split() == ["installed", "wide", "1.0.0"]
    assert house("plugins", "sync", "--json").json == {"installed": [], "differences": [], "skipped": {}}


@pytest.mark.slow
def test_two_drivers_of_one_type_are_not_both_installed(house, team, tmp_path):  # noqa: F811
    rival = wheelhouse.Driver("rival", types=[{"name": "demo", "label": "Demo"}])
    others = wheelhouse.registry(tmp_path / "others", [rival.write(tmp_path / "wheels")])
    house("registry", "add", others)
    write(house, {"rival": entry(others, "rival"), "demo": entry(team, "demo")})
    assert "the type 'demo' is served by the installed plugin 'demo'" in skipped(house)["rival"]
    assert installed(house) == {"demo": "1.0.0"}


@pytest.mark.slow
def test_a_lock_of_one_driver_under_the_id_of_another_brings_neither(house, team, tmp_path):  # noqa: F811
    wheelhouse.registry(team, [wheelhouse.Driver("other").write(tmp_path / "wheels")])
    write(house, {"demo": entry(team, "other")})
    assert "its files differ from those in plugins.lock" in skipped(house)["demo"]
    assert installed(house) == {}
