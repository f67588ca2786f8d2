"""Errors of a driver come out of its process as what they were."""

from __future__ import annotations

import pytest

from dragoman_api.errors import QueryError, from_code
from dragoman_worker.wire import Failure


def test_an_error_with_a_code_of_its_own_keeps_its_class_and_its_code():
    crossed = Failure.of(3, QueryError("no", code="my-own", hint="try", details={"a": 1})).to_error()
    assert type(crossed) is QueryError
    assert (crossed.code, crossed.message, crossed.hint, crossed.details) == ("my-own", "no", "try", {"a": 1})


@pytest.mark.parametrize("code", ["query-failed", "window-exceeded", "authentication-failed"])
def test_an_error_with_its_class_code_crosses_as_that_class(code):
    assert Failure.of(1, from_code(code, "m")).to_error().code == code
