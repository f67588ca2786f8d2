"""Parts of trusted modules that are made when they are first used: default TLS contexts, and whole modules.

aiohttp's import makes two contexts, classes for tracing and, by attrs, validators. They take a third of a driver's cold
start, and few drivers use them.
"""

from __future__ import annotations

import ssl
import sys
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LATE_MODULES = ("aiohttp.tracing", "attr.validators", "urllib.request")
"""Modules that a start imports for names which it does not use."""


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


class _LateModule(ModuleType):
    """Stands for a module until something of it is used.

    While trusted modules are imported, what they take from it are late names; afterwards, it is the module itself.
    """

    _importing = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and (self._importing or name != "__all__"):  # what the import system looks for
            raise AttributeError(name)
        return _LateName(self.__name__, name) if self._importing else getattr(_load(self.__name__), name)


class _LateName:
    """Stands for a class or a function of a late module: its use imports the module."""

    def __init__(self, module: str, name: str) -> None:
        self._place = module, name

    def _real(self) -> Any:
        module, name = self._place
        return getattr(_load(module), name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._real()(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)

    def __mro_entries__(self, _bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self._real(),)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._real())

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self._real())

    def __or__(self, other: Any) -> Any:
        return self._real() | other

    def __ror__(self, other: Any) -> Any:
        return other | self._real()


def _load(name: str) -> ModuleType:
    if isinstance(sys.modules.get(name), _LateModule):
        del sys.modules[name]
    return import_module(name)  # which also sets it in its package


@contextmanager
def late_imports() -> Iterator[None]:
    """Import trusted modules without the parts of them that a start does not use."""
    late_modules = [_LateModule(name) for name in LATE_MODULES if name not in sys.modules]
    sys.modules.update((module.__name__, module) for module in late_modules)
    try:
        with late_certificates():
            yield
    finally:
        for module in late_modules:
            module._importing = False  # noqa: SLF001 - of this module
            package, _, name = module.__name__.rpartition(".")
            if sys.modules.get(module.__name__) is module and package in sys.modules:
                setattr(sys.modules[package], name, module)
