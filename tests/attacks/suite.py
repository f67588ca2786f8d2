"""Runs hosts at the levels, judges what they tell, and keeps the record: python -m tests.attacks.suite

The script makes every attack at every level, as root and as an ordinary user, and writes the record from which the
page on the sandbox is generated.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.attacks.table import ATTACKS, COLUMNS, POSSIBLE, SUCCEEDED
from tests.worker.test_ordinary_user import NOBODY, opening_the_way

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HERE = Path(__file__).parent
SECONDS = 110
ROOT = HERE.parents[1]
RECORD = HERE / "record.json"
USERS = ("root", "ordinary user")
LEVELS = tuple(dict.fromkeys([*COLUMNS, *(attack.control for attack in ATTACKS.values() if attack.control)]))

SURROUNDINGS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "no Landlock: its calls answer ENOSYS": ("root", ("landlock=ENOSYS",), ""),
    "no Landlock, an ordinary user": ("ordinary user", ("landlock=ENOSYS",), ""),
    "what a container's default profile refuses": ("root", ("container=EPERM",), ""),
    "what a container's default profile refuses, an ordinary user": ("ordinary user", ("container=EPERM",), ""),
    "`/proc` with `hidepid=2`, an ordinary user": ("ordinary user", (), "mount -t proc -o hidepid=2 proc /proc"),
}
"""What a machine may give less of → the host's user, the calls that a filter refuses to it, and a shell command."""

Run = dict[str, Any]


def attacks_at(level: str) -> list[str]:
    """Name the attacks that are made at a level: all, those that a kernel layer may hold, or its own controls."""
    if level == "full":
        return list(ATTACKS)
    by_kernel = level in COLUMNS
    return [a.name for a in ATTACKS.values() if a.control == level or (by_kernel and a.held != "the host")]


@contextmanager
def house() -> Iterator[Path]:
    """Yield a folder that every user can read, with the hostile driver's wheel in it."""
    from tests.attacks.wheel import build

    folder = Path(tempfile.mkdtemp(prefix="dragoman-attacks-"))
    try:
        folder.chmod(0o755)
        yield build(folder)
    finally:
        shutil.rmtree(folder)


def can_become_nobody() -> bool:
    return os.geteuid() == 0 and all(map(shutil.which, ("setpriv", "unshare", "mount")))


def run(
    level: str, wheel: Path, *, user: str = "", names: Iterable[str] = (), way: str = "fork",
    refused: Iterable[str] = (), mounts: str = "",
) -> Run:  # fmt: skip
    """Start a host at a level, with a secret in its environment, and have it attacked.

    Args:
        level: Of `levels.LEVELS`.
        wheel: The hostile driver.
        user: ``ordinary user`` for one, else the current user.
        names: Attacks; when empty, all of the level that are possible on this processor.
        way: How the drivers' processes come about: ``fork`` or ``spawn``.
        refused: Calls that a filter refuses to the host and all that it starts, as `refusing.py` takes them.
        mounts: A shell command that changes what is mounted before root becomes an ordinary user.
    """
    sentinel = f"dragoman-sentinel-{secrets.token_hex(16)}"
    chosen = list(names) or [name for name in attacks_at(level) if name in POSSIBLE]
    command = [sys.executable, "-B", str(HERE / "host.py"), level, sentinel, str(wheel), way, *chosen]
    if refused:
        command = [sys.executable, "-B", str(ROOT / "tests/support/refusing.py"), *refused, "--", *command]
    path = os.pathsep.join([str(ROOT), *sys.path])
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        Path(folder).chmod(0o755)
        if user == "ordinary user" and os.geteuid() == 0:
            become = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups --no-new-privs"
            script = [*opening_the_way(Path(folder)), mounts, f"exec {become} {' '.join(command)}"]
            command = ["unshare", "-m", "sh", "-ec", "\n".join(script)]
        done = subprocess.run(
            command,
            env={"PATH": os.environ["PATH"], "SENTINEL": sentinel, "PYTHONPATH": path},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def faults_at_full(found: Run) -> dict[str, str]:
    """Name what is not as it must be at `full`: how the driver is confined, each attack, what was looked up."""
    faults = {
        name: f"{end}, not {ATTACKS[name].full}" for name, end in found["outcomes"].items() if end != ATTACKS[name].full
    }
    if found["report"] != "full":
        faults["report"] = found["report"]
    if strange := set(found["lookups"]) - {"127.0.0.1"}:
        faults["lookups"] = ", ".join(sorted(strange))
    return faults


def judge_controls(level: str, found: Run, *, user: str) -> tuple[dict[str, str], dict[str, str]]:
    """Look whether what must succeed at a level does.

    Returns:
        Faults, and attacks that could not be shown on this machine with the reason.
    """
    faults, skipped = {}, {}
    for name, end in found["outcomes"].items():
        attack = ATTACKS[name]
        if attack.control != level or end == attack.end:
            continue
        if end.startswith("unsupported"):
            skipped[name] = end.partition(": ")[2]
        elif attack.root and user != "root":
            skipped[name] = attack.root
        else:
            faults[name] = f"{end}, not {attack.end}"
    return faults, skipped


def successes(found: Run) -> list[str]:
    return [name for name, end in found["outcomes"].items() if end == SUCCEEDED]


def run_in(surroundings: str, wheel: Path) -> Run:
    """Make every attack on a host that gives a driver all that its surroundings allow."""
    user, refused, mounts = SURROUNDINGS[surroundings]
    way = "spawn" if mounts else "fork"  # a host that cannot count a fork server's filters spawns
    return run("full", wheel, user=user, refused=refused, mounts=mounts, way=way)


def outcome_in(found: Run) -> Run:
    """Tell what the record keeps of surroundings: the level that was reported, and how many attacks succeeded."""
    return {"report": found["report"], "made": len(found["outcomes"]), "succeeded": sorted(successes(found))}


def read_record() -> dict[str, Any]:
    return json.loads(RECORD.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def kernel() -> dict[str, Any]:
    """Tell on what it depends how an attack ends where a layer is missing."""
    from dragoman.sandbox.levels import achievable_level

    return {"machine": platform.machine(), "landlock_abi": achievable_level().landlock_abi}


def record_surroundings(wheel: Path) -> dict[str, Run]:
    """Make every attack in all surroundings."""
    record = {}
    for name in SURROUNDINGS:
        record[name] = outcome_in(run_in(name, wheel))
        print(name, record[name], flush=True)
    return record


def main() -> None:
    """Make every attack at every level and write the record."""
    sys.path.append(str(ROOT / "tests/support"))
    machine = {"system": f"Linux {platform.release().partition('-')[0]}", "python": platform.python_version()}
    machine |= kernel()
    record: dict[str, Any] = {"machine": machine}
    with house() as wheel:
        for user in USERS:
            record[user] = {}
            for level in LEVELS:
                found = run(level, wheel, user=user)
                faults, skipped = judge_controls(level, found, user=user)
                faults |= faults_at_full(found) if level == "full" else {}
                print(f"{user}, {level}: {len(successes(found))} of {len(found['outcomes'])} succeed", faults, skipped)
                record[user][level] = dict(sorted(found["outcomes"].items()))
        record["surroundings"] = record_surroundings(wheel)
    if "--dry" not in sys.argv:
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
