"""The check of this machine and home, and shell completion."""

from __future__ import annotations

import errno
import os
import platform
import resource
import shutil
import sys
import sysconfig
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING

import click

from dragoman_api.errors import ConfigurationError, DragomanError
from dragoman_registry.files import remedy, share

from .advice import lines
from .errors import FAILED
from .options import Command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dragoman.connections.saved_connections import SavedConnection
    from dragoman.sandbox.levels import SandboxReport
    from dragoman_registry.client.generation import Generation

    from .options import Options

    Finding = tuple[str, str, str, str]
    """Subject, state (``ok``, ``warning`` or ``fault``), finding, remedy."""


SPARE_BYTES = 32 << 20
"""Free bytes of a disk, below which an installation may fail."""
FEW_DESCRIPTORS = 256
LITTLE_MEMORY = 1 << 30
"""Bytes of address space, below which a command or its driver may not start."""


@click.command(cls=Command)
@click.pass_obj
def doctor(options: Options) -> int | None:
    """Check this machine and home: Python, folders, files, sandbox, registries, installed drivers."""
    findings: list[Finding] = []
    for name, look in {"host": _host, "connections": _connections, "sandbox": _sandbox, "registries": _registries,
                       "drivers": _drivers}.items():  # fmt: skip
        try:
            findings += look(options)
        except DragomanError as error:
            if all(message != error.message for _, _, message, _ in findings):
                findings.append((name, "fault", error.message, error.hint))
    keys = ("subject", "state", "found", "remedy")
    document: dict[str, object] = {"findings": [dict(zip(keys, finding, strict=True)) for finding in findings]}
    with suppress(DragomanError):
        document["sandbox"] = _measured(options)
    options.listing(document, [], [[*finding[:3]] for finding in findings])
    for subject, _, _, action in findings if not options.json else ():
        for line in lines(action):
            options.say(f"{subject}: {line}")
    return FAILED if any(state == "fault" for _, state, _, _ in findings) else None


def _host(options: Options) -> Iterator[Finding]:
    from importlib.metadata import version

    python = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        yield "python", "warning", f"{python}, free-threaded: never tested", "use the usual build of this Python"
    else:
        yield "python", "ok", python, ""
    yield "dragoman", "ok", f"{version('dragoman')}, api {version('dragoman-api')}", ""
    for name in ("config", "data", "state", "cache"):
        folder = getattr(options.paths(), name)
        if error := _refusal(folder):
            yield name, "warning", f"{folder} {error.strerror}", remedy(error, folder)
        else:
            yield name, "ok", str(folder), ""
    yield from _limits()


def _refusal(folder: Path) -> OSError | None:
    """Return why files of dragoman's could not be written and locked in a folder; None if they can. Change nothing."""
    ancestor = next((parent for parent in (folder, *folder.parents) if parent.exists()), folder)
    if not os.access(ancestor, os.W_OK | os.X_OK):
        read_only = os.statvfs(ancestor).f_flag & os.ST_RDONLY
        return OSError(errno.EROFS if read_only else errno.EACCES, "cannot be written", str(folder))
    if (free := shutil.disk_usage(ancestor).free) < SPARE_BYTES:
        return OSError(errno.ENOSPC, f"is on a disk with {free >> 20} MiB left", str(folder))
    try:
        os.close(share(ancestor))
    except OSError as error:
        return OSError(error.errno, f"cannot be used: {error.strerror}", str(folder))
    return None


def _limits() -> Iterator[Finding]:
    """Say what this process and its children may use, where that is less than a few connections take."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors != resource.RLIM_INFINITY and descriptors < FEW_DESCRIPTORS:
        error = OSError(errno.EMFILE, "")
        yield "open files", "warning", f"{descriptors} at most, 6 for each open connection", remedy(error)
    memory = resource.getrlimit(resource.RLIMIT_AS)[0]
    if memory != resource.RLIM_INFINITY and memory < LITTLE_MEMORY:
        yield "memory", "warning", f"{memory >> 20} MiB of address space at most", "ulimit -v unlimited"


def _connections(options: Options) -> Iterator[Finding]:
    from dragoman.connections.saved_connections import Connections

    connections = Connections(options.paths())
    saved, hidden = connections.sifted()
    yield "connections", "ok", f"{len(saved)} saved", ""
    for connection in saved:
        if connection.via is not None:
            yield _via(connection)
    for exposure in connections.exposures():
        yield "connections", "warning", exposure.reason, exposure.remedy
    for name, error in hidden.items():
        yield "connections", "fault", error.message, f"dragoman connections remove {quote(name)}"


def _via(saved: SavedConnection) -> Finding:
    from dragoman.sandbox.reach.route import SshTunnel
    from dragoman.sandbox.reach.ssh_tunnel import find_ssh

    subject, description = f"connection {saved.name}", f"reaches its host through {saved.via}"
    try:
        if isinstance(saved.via, SshTunnel):
            find_ssh()
    except ConfigurationError as error:
        return subject, "fault", f"{description}: {error.message}", error.hint
    return subject, "ok", description, ""


def _sandbox(options: Options) -> Iterator[Finding]:
    from dragoman.settings import read_settings

    report = _measured(options)
    abi = f", Landlock ABI {report.landlock_abi}" if report.landlock_abi else ""
    untested = ", not tested on this processor" if platform.machine() == "aarch64" else ""
    policy = options.sandbox or "auto"
    with suppress(DragomanError):  # an unreadable file is reported elsewhere
        policy = options.sandbox or read_settings(options.paths().settings).sandbox
    request = f", requested: {policy}" if policy != "auto" else ""
    state = "fault" if policy == "require" and report.missing else "warning" if report.missing or untested else "ok"
    yield "sandbox", state, f"{report}{abi}{untested}{request}", "; ".join(report.remedies)
    for name, permission in sorted(report.permissions.items()):
        by = f" by {' and '.join(permission.by)}" if permission.by else ""
        state = "warning" if permission.state == "not_enforced" and name != "fs_metadata" else "ok"
        yield f"sandbox {name}", state, f"{permission.state.replace('_', ' ')}{by}", ""


def _measured(options: Options) -> SandboxReport:
    from dragoman.sandbox.machine_level import measured_level

    return measured_level(options.paths().cache)


def _registries(options: Options) -> Iterator[Finding]:
    from dragoman.plugins.registries import Registries

    for registry in Registries(options.paths()).open():
        try:
            catalog, hidden = registry.sifted()
        except DragomanError as error:
            yield f"registry {registry.name}", "fault", error.message, error.hint
        else:
            yield f"registry {registry.name}", "ok", f"drivers: {len(catalog.projects)}, at {registry.location}", ""
            for fault in hidden:
                yield (
                    f"registry {registry.name}",
                    "warning",
                    str(fault),
                    "tell its operator: dragoman registry verify",
                )


def _drivers(options: Options) -> Iterator[Finding]:
    from dragoman.plugins.advisory_cache import LOCKED_OTHERWISE, PUBLISHED_OTHERWISE, locked_otherwise, remedy_of
    from dragoman_registry.client import lockfile
    from dragoman_registry.client.installed_drivers import Store

    store = Store(options.paths().data)
    entries = lockfile.read(store.lock_file)
    for generation in store.installed():
        if generation.linked:
            description = f"{generation.version}: runs from {generation.registry}, unsigned"
            yield f"driver {generation.plugin}", "warning", description, f"dragoman driver unlink {generation.plugin}"
        elif faults := store.verify(generation):
            yield f"driver {generation.plugin}", "fault", str(faults[0]), f"dragoman plugins repair {generation.plugin}"
        elif locked_otherwise(generation, entries):
            remedy = remedy_of(generation, "dragoman plugins sync")
            yield f"driver {generation.plugin}", "fault", f"{generation.version} {LOCKED_OTHERWISE}", remedy
        elif _published_otherwise(options, generation):
            description = f"{generation.version} {PUBLISHED_OTHERWISE.format(generation.registry)}"
            remedy = remedy_of(generation, f"dragoman plugins update {generation.plugin}")
            yield f"driver {generation.plugin}", "fault", description, remedy
        else:
            yield f"driver {generation.plugin}", "ok", f"{generation.version}, all files intact", ""


def _published_otherwise(options: Options, generation: Generation) -> bool:
    from dragoman.plugins.advisory_cache import differs
    from dragoman.plugins.registries import Registries

    with suppress(DragomanError):  # an unreadable registry is reported by itself
        return any(differs(generation, registry) for registry in Registries(options.paths()).open())
    return False


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell: eval "$(dragoman completion bash)"."""
    from .app import cli
    from .shell_completion import script

    sys.stdout.write(script(cli, shell) + "\n")
