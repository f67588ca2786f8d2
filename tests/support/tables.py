"""A table of rows is one test, which runs every row and lists all that fail.

Thousands of tests are rows of `pytest.mark.parametrize` that need but values, what is shared anyway, or a folder.
As a test each, a row costs pytest several times what it costs to run. Hooks of pytest for a `conftest.py`.
Rows are tests of their own where one is named (`test_file.py::test_name[row]`), with `-k`, and with `--apart`.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

OF_A_ROW = frozenset({"tmp_path", "monkeypatch"})
"""Fixtures that each row gets anew."""

OF_EVERY_TEST = frozenset({"own_home", "no_fsync", "no_blocking_calls", "monkeypatch", "request", "anyio_backend"})
"""Fixtures that last for one test and that a row does not notice: it gets a home of its own here."""

ROWS = pytest.StashKey[dict[str, list[Any]]]()
"""Rows of each table, by the node of its test."""

NUMBERS = count()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a person run each row of a table as a test of its own."""
    parser.addoption("--apart", action="store_true", help="run each row of a table as a test of its own")


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Keep the rows of a table for its one test, without the slow ones where those are not wanted."""
    yield
    calls = metafunc._calls
    for mark in metafunc.definition.iter_markers("slow_unless"):
        for call in calls:
            if not mark.kwargs["decides"](**call.params):
                call.marks.append(pytest.mark.slow.mark)
    if leaves_out_slow(metafunc.config):
        calls[:] = [call for call in calls if not any(mark.name == "slow" for mark in call.marks)] or calls
    if len(calls) > 1 and _is_table(metafunc):
        tables = metafunc.config.stash.setdefault(ROWS, {})
        tables[metafunc.definition.nodeid] = list(calls)
        calls[:] = [dataclasses.replace(calls[0], _idlist=())]


def leaves_out_slow(config: pytest.Config) -> bool:
    """Return whether a run is without slow tests, as the default run and those of mutants are."""
    expression = config.option.markexpr
    return expression == "not slow" or (expression.startswith("not slow and ") and " or " not in expression)


def _is_table(metafunc: pytest.Metafunc) -> bool:
    """Return whether rows need nothing that lasts for one test."""
    config, needed = metafunc.config, metafunc.definition._fixtureinfo
    if config.option.apart or config.option.keyword or any("[" in name for name in config.args):
        return False
    marked = any(map(metafunc.definition.get_closest_marker, ("xfail", "slow", "timeout")))  # a limit is a row's
    if hasattr(metafunc.function, "hypothesis") or marked or metafunc.cls is not None:
        return False
    values = {*metafunc._calls[0].params}
    shared = {
        name
        for name, definitions in needed.name2fixturedefs.items()
        if definitions and definitions[-1]._scope.value != "function"
    }
    return (
        {*metafunc._params_directness.values()} == {"direct"}
        and values <= {*needed.argnames} <= values | shared | OF_A_ROW
        and {*needed.names_closure} <= values | shared | OF_A_ROW | OF_EVERY_TEST
        and not any(call.marks for call in metafunc._calls)
    )


def rows_of(item: pytest.Item) -> list[Any]:
    """Return the rows of the table that a test is; none if it is a test of its own."""
    return item.config.stash.get(ROWS, {}).get(item.nodeid, [])


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run every row of a table, whichever plugin calls its test."""
    if rows := rows_of(pyfuncitem):
        run = _run_in_loop if inspect.iscoroutinefunction(pyfuncitem.obj) else _run
        pyfuncitem.obj = run(pyfuncitem.obj, rows)
    return (yield)


def _run(test: Callable[..., None], rows: list[Any]) -> Callable[..., None]:
    def run_rows(**fixtures: Any) -> None:
        with Results() as results:
            for row in rows:
                with results.row(row, fixtures) as values:
                    test(**values)

    return run_rows


def _run_in_loop(test: Callable[..., Any], rows: list[Any]) -> Callable[..., Any]:
    async def run_rows(**fixtures: Any) -> None:
        with Results() as results:
            for row in rows:
                with results.row(row, fixtures) as values:
                    await test(**values)

    return run_rows


class Results:
    """What became of the rows of a table; its end fails or skips the test."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.skipped: list[str] = []
        self.tried = 0

    def __enter__(self) -> Results:
        return self

    @contextmanager
    def row(self, row: Any, fixtures: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what a row is called with, and note its failure, so that the next ones run."""
        self.tried += 1
        values = {**fixtures, **row.params}
        with pytest.MonkeyPatch.context() as patch:
            if "monkeypatch" in values:
                values["monkeypatch"] = patch
            folder = Path(f"{os.environ.get('DRAGOMAN_HOME', '')}+{next(NUMBERS)}")
            if "tmp_path" in values:
                folder = values["tmp_path"] = values["tmp_path"] / f"row{self.tried}"
                folder.mkdir()
                folder /= "home"
            patch.setenv("DRAGOMAN_HOME", str(folder))
            try:
                yield values
            except pytest.skip.Exception as reason:
                self.skipped.append(f"[{row.id}] {reason}")
            except (pytest.exit.Exception, pytest.xfail.Exception):
                raise
            except (Exception, pytest.fail.Exception) as error:
                if str(error).startswith("Timeout"):  # its timer does not run again for the next rows
                    raise
                tests = [frame for frame in extract_tb(error.__traceback__) if Path(frame.filename).name[:5] == "test_"]
                place = f"{Path(tests[-1].filename).name}:{tests[-1].lineno}: " if tests else ""
                self.failures.append(f"[{row.id}] {place}{type(error).__name__}: {error}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is not None:
            return
        if self.failures:
            head = f"{len(self.failures)} of {self.tried} rows fail; each alone: --apart"
            pytest.fail("\n".join([head, *self.failures]), pytrace=False)
        if self.skipped:
            pytest.skip(f"{len(self.skipped)} of {self.tried} rows: {'; '.join(dict.fromkeys(self.skipped))}")
