"""What a person enters for a connection: the fields of its form, the route to its server, pinned certificates."""

from __future__ import annotations

import dataclasses
from base64 import b64decode
from typing import TYPE_CHECKING

import click
from msgspec import structs

from dragoman_api.errors import ConfigurationError

from .output import plain, say

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dragoman.connections.saved_connections import SavedConnection
    from dragoman.references import Reference, Saved, Scheme
    from dragoman.sandbox.reach.route import Route
    from dragoman_api.connections import FormField

    Values = Mapping[str, Saved]

DIRECT = click.option("--direct", is_flag=True, help="Reach the host without the saved proxy or tunnel.")
VIA = ("proxy", "proxy_user", "proxy_password", "ssh", "ssh_identity")
PIN = click.option(
    "--pin-certificate",
    "pins",
    metavar="FINGERPRINT",
    multiple=True,
    help="Trust the server's certificate with this SHA-256 fingerprint, and no other. Repeatable.",
)
SIGN_IN_AT = click.option(
    "--sign-in-at", metavar="HOST:PORT", help="Agree to the token endpoint there, a second server that is reached."
)
UNPIN = click.option("--unpin", is_flag=True, help="Forget the pinned certificates.")

_ELSEWHERE = frozenset({"host", "port", "hosts", "cloud_id", "ca_file"})
"""Fields that say which servers there are, or how they are trusted: a new value ends what was pinned before."""


Secrets = dict[str, str]
"""Typed secrets by field; stored only once the connection is saved, so that giving up leaves nothing behind."""

PLACES: tuple[tuple[Scheme, str], ...] = (
    ("env", "Name of the variable"), ("file", "Path of the file"), ("keyring", "SERVICE/USER in the keyring"),
    ("command", "Command that prints it"),
)  # fmt: skip

ADDRESS = ("host", "port", "ssl_mode", "path_prefix")
"""Fields that a URL stands for."""


def via_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options to a command."""
    for option in (
        click.option("--ssh-identity", metavar="PATH", help="The private key file for it."),
        click.option("--ssh", metavar="HOST", help="Reach the host through SSH to this machine: [USER@]HOST[:PORT]."),
        click.option(
            "--proxy-password", metavar="REFERENCE", help="A reference to that user's password, such as env:NAME."
        ),
        click.option("--proxy-user", metavar="NAME", help="The user name for the proxy."),
        click.option("--proxy", metavar="URL", help="Reach the host through this HTTP proxy: http://HOST:PORT."),
    ):
        command = option(command)
    return command


def entered_via(options: dict[str, str | bool | None], *, before: Route | None) -> Route | None:
    """Return what was entered, with what was saved for options that were left out.

    Raises:
        ConfigurationError: It cannot be used, or the password is not a reference.
    """
    option_texts = {name: str(options[name]) for name in VIA if options.get(name) is not None}
    kinds = {name.partition("_")[0] for name in option_texts} | ({"direct"} if options.get("direct") else set())
    if len(kinds) > 1:
        raise ConfigurationError(f"{' and '.join(f'--{kind}' for kind in sorted(kinds))} exclude each other")
    if "direct" in kinds:
        return None
    if "proxy" in kinds:
        return _proxy(option_texts, before)
    return _tunnel(option_texts, before) if "ssh" in kinds else before


def _proxy(option_texts: dict[str, str], before: Route | None) -> Route:
    from dragoman.references import typed
    from dragoman.sandbox.reach.route import HttpProxy, parse_proxy

    text = option_texts.get("proxy_password")
    password = typed(text) if text else None
    if text and password is None:
        reason = "--proxy-password is a literal secret, which would stay in the shell's history"
        hint = "--proxy-password env:NAME (or file:PATH, command:…, keyring:SERVICE/USER)"
        raise ConfigurationError(f"{reason}; use a reference instead", hint=hint)
    via = parse_proxy(option_texts["proxy"]) if "proxy" in option_texts else before
    if not isinstance(via, HttpProxy):
        raise ConfigurationError(f"{_option(option_texts)} needs a proxy", hint="--proxy http://HOST:PORT")
    # Credentials are those of one proxy: another one does not get them.
    credentials = before if isinstance(before, HttpProxy) and before.address == via.address else via
    user = option_texts.get("proxy_user", credentials.user)
    return structs.replace(via, user=user, password=credentials.password if text is None else password)


def _tunnel(option_texts: dict[str, str], before: Route | None) -> Route:
    from dragoman.references import entered_path
    from dragoman.sandbox.reach.route import SshTunnel, parse_ssh

    identity = entered_path(option_texts["ssh_identity"]) if option_texts.get("ssh_identity") else None
    if "ssh" in option_texts:
        return parse_ssh(option_texts["ssh"], identity=identity)
    if not isinstance(before, SshTunnel):
        raise ConfigurationError(f"{_option(option_texts)} needs an SSH host", hint="--ssh USER@HOST")
    return structs.replace(before, identity=identity)


def _option(option_texts: dict[str, str]) -> str:
    return f"--{next(iter(option_texts)).replace('_', '-')}"


def kept_pins(saved: SavedConnection, before: SavedConnection, *, unpin: bool, entered: set[str]) -> SavedConnection:
    """Return an edited connection with the pins that still hold."""
    changed = any(saved.values.get(name) != before.values.get(name) for name in entered & _ELSEWHERE)
    return structs.replace(saved, pinned={} if unpin or changed else before.pinned)


def pins_of(saved: SavedConnection) -> dict[str, str]:
    """Return the fingerprints of pinned certificates by host and port."""
    from dragoman_api.tls import fingerprint

    return {server: fingerprint(b64decode(pin)) for server, pin in saved.pinned.items()}


def agreed_of(saved: SavedConnection) -> dict[str, object]:
    """Return pins and the agreed token endpoint as members of a document; empty for none."""
    agreed = {"sign_in_at": saved.sign_in_at} if saved.sign_in_at else {}
    return {**({"pinned": pins_of(saved)} if saved.pinned else {}), **agreed}


def check_pin_options(pins: tuple[str, ...], *, no_connect: bool) -> None:
    """Refuse options that exclude each other. Raises ConfigurationError."""
    if pins and no_connect:
        reason = "--pin-certificate asks the server for its certificate, and --no-connect forbids that"
        raise ConfigurationError(reason, hint="leave out --no-connect")


def known_values(form: Sequence[FormField], values: Values) -> dict[str, Saved]:
    """Drop values of fields that only another version of the driver had, and report them."""
    names = {field.name for field in form}
    for name in sorted(values.keys() - names):
        say(f"the form has no field {plain(name)}; its value was dropped")
    return {key: value for key, value in values.items() if key in names}


def edited(saved: SavedConnection, values: Values) -> dict[str, Saved]:
    """Return the saved values with newly entered ones."""
    return {**{key: value for key, value in saved.values.items() if key not in replaced_fields(values)}, **values}


def replaced_fields(values: Values) -> frozenset[str]:
    """Return the fields whose saved values a newly entered Cloud ID replaces, or a URL as the host."""
    if values.get("cloud_id"):
        return frozenset({"host", "port"})
    return frozenset({"port", "ssl_mode", "path_prefix"} if "://" in str(values.get("host", "")) else ())


def fitting_values(form: Sequence[FormField], values: Values) -> dict[str, Saved]:
    """Drop values that were saved when their field was of another kind."""
    from dragoman.connections.form_values import misfit

    return {
        field.name: values[field.name]
        for field in form
        if field.name in values and not misfit(field, values[field.name])
    }


def match_fields(form: Sequence[FormField], entries: Mapping[str, str | bool]) -> dict[str, Saved]:
    """Match options with the fields of a form; an unambiguous beginning is enough (``--auth``).

    Raises:
        ConfigurationError: Every fault at once: unknown fields, missing values, literal secrets.
    """
    names = {field.name: field for field in form}
    values: dict[str, Saved] = {}
    faults, hint = [], "dragoman connections add --help"
    for name, value in entries.items():
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


async def ask_form(
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
                values |= dict.fromkeys(replaced_fields(values) - presets.keys())
    # Drop fields that the answers have hidden; keep the saved values of fields that were not asked about.
    names = [field.name for field in visible(form, values) if field.name in answered | current.keys()]
    return {key: values[key] for key in names if values[key] not in (None, "")}


async def _ask_field(typed: Secrets, name: str, field: FormField, current: Saved) -> Saved:
    from dragoman.connections.form_values import check_values
    from dragoman.references import entered_path

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
            checked = check_values([dataclasses.replace(field, visible_if={})], {field.name: entered}, name=name)
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
