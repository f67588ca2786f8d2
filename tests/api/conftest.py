"""Fixtures of the API's tests."""

from __future__ import annotations

import shutil

import pytest
from api import certificates


@pytest.fixture(scope="session")
def certs(tmp_path_factory: pytest.TempPathFactory) -> certificates.Certificates:
    """Make the certificates once per run."""
    if shutil.which("openssl") is None:
        pytest.skip("TLS is tested with certificates made by the openssl command, which is not installed")
    return certificates.make(tmp_path_factory.mktemp("certs"))
