"""The file that remembers how near the hosts of connections led."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest

from dragoman.sandbox.reach.address_history import AddressHistory
from dragoman_api.errors import ConfigurationError
from dragoman_registry.ip_addresses import Nearness

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC, PRIVATE, LOOPBACK = Nearness.PUBLIC, Nearness.PRIVATE, Nearness.LOOPBACK


def test_what_is_noted_is_told_of_its_connection_alone_and_added_to_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "reached.json"
    assert AddressHistory(file).of("shop") == {}
    AddressHistory(file).note("shop", {"a.example": PUBLIC, "b.example": LOOPBACK})
    AddressHistory(file).note("other", {"c.example": PRIVATE})
    AddressHistory(file).note("shop", {"b.example": PRIVATE, "d.example": PUBLIC})
    AddressHistory(file).note("shop", {})
    assert AddressHistory(file).of("shop") == {"a.example": PUBLIC, "b.example": PRIVATE, "d.example": PUBLIC}
    assert AddressHistory(file).of("other") == {"c.example": PRIVATE}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_connection_is_forgotten_without_the_others(tmp_path: Path) -> None:
    file = tmp_path / "reached.json"
    AddressHistory(file).forget("shop")
    assert not file.exists()
    for name in ("shop", "other"):
        AddressHistory(file).note(name, {"a.example": PUBLIC})
    AddressHistory(file).forget("shop")
    assert (AddressHistory(file).of("shop"), AddressHistory(file).of("other")) == ({}, {"a.example": PUBLIC})
    before = file.stat()
    AddressHistory(file).forget("shop")
    assert file.stat().st_ino == before.st_ino


def test_a_draft_of_a_killed_process_is_swept(tmp_path: Path) -> None:
    file = tmp_path / "reached.json"
    (draft := tmp_path / ".reached.json.0123456789ab.tmp").write_text("{")
    AddressHistory(file).note("shop", {"a.example": PUBLIC})
    assert not draft.exists()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"shop":{"a":1}}',
        '{"shop":{"a":"public"},"other":{"b":"near"}}',
        '{"shop":{"a":""}}',
        '{"shop":{"a":"public","b":"near"}}',
    ],
)
def test_a_damaged_file_is_an_error_that_says_what_to_do_and_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    (file := tmp_path / "reached.json").write_text(text)
    for act in (
        lambda: AddressHistory(file).of("shop"),
        lambda: AddressHistory(file).note("shop", {"a.example": PUBLIC}),
        lambda: AddressHistory(file).forget("shop"),
    ):
        with pytest.raises(ConfigurationError, match="cannot be read") as caught:
            act()
        assert caught.value.code == "state-damaged"
        assert caught.value.hint == f"remove {file}: then the next connection counts as the first"
    assert file.read_text() == text


def test_a_file_that_cannot_be_opened_is_an_error_too(tmp_path: Path) -> None:
    (file := tmp_path / "reached.json").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        AddressHistory(file).of("shop")


def test_the_file_is_for_people_too(tmp_path: Path) -> None:
    file = tmp_path / "reached.json"
    AddressHistory(file).note("shop", {"a.example": PUBLIC})
    assert json.loads(file.read_bytes()) == {"shop": {"a.example": "public"}}
