"""Loads: what an export wrote comes back as it was, and every other row is accounted for with its reason."""

from __future__ import annotations

import gzip
import json
import os
import stat
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from drivers.elasticsearch.rig import OnFake, OnServer, Rig, on_fake
from pyarrow import parquet

from cancelling import cancelled
from dragoman.changes.sets import ChangeSet
from dragoman.imports.checkpoints import unfinished
from dragoman.imports.loads import load
from dragoman_api import Delete, Insert, RowKey, Update
from dragoman_api.arrow.schema import may_be_lists
from dragoman_api.changes import OutcomeStatus
from dragoman_api.errors import ConfigurationError, ConnectionFailedError, DragomanError, Refused
from dragoman_api.hookspecs import hookimpl
from exporting import Line
from in_process import Here

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.imports.load_run import LoadReport
    from dragoman.sessions.session import Session

COLUMNS: dict[str, Any] = {
    "n": {"type": "long"},
    "price": {"type": "double"},
    "sku": {"type": "keyword"},
    "title": {"type": "text"},
    "day": {"type": "date"},
    "yes": {"type": "boolean"},
    "tags": {"type": "keyword"},
    "items": {"type": "nested", "properties": {"a": {"type": "long"}}},
    "raw": {"type": "object", "enabled": False},
}
NASTY = [
    '{"n": 9223372036854775807, "price": 1.10, "title":"Žluťoučký 🐎", "raw":{"d":123456789012345678901234567890.50}}',
    '{"n":-9223372036854775808,"price":-0.0,"title":"","sku":"","raw":{"e":1e400,"deep":[[1,[2.50]],[]]}}',
    '{"title":"two\\r\\nlines\\ttab \\"quoted\\", comma","sku":null,"tags":["a",null,"b,c"],"yes":true}',
    '{"items":[{"a":1},{"a":2}],"tags":[],"day":"2024-02-29T12:30:00.123Z","price":0.30000000000000004}',
    '{"sku":"=1+1","title":"null","yes":false,"day":"2020-01-01","n":0}',
    '{"sku":"[draft]","tags":["x"],"raw":{"\\u0000":"nul","big":99999999999999999999999999}}',
]


def session(es: Rig, *use: object) -> Session:
    return Here(es.driver, *use).session()


async def export(es: Rig, name: str, to: Path, **more: Any) -> None:
    """Export without the meter of a session, whose scopes do not mix with a driver in this process."""
    await Line(es.driver)(to, name=name, **more)


async def stored(es: Rig, name: str) -> dict[str, str]:
    """Return every document as it is stored, by id."""
    await es.call("POST", f"/{name}/_refresh")
    found = await es.call("POST", f"/{name}/_search", {"size": 1000, "_source": False})
    return {hit["_id"]: await es.source(name, hit["_id"]) for hit in found["hits"]["hits"]}


async def is_unfinished(file: Path) -> bool:
    return await to_thread.run_sync(unfinished, file)


def tokens(text: str) -> str:
    """Return a JSON text without blanks between its tokens; digits and escapes stay."""
    made, quoted, escaped = [], False, False
    for sign in text:
        if quoted:
            quoted, escaped = escaped or sign != '"', sign == "\\" and not escaped
        elif sign in " \r\n\t":
            continue
        elif sign == '"':
            quoted = True
        made.append(sign)
    return "".join(made)


def rejected(file: Path) -> list[dict[str, Any]]:
    path = file.with_name(f"{file.name}.rejected.ndjson")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def lines(file: Path, *documents: object) -> Path:
    file.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in documents))
    return file


def counts(report: LoadReport) -> dict[str, int]:
    return {name: count for name, count in report.counts.items() if count}


class Rules:
    @pytest.mark.parametrize("name", ["o.rows", "o.bulk", "o.rows.gz", "o.bulk.bz2", "o.rows.zst"])
    async def test_rows_and_bulk_lines_come_back_token_by_token_under_their_ids(self, es: Rig, tmp_path, name):
        source, target = await es.index(COLUMNS, NASTY), await es.index(COLUMNS, name="copy")
        shop, kind = session(es), name.split(".")[1]
        await export(es, source, tmp_path / name, format=kind)
        report = await load(shop, target, file=tmp_path / name)
        assert counts(report) == {"applied": len(NASTY)}, rejected(tmp_path / name)
        before, after = await stored(es, source), await stored(es, target)
        assert {key: tokens(text) for key, text in after.items()} == {key: tokens(text) for key, text in before.items()}
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]

    @pytest.mark.parametrize("name", ["o.ndjson", "o.json", "o.ndjson.zst", "o.json.gz"])
    async def test_documents_come_back_token_by_token(self, es: Rig, tmp_path, name):
        source, target = await es.index(COLUMNS, NASTY), await es.index(COLUMNS, name="copy")
        shop = session(es)
        await export(es, source, tmp_path / name)
        assert counts(await load(shop, target, file=tmp_path / name)) == {"applied": len(NASTY)}
        before, after = await stored(es, source), await stored(es, target)
        assert sorted(map(tokens, after.values())) == sorted(map(tokens, before.values()))

    @pytest.mark.parametrize("name", ["o.csv", "o.tsv", "o.csv.gz", "o.parquet"])
    async def test_tables_come_back_by_value_without_nulls(self, es: Rig, tmp_path, name):
        """A table has no place for the difference between null and missing, nor for an object beside its columns."""
        columns = {key: kind for key, kind in COLUMNS.items() if key != "raw"}
        plain = [json.dumps({k: v for k, v in json.loads(text).items() if k != "raw"}) for text in NASTY]
        source, target = await es.index(columns, plain), await es.index(columns, name="copy")
        shop = session(es)
        await export(es, source, tmp_path / name)
        report = await load(shop, target, file=tmp_path / name)
        assert counts(report) == {"applied": len(NASTY)}, rejected(tmp_path / name)
        left_out = [note for note in report.notes if note.code == "columns-left-out"]
        assert any("_index" in (note.column or note.reason) for note in left_out), left_out
        before, after = await stored(es, source), await stored(es, target)
        wanted = {key: {k: v for k, v in json.loads(text).items() if v is not None} for key, text in before.items()}
        assert {key: _instants(json.loads(text)) for key, text in after.items()} == {
            key: _instants(value) for key, value in wanted.items()
        }

    async def test_64_bit_integers_and_long_decimals_keep_their_digits_in_a_table(self, es: Rig, tmp_path):
        columns = {"n": {"type": "long"}, "price": {"type": "double"}, "k": {"type": "keyword"}}
        source = await es.index(columns, ['{"n":9007199254740993,"price":1.100000000000000000001,"k":"007"}'])
        shop = session(es)
        for name in ("t.csv", "t.parquet"):
            target = await es.index(columns, name=name.replace(".", ""))
            await export(es, source, tmp_path / name)
            assert counts(await load(shop, target, file=tmp_path / name)) == {"applied": 1}
            assert json.loads(await es.source(target, "0"), parse_float=str) == {
                "n": 9007199254740993, "price": "1.100000000000000000001", "k": "007",
            }  # fmt: skip

    @pytest.mark.parametrize("one", ["array", "value"])
    @pytest.mark.parametrize("form", ["parquet"])
    async def test_lists_come_back_as_they_are_stored(self, es: Rig, tmp_path, one, form):
        documents = [
            '{"n":1,"sku":["a"],"price":[1.5],"yes":[true],"tags":["[1]"]}',
            '{"n":[1],"sku":"a","price":1.5,"yes":true,"tags":"[1]"}',
            '{"n":[1,2],"sku":["a","b"],"price":[0.5,null],"yes":[true,false],"tags":["{}","x"],"title":["y","z"]}',
            '{"n":[],"sku":[],"price":[],"yes":[],"tags":[null]}',
            '{"sku":"\\"q\\"","title":["w"],"n":[9007199254740993],"tags":"[draft]"}',
        ]
        source, target = await es.index(COLUMNS), await es.index(COLUMNS, name="other")
        file = lines(tmp_path / "a.ndjson", *documents)
        assert counts(await load(session(es), source, file=file)) == {"applied": len(documents)}
        described = (await es.driver.describe_object(source)).columns
        lists = {column.name: one for column in described if may_be_lists(column)}
        assert {"n", "sku", "price", "yes", "tags", "title", "day"} == {*lists}
        out = tmp_path / f"o.{form}"
        await export(es, source, out, lists=lists)
        assert counts(await load(session(es), target, file=out)) == {"applied": len(documents)}
        before, after = await stored(es, source), await stored(es, target)
        assert {key: json.loads(each) for key, each in after.items()} == {
            key: json.loads(each) for key, each in before.items()
        }

    async def test_an_id_on_conflict_fails_is_skipped_or_overwrites(self, es: Rig, tmp_path):
        name = await es.index(COLUMNS)
        shop = session(es)
        first = lines(tmp_path / "a.ndjson", *({"sku": f"s{at}", "n": at} for at in range(5)))
        assert counts(await load(shop, name, file=first, id="sku")) == {"applied": 5}
        second = lines(tmp_path / "b.ndjson", {"sku": "s1", "n": 1}, {"sku": "s2", "n": 20}, {"sku": "s9", "n": 9})
        assert counts(await load(shop, name, file=second, id="sku")) == {"applied": 1, "conflict": 2}
        told = rejected(second)
        assert [(each["row"], each["code"], each["id"], each["data"]["n"]) for each in told] == [
            (1, "conflict", "s1", 1), (2, "conflict", "s2", 20),
        ]  # fmt: skip
        assert "and holds the same" in told[0]["reason"]
        assert counts(await load(shop, name, file=second, id="sku", on_conflict="skip")) == {"skipped": 3}
        assert rejected(second) == []
        assert json.loads(await es.source(name, "s2"))["n"] == 2
        assert counts(await load(shop, name, file=second, id="sku", on_conflict="overwrite")) == {"applied": 3}
        assert json.loads(await es.source(name, "s2"))["n"] == 20

    async def test_an_id_twice_in_a_file_is_a_conflict_or_the_last_one_wins(self, es: Rig, tmp_path):
        shop, file = (
            session(es),
            lines(tmp_path / "a.ndjson", *({"sku": "x", "n": at} for at in range(3)), {"sku": "y"}),
        )
        name = await es.index(COLUMNS)
        assert counts(await load(shop, name, file=file, id="sku")) == {"applied": 2, "conflict": 2}
        assert json.loads(await es.source(name, "x"))["n"] == 0
        name = await es.index(COLUMNS, name="other")
        assert counts(await load(shop, name, file=file, id="sku", on_conflict="overwrite")) == {"applied": 4}
        assert json.loads(await es.source(name, "x"))["n"] == 2

    async def test_rows_that_cannot_be_written_are_kept_with_their_reason(self, es: Rig, tmp_path):
        name = await es.index({**COLUMNS, "n": {"type": "long"}})
        file = tmp_path / "a.ndjson"
        bad = [b'{"n": 1}', b"nonsense", b"[1]", b'{"sku": "\xff"}', b'{"n": "many"}', b"", b'{"n": 2', b'{"n": 3}']
        file.write_bytes(b"\xef\xbb\xbf" + b"\n".join(bad))
        report = await load(session(es), name, file=file)
        assert (report.counts["applied"], report.rows) == (2, 7)
        told = rejected(file)
        assert [(each["row"], each["data"]) for each in told if each["code"] == "unreadable"] == [
            (2, "nonsense"), (3, [1]), (4, '{"sku": "\ufffd"}'), (6, '{"n": 2'),
        ]  # fmt: skip
        assert [(each["row"], each["data"]) for each in told if each["code"] != "unreadable"] == [
            (5, {"n": "many"}),
        ]  # fmt: skip
        assert all(each["reason"] for each in told)

    @pytest.mark.parametrize(
        ("row", "outcome"),
        [
            ({"version": 7, "version_type": "external"}, "no place for its member 'version'"),
            ({"pipeline": "p"}, "no place for its member 'pipeline'"),
            ({"vectors": {"a": [1]}}, "no place for its member 'vectors'"),
            ({"tenant": "a"}, "no place for its member 'tenant'"),
            ({"colour": ""}, "no place for its member 'colour'"),
            ({"colour": None, "vector": []}, ""),
            ({"_version": 7, "_score": 1.5, "sort": [1], "_type": "_doc"}, "members-left-out"),
            ({"_index": "another"}, "rows-of-others"),
            ({"_routing": "a"}, ""),
            ({"_routing": "a", "routing": "b"}, "say different things"),
        ],
    )
    @pytest.mark.parametrize("kind", ["rows", "bulk"])
    async def test_every_member_beside_a_document_is_written_noted_or_its_row_is_refused(
        self, es: Rig, tmp_path, kind, row, outcome
    ):
        """E30: a row is never written without a part of it."""
        name = await es.index({"n": {"type": "long"}})
        members = {"_index": name, "_id": "x"} | row
        text = [members | {"_source": {"n": 1}}] if kind == "rows" else [{"index": members}, {"n": 1}]
        file = lines(tmp_path / f"o.{kind}", *text)
        report = await load(session(es), name, file=file, format=kind)
        if outcome and "-" not in outcome:
            assert counts(report) == {"refused": 1}
            assert outcome in rejected(file)[0]["reason"]
            assert await stored(es, name) == {}
        else:
            assert counts(report) == {"applied": 1}, rejected(file)
            assert [note.code for note in report.notes] == [outcome][: bool(outcome)]

    async def test_a_row_without_the_routing_that_its_index_requires_is_never_sent(self, es: Rig, tmp_path):
        """E28, E30: without an id, and for a read, 7.17 answers with a null pointer."""
        name = await es.index({"n": {"type": "long"}}, mapping={"_routing": {"required": True}})
        rows = [{"_id": "1", "_source": {"n": 1}}, {"_source": {"n": 2}}, {"_id": "3", "routing": "a", "_source": {}}]
        file = lines(tmp_path / "o.rows", *rows)
        for undo in (None, tmp_path / "undo"):
            report = await load(session(es), name, file=file, format="rows", undo=undo, on_conflict="overwrite")
            assert counts(report) == {"applied": 1, "refused": 2}
            assert {row["reason"] for row in rejected(file)} == {
                f"'{name}' needs a routing for every row (_routing.required), and this one has none"
            }
        changes = (Insert(name, {"n": 1}, "x"), Insert(name, {"n": 1}), Update(RowKey(name, "3"), {"n": 1}),
                   Delete(RowKey(name, "3")))  # fmt: skip
        outcomes = await es.apply(*changes, Update(RowKey(name, "3", "a"), {"n": 1}))
        assert [outcome.status for outcome in outcomes] == ["refused"] * 4 + ["applied"]
        assert all("_routing.required" in outcome.reason for outcome in outcomes[:4])

    async def test_columns_are_renamed_left_out_and_must_exist(self, es: Rig, tmp_path):
        name = await es.index(COLUMNS)
        shop, file = session(es), tmp_path / "a.csv"
        file.write_text("Titel,extra,n,key\nTea,1,2,k1\n")
        with pytest.raises(ConfigurationError, match="has no column 'Titel'") as caught:
            await load(shop, name, file=file)
        assert caught.value.code == "column-unknown"
        with pytest.raises(ConfigurationError, match=r"the file has no column 'keyy' \(did you mean key\?\)"):
            await load(shop, name, file=file, id="keyy")
        renamed = {"Titel": "title", "extra": ""}
        assert counts(await load(shop, name, file=file, id="key", renamed=renamed)) == {"applied": 1}
        assert json.loads(await es.source(name, "k1")) == {"title": "Tea", "n": 2}
        documents = lines(tmp_path / "b.ndjson", '{"Titel":"Mate","n":1.50,"key":7,"extra":0}', '{"Titel":"x"}')
        report = await load(shop, name, file=documents, id="key", renamed={**renamed, "n": "price"})
        assert counts(report) == {"applied": 1, "refused": 1}
        assert await es.source(name, "7") == '{"title":"Mate","price":1.50,"key":7}'
        assert "it has no column 'key'" in rejected(documents)[0]["reason"]

    async def test_an_undo_file_takes_a_load_back(self, es: Rig, tmp_path):
        name = await es.index(COLUMNS, ['{"n": 0}', '{"n": 1.0}'])
        before = await stored(es, name)
        shop = session(es)
        file = lines(tmp_path / "a.ndjson", {"sku": "1", "n": 7}, {"sku": "new"}, {"n": 3})
        wanted = {"id": "sku", "on_conflict": "overwrite", "undo": tmp_path / "undo.ndjson"}
        report = await load(shop, name, file=file, **wanted)
        assert counts(report) == {"applied": 2, "refused": 1}
        assert report.undo == str(tmp_path / "undo.ndjson")
        async with ChangeSet(shop, tmp_path / "undo.ndjson") as changes:
            await changes.plan()
            taken = await changes.apply()
        assert (taken.counts["applied"], await stored(es, name)) == (2, before)
        with pytest.raises(ConfigurationError, match="already exists"):
            await load(shop, name, file=file, **wanted)


def _instants(document: dict[str, Any]) -> dict[str, Any]:
    """Spell instants alike: a Parquet file holds them as such."""
    day = document.get("day")
    if isinstance(day, str):
        text = day.removesuffix("Z")
        text = text if "T" in text else f"{text}T00:00:00"
        document = {**document, "day": text}
    return document


class TestOnFake(Rules, OnFake):
    pass


class TestOnServer(Rules, OnServer):
    pass


@pytest.fixture
async def es():
    async with on_fake("8.19.21") as rig:
        yield rig


class Vetoes:
    """A guard that lets so many writes pass."""

    def __init__(self, passes: int) -> None:
        self.passes, self.seen = passes, []

    @hookimpl
    async def before_call(self, call):
        if call.writes:
            self.seen.append(call)
            if len(self.seen) > self.passes:
                raise Refused("read-only")


async def test_a_guard_sees_every_request_and_its_veto_stops_the_load(es, tmp_path):
    name, guard = await es.index(COLUMNS), Vetoes(0)
    file = lines(tmp_path / "a.ndjson", *({"n": at} for at in range(30)))
    with pytest.raises(Refused, match="read-only") as caught:
        await load(session(es, guard), name, file=file, batch=10)
    assert caught.value.details["applied"] == 0
    assert await stored(es, name) == {}
    assert not await is_unfinished(file)
    guard.passes = 1_000
    assert counts(await load(session(es, guard), name, file=file, batch=10)) == {"applied": 30}
    bodies = [request.body for call in guard.seen[-3:] for request in call.requests]
    assert sorted(json.loads(line)["n"] for body in bodies for line in body.splitlines()[1::2]) == [*range(30)]


async def test_a_veto_in_the_middle_leaves_what_can_be_resumed_exactly(es, tmp_path):
    name = await es.index(COLUMNS)
    file = lines(tmp_path / "a.ndjson", *({"n": at} for at in range(100)), "bad")
    with pytest.raises(Refused) as caught:
        await load(session(es, Vetoes(4)), name, file=file, batch=10)
    assert caught.value.details["applied"] == 40
    assert await is_unfinished(file)
    with pytest.raises(ConfigurationError, match="was interrupted") as refused:
        await load(session(es), name, file=file, batch=10)
    assert refused.value.code == "import-unfinished"
    report = await load(session(es), name, file=file, batch=7, resume=True)
    assert (counts(report), report.resumed, report.rows) == ({"applied": 100, "refused": 1}, 1, 101)
    assert sorted(json.loads(text)["n"] for text in (await stored(es, name)).values()) == [*range(100)]
    assert len(rejected(file)) == 1
    assert not await is_unfinished(file)


async def test_a_resumption_of_another_load_is_refused(es, tmp_path):
    name, other = await es.index(COLUMNS), await es.index(COLUMNS, name="other")
    file = lines(tmp_path / "a.ndjson", *({"n": at} for at in range(100)))
    with pytest.raises(ConfigurationError, match=r"no load of .* was interrupted"):
        await load(session(es), name, file=file, resume=True)
    with pytest.raises(Refused):
        await load(session(es, Vetoes(4)), name, file=file, batch=10)
    for wanted, more in (("object", {"object": other}), ("on_conflict", {"on_conflict": "skip"}), ("id", {"id": "n"})):
        with pytest.raises(ConfigurationError, match=f"had {wanted} ") as caught:
            await load(session(es), **{"object": name, "file": file, "resume": True, **more})
        assert caught.value.code == "resume-refused"
    kept = file.read_text()
    file.write_text(kept.replace('{"n": 3}', '{"n": 4}'))
    with pytest.raises(ConfigurationError, match="changed since"):
        await load(session(es), name, file=file, resume=True)
    file.write_text(kept + '{"n": 100}\n')  # what follows what was read may grow
    assert (await load(session(es), name, file=file, resume=True)).counts["applied"] == 101


@pytest.mark.parametrize("keyed", [True, False])
async def test_a_lost_answer_is_settled_by_ids_and_in_doubt_without_them(es, tmp_path, monkeypatch, keyed):
    monkeypatch.setattr("dragoman.imports.batch_sending.AGAIN", (0.01,))
    name = await es.index(COLUMNS)
    file = lines(tmp_path / "a.ndjson", *({"n": at, "sku": str(at)} for at in range(30)))
    real, lost = es.driver.apply_change, []

    async def loses(plan):
        outcomes = await real(plan)
        if not lost:
            lost.append(plan)
            raise ConnectionFailedError("the connection ended", details={"sent": True})
        return outcomes

    monkeypatch.setattr(es.driver, "apply_change", hookimpl(loses))
    here = Here(es.driver)
    with pytest.raises(DragomanError) as caught:
        await load(here.session(), name, file=file, id="sku" if keyed else None, batch=10)
    told = caught.value.details
    assert told["unknown"] == 10
    assert told["applied"] + told["unknown"] <= 30
    report = await load(here.session(), name, file=file, id="sku" if keyed else None, batch=10, resume=True)
    found = await stored(es, name)
    assert len(found) == 30
    assert sorted(json.loads(text)["n"] for text in found.values()) == [*range(30)]
    if keyed:
        assert counts(report) == {"applied": 30}
    else:
        assert counts(report) == {"applied": 20, "unknown": 10}
        assert {each["code"] for each in rejected(file)} == {"unknown"}
        assert "the server makes its id" in rejected(file)[0]["reason"]


async def test_a_row_in_doubt_that_another_wrote_differently_is_a_conflict(es, tmp_path, monkeypatch):
    name = await es.index(COLUMNS, ['{"n": 5}'])
    file = lines(tmp_path / "a.ndjson", {"sku": "0", "n": 1}, {"sku": "1", "n": 2})

    async def fails(plan):
        raise ConnectionFailedError("the connection ended", details={"sent": True})

    real = es.driver.apply_change
    monkeypatch.setattr(es.driver, "apply_change", hookimpl(fails))
    with pytest.raises(DragomanError, match="it is unknown whether it was applied"):
        await load(session(es), name, file=file, id="sku")
    monkeypatch.setattr(es.driver, "apply_change", real)
    report = await load(session(es), name, file=file, id="sku", resume=True)
    assert counts(report) == {"applied": 1, "conflict": 1}
    assert json.loads(await es.source(name, "0"))["n"] == 5


async def test_a_busy_server_gets_the_rows_again_and_then_the_load_stops(es, tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.imports.batch_sending.BUSY", (0.01, 0.01))
    name = await es.index(COLUMNS)
    file = lines(tmp_path / "a.ndjson", *({"n": at} for at in range(5)))
    real, turned = es.driver.apply_change, []

    async def busy(plan):
        outcomes = await real(plan) if len(turned) >= 2 else None
        turned.append(plan)
        if outcomes is not None:
            return outcomes
        from dragoman_api import Outcome

        return [Outcome(change=at, status=OutcomeStatus.FAILED, reason="429", busy=True) for at in range(5)]

    monkeypatch.setattr(es.driver, "apply_change", hookimpl(busy))
    assert counts(await load(session(es), name, file=file)) == {"applied": 5}
    assert len(turned) == 3
    monkeypatch.setattr("dragoman.imports.batch_sending.BUSY", ())
    turned.clear()
    with pytest.raises(DragomanError, match="too busy") as caught:
        await load(session(es), name, file=file)
    assert caught.value.code == "server-busy"
    assert len(await stored(es, name)) == 5


async def test_a_damaged_file_is_loaded_up_to_the_damage_and_resumed_once_it_is_whole(es, tmp_path):
    name = await es.index(COLUMNS)
    whole = gzip.compress("".join(f'{{"n":{at},"title":"{at:x>40}"}}\n' for at in range(4_000)).encode())
    file = tmp_path / "a.ndjson.gz"
    file.write_bytes(whole[: len(whole) * 9 // 10])
    with pytest.raises(ConfigurationError, match="ends in its middle") as caught:
        await load(session(es), name, file=file, id="n")
    assert caught.value.code == "import-file-damaged"
    assert 0 < caught.value.details["applied"] < 4_000
    file.write_bytes(whole)
    assert counts(await load(session(es), name, file=file, id="n", resume=True)) == {"applied": 4_000}


@pytest.mark.slow
async def test_a_cancelled_load_leaves_a_checkpoint_and_no_lock(es, tmp_path, monkeypatch):
    name = await es.index(COLUMNS)
    file = lines(tmp_path / "a.ndjson", *({"n": at} for at in range(50)))
    real, sent = es.driver.apply_change, []

    async def hangs(plan):
        sent.append(plan)
        if len(sent) > 2:
            await anyio.sleep_forever()
        return await real(plan)

    monkeypatch.setattr(es.driver, "apply_change", hookimpl(hangs))
    await cancelled(load(session(es), name, file=file, id="n", batch=10), when=lambda: len(sent) > 2)
    monkeypatch.setattr(es.driver, "apply_change", real)
    assert await is_unfinished(file)
    assert counts(await load(session(es), name, file=file, id="n", batch=10, resume=True)) == {"applied": 50}


async def test_a_stream_is_loaded_without_a_checkpoint(es, tmp_path, monkeypatch):
    import io

    monkeypatch.chdir(tmp_path)
    name = await es.index(COLUMNS)
    report = await load(session(es), name, file=io.BytesIO(gzip.compress(b'{"n":1}\n{"n":')))
    assert counts(report) == {"applied": 1, "failed": 1} or counts(report) == {"applied": 1, "refused": 1}
    (left,) = tmp_path.iterdir()
    assert (left.name, stat.S_IMODE(left.stat().st_mode)) == ("stream.rejected.ndjson", 0o600)


@pytest.mark.parametrize(("mode", "rejected_mode"), [(0o600, 0o600), (0o640, 0o640), (0o644, 0o644)])
@pytest.mark.parametrize("streamed", [False, True])
async def test_rejected_rows_are_as_private_as_the_file_they_come_from(
    es, tmp_path, monkeypatch, mode, rejected_mode, streamed
):
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o022)
    try:
        name = await es.index(COLUMNS)
        file = lines(tmp_path / "stream", {"n": 1}, {"n": "salary"})
        file.chmod(mode)
        with file.open("rb") as stream:
            await load(session(es), name, file=stream if streamed else file)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"stream": mode, "stream.rejected.ndjson": rejected_mode}


async def test_a_parquet_file_brings_back_what_did_not_fit_its_types(es, tmp_path):
    nested = {"type": "nested", "properties": {"n": {"type": "long"}, "at": {"type": "date"}}}
    columns = {"price": {"type": "double"}, "items": nested, "spot": {"type": "geo_point"}}
    documents = [
        '{"price":[1,2.5],"items":[{"n":"1"}],"spot":"1,2"}',
        '{"price":1.0,"items":[{"n":1,"at":"2024-01-01T00:00:00.123456789Z"},{"n":2}],"spot":{"lat":1.5,"lon":2.0}}',
    ]
    name = await es.index(columns, documents)
    shop = session(es)
    await export(es, name, tmp_path / "o.parquet")
    schema = parquet.read_schema(tmp_path / "o.parquet")
    assert schema.names[-1] == "_misfits"
    assert str(schema.field("items").type).startswith("list<")
    target = await es.index(columns, name="copy")
    assert counts(await load(shop, target, file=tmp_path / "o.parquet")) == {"applied": 2}
    for at, text in enumerate(documents):
        assert json.loads(await es.source(target, str(at))) == json.loads(text)
