"""The levels: what a worker is started with when some layers are replaced by nothing.

A layer is replaced in the program text of the child or in the host's own modules, by the code that starts both; no
configuration, message or driver has such a switch.
"""

from __future__ import annotations

from typing import Any

from dragoman.sandbox import bare_process, conversation
from dragoman.sandbox.driver_process import Worker
from dragoman.sandbox.reach.address_resolver import AddressResolver
from dragoman.sandbox.reach.broker import Broker
from dragoman_worker import channel, values
from dragoman_worker.lockdown import process_limits

IN_CHILD = {
    "landlock": "landlock.restrict = lambda *paths, **options: []; landlock.forbid_all_but_reading = lambda: None",
    "seccomp": "seccomp.install = lambda program: None",
    "capabilities": "process_limits.drop_capabilities = lambda: None",
    "limits": "process_limits.set_limits = lambda **sizes: None",
    "hiding": "process_limits.hide_memory = lambda: None",
    "self-test": "selftest.run = lambda **targets: {}",
}
IN_HOST = ("hiding", "comparison", "judgement", "bounds", "deadline")

LEVELS: dict[str, tuple[str, ...]] = {
    "full": (),
    "full-landlock": ("landlock",),
    "full-seccomp": ("seccomp",),
    "full-capabilities": ("capabilities",),
    "full-limits": ("limits",),
    # Without both kernel layers the self-test's exec would replace the process.
    "subprocess": ("landlock", "seccomp", "capabilities", "hiding", "self-test"),
    "bare": ("landlock", "seccomp", "capabilities", "hiding", "self-test", "limits"),
    "open-host": ("landlock", "capabilities", "hiding"),
    "no-comparison": ("comparison",),
    "no-judgement": ("judgement",),
    "no-bounds": ("bounds",),
    "no-deadline": ("deadline",),
    "in-process": (),
}
"""Name of a level → the layers that are replaced by nothing."""


def boot(layers: tuple[str, ...]) -> str:
    """Return the child's program text, with layers that do nothing and say nothing of it."""
    changes = "; ".join(IN_CHILD[layer] for layer in layers if layer in IN_CHILD)
    modules = "from dragoman_worker.lockdown import landlock, process_limits, seccomp, selftest"
    return bare_process.BOOT.replace("from dragoman_worker.main", f"{modules}; {changes}; from dragoman_worker.main")


def replace_by_nothing(layers: tuple[str, ...]) -> None:
    """Take layers out of this host and of every child that it starts from now on."""
    if set(layers) & IN_CHILD.keys():
        bare_process.BOOT = boot(layers)  # type: ignore[attr-defined]
    if "hiding" in layers:
        process_limits.hide_memory = lambda: None
    if "comparison" in layers:
        Broker._allows = lambda self, request: True  # type: ignore[method-assign]
    if "judgement" in layers:
        AddressResolver._judged = lambda self, name, places: places  # type: ignore[method-assign]
    if "bounds" in layers:
        values.MAX_RESULT = values.MAX_ELEMENTS = conversation.CREDITS = 1 << 40
        real = channel.FrameReader.__init__
        channel.FrameReader.__init__ = lambda self, *, limit: real(self, limit=1 << 40)  # type: ignore[method-assign]
    if "deadline" in layers:
        call, export = Worker.call, Worker.export

        async def patient(self: Worker, hook: str, *arguments: Any, deadline: float | None = None) -> Any:
            return await call(self, hook, *arguments)

        Worker.call = patient  # type: ignore[method-assign]
        Worker.export = lambda self, request, *, deadline: export(self, request, deadline=60)  # type: ignore[method-assign]
