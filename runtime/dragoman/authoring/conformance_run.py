"""Run a driver's conformance tests on the fake, on real servers and in the sandbox, and write the report."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections import Counter
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import msgspec

from dragoman.folders import installed_version, scratch_folder
from dragoman.references import regular_file
from dragoman.sandbox.conversation import DriverProxy
from dragoman.sandbox.driver_process import Launch, Worker
from dragoman.sandbox.launch import granted
from dragoman.sandbox.levels import enforce
from dragoman.sandbox.machine_level import measured_level
from dragoman_api.errors import ConfigurationError
from dragoman_api.wording import shell_word
from dragoman_registry.files import write
from dragoman_registry.index.release_documents import ConformanceReport
from dragoman_worker.hooks_and_deadlines import HOOKS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from dragoman.references import NamedFile
    from dragoman.sandbox.levels import Policy
    from dragoman_api.connections import FieldValue, Profile

    from .wheel_build import Built

REPORT = "report.json"
SERVERS = "servers.json"
TEST_SECONDS = 1_800
STDERR = 2
_NO_TESTS = 5
"""The exit code of pytest if it found no test."""
_DERIVE = "subclass dragoman_api.testing.DriverConformance in tests/test_conformance.py"
OPENER = f"{__name__}:opened"
VARIABLE = "DRAGOMAN_DRIVER_TEST"
"""The variable that tells the tests, as JSON, how to open drivers and where to note the result."""


class Conformance(ConformanceReport, frozen=True, kw_only=True):
    """The result of the conformance tests; the contents of a conformance report.

    Attributes:
        plugin: The plugin's id.
        version: The version of the distribution.
        wheel: The tested file.
        sha256: The digest of that file.
        unserved: How many live tests were skipped, since no server of their type was listed.
    """

    plugin: str
    version: str
    wheel: str
    sha256: str
    unserved: int = 0

    @property
    def passed(self) -> bool:
        """Whether the driver passed its conformance tests, in a sandbox."""
        return bool(self.count("passed")) and not (self.failures or self.denied) and self.sandbox != "none"

    def __str__(self) -> str:
        failed = f", {self.count('failed')} failed" if self.count("failed") else ""
        without = f" (hooks not implemented: {', '.join(self.hooks)})" if self.hooks else ""
        unserved = f", {self.unserved} without a server" if self.unserved else ""
        counts = f"{self.count('passed')} passed{failed}, {self.count('skipped')} skipped{unserved}{without}"
        return f"conformance: {counts} · sandbox {self.sandbox}"


def shortfall(tested: Conformance, project: Path) -> tuple[str, str]:
    """Return why a driver does not pass, and what shows or does more; both are empty if it passes.

    Args:
        tested: The result of its tests.
        project: The driver's folder, for a command to type.
    """
    if tested.passed:
        return "", ""
    test = "dragoman driver test" + ("" if str(project) == "." else f" {shell_word(str(project))}")
    if tested.failures or tested.denied:
        return next(iter([*tested.failures, *(f"it tried to reach {address}" for address in tested.denied)])), test
    if tested.count("passed"):
        return "its tests opened it outside the sandbox", "open it with the fixture 'open_driver' in its tests"
    if tested.unserved:
        return "none of its tests ran: they are live, and no server is listed", f"{test} --live {SERVERS}"
    if tested.count("skipped"):
        return "none of its tests ran: all are skipped", "name more in the tests' Target; report.json lists the reasons"
    return "it has no conformance tests", _DERIVE


def run_conformance(
    build: Built, *, policy: Policy = "auto", live: Path | None = None, passthrough: bool = False
) -> tuple[Conformance, str]:
    """Run an author's tests on the built wheel and write `report.json` into the working tree. Blocks.

    Args:
        build: The unpacked wheel.
        policy: The sandbox policy.
        live: The list of real servers, in the format that the pytest plugin of `dragoman_api.testing` reads.
        passthrough: Whether what tests and driver print goes to stderr at once, with pytest's own output.

    Returns:
        The result of the conformance tests, and pytest's output.

    Raises:
        WheelRejectedError: The wheel has faults.
        ConfigurationError: The tests could not be run: there are none, pytest is missing, or the list cannot be read.
        SandboxError: The policy is ``require``, and this machine provides less than full.
    """
    build.check_sound()
    if policy == "require":  # reported once, instead of by each test
        enforce(measured_level(), policy=policy, trusted=True)
    with scratch_folder() as temporary:
        notes, results = temporary / "notes.ndjson", temporary / "results.json"
        settings: dict[str, Any] = {"trees": [str(tree) for tree in build.trees], "policy": policy, "notes": str(notes)}
        settings["permissions"] = build.report.manifest.permissions if build.report.manifest else ()
        words = [sys.executable, "-m", "pytest", "-q", "-rf", "--tb=short", "-p", "no:cacheprovider"]
        words += ["--open-with", OPENER, "--report", str(results), *(["--live", str(live.absolute())] if live else [])]
        # The tests import the driver class for its name, which also imports its dependencies.
        env = {name: value for name, value in os.environ.items() if name != "PYTHONOPTIMIZE"}  # the kit asserts
        env |= {VARIABLE: json.dumps(settings), "PYTHONPATH": os.pathsep.join(settings["trees"])}
        words += ["-s"] if passthrough else []
        streams: dict[str, Any] = {"stdout": STDERR} if passthrough else {"capture_output": True}
        done = subprocess.run(  # noqa: S603 - this interpreter, on the author's own tests
            words, cwd=build.project, env=env, text=True, timeout=TEST_SECONDS, check=False, **streams
        )
        output = "see above" if passthrough else done.stdout + done.stderr
        if done.returncode not in (0, 1) or not results.is_file():
            raise _not_run(build.project, output, done.returncode)
        lines = [json.loads(line) for line in notes.read_text().splitlines()] if notes.is_file() else []
        tested = _tested(build, json.loads(results.read_text(encoding="utf-8")), lines)
    failures = list(tested.failures)
    if done.returncode and not failures:  # another test than those failed
        failures = re.findall(r"^(?:FAILED|ERROR) (.+)$", output, re.MULTILINE) or ["pytest failed"]
    if live and not set(tested.engines) - {"fake"}:
        failures.append(f"no conformance test ran on a server of {live.name}; are the tests marked live(TYPE)?")
    tested = msgspec.structs.replace(tested, failures=tuple(failures))
    report = json.dumps(msgspec.structs.asdict(tested), indent=1, ensure_ascii=False)
    write(build.project / REPORT, f"{report}\n".encode())
    return tested, output


def _tested(build: Built, tests: list[dict[str, str]], notes: list[dict[str, Any]]) -> Conformance:
    assert build.report.name is not None
    levels = sorted({note["sandbox"] for note in notes})
    counts: dict[str, Counter[str]] = {}
    failures, deviations = [], []
    ran = [test for test in tests if test["engine"] != "no server"]
    for test in ran:
        counts.setdefault(test["engine"], Counter())[test["outcome"]] += 1
        summary = f"{test['test']} on {test['engine']}: {test['reason']}"
        if test["outcome"] == "failed":
            failures.append(summary)
        elif test["reason"].startswith("deviates: "):
            deviations.append(summary)
    skips = Counter(test["reason"].removeprefix("Skipped: ") for test in ran if test["outcome"] == "skipped")
    hooks = HOOKS.keys() - {*build.report.manifest.hooks, "close"} if build.report.manifest else set[str]()
    return Conformance(
        plugin=build.name,
        version=build.report.name.version,
        wheel=build.wheel.name,
        sha256=build.report.sha256,
        api=installed_version("dragoman-api"),
        sandbox=", ".join(levels) or "none",
        denied=tuple(sorted({address for note in notes for address in note["denied"]})),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        engines={name: dict(count) for name, count in counts.items()},
        skips=dict(skips),
        unserved=len(tests) - len(ran),
        hooks=tuple(sorted(hooks)),
        deviations=tuple(deviations),
        failures=tuple(failures),
    )


def _not_run(project: Path, output: str, status: int) -> ConfigurationError:
    lines = output.strip().splitlines() or [""]
    last = next((line for line in lines if line.startswith(("E  ", "ERROR"))), lines[-1])
    if "No module named pytest" in output:
        from dragoman_api.installation import add_command

        hint = add_command("dragoman[author]")
    elif status == _NO_TESTS:
        hint = _DERIVE
    else:
        hint = "correct that list" if last.startswith("ERROR: --live ") else "python -m pytest"
    return ConfigurationError(f"the tests of {project} could not be run: {last}", hint=hint, code="tests-not-run")


@asynccontextmanager
async def opened(driver: type, profile: Profile) -> AsyncIterator[DriverProxy]:
    """Start a driver in its sandbox, connect it, and yield its proxy.

    Args:
        driver: The class; only its name is used here.
        profile: The connection, secrets included.
    """
    settings = json.loads(os.environ[VARIABLE])
    denied: list[str] = []
    field_values = {**profile.options, "client_certificate": profile.client_certificate}
    files = await anyio.to_thread.run_sync(_named_files, field_values)
    launch = Launch(
        driver=f"{driver.__module__}:{driver.__qualname__}",
        trees=tuple(map(Path, settings["trees"])),
        approved=tuple(profile.reach),
        profile=profile,
        files=tuple(file for key, file in files.items() if key == "client_certificate"),
        policy=settings["policy"],
        trusted=True,
        under_test=True,
    )
    launch = granted(launch, settings["permissions"], files=files)
    async with Worker(
        launch,
        on_log=lambda line: sys.stderr.write(f"driver: {line}\n"),  # captured by pytest, or shown by its -s
        on_denied=lambda host, port: denied.append(f"{host}:{port or '…'}"),
    ) as worker:
        proxy = DriverProxy(worker)
        try:
            await proxy.connect()
            yield proxy
            if "close" in worker.hooks:
                await proxy.close()
        finally:
            with Path(settings["notes"]).open("a", encoding="utf-8") as file:  # noqa: ASYNC230 - one line, in tests
                file.write(json.dumps({"sandbox": str(worker.report), "denied": denied}) + "\n")


def _named_files(field_values: Mapping[str, FieldValue]) -> dict[str, NamedFile]:
    """List the files that a profile names."""
    files = {}
    for key, value in field_values.items():
        if isinstance(value, str) and value:
            with suppress(ConfigurationError):
                files[key] = regular_file(value, where=key)
    return files
