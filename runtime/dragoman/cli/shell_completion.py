"""Completion in bash, zsh and fish: the scripts, and how each shell gets its suggestions.

A name of a server is one word of a command line, whatever it holds: bash inserts it as it stands, so it is quoted here.
zsh and fish quote it themselves. Their scripts are our own, since those of click know nothing of a word that goes on,
or of an option and its value in one word.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from click.shell_completion import BashComplete, FishComplete, ZshComplete, add_completion_class, get_completion_class

from dragoman_api.errors import DragomanError

from .output import width_of
from .word_completion import split, suggestions

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click
    from click.shell_completion import CompletionItem, ShellComplete

    from .options import Options

VARIABLE = "_DRAGOMAN_COMPLETE"
"""The variable by which a script asks for suggestions."""

LISTS = "63"
"""What bash says (COMP_TYPE) if it only lists what fits: there is room for a few words about each."""

_SPECIAL = re.compile(r"[^\w@%+,./:=-]")
_BREAKS = re.compile(r"[=:<>|&;()]+")

_BASH = """\
_dragoman_complete() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
            nospace) compopt -o nospace ;;
            =*) COMPREPLY+=("${line#=}") ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORD="${COMP_WORDS[COMP_CWORD]}" COMP_TYPE="$COMP_TYPE" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F _dragoman_complete %(prog_name)s
"""

_ZSH = """\
#compdef %(prog_name)s
_dragoman_complete() {
    local kind word about
    local -a whole told open opened
    while IFS=$'\\t' read -r kind word about; do
        case $kind in
            word) whole+=("$word"); told+=("$word${about:+  ($about)}") ;;
            open) open+=("$word"); opened+=("$word${about:+  ($about)}") ;;
            file) [[ -z $about ]] || compset -P '*='; _files ;;
            dir) [[ -z $about ]] || compset -P '*='; _files -/ ;;
        esac
    done < <(%(complete_var)s=zsh_complete COMP_LINE="${(j: :)words[1,CURRENT-1]} $QIPREFIX$IPREFIX$PREFIX" \\
        "${(Q)words[1]/#\\~/$HOME}" 2>/dev/null)
    (( ! $#whole )) || compadd -U -V dragoman -l -d told -a whole
    (( ! $#open )) || compadd -U -S '' -V dragoman -l -d opened -a open
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _dragoman_complete "$@"
else
    compdef _dragoman_complete %(prog_name)s
fi
"""

_FISH = """\
function _dragoman_complete
    set -l line (commandline -cp | string collect)
    for found in (env %(complete_var)s=fish_complete COMP_LINE=$line %(prog_name)s 2>/dev/null)
        set -l parts (string split \\t -- $found)
        switch $parts[1]
            case file
                string join \\n -- $parts[3](__fish_complete_path $parts[2])
            case dir
                string join \\n -- $parts[3](__fish_complete_directories $parts[2])
            case '*'
                printf '%%s\\t%%s\\n' $parts[2] $parts[3]
        end
    end
end
complete --command %(prog_name)s --no-files --keep-order --arguments '(_dragoman_complete)'
"""


class _Known:
    """What the shells share: suggestions that are looked up in this home alone."""

    cli: click.Command
    ctx_args: Any

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return how a word may continue; nothing if what is kept cannot be read."""
        from .options import Options

        options: Options = self.ctx_args.get("obj") or Options()
        try:
            return suggestions(self.cli, options, args, incomplete)
        except (DragomanError, OSError):
            return []


@add_completion_class
class Bash(_Known, BashComplete):
    """Completion in bash 4.4 or newer."""

    source_template = _BASH

    def complete(self) -> str:
        """Return a line for each suggestion, and for what bash shall do by itself."""
        words, last = split(os.environ.get("COMP_LINE", ""))
        while words and "=" in words[0]:  # variables before the command
            words.pop(0)
        items = self.get_completions(words[1:], last.text)
        lines = sorted({item.type for item in items} - {"plain"})
        plain = [item for item in items if item.type == "plain"]
        insertions = [self._inserted(item.value, last.text, last.quote) for item in plain]
        choices = [(text, item) for text, item in zip(insertions, plain, strict=True) if text is not None]
        if os.environ.get("COMP_TYPE") == LISTS and len(choices) > 1:
            return "\n".join(_listed([(item.value, item.help or "") for _, item in choices]))
        if len(choices) == 1 and choices[0][1].goes_on:
            lines.append("nospace")
            if last.quote:  # a second one keeps bash from closing the quote
                lines.append(f"={choices[0][0]}…")
        return "\n".join([*lines, *(f"={text}" for text, _ in choices)])

    def _inserted(self, value: str, typed: str, quote: str) -> str | None:
        """Return what bash puts in place of the word; None if it cannot stand in the quotes that are open."""
        if quote:
            unsafe = quote if quote == "'" else '"$`\\!'
            return None if any(letter in value for letter in unsafe) else value
        word = os.environ.get("COMP_WORD", "")
        word = "" if _BREAKS.fullmatch(word) else word
        if len(word) < len(typed) and typed.endswith(word) and value.startswith(typed):
            value = value[len(typed) - len(word) :]  # bash replaces what follows the last = or : alone
        return _SPECIAL.sub(lambda match: f"\\{match[0]}", value)


def _listed(items: Sequence[tuple[str, str]]) -> list[str]:
    widest = min(max(width_of(value) for value, _ in items), 40)
    return [
        f"={value}{' ' * (widest - width_of(value))}{f'  ({help_text})' if help_text else ''}"
        for value, help_text in items
    ]


class _Lines(_Known):
    """What zsh and fish share: a line for each suggestion, of kind, word and remark, with tabs between them."""

    def complete(self) -> str:
        """Return the lines; that of a file or a folder holds what of its path is typed, and the option before it."""
        words, last = split(os.environ.get("COMP_LINE", ""))
        while words and "=" in words[0]:  # variables before the command
            words.pop(0)
        option = last.text[: last.text.find("=") + 1] if last.text.startswith("--") else ""
        lines = []
        for item in self.get_completions(words[1:], last.text):
            if item.type == "plain":
                parts = ("open" if item.goes_on else "word", f"{option}{item.value}", item.help or "")
            else:
                parts = (item.type, item.value, option)
            lines.append("\t".join(" ".join(part.split("\t")) for part in parts))
        return "\n".join(lines)


@add_completion_class
class Zsh(_Lines, ZshComplete):
    """Completion in zsh."""

    source_template = _ZSH


@add_completion_class
class Fish(_Lines, FishComplete):
    """Completion in fish."""

    source_template = _FISH


def script(cli: click.Command, shell: str) -> str:
    """Return the script that a shell evaluates to complete the words of dragoman."""
    kind: type[ShellComplete] | None = get_completion_class(shell)
    assert kind is not None
    return kind(cli, {}, "dragoman", VARIABLE).source()
