"""The only module of the host that knows pluggy: hook calls, vetoes, notifications."""

from __future__ import annotations

import inspect
from contextlib import aclosing
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

VETO_SECONDS = 30.0
"""Time an automation has to decide, unless it has `seconds` of its own; one that does not answer has not agreed."""


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
        for automation in automations:
            self._register(automation, _name_of(automation))
        if driver is not None:
            self._register(driver, "driver")

    def _register(self, plugin: object, name: str) -> None:
        try:
            self._manager.register(plugin, name=name)
            self._manager.check_pending()
            self._check_colours(plugin, name)
        except (pluggy.PluginValidationError, ValueError) as error:
            raise ConfigurationError(f"{name} cannot be used: {error}", hint="see docs/reference/hooks.md") from error

    def _check_colours(self, plugin: object, name: str) -> None:
        for caller in self._manager.get_hookcallers(plugin) or ():
            for implementation in caller.get_hookimpls():
                if implementation.plugin is not plugin or caller.spec is None:
                    continue
                for is_colour in (inspect.iscoroutinefunction, inspect.isasyncgenfunction):
                    if is_colour(caller.spec.function) != is_colour(implementation.function):
                        raise ValueError(f"{name}.{caller.name} must be written as its specification: async def")

    def with_driver(self, driver: object) -> Hooks:
        """Make the manager of one connection: the same automations and its driver."""
        return Hooks(self._automations, emit=self._emit, driver=driver)

    def offers(self, hook: str) -> bool:
        """Tell whether the driver implements a hook."""
        return bool(getattr(self._manager.hook, hook).get_hookimpls())

    async def ask(self, call: Call) -> None:
        """Give every automation the chance to veto a call, all at once.

        Raises:
            Refused: One vetoed, raised something else, or did not decide in time; it is named.
        """
        implementations = self._manager.hook.before_call.get_hookimpls()
        if not implementations:
            return
        pending = self._manager.hook.before_call(call=call)
        vetoes: list[Refused] = []

        async def decide(plugin: object, name: str, decision: Awaitable[None]) -> None:
            try:
                with anyio.fail_after(getattr(plugin, "seconds", VETO_SECONDS)):
                    await decision
            except Refused as veto:
                text = veto.message if veto.message.startswith(f"{name}: ") else f"{name}: {veto.message}"
                vetoes.append(Refused(f"{text}; nothing was sent", hint=veto.hint, details=veto.details))
            except Exception as error:  # noqa: BLE001 - trusted, but a guard that fails has not agreed
                reason = "did not decide in time" if isinstance(error, TimeoutError) else f"failed with {error!r}"
                self._emit(AutomationFailed(automation=name, hook=call.hook, reason=reason))
                hint = "mend the automation, or leave it out"
                vetoes.append(Refused(f"{name} {reason}; nothing was sent", hint=hint))

        async with anyio.create_task_group() as tasks:  # pluggy calls the last registered first
            for implementation, decision in zip(reversed(implementations), pending, strict=True):
                tasks.start_soon(decide, implementation.plugin, implementation.plugin_name, decision)
        if vetoes:
            veto = vetoes[0]
            connection = call.connection.name if call.connection else None
            name = veto.message.split(":", 1)[0]
            self._emit(CallRefused(hook=call.hook, automation=name, reason=veto.message, connection=connection))
            raise veto

    async def notify(self, event: Event) -> None:
        """Tell every automation what happened; a failure is reported and goes no further."""
        implementations = self._manager.hook.on_event.get_hookimpls()
        if not implementations:
            return
        for implementation, told in zip(
            reversed(implementations), self._manager.hook.on_event(event=event), strict=True
        ):
            try:
                await told
            except Exception as error:  # noqa: BLE001 - an observer must not stop what it observes
                if not isinstance(event, AutomationFailed):  # or a failing observer would report itself for ever
                    name = implementation.plugin_name
                    self._emit(AutomationFailed(automation=name, hook="on_event", reason=repr(error)))

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
