"""Each process of a parallel run collects a file when it comes to it, and none that another one runs.

pytest-xdist has every process import and collect all files, and then runs each test in one of them. With some hundred
files that takes each process twenty seconds, and twice as long where tests have no rewritten bytecode yet. Here a file
is one item for xdist, which hands out whole files, and the process that gets it collects and runs its tests. Their
reports are the same. Hooks of pytest for a `conftest.py`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

LONGEST = (
    "mutants/test_mutants.py",
    "system/test_how_to.py",
    "system/test_release.py",
    "workbench/browser/test_console.py",
    "workbench/browser/test_overview.py",
    "cli/test_hostile_servers.py",
    "attacks/test_attacks.py",
    "system/test_first_hour.py",
    "workbench/browser/test_views.py",
    "workbench/test_opening.py",
    "test_architecture.py",
    "registry/wheels/test_checks.py",
    "drivers/elasticsearch/exporting/test_exports.py",
    "runtime/parts/test_dask_tasks.py",
    "registry/publisher/test_pages.py",
    "worker/test_fork_server.py",
    "registry/test_hostile_names.py",
    "cli/test_plugins_browse.py",
    "runtime/test_tables_values.py",
    "runtime/test_automations.py",
    "runtime/test_blocking.py",
    "runtime/test_lifetimes.py",
    "registry/trust/test_attacks.py",
    "cli/test_machinery.py",
    "registry/publisher/test_mirror.py",
    "drivers/test_bad_links.py",
    "drivers/weaviate/grid/test_summaries.py",
    "runtime/parts/test_exports_to_a_store.py",
    "attacks/test_no_ops.py",
    "registry/publisher/test_one_publisher.py",
    "runtime/test_session.py",
    "worker/test_oversized_results.py",
    "cli/test_token_endpoints.py",
    "cli/test_pinned_certificates.py",
    "drivers/elasticsearch/importing/test_kinds.py",
    "drivers/weaviate/importing/test_kinds.py",
    "runtime/test_opening.py",
    "api/test_http_tls.py",
    "registry/client/test_installer.py",
    "worker/test_values.py",
    "drivers/weaviate/exporting/test_exports.py",
    "registry/client/test_installed_wheels.py",
    "runtime/test_import_parquet.py",
    "drivers/weaviate/test_tenants.py",
    "runtime/test_changed_manifests.py",
    "cli/test_hostile_answers.py",
    "runtime/test_summaries.py",
    "runtime/test_every_call_is_asked.py",
)
"""Slow files, though they are short. They start first, so that no process waits for them at the end."""


class LateFile(pytest.Item):
    """A file of tests that is collected as soon as it is run."""

    module: pytest.Module

    def runtest(self) -> None:
        """Refuse to be run as a test would be: `pytest_runtest_protocol` runs the tests of the file."""
        raise NotImplementedError

    def reportinfo(self) -> tuple[Path, None, str]:
        """Name the file."""
        return self.path, None, self.name


def hands_out_files(config: pytest.Config) -> bool:
    """Return whether the processes of a run get files, and not tests that are named or remembered one by one."""
    option = config.option
    by_test = option.lf or option.failedfirst or option.newfirst or any("::" in name for name in config.args)
    return option.dist in ("load", "loadfile") and not by_test


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makemodule(parent: pytest.Collector) -> Generator[None, pytest.Module, LateFile]:
    """Have an item stand for the file of a module."""
    module = yield
    file = LateFile.from_parent(parent, name=module.name, path=module.path, nodeid=module.nodeid)
    file.module = module
    file.add_marker(pytest.mark.timeout(0))  # each test has its limit
    return file


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Put the longest files first. Marks and words on the command line choose tests, and not files."""
    files = [item for item in items if isinstance(item, LateFile)]
    items[:] = [item for item in items if not isinstance(item, LateFile)]
    yield
    root = config.rootpath / "tests"
    longest = {root / name: len(LONGEST) - at for at, name in enumerate(LONGEST)}
    files.sort(key=lambda file: (-longest.get(file.path, 0), -file.path.stat().st_size, file.path))
    items[:] = [*files, *items]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Collect the tests of a file and run them; what all tests share stays for the next file."""
    if not isinstance(item, LateFile):
        return None
    session, hook = item.session, item.config.hook
    tests = list(session.genitems(item.module))
    hook.pytest_collection_modifyitems(session=session, config=item.config, items=tests)
    place = session.items.index(item)
    for test, following in pairwise([*tests, nextitem]):
        session.items[place] = test  # xdist compares the names of a report and of its item
        hook.pytest_runtest_protocol(item=test, nextitem=following)
        if session.shouldfail or session.shouldstop:
            break
    session.items[place] = item
    if not tests:  # what the file before has left for this one
        session._setupstate.teardown_exact(nextitem)
    return True
