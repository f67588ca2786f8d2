"""What this machine gives, and shell completion."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

import click

from .errors import FAILED
from .options import Command, Options

if TYPE_CHECKING:
    from collections.abc import Iterator

    Finding = tuple[str, str, str, str]
    """A subject, ``ok``, ``warning`` or ``fault``, what was found, what to do."""

# What each missing layer needs, by a word of the reason that the policy gives.
_REMEDIES = {
    "Landlock": "needs Linux 5.13 or newer, with landlock in the kernel's list of security modules (lsm=)",
    "seccomp": "needs a kernel with seccomp filters; some containers forbid them: --security-opt seccomp=unconfined",
    "lock-down": "full confinement is there on Linux, on x86-64 and arm64",
}


@click.command(cls=Command)
@click.pass_obj
def doctor(options: Options) -> int | None:
    """Look whether everything is in order: Python, folders, files, sandbox, registries, installed drivers."""
    from dragoman_api.errors import DragomanError

    findings: list[Finding] = []
    for name, look in {"host": _host, "connections": _connections, "sandbox": _sandbox, "registries": _registries,
                       "drivers": _drivers}.items():  # fmt: skip
        try:
            findings += look(options)
        except DragomanError as error:
            findings.append((name, "fault", error.message, error.hint))
    keys = ("subject", "state", "found", "remedy")
    document = {"findings": [dict(zip(keys, finding, strict=True)) for finding in findings]}
    options.listing(document, [], [[*finding[:3]] for finding in findings])
    for subject, _, _, remedy in findings:
        if remedy and not options.json:
            options.say(f"{subject}: try: {remedy}")
    return FAILED if any(state == "fault" for _, state, _, _ in findings) else None


def _host(options: Options) -> Iterator[Finding]:
    from importlib.metadata import version

    yield "python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}", ""
    yield "dragoman", "ok", f"{version('dragoman')}, api {version('dragoman-api')}", ""
    for name in ("config", "data", "state", "cache"):
        yield name, "ok", str(getattr(options.paths(), name)), ""


def _connections(options: Options) -> Iterator[Finding]:
    from dragoman.connections import Connections

    yield "connections", "ok", f"{len(Connections(options.paths()).list())} saved", ""


def _sandbox(options: Options) -> Iterator[Finding]:
    from dragoman.sandbox.policy import achievable_level

    report = achievable_level()
    remedies = [remedy for word, remedy in _REMEDIES.items() if any(word in reason for reason in report.missing)]
    abi = f", Landlock ABI {report.landlock_abi}" if report.landlock_abi else ""
    asked = f", asked for: {options.sandbox}" if options.sandbox else ""
    yield "sandbox", "warning" if report.missing else "ok", f"{report}{abi}{asked}", "; ".join(remedies)


def _registries(options: Options) -> Iterator[Finding]:
    from dragoman.registries import Registries
    from dragoman_api.errors import DragomanError

    for registry in Registries(options.paths()).open():
        try:
            offered = len(registry.catalog().projects)
        except DragomanError as error:
            yield f"registry {registry.name}", "fault", error.message, error.hint
        else:
            yield f"registry {registry.name}", "ok", f"drivers: {offered}, at {registry.location}", ""


def _drivers(options: Options) -> Iterator[Finding]:
    from dragoman_registry.store import Store

    store = Store(options.paths().data)
    for one in store.installed():
        if one.linked:
            found = f"{one.version}: runs from {one.registry}, nothing vouches for it"
            yield f"driver {one.plugin}", "warning", found, f"dragoman driver unlink {one.plugin}"
        elif faults := store.verify(one):
            yield f"driver {one.plugin}", "fault", str(faults[0]), f"dragoman plugins install {one.plugin}"
        else:
            yield f"driver {one.plugin}", "ok", f"{one.version}, every file as it was installed", ""


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell: eval "$(dragoman completion bash)"."""
    from click.shell_completion import get_completion_class

    from .app import cli

    kind = get_completion_class(shell)
    assert kind is not None
    sys.stdout.write(kind(cli, {}, "dragoman", "_DRAGOMAN_COMPLETE").source() + "\n")
