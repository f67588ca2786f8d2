"""What `ssh` prints when a tunnel does not open, as a reason and what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .ways import NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

_CHECK = "compare the fingerprint with the one that its operator gives you"
_ADDRESS = f"check the SSH host, and enter it: dragoman connections edit {NAME} --ssh USER@HOST"

_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "meets another host key than the known one",
        "{ssh}\nit shows both keys",
    ),
    ("Host key verification failed|host key is known for", "meets a host key that is not known", "{ssh}\n" + _CHECK),
    ("Permission denied|Too many authentication failures|No supported authentication", "is not let in", "{ssh} true"),
    (
        "administratively prohibited",
        "ends at a host that forbids forwarding",
        "ask its operator to allow it to {there}",
    ),
    (
        "open failed: connect failed|open failed: unknown",
        "cannot reach {there} from its other end",
        "check Host and Port",
    ),
    ("Could not resolve hostname", "begins at a name that cannot be resolved", _ADDRESS),
    ("Connection refused|Connection timed out|No route to host|unreachable", "cannot reach its own host", "{ssh} true"),
    ("no such identity|invalid format|UNPROTECTED PRIVATE KEY|error in libcrypto", "cannot use its key", "{ssh} true"),
)


def explain(lines: Iterable[str], *, there: str, by_hand: str) -> tuple[str, str, str]:
    """Return why a tunnel did not open, and what to do.

    Args:
        lines: What `ssh` printed.
        there: Host and port at the other end.
        by_hand: The command that connects to the SSH host by hand.

    Returns:
        A clause whose subject is the tunnel, the line of `ssh` that says so, and a hint.
    """
    printed = [*lines]
    for pattern, reason, hint in _KNOWN:
        for line in printed:
            if re.search(pattern, line):
                return reason.format(there=there), line, hint.replace("{ssh}", by_hand).replace("{there}", there)
    return "did not open", printed[-1] if printed else "", f"{by_hand} true"
