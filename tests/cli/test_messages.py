"""The wording of what users meet most, held in one golden file: other tests compare codes and values.

After a deliberate change of wording: ``DRAGOMAN_GOLDEN=write python -m pytest tests/cli/test_messages.py``, then read
the difference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

GOLDEN = Path(__file__).with_name("messages.golden")

READING = [
    "page shop boks",
    "page shop books --columns prize",
    "page shop books --sort -prise",
    "page shop books --last --offset 3",
    "page shop books --limit 0",
    "page shop books --offset -1",
    "page shop books --filter 'price ~~ 3'",
    "cell shop books 9 title",
    "count shop books --filter 'title ='",
    "export shop books --resume",
    "export shop books --keep-alive soon",
    "export shop books --format parquet",
    "insert shop books --set title",
    "copy shop books shop boks --yes",
    "copy shop boks shop books --yes",
    "update shop books 1",
    "drop shop books",
    "console shop",
]
CHANGING = [
    "connections add other --type demo",
    "connections add third --type demo --port seven",
    "connections remove shop",
    "connections remove nosuch",
    "connections edit shop --dialect sql",
    "plugins browse nothing-like-it",
    "plugins install nosuch",
    "plugins remove demo",
    "plugins show nosuch",
    "plugins rollback demo",
    "plugins update",
    "plugins verify",
    "plugins repair",
    "plugins sync --frozen",
    "plugins gc",
    "registry remove nosuch",
    "run nosuch.py",
    "connections add shop --type demo",
    "connections add 'no name' --type demo",
    "connections list --no-such-option",
]
EMPTY = [
    "connections list",
    "connections test shop",
    "plugins list",
    "connections add first --type demo --no-connect",
    "plugins sync",
]


def told(machine, lines):
    """Run command lines, and return what each of them said, with this run's folders and times left out."""
    parts = []
    for line in lines:
        ended = machine(f"dragoman {line}", code=None)
        text = ended.said.replace(str(machine.home), "HOME")
        text = re.sub(r"\d+\.\d+ kB\b", "0.0 kB", text)
        text = re.sub(r"sandbox (full|partial|process)\b.*", "sandbox LEVEL", text)
        text = re.sub(r"\d+\.\d+ s\b", "0.0 s", re.sub(r"(?<=\s)/\S*/(?=[\w.]+)", "…/", text))
        parts.append(f"$ dragoman {line}\n{text}[{ended.code}]\n")
    return "\n".join(parts)


def test_messages_are_worded_as_the_golden_file_has_them(shop, own, empty):
    """Exit codes too; a changed line is read before it is accepted."""
    said = "\n".join((told(shop, READING), told(own, CHANGING), told(empty, EMPTY)))
    if os.environ.get("DRAGOMAN_GOLDEN") == "write":
        GOLDEN.write_text(said, encoding="utf-8")
    assert said == GOLDEN.read_text(encoding="utf-8")
