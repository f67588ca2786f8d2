"""Install a release as people do, and do the main job from it: `python -m tests.installs dist`.

Each Python that is here meets pip, `uv pip`, `uv tool` and pipx, each in an empty environment, and each extra once: a
square by pairs. What others publish comes as it is today, without pins. Where root runs this, an ordinary user installs
with each Python that such a user can run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.main_job import Installed, JobError, do, sample_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MINORS = (11, 12, 13, 14)
"""Of the versions of Python 3 that are looked for; they are those that the README promises."""
EXTRAS = ("", "workbench", "mcp", "dask")
USER = 65534
BECOME = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "env")
"""What it runs is found by `env`, which has the rights of the user alone; setpriv still has those of root."""
SYSTEM_CERTS = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
"""Makes uv trust what the machine trusts, by the name of today and by that of older releases."""
SECONDS = 300
KEPT = ("PATH", "LANG", "PIP_CERT", "PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_DEFAULT_TIMEOUT", "SSL_CERT_FILE",
        "UV_INDEX_URL", "UV_DEFAULT_INDEX", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")  # fmt: skip
"""Variables that an installer needs where a network has its own index or certificates."""


@dataclass(frozen=True)
class Python:
    """An interpreter, and the words that make a command another user's."""

    path: Path
    version: str
    become: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.version} (ordinary user)" if self.become else self.version


@dataclass(frozen=True)
class Place:
    """An empty folder that holds an environment and a home, and the release beside it."""

    folder: Path
    python: Python
    release: Path
    uv: Path

    @property
    def variables(self) -> dict[str, str]:
        """The environment of an installer: nothing of the tests' own, and tools below the folder."""
        shared = {name: os.environ[name] for name in KEPT if name in os.environ}
        tools = {f"UV_TOOL{end}": str(self.folder / f"uv{end}") for end in ("_DIR", "_BIN_DIR")}
        pipx = {"PIPX_HOME": str(self.folder / "pipx"), "PIPX_BIN_DIR": str(self.folder / "pipx-bin")}
        cache = self.release.parent / f"cache-{'ordinary' if self.python.become else 'own'}"
        caches = {"PIP_CACHE_DIR": str(cache / "pip"), "UV_CACHE_DIR": str(cache / "uv")}
        more = {**SYSTEM_CERTS, "UV_PYTHON_DOWNLOADS": "never", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        return {**shared, **tools, **pipx, **caches, **more, "HOME": str(self.folder), "TMPDIR": str(self.folder)}

    def run(self, *words: object) -> None:
        """Run a command of an installer. Raises JobError if it fails."""
        command = [*self.python.become, *map(str, words)]
        done = subprocess.run(
            command, cwd=self.folder, env=self.variables, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        if done.returncode:
            raise JobError(f"{' '.join(command)} failed\n{done.stdout[-2000:]}{done.stderr[-4000:]}")

    def wheels(self, extra: str) -> list[str]:
        """Name the wheels of the release that an installation with an extra takes, the host's first."""
        needed = {"": [], "workbench": ["dragoman_sample", "dragoman_workbench"]}.get(extra, [f"dragoman_{extra}"])
        names = ["dragoman", "dragoman_api", *needed]
        files = [next(self.release.glob(f"{name}-*.whl")) for name in names]
        host = f"dragoman[{extra}] @ " if extra in ("workbench", "mcp") else "dragoman @ "
        return [f"{host}{files[0].as_uri()}", *map(str, files[1:])]


def with_pip(place: Place, extra: str) -> Path:
    """Install with the pip that comes with Python."""
    place.run(place.python.path, "-m", "venv", "env")
    place.run("env/bin/python", "-m", "pip", "install", "-q", *place.wheels(extra))
    return place.folder / "env/bin/dragoman"


def with_uv_pip(place: Place, extra: str) -> Path:
    """Install with `uv pip`."""
    place.run(place.uv, "venv", "-q", "--python", place.python.path, "env")
    place.run(place.uv, "pip", "install", "-q", "--python", "env/bin/python", *place.wheels(extra))
    return place.folder / "env/bin/dragoman"


def with_uv_tool(place: Place, extra: str) -> Path:
    """Install with `uv tool`."""
    host, *others = place.wheels(extra)
    more = [word for wheel in others for word in ("--with", wheel)]
    place.run(place.uv, "tool", "install", "-q", "--python", place.python.path, host, *more)
    return place.folder / "uv_BIN_DIR/dragoman"


def with_pipx(place: Place, extra: str) -> Path:
    """Install with pipx, which pip installs first."""
    host, *others = place.wheels(extra)
    place.run(place.python.path, "-m", "venv", "tools")
    place.run("tools/bin/python", "-m", "pip", "install", "-q", "pipx")
    beside = f"--pip-args=--find-links={place.release}"  # the workbench needs the host, whose extra needs the workbench
    place.run("tools/bin/pipx", "install", beside, "--python", place.python.path, host)
    for wheel in others:
        place.run("tools/bin/pipx", "inject", beside, "dragoman", wheel)
    return place.folder / "pipx-bin/dragoman"


INSTALLERS: dict[str, Callable[[Place, str], Path]] = {
    "pip": with_pip,
    "uv pip": with_uv_pip,
    "uv tool": with_uv_tool,
    "pipx": with_pipx,
}


def pythons() -> list[Python]:
    """Find one Python of each version: one that an ordinary user can run, else any; uv, PATH and pyenv are asked."""
    minors = [choose(candidates(f"3.{minor}")) for minor in MINORS]
    return [python for python in minors if python]


def candidates(version: str) -> list[str]:
    """List programs that may be this version of Python: on PATH, and those that uv and pyenv know."""
    words = [[str(uv()), "python", "find", "--offline", "--no-python-downloads", "--no-project", "--system", version]]
    if pyenv := shutil.which("pyenv"):
        words.append([pyenv, "whence", "--path", f"python{version}"])
    answers = [subprocess.run(line, capture_output=True, text=True, check=False).stdout.split() for line in words]
    on_path = [str(Path(folder, f"python{version}")) for folder in os.get_exec_path()]
    return [*on_path, *(path for answer in answers for path in answer)]


def uv() -> Path:
    """Return the uv of this environment."""
    return Path(sys.executable).with_name("uv")


def choose(programs: list[str]) -> Python | None:
    """Return the first that an ordinary user can run, else the first that runs; None where none does."""
    code = "import sys, venv, ensurepip; print(sys._base_executable, sys.version.split()[0])"
    ways = [BECOME, ()] if os.geteuid() == 0 and shutil.which(BECOME[0]) else [()]
    for become in ways:
        for program in programs:
            try:
                told = subprocess.run(
                    [*become, program, "-c", code], cwd="/", capture_output=True, text=True, check=True
                )
            except (OSError, subprocess.CalledProcessError):
                continue
            path, version = told.stdout.split()
            return Python(Path(path), version, become)
    return None


def in_turn(interpreters: list[Python], day: int) -> Python | None:
    """Choose the interpreter of a day; never the one that runs this, which has all tests. None where there is no other.

    >>> each = [Python(Path("/p"), version, ()) for version in ("3.12.1", "3.13.0", "3.14.2")]
    >>> [in_turn(each, day).version for day in (0, 1, 2, 3)]
    ['3.12.1', '3.13.0', '3.14.2', '3.12.1']
    """
    own = f"3.{sys.version_info.minor}."
    others = [python for python in interpreters if not python.version.startswith((own, "3.11."))]
    return others[day % len(others)] if others else None


@contextmanager
def release_beside(release: Path) -> Iterator[Path]:
    """Copy a release to where every user can read it; what is installed from it lies beside it until the end."""
    with tempfile.TemporaryDirectory(prefix="dragoman-installs-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        for name in ("cache-ordinary", "cache-own"):
            (folder / name).mkdir()
        if os.geteuid() == 0:
            os.chown(folder / "cache-ordinary", USER, USER)
        shutil.copy(uv(), folder / "uv")
        yield Path(shutil.copytree(release, folder / "dist"))


def install_and_do(release: Path, python: Python, installer: str, extra: str, port: int) -> None:
    """Install into an empty environment, and do the main job. Raises JobError."""
    folder = release.parent / f"{python.version}-{installer}-{extra}".replace(" ", "-")
    folder.mkdir()
    if python.become:
        os.chown(folder, USER, USER)
    place = Place(folder, python, release, uv=release.parent / "uv")
    program = INSTALLERS[installer](place, extra)
    do(Installed(program, folder, port, python.become, place.variables), [extra] if extra else [])
    shutil.rmtree(folder)


def pairs(interpreters: list[Python]) -> list[tuple[Python, str, str]]:
    """Let each interpreter meet each installer and each extra once."""
    return [
        (python, installer, EXTRAS[(row + column) % len(EXTRAS)])
        for row, python in enumerate(interpreters)
        for column, installer in enumerate(INSTALLERS)
    ]


def main(release: Path) -> int:
    """Try every pair, two at a time, and print how each went; 1 if any failed."""
    began, interpreters, failures = time.monotonic(), pythons(), 0
    with release_beside(release) as copy, sample_cluster() as port, ThreadPoolExecutor(2) as threads:
        cases = pairs(interpreters)
        futures = [threads.submit(install_and_do, copy, *case, port) for case in cases]
        for (python, installer, extra), future in zip(cases, futures, strict=True):
            error = future.exception()
            failures += error is not None
            said = f"FAILED: {error}" if error else "ok"
            print(f"Python {python}, {installer}, {extra or 'no extra'}: {said}", flush=True)
    missing = [f"3.{minor}" for minor in MINORS if not any(p.version.startswith(f"3.{minor}.") for p in interpreters)]
    absent = f"; not on this machine: {', '.join(missing)}" if missing else ""
    met = ", ".join(map(str, interpreters))
    print(f"Pythons on which the release was installed: {met}{absent} ({time.monotonic() - began:.0f} s)")
    return 1 if failures or not interpreters else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("release", type=Path, nargs="?")
    parser.add_argument("--in-turn", action="store_true", help="print the Python whose turn it is, and do nothing else")
    arguments = parser.parse_args()
    if arguments.in_turn:
        chosen = in_turn(pythons(), int(time.time()) // 86_400)
        print(chosen.path if chosen else "")
    else:
        sys.exit(main(arguments.release.resolve()))
