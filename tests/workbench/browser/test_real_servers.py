"""The ten points of the workbench on real servers: one walk on each, from an empty home to an exported file."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from workbench.browser.conftest import browsing, read_address, serving
from workbench.browser.walking import Server, Walk, becomes, digits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]

ENGINES = ("elasticsearch-8.19.21", "weaviate-1.38.11")
"""The engines to walk on: the newest ones with users or keys, the first with TLS."""
IMPORTS = ("elasticsearch-8.19.21-plain", "weaviate-1.38.11")
"""The engines to import on."""
CITIES = ("Lisbon", "Porto", "Faro", "Évora", "<b>Braga</b>")
BIG = 9_007_199_254_740_993
"""An integer that a float cannot hold."""
MANY, FEW = 10_450, 320
NESTED = {"type": "nested", "properties": {"sku": {"type": "keyword"}, "qty": {"type": "integer"}}}


@pytest.fixture(scope="module")
def server(live_server: dict[str, Any]) -> Server:
    """The server to walk on. It comes before the browser, which other engines do not need."""
    if live_server["engine"] not in ENGINES:
        pytest.skip(f"the walk needs one of {', '.join(ENGINES)}")
    return Server(live_server)


@pytest.fixture(scope="module")
def store(live_server: dict[str, Any]) -> Server:
    """The server that objects are made on, whichever it is."""
    return Server(live_server)


@contextmanager
def walking(chromium: Browser, server: Server, name: str, folder: Path) -> Iterator[Walk]:
    """Serve a workbench in an empty home, which exports into a folder, and open a wide tab in it."""
    (folder / "exports").mkdir()
    wide = {"width": 1900, "height": 900}
    with (
        serving(folder / "home", "--export-to", folder / "exports") as file,
        browsing(chromium, read_address(file), viewport=wide) as page,
    ):
        yield Walk(page, server, name)


def document(number: int) -> dict[str, Any]:
    """What is stored under a number."""
    return {
        "number": number,
        "big": BIG + number,
        "city": CITIES[number % len(CITIES)],
        "day": f"2024-{number % 12 + 1:02}-03T04:05:06Z",
        "title": f"book {number}",
    }


@pytest.fixture
def orders(store: Server) -> Iterator[str]:
    """An index of more rows than the server's window has, with nested documents and prices as people write them."""
    name, words = "walk-orders", {"type": "keyword"}
    properties = {"number": {"type": "integer"}, "big": {"type": "long"}, "city": words, "day": {"type": "date"}}
    properties |= {"title": words, "price": {"type": "double"}, "items": NESTED}
    settings = {"number_of_shards": 2, "number_of_replicas": 0}
    store.send("PUT", f"/{name}", json.dumps({"settings": settings, "mappings": {"properties": properties}}))
    lines = []
    for number in range(MANY):
        items = [{"sku": f"s{number % 7}", "qty": number % 3}, {"sku": "x"}]
        text = json.dumps(document(number) | {"items": items})
        lines += [json.dumps({"index": {"_id": str(number)}}), text[:-1] + f', "price": {number % 50}.50' + "}"]
    answer = store.send("POST", f"/{name}/_bulk?refresh=true", "\n".join(lines) + "\n", "application/x-ndjson")
    assert answer["errors"] is False
    store.send("PUT", "/walk-other", "{}")
    yield name
    store.send("DELETE", f"/{name},walk-other")


def key(number: int) -> str:
    """The uuid of a number."""
    return f"00000000-0000-4000-8000-{number:012}"


@pytest.fixture
def articles(store: Server) -> Iterator[str]:
    """A collection with vectors."""
    name = "WalkArticle"
    kinds = {"number": "int", "big": "int", "day": "date", "title": "text", "city": "text", "price": "number"}
    properties = [{"name": key, "dataType": [kind]} for key, kind in kinds.items()]
    for one in properties[-3:-1]:
        one["tokenization"] = "field"
    indexing = {"indexNullState": True, "indexPropertyLength": True}
    made = {"class": name, "properties": properties, "vectorizer": "none", "invertedIndexConfig": indexing}
    store.send("POST", "/v1/schema", json.dumps(made))
    store.send("POST", "/v1/schema", json.dumps({"class": "WalkOther", "vectorizer": "none"}))
    objects = [
        {
            "class": name,
            "id": key(number),
            "vector": [number, 0.5],
            "properties": document(number) | {"price": number % 50 + 0.5},
        }
        for number in range(FEW)
    ]
    stored = store.send("POST", "/v1/batch/objects", json.dumps({"objects": objects}))
    assert all(one["result"].get("status", "SUCCESS") == "SUCCESS" for one in stored)
    yield name
    store.send("DELETE", f"/v1/schema/{name}")
    store.send("DELETE", "/v1/schema/WalkOther")


def kept_in(folder: Path, secret: str) -> list[int]:
    """The modes of the files that hold a secret."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.stat().st_mode & 0o777 for file in files if secret.encode() in file.read_bytes()]


def connect(walk: Walk, label: str, fields: dict[str, str], choices: dict[str, str], secret: dict[str, str]) -> None:
    """Points 1 to 3: the form after the driver's download, a wrong secret first; the marketplace; a missing driver."""
    [(name, typed)] = secret.items()
    version = walk.server.record["version"]
    walk.install_and_fill(label, fields | {name: "wrong"}, choices)
    assert "Authentication failed" in walk.test_of_the_form()
    walk.hands.write(walk.page.get_by_label(name), typed)
    assert version in walk.test_of_the_form()
    walk.save_and_connect()
    walk.verify_and_remove_the_driver()
    header = walk.open()
    assert version in header
    assert "sandbox" in header


def scroll_and_sort(walk: Walk, rows: int, price: str) -> None:
    """Point 5: to the last row and back, in both directions of a sort."""
    walk.sort("number", "ascending")
    walk.cell(1, "number").click()
    walk.page.keyboard.press("Control+End")
    assert walk.cell(rows, "number").inner_text() == str(rows - 1)
    assert walk.cell(rows, "price").inner_text() == price
    walk.page.keyboard.press("Control+Home")
    assert walk.cell(1, "number").inner_text() == "0"
    walk.sort("number", "descending")
    assert walk.cell(1, "number").inner_text() == str(rows - 1)


def filter_and_summarize(walk: Walk, rows: int, clause: str) -> None:
    """Points 6 and 10: a refusal and an explanation; the rows of the filter at a glance."""
    assert "many" in walk.filter("number", ">=", "many")
    assert walk.filter("city", "=", "Lisbon").startswith(clause)
    assert walk.apply_the_filter() == rows // 5
    city, number = walk.glance("city"), walk.glance("number")
    assert city["rows"] == city["Lisbon"] == f"{rows // 5:,}"
    extremes = [number[end].removeprefix("\N{ALMOST EQUAL TO} ").partition(" ")[0] for end in ("minimum", "maximum")]
    assert extremes == ["0", str(rows - 5)]


def edit_and_meet_a_conflict(walk: Walk, request: str, read: Callable[[], str], write: Callable[[str], object]) -> None:
    """Point 7: an edit is reviewed and sent; a second one meets what somebody else wrote meanwhile, and wins."""
    walk.edit("title", "mine")
    assert request in walk.review()
    assert walk.send() == "applied"
    walk.close_the_review()
    assert read() == "mine"
    walk.cell(1, "title").filter(has_text="mine").wait_for()
    walk.edit("title", "mine again")
    write("theirs")
    walk.review()
    assert walk.send() == "conflict"
    assert walk.compare() == ['"mine"', '"mine again"', '"theirs"']
    walk.page.get_by_role("button", name="Use mine").click()
    walk.close_the_review()
    assert read() == "theirs"
    walk.review()
    assert walk.send() == "applied"
    walk.close_the_review()
    assert read() == "mine again"


@pytest.mark.live("elasticsearch")
def test_the_ten_points_on_elasticsearch(server: Server, orders: str, chromium: Browser, tmp_path: Path) -> None:
    user, last = server.record["users"]["superuser"], MANY - 5
    fields = {"Host": "localhost", "Port": str(server.record["port"]), "CA File": server.record["ca_file"]}
    choices = {"Auth Method": "username-password", "SSL Mode": "verify-identity"}

    def title() -> str:
        return str(server.send("GET", f"/{orders}/_doc/{last}")["_source"]["title"])

    def write(text: str) -> None:
        server.send("POST", f"/{orders}/_update/{last}?refresh=true", json.dumps({"doc": {"title": text}}))

    with walking(chromium, server, orders, tmp_path) as walk:
        secret = {"Password": user["password"]}
        connect(walk, "Elasticsearch", fields | {"Username": user["username"]}, choices, secret)
        assert kept_in(tmp_path, user["password"]) == [0o600]
        assert "10,450 rows" in walk.find_the_object("walk-other")
        scroll_and_sort(walk, MANY, "49.50")
        assert walk.cell(1, "big").inner_text() == str(BIG + MANY - 1)
        filter_and_summarize(walk, MANY, "exact\nterm city")
        edit_and_meet_a_conflict(walk, "if_seq_no", title, write)
        found = server.send("POST", f"/{orders}/_search?size=10000", '{"query": {"term": {"city": "Lisbon"}}}')
        stored = {hit["_source"]["number"]: hit["_source"] for hit in found["hits"]["hits"]}
        exported = walk.export(tmp_path / "exports")
        assert {one["number"]: one for one in exported} == stored
        assert len(exported) == len(stored) == MANY // 5
        answer = walk.run("", "GET /walk-or", orders, "/_count")
        assert answer["request"]["path"] == f"/{orders}/_count"
        assert str(MANY) in answer["text"]
        search = f'POST /{orders}/_search\n{{"size":0,"aggs":{{"by":'
        answer, drawn = walk.draw(f'{search}{{"terms":{{"field":"city"}}}}}}}}')
        cities = digits(answer["text"])["aggregations"]["by"]["buckets"]
        assert drawn == [[bucket["key"], f"{bucket['doc_count']:,}"] for bucket in cities]
        assert len(drawn) == len(CITIES)
        months = '{"date_histogram":{"field":"day","calendar_interval":"month"}}'
        answer, drawn = walk.draw(f"{search}{months}}}}}")
        assert len(answer["page"]["rows"]) == 12
        first = digits(answer["text"])["aggregations"]["by"]["buckets"][0]
        assert drawn == [["2024-01-01 00:00:00", f"{first['doc_count']:,}"]]


@pytest.mark.live("weaviate")
def test_the_ten_points_on_weaviate(server: Server, articles: str, chromium: Browser, tmp_path: Path) -> None:
    secret, path = server.record["api_keys"]["admin"], f"/v1/objects/{articles}/{key(FEW - 5)}"
    fields = {"Host": "127.0.0.1", "Port": str(server.record["port"])}

    def title() -> str:
        return str(server.send("GET", path)["properties"]["title"])

    def write(text: str) -> None:
        theirs = {"class": articles, "id": key(FEW - 5), "properties": {"title": text}}
        server.send("PATCH", path, json.dumps(theirs))

    with walking(chromium, server, articles, tmp_path) as walk:
        connect(walk, "Weaviate", fields, {"Auth Method": "api-key"}, {"API Key": secret})
        assert kept_in(tmp_path, secret) == [0o600]
        walk.find_the_object("WalkOther")
        scroll_and_sort(walk, FEW, "19.5")
        filter_and_summarize(walk, FEW, 'approximate\n{path:["city"],operator:Equal')
        edit_and_meet_a_conflict(walk, "PATCH", title, write)
        found = server.send("GET", f"/v1/objects?class={articles}&limit={FEW}")["objects"]
        stored = {one["properties"]["number"]: one["properties"] for one in found}
        exported = walk.export(tmp_path / "exports")
        assert {one["number"]: one for one in exported} == {at: stored[at] for at in range(0, FEW, 5)}
        assert len(exported) == FEW // 5
        answer = walk.run("{ Get { ", "WalkAr", articles, "(limit: 2) { title } } }")
        assert [column["name"] for column in answer["page"]["columns"]] == ["title"]
        assert len(answer["page"]["rows"]) == 2
        groups = f'{{ Aggregate {{ {articles}(groupBy: ["city"]) {{ groupedBy {{ value }} meta {{ count }}'
        answer, drawn = walk.draw(f"{groups} number {{ mean }} }} }} }}")
        cities = digits(answer["text"])["data"]["Aggregate"][articles]
        assert drawn == [[group["groupedBy"]["value"], str(group["meta"]["count"])] for group in cities]
        assert [column["name"] for column in answer["page"]["columns"] if column["role"] == "key"] == [
            "groupedBy.value"
        ]


def import_and_take_back(walk: Walk, target: str, file: Path) -> list[str]:
    """Import a table that makes its object, twice, the second time over the first; take the second one back.

    Returns:
        What the cards say, the newest first.
    """
    page = walk.page
    page.get_by_role("link", name="Import rows").click()
    cards = page.get_by_role("list", name="Imports").locator("li.card")
    for number in (1, 2):
        if number == 1:
            walk.hands.write(page.get_by_label("Into the object"), target)
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Choose a").press("Enter")
        chooser.value.set_files(file)
        if number == 2:
            walk.hands.choose(page.get_by_label("Column of the object for key"), "")
        walk.hands.choose(page.get_by_label("Id of a row"), "key")
        walk.hands.choose(page.get_by_label("If the id exists"), "replace the stored row")
        page.get_by_role("button", name="Make it with these types" if number == 1 else "Import").last.click()
        cards.nth(number - 1).wait_for()
        cards.first.locator(".badge", has_text="finished").wait_for()
        file.write_text(file.read_text().replace("first", "second"))
    cards.first.get_by_role("button", name="Undo the import").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Undo the import").press("Enter")
    page.locator(".badge", has_text="taken back").wait_for()
    return cards.all_inner_texts()


@pytest.fixture
def importer(live_server: dict[str, Any]) -> Server:
    if live_server["engine"] not in IMPORTS:
        pytest.skip(f"imports are walked on {', '.join(IMPORTS)}")
    return Server(live_server)


def written_table(folder: Path, ids: list[str], *, big: int = BIG) -> Path:
    """Write a table of large integers, by default such that a float does not hold, and one bad row."""
    file = folder / "table.csv"
    rows = "".join(f"{name},{big + at},first {at}\n" for at, name in enumerate(ids))
    file.write_text(f"key,big,title\n{rows}short\n")
    return file


@pytest.mark.live("elasticsearch")
def test_an_import_and_its_undo_on_elasticsearch(importer: Server, chromium: Browser, tmp_path: Path) -> None:
    file = written_table(tmp_path, [str(at) for at in range(2_500)])
    fields = {"Host": "127.0.0.1", "Port": str(importer.record["port"])}
    with walking(chromium, importer, "walk-imported", tmp_path) as walk:
        walk.install_and_fill("Elasticsearch", fields, {"Auth Method": "none"})
        walk.save_and_connect()
        undone, second, first = import_and_take_back(walk, "walk-imported", file)
        assert "2,500 rows to take back: 2,500 taken back" in undone
        assert all("2,501 rows read: 2,500 written, 1 rejected" in text for text in (second, first))
        hits = importer.send("POST", "/walk-imported/_search?size=3000")["hits"]["hits"]
        assert {hit["_id"]: hit["_source"] for hit in hits} == {
            str(at): {"key": at, "big": BIG + at, "title": f"first {at}"} for at in range(2_500)
        }
        importer.send("DELETE", "/walk-imported")


@pytest.mark.live("weaviate")
def test_an_import_and_its_undo_on_weaviate(importer: Server, chromium: Browser, tmp_path: Path) -> None:
    file = written_table(tmp_path, [key(at) for at in range(250)], big=2**53 - 500)  # the server rounds larger ones
    fields = {
        "Host": "127.0.0.1",
        "Port": str(importer.record["port"]),
        "API Key": importer.record["api_keys"]["admin"],
    }
    with walking(chromium, importer, "WalkImported", tmp_path) as walk:
        walk.install_and_fill("Weaviate", fields, {"Auth Method": "api-key"})
        walk.save_and_connect()
        undone, second, first = import_and_take_back(walk, "WalkImported", file)
        assert "250 rows to take back: 250 taken back" in undone
        assert all("251 rows read: 250 written, 1 rejected" in text for text in (second, first))
        stored = importer.send("GET", "/v1/objects?class=WalkImported&limit=300")["objects"]
        titles = {one["id"]: one["properties"]["title"] for one in stored}
        assert titles == {key(at): f"first {at}" for at in range(250)}
        importer.send("DELETE", "/v1/schema/WalkImported")


def copy_the_object(walk: Walk, name: str, target: str) -> str:
    """Copy an object within its connection into one that is made; returns what the card says."""
    page = walk.page
    page.locator(".object-table tr", has=page.get_by_role("link", name=name, exact=True)).click(button="right")
    page.get_by_role("menuitem", name="Copy to a connection").click()
    dialog = page.get_by_role("dialog", name=f"Copy {name}")
    there = dialog.get_by_label("To the connection")
    walk.hands.choose(there, there.locator("option").nth(1).inner_text())  # this one
    walk.hands.write(dialog.get_by_label("Into the object"), target)
    dialog.get_by_text(f"{target} does not exist").wait_for()
    make = dialog.get_by_role("button", name="Make it with these types, and copy")
    becomes(page, make.is_enabled)
    make.press("Enter")
    card = page.locator("li.card").first
    card.locator(".badge", has_text="finished").wait_for()
    return card.inner_text()


@pytest.mark.live("elasticsearch")
def test_a_copy_on_elasticsearch(importer: Server, orders: str, chromium: Browser, tmp_path: Path) -> None:
    fields = {"Host": "127.0.0.1", "Port": str(importer.record["port"])}
    with walking(chromium, importer, orders, tmp_path) as walk:
        walk.install_and_fill("Elasticsearch", fields, {"Auth Method": "none"})
        walk.save_and_connect()
        importer.send("DELETE", "/walk-copy?ignore_unavailable=true")  # of a run that failed
        assert "10,450 rows read: 10,450 written" in copy_the_object(walk, orders, "walk-copy")
        importer.send("POST", "/walk-copy/_refresh")
        stored = [
            {hit["_id"]: hit["_source"] for hit in importer.send("POST", f"/{name}/_search?size=10000")["hits"]["hits"]}
            for name in (orders, "walk-copy")
        ]
        shared = stored[0].keys() & stored[1].keys()
        assert len(shared) > 9_000
        assert all(stored[0][key] == stored[1][key] for key in shared)
        types = [importer.send("GET", f"/{name}/_mapping")[name]["mappings"] for name in (orders, "walk-copy")]
        assert types[0] == types[1]
        importer.send("DELETE", "/walk-copy")


@pytest.mark.live("weaviate")
def test_a_copy_on_weaviate_keeps_vectors(importer: Server, articles: str, chromium: Browser, tmp_path: Path) -> None:
    fields = {"Host": "127.0.0.1", "Port": str(importer.record["port"])}
    fields |= {"API Key": importer.record["api_keys"]["admin"]}
    with walking(chromium, importer, articles, tmp_path) as walk:
        walk.install_and_fill("Weaviate", fields, {"Auth Method": "api-key"})
        walk.save_and_connect()
        assert f"{FEW} rows read: {FEW} written" in copy_the_object(walk, articles, "WalkCopy")
        stored = [
            {
                one["id"]: (one["properties"], one["vector"])
                for one in importer.send("GET", f"/v1/objects?class={name}&limit=400&include=vector")["objects"]
            }
            for name in (articles, "WalkCopy")
        ]
        assert len(stored[0]) == FEW
        assert stored[0] == stored[1]
        importer.send("DELETE", "/v1/schema/WalkCopy")
