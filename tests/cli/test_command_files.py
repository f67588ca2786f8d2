"""Files that one command line names: none is written twice over, and what events tell is for their owner alone."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from contextlib import ExitStack

import pytest

from dragoman.cli.streams import write_driver_log

FILES = {".x.ndjson.checkpoint", ".x.ndjson.made", ".x.ndjson.part", "x.ndjson", "x.ndjson.manifest.json"}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", sorted(FILES))
def test_events_are_not_written_into_what_an_export_writes(shop, tmp_path, name):
    words = ["export", "shop", "books", "-o", tmp_path / "x.ndjson", "--events", tmp_path / "y/.." / name]
    (tmp_path / "y").mkdir()
    done = shop(*words, code=2)
    assert f"--events {tmp_path / 'y/..' / name} is written by -o {tmp_path / 'x.ndjson'} too" in done.err
    assert "\n  hint: name another file" in done.err
    assert names(tmp_path) == ["y"]


@pytest.mark.parametrize("kind", ["symbolic link", "link to nothing", "hard link"])
@pytest.mark.parametrize("events_first", [True, False])
def test_two_names_of_one_file_are_one_file(shop, tmp_path, kind, events_first):
    one, other = tmp_path / "x.ndjson", tmp_path / "other"
    if kind != "link to nothing":
        one.write_bytes(b"kept\n")
    other.hardlink_to(one) if kind == "hard link" else other.symlink_to(one)
    before = names(tmp_path)
    output, events = ("-o", one), ("--events", other)
    words = (
        (*events, "export", "shop", "books", *output) if events_first else ("export", "shop", "books", *output, *events)
    )
    assert f"--events {other} is written by -o {one} too" in shop(*words, code=2).err
    assert names(tmp_path) == before
    assert kind == "link to nothing" or one.read_bytes() == b"kept\n"


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "shop", "FILE"),
        ("apply", "shop", "changes", "--undo", "FILE"),
        ("console", "shop", "-f", "FILE"),
        ("run", "FILE"),
        ("--use", "FILE", "count", "shop", "books"),
        ("registry", "mirror", "team", "--bundle", "FILE"),
    ],
)
@pytest.mark.parametrize("option", ["--events", "--driver-log"])
def test_events_and_the_log_of_drivers_are_not_written_into_what_a_command_reads_or_writes(
    shop, tmp_path, words, option
):
    file = tmp_path / "file.py"
    file.write_text("kept\n")
    done = shop(*(file if word == "FILE" else word for word in words), option, file, code=2)
    assert f"{option} {file} is" in done.err
    assert file.read_text() == "kept\n"


def test_events_and_the_log_of_drivers_go_to_two_files(shop, tmp_path):
    file = tmp_path / "file"
    done = shop("count", "shop", "books", "--driver-log", file, "--events", file, code=2)
    assert f"--driver-log {file} is written by --events {file} too" in done.err
    assert not file.exists()


def test_a_log_of_drivers_that_lacks_lines_says_so_once(capsys):
    with ExitStack() as cleanup:
        write = write_driver_log("/dev/full", cleanup)
        write("shop", "a")
        write("shop", "b")
    assert capsys.readouterr().err == "--driver-log /dev/full lacks lines: No space left on device\n"


@pytest.mark.slow
def test_a_line_of_the_shell_does_not_write_where_its_events_go(furnished, tmp_path):
    events = tmp_path / "events"
    line = f"export books -o {events}\n"
    done = furnished.process("open", "shop", "--events", events, typed=line, code=2)
    assert f"--events {events} is written by -o {events} too" in done.err
    assert [json.loads(line)["name"] for line in events.read_text().splitlines()][-1] == "connection.closed"


@pytest.mark.slow_unless(decides=lambda option, name: (option, name) in {("--events", "stdout"), ("-o", "out")})
@pytest.mark.parametrize("name", ["stdout", "out"])
@pytest.mark.parametrize("option", ["--events", "-o"])
def test_neither_events_nor_an_export_take_the_file_of_stdout(furnished, tmp_path, option, name):
    (tmp_path / "stdout").symlink_to("/dev/fd/1")  # as /dev/stdout is
    words = furnished.words("export", "shop", "books", option, tmp_path / name)
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            words, env=furnished.variables(), stdout=out, stderr=subprocess.PIPE, text=True, timeout=50, check=False
        )
    assert done.returncode == 2
    assert f"{option} {tmp_path / name} is also the file of standard output" in done.stderr
    assert f"  hint: {'use --events - ' if option == '--events' else 'omit -o'}" in done.stderr
    assert names(tmp_path) == ["out", "stdout"]
    assert (tmp_path / "stdout").is_symlink()
    assert (tmp_path / "out").read_bytes() == b""


def test_events_and_narration_do_not_share_a_file(furnished, tmp_path):
    with (tmp_path / "log").open("wb") as log:
        done = subprocess.run(
            furnished.words("count", "shop", "books", "--events", tmp_path / "log"), env=furnished.variables(),
            stdout=subprocess.PIPE, stderr=log, timeout=50, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert b"is also the file of standard error" in (tmp_path / "log").read_bytes()


@pytest.mark.slow
def test_all_may_go_to_the_null_device(furnished):
    done = subprocess.run(
        furnished.words("export", "shop", "books", "--events", os.devnull), env=furnished.variables(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == 0


@pytest.mark.slow
def test_events_go_to_a_pipe_behind_stderr(furnished):
    done = furnished.process("count", "shop", "books", "--events", "/dev/stderr")
    assert '"name":"connection.opened"' in done.err


@pytest.mark.slow
def test_the_file_of_events_is_its_owners_alone_and_one_that_is_there_keeps_its_mode(furnished, tmp_path):
    furnished("count", "shop", "books", "--events", tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    (tmp_path / "old").touch()
    (tmp_path / "old").chmod(0o640)
    furnished("count", "shop", "books", "--events", tmp_path / "old")
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o640
    (tmp_path / "link").symlink_to("old")
    furnished("count", "shop", "books", "--events", tmp_path / "link")
    assert (tmp_path / "old").read_text().count("connection.opened") == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make a link another user's")
def test_events_do_not_follow_a_link_of_another_user(furnished, tmp_path):
    (tmp_path / "precious").write_text("kept\n")
    (link := tmp_path / "events").symlink_to("precious")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    done = furnished("count", "shop", "books", "--events", link, code=2)
    assert f"error[configuration-invalid]: --events {link} cannot be written: it is a link of another user" in done.err
    assert (tmp_path / "precious").read_text() == "kept\n"
