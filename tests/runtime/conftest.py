"""Real wheels in a real registry, and a runtime over a home of its own."""

from __future__ import annotations

import os
import shlex
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager

import anyio
import pytest
from anyio import to_thread

import wheelhouse
from child_processes import LASTING_FORKS
from command_line import Machine
from dragoman.connections.saved_connections import SavedConnection
from dragoman.runtime import Runtime
from dragoman.sandbox.fork_server import forks_here
from dragoman_registry.trust.keys import beside
from dragoman_sample.fakes.serving import serving
from dragoman_worker.hooks_and_deadlines import HOOKS
from memory_in_parts import CODE


@pytest.fixture
def without_standard_input():
    """Close the descriptor 0 for a time, as some service managers start a process."""

    @contextmanager
    def closed():
        kept = os.dup(0)
        os.close(0)
        try:
            yield
        finally:
            os.dup2(kept, 0)
            os.close(kept)

    return closed


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """Publish wheels into a registry; equal wheels are published once per run."""
    made = {}

    def publish(wheels):
        key = tuple((path.name, path.read_bytes()) for path in wheels)
        if key not in made:
            made[key] = wheelhouse.registry(tmp_path_factory.mktemp("published") / "registry", wheels)
        return made[key]

    return publish


@pytest.fixture
def copied_registry(published):
    """Copy a new registry of these wheels to a folder."""

    def copy(to, wheels):
        root = published(wheels)
        for original in (root, beside(root)):
            wheelhouse.copy(original, to.with_name(original.name))
        return to

    return copy


@pytest.fixture(scope="session")
def beside_the_loop():
    """Run what has a loop of its own in one thread beside the tests' loop, with a fork server of its own."""

    def claim():
        LASTING_FORKS.append(forks_here())
        LASTING_FORKS[-1].claims += 1

    with ThreadPoolExecutor(1) as thread:
        thread.submit(claim).result()
        yield thread
        thread.submit(lambda: forks_here().release()).result()


@pytest.fixture(scope="session")
def furnished(tmp_path_factory, beside_the_loop):
    """Install what a registry offers into a home, once per run."""
    made = {}

    async def install(root, names):
        async def agree(_):
            return True

        async with Runtime(spare=False, confirm=agree) as runtime:
            runtime.registries.add(str(root))
            for name in names:
                await runtime.plugins.install(name)

    def furnish(root, names):
        if root not in made:
            made[root] = tmp_path_factory.mktemp("furnished") / "home"
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("DRAGOMAN_HOME", str(made[root]))
                beside_the_loop.submit(anyio.run, install, root, names).result()
        return made[root]

    return furnish


@pytest.fixture
def registry(tmp_path, copied_registry):
    """Publish drivers and return the registry's folder."""

    def publish(*drivers):
        (tmp_path / "wheels").mkdir(exist_ok=True)
        paths = [driver.write(tmp_path / "wheels") for driver in drivers]
        folder = tmp_path / "registry"
        return wheelhouse.registry(folder, paths) if folder.exists() else copied_registry(folder, paths)

    return publish


@pytest.fixture
def make_runtime(registry, published, furnished, home, tmp_path):
    """Make a runtime that knows a registry with these drivers, and a connection to each.

    Where installing is not the matter, `installed` copies a home in which they have been installed before.
    """

    def make(*drivers, installed=False, **options):
        drivers = drivers or (wheelhouse.Driver(),)
        names = [driver.manifest["id"] for driver in drivers]
        if installed:
            root = published([driver.write(tmp_path / "wheels") for driver in drivers])
            wheelhouse.copy(furnished(root, names), home)
        else:
            root = registry(*drivers)
        runtime = Runtime(spare=False, **options)
        if not installed:
            runtime.registries.add(str(root))
        for name in names:
            runtime.connections.save(SavedConnection(name=name, type=name, values={}))
        runtime.seen = []
        runtime.add_sink(runtime.seen.append)
        return runtime

    return make


@pytest.fixture
def open_memory(make_runtime):
    """Make a runtime whose one connection leads to memory, by a driver that is installed."""
    return lambda code=CODE: make_runtime(wheelhouse.Driver("memory", code=code, hooks=[*HOOKS]), installed=True)


@pytest.fixture
def open_stand_in(make_runtime):
    """Return a context manager: a runtime whose one connection leads to a fake, by a driver of `examples/stand_ins`."""

    @asynccontextmanager
    async def opened(name, store, file, hooks, capabilities=("browse",)):
        code = (wheelhouse.ROOT / "tests/examples/stand_ins" / file).read_text(encoding="utf-8")
        driver = wheelhouse.Driver(name, code=code, hooks=hooks.split(), capabilities=list(capabilities))
        async with serving(store) as (_, host, port), make_runtime(driver, installed=True) as made:
            values = {"host": host, "port": port}
            made.connections.save(SavedConnection(name=name, type=name, values=values), replace=True)
            yield made

    return opened


@pytest.fixture
def dragoman_at(runtime, home):
    """Return a function that runs a command line as a process while the fake of the fixture `runtime` answers here."""

    async def run(line, typed="", code=0):
        machine = Machine(home, inside=False)
        return await to_thread.run_sync(lambda: machine(*shlex.split(line), typed=typed, code=code))

    return run
