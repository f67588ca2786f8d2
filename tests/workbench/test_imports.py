"""Files that the browser sends: kept privately and bounded, looked at, loaded, resumed, and gone in the end."""

from __future__ import annotations

import io
import json
import os
import stat
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anyio
import pytest

from browsing import Tab, signed_in
from dragoman_sample.fakes.elasticsearch import FakeElasticsearch
from dragoman_sample.fakes.weaviate import FakeWeaviate
from dragoman_workbench.uploads import ReceivedFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

CSV = "code,n,name\n" + "".join(f"0{at},{at},Böttcher {at}\n" for at in range(300))


async def upload(tab: Tab, data: str | bytes, name: str = "items.csv", status: int = 200) -> Any:
    """Send a file, and return what the server says of it."""
    headers = {"Dragoman-Secret": tab.secret, "Content-Type": "application/octet-stream"}
    body = io.BytesIO(data.encode() if isinstance(data, str) else data)
    async with tab.http.post(f"/upload?name={name}", data=body, headers=headers) as answer:
        assert answer.status == status, await answer.text()
        return await answer.json()


async def ended(tab: Tab, number: str) -> Any:
    """Wait until an import has ended."""
    with anyio.fail_after(60):
        while True:
            [job] = [job for job in (await tab("imports"))["imports"] if job["id"] == number]
            if job["state"] != "running":
                return job
            await anyio.sleep(0.02)


def kept(home: Path) -> list[Path]:
    """Return the files that are kept of uploads."""
    return [path for path in (home / "state" / "workbench").glob("uploads-*/*/*") if path.is_file()]


async def test_a_table_is_looked_at_and_makes_an_object_of_confirmed_types(shop_tab: Tab, shop_home: Path) -> None:
    name = f"items-{uuid4().hex[:8]}"
    sent = await upload(shop_tab, CSV)
    [path] = kept(shop_home)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o600, 0o700]
    reading = {"connection": "shop", "object": name, "upload": sent["id"]}
    preview = await shop_tab("imports/preview", **reading)
    assert (preview["names"], len(preview["rows"]), preview["exists"]) == (["code", "n", "name"], 50, False)
    types = {column["name"]: column["type"] for column in preview["proposal"]["columns"]}
    assert types == {"code": "text", "n": "integer", "name": "text"}
    refused = await shop_tab("imports/start", **reading, create=True)
    assert (await ended(shop_tab, refused["id"]))["error"]["code"] == "types-unconfirmed"
    dry = await shop_tab("imports/start", **reading, create=True, types=types, dry_run=True)
    job = await ended(shop_tab, dry["id"])
    assert (job["state"], job["requests"][0].partition("\n")[0]) == ("finished", f"PUT /{name}")
    begun = await shop_tab("imports/start", **reading, create=True, types=types, id="code")
    job = await ended(shop_tab, begun["id"])
    assert (job["state"], job["rows"], job["counts"]["applied"], job["rejected"]) == ("finished", 300, 300, False)
    assert [path.name for path in kept(shop_home)] == ["undo.ndjson"]
    ticket = await shop_tab("imports/download", id=job["id"], file="undo")
    async with shop_tab.http.get(f"/download/{ticket['ticket']}") as answer:
        assert len((await answer.read()).splitlines()) == 300
    assert (await shop_tab("count", connection="shop", rows={"object": name}))["rows"] == "300"
    await shop_tab("imports/discard", upload=sent["id"])
    assert kept(shop_home) == []
    assert (await shop_tab.failure("imports/download", id=job["id"], file="undo"))["code"] == "not-found"


async def test_rejected_rows_are_shown_and_downloaded(shop_tab: Tab) -> None:
    sent = await upload(shop_tab, "total,note\n1,a\n\n,,\nx,b\n", name="orders.csv")
    reading = {"connection": "shop", "object": "orders", "upload": sent["id"], "renamed": {"note": ""}}
    preview = await shop_tab("imports/preview", **reading)
    assert (preview["exists"], [row["fault"] for row in preview["rows"]]) == (
        True, ["", "it has 3 fields, and the file has 2 columns", ""],
    )  # fmt: skip
    job = await ended(shop_tab, (await shop_tab("imports/start", **reading))["id"])
    assert (job["counts"]["applied"], job["rejected"]) == (1, True)
    rejected = await shop_tab("imports/rejected", id=job["id"])
    assert [(row["row"], row["code"]) for row in rejected["rows"]] == [(2, "unreadable"), (3, "refused")]
    ticket = await shop_tab("imports/download", id=job["id"], file="rejected")
    assert ticket["file"] == "orders.csv.rejected.ndjson"
    async with shop_tab.http.get(f"/download/{ticket['ticket']}") as answer:
        assert [json.loads(line)["row"] for line in (await answer.text()).splitlines()] == [2, 3]


@pytest.mark.slow
async def test_an_import_that_was_cancelled_goes_on_where_it_ended(shop_tab: Tab, shop_home: Path) -> None:
    name = f"many-{uuid4().hex[:8]}"
    sent = await upload(shop_tab, "".join(f'{{"id":"{at}","n":{at}}}\n' for at in range(30_000)), name="many.ndjson")
    begun = await shop_tab("imports/start", connection="shop", object=name, upload=sent["id"], create=True, id="id")
    with anyio.fail_after(60):
        while not (await shop_tab("imports"))["imports"][0]["rows"]:
            await anyio.sleep(0.01)
    assert (await shop_tab.failure("imports/discard", upload=sent["id"]))["code"] == "import-running"
    await shop_tab("imports/cancel", id=begun["id"])
    job = await ended(shop_tab, begun["id"])
    assert (job["state"], job["resumable"]) == ("cancelled", True)
    assert 0 < job["rows"] == job["counts"]["applied"] < 30_000
    await shop_tab("imports/resume", id=job["id"])
    job = await ended(shop_tab, job["id"])
    assert (job["state"], job["rows"], job["resumable"]) == ("finished", 30_000, False)
    assert (await shop_tab("count", connection="shop", rows={"object": name}))["rows"] == "30000"
    assert (await shop_tab.failure("imports/resume", id=job["id"]))["code"] == "resume-refused"


@pytest.mark.slow
async def test_an_import_is_taken_back_and_a_row_that_was_changed_since_stays(shop_tab: Tab, shop_home: Path) -> None:
    name = f"back-{uuid4().hex[:8]}"
    reading = {"connection": "shop", "object": name}
    first = await upload(shop_tab, "".join(f'{{"id":"{at}","n":{at}}}\n' for at in range(3)), name="a.ndjson")
    begun = await shop_tab("imports/start", **reading, upload=first["id"], create=True, id="id", undo=False)
    await ended(shop_tab, begun["id"])
    text = "".join(f'{{"id":"{at}","n":{at + 1}7}}\n' for at in range(2_500))
    sent = await upload(shop_tab, text, name="b.ndjson")
    begun = await shop_tab("imports/start", **reading, upload=sent["id"], id="id", on_conflict="overwrite")
    assert (await ended(shop_tab, begun["id"]))["counts"]["applied"] == 2_500
    page = await shop_tab("page", connection="shop", rows={"object": name, "sort": [{"column": "n"}]}, limit=500)
    changed = page["rows"][99]
    number = changed["cells"][[column["name"] for column in page["columns"]].index("_id")]
    assert int(number) > 2
    plan = await shop_tab(
        "changes/plan",
        connection="shop",
        changes=[{"kind": "update", "key": changed["key"], "values": {"n": ["integer", "5"]}}],
    )
    await shop_tab("changes/apply", connection="shop", plan=plan["plan"])
    undo = await shop_tab("imports/undo", id=begun["id"])
    job = await ended(shop_tab, undo["id"])
    assert (job["state"], job["rows"], job["counts"]["applied"], job["rejected"]) == ("finished", 2_500, 2_499, True)
    assert job["undoes"] == begun["id"]
    [left] = (await shop_tab("imports/rejected", id=job["id"]))["rows"]
    assert (left["code"], left["text"]) == ("conflict", number)
    kept_rows = await shop_tab("page", connection="shop", rows={"object": name, "sort": [{"column": "n"}]}, limit=500)
    at = [column["name"] for column in kept_rows["columns"]].index("n")
    assert sorted(row["cells"][at][1] for row in kept_rows["rows"]) == ["0", "1", "2", "5"]
    original = await ended(shop_tab, begun["id"])
    assert (original["undone"], original["undo"]) == (True, False)
    assert (await shop_tab.failure("imports/undo", id=begun["id"]))["code"] == "not-found"
    assert (await shop_tab.failure("imports/download", id=job["id"], file="rejected"))["code"] == "not-found"


@pytest.mark.slow
async def test_an_undo_that_is_cancelled_says_so_and_can_be_asked_for_again(shop_tab: Tab) -> None:
    name = f"half-{uuid4().hex[:8]}"
    sent = await upload(shop_tab, "".join(f'{{"id":"{at}","n":{at}}}\n' for at in range(20_000)), name="a.ndjson")
    begun = await shop_tab("imports/start", connection="shop", object=name, upload=sent["id"], create=True, id="id")
    await ended(shop_tab, begun["id"])
    undo = await shop_tab("imports/undo", id=begun["id"])
    assert (await shop_tab.failure("imports/undo", id=begun["id"]))["code"] == "import-running"
    assert (await shop_tab.failure("imports/discard", upload=sent["id"]))["code"] == "import-running"
    await shop_tab("imports/cancel", id=undo["id"])
    assert (await ended(shop_tab, undo["id"]))["state"] == "cancelled"
    again = await ended(shop_tab, (await shop_tab("imports/undo", id=begun["id"]))["id"])
    assert again["state"] == "finished"
    assert (await shop_tab("count", connection="shop", rows={"object": name}))["rows"] == "0"


@pytest.mark.slow
async def test_of_two_tabs_that_ask_at_once_one_imports_a_file_and_one_takes_it_back(shop_tab: Tab) -> None:
    name = f"twice-{uuid4().hex[:8]}"
    sent = await upload(shop_tab, "".join(f'{{"id":"{at}","n":{at}}}\n' for at in range(2_000)), name="a.ndjson")

    async def at_once(route: str, **body: object) -> str:
        answers: list[Any] = []

        async def ask() -> None:
            answers.append((await shop_tab.send(route, body))[1])

        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(ask)
        [number] = [answer["id"] for answer in answers if "id" in answer]
        [refusal] = [answer for answer in answers if "id" not in answer]
        assert "import-running" in str(refusal)
        assert (await ended(shop_tab, number))["counts"]["applied"] == 2_000
        return str(number)

    begun = await at_once("imports/start", connection="shop", object=name, upload=sent["id"], create=True, id="id")
    await at_once("imports/undo", id=begun)
    assert (await shop_tab("count", connection="shop", rows={"object": name}))["rows"] == "0"


async def test_an_error_names_the_file_as_the_person_does(shop_tab: Tab, shop_home: Path) -> None:
    sent = await upload(shop_tab, b"\x1f\x8bnothing", name="my%20rows.csv.gz")
    assert sent["name"] == "my rows.csv.gz"
    failure = await shop_tab.failure("imports/preview", connection="shop", object="orders", upload=sent["id"])
    assert (failure["code"], str(shop_home) in json.dumps(failure)) == ("import-file-damaged", False)
    assert "my rows.csv.gz" in failure["message"]


@pytest.mark.parametrize(
    "name", ["../../x.csv", "%00.csv", "a%0Ab.csv", "..", "CON", "%3Cimg%20src=x%3E.csv", "x" * 255]
)
async def test_a_name_decides_nothing_but_the_format(shop_tab: Tab, shop_home: Path, name: str) -> None:
    await upload(shop_tab, CSV, name=name)
    assert all(path.name in ("rows", "rows.csv") for path in kept(shop_home))
    assert len(kept(shop_home)) == 1


async def test_what_is_too_large_unsigned_cut_off_or_without_a_size_is_not_kept(
    shop_tab: Tab, shop_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_workbench.uploads.MAX_BYTES", 10)
    failure = (await upload(shop_tab, CSV, status=422))["error"]
    assert (failure["code"], "10 at most" in failure["message"]) == ("upload-too-large", True)
    monkeypatch.setattr("dragoman_workbench.uploads.MAX_BYTES", 1 << 20)
    monkeypatch.setattr("dragoman_workbench.uploads.SPARE_BYTES", 1 << 60)
    assert (await upload(shop_tab, CSV, status=422))["error"]["code"] == "disk-full"
    monkeypatch.setattr("dragoman_workbench.uploads.SPARE_BYTES", 0)

    async def chunks() -> Any:
        yield b"a"

    headers = {"Dragoman-Secret": shop_tab.secret, "Content-Type": "application/octet-stream"}
    foreign = {**headers, "Origin": "http://attacker.invalid"}
    for body, sent, status in (
        (CSV, {"Content-Type": "application/octet-stream"}, 401), (CSV, foreign, 403), (chunks(), headers, 400),
        (CSV, {**headers, "Content-Type": "text/plain"}, 400), (CSV, {**headers, "Host": "attacker.invalid"}, 403),
    ):  # fmt: skip
        async with shop_tab.http.post("/upload?name=x.csv", data=body, headers=sent) as answer:
            assert answer.status == status, (sent, await answer.text())
    assert kept(shop_home) == []


async def test_only_so_many_files_are_kept_and_none_that_is_half_here(home: Path) -> None:
    folder = home / "uploads"
    folder.mkdir(parents=True)
    (folder / "uploads-999999999" / "old").mkdir(parents=True)
    uploads = ReceivedFiles(folder)
    assert [*folder.iterdir()] == []

    async def chunks(*parts: bytes) -> Any:
        for part in parts:
            yield part

    numbers = [await uploads.receive("a.csv", 2, chunks(b"ab")) for _ in range(9)]
    assert len([*(folder / f"uploads-{os.getpid()}").iterdir()]) == 8
    with pytest.raises(Exception, match="this file is gone"):
        uploads.find(numbers[0])
    for parts in ((b"a",), (b"ab", b"c")):
        with pytest.raises(Exception, match="did not arrive"):
            await uploads.receive("a.csv", 2, chunks(*parts))
    assert uploads.find(numbers[-1]).path.read_bytes() == b"ab"
    uploads.remove()
    assert [*folder.iterdir()] == []


async def test_nothing_is_left_when_the_workbench_ends(shop_home: Path) -> None:
    async with signed_in(shop_home) as tab:
        await upload(tab, CSV)
        assert len(kept(shop_home)) == 1
    assert kept(shop_home) == []


@pytest.fixture
async def two_tabs(shop_home: Path) -> AsyncIterator[Tab]:
    """Return a tab with two connections open: the sample cluster, and an empty one."""
    async with FakeElasticsearch(version="8.19.21") as attic, signed_in(shop_home) as tab:
        values = {"host": "127.0.0.1", "port": str(attic.port), "auth_method": "none"}
        fields = {name: {"kind": "value", "value": value} for name, value in values.items()}
        await tab("connections/save", name="attic", type="elasticsearch", fields=fields)
        for name in ("shop", "attic"):
            await tab("open", connection=name)
        yield tab


async def rows_of(tab: Tab, connection: str, name: str, limit: int = 500) -> list[Any]:
    """Return the first rows, sorted by id, without what the server keeps itself."""
    page = await tab("page", connection=connection, rows={"object": name}, limit=limit)
    names = [column["name"] for column in page["columns"]]
    rows = [dict(zip(names, row["cells"], strict=True)) for row in page["rows"]]
    own = ("_index", "_version", "_score", "_seq_no", "_primary_term")
    return sorted(
        [{name: cell for name, cell in row.items() if name not in own} for row in rows], key=lambda row: row["_id"]
    )


async def test_rows_are_copied_to_another_connection_and_taken_back(two_tabs: Tab) -> None:
    asked = {"connection": "shop", "rows": {"object": "books"}, "target": "attic", "object": "books-too"}
    number = int((await two_tabs("count", connection="shop", rows=asked["rows"]))["rows"])  # tests before may add some
    plan = await two_tabs("imports/plan_copy", **asked)
    assert (plan["exists"], plan["making"].partition("\n")[0]) == (False, "PUT /books-too")
    assert all(column["type"] == column["target"] for column in plan["columns"])
    gone = await two_tabs.failure("imports/copy", **asked, making="PUT /books-too\n{}")
    assert gone["code"] == "plan-gone"
    begun = await two_tabs("imports/copy", **asked, making=plan["making"])
    job = await ended(two_tabs, begun["id"])
    assert (job["state"], job["counts"]["applied"], job["rejected"], job["notes"]) == ("finished", number, False, [])
    assert await rows_of(two_tabs, "attic", "books-too") == await rows_of(two_tabs, "shop", "books")
    again = await ended(two_tabs, (await two_tabs("imports/copy", **asked))["id"])
    assert (again["counts"]["conflict"], again["rejected"]) == (number, True)
    assert (await two_tabs("imports/rejected", id=again["id"]))["rows"][0]["code"] == "conflict"
    there = await two_tabs("imports/plan_copy", **asked)
    assert (there["exists"], there["making"]) == (True, "")
    undone = await ended(two_tabs, (await two_tabs("imports/undo", id=job["id"]))["id"])
    assert undone["counts"]["applied"] == number > 0
    assert await rows_of(two_tabs, "attic", "books-too") == []


@pytest.mark.slow
async def test_a_copy_to_another_type_does_what_was_shown_or_nothing(two_tabs: Tab) -> None:
    async with FakeWeaviate() as vectors:
        values = {"host": "127.0.0.1", "port": str(vectors.port), "auth_method": "none"}
        fields = {name: {"kind": "value", "value": value} for name, value in values.items()}
        await two_tabs("connections/save", name="lab", type="weaviate", fields=fields)
        await two_tabs("open", connection="lab")
        asked = {"connection": "shop", "rows": {"object": "books"}, "target": "lab", "object": "Books"}
        number = int((await two_tabs("count", connection="shop", rows=asked["rows"]))["rows"])
        plan = await two_tabs("imports/plan_copy", **asked)
        assert (plan["differs"], plan["exists"], plan["ids"], plan["ids_consent"]) == (True, False, "derive", False)
        changed = {column["name"]: column["to"] for column in plan["columns"] if column["reason"]}
        left = next(column["name"] for column in plan["columns"] if column["name"] not in changed)
        gone = await two_tabs.failure("imports/copy", **asked, making=plan["making"], ids="derive" if changed else None)
        assert gone["code"] == "plan-gone"
        asked |= {"renamed": changed | {left: ""}, "ids": "derive"}
        plan = await two_tabs("imports/plan_copy", **asked)
        column = next(column for column in plan["columns"] if column["name"] == left)
        assert (column["to"], column["reason"], column["consent"]) == ("", "left out, as you asked", True)
        job = await ended(two_tabs, (await two_tabs("imports/copy", **asked, making=plan["making"]))["id"])
        assert (job["state"], job["counts"]["applied"]) == ("finished", number)
        undone = await ended(two_tabs, (await two_tabs("imports/undo", id=job["id"]))["id"])
        assert undone["counts"]["applied"] == number
        renewed = await two_tabs("imports/copy", **(asked | {"ids": "new"}), making="")
        assert (job["new_ids"], renewed["new_ids"]) == (False, True)
        assert (await ended(two_tabs, renewed["id"]))["counts"]["applied"] == number


@pytest.mark.slow
async def test_a_copy_onto_itself_is_refused_and_a_filter_is_kept(two_tabs: Tab) -> None:
    asked = {"connection": "shop", "rows": {"object": "books"}, "object": "books"}
    own = await two_tabs.failure("imports/plan_copy", **asked, target="shop")
    assert "onto themselves" in own["message"]
    assert (await two_tabs.failure("imports/copy", **asked, target="nobody"))["code"] == "connection-closed"
    total = {"type": "filter", "column": "total", "op": ">=", "value": "100", "group": None, "case": None}
    rows = {"object": "orders", "filters": [total]}
    number = int((await two_tabs("count", connection="shop", rows=rows))["rows"])
    asked = {"connection": "shop", "rows": rows, "target": "attic", "object": "orders"}
    plan = await two_tabs("imports/plan_copy", **asked)
    job = await ended(two_tabs, (await two_tabs("imports/copy", **asked, making=plan["making"]))["id"])
    assert job["counts"]["applied"] == number > 0
