"""Check and test what was touched: `python -m tests.quick [PATH …]`, by default the files that differ from HEAD.

A path is a file or folder of a package, of tests or of documentation. Formats and lints it, checks the types of its
package, and runs the default tests that hold its modules: those of `tests/mutants/table.py`, else those that import it.
"""

from __future__ import annotations

import re
import subprocess
import sys

from tests.mutants.table import ROOT, SOURCES, STORIES, STRUCTURE, holding

MOST = 12
"""Files of tests that are run for one module that the table does not list; those with its name come first."""


def touched() -> list[str]:
    """List the files that differ from the last commit, new ones included."""
    answers = (git("diff", "--name-only", "HEAD"), git("ls-files", "--others", "--exclude-standard"))
    return [line for answer in answers for line in answer.splitlines() if (ROOT / line).exists()]


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def python_files(paths: list[str]) -> list[str]:
    """List the Python files below some paths, from the root of the repository."""
    tracked = git("ls-files", "--cached", "--others", "--exclude-standard", "--", *paths).splitlines() if paths else []
    return sorted({name for name in tracked if name.endswith(".py") and (ROOT / name).exists()})


def module_of(file: str) -> str | None:
    """Return the dotted name of a package's module; None for a file that belongs to no package."""
    for source in SOURCES:
        if file.startswith(f"{source}/dragoman"):
            return file.removeprefix(f"{source}/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return None


def files_that_hold(module: str) -> set[str]:
    """Find the files of tests that hold a module; whole stories and the structure are left to `make test`."""
    if module in holding():
        return {*holding()[module]} - {*STORIES, *STRUCTURE}
    parent, _, name = module.rpartition(".")
    whole, above = re.escape(module), re.escape(parent)
    imported = re.compile(rf"(?m)^\s*(from {whole} |import {whole}\b|from {above} .*\b{name}\b)")
    files = [path for path in sorted(ROOT.glob("tests/**/test_*.py")) if imported.search(path.read_text("utf-8"))]
    files.sort(key=lambda path: name not in path.stem)
    return {path.relative_to(ROOT).as_posix() for path in files[:MOST]}


def main(paths: list[str]) -> int:
    """Run every check, print each answer, and return 1 if one failed."""
    files = python_files(paths or touched())
    modules = [module for file in files if (module := module_of(file))]
    tests = {file for file in files if re.fullmatch(r"tests/(.*/)?test_\w+\.py", file)}.union(
        *map(files_that_hold, modules)
    )
    names = {module.partition(".")[0] for module in modules}
    packages = [f"{source}/{name}" for source in SOURCES for name in names if (ROOT / source / name).is_dir()]
    commands = []
    if files:
        commands += [["ruff", "check", *files], ["ruff", "format", "--check", "-q", *files]]
    if packages:
        commands += [["mypy", *packages], ["tests.vague_names"]]
    if tests:
        commands += [["pytest", "-q", "-m", "not slow", *(["-n", "auto"] if len(tests) > 4 else []), *sorted(tests)]]
    failed = False
    for command in commands:
        print(f"== {' '.join(command[:2])} … {len(command)} words" if len(command) > 9 else f"== {' '.join(command)}")
        failed |= subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode not in (0, 5)
    if not commands:
        print("no Python file is touched; name one: make quick PATHS=runtime/dragoman/exports")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
