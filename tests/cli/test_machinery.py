"""What all commands share: errors, exit codes, events, automations, scripts, pipes, signals, speed of the start."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from jsonschema import Draft202012Validator

from dragoman.__main__ import FLAGS, OPENING, VALUED, command_of, start_early
from dragoman.cli import app
from dragoman.cli.errors import exit_code, report
from dragoman_api.errors import DragomanError, from_code
from slow_cases import mostly_slow

ROOT = Path(__file__).parents[2]
GUARD = """
from dragoman_api import Refused, hookimpl

@hookimpl
async def before_call(call):
    if call.writes:
        raise Refused(f"{call.hook} on {call.connection.name}", hint="use a change file")
"""


@pytest.fixture
def shop(furnished):
    """Return the furnished home; here every command opens its connection by itself."""
    return furnished


@pytest.mark.parametrize(
    ("code", "expected"),
    [("authentication-failed", 3), ("connection-failed", 3), ("configuration-invalid", 2), ("refused", 1),
     ("query-failed", 1), ("driver-crashed", 1), ("plugin-not-found", 1), ("timed-out", 124), ("terminated", 143)],
)  # fmt: skip
def test_exit_codes_follow_the_family_of_the_error(code, expected):
    assert exit_code(from_code(code, "x")) == expected


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (click.UsageError("no such option"), 2, "usage"),
        (click.ClickException("odd"), 1, "usage"),
        (FileNotFoundError(2, "No such file or directory", "there"), 1, "system"),
        (BrokenPipeError(), 0, None),
        (from_code("connection-failed", "x"), 3, "connection-failed"),
        (BaseExceptionGroup("all", [from_code("query-failed", "x"), from_code("connection-failed", "y")]), 1, None),
        (BaseExceptionGroup("all", [OSError(5, "Input/output error")]), 1, "system"),
    ],
)
def test_whatever_fails_has_the_same_exit_code_as_json_and_for_people(capsys, monkeypatch, error, code, said):
    monkeypatch.delenv("DRAGOMAN_DEBUG", raising=False)
    for as_json in (False, True):
        assert report(error, as_json=as_json) == code
        told = capsys.readouterr()
        assert told.out == ""
        if said:
            assert (json.loads(told.err)["error"]["code"] == said) if as_json else (f"error[{said}]: " in told.err)


def test_an_error_is_taken_out_of_the_groups_around_it(capsys):
    inner = DragomanError("what happened", hint="do this", code="some-code")
    group = BaseExceptionGroup("tasks", [RuntimeError("noise"), BaseExceptionGroup("more", [inner])])
    assert report(group, as_json=False) == 1
    assert capsys.readouterr().err == "error[some-code]: what happened\n  hint: do this\n"


def test_an_unexpected_error_is_one_line_without_a_traceback(capsys, monkeypatch):
    monkeypatch.delenv("DRAGOMAN_DEBUG", raising=False)
    assert report(ValueError("odd \x1b[31m"), as_json=False) == 1
    err = capsys.readouterr().err
    assert err.startswith("error[internal]: unexpected ValueError: odd \\x1b[31m\n  hint: ")
    monkeypatch.setenv("DRAGOMAN_DEBUG", "1")
    with pytest.raises(ValueError, match="odd"):
        report(ValueError("odd"), as_json=False)


def test_an_interrupted_prompt_ends_with_130(capsys):
    assert report(click.Abort(), as_json=False) == 130
    assert report(KeyboardInterrupt(), as_json=True) == 130


def test_with_json_an_error_is_json_on_stderr_wherever_the_option_stands(shop):
    for words in (("--json", "count", "nope", "x"), ("count", "nope", "x", "--json")):
        done = shop(*words, code=2)
        assert json.loads(done.err)["error"]["code"] == "configuration-invalid"
        assert done.out == ""
    assert json.loads(shop("count", "shop", "--json", code=2).err)["error"]["code"] == "usage"


def test_usage_errors_name_the_help_of_their_command(shop):
    assert shop("page", "shop", code=2).err.endswith("  try: dragoman page --help\n")
    assert shop("page", "shop", "books", "--limti", "3", code=2).err.startswith("error[usage]: No such option")


def test_a_connections_file_with_a_syntax_error_is_told_with_its_line(own):
    file = own.home / "config" / "connections.toml"
    file.write_text('[shop]\ntype = "demo\n')
    done = own("count", "shop", "books", code=2)
    assert "line 2" in done.err
    assert file.read_text() == '[shop]\ntype = "demo\n'


@pytest.mark.slow
def test_events_are_appended_to_a_file_as_json_lines(shop, tmp_path):
    log = tmp_path / "run.ndjson"
    for _ in range(2):
        shop("--events", log, "page", "shop", "books")
    names = [json.loads(line)["name"] for line in log.read_text().splitlines()]
    assert names == ["connection.opened", "page.fetched", "connection.closed"] * 2


@pytest.mark.slow
def test_an_automation_of_a_file_vetoes_a_write_and_not_a_read(shop, tmp_path):
    guard = tmp_path / "guard.py"
    guard.write_text(GUARD)
    done = shop("--use", guard, "update", "shop", "books", "1", "--set", "price=0", code=1)
    assert done.err == ("error[refused]: guard.py: apply_change on shop; nothing was sent\n  hint: use a change file\n")
    assert shop("--use", guard, "count", "shop", "books").out == "3\n"


def test_a_file_that_cannot_be_imported_is_told_with_its_line(shop, tmp_path):
    (tmp_path / "broken.py").write_text("\n1/0\n")
    done = shop("--use", tmp_path / "broken.py", "count", "shop", "books", code=2)
    assert f"error[script-failed]: {tmp_path / 'broken.py'}:2: ZeroDivisionError" in done.err
    done = shop("--use", tmp_path / "absent.py", "count", "shop", "books", code=2)
    assert f"error[configuration-invalid]: {tmp_path / 'absent.py'} is not a readable Python file" in done.err
    (tmp_path / "typo.py").write_text("import os\ndef before_call(call:\n")
    done = shop("--use", tmp_path / "typo.py", "count", "shop", "books", code=2)
    assert f"error[script-failed]: {tmp_path / 'typo.py'}:2: SyntaxError: " in done.err


def test_a_script_gets_the_runtime_its_arguments_and_gives_the_exit_code(shop, tmp_path):
    script = tmp_path / "nightly.py"
    script.write_text(
        "import sys\n"
        "async def main(runtime):\n"
        "    async with runtime.open('shop') as shop:\n"
        "        print(await shop.rows('books').count(), sys.argv[1:])\n"
        "    return 7\n"
    )
    assert shop("run", script, "--fast", "x", code=7).out == "3 ['--fast', 'x']\n"
    for result, code in (("True", 0), ("None", 0), ("False", 1)):
        script.write_text(f"async def main(runtime):\n    return {result}\n")
        shop("run", script, code=code)
    script.write_text("async def main(runtime):\n    raise KeyError('gone')\n")
    assert f"error[script-failed]: {script}:2: KeyError: 'gone'" in shop("run", script, code=1).err
    script.write_text("def main(runtime): ...\n")
    assert f"error[configuration-invalid]: {script} has no `async def main(runtime)`" in shop("run", script, code=2).err


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_ends_the_command_quietly(shop):
    command = subprocess.list2cmdline(shop.words("export", "shop", "books", "-q"))
    script = f"{command} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], env=shop.variables(), capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_limits_hold_on_the_command_line_and_say_what_to_do(own, tmp_path):
    with (own.home / "config/config.toml").open("a") as config:
        config.write("\n[guards.limits]\nrows = 2\n")
    done = own("page", "shop", "books", "--limit", "3", code=1)
    assert "error[limit-exceeded]: limits: fetch_page of books on shop may have 2 rows, and 3 rows were" in done.err
    assert "hint: --limit 2, or raise rows below [guards.connections.shop.limits] in config.toml" in done.err
    assert own("page", "shop", "books", "--limit", "2", "--json").json["rows"]
    done = own("export", "shop", "books", "-o", tmp_path / "books.ndjson", code=1)
    assert "error[limit-exceeded]: limits: export_rows of books on shop may have 2 rows, and there are 3" in done.err
    assert "--resume" not in done.err
    assert not (tmp_path / "books.ndjson").exists()


WAITS = (
    "import anyio, pathlib, sys, time\n"
    "async def main(runtime):\n"
    "    async with runtime.open('shop') as shop:\n"
    "        target = pathlib.Path(sys.argv[1])\n"
    "        print('open', flush=True)\n"
    "        if 'blocks' in sys.argv:\n"
    "            time.sleep(60)\n"
    "        try:\n"
    "            await anyio.sleep(60)\n"
    "        finally:\n"
    "            print('cleaned', flush=True)\n"
)


def waiting(shop, folder, *words):
    script = folder / "wait.py"
    script.write_text(WAITS)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(shop.words("run", script, *words), env=shop.variables(), **pipes)
    assert process.stdout.readline() == "open\n"
    return process


SCHEMA = Draft202012Validator(json.loads((ROOT / "docs/reference/events.schema.json").read_text()))


def test_the_schema_of_events_knows_each_by_its_name():
    event = {"name": "connection.closed", "at": 1.5, "connection": "shop"}
    assert SCHEMA.is_valid(event)
    for broken in ({"name": "connection.close"}, {"connection": 7}, {"at": None}):
        assert not SCHEMA.is_valid(event | broken)
    for missing in event:
        assert not SCHEMA.is_valid({key: value for key, value in event.items() if key != missing})


@pytest.mark.slow
def test_with_events_on_stdout_nothing_else_is_there(shop, tmp_path):
    (tmp_path / "loud.py").write_text(
        "from dragoman_api import hookimpl\n"
        "print('loaded')\n"
        "@hookimpl\n"
        "async def on_event(event):\n"
        "    print('heard', event.name)\n"
    )
    (tmp_path / "script.py").write_text(
        "import subprocess\n"
        "async def main(runtime):\n"
        "    print('begun')\n"
        "    subprocess.run(['echo', 'a child'], check=True)\n"
        "    async with runtime.open('shop') as shop:\n"
        "        await shop.rows('books').page()\n"
    )
    run = ("--use", tmp_path / "loud.py", "run", tmp_path / "script.py")
    for words, beside in (
        (run, ["begun", "a child"]),
        (("page", "shop", "books"), ["Oolong"]),
        (("plugins", "list"), ["demo"]),
    ):
        done = shop.process("--events", "-", *words)
        for line in done.out.splitlines():
            SCHEMA.validate(json.loads(line))
        assert all(text in done.err for text in beside), done.err
        assert ("page.fetched" in done.out) == ("list" not in words)
    told = shop("--events", "-", "export", "shop", "books", code=2).err
    assert "error[usage]: --events - reserves stdout; " in told
    assert "-o FILE" in told


@pytest.mark.slow
def test_what_an_automation_prints_is_no_data(shop, tmp_path):
    (tmp_path / "loud.py").write_text(
        "from dragoman_api import hookimpl\n"
        "print('loaded')\n"
        "@hookimpl\n"
        "async def before_call(call):\n"
        "    print('asked', call.hook)\n"
        "@hookimpl\n"
        "async def on_event(event):\n"
        "    print('heard', event.name)\n"
    )
    done = shop.process("--use", tmp_path / "loud.py", "count", "shop", "books", "--json")
    assert done.json == {"count": 3}
    for line in ("loaded\n", "loud.py: asked count_rows\n", "loud.py: heard connection.opened\n"):
        assert line in done.err


@pytest.mark.parametrize(
    ("number", "code", "told"),
    [
        (signal.SIGINT, 130, "\n  interrupted\n"),
        (signal.SIGTERM, 143, "error[terminated]: terminated by SIGTERM\n"),
    ],
)
def test_an_interrupt_or_a_termination_cleans_up_and_has_its_own_exit_code(shop, tmp_path, number, code, told):
    process = waiting(shop, tmp_path, "x")
    workers = children_of(process.pid)
    assert workers
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (code, "cleaned\n", told)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def children_of(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.slow
def test_a_script_that_takes_too_long_is_ended_with_124(shop, tmp_path):
    process = waiting(shop, tmp_path, "x", "--timeout", "3s")
    out, err = process.communicate(timeout=40)
    assert (process.returncode, out) == (124, "cleaned\n")
    assert err == "error[timed-out]: the time limit was reached\n  hint: allow more time: --timeout 2h\n"
    assert "error[usage]: --timeout 'soon' is not a time" in shop("run", "--timeout", "soon", "x.py", code=2).err


@pytest.mark.slow
def test_even_a_script_that_blocks_the_event_loop_is_ended(shop, tmp_path):
    process = waiting(shop, tmp_path, "blocks")
    process.send_signal(signal.SIGTERM)  # the first cancels what cannot be cancelled; the next comes after a while
    _, err = process.communicate(timeout=50)
    assert (process.returncode, err) == (143, "error[terminated]: terminated by SIGTERM\n")


def test_the_level_of_the_sandbox_is_told_with_a_remedy(shop):
    done = shop("doctor")
    assert "sandbox" in done.out
    findings = {one["subject"]: one for one in shop("doctor", "--json").json["findings"]}
    assert findings["driver demo"]["state"] == "ok"
    assert findings["registry team"]["state"] == "ok"
    assert findings["sandbox"]["state"] == "ok" or findings["sandbox"]["remedy"]


def test_doctor_names_the_damaged_file_and_the_command_that_repairs(own):
    file = next((own.home / "data" / "store").rglob("driver.py"))
    file.chmod(0o644)
    file.write_text("tampered")
    done = own("doctor", code=1)
    assert "driver.py" in done.out
    assert "try: dragoman plugins repair demo" in done.err


def test_doctor_tells_of_files_that_cannot_be_read_and_goes_on(own):
    (own.home / "config" / "config.toml").write_text("registries = 3")
    (own.home / "config" / "connections.toml").write_text("[shop")
    findings = own("doctor", "--json", code=1).json["findings"]
    assert [one["subject"] for one in findings if one["state"] == "fault"] == ["connections", "registries"]
    assert findings[-1]["subject"] == "driver demo"


def test_a_driver_cannot_write_lines_of_its_own_into_an_error(capsys):
    report(DragomanError("it failed\nerror[other]: not so"), as_json=False)
    assert capsys.readouterr().err == "error[error]: it failed\n    | error[other]: not so\n"


def test_sandbox_off_is_shouted(shop):
    assert "sandbox process: switched off" in shop("-q", "--sandbox", "off", "count", "shop", "books").err


def test_home_can_be_chosen_on_the_command_line(shop, tmp_path):
    assert shop("connections", "list", "--home", tmp_path, "--json").json["connections"] == []
    assert str(tmp_path / "config") in shop("--home", tmp_path, "doctor").out


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--use", "AUTHOR.py", "page", "shop", "books"], ["run", "AUTHOR.py"]])
def test_a_file_that_code_of_others_still_holds_in_a_cycle_is_written_at_the_end(shop, tmp_path, words):
    """Commands that run only dragoman's own code spare the interpreter its last scans for cycles."""
    code = (
        "from dragoman_api import hookimpl\nclass Log: pass\nlog = Log(); log.itself = log\n"
        f"log.file = open({str(tmp_path / 'log')!r}, 'w'); log.file.write('data')\n"
        "@hookimpl\nasync def before_call(call): pass\nasync def main(runtime): pass\n"
    )
    (tmp_path / "author.py").write_text(code)
    words = [str(tmp_path / "author.py") if word == "AUTHOR.py" else word for word in words]
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *words], env=shop.variables(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log").read_text() == "data"


def test_the_version_is_told_without_importing_a_parser():
    code = "import sys; from dragoman.__main__ import main; main(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    version, modules = done.stdout.splitlines()
    assert version == "dragoman 1.0.0"
    assert not {"click", "asyncio", "msgspec", "importlib.metadata"} & set(modules.split())


UNUSED_BY_A_PAGE = {
    "dragoman.console.variables", "dragoman.exports.export_run", "dragoman.plugins.combined_catalog",
    "dragoman.plugins.driver_search", "dragoman.plugins.driver_views", "dragoman.sessions.whole_reads",
    "dragoman_registry.index.catalog", "dragoman_registry.sources", "dragoman_registry.trust",
    "dragoman_registry.wheels.archive",
}  # fmt: skip


UNWANTED = [
    (["plugins", "list"], {"pydantic", "aiohttp", "rich", "asyncio", "tomlkit", "dragoman.runtime"}),
    (["connections", "list"], {"pydantic", "aiohttp", "rich", "asyncio", "dragoman.runtime"}),
    (["page", "shop", "books"], {"pydantic", "aiohttp", "rich", "tomlkit", "tuf", "packaging", *UNUSED_BY_A_PAGE}),
    (["open", "shop"], {"pydantic", "aiohttp", "rich", "tomlkit", "prompt_toolkit", "dragoman.cli.line_prompt"}),
]


@pytest.mark.parametrize(("words", "unwanted"), mostly_slow(UNWANTED, fast=UNWANTED[::2]))
@pytest.mark.slow
def test_a_command_imports_only_what_it_needs(shop, words, unwanted):
    code = (
        "import sys; from dragoman.cli import app; app.run();"
        "print([name for name in sys.modules if '.' not in name or name.startswith('dragoman')], file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *words]
    for _ in range(2):  # the first one fills the cache of what a driver may import
        done = subprocess.run(
            command, input="count books\n", env=shop.variables(), capture_output=True, text=True, check=True
        )
    imported = set(eval(done.stderr.splitlines()[-1]))
    assert unwanted & imported == set()


def test_a_drivers_process_starts_early_for_the_commands_that_open_a_connection():
    def opens(command):
        function = command.callback
        while function is not None and not function.__code__.co_filename.endswith("opening.py"):
            function = getattr(function, "__wrapped__", None)
        return function is not None

    commands = {name: app.cli.commands[name] for name in app.cli.commands}
    assert {name for name, command in commands.items() if opens(command)} | {"open"} == OPENING


@pytest.mark.parametrize(
    "words",
    [
        "page shop --help",
        "plugins list",
        "--json plugins list page",
        "page --home=x",
        "",
        "--json",
        "--use",
        "--use page",
    ],
)
def test_nothing_is_started_early_for_nothing(words):
    assert start_early(words.split()) is None


def test_a_drivers_process_starts_early_whichever_global_options_come_first():
    """The lists of options that the start of a command skips are those of the commands."""
    flags, valued = set(), set()
    for option in app.cli.params:
        if not {"--home", "--help", "--version"}.intersection(option.opts):
            (flags if option.is_flag else valued).update(option.opts)
    assert (flags, valued) == (FLAGS, VALUED)
    before = [*flags, *(word for name in valued for word in (name, "auto")), *(f"{name}=page" for name in valued)]
    assert command_of([*before, "page", "shop", "plugins"]) == "page"


@pytest.mark.slow
def test_what_was_started_early_ends_with_a_command_that_fails(shop, tmp_path):
    """A usage error is found after the process was started: nothing of it may stay."""
    code = (
        "import sys, dragoman.__main__ as early; from dragoman import __main__ as m; started = []\n"
        "def kept(words, start=early.start_early): started.append(start(words)); return started[0]\n"
        "def discard(self, old=__import__('dragoman.sandbox.bare_process', fromlist=['']).Child.discard):\n"
        "    print('discarded', not self.process.ended, file=sys.stderr); old(self)\n"
        "__import__('dragoman.sandbox.bare_process', fromlist=['']).Child.discard = discard\n"
        "early.start_early = kept; sys.exit(m.main())"
    )
    words = [sys.executable, "-c", code, "page", "shop"]
    done = subprocess.run(words, env=shop.variables(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Missing argument" in done.stderr
    assert "discarded True" in done.stderr


def test_what_comes_before_the_early_start_is_little(home):
    """Whatever the host imports before it starts the driver's process delays that process."""
    code = (
        "import os, sys; from dragoman.__main__ import start_early; "
        "seen = set(); start = os.posix_spawn;"
        "os.posix_spawn = lambda *a, **b: (seen or seen.update(sys.modules), start(*a, **b))[1];"
        "start_early(['page', 'shop', 'books']).__exit__(None, None, None); print(*seen)"
    )
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seen = {name.split(".")[0] for name in done.stdout.split()}
    assert "socket" in seen
    unwanted = {
        "typing",
        "pathlib",
        "platform",
        "json",
        "subprocess",
        "ctypes",
        "dragoman_api",
        "click",
        "msgspec",
        "asyncio",
    }
    assert not seen & unwanted


@pytest.mark.parametrize(
    "line",
    [
        "page shop books --sort -",
        "registry build /nonexistent.whl --to /dev/null/x",
        "run /nonexistent.py",
        "console shop -f /nonexistent",
        "connections show \x1b[",
        "plugins show nope",
        "plugins pin nope",
        "export shop books -o /nonexistent/x",
    ],
)
def test_whatever_fails_is_told_in_one_way(shop, line):
    words = line.split(" ")
    done = shop(*words, code=2 if words[0] in ("page", "run", "connections") or "pin" in words else 1)
    assert done.err.splitlines()[-1].startswith(("error[", "  try: ", "  hint: "))
    assert "\x1b" not in done.err
