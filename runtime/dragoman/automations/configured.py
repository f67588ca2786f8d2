"""The automations that run according to `config.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError
from dragoman_api.wording import failure

from .audit import Audit
from .call_limits import Limits
from .cut_cell_edits import CutCells
from .read_only import ReadOnly

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from dragoman.questions import Confirm
    from dragoman.settings import Guards
    from dragoman_api.masking import Mask

GROUP = "dragoman.automations"
"""Entry points that `config.toml` may name; they never run only because they are installed."""


def shipped(guards: Guards, *, confirm: Confirm | None, log: Path, mask: Mask) -> list[object]:
    """Make the built-in automations that the settings switch on for at least one connection.

    Args:
        guards: Their settings in `config.toml`.
        confirm: Asks a person; None when unattended.
        log: The file of the audit.
        mask: Removes secrets from it.
    """
    automations: list[object] = []
    if guards.any("read_only"):
        automations.append(ReadOnly(lambda name: guards.of(name).read_only, confirm=confirm))
    if guards.any("cut_cells"):
        automations.append(CutCells(lambda name: guards.of(name).cut_cells))
    if guards.any("limits"):
        automations.append(Limits(lambda name: guards.of(name).limits))
    if guards.any("audit"):
        automations.append(Audit(log, lambda name: guards.of(name).audit, mask=mask))
    return automations


def named(names: Sequence[str]) -> list[object]:
    """Load the entry points of these names.

    Raises:
        ConfigurationError: One is not installed, or cannot be loaded.
    """
    if not names:
        return []
    import importlib.metadata

    entry_points = {entry.name: entry for entry in importlib.metadata.entry_points(group=GROUP)}
    if missing := [name for name in names if name not in entry_points]:
        hint = f"installed are: {', '.join(sorted(entry_points)) or 'none'}"
        text = f"config.toml names automations that are not installed: {', '.join(missing)}"
        raise ConfigurationError(text, hint=hint)
    return [_load(entry_points[name]) for name in names]


def _load(entry: EntryPoint) -> object:
    try:
        return entry.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the module may raise anything, an exit included
        text = f"the automation {entry.name} of config.toml cannot be loaded from {entry.value}: {failure(error)}"
        raise ConfigurationError(text, hint="correct it, or remove it from config.toml") from error
