"""The shell on a terminal, as a person sees it: completion, history, texts of several lines, interruption."""

from __future__ import annotations

import json
import signal
import stat
import sys
import time

import click
import pytest

from dragoman.cli.open_prompt import _Shell
from screens import Screen

pytestmark = pytest.mark.slow


@pytest.fixture
def screen():
    opened = []

    def begin(house, *words, **more):
        opened.append(Screen(house, *(words or ("open", "shop")), **more))
        return opened[-1]

    yield begin
    for one in opened:
        one.kill()


def history(house):
    file = house.home / "state/open-history.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_the_shell_asks_line_by_line_and_outlives_a_failure(own, screen):
    shell = screen(own)
    assert "connected: Demo" in shell.ready()
    assert shell.run("count books") == "3"
    assert "did you mean books?" in shell.run("page boks")
    assert "1.10000000000000000001" in shell.run("console GET /x")
    assert "did you mean page?" in shell.run("pgae")
    assert "try: console GET /x?q=a b" in shell.run("GET /x?q=a b")
    shell.type("drop books")
    shell.until("Type the object's name: ".rstrip())
    shell.type("no")
    shell.until("nothing was changed")
    shell.ready()
    shell.type("drop books")
    shell.until(lambda: shell.shown.count("Type the object's name:") == 2)
    shell.interrupt()
    shell.until("interrupted")
    shell.ready()
    shell.type("quit")
    assert shell.end() == 0


def test_a_pasted_text_runs_line_by_line(own, screen):
    shell = screen(own)
    shell.ready()
    shell.type("\x1b[200~count books\ncount orders\x1b[201~", enter=False)
    shell.until("count orders")
    shell.press("enter")
    shell.until(lambda: shell.lines.count("3") == 2)


def test_tab_completes_commands_objects_columns_operators_and_values(own, screen):
    shell = screen(own)
    shell.ready()
    shell.type("desc\t", enter=False)
    shell.until("shop> describe")
    shell.type("bo\t", enter=False)
    shell.until("shop> describe books")
    shell.press("ctrl-u")
    shell.type("page books --filter 'pri\t", enter=False)
    shell.until("price >=")
    assert "double" in shell.shown
    shell.press("tab", "tab")
    shell.until("shop> page books --filter 'price >=")
    shell.type("5' --sort p\t", enter=False)
    shell.until("--sort price")
    shell.type("--columns ti\t", enter=False)
    shell.until("--sort price --columns title")
    shell.press("enter")
    assert "evil \\x1b[31m" in shell.until("rows 1\N{EN DASH}2 of 2")
    assert shell.run("page books --limit 1 --format ndjson").startswith('{"id":"1"')


def test_tab_completes_what_a_driver_suggests_for_a_console_text(own, screen):
    shell = screen(own)
    shell.ready()
    shell.type("console GET /bo\t", enter=False)
    shell.until("shop> console GET /books")


def test_names_of_a_server_that_would_control_the_terminal_are_not_offered(own, screen):
    own("connections", "add", "strange", "--type", "demo", "--port", "3", "--yes")
    shell = screen(own, "open", "strange")
    shell.ready("strange")
    shell.type("describe tra\t", enter=False)
    shell.until("strange> describe trap")
    assert b"\x1b]0;" not in shell.raw
    assert "owned" not in shell.shown
    shell.press("ctrl-u")
    shell.type("console GET /tra\t", enter=False)
    shell.until("strange> console GET /trap")
    assert b"\x1b]0;" not in shell.raw
    shell.press("ctrl-u")
    shell.type("describe trb\t", enter=False)
    shell.until("trb$(touch owned)")
    shell.press("tab")
    shell.until("describe 'trb;touch owned'")  # one word of the line


def test_lines_are_kept_across_sessions_but_for_those_with_secrets(own, screen):
    shell = screen(own)
    shell.run("count books")
    for line in ("console GET /x?api_key=hunter2hunter2", "page books --password hunter2", " count books",
                 "console GET /x --var token=hunter2", "console POST /x {\"password\": \"hunter2\"}"):  # fmt: skip
        shell.run(line)
    shell.run("objects")
    shell.press("ctrl-d")
    assert shell.end() == 0
    file = own.home / "state/open-history.jsonl"
    assert history(own) == ["count books", "objects"]
    assert "hunter2" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shell = screen(own)
    shell.ready()
    shell.press("up", "up")
    shell.until("shop> count books")
    shell.press("ctrl-c", "ctrl-r")
    shell.type("obj", enter=False)
    shell.until("(reverse-i-search)`obj': objects")


def test_the_secret_of_the_connection_is_not_kept_either(own, screen):
    file = own.home / "config/connections.toml"
    file.write_text(f'{file.read_text()}\n[keyed]\ntype = "demo"\nport = 7700\nauth_method = "api-key"\n'
                    'api_key = { env = "DEMO_KEY" }\n')  # fmt: skip
    shell = screen(own, "open", "keyed", DEMO_KEY="open sesame")
    shell.run("count books --filter 'title = open sesame'", name="keyed")
    shell.run("count books", name="keyed")
    shell.press("ctrl-d")
    assert shell.end() == 0
    assert history(own) == ["count books"]


def test_enter_continues_a_body_and_a_blank_line_or_alt_enter_sends(own, screen):
    shell = screen(own)
    shell.ready()
    shell.type("console POST /echo {")
    shell.until("a blank line or Alt-Enter sends")
    shell.type('"a": 1}')
    shell.press("enter")
    shell.until("POST /echo")
    assert "error" not in shell.ready()
    shell.type("console GET /text {")
    shell.type("}", enter=False)
    shell.press("alt-enter")
    shell.until("plain \\x1b[31mred")
    shell.ready()
    assert [line.splitlines()[0] for line in history(own)] == ["console POST /echo {", "console GET /text {"]


def test_ctrl_c_forgets_a_line_cancels_a_call_and_keeps_the_prompt(own, screen):
    shell = screen(own)
    shell.ready()
    shell.type("no such command", enter=False)
    shell.press("ctrl-c")
    shell.until(lambda: shell.shown.endswith("no such command\n\nshop>"))
    shell.type("console GET /hang")
    shell.until("shop> console GET /hang")
    time.sleep(1)  # no person is faster than the way from the prompt to the call
    shell.interrupt()
    assert "error" not in shell.until("interrupted")
    assert shell.run("count books") == "3"
    shell.press("ctrl-d")
    assert shell.end() == 0


def test_commands_that_are_about_no_connection_run_as_outside_and_others_say_why_not(own, screen):
    shell = screen(own)
    assert "shop" in shell.run("connections list")
    assert "demo" in shell.run("plugins list")
    assert "one shell holds one connection" in shell.run("open other")
    assert "start it in another terminal" in shell.run("workbench")
    assert "did you mean connections?" in shell.run("conections list")


def test_a_dumb_terminal_has_a_plain_prompt(own, screen):
    shell = screen(own, TERM="dumb")
    assert shell.run("count books") == "3"
    assert b"\x1b[" not in shell.raw
    shell.press("ctrl-d")
    assert shell.end() == 0


def test_rows_are_expanded_when_asked_or_when_a_narrow_terminal_has_no_room(own, screen):
    shell = screen(own, columns=27)
    narrow = shell.run("page books --limit 1")
    assert narrow.splitlines()[1:3] == ["id     1", "title  Oolong"]
    shell.run("\\x off")
    assert shell.run("page books --limit 1").splitlines()[0].startswith("id  title")
    assert "takes on or off" in shell.run("\\x sideways")
    shell.run("\\x")
    assert "- row 1 ---" in shell.run("page books --limit 1")
    shell.type("page books --limit 1 --no-vertical")
    shell.until(lambda: shell.shown.count("id  title") == 2 and shell.prompts())


def test_long_output_goes_to_the_pager_of_the_user_and_short_output_does_not(own, screen, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged $(wc -l) lines\n")
    pager.chmod(0o755)
    shell = screen(own, rows=10, PAGER=str(pager))
    assert shell.run("page books --vertical") == "paged 15 lines\n  rows 1\N{EN DASH}3 of 3"
    assert "paged" not in shell.run("count books")
    assert "- row 1 ---" in shell.run("page books --vertical --limit 1")
    shell.run("\\pager off")
    assert "paged" not in shell.run("page books --vertical")
    assert "paged" not in shell.run("export books")


def test_ctrl_c_belongs_to_the_pager_and_one_that_cannot_start_loses_nothing(own, screen, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\ntrap 'echo stopped; exit' INT\necho waiting\nwhile :; do sleep 0.1; done\n")
    pager.chmod(0o755)
    shell = screen(own, rows=10, PAGER=str(pager))
    shell.ready()
    shell.type("page books --vertical")
    shell.until("waiting")
    shell.press("ctrl-c")
    assert "interrupted" not in shell.until(lambda: "stopped" in shell.shown and shell.prompts())
    pager.unlink()
    assert "- row 3 ---" in shell.run("page books --vertical")


def test_ctrl_c_between_the_calls_of_a_command_ends_the_line_and_not_the_shell(capsys):
    def one(words, line):
        ran.append(line)
        if line == "count orders":
            raise KeyboardInterrupt

    ran = []
    shell = _Shell.__new__(_Shell)
    shell._attended, shell._one = True, one
    shell._lines = lambda: iter(["count orders", "count books", "quit"])
    assert shell.run() == 0
    assert ran == ["count orders", "count books"]
    shell._attended = False
    with pytest.raises(KeyboardInterrupt):
        shell.run()


def test_ctrl_c_before_the_pager_is_waited_for_belongs_to_it_as_well(capsys, monkeypatch):
    shell = _Shell.__new__(_Shell)
    shell._pages = True
    monkeypatch.setattr(click, "echo_via_pager", lambda _text: signal.raise_signal(signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    with shell._paged(["page"]):
        sys.stdout.write("row\n" * 99)
    assert capsys.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_question_is_seen_at_once_and_what_follows_it_stays_in_order(capsys):
    shell = _Shell.__new__(_Shell)
    shell._pages = True
    with shell._paged(["console"]):
        sys.stdout.write("about to write\n")
        sys.stderr.write("really? [y/N] ")
        assert capsys.readouterr() == ("", "")
        sys.stderr.flush()
        assert capsys.readouterr() == ("about to write\n", "really? [y/N] ")
        sys.stdout.write("1 row\n")
    assert capsys.readouterr().out == "1 row\n"
