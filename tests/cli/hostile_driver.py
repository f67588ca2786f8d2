"""A driver that answers what could hurt its host; the object's name says with what."""

from __future__ import annotations

import random

import dragoman_worker.values
from dragoman_api import hookimpl
from dragoman_api.cells import Json
from dragoman_api.changes import HttpRequest
from dragoman_api.columns import Column, ColumnKind, Condition, ConditionLevel, Description, Note, Object, ObjectList
from dragoman_api.connections import Health, Server, ServerNode, ServerStatus
from dragoman_api.console import Answer, AnswerKind, ConsoleRequest
from dragoman_api.errors import QueryError, TrustError
from dragoman_api.exports import ExportPart
from dragoman_api.filters import CompiledFilter, Explanation
from dragoman_api.grid import Page

WANTED = "".join(random.Random(1).choices("abcdefghijklmnop", k=3_900))
DEEP = "[" * 100_000 + "]" * 100_000
CELLS = {
    "deep": Json(DEEP),
    "digits": int("7" * 4_000),
    "long": Json("7" * 100_000),
    "surrogate": "\ud800",
    "nan": float("nan"),
    "infinite": float("inf"),
    "zero": -0.0,
    "escapes": "\x1b[2J\x9b31m\u202e",
    "formula": "=1+1",
    "liar": Json('{"a": 1}\x1b[2J'),
}
ROWS = {
    "deep": b'{"a":' + DEEP.encode() + b"}\n",
    "digits": b'{"a":' + b"7" * 5_000 + b"}\n",
    "far": b'{"a":1e99999999999999999999}\n',
    "minus": b'{"a":-1e-99999999999999999999}\n',
    "text": b'{"a":"\xff\xfe"}\n',
    "list": b"[1]\n",
    "half": b'{"a":\n',
    "keys": b"{" + b",".join(b'"%d":1' % at for at in range(300_000)) + b"}\n",
    "formulas": b'{"a":"=1+1"}\n{"a":"-5"}\n{"a":-5}\n{"a":"+cmd|x"}\n{"a":"@x\\ty"}\n{"a":"\\t=1"}\n{"a":"x"}\n',
}


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        dragoman_worker.values._MAX_BITS = 10**9  # its own half of the wire does what it wants
        return Server("Hostile", "1")

    @hookimpl
    async def ping(self):
        return Health(ok=True)

    @hookimpl
    async def list_objects(self, request):
        conditions = [Condition(f"up\x1b[2J\u202e{'!' * 10_000}", ConditionLevel.GOOD), None]
        return ObjectList(objects=[Object(name, state=conditions[at > 0]) for at, name in enumerate(CELLS)])

    @hookimpl
    async def read_status(self):
        word = "\x1b[2J\u202eup"
        nodes = [ServerNode(name=word, state=Condition(word), roles=word, version=word, rows=7, disk=1)] * 5_000
        return ServerStatus(nodes=nodes, objects={word: Condition(word)})

    @hookimpl
    async def describe_object(self, name):
        names = [WANTED[at:] + WANTED[:at] for at in range(1, 3_900)] if name == "near" else ["a"]
        columns = [Column(name=each, type="text", kind=ColumnKind.TEXT, path=("a",)) for each in names]
        return Description(object=name, columns=columns)

    @hookimpl
    async def compile_filter(self, request):
        return CompiledFilter(object=request.object, body="", rows=[Explanation(row=7, clause="x")])

    @hookimpl
    async def fetch_page(self, request):
        if request.object == "near":
            raise QueryError("there is no such column", details={"column": WANTED})
        if request.object == "trust":
            raise TrustError(
                "it was changed\n  try: rm -rf /", hint="dragoman registry add https://evil.example\x1b[2J"
            )
        notes = []
        if request.object == "noted":
            notes = [Note(code="n\n", reason="said\n  try: this", hint="dragoman that\n  try: other", hint_from="host")]
        cell = CELLS.get(request.object, "x")
        if request.object == "toolong":
            cell = 10**4_300
        return Page(columns=[Column(name="a", type="text")], cells=[[cell]], notes=notes, total=1)

    @hookimpl
    async def fetch_cell(self, request):
        return CELLS[request.key.object]

    @hookimpl
    async def parse_console(self, text):
        return [ConsoleRequest(request=HttpRequest("GET", "/"), writes=False, line=-5)]

    @hookimpl
    async def execute_console(self, request):
        return Answer(kind=AnswerKind.JSON, status=200, request=request.request, text=DEEP, title="x\n  try: y")

    @hookimpl
    async def export_rows(self, request):
        name, _, lie = request.object.partition("-")
        data = ROWS[name]
        rows = {"": data.count(b"\n"), "more": 1_000, "none": 0}.get(lie, data.count(b"\n"))
        if lie == "torn":
            data = data[:-1]
        if lie == "blank":
            data += b"\n"
        checkpoint = "same" if lie == "stuck" else None
        yield ExportPart(data=data, rows=rows, checkpoint=checkpoint, total=100 if lie == "total" else None)
        if lie == "stuck":
            yield ExportPart(data=data, rows=rows, checkpoint=checkpoint)
