"""Watch a connection and open it again when it fails: watch_health.py CONNECTION [SECONDS].

The script prints each change of health on its own line, and ends with Ctrl-C. Each opening resolves the credentials
again, so it finds a rotated key in the place that the connection names.
"""

import sys
from datetime import UTC, datetime

import anyio

from dragoman import DragomanError, Runtime


def tell(state: str, reason: str = "") -> None:
    print(datetime.now(UTC).isoformat(timespec="seconds"), state, reason, flush=True)


async def main(runtime: Runtime) -> None:
    connection, pause = sys.argv[1], float(sys.argv[2]) if sys.argv[2:] else 10.0
    failed = ""
    while True:
        try:
            async with runtime.open(connection) as session:
                tell("ok", f"{session.server.product} {session.server.version}")
                failed = ""
                while (health := await session.ping()).ok:
                    await anyio.sleep(pause)
                reason = health.reason
        except DragomanError as error:
            reason = error.message
        if reason != failed:
            tell("failed", reason)
            failed = reason
        await anyio.sleep(pause)
