"""The tutorial notebook runs from its first cell to its last on the sample cluster, as Jupyter would run it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.connections.saved_connections import Connections, SavedConnection
from dragoman.folders import find_paths
from stranger import serve_sample

NOTEBOOK = Path(__file__).parents[2] / "docs/tutorial/tables.ipynb"
RUN = """
import ast, json, sys

namespace, shown = {}, []
for source in json.load(sys.stdin):
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)
    value = eval(compile(last, "cell", "eval"), namespace) if last else None
    shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
print(json.dumps(shown))
"""


def sources():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_the_notebook_holds_no_output_and_its_first_cell_needs_three_lines():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert all(not cell.get("outputs") for cell in notebook["cells"])
    assert len(ast.parse(sources()[0]).body) == 3
    assert notebook["nbformat"] == 4


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_every_cell_of_the_notebook_runs_and_shows_what_the_text_says(home, tmp_path):
    with serve_sample() as port:
        values = {"host": "127.0.0.1", "port": port}
        Connections(find_paths()).save(SavedConnection(name="shop", type="elasticsearch", values=values))
        command = [sys.executable, "-c", RUN]
        done = subprocess.run(command, cwd=tmp_path, input=json.dumps(sources()), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = dict(zip(sources(), json.loads(done.stdout.splitlines()[-1]), strict=True))
    assert "<table" in shown[sources()[0]]
    assert "DataType(int64)" in (types := shown[sources()[2]])
    assert "timestamp[ns, tz=UTC]" in types
    assert "list<" in types
    assert "values-misfit" in shown[sources()[3]]
    [counted] = [shown[source] for source in sources() if "from batches" in source]
    assert counted == "[(12003,)]"
    assert (tmp_path / "orders.parquet.manifest.json").exists()
