"""The mutants that no test has to kill, each with its reason."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .mutating import Mutant

FILE = Path(__file__).parent / "accepted.toml"


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A survivor and why it may survive.

    Attributes:
        module: Its dotted name.
        operator: Name of what changed it.
        line: The line before the change, without indentation.
        mutant: The same line after it.
        why: What makes it no fault.
    """

    module: str
    operator: str
    line: str
    mutant: str
    why: str

    def is_that(self, mutant: Mutant) -> bool:
        """Compare by what was changed, wherever in the module it stands."""
        same = mutant.module == self.module and mutant.operator == self.operator
        return same and mutant.change == (self.line, self.mutant)


def accepted(file: Path = FILE) -> list[Accepted]:
    """Read the file."""
    return [Accepted(**each) for each in tomllib.loads(file.read_text(encoding="utf-8")).get("survivor", [])]
