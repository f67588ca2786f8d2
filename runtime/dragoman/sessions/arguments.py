"""Checks of the kinds of arguments, before a driver gets a wrong one and seems to be at fault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman_api.changes import Delete, Drop, Insert, Update
from dragoman_api.errors import ConfigurationError
from dragoman_api.filters import Filter, RawQuery
from dragoman_api.grid import RowKey, Sort
from dragoman_api.wording import quoted

_FILTER = 'Filter("total", ">=", 100), in a list'
_SORT = 'Sort("total", descending=True), in a list'
_KEY = "row.key of a row of a page"
_CHANGE = 'Update(row.key, {"total": 12.5}), Insert(…), Delete(…) or Drop(…)'


def check_filters(filters: Sequence[Any]) -> None:
    """Raise ConfigurationError unless the argument is a sequence of filter rows."""
    _check(filters, (Filter, RawQuery), expected="a filter row", hint=_FILTER)


def check_sort(sort: Sequence[Any]) -> None:
    """Raise ConfigurationError unless the argument is a sequence of sort keys."""
    _check(sort, (Sort,), expected="a sort", hint=_SORT)


def check_names(names: Any, *, name: str) -> None:
    """Raise ConfigurationError unless the argument is a sequence of strings; `name` is its name in the message."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(text, str) for text in names):
        raise ConfigurationError(f"{name} is {quoted(names)}, which is not a list of texts", hint=f'{name}=["…"]')


def check_key(key: Any) -> None:
    """Raise ConfigurationError unless the argument is the key of a row; the id of the row alone is not."""
    _check((key,), (RowKey,), expected="the key of a row", hint=_KEY)


def check_changes(changes: Sequence[Any]) -> None:
    """Raise ConfigurationError unless the arguments are changes, with keys where these are needed."""
    _check(changes, (Insert, Update, Delete, Drop), expected="a change", hint=_CHANGE)
    for change in changes:
        if isinstance(change, Update | Delete):
            check_key(change.key)


def _check(arguments: Sequence[Any], kinds: tuple[type, ...], *, expected: str, hint: str) -> None:
    if not isinstance(arguments, Sequence):  # one alone; or an iterator, which a check would use up
        raise ConfigurationError(f"{quoted(arguments)} is not a list", hint=hint)
    for argument in [arguments] if isinstance(arguments, str | bytes) else arguments:
        if not isinstance(argument, kinds):
            raise ConfigurationError(f"{quoted(argument)} is not {expected}", hint=hint)
