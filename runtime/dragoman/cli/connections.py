"""Saved connections: the chooser and the form, with questions or with options only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from .global_options import CONNECTION, Command, Group
from .opening import opens, tell_warnings
from .option_values import (
    DIRECT,
    PIN,
    SIGN_IN_AT,
    UNPIN,
    agreed_of,
    check_pin_options,
    entered_via,
    kept_pins,
    pins_of,
    take_pairs,
    via_options,
)
from .output import plain, say, show_size
from .streams import attended

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman.connections.saved_connections import Connections, SavedConnection
    from dragoman.references import Reference, Saved, Scheme
    from dragoman.runtime import Runtime
    from dragoman.sandbox.reach.route import Route
    from dragoman.sessions.session import Session
    from dragoman_api.forms import FormField

    from .options import Options

    Values = Mapping[str, Saved]

Secrets = dict[str, str]
"""Typed secrets by field; stored only once the connection is saved, so that giving up leaves nothing behind."""

PLACES: tuple[tuple[Scheme, str], ...] = (
    ("env", "Name of the variable"), ("file", "Path of the file"), ("keyring", "SERVICE/USER in the keyring"),
    ("command", "Command that prints it"),
)  # fmt: skip

ADDRESS = ("host", "port", "ssl_mode", "path_prefix")
"""Fields that a URL stands for."""
NO_CONNECT = click.option("--no-connect", is_flag=True, help="Save without connecting.")


class Fielded(Command):
    """A command that accepts every field of any driver's form as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Extract the fields before the known options are parsed."""
        own = {name for param in self.params if isinstance(param, click.Option) for name in param.opts} | {"--help"}
        rest, fields = take_pairs(args, known=own.__contains__)
        remaining = super().parse_args(ctx, rest)
        for pair in ctx.params.pop("pairs", ()):
            name, _, value = pair.partition("=")
            fields[name.replace("-", "_")] = value
        ctx.params["given"] = fields
        return remaining


FIELDS = click.option("--set", "pairs", multiple=True, metavar="FIELD=VALUE", help="A field of the form. Repeatable.")


@click.group("connections", cls=Group)
def connections() -> None:
    """Save, change and test connections."""


@connections.command("add", cls=Fielded)
@click.argument("name")
@click.option("--type", "kind", metavar="TYPE", help="The database type; dragoman asks if you leave it out.")
@FIELDS
@via_options
@PIN
@SIGN_IN_AT
@NO_CONNECT
@click.pass_obj
async def add(
    options: Options,
    /,
    *,
    name: str,
    kind: str | None,
    given: dict[str, str | bool],
    no_connect: bool,
    pins: tuple[str, ...],
    sign_in_at: str | None,
    **between: str | bool | None,
) -> None:
    """Save a connection and connect; asks for missing values.

    Every field of the form is an option: --host, --port, --auth-method, --ssl-mode. A secret is given by reference:
    --api-key env:NAME, file:PATH, command:… or keyring:SERVICE/USER.
    """
    from anyio import to_thread

    async with options.runtime() as runtime:
        runtime.connections.check_name(name)
        check_pin_options(pins, no_connect=no_connect)
        via = entered_via(between, before=None)
        chosen = kind or await _choose_type(runtime)
        form = await _form_of(options, runtime, chosen, asks=kind is None)
        values, typed = match_fields(form, given), Secrets()
        if kind is None:
            values = await _ask_form(typed, name, form, values, current={})
        saved = _saved(name, chosen, form, values, via=via, sign_in_at=sign_in_at or "", new=True)
        await to_thread.run_sync(runtime.connections.save, saved)
        await to_thread.run_sync(_keep, typed, runtime.connections, name)
        await _connect(options, runtime, saved, only_save=no_connect, pins=pins)


@connections.command("edit", cls=Fielded)
@CONNECTION
@FIELDS
@via_options
@DIRECT
@PIN
@SIGN_IN_AT
@UNPIN
@NO_CONNECT
@click.pass_obj
async def edit(
    options: Options,
    /,
    *,
    connection: str,
    given: dict[str, str | bool],
    no_connect: bool,
    pins: tuple[str, ...],
    sign_in_at: str | None,
    unpin: bool,
    **between: str | bool | None,
) -> None:
    """Change fields of a saved connection and connect; without options, dragoman asks for all of them.

    If a new version of the driver has changed the kind of saved fields, dragoman asks only for those. --host, even
    with the saved host, accepts the address that this host has now, and --proxy that of the proxy.
    """
    from anyio import to_thread

    from dragoman.connections.saved_connections import expect_unedited

    async with options.runtime() as runtime:
        before = runtime.connections.get(connection)
        check_pin_options(pins, no_connect=no_connect)
        entered_via(between, before=before.via)  # faults are said before a question
        has_options = any(between.values()) or bool(pins or sign_in_at or unpin)
        form = await _form_of(options, runtime, before.type, asks=not given)
        values, typed = match_fields(form, given), Secrets()
        known_values = _known(form, _edited(before, values))
        fitting = _fitting(form, known_values)
        again = [*known_values.keys() - fitting.keys()]
        asks = not (given or has_options) or bool(again and attended())
        if asks:
            values = await _ask_form(typed, connection, form, values, current=fitting, only=again)

        def changed(now: SavedConnection) -> SavedConnection:
            if asks or now.type != before.type:
                expect_unedited(before, now)
            names, entries = {field.name for field in form}, fitting if asks else _edited(now, values)
            entries = {key: value for key, value in {**entries, **values}.items() if key in names}
            via = entered_via(between, before=now.via)
            agreed = now.sign_in_at if sign_in_at is None else sign_in_at
            saved = _saved(connection, now.type, form, entries, via=via, sign_in_at=agreed)
            return kept_pins(saved, now, unpin=unpin, given={*values})

        saved = await to_thread.run_sync(runtime.connections.amend, connection, changed)
        if {"host", "hosts", "cloud_id"} & values.keys() or between.get("proxy"):  # a person accepts the addresses
            await to_thread.run_sync(runtime.connections.reached.forget, connection)
        await to_thread.run_sync(_keep, typed, runtime.connections, connection)
        await _connect(options, runtime, saved, only_save=no_connect, pins=pins)


async def _choose_type(runtime: Runtime) -> str:
    from .prompts import choose

    offered = [(kind, listing.state) for listing in await runtime.plugins.browse() for kind in listing.types]
    if not offered:
        from dragoman_api.errors import PluginNotFoundError

        raise PluginNotFoundError("no configured registry offers a driver", hint="dragoman registry add FOLDER")
    labels = [plain(kind) + (" (not installed)" if state == "available" else "") for kind, state in offered]
    return offered[await choose("Type", labels)][0]


async def _form_of(options: Options, runtime: Runtime, kind: str, *, asks: bool) -> tuple[FormField, ...]:
    """Return the form of a type; offer to download its driver first if it is missing (P2)."""
    from dragoman_api.errors import Refused
    from dragoman_registry.names import marked

    listing = await runtime.plugins.for_type(kind)
    if listing.state == "available":
        label = f"{plain(marked(listing.label))} {plain(listing.version)}"
        if not options.yes:
            if not (asks or attended()):
                hint = f"dragoman plugins install {listing.id}\nor repeat the command with --yes"
                raise Refused(
                    f"{label} ({listing.id}) is not installed; cannot ask to download it: not a terminal", hint=hint
                )
            from .prompts import confirm

            reach = f"It can reach {plain(listing.reaches)}; nothing else."
            if not await confirm(f"Download {label} ({listing.id}, {show_size(listing.size)})? {reach}", default=True):
                raise Refused(f"{label} was not installed; nothing was saved")
        await runtime.plugins.install(listing.id, version=listing.version)
    return await runtime.plugins.form(kind)


def _known(form: Sequence[FormField], values: Values) -> dict[str, Saved]:
    """Drop values of fields that only another version of the driver had, and report them."""
    names = {field.name for field in form}
    for gone in sorted(values.keys() - names):
        say(f"the form has no field {plain(gone)}; its value was dropped")
    return {key: value for key, value in values.items() if key in names}


def _edited(saved: SavedConnection, values: Values) -> dict[str, Saved]:
    """Return the saved values with newly entered ones."""
    return {**{key: value for key, value in saved.values.items() if key not in _replaced(values)}, **values}


def _replaced(values: Values) -> frozenset[str]:
    """Return the fields whose saved values a newly entered Cloud ID replaces, or a URL as the host."""
    if values.get("cloud_id"):
        return frozenset({"host", "port"})
    return frozenset({"port", "ssl_mode", "path_prefix"} if "://" in str(values.get("host", "")) else ())


def _fitting(form: Sequence[FormField], values: Values) -> dict[str, Saved]:
    """Drop values that were saved when their field was of another kind."""
    from dragoman.connections.form_values import misfit

    return {
        field.name: values[field.name]
        for field in form
        if field.name in values and not misfit(field, values[field.name])
    }


def match_fields(form: Sequence[FormField], given: Mapping[str, str | bool]) -> dict[str, Saved]:
    """Match options with the fields of a form; an unambiguous beginning is enough (``--auth``).

    Raises:
        ConfigurationError: Every fault at once: unknown fields, missing values, literal secrets.
    """
    from dragoman_api.errors import ConfigurationError

    names = {field.name: field for field in form}
    values: dict[str, Saved] = {}
    faults, hint = [], "dragoman connections add --help"
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if value is True and name not in names and name.startswith("no_") and name[3:] in names:
            values[name[3:]] = False
            continue
        matches = [name] if name in names else [candidate for candidate in names if candidate.startswith(name)]
        if len(matches) != 1:
            choices = ", ".join(matches or names)
            faults.append(f"{option} is {'ambiguous' if matches else 'not a field of this form'} (fields: {choices})")
            continue
        field = names[matches[0]]
        if value is True and field.kind != "switch":
            faults.append(f"{option} needs a value")
            continue
        entered = _entered(field, value)
        if entered is None and value != "":
            faults.append(
                f"{option} is a literal secret, which would stay in the shell's history; use a reference instead"
            )
            hint = f"{option} env:NAME (or file:PATH, command:…, keyring:SERVICE/USER)"
        values[field.name] = entered
    if faults:
        raise ConfigurationError("; ".join(faults), hint=hint)
    return values


def _entered(field: FormField, value: str | bool) -> Saved:
    """Read what a person typed for a field; None for an empty text and for a literal secret."""
    from dragoman.references import entered_path, typed

    if field.kind == "secret":
        return typed(str(value))
    if field.kind == "file":
        return entered_path(str(value)) if value else None
    return value


async def _ask_form(
    typed: Secrets, name: str, form: Sequence[FormField], presets: Values, *, current: Values, only: Sequence[str] = ()
) -> dict[str, Saved]:
    """Ask for every visible field without a value (E7), or for some of them; for advanced ones on request."""
    from dragoman.connections.form_values import usual, visible

    from .prompts import confirm

    values = {field.name: current.get(field.name, usual(field)) for field in form} | dict(presets)
    answered = set(presets)
    for advanced in (False, True):
        section = [field for field in form if field.advanced is advanced and field.name not in presets]
        section = [field for field in section if not only or field.name in only]
        if advanced and not (visible(section, values) and (only or await confirm("Advanced settings?"))):
            break
        for field in section:
            if visible([field], values):
                values[field.name] = await _ask_field(typed, name, field, values[field.name])
                answered.add(field.name)
            if field.name == "cloud_id" and values[field.name] != current.get(field.name):
                values |= dict.fromkeys(_replaced(values) - presets.keys())
    # Drop fields that the answers have hidden; keep the saved values of fields that were not asked about.
    names = [field.name for field in visible(form, values) if field.name in answered | current.keys()]
    return {key: values[key] for key in names if values[key] not in (None, "")}


async def _ask_field(typed: Secrets, name: str, field: FormField, current: Saved) -> Saved:
    from dragoman.connections.form_values import check_values
    from dragoman.references import entered_path
    from dragoman_api.errors import ConfigurationError

    from .prompts import ask, choose, confirm

    label = plain(field.label)
    if field.kind == "secret":
        return await _ask_secret(typed, field, current)
    if field.kind == "switch":
        return await confirm(label, default=bool(current))
    if field.kind == "choice":
        default = next((at for at, choice in enumerate(field.choices) if choice.value == current), None)
        return field.choices[await choose(label, [choice.label for choice in field.choices], default=default)].value
    while True:
        default_text = "" if current is None else plain(str(current))
        entered: Saved = await ask(label, default=default_text)
        if entered == default_text:
            entered = current
        elif field.kind == "file":
            entered = entered_path(str(entered))
        try:
            checked = check_values([replace(field, visible_if={})], {field.name: entered}, name=name)
        except ConfigurationError as error:
            say(plain(error.message))
        else:
            return checked[field.name]


async def _ask_secret(typed: Secrets, field: FormField, current: Saved) -> Reference | None:
    """Ask where a secret is kept; a typed one is not shown, and goes into a file that only its owner can read."""
    from dragoman.references import STORED, Reference

    from .prompts import ask, choose

    label = plain(field.label)
    kinds = ["typed now, kept in a file that only you can read", "a variable", "a file", "the keyring", "a command"]
    old_places = [f"as it is ({current.scheme})"] if isinstance(current, Reference) else []
    none = ["nowhere: there is none"] if field.advanced and not field.required else []
    chosen = await choose(f"{label} comes from", [*old_places, *none, *kinds], default=0) - len(old_places) - len(none)
    if chosen < 0:
        return current if isinstance(current, Reference) and chosen < -len(none) else None
    if chosen == 0:
        while not (secret := await ask(f"{label} (not shown)", hidden=True)):
            say("nothing was typed")
        typed[field.name] = secret
        return STORED
    scheme, question = PLACES[chosen - 1]
    while not (target := await ask(question)):
        say("nothing was typed")
    return Reference(scheme, target)


def _keep(typed: Secrets, store: Connections, name: str) -> None:
    for field, secret in typed.items():
        store.store_secret(name, field, secret)


def _saved(
    name: str, kind: str, form: Sequence[FormField], values: Values, *, via: Route | None, sign_in_at: str,
    new: bool = False,
) -> SavedConnection:  # fmt: skip
    from dragoman.connections.form_values import to_save
    from dragoman.connections.saved_connections import SavedConnection

    saved = to_save(form, values, name=name, new=new)
    if saved.get("cloud_id"):
        say(plain(f"the Cloud ID means https://{saved['host']}:{saved['port']}, SSL Mode {saved['ssl_mode']}"))
    if saved.get("host") != values.get("host") and values.get("host"):
        address = ", ".join(f"{key.replace('_', ' ')} {saved[key]}" for key in ADDRESS if saved.get(key) is not None)
        say(plain(f"{values['host']} means {address}"))
    return SavedConnection(name=name, type=kind, values=saved, via=via, sign_in_at=sign_in_at)


async def _connect(
    options: Options, runtime: Runtime, saved: SavedConnection, *, only_save: bool, pins: Sequence[str] = ()
) -> None:
    name = saved.name
    if only_save:
        options.result({"saved": name}, f"saved {name}")
        return
    try:
        if pins:
            saved = await runtime.pin(name, fingerprints=pins)
        async with runtime.open(name) as session:
            _connected(options, session, f"saved {name} · connected", {"saved": name}, saved)
            tell_warnings(session)
    except BaseException:
        options.say(f"saved {name}, but it did not connect")
        raise


def _connected(
    options: Options, session: Session, begin: str, fields: dict[str, object], saved: SavedConnection
) -> None:
    server, via = session.server, f" · through {saved.via}" if saved.via else ""
    document = {**fields, "server": server, "driver": session.plugin_version, "sandbox": session.sandbox, **_via(saved)}
    product = f"{server.product} {server.version}".strip()
    options.result(document, f"{begin}: {product}{via} · sandbox {session.sandbox}")


def _store(options: Options) -> Connections:
    from dragoman.connections.saved_connections import Connections

    return Connections(options.paths())


def _address(saved: SavedConnection) -> str:
    address = ":".join(str(saved.values[key]) for key in ("host", "port") if saved.values.get(key) is not None)
    address = f"{address} through {saved.via}" if saved.via else address
    return f"{address}, signs in at {saved.sign_in_at}" if saved.sign_in_at else address


@connections.command("list")
@click.pass_obj
def list_(options: Options) -> None:
    """List saved connections."""
    store = _store(options)
    saved_connections, hidden = store.sifted()
    rows = [[saved.name, saved.type, _address(saved), _acts(saved)] for saved in saved_connections]
    nothing = "" if hidden else "No saved connections. To add one: dragoman connections add NAME"
    reasons = [{"name": name, "reason": error.message} for name, error in hidden.items()]
    document = {"connections": [*map(_document, saved_connections)], "hidden": reasons}
    options.listing(document, ["NAME", "TYPE", "ADDRESS", "READS AND RUNS"], rows, nothing=nothing)
    for error in hidden.values():
        say(f"left out: {plain(error.message)}")
    for exposure in store.exposures():
        say(f"warning: {plain(exposure.reason)}; {plain(exposure.remedy)}")


def _document(saved: SavedConnection) -> dict[str, object]:
    return {"name": saved.name, "type": saved.type, "values": _plainly(saved.values), **_via(saved), **agreed_of(saved)}


def _via(saved: SavedConnection) -> dict[str, object]:
    """Return what is between this machine and the host, as a member of a document; empty for nothing."""
    return {"via": _plainly(saved.via.table)} if saved.via else {}


def _plainly(values: Mapping[str, Any]) -> dict[str, object]:
    from dragoman.references import Reference

    return {key: value.table if isinstance(value, Reference) else value for key, value in values.items()}


def _acts(saved: SavedConnection) -> str:
    """Describe what the host does besides connecting when a connection opens, so that it is not hidden in a file."""
    return "; ".join(reference.act for reference in saved.references.values())


@connections.command("show")
@CONNECTION
@click.pass_obj
def show(options: Options, connection: str) -> None:
    """Show a saved connection; secrets appear as references."""
    from dragoman.connections.saved_connections import PINNED
    from dragoman.connections.saved_connections import SIGN_IN_AT as SIGN_IN
    from dragoman.sandbox.reach.route import KEY

    saved = _store(options).get(connection)
    rows = [["type", saved.type], *([key, str(value)] for key, value in saved.values.items())]
    # The host's own rows have a hyphen, and no field of a driver's form has one.
    rows += [[f"{KEY} {key}", str(value)] for key, value in (saved.via.table if saved.via else {}).items()]
    rows += [[SIGN_IN, saved.sign_in_at]] if saved.sign_in_at else []
    rows += [[PINNED, f"{server} SHA-256 {digits}"] for server, digits in pins_of(saved).items()]
    options.listing(_document(saved), [], rows)


@connections.command("remove")
@CONNECTION
@click.pass_obj
async def remove(options: Options, *, connection: str) -> None:
    """Delete a saved connection and the secrets stored for it."""
    from anyio import to_thread

    name, store = connection, _store(options)
    store.check_saved(name)
    await options.agree(f"Remove the connection {name}?", instead=f"dragoman connections remove {name} --yes")
    await to_thread.run_sync(store.remove, name)
    options.result({"removed": name}, f"removed {name}")


@connections.command("test")
@CONNECTION
@opens
async def test(options: Options, session: Session) -> None:
    """Open a connection and check that it works."""
    if session.can("ping"):
        health = await session.ping()
        if not health.ok:
            from dragoman_api.errors import ConnectionFailedError

            raise ConnectionFailedError(health.reason)
        if health.reason:  # of nodes besides the one that answered
            say(f"warning: {plain(health.reason)}")
    saved = _store(options).get(session.name)
    _connected(options, session, f"{session.name} · connected", {"name": session.name}, saved)
