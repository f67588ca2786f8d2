"""`driver publish`: checked, tested, a closed set, immutable; and another home installs it on open."""

from __future__ import annotations

import json

import anyio
import pytest
from authoring.conftest import contents, serving

import wheelhouse
from dragoman import Runtime, SavedConnection
from dragoman.authoring.closed_set import close_set, write_dependencies
from dragoman_api.errors import ConfigurationError, WheelRejectedError
from dragoman_registry.publisher.verify import verify
from dragoman_registry.trust.keys import own_key
from dragoman_registry.trust.signers import Unlocking, unlocked_by

pytestmark = pytest.mark.slow


@pytest.fixture
def team(tmp_path):
    return tmp_path / "team"


def test_a_published_driver_has_its_manifest_report_readme_and_changelog_beside_it(ready, team):
    done = ready.publish(team)
    assert (done.state, done.plugin, done.version, done.notes) == ("published", "orbit", "0.1.0", [])
    files = contents(team / "targets")
    wheel = "wheels/dragoman-orbit/dragoman_orbit-0.1.0-py3-none-any.whl"
    assert files[f"{wheel}.driver.json"] == ready.manifest.read_bytes()
    assert json.loads(files[f"{wheel}.report.json"])["sha256"] == done.sha256
    assert files["docs/dragoman-orbit/0.1.0/CHANGELOG.md"] == ready["CHANGELOG.md"].read_bytes()
    assert files["docs/dragoman-orbit/0.1.0/README.md"].strip() == ready["README.md"].read_bytes().strip()
    assert "Orbit Driver" in (team / "index.html").read_text()
    assert done.sha256 in (team / "drivers/dragoman-orbit.html").read_text()
    assert verify(team) == []


def test_a_dry_run_writes_nothing_anywhere(ready, team):
    before = ready.files()
    done = ready.publish(team, dry_run=True)
    assert (done.state, done.plugin) == ("would be published", "orbit")
    assert not team.exists()
    assert ready.files() == before
    ready.publish(team)
    there = contents(team)
    ready.change("pyproject.toml", ('"0.1.0"', '"0.2.0"'))
    assert ready.publish(team, dry_run=True).version == "0.2.0"
    assert contents(team) == there


def test_a_published_version_never_changes(ready, team):
    ready.publish(team)
    before = contents(team)
    assert ready.publish(team).state == "already published"
    assert contents(team) == before
    ready.driver(('"""List the tables."""', '"""List every table."""'))
    with pytest.raises(WheelRejectedError, match="already published with other bytes; raise the version") as caught:
        ready.publish(team)
    assert [code for code, _ in caught.value.faults] == ["immutable"]
    assert contents(team) == before
    ready.change("pyproject.toml", ('"0.1.0"', '"0.2.0"'))
    assert ready.publish(team).version == "0.2.0"
    assert {file: contents(team)[file] for file in before if "0.1.0" in file} == {
        file: data for file, data in before.items() if "0.1.0" in file
    }


def test_a_driver_that_fails_conformance_is_not_published_even_with_a_report(ready, team):
    """The report is of other bytes, so the conformance tests run again."""
    ready.driver(("offset={offset}&limit", "offset={offset + 1}&limit"))
    with pytest.raises(ConfigurationError, match="does not pass its conformance tests") as caught:
        ready.publish(team)
    assert caught.value.code == "conformance-failed"
    assert not team.exists()


def test_a_report_that_says_it_failed_is_not_believed_to_have_passed(ready, team):
    report = json.loads(ready["report.json"].read_text())
    ready["report.json"].write_text(json.dumps({**report, "sandbox": "none"}))
    ready.publish(team)
    beside = team / "targets/wheels/dragoman-orbit/dragoman_orbit-0.1.0-py3-none-any.whl.report.json"
    assert json.loads(beside.read_text())["sandbox"] != "none"


def test_a_driver_with_faults_is_refused_with_all_of_them(ready, team):
    ready["dragoman_orbit/evil.pth"].write_text("import os")
    ready.change("dragoman_orbit/driver.json", ('["browse", "export"]', '["browse", "console"]'))
    with pytest.raises(WheelRejectedError) as caught:
        ready.publish(team)
    assert {code for code, _ in caught.value.faults} == {"pth-file", "capability"}
    assert not team.exists()


def test_another_drivers_name_or_type_is_refused(ready, team, tmp_path):
    wheelhouse.registry(team, [wheelhouse.Driver("other", types=[{"name": "orbit", "label": "X"}]).write(tmp_path)])
    with pytest.raises(WheelRejectedError, match="'orbit' is served by dragoman-other") as caught:
        ready.publish(team)
    assert "type-taken" in {code for code, _ in caught.value.faults}


# dependencies --------------------------------------------------------------------------------------------------------


def requires(tree, *requirements):
    listed = ", ".join(f'"{each}"' for each in requirements)
    tree.change("pyproject.toml", ('"dragoman-api~=1.0"', f'"dragoman-api~=1.0", {listed}'))


def test_a_closed_set_is_resolved_written_down_published_and_installed_on_open(tree, team, tmp_path):
    """P3: the other home knows the registry alone; what the driver imports comes with it."""
    wheels = tree["wheels"]
    deep = wheelhouse.library("deeplib", "2.1.0", code="DEPTH = 7\n").write(wheels)
    for version in ("1.0.0", "1.2.0", "2.0.0"):
        lib = wheelhouse.library("tinylib", version, code="from deeplib import DEPTH as VALUE\n")
        lib.requires = ["deeplib>=2"]
        lib.write(wheels)
    requires(tree, "tinylib~=1.0")
    tree.driver(
        ("from typing import Any\n", "from typing import Any\n\nfrom tinylib import VALUE\n"),
        ('["version"])', '["version"] + f"+{VALUE}")'),
    )
    written = tree.manifest.read_text().splitlines()
    done = tree.publish(team, wheels=wheels)
    assert tree.manifest.read_text().splitlines()[: len(written) - 2] == written[:-2]  # its layout is the author's
    assert done.wheels[1:] == ["deeplib-2.1.0-py3-none-any.whl", "tinylib-1.2.0-py3-none-any.whl"]
    listed = json.loads(tree.manifest.read_text())["dependencies"]
    assert wheelhouse.dependency(deep) in listed
    assert verify(team) == []

    async def opened() -> str:
        async with Runtime(tmp_path / "elsewhere", spare=False) as runtime:
            runtime.registries.add(str(team))
            runtime.connections.save(
                SavedConnection(name="sky", type="orbit", values={"host": "127.0.0.1", "port": port})
            )
            async with runtime.open("sky") as session:
                return session.server.version

    with serving(tree) as port:
        assert anyio.run(opened) == "1.0+7"


def test_a_dependency_without_any_wheel_is_told_at_publish(ready, team):
    requires(ready, "tinylib>=3")
    wheelhouse.library("tinylib", "1.0.0").write(ready["wheels"])
    with pytest.raises(
        ConfigurationError,
        check=lambda error: error.code == "dependency-missing" and "tinylib>=3 cannot be met" in error.message,
    ) as caught:
        ready.publish(team, wheels=ready["wheels"])
    assert caught.value.hint.startswith("pip download --only-binary=:all:")
    assert not team.exists()


def test_a_dependency_that_is_required_no_longer_leaves_the_manifest(ready, team):
    before = ready.manifest.read_text()
    write_dependencies(ready.manifest, [wheelhouse.library("tinylib").write(ready["wheels"])])
    ready.publish(team, wheels=ready["wheels"])
    assert json.loads(ready.manifest.read_text()) == json.loads(before) | {"dependencies": []}


def test_naming_dependencies_again_replaces_them_and_nothing_else(ready, tmp_path):
    before = json.loads(ready.manifest.read_text())
    for version in ("1.0.0", "2.0.0"):
        path = wheelhouse.library("tinylib", version).write(tmp_path / version)
        write_dependencies(ready.manifest, [path])
        assert json.loads(ready.manifest.read_text()) == before | {"dependencies": [wheelhouse.dependency(path)]}


def requirement(text):
    from packaging.requirements import Requirement

    return Requirement(text)


def test_a_system_without_a_wheel_is_told(tmp_path):
    for tag in ("cp311-cp311-manylinux_2_17_x86_64", "cp312-abi3-manylinux2014_x86_64", "cp311-abi3-win_amd64"):
        wheelhouse.library("fastlib", tag=tag).write(tmp_path)
    chosen, notes = close_set([requirement("fastlib")], tmp_path, python=">=3.11,<3.13")
    assert len(chosen) == 3
    assert notes == [
        f"fastlib 1.0.0 has no wheel for {system} with Python 3.11, 3.12: the driver cannot be installed there"
        for system in ("Linux aarch64", "macOS arm64")
    ]


def test_pip_fetches_what_is_missing_for_every_system_it_can(tmp_path, monkeypatch):
    """The index is a folder here; pip reads it as it reads any other."""
    index = tmp_path / "index"
    deep = wheelhouse.library("deeplib", "2.0.0")
    deep.write(index)
    for tag in ("cp311-cp311-manylinux_2_17_x86_64", "cp311-cp311-macosx_11_0_arm64"):
        fast = wheelhouse.library("fastlib", tag=tag)
        fast.requires = ["deeplib"]
        fast.write(index)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    chosen, notes = close_set([requirement("fastlib")], tmp_path / "wheels", python="==3.11.*", fetch=True)
    assert {file.name for file in chosen} == {file.name for file in index.iterdir()}
    assert [note.partition(" for ")[2].partition(" with")[0] for note in notes] == ["Linux aarch64"]


def test_a_pure_wheel_is_for_every_system(tmp_path):
    wheelhouse.library("tinylib").write(tmp_path)
    assert close_set([requirement("tinylib")], tmp_path)[1] == []


@pytest.mark.parametrize(
    ("wanted", "said"), [(["tinylib", "tinylib<1"], "was chosen already"), (["tinylib[fast]"], "extras")]
)
def test_what_cannot_be_resolved_is_told_instead_of_guessed(tmp_path, wanted, said):
    wheelhouse.library("tinylib", "1.5.0").write(tmp_path)
    with pytest.raises(ConfigurationError, match=said):
        close_set([requirement(text) for text in wanted], tmp_path)


def test_native_code_that_the_manifest_does_not_ask_for_is_refused(tree, team):
    for tag in ("cp311-abi3-manylinux_2_17_x86_64", "cp311-abi3-macosx_11_0_arm64"):
        wheelhouse.library("fastlib", tag=tag).write(tree["wheels"])
    requires(tree, "fastlib")
    with pytest.raises(WheelRejectedError, match="native code"):
        tree.publish(team, wheels=tree["wheels"])


def test_a_dependency_that_changed_after_it_was_listed_is_a_fault(tree):
    path = wheelhouse.library("tinylib").write(tree["wheels"])
    requires(tree, "tinylib")
    listed = json.dumps([wheelhouse.dependency(path)])
    tree.change("dragoman_orbit/driver.json", ('"licence"', f'"dependencies": {listed},\n  "licence"'))
    assert tree.codes() == set()
    wheelhouse.library("tinylib", code="VALUE = 2\n").write(tree["wheels"])
    assert tree.codes() == {"dependency-mismatch"}
    path.unlink()
    assert tree.codes() == {"dependency-missing"}


def test_a_key_that_does_not_open_is_refused_before_anything_is_built(ready, team, tmp_path, monkeypatch):
    with unlocked_by(Unlocking(lambda *_, **__: "correct horse battery", encrypts=True)):
        key = own_key(tmp_path / "me.pem")
    monkeypatch.setattr("dragoman.authoring.publish.built", None)
    with pytest.raises(ConfigurationError) as caught:
        ready.publish(team, sign=key)
    assert caught.value.code == "key-locked"
    assert not team.exists()
