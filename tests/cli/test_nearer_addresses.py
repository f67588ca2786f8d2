"""A saved name that leads nearer than before, as a person and a script meet it at the command line."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from fake_network import Names

HOST = "es.example"


@pytest.fixture
def names(monkeypatch) -> Names:
    """Make up what names lead to."""
    return Names(monkeypatch)


@pytest.fixture
def house(greeted, names, port):
    """Return a home with a connection whose name led to a public address when it was saved."""
    names.answers[HOST] = ["8.8.8.8"]
    greeted("connections", "add", "shop", "--type", "demo", "--host", HOST, "--port", port, "--yes")
    assert names.tried == ["8.8.8.8"]
    names.tried.clear()
    return greeted


@pytest.mark.slow
@pytest.mark.parametrize("consent", [(), ("--yes",)])
def test_a_script_is_refused_with_a_command_that_agrees_and_yes_is_no_such_word(house, names, consent):
    names.answers[HOST] = ["127.0.0.1"]
    done = house("connections", "test", "shop", *consent, code=1)
    assert names.tried == []
    assert (
        f"error[address-refused]: {HOST} leads to 127.0.0.1, this machine itself; it led to a public address before; "
        "nothing was sent there"
    ) in " ".join(done.err.split())
    [hint] = re.findall(r"^  try: (.*)$", done.err, re.MULTILINE)
    program, *words = shlex.split(hint)
    assert (program, words) == ("dragoman", ["connections", "edit", "shop", "--host", HOST])
    house(*words)
    house("connections", "test", "shop")
    assert names.tried == ["127.0.0.1", "127.0.0.1"]


def test_editing_anything_else_is_no_such_word(house, names, port):
    names.answers[HOST] = ["127.0.0.1"]
    house("connections", "edit", "shop", "--port", port, code=1)
    assert names.tried == []


def test_as_json_it_says_how_near_the_name_leads_and_led(house, names):
    names.answers[HOST] = ["10.0.0.7"]
    done = house("connections", "test", "shop", "--json", code=1)
    assert json.loads(done.err)["error"]["details"] == {
        "host": HOST, "address": "10.0.0.7", "now": "private", "before": "public",
    }  # fmt: skip


def test_a_removed_connection_is_forgotten(house, names):
    house("connections", "remove", "shop", "--yes")
    assert HOST not in (house.home / "data" / "reached.json").read_text()
