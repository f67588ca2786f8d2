"""Completion by a shell: from names that commands have shown, without a connection, and harmless whatever they are."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time

import msgspec
import pytest

from dragoman.cli import known_names
from dragoman.cli.known_names import KnownNames
from dragoman.folders import find_paths
from dragoman_api.columns import Column, ColumnKind, Operator
from screens import Screen

HOSTILE = ["trb;touch owned", "trb$(touch owned)", "tr*", "tr'b`x`"]


def asked(house, line, *, word=None, **more):
    """Return what bash gets for a line, the word at whose end is completed; from this process, as shells are below."""
    word = line.rpartition(" ")[2] if word is None else word
    done = house.beside(shared=None, runtime=None)(
        _DRAGOMAN_COMPLETE="bash_complete", COMP_LINE=line, COMP_WORD=word, **more
    )
    return done.out.splitlines()


def files(house):
    return sorted((house.home / "state/known-names").glob("*.json"))


@pytest.fixture
def own(own):
    """Return a home of which no command has shown a name yet."""
    shutil.rmtree(own.home / "state/known-names", ignore_errors=True)
    return own


@pytest.fixture
def seen(own):
    """Return a home in which names have been shown."""
    own("objects", "shop")
    own("describe", "shop", "books")
    return own


def test_connections_objects_columns_operators_and_choices_are_completed(seen):
    assert asked(seen, "dragoman page sh") == ["=shop"]
    assert asked(seen, "dragoman page shop ") == ["=books", "=orders"]
    assert asked(seen, "dragoman page shop books --sort ") == ["=price"]
    assert asked(seen, "dragoman page shop books --sort -p") == ["=-price"]
    assert asked(seen, "dragoman page shop books --columns id,t") == ["=id,title", "=id,tags"]
    assert asked(seen, "dragoman page shop books --filter pr") == ["=price\\ =\\ ", "=price\\ \\>=\\ "]
    assert asked(seen, "dragoman page shop books --filter 'pr", word="'pr") == ["=price = ", "=price >= "]
    assert asked(seen, "dragoman page shop books --filter 'price >", word="'price >") == [
        "nospace", "=price >= …", "=price >= ",
    ]  # fmt: skip
    assert asked(seen, "dragoman insert shop books --set pri") == ["nospace", "=price="]
    assert asked(seen, "dragoman page shop books --format c") == ["=csv"]
    assert asked(seen, "dragoman page shop books --format=c", word="c") == ["=csv"]
    assert asked(seen, "dragoman page shop books --sort=pr", word="pr") == ["=price"]
    assert asked(seen, "dragoman summarize shop books t") == ["=title", "=tags"]
    assert asked(seen, "dragoman coun") == ["=count"]
    assert asked(seen, "X=1 dragoman coun") == ["=count"]
    assert asked(seen, "dragoman page shop books --vert") == ["=--vertical"]
    assert asked(seen, "dragoman apply shop ") == ["file"]
    assert asked(seen, "dragoman page shop books --home ") == ["dir"]
    assert asked(seen, "dragoman page shop nothing --filter 'x", word="'x") == [""]
    assert asked(seen, "dragoman page nobody ") == [""]


@pytest.mark.slow
def test_a_page_keeps_the_columns_too_and_completion_opens_no_connection(own):
    own("page", "shop", "books")
    before = [path.stat().st_mtime_ns for path in files(own)]
    assert asked(own, "dragoman cell shop books 1 ti") == ["=title"]
    assert asked(own, "dragoman page shop orders --sort ") == [""]
    assert asked(own, "dragoman page shop books --events - --use nothing.py --sort ") == ["=price"]
    assert [path.stat().st_mtime_ns for path in files(own)] == before
    [file] = files(own)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_list_tells_how_old_a_name_is_and_marks_a_stale_one(seen):
    assert asked(seen, "dragoman page shop ", COMP_TYPE="63") == ["=books   (seen now)", "=orders  (seen now)"]
    [file] = files(seen)
    kept = msgspec.json.decode(file.read_bytes())
    kept["seen"] = time.time() - 3 * 86_400
    file.write_bytes(msgspec.json.encode(kept))
    assert asked(seen, "dragoman page shop ", COMP_TYPE="63")[0] == "=books   (seen 3 days ago, may be stale)"


def test_names_of_a_connection_that_leads_elsewhere_now_are_forgotten(seen):
    file = seen.home / "config/connections.toml"
    file.write_text(file.read_text().replace("7700", "7701"))
    assert asked(seen, "dragoman page shop ") == [""]
    [kept] = files(seen)
    kept.write_bytes(b"{")
    assert asked(seen, "dragoman page shop ") == [""]


@pytest.mark.slow
def test_what_cannot_be_typed_is_not_offered_and_the_rest_is_one_word(own):
    own("connections", "add", "strange", "--type", "demo", "--port", "3", "--yes")
    own("objects", "strange")
    offered = asked(own, "dragoman page strange tr")
    assert offered == ["=trap", "=trb\\;touch\\ owned", "=trb\\$\\(touch\\ owned\\)", "=tr\\*", "=tr\\'b\\`x\\`"]
    assert asked(own, "dragoman page strange 'tr", word="'tr") == [
        "=trap", "=trb;touch owned", "=trb$(touch owned)", "=tr*",
    ]  # fmt: skip
    assert asked(own, 'dragoman page strange "tr', word='"tr') == ["=trap", "=trb;touch owned", "=tr*"]
    for shell in ("zsh", "fish"):
        out = own.process(_DRAGOMAN_COMPLETE=f"{shell}_complete", COMP_LINE="dragoman page strange tr").out
        assert "\x1b" not in out
        assert [line.split("\t") for line in out.splitlines()] == [
            ["word", name, "seen now"] for name in ["trap", *HOSTILE]
        ]


def test_what_is_kept_is_bounded(own, monkeypatch):
    kept = KnownNames(find_paths(own.home))
    kept.remember_objects("shop", ["x" * 201, "a\x1bb", *map(str, range(3_000))])
    assert kept.objects("shop").names == [str(number) for number in range(2_000)]
    column = Column(name="a", type="b", kind=ColumnKind.TEXT, sortable=True, operators=(Operator.EQ,))
    for number in range(60):
        kept.remember_columns("shop", f"o{number}", [column] * (600 if number in (9, 59) else 1))
    again = KnownNames(find_paths(own.home))
    assert len(again.columns("shop", "o59").names) == 500
    assert again.columns("shop", "o9").names == ()
    kept.remember_objects("nobody", ["a"])
    assert again.objects("nobody").names == []
    monkeypatch.setattr(known_names, "MAX_FILE", 10)
    assert KnownNames(find_paths(own.home)).objects("shop").names == []
    assert len(files(own)) == 1


def test_completion_imports_little(seen):
    """What it takes is measured by tests/benchmarks/bench_completion.py."""
    code = "import sys; from dragoman.__main__ import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    variables = seen.variables(
        _DRAGOMAN_COMPLETE="bash_complete", COMP_LINE="dragoman page shop books --filter 'pr", COMP_WORD="'pr"
    )
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["=price = ", "=price >= "]
    heavy = {"aiohttp", "anyio", "asyncio", "pluggy", "prompt_toolkit", "pydantic", "rich", "tomlkit"}
    assert not heavy & set(done.stderr.split())


def needed(shell):
    """Skip, loudly, without a shell; fail where continuous integration has installed them."""
    if shutil.which(shell) is None:
        assert "REQUIRE_SHELLS" not in os.environ, f"{shell} is required here"
        pytest.skip(f"NOT SHOWN HERE: {shell} is not installed")


@pytest.fixture
def path(tmp_path):
    """Return a PATH on which the command is found."""
    program = tmp_path / "bin/dragoman"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dragoman "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def bash(own, tmp_path, path):
    """Return a real bash in which the script has been evaluated."""
    needed("bash")
    shell = Screen(
        own.beside(cwd=tmp_path), program=["bash", "--norc", "--noprofile", "-i"], PATH=path, PS1="shop> ",
        HISTFILE="/dev/null", INPUTRC="/dev/null",
    )  # fmt: skip
    try:
        shell.run('eval "$(dragoman completion bash)"')
        yield shell
    finally:
        shell.kill()


@pytest.fixture
def zsh(own, tmp_path, path):
    """Return a real zsh in which the script has been evaluated."""
    needed("zsh")
    shell = Screen(
        own.beside(cwd=tmp_path), program=["zsh", "-f", "-i"], PATH=path, PS1="shop> ", HISTFILE="/dev/null",
    )  # fmt: skip
    try:
        shell.run("autoload -Uz compinit; compinit -u -D")
        shell.run('eval "$(dragoman completion zsh)"')
        yield shell
    finally:
        shell.kill()


@pytest.mark.slow
def test_a_real_bash_completes_and_quotes(seen, bash, tmp_path):
    bash.type("dragoman page sh\tbo\t--fil\t'pri\t", enter=False)
    bash.until("dragoman page shop books --filter 'price")
    bash.type(">\t5' --sort=pri\t", enter=False)
    bash.until("--filter 'price >= 5' --sort=price")
    bash.press("ctrl-u")
    bash.type("dragoman page shop \t\t", enter=False)
    bash.until("orders  (seen now)")
    bash.press("ctrl-u")
    bash.run("dragoman connections add strange --type demo --port 3 --yes")
    bash.run("dragoman objects strange")
    bash.type("dragoman page strange trb\\;\t", enter=False)
    bash.until("trb\\;touch\\ owned")
    bash.press("enter")
    bash.until("'trb;touch owned'")
    assert not (tmp_path / "owned").exists()
    assert b"\x1b]0;" not in bash.raw


@pytest.mark.slow
def test_a_real_zsh_completes_and_quotes(seen, zsh, tmp_path):
    zsh.type("dragoman page sh\tbo\t--fil\t'pri\t", enter=False)
    zsh.until("dragoman page shop books --filter 'price")
    zsh.type(">=\t5' --sort=pr\t", enter=False)
    zsh.until("--filter 'price >= 5' --sort=price")
    zsh.type("--form\tc\t-x", enter=False)
    zsh.until("--sort=price --format csv -x")
    zsh.press("ctrl-u")
    zsh.type("dragoman insert shop books --set pri\t5", enter=False)
    zsh.until("--set price=5")  # no space before the value
    zsh.press("ctrl-u")
    (tmp_path / "changes.ndjson").touch()
    zsh.type("dragoman apply shop cha\t--home=b\t", enter=False)
    zsh.until("dragoman apply shop changes.ndjson --home=bin/")
    zsh.press("ctrl-u")
    zsh.type("dragoman page shop \t", enter=False)
    zsh.until("orders  (seen now)")
    zsh.press("ctrl-u")
    zsh.run("dragoman connections add strange --type demo --port 3 --yes")
    zsh.run("dragoman objects strange")
    zsh.type("dragoman page strange trb\\;\t", enter=False)
    zsh.until("trb\\;touch\\ owned")
    zsh.press("enter")
    zsh.until("'trb;touch owned'")
    assert not (tmp_path / "owned").exists()
    assert b"\x1b]0;" not in zsh.raw


@pytest.fixture
def fish(own, tmp_path, path):
    """Return what a real fish suggests for each of some lines, as pairs of a word and a remark."""
    needed("fish")

    def ask(*lines):
        script = "dragoman completion fish | source; for line in $argv; complete -C $line; echo ---; end"
        done = subprocess.run(
            ["fish", "--no-config", "-c", script, *lines], env=own.variables(PATH=path, HOME=str(tmp_path)),
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stderr == ""
        return [
            [tuple(line.split("\t")) for line in part.splitlines() if line] for part in done.stdout.split("---\n")[:-1]
        ]

    return ask


@pytest.mark.slow
def test_a_real_fish_completes(seen, fish, tmp_path):
    (tmp_path / "changes.ndjson").touch()
    seen("connections", "add", "strange", "--type", "demo", "--port", "3", "--yes")
    seen("objects", "strange")
    asked = {
        "dragoman page sh": [("shop",)],
        "dragoman page shop ": [("books", "seen now"), ("orders", "seen now")],
        "dragoman page shop books --sort -p": [("-price", "double, seen now")],
        "dragoman page shop books --filter 'pr": [("price = ", "double, seen now"), ("price >= ", "double, seen now")],
        "dragoman page shop books --filter 'price = 1' --sort=pr": [("--sort=price", "double, seen now")],
        "dragoman insert shop books --set pri": [("price=", "double, seen now")],
        "dragoman page shop books --format=c": [("--format=csv",)],
        "X=1 dragoman coun": [("count", "Count rows.")],
        "dragoman apply shop cha": [("changes.ndjson",)],
        "dragoman page --home=b": [("--home=bin/", "Directory")],
        "dragoman page strange tr": [(name, "seen now") for name in ["trap", *HOSTILE]],
        "dragoman page nobody ": [],
    }
    assert dict(zip(asked, fish(*asked), strict=True)) == asked


@pytest.mark.slow
def test_a_real_fish_quotes_what_it_inserts(own, tmp_path, path, fish):
    own("connections", "add", "strange", "--type", "demo", "--port", "3", "--yes")
    own("objects", "strange")
    shell = Screen(
        own.beside(cwd=tmp_path), program=["fish", "--no-config", "-i"], PATH=path, HOME=str(tmp_path), columns=160,
    )  # fmt: skip
    try:
        shell.type("function fish_prompt; echo 'shop> '; end; dragoman completion fish | source")
        shell.ready()
        shell.type("dragoman page strange trb\\;\t", enter=False)
        shell.until("trb\\;touch\\ owned")
        shell.press("enter")
        shell.until("'trb;touch owned'")
        assert not (tmp_path / "owned").exists()
        assert b"\x1b]0;trb" not in shell.raw
    finally:
        shell.kill()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_one_that_it_can_read(own, shell):
    script = own("completion", shell).out
    assert f"_DRAGOMAN_COMPLETE={shell}_complete" in script
    needed(shell)
    subprocess.run([shell, "-n", "-c", script], check=True)
