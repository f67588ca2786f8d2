"""Answers of a server to the HTTP client: whole, or while they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from multidict import CIMultiDictProxy

from . import _connection_errors
from .errors import QueryError
from .json_text import decode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CHUNK = 2**20
"""Maximum size of one chunk of a streamed answer in bytes, decompressed."""


class Response(msgspec.Struct, frozen=True):
    """A server's answer.

    Attributes:
        status: HTTP status.
        headers: Case-insensitive; `headers.getall` returns all values of one name.
        body: The whole body, decompressed.
    """

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """Decode the body; integers keep every digit.

        Raises:
            QueryError: The body is not JSON, for example a proxy's HTML page.
        """
        try:
            return decode(self.body, object)
        except ValueError as error:
            raise QueryError(
                f"HTTP {self.status}, and the answer is not JSON ({error}): {_connection_errors.shorten(self.text)}",
                hint="check Host and Port: a proxy may have answered instead of the database",
            ) from error


class Stream:
    """A server's answer while it arrives: iterate over it to read its chunks.

    Attributes:
        status: HTTP status.
        headers: Case-insensitive.
    """

    def __init__(self, status: int, headers: CIMultiDictProxy[str], chunks: AsyncIterator[bytes]) -> None:
        self.status, self.headers, self._chunks = status, headers, chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return the chunks, decompressed, at most `CHUNK` bytes each; the errors are those of `Http.stream`."""
        return self._chunks

    async def response(self) -> Response:
        """Read the rest of the body, from which `Http.check` can build an error; read a long one only in part."""
        body = b""
        async for chunk in self._chunks:
            body += chunk
            if len(body) >= CHUNK:
                break
        return Response(self.status, self.headers, body)
