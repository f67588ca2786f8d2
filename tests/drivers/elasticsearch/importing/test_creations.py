"""Indices that a load makes: said before, planned by the driver, vetoed by guards, and never twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from drivers.elasticsearch.importing.test_loads import export, session, stored
from drivers.elasticsearch.rig import OnFake, OnServer, Rig

from dragoman.imports.checkpoints import checkpoint_path
from dragoman.imports.load_run import Load, LoadOptions
from dragoman.imports.loads import load
from dragoman.imports.new_objects import make_object, plan_new, sampled
from dragoman.imports.records import Record, Wishes
from dragoman_api import QueryError, hookimpl
from dragoman_api.changes import NewColumn, NewObject, Plan
from dragoman_api.columns import ColumnKind
from dragoman_api.errors import (
    ConfigurationError,
    ObjectNotFoundError,
    Refused,
    UnsupportedOperationError,
)
from dragoman_querydsl.writing.plan import plan_index

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.imports.new_objects import TypeProposal

COLUMNS: dict[str, Any] = {"n": {"type": "long"}, "sku": {"type": "keyword"}}


def written(file: Path, *rows: dict[str, Any]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


async def gone(es: Rig, name: str) -> bool:
    return (await es.raw("GET", f"/{name}")).status == 404


class Rules:
    async def test_an_index_that_is_missing_is_made_and_one_that_is_there_stays(self, es: Rig, tmp_path):
        name = await es.index(COLUMNS)
        await es.call("DELETE", f"/{name}")
        file = written(tmp_path / "o.ndjson", {"n": 1, "sku": "a"}, {"n": 2})
        with pytest.raises(ObjectNotFoundError):
            await load(session(es), name, file=file)
        told: list[str] = []

        def announce(planned: Any) -> None:
            told.append(str(planned.request))

        job = Load(session(es), name, file, options=LoadOptions(create=True), announce=announce)
        report = await job.run()
        assert (report.counts["applied"], told) == (2, [f"PUT /{name}"])
        again = await load(session(es), name, file=file, create=True)
        assert again.counts["applied"] == 2
        assert len(await stored(es, name)) == 4

    async def test_an_index_made_like_another_has_its_mapping_and_its_rows(self, es: Rig, tmp_path):
        name = await es.index(COLUMNS, [{"n": 1, "sku": "007"}])
        target = await es.index({})
        await es.call("DELETE", f"/{target}")
        file = tmp_path / "o.rows"
        await export(es, name, file, format="rows")
        like = (await session(es).describe(name)).structure
        [planned] = (await plan_new(session(es), NewObject(target, like))).planned
        await make_object(session(es), target, planned)
        assert (await load(session(es), target, file=file, format="rows")).counts["applied"] == 1
        assert await stored(es, target) == await stored(es, name)
        mappings = await es.call("GET", f"/{target}/_mapping")
        assert mappings[target]["mappings"] == (await es.call("GET", f"/{name}/_mapping"))[name]["mappings"]

    @pytest.mark.parametrize("reason", ["import-unfinished", "resume-refused", "undo"])
    async def test_a_load_that_may_not_begin_makes_no_index(self, es: Rig, tmp_path, reason: str):
        name = await es.index({})
        await es.call("DELETE", f"/{name}")
        file, undo = written(tmp_path / "o.ndjson", {"n": 1}), None
        if reason == "import-unfinished":
            identity = {"object": "another"}
            checkpoint = {"identity": identity, "read": 0, "doubt": [], "waiting": [], "bytes": 0, "sha256": ""}
            checkpoint |= {"counts": {}, "rejected": 0, "undo": 0, "undo_from": 0, "started": "", "resumed": 0}
            checkpoint_path(file).write_text(json.dumps(checkpoint))
        elif reason == "undo":
            undo = written(tmp_path / "undo.ndjson")
        before = sorted(path.name for path in tmp_path.iterdir())
        with pytest.raises(ConfigurationError) as caught:
            await load(session(es), name, file=file, create=True, resume=reason == "resume-refused", undo=undo)
        assert reason in (caught.value.code, undo and "undo")
        assert await gone(es, name)
        assert sorted(path.name for path in tmp_path.iterdir()) == before

    async def test_a_table_makes_an_index_of_confirmed_types_and_what_fits_none_is_rejected(self, es: Rig, tmp_path):
        name = await es.index({})
        await es.call("DELETE", f"/{name}")
        table = tmp_path / "o.csv"
        table.write_text(
            "_id,n,customer.zip,price,paid,at,note\n"
            "a,1,01234,1.5,true,2024-01-02T03:04:05Z,x\nb,2,99999,2,FALSE,2024-01-03T03:04:05+01:00,\n"
            "c,3,00001,?,true,2024-01-04T03:04:05Z,y\n"
        )
        confirmed: list[TypeProposal] = []

        async def confirm(proposal: TypeProposal) -> None:
            confirmed.append(proposal)

        options = LoadOptions(create=True, types={"price": "float"})
        report = await Load(session(es), name, table, options=options, confirm_types=confirm).run()
        assert (report.counts["applied"], report.counts["refused"], report.proposal) == (2, 1, confirmed[0])
        types = {column.name: (str(column.type), column.source) for column in confirmed[0].columns}
        assert types == {
            "_id": ("text", "rows"), "n": ("integer", "rows"), "customer.zip": ("text", "rows"),
            "price": ("float", "caller"), "paid": ("boolean", "rows"), "at": ("timestamp", "rows"),
            "note": ("text", "rows"),
        }  # fmt: skip
        assert confirmed[0].columns[3].misfits == ("?",)
        described = {column.name: column.type for column in (await session(es).describe(name)).columns}
        assert [described[column] for column in ("n", "customer.zip", "price", "paid", "at", "note")] == [
            "long", "text", "double", "boolean", "date", "text",
        ]  # fmt: skip
        assert sorted(await stored(es, name)) == ["a", "b"]


class TestOnFake(Rules, OnFake):
    async def test_a_guard_that_vetoes_the_write_leaves_no_index(self, es: Rig, tmp_path):
        class Guard:
            @hookimpl
            async def before_call(self, call: Any) -> None:
                if call.writes:
                    raise Refused(f"{call.hook} {call.requests[0].method}")

        name = await es.index({})
        await es.call("DELETE", f"/{name}")
        file = written(tmp_path / "o.ndjson", {"n": 1})
        with pytest.raises(Refused, match="execute_console PUT"):
            await load(session(es, Guard()), name, file=file, create=True)
        assert await gone(es, name)

    async def test_a_dry_run_shows_the_request_and_sends_nothing(self, es: Rig, tmp_path):
        name = await es.index({})
        await es.call("DELETE", f"/{name}")
        shown: list[str] = []
        job = Load(
            session(es), name, written(tmp_path / "o.ndjson", {"n": 1}), options=LoadOptions(create=True, dry_run=True),
            preview=lambda planned: shown.append(str(planned.request)),
        )  # fmt: skip
        report = await job.run()
        assert (shown, [note.code for note in report.notes]) == ([f"PUT /{name}"], ["object-missing"])
        assert await gone(es, name)

    async def test_what_cannot_be_made_is_refused_clearly(self, es: Rig, tmp_path, monkeypatch):
        file = written(tmp_path / "o.ndjson", {"n": 1})
        with pytest.raises(QueryError, match="cannot be the name of an index"):
            await load(session(es), "Upper", file=file, create=True)
        table = tmp_path / "o.csv"
        table.write_text("n\n1\n")
        with pytest.raises(ConfigurationError, match="does not say of what types") as refused_guess:
            await load(session(es), "missing", file=table, create=True)
        assert (refused_guess.value.code, await gone(es, "missing")) == ("types-unconfirmed", True)
        assert es.fake is not None
        refusal = {"error": {"type": "illegal_argument_exception", "reason": "no room"}, "status": 400}
        answering = es.driver.execute_console

        async def refused(request: Any) -> Any:
            assert es.fake is not None
            es.fake.misbehave("answer", on="/missing", status=400, body=refusal)
            return await answering(request)

        monkeypatch.setattr(es.driver, "execute_console", hookimpl(refused))
        with pytest.raises(QueryError, match=r"was not made: HTTP 400 .*no room"):
            await load(session(es), "missing", file=file, create=True)
        es.fake.behave()
        monkeypatch.setattr(es.driver, "plan_change", hookimpl(nothing))
        with pytest.raises(UnsupportedOperationError, match="does not make objects"):
            await load(session(es), "missing", file=file, create=True)


async def nothing(request: Any) -> Plan:
    return Plan(planned=[])


def test_an_object_is_made_for_several_rows_under_their_new_names_without_the_unreadable_ones():
    texts = [b'{"a": 1}', b'{"a": "x"}', b"[", b'{"b": 2}']
    records = [Record(at, data) for at, data in enumerate(texts, 1)]
    samples = sampled([*records, Record(5, b"{}", "too long")], Wishes(object="t", renamed={"a": "c"}), rows=False)
    assert [json.loads(sample) for sample in samples] == [{"c": 1}, {"c": "x"}, {"b": 2}]


@pytest.mark.parametrize("name", [
    "", "Upper", "uppeR", "-a", "_a", "+a", ".", "..", "a,b", "a*", "a?", "a/b", "a\\b", "<a>", 'a"', "a|b", "a#b",
    "a:b", "a b", "a\tb", "a\n", "x" * 256,
])  # fmt: skip
def test_a_name_that_no_index_can_have_is_refused_before_it_is_sent(name: str) -> None:
    with pytest.raises(QueryError, match="cannot be the name of an index"):
        plan_index(NewObject(name))


@pytest.mark.parametrize(
    ("name", "like", "path", "body"),
    [
        ("a", "", "/a", None),
        ("ä%-_+.b", "", "/%C3%A4%25-_%2B.b", None),
        (".hidden", "", "/.hidden", None),
        ("x" * 255, "", f"/{'x' * 255}", None),
        ("a", '{"old":{"mappings":{"properties":{"n":{"type":"long"}}}}}', "/a",
         '{"mappings":{"properties":{"n":{"type":"long"}}}}'),
    ],
)  # fmt: skip
def test_an_index_is_made_by_one_request_with_the_mapping_of_another_or_with_none(
    name: str, like: str, path: str, body: str | None
) -> None:
    [planned] = plan_index(NewObject(name, like)).planned
    assert (planned.request.method, planned.request.path, planned.request.body) == ("PUT", path, body)


def test_an_index_of_no_mapping_is_no_model():
    with pytest.raises(QueryError, match="0 mappings"):
        plan_index(NewObject("c", "{}"))


def test_an_index_of_several_mappings_is_no_model_for_one():
    like = json.dumps({name: {"mappings": {}} for name in "ab"})
    with pytest.raises(QueryError, match="2 mappings"):
        plan_index(NewObject("c", like))


class TestOnServer(Rules, OnServer):
    pass


def test_a_kind_that_no_field_has_is_refused_and_what_the_server_keeps_is_no_field() -> None:
    with pytest.raises(QueryError, match="no type for 'area' as geo"):
        plan_index(NewObject("c", columns=[NewColumn("area", ColumnKind.GEO)]))
    kinds = {"_id": ColumnKind.TEXT, "_score": ColumnKind.FLOAT, "n": ColumnKind.DATE}
    columns = [NewColumn(name, kind) for name, kind in kinds.items()]
    [planned] = plan_index(NewObject("c", columns=columns)).planned
    assert json.loads(planned.request.body or "") == {"mappings": {"properties": {"n": {"type": "date"}}}}
