"""Watch a connection and open it again when it fails: watch_health.py CONNECTION [SECONDS].

Says each change of health on a line of its own; ends with Ctrl-C. Credentials are resolved anew on each opening, so a
rotated key is picked up from where the connection says that it lies.
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
