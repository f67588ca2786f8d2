"""Texts that take over a page which puts them in the wrong way, by the way that it takes."""

from __future__ import annotations

HIT = "attacked(%d)"
_PARENT = "parent.attacked(%d)"
AWAY = "//attacker.invalid/%d"

MARKUP = [
    f"<img src=x onerror={HIT}>",
    f"<image src=x onerror={HIT}>",
    f"<img srcset=x onerror={HIT}>",
    f"<IMG/SRC/ONERROR={HIT}>",
    f"<svg onload={HIT}>",
    f"<svg><animate onbegin={HIT} attributeName=x dur=1s>",
    f"<svg><style></style><img src=x onerror={HIT}>",
    f"<video><source onerror={HIT}></video>",
    f"<audio src=x onerror={HIT}></audio>",
    f"<iframe onload={HIT}></iframe>",
    f"<iframe srcdoc='<script>{_PARENT}</script>'></iframe>",
    f"<iframe src='javascript:{_PARENT}'></iframe>",
    f"<details open ontoggle={HIT}>",
    f"<style onload={HIT}></style>",
    f"<style>@keyframes k{{}}</style><p onanimationstart={HIT} style='animation:k 1s'>",
    f"<input type=image src=x onerror={HIT}>",
    f"<input autofocus onfocus={HIT}>",
    f"<textarea autofocus onfocus={HIT}></textarea>",
    f"<p contenteditable autofocus onfocus={HIT}>x</p>",
    f"<noscript><p title='</noscript><img src=x onerror={HIT}>'></noscript>",
    f"<link rel=stylesheet href='data:text/css,' onload={HIT}>",
    f"<object data=x onerror={HIT}></object>",
]
"""Put in as markup."""

DOCUMENTS = [
    f"<script>{HIT}</script>",
    f"</title><script>{HIT}</script>",
    f"</textarea><script>{HIT}</script>",
    f"--><script>{HIT}</script>",
    f"]]><script>{HIT}</script>",
    f"<svg><script>{HIT}</script></svg>",
    f"<body onload={HIT}>",
]
"""Written into a document that is still being read."""

ATTRIBUTES = [
    f'"><img src=x onerror={HIT}>',
    f'" autofocus tabindex=1 onfocus={HIT} x="',
    f'" onanimationstart={HIT} style="animation:k 1s" x="',
]
"""Put between quotes in a tag."""

ADDRESSES = [
    f"javascript:{HIT}",
    f"JaVaScRiPt:{HIT}",
    f" javascript:{HIT}",
    f"java\nscript:{HIT}",
    f"javascript://%%0a{HIT}",
]
"""Used as the address of a link, which is clicked."""

CODE = [f"${{{HIT}}}", f"`+{HIT}+`", f"`;{HIT};`"]
"""Put between backquotes of a program."""

REQUESTS = [
    f"<img src={AWAY}>",
    f"<style>@import '{AWAY}'</style>",
    f"<link rel=stylesheet href={AWAY}>",
    f"<video poster={AWAY}></video>",
    f"<p style='background:url({AWAY})'>x</p>",
]
"""Put in as markup; they send a request to another host."""

WAYS = {
    "markup": MARKUP, "document": DOCUMENTS, "attribute": ATTRIBUTES, "address": ADDRESSES, "code": CODE,
    "request": REQUESTS,
}  # fmt: skip
ATTEMPTS: list[tuple[str, str]] = []
"""The way of each attempt and its text; the number in the text is its place here."""
for _way, _texts in WAYS.items():
    ATTEMPTS += [(_way, text % (len(ATTEMPTS) + at)) for at, text in enumerate(_texts)]
TEXTS = [text for _, text in ATTEMPTS]

_ADDRESSES = [text for way, text in ATTEMPTS if way == "address"]
_AWAY = [text.partition("//")[2].partition(">")[0].partition("'")[0] for way, text in ATTEMPTS if way == "request"]
MARKDOWN = [
    *(f"[an address](<{text}>)".replace("\n", "%0a") for text in _ADDRESSES),
    *(f"<{text.strip()}>".replace("\n", "%0a") for text in _ADDRESSES),
    *(
        f"[a reference][{at}]\n\n[{at}]: <{text}> 'title'".replace("java\n", "java")
        for at, text in enumerate(_ADDRESSES)
    ),
    *(f"![an image](//{text})" for text in _AWAY),
    *(f"![an image][away{at}]\n\n[away{at}]: //{text}" for at, text in enumerate(_AWAY)),
    *(f"| a | b |\n| - | - |\n| {text} | `x` |" for way, text in ATTEMPTS if way == "markup" and "|" not in text),
    "[data](data:text/html,<script>attacked(0)</script>)",
    "&lt;img src=x onerror=attacked(0)&gt; &#60;script>attacked(1)&#60;/script>",
    "```html\n<script>attacked(0)</script>\n```",
    "> " * 200 + "<img src=x onerror=attacked(0)>",
    "- " * 200 + "<img src=x onerror=attacked(0)>",
]
"""The attempts as a readme may hold them: links, references, images, tables, entities, and deep ones."""

UNPROTECTED = """
async ([way, text]) => {
  const frame = document.createElement('iframe');
  frame.src = 'about:blank';
  document.body.append(frame);
  const inside = frame.contentWindow;
  inside.attacked = window.attacked;
  const page = frame.contentDocument;
  page.open(); page.write('<!doctype html><style>@keyframes k{}</style><body>');
  if (way === 'document') { page.write(text); page.close(); }
  else page.close();
  frame.focus(); inside.focus();
  const host = page.body;
  if (way === 'markup' || way === 'request') host.innerHTML = text;
  if (way === 'attribute') host.innerHTML = `<p title="${text}">x</p>`;
  if (way === 'address') { const link = page.createElement('a'); link.href = text; host.append(link); link.click(); }
  if (way === 'code') { try { inside.eval('`' + text + '`'); } catch {} }
  for (const one of page.querySelectorAll('[autofocus]')) one.focus();
  const number = Number(/(?:attacked[(]|invalid[/])([0-9]+)/.exec(text)[1]);
  const until = performance.now() + (way === 'request' ? 300 : 3000);
  while (performance.now() < until && !window.hits.includes(number)) await new Promise((done) => setTimeout(done, 20));
  frame.remove();
}
"""
"""Puts a text into a page in the wrong way."""

DRIVER = """
from urllib.parse import quote

from dragoman_api import hookimpl
from dragoman_api.changes import HttpRequest, Outcome, Plan, PlannedRequest
from dragoman_api.columns import (
    Column, ColumnKind, Condition, ConditionLevel, Description, Note, Object, ObjectList, Role
)
from dragoman_api.connections import Health, Server, ServerNode, ServerStatus
from dragoman_api.console import Answer, AnswerKind, ConsoleRequest
from dragoman_api.errors import DragomanError
from dragoman_api.filters import CompiledFilter, Explanation
from dragoman_api.grid import Page, RowKey

TEXTS = __TEXTS__
NOTES = [Note(code="note", reason=text, hint=text) for text in TEXTS[:20]]
OPERATORS = ("=", "contains")


def columns():
    key = Column(name="id", type="text", kind=ColumnKind.TEXT, role=Role.KEY, operators=OPERATORS)
    typed = [
        Column(name=text, type=text, kind=ColumnKind.TEXT, operators=OPERATORS, reasons={"sort": text})
        for text in TEXTS
    ]
    return [key, *typed]


class Driver:
    @hookimpl
    async def connect(self, profile, http):
        return Server(TEXTS[0], TEXTS[1][:40], TEXTS[:20])

    @hookimpl
    async def ping(self):
        return Health(ok=False, reason=TEXTS[0], code="unwell")

    @hookimpl
    async def read_status(self):
        nodes = [ServerNode(name=text, state=Condition(text), roles=text, version=text, disk=1) for text in TEXTS]
        return ServerStatus(state=Condition(TEXTS[0]), nodes=nodes, objects=dict.fromkeys(TEXTS, Condition(TEXTS[0])),
                            notes=NOTES)

    @hookimpl
    async def list_objects(self, request):
        objects = [Object("fine", rows=len(TEXTS))]
        bad = ConditionLevel.BAD
        objects += [Object(text, rows=1, kind=text[:40], state=Condition(text, bad)) for text in TEXTS[1:]]
        objects += [Object(TEXTS[0], rows=1, kind=TEXTS[0][:40])]
        return ObjectList(objects=objects, notes=NOTES)

    @hookimpl
    async def describe_object(self, name):
        structure = __import__("json").dumps(dict(zip(TEXTS, TEXTS)))
        return Description(object=name, columns=columns(), structure=structure, notes=NOTES)

    @hookimpl
    async def compile_filter(self, request):
        if "fail" in str(request.rows[0].value):
            raise DragomanError(" ".join(TEXTS), hint=TEXTS[0], code="filter-refused")
        rows = [
            Explanation(row=at, clause=" ".join(TEXTS), exact=False, approximations=TEXTS, unlikely=TEXTS)
            for at in range(len(request.rows))
        ]
        return CompiledFilter(object=request.object, body="{}", rows=rows)

    @hookimpl
    async def fetch_page(self, request):
        if request.object != "fine":
            raise DragomanError(" ".join(TEXTS), hint=TEXTS[0], code="refused-by-server")
        ids = TEXTS[request.offset:request.offset + request.limit]
        return Page(
            columns=columns(),
            cells=[[text, *[text] * len(TEXTS)] for text in ids],
            keys=[RowKey("fine", text) for text in ids],
            notes=NOTES, total=len(TEXTS), offset=request.offset,
        )

    @hookimpl
    async def plan_change(self, request):
        sent = HttpRequest("POST", "/" + quote(TEXTS[0], safe=""), " ".join(TEXTS))
        return Plan(planned=[PlannedRequest(request=sent, changes=[0], statement=" ".join(TEXTS))], notes=NOTES)

    @hookimpl
    async def apply_change(self, plan):
        return [Outcome(change=0, status="failed", reason=" ".join(TEXTS), id=TEXTS[0])]

    @hookimpl
    async def parse_console(self, text):
        if "fail" in text.text:
            raise DragomanError(" ".join(TEXTS), hint=TEXTS[0], code="parse-failed")
        request = HttpRequest("GET", "/" + quote(TEXTS[0], safe=""))
        return [ConsoleRequest(request=request, writes=False, line=1)]

    @hookimpl
    async def execute_console(self, request):
        sent = HttpRequest("GET", "/" + quote(TEXTS[0], safe=""))
        figures = [Column(name=text, type="", kind=ColumnKind.OTHER) for text in TEXTS[4:]]
        groups = Page(columns=[columns()[0], *figures], cells=[[t, *range(len(figures))] for t in TEXTS])
        outer = Column(name=TEXTS[5], type="", kind=ColumnKind.OTHER, role=Role.KEY)
        nested = Page(
            columns=[columns()[0], outer, *figures[:1]],
            cells=[[t, f"2026-01-0{day}", day] for t in TEXTS[:20] for day in (1, 2)],
        )
        body = __import__("json").dumps(dict(zip(TEXTS, TEXTS)))
        last = Answer(kind=AnswerKind.TEXT, status=200, request=sent, text=" ".join(TEXTS), title=TEXTS[0])
        json = Answer(kind=AnswerKind.JSON, status=200, request=sent, text=body, title=TEXTS[1], next=last)
        return Answer(
            kind=AnswerKind.TABLE, status=200, request=sent, page=groups, notes=NOTES, title=TEXTS[2],
            failed=TEXTS[3],
            next=Answer(kind=AnswerKind.TABLE, status=200, request=sent, page=nested, title=TEXTS[6], next=json),
        )
"""
HOOKS = [
    "connect", "ping", "read_status", "list_objects", "describe_object", "compile_filter", "fetch_page", "plan_change",
    "apply_change", "parse_console", "execute_console",
]  # fmt: skip


def driver_code() -> str:
    """The code of a driver whose every text is an attempt."""
    return DRIVER.replace("__TEXTS__", repr(TEXTS)).replace("{version}", "1")
