"""Modules that the trusted imports name and a driver's client hardly ever uses: they are loaded on first use.

aiohttp reads proxies from the environment and parses e-mail headers, and anyio has TCP streams; together these modules
take a sixth of the trusted imports. Each name below is a stand-in for the real one, which it becomes when it is
called, asked for an attribute, subclassed or tested for. Any other name of these modules loads its module at once.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LATE = {
    "aiohttp.client_middleware_digest_auth": "DigestAuthMiddleware",
    "aiohttp.tracing": "Trace TraceConfig TraceConnectionCreateEndParams TraceConnectionCreateStartParams "
    "TraceConnectionQueuedEndParams TraceConnectionQueuedStartParams TraceConnectionReuseconnParams "
    "TraceDnsCacheHitParams TraceDnsCacheMissParams TraceDnsResolveHostEndParams TraceDnsResolveHostStartParams "
    "TraceRequestChunkSentParams TraceRequestEndParams TraceRequestExceptionParams TraceRequestHeadersSentParams "
    "TraceRequestRedirectParams TraceRequestStartParams TraceResponseChunkReceivedParams",
    "anyio._core._sockets": "convert_ipv6_sockaddr",
    "anyio._core._streams": "create_memory_object_stream",
    "attr.validators": "",
    "email.parser": "HeaderParser",
    "email.policy": "HTTP",
    "urllib.request": "getproxies proxy_bypass",
}
"""The names of each module for which a stand-in will do, since importing them asks nothing of them."""


class LateName:
    """A stand-in for one name of a module."""

    def __init__(self, module: str, name: str) -> None:
        self._late = (module, name)

    def _real(self) -> Any:
        module, name = self._late
        return getattr(import_module(module), name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the real one."""
        return self._real()(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)

    def __getitem__(self, key: Any) -> Any:
        return self._real()[key]

    def __mro_entries__(self, _bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (self._real(),)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._real())

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self._real())


class LateModule(ModuleType):
    """A stand-in for a module while others are imported."""

    def __getattr__(self, name: str) -> Any:
        module = self.__name__
        if name in LATE[module].split():
            return LateName(module, name)
        if name.startswith("__"):  # what the import system asks of a module
            raise AttributeError(name)
        if sys.modules.get(module) is self:
            del sys.modules[module]
        return getattr(import_module(module), name)


@contextmanager
def late_imports() -> Iterator[None]:
    """Let the modules of `LATE` that are not loaded yet wait while trusted modules are imported."""
    stand_ins = {name: LateModule(name) for name in LATE if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, module in stand_ins.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
