"""The level is what was enforced and tested, and a policy refuses what lies below it."""

from __future__ import annotations

import errno
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec
import pytest

from dragoman.sandbox import levels
from dragoman.sandbox.launch import LAYERS
from dragoman.sandbox.levels import Level, Permission, achievable_level, assess, enforce
from dragoman.sandbox.machine_level import measured_level
from dragoman_api.errors import SandboxError
from dragoman_worker.lockdown import kernel, landlock, process_limits
from dragoman_worker.wire import Sandboxed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROBES = dict.fromkeys(
    ("fs_read", "fs_write", "udp", "unix", "tcp", "fork", "exec", "signals", "host_memory", "memory"), True
)
GOOD = Sandboxed(layers=LAYERS, failures={}, landlock_abi=7, probes=PROBES, missing=())
STATUS = "Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\nCapInh:\t0000000000000000\nCapPrm:\t0\nCapEff:\t0\n"
NO_LANDLOCK = msgspec.structs.replace(
    GOOD, layers=("limits", "capabilities", "seccomp"), landlock_abi=0, probes={**PROBES, "fs_read": False},
    failures={"landlock": "ENOSYS"},
)  # fmt: skip


def test_everything_enforced_tested_and_confirmed_is_full() -> None:
    report = assess(GOOD, status=STATUS, policy="auto")
    assert (report.level, str(report)) == (Level.FULL, "full")
    assert report.permissions["network"].by == ("seccomp", "broker")
    assert report.permissions["fs_metadata"].state == "not_enforced", "stat stays visible and is always said"
    assert report.permissions["cpu"].state == "limited"


@pytest.mark.parametrize("probe", sorted(PROBES))
def test_one_failed_probe_is_never_full(probe: str) -> None:
    told = msgspec.structs.replace(GOOD, probes={**PROBES, probe: False})
    report = assess(told, status=STATUS, policy="auto")
    confined = probe not in ("udp", "unix", "tcp", "exec", "fork", "host_memory")
    assert report.level is (Level.PARTIAL if confined else Level.PROCESS)
    assert report.missing


@pytest.mark.parametrize("probe", sorted(PROBES))
def test_a_probe_that_was_not_made_does_not_count(probe: str) -> None:
    told = msgspec.structs.replace(GOOD, probes={name: True for name in PROBES if name != probe})
    assert assess(told, status=STATUS, policy="auto").level is not Level.FULL


@pytest.mark.parametrize("name", ["NoNewPrivs", "Seccomp", "CapEff", "CapPrm", "CapInh"])
def test_what_the_kernel_does_not_confirm_is_missing(name: str) -> None:
    value = "0" if name in ("NoNewPrivs", "Seccomp") else "00000000a80425fb"
    status = "\n".join(line for line in STATUS.splitlines() if not line.startswith(name)) + f"\n{name}:\t{value}\n"
    report = assess(GOOD, status=status, policy="auto")
    assert report.level is Level.PARTIAL
    assert name in str(report)


def test_an_unreadable_status_is_unverified_and_not_passed() -> None:
    report = assess(GOOD, status=None, policy="auto")
    assert report.level is Level.PARTIAL
    assert "unverified" in str(report)
    assert "hidepid" in report.remedies[0]
    assert assess(GOOD, status=STATUS.replace("2", "1"), policy="auto").remedies == (), "it can be read"


@pytest.mark.parametrize(
    ("layer", "lost", "level"),
    [
        ("landlock", ("fs_read",), Level.PARTIAL),
        ("limits", ("memory",), Level.PARTIAL),
        ("capabilities", (), Level.PARTIAL),
        ("seccomp", ("udp", "unix", "tcp", "fork", "signals"), Level.PROCESS),
    ],
)
def test_a_layer_that_failed_is_named_once_and_not_again_by_what_it_left_open(
    layer: str, lost: tuple[str, ...], level: Level
) -> None:
    told = msgspec.structs.replace(
        GOOD, layers=tuple(each for each in LAYERS if each != layer), failures={layer: "EIO"},
        probes={**PROBES, **dict.fromkeys(lost, False)},
    )  # fmt: skip
    status = {"capabilities": "CapEff:\t3f\nCapPrm:\t3f\nCapInh:\t3f\n", "seccomp": "Seccomp:\t0\n"}.get(layer, "")
    report = assess(told, status=STATUS + status, policy="auto")
    assert (report.level, len(report.missing)) == (level, 1)
    assert "EIO" in report.missing[0]
    other = assess(told, status=STATUS + status + "NoNewPrivs:\t0\n", policy="auto")
    assert other.missing == (*report.missing, "the kernel does not confirm NoNewPrivs")


def test_bounds_on_memory_and_processor_time_name_what_keeps_them() -> None:
    def bounds(told: Sandboxed, *, cpu: bool) -> tuple[Permission, Permission]:
        permissions = assess(told, status=STATUS, policy="auto", cpu=cpu).permissions
        return permissions["memory"], permissions["cpu"]

    limited, late = Permission(state="limited", by=("rlimits",)), Permission(state="limited", by=("deadline",))
    assert bounds(GOOD, cpu=False) == (limited, late)
    assert bounds(GOOD, cpu=True) == (limited, Permission(state="limited", by=("deadline", "rlimits")))
    unlimited = msgspec.structs.replace(GOOD, probes={**PROBES, "memory": False})
    assert bounds(unlimited, cpu=True) == (Permission(state="not_enforced"), late)
    unproven = msgspec.structs.replace(GOOD, layers=("limits",), probes={})
    assert bounds(unproven, cpu=False) == (limited, late)


def test_a_permission_is_enforced_only_by_layers_that_are_there() -> None:
    """Whatever else let a probe fail: only memory may also be hidden by the host itself."""
    without = {
        "landlock": {"fs_read": (), "fs_write": ("seccomp",), "exec": ("seccomp",), "host_memory": ("host",)},
        "seccomp": {"fs_write": ("landlock",), "exec": ("landlock",), "process": (), "signals": (), "network": ()},
    }
    for missing, by in without.items():
        told = msgspec.structs.replace(GOOD, layers=tuple(layer for layer in LAYERS if layer != missing))
        permissions = assess(told, status=STATUS, policy="auto").permissions
        assert {name: permissions[name].by for name in by} == by
        assert {name: permissions[name].state for name in by} == {
            name: "enforced" if layers else "not_enforced" for name, layers in by.items()
        }
    assert assess(GOOD, status=STATUS, policy="auto").permissions["host_memory"].by == ("landlock", "host")


def test_without_landlock_it_is_partial_and_says_why() -> None:
    report = assess(NO_LANDLOCK, status=STATUS, policy="auto")
    assert str(report) == "partial: no Landlock in this kernel"
    assert report.permissions["fs_read"].state == "not_enforced"
    assert report.remedies[0].startswith("Landlock: ENOSYS: ")
    enforce(report, policy="auto", trusted=False)


def test_without_landlock_and_with_a_readable_host_it_is_no_sandbox() -> None:
    told = msgspec.structs.replace(NO_LANDLOCK, probes={**NO_LANDLOCK.probes, "host_memory": False})
    report = assess(told, status=STATUS, policy="auto")
    assert report.level is Level.PROCESS
    with pytest.raises(SandboxError) as caught:
        enforce(report, policy="auto", trusted=False)
    assert caught.value.code == "sandbox-insufficient"


def test_an_untrusted_driver_is_refused_without_the_network_half() -> None:
    told = Sandboxed(layers=("limits",), failures={"seccomp": "EINVAL"}, landlock_abi=0, probes={}, missing=())
    report = assess(told, status=STATUS, policy="auto")
    assert report.level is Level.PROCESS
    with pytest.raises(SandboxError) as caught:
        enforce(report, policy="auto", trusted=False)
    assert caught.value.code == "sandbox-insufficient"
    assert "seccomp" in caught.value.message
    enforce(report, policy="auto", trusted=True)


def test_require_refuses_everything_below_full_and_names_what_is_missing() -> None:
    with pytest.raises(SandboxError, match="no Landlock in this kernel") as caught:
        enforce(assess(NO_LANDLOCK, status=STATUS, policy="require"), policy="require", trusted=True)
    assert caught.value.hint
    assert caught.value.code == "sandbox-insufficient"


def test_off_claims_nothing() -> None:
    told = Sandboxed(layers=(), failures={}, landlock_abi=7, probes={}, missing=())
    report = assess(told, status=None, policy="off")
    assert str(report) == "process: switched off"
    enforce(report, policy="off", trusted=False)


def test_the_achievable_level_is_a_promise_without_permissions() -> None:
    report = achievable_level()
    assert report is achievable_level(), "looked up once"
    assert report.permissions == {}
    assert (report.level is Level.FULL) == (not report.missing)


@pytest.fixture
def looked_up_again() -> Iterator[None]:
    achievable_level.cache_clear()
    yield
    achievable_level.cache_clear()


@pytest.mark.parametrize(
    ("without", "level"),
    [("", Level.FULL), ("landlock", Level.PARTIAL), ("seccomp", Level.PROCESS), ("landlock seccomp", Level.PROCESS)],
)
@pytest.mark.usefixtures("looked_up_again")
def test_the_achievable_level_is_what_the_kernel_offers(
    monkeypatch: pytest.MonkeyPatch, without: str, level: Level
) -> None:
    def version() -> int:
        if "landlock" in without:
            raise OSError(errno.EIO, "no")
        return 4

    monkeypatch.setattr(landlock, "version", version)
    monkeypatch.setattr(process_limits, "seccomp_refusal", lambda: "EIO" if "seccomp" in without else "")
    report = achievable_level()
    assert (report.level, report.landlock_abi) == (level, 0 if "landlock" in without else 4)
    assert [cause.split()[0].lower() for cause in report.missing] == without.split()


@pytest.mark.usefixtures("looked_up_again")
def test_elsewhere_a_process_is_all_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "sys", SimpleNamespace(platform="darwin"))
    told = msgspec.structs.replace(GOOD, layers=(), probes={})
    for report in (achievable_level(), assess(told, status=None, policy="auto")):
        assert (report.level, len(report.missing)) == (Level.PROCESS, 1)
        assert "darwin" in report.missing[0]
        assert "Linux" in report.remedies[0]


def test_a_filter_that_the_host_lent_its_child_confirms_nothing() -> None:
    """In a container every process is filtered already; only one filter more is the lock-down's own."""
    own, child = (STATUS + f"Seccomp_filters:\t{count}\n" for count in (1, 2))
    assert assess(GOOD, status=child, own=own, policy="auto").level is Level.FULL
    report = assess(GOOD, status=own, own=own, policy="auto")
    assert (report.level, report.missing) == (Level.PARTIAL, ("the kernel does not confirm Seccomp_filters",))


def test_a_kernel_that_runs_landlock_and_answers_as_if_not_is_filtered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    modules = tmp_path / "lsm"
    monkeypatch.setattr(levels, "_LOADED", modules)
    modules.write_text("capability,yama,selinux")
    assert "5.13" in levels.missing_layer("landlock", "ENOSYS").remedy
    modules.write_text("capability,landlock,yama")
    cause, remedy = levels.missing_layer("landlock", "ENOSYS")
    assert cause == "Landlock is refused (ENOSYS)"
    assert "container" in remedy


def test_the_level_is_the_machines_whatever_the_home(tmp_path: Path) -> None:
    assert measured_level(tmp_path / "one") is measured_level(tmp_path / "other"), "tried once"


def test_a_machine_without_a_table_of_calls_gives_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "NUMBERS", {})
    monkeypatch.setattr(process_limits, "NUMBERS", {})
    monkeypatch.setattr(kernel, "MACHINE", "riscv64")
    achievable_level.cache_clear()
    try:
        report = achievable_level()
    finally:
        achievable_level.cache_clear()
    assert report.level is Level.PROCESS
    assert "no lock-down on riscv64" in report.missing


@pytest.mark.parametrize(
    ("abi", "rights"),
    [
        (1, (0x1FFF,)), (2, (0x3FFF,)), (3, (0x7FFF,)), (4, (0x7FFF, 3)), (5, (0xFFFF, 3)), (6, (0xFFFF, 3, 3)),
        (8, (0xFFFF, 3, 3)), (9, (0x1FFFF, 3, 3)), (12, (0x1FFFF, 3, 3)),
    ],
)  # fmt: skip
def test_a_ruleset_handles_what_each_version_of_landlock_has(abi: int, rights: tuple[int, ...]) -> None:
    assert struct.unpack(f"={len(rights)}Q", landlock.ruleset_of(abi)) == rights
