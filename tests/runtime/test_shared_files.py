"""Shared files of settings: what is wrong with one part of them stays with that part."""

from __future__ import annotations

import os

import pytest

from dragoman.connections.saved_connections import Connections
from dragoman.folders import find_paths
from dragoman.plugins.registries import Registries
from dragoman.settings import read_settings, read_toml
from dragoman_api.errors import ConfigurationError

UNUSABLE = {
    "has no type": ("[bad]\nhost = 'h'\n", "needs a type"),
    "has a type that is none": ("[bad]\ntype = 'a\\u001b[2J'\n", "database type"),
    "has a list": ("[bad]\ntype = 'x'\nhost = ['h']\n", "neither text"),
    "has a time": ("[bad]\ntype = 'x'\nhost = 07:32:00\n", "neither text"),
    "has a table that is no reference": ("[bad]\ntype = 'x'\nkey = { env = 'A', file = 'b' }\n", "neither text"),
    "has a number beyond 64 bits": (f"[bad]\ntype = 'x'\nport = 0x{'f' * 20_000}\n", "64 bits"),
    "has a text that is too long": (f"[bad]\ntype = 'x'\nhost = '{'h' * 100_000}'\n", "100000 characters"),
    "has a reference that is too long": (f"[bad]\ntype = 'x'\nk = {{ file = '{'h' * 100_000}' }}\n", "characters"),
    "has too many fields": ("[bad]\ntype = 'x'\n" + "".join(f"f{n} = 1\n" for n in range(2_000)), "2001 fields"),
    "is no table": ("bad = 1\n", "needs a type"),
}


@pytest.fixture
def paths():
    made = find_paths()
    made.config.mkdir(parents=True, exist_ok=True)
    return made


@pytest.mark.parametrize(("text", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_connection_that_cannot_be_used_hides_itself_alone_and_says_why(paths, text, reason):
    after = "" if text.startswith("[") else "[good]\ntype = 'elasticsearch'\n"
    paths.connections.write_text(text + after if after else "[good]\ntype = 'elasticsearch'\n" + text)
    connections = Connections(paths)
    sound, hidden = connections.sifted()
    assert [each.name for each in sound] == ["good"] == [each.name for each in connections.list()]
    assert [*hidden] == ["bad"]
    assert reason in hidden["bad"].message
    assert len(hidden["bad"].message) < 500
    assert connections.get("good").type == "elasticsearch"
    with pytest.raises(ConfigurationError):
        connections.get("bad")
    connections.remove("bad")
    assert connections.sifted()[1] == {}


def test_a_name_that_no_command_can_take_is_hidden_and_can_be_removed(paths):
    paths.connections.write_text('[good]\ntype = "x"\n["../\\u001b[2J"]\ntype = "x"\n')
    connections = Connections(paths)
    [name] = connections.sifted()[1]
    connections.remove(name)
    assert paths.connections.read_text() == '[good]\ntype = "x"\n'


def test_a_value_outside_of_all_connections_hides_itself_alone(paths):
    paths.connections.write_text(f"format = 0x{'f' * 20_000}\n[good]\ntype = 'x'\n")
    sound, hidden = Connections(paths).sifted()
    assert [connection.name for connection in sound] == ["good"]
    assert "[format] needs a type" in hidden["format"].message


@pytest.mark.slow
def test_an_unknown_name_is_told_with_some_of_thousands(paths):
    paths.connections.write_text("".join(f"[c{n}]\ntype = 'x'\n" for n in range(20_000)))
    with pytest.raises(ConfigurationError, match="19,980 more") as caught:
        Connections(paths).get("nope")
    assert len(caught.value.message) < 1_000


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_pipe_or_a_device_in_the_place_of_a_file_is_named_and_not_read(paths, what):
    if what == "pipe":
        os.mkfifo(paths.connections)
    else:
        paths.connections.symlink_to("/dev/zero")
    with pytest.raises(ConfigurationError, match="regular file"):
        read_toml(paths.connections)


def test_no_entry_of_a_shared_configuration_can_call_itself_the_bundled_registry(paths, tmp_path):
    (tmp_path / "pins.json").write_text("{}")
    paths.settings.write_text(f"[[registries]]\nname = 'bundled'\nlocation = '{tmp_path}'\n")
    with pytest.raises(ConfigurationError, match="'bundled'"):
        Registries(paths).open()
    Registries(paths).remove("bundled")
    assert read_settings(paths.settings).registries == []


@pytest.mark.parametrize("location", ["ftp://192.0.2.1/x", "http://[::1", "gopher:x", "a\\u0000b"])
def test_a_place_that_is_none_leaves_out_that_registry_and_no_other(paths, location):
    paths.settings.write_text(f'[[registries]]\nname = "odd"\nlocation = "{location}"\n')
    odd, bundled = Registries(paths).open()
    assert bundled.catalog()
    with pytest.raises(Exception, match=r"location of a registry|no such folder") as caught:
        odd.catalog()
    assert getattr(caught.value, "code", "") == "registry-unreachable"
