"""A time series in its sandbox, by session and by command line: the key of a point is its time and its tags."""

from __future__ import annotations

import json
import shlex
import time

import pytest

from dragoman import Delete, Filter, Insert
from dragoman.sessions.relative_times import Span
from dragoman.spellings import spell_id
from dragoman_api.changes import OutcomeStatus
from fakes.time_series import TimeSeries

HOOKS = (
    "connect ping list_objects describe_object compile_filter fetch_page fetch_cell count_rows plan_change"
    " apply_change export_rows"
)
ALL = Span(all_time=True)
NEW = ["2026-01-01T00:00:00.5Z", "b, c", ""]


@pytest.fixture
def points():
    """Return a database with 4,000 old points and five of the last minute."""
    made = TimeSeries()
    for number in range(4_000):
        made.add("cpu", 1_700_000_000_000_000_000 + number, {"host": f"h{number % 2}"}, {"load": number / 4})
    for number in range(5):
        made.add("cpu", time.time_ns() - number * 10**9, {"host": "now", "region": "eu"}, {"load": 0.5})
    return made


@pytest.fixture
async def runtime(open_stand_in, points):
    """Yield a runtime with the connection `series` to the database."""
    capabilities = ["browse", "sort", "filter", "edit", "drop", "export", "time-range"]
    async with open_stand_in("series", points, "time_series.py", HOOKS, capabilities) as made:
        yield made


async def test_a_session_reads_a_window_or_all_of_a_series(runtime, tmp_path):
    async with runtime.open("series") as session:
        assert [each.name for each in await session.objects()] == ["_internal", "metrics"]
        assert [each.name for each in await session.objects(parent="metrics")] == ["metrics/cpu"]
        page = await session.rows("metrics/cpu").page()
        assert len(page.cells) == 5
        assert "time-window" in [note.code for note in page.notes]
        assert page.keys[0].id == [page.rows[0]["time"], "now", "eu"]
        assert await session.rows("metrics/cpu").count() == 5
        assert await session.rows("metrics/cpu", span=ALL).count() == 4_005
        assert await session.rows("metrics/cpu", filters=[Filter("host", "=", "h1")], span=ALL).count() == 2_000
        result = await session.rows("metrics/cpu", span=ALL).export(to=tmp_path / "cpu.ndjson")
        assert result.rows == 4_005
        result = await session.rows("metrics/cpu", span=ALL).export(to=tmp_path / "cpu.parquet")
        assert result.rows == 4_005


async def test_changes_of_points_have_outcomes(runtime, points):
    async with runtime.open("series") as session:
        plan = await session.plan(Insert("metrics/cpu", {"load": 1.5}, NEW))
        [outcome] = await session.apply(plan)
        assert (outcome.status, outcome.id) == (OutcomeStatus.APPLIED, NEW)
        assert await session.rows(outcome.key.object).cell(outcome.key, "load") == 1.5
        [again] = await session.apply(await session.plan(Insert("metrics/cpu", {"load": 2.5}, NEW)))
        assert again.status is OutcomeStatus.CONFLICT
        plan = await session.plan(Delete(outcome.key))
        assert plan.planned[0].statement.startswith('DELETE FROM "cpu" WHERE time = ')
        [outcome] = await session.apply(plan)
        assert outcome.status is OutcomeStatus.APPLIED
        assert len(points.points["cpu"]) == 4_005


@pytest.mark.slow
async def test_the_command_line_reads_and_writes_composite_keys(dragoman_at, points, tmp_path):
    page = (await dragoman_at("--json --yes page series metrics/cpu --all-time --limit 3")).json
    assert page["rows"][0]["host"] == "h0"
    assert (await dragoman_at("--json --yes count series metrics/cpu --all-time")).json["count"] == 4_005
    row = shlex.quote(spell_id(NEW))
    await dragoman_at(f"--yes insert series metrics/cpu --id {row} --set load:=1.5")
    assert len(points.points["cpu"]) == 4_006
    assert "1.5" in (await dragoman_at(f"--yes cell series metrics/cpu {row} load")).out
    shown = await dragoman_at(f"--yes delete series metrics/cpu {row} --dry-run")
    assert 'DELETE FROM "cpu" WHERE time = ' in shown.said
    await dragoman_at(f"--yes delete series metrics/cpu {row}")
    assert len(points.points["cpu"]) == 4_005
    by_columns = {"time": NEW[0], "host": "b, c", "region": "us"}
    changes = [
        {"op": "insert", "object": "metrics/cpu", "id": NEW, "set": {"load": 1.5}},
        {"op": "insert", "object": "metrics/cpu", "set": {**by_columns, "load": 2.5}},
    ]
    await dragoman_at("--yes apply series -", typed="".join(json.dumps(each) + "\n" for each in changes))
    assert len(points.points["cpu"]) == 4_007
    gone = [{"op": "delete", "object": "metrics/cpu", "id": row} for row in (NEW, [*by_columns.values()])]
    done = await dragoman_at("--json --yes apply series -", typed="".join(json.dumps(each) + "\n" for each in gone))
    assert done.json
    assert len(points.points["cpu"]) == 4_005
    path = tmp_path / "cpu.csv"
    await dragoman_at(f"--yes export series metrics/cpu --all-time -o {path}")
    assert len(path.read_text().splitlines()) == 4_006
