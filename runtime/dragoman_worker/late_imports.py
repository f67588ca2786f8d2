"""Parts of trusted modules that are made when they are first used: default TLS contexts, and whole modules.

aiohttp's import makes two contexts, and imports websockets, forms and mail headers. They take half of a driver's cold
start, and few drivers use them.
"""

from __future__ import annotations

import ssl
import sys
import threading
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from collections.abc import Iterator

LATE_MODULES = (
    "aiohttp._websocket.reader",
    "aiohttp.client_middleware_digest_auth",
    "aiohttp.client_ws",
    "aiohttp.formdata",
    "aiohttp.http_websocket",
    "aiohttp.multipart",
    "aiohttp.payload_streamer",
    "aiohttp.tracing",
    "anyio._core._sockets",
    "anyio._core._streams",
    "anyio.streams.memory",
    "anyio.streams.stapled",
    "anyio.streams.tls",
    "attr.converters",
    "attr.filters",
    "attr.validators",
    "email.parser",
    "email.policy",
    "idna",
    "msgspec._json_schema",
    "msgspec.inspect",
    "msgspec.toml",
    "msgspec.yaml",
    "netrc",
    "urllib.request",
)
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


class _Imports(threading.local):
    """The number of imports of trusted modules that go on in this thread."""

    count = 0


_imports = _Imports()
_taking = threading.Lock()  # never held while a module is imported, whose own lock another thread may hold


@contextmanager
def _importing() -> Iterator[None]:
    _imports.count += 1
    try:
        yield
    finally:
        _imports.count -= 1


class _LateModule(ModuleType):
    """Stands for a module until something of it is used.

    While trusted modules are imported, what they take from it are late names; afterwards, it is the module itself.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)  # for those who only ask whether there is such a module

    def __getattr__(self, name: str) -> Any:
        if _imports.count and name.startswith("__"):  # what the import system looks for
            raise AttributeError(name)
        return _LateName(self.__name__, name) if _imports.count else getattr(_load(self.__name__), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if _imports.count or name.startswith("__"):  # what the import system sets
            super().__setattr__(name, value)
        else:
            setattr(_load(self.__name__), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_load(self.__name__), name)


class _LateName:
    """Stands for what a module has taken from a late one: its use imports that module, and puts the real thing here."""

    def __init__(self, module: str, name: str, *parameters: Any) -> None:
        self.__dict__.update(_place=(module, name), _parameters=parameters)

    def _real(self) -> Any:
        module, name = self._place
        real = getattr(_load(module), name)
        return real[self._parameters] if self._parameters else real

    def __getitem__(self, parameter: Any) -> _LateName:
        return _LateName(*self._place, parameter)  # of a generic class

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._real()(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__typing_") or name in ("__parameters__", "_place"):  # what annotations and copies look for
            raise AttributeError(name)
        return getattr(self._real(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._real(), name)

    def __mro_entries__(self, _bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self._real(),)

    def __instancecheck__(self, instance: object) -> bool:
        module, _ = self._place
        # Nothing is an instance of a class that was never made.
        return not isinstance(sys.modules.get(module), _LateModule) and isinstance(instance, self._real())

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self._real())

    def __radd__(self, other: Any) -> Any:
        return other + self._real()  # what a handshake does to a constant

    def __or__(self, other: Any) -> Any:
        return Union[self, other]  # noqa: UP007 - the annotation of a function, which nobody reads

    def __ror__(self, other: Any) -> Any:
        return Union[other, self]  # noqa: UP007


def _load(name: str) -> ModuleType:
    late = sys.modules.get(name)
    if not isinstance(late, _LateModule):
        return import_module(name)  # which waits for another thread that imports it
    with _taking:
        if sys.modules.get(name) is late:
            del sys.modules[name]
    try:
        with _importing():
            module = import_module(name)  # which also sets it in its package
    except BaseException:
        sys.modules.setdefault(name, late)  # the next use imports it again
        raise
    for taker in list(sys.modules.values()):
        for key, value in _late_names(taker):
            if value._place[0] == name and not value._parameters:  # noqa: SLF001
                setattr(taker, key, value._real())  # noqa: SLF001
    return module


def _late_names(module: ModuleType) -> list[tuple[str, _LateName]]:
    if isinstance(module, _LateModule):
        return []
    names = getattr(module, "__dict__", {})
    return [(key, value) for key, value in list(names.items()) if value.__class__ is _LateName]


def _ask_later(package: ModuleType) -> None:
    """Let a package give the real thing to whoever takes a late name from it: a class may be matched or caught."""
    late = dict(_late_names(package))
    own = package.__dict__.get("__getattr__")
    if not late:
        return

    def get(name: str) -> Any:
        if name in late:
            setattr(package, name, real := late[name]._real())  # noqa: SLF001
            return real
        if own is not None:
            return own(name)
        raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")

    for name in late:
        delattr(package, name)
    package.__getattr__ = get  # type: ignore[method-assign]


@contextmanager
def late_modules() -> Iterator[None]:
    """Import trusted modules without those parts that a start does not use."""
    modules = [_LateModule(name) for name in LATE_MODULES if name not in sys.modules]
    sys.modules.update((module.__name__, module) for module in modules)
    try:
        with _importing():
            yield
    finally:
        for module in modules:
            package, _, name = module.__name__.rpartition(".")
            if sys.modules.get(module.__name__) is not module:
                continue  # it was used
            if package in sys.modules:
                setattr(sys.modules[package], name, module)
            elif package:
                del sys.modules[module.__name__]
        for taker in list(sys.modules.values()):
            if not isinstance(taker, _LateModule) and "__path__" in getattr(taker, "__dict__", ()):
                _ask_later(taker)


@contextmanager
def late_imports() -> Iterator[None]:
    """Import trusted modules without the parts of them that a driver's start does not use."""
    with late_modules(), late_certificates():
        yield
