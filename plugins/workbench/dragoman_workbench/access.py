"""Who may talk to the server: one-time tokens, and the secrets that they are exchanged for."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable

TOKEN_SECONDS = 60.0
"""Life of a token with which the page opens a further tab."""
ENTRY_SECONDS = 12 * 3_600.0
"""Life of the token in the entry file."""
IDLE_SECONDS = 8 * 3_600.0
"""Seconds without a request after which a secret expires: a working day."""
MAX_SECRETS = 64
"""Tabs that can be signed in at once; a further one replaces the one that was idle longest."""
FAILURES = 20
"""Wrong tokens per minute that are answered at once."""
RATE, BURST = 100.0, 400.0
"""Requests of one tab per second in the long run, and at once."""
AT_ONCE = 24
"""Requests of one tab that may run at the same time."""

Clock = Callable[[], float]


class Tab:
    """One tab that is signed in: its activity, and the requests it may still make.

    Attributes:
        used: When it last made a request.
        running: Its requests that run now.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.used = clock()
        self.running = 0
        self._allowed = BURST

    def admit(self) -> bool:
        """Count a request; False if there are too many."""
        now = self._clock()
        self._allowed = min(BURST, self._allowed + (now - self.used) * RATE)
        self.used = now
        if self._allowed < 1 or self.running >= AT_ONCE:
            return False
        self._allowed -= 1
        return True


class Access:
    """Tokens and secrets. Both are random texts of 256 bits, of which only digests are kept."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._tokens: dict[bytes, float] = {}
        self._tabs: dict[bytes, Tab] = {}
        self._failures: list[float] = []

    def token(self, *, seconds: float = TOKEN_SECONDS) -> str:
        """Return a new token, which can be exchanged once."""
        now = self._clock()
        self._tokens = {digest: until for digest, until in self._tokens.items() if until > now}
        while len(self._tokens) >= MAX_SECRETS:
            del self._tokens[min(self._tokens, key=self._tokens.__getitem__)]
        token = secrets.token_urlsafe(32)
        self._tokens[_digest(token)] = now + seconds
        return token

    def holds(self, token: str) -> bool:
        """Return whether a token can still be exchanged."""
        return self._tokens.get(_digest(token), 0.0) > self._clock()

    def blocked(self) -> bool:
        """Return whether there were too many wrong tokens in the last minute."""
        now = self._clock()
        self._failures = [at for at in self._failures if at > now - 60]
        return len(self._failures) >= FAILURES

    def enter(self, token: str) -> str | None:
        """Exchange a token for a secret; None if it is unknown, used or expired."""
        if self._tokens.pop(_digest(token), 0.0) <= self._clock():
            self._failures = [*self._failures[1 - FAILURES :], self._clock()]
            return None
        self._expire()
        while len(self._tabs) >= MAX_SECRETS:
            del self._tabs[min(self._tabs, key=lambda digest: self._tabs[digest].used)]
        secret = secrets.token_urlsafe(32)
        self._tabs[_digest(secret)] = Tab(self._clock)
        return secret

    def tab(self, secret: str) -> Tab | None:
        """Return the tab of a secret; None if it is unknown or expired."""
        self._expire()
        return self._tabs.get(_digest(secret))

    def leave(self, secret: str) -> None:
        """End a secret."""
        self._tabs.pop(_digest(secret), None)

    def _expire(self) -> None:
        oldest = self._clock() - IDLE_SECONDS
        self._tabs = {digest: tab for digest, tab in self._tabs.items() if tab.used > oldest or tab.running}


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
