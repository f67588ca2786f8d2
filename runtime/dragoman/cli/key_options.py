"""Options of commands that sign: where the keys are, and what opens them."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from stat import S_ISREG
from typing import TYPE_CHECKING

import click

from dragoman_api.errors import ConfigurationError

from .options import PATH_TYPE
from .streams import attended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from dragoman_registry.trust.signers import Secret

KEYS = click.option(
    "--keys", metavar="DIR", type=PATH_TYPE, help="The folder of the private keys; by default FOLDER.keys."
)
SECRETS = ("passphrase", "pin")
ASKED = "ask"
"""The word for what a person types."""


@contextmanager
def opened_with(references: Mapping[str, str | None]) -> Iterator[None]:
    """Open keys with what references name: ``passphrase`` and ``pin``, each None to ask a person if needed.

    A named passphrase encrypts new keys, too. The variables that are named are kept from the processes that are started
    meanwhile: a publication runs an author's tests, and the build tools that they chose.
    """
    from dragoman.references import typed
    from dragoman_registry.trust.signers import Unlocking, unlocked_by

    places = {secret: typed(reference or "") for secret, reference in references.items()}
    names = {place.target for place in places.values() if place is not None and place.scheme == "env"}
    hidden = {name: os.environ.pop(name) for name in names & os.environ.keys()}

    def answer(secret: Secret, key: str, *, new: bool) -> str:
        place = places[secret]
        if place is not None and place.scheme == "env" and place.target in hidden:
            return hidden[place.target]
        return ask(references[secret], secret, key, new=new)

    try:
        with unlocked_by(Unlocking(answer, encrypts=references["passphrase"] is not None)):
            yield
    finally:
        os.environ.update(hidden)


def _remember(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Open keys with what the options name, until the command ends."""
    if context.resilient_parsing:
        return
    references: dict[str, str | None] = context.meta.setdefault(__name__, {})
    references[str(parameter.name)] = value
    if len(references) == len(SECRETS):
        context.with_resource(opened_with(references))


def ask(reference: str | None, secret: Secret, key: str, *, new: bool) -> str:
    """Return the passphrase or PIN of a key.

    Args:
        reference: Where it is kept, ``ask`` for what a person types now, or None to ask if there is a person.
        secret: What it is.
        key: The key or token that it opens.
        new: It is chosen now, so a person types it twice.

    Raises:
        ConfigurationError: It cannot be read, others can read its file, too, or nobody can be asked.
    """
    from dragoman.connections.secrets import resolve
    from dragoman.references import typed

    if reference in (None, ASKED):
        if not attended():
            raise ConfigurationError(f"{key} needs its {secret}", hint=f"--{secret} env:NAME", code="key-locked")
        prompt = f"{'a new ' if new else ''}{secret} of {key}"
        return str(click.prompt(prompt, hide_input=True, confirmation_prompt=new, err=True))
    if (place := typed(reference or "")) is None:  # do not show it: it may be the secret itself
        hint = f"--{secret} file:PATH, env:NAME, command:…, keyring:… or {ASKED}"
        raise ConfigurationError(f"--{secret} does not say where the {secret} is kept", hint=hint)
    if place.scheme == "file":
        refuse_shared(place.target, f"the {secret} of {key}")
    return resolve(place, where=f"the {secret} of {key}")


def refuse_shared(path: str, where: str) -> None:
    """Refuse a file of this user's that other users can read or write, as SSH refuses a key.

    A file of somebody else, such as a container's mounted secret, has the rights that its owner chose.

    Raises:
        ConfigurationError: Others can read or write it.
    """
    with suppress(OSError, RuntimeError, ValueError):  # whoever reads it says so
        file = Path(path).expanduser()
        status = file.stat()
        regular = S_ISREG(status.st_mode)  # what passes through a pipe or a terminal lies nowhere
        if regular and status.st_uid == os.geteuid() and (rights := status.st_mode & 0o066):
            verb = "read" if rights & 0o044 else "change"
            raise ConfigurationError(
                f"{where}: other users can {verb} {path}; it was not used", hint=f"chmod 600 {quote(str(file))}"
            )


def signing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options with which keys are opened."""
    places = "file:PATH, env:NAME, command:…, keyring:…, or ask"
    passphrase = click.option(
        "--passphrase", metavar="REFERENCE", expose_value=False, callback=_remember,
        help=f"Encrypts new keys and opens encrypted ones: {places}. Without it, a terminal is asked when needed.",
    )  # fmt: skip
    pin = click.option(
        "--pin", metavar="REFERENCE", expose_value=False, callback=_remember,
        help="Opens a token that holds keys, in the same way.",
    )  # fmt: skip
    return passphrase(pin(command))
