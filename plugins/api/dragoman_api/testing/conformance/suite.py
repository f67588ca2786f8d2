"""All conformance tests of a driver: a class that its author subclasses with one fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

from .changes import ChangeConformance
from .console import ConsoleConformance
from .exports import ExportConformance
from .filters import FilterConformance
from .grid import GridConformance
from .objects import ObjectConformance
from .shares import ShareConformance
from .summaries import SummaryConformance
from .times import TimeConformance

if TYPE_CHECKING:
    from collections.abc import Callable

Test = TypeVar("Test", bound="Callable[..., object]")


def deviates(reason: str) -> Callable[[Test], Test]:
    """Allow an override of a conformance test; the reason is listed at the end of every run."""
    if not reason.strip():
        raise ValueError("a deviation from the contract needs a reason")

    def mark(test: Test) -> Test:
        test.deviation = reason  # type: ignore[attr-defined]
        return test

    return mark


class DriverConformance(
    ObjectConformance,
    GridConformance,
    FilterConformance,
    TimeConformance,
    ChangeConformance,
    ConsoleConformance,
    ExportConformance,
    ShareConformance,
    SummaryConformance,
):
    """Tests of what every driver promises; tests of missing hooks are skipped.

    Subclass it under a name that begins with ``Test`` and give it a fixture ``target`` that yields a
    `dragoman_api.testing.Target`. An override of one of its tests needs `deviates` with a reason.
    """

    pytestmark = pytest.mark.anyio

    @pytest.fixture(scope="class")
    @classmethod
    def anyio_backend(cls) -> str:
        """Name aiohttp's event loop, with class scope, so that a target can be opened once per class."""
        return "asyncio"

    @pytest.fixture
    def target(self) -> object:
        """Fail unless the subclass overrides this fixture."""
        pytest.fail("the subclass of DriverConformance has no fixture 'target'")

    def __init_subclass__(cls) -> None:
        """Reject a conformance test that was overridden or switched off without a reason."""
        super().__init_subclass__()
        for name in [name for name in dir(DriverConformance) if name.startswith("test_")]:
            test = getattr(cls, name)
            if test is not getattr(DriverConformance, name) and not getattr(test, "deviation", ""):
                raise TypeError(f"{cls.__name__} overrides {name} of the contract without @deviates('reason')")
