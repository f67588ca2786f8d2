"""Loading the driver, in its process: import it from its trees, and check the shape of its hooks."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError

from . import import_finder
from .hook_types import EXPORT

if TYPE_CHECKING:
    from collections.abc import Iterable


def load_driver(name: str, trees: Iterable[str]) -> object:
    """Import a driver and make its one instance. Its module may raise anything.

    Args:
        name: The driver as `module:attribute`.
        trees: The folders of its wheels.
    """
    import_finder.admit_trees(trees)
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)()


def check_hooks(driver: object, hooks: Iterable[str], *, name: str) -> None:
    """Check that a driver's hooks are coroutine functions, and `export_rows` an async generator.

    Raises:
        ConfigurationError: A hook has another shape.
    """
    for hook in hooks:
        has_shape = inspect.isasyncgenfunction if hook == EXPORT else inspect.iscoroutinefunction
        if not has_shape(getattr(driver, hook)):
            shape = "an async generator" if hook == EXPORT else "async def"
            raise ConfigurationError(f"{name}.{hook} must be {shape}, as its specification is")
