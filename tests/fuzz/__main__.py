"""`python -m tests.fuzz [TARGET …]`: search for inputs that a parser does not survive, and print what was seen."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import run
from typing import TYPE_CHECKING, Any

from .engine import Search, keep
from .server import Server
from .table import TARGETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .engine import Report

KNOWN = Path(__file__).parent / "known.txt"
"""Findings that are known and open, one a line: target, kind, function; the text after a `#` says why."""

SHORT = 5.0
"""Seconds below which a process for each target would cost more than the search."""

HEAD = ("target", "inputs", "/s", "refused", "lines", "worst ms", "worst MB", "MB/kB", "open", "NEW")


def main() -> int:
    """Run the command; the exit code is 1 where something new was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="which; all without one")
    parser.add_argument("--seconds", type=float, default=60, help="for each target (60)")
    parser.add_argument("--jobs", type=int, default=1, help="targets at the same time (1)")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)), help="of what is random")
    parser.add_argument("--keep", action="store_true", help="add findings and inputs that reach more to the corpus")
    parser.add_argument("--json", action="store_true", help="write the results as JSON")
    parser.add_argument("--list", action="store_true", help="say what there is")
    given = parser.parse_args()
    if unknown := [name for name in given.targets if name not in TARGETS]:
        parser.error(f"no target is called {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    names = given.targets or [*TARGETS]
    warnings.simplefilter("ignore")
    if given.list:
        print("\n".join(f"{name:24}{TARGETS[name].parses}" for name in names))
        return 0
    alone = len(names) > 1 and given.seconds >= SHORT
    found = _each_alone(names, given) if alone else [_search(name, given) for name in names]
    known = _known()
    for each in found:
        for finding in each["findings"]:
            finding["known"] = f"{each['target']} {finding['kind']} {finding['where']}" in known
    print(json.dumps(found, indent=1) if given.json else _table(found))
    return any(not finding["known"] for each in found for finding in each["findings"])


def _each_alone(names: Sequence[str], given: argparse.Namespace) -> list[dict[str, Any]]:
    """Search in every target in a process of its own, which starts small and ends with all it made."""
    more = [f"--seconds={given.seconds}", f"--seed={given.seed}", "--json", *(["--keep"] if given.keep else [])]

    def one(name: str) -> dict[str, Any]:
        done = run([sys.executable, "-m", "tests.fuzz", name, *more], stdout=-1, check=False, text=True)
        [found] = json.loads(done.stdout or "[]") or [{"target": name, "findings": [_lost(name, done.returncode)]}]
        return dict(found)

    with ThreadPoolExecutor(given.jobs) as pool:
        return list(pool.map(one, names))


def _lost(name: str, code: int) -> dict[str, Any]:
    return {"kind": "harness", "where": name, "error": f"the search itself ended with {code}", "data": "b''"}


def _search(name: str, given: argparse.Namespace) -> dict[str, Any]:
    with Server(TARGETS[name]) as server:
        search = Search(server, number=given.seed, say=lambda text: print(text, file=sys.stderr))
        report = search.run(given.seconds)
        if given.keep:
            keep(search)
    return _as_data(report)


def _as_data(report: Report) -> dict[str, Any]:
    return {
        "target": report.target, "inputs": report.inputs, "per_second": round(report.inputs / max(report.seconds,
        0.001)),
        "refused": report.refused, "lines": report.lines, "worst_ms": round(report.slowest * 1000),
        "worst_mb": round(report.largest, 1), "worst_mb_per_kb": round(report.worst, 3),
        "findings": [
            {"kind": each.kind, "where": each.where, "error": each.error, "file": each.file,
            "data": repr(each.data[:400]),
             "size": len(each.data), "kept": each.kept}
            for each in report.findings.values()
        ],
    }  # fmt: skip


def _known() -> set[str]:
    lines = KNOWN.read_text(encoding="utf-8").splitlines() if KNOWN.is_file() else []
    return {" ".join(line.partition("#")[0].split()) for line in lines}


def _table(found: Sequence[dict[str, Any]]) -> str:
    rows = [HEAD]
    for each in found:
        new = sum(not finding["known"] for finding in each["findings"])
        figures = ("inputs", "per_second", "refused", "lines", "worst_ms", "worst_mb", "worst_mb_per_kb")
        shown = [f"{each.get(name, 0):,}" for name in figures]
        rows.append((each["target"], *shown, str(len(each["findings"]) - new), str(new)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    for each in found:
        for finding in each["findings"]:
            word = "open" if finding["known"] else "NEW"
            lines += ["", f"{word}: {each['target']} {finding['kind']} {finding['where']}", f"  {finding['error']}"]
            lines += [f"  {finding['data']}"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
