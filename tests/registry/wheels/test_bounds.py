"""The bounds of what strangers write: exactly up to each is read, and one beyond it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_registry.validation import Unreadable
from dragoman_registry.wheels import archive_checks, packaging_parsers
from dragoman_registry.wheels.archive_checks import inspect
from dragoman_registry.wheels.manifest import MAX_MANIFEST
from dragoman_registry.wheels.packaging_parsers import (
    holds,
    parse_headers,
    parse_metadata,
    parse_range,
    parse_requirement,
    parse_version,
)
from dragoman_registry.wheels.wheel_file import WheelFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def fits(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except Unreadable:
        return False
    return True


@pytest.mark.parametrize(
    ("parse", "make", "bound"),
    [
        (parse_version, lambda n: ("1." * n)[: n - 2] + "10"[-2 - n % 2 :], 128),
        (parse_range, lambda n: ">=1" + " " * (n - 3), 1_024),
        (parse_range, lambda n: ",".join(["!=1"] * (n + 1)), 64),
        (parse_version, lambda n: "9" * n, 64),
        (parse_requirement, lambda n: "x" + " " * (n - 1), 4_096),
        (parse_requirement, lambda n: "x; " + "(" * n + 'os_name == "a"' + ")" * n, 32),
    ],
    ids=["a version", "a range", "clauses", "digits", "a requirement", "parentheses"],
)  # fmt: skip
def test_a_text_is_read_up_to_its_bound(parse: Callable[[str], object], make: Callable[[int], str], bound: int):
    assert fits(parse, make(bound))
    assert not fits(parse, make(bound + 1))


def test_the_bounds_are_those_that_were_meant():
    assert {name: getattr(packaging_parsers, name) for name in dir(packaging_parsers) if name.startswith("MAX_")} == {
        "MAX_VERSION": 128, "MAX_RANGE": 1_024, "MAX_CLAUSES": 64, "MAX_DIGITS": 64, "MAX_REQUIREMENT": 4_096,
        "MAX_REQUIREMENTS": 100_000, "MAX_PARENTHESES": 32, "MAX_NAME": 255, "MAX_TAGS": 1_024, "MAX_HEADERS": 2_000,
    }  # fmt: skip


HEAD = "Metadata-Version: 2.4\nName: x\nVersion: 1\n"


def test_metadata_has_as_many_headers_as_are_read():
    assert parse_headers(HEAD + "X: y\n" * (2_000 - 3))
    with pytest.raises(Unreadable):
        parse_headers(HEAD + "X: y\n" * (2_000 - 2))
    assert parse_metadata(HEAD + "X: y\n" * (2_000 - 2), strict=False)[0] is None


@pytest.mark.parametrize(
    ("header", "bound"),
    [
        ("Requires-Python", 1_024), ("License-Expression", 1_024), ("Description-Content-Type", 1_024), ("Name", 128),
        ("Version", 128), ("Metadata-Version", 128), ("Requires-Dist", 4_096),
    ],
)  # fmt: skip
def test_a_header_that_is_parsed_has_a_bound_and_no_other_has(header: str, bound: int):
    assert parse_headers(f"{header}: {'x' * bound}\n")
    with pytest.raises(Unreadable):
        parse_headers(f"{header}: {'x' * (bound + 1)}\n")
    assert parse_headers(f"Summary: {'x' * 5_000}\n")


def test_a_range_holds_what_it_says_pre_releases_too():
    assert holds("<2", "1.9")
    assert not holds("<2", "2")
    assert holds("<=2", "2")
    assert holds(">=2", "2.1rc1")
    assert not holds(">2", "2")
    assert not holds("!=2", "2.0")


# a wheel's bytes ------------------------------------------------------------------------------------------------------


def faults(path: Path, **more: object) -> list[str]:
    return [fault.code for fault in inspect(path, **more).faults]


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_wheel_has_exactly_the_published_length(tmp_path: Path, more: int):
    """A longer one is refused as well as a shorter one, although its digest says so too."""
    path = wheelhouse.Driver().write(tmp_path)
    report = inspect(path)
    expected = WheelFile(file=path.name, size=report.size + more, sha256=report.sha256)
    assert faults(path, expected=expected) == (["length-mismatch"] if more else [])


def test_a_wheel_has_the_published_digest(tmp_path: Path):
    path = wheelhouse.Driver().write(tmp_path)
    report = inspect(path)
    expected = WheelFile(file=path.name, size=report.size, sha256="0" * 64)
    assert faults(path, expected=expected) == ["digest-mismatch"]


def limited(path: Path, **limits: int) -> list[str]:
    """Return the codes of the faults of a wheel under other limits."""
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(archive_checks, name, limit)
        return faults(path)


def test_a_wheel_is_as_large_as_the_limit_allows(tmp_path: Path):
    path = wheelhouse.Driver().write(tmp_path)
    assert limited(path, MAX_WHEEL=1 << 20) == []
    assert "too-large" in limited(path, MAX_WHEEL=path.stat().st_size - 1)
    members = sum(1 for _ in inspect(path).placed)
    assert limited(path, MAX_MEMBERS=members) == []
    assert limited(path, MAX_MEMBERS=members - 1)


def test_a_member_may_expand_as_far_as_the_limit_allows(tmp_path: Path):
    text = b"x = 1\n" * 2_000
    path = wheelhouse.Driver(files={"dragoman_demo/long.py": text}).write(tmp_path)
    assert limited(path, MAX_RATIO=1, RATIO_FROM=len(text)) == []
    assert limited(path, MAX_RATIO=1, RATIO_FROM=len(text) - 1) != []
    assert limited(path, MAX_RATIO=1_000, RATIO_FROM=1) == []


@pytest.mark.parametrize("more", [0, 1])
def test_a_manifest_is_as_long_as_it_may_be(tmp_path: Path, more: int):
    def padded(members: dict[str, bytes]) -> None:
        name = "dragoman_demo/driver.json"
        members[name] += b" " * (MAX_MANIFEST + more - len(members[name]))

    path = wheelhouse.Driver().write(tmp_path, members=padded)
    assert ("manifest" in faults(path, driver=True)) is bool(more)
    assert MAX_MANIFEST == 1 << 20


def test_a_check_that_fails_is_a_fault_of_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("deep inside")

    path = wheelhouse.Driver().write(tmp_path)
    monkeypatch.setattr(archive_checks, "check_claims", fail)
    assert faults(path) == ["not-a-wheel"]
