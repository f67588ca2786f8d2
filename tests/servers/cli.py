"""The command line: JSON on standard output, narration on standard error.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 an engine cannot run on this machine.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from servers import background, fleet, foreground
from servers.certificates import SERVER_NAMES
from servers.engines import Options, all_engines, choose_engines
from servers.faults import EngineError, narrate
from servers.folders import cache
from servers.processes import signals_unwind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servers.engines import Engine


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb."""
    given = list(sys.argv[1:] if argv is None else argv)
    command: list[str] = []
    if "--" in given:
        cut = given.index("--")
        given, command = given[:cut], given[cut + 1 :]
    parser = _parser()
    arguments = parser.parse_args(given)
    if bool(command) != (arguments.verb == "run"):
        parser.error("`run` takes a command after --: run ENGINE... -- COMMAND...; the other verbs take none")
    try:
        with signals_unwind():
            return _dispatch(arguments, given, command)
    except EngineError as fault:
        narrate(str(fault))
        return fault.exit_code


def _dispatch(arguments: argparse.Namespace, given: Sequence[str], command: Sequence[str]) -> int:
    if arguments.verb == "list":
        _print_list(as_json=arguments.json)
        return 0
    if arguments.verb == "stop":
        print(json.dumps(background.stop(arguments.state), indent=2))
        return 0
    # What runs in the background shares this machine's network.
    isolated = arguments.verb in {"install", "run"} or arguments.shared_network
    engines, code = fleet.usable(choose_engines(arguments.engines), isolated=isolated)
    if not engines:
        return code
    return _with_engines(engines, arguments, given, command) or code


def _with_engines(
    engines: Sequence[Engine], arguments: argparse.Namespace, given: Sequence[str], command: Sequence[str]
) -> int:
    if arguments.verb == "install":
        print(json.dumps(fleet.install(engines), indent=2))
        return 0
    if arguments.verb == "start":
        return background.start(["supervise", *given[given.index("start") + 1 :]])
    options = Options(heap=arguments.heap, certificate=arguments.certificate, patience=arguments.patience)
    if arguments.verb == "run":
        return foreground.run(engines, options, command, isolated=not arguments.shared_network)
    background.supervise(engines, options, state=arguments.state, hours=arguments.hours)
    return 0


def _print_list(*, as_json: bool) -> None:
    described = fleet.describe(all_engines())
    if as_json:
        print(json.dumps(described, indent=2))
        return
    for engine in described:
        mark = "yes" if engine["available"] else "no "
        print(f"{engine['engine']:<38} {mark}  {engine['proves']}")
        if not engine["available"]:
            print(f"{'':<43} {engine['reason']}\n{'':<43} {engine['remedy']}")


def _parser() -> argparse.ArgumentParser:
    usual = Options()
    parser = argparse.ArgumentParser(prog="servers", description="Real engines for tests, without Docker.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="which engines there are, and whether they can run here")
    listing.add_argument("--json", action="store_true")

    engines = argparse.ArgumentParser(add_help=False)
    engines.add_argument("engines", nargs="+", metavar="ENGINE", help="names from `list`, or all")
    starting = argparse.ArgumentParser(add_help=False)
    starting.add_argument("--heap", default=usual.heap, help="memory of each server's heap (default: %(default)s)")
    starting.add_argument(
        "--certificate", choices=SERVER_NAMES, default=usual.certificate, help="what a server with TLS shows"
    )
    starting.add_argument("--patience", type=float, default=usual.patience, metavar="SECONDS")
    starting.add_argument("--shared-network", action="store_true", help="do without a network namespace")
    keeping = argparse.ArgumentParser(add_help=False)
    keeping.add_argument("--state", type=_path, default=cache() / "state.json", help="default: %(default)s")

    verbs.add_parser("install", parents=[engines], help="download and compile, once")
    for name in ("start", "supervise"):
        verb = verbs.add_parser(name, parents=[engines, starting, keeping], help="run in the background, until `stop`")
        verb.add_argument("--hours", type=float, default=12.0, help="end by itself after this (default: %(default)s)")
    verbs.add_parser("stop", parents=[keeping], help="stop what `start` started")
    verbs.add_parser("run", parents=[engines, starting], help="run ENGINE... -- COMMAND...")
    return parser


def _path(text: str) -> Path:
    return Path(text).absolute()
