"""A key-value store in its sandbox, by session and by command line: its keys and values are bytes everywhere."""

from __future__ import annotations

import json
import shlex
from contextlib import aclosing

import pytest

from dragoman import Delete, Filter, Insert, Update
from dragoman.spellings import spell_id
from dragoman_api.cells import CELL_BUDGET, as_bytes
from dragoman_api.changes import OutcomeStatus
from dragoman_api.errors import UnsupportedOperationError
from fakes.key_values import KeyValues

HOOKS = (
    "connect ping close list_objects describe_object compile_filter fetch_page fetch_cell count_rows plan_change"
    " apply_change export_rows"
)
KEYS = [b'books/"a b"', *(b"books/%02d" % number for number in range(12)), b"books/\xff\x00"]


@pytest.fixture
async def store():
    made = KeyValues()
    made.leases[1] = 60
    for number, key in enumerate(KEYS):
        made.put(key, b"\xff%d" % number, lease=number % 2)
    return made


@pytest.fixture
async def runtime(open_stand_in, store):
    """Yield a runtime with the connection `keys` to the store."""
    capabilities = ["browse", "filter", "edit", "drop", "export", "revisions"]
    async with open_stand_in("keys", store, "key_value.py", HOOKS, capabilities) as made:
        yield made


async def test_a_session_reads_counts_and_exports_bytes(runtime, tmp_path):
    async with runtime.open("keys") as session:
        assert [each.name for each in await session.objects()] == ["books/"]
        page = await session.rows("books/").page(limit=5)
        assert [row.key.id for row in page.rows] == KEYS[:5]
        assert page.rows[1].to_dict() | {"create_revision": 0, "mod_revision": 0} == {
            "key": b"books/00", "value": b"\xff1", "lease": 1, "ttl": 60, "version": 1, "create_revision": 0,
            "mod_revision": 0,
        }  # fmt: skip
        assert await session.rows(page.keys[1].object).cell(page.keys[1], "value") == b"\xff1"
        rest = await session.rows("books/").page(cursor=page.next, offset=5)
        assert [key.id for key in rest.keys] == KEYS[5:]
        found = await session.rows("books/", filters=[Filter("key", "starts", "Ym9va3Mv/w==")]).page()
        assert [key.id for key in found.keys] == [b"books/\xff\x00"]
        assert await session.rows("books/").count() == len(KEYS)
        async with aclosing(session.rows("books/").stream()) as rows:
            assert [as_bytes(row["key"]) async for row in rows] == KEYS  # a row of an export is JSON
        for name in ("keys.ndjson", "keys.csv", "keys.parquet"):
            result = await session.rows("books/").export(to=tmp_path / name)
            assert result.rows == len(KEYS)


async def test_changes_of_binary_keys_have_outcomes_and_old_revisions_can_be_read(runtime):
    async with runtime.open("keys") as session:
        before = await session.rows("books/").page()
        [first, second, *_] = before.keys
        plan = await session.plan(
            Insert("books/", {"value": b"\0new"}, b"books/\xfe"), Update(first, {"value": b"other"}), Delete(second)
        )
        assert [each.statement.partition(" ")[0] for each in plan.planned] == ["put", "put", "del"]
        outcomes = await session.apply(plan)
        assert {each.status for each in outcomes} == {OutcomeStatus.APPLIED}
        now = await session.rows("books/").page()
        assert {key.id for key in now.keys} == {*KEYS, b"books/\xfe"} - {second.id}
        then = await session.rows("books/", revision=before.revision).page()
        assert (then.cells, then.keys) == (before.cells, before.keys)
        assert await session.rows("books/", revision=before.revision).count() == len(KEYS)
        [again] = await session.apply(await session.plan(Update(first, {"value": b"late"})))
        assert again.status is OutcomeStatus.CONFLICT


@pytest.mark.slow
async def test_the_command_line_reads_and_writes_binary_keys(dragoman_at, store, tmp_path):
    page = (await dragoman_at("--json --yes page keys books/ --limit 3")).json
    assert page["rows"][1]["key"] == "Ym9va3MvMDA="
    assert (await dragoman_at("--json --yes count keys books/")).json["count"] == len(KEYS)
    row = shlex.quote(spell_id(b"books/\xfe"))
    await dragoman_at(f"--yes insert keys books/ --id {row} --set value=AP8=")
    assert store.revisions[-1][b"books/\xfe"].value == b"\0\xff"
    await dragoman_at(f"--yes update keys books/ {row} --set value=/w==")
    assert store.revisions[-1][b"books/\xfe"].value == b"\xff"
    assert (await dragoman_at(f"--yes cell keys books/ {row} value")).out
    assert (await dragoman_at("--yes page keys books/")).out
    await dragoman_at(f"--yes delete keys books/ {row}")
    assert b"books/\xfe" not in store.revisions[-1]
    refused = await dragoman_at("--yes delete keys books/ books/02", code=None)
    assert refused.code
    assert b"books/02" in store.revisions[-1]
    changes = [
        {"op": "insert", "object": "books/", "set": {"key": "Ym9va3Mv/Q==", "value": "AA=="}},
        {"op": "delete", "object": "books/", "id": {"base64": "Ym9va3MvMDM="}},
    ]
    lines = "".join(json.dumps(each) + "\n" for each in changes)
    await dragoman_at("--yes apply keys -", typed=lines)
    assert b"books/\xfd" in store.revisions[-1]
    assert b"books/03" not in store.revisions[-1]
    path = tmp_path / "keys.ndjson"
    await dragoman_at(f"--yes export keys books/ -o {path} --format rows")
    assert len(path.read_text().splitlines()) == len(KEYS)


@pytest.mark.slow
async def test_a_page_whose_values_exceed_the_budgets_is_cut(runtime, store):
    """Bytes count like texts, and a page shows the beginning of their base64 text."""
    for number in range(40):
        store.put(b"large/%02d" % number, bytes((24 if number == 1 else 4) * CELL_BUDGET))
    async with runtime.open("keys") as session:
        page = await session.rows("large/").page(limit=40)
        assert [row["key"] for row in page.rows] == [b"large/%02d" % number for number in range(40)]
        assert all(row.is_cut("value") for row in page.rows)
        assert [note.column for note in page.notes if note.code == "cells-cut"] == ["value"]
        assert await session.rows(page.keys[0].object).cell(page.keys[0], "value") == bytes(4 * CELL_BUDGET)


async def test_a_revision_needs_the_capability(open_stand_in, store):
    async with open_stand_in("keys", store, "key_value.py", HOOKS) as made, made.open("keys") as session:
        with pytest.raises(UnsupportedOperationError):
            await session.rows("books/", revision="3").page()
