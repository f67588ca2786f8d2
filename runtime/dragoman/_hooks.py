"""The only module of the host that knows pluggy: hook calls, vetoes, notifications."""

from __future__ import annotations

import inspect
from collections import Counter
from contextlib import aclosing
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pluggy

from dragoman_api.errors import ConfigurationError, DragomanError, DriverFaultError, Refused, UnsupportedOperationError
from dragoman_api.events import AutomationFailed, CallRefused
from dragoman_api.hookspecs import PROJECT, AutomationSpec, DriverSpec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from dragoman_api.calls import Call
    from dragoman_api.events import Event

    Observer = tuple[str, Callable[[Event], Awaitable[None]]]

VETO_SECONDS = 30.0
"""Time an automation has to decide, unless it has `seconds` of its own; one that does not answer has not agreed."""

OBSERVE_SECONDS = 30.0
"""Time an automation has for one event; it is then interrupted, and told the next."""

AT_WORK: ContextVar[str] = ContextVar("dragoman_automation", default="")
"""Name of the automation whose code runs; what it prints is no data of a command."""


def driver_hook_names() -> list[str]:
    """Name every hook a driver can implement."""
    return [name for name in vars(DriverSpec) if not name.startswith("_")]


class Hooks:
    """One pluggy manager: the automations, and the driver of one open connection if there is one.

    A manager per connection, because a first-result hook answers with the plugin that was registered last: in a
    shared one a second connection's driver would answer for the first.
    """

    def __init__(self, automations: Sequence[object], *, emit: Callable[[Event], None], driver: object = None) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(AutomationSpec)
        self._manager.add_hookspecs(DriverSpec)
        self._automations = list(automations)
        self._emit = emit
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
            self._manager.register(plugin, name=name)
            self._manager.check_pending()
            self._check_colours(plugin, name)
        except (pluggy.PluginValidationError, ValueError) as error:
            raise ConfigurationError(f"{name} cannot be used: {error}", hint="see docs/reference/hooks.md") from error

    def _check_names(self, plugin: object, name: str) -> None:
        """Refuse what would be passed over in silence: a guard that nobody asks guards nothing."""
        known = [hook for hook in vars(AutomationSpec) if not hook.startswith("_")]
        marked = [hook for hook in dir(plugin) if self._manager.parse_hookimpl_opts(plugin, hook) is not None]
        faults = []
        for hook in marked:
            if hook not in known:
                import difflib

                meant = difflib.get_close_matches(hook, known, n=1) or known
                faults.append(f"{_where(plugin, hook)}there is no hook {hook}; meant is {' or '.join(meant)}")
        faults += [
            f"{_where(plugin, hook)}{hook} lacks @hookimpl, so nobody would call it"
            for hook in known
            if hook not in marked and callable(getattr(plugin, hook, None))
        ]
        if not (marked or faults):
            faults.append(f"it has neither of the hooks {' and '.join(known)}")
        if faults:
            hint = "from dragoman_api import hookimpl; then: @hookimpl async def before_call(call)"
            raise ConfigurationError(f"{name} cannot be used: {'; '.join(faults)}", hint=hint)

    def _check_colours(self, plugin: object, name: str) -> None:
        for caller in self._manager.get_hookcallers(plugin) or ():
            for implementation in caller.get_hookimpls():
                if implementation.plugin is not plugin or caller.spec is None:
                    continue
                for is_colour in (inspect.iscoroutinefunction, inspect.isasyncgenfunction):
                    if is_colour(caller.spec.function) != is_colour(implementation.function):
                        where = _where(plugin, caller.name)
                        raise ValueError(f"{where}{name}.{caller.name} must be written as its specification: async def")

    def with_driver(self, driver: object) -> Hooks:
        """Make the manager of one connection: the same automations and its driver."""
        return Hooks(self._automations, emit=self._emit, driver=driver)

    def offers(self, hook: str) -> bool:
        """Tell whether the driver implements a hook."""
        return bool(getattr(self._manager.hook, hook).get_hookimpls())

    async def ask(self, call: Call) -> None:
        """Give every automation the chance to veto a call, all at once.

        Raises:
            Refused: At least one vetoed, raised something else, or did not decide in time; each is named.
        """
        implementations = self._manager.hook.before_call.get_hookimpls()
        if not implementations:
            return
        pending = self._manager.hook.before_call(call=call)
        vetoes: dict[int, Refused] = {}

        async def decide(number: int, plugin: object, name: str, decision: Awaitable[None]) -> None:
            AT_WORK.set(name)
            try:
                with anyio.fail_after(getattr(plugin, "seconds", VETO_SECONDS)):
                    await decision
            except Refused as veto:
                vetoes[number] = veto
            except Exception as error:  # noqa: BLE001 - trusted, but a guard that fails has not agreed
                reason = "did not decide in time" if isinstance(error, TimeoutError) else f"failed with {error!r}"
                self._emit(AutomationFailed(automation=name, hook=call.hook, reason=reason))
                vetoes[number] = Refused(f"{name} {reason}", hint="mend the automation, or leave it out")

        names = [implementation.plugin_name for implementation in implementations]
        async with anyio.create_task_group() as tasks:  # pluggy calls the last registered first
            for number, decision in enumerate(reversed(pending)):
                tasks.start_soon(decide, number, implementations[number].plugin, names[number], decision)
        if vetoes:
            raise self._refusal(call, [(names[number], vetoes[number]) for number in sorted(vetoes)])

    def _refusal(self, call: Call, vetoes: list[tuple[str, Refused]]) -> Refused:
        """Tell each veto by an event, and make one error of all: one guard's yes never outweighs another's no."""
        connection = call.connection.name if call.connection else None
        told = []
        for name, veto in vetoes:
            text = veto.message if veto.message.startswith((f"{name}: ", f"{name} ")) else f"{name}: {veto.message}"
            self._emit(
                CallRefused(hook=call.hook, automation=name, reason=f"{text}; nothing was sent", connection=connection)
            )
            told.append(text)
        first = next((veto for _, veto in vetoes if veto.hint), vetoes[0][1])
        return Refused(f"{'; '.join(told)}; nothing was sent", hint=first.hint, code=first.code, details=first.details)

    def observers(self) -> list[Observer]:
        """Give who is told events, by name, in the order they were given."""

        def taking(implementation: pluggy.HookImpl) -> Callable[[Event], Awaitable[None]]:
            function: Any = implementation.function
            return lambda event: function(*[event][: len(implementation.argnames)])

        return [(one.plugin_name, taking(one)) for one in self._manager.hook.on_event.get_hookimpls()]

    async def tell(self, observer: Observer, event: Event) -> None:
        """Tell one automation what happened; a failure is reported and goes no further."""
        name, on_event = observer
        AT_WORK.set(name)
        try:
            with anyio.fail_after(OBSERVE_SECONDS):
                await on_event(event)
        except Exception as error:  # noqa: BLE001 - an observer must not stop what it observes
            if not isinstance(event, AutomationFailed):  # or a failing observer would report itself for ever
                reason = f"was not done in {OBSERVE_SECONDS:g} s" if isinstance(error, TimeoutError) else repr(error)
                self._emit(AutomationFailed(automation=name, hook="on_event", reason=reason))

    async def call(self, hook: str, /, *, deadline: float, **arguments: Any) -> Any:
        """Call one hook of the driver.

        Raises:
            UnsupportedOperationError: The driver does not implement it.
            DriverFaultError: A foreign exception came out of it.
            DragomanError: What the driver raised.
        """
        pending = getattr(self._manager.hook, hook)(**arguments)
        if pending is None:
            raise _unsupported(hook)
        try:
            with anyio.fail_after(deadline):
                return await pending
        except DragomanError:
            raise
        except TimeoutError as error:
            from dragoman_api.errors import DeadlineExceededError

            raise DeadlineExceededError(f"{hook} took longer than {deadline:g} s") from error
        except Exception as error:
            raise DriverFaultError(f"{hook} failed inside the driver: {error!r}") from error

    async def stream(self, hook: str, /, **arguments: Any) -> AsyncGenerator[Any, None]:
        """Iterate over a streaming hook of the driver, closing it on every path.

        Raises:
            UnsupportedOperationError: The driver does not implement it.
            DriverFaultError: A foreign exception came out of it.
            DragomanError: What the driver raised.
        """
        iterator = getattr(self._manager.hook, hook)(**arguments)
        if iterator is None:
            raise _unsupported(hook)
        async with aclosing(iterator) as parts:
            try:
                async for part in parts:
                    yield part
            except (DragomanError, GeneratorExit):
                raise
            except Exception as error:
                raise DriverFaultError(f"{hook} failed inside the driver: {error!r}") from error


def _unsupported(hook: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(f"this driver has no {hook}", details={"hook": hook})


def _name_of(automation: object) -> str:
    if (file := getattr(automation, "__file__", None)) is not None:
        return Path(file).name
    kind = automation if isinstance(automation, type) else type(automation)
    return str(getattr(automation, "name", None) or kind.__name__)


def _where(plugin: object, hook: str) -> str:
    """Say in which file and line a function of an automation begins, where that is known."""
    code = getattr(inspect.unwrap(getattr(plugin, hook)), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
