"""A corpus as one test: every row is tried, and the failure lists all rows that fail."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


@contextmanager
def every_row() -> Iterator[Callable[..., AbstractContextManager[None]]]:
    """Yield what guards one row, by the words that name it; fails at the end if any row failed."""
    failures: list[str] = []

    @contextmanager
    def row(*words: object) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the assertion below tells of it
            failures.append(f"{' · '.join(str(word)[:80] for word in words)}: {type(error).__name__}: {error}")

    yield row
    assert not failures, f"{len(failures)} rows fail:\n" + "\n".join(failures)
