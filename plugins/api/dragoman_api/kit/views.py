"""Views of objects: what a driver read of their columns, checked by every call that depends on them.

An object may be recreated under its name, grow or lose columns, and an alias may lead elsewhere, all while a connection
is open. The contract does not require this module; a driver that keeps what it read can use it to notice.

What `ReadOnce` keeps is not checked: it is for completion, which must send nothing for each key that a person types.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import anyio
import msgspec

from dragoman_api.errors import DragomanError, ObjectChangedError, ObjectNotFoundError

from .exchanges import send_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping

    from dragoman_api.columns import Column
    from dragoman_api.filters import CompiledFilter


class KnownObject(Protocol):
    """What a driver read of one object."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns, by name."""

    @property
    def objects(self) -> Collection[str]:
        """The concrete objects that its name stands for."""

    @property
    def revision(self) -> str:
        """A text that differs if the server's definition differs."""


V = TypeVar("V", bound=KnownObject)
T = TypeVar("T")
PATIENCE = 1.0
"""Maximum seconds for which a call waits for the questions of other calls about one view."""

_NAMED = 5  # columns of one kind in a reason


def digest(definition: object) -> str:
    """Digest a decoded definition, whose parts may come in any order, as a revision of an object without one."""
    return sha256(msgspec.json.encode(definition, order="sorted")).hexdigest()


class Views(Generic[V]):
    """The views of one connection."""

    def __init__(self, read: Callable[[str], Awaitable[V]], revision: Callable[[V], Awaitable[str]]) -> None:
        """Begin without views.

        Args:
            read: Reads a view by the object's name.
            revision: Asks the server for the revision that an object has now.
        """
        self._read, self._revision = read, revision
        self._views: dict[str, V] = {}
        self._questions: dict[str, _Questions[V]] = {}

    def known(self, name: str) -> V:
        """Return a view as it was last read.

        Raises:
            ObjectNotFoundError: It was not read yet.
        """
        if name not in self._views:
            raise ObjectNotFoundError(f"'{name}' was not described on this connection yet")
        return self._views[name]

    async def read(self, name: str) -> V:
        """Read a view from the server."""
        self._views[name] = view = await self._read(name)
        return view

    async def holding(self, names: Iterable[str]) -> dict[str, V]:
        """Return those of the views read so far that are still as the server has them."""
        read = {name: self._views[name] for name in names if name in self._views}
        # One after another, several busy objects would use up the deadline of the call.
        hold = await send_all([*read.items()], lambda item: self._holds(*item))
        return {name: view for (name, view), holds in zip(read.items(), hold, strict=True) if holds}

    async def use(self, name: str, work: Callable[[V], Awaitable[T]], *, given: CompiledFilter | None = None) -> T:
        """Run work that depends on a view, and check the view meanwhile; after it, if another call asks already.

        Args:
            name: The object.
            work: Gets the view as it was last read.
            given: The filter that the work uses.

        Raises:
            ObjectChangedError: The columns changed since they were read, or since the filter was compiled. They have
                been read again.
        """
        view = self._views.get(name) or await self.read(name)
        _check_filter(view, name, given)
        questions = self._questions_on(name, view)
        since, own = questions.put, None if questions.under_way else questions.begin()
        holds, results, failures = True, list[T](), list[Exception]()

        async def check() -> None:
            nonlocal holds
            try:
                holds = await (self._shared(questions, since) if own is None else self._answered(questions, own))
            except Exception as error:  # noqa: BLE001 - raised below, outside of the group
                failures.append(error)

        async def do() -> None:
            try:
                results.append(await work(view))
            except Exception as error:  # noqa: BLE001 - the reason may be that the object changed
                failures.insert(0, error)

        if own is None:  # most likely, other calls ask meanwhile
            await do()
            await check()
        else:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(check)  # even if the call is cancelled, it begins, and ends the question
                await do()
        if not holds:
            raise _changed(name, view, await self.read(name))
        if failures:
            raise failures[0]
        return results[0]

    async def check(self, name: str, given: CompiledFilter | None = None) -> V:
        """Return a view as the server has it now, for work in parts.

        Raises:
            ObjectChangedError: The filter was compiled for other columns.
        """
        view = self._views.get(name)
        if view is None or not await self._holds(name, view):
            view = await self.read(name)
        _check_filter(view, name, given)
        return view

    async def _holds(self, name: str, view: V) -> bool:
        questions = self._questions_on(name, view)
        return await self._shared(questions, questions.put)

    def _questions_on(self, name: str, view: V) -> _Questions[V]:
        questions = self._questions.get(name)
        if questions is None or questions.view is not view:
            questions = self._questions[name] = _Questions(view)
        return questions

    async def _shared(self, questions: _Questions[V], since: int) -> bool:
        """Return whether a view holds, by a question after the one numbered `since`, of this call or of another one.

        A call waits for the questions of others for `PATIENCE` only, and shares no failure with them.
        """
        if questions.under_way is not None and questions.answered <= since:
            with anyio.move_on_after(PATIENCE):
                while questions.answered <= since and questions.under_way is not None:
                    await questions.under_way.ended.wait()
        if questions.answered > since:
            return questions.answer == questions.view.revision
        return await self._answered(questions, questions.begin())

    async def _answered(self, questions: _Questions[V], question: _Question) -> bool:
        try:
            answer = await self._revision(questions.view)
            if question.number > questions.answered:
                questions.answered, questions.answer = question.number, answer
            return answer == questions.view.revision
        finally:
            questions.end(question)


class _Question(msgspec.Struct, frozen=True):
    number: int
    ended: anyio.Event


class _Questions(Generic[V]):
    """The questions about one view.

    A call needs the answer to a question that was put after the call began: an answer under way may be older than a
    change that the caller saw.

    Attributes:
        view: The view.
        put: How many were put.
        under_way: The last one that was put, until it ended.
        answered: The number of the last one that was answered.
        answer: The revision.
    """

    def __init__(self, view: V) -> None:
        self.view = view
        self.under_way: _Question | None = None
        self.put = self.answered = 0
        self.answer = ""

    def begin(self) -> _Question:
        """Put a question."""
        self.put += 1
        self.under_way = _Question(self.put, anyio.Event())
        return self.under_way

    def end(self, question: _Question) -> None:
        """Wake those that wait for a question, answered or not."""
        question.ended.set()
        if self.under_way is question:
            self.under_way = None


def _check_filter(view: KnownObject, name: str, compiled_filter: CompiledFilter | None) -> None:
    if compiled_filter is not None and compiled_filter.object == name and compiled_filter.revision != view.revision:
        raise ObjectChangedError(f"'{name}' changed since the filter was compiled", hint="compile the filter again")


def _changed(name: str, old: KnownObject, new: KnownObject) -> ObjectChangedError:
    reason = "; ".join(_differences(old, new)) or "its definition differs"
    return ObjectChangedError(
        f"'{name}' changed while the connection was open: {reason}", hint="compile the filter, and send the call again"
    )


def _differences(old: KnownObject, new: KnownObject) -> Iterator[str]:
    if {*old.objects} != {*new.objects}:
        yield f"it stands for {_list([*new.objects])}, before for {_list([*old.objects])}"
    before, after = old.columns, new.columns
    retyped = [name for name in after if name in before and after[name].type != before[name].type]
    if retyped:
        yield ", ".join(f"'{name}' is {after[name].type}, before {before[name].type}" for name in retyped[:_NAMED])
    if added := [name for name in after if name not in before]:
        yield f"new: {_list(added)}"
    if gone := [name for name in before if name not in after]:
        yield f"gone: {_list(gone)}"


def _list(names: list[str]) -> str:
    suffix = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(f"'{name}'" for name in names[:_NAMED]) + suffix


_PAUSE = 60.0  # seconds until a read that failed is tried again
_SECONDS = 5.0
_MOST = 64  # values that are kept


class ReadOnce(Generic[T]):
    """Values by name, each read when it is first asked for."""

    def __init__(self, read: Callable[[str], Awaitable[T]]) -> None:
        """Begin with none.

        Args:
            read: Reads a value from the server.
        """
        self._read = read
        self._values: OrderedDict[str, tuple[T | None, float]] = OrderedDict()
        self._reading = anyio.Lock()

    async def get(self, name: str) -> T | None:
        """Return a value; None if it could not be read within five seconds, which is tried again after a minute."""
        async with self._reading:
            value, again = self._values.get(name, (None, 0.0))
            if anyio.current_time() < again:
                return value
            fresh_value = None
            try:
                with anyio.move_on_after(_SECONDS):
                    fresh_value = await self._read(name)
            except DragomanError:
                fresh_value = None
            self.keep(name, fresh_value)
            return fresh_value

    def keep(self, name: str, value: T | None) -> None:
        """Keep a value that was read elsewhere; the least recently read ones make room."""
        self._values[name] = value, anyio.current_time() + _PAUSE if value is None else float("inf")
        self._values.move_to_end(name)
        while len(self._values) > _MOST:
            self._values.popitem(last=False)
