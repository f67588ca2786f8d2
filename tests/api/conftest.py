"""Fixtures of the API's tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from api import certificates

from wording import of_test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wording import Wording


@pytest.fixture(scope="session")
def certs(tmp_path_factory: pytest.TempPathFactory) -> certificates.Certificates:
    """Make the certificates once per run."""
    if shutil.which("openssl") is None:
        pytest.skip("TLS is tested with certificates made by the openssl command, which is not installed")
    return certificates.make(tmp_path_factory.mktemp("certs"))


@pytest.fixture
def wording(request: pytest.FixtureRequest) -> Iterator[Wording]:
    """Compare texts with the golden file of these tests."""
    yield from of_test(request, Path(__file__).parent)
