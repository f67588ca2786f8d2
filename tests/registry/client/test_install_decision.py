"""What opening a connection leads to: every outcome, and the order of the conditions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_api.installation import upgrade_command
from dragoman_registry.client.install_decision import Inputs, InstallOutcome, decide
from dragoman_registry.client.resolver import Resolution, SkippedRelease
from dragoman_registry.index.catalog import Release

RELEASE = Release(
    plugin="demo",
    project="dragoman-demo",
    version="1.0.0",
    host_api="~=1.0",
    permissions=("net:connection", "secrets:connection"),
    manifest_sha256="",
    wheels=(),
)
OFFER = Resolution(release=RELEASE)
GREEDY = Resolution(release=replace(RELEASE, permissions=("net:connection", "net:host=example.org")))
NONE = Resolution(release=None, skipped=(SkippedRelease("2.0", "host-api", "needs dragoman-api ~=2.0, this is 1.0"),))
HELD = Resolution(
    release=None, skipped=(SkippedRelease("1.0.0", "quarantined", "steals"), SkippedRelease("0.9", "locked", "1.0.0"))
)
OTHER_BYTES = Resolution(release=None, skipped=(SkippedRelease("1.0.0", "lock-mismatch", "its files differ"),))
NEW = Inputs(type="demo", plugin="demo", choice=OFFER)
OLD = Inputs(type="demo", plugin="demo", installed="1.0.0")
PARTIAL = "partial: no Landlock in this kernel"


@pytest.mark.parametrize(
    ("inputs", "outcome", "about"),
    [
        # P3: nothing is asked where the sandbox is full and the permissions are the baseline.
        (NEW, InstallOutcome.INSTALL, ""),
        (OLD, InstallOutcome.READY, ""),
        (Inputs(type="demo"), InstallOutcome.UNKNOWN_TYPE, ""),
        (Inputs(type="demo", unreachable="/media/stick"), InstallOutcome.OFFLINE_MISSING, ""),
        (replace(NEW, excluded_surfaces=("phone", "tablet"), surface="phone"), InstallOutcome.REFUSE, "surface"),  # P6
        (replace(NEW, excluded_surfaces=("phone", "tablet"), surface="cli"), InstallOutcome.INSTALL, ""),
        (replace(OLD, quarantined="steals"), InstallOutcome.QUARANTINED, ""),
        (replace(OLD, disabled=True), InstallOutcome.ENABLE, ""),
        (replace(NEW, disabled=True), InstallOutcome.INSTALL, ""),
        (replace(OLD, damaged="driver.py was changed", choice=OFFER), InstallOutcome.REPAIR, ""),
        (replace(OLD, compatible=False, choice=OFFER), InstallOutcome.REPAIR, ""),
        (replace(OLD, compatible=False, choice=NONE), InstallOutcome.UPDATE_HOST, ""),
        (replace(OLD, damaged="x", unreachable="http://r"), InstallOutcome.OFFLINE_MISSING, ""),
        (replace(OLD, damaged="x", choice=GREEDY), InstallOutcome.ASK, "permissions"),
        (replace(OLD, damaged="x", choice=GREEDY, granted=("net:host=example.org",)), InstallOutcome.REPAIR, ""),
        (replace(OLD, damaged="x", choice=OFFER, sandbox=PARTIAL), InstallOutcome.ASK, "sandbox"),
        (replace(NEW, choice=NONE), InstallOutcome.UPDATE_HOST, ""),
        (replace(NEW, choice=None, unreachable="http://r"), InstallOutcome.OFFLINE_MISSING, ""),
        (replace(NEW, unreachable="http://other"), InstallOutcome.INSTALL, ""),
        (replace(NEW, expired="/team"), InstallOutcome.REGISTRY_STALE, ""),
        (replace(NEW, choice=None, expired="/team"), InstallOutcome.REGISTRY_STALE, ""),
        (Inputs(type="demo", expired="/team"), InstallOutcome.REGISTRY_STALE, ""),
        (replace(NEW, choice=NONE, expired="/team"), InstallOutcome.UPDATE_HOST, ""),
        (replace(NEW, expired="/team", locked=True), InstallOutcome.INSTALL, ""),
        (replace(OLD, expired="/team"), InstallOutcome.READY, ""),
        (replace(NEW, choice=GREEDY), InstallOutcome.ASK, "permissions"),
        (replace(NEW, choice=GREEDY, locked=True, known_publisher=True), InstallOutcome.ASK, "permissions"),
        (replace(NEW, new_publisher="mallory"), InstallOutcome.ASK, "publisher"),
        (replace(NEW, new_publisher="mallory", locked=True, known_publisher=True), InstallOutcome.ASK, "publisher"),
        (replace(NEW, choice=HELD), InstallOutcome.QUARANTINED, ""),
        (replace(NEW, choice=OTHER_BYTES), InstallOutcome.REFUSE, "lock"),
        (replace(NEW, sandbox=PARTIAL), InstallOutcome.ASK, "sandbox"),
        (replace(NEW, sandbox=PARTIAL, locked=True), InstallOutcome.INSTALL, ""),
        (replace(NEW, sandbox=PARTIAL, known_publisher=True), InstallOutcome.INSTALL, ""),
        (replace(NEW, sandbox=PARTIAL, policy="require"), InstallOutcome.REFUSE, "sandbox"),
        (replace(OLD, sandbox=PARTIAL, policy="require"), InstallOutcome.REFUSE, "sandbox"),
        (replace(OLD, sandbox=PARTIAL), InstallOutcome.READY, ""),
        (replace(NEW, policy="require"), InstallOutcome.INSTALL, ""),
        (replace(NEW, policy="off"), InstallOutcome.ASK, "sandbox"),
        (replace(NEW, policy="off", locked=True), InstallOutcome.INSTALL, ""),
        (replace(OLD, policy="off"), InstallOutcome.READY, ""),
    ],
)
def test_P3_P6_every_outcome(inputs: Inputs, outcome: InstallOutcome, about: str):
    decision = decide(inputs)
    assert (decision.outcome, decision.about) == (outcome, about)
    assert decision.reason


EVERYTHING = Inputs(
    type="demo", plugin="demo", installed="1.0.0", disabled=True, damaged="", quarantined="steals", choice=GREEDY,
    expired="/team", excluded_surfaces=("tablet",), surface="tablet", sandbox=PARTIAL, policy="require",
    new_publisher="mallory",
)  # fmt: skip
LADDER = [
    (InstallOutcome.REFUSE, "surface", {"surface": "cli"}),
    (InstallOutcome.QUARANTINED, "", {"quarantined": None}),
    (InstallOutcome.ENABLE, "", {"disabled": False}),
    (InstallOutcome.REFUSE, "sandbox", {"policy": "auto"}),
    (InstallOutcome.READY, "", {"installed": None}),
    (InstallOutcome.REGISTRY_STALE, "", {"expired": ""}),
    (InstallOutcome.ASK, "permissions", {"choice": OFFER}),
    (InstallOutcome.ASK, "publisher", {"new_publisher": ""}),
    (InstallOutcome.ASK, "sandbox", {"sandbox": "full"}),
    (InstallOutcome.INSTALL, "", {}),
]


def test_the_first_condition_that_holds_wins():
    """Take one condition after the other away, and the next outcome shows."""
    inputs = EVERYTHING
    for outcome, about, taken_away in LADDER:
        decision = decide(inputs)
        assert (decision.outcome, decision.about) == (outcome, about)
        inputs = replace(inputs, **taken_away)
    assert all(before[0] is not after[0] or before[1] != after[1] for before, after in pairwise(LADDER))


def test_every_outcome_but_ready_names_one_next_action():
    seen = {}
    for inputs in (NEW, OLD, Inputs(type="x"), replace(OLD, quarantined="x"), replace(OLD, disabled=True),
                   replace(OLD, damaged="x", choice=OFFER), replace(NEW, choice=NONE), replace(NEW, expired="/team"),
                   replace(NEW, choice=GREEDY), replace(NEW, choice=None, unreachable="u"),
                   replace(OLD, sandbox=PARTIAL, policy="require")):  # fmt: skip
        decision = decide(inputs)
        seen[decision.outcome] = decision.action
    assert seen.keys() == set(InstallOutcome)
    assert seen.pop(InstallOutcome.UPDATE_HOST) == upgrade_command()
    assert all(
        action.startswith("dragoman ") for outcome, action in seen.items() if outcome is not InstallOutcome.READY
    )


def test_a_quarantine_names_the_nearest_version_that_may_run():
    decision = decide(replace(OLD, quarantined="steals", safe="1.0.1"))
    assert decision.action == "dragoman plugins install demo --version 1.0.1"
    assert [word in decision.reason for word in ("1.0.0", "steals", "1.0.1")] == [True] * 3
    assert decide(replace(NEW, choice=HELD, safe="1.0.1")).action == decision.action
    alone = decide(replace(OLD, quarantined="steals"))
    assert (alone.outcome, alone.action) == (InstallOutcome.QUARANTINED, "dragoman plugins show demo")


def test_trust_comes_from_a_lock_a_known_publisher_or_consent():
    assert not decide(NEW).trusted
    for inputs in (replace(NEW, locked=True), replace(NEW, known_publisher=True), replace(NEW, sandbox=PARTIAL)):
        assert decide(inputs).trusted


def test_a_decision_that_installs_nothing_vouches_for_nothing():
    """Neither an earlier lock nor a known publisher makes it do so."""
    known = {"locked": True, "known_publisher": True}
    for inputs in (
        OLD, Inputs(type="demo"), replace(OLD, quarantined="steals"), replace(OLD, disabled=True),
        replace(NEW, choice=NONE), replace(NEW, choice=OTHER_BYTES), replace(NEW, choice=None, unreachable="u"),
        replace(NEW, choice=None, expired="/team"), replace(NEW, sandbox=PARTIAL, policy="require"),
    ):  # fmt: skip
        decision = decide(replace(inputs, **known))
        assert decision.choice is None
        assert not decision.trusted, decision.outcome


def test_what_is_to_be_installed_comes_with_the_decision():
    for inputs in (NEW, replace(NEW, choice=GREEDY), replace(OLD, damaged="x", choice=OFFER)):
        assert decide(inputs).choice is inputs.choice
    assert decide(replace(OLD, choice=OFFER)).choice is None


def test_the_reason_names_the_range_that_does_not_fit():
    reason = decide(replace(NEW, choice=NONE)).reason
    assert ("~=2.0" in reason, "1.0" in reason.replace("~=2.0", "")) == (True, True)


INPUTS = st.builds(
    Inputs,
    type=st.just("demo"),
    plugin=st.sampled_from([None, "demo"]),
    installed=st.sampled_from([None, "1.0.0"]),
    disabled=st.booleans(),
    damaged=st.sampled_from(["", "x"]),
    compatible=st.booleans(),
    quarantined=st.sampled_from([None, "x"]),
    choice=st.sampled_from([None, OFFER, GREEDY, NONE, HELD, OTHER_BYTES]),
    unreachable=st.sampled_from(["", "u"]),
    expired=st.sampled_from(["", "/team"]),
    locked=st.booleans(),
    known_publisher=st.booleans(),
    new_publisher=st.sampled_from(["", "mallory"]),
    excluded_surfaces=st.sampled_from([(), ("cli",)]),
    sandbox=st.sampled_from(["full", PARTIAL]),
    policy=st.sampled_from(["auto", "require", "off"]),
)


@given(INPUTS)
def test_nothing_is_installed_unasked_below_full_or_beyond_the_baseline(inputs: Inputs):
    decision = decide(inputs)
    if decision.outcome in (InstallOutcome.INSTALL, InstallOutcome.REPAIR):
        assert inputs.fitting
        assert not inputs.beyond_baseline
        assert inputs.confined or inputs.locked or inputs.known_publisher
        assert inputs.quarantined is None
        assert not inputs.new_publisher
    if decision.outcome is InstallOutcome.READY:
        assert inputs.installed
        assert not inputs.disabled
    if inputs.policy == "require" and not inputs.confined:
        assert decision.outcome not in (
            InstallOutcome.READY,
            InstallOutcome.INSTALL,
            InstallOutcome.REPAIR,
            InstallOutcome.ASK,
        )


def test_the_words_of_the_outcomes_are_those_that_scripts_read():
    assert [*map(str, InstallOutcome)] == [
        "ready", "install", "ask", "enable", "repair", "refuse", "update_host", "unknown_type", "quarantined",
        "offline_missing", "registry_stale",
    ]  # fmt: skip


def test_the_version_and_the_reason_of_a_quarantine_belong_together():
    skipped = (SkippedRelease("2.0.0", "quarantined", "steals"), SkippedRelease("1.0.0", "quarantined", "leaks"))
    reason = decide(replace(NEW, choice=Resolution(release=None, skipped=skipped))).reason
    assert "2.0.0" in reason
    assert "steals" in reason
    assert "leaks" not in reason


def passed_over(*codes: str) -> Inputs:
    """Return inputs of which every release was passed over, the newest first."""
    skipped = (SkippedRelease(f"{len(codes) - at}.0", code, f"said {code}") for at, code in enumerate(codes))
    return replace(NEW, choice=Resolution(release=None, skipped=tuple(skipped)))


@pytest.mark.parametrize("code", ["host-api", "python", "platform"])
@pytest.mark.parametrize("first", [True, False])
def test_a_quarantine_is_not_blamed_where_the_host_is_why_another_release_does_not_fit(code: str, first: bool):
    decision = decide(passed_over(*([code, "quarantined"] if first else ["quarantined", code])))
    assert decision.outcome is InstallOutcome.UPDATE_HOST
    assert [f"said {word}" in decision.reason for word in (code, "quarantined")] == [True, True]
    upgrade, show = upgrade_command(), "dragoman plugins show demo"
    assert decision.action == (upgrade if code == "host-api" else show)


def test_a_lock_on_other_bytes_is_refused_whatever_else_was_passed_over():
    decision = decide(passed_over("locked", "lock-mismatch", "locked"))
    assert (decision.outcome, decision.about) == (InstallOutcome.REFUSE, "lock")
    for codes in ((), ("yanked", "pre-release"), ("locked", "pinned")):
        assert decide(passed_over(*codes)).outcome is InstallOutcome.UPDATE_HOST


def test_a_question_names_every_permission_and_the_command_that_agrees():
    extra = ("net:connection", "net:host=a", "files:read", "net:host=b")
    asked = decide(replace(NEW, choice=Resolution(release=replace(RELEASE, permissions=extra))))
    assert asked.reason.endswith("net:host=a, files:read, net:host=b")
    assert asked.action == "dragoman plugins install demo"
    assert decide(replace(OLD, damaged="x", choice=GREEDY)).action == "dragoman plugins install demo --yes"


@pytest.mark.parametrize(
    ("location", "action"),
    [
        ("https://registry.example/team", "dragoman doctor"),
        ("/media/team", "dragoman registry sign /media/team"),
        ("/media/our team", "dragoman registry sign '/media/our team'"),
    ],
)
def test_expired_signatures_are_renewed_by_who_has_the_folder(location: str, action: str):
    assert decide(replace(NEW, expired=location)).action == action


def test_a_question_about_the_sandbox_names_its_level_or_that_it_is_off():
    assert PARTIAL in decide(replace(NEW, sandbox=PARTIAL)).reason
    asked = decide(replace(NEW, sandbox="none", policy="off"))
    assert asked.outcome is InstallOutcome.ASK
    assert asked.reason.endswith("off")
