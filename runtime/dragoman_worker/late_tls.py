"""Default TLS contexts that load the system's certificates only when they are first needed.

aiohttp creates two contexts during its import, which takes a quarter of a driver's cold start. Few drivers use them.
"""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class LateContext(ssl.SSLContext):
    """A client context that trusts the system's certificates and loads them before its first handshake."""

    _loaded = False

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """Load the certificates once, then begin a handshake."""
        if not self._loaded:
            self._loaded = True
            self.load_default_certs()
        return super().wrap_bio(*arguments, **options)


@contextmanager
def late_certificates() -> Iterator[None]:
    """Make new contexts late ones while trusted modules are imported."""
    real = ssl.create_default_context
    ssl.create_default_context = lambda *_, **__: LateContext(ssl.PROTOCOL_TLS_CLIENT)
    # aiohttp's other context verifies nothing, but loads certificates too.
    ssl.SSLContext.set_default_verify_paths = lambda self: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        ssl.create_default_context = real
        del ssl.SSLContext.set_default_verify_paths
