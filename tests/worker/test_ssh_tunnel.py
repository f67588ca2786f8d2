"""An SSH tunnel on the way: a real sshd and a real ssh, what they refuse, and that nothing is left of them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.worker.test_broker import CLIENT, ask, server

from dragoman.references import Reference
from dragoman.sandbox.reach import ssh_tunnel
from dragoman.sandbox.reach.route import RouteError, SshTunnel, parse_ssh, read_route
from dragoman.sandbox.reach.ssh_tunnel import TunnelConnector, explain
from dragoman_api.columns import ObjectsRequest
from dragoman_api.errors import ConfigurationError
from fakes.certificates import make_certificates
from ssh_server import serving, user

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from anyio.abc import SocketStream
    from tests.worker.conftest import Workshop

    from ssh_server import SshServer


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """Run one sshd for the module."""
    with serving(tmp_path_factory.mktemp("sshd")) as found:
        yield found


@pytest.fixture
def sshd(running: SshServer, monkeypatch: pytest.MonkeyPatch) -> SshServer:
    """Put the `ssh` of this server first, and let it know the host key."""
    monkeypatch.setenv("PATH", f"{running.tools}:{os.environ['PATH']}")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    running.know()
    return running


def tunnel(sshd: SshServer, **changes: Any) -> SshTunnel:
    about = {"host": "127.0.0.1", "user": user(), "port": sshd.port, "identity": Reference("path", str(sshd.key))}
    return SshTunnel(**{**about, **changes})


@asynccontextmanager
async def way(saved: SshTunnel) -> AsyncIterator[TunnelConnector]:
    made = TunnelConnector(saved)
    try:
        yield made
    finally:
        await made.close()
        assert not made._running


async def failure(saved: SshTunnel, port: int = 9) -> RouteError:
    async with way(saved) as made:
        with pytest.raises(RouteError) as caught:
            (await made.connect("127.0.0.1", port)).close()
    return caught.value


@asynccontextmanager
async def listening(*, echo: bool) -> AsyncIterator[int]:
    """Send back what comes until the other side ends; or never say or do anything, not even end."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            if not echo:
                await anyio.sleep_forever()
            async for data in stream:
                await stream.send(data)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


def processes() -> set[int]:
    """Return the processes of this user whose command is an ``ssh -W``."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"-W" in words and b"ClearAllForwardings=yes" in words:
                found.add(int(folder.name))
    return found


async def gone(seconds: float = 10) -> None:
    with anyio.fail_after(seconds):
        while processes():
            await anyio.sleep(0.05)


@pytest.mark.slow
async def test_a_server_is_reached_through_a_tunnel_and_the_process_ends_with_the_socket(sshd: SshServer) -> None:
    async with listening(echo=True) as port, way(tunnel(sshd)) as made:
        sock = await made.connect("127.0.0.1", port)
        with sock:
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(sock, b"ping")
            assert await loop.sock_recv(sock, 10) == b"ping"
            assert len(processes()) == 1
        await gone()


@pytest.mark.slow
async def test_a_tunnel_ends_with_its_socket_even_if_the_server_keeps_its_own_end_open(sshd: SshServer) -> None:
    async with listening(echo=False) as port, way(tunnel(sshd)) as made:
        (await made.connect("127.0.0.1", port)).close()
        await gone()


async def test_the_end_of_the_process_is_the_end_of_the_socket(sshd: SshServer) -> None:
    async with listening(echo=True) as port, way(tunnel(sshd)) as made:
        with await made.connect("127.0.0.1", port) as sock:
            [pid] = processes()
            os.kill(pid, signal.SIGTERM)
            with anyio.fail_after(10):
                assert await asyncio.get_running_loop().sock_recv(sock, 10) == b""


async def test_no_process_outlives_the_host(sshd: SshServer) -> None:
    """Not even if the server keeps its end of the connection open."""
    async with listening(echo=False) as port:
        source = f"""
        import asyncio, sys
        sys.path[:0] = {sys.path!r}
        from dragoman.sandbox.reach.ssh_tunnel import TunnelConnector
        from dragoman.sandbox.reach.route import SshTunnel
        from dragoman.references import Reference

        async def main():
            key = Reference("path", {str(sshd.key)!r})
            saved = SshTunnel(host="127.0.0.1", user={user()!r}, port={sshd.port}, identity=key)
            sock = await TunnelConnector(saved).connect("127.0.0.1", {port})
            print("open", flush=True)
            await asyncio.sleep(60)

        asyncio.run(main())
        """
        host = subprocess.Popen([sys.executable, "-c", textwrap.dedent(source)], stdout=subprocess.PIPE)
        assert host.stdout is not None
        assert await anyio.to_thread.run_sync(host.stdout.readline) == b"open\n"
        assert processes()
        host.kill()
        host.wait()
        host.stdout.close()
        await gone()


async def test_an_unknown_host_key_is_refused_and_the_command_shows_it(sshd: SshServer) -> None:
    sshd.forget()
    met = await failure(tunnel(sshd))
    assert "meets a host key that is not known" in met.reason
    assert met.hint.splitlines()[0] == f"ssh -i {sshd.key} -p {sshd.port} {user()}@127.0.0.1"
    assert "127.0.0.1" not in str(met.strerror), "the driver's process learns the SSH host"


async def test_another_host_key_is_refused(sshd: SshServer) -> None:
    sshd.know(key="other")
    assert "meets another host key than the known one" in (await failure(tunnel(sshd))).reason


async def test_a_key_that_may_not_sign_in_is_told_with_the_servers_words(sshd: SshServer) -> None:
    met = await failure(tunnel(sshd, identity=Reference("path", str(sshd.folder / "stranger"))))
    assert "is not let in: " in met.reason
    assert "Permission denied" in met.reason
    assert met.hint.endswith(" true")


async def test_a_closed_port_at_either_end_says_which_end(sshd: SshServer) -> None:
    met = await failure(tunnel(sshd), port=1)
    assert "cannot reach 127.0.0.1:1 from its other end" in met.reason
    met = await failure(tunnel(sshd, port=1))
    assert "cannot reach its own host" in met.reason
    assert "Connection refused" in met.reason


async def test_a_host_that_forbids_forwarding_is_told(
    tmp_path: Path, sshd: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path, "AllowTcpForwarding no") as strict:
        monkeypatch.setenv("PATH", f"{strict.tools}:{os.environ['PATH']}")
        assert "ends at a host that forbids forwarding" in (await failure(tunnel(strict))).reason


@pytest.mark.slow
async def test_a_tunnel_that_does_not_open_is_given_up(monkeypatch: pytest.MonkeyPatch, sshd: SshServer) -> None:
    monkeypatch.setattr(ssh_tunnel, "SECONDS", 0.5)
    async with listening(echo=False) as port:
        met = await failure(tunnel(sshd, port=port))
    assert met.reason.endswith("did not open within 0.5 s")
    await gone()


@pytest.mark.slow
async def test_there_are_so_many_tunnels_at_once_and_no_more(monkeypatch: pytest.MonkeyPatch, sshd: SshServer) -> None:
    monkeypatch.setattr(ssh_tunnel, "MOST", 1)
    async with listening(echo=True) as port, way(tunnel(sshd)) as made:
        first = await made.connect("127.0.0.1", port)
        monkeypatch.setattr(ssh_tunnel, "SECONDS", 0.5)
        with pytest.raises(RouteError, match="did not open") as caught:
            await made.connect("127.0.0.1", port)
        assert "1 tunnels are open" in caught.value.reason
        monkeypatch.setattr(ssh_tunnel, "SECONDS", 20)
        first.close()
        (await made.connect("127.0.0.1", port)).close()


@pytest.mark.slow
async def test_a_driver_works_through_a_tunnel_and_tls_checks_the_servers_own_name(
    workshop: Workshop, sshd: SshServer, tmp_path: Path
) -> None:
    made = make_certificates(tmp_path, "localhost")
    tls = {"ssl_mode": "verify-identity", "ca_pem": made.ca.read_text()}
    async with (
        server(tls=made.server_context()) as port,
        workshop.worker(
            CLIENT, approved=(("localhost", port),), route=tunnel(sshd), host="localhost", port=port, tls=tls
        ) as worker,
    ):
        await worker.call("connect")
        [page] = await worker.call("list_objects", ObjectsRequest())
        assert (page.name, page.rows) == ("hello", 200)
    await gone(5)


async def test_a_driver_reaches_its_server_alone_through_a_tunnel(workshop: Workshop, sshd: SshServer) -> None:
    async with server() as port, server() as other:
        own = (("127.0.0.1", port),)
        async with workshop.worker(CLIENT, approved=own, route=tunnel(sshd), host="127.0.0.1", port=port) as worker:
            assert (await ask(worker, "127.0.0.1", port))[0] == "pong"
            assert (await ask(worker, "127.0.0.1", other))[0] == "PermissionError"
            await worker.call("connect")
            [page] = await worker.call("list_objects", ObjectsRequest())
            assert page.name == "hello"
    assert workshop.denied == [("127.0.0.1", other)]


# as it is saved, and what ssh is given --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "-oProxyCommand=id", "user@-oProxyCommand=id", "-l@host", "a b", "host;id", "$(id)", "`id`", "%h", "user@ho%h",
        "a|b@host", "@host", "host:0", "host:99999", "host:x", "", "user@", "ssh://host", "host/path", "a@b@c", "h\nx",
        "fe80::1%eth0", "user name@host", "ho\u017ft",
    ],
)  # fmt: skip
def test_what_ssh_could_read_as_something_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_ssh(text)


@pytest.mark.parametrize("path", ["relative", "-oX", "/a%d", "/a$HOME", "/a\nb", ""])
def test_a_file_of_a_key_that_ssh_would_expand_is_refused(path: str) -> None:
    with pytest.raises(ConfigurationError):
        SshTunnel(host="h", identity=Reference("path", path))
    with pytest.raises(ConfigurationError):
        SshTunnel(host="h", identity=Reference("env", "/x"))


def test_an_address_reads_as_it_was_entered() -> None:
    for text in ("bastion", "ops@bastion.example:2222", "ops@[2001:db8::1]:22", "192.0.2.1"):
        assert parse_ssh(text).address == text
    assert read_route({"ssh": "ops@h", "identity": {"path": "/k"}}) == parse_ssh(
        "ops@h", identity=Reference("path", "/k")
    )


def test_ssh_asks_nothing_forwards_nothing_else_and_checks_the_host_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = TunnelConnector(SshTunnel(host="h", user="u", port=7, identity=Reference("path", "/k")))._words("es:9200")
    options = [words[at + 1] for at, word in enumerate(words) if word == "-o"]
    assert {
        "BatchMode=yes", "StrictHostKeyChecking=yes", "ExitOnForwardFailure=yes", "ClearAllForwardings=yes",
        "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no", "ControlMaster=no", "ControlPath=none",
        "IdentitiesOnly=yes",
    } <= set(options)  # fmt: skip
    assert words[-10:] == ["-i", "/k", "-l", "u", "-p", "7", "-W", "es:9200", "--", "h"]


def test_the_environment_of_ssh_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSH_AUTH_SOCK", "SECRET", "LD_PRELOAD", "SSH_ASKPASS", "DISPLAY"):
        monkeypatch.setenv(name, "x")
    kept = ssh_tunnel._environment()
    assert kept["SSH_AUTH_SOCK"] == "x"
    assert not {"SECRET", "LD_PRELOAD", "SSH_ASKPASS", "DISPLAY"} & kept.keys()


async def test_a_machine_without_ssh_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigurationError, match="the program ssh, which is not found"):
        ssh_tunnel.find_ssh()
    assert "the program ssh, which is not found" in (await failure(SshTunnel(host="h"))).reason


def test_words_of_ssh_that_are_not_known_are_told_as_they_are() -> None:
    assert explain(["a", "new"], there="es:1", by_hand="ssh h") == ("did not open", "new", "ssh h true")
    assert explain([], there="es:1", by_hand="ssh h") == ("did not open", "", "ssh h true")
