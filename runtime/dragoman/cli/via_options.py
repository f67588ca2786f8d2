"""The options that say what is between this machine and a connection's host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.sandbox.reach.route import Route

DIRECT = click.option("--direct", is_flag=True, help="Reach the host without the saved proxy or tunnel.")
VIA = ("proxy", "proxy_user", "proxy_password", "ssh", "ssh_identity")


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

    from dragoman.sandbox.reach.route import HttpProxy, parse_proxy
    from dragoman.secret_references import typed
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

    from dragoman.sandbox.reach.route import SshTunnel, parse_ssh
    from dragoman.secret_references import entered_path
    from dragoman_api.errors import ConfigurationError

    identity = entered_path(option_texts["ssh_identity"]) if option_texts.get("ssh_identity") else None
    if "ssh" in option_texts:
        return parse_ssh(option_texts["ssh"], identity=identity)
    if not isinstance(before, SshTunnel):
        raise ConfigurationError(f"{_option(option_texts)} needs an SSH host", hint="--ssh USER@HOST")
    return replace(before, identity=identity)


def _option(option_texts: dict[str, str]) -> str:
    return f"--{next(iter(option_texts)).replace('_', '-')}"
