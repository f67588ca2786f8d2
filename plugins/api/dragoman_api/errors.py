"""All errors that a caller can meet, as one tree with stable codes.

DragomanError
├── ConfigurationError              configuration-invalid
├── Refused                         refused
├── UnsupportedOperationError       operation-not-supported
├── ExportError                     export-failed
├── DriverError                     driver-error              raised by drivers, crosses the sandbox
│   ├── AuthenticationError         authentication-failed
│   ├── ConnectionFailedError       connection-failed
│   ├── AccessDeniedError           access-denied
│   ├── ServerNotSupportedError     server-not-supported
│   ├── ObjectNotFoundError         object-not-found
│   ├── RowNotFoundError            row-not-found
│   ├── RowKeyMissingError          row-key-missing
│   ├── QueryError                  query-failed
│   │   ├── WindowExceededError     window-exceeded
│   │   ├── RevisionGoneError       revision-gone
│   │   └── ObjectChangedError      object-changed
│   ├── FilterNotSupportedError     filter-not-supported
│   └── ConsoleSyntaxError          console-syntax
├── RegistryError                   registry-error
│   ├── IndexInvalidError           index-invalid
│   ├── PluginNotFoundError         plugin-not-found
│   ├── IncompatibleReleaseError    release-incompatible
│   ├── IntegrityError              integrity-failed
│   ├── TrustError                  trust-failed
│   ├── WheelRejectedError          wheel-rejected
│   └── InstallError                install-failed
└── SandboxError                    sandbox-error
    ├── DriverFaultError            driver-fault
    ├── DriverCrashedError          driver-crashed
    ├── DeadlineExceededError       deadline-exceeded
    └── PermissionDeniedError       permission-denied
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .remedies import Remedy

Detail = str | int | float | bool | None

DRIVER = "driver"
"""The value of `hint_from`, in an error or a note, when the driver wrote the hint."""


_LONGEST = 1_500
"""Maximum length of a message about a registry, in characters: parts of it may be a stranger's."""


def _encodable(text: str) -> str:
    """Return a text that any surface can show: lone surrogates, as in a file name that is not UTF-8, are escaped."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


class DragomanError(Exception):
    """An error that says what failed, with which value, and what to do about it.

    Attributes:
        code: Stable kebab-case identifier; a script may compare it.
        message: One sentence for people, beginning with the prefix of its class, if that has one.
        hint: What to do, in words; empty if nothing can be done, or the remedies say it.
        remedies: What to do, as data that each surface shows in its own way; a driver never writes a command.
        hint_from: ``driver`` if hint and remedies are a driver's; the host does not present them as its own.
        details: Plain values that belong to the error (a column, a limit), for programs.
    """

    code: str = "error"
    prefix: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        remedies: Iterable[Remedy] = (),
        code: str | None = None,
        details: Mapping[str, Detail] | None = None,
    ) -> None:
        self.message = _encodable(message if message.startswith(self.prefix) else self.prefix + message)
        super().__init__(self.message)
        self.hint = _encodable(hint)
        self.remedies = tuple(remedies)
        self.hint_from = ""
        self.details = {
            key: _encodable(value) if isinstance(value, str) else value for key, value in (details or {}).items()
        }
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return self.message

    def to_dict(self) -> dict[str, object]:
        """Return code, message, hint and details as plain data, with `remedies` and `hint_from` if they are set.

        An error that has remedies and no hint has their words as its hint.
        """
        data: dict[str, object] = {
            "code": self.code,
            "message": self.message,
            "hint": self.hint or "; ".join(map(str, self.remedies)),
            "details": self.details,
        }
        if self.remedies:
            data["remedies"] = [{"kind": remedy.kind, "arguments": remedy.arguments} for remedy in self.remedies]
        return data | ({"hint_from": self.hint_from} if self.hint_from else {})

    def advise(self, hint: str, *remedies: Remedy) -> None:
        """Replace hint and remedies with those of the host's own."""
        self.hint, self.remedies, self.hint_from = hint, remedies, ""


class ConfigurationError(DragomanError):
    """A settings file, a saved connection or an argument cannot be used."""

    code = "configuration-invalid"


class Refused(DragomanError):  # noqa: N818 - the word an automation's author writes: raise Refused(...)
    """An automation vetoed the call: nothing was sent, or the answer exceeded a limit and was withheld."""

    code = "refused"


class UnsupportedOperationError(DragomanError):
    """The driver does not implement this hook."""

    code = "operation-not-supported"


class ExportError(DragomanError):
    """The file of an export could not be written; no file exists under its final name."""

    code = "export-failed"


class DriverError(DragomanError):
    """A driver's own error; it crosses the sandbox as code, message, hint, remedies and details."""

    code = "driver-error"


class AuthenticationError(DriverError):
    """The server rejected the credentials (E39, W36)."""

    code = "authentication-failed"
    prefix = "Authentication failed: "


class ConnectionFailedError(DriverError):
    """TLS or the network failed (E40, W37)."""

    code = "connection-failed"
    prefix = "Connection failed: "


class AccessDeniedError(DriverError):
    """The credentials are valid but do not permit this (HTTP 403)."""

    code = "access-denied"


class ServerNotSupportedError(DriverError):
    """Another product or version answered."""

    code = "server-not-supported"


class ObjectNotFoundError(DriverError):
    """The object (index, collection) does not exist."""

    code = "object-not-found"


class RowNotFoundError(DriverError):
    """The row does not exist."""

    code = "row-not-found"


class RowKeyMissingError(DriverError):
    """A change names no row."""

    code = "row-key-missing"


class QueryError(DriverError):
    """The server refused the request, or answered it in part."""

    code = "query-failed"


class WindowExceededError(QueryError):
    """The page is beyond the server's result window."""

    code = "window-exceeded"


class RevisionGoneError(QueryError):
    """The server no longer has the requested revision; a page without one shows the rows as they are now."""

    code = "revision-gone"


class ObjectChangedError(QueryError):
    """The object's columns changed while the connection was open; the call returned nothing.

    The driver has read the new columns: compile the filter again and repeat the call.
    """

    code = "object-changed"


class FilterNotSupportedError(DriverError):
    """A filter row cannot run; nothing was sent. Details: column, operator, reason."""

    code = "filter-not-supported"


class ConsoleSyntaxError(DriverError):
    """A console text cannot be parsed. Details: line and column, both from 1."""

    code = "console-syntax"


class RegistryError(DragomanError):
    """A registry, a wheel or an installed driver is faulty.

    Its message loses its middle beyond 1,500 characters, because registries are strangers and choose parts of it.
    """

    code = "registry-error"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        remedies: Iterable[Remedy] = (),
        code: str | None = None,
        details: Mapping[str, Detail] | None = None,
    ) -> None:
        text = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 301]}…{message[-300:]}"
        super().__init__(text, hint=hint, remedies=remedies, code=code, details=details)


class IndexInvalidError(RegistryError):
    """A file of the registry's index is missing, damaged or malformed."""

    code = "index-invalid"


class PluginNotFoundError(RegistryError):
    """No configured registry knows the plugin or the type."""

    code = "plugin-not-found"


class IncompatibleReleaseError(RegistryError):
    """Releases exist, but none fits this host."""

    code = "release-incompatible"


class IntegrityError(RegistryError):
    """Bytes do not match their declared digest. Details: path, expected, actual."""

    code = "integrity-failed"


class TrustError(RegistryError):
    """A signature, a key or the freshness of the metadata is not acceptable."""

    code = "trust-failed"


class WheelRejectedError(RegistryError):
    """The wheel checks found faults in a wheel; ``faults`` holds all of them as (code, reason)."""

    code = "wheel-rejected"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        remedies: Iterable[Remedy] = (),
        code: str | None = None,
        details: Mapping[str, Detail] | None = None,
        faults: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message, hint=hint, remedies=remedies, code=code, details=details)
        self.faults = faults


class InstallError(RegistryError):
    """An installation could not be completed; the version that was active stays active."""

    code = "install-failed"


class SandboxError(DragomanError):
    """The driver's process misbehaved, or could not be confined as asked."""

    code = "sandbox-error"


class DriverFaultError(SandboxError):
    """The driver raised something other than a DragomanError, or its answer is malformed."""

    code = "driver-fault"


class DriverCrashedError(SandboxError):
    """The driver's process ended. Details: status; the message carries its last lines."""

    code = "driver-crashed"


class DeadlineExceededError(SandboxError):
    """The driver did not answer in time."""

    code = "deadline-exceeded"


class PermissionDeniedError(SandboxError):
    """The driver exceeded its permissions, or its host resolves to a forbidden address (`address-refused`)."""

    code = "permission-denied"


def tree(root: type[DragomanError]) -> Iterator[type[DragomanError]]:
    """Yield an error class and all its subclasses."""
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def from_code(
    code: str,
    message: str,
    *,
    hint: str = "",
    remedies: Iterable[Remedy] = (),
    details: Mapping[str, Detail] | None = None,
    family: str = "",
) -> DragomanError:
    """Build the error that a code stands for.

    Args:
        code: The error's code; it is kept even if no class has it.
        message: The error's message.
        hint: What to do, in words.
        remedies: What to do, as data.
        details: Plain values.
        family: The code of the error's class, if the error has a code of its own.

    Returns:
        The error; a DriverError if neither code names a class.
    """
    kind = next((kind for kind in tree(DragomanError) if kind.code == (family or code)), DriverError)
    return kind(message, hint=hint, remedies=remedies, code=code, details=details)
