"""Which key may sign which files, and which bytes a vouched file has: decided without a registry."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from tuf.api.metadata import Root, Targets

from dragoman_api.errors import TrustError
from dragoman_registry.trust import roles
from dragoman_registry.trust.keys import new_key
from dragoman_registry.trust.trust import UNSIGNED, Pinned, SignedFile, agreed

if TYPE_CHECKING:
    from pathlib import Path

    from securesystemslib.signer import Key

A, B = "a" * 64, "b" * 64
NOW = datetime(2026, 1, 31, 12, 30, 15, 999_999, tzinfo=UTC)


def key() -> Key:
    return new_key().public_key


# which bytes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "size", "accepted"),
    [
        (SignedFile(path="x", size=9, sha256=A), 9, True),
        (SignedFile(path="x", size=1, sha256=A), 9, True),
        (SignedFile(path="x", size=9, sha256=B), 9, False),
        (SignedFile(path="x", size=9), 9, True),
        (SignedFile(path="x", size=10), 9, True),
        (SignedFile(path="x", size=8), 9, False),
    ],
)
def test_a_file_has_the_bytes_that_are_vouched_for_and_no_more_than_are_read(
    asked: SignedFile, size: int, accepted: bool
) -> None:  # fmt: skip
    vouched = SignedFile(path="vouched", size=size, sha256=A)
    if accepted:
        assert agreed(asked, vouched, "here") is vouched
        return
    with pytest.raises(TrustError) as caught:
        agreed(asked, vouched, "here")
    if asked.sha256:
        assert caught.value.details == {"path": "x", "expected": A, "actual": B}
        assert "nothing was installed" in str(caught.value.hint)
    else:
        assert caught.value.message == "x of here has 9 bytes; at most 8 are read"


def test_the_list_that_is_shipped_admits_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    pins = {"label": "release", "root": A, "files": {"wheels/x": [9, A]}}
    (tmp_path / "pins.json").write_text(json.dumps(pins))
    trust = Pinned(tmp_path)
    assert trust.admit(SignedFile(path="wheels/x", size=20)) == SignedFile(path="wheels/x", size=9, sha256=A)
    assert trust.admit(SignedFile(path="wheels/x", size=9, sha256=A)).sha256 == A
    with pytest.raises(TrustError, match="different bytes"):
        trust.admit(SignedFile(path="wheels/x", size=9, sha256=B))
    with pytest.raises(TrustError, match=r"targets.wheels.y was not shipped with dragoman") as caught:
        trust.admit(SignedFile(path="wheels/y", size=9))
    assert (caught.value.code, caught.value.hint) == (UNSIGNED, "install dragoman again")
    assert (trust.publishers(), trust.pins.label, trust.pins.root) == ({}, "release", A)


@pytest.mark.parametrize("text", [None, "{", "[]", '{"label":"","root":""}', '{"label":"","root":"","files":{"a":1}}'])
def test_without_a_sound_list_nothing_is_admitted(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "pins.json").write_text(text)
    with pytest.raises(TrustError, match="is missing or damaged") as caught:
        Pinned(tmp_path).admit(SignedFile(path="x", size=1))
    assert caught.value.hint == "install dragoman again"


# which keys -----------------------------------------------------------------------------------------------------------


def test_offline_and_authors_signatures_last_three_years_at_least_and_online_ones_as_long_as_they_are_fresh() -> None:
    for role in ("index", "snapshot", "timestamp"):
        assert [roles.lifetime(role, days) for days in (1, 7, 365, 2_000)] == [1, 7, 365, 2_000]
    for role in ("root", "targets", "advisories", "pub-acme"):
        assert [roles.lifetime(role, days) for days in (1, 365, 2_000)] == [3 * 365, 3 * 365, 2_000]
    assert roles.expiry(NOW, 1) == datetime(2026, 2, 1, 12, 30, 15, tzinfo=UTC)


def test_index_files_are_served_under_their_digest_and_others_under_their_names() -> None:
    assert roles.digest_name("docs/demo/1/README.md", A) == f"docs/demo/1/{A}.README.md"
    assert roles.served_name("docs/demo/1/README.md", A) == "docs/demo/1/README.md"
    assert roles.served_name("catalog", A) == f"{A}.catalog"


def delegations() -> Targets:
    targets = Targets(expires=NOW)
    for role, paths in roles.DELEGATED.items():
        roles.delegate(targets, role, key(), [*paths])
    roles.delegate(targets, "pub-zeta", key(), [*roles.patterns("demo"), *roles.patterns("other")])
    roles.delegate(targets, "pub-acme", key(), roles.patterns("tiny"))
    return targets


def test_publishers_come_before_the_registrys_own_roles_so_that_none_of_these_signs_a_wheel() -> None:
    targets = delegations()
    assert [*roles.delegated(targets)] == ["pub-acme", "pub-zeta", "advisories", "index"]
    made = roles.delegated(targets)["pub-zeta"]
    assert made.paths == ["wheels/demo/*", "docs/demo/*/*", "wheels/other/*", "docs/other/*/*"]
    assert all(role.terminating and role.threshold == 1 for role in roles.delegated(targets).values())
    assert roles.delegated(targets)["index"].paths == ["catalog", "browse"]
    assert roles.delegated(Targets(expires=NOW)) == {}


def test_a_new_key_of_a_role_takes_the_place_of_the_earlier_ones() -> None:
    targets = delegations()
    [before] = roles.delegated(targets)["pub-acme"].keyids
    others = {name: role.keyids for name, role in roles.delegated(targets).items() if name != "pub-acme"}
    fresh = key()
    roles.delegate(targets, "pub-acme", fresh, roles.patterns("bigger"))
    made = roles.delegated(targets)
    assert (made["pub-acme"].keyids, made["pub-acme"].paths) == ([fresh.keyid], roles.patterns("bigger"))
    assert {name: role.keyids for name, role in made.items() if name != "pub-acme"} == others
    assert targets.delegations is not None
    assert fresh.keyid in targets.delegations.keys
    assert before not in targets.delegations.keys


def test_a_project_has_the_publisher_whose_paths_hold_its_wheels() -> None:
    targets = delegations()
    assert roles.publishers_of(targets) == {"tiny": "acme", "demo": "zeta", "other": "zeta"}
    assert roles.roles_of(targets) == {"tiny": "pub-acme", "demo": "pub-zeta", "other": "pub-zeta"}
    found = [roles.roles_of(targets).get(name) for name in ("tiny", "other", "nothing")]
    assert found == ["pub-acme", "pub-zeta", None]


def test_strange_roles_and_paths_speak_for_no_project() -> None:
    targets = delegations()
    roles.delegate(targets, "pub-../x", key(), roles.patterns("evil"))
    roles.delegate(targets, "other", key(), roles.patterns("stolen"))
    roles.delegate(targets, "pub-odd", key(), ["docs/paper/*/*", "wheels/../*", "wheels/*/*", "wheels/fine/*"])
    assert roles.strange(targets) == ["pub-../x", "other"]
    assert {*roles.publishers_of(targets)} == {"tiny", "demo", "other", "fine"}
    assert [role.name for role in roles.publisher_roles(targets)] == ["pub-acme", "pub-odd", "pub-zeta"]


@pytest.mark.parametrize(("number", "threshold"), [(1, 1), (2, 2), (3, 2)])
def test_a_root_needs_two_of_its_keys_where_there_are_two(number: int, threshold: int) -> None:
    keys = {"root": [key() for _ in range(number)], "targets": [key()], "snapshot": [key()], "timestamp": [key()]}
    root = roles.new_root(keys, NOW)
    assert (root.roles["root"].threshold, root.roles["targets"].threshold) == (threshold, 1)
    for role, entries in keys.items():
        assert root.roles[role].keyids == [each.keyid for each in entries]
        assert {each.keyid for each in entries} <= root.keys.keys()
    assert (root.consistent_snapshot, root.expires) == (True, NOW.replace(microsecond=0))
    assert (roles.ROOT_KEYS, roles.ROOT_THRESHOLD) == (3, 2)


def test_a_role_is_taken_over_with_its_keys_and_its_threshold_and_no_other_role() -> None:
    ours, theirs = (roles.new_root({name: [key(), key()] for name in ("root", "targets")}, NOW) for _ in range(2))
    targets = [*ours.roles["targets"].keyids]
    roles.take_over(ours, theirs, "root")
    assert isinstance(ours, Root)
    assert ours.roles["root"].keyids == theirs.roles["root"].keyids
    assert ours.roles["root"].threshold == theirs.roles["root"].threshold == 2
    assert {*ours.roles["root"].keyids} <= ours.keys.keys()
    assert ours.roles["targets"].keyids == targets
