"""The methods of a session that read rows into Arrow tables."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .counts_and_rows import Batches
from .prepared_reads import Scope
from .time_spans import DEFAULT, whole_now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyarrow import Table

    from dragoman_api.filters import Filter, RawQuery

    from .driver_calls import Calls
    from .prepared_reads import Preparation
    from .time_spans import Span


class TableSession:
    """The part of `Session` that reads rows into Arrow tables."""

    _calls: Calls
    _reads: Preparation

    def batches(
        self,
        object: str,  # noqa: A002
        *,
        filters: Sequence[Filter | RawQuery] = (),
        match: str = "all",
        columns: Sequence[str] | None = None,
        lists: Sequence[str] | None = None,
        tenant: str | None = None,
        revision: str = "",
        span: Span = DEFAULT,
        strict: bool = False,
        now: str | None = None,
    ) -> Batches:
        """Iterate over the rows of an object as `pyarrow.RecordBatch`, in constant memory; there is at least one.

        The types of the columns come from the object's description. What does not fit its type is null there. The last
        column, ``_misfits``, holds it as it is stored: a JSON object from column to value, null where everything fits.
        Nothing is rounded, and notes ``values-misfit`` count the values.

        A caller that stops early must close the iterator to release the server's resources:
        ``async with aclosing(session.batches(...)) as batches``.

        Args:
            object: Its name.
            filters: Rows of the filter.
            match: ``all`` or ``any``.
            columns: The columns, in order; None for all that an export holds, where an array of objects is one column.
            lists: The names of the columns that are lists, of those of which a row may hold one value or several; none
                if empty. By default, those that hold an array in one of the first 200 rows, which a note
                (``lists-found``) names. One value alone becomes a list of one there, and what a list of one does not
                stand for, an array of one or one value alone, also is in ``_misfits``.
            tenant: Whose rows, where the object has tenants.
            revision: `Page.revision` of an earlier page, to read the rows as they were then.
            span: The rows' span of time; by default the window that the object's description names, if any.
            strict: Refuse a value that does not fit its type (ExportError, code ``values-misfit``).
            now: As for `page`.

        Raises:
            ConfigurationError: The package pyarrow is not installed.
        """
        scope = Scope(
            object=object, filters=filters, match=match, span=span, tenant=tenant, revision=revision, now=whole_now(now)
        )  # fmt: skip
        from .whole_reads import read_batches

        return Batches(
            partial(read_batches, self._calls, self._reads, scope, columns=columns, lists=lists, strict=strict)
        )

    async def table(
        self,
        object: str,  # noqa: A002
        *,
        filters: Sequence[Filter | RawQuery] = (),
        match: str = "all",
        columns: Sequence[str] | None = None,
        lists: Sequence[str] | None = None,
        tenant: str | None = None,
        revision: str = "",
        span: Span = DEFAULT,
        strict: bool = False,
        now: str | None = None,
    ) -> Table:
        """Read the rows of an object into a `pyarrow.Table`, which pandas, polars and DuckDB take as it is.

        See `batches` for the arguments, the types, and the column ``_misfits``. The metadata of the schema hold the
        notes on the rows, as JSON, under ``notes``; and types for pandas, so that `pyarrow.Table.to_pandas` keeps every
        digit of a column of integers that lacks some.
        """
        from .whole_reads import collect_table

        about: dict[str, Any] = {
            "lists": lists,
            "tenant": tenant,
            "revision": revision,
            "span": span,
            "strict": strict,
            "now": now,
        }
        return await collect_table(self.batches(object, filters=filters, match=match, columns=columns, **about))
