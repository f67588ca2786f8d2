"""A driver whose version is that of the registry or the lock, and whose bytes are not, is noticed and exchanged."""

from __future__ import annotations

import runpy
import shutil

import pytest

import wheelhouse
from command_line import Machine
from dragoman.plugins import registries
from dragoman_registry.client.installed_drivers import Store


@pytest.fixture
def come_with(tmp_path, monkeypatch):
    """Return a function that makes a driver of version 1.0.0 come with dragoman, as an upgrade of dragoman does."""
    pin = runpy.run_path(str(wheelhouse.ROOT / "plugins/bundle.py"))["pin"]
    monkeypatch.setattr(registries, "__file__", str(tmp_path / "host/plugins/registries.py"))

    def put(things):
        place = tmp_path / "made" / things
        wheel = wheelhouse.Driver(code=wheelhouse.CODE.replace('"things"', f'"{things}"')).write(place / "wheels")
        wheelhouse.registry(place / "team", [wheel])
        pin(place / "team", label="development", root="0" * 64)
        shutil.rmtree(tmp_path / "host/bundled", ignore_errors=True)
        shutil.copytree(place / "team", tmp_path / "host/bundled")

    return put


@pytest.fixture
def make_home(tmp_path):
    def make(name):
        house = Machine(tmp_path / name)
        house("connections", "add", "shop", "--type", "demo", "--yes", "--no-connect", "--host", "h", "--port", "1")
        return house

    return make


def things(house):
    ended = house("objects", "shop", "--json")
    return ended.json["objects"][0]["name"], ended.err


def found(house, code=1):
    findings = house("doctor", "--json", code=code).json["findings"]
    return [(one["state"], one["found"], one["remedy"]) for one in findings if one["subject"] == "driver demo"]


def test_a_driver_that_came_anew_under_its_version_is_noticed_and_the_remedy_exchanges_it(come_with, make_home):
    come_with("old")
    house = make_home("home")
    assert things(house) == ("old", "")
    assert found(house, code=0) == [("ok", "1.0.0, all files intact", "")]
    come_with("new")
    reason, remedy = (
        "has other bytes than the registry bundled offers under this version",
        "dragoman plugins update demo",
    )
    assert found(house) == [("fault", f"1.0.0 {reason}", remedy)]
    name, err = things(house)
    assert name == "old", "an installed driver continues to work"
    assert f"demo 1.0.0 {reason} ({remedy})" in err
    assert f"try: {remedy}" in house("doctor", code=1).err
    house(remedy)
    assert things(house) == ("new", "")
    assert found(house, code=0) == [("ok", "1.0.0, all files intact", "")]


def test_a_driver_that_the_lock_names_with_other_bytes_is_noticed_and_the_remedy_exchanges_it(come_with, make_home):
    come_with("old")
    house = make_home("home")
    assert things(house) == ("old", "")
    come_with("new")
    colleague = make_home("colleague")
    assert things(colleague) == ("new", "")
    shutil.copy(colleague.home / "data/plugins.lock", house.home / "data/plugins.lock")
    reason, remedy = "has other bytes than plugins.lock names for this version", "dragoman plugins sync"
    assert found(house) == [("fault", f"1.0.0 {reason}", remedy)]
    assert f"demo 1.0.0 {reason} ({remedy})" in things(house)[1]
    house(remedy)
    assert things(house) == ("new", "")
    assert found(house, code=0) == [("ok", "1.0.0, all files intact", "")]
    assert Store(house.home / "data").active("demo").sha256 == Store(colleague.home / "data").active("demo").sha256


def test_a_lock_that_cannot_be_read_keeps_no_driver_from_running(come_with, make_home):
    come_with("old")
    house = make_home("home")
    assert things(house) == ("old", "")
    (house.home / "data/plugins.lock").write_text("{")
    assert things(house)[0] == "old"
