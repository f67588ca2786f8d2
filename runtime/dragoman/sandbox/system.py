"""The system that this host runs on: what differs in starting a driver's process and in handing it sockets."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from .windows import LAYERS, Output, Passed, Process, pipe, send, start
else:
    from .posix import LAYERS, Output, Passed, Process, pipe, send, start

__all__ = ["LAYERS", "Output", "Passed", "Process", "pipe", "send", "start"]
