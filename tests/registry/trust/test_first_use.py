"""A registry is trusted only from a root that somebody named, kept, or agreed to take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import wheelhouse
from dragoman_api.errors import ConfigurationError, TrustError
from dragoman_registry.sources import open_source
from dragoman_registry.trust.signers import read_public
from dragoman_registry.trust.trust import SignedFile, agreed
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


def test_a_file_without_a_digest_is_at_most_as_long_as_was_asked_for():
    for size, ok in ((4, True), (5, True), (6, False)):
        vouched = SignedFile(path="a", size=size, sha256="0" * 64)
        assert agreed(SignedFile(path="a", size=1, sha256="0" * 64), vouched, "here") == vouched
        if ok:
            assert agreed(SignedFile(path="a", size=5), vouched, "here") == vouched
        else:
            with pytest.raises(TrustError):
                agreed(SignedFile(path="a", size=5), vouched, "here")


@pytest.mark.parametrize("content", [b"", b"secret", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_a_file_that_is_no_public_key_is_named(content: bytes, tmp_path: Path):
    (tmp_path / "me.pub").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"me\.pub"):
        read_public(tmp_path / "me.pub")
