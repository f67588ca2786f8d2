"""The parameters of a worker's start."""

from __future__ import annotations

import os
import sys
import sysconfig
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.references import NamedFile
from dragoman_api.connections import Profile
from dragoman_api.errors import ConfigurationError
from dragoman_registry.ip_addresses import Nearness
from dragoman_worker.wire import Config, Lockdown

from .levels import Policy
from .reach.address_resolver import AddressResolver, Endpoint
from .reach.route import HttpProxy, Route

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .host_imports import HostImports
    from .reach.route import RouteConnector

LAYERS = ("limits", "capabilities", "landlock", "seccomp") if sys.platform == "linux" else ("limits",)
"""What a process gives up itself, as far as this system has it."""

DEFAULT_PORT = 443
"""Of a host that a permission names without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The parameters of one start.

    Attributes:
        driver: ``package.module:Class``.
        trees: Directories to import the driver and its dependencies from.
        approved: The saved host and port, which it may reach.
        further: Further hosts and ports that its manifest names.
        remembered: Host → how near it was when first reached; newly reached hosts are added.
        route: What is between this machine and the `approved` hosts; None for nothing.
        route_password: The password that it asks for. It never leaves the host's process but for the proxy.
        profile: The connection, handed over with its credentials once the lock-down is proven; None for a trial.
        files: Further files it may read, such as a client certificate, with their identity when the person named them.
        policy: The requested level.
        trusted: The driver's bytes come from a source that the user trusts.
        memory: Bytes of address space.
        descriptors: Open descriptors.
        cpu: Seconds of processor time for the whole life of the process; None for no limit except deadlines.
        cache: Directory for results that are costly to compute; None for no cache.
        forked: Its process may come from the thread's fork server, if there is one.
        under_test: A call that would block its event loop is refused, so that its author finds it.
    """

    driver: str
    trees: tuple[Path, ...]
    approved: tuple[Endpoint, ...] = ()
    further: tuple[Endpoint, ...] = ()
    remembered: dict[str, Nearness] = field(default_factory=dict)
    route: Route | None = None
    route_password: str = field(default="", repr=False)
    profile: Profile | None = None
    files: tuple[NamedFile, ...] = ()
    policy: Policy = "auto"
    trusted: bool = False
    memory: int = 2 << 30
    descriptors: int = 256
    cpu: int | None = None
    cache: Path | None = None
    forked: bool = True
    under_test: bool = False

    def connector(self) -> RouteConnector | None:
        """Return what connects to the hosts that a person entered, None if they are reached directly."""
        if self.route is None:
            return None
        if isinstance(self.route, HttpProxy):
            from .reach.http_proxy import ProxyConnector

            own = ((self.route.host, self.route.port),)
            return ProxyConnector(self.route, self.route_password, AddressResolver(own, remembered=self.remembered))
        from .reach.ssh_tunnel import TunnelConnector

        return TunnelConnector(self.route)


def configure(launch: Launch, host_imports: HostImports) -> Config:
    """Build the configuration; this reads the file system.

    Raises:
        ConfigurationError: A file that it may read has been replaced since.
    """
    for file in launch.files:
        try:
            same = file.is_same(file.path.lstat())
        except OSError:
            same = False
        if not same:
            reason = f"{file.path} was replaced since the connection was opened"
            raise ConfigurationError(reason, hint="check who replaced it, then open the connection again")
    trees = tuple(str(tree.resolve()) for tree in launch.trees)
    plan = lockdown_plan(
        host_imports,
        readable=trees,
        files=((str(file.path), file.device, file.inode) for file in launch.files),
        policy=launch.policy,
        memory=launch.memory,
        descriptors=launch.descriptors,
        cpu=launch.cpu,
    )
    return Config(lockdown=plan, trees=trees, driver=launch.driver, under_test=launch.under_test)


def lockdown_plan(
    host_imports: HostImports,
    *,
    readable: Iterable[str],
    files: Iterable[tuple[str, int, int]] = (),
    policy: Policy,
    memory: int,
    descriptors: int,
    cpu: int | None = None,
) -> Lockdown:
    """Build the plan of what a child gives up and what it keeps.

    Args:
        host_imports: The modules of the host's environment that it may import.
        readable: The driver's trees.
        files: Further files, as `Lockdown` has them: a client certificate.
        policy: The policy; ``off`` gives up nothing.
        memory: Bytes of address space.
        descriptors: Open descriptors.
        cpu: Seconds of processor time; None for no bound.
    """
    library, listable = _standard_library()
    return Lockdown(
        layers=() if policy == "off" else LAYERS,
        readable=(*library, *host_imports.paths, *readable, *_system_files()),
        files=tuple(files),
        listable=listable,
        memory=memory,
        descriptors=descriptors,
        cpu=cpu,
        **_probe_targets(),
    )


_MACHINES_OWN = ("site-packages", "dist-packages", "sitecustomize.py", "usercustomize.py")
"""What lies in the standard library's folder and is none of it; Debian links one of them into `/etc`."""


@cache
def _standard_library() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List the standard library's paths without what is this machine's own, which only the host may read."""
    roots = dict.fromkeys(
        sysconfig.get_path(name, vars={"base": sys.base_prefix, "platbase": sys.base_exec_prefix})
        for name in ("stdlib", "platstdlib")
    )
    readable = [entry.path for root in roots for entry in os.scandir(root) if entry.name not in _MACHINES_OWN]
    return tuple(readable), tuple(roots)


def _system_files() -> tuple[str, ...]:
    paths = ("/dev/null", "/dev/zero", "/dev/urandom", "/etc/ssl/certs", "/etc/localtime", "/usr/share/zoneinfo")
    return tuple(path for path in paths if Path(path).exists())


@cache
def _probe_targets() -> dict[str, str]:
    """Choose the negative self-test's targets: the host must have access to them, or a refusal proves nothing."""
    secret = next(path for path in ("/etc/passwd", "/etc/hostname", __file__) if os.access(path, os.R_OK))
    writable = next((path for path in ("/dev/shm", "/tmp") if os.access(path, os.W_OK)), str(Path.cwd()))  # noqa: S108
    program = next(path for path in ("/bin/true", "/usr/bin/true", sys.executable) if os.access(path, os.X_OK))
    return {"secret_file": secret, "writable_dir": writable, "program": program}


def granted(launch: Launch, permissions: Iterable[str], *, files: Mapping[str, NamedFile] | None = None) -> Launch:
    """Add the granted permissions to a launch.

    Args:
        launch: A launch with the baseline, which is the connection's own address and credentials.
        permissions: An installed driver's permissions, to each of which a person agreed.
        files: The regular files that a person entered, by field.
    """
    for permission in permissions:
        kind, _, value = permission.partition("=")
        match kind:
            case "net:host":
                launch = replace(launch, further=(*launch.further, *map(_endpoint, value.split(","))))
            case "fs:read" if file := (files or {}).get(value):
                launch = replace(launch, files=(*launch.files, file))
            case "memory":
                launch = replace(launch, memory=int(value.removesuffix("MiB")) << 20)
            case "cpu":
                launch = replace(launch, cpu=int(value.removesuffix("s")))
    return launch


def _endpoint(text: str) -> Endpoint:
    host, _, port = text.partition(":")
    return host, int(port or DEFAULT_PORT)
