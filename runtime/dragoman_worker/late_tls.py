"""Default TLS contexts that load the system's certificates when they are first needed.

aiohttp makes two while it is imported, which costs a quarter of a driver's cold start; few drivers ever use them.
"""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class LateContext(ssl.SSLContext):
    """A client's context that trusts the system's certificates, from its first handshake on."""

    _loaded = False

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """Load the certificates, once, and begin a handshake as ever."""
        if not self._loaded:
            self._loaded = True
            self.load_default_certs()
        return super().wrap_bio(*arguments, **options)


@contextmanager
def late_certificates() -> Iterator[None]:
    """Give out late contexts while trusted modules are imported."""
    real = ssl.create_default_context
    ssl.create_default_context = lambda *_, **__: LateContext(ssl.PROTOCOL_TLS_CLIENT)
    # aiohttp's other context verifies nothing, and loads certificates all the same.
    ssl.SSLContext.set_default_verify_paths = lambda self: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        ssl.create_default_context = real
        del ssl.SSLContext.set_default_verify_paths
