"""Try mutants in copies of the repository, several at a time; nothing of the repository itself is changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from .mutating import Mutant, function_at
from .table import INSTALLED, ROOT, STORIES, STRUCTURE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


_COPIED = ("docs", "plugins", "pyproject.toml", "README.md", "LICENSE", "Makefile", "registry", "runtime", "tests")
_LEFT_OUT = shutil.ignore_patterns(".*", "node_modules")
_WATCHING = Path(__file__).with_name("bench.py")
_LONGEST = 900.0
"""Seconds for a whole file of tests."""
_TOGETHER = 8
"""How many files of tests are watched in one process."""
_LATELY = 5
"""How many tests that noticed other changes of a module go first."""

Item = TypeVar("Item")
Outcome = Literal["killed", "survived", "timeout"]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What became of a mutant.

    Attributes:
        mutant: Which.
        outcome: A timeout is a kill too: the tests would not pass.
        killer: The test that failed first.
        seconds: How long its tests ran.
    """

    mutant: Mutant
    outcome: Outcome
    killer: str
    seconds: float


class Bench:
    """A copy of the repository and the process that runs tests in it.

    Attributes:
        folder: Of the copy.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in _COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=_LEFT_OUT, symlinks=True)
            elif source.is_file():
                shutil.copy2(source, folder / name)
        _make_repository(root, folder)
        path = os.pathsep.join(str(folder / name) for name in (*INSTALLED, "."))  # the root, as `python -m pytest` does
        temporary = folder / "tmp"
        temporary.mkdir()
        environment = os.environ | {"PYTHONPATH": path, "TMPDIR": str(temporary)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_WATCHING)],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C ends it by this process, not beside it
        )

    def run(self, tests: Iterable[str], *, seconds: float = _LONGEST, **more: Any) -> dict[str, Any]:
        """Run tests, with a file changed while they run where `file` and `code` are given."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps({"tests": list(tests), "seconds": seconds} | more), file=self._process.stdin, flush=True)
        said = self._process.stdout.readline()
        if not said:
            raise BrokenPipeError
        return dict(json.loads(said))

    def close(self) -> None:
        """End the process with what it runs."""
        with self._process:
            self._process.terminate()


def _make_repository(root: Path, folder: Path) -> None:
    """Make a repository of a copy: tests of the structure ask git which files there are."""
    if (root / ".gitignore").is_file():
        shutil.copy2(root / ".gitignore", folder)
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=folder, check=True)


@dataclass(kw_only=True)
class Watched:
    """What is known about the tests: which functions each calls and how long it takes.

    Attributes:
        files: File of tests → the digest of its text and of what watches, and its tests; kept between runs.
        alone: Test → whether it passes alone where nothing is changed.
    """

    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    alone: dict[str, bool] = field(default_factory=dict)

    def knows(self, file: str, digest: str) -> bool:
        """Tell whether a file was watched as it is."""
        return self.files.get(file, {}).get("digest") == digest

    def chosen(self, file: str, function: str, tests: Iterable[str]) -> tuple[dict[str, float], dict[str, float]]:
        """Return the tests that call a function, the fastest first, and those whose calls may have gone unseen.

        What is kept by other means than `functools.lru_cache` has one caller in each file of tests; a driver's process
        is not watched, and neither are the commands of whole stories. Where no test calls the function, any test may
        notice.
        """
        known = {test: self.files[test]["tests"] for test in tests}
        calling = {
            test: {name for name, each in of.items() if function and function in each["calls"].get(file, ())}
            for test, of in known.items()
        }
        unseen = {test for test in known if test in (*STORIES, *STRUCTURE) or file.startswith("plugins/")}
        unsure = {test for test, of in calling.items() if len(of) == 1 or (not of and test in unseen)}
        unsure = unsure if any(calling.values()) else set(known)
        seconds = {name: each["seconds"] for of in known.values() for name, each in of.items()}
        # A fixture of a class is made once where the tests of a class stay together.
        order = sorted(seconds, key=lambda name: (name.count("::") > 1, seconds[name] * (name.count("::") < 2)))
        first = {name: seconds[name] for name in order if any(name in of for of in calling.values())}
        others = {name for test in unsure for name in known[test]} - first.keys()
        return first, {name: seconds[name] for name in order if name in others}


class Failed(Exception):  # noqa: N818 - a sentence for a person
    """The tests cannot judge mutants: they fail where nothing is changed."""


def digest_of(*paths: Path) -> str:
    """Tell one state of files from another."""
    return sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


@contextmanager
def benches(number: int, *, root: Path = ROOT) -> Iterator[list[Bench]]:
    """Set up benches in a temporary folder, which is gone afterwards."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True)))
        made = []
        for at in range(number):
            made.append(Bench(root, folder / str(at)))
            stack.callback(made[-1].close)
        yield made


def watch(
    made: list[Bench],
    files: Mapping[str, tuple[str, ...]],
    tests: Watched,
    *,
    root: Path = ROOT,
    until: float = float("inf"),
) -> None:
    """Run every file of tests once, where nothing is changed, and remember which functions its tests call.

    Args:
        made: The benches.
        files: File of a module → the files of tests that hold it.
        tests: What is known; it learns.
        root: Of the repository.
        until: As `time.monotonic` counts; what is not watched by then stays unknown.

    Raises:
        Failed: A test fails.
    """
    wanted = dict.fromkeys(test for each in files.values() for test in each)
    digests = {test: digest_of(_WATCHING, root / test) for test in wanted}
    missing = {test: digest for test, digest in digests.items() if not tests.knows(test, digest)}

    def some(bench: Bench, together: tuple[str, ...]) -> None:
        seconds = min(_LONGEST, until - time.monotonic())
        if seconds <= 0:
            return
        told = bench.run(together, watch=list(files), seconds=seconds)
        if told["outcome"] == "killed":  # a busy machine fails a test that has a deadline
            told = bench.run(together, watch=list(files), seconds=seconds)
        if told["outcome"] == "timeout" and seconds < _LONGEST:
            return
        if told["outcome"] not in ("survived", "untested"):  # all tests of a file may be slow ones
            raise Failed(f"{together}: {told['outcome']} {told.get('killer', '')}, where nothing is changed")
        for test in together:
            of = {name: each for name, each in told["tests"].items() if name.partition("::")[0] == test}
            tests.files[test] = {"digest": missing[test], "tests": of}

    folders: dict[str, list[str]] = {}
    for test in missing:
        folders.setdefault(test.rpartition("/")[0], []).append(test)
    # Those of a folder share most of what they import.
    starts = [(folder, at) for folder, of in folders.items() for at in range(0, len(of), _TOGETHER)]
    _each(made, [tuple(folders[folder][at : at + _TOGETHER]) for folder, at in starts], some)


def attempt(
    made: list[Bench],
    mutants: Iterable[Mutant],
    *,
    files: Mapping[str, tuple[str, tuple[str, ...]]],
    tests: Watched,
    told: Callable[[Trial], None],
    until: float,
) -> None:
    """Try mutants until a time.

    Args:
        made: The benches.
        mutants: Which, in this order.
        files: Module → its file and the files of tests that hold it.
        tests: What is known about these.
        told: Called with each trial.
        until: As `time.monotonic` counts.
    """

    def one(bench: Bench, mutant: Mutant) -> None:
        if time.monotonic() > until:
            return
        file, names = files[mutant.module]
        function = function_at(mutant.source, mutant.line)
        chosen = [_killers_first(some, killers[mutant.module]) for some in tests.chosen(file, function, names)]
        together = collected[mutant.module]
        trial = _in_function(bench, mutant, file=file, function=function, chosen=chosen, tests=tests, names=together)
        for some in chosen:
            if some and (trial is None or trial.outcome == "survived"):
                trial = _tried(bench, mutant, file=file, chosen=some, tests=tests, names=names)
        if trial is not None:
            if trial.killer:
                killers[mutant.module].append(trial.killer)
            told(trial)

    killers, collected = defaultdict[str, list[str]](list), _collected_with(files)
    _each(made, mutants, one)


def _collected_with(files: Mapping[str, tuple[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """Return the tests that a process collects for each module: those of all modules of its package."""
    packages: dict[str, dict[str, None]] = {}
    for module, (_, names) in files.items():
        packages.setdefault(module.rpartition(".")[0], {}).update(dict.fromkeys(names))
    return {module: tuple(packages[module.rpartition(".")[0]]) for module in files}


def _killers_first(chosen: dict[str, float], killers: list[str]) -> dict[str, float]:
    """Put tests that noticed other changes of the module first, the latest foremost."""
    lately = list(dict.fromkeys(reversed(killers)))[:_LATELY]
    return {name: chosen[name] for name in (*(each for each in lately if each in chosen), *chosen)}


def _in_function(
    bench: Bench,
    mutant: Mutant,
    *,
    file: str,
    function: str,
    chosen: list[dict[str, float]],
    tests: Watched,
    names: tuple[str, ...],
) -> Trial | None:
    """Try a mutant by exchanging a function's code alone, which is fast; None where no test notices that."""
    seconds = {name: each for some in chosen for name, each in some.items()}
    if not function or not seconds:
        return None
    said = bench.run(
        names,
        seconds=30 + 10 * sum(seconds.values()),
        chosen=list(seconds),
        file=file,
        code=mutant.code,
        function=function,
    )
    if said["outcome"] not in ("killed", "timeout"):
        return None
    killer = said.get("killer", "")
    if killer and killer not in tests.alone:
        again = bench.run(names, seconds=_LONGEST, chosen=[killer], function="")
        tests.alone[killer] = again["outcome"] == "survived"
    if killer and not tests.alone[killer]:
        return None
    return Trial(mutant=mutant, outcome=said["outcome"], killer=killer, seconds=said["took"])


def _tried(
    bench: Bench, mutant: Mutant, *, file: str, chosen: dict[str, float], tests: Watched, names: tuple[str, ...]
) -> Trial:
    seconds = 30 + 10 * sum(chosen.values())  # even on a busy machine
    change = {"file": file, "code": mutant.code}
    known = [name for test in _files(chosen) for name in tests.files[test]["tests"]]
    said = bench.run(_files(chosen), chosen=list(chosen), known=known, seconds=seconds, **change)
    killer = said.get("killer", "")
    if "::" in killer and not _passes_alone(bench, killer, tests):  # a test that needs those before it has no say alone
        said = bench.run(names, seconds=_LONGEST, **change)
    outcome: Outcome = said["outcome"] if said["outcome"] in ("killed", "timeout") else "survived"
    return Trial(mutant=mutant, outcome=outcome, killer=said.get("killer", ""), seconds=said["took"])


def _passes_alone(bench: Bench, name: str, tests: Watched) -> bool:
    if name not in tests.alone:
        tests.alone[name] = bench.run(_files([name]), chosen=[name])["outcome"] == "survived"
    return tests.alone[name]


def _files(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name.partition("::")[0] for name in names))


def _each(made: list[Bench], items: Iterable[Item], act: Callable[[Bench, Item], None]) -> None:
    """Do something with each item, as many at a time as there are benches; the first error ends it."""
    waiting, lock, errors = iter(items), threading.Lock(), list[BaseException]()

    def serve(bench: Bench) -> None:
        try:
            while not errors:
                with lock:
                    item = next(waiting, None)
                if item is None:
                    return
                act(bench, item)
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            errors.append(error)

    threads = [threading.Thread(target=serve, args=(bench,), daemon=True) for bench in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)  # so that Ctrl-C is heard
    if errors:
        raise errors[0]
