"""What a manifest can make of what was saved: nothing is read, run, opened or reached that a person did not enter."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

import wheelhouse
from dragoman.connections.form_values import check_values
from dragoman.connections.saved_connections import SavedConnection
from dragoman.references import Reference
from dragoman_api.connections import Choice, FieldKind, FormField
from dragoman_api.errors import ConfigurationError, DriverCrashedError, Refused

CODE = """
import json
import os
from dragoman_api import hookimpl
from dragoman_api.columns import Description, Object, ObjectList
from dragoman_api.connections import Server


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        self.profile = profile
        return Server("Demo", "{version}")

    @hookimpl
    async def list_objects(self, request):
        given = self.profile
        told = {**given.options, **given.secrets.values, "host": given.host, "ca_pem": given.ca_pem}
        return ObjectList(objects=[Object(json.dumps(told | {"certificate": given.client_certificate}))])

    @hookimpl
    async def describe_object(self, name):
        if name == "END":
            os._exit(3)
        try:
            found = open(name).read()
        except OSError as error:
            found = type(error).__name__
        return Description(object=name, columns=[], structure=json.dumps(found))
"""
BASE = wheelhouse.manifest()["form"]


def driver(*fields, version="1.0.0", base=BASE, **changes):
    hooks = ["connect", "list_objects", "describe_object"]
    return wheelhouse.Driver(version=version, code=CODE, hooks=hooks, form=[*base, *fields], **changes)


def choice(name, value):
    offered = [{"value": value, "label": "Standard"}, {"value": "b", "label": "Compatible"}]
    return {"name": name, "label": name.title(), "kind": "choice", "default": value, "choices": offered}


def field(name, kind, **more):
    return {"name": name, "label": name.title(), "kind": kind, **more}


async def told(session):
    [one] = await session.objects()
    return json.loads(one.name)


async def updated(runtime, how):
    """Bring the next version in, by the path that asks least."""
    if how == "update":
        await runtime.plugins.update("demo")
    else:
        await runtime.plugins.remove("demo")


def saved(**values):
    return SavedConnection(name="demo", type="demo", values=values)


@pytest.mark.parametrize("how", ["update", pytest.param("reinstalled by opening", marks=pytest.mark.slow)])
async def test_a_choice_never_becomes_a_command_that_the_host_runs(make_runtime, registry, tmp_path, how):
    trace, private = tmp_path / "executed", tmp_path / "id_rsa"
    private.write_text("PRIVATE KEY")
    planted = {"dialect": f"command:touch {trace}", "locale": f"file:{private}"}
    async with make_runtime(driver(*(choice(*each) for each in planted.items()))) as runtime:
        runtime.connections.save(saved(**planted), replace=True)
        async with runtime.open("demo") as session:
            assert (await told(session))["dialect"] == planted["dialect"]
        registry(driver(field("dialect", "secret"), field("locale", "secret"), version="1.1.0"))
        await updated(runtime, how)
        with pytest.raises(ConfigurationError, match=r"dialect: is saved as text, .* kind secret") as caught:
            async with runtime.open("demo") as session:
                pytest.fail(f"it opened, and was given {await told(session)}")
    assert not trace.exists(), "the host ran what a driver had planted"
    assert caught.value.hint == "dragoman connections edit demo --dialect env:NAME --locale env:NAME"


@pytest.mark.slow
async def test_a_choice_never_becomes_a_file_that_is_opened(make_runtime, registry, tmp_path):
    private = tmp_path / "id_rsa"
    private.write_text("PRIVATE KEY")

    async def agree(_question):
        return True

    async with make_runtime(driver(choice("notes", str(private))), confirm=agree) as runtime:
        runtime.connections.save(saved(notes=str(private)), replace=True)
        async with runtime.open("demo"):
            pass
        wider = ["net:connection", "secrets:connection", "fs:read=notes"]
        registry(driver(field("notes", "file"), version="1.1.0", permissions=wider))
        await runtime.plugins.update("demo")
        with pytest.raises(ConfigurationError, match=r"notes: is saved as text, .* kind file") as caught:
            async with runtime.open("demo") as session:
                pytest.fail(json.loads((await session.describe(str(private))).structure))
    assert caught.value.hint == "dragoman connections edit demo --notes PATH"


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "reference", "option"),
    [
        ("secret", field("x", "text"), Reference("env", "KEY"), "--x TEXT"),
        slow("secret", choice("x", "a"), Reference("command", "printf s3cret"), "--x a"),
        slow("secret", field("x", "file"), Reference("file", "/etc/hostname"), "--x PATH"),
        slow("secret", choice("x", "a; touch y"), Reference("env", "KEY"), "--x 'a; touch y'"),
        slow("file", field("x", "text"), Reference("path", "/etc/hostname"), "--x TEXT"),
        slow("file", field("x", "secret"), Reference("path", "/etc/hostname"), "--x env:NAME"),
    ],
)
async def test_a_field_of_another_kind_than_when_it_was_saved_is_asked_for_again(
    make_runtime, registry, monkeypatch, before, after, reference, option
):
    monkeypatch.setenv("KEY", "s3cret")
    async with make_runtime(driver(field("x", before))) as runtime:
        runtime.connections.save(saved(x=reference), replace=True)
        async with runtime.open("demo"):
            pass
        registry(driver(after, version="1.1.0"))
        await runtime.plugins.update("demo")
        with pytest.raises(ConfigurationError, match=f"x: is saved as {before}, .* kind {after['kind']}") as caught:
            async with runtime.open("demo") as session:
                pytest.fail(f"it opened, and was given {await told(session)}")
    assert caught.value.hint == f"dragoman connections edit demo {option}"


# files --------------------------------------------------------------------------------------------------------------

CERTIFICATE = field("client_certificate", "file")


@pytest.fixture
def strange(tmp_path):
    """Name what is no regular file of a moderate size, by what it is."""
    (tmp_path / "folder/below").mkdir(parents=True)
    (tmp_path / "folder/below/id_rsa").write_text("PRIVATE KEY")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2 << 20)
    return tmp_path


@pytest.mark.parametrize("name", ["client_certificate", pytest.param("ca_file", marks=pytest.mark.slow)])
async def test_only_a_regular_file_of_a_moderate_size_is_opened(make_runtime, strange, name):
    async with make_runtime(driver(field(name, "file"))) as runtime:
        runtime.connections.save(saved(), replace=True)
        for what in ("folder", "link", "loop", "pipe", "large", "missing", "/dev/zero", "a\0b"):
            values = {name: Reference("path", what if "\0" in what else str(strange / what))}
            runtime.connections.get = lambda _, values=values: saved(**values)  # no file could hold the NUL
            with pytest.raises(ConfigurationError, match=name):
                async with runtime.open("demo") as session:
                    pytest.fail(f"{what}: {await session.describe(str(strange / 'folder/below/id_rsa'))}")


@pytest.mark.slow
async def test_a_client_certificate_opens_itself_and_nothing_beside_it(make_runtime, tmp_path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/mine.pem").write_text("CERTIFICATE")
    (tmp_path / "keys/other.pem").write_text("PRIVATE")
    (tmp_path / "current.pem").symlink_to(tmp_path / "keys/mine.pem")
    async with make_runtime(driver(CERTIFICATE)) as runtime:
        entered = Reference("path", str(tmp_path / "current.pem"))
        runtime.connections.save(saved(client_certificate=entered), replace=True)
        async with runtime.open("demo") as session:
            path = (await told(session))["certificate"]
            assert path == str((tmp_path / "keys/mine.pem").resolve())
            assert json.loads((await session.describe(path)).structure) == "CERTIFICATE"
            other = json.loads((await session.describe(str(tmp_path / "keys/other.pem"))).structure)
            assert session.sandbox != "full" or other == "PermissionError"


@pytest.mark.slow
@pytest.mark.parametrize("by", ["a folder", "another file", "a link"])
async def test_a_driver_that_is_started_again_is_given_no_other_file_of_the_same_name(make_runtime, tmp_path, by):
    (mine := tmp_path / "mine.pem").write_text("CERTIFICATE")
    (private := tmp_path / "id_rsa").write_text("PRIVATE")
    async with make_runtime(driver(CERTIFICATE)) as runtime:
        entered = Reference("path", str(mine))
        runtime.connections.save(saved(client_certificate=entered), replace=True)
        async with runtime.open("demo") as session:
            with pytest.raises(DriverCrashedError):
                await session.describe("END")
            assert json.loads((await session.describe(str(mine))).structure) == "CERTIFICATE"  # started again
            with pytest.raises(DriverCrashedError):
                await session.describe("END")
            mine.rename(tmp_path / "old.pem")
            if by == "a folder":
                mine.mkdir()
                private.rename(mine / "id_rsa")
            elif by == "another file":
                private.rename(mine)
            else:
                mine.symlink_to(private)
            with pytest.raises(ConfigurationError, match=r"mine\.pem was replaced") as caught:
                pytest.fail((await session.describe(str(mine / "id_rsa" if by == "a folder" else mine))).structure)
    assert str(mine) in caught.value.message


# what a manifest says where a person said nothing ---------------------------------------------------------------------

HOST = FormField(name="host", label="Host", default="localhost", required=True)
MODES = tuple(Choice(value=value, label=value) for value in ("disabled", "verify-identity"))
MODE = FormField(name="ssl_mode", label="SSL", kind=FieldKind.CHOICE, default="disabled", choices=MODES)


def test_a_manifest_does_not_choose_the_host():
    assert check_values([HOST], {}, name="x") == {"host": "localhost"}
    with pytest.raises(ConfigurationError, match="host: must not be empty"):
        check_values([replace(HOST, default="collector.example")], {}, name="x")


@pytest.mark.parametrize(
    ("one", "wrong"),
    [
        (FormField(name="skip_tls_verification", label="Skip", kind=FieldKind.SWITCH, default=True), True),
        (FormField(name="key", label="Key", kind=FieldKind.SECRET, default="env:HOME"), "env:HOME"),
        (FormField(name="ca_file", label="CA", kind=FieldKind.FILE, default="/etc/passwd"), "/etc/passwd"),
        *(
            (FormField(name=name, label="X", default="https://collector.example/t"), "https://collector.example/t")
            for name in ("hosts", "cloud_id", "token_url")
        ),
    ],
)
def test_a_manifest_chooses_no_secret_no_file_no_server_and_no_trust(one, wrong):
    assert check_values([one], {}, name="x")[one.name] != wrong


@pytest.mark.parametrize(("one", "value"), [(MODE, "verify-identity"), (HOST, "db.example")])
def test_a_form_cannot_hide_what_the_host_acts_on(one, value):
    other = FormField(name="dialect", label="Dialect", default="new")
    hidden = replace(one, visible_if={"dialect": ("old",)})
    assert check_values([other, hidden], {one.name: value}, name="x")[one.name] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [("skip_tls_verification", "no"), ("port", "9200"), ("ssl_mode", "disabled"), ("host", "db.example")],
)
def test_a_form_that_was_installed_unchecked_cannot_turn_a_text_into_what_the_host_acts_on(name, value):
    kind = FieldKind.CHOICE if name == "host" else FieldKind.TEXT
    one = FormField(name=name, label="X", kind=kind, choices=(Choice(value=value, label=value),))
    with pytest.raises(ConfigurationError, match=f"another kind of {name} than"):
        check_values([one], {name: value}, name="x")


# more than was agreed to ----------------------------------------------------------------------------------------------

WIDER = ["net:connection", "secrets:connection", "net:host=collector.example"]


async def by_name(runtime, patch):
    await runtime.plugins.install("demo")


async def by_repair(runtime, patch):
    patch.setattr("dragoman.plugins.lifecycle.installed_version", lambda _: "2.0.0")  # of a host that has moved on
    await runtime.plugins.repair("demo")


async def by_lock(runtime, patch):
    async def agree(_):
        return True

    lock, installer = runtime.paths.data / "plugins.lock", runtime.plugins._installer
    with patch.context() as attended:
        attended.setattr(installer, "_confirm", agree)
        await runtime.plugins.install("demo")
    wider = lock.read_text()
    await runtime.plugins.rollback("demo")
    lock.write_text(wider)
    for error in (await runtime.plugins.sync()).skipped.values():
        raise error


@pytest.mark.parametrize("act", [by_name, slow(by_repair), slow(by_lock)])
async def test_no_way_to_another_version_grants_more_than_was_agreed_to(make_runtime, registry, monkeypatch, act):
    async with make_runtime(driver()) as runtime:
        async with runtime.open("demo"):
            pass
        registry(driver(version="1.1.0", permissions=WIDER))
        with pytest.raises(Refused, match=r"net:host=collector\.example") as caught:
            await act(runtime, monkeypatch)
        assert caught.value.hint.endswith(" --yes")
        assert runtime.plugins._store.active("demo").version == "1.0.0"
