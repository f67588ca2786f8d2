"""Spans and metrics of OpenTelemetry, made of events; an automation that `config.toml` names as `otel`.

It speaks OpenTelemetry's API alone: where they go is decided by the providers that the program or
`opentelemetry-instrument` has set up, and without any they go nowhere. It passes on names (connections, objects,
tools), figures and codes; no reason, path, key, filter or value of an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dragoman_api.hookspecs import hookimpl

try:
    from opentelemetry import metrics, trace
    from opentelemetry.context import Context
except ImportError as error:
    from dragoman_api.installation import packages_missing

    raise packages_missing("spans and metrics need the package opentelemetry-api", "dragoman[otel]") from error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from dragoman_api.events import Call, Event

SCOPE = "dragoman"
"""The instrumentation scope of all spans and metrics."""

ATTRIBUTES = {
    "connection": "dragoman.connection", "object": "db.collection.name", "plugin": "dragoman.plugin",
    "hook": "dragoman.hook", "tool": "gen_ai.tool.name", "client": "dragoman.client", "status": "dragoman.status",
    "version": "dragoman.plugin.version", "rows": "dragoman.rows", "bytes": "dragoman.bytes",
}  # fmt: skip
"""Fields of events that become attributes of a span, and their names there; all others stay out."""

DIMENSIONS = ("connection", "hook", "tool", "plugin")
"""Those that are attributes of metrics, too: fields with few different values."""

ERRORS = {
    "call.refused": "refused", "filter.rejected": "filter-not-supported", "plugin.crashed": "driver-crashed",
    "automation.failed": "automation-failed",
}  # fmt: skip
"""Codes of events that tell of an error and carry no code."""

CODED = frozenset(
    {"agent.answered", "call.failed", "connection.failed", "connection.health_changed", "export.failed",
     "plugin.install_failed", "registry.failed"}
)  # fmt: skip
"""Events whose code is that of an error; other codes are those of warnings."""

WRITTEN = frozenset({"row.inserted", "row.updated", "row.deleted"})
"""Events of one row each."""

MOST_EXPORTS = 1_000
"""Running exports whose beginnings are kept."""


class Telemetry:
    """Turns what happens into spans and metrics.

    Every event that lasts is a span, named after the event, from its beginning to its end; it has no parent, since an
    event is passed on after the call. One that tells of an error has the status ``ERROR`` and its code as
    ``error.type``.

    Metrics: ``dragoman.calls`` (what was asked of drivers, by hook, surface and whether it writes),
    ``dragoman.duration`` (seconds), ``dragoman.rows``, ``dragoman.bytes`` and ``dragoman.errors`` (by ``error.type``),
    each by ``dragoman.event`` and connection.

    Args:
        tracer_provider: Where spans go; None for the program's.
        meter_provider: Where metrics go; None for the program's.
    """

    name: ClassVar = "otel"

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
        self._calls = meter.create_counter("dragoman.calls", unit="{call}", description="Calls asked of drivers")
        self._seconds = meter.create_histogram("dragoman.duration", unit="s", description="How long operations took")
        self._rows = meter.create_counter("dragoman.rows", unit="{row}", description="Rows read or written")
        self._bytes = meter.create_counter("dragoman.bytes", unit="By", description="Bytes of exports and of answers")
        self._errors = meter.create_counter("dragoman.errors", unit="{error}", description="Errors by their code")
        self._exports: dict[tuple[str, str, str], float] = {}

    @hookimpl
    async def before_call(self, call: Call) -> None:
        attributes: dict[str, Any] = {
            "dragoman.hook": call.hook, "dragoman.surface": call.surface, "dragoman.writes": call.writes
        }  # fmt: skip
        if call.connection is not None:
            attributes["dragoman.connection"] = call.connection.name
        self._calls.add(1, attributes)

    @hookimpl
    async def on_event(self, event: Event) -> None:
        fields = {name: value for name in ATTRIBUTES if (value := getattr(event, name, None)) not in (None, "")}
        code = str(getattr(event, "code", "")) if event.name in CODED else ERRORS.get(event.name, "")
        seconds = self._lasted(event)
        failure = {"error.type": code} if code else {}
        of_metrics = {ATTRIBUTES[name]: fields[name] for name in DIMENSIONS if name in fields}
        of_metrics = {"dragoman.event": event.name} | of_metrics | failure
        if code:
            self._errors.add(1, of_metrics)
        if event.name in WRITTEN:
            self._rows.add(1, of_metrics)
        if seconds is None:
            if event.name == "rows.written":
                self._rows.add(fields.get("rows", 0), of_metrics)
            return
        self._seconds.record(seconds, of_metrics)
        for name, counter in (("rows", self._rows), ("bytes", self._bytes)):
            if fields.get(name):
                counter.add(fields[name], of_metrics)
        self._span(event, seconds, {ATTRIBUTES[name]: value for name, value in fields.items()} | failure)

    def _lasted(self, event: Event) -> float | None:
        """Return the seconds that what an event tells of has lasted; None for what has no length."""
        if (seconds := getattr(event, "seconds", None)) is not None:
            if event.name == "export.finished":
                self._exports.pop(_export(event), None)
            return float(seconds)
        if event.name == "export.started":
            self._exports[_export(event)] = event.at
            while len(self._exports) > MOST_EXPORTS:
                del self._exports[next(iter(self._exports))]
        elif event.name == "export.failed":
            return event.at - self._exports.pop(_export(event), event.at)
        return None

    def _span(self, event: Event, seconds: float, attributes: Mapping[str, Any]) -> None:
        """Record a span that ended when its event happened."""
        end = int(event.at * 1e9)
        kind = trace.SpanKind.SERVER if event.name == "agent.answered" else trace.SpanKind.CLIENT
        begin = end - int(seconds * 1e9)
        # An event reaches this place in a task of the host's, whose current span, if any, is not the caller's.
        span = self._tracer.start_span(
            event.name, context=Context(), kind=kind, attributes=attributes, start_time=begin
        )
        if "error.type" in attributes:
            span.set_status(trace.StatusCode.ERROR)
        span.end(end)


def _export(event: Any) -> tuple[str, str, str]:
    return event.connection, event.object, event.target


automation = Telemetry()
"""What the entry point names; the providers that are set later are used, too."""
