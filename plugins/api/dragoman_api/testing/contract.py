"""The contract of a driver: a class of tests that its author subclasses with one fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

from .promises.changes import ChangePromises
from .promises.console import ConsolePromises
from .promises.exports import ExportPromises
from .promises.filters import FilterPromises
from .promises.grid import GridPromises
from .promises.objects import ObjectPromises

if TYPE_CHECKING:
    from collections.abc import Callable

Test = TypeVar("Test", bound="Callable[..., object]")


def deviates(reason: str) -> Callable[[Test], Test]:
    """Allow an override of a contract test; the reason is listed at the end of every run."""
    if not reason.strip():
        raise ValueError("a deviation from the contract needs a reason")

    def mark(test: Test) -> Test:
        test.deviation = reason  # type: ignore[attr-defined]
        return test

    return mark


class DriverContract(ObjectPromises, GridPromises, FilterPromises, ChangePromises, ConsolePromises, ExportPromises):
    """What every driver promises; tests of hooks that a driver lacks are skipped.

    Subclass it under a name that begins with ``Test`` and give it a fixture ``target`` that yields a
    `dragoman_api.testing.Target`. An override of one of its tests needs `deviates` with a reason.
    """

    pytestmark = pytest.mark.anyio

    @pytest.fixture(scope="class")
    @classmethod
    def anyio_backend(cls) -> str:
        """Name the event loop aiohttp runs on; of class scope, so that a target may be opened once per class."""
        return "asyncio"

    @pytest.fixture
    def target(self) -> object:
        """Ask for the fixture every subclass has to give."""
        pytest.fail("the subclass of DriverContract has no fixture 'target'")

    def __init_subclass__(cls) -> None:
        """Refuse a contract test that was overridden, or switched off, without a reason."""
        super().__init_subclass__()
        for name in [name for name in dir(DriverContract) if name.startswith("test_")]:
            found = getattr(cls, name)
            if found is not getattr(DriverContract, name) and not getattr(found, "deviation", ""):
                raise TypeError(f"{cls.__name__} overrides {name} of the contract without @deviates('reason')")
