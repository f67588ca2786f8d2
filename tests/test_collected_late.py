"""A parallel run collects each file in one process, and its end is that of any other run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
FILES = ["tests/test_deviations.py", "tests/test_quick.py", "tests/test_public_api.py"]

PLUGIN = """
import os

def pytest_collectstart(collector):
    if type(collector).__name__ == "Module":
        with open(os.environ["COLLECTED"], "a") as file:
            print(collector.name, file=file)
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "collecting.py").write_text(PLUGIN)
    (collected := folder / "collected").write_text("")
    environment = os.environ | {"PYTHONPATH": str(folder), "COLLECTED": str(collected)}
    options = ["-q", "-p", "collecting", "-c", "pyproject.toml", "-o", f"cache_dir={folder}/cache"]
    command = [sys.executable, "-m", "pytest", *options]
    return subprocess.run([*command, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


def collected(folder: Path) -> list[str]:
    return sorted((folder / "collected").read_text().split())


def last_words(ended: subprocess.CompletedProcess[str]) -> str:
    return ended.stdout.splitlines()[-1].partition(" in ")[0]


def test_each_file_is_collected_in_one_process_and_all_its_tests_run(tmp_path: Path):
    alone = run(tmp_path, "-m", "not slow", *FILES)
    beside = run(tmp_path, "-n", "2", "--dist", "loadfile", "-m", "not slow", *FILES)
    assert (beside.returncode, last_words(beside)) == (0, last_words(alone)), beside.stdout
    assert collected(tmp_path) == sorted(Path(file).name for file in FILES)


def test_a_named_test_runs_alone(tmp_path: Path):
    (two := tmp_path / "test_two.py").write_text("def test_one(): pass\ndef test_other(): pass\n")
    ended = run(tmp_path, "-n", "2", "--dist", "loadfile", f"{two}::test_one")
    assert (ended.returncode, last_words(ended)) == (0, "1 passed"), ended.stdout


def test_nothing_chosen_is_said_as_without_processes(tmp_path: Path):
    ended = run(tmp_path, "-n", "2", "--dist", "loadfile", "-k", "no_such_name", *FILES)
    assert ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ended.stdout


def test_a_file_that_cannot_be_imported_fails_the_run_and_the_others_go_on(tmp_path: Path):
    (ROOT / "build").mkdir(exist_ok=True)
    with TemporaryDirectory(dir=ROOT / "build") as folder:  # tests elsewhere have no name of their own
        (broken := Path(folder, "test_broken.py")).write_text("import no_such_module\n")
        (failing := Path(folder, "test_failing.py")).write_text("def test_it(): assert 1 + 1 == 3\n")
        ended = run(tmp_path, "-n", "2", "--dist", "loadfile", "-m", "not slow", *FILES, str(broken), str(failing))
    assert ended.returncode == 1, ended.stdout
    assert "No module named 'no_such_module'" in ended.stdout
    assert "assert (1 + 1) == 3" in ended.stdout
    assert all(words in last_words(ended) for words in ("1 failed", "1 error", " passed")), ended.stdout


def test_a_file_without_chosen_tests_ends_what_the_one_before_it_has_left(tmp_path: Path):
    (ROOT / "build").mkdir(exist_ok=True)
    slow = "import pytest\n\n@pytest.mark.slow\ndef test_slow(): pass\n"
    sources = {"a/test_first.py": "def test_first(): pass\n" + "#" * 1000, "a/test_second.py": slow + "#" * 500}
    sources["b/test_third.py"] = "def test_third(): pass\n"
    with TemporaryDirectory(dir=ROOT / "build") as folder:
        for name, source in sources.items():  # the largest runs first
            Path(folder, name).parent.mkdir(exist_ok=True)
            Path(folder, name).write_text(source)
        ended = run(tmp_path, "-n", "1", "--dist", "loadfile", "-m", "not slow", FILES[0], folder)
    assert ended.returncode == 0, ended.stdout
    assert " passed" in last_words(ended)
