"""A registry is trusted only from a root that somebody named, kept, or agreed to take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_api.errors import TrustError
from dragoman_registry.sources.source import open_source
from dragoman_registry.trust.tuf_client import TufTrust

if TYPE_CHECKING:
    from pathlib import Path


def test_without_a_word_no_root_is_taken_from_a_registry(tmp_path: Path):
    """Neither on the first look nor on a later one; and a root that was taken once serves without a word."""
    folder = wheelhouse.registry(tmp_path / "team", [wheelhouse.Driver().write(tmp_path / "wheels")])
    source, cache = open_source(str(folder)), tmp_path / "cache"
    for _ in range(2):
        with pytest.raises(TrustError) as caught:
            TufTrust(source, where="team", cache=cache).pin()
        assert caught.value.code == "root-unknown"
    assert not (cache / "pinned.root.json").exists()
    root = TufTrust(source, where="team", cache=cache, first_use=True).pin()
    assert TufTrust(source, where="team", cache=cache).pin() == root
