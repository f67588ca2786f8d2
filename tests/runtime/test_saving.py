"""Connections from Python as from any surface: tried before they are saved, checked against their form, saved."""

from __future__ import annotations

import anyio
import pytest

import wheelhouse
from dragoman import Delete, Insert, Plan, Reference, SavedConnection, Update, undo_lines
from dragoman.changes.files import read_line
from dragoman.changes.undo import UndoFile
from dragoman.connections.form_values import effective
from dragoman_api.changes import HttpRequest, Outcome, OutcomeStatus, PlannedRequest
from dragoman_api.connections import FieldKind, FormField
from dragoman_api.errors import AuthenticationError, ConfigurationError
from dragoman_api.grid import RowKey
from dragoman_worker.hooks_and_deadlines import HOOKS

FORM = [
    {"name": "host", "label": "Host", "default": "localhost", "required": True},
    {"name": "port", "label": "Port", "kind": "integer", "default": 7700, "required": True},
    {"name": "password", "label": "Password", "kind": "secret"},
    {"name": "size", "label": "Size", "kind": "integer", "default": 5, "advanced": True},
]
PICKY = """
from dragoman_api import AuthenticationError, hookimpl
from .memory_driver import MemoryDriver


class Driver(MemoryDriver):
    @hookimpl
    async def connect(self, profile, http):
        if profile.secrets.get("password") != "sesame":
            raise AuthenticationError("the password is wrong")
        return await super().connect(profile, http)
"""


@pytest.fixture
def picky(make_runtime):
    """Return a runtime whose driver accepts one password, and whose connection is not saved."""
    return make_runtime(wheelhouse.Driver("demo", code=PICKY, hooks=[*HOOKS], form=FORM), installed=True)


def entered(name="new", **values):
    return SavedConnection(name=name, type="demo", values={"host": "localhost", "port": "7700"} | values)


async def test_a_connection_is_tried_with_a_typed_secret_and_nothing_is_saved(picky):
    trial = entered(password=Reference("stored"))
    async with picky:
        async with picky.open(trial, secrets={"password": "sesame"}) as session:
            assert session.server.product == "Memory"
            assert not session.can("a_hook_of_a_later_version")
        with pytest.raises(AuthenticationError):
            async with picky.open(trial, secrets={"password": "wrong"}):
                pass
        saved = await anyio.to_thread.run_sync(picky.connections.list)
        assert [each.name for each in saved] == ["demo"]


async def test_a_typed_secret_is_for_a_trial_alone(picky):
    """A saved connection has its own: whoever names it cannot bring another one along."""
    async with picky:
        await picky.save(entered(password=Reference("stored")), secrets={"password": "wrong"})
        with pytest.raises(AuthenticationError):
            async with picky.open("new", secrets={"password": "sesame"}):
                pass


async def test_what_is_saved_is_checked_and_opens(picky):
    async with picky:
        saved = await picky.save(entered(password=Reference("stored")), secrets={"password": "sesame"})
        assert dict(saved.values) == {"host": "localhost", "port": 7700, "password": Reference("stored")}
        async with picky.open("new") as session:
            assert session.name == "new"
        with pytest.raises(ConfigurationError, match="already exists"):
            await picky.save(entered())
        await picky.save(entered(size="9"), replace=True)
        found = await anyio.to_thread.run_sync(picky.connections.get, "new")
        assert found.values["size"] == 9


async def test_a_fault_names_its_field_and_nothing_is_saved(picky):
    async with picky:
        with pytest.raises(ConfigurationError) as caught:
            await picky.save(entered(port="many"), secrets={"password": "sesame"})
        assert caught.value.details["field"] == "port"
        assert not (picky.paths.config / "secrets.toml").exists()


def test_a_form_is_as_the_host_treats_it():
    """An older index may hold what a publisher no longer accepts."""
    host = FormField(name="host", label="Host", default="evil.example", visible_if={"port": ("1",)})
    assert effective(host) == FormField(name="host", label="Host")
    skip = FormField(name="skip_tls_verification", label="Skip", kind=FieldKind.SWITCH, default=True)
    assert effective(skip).default is None
    size = FormField(name="size", label="Size", default=5, visible_if={"host": ("x",)})
    assert effective(size) == size


async def test_the_form_of_a_type_is_the_effective_one(picky):
    async with picky:
        assert [field.name for field in await picky.plugins.form("demo")] == ["host", "port", "password", "size"]


def test_an_undo_keeps_what_was_applied_or_may_have_been():

    keys = [RowKey("books", str(number)) for number in range(4)]
    undo = [Update(key, {"title": "old"}) for key in keys[:3]] + [Delete(keys[3])]
    request = HttpRequest("POST", "/")
    planned = [
        PlannedRequest(request=request, changes=[0, 1], rows=[[0], [1]]),
        PlannedRequest(request=request, changes=[2, 3], rows=[[2], [3]]),
    ]
    new = RowKey("books", "0", guard={"seq": 8})
    outcomes = [
        Outcome(change=0, status=OutcomeStatus.APPLIED, key=new),
        Outcome(change=1, status=OutcomeStatus.CONFLICT),
        Outcome(change=2, status=OutcomeStatus.UNKNOWN),
        Outcome(change=3, status=OutcomeStatus.APPLIED),
    ]
    changes = [*(Update(key, {"title": "new"}) for key in keys[:3]), Insert("books", {"title": "new"}, "3")]
    plan = Plan(planned=planned, changes=changes, undo=undo)
    lines = undo_lines(plan, outcomes=outcomes).splitlines()
    assert [*map(read_line, lines)] == [Update(new, {"title": "old"}), undo[2], undo[3]]
    assert undo_lines(Plan(planned=planned, changes=changes), outcomes=outcomes) == b""


def test_a_line_of_an_undo_file_follows_its_row_with_id_routing_and_guard(tmp_path):
    old = RowKey("books", "1", guard={"n": 1})
    undo = UndoFile(tmp_path / "undo")
    undo.add(
        [Delete(old), Update(old, {"n": 1}), Insert("books", {"n": 1}, "1", replace=True, guard={"n": 1}), Delete(old)]
    )
    moved = [
        RowKey("books", "a", "north"),
        RowKey("books", "b", "south", {"v": 2}),
        RowKey("books", "c", "west", {"v": 3}),
    ]
    undo.rows = dict(enumerate(moved))  # the last change was not applied
    undo.complete()
    lines = (tmp_path / "undo").read_bytes().splitlines()
    insert = Insert("books", {"n": 1}, "c", replace=True, guard={"v": 3}, routing="west")
    assert [*map(read_line, lines)] == [Delete(moved[0]), Update(moved[1], {"n": 1}), insert]
