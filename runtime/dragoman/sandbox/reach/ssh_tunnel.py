"""The way to a server through an SSH tunnel: the user's own `ssh -W`, whose standard input and output are a socket."""

from __future__ import annotations

import os
import shutil
import socket
from typing import TYPE_CHECKING

import anyio

from dragoman.sandbox.via import authority, is_host
from dragoman_api.errors import ConfigurationError

from .ssh_messages import explain
from .ssh_process import SshProcess
from .ways import ViaError

if TYPE_CHECKING:
    from dragoman.sandbox.via import SshTunnel

SECONDS = 20.0
"""Time from the start of `ssh` until the server at the other end has accepted."""
MOST = 32
"""Tunnels of one connection at once, as many as the connections of one `Http`."""
END_SECONDS = 1.0

_OPTIONS = (
    "BatchMode=yes",  # asks nothing: the person who could answer may not be there
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    "ExitOnForwardFailure=yes",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "Tunnel=no",
    "PermitLocalCommand=no",
    "ControlMaster=no",  # a shared process would outlive this one
    "ControlPath=none",
    "EscapeChar=none",
    "ConnectTimeout=15",
    "ServerAliveInterval=15",
    "LogLevel=DEBUG2",  # says when the other end has accepted
)
_KEPT = ("HOME", "PATH", "USER", "LOGNAME", "SSH_AUTH_SOCK")


def find_ssh() -> str:
    """Return the path of the `ssh` program. Raises ConfigurationError if tunnels cannot work here."""
    if (path := shutil.which("ssh")) is None:
        raise ConfigurationError("an SSH tunnel needs the program ssh, which is not found", hint="command -v ssh")
    return path


class TunnelWay:
    """Connects to servers through one SSH host, with one `ssh` for each connection."""

    def __init__(self, tunnel: SshTunnel) -> None:
        """Prepare; nothing is started yet."""
        self._tunnel = tunnel
        self._running: set[SshProcess] = set()
        self._free = anyio.Semaphore(MOST)

    async def connect(self, host: str, port: int) -> socket.socket:
        """Return a socket on which everything goes to, and comes from, a host and port.

        Raises:
            ViaError: The tunnel cannot be opened.
        """
        if not is_host(host):
            raise ViaError(str(self._tunnel), "cannot be asked for such a host", hint="check Host")
        destination = authority(host, port)
        try:
            ssh = await anyio.to_thread.run_sync(find_ssh)
        except ConfigurationError as error:
            raise ViaError(str(self._tunnel), "cannot be started", said=error.message, hint=error.hint) from error
        with anyio.move_on_after(SECONDS):
            await self._free.acquire()
            sock, its = socket.socketpair()
            process = self._start([ssh, *self._words(destination)], its, destination)
            try:
                await process.decided.wait()
            except BaseException:
                sock.close()
                process.end()
                raise
            if process.accepted:
                sock.settimeout(0)
                return sock
            sock.close()
            reason, line, hint = explain(process.said, there=destination, by_hand=self._tunnel.command)
            raise ViaError(str(self._tunnel), reason, said=line, hint=hint)
        limit = f"; {MOST} tunnels are open" if len(self._running) >= MOST else ""
        hint = f"{self._tunnel.command} true"
        raise ViaError(str(self._tunnel), f"did not open within {SECONDS:g} s{limit}", hint=hint)

    def _start(self, command: list[str], its: socket.socket, destination: str) -> SshProcess:
        def ended() -> None:
            self._running.discard(process)
            self._free.release()

        try:
            process = SshProcess(command, its, there=destination, environment=_environment(), on_end=ended)
        except OSError as error:
            its.close()
            self._free.release()
            raise ViaError(str(self._tunnel), "cannot be started", said=error.strerror or "") from error
        self._running.add(process)
        return process

    def _words(self, destination: str) -> list[str]:
        tunnel, words = self._tunnel, list[str]()
        for option in _OPTIONS:
            words += ["-o", option]
        if tunnel.identity is not None:
            words += ["-o", "IdentitiesOnly=yes", "-i", tunnel.identity.target]
        if tunnel.user:
            words += ["-l", tunnel.user]
        if tunnel.port is not None:
            words += ["-p", str(tunnel.port)]
        return [*words, "-W", destination, "--", tunnel.host]

    async def close(self) -> None:
        """End every `ssh` that still runs."""
        running = [*self._running]
        for process in running:
            process.end()
        with anyio.move_on_after(END_SECONDS):
            for process in running:
                await process.ended.wait()
        for process in running:
            process.kill()
            with anyio.move_on_after(END_SECONDS):  # the kernel may keep a killed process for a while
                await process.ended.wait()


def _environment() -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**inherited, "LANG": "C.UTF-8", "SSH_ASKPASS_REQUIRE": "never"}
