"""A guard given on the command line sees whatever a command does, and can veto it."""

from __future__ import annotations

import json
import shlex
import shutil

import click
import pytest

from dragoman.cli.app import cli
from thorough import one_in

pytestmark = pytest.mark.slow

GUARD = """
import os
from dragoman_api import Refused, hookimpl

@hookimpl
async def before_call(call):
    if call.hook == os.environ["VETO"]:
        raise Refused("not now", hint="later")
"""
SCRIPT = """
async def main(runtime):
    async with runtime.open("shop") as shop:
        await shop.rows("books").count()
"""
VETOED = {
    "apply": ("apply_change", "shop changes.ndjson --yes"),
    "cell": ("fetch_cell", "shop books 1 title"),
    "connections add": ("connect", "more --type demo --yes"),
    "connections edit": ("connect", "shop --port 7701"),
    "connections test": ("connect", "shop"),
    "console": ("execute_console", "shop 'GET /books'"),
    "copy": ("export_rows", "shop books more books --yes"),
    "count": ("count_rows", "shop books"),
    "delete": ("apply_change", "shop books 1 --yes"),
    "describe": ("describe_object", "shop books"),
    "driver link": ("install_plugin", "."),
    "driver unlink": ("remove_plugin", "demo"),
    "drop": ("apply_change", "shop books --yes"),
    "export": ("export_rows", "shop books -o books.ndjson"),
    "import": ("apply_change", "shop books rows.ndjson --yes"),
    "insert": ("apply_change", "shop books --set title=x"),
    "objects": ("list_objects", "shop"),
    "open": ("connect", "shop"),
    "page": ("fetch_page", "shop books"),
    "plugins disable": ("update_plugin", "demo"),
    "plugins enable": ("update_plugin", "demo"),
    "plugins gc": ("remove_plugin", ""),
    "plugins install": ("install_plugin", "demo"),
    "plugins pin": ("update_plugin", "demo"),
    "plugins remove": ("remove_plugin", "demo --yes"),
    "plugins repair": ("update_plugin", "demo"),
    "plugins rollback": ("update_plugin", "demo"),
    "plugins sync": ("install_plugin", ""),
    "plugins unpin": ("update_plugin", "demo"),
    "plugins update": ("update_plugin", "demo"),
    "run": ("count_rows", "script.py"),
    "similar": ("similar_rows", "shop books 1"),
    "summarize": ("summarize_column", "shop books title"),
    "update": ("apply_change", "shop books 1 --set price=0"),
}
LOOKING = {  # at files of this machine, and at registries
    "completion", "connections list", "connections show", "doctor", "plugins browse", "plugins list", "plugins show",
    "plugins verify", "plugins why", "queries list", "queries show", "registry list",
}  # fmt: skip
CONFIGURING = {
    "connections remove",
    "queries remove",
    "queries save",
    "registry add",
    "registry remove",
    "uninstall",
}  # what a person may as well write into the files, or remove
SERVING = {"mcp", "sample", "workbench"}
"""A sample is no connection. The others ask guards about each call of an agent, or of a page: agents/test_reading,
workbench/test_guards_hold."""
ROOMS = ("driver", "registry")  # for authors and operators: folders of theirs, and no connection


def names(command, name=""):
    """Return every command by its whole name."""
    if not isinstance(command, click.Group):
        return {name.strip()}
    context = click.Context(command)
    children = {child: command.get_command(context, child) for child in command.list_commands(context)}
    return {found for child, made in children.items() for found in names(made, f"{name} {child}")}


def test_every_command_is_vetoed_or_touches_nothing_that_a_guard_guards():
    rest = names(cli) - VETOED.keys() - LOOKING - CONFIGURING - SERVING
    assert {name for name in rest if not name.startswith(ROOMS)} == set()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vetoes")
    (folder / "guard.py").write_text(GUARD)
    (folder / "script.py").write_text(SCRIPT)
    (folder / "changes.ndjson").write_text('{"op": "delete", "object": "books", "id": "1"}\n')
    (folder / "rows.ndjson").write_text('{"title": "new"}\n')
    return folder


@pytest.mark.parametrize("name", one_in(3, VETOED))
def test_a_guard_vetoes_the_command(name, own, place, monkeypatch):
    monkeypatch.chdir(place)
    hook, words = VETOED[name]
    prepare(own, name)
    before = snapshot(own)
    events = own.home / "events"
    line = [*name.split(), *shlex.split(words)]
    done = own.process("--use", "guard.py", "--events", events, *line, VETO=hook, code=1)
    assert "error[refused]: guard.py: not now; nothing was sent" in done.err
    told = [json.loads(line) for line in events.read_text().splitlines()]
    assert (hook, "guard.py") in [(one["hook"], one["automation"]) for one in told if one["name"] == "call.refused"]
    events.unlink()
    if name not in ("connections add", "connections edit"):  # saved first, and kept where it cannot be connected
        assert snapshot(own) == before
    assert not (place / "books.ndjson").exists()


def prepare(own, name):
    """Bring about what the command needs: something to update to, to go back to, to repair or to install."""
    data = own.home / "data"
    if name in ("plugins update", "plugins rollback"):
        own("plugins", "install", "demo", "--version", "1.0.0")
    if name == "plugins repair":
        module = next((data / "store").rglob("driver.py"))
        module.chmod(0o644)
        module.write_text("damaged")
    if name == "copy":
        own("connections", "add", "more", "--type", "demo", "--yes")
    if name == "plugins sync":
        shutil.copy(data / "plugins.lock", own.home / "kept")
        own("plugins", "remove", "demo", "--yes")
        shutil.copy(own.home / "kept", data / "plugins.lock")


def snapshot(own):
    """Return what is installed and configured."""
    state = own("plugins", "list", "--json").json
    files = [own.home / "config/connections.toml", own.home / "config/config.toml", own.home / "data/plugins.lock"]
    return state, [file.read_bytes() for file in files if file.exists()]
