"""Boot machines, run the sandbox's tests in each, and print how they ended: `python -m tests.machines 6.1 arm64`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import Any

from tests.machines.boot import EarlyEndError, run
from tests.machines.kinds import MACHINES
from tests.machines.programs import MachineError

PARTS: dict[str, list[str]] = {
    "doctor": [],
    "filter": ["tests/worker/test_seccomp.py", "tests/worker/test_levels.py", "tests/worker/test_syscall_numbers.py"],
    "attacks": ["tests/attacks", "-m", "not slow"],
    "worker": ["tests/worker", "-m", "not slow"],
    "first hour": [],
    "attacks, slow": ["tests/attacks", "-m", "slow"],
    "worker, slow": ["tests/worker", "-m", "slow"],
}
"""What a machine does → the tests of it, by pytest's words; the two without words are no tests."""
LOGS = Path("build/machines")


def main() -> int:
    """Return 0 if each machine gives the level that it must and no test failed, 2 if one cannot be made or started."""
    parser = argparse.ArgumentParser(prog="python -m tests.machines", description=__doc__)
    parser.add_argument("machines", nargs="*", metavar="MACHINE", help=f"of {', '.join(MACHINES)}; all by default")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--tests", nargs=argparse.REMAINDER, help="pytest's words, instead of the parts")
    chosen = parser.parse_args()
    if unknown := set(chosen.machines) - MACHINES.keys():
        parser.error(f"no machine {', '.join(sorted(unknown))}; there are {', '.join(MACHINES)}")
    parts = {name: PARTS[name] for name in chosen.parts} if not chosen.tests else {"tests": chosen.tests}
    LOGS.mkdir(parents=True, exist_ok=True)
    lines, faults = list[list[str]](), list[str]()
    for name in chosen.machines or MACHINES:
        machine, console = MACHINES[name], LOGS / f"{name}.log"
        print(f"== {name}: what it prints is in {console}", file=sys.stderr)
        job = {"parts": [{"name": part, "words": words} for part, words in parts.items()], "environment": {}}
        try:
            answers = run(machine, job, console)
        except EarlyEndError as error:
            print(error, file=sys.stderr)
            answers = error.answers
        except MachineError as error:
            print(error, file=sys.stderr)
            return 2
        (LOGS / f"{name}.json").write_text(json.dumps(answers, indent=1) + "\n")
        for part in parts:
            answer = next((answer for answer in answers if answer["part"] == part), {})
            cells, found = _judge(machine.level, machine.abi, answer)
            lines.append([name, part, *cells])
            faults += [f"{name}, {part}: {fault}" for fault in found]
    _print_table([["machine", "part", "seconds", "answer"], *lines])
    print(*faults, sep="\n")
    return 1 if faults else 0


def _judge(level: str, abi: int, answer: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the cells of a part's answer, and what is wrong with it."""
    if not answer:
        return ["", "did not end"], ["did not end"]
    seconds = str(answer["seconds"])
    if answer["part"] != "doctor":
        counts = f"{answer['passed']} passed, {answer['skipped']} skipped, {answer['failed']} failed"
        broken = [f"pytest ended with {status}"] if (status := answer.get("status", 0)) not in (0, 1) else []
        return [seconds, counts], answer["failures"] + broken
    given = {(answer[user]["level"], answer[user]["landlock_abi"]) for user in ("root", "ordinary user")}
    told = "; ".join(f"{level}, Landlock ABI {abi}" for level, abi in sorted(given))
    wrong = [] if given == {(level, abi)} else [f"{told}, not {level}, Landlock ABI {abi}"]
    require = answer["require"]
    if (require == "starts") != (level == "full"):
        wrong.append(f"a driver that requires full, at {level}: {require}")
    return [seconds, f"{answer['kernel']} {answer['processor']}: {told}; require: {require}"], wrong


def _print_table(lines: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was made for a machine is removed
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("stopped, and the machine with it; no answer of it counts", file=sys.stderr)
        sys.exit(130)
