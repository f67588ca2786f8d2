"""References in `connections.toml`: tables, never texts."""

from __future__ import annotations

import os
import shlex
import sys
import tomllib

import pytest

from dragoman import references
from dragoman.connections import secrets
from dragoman.connections.saved_connections import Connections, SavedConnection
from dragoman.connections.secrets import MAX_SECRET, resolve
from dragoman.folders import find_paths
from dragoman.references import STORED, Reference, typed
from dragoman_api.connections import FieldKind
from dragoman_api.errors import ConfigurationError

SECRET, FILE = FieldKind.SECRET, FieldKind.FILE


@pytest.fixture
def file():
    path = find_paths().connections
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def connections():
    return Connections(find_paths())


EVERY = {
    "a": Reference("env", "KEY"),
    "b": Reference("file", "~/key"),
    "c": Reference("command", "pass show shop"),
    "d": Reference("keyring", "shop/me"),
    "e": STORED,
    "f": Reference("path", "/etc/ca.pem"),
}


def test_every_reference_is_written_as_a_table_and_read_back(connections, file):
    connections.save(SavedConnection(name="shop", type="t", values=EVERY))
    assert connections.get("shop").values == EVERY
    lines = file.read_text().splitlines()
    assert lines[:3] == ["[shop]", 'type = "t"', 'a = { env = "KEY" }']
    assert "e = { stored = true }" in lines


def test_a_text_stays_a_text_whatever_it_looks_like(connections, file):
    file.write_text('[shop]\ntype = "t"\na = "command:touch x"\nb = "env:HOME"\n')
    assert connections.get("shop").values == {"a": "command:touch x", "b": "env:HOME"}


@pytest.mark.parametrize(
    "table",
    [
        "{}", '{ env = "" }', "{ env = true }", "{ stored = false }", '{ stored = "yes" }', '{ url = "x" }',
        '{ env = "A", command = "b" }', '{ env = { file = "x" } }', '["env:A"]', "1.5",
    ],
)  # fmt: skip
def test_a_table_that_is_no_reference_is_refused_and_shows_those_that_are(connections, file, table):
    file.write_text(f'[shop]\ntype = "t"\nkey = {table}\n')
    with pytest.raises(ConfigurationError, match=r"\[shop\] key") as caught:
        connections.get("shop")
    assert '{ command = "…" }' in caught.value.hint


@pytest.mark.parametrize("text", ["hunter2", "env:", "env: ", "stored:shop.key", "path:/etc/passwd", "ENV:x", ""])
def test_a_typed_text_that_names_no_place_is_no_reference(text):
    assert typed(text) is None


ENDLESS = shlex.join([sys.executable, "-c", "import os\nwhile True: os.write(1, b'x' * 65536)"])


def test_a_command_that_prints_without_an_end_is_ended_at_a_bound():
    with pytest.raises(ConfigurationError, match="printed more than 65,536 bytes") as caught:
        resolve(Reference("command", ENDLESS), where="key of 'shop'")
    assert "key of 'shop'" in caught.value.message
    assert "x" * 100 not in str(caught.value)


def test_a_command_that_prints_as_much_as_may_be_is_taken_and_one_byte_more_is_not():
    def printing(count):
        program = f"import sys; sys.stdout.write('x' * {count})"
        return resolve(Reference("command", shlex.join([sys.executable, "-c", program])), where="x")

    assert len(printing(MAX_SECRET)) == MAX_SECRET
    with pytest.raises(ConfigurationError, match="printed more than 65,536 bytes"):
        printing(MAX_SECRET + 1)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import sys; sys.exit(3)", "exit status 3"),
        ("import os; os.kill(os.getpid(), 9)", "exit status -9"),
        ("import os; os.write(1, bytes([255, 254]))", "other than text"),
        ("import os, time; os.close(1); time.sleep(60)", "0.5 s"),
        ("import time; time.sleep(60)", "0.5 s"),
    ],
)
def test_a_command_that_fails_is_told_with_how(monkeypatch, program, reason):
    monkeypatch.setattr(secrets, "COMMAND_SECONDS", 0.5 if "sleep" in program else 30)
    with pytest.raises(ConfigurationError, match=reason):
        resolve(Reference("command", shlex.join([sys.executable, "-c", program])), where="x")


def test_a_command_that_is_not_there_is_told():
    for command in ("/no/such/program", "'unbalanced", "a\0b"):
        with pytest.raises(ConfigurationError, match="failed"):
            resolve(Reference("command", command), where="x")


def test_a_pipe_is_no_file_with_a_secret_and_a_link_is_followed_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "link").symlink_to("secret")
    (tmp_path / "to-pipe").symlink_to("pipe")
    assert resolve(Reference("file", str(tmp_path / "link")), where="x") == "s3cret"
    for name in ("pipe", "to-pipe"):
        with pytest.raises(ConfigurationError, match=f"{name} is not a regular file"):
            resolve(Reference("file", str(tmp_path / name)), where="x")


def test_a_file_that_is_swapped_after_it_was_found_is_not_read(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "other").write_text("other")
    found = references.regular_file(str(tmp_path / "mine"), where="x")
    (tmp_path / "other").replace(tmp_path / "mine")
    with pytest.raises(ConfigurationError, match="no longer the same file"):
        references.read_file(found, where="x", limit=100)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (Reference("file", "/dev/zero"), "/dev/zero is not a regular file"),
        (Reference("file", "/"), "a folder"),
        (Reference("file", "large"), f"larger than {MAX_SECRET:,} bytes"),
        (Reference("path", "/etc/hostname"), "names no secret"),
    ],
)
def test_a_secret_is_read_from_a_regular_file_of_moderate_size(tmp_path, monkeypatch, reference, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "large").write_bytes(b"x" * (MAX_SECRET + 1))
    with pytest.raises(ConfigurationError, match=reason):
        resolve(reference, where="x")


def test_no_command_runs_that_stands_in_a_file_which_others_can_write(connections, file, tmp_path):
    connections.save(SavedConnection(name="shop", type="t", values={}))
    command = Reference("command", f"touch {tmp_path / 'executed'}")
    file.chmod(0o666)
    with pytest.raises(ConfigurationError, match="so that every user can write it"):
        connections.secret(command, connection="shop", field="key")
    assert not (tmp_path / "executed").exists()
    file.chmod(0o644)
    connections.secret(command, connection="shop", field="key")
    assert (tmp_path / "executed").exists()


def test_a_connection_may_be_called_format(connections, file):
    file.write_text('[format]\ntype = "t"\nkey = "env:A"\n')
    connections.save(SavedConnection(name="shop", type="t", values={"x": 1}))
    assert [each.name for each in connections.list()] == ["format", "shop"]


def test_quotes_and_line_breaks_in_a_reference_come_back_as_they_were(connections):
    values = {"key": Reference("command", "printf 'a \"b\" \\ \n'"), "ca": Reference("path", '/tmp/it\'s "x"')}
    connections.save(SavedConnection(name="shop", type="t", values=values))
    assert connections.get("shop").values == values


def test_a_name_that_could_not_stand_in_a_command_to_paste_is_refused_when_it_is_read(connections, file):
    file.write_text('["x; touch y"]\ntype = "t"\n')
    [hidden] = connections.sifted()[1].values()
    assert "cannot name a connection" in hidden.message
    with pytest.raises(ConfigurationError, match="cannot name a connection"):
        connections.get("x; touch y")


@pytest.mark.parametrize("text", ['shop = "x"', "[[shop]]\na = 1", "shop = 5"])
def test_what_is_no_table_of_a_connections_secrets_is_none_and_stays_where_it_is_anothers(connections, file, text):
    connections.save(SavedConnection(name="shop", type="t", values={}))
    secrets = file.with_name("secrets.toml")
    secrets.write_text(text)
    secrets.chmod(0o600)
    with pytest.raises(ConfigurationError, match="key of 'shop': its stored secret is missing"):
        connections.secret(STORED, connection="shop", field="key")
    connections.store_secret("other", "key", "y")
    assert tomllib.loads(secrets.read_text())["shop"] == tomllib.loads(text)["shop"]
    connections.store_secret("shop", "key", "x")
    assert connections.secret(STORED, connection="shop", field="key") == "x"
    assert connections.secret(STORED, connection="other", field="key") == "y"


def test_a_command_to_paste_runs_nothing_that_a_reference_names():
    with pytest.raises(ConfigurationError) as caught:
        resolve(Reference("env", "A; touch pwned #"), where="x")
    assert shlex.split(caught.value.hint) == ["export", "A; touch pwned #=…"]
