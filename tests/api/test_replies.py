"""Replies: what a status and headers ask for."""

from __future__ import annotations

import pytest
from drivers.replies import reply

from dragoman_api.replies import redirection, seconds_asked


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("7", 7), ("0", 0), ("999999999", 999_999_999), ("1000000000", 0), ("-1", 0), ("1.5", 0), ("", 0), ("²", 0),
     ("Wed, 21 Oct 2026 07:28:00 GMT", 0)],
)  # fmt: skip
def test_a_wait_is_read_from_digits_only(given: str, seconds: int) -> None:
    assert seconds_asked(reply({}, status=429, headers={"Retry-After": given})) == seconds


def test_an_answer_that_names_no_wait_asks_for_none() -> None:
    assert seconds_asked(reply({}, status=429)) == 0


def test_only_a_redirection_has_a_hint() -> None:
    headers = {"Location": "https://elsewhere.example"}
    assert headers["Location"] in redirection(reply({}, status=302, headers=headers))
    assert redirection(reply({}, status=200, headers=headers)) == ""
    assert redirection(reply({}, status=302)) == ""
