"""The event of each change: what was changed, which row as people spell it, and what became of it."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from dragoman.sessions.plans import event_of, untold
from dragoman_api import events
from dragoman_api.changes import Delete, Drop, Insert, Outcome, OutcomeStatus, Update, object_of
from dragoman_api.grid import RowKey

KEY = RowKey("books", ["eu", b"a"])
ROW = '["eu", {"base64": "YQ=="}]'
ABOUT = {"connection": "shop", "object": "books"}
APPLIED = [
    (Insert(object="books"), events.RowInserted(**ABOUT, id=ROW)),
    (Update(KEY, {"title": "b"}), events.RowUpdated(**ABOUT, id=ROW)),
    (Delete(KEY), events.RowDeleted(**ABOUT, id=ROW)),
    (Drop("books"), events.ObjectDropped(**ABOUT)),
]


def told(event):
    return event.name, {name: value for name, value in asdict(event).items() if name != "at"}


@pytest.mark.parametrize(("change", "event"), APPLIED)
def test_an_applied_change_is_an_event_of_its_kind(change, event):
    outcome = Outcome(change=0, status=OutcomeStatus.APPLIED, id=KEY.id)
    assert told(event_of(outcome, change, connection="shop")) == told(event)
    assert object_of(change) == "books"


@pytest.mark.parametrize("change", [change for change, _ in APPLIED])
@pytest.mark.parametrize("status", [each for each in OutcomeStatus if each is not OutcomeStatus.APPLIED])
def test_any_other_outcome_is_a_skipped_row_with_its_reason(change, status):
    outcome = Outcome(change=0, status=status, id=KEY.id, reason="no")
    event = events.RowSkipped(**ABOUT, id=ROW, status=status, reason="no")
    assert told(event_of(outcome, change, connection="shop")) == told(event)


def test_an_outcome_without_an_id_or_a_known_change_names_none():
    event = event_of(Outcome(change=7, status=OutcomeStatus.FAILED), None, connection="shop")
    assert told(event) == told(events.RowSkipped(connection="shop", object="", id="", status="failed", reason=""))
    assert event_of(untold(7), None, connection="shop").status == "unknown"
    assert untold(7).change == 7
    assert untold(7).reason
