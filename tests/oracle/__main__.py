"""`python -m tests.oracle DRIVER`: make random calls of a driver, and evaluate each again from the stored documents."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from .run import DRIVERS, MOST_SHOWN, run
from .targets import of_record, on_fake

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


def main() -> int:
    """Run the command; the exit code is 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("driver", choices=[*DRIVERS])
    parser.add_argument(
        "--seed", type=int, default=int.from_bytes(os.urandom(3)), help="of the first call; each has the next"
    )
    parser.add_argument("--calls", type=int, default=1_000, help="how many (1,000)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", help="a server without credentials; without one, a fake server")
    where.add_argument("--live", type=Path, metavar="FILE.json", help="the servers that tests/servers has started")
    parser.add_argument("--version", default="", help="of the fake, or of the server of --url")
    parser.add_argument(
        "--shrink", type=int, default=MOST_SHOWN, help=f"sorts of differences to make small ({MOST_SHOWN})"
    )
    parser.add_argument("--json", action="store_true", help="write the results as JSON")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    targets: list[tuple[str, AbstractAsyncContextManager[Any]]] = [on_fake(given.driver, given.version)]
    if given.url:
        targets = [of_record({"type": given.driver, "engine": given.url, "url": given.url, "version": given.version})]
    elif given.live is not None:
        records = json.loads(given.live.read_text())
        targets = [of_record(each) for each in records if each["type"] == given.driver]

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    async def all_targets() -> list[Any]:
        reports = []
        for name, connection in targets:
            say(f"seed {given.seed}, {name}")
            async with connection as rig:
                reports.append(
                    await run(given.driver, rig, name, seed=given.seed, calls=given.calls, shrink=given.shrink, say=say)
                )
        return reports

    reports = anyio.run(all_targets)
    for each in reports:
        print(json.dumps(each.as_data(), indent=1) if given.json else each)
    return any(each.new for each in reports)


if __name__ == "__main__":
    sys.exit(main())
