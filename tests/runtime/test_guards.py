"""The guards that come with dragoman, asked through the hook manager and without a driver."""

from __future__ import annotations

import json
import resource
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from dragoman.automations import shipped
from dragoman.automations.audit import WHOLE, Audit
from dragoman.automations.consent import Question
from dragoman.automations.guards import LOCKED, CutCells, ProductionLocks, ReadOnly
from dragoman.automations.hook_manager import Hooks
from dragoman.settings import Guard, Guards, Limit
from dragoman.spellings import cell_command
from dragoman_api.cells import CELL_CUT, CutText
from dragoman_api.changes import Delete, Drop, HttpRequest, Insert, Update
from dragoman_api.errors import Refused
from dragoman_api.events import Call, ConnectionInfo
from dragoman_api.grid import RowKey
from dragoman_api.masking import Mask

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.settings import Level

SHOP = ConnectionInfo(name="shop", type="demo", host="h", port=1)
KEY = RowKey(object="books", id="7")


def sending(*requests: HttpRequest, **more: Any) -> Call:
    return Call(hook="apply_change", connection=SHOP, object="books", writes=True, requests=requests, **more)


def deleting(number: int) -> tuple[HttpRequest, ...]:
    return tuple(HttpRequest("DELETE", f"/books/{at}") for at in range(number))


async def refusal(guard: object, call: Call) -> Refused | None:
    try:
        await Hooks([guard], emit=lambda _: None).ask(call)
    except Refused as error:
        return error
    return None


class Person:
    """Answers every question alike, and remembers it."""

    def __init__(self, answer: bool) -> None:
        self.answer, self.asked = answer, list[Question]()

    async def __call__(self, question: Question) -> bool:
        self.asked.append(question)
        return self.answer


def guard(level: Level, confirm: Any) -> ReadOnly:
    """Return the guard of connections with that level."""
    return ReadOnly(Guards(read_only=level).of, confirm=confirm)


# read-only and confirmed connections ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "written", "dropped"),
    [
        ("off", [], []),
        ("confirm-drops", [], ["asked"]),
        ("confirm-writes", ["asked"], ["asked"]),
        ("read-only", ["refused"], ["refused"]),
    ],
)
async def test_each_level_asks_about_or_refuses_what_it_says(
    level: Level, written: list[str], dropped: list[str]
) -> None:
    for changes, expected in (((Delete(KEY),), written), ((Delete(KEY), Drop("books")), dropped)):
        person = Person(answer=True)
        refused = await refusal(guard(level, person), sending(*deleting(1), changes=changes))
        assert [*["asked" for _ in person.asked], *(["refused"] if refused else [])] == expected


async def test_what_does_not_write_or_has_no_connection_is_never_asked_about() -> None:
    person = Person(answer=False)
    reads = guard("read-only", person)
    assert await refusal(reads, Call(hook="fetch_page", connection=SHOP)) is None
    assert await refusal(reads, Call(hook="install_plugin", object="demo", writes=True)) is None
    assert person.asked == []


async def test_a_question_shows_five_requests_with_their_statements_and_counts_the_rest() -> None:
    person = Person(answer=True)
    asking = guard("confirm-writes", person)
    assert await refusal(asking, sending(*deleting(1), statements=("DROP ROW 0",))) is None
    assert await refusal(asking, sending(*deleting(5))) is None
    assert await refusal(asking, sending(*deleting(1_007), statements=("", "DROP ROW 1", *[""] * 1_005))) is None
    one, five, many = person.asked
    assert one.text == "Send this to shop?"
    assert one.details == ("DELETE /books/0   # DROP ROW 0",)
    assert five.text == many.text == "Send these to shop?"
    assert five.details == tuple(f"DELETE /books/{at}" for at in range(5))
    assert many.details[:2] == ("DELETE /books/0", "DELETE /books/1   # DROP ROW 1")
    assert many.details[5:] == ("and 1,002 more",)
    assert {question.subject for question in person.asked} == {"change"}


async def test_a_person_who_says_no_and_one_who_is_not_there_both_stop_a_write() -> None:
    told = await refusal(guard("confirm-writes", Person(answer=False)), sending(*deleting(1)))
    assert told is not None
    assert told.message.startswith("read_only: not confirmed")
    told = await refusal(guard("confirm-writes", None), sending(*deleting(2)))
    assert told is not None
    assert "cannot ask to confirm DELETE /books/0 on shop: not a terminal" in told.message
    assert told.hint == "add --yes"
    told = await refusal(guard("read-only", None), sending(*deleting(1)))
    assert told is not None
    assert "[guards.connections.shop]" in (told.hint or "")


async def test_each_production_connection_has_a_lock_of_its_own_for_its_minutes() -> None:
    clock = SimpleNamespace(now=1_000.0)
    locks = ProductionLocks(clock=lambda: clock.now)
    guards = Guards(connections={"shop": Guard(production=True), "books": Guard(production=True)})
    read_only = ReadOnly(guards.of, confirm=None, locks=locks)

    async def writes(name: str, *, writes: bool = True) -> bool:
        connection = ConnectionInfo(name=name, type="elasticsearch", host="h", port=1) if name else None
        try:
            await read_only.before_call(Call(hook="apply_change", connection=connection, writes=writes))
        except Refused as refusal:
            return (refusal.code, refusal.details) != (LOCKED, {"connection": name})
        return True

    async def writable() -> list[str]:
        return [name for name in ("shop", "books", "test", "") if await writes(name)]

    assert await writable() == ["test", ""]
    assert await writes("shop", writes=False)
    locks.unlock("shop", minutes=5)
    assert (locks.until("shop"), locks.until("books")) == (1_300.0, None)
    clock.now += 299
    assert await writable() == ["shop", "test", ""]
    clock.now += 1
    assert await writable() == ["test", ""]
    locks.unlock("shop", minutes=1)
    locks.unlock("books", minutes=1)
    locks.unlock("shop", minutes=0)
    assert await writable() == ["books", "test", ""]


async def test_an_unlocked_production_connection_is_still_read_only_if_its_settings_say_so() -> None:
    locks = ProductionLocks()
    locks.unlock("shop", minutes=5)
    levels: list[tuple[Level, list[str]]] = [("off", []), ("read-only", ["refused"])]
    for level, refusals in levels:
        read_only = ReadOnly(Guards(production=True, read_only=level).of, confirm=None, locks=locks)
        error = await refusal(read_only, sending(*deleting(1)))
        assert ([error.code] if error else []) == refusals


def test_a_production_connection_is_locked_only_where_a_person_can_unlock_it(tmp_path: Path) -> None:
    guards = Guards(cut_cells=False, connections={"shop": Guard(production=True)})
    for locks, names in ((None, []), (ProductionLocks(), ["read_only"])):
        automations: list[Any] = shipped(guards, confirm=None, locks=locks, log=tmp_path / "log", mask=Mask())
        assert [automation.name for automation in automations] == names


# cut cells ------------------------------------------------------------------------------------------------------------

CUT = CutText("Once...")


async def cut(*changes: Any, hook: str = "plan_change", **more: Any) -> str:
    cut_cells = CutCells(lambda name: name == "shop")
    given: dict[str, Any] = {"connection": SHOP, "object": "books"} | more
    told = await refusal(cut_cells, Call(hook=hook, changes=changes, **given))
    return told.message.removeprefix("cut_cells: ").removesuffix("; nothing was sent") if told else ""


async def test_E23_one_cut_cell_among_whole_ones_is_named_with_its_row() -> None:
    whole = Update(RowKey(object="books", id="1"), {"title": "Dune"})
    assert await cut(whole) == ""
    mixed = Update(KEY, {"year": 1965, "title": CUT, "author": "Herbert"})
    assert await cut(whole, Delete(KEY), mixed) == "title of 7 is the beginning of a longer value"
    assert await cut(Update(RowKey(object="books", id=["eu", 7]), {"title": CUT})) == (
        'title of ["eu", 7] is the beginning of a longer value'
    )
    assert await cut(Insert("books", {"title": CUT})) == "title of a new row is the beginning of a longer value"
    assert await cut(Insert("books", {"title": CUT}, id="9")) == "title of 9 is the beginning of a longer value"
    for change, row in ((mixed, "7"), (Insert("books", {"title": CUT}), "ID")):
        call = Call(hook="plan_change", changes=(change,), connection=SHOP, object="books")
        told = await refusal(CutCells(lambda _: True), call)
        assert told is not None
        assert cell_command("shop", "books", row, "title") in told.hint


async def test_E23_only_a_plan_of_a_watched_connection_is_judged() -> None:
    change = Update(KEY, {"title": CUT})
    assert await cut(change) != ""
    assert await cut(change, hook="apply_change") == ""
    assert await cut(change, connection=None) == ""
    assert await cut(change, connection=ConnectionInfo(name="other", type="demo", host="h", port=1)) == ""


@pytest.mark.parametrize("opening", ["[", "{"])
async def test_E23_a_pasted_array_or_object_is_cut_at_exactly_the_length_of_a_grid(opening: str) -> None:
    pasted = opening + "1" * (CELL_CUT - 1)
    assert await cut(Update(KEY, {"tags": pasted + "..."})) != ""
    for text in (f"{pasted}", f"{pasted}1...", f"{pasted[:-1]}...", f"{pasted}1", f"a{pasted[1:]}...", "...", ""):
        assert await cut(Update(KEY, {"tags": text})) == "", text[:2]
    assert await cut(Update(KEY, {"tags": [pasted + "..."]})) == ""


# what the settings switch on ------------------------------------------------------------------------------------------


ON: dict[str, Any] = {"read_only": "read-only", "cut_cells": True, "limits": Limit(rows=5, bytes=7), "audit": True}
OFF: dict[str, Any] = {"read_only": "off", "cut_cells": False, "limits": Limit(rows=0, seconds=2), "audit": False}


@pytest.mark.parametrize("production", [False, True])
@pytest.mark.parametrize("name", [*ON, "production"])
def test_a_connection_switches_off_what_is_on_in_general_and_that_alone(name: str, production: bool) -> None:
    general, off = {**ON, "production": True}, {**OFF, "production": False}
    guards = Guards(**general, connections={"shop": Guard(**{name: off[name]}), "other": Guard(production=production)})
    expected = {**general, name: off[name]}
    if name == "limits":  # each limit by itself; 0 is none
        expected["limits"] = Limit(rows=0, bytes=7, seconds=2)
    for connection, settings in (("shop", expected), ("other", general | {"production": production}), ("new", general)):
        found = guards.of(connection)
        assert {key: getattr(found, key) for key in general} == settings


@pytest.mark.parametrize(
    ("guards", "names"),
    [
        (Guards(), ["cut_cells"]),
        (Guards(cut_cells=False), []),
        (Guards(cut_cells=False, read_only="confirm-drops"), ["read_only"]),
        (Guards(cut_cells=False, connections={"shop": Guard(read_only="read-only")}), ["read_only"]),
        (Guards(cut_cells=False, limits=Limit(rows=5)), ["limits"]),
        (Guards(cut_cells=False, connections={"shop": Guard(limits=Limit(seconds=1))}), ["limits"]),
        (Guards(cut_cells=False, connections={"shop": Guard(audit=True)}), ["audit"]),
        (
            Guards(read_only="read-only", audit=True, limits=Limit(bytes=1)),
            ["read_only", "cut_cells", "limits", "audit"],
        ),
        *(
            (Guards(cut_cells=False, connections={"shop": Guard(), "second": Guard(**{name: value})}), [name])
            for name, value in ON.items()
        ),
        (Guards(**ON, connections={"shop": Guard(**OFF)}), ["read_only", "cut_cells", "limits", "audit"]),
    ],
)
def test_what_is_switched_on_for_some_connection_runs(guards: Guards, names: list[str], tmp_path: Path) -> None:
    made: list[Any] = shipped(guards, confirm=None, locks=None, log=tmp_path / "log", mask=Mask())
    assert [each.name for each in made] == names


async def test_what_is_switched_on_for_one_connection_leaves_the_others_alone(tmp_path: Path) -> None:
    own = Guard(read_only="read-only", cut_cells=True, limits=Limit(rows=5), audit=True)
    guards = Guards(cut_cells=False, connections={"shop": own})
    log = tmp_path / "log"
    hooks = Hooks(shipped(guards, confirm=None, locks=None, log=log, mask=Mask()), emit=lambda _: None)
    for name, refused in (("other", False), ("shop", True)):
        connection = ConnectionInfo(name=name, type="demo", host="h", port=1)
        for call in (
            Call(hook="apply_change", connection=connection, writes=True, requests=deleting(1)),
            Call(hook="plan_change", connection=connection, changes=(Update(KEY, {"title": CUT}),)),
            Call(hook="fetch_page", connection=connection, rows=6),
        ):
            try:
                await hooks.ask(call)
            except Refused:
                assert refused, call
            else:
                assert not refused, call
        assert log.exists() == refused


# the audit ------------------------------------------------------------------------------------------------------------


async def recorded(log: Path, call: Call) -> dict[str, Any]:
    await Hooks([Audit(log, lambda _: True)], emit=lambda _: None).ask(call)
    line: dict[str, Any] = json.loads(log.read_text().splitlines()[-1])
    return line


async def test_the_audit_writes_a_whole_line_with_the_statement_of_each_request(tmp_path: Path) -> None:
    log = tmp_path / "new/folder/log"
    line = await recorded(log, sending(*deleting(2), HttpRequest("POST", "/x", ""), statements=("DROP ROW 0",)))
    assert {name: line[name] for name in ("call", "connection", "object")} == {
        "call": "apply_change", "connection": "shop", "object": "books",
    }  # fmt: skip
    assert line["requests"] == [
        {"method": "DELETE", "path": "/books/0", "statement": "DROP ROW 0"},
        {"method": "DELETE", "path": "/books/1"},
        {"method": "POST", "path": "/x", "lines": []},
    ]


async def test_the_audit_counts_what_does_not_fit_a_line_and_keeps_what_does(tmp_path: Path) -> None:
    body = '"' + "." * (WHOLE - 2) + '"'
    fits = tuple(HttpRequest("POST", f"/{at}", body) for at in range(16))
    line = await recorded(tmp_path / "log", sending(*fits))  # the last one exceeds the line, and no more follow
    assert [each["path"] for each in line["requests"]] == [f"/{at}" for at in range(16)]
    line = await recorded(tmp_path / "log", sending(*fits, *deleting(3)))
    assert [each.get("path") for each in line["requests"]] == [*(f"/{at}" for at in range(16)), None]
    assert line["requests"][-1]["more"] == 3
    other = await recorded(tmp_path / "log", sending(*fits, *deleting(2), HttpRequest("DELETE", "/books/9")))
    assert other["requests"][-1]["sha256"] != line["requests"][-1]["sha256"]


async def test_the_audit_records_text_that_is_no_unicode(tmp_path: Path) -> None:
    """Half of a surrogate pair, in bodies of every length."""
    many = [HttpRequest("POST", "/x", '"' + "." * (WHOLE - 2) + '"')] * 17
    for requests in (
        [HttpRequest("POST", "/x", '{"a": "\\ud800"}')],
        [HttpRequest("POST", "/x", "a \ud800 b")],
        [HttpRequest("POST", "/x", "\ud800" * (WHOLE + 1))],
        [*many, HttpRequest("POST", "/x", "\ud800")],
    ):
        line = await recorded(tmp_path / "log", sending(*requests))
        assert line["requests"][0]["method"] == "POST"


async def test_a_line_of_the_audit_that_does_not_fit_on_the_disk_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a part of a module would stay behind
    log = tmp_path / "log"
    await recorded(log, sending(*deleting(1)))
    before = log.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, hard))
    try:
        told = await refusal(Audit(log, lambda _: True), sending(*deleting(1)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert told is not None
    assert "the disk is full" in told.message
    assert log.read_bytes() == before
    assert (await recorded(log, sending(*deleting(2))))["requests"]
