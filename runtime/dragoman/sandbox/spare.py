"""One warm spare: a child that has imported everything and waits for its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .child import Child

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from .closure import Closure


class Spare:
    """Keeps at most one child ahead of its use; for a Runtime that lives on, never for a one-shot command."""

    def __init__(self, closure: Closure) -> None:
        self._closure = closure
        self._child: Child | None = None

    def fill(self) -> None:
        """Start the spare if there is none; it becomes warm by itself within 0.2 s."""
        if self._child is None:
            self._child = Child(self._closure)

    def take(self) -> Child | None:
        """Give the spare away, if there is one and it lives."""
        child, self._child = self._child, None
        if child is not None and not child.alive:
            child.discard()
            return None
        return child

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._child is not None:
            self._child.discard()
            self._child = None
