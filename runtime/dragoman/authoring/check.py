"""Checks of a driver that need no server, and developer mode, which runs it from its working tree."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import SocketAttribute

from dragoman.connections.profiles import make_profile
from dragoman.connections.saved_connections import SavedConnection
from dragoman.lifetimes import background
from dragoman.sandbox.driver_process import Launch, Worker, smoke_test
from dragoman.sandbox.host_imports import find_host_imports
from dragoman.sandbox.launch import configure, granted
from dragoman_api.connections import FieldKind
from dragoman_api.errors import DragomanError
from dragoman_api.masking import MARK
from dragoman_registry.client.installer import unpack
from dragoman_registry.validation import Fault, Unreadable, decode
from dragoman_worker import access_recorder

from .wheel_build import Built, built

if TYPE_CHECKING:
    from pathlib import Path

    from anyio.abc import SocketStream

    from dragoman.sandbox.levels import Policy
    from dragoman_registry.client.generation import Generation
    from dragoman_registry.client.installed_drivers import Store
    from dragoman_registry.wheels.manifest import Manifest

IMPORT_SECONDS = 0.3
"""Maximum CPU time of a driver's import at each opening of a connection, beyond the host's own imports."""

IMPORTS = 3
"""How often a slow import is measured; the shortest counts, since a busy machine also costs CPU time."""

CONNECT_SECONDS = 10.0

_SECRET = "c0nnection-secret"  # noqa: S105 - a text that nothing else holds, to find it in errors and logs

SHOWN = 500
"""Maximum length of a text from the driver's process, in characters."""

_NEEDS = {
    "browse": ("list_objects", "describe_object", "fetch_page"),
    "filter": ("compile_filter",),
    "edit": ("plan_change", "apply_change"),
    "drop": ("plan_change", "apply_change"),
    "console": ("parse_console", "execute_console"),
    "export": ("export_rows",),
}
Note = tuple[str, str, str, str]
"""A note of the access recorder: stage, kind, subject, and place in the driver's code."""
_VERBS = {"read": "open", "list": "list", "write": "change", "run": "start", "load": "load", "reach": "reach"}


class Checked(msgspec.Struct, kw_only=True):
    """The result of a check.

    Attributes:
        faults: All faults.
        sandbox: The level of the trial; empty if there was none.
        import_seconds: The CPU time of its import in the sandbox.
    """

    faults: list[Fault] = msgspec.field(default_factory=list)
    sandbox: str = ""
    import_seconds: float | None = None


def rules() -> dict[str, str]:
    """Return the rules of a check: code → when a driver breaks it."""
    descriptions: dict[str, str] = json.loads(files(__package__).joinpath("rules.json").read_text(encoding="utf-8"))
    return descriptions


async def check(build: Built, *, policy: Policy = "auto", cache: Path | None = None) -> Checked:
    """Check a built driver and, if its wheel is sound, its behaviour in the sandbox.

    Args:
        build: The unpacked wheel.
        policy: The sandbox policy.
        cache: Directory for results that are costly to compute; None for no cache.

    Raises:
        SandboxError: No process could be started.
    """
    checked, manifest = Checked(faults=list(build.faults)), build.report.manifest
    if manifest is None:
        return checked
    for capability in manifest.capabilities:
        if hooks := [hook for hook in _NEEDS.get(capability, ()) if hook not in manifest.hooks]:
            reason = f"$.capabilities: {capability!r} needs {', '.join(hooks)}, which $.hooks does not name."
            checked.faults.append(Fault("capability", reason))
    if build.trees:
        await _try(build, manifest, checked, policy=policy, cache=cache)
    return checked


async def _try(build: Built, manifest: Manifest, checked: Checked, *, policy: Policy, cache: Path | None) -> None:
    """Run the access recorder, judge what the driver does, and compare its hooks with the manifest."""
    denied: list[str] = []
    launch = Launch(driver=access_recorder.ENTRY, trees=build.trees, policy=policy, trusted=build.own, cache=cache)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as server, background() as tasks:
        tasks.start_soon(server.serve, _refuse)
        port = int(server.extra(SocketAttribute.local_port))  # noqa: S610 - no database
        record = partial(_recorded, launch, manifest, checked, port=port)
        recording = await record(denied=denied)
        for _ in range(IMPORTS - 1):
            if recording.failure or recording.seconds <= IMPORT_SECONDS:
                break
            again = await record(denied=[])
            recording.seconds = recording.seconds if again.failure else min(recording.seconds, again.seconds)
    reasons = await anyio.to_thread.run_sync(_undeclared, recording.notes, launch, manifest)
    reasons += [
        f"During connect, it tried to reach {address}, which is not the connection's host and port."
        for address in denied
    ]
    checked.faults += [Fault("undeclared-access", reason) for reason in dict.fromkeys(reasons)]
    checked.import_seconds = recording.seconds
    if recording.failure:
        hint = " List what it needs in pyproject.toml." if recording.failure.startswith("ModuleNotFound") else ""
        checked.faults.append(Fault("import-failed", f"{manifest.entry}: {recording.failure[:SHOWN]}.{hint}"))
        return
    checked.faults += [
        Fault("secret-shown", f"During connect, a secret of the connection is in {where[:SHOWN]}.")
        for where in recording.leaks
    ]
    if recording.seconds > IMPORT_SECONDS:
        slowest = (
            f" Most of it goes to the import at {recording.slowest}: import that in the hook."
            if recording.slowest
            else ""
        )
        reason = f"Importing it takes {recording.seconds:.2f} s of CPU time; {IMPORT_SECONDS:g} s are allowed.{slowest}"
        checked.faults.append(Fault("import-time", reason))
    try:
        await smoke_test(replace(launch, driver=manifest.entry), manifest)
    except DragomanError as error:
        checked.faults.append(Fault("hooks", f"{error.message}."))


class _Recording(msgspec.Struct):
    """The access recorder's report from the driver's own process: how the import went, and what the driver tried."""

    seconds: float = 0.0
    slowest: str = ""
    failure: str = ""
    notes: list[Note] = []
    leaks: list[str] = []


async def _recorded(
    launch: Launch, manifest: Manifest, checked: Checked, *, port: int, denied: list[str]
) -> _Recording:
    """Import the driver and connect it to a server that only refuses, with the defaults of the form."""
    values = {entry.name: entry.default for entry in manifest.form} | {"host": "127.0.0.1", "port": port}
    values |= {"ssl_mode": "disabled"} if "ssl_mode" in values else {}
    secrets = {entry.name: _SECRET for entry in manifest.form if entry.kind is FieldKind.SECRET}
    secrets.pop("secret_headers", None)  # a text that has a form of its own
    connection = SavedConnection(name="check", type=manifest.types[0].name, values=values)
    scheme = manifest.scheme(str(values.get("auth_method")))
    profile = make_profile(connection, values, scheme=scheme, secrets=secrets, files={})
    launch = replace(launch, approved=tuple(profile.reach), profile=profile)
    launch = granted(launch, manifest.permissions)
    recording, printed = _Recording(), list[str]()

    def note_denied(host: str, port: int | None) -> None:
        denied.append(f"{host}:{port or '…'}")

    async with Worker(launch, on_log=printed.append, on_denied=note_denied) as worker:
        checked.sandbox = str(worker.report)
        try:
            description = await worker.call("describe_object", manifest.entry, deadline=CONNECT_SECONDS)
            recording = decode((description.structure or "").encode(), _Recording)
            if not recording.failure and "connect" in manifest.hooks:
                await worker.call("connect", deadline=CONNECT_SECONDS)
                description = await worker.call("describe_object", "", deadline=CONNECT_SECONDS)
                record = decode((description.structure or "").encode(), _Recording)
                recording.notes, recording.leaks = record.notes, record.leaks
        except DragomanError as error:  # the driver ended or blocked its process
            recording.failure = error.message
        except Unreadable as error:  # the driver can corrupt the report, since it shares the process
            recording.failure = f"the report of the probe cannot be read ({error})"
    recording.leaks += [f"a line of its log, {line!r}" for line in printed if MARK in line]
    return recording


async def _refuse(stream: SocketStream) -> None:
    """Refuse any request; how the driver then handles its connection is not checked."""
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


def _undeclared(notes: list[Note], launch: Launch, manifest: Manifest) -> list[str]:
    """List the recorder's notes that the sandbox would refuse, judged by the grants it starts with."""
    lockdown = configure(launch, find_host_imports(launch.cache)).lockdown
    roots = [os.path.realpath(path) for path in (*lockdown.readable, *lockdown.listable)]

    def allowed(kind: str, subject: str) -> bool:
        if kind == "load":  # `import ctypes` opens the interpreter itself
            return "native-code" in manifest.permissions or subject == "None"
        if kind not in ("read", "list") or "\0" in subject:
            return False
        return any(os.path.commonpath((os.path.realpath(subject), root)) == root for root in roots)

    def sentence(stage: str, kind: str, subject: str, where: str) -> str:
        behind = f" ({where[:SHOWN]})" if where else ""
        tried = f"it tried to {_VERBS.get(kind, 'do')} {subject[:SHOWN]!r}"
        return f"During {stage[:SHOWN]}, {tried}, which is not granted{behind}."

    return [sentence(*note) for note in notes if not allowed(note[1], note[2])]


def link(path: Path, *, store: Store, wheels: Path | None = None, policy: Policy = "auto") -> Generation:
    """Run a driver from its working tree, from the next opening until `Store.unlink`. Blocks.

    Each opening imports the current code. The manifest is the one at linking time, so a changed one must be linked and
    checked again.

    Args:
        path: The working tree.
        store: The store of the home in which it is linked.
        wheels: The folder of its dependencies' wheels; None for its own folder ``wheels``.
        policy: The sandbox policy.

    Raises:
        WheelRejectedError: Its wheel would have faults.
        ConfigurationError: It cannot be built.
        SandboxError: It cannot be imported, or its hooks differ from its manifest.
    """
    with built(path, wheels=wheels) as build:
        build.check_sound()
        manifest = build.report.manifest
        assert manifest is not None
        trees = _import_folders(build, manifest, store)
        launch = Launch(driver=manifest.entry, trees=trees, policy=policy, trusted=True)
        anyio.run(smoke_test, granted(launch, manifest.permissions), manifest)
        return store.links.add(manifest, version=build.wheel.name.split("-")[1], trees=trees)


def _import_folders(build: Built, manifest: Manifest, store: Store) -> tuple[Path, ...]:
    """List the folders to import from; unpack dependencies into the store, as for an installed driver.

    Libraries of the author's own are imported from their working trees, too.
    """
    folders = [_import_folder(build.project, manifest.entry.partition(":")[0].partition(".")[0])]
    for number, wheel in enumerate(build.fitting[1:]):
        if wheel in build.libraries:
            folders.append(_import_folder(build.libraries[wheel], "."))
            continue
        with store.trees.staging() as staging:
            unpack(wheel, staging / f"tree-{number}")
            folders.append(store.trees.path(store.trees.keep(staging / f"tree-{number}")))
    return tuple(folders)


def _import_folder(project: Path, package: str) -> Path:
    """Return where a package of a working tree is imported from."""
    project = project.resolve()
    return project / "src" if (project / "src" / package).is_dir() else project
