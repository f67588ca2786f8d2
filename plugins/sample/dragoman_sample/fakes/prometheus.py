"""Prometheus or VictoriaMetrics as their read-only HTTP API shows them, with the differences between the two.

It evaluates what the driver sends: a selector over a range, the number of its samples, and a selector at an instant.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LOOKBACK = 300_000
MOST = 50_000_000
_DAY = 86_400_000
_MATCHER = re.compile(
    r'(?P<name>[a-zA-Z_]\w*|"(?:[^"\\]|\\.)*")(?P<op>=~|!~|!=|=)(?P<text>"(?:[^"\\]|\\.)*")(?:,|$)', re.ASCII
)
_SELECTOR = re.compile(
    r"(?P<name>[a-zA-Z_:][\w:]*)?(?:\{(?P<inner>.*)\})?(?:\[(?P<range>\d+(?:\.5)?)ms\])?", re.DOTALL | re.ASCII
)
_COUNT = re.compile(r"sum\(count_over_time\((?P<inner>.*)\)\)", re.DOTALL)


class RefusedQueryError(Exception):
    """The server refuses a query."""


@dataclass
class Series:
    """One series: its labels, and its samples in the order of time."""

    labels: dict[str, str]
    samples: list[tuple[int, float | dict[str, Any]]] = field(default_factory=list)


class FakePrometheus:
    """A server with series.

    Attributes:
        version: What it says of itself; empty for VictoriaMetrics.
        most: Samples that one query may load.
        warnings: What each answer warns of.
        instead: Makes another answer of a path and the usual one.
        seen: The credentials that came with the requests; None to keep none.
        now: Milliseconds since 1970, for what leaves out the present.
    """

    def __init__(
        self, samples: Iterable[tuple[dict[str, str], int, Any]] = (), *, version: str = "3.16.0", gate: str = ""
    ) -> None:
        self.app = web.Application()
        self.version, self.most, self.warnings = version, MOST, list[str]()
        self.instead: Callable[[str, web.Response], web.Response] = lambda _, answer: answer
        self.now: Callable[[], int] = lambda: int(time.time() * 1000)
        self.series: dict[str, Series] = {}
        for labels, at, value in samples:
            self.add(labels, at, value)
        self.seen: set[str] | None = set()
        self.app.router.add_route("*", f"{gate}/api/v1/{{path:.*}}", self._answer)

    def add(self, labels: dict[str, str], at: int, value: float | dict[str, Any]) -> None:
        """Store a sample."""
        key = json.dumps(labels, sort_keys=True)
        self.series.setdefault(key, Series(labels)).samples.append((at, value))

    async def _answer(self, request: web.Request) -> web.Response:
        parameters = {**request.query, **(await request.post())} if request.method == "POST" else {**request.query}
        if self.seen is not None:
            self.seen.add(request.headers.get("Authorization", ""))
        try:
            answer = self._success(self._data(request.match_info["path"], parameters))
        except RefusedQueryError as error:
            status, kind = (422, "execution") if "samples" in str(error) else (400, "bad_data")
            answer = web.json_response({"status": "error", "errorType": kind, "error": str(error)}, status=status)
        except LookupError:
            answer = web.Response(status=404, text="404 page not found\n")
        return self.instead(request.path, answer)

    def _success(self, data: Any) -> web.Response:
        body = {"status": "success", "data": data} | ({"warnings": self.warnings} if self.warnings else {})
        return web.json_response(body, headers={} if self.version else {"X-Server-Hostname": "fake"})

    def _data(self, path: str, parameters: dict[str, Any]) -> Any:
        if path == "status/buildinfo":
            return {"version": self.version} if self.version else {}
        chosen = [*self.series.values()]
        if "match[]" in parameters:
            chosen = [series for series in chosen if self._selects(parameters["match[]"])(series)]
        if path == "labels":
            return sorted({name for series in chosen for name in series.labels})
        if path == "series":
            return [series.labels for series in chosen]
        if path.startswith("label/"):
            name = path.split("/")[1]
            return sorted({series.labels[name] for series in chosen if name in series.labels})
        if path == "query":
            return self._query(
                parameters["query"], round(float(parameters.get("time", self.now() / 1000)) * 1000), parameters
            )
        raise LookupError(path)

    def _query(self, query: str, at: int, parameters: dict[str, Any]) -> Any:
        if not self.version and "nocache" not in parameters and abs(self.now() - at) < 30_000:
            at = self.now() - 30_000  # VictoriaMetrics lets the present settle
        if query == "vector(1)":
            return {"resultType": "vector", "result": [{"metric": {}, "value": [at / 1000, "1"]}]}
        counted = _COUNT.fullmatch(query)
        span = _SELECTOR.fullmatch(counted["inner"] if counted else query)
        if span is None:
            raise RefusedQueryError('invalid parameter "query": parse error')
        if span["range"] == "0":
            raise RefusedQueryError('invalid parameter "query": parse error: duration must be greater than 0')
        selects = self._selects(query if counted is None else counted["inner"])
        # VictoriaMetrics reckons in floats, and rounds down; Prometheus takes whole milliseconds only.
        window = int(span["range"] or LOOKBACK) if self.version else int(1e-3 * float(span["range"] or LOOKBACK) * 1000)
        first = at - window + (0 if self.version.startswith("2.") else 1)
        inside = [
            (series, rows)
            for series in self.series.values()
            if selects(series) and (rows := [sample for sample in series.samples if first <= sample[0] <= at])
        ]
        number = sum(len(rows) for _, rows in inside)
        if number > self.most:
            raise RefusedQueryError("query processing would load too many samples into memory in query execution")
        if not self.version and span["range"] and (first < _DAY or at % _DAY == 0):
            # VictoriaMetrics finds nothing in a range that begins on the first day, and looks into no day of which a
            # range reaches the first millisecond only.
            inside = [(series, rows) for series, rows in inside if first >= _DAY and rows[0][0] < at]
            number = sum((rows[-1][0] < at and len(rows)) or len(rows) - 1 for _, rows in inside)
            inside = [(series, [row for row in rows if row[0] < at]) for series, rows in inside]
        if counted:
            result = [{"metric": {}, "value": [at / 1000, str(number)]}] if number else []
            return {"resultType": "vector", "result": result}
        if span["range"]:
            return {"resultType": "matrix", "result": [_matrix(*pair) for pair in inside]}
        last = [(series.labels, rows[-1]) for series, rows in inside if not isinstance(rows[-1][1], dict)]
        return {
            "resultType": "vector",
            "result": [{"metric": labels, "value": [at / 1000, _number(value)]} for labels, (_, value) in last],
        }

    def _selects(self, selector: str) -> Callable[[Series], bool]:
        span = _SELECTOR.fullmatch(selector)
        if span is None or not (span["name"] or span["inner"]):
            raise RefusedQueryError('invalid parameter "query": parse error')
        tests = [("__name__", "=", span["name"])] if span["name"] else []
        inner, at = span["inner"] or "", 0
        while at < len(inner):
            if (match := _MATCHER.match(inner, at)) is None:
                raise RefusedQueryError(f'invalid parameter "query": 1:{at}: parse error')
            name = match["name"]
            if name.startswith('"') and not self.version.startswith("3."):
                raise RefusedQueryError('parse error: unexpected string in label matching, expected identifier or "}"')
            text = _text(match["text"])
            try:
                if "~" in match["op"]:
                    re.compile(text)
            except re.error as error:
                raise RefusedQueryError(f'invalid parameter "query": error parsing regexp: {error}') from None
            tests.append((_text(name) if name.startswith('"') else name, match["op"], text))
            at = match.end()
        return lambda series: all(_matches(op, series.labels.get(name, ""), text) for name, op, text in tests)


def _text(quoted: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], quoted[1:-1], flags=re.DOTALL)


def _matches(op: str, label: str, text: str) -> bool:
    if "~" not in op:
        return (label == text) is (op == "=")
    return (re.fullmatch(text, label) is not None) is (op == "=~")


def _matrix(series: Series, rows: list[tuple[int, Any]]) -> dict[str, Any]:
    values = [[at / 1000, _number(value)] for at, value in rows if not isinstance(value, dict)]
    histograms = [[at / 1000, value] for at, value in rows if isinstance(value, dict)]
    row: dict[str, Any] = {"metric": series.labels}
    return row | ({"values": values} if values else {}) | ({"histograms": histograms} if histograms else {})


def _number(value: Any) -> str:
    special = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}
    return special.get(repr(value), repr(value).removesuffix(".0"))
