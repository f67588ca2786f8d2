"""TOML that a colleague shared is read within bounds, and whatever is wrong with it is one kind of error."""

from __future__ import annotations

import os
import stat
import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.folders import find_paths
from dragoman.settings import RegistryEntry, change_registries, parse_toml, read_toml
from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

TOO_MUCH = {
    "100,000 brackets": "a = " + "[" * 100_000 + "]" * 100_000,
    "100,000 braces": "a = " + "{a = " * 100_000,
    "a key of 100,000 parts": "a." * 100_000 + "a = 1",
    "a key of 100,000 parts in quotes": '"a \\" b" . ' * 100_000 + "a = 1",
    "a table of 100,000 parts": "[" + "'a.b' . " * 100_000 + "a]",
    "5,000 digits": "a = " + "9" * 5_000,
    "two megabytes": "# " + "a" * 2_000_000,
}


@pytest.mark.parametrize("text", TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_file_that_is_too_much_to_read_is_named_and_left_as_it_is(text: str, tmp_path: Path):
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"config\.toml cannot be read"):
        read_toml(file)
    assert file.read_text() == text


KEYS = st.lists(st.sampled_from(["a", '"b c"', "'d.e'", '"\\""', "1-2"]), min_size=1, max_size=60).map(" . ".join)


@given(
    key=KEYS,
    value=st.sampled_from(["1", '"a.b.c"', "[1.5, 2.5]", '"' + "word " * 5_000 + '"', "'" + "x" * 99_999 + "'"]),
)
def test_what_people_write_is_read_as_ever(key: str, value: str):
    text = f"{key} = {value}\n"
    assert parse_toml(text) == tomllib.loads(text)


def test_settings_hold_no_secret_and_others_may_read_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    umask = os.umask(0o022)
    try:
        change_registries(find_paths().settings, lambda _: [RegistryEntry("r", "/r")])
    finally:
        os.umask(umask)
    assert stat.S_IMODE(find_paths().settings.stat().st_mode) == 0o644
