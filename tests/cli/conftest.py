"""The command line on a registry, a driver and a home of its own, made once per run."""

from __future__ import annotations

import inspect
import socket
import threading
from contextlib import suppress

import pytest
from anyio.from_thread import start_blocking_portal
from cli import demo_driver

from command_line import Machine
from dragoman.cli.options import Options
from fake_network import CODE
from wheelhouse import Driver, copy, registry

HOOKS = sorted(name for name, value in vars(demo_driver.Driver).items() if hasattr(value, "dragoman_impl"))
FORM = [
    {"name": "host", "label": "Host", "default": "localhost", "required": True},
    {"name": "port", "label": "Port", "kind": "integer", "default": 7700, "required": True},
    {"name": "auth_method", "label": "Auth Method", "kind": "choice", "default": "none",
     "choices": [{"value": "api-key", "label": "API Key"}, {"value": "none", "label": "None"}]},
    {"name": "api_key", "label": "API Key", "kind": "secret", "required": True,
     "visible_if": {"auth_method": ["api-key"]}},
    {"name": "trust", "label": "Trust Everybody", "kind": "switch", "default": False, "advanced": True},
]  # fmt: skip
AUTH = [
    {"value": "api-key", "label": "API Key", "scheme": "ApiKey"},
    {"value": "none", "label": "None", "scheme": "none"},
]


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """Publish the demo driver in two versions."""
    folder = tmp_path_factory.mktemp("cli-registry")
    code = inspect.getsource(demo_driver)
    wheels = [
        Driver("demo", version, code=code, hooks=HOOKS, form=FORM, auth_methods=AUTH).write(folder / "wheels")
        for version in ("1.0.0", "1.1.0")
    ]
    return registry(folder / "team", wheels)


@pytest.fixture(scope="session")
def furnished(store, tmp_path_factory):
    """Make a home in which the driver is installed and `shop` is saved."""
    house = Machine(tmp_path_factory.mktemp("furnished"))
    house("registry", "add", store)
    house("connections", "add", "shop", "--type", "demo", "--yes")
    return house


@pytest.fixture(scope="session")
def shop(furnished):
    """Open the connection `shop` once, for all commands that use it."""
    with start_blocking_portal() as portal:
        runtime = Options(home=str(furnished.home)).runtime()
        with portal.wrap_async_context_manager(runtime), portal.wrap_async_context_manager(runtime.open("shop")) as one:
            yield furnished.beside(shared=one, portal=portal, runtime=runtime)


@pytest.fixture
def own(furnished, tmp_path):
    """Return a copy of the furnished home, for what changes it."""
    copy(furnished.home, tmp_path / "own")
    return Machine(tmp_path / "own")


@pytest.fixture
def empty(store, tmp_path):
    """Return a home that knows the registry and nothing else."""
    house = Machine(tmp_path / "empty")
    (house.home / "config").mkdir(parents=True)
    entry = f'[[registries]]\nname = "team"\nlocation = "{store}"\n'
    (house.home / "config" / "config.toml").write_text(entry)
    return house


@pytest.fixture
def port():
    """Yield the port of a server that says hello, as the driver of `greeted` wants it."""

    def greet():
        with suppress(OSError):
            while True:
                with listener.accept()[0] as sock:
                    sock.sendall(b"hello\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=greet)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def greeted(tmp_path):
    """Return a home in which a driver is installed that reaches a server as a command line tells it."""
    driver = Driver(code=CODE, hooks=["connect", "describe_object"]).write(tmp_path / "wheels")
    house = Machine(tmp_path / "home")
    house("registry", "add", registry(tmp_path / "team", [driver]))
    house("plugins", "install", "demo", "--yes")
    return house
