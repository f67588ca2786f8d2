"""A real child: it answers, it is confined, and what it was not given it does not have."""

from __future__ import annotations

import errno
import json
import os
import platform
import ssl
import sysconfig
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from dragoman.automations.hook_manager import Hooks
from dragoman.references import NamedFile, regular_file
from dragoman.sandbox import driver_process, launch, levels
from dragoman.sandbox.conversation import DriverProxy
from dragoman_api.cells import CutJson, Json
from dragoman_api.connections import Health, Server
from dragoman_api.errors import (
    DriverCrashedError,
    DriverFaultError,
    FilterNotSupportedError,
    QueryError,
    SandboxError,
    UnsupportedOperationError,
)
from dragoman_api.filters import Filter, FilterRequest
from dragoman_api.grid import CountRequest, PageRequest
from dragoman_worker.channel import Channel
from slow_cases import mostly_slow

if TYPE_CHECKING:
    from tests.worker.conftest import Workshop

    from dragoman.sandbox.driver_process import Worker

HOOKS = """
class Driver:
    @hookimpl
    async def connect(self, profile, http):
        self.profile, self.http = profile, http
        return Server(profile.host, profile.secrets.get("password"))

    @hookimpl
    async def ping(self):
        return Health(ok=False, reason="tired")

    @hookimpl
    async def list_objects(self, request):
        raise errors.AccessDeniedError("you may not list", hint="ask", details={"status": 403})

    @hookimpl
    async def compile_filter(self, request):
        raise errors.FilterNotSupportedError("no regex", details={"column": request.rows[0].column})

    @hookimpl
    async def count_rows(self, request):
        return 1 // 0

    @hookimpl
    async def fetch_page(self, request):
        columns = [Column(name=name, type="keyword") for name in ("a", "b", "c", "d")]
        row = [2**70, Decimal("1.10"), Json('["x"]'), CutJson('[1...')]
        return Page(columns=columns, cells=[row] * request.limit, keys=[RowKey("o", "1")] * request.limit)
"""


async def attempt(worker: Worker, name: str = "") -> Any:
    return json.loads((await worker.call("describe_object", name)).structure)


async def test_hooks_are_announced_and_answered(workshop: Workshop) -> None:
    async with workshop.worker(HOOKS, secrets={"password": "hunter2"}) as worker:
        assert worker.hooks == {"connect", "ping", "list_objects", "compile_filter", "count_rows", "fetch_page"}
        assert await worker.call("connect") == Server("db", "***"), "it has the one secret, and cannot tell it"
        assert await worker.call("ping") == Health(ok=False, reason="tired")


async def test_a_page_arrives_with_big_numbers_decimals_and_json_as_they_were(workshop: Workshop) -> None:
    async with workshop.worker(HOOKS) as worker:
        page = await worker.call("fetch_page", PageRequest(object="o", limit=10_000))
    assert len(page.cells) == len(page.keys) == 10_000
    assert page.cells[9_999] == [2**70, Decimal("1.10"), '["x"]', "[1..."]
    assert [type(cell) for cell in page.cells[0]] == [int, Decimal, Json, CutJson]


async def test_errors_of_a_driver_keep_class_hint_and_details(workshop: Workshop) -> None:
    async with workshop.worker(HOOKS) as worker:
        with pytest.raises(FilterNotSupportedError, match="no regex") as caught:
            await worker.call("compile_filter", FilterRequest(object="o", rows=[Filter("x", "=", 1)]))
        assert caught.value.details == {"column": "x"}
        with pytest.raises(DriverFaultError, match=r"count_rows\b.*\bZeroDivisionError"):
            await worker.call("count_rows", CountRequest(object="o"))
        assert await worker.call("ping"), "a fault of one call is not the end"
    assert any("ZeroDivisionError" in line for line in workshop.lines), "the traceback is in the log"


FAULTS = {
    "in the hook": ("return {}[name]", "KeyError: 'planets'", "describe_object"),
    "in a function that it calls": ("return deep(name)", "ValueError: 'planets'", "deep"),
    "in one of its tasks": (
        "async with anyio.create_task_group() as tasks:\n            tasks.start_soon(later, name)",
        "ValueError: 'planets'",
        "deep",
    ),
    "outside of the driver, by its argument": (
        "return json.loads(name)",
        "JSONDecodeError: Expecting",
        "describe_object",
    ),
}


@pytest.mark.parametrize(("statement", "reason", "function"), FAULTS.values(), ids=FAULTS)
async def test_a_fault_of_a_driver_says_its_hook_file_line_and_function(
    workshop: Workshop, statement: str, reason: str, function: str
) -> None:
    source = f"""
import anyio

def deep(name):
    raise ValueError(repr(name))

async def later(name):
    deep(name)

class Driver:
    @hookimpl
    async def describe_object(self, name):
        {statement}
"""
    async with workshop.worker(source) as worker:
        with pytest.raises(DriverFaultError) as caught:
            await worker.call("describe_object", "planets")
    message, place = caught.value.message, str(caught.value.details["at"])
    assert message.startswith(f"describe_object failed inside the driver: {reason}")
    assert f" at {place} in " in message
    assert message.endswith(function)
    file, _, number = place.partition(":")
    line = (workshop.folder / "tree" / file).read_text().splitlines()[int(number) - 1]
    assert ("raise ValueError" if function == "deep" else statement) in line


async def test_a_driver_that_fails_while_it_is_imported_says_in_which_line(workshop: Workshop) -> None:
    with pytest.raises(
        DriverFaultError, match=r"cannot be loaded: ZeroDivisionError.* at tiny_driver\.py:\d+ in <module>"
    ):
        async with workshop.worker("1 // 0\n"):
            pass


async def test_what_a_driver_prints_and_logs_is_in_its_log(workshop: Workshop) -> None:
    source = """
import logging

class Driver:
    @hookimpl
    async def ping(self):
        print("printed")
        log = logging.getLogger("tiny_driver")
        log.debug("too much")
        log.info("asked for %s", "planets")
        log.warning("slow")
        try:
            {}["x"]
        except KeyError as error:
            raise errors.QueryError("the answer has no x") from error
"""
    async with workshop.worker(source) as worker:
        with pytest.raises(QueryError, match="has no x"):
            await worker.call("ping")
    assert workshop.lines[:3] == ["printed", "INFO tiny_driver: asked for planets", "WARNING tiny_driver: slow"]
    assert "KeyError: 'x'" in workshop.lines, "an error that comes from a fault has its traceback there, too"


async def test_the_proxy_offers_the_announced_hooks_and_no_others(workshop: Workshop) -> None:
    async with workshop.worker(HOOKS) as worker:
        hooks = Hooks([], emit=print, driver=DriverProxy(worker))
        assert hooks.offers("fetch_page")
        assert not hooks.offers("export_rows")
        assert await hooks.call("ping", deadline=5) == Health(ok=False, reason="tired")
        assert await hooks.call("connect", deadline=5) == Server("db")
        with pytest.raises(UnsupportedOperationError):
            await hooks.call("fetch_cell", None, deadline=5)
        with pytest.raises(UnsupportedOperationError):
            await worker.call("fetch_cell", None)


async def test_the_self_test_proves_the_full_level(workshop: Workshop, full_level: None) -> None:
    async with workshop.worker(HOOKS, policy="require") as worker:
        report = worker.report
    assert str(report) == "full"
    states = {name: permission.state for name, permission in report.permissions.items()}
    enforced = ("fs_read", "fs_write", "network", "exec", "process", "signals", "host_memory")
    assert states == {**dict.fromkeys(enforced, "enforced"), "fs_metadata": "not_enforced", "memory": "limited",
                      "cpu": "limited"}  # fmt: skip
    assert report.landlock_abi >= 1


# Where nothing is installed beside the standard library the host's own packages have to do.
BESIDE = next(Path(sysconfig.get_path("stdlib"), "site-packages").glob("*/*.py"), Path(pytest.__file__))

ATTEMPTS = {
    "read the password file": "open('/etc/passwd')",
    "read the host's environment": "open(f'/proc/{os.getppid()}/environ')",
    "read its own environment": "open('/proc/self/environ')",
    "list the home": f"os.listdir({str(Path.home())!r})",
    "read the host's packages": f"open({pytest.__file__!r})",
    "read the packages beside the standard library": f"open({str(BESIDE)!r})",
    "write a file": "open('/dev/shm/x', 'w')",
    "empty a file it may read": "os.open(__file__, os.O_RDONLY | os.O_TRUNC)",
    "write beside itself": "open(__file__ + '.x', 'w')",
    "run a program": "os.execv('/bin/true', ['true'])",
    "fork": "os.fork()",
    "signal its host": "os.kill(os.getppid(), 0)",
    "signal everybody": "os.kill(-1, 0)",
    "open a datagram socket": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "open a unix socket": "socket.socket(socket.AF_UNIX)",
    "connect by itself": "socket.create_connection(('127.0.0.1', 9))",
    "listen": "socket.socket().bind(('127.0.0.1', 0))",
    "raise its limits": "__import__('resource').setrlimit(7, (4096, 4096))",
}


async def test_what_a_driver_must_not_do_is_refused(workshop: Workshop, full_level: None) -> None:
    body = """
    try:
        eval(json.loads(name))
    except (OSError, ValueError) as error:
        return [type(error).__name__, getattr(error, "errno", None)]
    return "done"
    """
    refusals = (errno.EACCES, errno.EPERM, errno.ENOSYS, None)
    async with workshop.attempting(body) as worker:
        results = {what: await attempt(worker, json.dumps(code)) for what, code in ATTEMPTS.items()}
    assert {what: result for what, result in results.items() if result == "done" or result[1] not in refusals} == {}


async def test_without_a_sandbox_the_same_attempts_succeed(workshop: Workshop) -> None:
    """The control: unreachable targets would prove nothing."""
    body = """
    try:
        eval(json.loads(name))
    except OSError as error:
        return error.errno
    return "done"
    """
    reads = [what for what in ATTEMPTS if what.startswith(("read", "list the", "open", "signal its"))]
    if os.getuid():  # what is not dumpable hides its environment from an ordinary user even so
        reads = [what for what in reads if not what.endswith("environment")]
    async with workshop.attempting(body, policy="off") as worker:
        assert str(worker.report) == "process: switched off"
        results = {what: await attempt(worker, json.dumps(ATTEMPTS[what])) for what in reads}
    assert set(results.values()) == {"done"}, results


async def test_the_environment_arguments_and_log_hold_no_secret(workshop: Workshop) -> None:
    body = """
    print("the key is", name)
    return [dict(os.environ), sys.argv, sorted(os.listdir("/proc/self/fd")) if 0 else None]
    """
    secret = "s3cr3t-of-this-connection"
    async with workshop.attempting(body, secrets={"password": secret}) as worker:
        environment, arguments, _ = await attempt(worker, secret)
        pid = worker._child.process.pid
        assert secret not in (await anyio.Path(f"/proc/{pid}/cmdline").read_text())
        with pytest.raises(DriverFaultError) as caught:
            await worker.call("describe_object", 5)
    assert set(environment) <= {"LANG", "LC_CTYPE"}
    assert secret not in "".join(arguments)
    assert "the key is ***" in workshop.lines
    assert secret not in "".join(workshop.lines) + str(caught.value)


async def test_an_error_that_carries_the_secret_or_terminal_codes_arrives_without(workshop: Workshop) -> None:
    body = (
        "raise errors.QueryError('\\x1b[31mtoken ' + name, hint=name, code='a' + name, details={'token' + name: name})"
    )
    secret = "s3cr3t-of-this-connection"
    async with workshop.attempting(body, secrets={"password": secret}) as worker:
        with pytest.raises(Exception, match="token") as caught:
            await worker.call("describe_object", secret)
    assert caught.value.to_dict() == {
        "code": "query-failed", "message": "token ***", "hint": "***", "details": {"token***": "***"},
        "hint_from": "driver",
    }  # fmt: skip


async def test_a_driver_sees_the_standard_library_the_host_imports_and_itself(workshop: Workshop) -> None:
    workshop.write("VALUE = 1", name="own_helper")
    body = """
    import importlib
    try:
        return importlib.import_module(name).__name__
    except ImportError as error:
        return "refused"
    """
    admitted = ("decimal", "sqlite3", "email.mime.text", "aiohttp", "msgspec", "pluggy", "anyio", "yarl", "own_helper")
    refused = ("dragoman", "dragoman_registry", "pydantic", "pytest", "click", "packaging", "dragoman_elasticsearch")
    async with workshop.attempting(body) as worker:
        assert [await attempt(worker, name) for name in admitted] == list(admitted)
        assert [await attempt(worker, name) for name in refused] == ["refused"] * len(refused)


async def test_a_drivers_files_shadow_neither_the_standard_library_nor_the_host_imports(workshop: Workshop) -> None:
    for name in ("http", "colorsys", "aiohttp", "idna", "typing_extensions"):
        workshop.write("raise SystemExit('shadowed')", name=name)
    body = """
    import http.client, colorsys, aiohttp, idna, typing_extensions
    return [module.__file__ for module in (http, colorsys, aiohttp, idna, typing_extensions)]
    """
    async with workshop.attempting(body) as worker:
        files = await attempt(worker)
    assert not any(str(workshop.folder) in file for file in files)


async def test_the_systems_certificates_are_there_when_they_are_needed(workshop: Workshop, full_level: None) -> None:
    if not ssl.create_default_context().cert_store_stats()["x509_ca"]:
        pytest.skip("NOT SHOWN HERE: this machine trusts nobody")
    body = """
    import ssl, aiohttp.connector
    context = aiohttp.connector._SSL_CONTEXT_VERIFIED
    context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="x")
    made = ssl.create_default_context()
    return [[c.verify_mode, c.check_hostname, c.cert_store_stats()["x509_ca"] > 0] for c in (context, made)]
    """
    async with workshop.attempting(body) as worker:
        assert await attempt(worker) == [[ssl.CERT_REQUIRED, True, True]] * 2


@pytest.mark.parametrize(
    ("source", "reason"),
    mostly_slow(
        [
            ("raise RuntimeError('not today')", "RuntimeError: not today"),
            ("import pydantic", "No module named 'pydantic'"),
            ("x = 1", "has no attribute 'Driver'"),
            ("class Driver:\n  @hookimpl\n  def ping(self): ...", "ping must be async def"),
            ("class Driver:\n  @hookimpl\n  async def pong(self): ...", "pong"),
            ("raise SystemExit(0)", "SystemExit"),
        ],
        fast=[("import pydantic", "No module named 'pydantic'"), ("raise SystemExit(0)", "SystemExit")],
    ),
)
async def test_a_driver_that_cannot_be_loaded_says_why(workshop: Workshop, source: str, reason: str) -> None:
    with pytest.raises(Exception, match=r"driver|Driver") as caught:
        async with workshop.worker(source):
            pass
    assert reason in caught.value.message


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is about glibc's malloc")
async def test_a_read_takes_no_new_memory_from_the_kernel(workshop: Workshop) -> None:
    code = """
        class Driver:
            @hookimpl
            async def count_rows(self, request):
                import os
                from resource import RUSAGE_SELF, getrusage
                reading, writing = os.pipe()
                before = getrusage(RUSAGE_SELF).ru_minflt
                for _ in range(1_000):
                    os.write(writing, b"x")
                    os.read(reading, 256 * 2**10)
                return getrusage(RUSAGE_SELF).ru_minflt - before
    """
    async with workshop.worker(dedent(code)) as worker:
        faults = await worker.call("count_rows", CountRequest(object="o"))
    assert faults < 100, "each takes a page or more"


async def test_a_crash_is_reported_with_its_status_and_last_lines(workshop: Workshop) -> None:
    body = "print('about to go'); sys.stderr.write('\\x1b[1mbye'); sys.stderr.flush(); os._exit(7)"
    async with workshop.attempting(body) as worker:
        with pytest.raises(DriverCrashedError) as caught:
            await worker.call("describe_object", "x")
        assert caught.value.details["status"] == "exit status 7"
        assert "about to go" in caught.value.message
        assert "\x1b" not in caught.value.message
        with pytest.raises(DriverCrashedError):
            await worker.call("ping")
        assert worker.ended.is_set()


async def test_a_crash_by_a_signal_names_the_signal(workshop: Workshop) -> None:
    async with workshop.attempting("os.kill(os.getpid(), 11)") as worker:
        with pytest.raises(DriverCrashedError, match="SIGSEGV"):
            await worker.call("describe_object", "x")


async def test_a_crash_while_starting_is_reported_too(workshop: Workshop) -> None:
    with pytest.raises(DriverCrashedError) as caught:
        async with workshop.worker("os._exit(9)"):
            pass
    assert caught.value.details["status"] == "exit status 9"


async def named(path: Path) -> NamedFile:
    return await anyio.to_thread.run_sync(lambda: regular_file(str(path), where="x"))


async def test_an_extra_file_is_readable_where_it_was_granted(
    workshop: Workshop, tmp_path: Path, full_level: None
) -> None:
    certificate, other = tmp_path / "client.pem", tmp_path / "other.pem"
    certificate.write_text("pem")
    other.write_text("pem")
    body = "return open(name).read()"
    async with workshop.attempting(body, files=(await named(certificate),)) as worker:
        assert await attempt(worker, str(certificate)) == "pem"
        with pytest.raises(DriverFaultError, match="PermissionError"):
            await attempt(worker, str(other))


@pytest.mark.parametrize("by", mostly_slow(["a folder", "another file", "a link"], fast=["a link"]))
async def test_a_file_that_is_swapped_while_its_driver_starts_is_not_granted(
    workshop: Workshop, tmp_path: Path, monkeypatch: Any, full_level: None, by: str
) -> None:
    certificate, private = tmp_path / "client.pem", tmp_path / "id_rsa"
    certificate.write_text("pem")
    private.write_text("PRIVATE")
    configure = driver_process.configure

    def configured_then_swapped(*given: Any) -> Any:
        """Swap at the worst moment: after the host looked, and before the child does."""
        config = configure(*given)
        certificate.rename(tmp_path / "old.pem")
        if by == "a folder":
            certificate.mkdir()
            private.rename(certificate / "id_rsa")
        else:
            private.rename(certificate) if by == "another file" else certificate.symlink_to(private)
        return config

    monkeypatch.setattr(driver_process, "configure", configured_then_swapped)
    async with workshop.attempting("return open(name).read()", files=(await named(certificate),)) as worker:
        for path in (certificate, certificate / "id_rsa", private):
            with pytest.raises(DriverFaultError, match=r"PermissionError|NotADirectory|FileNotFound|IsADirectory"):
                await attempt(worker, str(path))


async def test_memory_is_bounded(workshop: Workshop) -> None:
    async with workshop.attempting("return len(bytearray(1 << 30))", memory=800 << 20) as worker:
        with pytest.raises(DriverFaultError, match="MemoryError"):
            await attempt(worker)
        assert await worker.call("ping") == Health(ok=True)


async def test_a_start_that_is_refused_leaves_nothing_behind(workshop: Workshop, monkeypatch: Any) -> None:
    sent: list[str] = []
    send = Channel.send
    monkeypatch.setattr(Channel, "send", lambda self, *all: (sent.extend(map(repr, all)), send(self, *all))[1])
    monkeypatch.setattr(levels, "_unconfirmed", lambda *_: "the kernel does not confirm Seccomp")
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(SandboxError, match="Seccomp"):
        async with workshop.worker(
            "print('loaded')\nclass Driver: ...", policy="require", secrets={"password": "hunter2"}
        ):
            pass
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    assert workshop.lines == [], "no driver code ran"
    assert [message.partition("(")[0] for message in sent] == ["Config"], "and no secret was sent"


async def test_the_secret_is_sent_once_the_kernels_own_word_was_read(workshop: Workshop, monkeypatch: Any) -> None:
    steps: list[str] = []
    send, read = Channel.send, levels.read_status

    def note_send(self: Channel, *messages: Any) -> None:
        steps.extend(type(message).__name__ for message in messages)
        send(self, *messages)

    def note_read(pid: int) -> str | None:
        steps.append("status")
        return read(pid)

    monkeypatch.setattr(Channel, "send", note_send)
    monkeypatch.setattr(levels, "read_status", note_read)
    async with workshop.worker(HOOKS, secrets={"password": "hunter2"}):
        pass
    assert steps[:4] == ["Config", "status", "status", "Secret"]


@pytest.mark.parametrize(
    ("layer", "level"),
    mostly_slow(
        [("landlock", "partial"), ("seccomp", "process"), ("capabilities", "partial"), ("limits", "partial")],
        fast=[("landlock", "partial"), ("seccomp", "process")],
    ),
)
async def test_a_layer_that_is_not_applied_is_noticed(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, full_level: None, layer: str, level: str
) -> None:
    monkeypatch.setattr(launch, "LAYERS", tuple(name for name in launch.LAYERS if name != layer))
    if layer == "capabilities" and os.geteuid() != 0:
        pytest.skip("an ordinary user has none to drop")
    forked = layer != "capabilities"  # which a fork server has dropped before
    async with workshop.attempting("return 1", trusted=True, forked=forked) as worker:
        assert worker.report.level == level
    with pytest.raises(SandboxError) as caught:
        async with workshop.attempting("return 1", policy="require", forked=forked):
            pass
    assert caught.value.code == "sandbox-insufficient"


@pytest.mark.parametrize(
    ("code", "hint"),
    mostly_slow(
        [
            ("__import__('tempfile').gettempdir()", "memory"),
            ("__import__('getpass').getuser()", "profile"),
            ("__import__('pathlib').Path.home()", "fs:read"),
            ("__import__('ctypes.util').util.find_library('c')", "memory"),
            ("open('/proc/self/status')", "its own files"),
            ("__import__('subprocess').run(['true'])", "its own files"),
            ("__import__('socket').getaddrinfo('localhost', 80)", "asyncio"),
        ],
        fast=[("__import__('pathlib').Path.home()", "fs:read"), ("open('/proc/self/status')", "its own files")],
    ),
)
async def test_what_libraries_miss_in_the_sandbox_is_told_with_what_to_use_instead(
    workshop: Workshop, full_level: None, code: str, hint: str
) -> None:
    async with workshop.attempting("eval(name)") as worker:
        with pytest.raises(DriverFaultError) as caught:
            await attempt(worker, code)
    assert hint in caught.value.hint


@pytest.mark.slow
async def test_an_error_keeps_nothing_of_the_call_that_met_it(workshop: Workshop) -> None:
    source = """
    class Driver:
        @hookimpl
        async def describe_object(self, name):
            answer = bytearray(b"x") * (64 << 20)
            try:
                json.loads("{")
            except ValueError as fault:
                error = errors.QueryError(name)  # a cycle: the frame holds the error, and its traceback the frame
                raise error from fault
    """
    async with workshop.worker(source) as worker:
        for _ in range(8):
            with pytest.raises(QueryError):
                await worker.call("describe_object", "x", deadline=20)
        status = Path(f"/proc/{worker._child.process.pid}/status").read_text(encoding="ascii")
        [peak] = [int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM")]
    assert peak < 300
