"""Edits in the page: reviewed as exact requests, sent once as reviewed, told row by row, and taken back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from browsing import Asked, Recorder
from dragoman import Delete, Drop, Insert, Outcome, Plan, RowKey, Update
from dragoman_api.changes import HttpRequest, OutcomeStatus, PlannedRequest
from dragoman_api.columns import Note
from dragoman_api.errors import ConfigurationError
from dragoman_workbench.cells import key_text
from dragoman_workbench.messages.rows import ChangeEntry, OutcomeAnswer, PlanAsked, Planned
from dragoman_workbench.routes.changes import ChangeRoutes

KEY = RowKey("books", "t1", routing="north", guard={"if_seq_no": 7})
WHOLE = {"id": "t2", "replace": True, "tenant": "north"}
ENTRIES = [
    ({"kind": "insert", "object": "books", "values": {"a": "1", "b": False}}, Insert("books", {"a": "1", "b": False})),
    ({"kind": "insert", "object": "books", "values": {"a": ""}, **WHOLE}, Insert("books", {"a": ""}, **WHOLE)),
    ({"kind": "update", "key": key_text(KEY), "values": {"a": ("integer", "0")}}, Update(KEY, {"a": 0})),
    ({"kind": "delete", "key": key_text(KEY)}, Delete(KEY)),
]
DROP = ({"kind": "drop", "object": "books"}, Drop("books"))


@pytest.mark.parametrize("entries", [ENTRIES, [DROP]], ids=["changes", "drop"])
@pytest.mark.parametrize("undo", [True, False])
async def test_every_part_of_every_change_reaches_the_session(entries, undo):
    changes = [ChangeEntry(**entry) for entry, _ in entries]
    with pytest.raises(Asked) as caught:
        await ChangeRoutes(Recorder(), None).plan(
            PlanAsked(connection="shop", changes=changes, undo=undo, typed="books")
        )
    assert caught.value.args == ("plan", tuple(change for _, change in entries), {"undo": undo and entries != [DROP]})


async def test_a_plan_reaches_the_tab_whole():
    steps = [
        PlannedRequest(request=HttpRequest(method="PUT", path="/a", body="{}"), changes=[0, 2], statement="make a"),
        PlannedRequest(request=HttpRequest(method="DELETE", path="/b"), changes=[1]),
    ]
    refusals = [
        Outcome(change=3, status=OutcomeStatus.REFUSED, reason="no such column"),
        Outcome(change=4, status=OutcomeStatus.SKIPPED, id=["eu", 17], reason="as it is", key=KEY),
    ]
    notes = [Note(code="a", reason="one"), Note(code="b", reason="two")]
    plan = Plan(planned=steps, refusals=refusals, notes=notes, undo=[Delete(KEY)])

    class Session:
        async def session(self, _):
            return self

        async def plan(self, *_, undo):
            return plan if undo else replace(plan, undo=[])

    change = ChangeEntry(**ENTRIES[3][0])
    for undo in (True, False):
        planned = await ChangeRoutes(Session(), None).plan(PlanAsked(connection="shop", changes=[change], undo=undo))
        assert planned == Planned(
            plan=planned.plan,
            steps=[
                PlannedRequest(request=steps[0].request, changes=[0, 2], statement="make a"),
                PlannedRequest(request=steps[1].request, changes=[1]),
            ],
            refusals=[
                OutcomeAnswer(change=3, status="refused", reason="no such column"),
                OutcomeAnswer(change=4, status="skipped", id='["eu",17]', reason="as it is", key=key_text(KEY)),
            ],
            notes=notes,
            undoable=undo,
        )


async def test_a_faulty_change_is_told_with_its_number():
    changes = [ChangeEntry(**entry) for entry, _ in ENTRIES]
    changes.append(ChangeEntry(kind="insert", object="books", values={"a": ("integer", "x")}))
    with pytest.raises(ConfigurationError) as caught:
        await ChangeRoutes(Recorder(), None).plan(PlanAsked(connection="shop", changes=changes))
    assert caught.value.details == {"column": "a", "row": 4}


@pytest.fixture
async def made(shop_tab):
    """Insert a row for this test, and return its key and id."""
    change = {
        "kind": "insert",
        "object": "books",
        "values": {"title": "Draft", "price": ["decimal", "12.50"]},
        "id": "t1",
    }
    plan = await shop_tab("changes/plan", connection="shop", changes=[change | {"replace": True}])
    [outcome] = (await shop_tab("changes/apply", connection="shop", plan=plan["plan"]))["outcomes"]
    assert outcome["status"] == "applied"
    yield outcome["key"]
    await shop_tab("console/execute", connection="shop", text="DELETE /books/_doc/t1?refresh=true", remember=False)


async def now(tab, key):
    answer = await tab("changes/row", connection="shop", key=key)
    names = [column["name"] for column in answer["columns"]]
    return (
        None
        if answer["row"] is None
        else dict(zip(names, answer["row"]["cells"], strict=True)) | {"key": answer["row"]["key"]}
    )


async def test_a_plan_shows_exact_requests_and_sends_nothing(shop_tab, made):
    change = {"kind": "update", "key": made, "values": {"title": "Better"}}
    plan = await shop_tab("changes/plan", connection="shop", changes=[change])
    [step] = plan["steps"]
    assert step["request"]["method"] == "POST"
    assert "if_seq_no" in step["request"]["path"] + (step["request"]["body"] or "")
    assert plan["undoable"] is True
    assert (await now(shop_tab, made))["title"] == "Draft"


async def test_a_plan_is_sent_once(shop_tab, made):
    change = {"kind": "update", "key": made, "values": {"price": ["decimal", "99999999999999999999.5"]}}
    plan = (await shop_tab("changes/plan", connection="shop", changes=[change]))["plan"]
    answer = await shop_tab("changes/apply", connection="shop", plan=plan)
    assert [outcome["status"] for outcome in answer["outcomes"]] == ["applied"]
    async with shop_tab.http.get(f"/download/{answer['undo']}") as undo:
        assert "12.5" in await undo.text()
    failure = await shop_tab.failure("changes/apply", connection="shop", plan=plan)
    assert failure["code"] == "plan-gone"


async def test_a_conflict_is_told_with_the_row_as_it_is_now(shop_tab, made):
    mine = {"kind": "update", "key": made, "values": {"title": "Mine"}}
    theirs = {"kind": "update", "key": made, "values": {"title": "Theirs"}}
    first = (await shop_tab("changes/plan", connection="shop", changes=[mine]))["plan"]
    second = (await shop_tab("changes/plan", connection="shop", changes=[theirs]))["plan"]
    await shop_tab("changes/apply", connection="shop", plan=second)
    answer = await shop_tab("changes/apply", connection="shop", plan=first)
    assert ([outcome["status"] for outcome in answer["outcomes"]], answer["undo"]) == (["conflict"], "")
    row = await now(shop_tab, made)
    assert row["title"] == "Theirs"
    again = {"kind": "update", "key": row["key"], "values": {"title": "Mine"}}
    plan = (await shop_tab("changes/plan", connection="shop", changes=[again]))["plan"]
    assert (await shop_tab("changes/apply", connection="shop", plan=plan))["outcomes"][0]["status"] == "applied"


@pytest.mark.slow
async def test_an_undo_file_takes_the_changes_back(shop_tab, shop_home, made, tmp_path, dragoman):
    change = {"kind": "update", "key": made, "values": {"title": "Wrong"}}
    plan = (await shop_tab("changes/plan", connection="shop", changes=[change]))["plan"]
    ticket = (await shop_tab("changes/apply", connection="shop", plan=plan))["undo"]
    async with shop_tab.http.get(f"/download/{ticket}") as answer:
        assert answer.headers["Content-Disposition"].startswith("attachment; filename=undo-shop-")
        text = await answer.text()
    assert "Draft" in text
    from anyio import Path, to_thread

    await Path(tmp_path / "undo.ndjson").write_text(text)
    done = await to_thread.run_sync(lambda: dragoman.process("apply", "shop", tmp_path / "undo.ndjson", "--yes"))
    assert "applied 1" in done.said
    assert (await now(shop_tab, made))["title"] == "Draft"
    async with shop_tab.http.get(f"/download/{ticket}") as answer:
        assert answer.status == 404


async def test_a_deleted_row_is_gone(shop_tab, made):
    plan = (await shop_tab("changes/plan", connection="shop", changes=[{"kind": "delete", "key": made}]))["plan"]
    assert (await shop_tab("changes/apply", connection="shop", plan=plan))["outcomes"][0]["status"] == "applied"
    assert await now(shop_tab, made) is None


async def test_a_drop_stands_alone_behind_the_typed_name(shop_tab):
    drop = {"kind": "drop", "object": "books"}
    for typed in ("", "book", "Books", "orders"):
        failure = await shop_tab.failure("changes/plan", connection="shop", changes=[drop], typed=typed)
        assert failure["code"] == "name-not-typed"
    insert = {"kind": "insert", "object": "books", "values": {"title": "x"}}
    for changes in ([drop, insert], [insert, drop]):
        await shop_tab.failure("changes/plan", connection="shop", changes=changes, typed="books")
    plan = await shop_tab("changes/plan", connection="shop", changes=[drop], typed="books")
    assert [step["request"]["method"] for step in plan["steps"]] == ["DELETE"]
    assert plan["undoable"] is False


async def test_a_cut_value_is_not_saved(shop_tab, made):
    change = {"kind": "update", "key": made, "values": {"title": ["cut-text", "Dra"]}}
    failure = await shop_tab.failure("changes/plan", connection="shop", changes=[change])
    assert (failure["code"], failure["row"]) == ("value-invalid", 0)


async def test_a_plan_belongs_to_its_connection_and_expires(shop_tab, made, monkeypatch):
    change = {"kind": "delete", "key": made}
    plan = (await shop_tab("changes/plan", connection="shop", changes=[change]))["plan"]
    assert (await shop_tab.failure("changes/apply", connection="other", plan=plan))["code"] == "plan-gone"
    monkeypatch.setattr("dragoman_workbench.routes.changes.KEPT_SECONDS", -1)
    plan = (await shop_tab("changes/plan", connection="shop", changes=[change]))["plan"]
    assert (await shop_tab.failure("changes/apply", connection="shop", plan=plan))["code"] == "plan-gone"
    assert (await now(shop_tab, made))["title"] == "Draft"


async def test_plans_are_bounded_and_the_oldest_goes(shop_tab, made, monkeypatch):
    monkeypatch.setattr("dragoman_workbench.routes.changes.MAX_PLANS", 2)
    changes = [{"kind": "update", "key": made, "values": {"title": title}} for title in ("First", "Second", "Third")]
    plans = [(await shop_tab("changes/plan", connection="shop", changes=[change]))["plan"] for change in changes]
    assert (await shop_tab.failure("changes/apply", connection="shop", plan=plans[0]))["code"] == "plan-gone"
    applied = [await shop_tab("changes/apply", connection="shop", plan=plan) for plan in plans[1:]]
    assert [answer["outcomes"][0]["status"] for answer in applied] == ["applied", "conflict"]


async def test_a_key_that_the_page_made_up_is_refused(shop_tab):
    failure = await shop_tab.failure("changes/plan", connection="shop", changes=[{"kind": "delete", "key": "nope"}])
    assert failure["code"] == "key-invalid"
