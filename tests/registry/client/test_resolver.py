"""The highest fitting release is chosen, and every one above it is explained."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from dragoman_api.errors import IncompatibleReleaseError
from dragoman_registry.client.lockfile import lock_release
from dragoman_registry.client.resolver import resolve
from dragoman_registry.index.catalog import Release
from dragoman_registry.wheels.host_environment import Host
from dragoman_registry.wheels.wheel_file import WheelFile

HOST = Host(api="1.4", python="3.12.1", tags=("cp312-cp312-linux_x86_64", "py3-none-any"))


def wheel(version: str, tag: str = "py3-none-any", project: str = "dragoman_demo", **changes: object) -> WheelFile:
    return WheelFile(**{"file": f"{project}-{version}-{tag}.whl", "size": 1, "sha256": "a" * 64, **changes})


def release(version: str, **changes: object) -> Release:
    values = {
        "plugin": "demo", "project": "dragoman-demo", "version": version, "host_api": "~=1.0", "permissions": (),
        "manifest_sha256": "", "wheels": (wheel(version),),
    }  # fmt: skip
    return Release(**values | changes)


def codes(*releases: Release, **options: object) -> tuple[str | None, dict[str, str]]:
    choice = resolve(releases, host=HOST, **options)
    return choice.release and choice.release.version, {entry.version: entry.code for entry in choice.skipped}


def test_the_highest_version_wins_by_version_and_not_by_text():
    assert codes(release("1.9"), release("1.10"), release("1.2")) == ("1.10", {})


def test_every_release_above_the_chosen_one_says_why_it_was_passed_over():
    releases = [
        release("9", quarantined="steals"),
        release("8", yanked="broken"),
        release("7rc1"),
        release("6", host_api="~=2.0"),
        release("5", wheels=(wheel("5", requires_python=">=3.13"),)),
        release("4", wheels=(wheel("4", tag="cp312-cp312-win_amd64"),)),
        release("3"),
        release("2", yanked="old"),
    ]
    version, skipped = codes(*releases)
    assert version == "3"
    assert skipped == {
        "9": "quarantined", "8": "yanked", "7rc1": "pre-release", "6": "host-api", "5": "python", "4": "platform",
    }  # fmt: skip


def test_the_reasons_carry_the_values():
    choice = resolve([release("2", host_api=">=2"), release("1", yanked="data loss")], host=HOST)
    assert choice.release is None
    range_, reason = (entry.reason for entry in choice.skipped)
    assert re.findall(r"[>=]*\d[\d.]*", range_) == [">=2", "1.4"]
    assert reason == "data loss"


def test_a_yanked_release_still_installs_when_it_is_locked_or_pinned():
    yanked = release("1", yanked="old")
    assert codes(yanked) == (None, {"1": "yanked"})
    assert codes(yanked, locked=lock_release(yanked))[0] == "1"
    assert codes(yanked, pinned="1")[0] == "1"


def test_a_quarantined_release_never_installs():
    bad = release("1", quarantined="steals")
    assert codes(bad, locked=lock_release(bad), pinned="1") == (None, {"1": "quarantined"})


def test_a_lock_holds_the_version_against_newer_ones():
    old = release("1")
    assert codes(release("2"), old, locked=lock_release(old)) == ("1", {"2": "locked"})


def test_a_lock_refuses_the_same_version_with_other_bytes():
    changed = release("1", wheels=(wheel("1", sha256="b" * 64),))
    assert codes(changed, locked=lock_release(release("1"))) == (None, {"1": "lock-mismatch"})


def test_a_pin_wins_over_the_lock_and_allows_a_pre_release():
    assert codes(release("2rc1"), release("1"), locked=lock_release(release("1")), pinned="2rc1")[0] == "2rc1"


def test_a_pin_holds_the_version_and_says_so_of_newer_ones_also_against_the_lock():
    locked = lock_release(release("3"))
    assert codes(release("3"), release("2"), release("1"), pinned="2") == ("2", {"3": "pinned"})
    assert codes(release("3"), release("2"), locked=locked, pinned="2") == ("2", {"3": "pinned"})
    assert codes(release("2"), release("1"), pinned="3") == (None, {"2": "pinned", "1": "pinned"})
    changed = release("3", wheels=(wheel("3", sha256="b" * 64),))
    assert codes(changed, locked=locked, pinned="3") == (None, {"3": "lock-mismatch"})


def test_a_pre_release_is_installed_if_it_is_locked():
    early = release("2rc1")
    assert codes(early, release("1"), locked=lock_release(early)) == ("2rc1", {})
    assert codes(early) == (None, {"2rc1": "pre-release"})


def test_where_nothing_fits_the_error_says_why_of_each():
    with pytest.raises(IncompatibleReleaseError) as caught:
        resolve([release("2", yanked="broken"), release("1", quarantined="steals")], host=HOST).expect("demo")
    assert caught.value.message == "no release of demo fits this host: 2 skipped: broken; 1 skipped: steals"
    assert caught.value.hint == "dragoman plugins show demo"
    with pytest.raises(IncompatibleReleaseError, match="it has no release"):
        resolve([], host=HOST).expect("demo")
    assert resolve([release("1")], host=HOST).expect("demo") == release("1")


def test_one_wheel_for_this_python_is_enough_and_the_reason_names_them_all():
    wheels = (wheel("1", requires_python=">=3.13"), wheel("1", tag="cp312-cp312-linux_x86_64", requires_python="<3.0"))
    choice = resolve([release("1", wheels=wheels)], host=HOST)
    assert [entry.reason for entry in choice.skipped] == ["needs Python <3.0 or >=3.13, this is 3.12.1"]
    assert codes(release("1", wheels=(*wheels, wheel("1", requires_python=">=3.11"))))[0] == "1"


def test_the_best_wheel_of_each_project_is_taken():
    native = wheel("1", tag="cp312-cp312-linux_x86_64")
    lib = wheel("3", project="tinylib")
    other = wheel("3", project="tinylib", tag="cp311-cp311-win_amd64")
    choice = resolve([release("1", wheels=(wheel("1"), native), dependencies=(other, lib))], host=HOST)
    assert choice.files == (native, lib)


def test_a_release_whose_dependency_fits_nowhere_here_is_passed_over():
    lib = wheel("3", project="tinylib", tag="cp311-cp311-win_amd64")
    assert codes(release("1", dependencies=(lib,))) == (None, {"1": "platform"})


VERSIONS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda v: f"{v[0]}.{v[1]}"), unique=True)


@given(VERSIONS, st.randoms(use_true_random=False))
def test_the_order_of_the_releases_does_not_matter(versions: list[str], random: object):
    releases = [release(version, yanked="x" if version.endswith("7") else None) for version in versions]
    before = resolve(releases, host=HOST)
    random.shuffle(releases)
    assert resolve(releases, host=HOST) == before
    fitting = [Version(version) for version in versions if not version.endswith("7")]
    assert (before.release and Version(before.release.version)) == (max(fitting) if fitting else None)


@pytest.mark.parametrize("locked", [False, True])
def test_choosing_changes_nothing(locked: bool):
    entry = release("1")
    before = replace(entry)
    resolve([entry], host=HOST, locked=lock_release(entry) if locked else None)
    assert entry == before
