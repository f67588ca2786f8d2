"""The same confinement for a host that is no root: root hides leaks through /proc, others miss no capability drop."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.worker.conftest import TRYING

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = "65534"

SCRIPT = """
import json, os, subprocess, sys
from pathlib import Path
import anyio
from dragoman.sandbox import launch
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.launch import Launch
from dragoman_api.errors import DragomanError

tree, layers = Path(sys.argv[1]), tuple(sys.argv[2].split(","))
launch.LAYERS = layers

def seen_by_another_process():
    done = subprocess.run(["cat", f"/proc/{os.getpid()}/environ"], capture_output=True)
    return "SENTINEL" if b"a secret" in done.stdout else done.stderr.decode()

async def main():
    before = await anyio.to_thread.run_sync(seen_by_another_process)
    async with Worker(Launch(driver="tiny:Driver", trees=(tree,))) as worker:
        answer = json.loads((await worker.call("describe_object", "x")).structure)
        print(json.dumps({"uid": os.getuid(), "level": str(worker.report), "before": before,
                          "after": await anyio.to_thread.run_sync(seen_by_another_process), **answer}))

anyio.run(main)
"""

DRIVER = (
    TRYING
    + """\
        host = os.getppid()
        return Description(object=name, columns=[], structure=json.dumps({
            "environ": tries(lambda: open(f"/proc/{host}/environ").read()),
            "maps": tries(lambda: open(f"/proc/{host}/maps").read()),
            "mem": tries(lambda: open(f"/proc/{host}/mem").read(0)),
            "passwd": tries(lambda: open("/etc/passwd").read()),
            "write": tries(lambda: open("/tmp/x-of-nobody", "w")),
            "signal": tries(lambda: os.kill(host, 0)),
            "fork": tries(lambda: os.fork() or os._exit(0)),
        }))
"""
)


@pytest.fixture(scope="module")
def house() -> Iterator[Path]:
    """Yield a folder that everybody can read, with a host and a driver in it."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None or shutil.which("unshare") is None:
        pytest.skip("NOT SHOWN HERE: becoming an ordinary user takes root, setpriv and unshare")
    folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
    folder.chmod(0o755)
    (folder / "tree").mkdir()
    (folder / "tree" / "tiny.py").write_text(DRIVER)
    (folder / "host.py").write_text(SCRIPT)
    yield folder
    shutil.rmtree(folder)


def opening_the_way(house: Path) -> list[str]:
    """Return shell commands that make the interpreter reachable where it is in a directory that only root enters.

    They run in a mount namespace of their own: an open directory covers the closed one, and what is needed is bound
    into it again.
    """
    needed = {Path(path) for path in (sys.base_prefix, sys.prefix, *filter(None, sys.path)) if Path(path).is_dir()}
    closed = {
        next((way for way in reversed(path.parents) if not way.stat().st_mode & 0o001), None) for path in needed
    } - {None}
    commands = []
    behind = sorted(path for path in needed if closed & set(path.parents))
    for at, path in enumerate(behind):
        commands += [f"mkdir {house}/{at}", f"mount --bind {path} {house}/{at}"]
    commands += [f"mount -t tmpfs -o mode=755 tmpfs {way}" for way in closed]
    for at, path in enumerate(behind):
        commands += [f"mkdir -p {path}", f"mount --bind {house}/{at} {path}"]
    return commands


def run_as_nobody(house: Path, layers: str, *first: str) -> dict[str, object]:
    become = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups --no-new-privs"
    program = f"exec {become} {sys.executable} -B {house}/host.py {house}/tree {layers}"
    with tempfile.TemporaryDirectory(prefix="dragoman-") as mounts:
        Path(mounts).chmod(0o755)
        done = subprocess.run(
            ["unshare", "-m", "sh", "-ec", "\n".join([*opening_the_way(Path(mounts)), *first, program])],
            env={"PATH": os.environ["PATH"], "SENTINEL": "a secret"},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_an_ordinary_users_driver_is_confined_fully(house: Path, full_level: None) -> None:
    answer = run_as_nobody(house, "limits,capabilities,landlock,seccomp")
    assert (answer.pop("uid"), answer.pop("level")) == (int(NOBODY), "full")
    assert answer.pop("before") == "SENTINEL", "the control: what can be dumped can be read"
    assert "denied" in str(answer.pop("after")), "no process of the same user reads the host's environment"
    assert set(answer.values()) <= {1, 13}, "EPERM or EACCES for every attempt"


@pytest.mark.slow
def test_without_landlock_the_hosts_memory_stays_closed_because_the_host_hides_it(
    house: Path, full_level: None
) -> None:
    answer = run_as_nobody(house, "limits,capabilities,seccomp")
    assert str(answer["level"]).startswith("partial")
    assert answer["passwd"] == "done", "the control: without Landlock files are readable"
    assert {answer[name] for name in ("environ", "maps", "mem")} <= {1, 13}
    assert {answer[name] for name in ("write", "signal", "fork")} <= {1, 13}


@pytest.mark.slow
def test_where_proc_hides_processes_the_level_is_unverified_and_not_full(house: Path, full_level: None) -> None:
    answer = run_as_nobody(house, "limits,capabilities,landlock,seccomp", "mount -t proc -o hidepid=2 proc /proc")
    assert answer["level"] == "partial: unverified: the child's status cannot be read"
    assert answer["environ"] in (2, 13)
    assert {answer[name] for name in ("passwd", "write", "signal", "fork")} <= {1, 13}
