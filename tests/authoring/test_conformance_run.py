"""`driver test`: the conformance tests run on the wheel in its sandbox, and the report says what was proven."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from authoring.conftest import serving

from dragoman.authoring import conformance_run
from dragoman.authoring.conformance_run import Conformance, run_conformance, shortfall
from dragoman.authoring.wheel_build import built
from dragoman_api.errors import ConfigurationError, SandboxError, WheelRejectedError

pytestmark = pytest.mark.slow

CONFORMANCE = "tests/test_conformance.py"


def only_live(tree):
    """Leave the tests on real servers only."""
    text = tree[CONFORMANCE].read_text()
    head, _, rest = text.partition("class TestOnFake")
    tree[CONFORMANCE].write_text(head + rest[rest.index("@pytest.mark.live") :])


def run(tree, **more):
    with built(tree.path) as made:
        return run_conformance(made, **more)[0]


def test_an_author_sees_what_the_driver_prints_in_its_sandbox(tree, dragoman):
    """Always with `-s`, and otherwise with the test that failed."""
    tree.driver(
        (
            "        cursors.refuse(request)\n",
            '        print("page", request.offset)\n        cursors.refuse(request)\n',
        )
    )
    assert "driver: page 0\n" not in dragoman.process("driver", "test", tree.path).err
    assert "driver: page 0\n" in dragoman.process("driver", "test", "-s", tree.path).err
    tree.driver(("offset=request.offset,", "offset=0,"))
    assert "driver: page 8\n" in dragoman.process("driver", "test", tree.path, code=1).err


def test_the_report_says_what_was_tested_where_and_how_far(tree, report):
    told = json.loads(report)
    with built(tree.path) as made:
        assert (told["wheel"], told["sha256"]) == (made.wheel.name, made.report.sha256)
    assert (told["plugin"], told["version"], told["api"]) == ("orbit", "0.1.0", "1.0.0")
    assert told["sandbox"].startswith(("full", "partial"))
    assert told["engines"]["fake"]["passed"] >= 12
    assert sum(told["skips"].values()) == told["engines"]["fake"]["skipped"]
    assert set(told["hooks"]) >= {"compile_filter", "ping", "plan_change"}
    assert "fetch_page" not in told["hooks"]
    assert (told["failures"], told["denied"], told["deviations"]) == ([], [], [])


def test_all_that_is_wrong_is_told_at_once(tree, type_in):
    """A broken promise, a file that the wheel leaves out, an address, a test outside the kit, and a deviation."""
    tree["words.py"].write_text("WORDS = 1\n")
    opening = "await asyncio.open_connection('evil.example', 443)"
    tree.on_import(
        f"import asyncio\nasync def elsewhere():\n    try:\n        {opening}\n    except OSError:\n        pass"
    )
    tree.driver(
        ("        self.http = http\n", "        self.http = http\n        await elsewhere()\n"),
        ('"""List the tables."""\n', '"""List the tables."""\n        import words\n'),
        ("offset={offset}&limit", "offset={offset + 1}&limit"),  # every page leaves its first row out
    )
    tree["tests/test_more.py"].write_text("def test_sum():\n    assert 1 + 1 == 3\n")
    test = "async def test_a_missing_object_is_told(self, target):\n        pass"
    deviation = f"    @deviates('planets never go')\n    {test}\n\n"
    tree.change(
        CONFORMANCE,
        ("import DriverConformance, Proxy, Target", "import DriverConformance, Proxy, Target, deviates"),
        ("class TestOnFake(DriverConformance):\n", f"class TestOnFake(DriverConformance):\n{deviation}"),
    )
    done = type_in("driver", "test", tree.path, code=1)
    assert " failed, " in done.out.splitlines()[-1]
    for said in ("test_pages_tile_the_rows on fake", "test_objects_are_listed_once_each on fake", "evil.example"):
        assert said in done.out, said
    assert "No module named 'words'" in done.out
    assert "test_sum" in done.err  # what pytest said
    told = json.loads(tree["report.json"].read_text())
    assert told["deviations"] == ["test_a_missing_object_is_told on fake: deviates: planets never go"]


def test_an_error_of_the_api_that_is_a_mistake_comes_with_its_line_and_alike_ones_once(tree, type_in):
    """A driver that refuses what it should answer raises no fault, so nothing else says where."""
    tree.driver(
        ("    Profile,\n", "    Profile,\n    QueryError,\n"),
        ("        cursors.refuse(request)\n", '        cursors.refuse(request)\n        raise QueryError("not now")\n'),
    )
    rows = tree.code.read_text().splitlines()
    line = rows.index('        raise QueryError("not now")') + 1
    done = type_in("driver", "test", tree.path, code=1)
    said = [row for row in done.out.splitlines() if "not now" in row]
    assert len(said) == 1
    where = f"QueryError: not now at dragoman_orbit/driver.py:{line} in Driver.fetch_page"
    assert re.search(rf"{re.escape(where)} \(and so \d+ more\)", said[0])


def test_tests_that_open_the_driver_outside_the_sandbox_prove_nothing(tree):
    opening = "            async with open_driver(Driver, profile) as driver:\n"
    here = "            driver = Driver()\n            async with opened(driver, profile):\n"
    tree.change(
        CONFORMANCE, ("DriverConformance, Proxy, Target", "DriverConformance, Proxy, Target, opened"), (opening, here)
    )
    tested = run(tree)
    assert tested.failures == ()
    assert (tested.sandbox, tested.passed) == ("none", False)


def test_the_report_takes_the_place_of_a_link_and_leaves_what_that_leads_to(tree):
    tree[CONFORMANCE].write_text("def test_nothing():\n    pass\n")
    (own := tree.path / "own").write_text("kept\n")
    tree["report.json"].unlink(missing_ok=True)
    tree["report.json"].symlink_to(own.name)
    run(tree)
    assert own.read_text() == "kept\n"
    assert json.loads(tree["report.json"].read_text())["plugin"] == "orbit"


def test_a_failing_test_beside_the_conformance_tests_is_a_failure(tree):
    tree[CONFORMANCE].unlink()
    tree["tests/test_more.py"].write_text("def test_sum():\n    assert 1 + 1 == 3\n")
    tested = run(tree)
    assert not tested.passed
    assert any("test_sum" in reason for reason in tested.failures)


@pytest.mark.parametrize(
    "spoilt",
    [{"denied": ["evil.example:443"]}, {"sandbox": "none"}, {"failures": ["x"]}, {"engines": {"fake": {"skipped": 9}}}],
    ids=lambda spoilt: next(iter(spoilt)),
)
def test_a_report_passes_only_if_everything_in_it_is_well(report, spoilt):
    """An address that was refused counts, even where the driver hid the refusal from its tests."""
    assert Conformance(**json.loads(report)).passed
    assert not Conformance(**json.loads(report) | spoilt).passed


@pytest.mark.parametrize("live", ["not json", "[1]"])
def test_a_list_of_servers_that_cannot_be_read_is_told(tree, live):
    tree["servers.json"].write_text(live)
    with pytest.raises(ConfigurationError, match=r"--live .*servers\.json: ") as caught:
        run(tree, live=tree["servers.json"])
    assert caught.value.code == "tests-not-run"


def test_a_list_of_servers_on_which_nothing_ran_is_told(tree):
    server = {"type": "other", "engine": "Other", "version": "1", "host": "127.0.0.1", "port": 1}
    tree["servers.json"].write_text(json.dumps([server]))
    tested = run(tree, live=tree["servers.json"])
    assert not tested.passed
    assert tested.failures == ("no conformance test ran on a server of servers.json; are the tests marked live(TYPE)?",)


def test_a_project_without_tests_is_told(tree):
    tree[CONFORMANCE].unlink()
    with pytest.raises(ConfigurationError, match="no tests ran") as caught:
        run(tree)
    assert caught.value.code == "tests-not-run"
    assert "DriverConformance" in caught.value.hint


def test_a_driver_whose_tests_are_all_live_is_told_how_to_run_and_publish_it(tree, type_in):
    """Neither command names another that runs no test either, and a run on a server is enough to publish."""
    only_live(tree)
    done = type_in("driver", "test", tree.path, code=1)
    assert re.match(r"conformance: 0 passed, 0 skipped, \d+ without a server ", done.out)
    assert re.search(r"^  \d+ skipped in ", done.err, re.MULTILINE)
    assert "\\n" not in done.err
    remedy = f"dragoman driver test {tree.path} --live servers.json"
    assert remedy in done.err
    assert json.loads(tree["report.json"].read_text())["unserved"] > 70
    done = type_in("driver", "publish", tree.path, "--to", tree.path.parent / "team", code=2)
    assert remedy in done.err
    with serving(tree) as port:
        server = {"type": "orbit", "engine": "Orbit", "version": "1", "host": "127.0.0.1", "port": port}
        tree["servers.json"].write_text(json.dumps([server | {"object": "planets", "rows": 8}]))
        type_in("driver", "test", tree.path, "--live", tree["servers.json"])
    assert "published" in type_in("driver", "publish", tree.path, "--to", tree.path.parent / "team").out


@pytest.mark.parametrize(
    ("result", "reason", "hint"),
    [
        ({"failures": ["x"]}, "x", "dragoman driver test"),
        ({"denied": ["evil.example:443"]}, "it tried to reach evil.example:443", "dragoman driver test"),
        ({"engines": {"fake": {"passed": 9}}}, "outside the sandbox", "open_driver"),
        ({"engines": {"fake": {"skipped": 9}}}, "all are skipped", "Target"),
        ({"unserved": 73}, "no server is listed", "dragoman driver test --live servers.json"),
        ({"engines": {"fake": {"skipped": 9}}, "unserved": 73}, "no server is listed", "--live servers.json"),
        ({}, "no conformance tests", "DriverConformance"),
    ],
)
def test_what_a_driver_lacks_comes_with_what_helps(report, result, reason, hint):
    blank = {"sandbox": "none", "engines": {}, "failures": [], "denied": [], "unserved": 0}
    lacking = shortfall(Conformance(**json.loads(report) | blank | result), Path())
    assert (reason in lacking[0], hint in lacking[1]) == (True, True), lacking
    assert shortfall(Conformance(**json.loads(report)), Path()) == ("", "")


def test_a_wheel_with_faults_is_not_tested(tree):
    tree["dragoman_orbit/evil.pth"].write_text("import os")
    with pytest.raises(WheelRejectedError, match=r"evil\.pth"):
        run(tree)
    assert not tree["report.json"].exists()


def test_a_machine_below_full_is_told_once_where_full_is_required(tree, monkeypatch):
    from dragoman.sandbox.levels import Level, SandboxReport

    weak = SandboxReport(
        level=Level.PARTIAL, missing=("no Landlock in this kernel",), permissions={}, remedies=("Landlock: x",)
    )
    monkeypatch.setattr(conformance_run, "measured_level", lambda: weak)
    with pytest.raises(SandboxError, match="full is required") as caught:
        run(tree, policy="require")
    assert caught.value.hint.startswith("Landlock: x")


def test_the_sandbox_may_be_asked_for_without_saying_how(tree, type_in):
    assert " · sandbox " in type_in("driver", "test", tree.path, "--sandbox").out
