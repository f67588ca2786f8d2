"""The first hour of a stranger, typed word by word; each step stands on the ones before it.

The steps that need the connection save it, so that each runs alone, too.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from bundled_drivers import MANIFESTS
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate, User
from stranger import stranger
from terminal import Terminal

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


@pytest.fixture
def shop(shell):
    """The machine with its connection to the shop, whether or not the steps that save it have run."""
    if not (shell.home / "config/connections.toml").exists():
        shell("dragoman connections add shop --type elasticsearch --host 127.0.0.1 --port $PORT --yes")
    return shell


def line_of(text: str, start: str) -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(start)).split()


@pytest.mark.slow
def test_browse_lists_the_drivers_before_anything_is_installed(shell):
    """P4: the entry carries the product's name as its label."""
    out = shell("dragoman plugins browse").out
    assert out.splitlines()[0].split() == ["ID", "LABEL", "TYPE", "VERSION", "STATE", "REACHES"]
    for name, label in (("elasticsearch", "Elasticsearch Driver"), ("weaviate", "Weaviate Driver")):
        reach = "the connection's host and port, and the token endpoint that you agree to"
        entry = rf"^{name} +{label} +{name} +1\.0\.0 +available +{reach}$"
        assert re.search(entry, out, re.MULTILINE)
    assert "elasticsearch" not in shell("dragoman plugins list").out


@pytest.fixture
def new_machine(tmp_path):
    """A machine where nothing is installed, and the port of an empty cluster."""
    with anyio.from_thread.start_blocking_portal() as portal:
        cluster = FakeElasticsearch(version="8.19.21")
        with portal.wrap_async_context_manager(cluster):
            yield stranger(tmp_path / "home", cwd=tmp_path, port=cluster.port)


@pytest.mark.slow
def test_adding_a_connection_offers_the_download_before_the_form(new_machine):
    """P2, P5: choose the type, download, form, saved and connected."""
    terminal = Terminal(new_machine, "connections", "add", "shop")
    types = [*MANIFESTS]
    offered = terminal.answer("Type:", str(types.index("elasticsearch") + 1)) + terminal.seen
    choices = "  ".join(f"{number}) {name} (not installed)" for number, name in enumerate(types, start=1))
    assert choices in offered
    question = terminal.answer("[Y/n]", "y").splitlines()[-1].strip()
    shown = next(line for line in README.read_text().splitlines() if line.startswith("Download "))
    assert re.sub(r", \d+ kB", "", question) == re.sub(r", \d+ kB", "", shown.partition(" [Y/n]")[0])
    assert "installed elasticsearch 1.0.0" in terminal.answer("Host", "127.0.0.1")
    terminal.answer("Port", str(new_machine.port))
    assert "API Key" in terminal.answer("Auth Method:", "3") + terminal.seen
    terminal.answer("SSL Mode", "")
    terminal.answer("dvanced", "n")
    status, text = terminal.end()
    assert status == 0
    assert re.search(r"saved shop · connected: Elasticsearch 8\.19\.21 · sandbox (full|partial)", text)


@pytest.mark.slow
def test_the_front_page_adds_a_connection_as_it_shows(new_machine):
    lines = README.read_text(encoding="utf-8").splitlines()
    words = next(shlex.split(line)[2:] for line in lines if line.startswith("$ dragoman connections add"))
    terminal = Terminal(new_machine, *[str(new_machine.port) if word == "9200" else word for word in words])
    terminal.answer("[Y/n]", "y")
    status, text = terminal.end()
    assert status == 0
    shown = next(line for line in lines if line.startswith("saved shop"))
    assert shown.partition(" · sandbox")[0] in text


@pytest.mark.slow
def test_the_refusal_on_the_front_pages_is_the_one_that_is_shown(shop):
    told = shop("dragoman page shop orders --filter 'items contains A'", code=1)
    for page in (README, ROOT / "docs/tutorial/first-page.md"):
        assert (told.out + told.err).strip() in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_same_headless(shop):
    """P5, W5: another database, its driver installed on the way."""
    with anyio.from_thread.start_blocking_portal() as portal:
        library = FakeWeaviate(keys={"a key": User("admin", admin=True)})
        with portal.wrap_async_context_manager(library):
            shop.more["WV_KEY"] = "a key"
            where = f"--type weaviate --host 127.0.0.1 --port {library.port} --auth api-key --api-key env:WV_KEY"
            result = shop(f"dragoman connections add lib {where} --yes")
    assert "connected: Weaviate 1.38.11" in result.out + result.err
    saved = shop("dragoman connections list --json").json["connections"]  # one document, as everywhere
    assert [entry["name"] for entry in saved] == ["lib", "shop"]


@pytest.mark.slow
def test_on_a_new_machine_opening_a_saved_connection_installs_its_driver(shop, tmp_path):
    """P1, P3: only connections.toml is there; opening is enough."""
    saved = (shop.home / "config/connections.toml").read_text()
    machine = stranger(tmp_path, cwd=tmp_path, port=shop.port)
    (tmp_path / "dragoman/config").mkdir(parents=True)
    (tmp_path / "dragoman/config/connections.toml").write_text(saved)
    result = machine("dragoman objects shop")
    assert re.search(r"installing elasticsearch 1\.0\.0 for shop … done \(\d+\.\d s\)", result.err)
    assert result.out.splitlines()[0].split() == ["OBJECT", "ROWS", "SIZE", "STATE"]
    assert line_of(result.out, "orders")[1] == "12,003"
    assert "installing" not in machine("dragoman objects shop").err


@pytest.mark.slow
def test_a_page_is_filtered_sorted_and_cut_to_columns(shop):
    page = "dragoman page shop orders --filter 'total >= 100' --sort -total --limit 2 --columns _id,total,items.sku"
    result = shop(page)
    head, first, second = result.out.splitlines()
    assert head.split() == ["_id", "total", "items.sku"]
    assert float(first.split()[1]) >= float(second.split()[1]) >= 100
    assert re.search(r"^ +rows 1\u20132 of \d,\d{3}$", result.err, re.MULTILINE)


@pytest.mark.slow
def test_rows_on_the_same_element_are_explained(shop):
    """E35: both rows hold for one element."""
    result = shop("dragoman page shop orders --filter 'items.sku = A-17 @1' --filter 'items.qty > 2 @1' --explain")
    text = result.out + result.err
    assert re.search(r"1 +items\.sku = A-17 @1 +nested\(items\): term items\.sku(\.keyword)? +exact", text)
    assert re.search(r"2 +items\.qty > 2 @1 +nested\(items\): range items\.qty +exact, same element as 1", text)


@pytest.mark.slow
def test_a_dropped_sort_is_said_as_data(shop):
    """E36, E37."""
    page = shop("dragoman page shop orders --raw 'status:open AND total:>100' --sort note --json").json
    assert page["notes"][0]["code"] == "sort-dropped"
    assert page["notes"][0]["column"] == "note"
    assert "keyword" in page["notes"][0]["reason"]


@pytest.mark.slow
def test_a_filter_that_cannot_run_is_refused_with_a_way_out(shop):
    """E24: the JSON parent of a nested array."""
    result = shop("dragoman page shop orders --filter 'items contains A'", code=1)
    assert result.out == ""
    assert "error[filter-not-supported]" in result.err
    assert "nothing was sent" in result.err
    assert "the driver suggests: dragoman page shop orders --filter" in result.err


@pytest.mark.slow
def test_an_update_is_previewed_as_the_exact_request(shop):
    result = shop("dragoman update shop books 17 --set price=12.5 --set author.name=Ada --dry-run")
    request, body = result.out.splitlines()[:2]
    assert re.fullmatch(r"POST /books/_update/17\?if_seq_no=\d+&if_primary_term=\d+&refresh=wait_for", request)
    assert json.loads(body) == {"doc": {"price": 12.5, "author": {"name": "Ada"}}}
    assert "not sent (--dry-run)" in result.err


@pytest.mark.slow
def test_a_stale_update_is_a_conflict_and_exit_status_4(shop):
    shop("dragoman update shop books 17 --set price=11.5")
    result = shop("dragoman update shop books 17 --set price=12.5 --if-seq-no 0 --if-primary-term 1", code=4)
    assert re.search(r"17 +conflict +changed since it was read", result.out + result.err)


@pytest.mark.slow
def test_a_file_of_changes_is_applied_told_by_line_and_taken_back(shop):
    lines = [
        {"op": "update", "object": "books", "id": "18", "set": {"price": 12.5}},
        {"op": "update", "object": "orders", "id": "8812", "set": {"items.qty": 3}},
        {"op": "delete", "object": "books", "id": "19"},
    ]
    (shop.cwd / "changes.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    before = shop("dragoman count shop books").out
    result = shop("dragoman apply shop changes.ndjson --undo undo.ndjson", code=4)
    told = (
        "applied 2 · skipped 1 · conflict 0 · failed 0      (line 2 skipped: items.qty is a nested leaf; edit 'items')"
    )
    assert result.err.splitlines()[0].strip() == told
    assert shop("dragoman count shop books").out != before
    assert "applied 2" in shop("dragoman apply shop undo.ndjson").err
    assert shop("dragoman count shop books").out == before


@pytest.mark.slow
def test_an_export_appears_only_when_it_is_complete(shop):
    result = shop("dragoman export shop orders -o orders.ndjson")
    assert "12,003" in result.err
    lines = (shop.cwd / "orders.ndjson").read_bytes().splitlines()
    assert len(lines) == 12_003
    assert all(isinstance(json.loads(line), dict) for line in lines[:50])


@pytest.mark.slow
def test_a_filtered_export_as_csv_goes_to_stdout(shop):
    total = int(shop("dragoman count shop orders --filter 'total >= 100'").out.replace(",", ""))
    out = shop("dragoman export shop orders --filter 'total >= 100' --format csv").out
    assert len(list(csv.reader(io.StringIO(out)))) == total + 1


@pytest.mark.slow
def test_the_console_answers_a_table_as_csv(shop):
    """E27."""
    out = shop("dragoman console shop 'GET /_cat/indices?format=json' --format csv").out
    assert out.splitlines()[0].startswith("health,status,index,uuid,pri,rep,docs.count")


SMOKE = """GET /_cluster/health
# expect status 200

POST /${index}/_search
{"size": 1, /* one will do */ "track_total_hits": true}
# expect hits.hits.0._source exists
# expect hits.total.value >= 20000
GET /_cat/count/${index}?format=json
"""


@pytest.mark.slow
def test_a_file_of_requests_is_held_to_what_it_expects(shop):
    """E26: and stops at the first answer that is another."""
    (shop.cwd / "smoke.es").write_text(SMOKE)
    ended = shop("dragoman console shop -f smoke.es --var index=orders --stop-on-error", code=1)
    assert len(ended.out.splitlines()) == 2, ended
    health, search = ended.out.splitlines()
    assert re.fullmatch(r"1 GET /_cluster/health +200  ok", health)
    got = r"expect hits.total.value >= 20000, got 12003   smoke\.es:7"
    assert re.fullmatch(rf"2 POST /orders/_search +200  FAILED  {got}", search)


@pytest.mark.slow
def test_many_searches_in_one_request_cross_the_sandbox_as_grids(shop):
    """E38."""
    (shop.cwd / "many.es").write_text("GET /books/_msearch\n" + '{}\n{"size": 1}\n' * 60)
    [answer] = json.loads(shop("dragoman console shop -f many.es --json").out)["answers"]
    assert answer["title"] == "search 1 of 60"
    assert [len(part["page"]["rows"]) for part in answer["more"]] == [1] * 15


@pytest.mark.slow
def test_the_last_rows_are_one_option_away(shop):
    """E41: past row 10,000."""
    result = shop("dragoman page shop orders --last --limit 3 --columns _id")
    assert len(result.out.splitlines()) == 4
    assert "rows 12,001–12,003 of 12,003" in result.err  # noqa: RUF001 - a range


@pytest.mark.slow
def test_a_server_that_is_down_is_a_connection_error(shop):
    """E40."""
    shop("dragoman connections add down --type elasticsearch --host 127.0.0.1 --port 1 --yes", code=3)
    result = shop("dragoman connections test down", code=3)
    assert "error[connection-failed]: Connection failed: " in result.err


@pytest.mark.slow
def test_dropping_an_index_shows_the_request_and_wants_its_name(shop):
    """E31."""
    shop("dragoman console shop 'PUT /scratch'")
    refused = shop("dragoman drop shop scratch", code=1)
    assert "DELETE /scratch" in refused.out + refused.err
    done = shop("dragoman drop shop scratch --yes")
    assert "dropped scratch" in done.out + done.err


PYTHON = """
import anyio, dragoman
from dragoman import Filter, Sort, Update

async def main() -> None:
    async with dragoman.open("shop") as shop:
        books = shop.rows("books", filters=[Filter("price", ">=", 10)], sort=[Sort("price", descending=True)])
        page = await books.page()
        row = page.rows[0]
        plan = await shop.plan(Update(row.key, {"price": row["price"]}))
        print(plan.requests[0])
        [outcome] = await shop.apply(plan)
        print(outcome.status)
        count = 0
        async for document in shop.rows("orders"):
            count += 1
        print(count)

anyio.run(main)
"""


@pytest.mark.slow
def test_the_same_from_python(shop):
    import os

    environment = {**os.environ, "DRAGOMAN_HOME": str(shop.home)}
    done = subprocess.run([sys.executable, "-c", PYTHON], capture_output=True, text=True, env=environment, timeout=50)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.match(r"POST /books/_update/.+\?if_seq_no=\d+", lines[0])
    assert lines[-2:] == ["applied", "12003"]


GUARD = """
from dragoman_api import Call, Event, Refused, hookimpl

@hookimpl
async def before_call(call: Call) -> None:
    if call.writes and call.connection and call.connection.name.startswith("shop"):
        raise Refused(f"{call.hook} on {call.connection.name}", hint="use a change file and the release job")

@hookimpl
async def on_event(event: Event) -> None:
    if event.name == "connection.health_changed" and event.state == "failed":
        print(event.to_json(), flush=True)
"""

NIGHTLY = """
from pathlib import Path

async def main(runtime) -> None:
    async with runtime.open("shop") as shop:
        await shop.rows("books").export("books.ndjson")
"""


@pytest.mark.slow
def test_a_guard_vetoes_a_write_from_the_command_line(shop):
    (shop.cwd / "guard.py").write_text(GUARD)
    result = shop("dragoman --use guard.py update shop books 17 --set price=0", code=1)
    assert "error[refused]: guard.py: apply_change on shop; nothing was sent" in result.err
    assert "hint: use a change file and the release job" in result.err


@pytest.mark.slow
def test_a_script_runs_with_a_guard_and_leaves_a_trail_of_events(shop):
    (shop.cwd / "guard.py").write_text(GUARD)
    (shop.cwd / "nightly.py").write_text(NIGHTLY)
    shop("dragoman --use guard.py --events run.ndjson run nightly.py")
    names = [json.loads(line)["name"] for line in (shop.cwd / "run.ndjson").read_text().splitlines()]
    for name in ("connection.opened", "export.finished", "connection.closed"):
        assert names.count(name) == 1
    assert len((shop.cwd / "books.ndjson").read_bytes().splitlines()) == 480


@pytest.fixture(scope="module")
def author(shell):
    """The author's folder, and the fake of it as the server that everybody reaches."""
    shell("dragoman driver new meili --type meilisearch --port 7700")
    folder = shell.cwd / "dragoman-meili"
    words = [sys.executable, str(folder / "tests/fake.py"), "--port", str(port := free_port())]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield shell.beside(cwd=folder, port=port)
    server.terminate()
    server.wait(10)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.mark.slow
def test_an_author_makes_checks_and_tests_a_driver(author):
    assert re.search(r"^check: 39 rules, 0 faults · sandbox (full|partial)", author("dragoman driver check").out)
    server = {
        "type": "meilisearch",
        "engine": "Meilisearch",
        "version": "1.0",
        "host": "127.0.0.1",
        "port": author.port,
    }
    (author.cwd / "server.json").write_text(json.dumps([{**server, "object": "planets", "rows": 8}]))
    out = author("dragoman driver test --live server.json").out
    assert re.search(
        r"conformance: \d+ passed, \d+ skipped \(hooks not implemented: .*plan_change.*\) · sandbox \w+", out
    )
    assert out.rstrip().endswith(" · report.json")


@pytest.mark.slow
def test_an_author_publishes_and_a_stranger_s_connection_installs_it(author, tmp_path):
    """P3: another home knows the folder, and opening does the rest."""
    author("dragoman registry init ../team")
    out = author("dragoman driver publish --to ../team").out
    assert re.fullmatch(r"published meili 0\.1\.0 \(sha256 [0-9a-f]{4}…\) · open \.\./team/index\.html\n", out)
    assert (author.cwd / "../team/index.html").is_file()
    machine = stranger(tmp_path, cwd=author.cwd, port=author.port)
    machine("dragoman registry add ../team")
    machine("dragoman connections add m --type meilisearch --host 127.0.0.1 --port $PORT --yes")
    assert line_of(machine("dragoman objects m").out, "planets") == ["planets", "8"]


@pytest.mark.slow
def test_the_registry_is_signed_and_what_somebody_changed_in_it_is_refused(author, tmp_path):
    """Keys lie beside the folder; a stranger's home starts from the root it was shown."""
    team = (author.cwd / "../team").resolve()
    assert list(team.with_name("team.keys").glob("pub-owner-*.pem"))
    assert author("dragoman registry verify ../team").err == "  no faults\n"
    machine = stranger(tmp_path, cwd=author.cwd, port=author.port)
    root = machine("dragoman registry add ../team --json").json["added"]["root"]
    assert f"{root[:12]}…" in machine("dragoman registry list").out
    [wheel] = team.rglob("dragoman_meili-0.1.0-py3-none-any.whl")
    data = wheel.read_bytes()
    wheel.write_bytes(data[:-30] + bytes([data[-30] ^ 1]) + data[-29:])
    try:
        told = machine("dragoman plugins install meili --yes --json", code=1).err
        assert '"integrity-failed"' in told
        assert wheel.name in told
    finally:
        wheel.write_bytes(data)


@pytest.mark.slow
def test_the_same_folder_serves_pip(author, tmp_path):
    index = (author.cwd / "../team/targets/simple").resolve().as_uri()
    words = ["download", "-q", "--no-deps", "--dest", str(tmp_path), "--index-url", index, "dragoman-meili"]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, timeout=50, capture_output=True)
    assert [file.name for file in tmp_path.glob("*.whl")] == ["dragoman_meili-0.1.0-py3-none-any.whl"]
