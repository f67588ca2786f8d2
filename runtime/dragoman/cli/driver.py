"""Commands for driver authors: scaffold, check, test, publish, link."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .errors import FAILED
from .key_options import signing
from .options import PATH_TYPE, Group
from .streams import attended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.sandbox.levels import Policy

    from .options import Options

PATH = click.argument("path", default=".", type=PATH_TYPE)
WHEELS = click.option(
    "--wheels", metavar="DIR", type=PATH_TYPE, help="Folder of its dependencies' wheels, instead of PATH/wheels."
)


@click.group("driver", cls=Group)
def driver() -> None:
    """Write a driver: scaffold, check, test, publish, link."""


def _policy(options: Options) -> Policy:
    from dragoman.settings import read_settings

    return options.sandbox or read_settings(options.paths().settings).sandbox


@driver.command("new")
@click.argument("name")
@click.option("--type", "database_type", metavar="TYPE", help="The database type it serves; by default NAME.")
@click.option("--port", type=click.IntRange(1, 65535), required=True, help="The usual port of its servers.")
@click.option(
    "--kind",
    type=click.Choice(["tables", "documents", "timeseries", "keyvalue", "vectors"]),
    default="tables",
    show_default=True,
    help="What to begin with: tables that are only read; documents, keys with values or records with vectors, with "
    "filters, edits and a console; or metrics, which are read by ranges of time.",
)
@click.option(
    "--auth",
    type=click.Choice(["none", "username-password", "api-key", "bearer"]),
    multiple=True,
    help="An auth method of its form, repeatable; the first is the default.",
)
@click.option("--tls", is_flag=True, help="Its form offers TLS.")
@click.pass_obj
def new(
    options: Options, name: str, database_type: str | None, port: int, kind: str, auth: tuple[str, ...], tls: bool
) -> None:
    """Create the folder of a new driver, which passes check and test unchanged."""
    from dragoman.authoring.scaffold import scaffold
    from dragoman.plugins.registries import Registries
    from dragoman_registry.client.installed_drivers import Store

    paths = options.paths()
    folder = scaffold(
        name,
        type=database_type or name,
        port=port,
        kind=kind,
        auth=auth,
        tls=tls,
        into=Path(),
        registries=Registries(paths).open(),
        store=Store(paths.data),
    )
    package = folder.name.replace("-", "_")
    listing = f"{package}/driver.json, {package}/driver.py, tests/test_conformance.py"
    text = f"created {folder}: {listing}; it passes check and test unchanged"
    options.result({"created": str(folder), "files": sorted(str(f) for f in folder.rglob("*") if f.is_file())}, text)


@driver.command("check")
@click.argument("path", default=".", metavar="[PATH|FILE.whl]", type=PATH_TYPE)
@WHEELS
@click.pass_obj
def check(options: Options, path: Path, wheels: Path | None) -> int | None:
    """Check a driver, given as a folder or a wheel, for all known faults, some of which only the sandbox shows.

    A folder is built first: its build backend runs with your rights, outside the sandbox. Code of a finished wheel
    runs only in the sandbox, so check a wheel if you do not trust the author.
    """
    import anyio

    from dragoman.authoring import check as checks
    from dragoman.authoring.wheel_build import built, finished

    wheel = path.suffix == ".whl" and not path.is_dir()
    if not wheel:
        options.say("note: this runs the folder's build backend with your rights; check a FILE.whl to avoid that")
    with finished(path, wheels=wheels) if wheel else built(path, wheels=wheels) as build:
        outcome = anyio.run(partial(checks.check, build, policy=_policy(options), cache=options.paths().cache))
    rules, faults = len(checks.rules()), len(outcome.faults)
    document: dict[str, Any] = {
        "wheel": build.wheel.name, "sha256": build.report.sha256, "rules": rules, "faults": outcome.faults,
        "sandbox": outcome.sandbox, "import_seconds": outcome.import_seconds,
    }  # fmt: skip
    options.listing(document, [], [[fault.code, str(fault)] for fault in outcome.faults])
    if not options.json:
        level = f" · sandbox {outcome.sandbox}" if outcome.sandbox else " · not tried in the sandbox"
        click.echo(f"check: {rules} rules, {faults} faults{level}")
    return FAILED if faults else None


@driver.command("test")
@PATH
@WHEELS
@click.option("--live", metavar="FILE.json", type=PATH_TYPE, help="A list of real servers to test on as well.")
@click.option("-s", "passthrough", is_flag=True, help="Show what tests and driver print and log, as they do.")
@click.pass_obj
def test(options: Options, path: Path, wheels: Path | None, live: Path | None, passthrough: bool) -> int | None:
    """Run the conformance tests in the sandbox, on the author's fake and on the listed servers.

    The sandbox level is the strongest of this machine, and the result names it; --sandbox require refuses to test
    below full.
    """
    from dragoman.authoring.conformance_run import REPORT, run_conformance, shortfall
    from dragoman.authoring.wheel_build import built

    with built(path, wheels=wheels) as build:
        tested, output = run_conformance(build, policy=_policy(options), live=live, passthrough=passthrough)
    if not (tested.passed or passthrough):
        for line in output.rstrip().splitlines():
            options.say(line)
    reasons = [*tested.failures, *(f"it tried to reach {address}" for address in tested.denied)]
    options.listing(tested, [], [["failed", line] for line in gathered(reasons)])
    if not options.json:
        click.echo(f"{tested} · {REPORT}")
    if not tested.passed and not reasons:
        reason, hint = shortfall(tested, path)
        options.say(f"{reason}; try: {hint}")
    return None if tested.passed else FAILED


def gathered(failures: Sequence[str]) -> list[str]:
    """Return the first line of each failure, and of those with the same reason only the first, with their number.

    Args:
        failures: Each as ``TEST on ENGINE: REASON``.
    """
    alike: dict[str, list[str]] = {}
    for failure in failures:
        alike.setdefault(failure.partition("\n")[0].partition(": ")[2], []).append(failure.partition("\n")[0])
    return [first + (f" (and so {len(others)} more)" if others else "") for first, *others in alike.values()]


@driver.command("key")
@click.argument("file", type=PATH_TYPE)
@click.option(
    "--hardware", metavar="URI", default="", help="Refer to a key in hardware: hsm:2?label=TOKEN, or hv:NAME."
)
@signing
@click.pass_obj
def key(options: Options, file: Path, hardware: str) -> None:
    """Create a key for signing your drivers; keep FILE secret, and send FILE.pub to a registry's operator."""
    from dragoman_registry.trust.keys import own_key
    from dragoman_registry.trust.signers import PUBLIC

    key_file = own_key(file, new=True, hardware=hardware)
    options.result(
        {"key": str(key_file), "public": str(key_file.with_suffix(PUBLIC))},
        f"made {key_file} and {key_file.stem}{PUBLIC}",
    )


@driver.command("publish")
@PATH
@WHEELS
@click.option("--to", required=True, metavar="DIR", type=PATH_TYPE, help="The registry.")
@click.option("--sign", metavar="KEY", type=PATH_TYPE, help="The key to sign with; by default your own.")
@click.option("--dry-run", is_flag=True, help="Do everything except writing.")
@signing
@click.pass_obj
def publish(options: Options, path: Path, wheels: Path | None, to: Path, sign: Path | None, dry_run: bool) -> None:
    """Build, check, test, sign and publish the driver into a registry folder; a published version never changes."""
    from dragoman.authoring.publish import publish as run

    own = options.paths().config / "author.pem"
    done = run(path, to=to, wheels=wheels, dry_run=dry_run, policy=_policy(options), sign=sign, own=own)
    for note in done.notes:
        options.say(f"note: {note}")
    tail = "" if dry_run else f" · open {to / 'index.html'}"
    options.result(done, f"{done.state} {done.plugin} {done.version} (sha256 {done.sha256[:4]}…){tail}")


def _may(options: Options, hook: str, subject: str) -> None:
    """Ask the automations about a change of installed drivers that needs no runtime."""
    import anyio

    from dragoman_api.events import Call

    async def ask() -> None:
        async with options.runtime() as runtime:
            await runtime.ask(Call(hook=hook, object=subject, writes=True, unattended=not attended()))

    anyio.run(ask)


@driver.command("link")
@PATH
@WHEELS
@click.pass_obj
def link(options: Options, path: Path, wheels: Path | None) -> None:
    """Run the driver from its folder, in the sandbox, until it is unlinked (developer mode)."""
    from dragoman.authoring.check import link as run
    from dragoman_registry.client.installed_drivers import Store

    _may(options, "install_plugin", str(path))
    generation = run(path, store=Store(options.paths().data), wheels=wheels, policy=_policy(options))
    options.say("note: link it again after changing driver.json; each opening reads the current code")
    options.result(
        {"linked": generation.plugin, "path": generation.registry},
        f"linked {generation.plugin} {generation.version} to {generation.registry}",
    )


@driver.command("unlink")
@click.argument("id_", metavar="ID")
@click.pass_obj
def unlink(options: Options, id_: str) -> None:
    """End developer mode for a driver."""
    from dragoman_registry.client.installed_drivers import Store

    _may(options, "remove_plugin", id_)
    Store(options.paths().data).links.remove(id_)
    options.result({"unlinked": id_}, f"unlinked {id_}")
