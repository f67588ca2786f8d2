"""Saved connections in the page: the list, forms from manifests, test, save, remove; secrets go in and never out."""

from __future__ import annotations

import json

import anyio
import pytest
from msgspec.structs import replace

from browsing import signed_in
from bundled_drivers import MANIFESTS
from dragoman import Reference, Runtime, SavedConnection
from dragoman.sandbox.reach.route import HttpProxy
from dragoman_api.connections import FieldKind, FormField
from dragoman_api.errors import ConfigurationError
from dragoman_registry.ip_addresses import Nearness
from dragoman_workbench.messages.connections import FieldEntry
from dragoman_workbench.messages.routes import ROUTES
from dragoman_workbench.routes.connections import _field, _value
from dragoman_workbench.server import WRITES

SECRET = "correct-horse-battery"


def entries(port, **more):
    plain = {"host": "127.0.0.1", "port": str(port), "auth_method": "none"} | more
    return {name: {"kind": "value", "value": value} for name, value in plain.items()}


def with_password(port, password=None):
    password = password or {"kind": "secret", "value": SECRET}
    return entries(port, auth_method="username-password", username="elastic") | {"password": password}


async def saved(home):
    async with Runtime(home, spare=False) as runtime:
        return await anyio.to_thread.run_sync(runtime.connections.list)


async def stored(home):
    """Return the stored password of the connection."""

    def read():
        connections = Runtime(home, spare=False).connections
        reference = connections.get("safe").values["password"]
        assert reference.scheme == "stored"
        return connections.secret(reference, connection="safe", field="password")

    return await anyio.to_thread.run_sync(read)


def field(form, name):
    return next(field for field in form["fields"] if field["name"] == name)


async def test_the_types_of_all_registries_are_offered_before_anything_is_installed(tab):
    types = (await tab("connections/types"))["types"]
    assert {each["type"]: each["driver"]["state"] for each in types} == dict.fromkeys(MANIFESTS, "available")
    assert all(each["driver"]["size"] > 0 and each["driver"]["reaches"] for each in types)


async def test_a_form_comes_from_the_manifest_and_installs_nothing(tab):
    form = await tab("connections/form", type="elasticsearch")
    assert form["installed"] is False
    assert field(form, "password")["kind"] == "secret"
    assert field(form, "password")["visible_if"] == {"auth_method": ["username-password"]}
    assert field(form, "host")["always"] is True
    assert {each["value"] for each in field(form, "auth_method")["choices"]} >= {"none", "username-password", "api-key"}
    assert any(each["advanced"] for each in form["fields"])
    [driver] = [each for each in (await tab("plugins/browse"))["drivers"] if each["id"] == "elasticsearch"]
    assert driver["state"] == "available"


async def test_a_connection_is_saved_listed_edited_and_removed(shop_home, sample_port):
    async with signed_in(shop_home) as tab:
        await tab("connections/save", name="books", type="elasticsearch", fields=entries(sample_port))
        [books, _shop] = (await tab("connections"))["connections"]
        assert (books["name"], books["address"], books["open"]) == ("books", f"127.0.0.1:{sample_port}", False)
        again = {"name": "books", "type": "elasticsearch", "fields": entries(9, auth_method="none")}
        assert "already exists" in (await tab.failure("connections/save", **again))["message"]
        await tab("connections/save", **again, replace="books")
        assert (await tab("connections"))["connections"][0]["address"] == "127.0.0.1:9"
        await tab("connections/remove", name="books")
        assert [each["name"] for each in (await tab("connections"))["connections"]] == ["shop"]


async def test_a_connection_that_is_being_saved_is_saved_though_the_browser_leaves(shop_home, sample_port, monkeypatch):
    save, begun, go = Runtime.save, anyio.Event(), anyio.Event()

    async def slowly(*given, **more):
        begun.set()
        await go.wait()
        return await save(*given, **more)

    monkeypatch.setattr(Runtime, "save", slowly)
    async with signed_in(shop_home) as tab:
        body = {"name": "books", "type": "elasticsearch", "fields": entries(sample_port)}
        async with anyio.create_task_group() as browser:
            browser.start_soon(tab.send, "connections/save", body)
            with anyio.fail_after(20):
                await begun.wait()
            browser.cancel_scope.cancel()
        access = tab.place._access
        with anyio.fail_after(20):
            while access.tab(tab.secret).running:  # until the server has seen it
                await anyio.sleep(0.01)
        go.set()
        with anyio.fail_after(20):
            while "books" not in [each["name"] for each in (await tab("connections"))["connections"]]:
                await anyio.sleep(0.01)


def test_every_route_that_writes_goes_on_without_the_browser():
    assert ROUTES.keys() >= WRITES
    assert ROUTES.keys() - WRITES == {
        "cell", "changes/plan", "changes/row", "close", "connections", "connections/form", "connections/test",
        "connections/types", "console/complete", "console/history", "console/parse", "count", "describe", "enter",
        "explain", "exports", "exports/cancel", "imports", "imports/cancel", "imports/download",
        "imports/plan_copy", "imports/preview", "imports/rejected", "leave", "objects", "open", "page",
        "plugins/browse",
        "plugins/install", "plugins/repair", "plugins/show", "plugins/update", "plugins/updates", "plugins/verify",
        "preferences", "preferences/set", "queries", "questions/answer", "similar", "state", "status", "summarize",
        "token", "unlock",
    }  # fmt: skip


async def test_a_typed_secret_is_stored_and_never_sent_back(shop_home, sample_port):
    async with signed_in(shop_home) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        fields = with_password(sample_port)
        answers = [
            await tab("connections/save", name="safe", type="elasticsearch", fields=fields),
            await tab("connections"),
            form := await tab("connections/form", name="safe"),
            await tab.send("connections/test", {"name": "new", "type": "elasticsearch", "fields": with_password(1)}),
            await tab.send("open", {"connection": "safe"}),
            await tab("state"),
        ]
        assert field(form, "password") | {"value": None, "saved": "reads what was typed, out of secrets.toml"} == field(
            form, "password"
        )
        assert SECRET not in json.dumps([answers, tab.events])
        tasks.cancel_scope.cancel()
    texts = [path.read_text() for path in (shop_home / "config").iterdir()]
    assert sum(SECRET in text for text in texts) == 1
    assert (shop_home / "config" / "secrets.toml").stat().st_mode & 0o077 == 0
    for path in [path for path in shop_home.rglob("*") if path.is_file() and path.name != "secrets.toml"]:
        assert SECRET.encode() not in path.read_bytes(), path


async def test_a_saved_secret_is_kept_where_it_is_not_typed_again(shop_home, sample_port):
    async with signed_in(shop_home) as tab:
        await tab("connections/save", name="safe", type="elasticsearch", fields=with_password(sample_port))
        kept = with_password(sample_port, {"kind": "keep"})
        await tab("connections/save", name="safe", type="elasticsearch", replace="safe", fields=kept)
    assert await stored(shop_home) == SECRET


async def test_an_edit_keeps_what_only_the_command_line_changes(shop_home, sample_port):
    values = {"host": "127.0.0.1", "port": 9, "auth_method": "none"}
    before = SavedConnection(
        name="far",
        type="elasticsearch",
        values=values,
        via=HttpProxy(host="proxy", port=3128),
        pinned={"127.0.0.1:9": "AAAA"},
        sign_in_at="sign.in:443",
    )
    async with Runtime(shop_home, spare=False) as runtime:
        await runtime.save(before)
    async with signed_in(shop_home) as tab:
        fields = entries(sample_port)
        await tab("connections/save", name="far", type="elasticsearch", replace="far", fields=fields)
    [after] = [connection for connection in await saved(shop_home) if connection.name == "far"]
    assert after.values.items() >= (values | {"port": sample_port}).items()
    assert replace(after, values=values) == before


async def test_a_form_that_was_opened_before_another_change_replaces_nothing(shop_home, sample_port):
    async with signed_in(shop_home) as tab:
        form = await tab("connections/form", name="shop")
        edited = {"name": "shop", "type": "elasticsearch", "replace": "shop", "revision": form["revision"]}
        fields = entries(sample_port)
        await tab("connections/save", **edited, fields=entries(sample_port, host="localhost"))
        for route in ("connections/save", "connections/test"):
            failure = await tab.failure(route, **edited, fields=fields)
            assert "was changed elsewhere" in failure["message"]
        again = await tab("connections/form", name="shop")
        assert field(again, "host")["value"] == "localhost"
        await tab("connections/save", **edited | {"revision": again["revision"]}, fields=fields)


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "value", "value": "env:HOME"},
        {"kind": "value", "value": "command:touch pwned"},
        {"kind": "reference", "value": "command:touch pwned"},
        {"kind": "reference", "value": "shop/host"},
        {"kind": "reference", "value": "nothing/there"},
        {"kind": "path", "value": "/etc/passwd"},
        {"kind": "keep"},
        {"kind": "secret", "value": ""},
    ],
    ids=str,
)
async def test_the_page_makes_no_reference_of_its_own(shop_home, sample_port, entry):
    async with signed_in(shop_home) as tab:
        failure = await tab.failure(
            "connections/save", name="safe", type="elasticsearch", fields=with_password(sample_port, entry)
        )
        assert failure["field"] == "password"
    assert [each.name for each in await saved(shop_home)] == ["shop"]


@pytest.mark.parametrize("text", ["command:touch pwned", "env:HOME", "file:/etc/passwd", '{ command = "touch pwned" }'])
async def test_a_typed_secret_that_looks_like_a_reference_is_a_text(shop_home, sample_port, text):
    async with signed_in(shop_home) as tab:
        fields = with_password(sample_port, {"kind": "secret", "value": text})
        await tab("connections/save", name="safe", type="elasticsearch", fields=fields)
    assert await stored(shop_home) == text


async def test_a_reference_that_a_connection_holds_can_be_chosen_for_another(shop_home, sample_port, monkeypatch):
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    with (shop_home / "config" / "connections.toml").open("a") as file:
        file.write(
            f'\n[other]\ntype = "elasticsearch"\nhost = "127.0.0.1"\nport = {sample_port}\n'
            'auth_method = "username-password"\nusername = "u"\npassword = { env = "SHOP_PASSWORD" }\n'
        )
    async with signed_in(shop_home) as tab:
        [known] = field(await tab("connections/form", type="elasticsearch"), "password")["references"]
        assert known["id"] == "other/password"
        assert "SHOP_PASSWORD" in known["act"]
        fields = with_password(sample_port, {"kind": "reference", "value": known["id"]})
        await tab("connections/save", name="safe", type="elasticsearch", fields=fields)
    [_other, safe, _shop] = await saved(shop_home)
    assert str(safe.values["password"]) == "env:SHOP_PASSWORD"


STORED, ENV, KEYRING = Reference("stored"), Reference("env", "A"), Reference("keyring", "a/b")
PATH, COMMAND, FILE = Reference("path", "/a.pem"), Reference("command", "pass a"), Reference("file", "/a.txt")
KNOWN = {"s/env": ENV, "s/keyring": KEYRING, "s/path": PATH, "s/command": COMMAND, "s/file": FILE}
NO = object()
KEEP, TYPED, CHOSEN, PICKED = ({"kind": kind} for kind in ("keep", "secret", "reference", "path"))


@pytest.mark.parametrize(
    ("kind", "entry", "saved", "value"),
    [
        ("switch", {"value": False}, True, False), ("switch", {"value": True}, False, True),
        ("text", {"value": "env:A"}, None, "env:A"), ("text", {"value": ""}, "x", ""), ("text", {}, "x", None),
        ("secret", {"value": None}, ENV, None), ("secret", {"value": ""}, ENV, ""), ("secret", {"value": "x"}, ENV, NO),
        ("file", {"value": "/a.pem"}, None, NO), ("file", {"value": ""}, PATH, ""),
        ("secret", KEEP, ENV, ENV), ("secret", KEEP, STORED, STORED),
        ("secret", KEEP, PATH, NO), ("secret", KEEP, None, NO), ("file", KEEP, ENV, NO),
        ("file", KEEP, PATH, PATH), ("text", KEEP, ENV, NO), ("text", KEEP, "x", NO),
        ("secret", {**TYPED, "value": "x"}, None, STORED), ("secret", {**TYPED, "value": ""}, ENV, NO),
        ("file", {**TYPED, "value": "x"}, None, NO), ("text", {**TYPED, "value": "x"}, None, NO),
        *(("secret", {**CHOSEN, "value": f"s/{name}"}, None, KNOWN[f"s/{name}"])
          for name in ("env", "keyring", "command", "file")),
        ("secret", {**CHOSEN, "value": "s/path"}, None, NO),
        ("file", {**CHOSEN, "value": "s/path"}, None, PATH),
        ("file", {**CHOSEN, "value": "s/env"}, None, NO),
        ("text", {**CHOSEN, "value": "s/env"}, None, NO),
        ("secret", {**CHOSEN, "value": "s/other"}, None, NO),
        ("file", {**PICKED, "value": "/b.pem"}, None, Reference("path", "/b.pem")),
        ("file", {**PICKED, "value": "b.pem"}, None, NO), ("secret", {**PICKED, "value": "/b.pem"}, None, NO),
        ("text", {**PICKED, "value": "/b.pem"}, None, NO),
    ],
)  # fmt: skip
def test_an_entry_is_what_its_kind_of_field_takes_or_is_refused_there(kind, entry, saved, value):
    field, entry = FormField(name="f", label="F", kind=FieldKind(kind)), FieldEntry(**entry)
    if value is NO:
        with pytest.raises(ConfigurationError) as caught:
            _value(field, entry, saved, KNOWN)
        assert caught.value.details == {"field": "f"}
        return
    entered = _value(field, entry, saved, KNOWN)
    assert (type(entered), entered) == (type(value), value)


def test_a_field_is_shown_with_its_own_value_and_the_references_that_fit_it():
    def shown(kind, values, *, default=None, **more):
        return _field(FormField(name="f", label="F", kind=FieldKind(kind), default=default, **more), values, KNOWN)

    assert shown("switch", {"f": False}, default=True).value is False
    assert shown("switch", {}, default=True).value is True
    assert shown("text", {"f": ""}, default="x").value == ""
    assert shown("integer", {"f": 0}, default=9200).value == "0"
    assert [reference.id for reference in shown("text", {}).references] == []
    secret, stored, file = shown("secret", {"f": ENV}), shown("secret", {"f": "x"}), shown("file", {"f": PATH})
    assert [(field.value, field.saved) for field in (secret, stored, file)] == [
        (None, ENV.act), (None, ""), (None, PATH.act),
    ]  # fmt: skip
    assert {reference.id for reference in secret.references} == {"s/env", "s/keyring", "s/command", "s/file"}
    assert [reference.id for reference in file.references] == ["s/path"]
    visible = shown(
        "text", {}, visible_if={"auth": ("a", "b"), "tls": ("true",)}, advanced=True, required=True, help="h"
    )
    assert (visible.visible_if, visible.always) == ({"auth": ["a", "b"], "tls": ["true"]}, False)
    assert (visible.advanced, visible.required, visible.help, shown("text", {}).always) == (True, True, "h", True)


async def test_an_address_is_forgotten_with_consent_and_after_a_trial_and_not_otherwise(shop_home, sample_port):
    def reached(runtime):
        return {name: bool(runtime.connections.reached.of(name)) for name in ("shop", "new")}

    async with signed_in(shop_home) as tab:
        runtime = tab.place.runtime
        for name in ("shop", "new"):
            await anyio.to_thread.run_sync(runtime.connections.reached.note, name, {"h": Nearness.PUBLIC})
        asked = {"name": "shop", "type": "elasticsearch", "fields": entries(sample_port), "replace": "shop"}
        await tab("connections/test", **asked)
        await tab("connections/save", **asked)
        assert await anyio.to_thread.run_sync(reached, runtime) == {"shop": True, "new": True}
        await tab("connections/test", **asked | {"name": "new", "replace": ""})
        assert await anyio.to_thread.run_sync(reached, runtime) == {"shop": True, "new": False}
        await tab("connections/save", **asked, accept_address=True)
        assert await anyio.to_thread.run_sync(reached, runtime) == {"shop": False, "new": False}


async def test_a_test_connects_and_saves_nothing(shop_home, sample_port):
    async with signed_in(shop_home) as tab:
        before = (shop_home / "config" / "connections.toml").read_bytes()
        tested = await tab("connections/test", name="new", type="elasticsearch", fields=entries(sample_port))
        assert (tested["product"], tested["version"]) == ("Elasticsearch", "8.19.21")
        failure = await tab.failure("connections/test", name="new", type="elasticsearch", fields=entries(1))
        assert (failure["code"], failure["field"]) == ("connection-failed", "host")
        assert (shop_home / "config" / "connections.toml").read_bytes() == before


async def test_a_faulty_entry_is_told_at_its_field(shop_home, sample_port):
    async with signed_in(shop_home) as tab:
        fields = entries(99999)
        failure = await tab.failure("connections/save", name="x", type="elasticsearch", fields=fields)
        assert failure["field"] == "port"
        fields = entries(sample_port) | {"nothing": {"kind": "value", "value": "x"}}
        failure = await tab.failure("connections/save", name="x", type="elasticsearch", fields=fields)
        assert failure["field"] == "nothing"


async def test_a_file_that_changed_meanwhile_is_noticed_and_kept(shop_home, sample_port, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.event_stream.LOOK_SECONDS", 0.05)
    async with signed_in(shop_home) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        with (shop_home / "config" / "connections.toml").open("a") as file:
            file.write(f'\n# by hand\n[mine]\ntype = "elasticsearch"\nhost = "127.0.0.1"\nport = {sample_port}\n')
        await tab.told("files")
        assert (await tab("state"))["warnings"] == []
        await tab("connections/save", name="new", type="elasticsearch", fields=entries(sample_port))
        assert {each["name"] for each in (await tab("connections"))["connections"]} == {"mine", "new", "shop"}
        assert "# by hand" in (shop_home / "config" / "connections.toml").read_text()
        tasks.cancel_scope.cancel()


async def test_changed_settings_are_told_and_hold_from_the_next_start(shop_home, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.event_stream.LOOK_SECONDS", 0.05)
    async with signed_in(shop_home) as tab, anyio.create_task_group() as tasks:
        await tasks.start(tab.listen)
        assert (await tab("state"))["warnings"] == []
        await anyio.sleep(0.2)
        (shop_home / "config" / "config.toml").write_text('[guards]\nread_only = "read-only"\n')
        await tab.told("files")
        [warning] = (await tab("state"))["warnings"]
        assert "next start" in warning
        tasks.cancel_scope.cancel()


async def test_a_broken_file_is_told_and_left_alone(shop_home, sample_port):
    file = shop_home / "config" / "connections.toml"
    async with signed_in(shop_home) as tab:
        file.write_text("[shop\n")
        assert "line 1" in (await tab.failure("connections"))["message"]
        await tab.failure("connections/save", name="x", type="elasticsearch", fields=entries(sample_port))
        assert file.read_text() == "[shop\n"


async def test_the_page_has_no_route_that_adds_a_registry(tab):
    for route in ("registries/add", "registry/add", "registries", "settings", "files"):
        assert (await tab.failure(route, status=404))["code"] == "not-found"
