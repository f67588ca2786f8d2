"""Replies: what a status and headers ask for."""

from __future__ import annotations

import pytest
from drivers.replies import reply

from dragoman_api.connections import Profile
from dragoman_api.replies import redirection, seconds_asked, turned_away


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("7", 7), ("0", 0), ("999999999", 999_999_999), ("1000000000", 0), ("-1", 0), ("1.5", 0), ("", 0), ("²", 0),
     ("Wed, 21 Oct 2026 07:28:00 GMT", 0)],
)  # fmt: skip
def test_a_wait_is_read_from_digits_only(given: str, seconds: int) -> None:
    assert seconds_asked(reply({}, status=429, headers={"Retry-After": given})) == seconds


def test_an_answer_that_names_no_wait_asks_for_none() -> None:
    assert seconds_asked(reply({}, status=429)) == 0


def test_too_many_requests_are_told_with_their_status_and_wait() -> None:
    profile = Profile(name="s", type="t", host="h", port=1)
    error = turned_away(reply({}, status=429, headers={"Retry-After": "7"}), profile)
    assert error is not None
    assert error.details == {"status": 429, "retry_after": 7}


def test_only_a_redirection_has_a_hint() -> None:
    headers = {"Location": "https://elsewhere.example"}
    for status in (301, 302, 303, 307, 308):
        assert headers["Location"] in redirection(reply({}, status=status, headers=headers))
    for status in (200, 300, 304):
        assert redirection(reply({}, status=status, headers=headers)) == ""
    assert redirection(reply({}, status=302)) == ""
