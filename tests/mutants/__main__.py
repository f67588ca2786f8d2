"""`python -m tests.mutants [MODULE …]`: change modules at drawn places, and see whether their tests notice."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .accepted import accepted
from .mutating import Mutant, mutants, sample
from .operators import BY_MEANING, OPERATORS
from .table import ROOT, file_of, holding
from .trying import Failed, Trial, Watched, attempt, benches, digest_of, watch

if TYPE_CHECKING:
    from collections.abc import Sequence

KEPT = ROOT / "build" / "mutants.json"
"""What earlier runs found, so that a run that was interrupted goes on."""


class Record:
    """What is known of mutants and tests, on disk; jobs may keep trials at the same time."""

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()
        kept: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            kept = json.loads(file.read_bytes())
        self.tests = Watched(**kept.get("tests", {}))
        self._trials: dict[str, dict[str, Any]] = kept.get("trials", {})
        self._saved = time.monotonic()

    def find(self, mutant: Mutant, tests: tuple[str, ...]) -> Trial | None:
        """Return an earlier trial; a survivor's counts only while the tests are the same."""
        kept = self._trials.get(mutant.key)
        if kept is None or (kept["outcome"] == "survived" and kept["tests"] != _state(tests)):
            return None
        return Trial(mutant=mutant, outcome=kept["outcome"], killer=kept["killer"], seconds=kept["seconds"])

    def keep(self, trial: Trial, tests: tuple[str, ...]) -> None:
        """Remember a trial."""
        kept = {"outcome": trial.outcome, "killer": trial.killer, "seconds": trial.seconds, "tests": _state(tests)}
        with self._lock:
            self._trials[trial.mutant.key] = kept
            if time.monotonic() > self._saved + 5:
                self._save()

    def save(self) -> None:
        """Write it down."""
        with self._lock:
            self._save()

    def _save(self) -> None:
        self._file.parent.mkdir(exist_ok=True)
        fresh = self._file.with_suffix(".new")
        kept = json.dumps({"tests": vars(self.tests), "trials": self._trials})  # in one step: jobs add to both
        fresh.write_text(kept, encoding="utf-8")
        fresh.replace(self._file)
        self._saved = time.monotonic()


def _state(tests: tuple[str, ...]) -> str:
    return digest_of(*(ROOT / test for test in tests))


def main() -> int:
    """Run the command; the exit code is 1 for an unexplained survivor, a score below the floor, or no trial."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="dotted name or pattern; all without one")
    parser.add_argument("--sample", type=int, default=1000, help="mutants in all (1000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="in all, watching included (no limit)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--jobs", type=int, default=2, help="at the same time (2)")
    parser.add_argument("--floor", type=float, default=90, help="percent that have to be killed (90)")
    parser.add_argument(
        "--operator", action="append", metavar="NAME", help="or pattern, or `meaning` (all); repeatable"
    )
    parser.add_argument("--record", type=Path, default=KEPT, metavar="FILE", help="of what was found")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--json", action="store_true", help="write the results as JSON")
    parser.add_argument("--list", action="store_true", help="list the modules and how many mutants each has")
    given = parser.parse_args()
    names = [name for name in holding() if not given.modules or any(_fits(name, one) for one in given.modules)]
    if not names:
        parser.error(f"no module is called {' or '.join(given.modules)}; --list lists them")
    patterns = given.operator or ["*"]
    operators = {name for name in OPERATORS if any(fnmatch(name, pattern) for pattern in patterns)}
    if "meaning" in patterns:
        operators |= {operator.__name__ for operator in BY_MEANING}
    if not operators:
        parser.error(f"no operator is called {' or '.join(patterns)}; there are meaning, {', '.join(OPERATORS)}")
    found = {
        name: [
            mutant
            for mutant in mutants(name, (ROOT / file_of(name)).read_text(encoding="utf-8"))
            if mutant.operator in operators
        ]
        for name in names
    }
    if given.list:
        print("\n".join(f"{name:50}{len(each):6}" for name, each in found.items()))
        return 0
    for number in (signal.SIGINT, signal.SIGTERM):  # shells have background jobs ignore the first
        signal.signal(number, signal.default_int_handler)
    until = time.monotonic() + given.seconds
    if given.fresh:
        given.record.unlink(missing_ok=True)
    try:
        trials = _run(list(islice(sample(found.values(), seed=given.seed), given.sample)), given, until)
    except Failed as error:
        print(error, file=sys.stderr)
        return 2
    explained = {trial.mutant.key: why for trial in trials if (why := _why(trial)) is not None}
    left = [each for each in trials if each.outcome == "survived" and each.mutant.key not in explained]
    score = _score(trials)
    print(json.dumps(_data(trials, explained, given), indent=1) if given.json else _table(trials, left))
    if left:
        print(f"{len(left)} survived without a reason in tests/mutants/accepted.toml", file=sys.stderr)
    if score is None:
        print("no mutant was tried", file=sys.stderr)
    elif score < given.floor:
        print(f"{score:.1f} % were killed, {given.floor:g} % have to be", file=sys.stderr)
    return bool(left) or score is None or score < given.floor


def _fits(name: str, pattern: str) -> bool:
    return fnmatch(name, pattern) or name.startswith(f"{pattern}.")


def _run(drawn: Sequence[Mutant], given: argparse.Namespace, until: float) -> list[Trial]:
    record, trials, todo = Record(given.record), list[Trial](), list[Mutant]()
    for mutant in drawn:
        earlier = record.find(mutant, holding()[mutant.module])
        if earlier is not None:
            trials.append(earlier)
        else:
            todo.append(mutant)
    if not todo:
        return trials
    if until == float("inf"):  # else every module has its turn before time is up
        todo.sort(key=lambda mutant: mutant.module)  # what collected the tests of one is used for the next
    files = {mutant.module: (file_of(mutant.module), holding()[mutant.module]) for mutant in todo}

    def told(trial: Trial) -> None:
        trials.append(trial)
        record.keep(trial, holding()[trial.mutant.module])
        counted = Counter(each.outcome for each in trials)
        words = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counted.items()))
        _progress(f"{len(trials)} of {len(drawn)}: {words}; {trial.seconds:.0f} s {trial.mutant.module}")

    try:
        with benches(given.jobs) as made:
            _progress("watching which tests call what")
            watch(made, dict(files.values()), record.tests, until=until)
            attempt(made, todo, files=files, tests=record.tests, told=told, until=until)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on", file=sys.stderr)
    finally:
        record.save()
        _progress("")
    return trials


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text[:118]}", end="", file=sys.stderr, flush=True)


def _why(trial: Trial) -> str | None:
    if trial.outcome != "survived":
        return None
    return next((each.why for each in ACCEPTED if each.is_that(trial.mutant)), None)


ACCEPTED = accepted()


def _score(trials: Sequence[Trial]) -> float | None:
    """Return the percentage of killed mutants; None without a trial."""
    return 100 * sum(each.outcome != "survived" for each in trials) / len(trials) if trials else None


def _data(trials: Sequence[Trial], explained: dict[str, str], given: argparse.Namespace) -> dict[str, Any]:
    score = _score(trials)
    return {
        "seed": given.seed,
        "score": None if score is None else round(score, 1),
        "modules": {module: dict(Counter(each.outcome for each in of)) for module, of in _by_module(trials)},
        "survivors": [
            {
                "module": each.mutant.module,
                "line_number": each.mutant.line,
                "operator": each.mutant.operator,
                "line": each.mutant.change[0],
                "mutant": each.mutant.change[1],
                "why": explained.get(each.mutant.key),
            }
            for each in trials
            if each.outcome == "survived"
        ],
    }


def _by_module(trials: Sequence[Trial]) -> list[tuple[str, list[Trial]]]:
    modules = {trial.mutant.module for trial in trials}
    return [(name, [each for each in trials if each.mutant.module == name]) for name in holding() if name in modules]


def _table(trials: Sequence[Trial], left: Sequence[Trial]) -> str:
    lines = [f"{'module':50}{'killed':>8}{'timeout':>8}{'survived':>9}{'score':>8}"]
    for module, of in [*_by_module(trials), ("all", trials)]:
        counted = Counter(each.outcome for each in of)
        score = _score(of)
        shown = "-" if score is None else f"{score:.1f}%"
        lines.append(f"{module:50}{counted['killed']:8}{counted['timeout']:8}{counted['survived']:9}{shown:>8}")
    for each in sorted(left, key=lambda trial: (trial.mutant.module, trial.mutant.line)):
        before, after = each.mutant.change
        lines += ["", f"{file_of(each.mutant.module)}:{each.mutant.line} {each.mutant.operator}", f"- {before}"]
        lines += [f"+ {after}"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
