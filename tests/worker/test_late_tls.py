"""Contexts made while trusted modules are imported load no certificates, and the ssl module stays what it was."""

from __future__ import annotations

import ssl

from dragoman_worker.late_tls import LateContext, late_certificates


def test_a_default_context_loads_certificates_at_its_first_handshake_only() -> None:
    loaded: list[ssl.SSLContext] = []

    class Watched(LateContext):
        def load_default_certs(self, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
            loaded.append(self)

    context = Watched(ssl.PROTOCOL_TLS_CLIENT)
    assert not loaded
    for _ in range(2):
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="localhost")
    assert loaded == [context]


def test_what_is_imported_loads_nothing_and_everything_is_as_before_afterwards() -> None:
    before = ssl.create_default_context
    with late_certificates():
        other = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        other.set_default_verify_paths()
        assert other.cert_store_stats()["x509"] == 0
        assert isinstance(ssl.create_default_context(), LateContext)
    assert ssl.create_default_context is before
    assert "set_default_verify_paths" not in vars(ssl.SSLContext)
