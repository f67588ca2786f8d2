"""What the wheel checks let pass can be installed, and is then exactly what was announced, for every reader."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wheelhouse
from dragoman_registry.client.installer import unpack
from dragoman_registry.client.trees import Trees
from dragoman_registry.names import LISTING
from dragoman_registry.wheels.archive_checks import inspect
from dragoman_registry.wheels.metadata_checks import read_entry_points

if TYPE_CHECKING:
    from dragoman_registry.wheels.metadata_checks import WheelReport

INFO, DATA = "tinylib-1.0.0.dist-info", "tinylib-1.0.0.data"
WRITTEN = {f"{INFO}/INSTALLER", f"{INFO}/RECORD"}

FOLDERS = [
    "",
    f"{DATA}/purelib/",
    f"{DATA}/platlib/",
    f"{DATA}/",
    f"{INFO}/",
    "tinylib/",
    "Tinylib/",
    "tinylib/__pycache__/",
]
FOLDERS += [f"{DATA}/purelib/{INFO}/", f"{DATA}/scripts/", "other.data/purelib/", "other-1.0.dist-info/", "X.EGG-INFO/"]
FOLDERS += [f"{DATA.upper()}/purelib/", f"{DATA}/purelib/{DATA}/purelib/", "tinylib/__init__.py/"]
FILES = [
    "__init__.py",
    "x.py",
    "X.py",
    "INSTALLER",
    "Record",
    "direct_url.json",
    "METADATA",
    LISTING,
    "WHEEL",
    "licence",
]
FILES += [
    "entry_points.txt",
    "tinylib",
    "x.pth",
    "REQUESTED",
    "caf\u00e9.py",
    "cafe\u0301.py",
    "PKG-INFO",
    "x.dist-info",
]
NAMES = st.tuples(st.sampled_from(FOLDERS), st.sampled_from(FILES)).map("".join)

LINES = [
    "[a]",
    "[[a]]",
    "[b.c]",
    "[console_scripts]",
    "[ a ]",
    "[DEFAULT]",
    "x = y",
    "z=y:w",
    "  x = y",
    " [a]",
    "#x = y",
]
LINES += [
    "; x = y",
    "x",
    "",
    "\t",
    "x = y \x0c[a]\x0cb = c",
    "x = y\r[a]",
    "[a]]",
    "a:b = c",
    "\ufeff[a]",
    "= y",
    "[]",
    "x\u2028=y",
]
ENTRY_POINTS = st.just("") | st.lists(st.sampled_from(LINES), max_size=5).map("\n".join)

HEADERS = [
    "Name: other",
    "name: tinylib",
    "Version: 2",
    "Requires-Dist: x",
    "Requires-Dist: x; extra == 'y'",
    "Summary: b",
]
HEADERS += [
    "",
    "Content-Type: message/rfc822",
    " folded",
    "Provides-Extra: y",
    "nothing",
    "From here",
    "Requires-Python: >=3",
]
METADATA = st.just([]) | st.lists(st.sampled_from(HEADERS), max_size=3)


@settings(deadline=None)
@given(names=st.lists(NAMES, max_size=3, unique=True), entry_points=ENTRY_POINTS, headers=METADATA)
def test_what_passes_is_installed_as_the_one_distribution_it_announces(
    names: list[str], entry_points: str, headers: list[str]
):
    wheel = wheelhouse.library()
    wheel.files |= dict.fromkeys(names, b"x")
    wheel.entry_points = entry_points

    def more(members: dict[str, bytes]) -> None:
        members[f"{INFO}/METADATA"] = members[f"{INFO}/METADATA"].replace(
            b"Summary:", "\n".join([*headers, "Summary:"]).encode()
        )

    with tempfile.TemporaryDirectory() as folder:
        path = wheel.write(Path(folder), members=more)
        report = inspect(path, driver=False)
        if not report.faults:
            agrees(path, report, Path(folder))


def agrees(path: Path, report: WheelReport, folder: Path) -> None:
    """Install a wheel that passed, and ask what Python asks of an installed one."""
    tree = folder / "staging/tree"
    tree.parent.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the installer warns of what it leaves out
        unpack(path, tree)
    there = {file.relative_to(tree).as_posix() for file in tree.rglob("*") if file.is_file()}
    assert there == {*report.placed.values()} | {f"{report.dist_info}/INSTALLER"}
    [found] = distributions(path=[str(tree)])
    assert report.name is not None
    assert (found.metadata["Name"], found.version) == (report.dist_info.split("-")[0], report.name.version)
    announced = read_entry_points(found.read_text("entry_points.txt") or "")
    flat = {(group, name, value) for group, named in announced.items() for name, value in named.items()}
    assert {(entry.group, entry.name, entry.value) for entry in found.entry_points} == flat
    assert found.read_text("direct_url.json") is None
    trees = Trees(folder / "store")
    assert trees.verify(trees.keep(tree)) == []


@pytest.mark.slow
def test_a_wheel_with_all_that_is_allowed_is_placed_by_pip_as_the_preflight_says(tmp_path: Path):
    wheel = wheelhouse.library()
    wheel.files |= {
        f"{DATA}/purelib/tinylib/more.py": b"",
        f"{DATA}/platlib/tinyplat.py": b"",
        "tinylib/purelib/folder_of_that_name.py": b"",
        f"{INFO}/licenses/MIT": b"",
    }
    wheel.entry_points = "# groups\n[tiny.plugins]\na = tinylib:a [x]\n\n[console_scripts]\ntiny = tinylib:main\n"
    path = wheel.write(tmp_path)
    report = inspect(path, driver=False)
    assert report.faults == []
    agrees(path, report, tmp_path)
    target = tmp_path / "pip"
    words = ["install", "-q", "--no-index", "--no-deps", "--no-compile", "--target", str(target), str(path)]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False)
    if "No module named pip" in done.stderr:
        pytest.skip("no pip here")
    assert done.returncode == 0, done.stderr
    there = {file.relative_to(target).as_posix() for file in target.rglob("*") if file.is_file()}
    own = {f"{INFO}/INSTALLER", f"{INFO}/REQUESTED", f"{INFO}/direct_url.json", "bin/tiny"}
    assert there - own == {*report.placed.values()}
