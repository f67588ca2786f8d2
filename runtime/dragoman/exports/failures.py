"""The event of an export that fails."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman_api.errors import DragomanError
from dragoman_api.events import ExportFailed
from dragoman_api.wording import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dragoman_api.events import Event


@contextmanager
def reporting(emit: Callable[[Event], None], *, connection: str, object: str, target: str) -> Iterator[None]:  # noqa: A002
    """Emit `ExportFailed` for any error of the block, a cancellation too."""
    try:
        yield
    except BaseException as error:
        code, reason = "stopped", failure(error)
        if isinstance(error, DragomanError):
            code, reason = error.code, error.message
        emit(ExportFailed(connection=connection, object=object, target=target, code=code, reason=reason))
        raise
