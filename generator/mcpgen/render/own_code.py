"""Code that a folder of the user's templates runs when it is trusted: filters, and a formatter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

from mcpgen.errors import OutputError, TemplateError, safe_text
from mcpgen.literals import WIDTH, Code
from mcpgen.render.folder_settings import FolderSettings
from mcpgen.render.formatting import format_modules
from mcpgen.render.templates import REASON, place_within

_FORMAT_SECONDS = 60.0


def read_filters(folder: Path, name: str) -> Mapping[str, Callable[..., Any]]:
    """The public functions of a module in a folder, whose text counts as source.

    Raises:
        TemplateError: The module is not in the folder, or cannot be imported.
    """
    path = folder / name
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        raise TemplateError(str(path), None, "expected a module of Python in the folder, got none")
    module = _import_file(path)
    return {
        name: partial(_as_code, function)
        for name, function in vars(module).items()
        if callable(function) and not name.startswith("_")
        if getattr(function, "__module__", "") == module.__name__
    }


def _as_code(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The result of a function of the user's; text that it returns counts as source."""
    result = function(*args, **kwargs)
    return Code(result) if isinstance(result, str) else result


def _import_file(path: Path) -> ModuleType:
    place = util.spec_from_file_location(f"_mcpgen_filters_{path.stem}", path)
    if place is None or place.loader is None:
        raise TemplateError(str(path), None, "expected a module of Python, got another file")
    module = util.module_from_spec(place)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        place.loader.exec_module(module)
    except Exception as error:  # whatever a module of the user's raises
        own = place_within(path.resolve().parent, error)
        line = error.lineno if isinstance(error, SyntaxError) else own[1] if own else None
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        text = f"{type(error).__name__}: {safe_text(reason, REASON)}"
        raise TemplateError(str(path), line, text) from error
    finally:
        sys.dont_write_bytecode = before
    return module


def format_module(path: str, text: str, settings: FolderSettings, folder: Path) -> str:
    """A module as the settings of a folder have it formatted.

    Raises:
        OutputError: It cannot be formatted.
    """
    if settings.formatter:
        return _run_formatter(settings.formatter, path, text, folder)
    if settings.format == "none":
        return text
    is_default = settings.quotes == "double" and settings.line_length == WIDTH
    if is_default and path.endswith(".py"):
        return format_modules({path: text})[path]  # which remembers what it formatted
    return _format_with_black(path, text, settings)


def _format_with_black(path: str, text: str, settings: FolderSettings) -> str:
    from black import format_str  # takes long to import
    from black.mode import Mode, TargetVersion
    from black.parsing import InvalidInput

    mode = Mode(
        target_versions={TargetVersion.PY311},
        line_length=settings.line_length,
        string_normalization=settings.quotes == "double",
        is_pyi=path.endswith(".pyi"),
    )
    try:
        return format_str(text, mode=mode)
    except InvalidInput as error:
        raise OutputError(f"black could not format {path}: {safe_text(str(error))}") from error


def _run_formatter(command: Sequence[str], path: str, text: str, folder: Path) -> str:
    """The text that a command prints for a text on its standard input.

    Raises:
        OutputError: The command cannot be started, takes too long or fails.
    """
    words = [word.replace("{path}", path) for word in command]
    try:
        done = subprocess.run(
            words,
            input=text.encode(),
            capture_output=True,
            check=False,
            cwd=folder,
            timeout=_FORMAT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OutputError(f"{words[0]}: could not format {path}: {error}") from error
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        reason = safe_text(last[0], REASON) if last else f"exit code {done.returncode}"
        raise OutputError(f"{words[0]}: could not format {path}: {reason}")
    try:
        return done.stdout.decode()
    except UnicodeDecodeError as error:
        reason = f"expected {path} in UTF-8 on its output, got other bytes"
        raise OutputError(f"{words[0]}: {reason}") from error
