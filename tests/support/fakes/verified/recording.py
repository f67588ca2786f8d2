"""The recorded answers of real servers: one line per request, equal answers of several releases together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("recorded.ndjson")
STRANGERS = Path(__file__).with_name("recorded-strangers.ndjson")
# Indices of the table; a server on which they were left behind is cleaned first.
INDICES = ("vf-a", "vf-b", "vf-e", "vf-f", "vf-g", "vf-h", "vf-new", "vf-v", "vf-x")

Answers = dict[str, Any]


def read(path: Path) -> dict[str, Answers]:
    """Return the answers by release and request."""
    found: dict[str, Answers] = {}
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        for group in entry["answers"]:
            for release in group["releases"]:
                found.setdefault(release, {})[entry["request"]] = group["answer"]
    return found


def write(path: Path, recorded: dict[str, Answers]) -> None:
    """Write the answers of all releases, oldest release first."""
    recorded = {number: recorded[number] for number in sorted(recorded, key=lambda text: [*map(int, text.split("."))])}
    lines = []
    for request in dict.fromkeys(name for answers in recorded.values() for name in answers):
        groups: dict[str, list[str]] = {}
        for release, answers in recorded.items():
            if request in answers:
                groups.setdefault(json.dumps(answers[request], ensure_ascii=False), []).append(release)
        listed = [{"releases": releases, "answer": json.loads(text)} for text, releases in groups.items()]
        lines.append(json.dumps({"request": request, "answers": listed}, ensure_ascii=False) + "\n")
    path.write_text("".join(lines))
