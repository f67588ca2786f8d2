"""What `--json` prints keeps its members and their kinds; `tests/stability/baseline/json.txt` holds them."""

from __future__ import annotations

import json

from stability import promised

READING = (
    "objects shop", "describe shop books", "page shop books", "page shop books --filter 'price > 3' --explain",
    "count shop books", "console shop 'GET /'", "cell shop books 1 title",
    "update shop books 1 --set title=new --dry-run", "delete shop books 1 --dry-run",
    "update shop books 1 --set title=new --yes", "insert shop books --set title=new --dry-run",
    "drop shop books --dry-run", "connections list", "connections show shop", "connections test shop",
    "plugins list", "plugins browse", "plugins show demo", "plugins verify", "plugins why demo", "plugins sync",
    "plugins update --dry-run", "plugins gc --dry-run", "queries list shop", "registry list", "doctor",
)  # fmt: skip
WRITING = (
    "queries save shop @dear books --filter 'price > 3'", "queries show shop @dear", "queries list shop",
    "queries remove shop @dear", "export shop books -o $FILE.ndjson", "import shop books $FILE.ndjson --dry-run",
    "import shop books $FILE.ndjson", "apply shop $FILE.changes --dry-run", "apply shop $FILE.changes",
    "plugins pin demo", "plugins unpin demo", "plugins disable demo", "plugins enable demo",
    "plugins install demo --version 1.0.0", "plugins rollback demo", "plugins remove demo --yes",
    "connections remove shop --yes", "registry remove team --yes",
)  # fmt: skip
FAILING = ("page nowhere books", "page shop books --filter 'nothing = 1'", "page shop", "plugins show nothing")


def _facts(machine, commands, **texts):
    for line in commands:
        ended = machine(f"dragoman {line} --json".replace("$FILE", texts.get("file", "")), code=None)
        name = " ".join(word for word in line.replace(texts.get("file") or "\0", "").split("'")[0].split())
        yield f"{name}: ends with {ended.code}"
        for document in _documents(ended.out if ended.out.strip() else ended.err):
            yield from (f"{name}: {fact}" for fact in promised.shape(document))


def _documents(text):
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:  # one a line
        return map(json.loads, text.splitlines())


def test_programs_read_the_members_that_they_were_written_for(shop, own, tmp_path):
    file = str(tmp_path / "rows")
    (tmp_path / "rows.changes").write_text('{"op": "update", "object": "books", "id": "1", "set": {"title": "new"}}\n')
    facts = [*_facts(shop, READING), *_facts(own, WRITING, file=file), *_facts(own, FAILING)]
    promised.kept("json.txt", facts)
