"""Drivers, registries, and saved connections without a person."""

from __future__ import annotations

import pytest

from dragoman.cli.connection_form import match_fields
from dragoman.references import Reference
from dragoman_api.connections import Choice, FieldKind, FormField
from dragoman_api.errors import ConfigurationError
from wheelhouse import Driver

FORM = [
    FormField(name="host", label="Host"),
    FormField(name="auth_method", label="Auth", kind=FieldKind.CHOICE, choices=(Choice(value="none", label="None"),)),
    FormField(name="api_key", label="API Key", kind=FieldKind.SECRET),
    FormField(name="skip_tls", label="Skip", kind=FieldKind.SWITCH),
    FormField(name="ssl_mode", label="SSL"),
    FormField(name="ssl_ca", label="CA"),
]


def test_a_field_is_an_option_and_its_beginning_will_do():
    given = {"host": "h", "auth": "none", "api_key": "env:KEY", "skip_tls": True}
    key = Reference("env", "KEY")
    assert match_fields(FORM, given) == {"host": "h", "auth_method": "none", "api_key": key, "skip_tls": True}
    assert match_fields(FORM, {"no_skip_tls": True}) == {"skip_tls": False}


def test_every_wrong_field_is_told_at_once():
    with pytest.raises(ConfigurationError) as caught:
        match_fields(FORM, {"hots": "x", "ssl": "y", "host": True, "api_key": "hunter2"})
    for part in (
        "--hots is not a field",
        "--ssl is ambiguous",
        "--host needs a value",
        "--api-key is a literal secret",
    ):
        assert part in caught.value.message
    assert "hunter2" not in caught.value.message + caught.value.hint
    assert "env:NAME" in caught.value.hint


def test_a_secret_on_the_command_line_is_refused_and_not_repeated(own):
    done = own("connections", "add", "x", "--type", "demo", "--auth", "api-key", "--api-key", "hunter2", code=2)
    assert "hunter2" not in done.out + done.err
    assert "  hint: --api-key env:NAME" in done.err


def test_P4_the_browsable_list_carries_the_label(empty):
    lines = empty("plugins", "browse").out.splitlines()
    assert lines[0].split() == ["ID", "LABEL", "TYPE", "VERSION", "STATE", "REACHES"]
    assert any(line.startswith("demo           Demo Driver ") for line in lines)
    assert [one["id"] for one in empty("plugins", "browse", "--type", "demo", "--json").json["plugins"]] == ["demo"]
    assert empty("plugins", "browse", "nothing-like-it", "--json").json["plugins"] == []


def test_P2_without_a_person_the_download_is_refused_unless_agreed_to(empty):
    done = empty("connections", "add", "shop", "--type", "demo", code=1)
    assert "error[refused]: Download Demo Driver 1.1.0 (demo, " in done.err
    assert "--yes" in done.err
    assert empty("plugins", "list").out == ""
    done = empty("connections", "add", "shop", "--type", "demo", "--yes")
    assert done.out == "saved shop · connected: Demo 4.2 · sandbox full\n"
    assert done.err.startswith("  installed demo 1.1.0 (")


def test_P3_opening_a_saved_connection_installs_its_driver_and_says_so(empty):
    (empty.home / "config" / "connections.toml").write_text('[shop]\ntype = "demo"\n')
    done = empty("count", "shop", "books")
    assert done.out == "3\n"
    assert done.err.startswith("  installing demo 1.1.0 for shop … done (")
    assert empty("-q", "count", "shop", "books").err == ""


def test_a_driver_is_installed_rolled_back_pinned_and_removed(empty):
    assert empty("plugins", "install", "demo", "--version", "1.0.0").out == "installed demo 1.0.0\n"
    listed = empty("plugins", "list").out.splitlines()
    assert listed[1].split() == ["demo", "Demo", "Driver", "demo", "1.0.0", "installed", "team"]
    for words, state in ((["--dry-run"], "available"), ([], "updated")):
        assert empty("plugins", "update", *words).out.splitlines()[1].split() == ["demo", "1.0.0", "1.1.0", state]
    assert empty("plugins", "rollback", "demo").out == "rolled back to demo 1.0.0\n"
    assert empty("plugins", "pin", "demo").out == "pinned demo 1.0.0\n"
    assert empty("plugins", "list", "--json").json["plugins"][0]["pin"] == "1.0.0"
    for words in ([], ["demo"], ["demo", "--dry-run"]):
        [stays] = empty("plugins", "update", *words, "--json").json["updates"]
        assert (stays["state"], stays["before"], stays["version"]) == ("pinned", "1.0.0", "1.0.0")
    assert "it is pinned to 1.0.0: dragoman plugins unpin demo" in empty("plugins", "update").out
    assert empty("plugins", "unpin", "demo").out == "unpinned demo\n"
    assert empty("plugins", "disable", "demo").out == "disabled demo\n"
    assert empty("plugins", "list", "--json").json["plugins"][0]["state"] == "disabled"
    assert empty("plugins", "enable", "demo").out == "enabled demo\n"
    assert "--yes" in empty("plugins", "remove", "demo", code=1).err
    assert empty("plugins", "remove", "demo", "--yes").out == "removed demo\n"
    assert empty("plugins", "list", "--json").json["plugins"] == []


def test_details_show_permissions_in_plain_words(empty):
    shown = empty("plugins", "show", "demo").out
    assert "reaches the connection's host and port" in shown
    assert [line.split()[0] for line in shown.partition("VERSION ")[2].splitlines()[1:3]] == ["1.1.0", "1.0.0"]
    assert empty("plugins", "show", "demo", "--json").json["manifest"]["id"] == "demo"


def test_a_registry_is_made_filled_verified_and_added(tmp_path, empty):
    wheel = Driver("other").write(tmp_path / "wheels")
    team = tmp_path / "mine"
    assert empty("registry", "init", team).out == f"initialized {team}\n"
    assert empty("registry", "build", wheel, "--to", team).out.startswith("published  other  1.0.0  sha256:")
    assert empty("registry", "verify", team).err == "  no faults\n"
    assert empty("registry", "add", team, "--name", "mine").out == f"added mine  {team}\n"
    assert [line.split()[0] for line in empty("registry", "list").out.splitlines()][:3] == ["NAME", "team", "mine"]
    (team / "targets" / "wheels" / "dragoman-other" / wheel.name).write_bytes(b"not a wheel")
    assert "dragoman_other-1.0.0" in empty("registry", "verify", team, code=1).out
    assert empty("registry", "remove", "mine").out == "removed mine\n"


def test_every_fault_of_a_hostile_wheel_is_told(tmp_path, empty):
    wheel = Driver("bad", licence="nonsense", entry="elsewhere:Driver").write(tmp_path)
    done = empty("registry", "build", wheel, "--to", tmp_path / "team", code=1)
    assert "error[wheel-rejected]" in done.err
    assert len([line for line in done.err.splitlines() if line.startswith("  manifest: ")]) == 2


def test_a_connection_is_shown_edited_tested_and_removed(own):
    assert own("connections", "list").out.splitlines()[1].split() == ["shop", "demo", "localhost:7700"]
    own("connections", "edit", "shop", "--port", "2")
    assert "warning: this server is a test\n" in own("connections", "test", "shop").err
    assert "port         2" in own("connections", "show", "shop").out
    assert "--yes" in own("connections", "remove", "shop", code=1).err
    assert own("connections", "remove", "shop", "--yes").out == "removed shop\n"
    assert own("connections", "list", "--json").json["connections"] == []


def test_E7_a_hidden_field_is_neither_required_nor_saved(own):
    own("connections", "add", "plain", "--type", "demo", "--no-connect")
    assert "api_key" not in own("connections", "show", "plain").out
    done = own("connections", "add", "keyed", "--type", "demo", "--auth", "api-key", code=2)
    assert "error[configuration-invalid]: connection 'keyed': api_key: must not be empty" in done.err


def test_a_rejected_key_ends_with_3_and_the_connection_stays_saved(own):
    words = ("connections", "add", "keyed", "--type", "demo", "--auth", "api-key", "--api-key", "env:DEMO_KEY")
    done = own(*words, code=3, DEMO_KEY="wrong")
    assert "error[authentication-failed]: Authentication failed: the API key was rejected" in done.err
    assert "saved keyed, but it did not connect" in done.err
    assert "keyed" in [one["name"] for one in own("connections", "list", "--json").json["connections"]]
    assert own("connections", "test", "keyed", DEMO_KEY="open sesame").out.startswith("keyed · connected: ")
    assert "wrong" not in own("connections", "show", "keyed").out


@pytest.mark.slow
def test_answers_may_come_from_a_pipe_and_missing_ones_are_named(own):
    done = own.process("connections", "add", "piped", typed="2\n\n7701\n2\nn\n")
    assert done.out.startswith("saved piped · connected: ")
    assert "localhost:7701" in own("connections", "list").out
    done = own.process("connections", "add", "new", typed="2\n\n", code=2)
    assert "error[configuration-invalid]: cannot ask for 'Port'" in done.err
    done = own("connections", "add", "shop", "--type", "demo", code=2)
    assert "'shop' already exists\n  try: dragoman connections edit shop\n" in done.err
    assert "'no/name' cannot name a connection" in own("connections", "add", "no/name", code=2).err


def saved_text(house, text):
    file = house.home / "config/connections.toml"
    file.write_text(f'[old] # kept\ntype = "demo"\nport = 7700\nauth_method = "api-key"\napi_key = {text} # mine\n')
    return file


def test_what_a_connection_reads_and_runs_is_listed_and_shown(own):
    saved_text(own, '{ command = "pass show shop" }')
    assert "runs the command" in own("connections", "list").out
    assert "command:pass show shop" in own("connections", "show", "old").out
    document = own("connections", "show", "old", "--json").json
    assert document["values"]["api_key"] == {"command": "pass show shop"}
    assert own("connections", "list", "--json").json["connections"] == [document]


def test_a_field_of_another_kind_names_the_command_that_sets_it_anew(own):
    saved_text(own, '{ path = "/etc/hostname" }')
    done = own("connections", "test", "old", code=2)
    assert "api_key: is saved as file, and the form's field is of kind secret" in done.err
    assert done.err.endswith("  hint: dragoman connections edit old --api-key env:NAME\n")
    assert "is saved as file" in own("connections", "edit", "old", "--port", "7701", code=2).err
    own("connections", "edit", "old", "--api-key", "env:DEMO_KEY", DEMO_KEY="open sesame")


def test_a_field_that_the_form_has_no_more_is_let_go_by_the_next_edit(own):
    file = saved_text(own, '{ env = "DEMO_KEY" }')
    file.write_text(file.read_text() + 'dialect = "command:touch x"\n')
    assert "dialect: no such field" in own("connections", "test", "old", code=2).err
    done = own("connections", "edit", "old", "--port", "7701", DEMO_KEY="open sesame")
    assert "the form has no field dialect; its value was dropped" in done.err
    assert "dialect" not in file.read_text()
