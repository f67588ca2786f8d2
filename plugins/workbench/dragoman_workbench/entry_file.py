"""The file that leads a browser into the workbench: only this user can read it, so the token is in no argument list."""

from __future__ import annotations

import html
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from dragoman_api.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


class EntryFile:
    """A page that redirects to the workbench with a token in the address's fragment.

    Attributes:
        path: Its path.
    """

    def __init__(self, folder: Path) -> None:
        """Make the folder, which only this user can enter.

        Raises:
            ConfigurationError: The folder cannot be made, or belongs to another user.
        """
        self._folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _expect_private(folder)
            for old in folder.glob("open-*.html"):
                if not _runs(old.stem.removeprefix("open-")):
                    old.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigurationError(f"{folder} cannot be used: {error.strerror}", hint="set DRAGOMAN_HOME") from error
        self.path = folder / f"open-{os.getpid()}.html"

    def write(self, address: str) -> None:
        """Write the file with an address that holds a new token.

        Raises:
            ConfigurationError: It cannot be written.
        """
        text = (
            '<!doctype html><meta charset="utf-8"><title>dragoman</title><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={html.escape(address)}">'
            f'<p><a href="{html.escape(address)}">Open the workbench</a></p>\n'
        )
        draft = self.path.with_name(f".{self.path.name}")
        try:
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
            draft.replace(self.path)
        except OSError as error:
            raise ConfigurationError(f"{self.path} cannot be written: {error.strerror}") from error

    def remove(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def _expect_private(folder: Path) -> None:
    """Close a folder to others."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        reason = f"{folder} belongs to another user, who could read the token"
        raise ConfigurationError(reason, hint="set DRAGOMAN_HOME")
    if stat.S_IMODE(status.st_mode) & 0o077:
        folder.chmod(0o700)


def _runs(process: str) -> bool:
    """Return whether a process runs, judged by its number; True if in doubt."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except OSError:
        return True
    return True
