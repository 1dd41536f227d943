"""The command `python -m <package> config`: a server's entry for the configuration of a host.

It prints the entry, the host's own command that adds it, or a link that installs it, or writes it
into the host's file. It opens no connection.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ..errors import MissingExtraError
from . import hosts
from .command_table import CANNOT, DONE

MODULE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""A target such as `weather:server`."""


class UsageError(Exception):
    """The command line contradicts itself, or does not fit the server."""


def add_command(add: Callable[..., argparse.ArgumentParser], *, package: str) -> None:
    """Add the command to a parser.

    Args:
        add: The `add_parser` method of the subparsers.
        package: The import name of the package.
    """
    text = "print the entry for the configuration of a program that uses servers, or write it"
    parser = add("config", help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="URL, command line in quotes, or MODULE:SERVER of the current directory",
    )
    parser.add_argument("--client", required=True, choices=[*hosts.HOSTS], help="the program")
    parser.add_argument("--name", help="name of the server there")
    add_sending_options(parser)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--command",
        dest="form",
        action="store_const",
        const=_command,
        help=f"print the program's own command that adds the server ({_with('add')})",
    )
    forms.add_argument(
        "--link",
        dest="form",
        action="store_const",
        const=_link,
        help=f"print a link that installs the server ({_with('link')})",
    )
    forms.add_argument(
        "--write",
        dest="form",
        action="store_const",
        const=_write,
        help="write the entry into the program's file, whose comments and order stay",
    )
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help="with --write: another file than the usual one"
    )
    parser.set_defaults(main=partial(_run, package), form=_print)


def _with(attribute: str) -> str:
    """The hosts that have something."""
    return ", ".join(name for name, host in hosts.HOSTS.items() if getattr(host, attribute))


def add_sending_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for what a server is sent: `--header` and `--env`."""
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="header of each HTTP request; may be given several times",
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="environment variable for a command, which gets few without this",
    )


def _run(package: str, chosen: argparse.Namespace) -> int:
    form: Callable[[argparse.Namespace, str, hosts.Server], str] = chosen.form
    try:
        if chosen.file is not None and form is not _write:
            raise UsageError("expected --write with --file, got none")
        print(form(chosen, *_entry(package, chosen)))
    except (UsageError, ValueError, MissingExtraError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return CANNOT
    return DONE


def _entry(package: str, chosen: argparse.Namespace) -> tuple[str, hosts.Server]:
    """The name of the server, and its entry.

    The entry for `MODULE:SERVER` has the current directory, and that for a program of this
    environment its whole path, so that a host finds them from anywhere.

    Raises:
        UsageError: The command line contradicts itself.
    """
    if re.search(r"\.json(:|$)", chosen.target):
        raise UsageError("expected a URL, a command line or MODULE:SERVER, got a configuration")
    host, headers = hosts.HOSTS[chosen.client], headers_of(chosen)
    target = parse_target(chosen.target, package)
    name = chosen.name or hosts.default_name(target)
    env: dict[str, str | None] = {}
    if isinstance(target, str):
        if chosen.env:
            raise UsageError("--env: expected a command or MODULE:SERVER, got a URL")
    else:
        if headers:
            raise UsageError("--header: expected a URL, got a command or MODULE:SERVER")
        target = [_whole_path(target[0]), *target[1:]]
    for word in chosen.env:
        variable, equals, value = word.partition("=")
        env[variable] = value if equals else None
    folder = Path.cwd() if MODULE.fullmatch(chosen.target) else None
    return name, hosts.server_entry(host, name, target, env, headers, folder)


def _whole_path(program: str) -> str:
    """The path of a program of this Python's environment, which a host may not have on its path."""
    place = shutil.which(program, path=sysconfig.get_path("scripts"))
    return place if place and os.sep not in program else program


def _print(chosen: argparse.Namespace, name: str, server: hosts.Server) -> str:
    return hosts.entry_text(hosts.HOSTS[chosen.client], name, server)


def _command(chosen: argparse.Namespace, name: str, server: hosts.Server) -> str:
    add = hosts.HOSTS[chosen.client].add
    if add is None:
        raise UsageError(f"--command: expected one of {_with('add')}, got {chosen.client}")
    return hosts.command_text(add(name, server))


def _link(chosen: argparse.Namespace, name: str, server: hosts.Server) -> str:
    link = hosts.HOSTS[chosen.client].link
    if link is None:
        raise UsageError(f"--link: expected one of {_with('link')}, got {chosen.client}")
    return link(name, server)


def _write(chosen: argparse.Namespace, name: str, server: hosts.Server) -> str:
    from .host_files import write_entry  # its libraries are for this alone

    host = hosts.HOSTS[chosen.client]
    path = chosen.file or host.path()
    backup = write_entry(host, path, name, server)
    before = "" if backup is None else f"; {backup.name} is the file as it was"
    return f"{path} has {name}{before}"


# shared with commands that use a server


def parse_target(text: str, package: str) -> str | list[str]:
    """A URL, or the words of a command: `MODULE:SERVER` is served by the package.

    Args:
        text: The target of the command line.
        package: The import name of the package.

    Raises:
        UsageError: The text is neither.
    """
    if text.lower().startswith(("http://", "https://")):
        return text
    if MODULE.fullmatch(text):
        return [sys.executable, "-m", package, "serve", text]
    try:
        words = shlex.split(text)
    except ValueError as error:
        from ..command_masking import masked_command  # its patterns take long to compile

        masked = masked_command(text.split())
        raise UsageError(f"{masked!r}: expected a command line, got {error}") from None
    if not words:
        raise UsageError("expected a URL, a command line or MODULE:SERVER, got an empty text")
    if len(words) == 1 and _is_python_file(words[0]):
        module = words[0].removesuffix(".py").replace("/", ".")
        raise UsageError(
            f"{text!r}: expected a URL, a command line or MODULE:SERVER, got a Python file; "
            f"did you mean {module}:server or 'python {module.replace('.', '/')}.py'?"
        )
    return words


def _is_python_file(word: str) -> bool:
    """Whether a word names a module of the current directory or its file, and no program."""
    file = Path(f"{word.removesuffix('.py').replace('.', '/')}.py")
    return file.is_file() and shutil.which(word) is None


def headers_of(chosen: argparse.Namespace) -> dict[str, str]:
    """The header fields of `--header`.

    Raises:
        UsageError: One has no name or no colon.
    """
    headers: dict[str, str] = {}
    fields: Sequence[str] = chosen.header
    for header in fields:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise UsageError("--header: expected 'NAME: VALUE', got no name or no colon")
        headers[name.strip()] = value.strip()
    return headers
