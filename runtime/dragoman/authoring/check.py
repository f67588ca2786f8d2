"""Everything that can be said of a driver without a server: its wheel, its manifest, its conduct in the sandbox."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from anyio.abc import SocketAttribute

from dragoman.connections import SavedConnection, make_profile
from dragoman.loader import smoke_test
from dragoman.sandbox.closure import find_closure
from dragoman.sandbox.grants import granted
from dragoman.sandbox.launch import configure
from dragoman.sandbox.process import Launch, Worker
from dragoman_api.errors import DragomanError, SandboxError
from dragoman_api.forms import FieldKind
from dragoman_registry.validation import Fault
from dragoman_worker import probe

if TYPE_CHECKING:
    from pathlib import Path

    from anyio.abc import SocketStream
    from anyio.streams.stapled import MultiListener

    from dragoman.sandbox.policy import Policy
    from dragoman_registry.manifest import Manifest

    from .project import Built

IMPORT_SECONDS = 0.3
"""What importing a driver may cost each opening of a connection, beyond what the host has imported already."""

CONNECT_SECONDS = 10.0

_NEEDS = {
    "browse": ("list_objects", "describe_object", "fetch_page"),
    "filter": ("compile_filter",),
    "edit": ("plan_change", "apply_change"),
    "drop": ("plan_change", "apply_change"),
    "console": ("parse_console", "execute_console"),
    "export": ("export_rows",),
}
_VERBS = {"read": "opens", "list": "lists", "write": "changes", "run": "starts", "load": "loads", "reach": "reaches"}


@dataclass(kw_only=True)
class Checked:
    """What a check found.

    Attributes:
        faults: Everything wrong.
        sandbox: The level it was tried at, empty where it did not come to that.
        import_seconds: What importing it took in the sandbox.
    """

    faults: list[Fault] = field(default_factory=list)
    sandbox: str = ""
    import_seconds: float | None = None


def rules() -> dict[str, str]:
    """Give the rules of a check: code → when a driver breaks it."""
    found: dict[str, str] = json.loads(files(__package__).joinpath("rules.json").read_text(encoding="utf-8"))
    return found


async def check(made: Built, *, policy: Policy = "auto", cache: Path | None = None) -> Checked:
    """Check a built driver; where its wheel is sound, also how it behaves in the sandbox.

    Args:
        made: The wheel, unpacked.
        policy: Of the sandbox.
        cache: As of `Launch`.

    Raises:
        SandboxError: No process could be started at all.
    """
    checked, manifest = Checked(faults=list(made.faults)), made.report.manifest
    if manifest is None:
        return checked
    missing = {
        each: [hook for hook in _NEEDS.get(each, ()) if hook not in manifest.hooks] for each in manifest.capabilities
    }
    for capability, hooks in missing.items():
        if hooks:
            reason = f"$.capabilities: {capability!r} needs {', '.join(hooks)}, which $.hooks does not name."
            checked.faults.append(Fault("capability", reason))
    if not made.trees:
        return checked
    await _try(made, manifest, checked, policy=policy, cache=cache)
    return checked


async def _try(made: Built, manifest: Manifest, checked: Checked, *, policy: Policy, cache: Path | None) -> None:
    """Judge what the driver does under the probe, and compare its hooks with the manifest."""
    denied: list[str] = []
    launch = Launch(driver=probe.ENTRY, trees=made.trees, policy=policy, trusted=True, cache=cache)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, _refuse)
        found = await _probed(launch, manifest, checked, port=_port_of(listener), denied=denied)
        tasks.cancel_scope.cancel()
    reasons = await anyio.to_thread.run_sync(_undeclared, found["notes"], launch, manifest)
    reasons += [f"At connect it reaches {each}, which is not the connection's host and port." for each in denied]
    checked.faults += [Fault("undeclared-access", reason) for reason in dict.fromkeys(reasons)]
    checked.import_seconds = found["seconds"]
    if found["failure"]:
        checked.faults.append(Fault("import-failed", f"{manifest.entry}: {found['failure']}."))
        return
    if found["seconds"] > IMPORT_SECONDS:
        reason = f"Importing it takes {found['seconds']:.2f} s, {IMPORT_SECONDS:g} s are allowed."
        checked.faults.append(Fault("import-time", reason))
    try:
        await smoke_test(replace(launch, driver=manifest.entry), manifest)
    except DragomanError as error:
        checked.faults.append(Fault("hooks", f"{error.message}."))


async def _probed(
    launch: Launch, manifest: Manifest, checked: Checked, *, port: int, denied: list[str]
) -> dict[str, Any]:
    """Import the driver and let it connect to a server that only refuses; the form is filled with its defaults."""
    values = {entry.name: entry.default for entry in manifest.form} | {"host": "127.0.0.1", "port": port}
    values |= {"ssl_mode": "disabled"} if "ssl_mode" in values else {}
    secrets = {entry.name: "none" for entry in manifest.form if entry.kind is FieldKind.SECRET}
    connection = SavedConnection(name="check", type=manifest.types[0].name, values=values)
    scheme = manifest.scheme(str(values.get("auth_method")))
    profile = make_profile(connection, values, scheme=scheme, secrets=secrets)
    launch = replace(launch, approved=((profile.host, profile.port),), secrets=profile.secrets)
    launch = granted(launch, manifest.permissions)
    found: dict[str, Any] = {"seconds": 0.0, "failure": "", "notes": []}
    async with Worker(launch, on_denied=lambda host, wanted: denied.append(f"{host}:{wanted or '…'}")) as worker:
        checked.sandbox = str(worker.report)
        try:
            told = await worker.call("describe_object", manifest.entry, deadline=CONNECT_SECONDS)
            found |= json.loads(told.structure)
            if not found["failure"] and "connect" in manifest.hooks:
                server = await worker.call("connect", profile, deadline=CONNECT_SECONDS)
                found["notes"] = json.loads(server.version)
        except SandboxError as error:  # it ended its process, or blocked it
            found["failure"] = error.message
    return found


def _port_of(listener: MultiListener[Any]) -> int:
    return int(listener.extra(SocketAttribute.local_port))  # noqa: S610 - no database


async def _refuse(stream: SocketStream) -> None:
    """Answer any request with a refusal: what a driver does then with its connection is its own affair."""
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


def _undeclared(notes: list[list[str]], launch: Launch, manifest: Manifest) -> list[str]:
    """Tell what of the probe's notes the sandbox would refuse, judged by the very grants it is started with."""
    lockdown = configure(launch, find_closure(launch.cache)).lockdown
    roots = [os.path.realpath(path) for path in (*lockdown.readable, *lockdown.listable)]

    def allowed(kind: str, what: str) -> bool:
        if kind == "load":  # `import ctypes` looks at the interpreter itself
            return "native-code" in manifest.permissions or what == "None"
        if kind not in ("read", "list"):
            return False
        return any(os.path.commonpath((os.path.realpath(what), root)) == root for root in roots)

    return [
        f"At {stage} it {_VERBS[kind]} {what!r}, which is not granted{f' ({where})' if where else ''}."
        for stage, kind, what, where in notes
        if not allowed(kind, what)
    ]
