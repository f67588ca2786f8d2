"""Installed drivers as time goes by: updated with their difference shown, verified, repaired, collected, explained."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
from cli.test_plugins_decided import GREEDY, damage, house, moved, opened, paste, store, team  # noqa: F401 - fixtures

import wheelhouse
from command_line import Machine
from dragoman.runtime import Runtime
from dragoman_api.hookspecs import hookimpl


@pytest.fixture
def old(house):  # noqa: F811 - a fixture
    """Have 1.0.0 installed, and 1.1.0 on offer."""
    house("plugins", "install", "demo", "--version", "1.0.0")
    return house


def hint_of(done):
    return done.err.rsplit("  try: ", 1)[1].strip()


def test_an_update_shows_its_difference_and_asks_for_wider_permissions(old, team, tmp_path):  # noqa: F811
    wheelhouse.registry(team, [wheelhouse.Driver(version="2.0.0", permissions=GREEDY).write(tmp_path / "wheels")])
    [update] = old("plugins", "update", "--dry-run", "--json").json["updates"]
    assert (update["before"], update["version"], update["permissions"]) == ("1.0.0", "2.0.0", ["reaches example.org"])
    assert old("plugins", "update", "--dry-run").out.splitlines()[1].endswith("available  reaches example.org")
    done = old("plugins", "update", "demo", code=1)
    assert "error[refused]: demo asks for net:host=example.org; nothing was installed" in done.err
    assert store(old).active("demo").version == "1.0.0"
    failed = old("plugins", "update", code=1).out.splitlines()[1]
    assert "failed" in failed
    assert "net:host=example.org" in failed
    assert paste(old, hint_of(done)).out.splitlines()[1].split()[:4] == ["demo", "1.0.0", "2.0.0", "updated"]
    assert store(old).active("demo").version == "2.0.0"
    assert old("plugins", "update", "--json").json["updates"] == []


@pytest.mark.slow
def test_an_update_that_another_key_signed_is_asked_about(old, tmp_path):
    moved(old, tmp_path, wheelhouse.Driver(version="2.0.0"))
    assert "is signed by owner (key " in old("plugins", "update", "--dry-run").out
    done = old("plugins", "update", "demo", code=1)
    assert "error[refused]: demo is signed by owner (key " in done.err
    assert "not by the installed release's publisher; nothing was installed" in done.err
    paste(old, hint_of(done))
    assert store(old).active("demo").version == "2.0.0"
    assert "signed by  owner (" in old("plugins", "why", "demo").out


@pytest.mark.slow
def test_what_is_wider_is_granted_once(old, team, tmp_path):  # noqa: F811
    folder = tmp_path / "wheels"
    wheelhouse.registry(team, [wheelhouse.Driver(version="2.0.0", permissions=GREEDY).write(folder)])
    old("plugins", "update", "--yes")
    wheelhouse.registry(team, [wheelhouse.Driver(version="2.1.0", permissions=GREEDY).write(folder)])
    assert old("plugins", "update").out.splitlines()[1].split()[:4] == ["demo", "2.0.0", "2.1.0", "updated"]


@pytest.mark.slow
def test_one_that_cannot_be_updated_does_not_stop_the_others(old, team, tmp_path):  # noqa: F811
    other = [wheelhouse.Driver("other", version=version).write(tmp_path / "wheels") for version in ("1.0.0", "1.1.0")]
    wheelhouse.registry(team, other)
    old("plugins", "install", "other", "--version", "1.0.0")
    (team / "targets/wheels/dragoman-demo/dragoman_demo-1.1.0-py3-none-any.whl").write_bytes(b"not it")
    lines = old("plugins", "update", code=1).out.splitlines()[1:]
    assert [line.split()[0] + line.split()[-1] for line in lines[1:]] == ["otherupdated"]
    assert "failed" in lines[0]
    assert store(old).active("demo").version == "1.0.0"


def test_a_damaged_file_is_named_and_repaired(old):
    assert "1 verified, no faults" in old("plugins", "verify").err
    path = damage(old)
    done = old("plugins", "verify", code=1)
    assert str(path) in done.out
    assert [one["faults"][0]["where"] for one in old("plugins", "verify", "--json", code=1).json["plugins"]] == [
        str(path)
    ]
    assert paste(old, hint_of(done)).out == "demo 1.0.0 was repaired\n"
    assert "no faults" in old("plugins", "verify", "demo").err
    assert "error[plugin-not-found]: other is not installed" in old("plugins", "verify", "other", code=1).err


@pytest.mark.slow
def test_what_nobody_goes_back_to_is_collected(old, team, tmp_path):  # noqa: F811
    assert old("plugins", "gc", "--json").json["collected"] == []
    wheelhouse.registry(team, [wheelhouse.Driver(version="2.0.0").write(tmp_path / "wheels")])
    for version in ("1.1.0", "2.0.0"):
        old("plugins", "install", "demo", "--version", version)
    [one] = old("plugins", "gc", "--dry-run", "--json").json["collected"]
    assert (one["plugin"], one["version"]) == ("demo", "1.0.0")
    assert one["size"] > 0
    assert "would be freed" in old("plugins", "gc", "--dry-run").err
    events = [json.loads(line) for line in old("plugins", "gc", "--events", "-", "-q").out.splitlines() if "{" in line]
    assert [event["name"] for event in events] == ["plugin.collected"]
    assert "1.0.0" in old("plugins", "rollback", "demo", "--version", "1.0.0", code=1).err
    assert old("plugins", "rollback", "demo").out == "rolled back to demo 1.1.0\n"


@pytest.mark.slow
def test_why_a_version_is_here(house, team, tmp_path):  # noqa: F811
    driver = wheelhouse.Driver(version="2.0.0", host_api="~=9.0")
    driver.requires = ["dragoman-api~=9.0"]
    wheelhouse.registry(team, [driver.write(tmp_path / "wheels")])
    house("plugins", "install", "demo", "--version", "1.0.0")
    house("plugins", "remove", "demo", "--yes")
    opened(house)
    house("plugins", "pin", "demo")
    told = house("plugins", "why", "demo").out
    for line in ("version      1.1.0 (installed)", "asked for    opening shop, by ", "registry     team",
                 "pinned       1.1.0", "passed over  2.0.0: needs dragoman-api ~=9.0, this is 1."):  # fmt: skip
        assert line in told
    house("plugins", "install", "demo", "--version", "1.0.0")
    lines = house("plugins", "why", "demo").out.splitlines()
    assert "asked for    by name, by " in lines[1]
    assert any(line.startswith("kept         1.1.0, opening shop") for line in lines)
    first = house("plugins", "why", "demo", "--json").json["why"][0]
    assert (first["version"], first["active"], first["origin"]["asked"]) == ("1.0.0", True, "by name")
    assert "error[plugin-not-found]: other is not installed" in house("plugins", "why", "other", code=1).err


@pytest.mark.slow
def test_a_fresh_machine_follows_the_lock(old, team, tmp_path):  # noqa: F811
    fresh = Machine(tmp_path / "fresh")
    fresh("registry", "add", team)
    assert f"there is no {fresh.home / 'data/plugins.lock'}" in fresh("plugins", "sync", code=2).err
    lock = (old.home / "data/plugins.lock").read_bytes()
    (fresh.home / "data").mkdir(exist_ok=True)
    (fresh.home / "data/plugins.lock").write_bytes(lock)
    assert "demo 1.0.0: it is not installed" in fresh("plugins", "sync", "--frozen", code=1).out
    assert store(fresh).installed() == []
    assert fresh("plugins", "sync").out.split() == ["installed", "demo", "1.0.0"]
    assert store(fresh).active("demo").sha256 == store(old).active("demo").sha256
    assert fresh("plugins", "sync", "--frozen", "--json").json["differences"] == []
    assert fresh("plugins", "sync", "--json").json == {"installed": [], "differences": [], "skipped": {}}
    path = damage(fresh)
    assert str(path) in fresh("plugins", "sync", "--frozen", code=1).out
    assert fresh("plugins", "sync").out.split() == ["installed", "demo", "1.0.0"]
    assert (fresh.home / "data/plugins.lock").read_bytes() == lock


@pytest.mark.slow
def test_wheels_that_came_after_the_lock_do_not_break_it(house, team, tmp_path):  # noqa: F811
    native = {"permissions": ["net:connection", "native-code"]}
    wheelhouse.registry(team, [wheelhouse.Driver("wide", **native).write(tmp_path / "wheels")])
    house("plugins", "install", "wide")
    lock = (house.home / "data/plugins.lock").read_bytes()
    later = wheelhouse.Driver("wide", tag="cp313-cp313-win_amd64", **native)
    wheelhouse.registry(team, [later.write(tmp_path / "wheels")])
    fresh = Machine(tmp_path / "fresh")
    fresh("registry", "add", team)
    (fresh.home / "data").mkdir(exist_ok=True)
    (fresh.home / "data/plugins.lock").write_bytes(lock)
    assert fresh("plugins", "sync", "--yes").out.split() == ["installed", "wide", "1.0.0"]
    assert (fresh.home / "data/plugins.lock").read_bytes() == lock


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser can mount a file system")
def test_a_home_that_cannot_be_written_opens_what_is_installed(old, tmp_path):
    (tmp_path / "disk").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", tmp_path / "disk"], check=False).returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        shutil.copytree(old.home, tmp_path / "disk/home", symlinks=True)
        subprocess.run(["mount", "-o", "remount,ro", tmp_path / "disk"], check=True)
        sealed = Machine(tmp_path / "disk/home")
        assert opened(sealed).out
        assert "1.0.0" in sealed("plugins", "list").out
        assert "no faults" in sealed("plugins", "verify").err
        assert "Read-only file system" in sealed("plugins", "disable", "demo", code=1).err
        assert "Read-only file system" in sealed("plugins", "install", "demo", "--version", "1.1.0", code=1).err
        assert opened(sealed).out
    finally:
        subprocess.run(["umount", tmp_path / "disk"], check=True)


# while connections live -----------------------------------------------------------------------------------------------

CRASHING = (
    wheelhouse.CODE
    + """
    @hookimpl
    async def describe_object(self, name):
        import os
        os._exit(7)
"""
)


@pytest.mark.slow
async def test_an_update_is_for_new_connections_and_the_old_one_keeps_its_files(tmp_path):
    hooks = ["connect", "list_objects", "describe_object"]
    versions = ("1.0.0", "1.1.0", "1.2.0")
    wheels = [wheelhouse.Driver(version=v, code=CRASHING, hooks=hooks).write(tmp_path / "wheels") for v in versions]
    home = Machine(tmp_path / "home")
    home.process("registry", "add", wheelhouse.registry(tmp_path / "team", wheels))
    home.process("plugins", "install", "demo", "--version", "1.0.0")
    (home.home / "config/connections.toml").write_text('[shop]\ntype = "demo"\n')
    async with Runtime(home.home, spare=False) as runtime:
        async with runtime.open("shop") as session:
            for version in versions[1:]:
                home.process("plugins", "install", "demo", "--version", version)
            assert home.process("plugins", "gc", "--json").json["collected"] == []
            with pytest.raises(Exception, match="exit status 7"):
                await session.describe("x")
            assert await session.objects()  # a fresh process, of the version it was opened with
            assert (session.plugin_version, session.server.version) == ("1.0.0", "1.0.0")
            async with runtime.open("shop") as other:
                assert other.server.version == "1.2.0"
        assert "1.0.0" in home.process("plugins", "gc").out


async def test_every_change_of_what_is_installed_is_seen_before_it_happens(old):
    seen = []

    class Watch:
        @hookimpl
        async def before_call(self, call):
            if call.writes:
                seen.append((call.hook, call.object))

    async with Runtime(old.home, spare=False, use=[Watch()]) as runtime:
        plugins = runtime.plugins
        await plugins.update()
        await plugins.rollback("demo")
        await plugins.pin("demo", "1.0.0")
        await plugins.disable("demo")
        await plugins.enable("demo")
        damage(old)
        await plugins.repair("demo")
        await plugins.remove("demo")
        await plugins.install("demo")
    assert seen == [("update_plugin", "demo")] * 6 + [("remove_plugin", "demo"), ("install_plugin", "demo")]
