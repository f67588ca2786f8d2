"""Saved connections: the file, its comments, secrets by reference, the form's rules."""

from __future__ import annotations

import resource

import click
import msgspec
import pytest

from dragoman.cli.advice import command_words
from dragoman.cli.connection_form import match_fields
from dragoman.cli.connections import add, edit
from dragoman.cli.options import Options
from dragoman.connections.form_values import check_values, to_save
from dragoman.connections.profiles import make_profile
from dragoman.connections.saved_connections import OWN_KEYS, Connections, SavedConnection
from dragoman.folders import find_paths
from dragoman.references import Reference, typed
from dragoman.sandbox.reach.route import HttpProxy
from dragoman.sessions.saved_queries import SavedQueries
from dragoman.sessions.selection_codec import SelectionTexts
from dragoman.spellings import TAKEN
from dragoman_api.connections import AuthScheme, Choice, FieldKind, FormField, SslMode
from dragoman_api.errors import ConfigurationError
from dragoman_api.remedies import Remedy
from dragoman_registry.names import is_field_name

FORM = (
    FormField(name="host", label="Host", default="localhost", required=True),
    FormField(name="port", label="Port", kind=FieldKind.INTEGER, default=9200, required=True),
    FormField(
        name="auth_method",
        label="Auth Method",
        kind=FieldKind.CHOICE,
        default="none",
        choices=(Choice(value="none", label="None"), Choice(value="api-key", label="API Key")),
    ),
    FormField(
        name="api_key",
        label="API Key",
        kind=FieldKind.SECRET,
        visible_if={"auth_method": ("api-key",)},
        required=True,
    ),
    FormField(name="skip_tls_verification", label="Skip", kind=FieldKind.SWITCH, default=False, advanced=True),
    FormField(name="path_prefix", label="Path Prefix", advanced=True),
    FormField(name="headers", label="Extra Headers", advanced=True),
)


@pytest.fixture
def paths():
    return find_paths()


@pytest.fixture
def connections(paths):
    return Connections(paths)


def saved(name="shop", **values):
    return SavedConnection(name=name, type="elasticsearch", values=values)


def test_a_saved_connection_comes_back_as_it_was(connections):
    connections.save(saved(host="h", port=9201, skip_tls_verification=True))
    assert connections.get("shop") == saved(host="h", port=9201, skip_tls_verification=True)
    assert [entry.name for entry in connections.list()] == ["shop"]


def test_comments_and_other_entries_survive_a_change(connections, paths):
    paths.connections.parent.mkdir(parents=True)
    paths.connections.write_text('# mine\n[old]\ntype = "weaviate" # the library\nhost = "h"\n')
    connections.save(saved(host="h"))
    connections.remove("shop")
    assert paths.connections.read_text().startswith('# mine\n[old]\ntype = "weaviate" # the library\n')


def test_a_syntax_error_names_the_line_and_the_file_is_never_overwritten(connections, paths):
    paths.connections.parent.mkdir(parents=True)
    text = '[shop]\ntype = "elasticsearch"\nhost = oops\n'
    paths.connections.write_text(text)
    for act in (connections.list, lambda: connections.save(saved(name="new")), lambda: connections.remove("shop")):
        with pytest.raises(ConfigurationError, match="line 3"):
            act()
    assert paths.connections.read_text() == text


def test_an_unknown_name_says_what_is_saved_and_how_to_add_one(connections):
    connections.save(saved())
    with pytest.raises(ConfigurationError, match="shop") as caught:
        connections.get("library")
    assert caught.value.hint == "dragoman connections add library"
    with pytest.raises(ConfigurationError, match=r"'shpo' \(did you mean shop\?\)") as caught:
        connections.get("shpo")
    assert caught.value.hint == "dragoman connections list"


def test_a_name_that_is_taken_or_unusable_is_refused(connections):
    connections.save(saved())
    with pytest.raises(ConfigurationError, match="'shop' already exists"):
        connections.save(saved())
    with pytest.raises(ConfigurationError, match="cannot name"):
        connections.save(saved(name="../x"))


def test_secrets_are_named_by_reference_and_never_written_out(connections, tmp_path, monkeypatch):
    monkeypatch.setenv("KEY", "s3cret")
    (tmp_path / "key").write_text("from-file\n")
    connections.save(saved())
    stored = connections.store_secret("shop", "api_key", "kept")

    def secret(reference):
        return connections.secret(reference, field="api_key", connection="shop")

    assert secret(typed("env:KEY")) == "s3cret"
    assert secret(typed(f"file:{tmp_path / 'key'}")) == "from-file"
    assert secret(typed("command:printf 'from command'")) == "from command"
    assert secret(stored) == "kept"
    with pytest.raises(ConfigurationError, match="is saved as text") as caught:
        check_values(FORM, {"auth_method": "api-key", "api_key": "hunter2"}, name="shop")
    assert "hunter2" not in str(caught.value) + caught.value.hint


def test_the_file_of_stored_secrets_is_readable_by_its_owner_alone(connections, paths):
    connections.store_secret("shop", "api_key", "kept")
    assert (paths.config / "secrets.toml").stat().st_mode & 0o777 == 0o600


def test_removing_a_connection_removes_its_stored_secrets(connections, paths):
    connections.save(saved())
    connections.store_secret("shop", "api_key", "kept")
    connections.remove("shop")
    assert "kept" not in (paths.config / "secrets.toml").read_text()


def test_a_stored_secret_goes_when_no_field_refers_to_it_any_more(connections, paths):
    kept = {name: connections.store_secret("shop", name, f"{name}-s3cret") for name in ("api_key", "password")}
    connections.save(saved(**kept))
    connections.save(saved(api_key=kept["api_key"], password=Reference("env", "PASSWORD")), replace=True)
    left = (paths.config / "secrets.toml").read_text()
    assert "api_key-s3cret" in left
    assert "password-s3cret" not in left


def test_every_fault_of_a_connection_is_told_at_once():
    values = {"port": "many", "auth_method": "magic", "api_kee": "x", "skip_tls_verification": "maybe"}
    with pytest.raises(ConfigurationError) as caught:
        check_values(FORM, values, name="shop")
    for part in ("port", "auth_method", "api_kee", "skip_tls_verification"):
        assert part in caught.value.message


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"host": "x" * 254}, "host: has 254 characters; a host has 253 at most"),
        ({"host": "x" * 16_000}, "host: has 16,000 characters; a host has 253 at most"),
        (
            {"host": ".".join(["ü" * 20] * 12)},
            "host: has 323 characters as names are looked up; a host has 253 at most",
        ),
        ({"port": "9" * 4_000}, f"port: {'9' * 80}… is not a TCP port"),
        ({"port": "9" * 5_000}, f"port: '{'9' * 79}… is not a whole number"),
        ({"port": True}, "port: true is not a whole number"),
        ({"auth_method": "x" * 5_000}, f"auth_method: '{'x' * 79}… is not one of"),
    ],
    ids=["long", "longer", "long when encoded", "number", "digits", "true", "choice"],
)
def test_a_host_and_a_port_that_none_can_be_are_refused_where_they_are_entered(value, shown):
    with pytest.raises(ConfigurationError) as caught:
        check_values(FORM, value, name="shop")
    assert f"connection 'shop': {shown}" in caught.value.message
    assert len(caught.value.message) < 200
    assert caught.value.hint == "dragoman connections edit shop"


def test_the_longest_host_is_one(connections):
    for host in ("x" * 253, f"{'x' * 253}.", "fe80::1%eth0", "bücher.example"):
        assert check_values(FORM, {"host": host}, name="shop")["host"] == host


def test_E7_the_api_key_belongs_to_the_form_only_with_auth_method_api_key():
    assert "api_key" not in check_values(FORM, {}, name="shop")
    with pytest.raises(ConfigurationError, match="api_key: must not be empty"):
        check_values(FORM, {"auth_method": "api-key"}, name="shop")
    values = check_values(FORM, {"auth_method": "api-key", "api_key": Reference("env", "K")}, name="shop")
    assert values["api_key"] == Reference("env", "K")


def test_a_profile_holds_defaults_options_and_secrets_apart():
    values = {**check_values(FORM, {}, name="shop"), "window": "fixed", "password": "p"}
    profile = make_profile(saved(), values, scheme=AuthScheme.BASIC, secrets={"password": "p"}, files={})
    assert (profile.host, profile.port, profile.ssl_mode) == ("localhost", 9200, SslMode.DISABLED)
    assert profile.options == {"auth_method": "none", "window": "fixed", "path_prefix": None, "headers": None}
    assert "p" not in repr(profile.secrets).replace("password", "")


@pytest.mark.parametrize(
    "text",
    [
        "port = " + "9" * 5_000,
        "x = " + "[" * 100_000,
        "a." * 50_000 + "b = 1",
        "[" + "a." * 50_000 + "b]",
        "# " + "x" * (1 << 20),
        "\ud800",
    ],
    ids=["digits", "depth", "dotted-key", "dotted-table", "length", "no-text"],
)
def test_a_file_that_a_stranger_made_to_hurt_is_refused_before_it_does(connections, paths, text):
    paths.connections.parent.mkdir(parents=True, exist_ok=True)
    paths.connections.write_bytes(text.encode(errors="surrogatepass"))
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, limits[1]))  # or the parser would take all there is
    try:
        with pytest.raises(ConfigurationError, match="cannot be read"):
            connections.list()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("path_prefix", "/es/../admin", "leads elsewhere"),
        ("path_prefix", "https://h/es", "is an address"),
        ("headers", "Host: evil", "Host is not an extra header"),
        ("headers", "X: 1\r\nAuthorization: Basic x", "Authorization is not an extra header"),
    ],
)
def test_what_no_request_could_carry_is_refused_when_it_is_entered(field, value, reason):
    with pytest.raises(ConfigurationError, match=reason) as caught:
        check_values(FORM, {field: value}, name="shop")
    assert caught.value.details["field"] == field


def test_a_prefix_and_extra_headers_reach_the_profile_and_secret_ones_are_masked_one_by_one():
    values = check_values(FORM, {"path_prefix": "es/", "headers": "X-A: 1"}, name="shop")
    profile = make_profile(
        saved(), values, scheme=AuthScheme.NONE, secrets={"secret_headers": "X-B: hidden-b; X-C: hidden-c"}, files={}
    )
    assert profile.base_url == "http://localhost:9200/es"
    assert profile.options["headers"] == "X-A: 1"
    assert {"hidden-b", "hidden-c"} <= {*profile.secrets.texts}


URL_FORM = (
    *FORM,
    FormField(
        name="ssl_mode",
        label="SSL Mode",
        kind=FieldKind.CHOICE,
        default="preferred",
        choices=tuple(Choice(value=mode.value, label=mode.value) for mode in SslMode),
    ),
)


@pytest.mark.parametrize(
    ("entered", "meant"),
    [
        ({"host": "http://h"}, ("h", 80, "disabled", None)),
        ({"host": "https://h"}, ("h", 443, "verify-identity", None)),
        ({"host": " HTTPS://H.example:9243/ "}, ("h.example", 9243, "verify-identity", None)),
        ({"host": "https://h:9243/es/prod/"}, ("h", 9243, "verify-identity", "/es/prod")),
        ({"host": "https://h", "port": 9201}, ("h", 9201, "verify-identity", None)),
        ({"host": "https://h:1", "port": 9200, "ssl_mode": "required"}, ("h", 1, "required", None)),
        ({"host": "https://h", "ssl_mode": "verify-ca"}, ("h", 443, "verify-ca", None)),
        ({"host": "https://h", "ssl_mode": "disabled"}, ("h", 443, "verify-identity", None)),
        ({"host": "http://h", "ssl_mode": "preferred"}, ("h", 80, "disabled", None)),
        ({"host": "http://[::1]:9201"}, ("::1", 9201, "disabled", None)),
        ({"host": "h.example:9201"}, ("h.example", 9201, "preferred", None)),
        ({"host": "h.example"}, ("h.example", 9200, "preferred", None)),
        ({"host": "::1"}, ("::1", 9200, "preferred", None)),
    ],
)
def test_a_url_as_the_host_is_taken_apart_whoever_enters_it(entered, meant):
    for values in (to_save(URL_FORM, entered, name="shop", new=True), check_values(URL_FORM, entered, name="shop")):
        assert tuple(values.get(name) for name in ("host", "port", "ssl_mode", "path_prefix")) == meant


@pytest.mark.parametrize(
    ("entered", "reason"),
    [
        ({"host": "https://me:hunter2@h"}, "is more than an address"),
        ({"host": "https://h/?x=1"}, "is more than an address"),
        ({"host": "https://"}, "is more than an address"),
        ({"host": "https://h:99999"}, "is no URL that can be read"),
        ({"host": "https://[::1"}, "is no URL that can be read"),
        ({"host": "https://h:9243", "port": 9201}, "means port 9243, but port is 9201; enter one of them"),
        ({"host": "http://h", "ssl_mode": "verify-ca"}, "means ssl_mode disabled, but ssl_mode is 'verify-ca'"),
        ({"host": "http://h/a", "path_prefix": "/b"}, "means path_prefix /a, but path_prefix is '/b'"),
    ],
)
def test_a_url_that_is_more_than_an_address_or_contradicts_is_refused(entered, reason):
    with pytest.raises(ConfigurationError, match=reason) as caught:
        to_save(URL_FORM, entered, name="shop", new=True)
    assert caught.value.details == {"field": "host"}
    assert "hunter2" not in caught.value.message


STRANGE = sorted(
    {"queries", "objects", "via", "format", "pinned", "saved_queries", "object_defaults", *TAKEN} - {"type"}
)
"""Names of fields that are also names of something of the host's."""


def test_a_field_may_have_any_name_beside_what_the_host_keeps_of_a_connection(paths, connections):
    fields = saved(**{name: f"the {name}" for name in STRANGE})
    whole = msgspec.structs.replace(
        fields, via=HttpProxy(host="p", port=1), pinned={"h:1": "AAAA"}, sign_in_at="t:1", name="format"
    )
    connections.save(whole)
    queries = SavedQueries(connections, "format")
    queries.save("q1", SelectionTexts(object="books"))
    paths.connections.write_text(
        f"{paths.connections.read_text()}\n[format.object-defaults.books]\ncolumns = ['a']\n", encoding="utf-8"
    )
    connections.amend("format", lambda now: msgspec.structs.replace(now, values={**now.values, "queries": "slow"}))
    now = connections.get("format")
    assert now.values == {**whole.values, "queries": "slow"}
    assert (now.via, now.pinned, now.sign_in_at) == (whole.via, whole.pinned, whole.sign_in_at)
    assert {*queries.all()[0]} == {"q1"}
    assert queries.defaults("books").columns == ["a"]
    queries.remove("q1")
    assert connections.get("format").values == now.values


@pytest.mark.parametrize("name", OWN_KEYS)
def test_no_field_has_the_name_of_a_key_of_the_hosts(connections, name):
    assert not is_field_name(name)
    with pytest.raises(ConfigurationError, match="cannot name a field"):
        connections.save(saved(**{name: "x"}))


def test_a_field_whose_option_means_something_else_is_set_by_name():
    """A remedy of a driver that edits such a field must not become another option of the command."""
    options = {
        option.removeprefix("--").replace("-", "_")
        for command in (add, edit)
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
        if option.startswith("--")
    }
    assert options | {"help"} == TAKEN
    for field in (*STRANGE, "no_connect", "no_verbose", "type"):
        for value in ("-x", True, False):
            words = command_words(Remedy("edit-field", {"connection": "shop", "field": field, "value": value}))
            context = edit.make_context("edit", words[3:], obj=Options())
            own = {name: given for name, given in context.params.items() if name not in ("fields", "connection")}
            plain = edit.make_context("edit", ["shop"], obj=Options()).params
            assert own == {name: plain[name] for name in own}, field
            form = [FormField(name=field, label="L", kind=FieldKind.SWITCH if value is not None else FieldKind.TEXT)]
            matched = match_fields(form, context.params["fields"])
            assert str(matched[field]).lower() == str(value).lower(), field


WIDE = (
    *FORM[:2],
    FormField(name="size", label="Size", kind=FieldKind.INTEGER, default=5, required=True),
    FormField(name="limit", label="Limit", kind=FieldKind.INTEGER, default=7, advanced=True),
    FormField(name="flag", label="Flag", kind=FieldKind.SWITCH, default=True, required=True),
    FormField(name="note", label="Note", default="x"),
    FormField(
        name="ssl_mode",
        label="SSL Mode",
        kind=FieldKind.CHOICE,
        default="disabled",
        choices=(Choice(value="disabled", label="Disabled"), Choice(value="verify-identity", label="Identity")),
        advanced=True,
    ),
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"size": 0}, {"size": 0}), ({"size": "0"}, {"size": 0}), ({"flag": False}, {"flag": False}),
        *(({"flag": text}, {"flag": False}) for text in ("false", "NO", "off", "0")),
        *(({"flag": text}, {"flag": True}) for text in ("true", "YES", "on", "1")),
        ({"note": ""}, {"note": ""}), ({"port": 1}, {"port": 1}), ({"port": "65535"}, {"port": 65535}),
        ({"host": "HTTPS://db.example"}, {"host": "db.example", "port": 443, "ssl_mode": "verify-identity"}),
        ({"host": "HTTP://db.example"}, {"host": "db.example", "port": 80, "ssl_mode": "disabled"}),
        ({"limit": 0}, {"limit": 0, "size": 5, "flag": True, "note": "x", "ssl_mode": "disabled"}),
    ],
)  # fmt: skip
def test_what_is_entered_as_false_zero_or_empty_is_not_the_default(values, expected):
    checked = check_values(WIDE, values, name="shop")
    kept = to_save(WIDE, values, name="shop")
    assert {key: checked[key] for key in expected} == expected
    assert {key: kept[key] for key in expected} == expected
    assert ("limit" in kept) == ("limit" in values)  # an update may change the default of what was not entered


@pytest.mark.parametrize(
    "values",
    [
        {"size": None}, {"size": ""}, {"size": True}, {"flag": "maybe"}, {"flag": None}, {"port": 0}, {"port": 65536},
        {"host": "https://db.example/#x"}, {"host": "https://db.example/?x"}, {"host": "https://u@db.example"},
        {"ssl_mode": "other"}, {"note": Reference("env", "NOTE")},
    ],
)  # fmt: skip
def test_a_value_at_the_edge_of_what_a_field_takes_is_refused_by_its_name(values):
    with pytest.raises(ConfigurationError) as caught:
        check_values(WIDE, values, name="shop")
    assert caught.value.details["field"] == next(iter(values))


@pytest.mark.parametrize("at", range(len(WIDE)))
def test_every_field_that_the_host_acts_on_has_its_kind_wherever_it_stands(at):
    fields = [*WIDE]
    fields.insert(at, FormField(name="skip_tls_verification", label="Skip"))
    with pytest.raises(ConfigurationError, match="another kind of skip_tls_verification"):
        check_values(fields, {}, name="shop")


@pytest.mark.parametrize(("value", "was"), [(False, "switch"), (0, "integer"), ("x", "text")])
def test_a_value_of_a_field_that_became_a_secret_is_told_and_not_used(value, was):
    with pytest.raises(ConfigurationError, match=f"api_key: is saved as {was}") as caught:
        check_values(FORM, {"auth_method": "api-key", "api_key": value}, name="shop")
    assert caught.value.details["field"] == "api_key"
