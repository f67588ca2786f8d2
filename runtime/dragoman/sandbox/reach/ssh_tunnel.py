"""The route over an SSH tunnel: the user's own `ssh -W`, whose standard input and output are a socket."""

from __future__ import annotations

import asyncio
import os
import re
import select
import shutil
import socket
import subprocess
import sys
from collections import deque
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from dragoman.sandbox.sanitizing import harmless
from dragoman_api.errors import ConfigurationError

from .route import NAME, RouteError, authority, is_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .route import SshTunnel

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
_CHECK = "compare the fingerprint with the one that its operator gives you"
_ADDRESS = f"check the SSH host, and enter it: dragoman connections edit {NAME} --ssh USER@HOST"

_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "meets another host key than the known one",
        "{ssh}\nit shows both keys",
    ),
    ("Host key verification failed|host key is known for", "meets a host key that is not known", "{ssh}\n" + _CHECK),
    ("Permission denied|Too many authentication failures|No supported authentication", "is not let in", "{ssh} true"),
    (
        "administratively prohibited",
        "ends at a host that forbids forwarding",
        "ask its operator to allow it to {there}",
    ),
    (
        "open failed: connect failed|open failed: unknown",
        "cannot reach {there} from its other end",
        "check Host and Port",
    ),
    ("Could not resolve hostname", "begins at a name that cannot be resolved", _ADDRESS),
    ("Connection refused|Connection timed out|No route to host|unreachable", "cannot reach its own host", "{ssh} true"),
    ("no such identity|invalid format|UNPROTECTED PRIVATE KEY|error in libcrypto", "cannot use its key", "{ssh} true"),
)
LINES, LINE = 20, 300
"""Lines of an `ssh` process that are kept, and characters of each."""
GRACE_SECONDS = 1.0
"""Time for the last bytes after the driver's process has closed its end."""
_PIECE = 1 << 16
_DEBUG = (b"debug1: ", b"debug2: ", b"debug3: ")
# On Linux the process ends with this one, however this one ends; the signal survives the exec.
_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)
os.getppid() == int(sys.argv[1]) and os.execv(sys.argv[2], sys.argv[2:])
"""


def find_ssh() -> str:
    """Return the path of the `ssh` program. Raises ConfigurationError if tunnels cannot work here."""
    if (path := shutil.which("ssh")) is None:
        raise ConfigurationError("an SSH tunnel needs the program ssh, which is not found", hint="command -v ssh")
    return path


class TunnelConnector:
    """Connects to servers through one SSH host, with one `ssh` for each connection."""

    def __init__(self, tunnel: SshTunnel) -> None:
        """Prepare; nothing is started yet."""
        self._tunnel = tunnel
        self._running: set[SshProcess] = set()
        self._free = anyio.Semaphore(MOST)

    async def connect(self, host: str, port: int) -> socket.socket:
        """Return a socket on which everything goes to, and comes from, a host and port.

        Raises:
            RouteError: The tunnel cannot be opened.
        """
        if not is_host(host):
            raise RouteError(str(self._tunnel), "cannot be asked for such a host", hint="check Host")
        destination = authority(host, port)
        try:
            ssh = await anyio.to_thread.run_sync(find_ssh)
        except ConfigurationError as error:
            raise RouteError(str(self._tunnel), "cannot be started", words=error.message, hint=error.hint) from error
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
            reason, line, hint = explain(process.printed, there=destination, by_hand=self._tunnel.command)
            raise RouteError(str(self._tunnel), reason, words=line, hint=hint)
        limit = f"; {MOST} tunnels are open" if len(self._running) >= MOST else ""
        hint = f"{self._tunnel.command} true"
        raise RouteError(str(self._tunnel), f"did not open within {SECONDS:g} s{limit}", hint=hint)

    def _start(self, command: list[str], its: socket.socket, destination: str) -> SshProcess:
        def ended() -> None:
            self._running.discard(process)
            self._free.release()

        try:
            process = SshProcess(command, its, there=destination, environment=_environment(), on_end=ended)
        except OSError as error:
            its.close()
            self._free.release()
            raise RouteError(str(self._tunnel), "cannot be started", words=error.strerror or "") from error
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


def explain(lines: Iterable[str], *, there: str, by_hand: str) -> tuple[str, str, str]:
    """Return why a tunnel did not open, and what to do.

    Args:
        lines: What `ssh` printed.
        there: Host and port at the other end.
        by_hand: The command that connects to the SSH host by hand.

    Returns:
        A clause whose subject is the tunnel, the line of `ssh` that says so, and a hint.
    """
    printed = [*lines]
    for pattern, reason, hint in _KNOWN:
        for line in printed:
            if re.search(pattern, line):
                return reason.format(there=there), line, hint.replace("{ssh}", by_hand).replace("{there}", there)
    return "did not open", printed[-1] if printed else "", f"{by_hand} true"


class SshProcess:
    """A started `ssh -W`.

    Attributes:
        decided: Set once the other end has accepted, or the process has ended.
        accepted: Whether the other end has accepted.
        ended: Set once the process has ended and is reaped.
        printed: The last lines that it printed, without its debug messages, harmless and short.
    """

    def __init__(
        self, command: list[str], end: socket.socket, *, there: str, environment: dict[str, str],
        on_end: Callable[[], None],
    ) -> None:  # fmt: skip
        """Start it.

        Args:
            command: Its words, the path of the program first.
            end: Its standard input and output, closed here.
            there: The argument of ``-W``.
            environment: Its environment.
            on_end: Called once it has ended.

        Raises:
            OSError: It cannot be started.
        """
        self.decided, self.ended = anyio.Event(), anyio.Event()
        self.accepted = False
        self.printed: deque[str] = deque(maxlen=LINES)
        self._channel_requested, self._destination, self._line, self._on_end = False, there.encode(), b"", on_end
        self._loop = asyncio.get_running_loop()
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", "-B", "-c", _WITH_PARENT, str(os.getpid()), *command]
        self._process = subprocess.Popen(  # noqa: S603 - its words cannot be options
            command,
            stdin=end.fileno(),
            stdout=end.fileno(),
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        assert self._process.stderr is not None
        self._stderr = self._process.stderr
        os.set_blocking(self._stderr.fileno(), False)
        self._loop.add_reader(self._stderr.fileno(), self._read)
        self._watch_end()
        self._watch_hang_up(end)

    def end(self) -> None:
        """Ask it to end, if it runs."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """Kill it, if it runs."""
        with suppress(ProcessLookupError):
            self._process.kill()

    def _watch_end(self) -> None:
        if hasattr(os, "pidfd_open"):
            pidfd = os.pidfd_open(self._process.pid)

            def reap() -> None:
                self._loop.remove_reader(pidfd)
                os.close(pidfd)
                self._reaped()

            self._loop.add_reader(pidfd, reap)
        else:

            def wait() -> None:
                self._process.wait()
                with suppress(RuntimeError):  # the loop may be gone
                    self._loop.call_soon_threadsafe(self._reaped)

            Thread(target=wait, name=f"ssh {self._process.pid}", daemon=True).start()

    def _watch_hang_up(self, end: socket.socket) -> None:
        """End the process after the driver's process has closed its end, even if the server keeps the other one open.

        A second descriptor of the process's end tells this. It is closed with the process, or the driver would see no
        end of it. Systems without epoll leave it to ssh, which ends when the server does.
        """
        self._end = end
        self._hang_up: Any = None
        if (epoll := getattr(select, "epoll", None)) is None:
            end.close()
            return
        self._hang_up = epoll()
        self._hang_up.register(end.fileno(), 0)  # a hang-up is always reported, and nothing else is asked for
        self._loop.add_reader(self._hang_up.fileno(), self._hung_up)

    def _hung_up(self) -> None:
        self._loop.remove_reader(self._hang_up.fileno())
        self._loop.call_later(GRACE_SECONDS, self._end_if_running)

    def _end_if_running(self) -> None:
        if not self.ended.is_set():
            self.end()

    def _reaped(self) -> None:
        self._process.wait()
        self._read()  # what it printed before its end
        self._loop.remove_reader(self._stderr.fileno())
        self._stderr.close()
        if self._hang_up is not None:
            self._loop.remove_reader(self._hang_up.fileno())
            self._hang_up.close()
            self._end.close()
        self.ended.set()
        self.decided.set()
        self._on_end()

    def _read(self) -> None:
        try:
            data = os.read(self._stderr.fileno(), _PIECE)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._stderr.fileno())
            return
        *lines, self._line = (self._line + data).split(b"\n")
        self._line = self._line[:LINE]
        for line in lines:
            self._take(line.rstrip(b"\r"))

    def _take(self, line: bytes) -> None:
        if not line.startswith(_DEBUG):
            if text := " ".join(harmless(line[: 4 * LINE].decode("utf-8", "replace")).split())[:LINE]:
                self.printed.append(text)
        elif self.accepted:
            return
        # A host on the way (ProxyJump) prints the same about its own channel, before this one is asked for.
        elif b"channel_connect_stdio_fwd" in line and self._destination in line:
            self._channel_requested = True
        elif self._channel_requested and b": open confirm " in line:
            self.accepted = True
            self.decided.set()
