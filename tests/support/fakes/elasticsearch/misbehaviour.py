"""Ways for a server to be broken, for tests of those who talk to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["html", "cut", "slow", "hang", "drop", "status", "garbage"]

HTML = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"


@dataclass
class Misbehaviour:
    """What goes wrong, on which paths, after how many good answers, and how often.

    `html` answers a proxy's page with `status`; `cut` stops in the middle of the body; `slow` waits `seconds` first;
    `hang` never answers; `drop` closes the connection; `status` answers `status` with an empty body; `garbage` answers
    200 with bytes that are no JSON.
    """

    kind: Kind
    on: str = ""
    after: int = 0
    times: int | None = None
    status: int = 502
    seconds: float = 1.0

    def applies(self, path: str) -> bool:
        """Count this request, and tell whether it goes wrong."""
        if not path.startswith(self.on):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
            return self.times >= 0
        return True
