"""The golden wording of this driver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wording import of_test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wording import Wording


@pytest.fixture
def wording(request: pytest.FixtureRequest) -> Iterator[Wording]:
    """Compare texts with the golden file of these tests."""
    yield from of_test(request, Path(__file__).parent)
