"""Files that others can change or read: what leads to code or to secrets is refused, and what to do is said."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

import dragoman
from dragoman.cli.command_files import load_file
from dragoman.connections.saved_connections import Connections, SavedConnection
from dragoman.folders import find_exposure, find_paths
from dragoman.references import Reference
from dragoman.settings import RegistryEntry, change_registries, read_settings
from dragoman_api.errors import ConfigurationError

ROOT = os.geteuid() == 0
SOMEBODY = 54_321
"""A user and a group that no machine has."""


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "scripts" / "job.py"
    file.parent.mkdir(mode=0o755)
    file.parent.chmod(0o755)
    file.write_text("print('it ran')\nasync def main(runtime): ...\n")
    file.chmod(0o644)
    return file


def dragoman_(*words, cwd=None):
    words = [sys.executable, "-m", "dragoman", *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("what", "place", "mode"),
    [("run", "file", 0o666), ("use", "file", 0o602), ("run", "folder", 0o777), ("run", "cache", 0o777),
     ("use", "above", 0o777)],
)  # fmt: skip
def test_code_that_others_can_write_does_not_run(script, what, place, mode):
    cache = script.parent / "__pycache__"
    cache.mkdir()
    shared = {"file": script, "folder": script.parent, "cache": cache, "above": script.parent.parent}[place]
    before = shared.stat().st_mode
    shared.chmod(mode)
    code, said = dragoman_("run", script) if what == "run" else dragoman_("--use", script, "objects", "none")
    assert code == 2, said
    assert "it ran" not in said
    assert f"{shared} has mode {mode:04o}, so that every user can write it" in said
    assert f"chmod go-w {shared}" in said
    shared.chmod(before)
    load_file(str(script))


def test_a_link_in_a_folder_of_others_is_no_way_around(script, tmp_path, capsys):
    (folder := tmp_path / "shared").mkdir()
    folder.chmod(0o777)
    (folder / "job.py").symlink_to(script)
    (tmp_path / "there").symlink_to(folder)
    with pytest.raises(ConfigurationError) as caught:
        load_file(str(tmp_path / "there" / "job.py"))
    assert f"chmod go-w {folder}" in caught.value.hint
    assert "it ran" not in capsys.readouterr().out


def test_a_script_in_a_folder_as_tmp_runs_without_modules_that_others_put_there(script):
    script.parent.chmod(0o1777)
    (script.parent / "planted.py").write_text("")
    load_file(str(script))
    script.write_text("import planted\n")
    with pytest.raises(ConfigurationError, match="No module named 'planted'"):
        load_file(str(script))
    script.parent.chmod(0o755)
    load_file(str(script))


def test_what_lies_compiled_beside_a_script_never_runs(script, capsys):
    import importlib.util
    import py_compile

    evil = script.with_name("evil.py")
    evil.write_text("print('planted')\nasync def main(runtime): ...\n")
    compiled = importlib.util.cache_from_source(str(script))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(evil), cfile=compiled, dfile=str(script), invalidation_mode=mode)
    load_file(str(script))
    assert capsys.readouterr().out == "it ran\n"


@pytest.mark.skipif(not ROOT, reason="only root can give files away")
def test_a_script_of_somebody_else_runs_when_it_is_named_and_nobody_but_them_can_write_it(script):
    os.chown(script, SOMEBODY, SOMEBODY)
    os.chown(script.parent, SOMEBODY, SOMEBODY)
    load_file(str(script))  # as in a container with a folder of the user outside
    os.chown(script, 0, 0)
    with pytest.raises(ConfigurationError, match=f"{script.parent} belongs to the user {SOMEBODY}"):
        load_file(str(script))


@pytest.mark.skipif(not ROOT, reason="only root can choose any group")
def test_a_group_without_other_members_exposes_nothing(script, monkeypatch):
    import grp
    import pwd

    script.chmod(0o664)
    users = {0: ("root", 0), 1000: ("ann", 1000), 1001: ("bob", 1001), 1002: ("eve", 2000)}
    groups = {0: ("root", []), 1000: ("ann", []), 1001: ("bob", ["ann"]), 2000: ("users", []), 2001: ("team", ["ann"])}

    def user(number):
        name, group = users[number]
        return pwd.struct_passwd((name, "x", number, group, "", "", ""))

    # The databases of users are this machine's; what is judged, modes and owners, is real.
    monkeypatch.setattr(pwd, "getpwuid", user)
    monkeypatch.setattr(pwd, "getpwall", lambda: [*map(user, users)])
    monkeypatch.setattr(
        grp, "getgrgid", lambda number: grp.struct_group((groups[number][0], "x", number, groups[number][1]))
    )

    def judged(owner, group):
        os.chown(script, owner, group)
        return found.reason if (found := find_exposure(script, chosen=script)) else ""

    os.chown(script.parent, 0, 0)
    assert judged(1000, 1000) == ""  # a group of its own, as of Debian and Fedora with a umask of 002
    assert judged(0, 0) == ""
    assert judged(1000, 0) == ""
    assert "the group bob can write it" in judged(1001, 1001)  # another member
    assert "the group bob can write it" in judged(1000, 1001)
    assert "the group users can write it" in judged(1002, 2000)  # who is in it may be known elsewhere only
    assert "the group team can write it" in judged(1000, 2001)
    assert "the group 4711 can write it" in judged(1000, 4711)  # without a name
    assert judged(4712, 4712) == ""  # a container's user, which has no name


@pytest.mark.skipif(not ROOT, reason="only root can give files away")
@pytest.mark.parametrize("root", ["config", "data", "state", "cache"])
@pytest.mark.parametrize("how", ["mode", "owner"])
def test_a_home_of_others_is_refused(root, how):
    folder = getattr(find_paths(), root)
    folder.mkdir(parents=True)
    folder.chmod(0o777) if how == "mode" else os.chown(folder, SOMEBODY, SOMEBODY)
    with pytest.raises(ConfigurationError) as caught:
        dragoman.Runtime()
    said = "has mode 0777" if how == "mode" else f"belongs to the user {SOMEBODY}"
    assert caught.value.message.startswith(f"{folder} {said}")


def test_doctor_tells_of_a_home_of_others_once(home):
    home.mkdir()
    home.chmod(0o777)
    (home / "config").mkdir()
    code, said = dragoman_("doctor")
    assert code == 1, said
    assert said.count(f"{home} has mode 0777") == 1


@pytest.mark.parametrize("name", ["config/config.toml", "data/state.db"])
def test_settings_and_state_that_others_can_write_are_refused(home, name):
    (file := home / name).parent.mkdir(parents=True)
    file.write_text("")
    file.chmod(0o666)
    with pytest.raises(ConfigurationError, match="so that every user can write it"):
        find_paths()


@pytest.fixture
def connections():
    made = Connections(find_paths())
    made.save(SavedConnection(name="shop", type="t", values={"host": "h", "key": Reference("env", "HOME")}))
    return made


FORMS = [
    Reference("env", "HOME"),
    Reference("file", "/etc/hostname"),
    Reference("command", "true"),
    Reference("stored"),
]


@pytest.mark.parametrize("reference", FORMS, ids=lambda reference: reference.scheme)
def test_no_secret_goes_where_a_file_says_that_others_can_write(connections, home, reference):
    connections.store_secret("shop", "key", "s3cret")
    file = home / "config/connections.toml"
    assert connections.secret(reference, connection="shop", field="key") is not None
    file.chmod(0o666)
    with pytest.raises(ConfigurationError, match="has mode 0666") as caught:
        connections.secret(reference, connection="shop", field="key")
    assert caught.value.hint == f"check it, then: chmod go-w {file}"


@pytest.mark.slow
def test_nothing_is_taken_over_out_of_a_file_that_others_can_write(connections, home):
    file = home / "config/connections.toml"
    file.chmod(0o666)
    for change in (
        lambda: connections.save(SavedConnection(name="other", type="t", values={})),
        lambda: connections.remove("shop"),
    ):
        with pytest.raises(ConfigurationError, match="has mode 0666"):
            change()
    assert [each.name for each in connections.list()] == ["shop"]  # to look at it is no harm
    assert "0666" in connections.exposures()[0].reason
    for words in (("connections", "list"), ("doctor",)):
        assert "connections.toml has mode 0666" in dragoman_(*words)[1]


@pytest.mark.parametrize(
    ("mode", "reason"), [(0o644, "can read the secrets"), (0o606, "can write it"), (0o602, "write")]
)
def test_stored_secrets_that_others_can_read_or_change_are_not_used(connections, home, mode, reason):
    connections.store_secret("shop", "key", "s3cret")
    file = home / "config/secrets.toml"
    file.chmod(mode)
    with pytest.raises(ConfigurationError, match=reason) as caught:
        connections.secret(Reference("stored"), connection="shop", field="key")
    assert "s3cret" not in str(caught.value)
    subprocess.run(shlex.split(caught.value.hint.rpartition(": ")[2]), check=True)
    if mode == 0o644:
        assert connections.secret(Reference("stored"), connection="shop", field="key") == "s3cret"


@pytest.mark.slow
def test_what_dragoman_makes_is_its_users_own_whatever_the_umask(home):
    code = """if True:
        import os, runpy, sys
        os.umask(0)
        sys.argv = ["dragoman", *sys.argv[1:]]
        runpy.run_module("dragoman", run_name="__main__")"""
    add = ["connections", "add", "shop", "--type", "elasticsearch", "--host", "127.0.0.1", "--auth", "none"]
    words = [sys.executable, "-c", code, *add, "--no-connect", "--yes"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    open_to_all = [each for each in (home, *home.rglob("*")) if not each.is_symlink() and each.stat().st_mode & 0o002]
    assert open_to_all == []
    assert dragoman_("connections", "list")[0] == 0


def test_a_private_home_of_usual_modes_is_taken(home):
    for folder, mode in ((home, 0o755), (home / "config", 0o755), (home / "data", 0o700)):
        folder.mkdir()
        folder.chmod(mode)
    change_registries(find_paths().settings, lambda _: [RegistryEntry("r", "/r")])
    assert [entry.name for entry in read_settings(find_paths().settings).registries] == ["r"]


@pytest.mark.parametrize("words", [("connections", "list"), ("plugins", "list")])
def test_a_loop_of_links_is_told_and_not_followed(home, words):
    home.symlink_to(home)
    code, said = dragoman_(*words)
    assert code in (0, 1, 2)
    assert "internal" not in said
