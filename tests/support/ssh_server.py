"""A real sshd on the loopback, and an `ssh` that reads a configuration of its own instead of the user's."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUIRE = "REQUIRE_SSHD"
"""The variable that makes a missing sshd a failure."""


def find_sshd() -> str:
    """Return the path of sshd; skip loudly without one, or fail where it is required."""
    if os.getuid() != 0 and pwd.getpwuid(os.getuid()).pw_shell.endswith(("nologin", "false")):
        pytest.skip("NOT SHOWN HERE, this user cannot log in, so no sshd lets it in")
    found = os.environ.get("DRAGOMAN_SSHD") or shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found and shutil.which("ssh") and shutil.which("ssh-keygen"):
        return found
    if os.environ.get(REQUIRE):
        pytest.fail(f"{REQUIRE} is set, and sshd, ssh or ssh-keygen is missing: install openssh-server")
    pytest.skip("NOT SHOWN HERE, no sshd on this machine: install openssh-server, or set DRAGOMAN_SSHD")


@dataclass
class SshServer:
    """A running sshd.

    Attributes:
        folder: Keys, configurations and logs.
        port: Its port.
        process: The listening process.
    """

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def key(self) -> Path:
        """The private key that may sign in."""
        return self.folder / "id"

    @property
    def tools(self) -> Path:
        """A folder for PATH whose `ssh` reads this server's configuration and known hosts alone."""
        return self.folder / "bin"

    def know(self, *, key: str = "host") -> None:
        """Write the host key into the known hosts, or another one in its place."""
        public = (self.folder / f"{key}.pub").read_text()
        (self.folder / "known").write_text(f"[127.0.0.1]:{self.port} {public}")

    def forget(self) -> None:
        """Empty the known hosts."""
        (self.folder / "known").write_text("")


@contextmanager
def serving(folder: Path, *settings: str) -> Iterator[SshServer]:
    """Run an sshd in a folder, with further lines of its configuration."""
    sshd = find_sshd()
    for name in ("host", "other", "id", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "keys").write_text((folder / "id.pub").read_text())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    lines = [
        f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {folder / 'host'}",
        f"AuthorizedKeysFile {folder / 'keys'}",
        "StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
        f"PidFile {folder / 'pid'}", "PermitRootLogin yes", "MaxStartups 100", *settings,
    ]  # fmt: skip
    (folder / "sshd_config").write_text("\n".join([*lines, ""]))
    (folder / "config").write_text(f"UserKnownHostsFile {folder / 'known'}\nGlobalKnownHostsFile /dev/null\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder / "config"} "$@"\n')
    (folder / "bin" / "ssh").chmod(0o755)
    if os.getuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # noqa: PTH103 - sshd wants it as root
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([sshd, "-D", "-e", "-f", folder / "sshd_config"], stdout=log, stderr=log)
    server = SshServer(folder, port, process)
    try:
        _wait(server)
        server.know()
        yield server
    finally:
        process.terminate()
        process.wait(10)


def _wait(server: SshServer) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until and server.process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 1):
            return
        time.sleep(0.05)
    pytest.fail(f"sshd does not listen: {(server.folder / 'log').read_text()[-2000:]}")


def user() -> str:
    """Return the user that signs in."""
    return getpass.getuser()
