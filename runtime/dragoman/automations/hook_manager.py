"""The only module of the host that knows pluggy: hook calls, vetoes, notifications."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from contextlib import aclosing
from contextvars import ContextVar
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec
import pluggy

from dragoman.spellings import near_names
from dragoman_api.errors import ConfigurationError, DragomanError, DriverFaultError, Refused, UnsupportedOperationError
from dragoman_api.events import AutomationFailed, CallRefused
from dragoman_api.hookspecs import PROJECT, AutomationSpec, DriverSpec
from dragoman_api.wording import failure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from dragoman_api.events import Call, Event

    Observer = tuple[str, Callable[[Event], Awaitable[None]]]

VETO_SECONDS = 30.0
"""Time an automation has to decide, unless it has `seconds` of its own; one that does not answer has not agreed."""

OBSERVE_SECONDS = 30.0
"""Time an automation has for one event; it is then interrupted, and receives the next."""

AT_WORK: ContextVar[str] = ContextVar("dragoman_automation", default="")
"""Name of the automation whose code runs; what it prints is not data of a command."""

CLIENT: ContextVar[str] = ContextVar("dragoman_client", default="")
"""Name of the agent's program for which the calls of this task are made; empty for none."""

DECIDES_ON = "decides_on"
"""Attribute of an automation that names the hooks whose calls it decides on; without it, it is asked about all."""

INSTALLING = frozenset({"install_plugin", "update_plugin", "remove_plugin"})
"""Names of calls that are no hooks of a driver: they change which drivers are installed."""


class Hooks:
    """One pluggy manager: the automations, and the driver of one open connection, if any.

    Each connection has its own manager: a first-result hook asks the plugin registered last first, so in a shared
    manager a second connection's driver would answer for the first.
    """

    def __init__(
        self,
        automations: Sequence[object],
        *,
        emit: Callable[[Event], None],
        driver: object = None,
        surface: str = "",
    ) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(AutomationSpec)
        self._manager.add_hookspecs(DriverSpec)
        self._automations = list(automations)
        self._deciding: dict[str, list[pluggy.HookImpl]] = {}
        self._emit, self._surface = emit, surface
        names: Counter[str] = Counter()
        for automation in automations:
            names[name := _name_of(automation)] += 1
            self._register(automation, name if names[name] == 1 else f"{name} ({names[name]})")
        if driver is not None:
            self._register(driver, "driver")

    def _register(self, plugin: object, name: str) -> None:
        try:
            if name != "driver":
                self._check_names(plugin, name)
                self._check_decides_on(plugin, name)
            self._manager.register(plugin, name=name)
            self._manager.check_pending()
            self._check_colours(plugin, name)
        except (pluggy.PluginValidationError, ValueError) as error:
            raise ConfigurationError(f"{name} cannot be used: {error}", hint="see docs/reference/hooks.md") from error

    def _check_names(self, plugin: object, name: str) -> None:
        """Refuse misnamed or unmarked hooks, which pluggy would ignore silently: such a guard would never run."""
        hooks = [hook for hook in vars(AutomationSpec) if not hook.startswith("_")]
        marked = [hook for hook in dir(plugin) if self._manager.parse_hookimpl_opts(plugin, hook) is not None]
        faults = []
        for hook in marked:
            if hook not in hooks:
                suggestions = near_names(hook, hooks, most=1) or hooks
                faults.append(f"{_where(plugin, hook)}unknown hook {hook}; did you mean {' or '.join(suggestions)}?")
        faults += [
            f"{_where(plugin, hook)}{hook} lacks @hookimpl, so it would never be called"
            for hook in hooks
            if hook not in marked and callable(getattr(plugin, hook, None))
        ]
        if not (marked or faults):
            faults.append(f"it has none of the hooks {' and '.join(hooks)}")
        if faults:
            hint = "from dragoman_api import hookimpl; then: @hookimpl async def before_call(call)"
            raise ConfigurationError(f"{name} cannot be used: {'; '.join(faults)}", hint=hint)

    def _check_decides_on(self, plugin: object, name: str) -> None:
        """Refuse no names, and names of hooks about which nobody is asked: such a guard would never be asked."""
        hooks: object = getattr(plugin, DECIDES_ON, frozenset())
        hooks_of_drivers = {hook for hook in vars(DriverSpec) if not hook.startswith("_")}
        vetoable = hooks_of_drivers - {"close"} | INSTALLING
        if not isinstance(hooks, frozenset) or not hooks <= vetoable or (hasattr(plugin, DECIDES_ON) and not hooks):
            raise ConfigurationError(
                f"{name} cannot be used: its {DECIDES_ON} is {hooks!r:.200}, which is no frozenset of names of hooks",
                hint=f'{DECIDES_ON} = frozenset({{"apply_change"}}), or leave it out to be asked about every call',
            )

    def _check_colours(self, plugin: object, name: str) -> None:
        for caller in self._manager.get_hookcallers(plugin) or ():
            for implementation in caller.get_hookimpls():
                if implementation.plugin is not plugin or caller.spec is None:
                    continue
                for is_colour in (inspect.iscoroutinefunction, inspect.isasyncgenfunction):
                    if is_colour(caller.spec.function) != is_colour(implementation.function):
                        where = _where(plugin, caller.name)
                        raise ValueError(f"{where}{name}.{caller.name} must be written as its specification: async def")

    def for_connection(self, driver: object = None) -> Hooks:
        """Build one connection's manager: the same automations, and its driver once it exists."""
        return Hooks(self._automations, emit=self._emit, driver=driver, surface=self._surface)

    def set_driver(self, driver: object) -> None:
        """Replace the driver that answers hooks."""
        if self._manager.has_plugin("driver"):
            self._manager.unregister(name="driver")
        self._register(driver, "driver")

    def offers(self, hook: str) -> bool:
        """Return whether the driver implements a hook; false for one that this version does not know."""
        caller = getattr(self._manager.hook, hook, None)
        return caller is not None and bool(caller.get_hookimpls())

    async def ask(self, call: Call) -> None:
        """Ask all automations concurrently whether they veto a call.

        Raises:
            Refused: At least one vetoed, raised another error, or did not decide in time; the error names each.
        """
        if not (deciding := self._decide_on(call.hook)):
            return
        call = msgspec.structs.replace(call, surface=self._surface, client=CLIENT.get())
        names = [implementation.plugin_name for implementation in deciding]
        vetoes: dict[int, Refused | None] = dict.fromkeys(range(len(names)))

        async def decide(number: int, implementation: pluggy.HookImpl) -> None:
            name, function = implementation.plugin_name, cast("Callable[..., Awaitable[None]]", implementation.function)
            AT_WORK.set(name)
            decision = function(*[call][: len(implementation.argnames)])
            ended = await _end_of(decision, seconds=getattr(implementation.plugin, "seconds", VETO_SECONDS))
            if ended is None:
                del vetoes[number]
            elif isinstance(ended, Refused):
                vetoes[number] = ended
            else:
                late = isinstance(ended, _LateError)
                reason = "did not decide in time" if late else f"failed with {failure(ended)}"
                self._emit(AutomationFailed(automation=name, hook=call.hook, reason=reason))
                vetoes[number] = Refused(f"{name} {reason}", hint="correct the automation, or omit it")

        async with anyio.create_task_group() as tasks:
            for number, implementation in enumerate(deciding):
                tasks.start_soon(decide, number, implementation)
        if vetoes:
            reasons = [(names[at], vetoes[at] or Refused(f"{names[at]} did not decide")) for at in sorted(vetoes)]
            raise self._refusal(call, reasons)

    def decides(self, hook: str) -> bool:
        """Return whether an automation is asked about calls of a hook."""
        return bool(self._decide_on(hook))

    def _decide_on(self, hook: str) -> list[pluggy.HookImpl]:
        """List the automations that decide on calls of a hook: all but those that name other hooks only."""
        if (deciding := self._deciding.get(hook)) is None:
            deciding = self._deciding[hook] = [
                implementation
                for implementation in self._manager.hook.before_call.get_hookimpls()
                if hook in getattr(implementation.plugin, DECIDES_ON, (hook,))
            ]
        return deciding

    def _refusal(self, call: Call, vetoes: list[tuple[str, Refused]]) -> Refused:
        """Emit an event for each veto and combine them into one error: a single veto refuses the call."""
        connection = call.connection.name if call.connection else None
        reasons = []
        for name, veto in vetoes:
            text = veto.message if veto.message.startswith((f"{name}: ", f"{name} ")) else f"{name}: {veto.message}"
            self._emit(
                CallRefused(hook=call.hook, automation=name, reason=f"{text}; nothing was sent", connection=connection)
            )
            reasons.append(text)
        first = next((veto for _, veto in vetoes if veto.hint or veto.remedies), vetoes[0][1])
        text = f"{'; '.join(reasons)}; nothing was sent"
        return Refused(text, hint=first.hint, remedies=first.remedies, code=first.code, details=first.details)

    def observers(self) -> list[Observer]:
        """List the automations that receive events, by name, in registration order."""

        def taking(implementation: pluggy.HookImpl) -> Callable[[Event], Awaitable[None]]:
            function: Any = implementation.function
            return lambda event: function(*[event][: len(implementation.argnames)])

        return [
            (implementation.plugin_name, taking(implementation))
            for implementation in self._manager.hook.on_event.get_hookimpls()
        ]

    async def tell(self, observer: Observer, event: Event) -> None:
        """Pass an event to one automation; a failure is reported as an event and not raised."""
        name, on_event = observer
        AT_WORK.set(name)
        ended = await _end_of(on_event(event), seconds=OBSERVE_SECONDS)
        if ended is not None and not isinstance(event, AutomationFailed):  # else a failure reports itself endlessly
            late = isinstance(ended, _LateError)
            reason = f"did not finish within {OBSERVE_SECONDS:g} s" if late else failure(ended)
            self._emit(AutomationFailed(automation=name, hook="on_event", reason=reason))

    def _fire(self, hook: str, *values: object) -> Any:
        """Call the implementation through pluggy. Raises UnsupportedOperationError if there is none."""
        caller = getattr(self._manager.hook, hook)
        if (pending := caller(**dict(zip_longest(caller.spec.argnames, values)))) is None:
            raise UnsupportedOperationError(f"this driver has no {hook}", details={"hook": hook})
        return pending

    async def call(self, hook: str, /, *values: object, deadline: float) -> Any:
        """Call one hook of the driver; the driver's process fills in omitted arguments.

        Raises:
            UnsupportedOperationError: The driver does not implement it.
            DriverFaultError: It raised something other than a DragomanError.
            DragomanError: What the driver raised.
        """
        pending = self._fire(hook, *values)
        try:
            with anyio.fail_after(deadline):
                return await pending
        except DragomanError:
            raise
        except TimeoutError as error:
            from dragoman_api.errors import DeadlineExceededError

            raise DeadlineExceededError(f"{hook} took longer than {deadline:g} s") from error
        except Exception as error:
            raise DriverFaultError(f"{hook} failed inside the driver: {failure(error)}") from error

    async def stream(self, hook: str, /, *values: object) -> AsyncGenerator[Any, None]:
        """Iterate over a streaming hook of the driver, and always close it.

        Raises:
            UnsupportedOperationError: The driver does not implement it.
            DriverFaultError: It raised something other than a DragomanError.
            DragomanError: What the driver raised.
        """
        async with aclosing(self._fire(hook, *values)) as parts:
            try:
                async for part in parts:
                    yield part
            except (DragomanError, GeneratorExit):
                raise
            except Exception as error:
                raise DriverFaultError(f"{hook} failed inside the driver: {failure(error)}") from error


class _LateError(Exception):
    """An automation did not end in time."""


async def _end_of(work: Awaitable[object], *, seconds: float) -> BaseException | None:
    """Await an automation's code, and return how it ended: None if it returned nothing, or True.

    Any other end is returned, also an exit of the process or a cancellation that comes from the automation's own code;
    only a cancellation of the caller is raised.
    """
    returned: object = None
    scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)
    try:
        with scope:
            returned = await work
    except BaseException as error:  # trusted code, but it does not end what it watches
        if isinstance(error, anyio.get_cancelled_exc_class()) and anyio.current_effective_deadline() == -math.inf:
            raise
        return _LateError() if scope.cancel_called else error
    if scope.cancel_called:
        return _LateError()
    if returned is None or returned is True:
        return None
    if inspect.iscoroutine(returned):
        returned.close()  # it was never awaited
    return TypeError(f"it returned {repr(returned)[:200]}; to agree, return nothing; to refuse, raise Refused")


def _name_of(automation: object) -> str:
    if (file := getattr(automation, "__file__", None)) is not None:
        return Path(file).name
    kind = automation if isinstance(automation, type) else type(automation)
    return str(getattr(automation, "name", None) or kind.__name__)


def _where(plugin: object, hook: str) -> str:
    """Return the file and line where an automation's function begins, if known."""
    code = getattr(inspect.unwrap(getattr(plugin, hook)), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
