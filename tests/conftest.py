"""What every test gets: one event loop backend, and a home of its own."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import time
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

import bundled_drivers
import collected_late
import tables
from blocking_calls import Detector
from tables import pytest_addoption, pytest_generate_tests, pytest_pyfunc_call  # noqa: F401 - hooks
from thorough import THOROUGH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from xdist.scheduler import LoadFileScheduling
    from xdist.workermanage import WorkerController

    from command_line import Machine
    from compiled_trees import CompiledTrees
    from dragoman.sandbox.fork_server import ThreadForks


sys.path += map(str, bundled_drivers.PACKAGES.values())

# Shells have background jobs ignore SIGINT, and every process that a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Collecting tests makes little that is garbage, and much that lasts: none of it is looked through again and again.
gc.disable()

# Generated examples are as good on a busy machine; pytest's own time limit ends a test that hangs.
settings.register_profile("many", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", settings.get_profile("many"), max_examples=20)

NUMBERS = count()
"""Number the homes of tests that have no folder of their own."""


UNTIL = float(os.environ.get("TESTS_UNTIL", "inf"))
"""When a run begins no further test, in seconds since 1970: continuous integration ends whatever takes too long."""

LATE = "not run, since this machine is slow"

MEMORY = "/dev/shm"
"""Where Linux keeps files in memory."""

ROOM = 4 << 30
"""Much more than all folders of a run take."""


def pytest_configure(config: pytest.Config) -> None:
    """Try few examples of each property, and many in a thorough run.

    Folders of tests are in memory where there is room: writing to a disk took a tenth of the time of all tests.
    """
    chosen = {"TMPDIR", "PYTEST_DEBUG_TEMPROOT"} & os.environ.keys()
    runs_programs = os.access(MEMORY, os.W_OK) and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    if runs_programs and not chosen and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = MEMORY
    settings.load_profile("many" if THOROUGH else "few")
    if getattr(config, "workerinput", {}).get("files"):
        config.pluginmanager.register(collected_late)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell a process how its tests come to it."""
    node.workerinput["files"] = collected_late.hands_out_files(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Let one process more than there are cores run the tests: the default ones wait for a sixth of their time.

    The slow ones wait for a third. xdist itself counts the cores of the processor, of which a virtual machine often
    has half as many.
    """
    if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):
        return None
    return 1 + (len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1)


TOGETHER = (
    ("workbench/test_",),  # share the sample cluster and a home with its driver
    # parse every module
    ("test_architecture.py", "test_reference.py", "test_docs.py", "worker/test_sanitizing.py", "cli/test_advice.py"),
)
"""What begins the names of files that one process tests, since they share what takes seconds to make."""


WHOLE_FILE = re.compile(rb"^pytestmark = .*\bmark\.(slow|live)\b", re.MULTILINE)
"""A mark of every test of a file."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Keep the tests of a file together and in order, even with plain `-n`: some share a home, some tell a story."""
    from xdist.scheduler import LoadFileScheduling

    together = TOGETHER if tables.leaves_out_slow(config) else ()

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            """Return the file of a test, or the first name of its group."""
            file = nodeid.partition("::")[0].removeprefix("tests/")
            return next((group[0] for group in together if file.startswith(group)), file)

    config.option.loadscopereorder = False  # `collected_late` has put the files in order
    return Scheduling(config, log) if config.option.dist in ("load", "loadfile") else None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Tell the process that starts the others only what it shows: it took as long over the rest as a hundred tests."""
    plugins = session.config.pluginmanager.get_plugins()
    for worker in (plugin for plugin in plugins if type(plugin).__name__ == "WorkerInteractor"):
        worker.sendevent = partial(_send_event, worker.sendevent, session.config.option.durations)


def _send_event(send: Callable[..., None], durations: int | None, name: str, **event: Any) -> None:
    data = event.get("data", {})
    passed = name == "testreport" and data["outcome"] == "passed" and data["when"] != "call" and durations is None
    if name != "logstart" and not passed:
        send(name, **event)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file whose tests are all unwanted, since it says so in one line."""
    if not collection_path.is_file():
        return None
    mark = WHOLE_FILE.search(collection_path.read_bytes())
    return True if mark and mark[1].decode() in _unwanted_marks(config) else None


def _unwanted_marks(config: pytest.Config) -> set[str]:
    """Return the marks of tests that would only be skipped or deselected."""
    unwanted = {"live"} if config.option.live is None else set()
    return unwanted | {"slow"} if tables.leaves_out_slow(config) else unwanted


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, obj: object
) -> list[pytest.Item | pytest.Collector] | None:
    """Leave uncollected what would only be skipped or deselected, which takes seconds of each process.

    That is what needs a real server where none is named, and the slow tests in a run without them.
    """
    unwanted = _unwanted_marks(collector.config)
    marks = {mark.name for mark in collector.iter_markers()}
    return [] if unwanted & (marks | {mark.name for mark in _marks(obj)}) else None


def _marks(obj: object) -> list[pytest.Mark]:
    """Return the marks of a test, or of a class and those that it extends."""
    owners = obj.__mro__ if isinstance(obj, type) else (obj,)
    marks = [vars(owner).get("pytestmark", ()) if hasattr(owner, "__dict__") else () for owner in owners]
    return [mark for some in marks for mark in (some if isinstance(some, list) else [some]) if mark]


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for garbage."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)  # the garbage of a test is small, and looking for it took a twentieth of the time
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what would begin too late, but for what runs once more since it failed."""
    if time.time() > UNTIL and not item.config.option.lf:
        pytest.skip(LATE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what was left out."""
    skipped = terminalreporter.stats.get("skipped", ())
    if late := sum(LATE in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"TESTS {LATE.upper()}: {late}")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End as pytest does where no test was chosen, though xdist has counted files."""
    plugins = session.config.pluginmanager
    counted_files = plugins.has_plugin("dsession") and session.exitstatus == pytest.ExitCode.OK
    if counted_files and not any(plugins.get_plugin("terminalreporter").stats.values()):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.fixture(scope="session", autouse=True)
def fork_server() -> Iterator[None]:
    """Fork the drivers' processes of all tests in this process from one server, which starts with the first of them."""
    from dragoman.sandbox.fork_server import forks_here

    forks = forks_here()
    forks.claims += 1
    yield
    forks.release()


@pytest.fixture(scope="session", autouse=True)
def compiled_trees() -> Iterator[CompiledTrees]:
    """Compile the source of each driver once, however often it is installed."""
    from compiled_trees import CompiledTrees

    with CompiledTrees().installing() as trees:
        yield trees


@pytest.fixture
def compiles_anew(compiled_trees: CompiledTrees, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile as every installation does."""
    from dragoman_registry.client import installer

    monkeypatch.setattr(installer, "compile_tree", compiled_trees.compile_anew)


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadForks]:
    """Let a test have a fork server of its own."""
    from dragoman.sandbox import fork_server

    forks = fork_server.ThreadForks()
    forks.claims = 1
    monkeypatch.setattr(fork_server._here, "forks", forks)
    yield forks
    forks.release()


@pytest.fixture(params=["fork", "spawn"])
def way(request: pytest.FixtureRequest, forks: ThreadForks) -> Iterator[str]:
    """Start drivers' processes in both ways."""
    forks.claims = int(request.param == "fork")
    yield request.param
    forks.claims = 1


@pytest.fixture
def anyio_backend() -> str:
    """Name the one event loop that aiohttp knows."""
    return "asyncio"


@pytest.fixture(autouse=True)
def own_home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Redirect everything that dragoman keeps on disk; the folder is made only for tests that have one anyway."""
    if "tmp_path" in request.fixturenames:
        folder = request.getfixturevalue("tmp_path")
    else:
        folder = request.getfixturevalue("tmp_path_factory").getbasetemp() / f"untouched{next(NUMBERS)}"
    monkeypatch.setenv("DRAGOMAN_HOME", str(folder / "home"))
    return folder / "home"


@pytest.fixture
def home(tmp_path: Path, own_home: Path) -> Path:
    """The test's own home, in a folder that is there."""
    assert own_home.parent == tmp_path
    return own_home


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk; the crash tests run in their own processes, where fsync is real."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def dragoman(home: Path) -> Machine:
    """Run commands in the test's own home, inside this process."""
    from command_line import Machine

    return Machine(home)


@pytest.fixture(scope="session")
def detector() -> Iterator[Detector]:
    """Prepare once what finds blocking calls; it acts only within tests."""
    with Detector().wrapping() as detector:
        yield detector


@pytest.fixture(autouse=True)
def no_blocking_calls(detector: Detector) -> Iterator[None]:
    """Let a blocking call in the event loop fail the test that makes it."""
    detector.acts = True
    yield
    detector.acts = False
