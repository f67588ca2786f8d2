"""What a registry says against versions: read project by project, and in case of doubt against every version."""

from __future__ import annotations

import json

import pytest

from dragoman_registry.index.catalog import held_against, read_advisories
from dragoman_registry.validation import Unreadable

KINDS = ("quarantined", "yanked", "deprecated")


def test_a_sound_file_holds_each_reason_against_its_version() -> None:
    told = read_advisories(
        json.dumps({"advisories_version": 1} | {kind: {"demo": {"1.0": kind}} for kind in KINDS}).encode()
    )
    for kind in KINDS:
        projects = getattr(told, kind)
        assert projects == {"demo": {"1.0": kind}}
        assert held_against(projects, "demo", "1.0") == kind
        assert held_against(projects, "demo", "1.1") is None
        assert held_against(projects, "other", "1.0") is None
    assert [getattr(read_advisories(b"{}"), kind) for kind in KINDS] == [{}, {}, {}]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spoilt", [7, ["1.0"], {"1.0": 7}, {"1.0": None}])
def test_an_advisory_that_cannot_be_read_speaks_against_every_version_of_its_project_alone(
    kind: str, spoilt: object
) -> None:
    data = {other: {"fine": {"1.0": other}} for other in KINDS}
    data[kind] |= {"bad": spoilt}  # type: ignore[dict-item]
    told = read_advisories(json.dumps(data).encode())
    for other in KINDS:
        assert getattr(told, other)["fine"] == {"1.0": other}
        assert ("bad" in getattr(told, other)) == (other == kind)
    for version in ("1.0", "9.9"):
        reason = held_against(getattr(told, kind), "bad", version)
        assert reason is not None
        assert reason.startswith("its advisory cannot be read: ")
    assert getattr(told, kind)["bad"].keys() == {"*"}


def test_a_reason_for_one_version_comes_before_the_one_for_all() -> None:
    projects = {"demo": {"*": "all", "1.0": "one"}}
    assert [held_against(projects, "demo", version) for version in ("1.0", "2.0")] == ["one", "all"]


@pytest.mark.parametrize("data", [b"", b"[]", b'{"advisories_version":2}', b'{"yanked":[]}', b'{"yanked":{"a":'])
def test_what_is_no_such_file_is_unreadable(data: bytes) -> None:
    with pytest.raises(Unreadable):
        read_advisories(data)
