"""Saved connections: the chooser, the form, and the same without a person."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from .options import CONNECTION, Command, Group, Options, attended, opens, take_pairs, tell_warnings
from .output import plain, say, show_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dragoman.connections import Connections, SavedConnection
    from dragoman.runtime import Runtime
    from dragoman.session import Session
    from dragoman_api.forms import FieldValue, FormField

    Values = Mapping[str, FieldValue]

Secrets = dict[str, str]
"""What was typed, by field; kept only once the connection is saved, so that giving up leaves nothing behind."""

NO_CONNECT = click.option("--no-connect", is_flag=True, help="Save only.")


class Fielded(Command):
    """A command that takes every field of a driver's form as an option, whatever the form is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the fields out before the known options are parsed."""
        own = {name for param in self.params if isinstance(param, click.Option) for name in param.opts} | {"--help"}
        rest, given = take_pairs(args, known=own.__contains__)
        remaining = super().parse_args(ctx, rest)
        for pair in ctx.params.pop("pairs", ()):
            name, _, value = pair.partition("=")
            given[name.replace("-", "_")] = value
        ctx.params["given"] = given
        return remaining


FIELDS = click.option("--set", "pairs", multiple=True, metavar="FIELD=VALUE", help="A field of the form. Repeatable.")


@click.group("connections", cls=Group)
def connections() -> None:
    """Save connections, change them, try them."""


@connections.command("add", cls=Fielded)
@click.argument("name")
@click.option("--type", "kind", metavar="TYPE", help="The database type; asked for when left out.")
@FIELDS
@NO_CONNECT
@click.pass_obj
async def add(options: Options, *, name: str, kind: str | None, given: dict[str, str | bool], no_connect: bool) -> None:
    """Save a connection and connect; asks for what is not given.

    Every field of the form is an option: --host, --port, --auth-method, --ssl-mode. A secret is named, not written:
    --api-key env:NAME, file:PATH, command:… or keyring:SERVICE/USER.
    """
    async with options.runtime() as runtime:
        runtime.connections.check_name(name)
        chosen = kind or await _choose_type(runtime)
        form = await _form_of(options, runtime, chosen, asks=kind is None)
        values, typed = match_fields(form, given), Secrets()
        if kind is None:
            values = await _ask_form(typed, name, form, values, current={})
        saved = _saved(name, chosen, form, values)
        runtime.connections.save(saved)
        _keep(typed, runtime.connections, name)
        await _connect(options, runtime, saved, only_save=no_connect)


@connections.command("edit", cls=Fielded)
@CONNECTION
@FIELDS
@NO_CONNECT
@click.pass_obj
async def edit(options: Options, *, connection: str, given: dict[str, str | bool], no_connect: bool) -> None:
    """Change fields of a saved connection and connect; asks for all of them when none is given."""
    async with options.runtime() as runtime:
        before = runtime.connections.get(connection)
        form = await _form_of(options, runtime, before.type, asks=not given)
        values, typed = match_fields(form, given), Secrets()
        if not given:
            values = await _ask_form(typed, connection, form, {}, current=before.values)
        saved = _saved(connection, before.type, form, {**before.values, **values})
        runtime.connections.save(saved, replace=True)
        _keep(typed, runtime.connections, connection)
        await _connect(options, runtime, saved, only_save=no_connect)


async def _choose_type(runtime: Runtime) -> str:
    from .prompts import choose

    offered = [(kind, listing.state) for listing in await runtime.plugins.browse() for kind in listing.types]
    if not offered:
        from dragoman_api.errors import PluginNotFoundError

        raise PluginNotFoundError("no registry offers a driver", hint="dragoman registry add FOLDER")
    labels = [plain(kind) + (" (not installed)" if state == "available" else "") for kind, state in offered]
    return offered[await choose("Type", labels)][0]


async def _form_of(options: Options, runtime: Runtime, kind: str, *, asks: bool) -> tuple[FormField, ...]:
    """Give the form of a type, after its driver was offered for download if it is missing (P2)."""
    from dragoman_api.errors import Refused

    listing = await runtime.plugins.for_type(kind)
    if listing.state == "available":
        label = f"{plain(listing.label)} {plain(listing.version)}"
        if not options.yes:
            if not (asks or attended()):
                hint = f"add --yes, or first: dragoman plugins install {listing.id}"
                raise Refused(f"{label} is not installed, and nobody is here to agree to the download", hint=hint)
            from .prompts import confirm

            reach = f"It can reach {plain(listing.reaches)}, nothing else."
            if not await confirm(f"Download {label} ({show_size(listing.size)})? {reach}", default=True):
                raise Refused(f"{label} was not installed; nothing was saved")
        await runtime.plugins.install(listing.id, version=listing.version)
    return await runtime.plugins.form(kind)


def match_fields(form: Sequence[FormField], given: Mapping[str, str | bool]) -> dict[str, FieldValue]:
    """Match options with the fields of a form; a beginning that only one field has will do (``--auth``).

    Raises:
        ConfigurationError: Every fault at once: unknown fields, missing values, a secret written out.
    """
    from dragoman_api.errors import ConfigurationError

    names = {field.name: field for field in form}
    values: dict[str, FieldValue] = {}
    faults, hint = [], "dragoman connections add --help"
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if value is True and name.startswith("no_") and name[3:] in names:
            values[name[3:]] = False
            continue
        found = [name] if name in names else [known for known in names if known.startswith(name)]
        if len(found) != 1:
            there = ", ".join(found or names)
            faults.append(f"{option} is {'ambiguous' if found else 'no field of this form'} (there are: {there})")
            continue
        field = names[found[0]]
        if value is True and field.kind != "switch":
            faults.append(f"{option} needs a value")
        elif field.kind == "secret" and value and not _is_reference(str(value)):
            faults.append(f"{option} is written out, and would stay in the shell's history; name it instead")
            hint = f"{option} env:NAME (or file:PATH, command:…, keyring:SERVICE/USER)"
        values[field.name] = value
    if faults:
        raise ConfigurationError("; ".join(faults), hint=hint)
    return values


def _is_reference(value: str) -> bool:
    from dragoman.connections import SECRET_SCHEMES

    return value.partition(":")[0] in SECRET_SCHEMES and ":" in value


async def _ask_form(
    typed: Secrets, name: str, form: Sequence[FormField], given: Values, *, current: Values
) -> dict[str, FieldValue]:
    """Ask for every visible field that is not given (E7); the Advanced section only when it is wanted."""
    from .prompts import confirm

    values = {field.name: current.get(field.name, field.default) for field in form} | dict(given)
    answered = set(given)
    for advanced in (False, True):
        section = [field for field in form if field.advanced is advanced and field.name not in given]
        if advanced and not (any(field.visible(values) for field in section) and await confirm("Advanced settings?")):
            break
        for field in section:
            if field.visible(values):
                values[field.name] = await _ask_field(typed, name, field, values[field.name])
                answered.add(field.name)
    # A field that the answers have hidden since is gone; one that was not asked about stays as it was saved.
    kept = [field.name for field in form if field.visible(values) and field.name in answered | current.keys()]
    return {key: values[key] for key in kept if values[key] not in (None, "")}


async def _ask_field(typed: Secrets, name: str, field: FormField, current: FieldValue) -> FieldValue:
    from dragoman.connections import check_values
    from dragoman_api.errors import ConfigurationError

    from .prompts import ask, choose, confirm

    label = plain(field.label)
    if field.kind == "secret":
        return await _ask_secret(typed, name, field, str(current or ""))
    if field.kind == "switch":
        return await confirm(label, default=bool(current))
    if field.kind == "choice":
        default = next((at for at, choice in enumerate(field.choices) if choice.value == current), None)
        return field.choices[await choose(label, [choice.label for choice in field.choices], default=default)].value
    while True:
        answer = await ask(label, default="" if current is None else str(current))
        try:
            checked = check_values([replace(field, visible_if={})], {field.name: answer or None}, name=name)
        except ConfigurationError as error:
            say(plain(error.message))
        else:
            return checked[field.name]


async def _ask_secret(typed: Secrets, name: str, field: FormField, current: str) -> str:
    """Ask where a secret is kept; one that is typed is not shown, and goes into a file of its owner alone."""
    from dragoman.connections import stored_reference

    from .prompts import ask, choose

    label = plain(field.label)
    kinds = ["typed now, kept in a file only you can read", "a variable", "a file", "the keyring", "a command"]
    kept = [f"as it is ({plain(current.partition(':')[0])})"] if current else []
    chosen = await choose(f"{label} comes from", [*kept, *kinds], default=0) - len(kept)
    if chosen < 0:
        return current
    if chosen == 0:
        while not (secret := await ask(f"{label} (not shown)", hidden=True)):
            say("nothing was typed")
        typed[field.name] = secret
        return stored_reference(name, field.name)
    scheme, question = (
        ("env", "Name of the variable"), ("file", "Path of the file"), ("keyring", "SERVICE/USER in the keyring"),
        ("command", "Command that prints it"),
    )[chosen - 1]  # fmt: skip
    return f"{scheme}:{await ask(question)}"


def _keep(typed: Secrets, store: Connections, name: str) -> None:
    for field, secret in typed.items():
        store.store_secret(name, field, secret)


def _saved(name: str, kind: str, form: Sequence[FormField], values: Values) -> SavedConnection:
    from dragoman.connections import SavedConnection, check_values

    checked = check_values(form, values, name=name)
    # The defaults of a form may change with its driver; where a connection leads may not. Advanced ones may.
    left_out = {field.name for field in form if field.advanced} - values.keys()
    chosen = {key: value for key, value in checked.items() if key not in left_out and value is not None}
    return SavedConnection(name=name, type=kind, values={**chosen})


async def _connect(options: Options, runtime: Runtime, saved: SavedConnection, *, only_save: bool) -> None:
    name = saved.name
    if only_save:
        options.result({"saved": name}, f"saved {name}")
        return
    try:
        async with runtime.open(name) as session:
            _connected(options, session, f"saved {name} · connected", {"saved": name})
            tell_warnings(session)
    except BaseException:
        options.say(f"saved {name}, but it did not connect")
        raise


def _connected(options: Options, session: Session, begin: str, about: dict[str, object]) -> None:
    server = session.server
    document = {**about, "server": server, "driver": session.plugin_version, "sandbox": session.sandbox}
    options.result(document, f"{begin}: {f'{server.product} {server.version}'.strip()} · sandbox {session.sandbox}")


def _store(options: Options) -> Connections:
    from dragoman.connections import Connections

    return Connections(options.paths())


def _address(saved: SavedConnection) -> str:
    return ":".join(str(saved.values[key]) for key in ("host", "port") if saved.values.get(key) is not None)


@connections.command("list")
@click.pass_obj
def list_(options: Options) -> None:
    """List saved connections."""
    found = _store(options).list()
    rows = [[saved.name, saved.type, _address(saved)] for saved in found]
    nothing = "no connection is saved yet; try: dragoman connections add NAME"
    options.listing({"connections": found}, ["NAME", "TYPE", "ADDRESS"], rows, nothing=nothing)


@connections.command("show")
@CONNECTION
@click.pass_obj
def show(options: Options, connection: str) -> None:
    """Show what is saved of a connection; secrets appear as where they come from."""
    saved = _store(options).get(connection)
    rows = [["type", saved.type], *([key, str(value)] for key, value in saved.values.items())]
    options.listing(saved, [], rows)


@connections.command("remove")
@CONNECTION
@click.pass_obj
async def remove(options: Options, *, connection: str) -> None:
    """Forget a saved connection and the secrets kept for it."""
    name, store = connection, _store(options)
    store.get(name)
    await options.agree(f"Remove the connection {name}?", instead=f"dragoman connections remove {name} --yes")
    store.remove(name)
    options.result({"removed": name}, f"removed {name}")


@connections.command("test")
@CONNECTION
@opens
async def test(options: Options, session: Session) -> None:
    """Open a connection and see whether it works."""
    if session.can("ping") and not (health := await session.ping()).ok:
        from dragoman_api.errors import ConnectionFailedError

        raise ConnectionFailedError(health.reason)
    _connected(options, session, f"{session.name} · connected", {"name": session.name})
