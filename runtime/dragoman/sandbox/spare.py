"""One warm spare: a child that has imported everything and waits for its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .bare_process import Child

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from .host_imports import HostImports


class Spare:
    """Keeps at most one child ready; for a Runtime that lives on, never for a one-shot command."""

    def __init__(self, host_imports: HostImports, *, started: Child | None = None) -> None:
        """Prepare a spare; `started` is a child that was started for it and is not admitted to its imports yet."""
        self.host_imports = host_imports
        self._child = started
        if started is not None:
            started.admit(host_imports)

    def fill(self) -> None:
        """Start the spare if there is none; it becomes warm by itself within 0.2 s."""
        if self._child is None:
            self._child = Child()
            self._child.admit(self.host_imports)

    def take(self) -> Child | None:
        """Hand over the spare, or None if there is no live one."""
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
