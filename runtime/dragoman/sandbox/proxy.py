"""The driver as the host's hooks see it: each hook that it announced, forwarded to its process."""

from __future__ import annotations

from contextlib import aclosing
from functools import wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dragoman_api.hookspecs import DriverSpec, hookimpl
from dragoman_worker.hook_types import HOOKS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from .driver_process import Worker


class DriverProxy(SimpleNamespace):
    """Represents a driver in a pluggy manager of the host. The caller's scope sets a call's deadline."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(**{hook: hookimpl(_forward(worker, hook)) for hook in worker.hooks})


def _forward(worker: Worker, hook: str) -> Callable[..., Any]:
    kind, spec = HOOKS[hook], getattr(DriverSpec, hook)  # whose names of arguments pluggy finds by `wraps`

    @wraps(spec)
    async def call(*values: Any) -> Any:
        return await worker.call(hook, None if kind.request is None else values[0])

    @wraps(spec)
    async def stream(request: Any) -> AsyncGenerator[Any, None]:
        async with aclosing(worker.export(request, deadline=HOOKS[hook].seconds)) as parts:
            async for part in parts:
                yield part

    return stream if kind.stream else call
