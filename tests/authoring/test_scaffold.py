"""`driver new`: what it makes works at once, and what it cannot make it refuses before it writes anything."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from authoring.conftest import Tree

import wheelhouse
from dragoman.authoring.conformance_run import Conformance, run_conformance
from dragoman.authoring.scaffold import AUTH_METHODS, KINDS, scaffold
from dragoman.authoring.wheel_build import built
from dragoman.cli.driver import driver, new
from dragoman_api.errors import ConfigurationError
from dragoman_registry.client.installed_drivers import Store
from dragoman_registry.index.registry_reader import Registry
from dragoman_registry.wheels.manifest_checks import check_manifest


def make(tmp_path, name="orbit", *, kind="orbit", store_kind="tables", registries=(), **form):
    store = Store(tmp_path / "home")
    return scaffold(
        name, type=kind, port=7700, kind=store_kind, into=tmp_path, registries=registries, store=store, **form
    )


def test_a_new_driver_has_no_fault(tree):
    checked = tree.check()
    assert checked.faults == []
    assert checked.sandbox.startswith(("full", "partial"))
    assert 0 < checked.import_seconds < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "tables"])
def test_a_new_driver_of_each_kind_has_no_fault_and_passes_its_own_tests(tmp_path, kind):
    """In the sandbox, from its wheel, with every hook and capability that its manifest claims."""
    tree = Tree(make(tmp_path, store_kind=kind))
    assert tree.check().faults == []
    with built(tree.path) as build:
        tested, _ = run_conformance(build)
    assert (tested.failures, tested.denied, tested.deviations) == ((), (), ())
    assert tested.passed
    assert {*json.loads(tree.manifest.read_text())["hooks"]}.isdisjoint(tested.hooks)
    assert len(tree.code.read_text().splitlines()) <= 135  # small: it is what authors learn from


def test_the_command_offers_every_kind_of_driver():
    [option] = [option for option in new.params if "--kind" in option.opts]
    assert [*option.type.choices] == [*KINDS]


@pytest.mark.slow
def test_a_new_driver_passes_its_own_conformance_tests(tree, report):
    """In the sandbox, from its wheel; every hook that the manifest claims ran, and no test was missing."""
    told = Conformance(**json.loads(report))
    assert (told.failures, told.denied, told.deviations) == ([], [], [])
    assert told.passed
    claimed = {*json.loads(tree.manifest.read_text())["hooks"]}
    assert claimed.isdisjoint(told.hooks)
    assert {"fetch_page", "count_rows", "export_rows"} <= claimed


def test_a_new_driver_holds_what_a_person_expects_in_the_folder(tree):
    wanted = {
        "pyproject.toml", "README.md", "CHANGELOG.md", ".gitignore", "dragoman_orbit/__init__.py",
        "dragoman_orbit/driver.py", "dragoman_orbit/driver.json", "tests/fake.py", "tests/test_conformance.py",
        ".github/workflows/driver.yml",
    }  # fmt: skip
    assert set(tree.files()) == wanted
    assert not [name for name, data in tree.files().items() if b"$" in re.sub(rb"\$ dragoman|\$\{\{", b"", data)]
    assert len(tree.code.read_text().splitlines()) < 100  # small: it is what authors learn from


@pytest.mark.parametrize("kind", KINDS)
def test_the_workflow_of_a_new_driver_is_what_its_author_types(tmp_path, kind):
    """Its steps are the commands of the readme, and nothing of the template is left unreplaced."""
    workflow = (make(tmp_path, store_kind=kind) / ".github/workflows/driver.yml").read_text()
    steps = re.findall(r"- run: (.+)", workflow)
    assert steps == ["pip install 'dragoman[author]'", "dragoman driver check", "dragoman driver test"]
    for words in (step.split() for step in steps[1:]):
        driver.commands[words[2]].make_context(words[2], words[3:])
    assert re.findall(r"\$\S*", workflow) == ["${{"] * 2


def test_a_name_of_several_words_becomes_a_module(tmp_path):
    folder = make(tmp_path, "deep-space", kind="deep-space")
    assert folder.name == "dragoman-deep-space"
    manifest = json.loads((folder / "dragoman_deep_space/driver.json").read_text())
    assert (manifest["id"], manifest["entry"]) == ("deep-space", "dragoman_deep_space.driver:Driver")
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["dragoman.drivers"] == {"deep-space": "dragoman_deep_space:driver.json"}


def test_the_form_of_a_new_driver_is_made_of_the_chosen_blocks(tmp_path):
    """The manifest has no fault, and its first auth method is the default."""
    folder = make(tmp_path, auth=("bearer", "username-password", "none"), tls=True)
    manifest, faults = check_manifest((folder / "dragoman_orbit/driver.json").read_bytes())
    assert not faults
    assert manifest.default("auth_method") == "bearer"
    assert [field.name for field in manifest.form] == [
        "host", "port", "auth_method", "api_key", "username", "password",
        "ssl_mode", "skip_tls_verification", "ca_file", "client_certificate",
    ]  # fmt: skip


def test_auth_methods_that_share_a_field_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigurationError, match="'api_key'"):
        make(tmp_path, auth=("api-key", "bearer"))
    assert list(tmp_path.iterdir()) == []


def test_the_command_offers_every_auth_method_that_needs_no_code():
    [option] = [each for each in new.params if each.name == "auth"]
    assert [*option.type.choices] == [*AUTH_METHODS]


@pytest.mark.parametrize("name", ["Orbit", "1st", "a_b", "a--b", "-a", "", "../evil", "api", "worker", "registry"])
def test_a_name_that_cannot_be_is_refused(tmp_path, name):
    with pytest.raises(ConfigurationError, match=re.escape(f"{name!r} is not a valid name")):
        make(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_a_type_that_cannot_be_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="'My Type' is not a valid type"):
        make(tmp_path, kind="My Type")


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "dragoman-orbit").mkdir()
    (tmp_path / "dragoman-orbit/mine.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="dragoman-orbit already exists"):
        make(tmp_path)
    assert [path.name for path in (tmp_path / "dragoman-orbit").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(("name", "kind"), [("other", "demo"), ("demo", "other")])
def test_a_type_or_a_name_that_a_registry_has_is_taken(tmp_path, name, kind):
    team = wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver().write(tmp_path / "wheels")])
    with pytest.raises(ConfigurationError, match="demo"):
        make(tmp_path, name, kind=kind, registries=[Registry("team", str(team), trust=wheelhouse.TrustedPath())])
    assert not (tmp_path / f"dragoman-{name}").exists()


def test_a_registry_that_cannot_be_read_keeps_nobody_from_starting(tmp_path):
    assert make(
        tmp_path, registries=[Registry("gone", str(tmp_path / "gone"), trust=wheelhouse.TrustedPath())]
    ).is_dir()


def test_the_command_tells_what_it_made_and_what_is_taken(type_in, tmp_path):
    done = type_in("driver", "new", "orbit", "--port", 7700)
    assert done.out.startswith("created dragoman-orbit: dragoman_orbit/driver.json, dragoman_orbit/driver.py")
    again = type_in("driver", "new", "orbit", "--port", 7700, code=2)
    assert "error[configuration-invalid]: dragoman-orbit already exists" in again.err
    assert "Port" not in type_in("driver", "new", "x", "--port", 70000, code=2).out
