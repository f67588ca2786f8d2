"""The automation `otel`: what happens becomes spans and metrics of OpenTelemetry, without values."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from anyio import run
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import wheelhouse
from dragoman.automations.telemetry import Telemetry
from dragoman_api.changes import Delete, Update
from dragoman_api.errors import DragomanError, Refused
from dragoman_api.events import ExportFailed, ExportStarted
from dragoman_api.filters import Filter
from dragoman_api.grid import RowKey
from dragoman_api.installation import add_command
from dragoman_worker.hooks_and_deadlines import HOOKS

MEMORY = "from .memory_driver import MemoryDriver as Driver\n"
FAILING = """
from dragoman_api import hookimpl
from dragoman_api.errors import AccessDeniedError
from .memory_driver import MemoryDriver

class Driver(MemoryDriver):
    @hookimpl
    async def count_rows(self, request):
        raise AccessDeniedError("no right for the secret value 4711")
"""


@pytest.fixture
def collected():
    """The automation, and what its SDK has collected: spans, and the points of a metric."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracer_provider, meter_provider = TracerProvider(shutdown_on_exit=False), MeterProvider([reader])
    tracer_provider.add_span_processor(SimpleSpanProcessor(exporter))

    def points(name):
        data = reader.get_metrics_data()
        return [
            (dict(point.attributes), getattr(point, "value", None) or getattr(point, "sum", None))
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    automation = Telemetry(tracer_provider=tracer_provider, meter_provider=meter_provider)
    yield SimpleNamespace(automation=automation, spans=exporter.get_finished_spans, points=points)
    meter_provider.shutdown()


def runtime_with(make_runtime, *automations, code=MEMORY):
    return make_runtime(wheelhouse.Driver("memory", code=code, hooks=[*HOOKS]), use=automations)


async def test_pages_changes_exports_and_requests_become_spans_and_metrics_without_values(
    make_runtime, collected, tmp_path
):
    async with (
        runtime_with(make_runtime, collected.automation) as runtime,
        runtime.open("memory") as session,
    ):
        page = await session.rows("books", filters=[Filter("title", "contains", "Boo")]).page(limit=3)
        await session.rows("books").count()
        await session.console("GET /books")
        exported = await session.rows("books").export(tmp_path / "books.ndjson")
        await session.apply(await session.plan(Update(page.keys[0], {"title": "Hidden title"})))
    spans = {span.name: span for span in collected.spans()}
    fetched = spans["page.fetched"]
    assert fetched.attributes == {
        "dragoman.connection": "memory", "db.collection.name": "books", "dragoman.rows": len(page.cells)
    }  # fmt: skip
    event = next(event for event in runtime.seen if event.name == "page.fetched")
    assert fetched.end_time == int(event.at * 1e9)
    assert fetched.end_time - fetched.start_time == int(event.seconds * 1e9)
    assert spans["console.executed"].attributes["dragoman.status"] == 200
    assert spans["export.finished"].attributes["dragoman.bytes"] == exported.bytes
    assert all(span.status.status_code is StatusCode.UNSET and span.parent is None for span in spans.values())
    calls = {
        attributes["dragoman.hook"]: (attributes, value) for attributes, value in collected.points("dragoman.calls")
    }
    assert calls["count_rows"][1] == 1
    assert calls["apply_change"][0]["dragoman.writes"]
    assert not calls["fetch_page"][0]["dragoman.writes"]
    rows = {attributes["dragoman.event"]: value for attributes, value in collected.points("dragoman.rows")}
    assert rows == {"page.fetched": len(page.cells), "export.finished": exported.rows, "row.updated": 1}
    [bytes_of_exports] = collected.points("dragoman.bytes")
    assert bytes_of_exports[1] == exported.bytes
    seconds = {attributes["dragoman.event"]: value for attributes, value in collected.points("dragoman.duration")}
    assert seconds["page.fetched"] == pytest.approx(event.seconds)
    assert collected.points("dragoman.errors") == []
    texts = {value for span in spans.values() for value in span.attributes.values() if isinstance(value, str)}
    assert texts == {"memory", "books", "1.0.0"}  # connection and plugin, object, version


async def test_errors_are_counted_by_code_and_mark_their_spans(make_runtime, collected):
    class Guard:
        from dragoman_api.hookspecs import hookimpl

        @hookimpl
        async def before_call(self, call):
            if call.hook == "apply_change":
                raise Refused("not today")

    async with (
        runtime_with(make_runtime, collected.automation, Guard(), code=FAILING) as runtime,
        runtime.open("memory") as session,
    ):
        for _ in range(2):
            with pytest.raises(DragomanError, match="4711"):
                await session.rows("books").count()
        with pytest.raises(Refused):
            await session.apply(await session.plan(Delete(RowKey(object="books", id="7"))))
        with pytest.raises(DragomanError):
            await session.rows("books", filters=[Filter("nothing", "=", "x")]).page(limit=1)
    codes = {attributes["error.type"]: value for attributes, value in collected.points("dragoman.errors")}
    assert codes["access-denied"] == 2
    assert codes["refused"] == 1
    assert codes["filter-not-supported"] >= 1
    failed = [span for span in collected.spans() if span.attributes.get("error.type") == "access-denied"]
    assert [span.name for span in failed] == ["call.failed"] * 2
    assert failed[0].status.status_code is StatusCode.ERROR
    assert failed[0].attributes["dragoman.hook"] == "count_rows"
    assert failed[0].end_time > failed[0].start_time
    assert "4711" not in "".join(span.to_json() for span in collected.spans())
    event = next(event for event in runtime.seen if event.name == "call.failed")
    assert (event.hook, event.code, event.object) == ("count_rows", "access-denied", "books")


async def test_a_failed_export_is_a_span_from_its_beginning(collected):
    fields = {"connection": "shop", "object": "books", "target": "/tmp/books.csv"}
    await collected.automation.on_event(ExportStarted(at=100.0, **fields))
    await collected.automation.on_event(ExportFailed(at=107.5, code="disk-full", reason="no space", **fields))
    [span] = collected.spans()
    assert (span.start_time, span.end_time) == (100_000_000_000, 107_500_000_000)
    assert span.attributes["error.type"] == "disk-full"
    assert "/tmp" not in span.to_json()


SCRIPT = """
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

async def main(runtime):
    async with runtime.open("memory") as session:
        await session.rows("books").page(limit=2)
    print(json.dumps([span.name for span in exporter.get_finished_spans()]))
"""


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.slow
def test_the_automation_runs_only_where_the_settings_name_it(make_runtime, home, dragoman, tmp_path, named):
    async def prepare():
        async with runtime_with(make_runtime) as runtime, runtime.open("memory"):
            pass

    run(prepare)
    if named:
        (home / "config").mkdir(exist_ok=True)
        (home / "config/config.toml").write_text('automations = ["otel"]\n')
    script = tmp_path / "nightly.py"
    script.write_text(SCRIPT)
    names = dragoman.process(f"dragoman run {script}").json
    assert names == (["page.fetched"] if named else [])


def test_without_the_extra_it_is_said_what_to_install():
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from dragoman.automations.guards import named\n"
        "try: named(['otel'])\n"
        "except Exception as error: print(error, error.hint)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert add_command("dragoman[otel]") in ended.stdout
