"""The command line on a registry, a driver and a home of its own, made once per run."""

from __future__ import annotations

import inspect
import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from cli import demo_driver

from dragoman.cli import app
from dragoman.cli.options import Options
from wheelhouse import Driver, registry

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


@dataclass
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out)


@dataclass
class House:
    """A home, and the command that lives in it: as a process of its own, or much faster, inside this one."""

    home: Path
    shared: Any = None
    portal: BlockingPortal | None = None
    runtime: Any = None

    def variables(self, **more):
        kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS")}
        return {**kept, "DRAGOMAN_HOME": str(self.home), "TERM": "xterm-256color", **more}

    def words(self, *words):
        return [sys.executable, "-m", "dragoman", *map(str, words)]

    def process(self, *words, typed="", code=0, **variables):
        """Run a command as a process."""
        done = subprocess.run(
            self.words(*words), input=typed, env=self.variables(**variables), capture_output=True, text=True,
            timeout=50, check=False,
        )  # fmt: skip
        return self._check(Ended(done.returncode, done.stdout, done.stderr), code)

    def __call__(self, *words, typed="", code=0, **variables):
        """Run a command inside this process, on the open connection where there is one."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True) for _ in "12")
        options = Options(shared=self.shared, current=self.runtime)
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr("sys.stdin", io.StringIO(typed))
            for name, value in self.variables(**variables).items():
                patch.setenv(name, value)
            ended = app.execute([*map(str, words)], options, wait=self._wait)
        return self._check(Ended(ended, *(stream.buffer.getvalue().decode() for stream in (out, err))), code)

    def _wait(self, work):
        async def main():
            return await work

        return self.portal.call(main) if self.portal else anyio.run(main)

    def _check(self, ended, code):
        assert "Traceback" not in ended.err, ended.err
        assert ended.code == code, ended
        return ended


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
    house = House(tmp_path_factory.mktemp("furnished"))
    house("registry", "add", store)
    house("connections", "add", "shop", "--type", "demo", "--yes")
    return house


@pytest.fixture(scope="session")
def shop(furnished):
    """Open the connection `shop` once, for all commands that use it."""
    with start_blocking_portal() as portal:
        runtime = Options(home=str(furnished.home)).runtime()
        with portal.wrap_async_context_manager(runtime), portal.wrap_async_context_manager(runtime.open("shop")) as one:
            yield House(furnished.home, one, portal, runtime)


@pytest.fixture
def own(furnished, tmp_path):
    """Give a copy of the furnished home, for what changes it."""
    shutil.copytree(furnished.home, tmp_path / "own")
    return House(tmp_path / "own")


@pytest.fixture
def empty(store, tmp_path):
    """Give a home that knows the registry and nothing else."""
    house = House(tmp_path / "empty")
    (house.home / "config").mkdir(parents=True)
    entry = f'[[registries]]\nname = "team"\nlocation = "{store}"\n'
    (house.home / "config" / "config.toml").write_text(entry)
    return house
