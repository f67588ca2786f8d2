"""The hostile driver: at `full` it gets nowhere, and everywhere else it shows that its attacks are real."""

from __future__ import annotations

import ast
import os
import sys
from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.attacks import suite
from tests.attacks.table import ATTACKS, COLUMNS, GROUPS, POSSIBLE, SUCCEEDED
from tests.attacks.wheel import SOURCE, build

from dragoman.sandbox.levels import achievable_level
from installing import Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WHO = "root" if os.geteuid() == 0 else "ordinary user"
# What the host's own code holds, and ends a process each, is in every run through tests/worker too.
CORE = [name for name in POSSIBLE if not (ATTACKS[name].alone and ATTACKS[name].held == "the host") or "ampl" in name]

BESIDE_FORKS = [
    attack.name
    for title, attacks in GROUPS
    for attack in attacks
    if title in ("Other processes", "Programs and processes") or (attack.name.startswith("read_") and not attack.alone)
]
"""What could depend on how a process came about."""


@pytest.fixture(scope="module")
def wheel() -> Iterator[Path]:
    """Build the hostile driver."""
    if (report := achievable_level()).level != "full":
        pytest.skip(f"NOT SHOWN HERE, this machine gives only: {report}")
    with suite.house() as wheel:
        yield wheel


@cache
def found(wheel: Path, level: str, user: str) -> suite.Run:
    """Have a host attacked, once for all tests that look at it."""
    if user == "ordinary user" and os.geteuid() == 0 and not suite.can_become_nobody():
        pytest.skip("NOT SHOWN HERE: becoming an ordinary user takes setpriv, unshare and mount")
    if user == "root" and os.geteuid() != 0:
        pytest.skip("NOT SHOWN HERE: this run is no root's")
    return suite.run(level, wheel, user=user)


@pytest.fixture(scope="module")
def core(wheel: Path) -> suite.Run:
    """Have a host attacked at `full`, with what no other test sends."""
    return suite.run("full", wheel, names=CORE)


def test_at_full_every_attack_ends_as_it_must_and_nothing_is_looked_up(core: suite.Run) -> None:
    assert suite.faults_at_full(core) == {}
    assert core["outcomes"].keys() == set(CORE)


def test_at_full_at_most_stat_succeeds(core: suite.Run) -> None:
    assert suite.successes(core) == ["stat_foreign"]


@pytest.mark.slow
def test_a_spawned_process_holds_what_could_depend_on_how_it_came_about(wheel: Path) -> None:
    run = suite.run("full", wheel, names=BESIDE_FORKS, way="spawn")
    assert suite.faults_at_full(run) == {}
    assert len(run["outcomes"]) == len(BESIDE_FORKS) > 40


def test_the_host_of_a_driver_that_sends_all_it_can_stays_within_its_bounds(core: suite.Run) -> None:
    assert core["grown_kib"] < 400 << 10, "64 MiB of parts, and two million cells of sixty bytes"


def test_what_was_found_is_what_the_record_says(core: suite.Run) -> None:
    recorded = suite.read_record()[WHO]["full"]
    assert core["outcomes"] == {name: recorded[name] for name in CORE}


def test_without_landlock_every_other_layer_holds_what_it_holds_elsewhere() -> None:
    if (report := achievable_level()).level != "partial" or report.landlock_abi:
        pytest.skip("NOT SHOWN HERE: this kernel has Landlock, and a slow test takes it away")
    names = [name for name in CORE if "Landlock" not in ATTACKS[name].held or "seccomp" in ATTACKS[name].held]
    with suite.house() as wheel:
        run = suite.run("full", wheel, names=names)
    assert run["report"] == "partial: no Landlock in this kernel"
    recorded = suite.read_record()[WHO]
    assert run["outcomes"] == {name: recorded["full-landlock"].get(name, recorded["full"][name]) for name in names}
    assert set(run["lookups"]) <= {"127.0.0.1"}


def test_every_function_of_the_hostile_driver_is_in_the_table_and_has_a_control_or_a_reason() -> None:
    written = {
        node.name
        for path in SOURCE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(isinstance(mark, ast.Name) and mark.id == "attack" for mark in node.decorator_list)
    }
    assert written == ATTACKS.keys()
    assert sum(len(attacks) for _, attacks in GROUPS) == len(ATTACKS), "no name twice"
    assert all(attack.control or attack.why for attack in ATTACKS.values())
    assert [attack.name for attack in ATTACKS.values() if attack.full == SUCCEEDED] == ["stat_foreign"]


def test_the_hostile_driver_is_a_wheel_that_is_checked_and_installed_like_any_other(tmp_path: Path) -> None:
    place = Place(tmp_path, wheels=[build(tmp_path / "wheels")])
    generation = place.install("hostile")
    installed = {path.name: path.read_bytes() for path in (generation.trees[0] / SOURCE.name).glob("*.py")}
    assert installed == {path.name: path.read_bytes() for path in SOURCE.glob("*.py")}
    assert "describe_object" in generation.manifest.hooks


def test_the_record_holds_every_attack_at_every_level_for_both_users_and_the_count_in_all_surroundings() -> None:
    record = suite.read_record()
    assert record["surroundings"].keys() == suite.SURROUNDINGS.keys()
    for name, told in record["surroundings"].items():
        without = "full-landlock" if "no Landlock" in told["report"] else "full"
        ends = record[suite.SURROUNDINGS[name][0]]["full"] | record[suite.SURROUNDINGS[name][0]][without]
        assert told["succeeded"] == sorted(suite.successes({"outcomes": ends})), name
        assert told["made"] == len(ends)
    for user in suite.USERS:
        assert record[user].keys() == set(suite.LEVELS)
        for level, outcomes in record[user].items():
            assert outcomes.keys() == set(suite.attacks_at(level))
            run = {"outcomes": outcomes, "report": "full", "lookups": []}
            assert suite.judge_controls(level, run, user=user)[0] == {}, level
        assert suite.faults_at_full({"outcomes": record[user]["full"], "report": "full", "lookups": []}) == {}


def test_an_attack_that_succeeds_nowhere_is_a_fault_and_an_absent_feature_a_printed_reason() -> None:
    run = {"outcomes": {"chmod": "EPERM", "x32_number": "unsupported: no x32 in this kernel", "udp": SUCCEEDED}}
    faults, skipped = suite.judge_controls("full-seccomp", run, user="root")
    assert faults == {"chmod": "EPERM, not succeeded"}
    assert skipped == {"x32_number": "no x32 in this kernel"}
    run = {"outcomes": {"mount": "EPERM", "shell": "EPERM"}}
    assert suite.judge_controls("subprocess", run, user="ordinary user") == (
        {"shell": "EPERM, not succeeded"},
        {"mount": ATTACKS["mount"].root},
    )


@pytest.mark.slow
@pytest.mark.parametrize("user", suite.USERS)
@pytest.mark.parametrize("level", suite.LEVELS)
def test_at_each_level_what_must_succeed_does(wheel: Path, level: str, user: str) -> None:
    run = found(wheel, level, user)
    faults, skipped = suite.judge_controls(level, run, user=user)
    for name, reason in skipped.items():
        print(f"NOT SHOWN HERE: {name}: {reason}")
    assert faults == {}
    if level == "full":
        assert suite.faults_at_full(run) == {}
        assert suite.successes(run) == ["stat_foreign"]


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", suite.SURROUNDINGS)
def test_surroundings_that_give_less_give_what_the_record_says(wheel: Path, name: str) -> None:
    if suite.kernel() != {key: suite.read_record()["machine"][key] for key in suite.kernel()}:
        pytest.skip("NOT SHOWN HERE: the record is of another kernel")
    if not suite.can_become_nobody():
        pytest.skip("NOT SHOWN HERE: becoming an ordinary user takes root, setpriv and unshare")
    assert suite.outcome_in(suite.run_in(name, wheel)) == suite.read_record()["surroundings"][name]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("user", suite.USERS)
def test_the_record_is_what_each_level_gives_here(wheel: Path, user: str) -> None:
    record = suite.read_record()
    recorded, there = record[user], {key: record["machine"][key] for key in suite.kernel()}
    if suite.kernel() != there:
        pytest.skip(f"NOT SHOWN HERE: the record is of another kernel: {there}")
    if os.geteuid() != 0 and os.access(msgspec.__file__, os.W_OK):
        # The record is of a user whose packages are root's. The owner of a venv can write into it where nothing locks.
        recorded["subprocess"]["write_the_hosts_packages"] = SUCCEEDED
    differing = {
        (level, name): (end, recorded[level][name])
        for level in COLUMNS
        for name, end in found(wheel, level, user)["outcomes"].items()
        if end != recorded[level][name]
    }
    assert differing == {}, f"if it should be so, run: {sys.executable} -m tests.attacks.suite"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "telling"),
    [
        ("full-landlock", {"read_key", "list_home", "report"}),
        ("full-seccomp", {"udp", "fork_bomb", "mptcp", "chmod", "foreign_architecture", "report"}),
        ("full-capabilities", {"report"}),
        ("full-limits", {"memory_bomb", "thread_bomb", "descriptor_bomb", "report"}),
        ("no-comparison", {"broker_other_port", "broker_name_with_data", "lookups"}),
        ("no-judgement", {"broker_moved_name", "broker_metadata", "broker_manifests_host"}),
        ("no-bounds", {"wire_four_gigabytes", "wire_endless_parts", "wire_amplified_page", "export_without_credit"}),
        ("no-deadline", {"endless_await", "processor_spin", "blocked_loop"}),
    ],
)
def test_a_layer_that_has_become_a_no_op_turns_the_suite_red(wheel: Path, level: str, telling: set[str]) -> None:
    if level == "full-capabilities":
        if os.geteuid() != 0:
            pytest.skip("NOT SHOWN HERE: an ordinary user has no capabilities to drop")
        run = suite.run(level, wheel, names=["stat_foreign"])
    else:
        run = found(wheel, level, WHO)
    assert telling <= suite.faults_at_full(run).keys()
