"""Python files that a person names: automations, and scripts for `run`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from dragoman_api.errors import ConfigurationError


def load_file(path: str) -> ModuleType:
    """Import a Python file by its path: an automation, or a script for `run`.

    Raises:
        ConfigurationError: It is missing, others can change it, or importing it fails.
    """
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_file_location

    from dragoman.file_ownership import expect_own, shared
    from dragoman_api.errors import ConfigurationError

    file = Path(path)
    spec = spec_from_file_location(f"_dragoman_file_{file.stem}", file)
    if spec is None or not isinstance(spec.loader, SourceFileLoader) or not file.is_file():
        raise ConfigurationError(f"{path} is not a readable Python file", hint="name the path of a .py file")
    expect_own(file, chosen=file)
    folder, before = file.resolve().parent, [*sys.path]
    if not shared(folder):  # as /tmp, where others can put a module of any name
        expect_own(folder / "__pycache__", chosen=file)
        sys.path.insert(0, str(folder))
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        # Never a compiled file beside it, which another user may have written.
        exec(spec.loader.source_to_code(file.read_bytes(), str(file)), module.__dict__)  # noqa: S102
    except Exception as error:
        raise _script_failed(file, error) from error
    finally:
        if str(folder) in sys.path and str(folder) not in before:
            sys.path.remove(str(folder))
    return module


def load_automation(path: str) -> ModuleType:
    """Import an automation, whose prints are not data. Raises ConfigurationError."""
    from dragoman_api.errors import DragomanError

    try:
        with redirect_stdout(sys.stderr):
            return load_file(path)
    except (KeyboardInterrupt, DragomanError):
        raise
    except BaseException as error:  # only a script of `run` may end the process
        raise _script_failed(Path(path), error) from error


def _script_failed(file: Path, error: BaseException) -> ConfigurationError:
    from dragoman_api.errors import ConfigurationError

    hint = f"correct it; python {file} shows whether it can be read"
    return ConfigurationError(script_fault(file, error), hint=hint, code="script-failed")


def script_fault(file: Path, error: BaseException) -> str:
    """Describe in one line where a person's own script failed."""
    from dragoman_api.wording import failure

    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}: {type(error).__name__}: {error.msg}"
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{file}{f':{line}' if line else ''}: {failure(error)}"
