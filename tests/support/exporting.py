"""An export over the driver in memory, in this process: as fast as a function call, with real files."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager

from anyio import to_thread
from msgspec.structs import replace

from dragoman.exports.export_run import Export, ExportSource
from dragoman.exports.formats import FileFormat, TableColumns, choose, choose_columns
from dragoman.sessions.whole_reads import as_lists
from dragoman_api.exports import ExportRequest
from dragoman_api.filters import FilterRequest
from memory_driver import MemoryDriver

SOURCE = ExportSource(connection="shop", object="books", server="Memory 1.0", plugin="memory", version="1.0.0")


class Line:
    """A driver whose export can be held, broken and listened to.

    Attributes:
        driver: The driver in memory, five rows a part.
        seen: Events so far.
        requests: What the driver was asked for.
        before: Called with the number of each part before it is given; may raise, or be a coroutine function.
        checkpoints: Whether parts have one.
        notes: The notes on each part, by its number from 1.
        closed: How many streams ended.
    """

    def __init__(self, driver=None):
        self.driver = driver or MemoryDriver(part_rows=5)
        self.seen, self.requests = [], []
        self.before = lambda number: None
        self.checkpoints = True
        self.notes = lambda number: []
        self.closed = 0

    async def __call__(self, to, *, name="books", compress=None, filters=(), columns=None, resume=False, **more):
        """Export to a path or a stream; `more` holds format, tenant, lists, and whether a manifest is wanted."""
        wanted = FileFormat(more.get("format", ""), compression=compress, strict=more.get("strict", False))
        shape = await to_thread.run_sync(choose, to, wanted)
        export = Export(SOURCE, to=to, file_format=shape, resume=resume, emit=lambda event: self.seen.append(event))
        with export.reporting():
            compiled = None
            if filters:
                compiled = await self.driver.compile_filter(FilterRequest(object=name, rows=list(filters)))
            described = (await self.driver.describe_object(name)) if shape.tabular else None
            table = choose_columns(described, columns) if described else []
            table = as_lists(table, more.get("lists", {}))
            names = [column.name for column in table] if shape.tabular else columns
            request = ExportRequest(
                object=name, filter=compiled, form=shape.form, columns=names, tenant=more.get("tenant")
            )
            columns = TableColumns(columns=table, described=described.columns if described else [])
            return await export.run(request, table=columns, manifest=more.get("manifest", True), parts=self._parts)

    @asynccontextmanager
    async def _parts(self, request):
        self.requests.append(request)

        async def stream():
            number = 0
            async for part in self.driver.export_rows(request):
                if (waiting := self.before(number)) is not None:
                    await waiting
                number += 1
                kept = part.checkpoint if self.checkpoints else None
                yield replace(part, checkpoint=kept, notes=self.notes(number))

        try:
            async with aclosing(stream()) as parts:
                yield parts
        finally:
            self.closed += 1

    def last(self, name):
        return [event for event in self.seen if event.name == name][-1]


def breaks_before(number, error):
    """Make a `before` that raises once, at one part."""
    left = [error]

    def before(at):
        if at == number and left:
            raise left.pop()

    return before
