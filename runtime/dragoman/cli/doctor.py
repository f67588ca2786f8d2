"""What this machine gives, and shell completion."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

import click

from .errors import FAILED
from .options import Command, Options
from .output import plain, write_json, write_table

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
    """Look whether everything is in order: Python, folders, sandbox, registries, installed drivers."""
    findings = [*_host(options), *_sandbox(), *_registries(options), *_drivers(options)]
    if options.json:
        names = ("subject", "state", "found", "remedy")
        write_json({"findings": [dict(zip(names, finding, strict=True)) for finding in findings]})
    else:
        write_table([], [[plain(part) for part in (subject, state, found)] for subject, state, found, _ in findings])
        for subject, _, _, remedy in findings:
            if remedy:
                options.say(f"{subject}: try: {remedy}")
    return FAILED if any(state == "fault" for _, state, _, _ in findings) else None


def _host(options: Options) -> Iterator[Finding]:
    from importlib.metadata import version

    yield "python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}", ""
    yield "dragoman", "ok", f"{version('dragoman')}, api {version('dragoman-api')}", ""
    paths = options.paths()
    for name in ("config", "data", "state", "cache"):
        yield name, "ok", str(getattr(paths, name)), ""


def _sandbox() -> Iterator[Finding]:
    from dragoman.sandbox.policy import achievable_level

    report = achievable_level()
    remedies = [remedy for word, remedy in _REMEDIES.items() if any(word in reason for reason in report.missing)]
    abi = f", Landlock ABI {report.landlock_abi}" if report.landlock_abi else ""
    yield "sandbox", "warning" if report.missing else "ok", f"{report}{abi}", "; ".join(remedies)


def _registries(options: Options) -> Iterator[Finding]:
    from dragoman.registries import Registries
    from dragoman_api.errors import DragomanError

    for registry in Registries(options.paths()).open():
        try:
            offered = len(registry.catalog().projects)
        except DragomanError as error:
            yield f"registry {registry.name}", "fault", error.message, error.hint
        else:
            yield f"registry {registry.name}", "ok", f"{offered} drivers at {registry.location}", ""


def _drivers(options: Options) -> Iterator[Finding]:
    from dragoman_api.errors import DragomanError
    from dragoman_registry.store import Store

    store = Store(options.paths().data)
    try:
        for one in store.installed():
            faults = store.verify(one)
            name = f"driver {one.plugin}"
            if faults:
                yield name, "fault", str(faults[0]), f"dragoman plugins install {one.plugin}"
            else:
                yield name, "ok", f"{one.version}, every file as it was installed", ""
    except DragomanError as error:
        yield "drivers", "fault", error.message, error.hint


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell: eval "$(dragoman completion bash)"."""
    from click.shell_completion import get_completion_class

    from .app import cli

    kind = get_completion_class(shell)
    assert kind is not None
    sys.stdout.write(kind(cli, {}, "dragoman", "_DRAGOMAN_COMPLETE").source() + "\n")
