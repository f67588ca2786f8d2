"""One stranger's machine, and one sample cluster."""

from __future__ import annotations

import pytest

from stranger import serve_sample, stranger


@pytest.fixture(scope="session")
def sample_port():
    """Share one sample cluster."""
    with serve_sample() as port:
        yield port


@pytest.fixture(scope="module")
def shell(tmp_path_factory, sample_port):
    """One stranger's machine for the whole story: what one step installs, the next one uses."""
    folder = tmp_path_factory.mktemp("stranger")
    return stranger(folder / "home", cwd=folder, port=sample_port)
