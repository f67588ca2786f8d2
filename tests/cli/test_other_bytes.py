"""A driver whose version is that of the registry or the lock, and whose bytes are not, is noticed and exchanged."""

from __future__ import annotations

import hashlib
import json
import runpy
import shutil

import pytest

import wheelhouse
from command_line import Machine
from dragoman.plugins import registries
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.publisher import publish
from forging import forge


@pytest.fixture
def come_with(tmp_path, monkeypatch):
    """Return a function that makes a driver of version 1.0.0 come with dragoman, as an upgrade of dragoman does."""
    pin = runpy.run_path(str(wheelhouse.ROOT / "plugins/bundle.py"))["pin"]
    monkeypatch.setattr(registries, "__file__", str(tmp_path / "host/plugins/registries.py"))

    def put(things):
        place = tmp_path / "made" / things
        wheelhouse.registry(place / "team", [make_wheel(things, place)])
        pin(place / "team", label="development", root="0" * 64)
        shutil.rmtree(tmp_path / "host/bundled", ignore_errors=True)
        shutil.copytree(place / "team", tmp_path / "host/bundled")

    return put


@pytest.fixture
def make_home(tmp_path):
    def make(name, registry=None):
        house = Machine(tmp_path / name)
        if registry:
            house("registry", "add", registry)
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


@pytest.mark.slow
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


def make_wheel(things, folder):
    return wheelhouse.Driver(code=wheelhouse.CODE.replace('"things"', f'"{things}"')).write(folder / things)


def exchange(team, wheel):
    """Sign other bytes under the name of a published wheel, with the registry's own keys."""
    catalog = json.loads((team / "targets/catalog").read_bytes())
    [entry] = catalog["projects"][0]["releases"][0]["wheels"]
    report = publish.inspect(wheel)
    entry |= {"size": report.size, "sha256": report.sha256}
    entry["metadata_sha256"] = hashlib.sha256(report.metadata).hexdigest()
    data = wheel.read_bytes()
    forge(team, {"catalog": json.dumps(catalog).encode(), f"wheels/dragoman-demo/{wheel.name}": data})


@pytest.mark.slow
def test_other_bytes_that_the_keys_of_a_registry_signed_are_no_update(tmp_path, make_home):
    team = wheelhouse.registry(tmp_path / "team", [make_wheel("old", tmp_path)])
    house = make_home("home", team)
    assert things(house) == ("old", "")
    exchange(team, make_wheel("new", tmp_path))
    ask = "ask the registry's operator why: a published version never changes"
    reason = "has other bytes than the registry team offers under this version"
    assert found(house) == [("fault", f"1.0.0 {reason}", ask)]
    assert f"demo 1.0.0 {reason} ({ask})" in things(house)[1]
    for words in (["update", "demo"], ["update", "demo", "--dry-run"], ["install", "demo", "--yes"]):
        error = json.loads(house("plugins", *words, "--json", code=1).err.splitlines()[-1])["error"]
        assert error["code"] == "integrity-failed"
        assert "other bytes under demo 1.0.0 than those that are installed; nothing was installed" in error["message"]
        assert error["hint"].startswith(ask)
    [update] = house("plugins", "update", "--json", code=1).json["updates"]
    assert update["state"] == "failed"
    colleague = make_home("colleague", team)
    assert things(colleague) == ("new", "")
    shutil.copy(colleague.home / "data/plugins.lock", house.home / "data/plugins.lock")
    assert found(house) == [("fault", "1.0.0 has other bytes than plugins.lock names for this version", ask)]
    assert "other bytes under demo 1.0.0" in house("plugins", "sync", code=1).out
    assert things(house)[0] == "old"
    house("plugins", "remove", "demo", "--yes")
    house("plugins", "install", "demo")
    assert things(house) == ("new", "")


def test_a_lock_that_cannot_be_read_keeps_no_driver_from_running(come_with, make_home):
    come_with("old")
    house = make_home("home")
    assert things(house) == ("old", "")
    (house.home / "data/plugins.lock").write_text("{")
    assert things(house)[0] == "old"
