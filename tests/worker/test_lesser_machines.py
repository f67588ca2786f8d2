"""Machines that give less than all layers: the level told is the one that holds, and nothing crashes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.worker.conftest import TRYING

import wheelhouse

pytestmark = pytest.mark.slow

SUPPORT = Path(wheelhouse.__file__).parent
HOST = """
import json, sys
from pathlib import Path
import anyio
from dragoman.connections.saved_connections import SavedConnection
from dragoman.runtime import Runtime
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.launch import Launch
from dragoman.sandbox.levels import achievable_level
from dragoman.sandbox.machine_level import measured_level
from dragoman_api.errors import DragomanError

tree, registry, home = map(Path, sys.argv[1:4])

async def tried(**options):
    try:
        async with Worker(Launch(driver="tiny:Driver", trees=(tree,), **options)) as worker:
            answer = json.loads((await worker.call("describe_object", "x")).structure)
            states = {name: one.state for name, one in worker.report.permissions.items()}
            return {"level": str(worker.report), "states": states, "attempts": answer}
    except DragomanError as error:
        return error.to_dict()

async def opened(**options):
    asked = []
    async def agree(question):
        asked.append(question.subject)
        return True
    confirm = agree if options.pop("attended") else None
    runtime = Runtime(home, confirm=confirm, spare=False, **options)
    if not runtime.connections.list():
        runtime.registries.add(str(registry))
        runtime.connections.save(SavedConnection(name="demo", type="demo", values={}))
    async with runtime:
        try:
            async with runtime.open("demo") as session:
                return {"level": session.sandbox, "asked": asked}
        except DragomanError as error:
            return error.to_dict()

async def main():
    told = {
        "achievable": str(achievable_level()),
        "measured": str(await anyio.to_thread.run_sync(measured_level)),
        "untrusted": await tried(),
        "trusted": await tried(trusted=True),
        "require": await tried(trusted=True, policy="require"),
        "unattended": await opened(attended=False),
        "must": await opened(attended=True, sandbox="require"),
        "attended": await opened(attended=True),
    }
    (home / "data/state.db").unlink()
    told["locked"] = await opened(attended=False)
    print(json.dumps(told))

anyio.run(main)
"""

DRIVER = (
    TRYING
    + """\
        return Description(object=name, columns=[], structure=json.dumps({
            "fs_read": tries(lambda: open("/etc/passwd").read()),
            "fs_write": tries(lambda: open(f"/tmp/.dragoman-tried-{os.getpid()}", "x").close()
                              or os.unlink(f"/tmp/.dragoman-tried-{os.getpid()}")),
            "network": tries(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()),
            "signals": tries(lambda: os.kill(-1, 0)),
            "process": tries(lambda: os.fork() or os._exit(0)),
        }))
"""
)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Lay out a host's program, a driver's tree, and a registry with one driver."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/tiny.py").write_text(DRIVER)
    (tmp_path / "host.py").write_text(HOST)
    wheelhouse.registry(tmp_path / "registry", [wheelhouse.Driver().write(tmp_path / "wheels")])
    return tmp_path


def run_under(house: Path, *refused: str) -> dict[str, Any]:
    """Run the host's program where these calls are refused, and give what it tells."""
    words = [sys.executable, "-B", str(SUPPORT / "refusing.py"), *refused, "--", sys.executable, "-B"]
    words += [str(house / path) for path in ("host.py", "tree", "registry", "home")]
    env = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN")}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def check_honest(tried: dict[str, Any]) -> None:
    """Hold a report to what a driver could really do in that very process."""
    for name, outcome in tried["attempts"].items():
        assert (outcome == "done") == (tried["states"][name] == "not_enforced"), (name, outcome, tried["states"])


@pytest.mark.slow
def test_under_a_filter_that_refuses_nothing_the_level_is_full(house: Path, full_level: None) -> None:
    told = run_under(house)
    assert told["achievable"] == told["measured"] == told["untrusted"]["level"] == told["require"]["level"] == "full"
    check_honest(told["untrusted"])
    assert told["unattended"] == {"level": "full", "asked": []}


@pytest.mark.parametrize(
    ("error", "cause", "remedy"),
    [
        ("ENOSYS", "no Landlock in this kernel", "Landlock: ENOSYS: use Linux 5.13"),
        pytest.param("EPERM", "Landlock is refused (EPERM)", "Landlock: EPERM: a container", marks=pytest.mark.slow),
        pytest.param("EOPNOTSUPP", "Landlock is switched off", "Landlock: EOPNOTSUPP: boot", marks=pytest.mark.slow),
    ],
)
def test_without_landlock_it_is_partial_and_asks(
    house: Path, full_level: None, error: str, cause: str, remedy: str
) -> None:
    told = run_under(house, f"landlock={error}")
    for key in ("achievable", "measured"):
        assert told[key].startswith(f"partial: {cause}")
    assert told["untrusted"]["level"].startswith(f"partial: {cause}"), "an untrusted driver runs: it can send nothing"
    check_honest(told["untrusted"])
    assert told["untrusted"]["states"]["fs_read"] == "not_enforced"
    assert told["untrusted"]["states"]["network"] == told["untrusted"]["states"]["fs_write"] == "enforced"
    assert told["require"]["code"] == "sandbox-insufficient"
    assert cause in told["require"]["message"]
    assert remedy in told["require"]["hint"]
    assert told["unattended"]["code"] == "refused"
    assert cause in told["unattended"]["message"]
    assert told["must"]["code"] == "plugin-sandbox"
    assert told["attended"]["asked"] == ["sandbox"]
    assert told["attended"]["level"].startswith("partial")
    assert told["locked"]["asked"] == [], "the same bytes as in plugins.lock need no second consent"


@pytest.mark.parametrize(
    "refused",
    [
        ["seccomp=EPERM"],
        pytest.param(["seccomp=ENOSYS"], marks=pytest.mark.slow),
        pytest.param(["landlock=ENOSYS", "seccomp=ENOSYS"], marks=pytest.mark.slow),
        pytest.param(["landlock=EPERM", "seccomp=EPERM"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_without_seccomp_it_is_only_a_process_and_an_untrusted_driver_is_refused(
    house: Path, full_level: None, refused: list[str]
) -> None:
    told = run_under(house, *refused)
    for key in ("achievable", "measured"):
        assert told[key].startswith("process: ")
        assert "seccomp" in told[key]
    assert told["untrusted"]["code"] == told["require"]["code"] == "sandbox-insufficient"
    assert "seccomp" in told["untrusted"]["message"]
    assert f"seccomp: {refused[-1][8:]}" in told["untrusted"]["hint"]
    assert told["trusted"]["level"].startswith("process: ")
    check_honest(told["trusted"])
    assert told["trusted"]["states"]["network"] == "not_enforced"
    reads = "enforced" if len(refused) == 1 else "not_enforced"
    assert told["trusted"]["states"]["fs_read"] == reads, "what Landlock holds is still said"
    assert told["unattended"]["code"] == "refused"
    assert told["must"]["code"] == "plugin-sandbox"
    assert told["attended"]["asked"] == ["sandbox"]
    assert told["attended"]["level"].startswith("process: ")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="NOT SHOWN HERE: an ordinary user has no capabilities to drop")
def test_what_the_kernel_only_promises_is_tried_before_anything_is_installed(house: Path, full_level: None) -> None:
    told = run_under(house, "capset=EPERM")
    assert told["achievable"] == "full", "nothing that can be asked for without doing it is missing"
    assert told["measured"].startswith("partial: dropping capabilities is refused (EPERM)")
    assert told["untrusted"]["level"] == told["measured"]
    assert told["require"]["code"] == "sandbox-insufficient"
    assert told["unattended"]["code"] == "refused"
    assert told["attended"]["asked"] == ["sandbox"]


@pytest.mark.parametrize(
    ("refused", "cause", "remedy"),
    [
        ("landlock=ENOSYS", "partial: no Landlock in this kernel", "Landlock: ENOSYS: use Linux 5.13 or newer"),
        pytest.param(
            "seccomp=EPERM", "process: seccomp is refused", "seccomp: EPERM: a container", marks=pytest.mark.slow
        ),
    ],
)
def test_doctor_names_the_missing_layer_its_cause_and_the_remedy(
    tmp_path: Path, full_level: None, refused: str, cause: str, remedy: str
) -> None:
    def doctor(*options: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-B", str(SUPPORT / "refusing.py"), refused, "--", sys.executable, "-m", "dragoman"]
        words += ["--home", str(tmp_path), "doctor", *options]
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    told = doctor("--sandbox")
    assert told.returncode == 0
    assert cause in told.stdout
    assert remedy in told.stderr
    document = json.loads(doctor("--json", "--sandbox", "require").stdout)
    findings = {one["subject"]: one for one in document["findings"]}
    assert findings["sandbox"]["state"] == "fault", "what is asked for cannot be had"
    assert findings["sandbox"]["remedy"].startswith(remedy)
    states = {name: one["state"] for name, one in document["sandbox"]["permissions"].items()}
    missing = "fs_read" if "landlock" in refused else "network"
    assert (states[missing], findings[f"sandbox {missing}"]["state"]) == ("not_enforced", "warning")
