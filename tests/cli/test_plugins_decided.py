"""Every outcome of opening a connection, met at the command line; what it says to do is pasted, and does it."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import wheelhouse
from command_line import Machine
from dragoman.plugins import install_on_open
from dragoman_api.installation import upgrade_command
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.publisher import publish
from dragoman_registry.wheels.host_environment import Host

GREEDY = ["net:connection", "secrets:connection", "net:host=example.org"]


@pytest.fixture
def team(tmp_path):
    """Return a registry of this test's own, with a small driver in two versions."""
    wheels = [wheelhouse.Driver(version=version).write(tmp_path / "wheels") for version in ("1.0.0", "1.1.0")]
    return wheelhouse.registry(tmp_path / "team", wheels)


@pytest.fixture
def house(tmp_path, team):
    """Return a home that knows the registry and has a connection saved; nothing is installed."""
    made = Machine(tmp_path / "home")
    made("registry", "add", team)
    (made.home / "config" / "connections.toml").write_text('[shop]\ntype = "demo"\n')
    return made


def opened(house, *words, code=0):
    return house("objects", "shop", *words, code=code)


def refused(house, error, *words, code=1):
    """Fail to open the connection, and return the hint."""
    done = opened(house, *words, code=code)
    assert f"error[{error}]" in done.err, done.err
    [hint] = re.findall(r"^  try: (.*)$", done.err, re.MULTILINE)
    return hint


def paste(house, hint, *, code=0):
    program, *words = shlex.split(hint)
    assert program == "dragoman"
    return house(*words, code=code)


def store(house):
    return Store(house.home / "data")


def damage(house):
    [tree] = store(house).active("demo").trees
    code = tree / "dragoman_demo" / "driver.py"
    code.chmod(0o644)
    code.write_text("raise SystemExit('tampered')")
    return code


def test_P3_install_and_ready(house):
    assert "  installing demo 1.1.0 for shop … done" in opened(house).err
    assert "installing" not in opened(house).err


def test_unknown_type(house):
    (house.home / "config" / "connections.toml").write_text('[shop]\ntype = "nosuch"\n')
    assert "demo" in paste(house, refused(house, "plugin-not-found")).out


@pytest.mark.slow
def test_a_quarantined_version_does_not_start_and_the_nearest_safe_one_is_named(house, team):
    house("plugins", "install", "demo", "--version", "1.0.0")
    house("plugins", "pin", "demo")
    assert opened(house).out
    publish.mark(team, project="demo", version="1.0.0", status="quarantined", reason="sends data elsewhere")
    [listed] = house("plugins", "list", "--json").json["plugins"]
    assert (listed["state"], listed["quarantined"]) == ("quarantined", "sends data elsewhere")
    assert "demo 1.0.0 is quarantined: sends data elsewhere" in house("plugins", "list").err
    done = opened(house, code=1)
    assert "error[quarantined]: demo 1.0.0 must not run: sends data elsewhere; 1.1.0 may run" in done.err
    paste(house, refused(house, "quarantined"))
    assert opened(house).out
    assert house("plugins", "list", "--json").json["plugins"][0]["pin"] == "1.1.0"


@pytest.mark.slow
def test_a_quarantine_that_is_lifted_leaves_nothing_to_do(house, team):
    house("plugins", "install", "demo", "--version", "1.0.0")
    publish.mark(team, project="demo", version="1.0.0", status="quarantined", reason="suspected")
    refused(house, "quarantined")
    publish.mark(team, project="demo", version="1.0.0", status="active")
    assert opened(house).out
    assert house("plugins", "list", "--json").json["plugins"][0]["quarantined"] is None


@pytest.mark.slow
def test_a_quarantine_holds_while_its_registry_is_out_of_reach(house, team):
    house("plugins", "install", "demo")
    publish.mark(team, project="demo", version="1.1.0", status="quarantined", reason="sends data elsewhere")
    house("plugins", "list")
    team.rename(team.with_name("unplugged"))
    assert refused(house, "quarantined") == "dragoman plugins show demo"
    assert "1.1.0" in paste(house, "dragoman plugins show demo").out


@pytest.mark.slow
def test_a_locked_version_that_is_quarantined_is_not_installed(house, team, tmp_path):
    house("plugins", "install", "demo")
    fresh = Machine(tmp_path / "fresh")
    fresh("registry", "add", team)
    (fresh.home / "data").mkdir(exist_ok=True)
    (fresh.home / "data/plugins.lock").write_bytes((house.home / "data/plugins.lock").read_bytes())
    (fresh.home / "config/connections.toml").write_text('[shop]\ntype = "demo"\n')
    publish.mark(team, project="demo", version="1.1.0", status="quarantined", reason="sends data elsewhere")
    paste(fresh, refused(fresh, "quarantined"))
    assert opened(fresh).out


@pytest.mark.slow
@pytest.mark.parametrize("status", ["deprecated", "yanked"])
def test_what_is_held_against_a_version_is_told_and_it_goes_on_working(status, house, team):
    house("plugins", "install", "demo", "--version", "1.0.0")
    told = {"reason": "too slow"} | ({"replaced_by": "swift"} if status == "deprecated" else {})
    publish.mark(team, project="demo", version="1.0.0", status=status, **told)
    more = "; use swift instead" if status == "deprecated" else ""
    notice = f"demo 1.0.0 is {status}: too slow{more}"
    assert f"warning: {notice}" in opened(house).err
    assert notice in opened(house, "--events", "-", "-q").out
    assert house("plugins", "list", "--json").json["plugins"][0]["notices"] == [notice]
    assert notice in house("plugins", "list").err
    publish.mark(team, project="demo", version="1.0.0", status="active")
    assert opened(house).err == ""
    assert house("plugins", "list", "--json").json["plugins"][0]["notices"] == []


@pytest.mark.slow
def test_enable(house):
    opened(house)
    house("plugins", "disable", "demo")
    paste(house, refused(house, "plugin-disabled", code=2))
    assert opened(house).out


@pytest.mark.slow
def test_repair_happens_by_itself_but_not_for_ever(house):
    opened(house)
    whole = damage(house)
    assert "  installing demo 1.1.0 for shop … done" in opened(house).err
    assert "tampered" not in whole.read_text()
    damage(house)
    hint = refused(house, "repair-needed")
    assert hint == "dragoman plugins repair demo"
    paste(house, hint)
    assert opened(house).out
    damage(house)
    assert opened(house).out  # it was whole in between, so this is damage of its own


@pytest.mark.slow
def test_update_host_names_the_range_and_opens_once_the_host_is_new_enough(house, team, tmp_path, monkeypatch):
    publish.mark(team, project="demo", version="1.0.0", status="yanked", reason="old")
    publish.mark(team, project="demo", version="1.1.0", status="yanked", reason="old")
    driver = wheelhouse.Driver(version="2.0.0", host_api="~=9.0")
    driver.requires = ["dragoman-api~=9.0"]
    wheelhouse.registry(team, [driver.write(tmp_path / "wheels")])
    done = opened(house, code=1)
    assert "2.0.0: needs dragoman-api ~=9.0, this is 1." in done.err
    assert refused(house, "release-incompatible") == upgrade_command()
    newer = replace(Host.here(), api="9.0.0")
    monkeypatch.setattr(Host, "here", classmethod(lambda cls: newer))
    assert "installing demo 2.0.0 for shop" in house("objects", "shop").err


@pytest.mark.slow
def test_offline_missing_names_the_place(house, team, tmp_path):
    team.rename(tmp_path / "stick")
    done = opened(house, code=1)
    assert f"error[offline-missing]: the driver for 'demo' is missing and cannot be fetched: {team} " in done.err
    assert "there is no such folder" in done.err
    [hint] = re.findall(r"^  hint: (.*)$", done.err, re.MULTILINE)  # to be completed before it can be pasted
    assert hint == "dragoman registry add FOLDER"
    paste(house, hint.replace("FOLDER", str(tmp_path / "stick")))
    assert opened(house).out


@pytest.mark.slow
def test_ask_for_permissions_beyond_the_baseline(house, team, tmp_path):
    wheelhouse.registry(team, [wheelhouse.Driver(version="2.0.0", permissions=GREEDY).write(tmp_path / "wheels")])
    assert "demo asks for net:host=example.org; nothing was installed" in opened(house, code=1).err
    paste(house, refused(house, "refused"))
    assert opened(house).out


def moved(house, tmp_path, driver):
    """Take drivers from another registry from now on, whose owner has a key of their own."""
    house("registry", "remove", "team")
    house("registry", "add", wheelhouse.registry(tmp_path / "others", [driver.write(tmp_path / "wheels")]))


@pytest.mark.slow
def test_ask_where_another_key_signs_than_what_is_installed(house, tmp_path, monkeypatch):
    house("plugins", "install", "demo")
    driver = wheelhouse.Driver(version="2.0.0", host_api="~=9.0")
    driver.requires = ["dragoman-api~=9.0"]
    moved(house, tmp_path, driver)
    newer = replace(Host.here(), api="9.0.0")
    monkeypatch.setattr(Host, "here", classmethod(lambda cls: newer))
    monkeypatch.setattr(install_on_open, "installed_version", lambda name: "9.0.0")
    done = opened(house, code=1)
    assert re.search(
        r"demo is signed by owner \(key [0-9a-f]{12}\), not by the installed release's publisher", done.err
    )
    paste(house, refused(house, "refused"))
    assert opened(house).out


@pytest.mark.slow
def test_a_registry_whose_signatures_expired_installs_nothing_new_until_it_is_signed_again(house, team, tmp_path):
    long_ago = datetime.now(UTC) - timedelta(days=800)
    stale = tmp_path / "stale"
    publish.build([wheelhouse.Driver().write(tmp_path / "wheels")], to=stale, now=long_ago)
    config = house.home / "config/config.toml"
    config.write_text(f'[[registries]]\nname = "stale"\nlocation = "{stale}"\n')
    hint = refused(house, "registry-stale")
    assert hint == f"dragoman registry sign {stale}"
    assert store(house).installed() == []
    paste(house, hint)
    assert "installing demo 1.0.0 for shop" in opened(house).err


@pytest.mark.slow
def test_what_is_installed_or_locked_needs_no_fresh_word_of_its_registry(house, team, tmp_path):
    wheel = wheelhouse.Driver().write(tmp_path / "wheels")
    long_ago, stale = datetime.now(UTC) - timedelta(days=800), tmp_path / "stale"
    publish.build([wheel], to=stale, now=long_ago)
    fresh = wheelhouse.registry(tmp_path / "fresh", [wheel])
    for place in (fresh, stale):
        config = f'[[registries]]\nname = "x"\nlocation = "{place}"\n'
        (house.home / "config/config.toml").write_text(config)
        assert opened(house).out
    other = Machine(tmp_path / "other")
    shutil.copytree(house.home / "config", other.home / "config")
    (other.home / "data").mkdir()
    shutil.copy(house.home / "data/plugins.lock", other.home / "data/plugins.lock")
    assert "installing demo 1.0.0 for shop" in opened(other).err
    assert "expired signatures" in (other.home / "state/audit.ndjson").read_text()


@pytest.mark.slow
def test_ask_where_the_sandbox_does_not_hold(house):
    hint = refused(house, "refused", "--sandbox", "off")
    assert hint == "dragoman plugins install demo"
    paste(house, hint)
    assert opened(house, "--sandbox", "off").out


@pytest.mark.slow
def test_where_the_sandbox_does_not_hold_a_publisher_who_was_trusted_before_is_not_asked_about(house, team, tmp_path):
    wheelhouse.registry(team, [wheelhouse.Driver("other").write(tmp_path / "wheels")])
    (house.home / "config/connections.toml").write_text('[shop]\ntype = "other"\n')
    refused(house, "refused", "--sandbox", "off")
    house("plugins", "install", "demo")
    assert "installing other 1.0.0 for shop" in opened(house, "--sandbox", "off").err


@pytest.mark.slow
def test_a_lock_of_other_bytes_is_refused(house, team, tmp_path):
    opened(house)
    fresh = Machine(tmp_path / "fresh")
    fresh("registry", "add", team)
    (fresh.home / "data").mkdir(exist_ok=True)
    text = (house.home / "data/plugins.lock").read_text()
    sha256 = store(house).active("demo").sha256
    (fresh.home / "data/plugins.lock").write_text(text.replace(sha256, sha256[::-1]))
    (fresh.home / "config/connections.toml").write_text('[shop]\ntype = "demo"\n')
    assert "1.1.0: its files differ from those in plugins.lock" in opened(fresh, code=2).err
    assert refused(fresh, "plugin-lock", code=2) == "dragoman plugins show demo"
    assert "its files differ" in fresh("plugins", "sync", code=1).out
    assert sha256[::-1] in (fresh.home / "data/plugins.lock").read_text()
