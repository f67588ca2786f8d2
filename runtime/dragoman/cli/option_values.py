"""Values of options that take more than a text: pairs, routes to a server, pinned certificates."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dragoman.connections.saved_connections import SavedConnection
    from dragoman.sandbox.reach.route import Route
    from dragoman_api.changes import Values
    from dragoman_api.columns import Column

_TEXTS = ("text", "timestamp", "date", "time", "binary")
"""Kinds of columns whose values are typed as they stand."""

_JSON = ("json", "range", "geo", "other")
"""Kinds of columns whose values are JSON."""
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


def parse_time(text: str | None, *, option: str) -> int | None:
    """Return the seconds of a time such as 90s, 30m or 2h."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})([smhd]?)", text)
    seconds = int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}[match[2]] if match else 0
    if not seconds:
        raise click.UsageError(f"{option} {text!r} is not a time such as 90s, 30m or 2h")
    return seconds


def take_pairs(args: Iterable[str], *, known: Callable[[str], bool]) -> tuple[list[str], dict[str, str | bool]]:
    """Extract the options that the command does not know (`known`) from its words.

    Returns:
        The other words, and the values by name with underscores; True for an option without a value.
    """
    rest: list[str] = []
    pairs: dict[str, str | bool] = {}
    words = list(args)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            return [*rest, word, *words], pairs
        if not name.startswith("--") or known(name):
            rest.append(word)
        elif equals:
            pairs[name[2:].replace("-", "_")] = value
        else:
            has_value = bool(words) and not words[0].startswith("--")
            pairs[name[2:].replace("-", "_")] = words.pop(0) if has_value else True
    return rest, pairs


def parse_values(pairs: Iterable[str], columns: Mapping[str, Column]) -> Values:
    """Read assignments: ``COL=VALUE`` by the column's kind alone, ``COL:=JSON`` as JSON.

    A text stays the text it is, even if it looks like an array; a column of arrays or objects takes JSON either way.

    Raises:
        ConfigurationError: One is not of that form, or a column is named twice.
    """
    from dragoman_api.errors import ConfigurationError

    values: dict[str, Any] = {}
    for pair in pairs:
        match = re.fullmatch(r"([^=]*?)(:?=)(.*)", pair, re.DOTALL)
        if not match or not match[1]:
            raise ConfigurationError(f"--set {pair!r} is not of the form COL=VALUE", hint="--set price=12.5")
        column, sign, text = match.groups()
        if column in values:
            raise ConfigurationError(f"--set names the column {column!r} twice", hint="keep one of the two")
        values[column] = _value(text, column=column, must=sign == ":=", definition=columns.get(column))
    return values


def _value(text: str, *, column: str, must: bool, definition: Column | None) -> object:
    from msgspec import Raw

    from dragoman.spellings import value_of
    from dragoman_api.errors import ConfigurationError
    from dragoman_api.json_text import decode

    if not must and (definition is None or (definition.kind in _TEXTS and not definition.repeated)):
        return text
    spelled = text.strip(" \t\r\n").encode()
    try:
        decode(text, Raw)
    except ValueError as error:
        if must:
            reason = f"--set {column}:= has the value {text!r}, which is not JSON"
            raise ConfigurationError(reason, hint=f"for a text: --set {column}={text}") from error
        return text
    if must or definition is None or definition.kind in _JSON:
        return value_of(spelled)
    if spelled[:1] == b'"':
        return decode(text, str)
    if spelled[:1] in (b"[", b"{") and not (definition.repeated or definition.multiple):
        return text
    value = value_of(spelled)
    return Decimal(spelled.decode()) if definition.kind == "decimal" and type(value) in (int, float) else value


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


def entered_via(given: dict[str, str | bool | None], *, before: Route | None) -> Route | None:
    """Return what was entered, with what was saved for options that were left out.

    Raises:
        ConfigurationError: It cannot be used, or the password is not a reference.
    """
    from dragoman_api.errors import ConfigurationError

    option_texts = {name: str(given[name]) for name in VIA if given.get(name) is not None}
    kinds = {name.partition("_")[0] for name in option_texts} | ({"direct"} if given.get("direct") else set())
    if len(kinds) > 1:
        raise ConfigurationError(f"{' and '.join(f'--{kind}' for kind in sorted(kinds))} exclude each other")
    if "direct" in kinds:
        return None
    if "proxy" in kinds:
        return _proxy(option_texts, before)
    return _tunnel(option_texts, before) if "ssh" in kinds else before


def _proxy(option_texts: dict[str, str], before: Route | None) -> Route:
    from msgspec.structs import replace

    from dragoman.references import typed
    from dragoman.sandbox.reach.route import HttpProxy, parse_proxy
    from dragoman_api.errors import ConfigurationError

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
    return replace(via, user=user, password=credentials.password if text is None else password)


def _tunnel(option_texts: dict[str, str], before: Route | None) -> Route:
    from msgspec.structs import replace

    from dragoman.references import entered_path
    from dragoman.sandbox.reach.route import SshTunnel, parse_ssh
    from dragoman_api.errors import ConfigurationError

    identity = entered_path(option_texts["ssh_identity"]) if option_texts.get("ssh_identity") else None
    if "ssh" in option_texts:
        return parse_ssh(option_texts["ssh"], identity=identity)
    if not isinstance(before, SshTunnel):
        raise ConfigurationError(f"{_option(option_texts)} needs an SSH host", hint="--ssh USER@HOST")
    return replace(before, identity=identity)


def _option(option_texts: dict[str, str]) -> str:
    return f"--{next(iter(option_texts)).replace('_', '-')}"


def kept_pins(saved: SavedConnection, before: SavedConnection, *, unpin: bool, given: set[str]) -> SavedConnection:
    """Return an edited connection with the pins that still hold.

    Args:
        saved: The connection as it was edited.
        before: The connection before.
        unpin: A person wants no pins.
        given: The fields that were entered.
    """
    changed = any(saved.values.get(name) != before.values.get(name) for name in given & _ELSEWHERE)
    return replace(saved, pinned={} if unpin or changed else before.pinned)


def pins_of(saved: SavedConnection) -> dict[str, str]:
    """Return the fingerprints of pinned certificates by host and port."""
    from base64 import b64decode

    from dragoman_api.tls import fingerprint

    return {server: fingerprint(b64decode(pin)) for server, pin in saved.pinned.items()}


def agreed_of(saved: SavedConnection) -> dict[str, object]:
    """Return pins and the agreed token endpoint as members of a document; empty for none."""
    agreed = {"sign_in_at": saved.sign_in_at} if saved.sign_in_at else {}
    return {**({"pinned": pins_of(saved)} if saved.pinned else {}), **agreed}


def check_pin_options(pins: tuple[str, ...], *, no_connect: bool) -> None:
    """Refuse options that exclude each other. Raises ConfigurationError."""
    from dragoman_api.errors import ConfigurationError

    if pins and no_connect:
        reason = "--pin-certificate asks the server for its certificate, and --no-connect forbids that"
        raise ConfigurationError(reason, hint="leave out --no-connect")
