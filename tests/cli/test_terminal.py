"""What a person at a terminal meets: the chooser, questions, hidden secrets, the shell."""

from __future__ import annotations

import os
import re
import signal

import pytest

from terminal import Terminal

pytestmark = pytest.mark.slow


@pytest.fixture
def terminal():
    opened = []

    def begin(house, *words, **variables):
        opened.append(Terminal(house, *words, **variables))
        return opened[-1]

    yield begin
    for one in opened:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_P2_P5_E7_the_chooser_offers_the_download_asks_for_visible_fields_and_ends_connected(empty, terminal):
    screen = terminal(empty, "connections", "add", "shop")
    offered = screen.until("> ")
    assert "demo (not installed)" in offered
    number = re.search(r"(\d)\) demo", offered)[1]
    screen.type(number)
    before = screen.answer("[Y/n] ", "y")
    assert "Download Demo Driver 1.1.0 (" in before
    assert "It can reach the connection's host and port; nothing else." in before
    before = screen.answer("Host [localhost]: ", "")
    assert "installed demo 1.1.0 (" in before
    screen.answer("Port [7700]: ", "no number")
    assert "'no number' is not a whole number" in screen.answer("Port [7700]: ", "")
    screen.answer("Auth Method: 1) API Key  2) None [None] > ", "2")
    screen.answer("Advanced settings? [y/N] ", "")
    code, rest = screen.end()
    assert code == 0
    assert rest.endswith("saved shop · connected: Demo 4.2 · sandbox full\n")
    saved = (empty.home / "config" / "connections.toml").read_text()
    assert 'host = "localhost"' in saved
    assert "trust" not in saved


def test_a_declined_download_saves_nothing(empty, terminal):
    screen = terminal(empty, "connections", "add", "shop", "--type", "demo")
    screen.answer("[Y/n] ", "n")
    code, rest = screen.end()
    assert code == 1
    assert "nothing was changed" in rest
    assert not (empty.home / "config" / "connections.toml").exists()


def test_E7_a_typed_secret_is_not_shown_and_kept_in_a_file_of_its_owner(own, terminal):
    screen = terminal(own, "connections", "add", "keyed")
    screen.type(re.search(r"(\d)\) demo", screen.until("> "))[1])
    screen.answer("Host [localhost]: ", "")
    screen.answer("Port [7700]: ", "")
    screen.answer("[None] > ", "api")
    screen.answer("API Key comes from: 1) ", "1")
    screen.answer("API Key (not shown): ", "open sesame")
    before = screen.answer("Advanced settings? [y/N] ", "y")
    assert "open sesame" not in before
    screen.answer("Trust Everybody [y/N] ", "y")
    code, rest = screen.end()
    assert code == 0, rest
    assert "saved keyed · connected" in rest
    assert "open sesame" not in (own.home / "config" / "connections.toml").read_text()
    [kept] = [path for path in (own.home / "config").iterdir() if "open sesame" in path.read_text()]
    assert kept.stat().st_mode & 0o077 == 0
    assert "stored:" in own("connections", "show", "keyed").out
    assert "trust        True" in own("connections", "show", "keyed").out


def test_a_secret_typed_into_a_form_that_is_given_up_is_not_kept(own, terminal):
    screen = terminal(own, "connections", "add", "given-up")
    screen.type(re.search(r"(\d)\) demo", screen.until("> "))[1])
    screen.answer("Host [localhost]: ", "")
    screen.answer("Port [7700]: ", "")
    screen.answer("[None] > ", "api")
    screen.answer("API Key comes from: 1) ", "1")
    screen.answer("API Key (not shown): ", "open barley")
    screen.until("Advanced settings? [y/N] ")
    os.killpg(screen.process.pid, signal.SIGINT)
    assert screen.end()[0] == 130
    assert not [path for path in (own.home / "config").iterdir() if "open barley" in path.read_text()]


def test_a_secret_can_be_named_instead(own, terminal):
    screen = terminal(own, "connections", "edit", "shop", DEMO_KEY="open sesame")
    screen.answer("Host [localhost]: ", "")
    screen.answer("Port [7700]: ", "")
    screen.answer("[None] > ", "1")
    screen.answer("> ", "2")
    screen.answer("Name of the variable: ", "DEMO_KEY")
    screen.answer("Advanced settings? [y/N] ", "n")
    assert screen.end()[0] == 0
    assert "env:DEMO_KEY" in own("connections", "show", "shop").out


def test_an_edit_elsewhere_while_the_form_is_open_is_not_overwritten(own, terminal):
    screen = terminal(own, "connections", "edit", "shop")
    screen.until("Host [localhost]: ")
    own("connections", "edit", "shop", "--port", "7701", "--no-connect")
    for answer in ("", "", "none", "n"):
        screen.type(answer)
    code, rest = screen.end()
    assert (code, "'shop' was edited elsewhere before you answered" in " ".join(rest.split())) == (2, True), rest
    assert own("connections", "show", "shop", "--json").json["values"]["port"] == 7701


def saved_with_key(house, text):
    file = house.home / "config/connections.toml"
    file.write_text(f'[old]\ntype = "demo"\nport = 7700\nauth_method = "api-key"\napi_key = {text}\n')
    return file


def test_only_the_field_whose_kind_changed_is_asked_for(own, terminal):
    file = saved_with_key(own, '{ path = "/etc/hostname" }')
    screen = terminal(own, "connections", "edit", "old", DEMO_KEY="open sesame")
    screen.answer("> ", "2")
    screen.answer("Name of the variable: ", "DEMO_KEY")
    code, rest = screen.end()
    assert code == 0, rest
    assert file.read_text().splitlines()[2:] == [
        "port = 7700",
        'auth_method = "api-key"',
        'api_key = { env = "DEMO_KEY" }',
        'host = "localhost"',
    ]


def test_E31_dropping_shows_the_exact_request_and_asks_for_the_name(furnished, terminal):
    screen = terminal(furnished, "drop", "shop", "books")
    shown = screen.answer("Type the object's name: ", "books")
    assert "Send  DELETE /books  to localhost:7700?" in shown
    code, rest = screen.end()
    assert (code, rest.splitlines()[-1]) == (0, "dropped books")
    screen = terminal(furnished, "drop", "shop", "books")
    screen.answer("Type the object's name: ", "boks")
    code, rest = screen.end()
    assert code == 1
    assert "'boks' is not 'books'" in rest
    assert "not confirmed; nothing was changed" in rest


def test_an_interrupted_question_ends_with_130_and_shows_typing_again(furnished, terminal):
    screen = terminal(furnished, "drop", "shop", "books")
    screen.until("Type the object's name: ")
    os.killpg(screen.process.pid, signal.SIGINT)
    code, rest = screen.end()
    assert code == 130
    assert "interrupted" in rest
    assert "Traceback" not in rest


def test_a_page_on_a_terminal_is_cut_to_its_width_and_a_driver_cannot_colour_it(furnished, terminal):
    code, shown = terminal(furnished, "page", "shop", "books").end()
    assert code == 0
    assert "evil \\x1b[31m" in shown
    assert "rows 1\N{EN DASH}3 of 3" in shown


def test_an_export_to_a_terminal_is_shown_safely_and_json_is_indented(furnished, terminal):
    assert '{"id": "1", "title": "Oolong"' in terminal(furnished, "export", "shop", "books").end()[1]
    assert "plain \\x1b[31mred\n" in terminal(furnished, "console", "shop", "GET /text").end()[1]
    assert '\n  "columns": [' in terminal(furnished, "page", "shop", "books", "--json").end()[1]


@pytest.mark.parametrize("binary", [("--format", "arrow"), ("--compress", "gzip")])
def test_an_export_of_bytes_does_not_fill_a_terminal(furnished, terminal, binary):
    code, shown = terminal(furnished, "export", "shop", "books", *binary).end()
    assert code == 2
    assert "a terminal cannot show Arrow or compressed data; name a file, -o FILE, or use a pipe" in shown
    assert "try: dragoman" in shown
    assert "export --help" in shown


def test_a_reader_turns_the_pages_of_a_result(furnished):
    first, last = "page books --limit 2 --columns id", "page books --last --limit 1 --columns id"
    lines = [first, "next", "next", "prev", "prev", last, "count books", "prev", "next"]
    done = furnished("open", "shop", typed="\n".join(lines))
    ids = [line.split()[0] for line in done.out.splitlines()]
    assert ids == ["id", "1", "2", "id", "3", "id", "1", "2", "id", "3", "3", "id", "2", "id", "3"]
    assert "no rows after these" in done.err
    assert "no rows before these" in done.err
    assert "No page yet. " in furnished("open", "shop", typed="next\n", code=2).err


def test_piped_lines_run_until_the_first_failure(furnished):
    lines = "objects\n\n# a remark\ncount books --json\nhelp\ncount books\npage boks\nhelp"
    done = furnished("open", "shop", typed=lines, code=1)
    lines = done.out.splitlines()
    assert lines[3] == '{"count":3}'
    assert lines[-1] == "3"
    assert any(line.startswith("describe ") for line in lines)
    assert done.err.endswith("(did you mean books?)\n  try: objects\n  stopped at line 7\n")
    assert furnished.process("open", "shop", typed="cuont books\n", code=2).out == ""
    assert furnished("open", "shop", typed="quit\npgae\n").out == ""
    assert furnished("open", "nope", code=2).out == ""


def test_a_script_is_never_asked_anything_even_on_a_terminal(terminal, own, tmp_path):
    with (own.home / "config/config.toml").open("a") as config:
        config.write('\n[guards]\nread_only = "confirm-writes"\n')
    script = tmp_path / "writes.py"
    script.write_text(
        "from dragoman import Update\n"
        "async def main(runtime):\n"
        "    async with runtime.open('shop') as shop:\n"
        "        row = (await shop.rows('books').page(limit=1)).rows[0]\n"
        "        [outcome] = await shop.apply(await shop.plan(Update(row.key, {'price': 1})))\n"
        "        print(outcome.status)\n"
    )
    code, shown = terminal(own, "run", script).end()
    assert (code, "error[refused]" in shown and "not a terminal; nothing was sent\n  hint: add --yes" in shown) == (
        1,
        True,
    ), shown
    assert terminal(own, "run", script, "--yes").end() == (0, "applied\n")
