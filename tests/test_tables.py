"""A table of rows is one test, which runs every row and lists those that fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TABLE = """
    import pytest

    @pytest.fixture(scope="module")
    def shared():
        return []

    @pytest.mark.parametrize("way", ["in", "out"])
    @pytest.mark.parametrize(("number", "double"), [(1, 2), (2, 5), (3, 6), (4, 9)], ids="abcd")
    def test_a_number_is_doubled(number, double, way, shared):
        shared.append((number, way))
        if number == 3:
            pytest.skip("no three here")
        assert number * 2 == double

    def test_the_rows_before_ran_with_all_values(shared):
        assert len(shared) == 8
        assert len(set(shared)) == 8
"""


@pytest.fixture
def run(pytester):
    """Return a function that runs pytest on a file's source, with tables as here."""

    def run_pytest(source, *words):
        pytester.makepyfile(source)
        return pytester.inline_run(
            "-p", "tables", "-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:aiohttp", *words
        )

    return run_pytest


def test_every_failing_row_is_listed_and_the_others_run(run):
    passed, skipped, failed = run(TABLE).listoutcomes()
    assert [len(passed), len(skipped), len(failed)] == [1, 0, 1]
    lines = str(failed[0].longrepr).splitlines()
    assert lines[0] == "4 of 8 rows fail; each alone: --apart"
    assert [line.partition("] ")[0] for line in lines if line.startswith("[")] == ["[b-in", "[b-out", "[d-in", "[d-out"]
    assert "test_every_failing_row_is_listed_and_the_others_run.py:" in lines[1]
    assert "assert (2 * 2) == 5" in "".join(lines[1:4])


def test_a_skipped_row_lets_the_others_run_and_is_told(run):
    _, skipped, failed = run(TABLE.replace("5", "4").replace("9", "8")).listoutcomes()
    assert not failed
    assert "2 of 8 rows: [c-in] no three here; [c-out] no three here" in str(skipped[0].longrepr)


def test_a_table_of_coroutines_runs_all_its_rows(run):
    source = """
        import pytest

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        @pytest.mark.parametrize("number", [1, 2, 3])
        async def test_a_number(number):
            assert number == 1
    """
    _, _, [failed] = run(source, "-o", "anyio_mode=auto").listoutcomes()
    assert "2 of 3 rows fail" in str(failed.longrepr)


@pytest.mark.slow
def test_a_row_that_hangs_ends_its_table(run):
    source = """
        import time
        import pytest

        @pytest.mark.parametrize("number", [1, 2])
        def test_a_number(number):
            time.sleep(30)
    """
    _, _, [failed] = run(source, "-o", "timeout=1").listoutcomes()
    assert "Timeout" in str(failed.longrepr)


@pytest.mark.parametrize("words", [["--apart"], ["-k", "doubled"], ["{file}::test_a_number_is_doubled[b-in]"]])
def test_each_row_is_a_test_of_its_own_where_one_is_named(words, run, request, pytester):
    words = [word.format(file=f"{request.node.originalname}.py") for word in words]
    _, _, failed = run(TABLE, *words).listoutcomes()
    assert "test_a_number_is_doubled[b-in]" in failed[0].nodeid
    assert len(failed) == (1 if "[" in words[0] else 4)


@pytest.mark.parametrize(
    "decorated",
    [
        "@pytest.mark.parametrize('row', [1, 2])\ndef test_rows(row, caplog): pass",
        "@pytest.mark.parametrize('row', [1, 2])\ndef test_rows(row, own): pass",
        "@pytest.mark.parametrize('own', [1, 2], indirect=True)\ndef test_rows(own): pass",
        "@pytest.mark.parametrize('row', [1, pytest.param(2, marks=pytest.mark.skip)])\ndef test_rows(row): pass",
        "@pytest.mark.usefixtures('own')\n@pytest.mark.parametrize('row', [1, 2])\ndef test_rows(row): pass",
    ],
)
def test_rows_that_need_something_of_their_own_are_tests_of_their_own(decorated, run):
    source = f"import pytest\n@pytest.fixture\ndef own(request): pass\n{decorated}\n"
    assert sum(map(len, run(source).listoutcomes())) == 2


@pytest.mark.parametrize("marks", ["not slow", "not slow and not live"])
def test_slow_rows_are_left_out_of_a_run_without_them(marks, run):
    source = """
        import pytest

        @pytest.mark.parametrize("row", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
        def test_rows(row):
            assert row < 2
    """
    _, _, failed = run(source, "-m", marks).listoutcomes()
    assert "1 of 2 rows fail" in str(failed[0].longrepr)


def test_slow_rows_are_there_where_they_are_wanted(run):
    source = """
        import pytest

        @pytest.mark.parametrize("row", [1, pytest.param(2, marks=pytest.mark.slow)])
        def test_rows(row):
            pass
    """
    assert [len(run(source, "-m", marks).listoutcomes()[0]) for marks in ("", "slow", "not slow or live")] == [2, 1, 1]


@pytest.mark.parametrize("row", ["first", "second"])
def test_each_row_has_a_home_of_its_own(row, tmp_path_factory):
    home = Path(os.environ["DRAGOMAN_HOME"])
    assert not home.exists(), row
    home.mkdir(parents=True)
    assert home.is_relative_to(tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("row", ["first", "second"])
def test_each_row_has_a_folder_and_changes_of_its_own(row, tmp_path, monkeypatch):
    assert [*tmp_path.iterdir()] == []
    assert "ROW" not in os.environ
    assert Path(os.environ["DRAGOMAN_HOME"]).parent == tmp_path
    monkeypatch.setenv("ROW", row)
    (tmp_path / "file").touch()
