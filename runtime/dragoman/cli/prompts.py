"""Questions to a person at a terminal; waiting for an answer does not block the event loop and can be interrupted."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import click

from dragoman_api.errors import ConfigurationError

from .output import plain, say
from .streams import attended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dragoman.automations.consent import Question


async def consents(question: Question, *, yes: bool, asks: bool) -> bool:
    """Answer a question of the runtime or of a command: as `--yes` does, or as the person at the terminal.

    Args:
        question: The question; what concerns a person alone, `--yes` does not answer.
        yes: The command line has `--yes`.
        asks: Whether a person may be asked; without, the answer is no.
    """
    from dragoman.automations.consent import PERSONAL

    if question.subject in PERSONAL:
        if not (asks and attended()):
            return False
    elif yes:
        return True
    for detail in question.details:
        say(detail)
    if not question.object:
        return await confirm(plain(question.text), default=question.default)
    name = await ask(f"{plain(question.text)}  Type the object's name")
    if name != question.object:
        say(f"{name!r} is not {question.object!r}")
    return name == question.object


async def ask(text: str, *, default: str = "", hidden: bool = False, end: str = ":") -> str:
    """Ask for one line; an empty answer means the default; a hidden one is not shown while it is typed."""
    with _silent() if hidden and sys.stdin.isatty() else nullcontext():
        _show(f"{text}{f' [{default}]' if default else ''}{end} ")
        return (await _line(text)).strip() or default


async def confirm(text: str, *, default: bool = False) -> bool:
    """Ask for yes or no."""
    while True:
        _show(f"{text} {'[Y/n]' if default else '[y/N]'} ")
        answer = (await _line(text)).strip().lower()
        if answer in ("", "y", "yes", "n", "no"):
            return default if not answer else answer.startswith("y")
        say(f"{answer!r} is neither yes nor no")


async def choose(text: str, labels: Sequence[str], *, default: int | None = None) -> int:
    """Ask for one of several, by number or by the beginning of its label, and return its index."""
    offered = "  ".join(f"{number}) {label}" for number, label in enumerate(labels, 1))
    while True:
        answer = await ask(f"{text}: {offered}", default="" if default is None else labels[default], end=" >")
        if answer.isdecimal() and 1 <= int(answer) <= len(labels):
            return int(answer) - 1
        exact = [at for at, label in enumerate(labels) if label == answer]
        near = exact or [at for at, label in enumerate(labels) if label.lower().startswith(answer.lower())]
        if answer and len(near) == 1:
            return near[0]
        say(_misfit(answer, [labels[at] for at in near], len(labels)))


def _misfit(answer: str, near: Sequence[str], count: int) -> str:
    """Return why an answer chooses nothing."""
    if not answer:
        return f"choose one by its number, 1 to {count}, or by the beginning of its name"
    if answer.isdecimal():
        return f"there is no choice {answer}: the numbers are 1 to {count}"
    return f"{answer!r} fits {' and '.join(near)}" if near else f"{answer!r} is not one of them"


def _show(prompt: str) -> None:
    sys.stderr.write(prompt)
    sys.stderr.flush()


async def _line(question: str) -> str:
    if not sys.stdin.isatty():
        data: bytes = await anyio.to_thread.run_sync(sys.stdin.buffer.readline, abandon_on_cancel=True)
    else:
        await anyio.wait_readable(sys.stdin)  # input() in a thread could not be interrupted
        data = os.read(sys.stdin.fileno(), 65536)  # a terminal hands over one line at a time
    if data:
        return data.decode(errors="replace").rstrip("\r\n")
    if sys.stdin.isatty():
        raise click.Abort
    hint = "use options instead of answers, see --help"
    raise ConfigurationError(f"cannot ask for {question!r}: not a terminal", hint=hint)


@contextmanager
def _silent() -> Iterator[None]:
    restore = _hide_typing()
    try:
        yield
    finally:
        restore()
        sys.stderr.write("\n")


def _hide_typing() -> Callable[[], object]:
    """Switch the echo of the terminal off; return a function that switches it on again."""
    import termios

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    silent = [*before]
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSADRAIN, silent)
    return lambda: termios.tcsetattr(terminal, termios.TCSADRAIN, before)
