"""Saved connections: the chooser and the form, with questions or with options only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import connection_form as forms
from . import output
from .opening import opens, tell_warnings
from .options import CONNECTION, Command, Group, take_pairs
from .output import plain, say, show_size
from .streams import attended

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman.connections.saved_connections import Connections, SavedConnection
    from dragoman.references import Saved
    from dragoman.runtime import Runtime
    from dragoman.sandbox.reach.route import Route
    from dragoman.sessions.session import Session
    from dragoman_api.connections import FormField, ServerStatus

    from .options import Options

    Values = Mapping[str, Saved]


NO_CONNECT = click.option("--no-connect", is_flag=True, help="Save without connecting.")


class Fielded(Command):
    """A command that accepts every field of any driver's form as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Extract the fields before the known options are parsed."""
        own = {name for param in self.params if isinstance(param, click.Option) for name in param.opts} | {"--help"}
        rest, fields = take_pairs(args, is_known=own.__contains__)
        remaining = super().parse_args(ctx, rest)
        for pair in ctx.params.pop("pairs", ()):
            name, _, value = pair.partition("=")
            fields[name.replace("-", "_")] = value
        ctx.params["fields"] = fields
        return remaining


FIELDS = click.option("--set", "pairs", multiple=True, metavar="FIELD=VALUE", help="A field of the form. Repeatable.")


@click.group("connections", cls=Group)
def connections() -> None:
    """Save, change and test connections."""


@connections.command("add", cls=Fielded)
@click.argument("name")
@click.option("--type", "kind", metavar="TYPE", help="The database type; dragoman asks if you leave it out.")
@FIELDS
@forms.via_options
@forms.PIN
@forms.SIGN_IN_AT
@NO_CONNECT
@click.pass_obj
async def add(
    options: Options,
    /,
    *,
    name: str,
    kind: str | None,
    fields: dict[str, str | bool],
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
        forms.check_pin_options(pins, no_connect=no_connect)
        via = forms.entered_via(between, before=None)
        chosen = kind or await _choose_type(runtime)
        form = await _form_of(options, runtime, chosen, asks=kind is None)
        values, typed = forms.match_fields(form, fields), forms.Secrets()
        if kind is None:
            values = await forms.ask_form(typed, name, form, values, current={})
        saved = _saved(name, chosen, form, values, via=via, sign_in_at=sign_in_at or "", new=True)
        await to_thread.run_sync(runtime.connections.save, saved)
        await to_thread.run_sync(_keep, typed, runtime.connections, name)
        await _connect(options, runtime, saved, only_save=no_connect, pins=pins)


@connections.command("edit", cls=Fielded)
@CONNECTION
@FIELDS
@forms.via_options
@forms.DIRECT
@forms.PIN
@forms.SIGN_IN_AT
@forms.UNPIN
@NO_CONNECT
@click.pass_obj
async def edit(
    options: Options,
    /,
    *,
    connection: str,
    fields: dict[str, str | bool],
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

    from dragoman.connections.saved_connections import check_unedited

    async with options.runtime() as runtime:
        before = runtime.connections.get(connection)
        forms.check_pin_options(pins, no_connect=no_connect)
        forms.entered_via(between, before=before.via)  # faults are said before a question
        has_options = any(between.values()) or bool(pins or sign_in_at or unpin)
        form = await _form_of(options, runtime, before.type, asks=not fields)
        values, typed = forms.match_fields(form, fields), forms.Secrets()
        previous = forms.known_values(form, forms.edited(before, values))
        fitting = forms.fitting_values(form, previous)
        again = [*previous.keys() - fitting.keys()]
        asks = not (fields or has_options) or bool(again and attended())
        if asks:
            values = await forms.ask_form(typed, connection, form, values, current=fitting, only=again)

        def changed(now: SavedConnection) -> SavedConnection:
            if asks or now.type != before.type:
                check_unedited(before, now)
            names, entries = {field.name for field in form}, fitting if asks else forms.edited(now, values)
            entries = {key: value for key, value in {**entries, **values}.items() if key in names}
            via = forms.entered_via(between, before=now.via)
            agreed = now.sign_in_at if sign_in_at is None else sign_in_at
            saved = _saved(connection, now.type, form, entries, via=via, sign_in_at=agreed)
            return forms.kept_pins(saved, now, unpin=unpin, entered={*values})

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
    from dragoman_registry.names import marked

    listing = await runtime.plugins.for_type(kind)
    if listing.state == "available":
        label = f"{marked(listing.label)} {listing.version}"
        text = (
            f"Download {label} ({listing.id}, {show_size(listing.size)})? It can reach {listing.reaches}; nothing else."
        )
        instead = f"dragoman plugins install {listing.id}\nor repeat the command with --yes"
        await options.agree(text, subject="download", default=True, instead=instead, piped=asks)
        await runtime.plugins.install(listing.id, version=listing.version)
    return await runtime.plugins.form(kind)


def _keep(typed: forms.Secrets, store: Connections, name: str) -> None:
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
        address = ", ".join(
            f"{key.replace('_', ' ')} {saved[key]}" for key in forms.ADDRESS if saved.get(key) is not None
        )
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
    return {
        "name": saved.name,
        "type": saved.type,
        "values": _plainly(saved.values),
        **_via(saved),
        **forms.agreed_of(saved),
    }


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
    rows += [[PINNED, f"{server} SHA-256 {digits}"] for server, digits in forms.pins_of(saved).items()]
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
    saved, status = _store(options).get(session.name), await _status_of(session)
    fields: dict[str, object] = {"name": session.name}
    if status is not None:
        fields = {**fields, "status": status}
    _connected(options, session, f"{session.name} · connected", fields, saved)
    if status is not None and not options.json:
        _write_status(status)


async def _status_of(session: Session) -> ServerStatus | None:
    """Return how the server and its nodes are; None if that is unknown. A connection works without it."""
    from dragoman_api.errors import DragomanError

    if not session.can("read_status"):
        return None
    try:
        return await session.status()
    except DragomanError as error:
        say(f"warning: {plain(error.message)}")
        return None


def _write_status(status: ServerStatus) -> None:
    """Write how the server is, what is said of it, and its nodes as a table with the columns that are known of any."""
    if status.state:
        say(f"health: {output.plain(status.state.word)}")
    output.say_notes(status.notes)
    if not status.nodes:
        return

    def use(amount: int | None, limit: int | None) -> str:
        of = "" if limit is None else f" of {output.show_size(limit)}"
        return "" if amount is None else f"{output.show_size(amount)}{of}"

    table = {
        "NODE": [output.plain(node.name) for node in status.nodes],
        "STATE": [output.plain(node.state.word) if node.state else "" for node in status.nodes],
        "VERSION": [output.plain(node.version) for node in status.nodes],
        "ROWS": ["" if node.rows is None else output.show_count(node.rows) for node in status.nodes],
        "MEMORY": [use(node.memory, node.memory_limit) for node in status.nodes],
        "DISK": [use(node.disk, node.disk_limit) for node in status.nodes],
        "ROLES": [output.plain(node.roles) for node in status.nodes],
    }
    table = {head: values for head, values in table.items() if any(values)}
    right = [head == "ROWS" for head in table]
    output.write_table([*table], [[*row] for row in zip(*table.values(), strict=True)], right=right)
