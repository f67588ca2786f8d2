"""What stands for the lock-down where there is none, which is on Windows: the host says so on every surface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .wire import Sandboxed

if TYPE_CHECKING:
    from .wire import Lockdown


class Confinement:
    """Gives up nothing, and claims nothing."""

    def apply(self, _plan: Lockdown) -> Sandboxed:
        """Report that nothing was enforced."""
        return Sandboxed(layers=(), failures={}, landlock_abi=0, probes={}, missing=())
