"""Typed calls of a server as one module of an existing project: `mcpgen mirror`.

A comment at the top of the module says where it comes from: the server, or a contract alone. The
contract that it was made from lies beside it, so the module can be checked without the server, and
a change of the server is reported like any other.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mcpgen import names
from mcpgen.contract import command, document
from mcpgen.contract.command import Selection
from mcpgen.contract.compare import Change, compare
from mcpgen.contract.document import Contract, ContractError
from mcpgen.errors import MirrorError, OutputError, ServerError, UsageError, safe_text
from mcpgen.input_files import parse_json, read_jsonc, read_text
from mcpgen.json_types import is_object
from mcpgen.package import manifest
from mcpgen.project import mirror
from mcpgen.project.mirror import Limits, Snapshot
from mcpgen.render import templates
from mcpgen.render.formatting import LEFT_ALONE, format_modules
from mcpgen.toml_records import Place, convert

_MARK = "# mcpgen mirror: "
"""The beginning of the comment with the origin of a module, as JSON."""

_PACKAGE = re.compile(r"\.{0,8}[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True)
class Origin:
    """The origin of a module of calls. Paths are relative to the module's folder.

    Attributes:
        package: The name by which the module imports the generated package, such as `app.protocol`
            or `.protocol`.
        calls_class: Name of the class of calls.
        contract: The file of the contract that the module was made from.
        server: The server as a user names it; empty if the contract is all there is.
        directory: The working directory of the server's command.
        include: Patterns of the items to have; everything if there are none.
        exclude: Patterns of items to leave out.
        module: Fingerprint of the module below the comment.
    """

    package: str
    calls_class: str
    contract: str
    server: str = ""
    directory: str = "."
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    module: str = ""

    @property
    def selection(self) -> Selection:
        """The items to have."""
        return Selection(self.include, self.exclude)

    def line(self) -> str:
        """The comment, in ASCII."""
        members = {key: value for key, value in asdict(self).items() if value}
        return f"{_MARK}{json.dumps(members, sort_keys=True)}\n"


def read_origin(path: Path) -> Origin:
    """The origin of a module.

    Raises:
        MirrorError: The file has none, or a malformed one.
    """
    text = read_text(path, MirrorError, "a module of mcpgen mirror")
    line = next((each for each in text.splitlines()[:4] if each.startswith(_MARK)), None)
    if line is None:
        raise MirrorError(str(path), "", "a module of mcpgen mirror", "another file")
    members = parse_json(line.removeprefix(_MARK), str(path), MirrorError)
    return _check_names(convert(members, Origin, Place(str(path), MirrorError)), str(path))


def _check_names(origin: Origin, source: str) -> Origin:
    """An origin whose names can stand in a module.

    Raises:
        MirrorError: They can't.
    """
    if not _PACKAGE.fullmatch(origin.package):
        expected = "a package as app.protocol or .protocol"
        raise MirrorError(source, "/package", expected, safe_text(origin.package))
    if not names.is_class_name(origin.calls_class) or origin.calls_class in mirror.RESERVED:
        expected = "the name of a class, which the module does not have yet"
        raise MirrorError(source, "/calls_class", expected, safe_text(origin.calls_class))
    return origin


def find_package(path: Path) -> str:
    """The name by which a module imports the only generated package beside it.

    Raises:
        UsageError: There is none, or more than one.
    """
    folder = path.resolve().parent
    beside = sorted(each.parent.name for each in folder.glob(f"*/{manifest.NAME}"))
    if len(beside) != 1:
        came = ", ".join(beside) or "none"
        raise UsageError(
            "expected --package with the generated package to import, such as app.protocol, or one"
            f" beside {path.name}, got {safe_text(came)}"
        )
    return f".{beside[0]}" if (folder / "__init__.py").is_file() else beside[0]


@dataclass(frozen=True)
class Module:
    """A module of calls, with its contract.

    Attributes:
        path: The module.
        origin: Its origin.
        contract: The contract that it is made from.
    """

    path: Path
    origin: Origin
    contract: Contract

    @property
    def contract_path(self) -> Path:
        """The file of the contract."""
        return self.path.parent / self.origin.contract

    def text(self) -> tuple[str, Sequence[str]]:
        """The text of the module, and notes about items without types."""
        # A check has the contract's file alone, whose members are sorted.
        contract = document.read_text(document.text_of(self.contract), self.origin.contract)
        lists = contract.surfaces[0].lists
        snapshot = Snapshot(lists, Limits(), self.origin.calls_class)
        values = mirror.build(snapshot, self.origin.package)
        rendered = templates.render("project/mirror/calls.py.jinja", mirror=values)
        body = format_modules({"calls.py": rendered})["calls.py"]
        origin = replace(self.origin, module=manifest.fingerprint(body))
        head = LEFT_ALONE.format(origin="generated by mcpgen mirror: mcpgen update FILE renews it")
        return f"{head}{origin.line()}{body}", values.notes

    def is_current(self) -> bool:
        """Whether the file is what mcpgen would write."""
        return self.path.read_text("utf-8") == self.text()[0]

    def is_edited(self) -> bool:
        """Whether the module on disk was edited by hand since it was written."""
        _, _, body = self.path.read_text("utf-8").partition(f"\n{_MARK}")
        return manifest.fingerprint(body.partition("\n")[2]) != self.origin.module

    def write(self) -> Sequence[str]:
        """Write the module, and its contract if a server was asked; return the notes of `text`.

        Raises:
            OutputError: A file can't be written.
        """
        text, notes = self.text()
        try:
            if self.origin.server:
                written = document.text_of(self.contract)
                self.contract_path.write_text(written, encoding="utf-8", newline="\n")
            self.path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error.strerror}") from error
        return notes


def new_module(target: str, path: Path, package: str, class_name: str, chosen: Selection) -> Module:
    """The module of a server or of a contract; nothing is written.

    Args:
        target: The server as for `mcpgen contract write`, or the file of a contract.
        path: The module to write.
        package: The name by which it imports the generated package.
        class_name: Name of the class of calls; empty for that of the server.
        chosen: The items to have.

    Raises:
        McpgenError: The server does not answer, or a name is no name.
    """
    folder = path.resolve().parent
    contract = _contract_in(Path(target))
    if contract is None:
        contract = command.of_newest(target, Path.cwd())
        file, server = f"{path.stem}.contract.json", target
    else:
        file, server = Path(os.path.relpath(Path(target).resolve(), folder)).as_posix(), ""
    title = re.sub(r"[^A-Za-z0-9]+", " ", contract.name).title().strip() or "Calls"
    calls_class = class_name or names.class_names([title], mirror.RESERVED)[title]
    directory = Path(os.path.relpath(Path.cwd(), folder)).as_posix() if server else "."
    origin = Origin(package, calls_class, file, server, directory, chosen.include, chosen.exclude)
    return Module(path, _check_names(origin, str(path)), chosen.apply(contract))


def _contract_in(path: Path) -> Contract | None:
    """The contract in a file; `None` if the file is something else, such as a configuration."""
    if path.suffix != ".json" or not path.is_file():
        return None
    members = read_jsonc(path, ContractError)
    return document.read(path) if is_object(members) and "contract" in members else None


def read_module(path: Path) -> Module:
    """The module in a file, with the contract that it was made from.

    Raises:
        McpgenError: The file is no such module, or its contract can't be read.
    """
    origin = read_origin(path)
    contract = document.read(path.parent / origin.contract)
    return Module(path, origin, origin.selection.apply(contract))


def server_changes(module: Module) -> tuple[Module, list[Change]]:
    """The module with what its server shows now, and the changes; none without a server.

    Raises:
        ServerError: The server does not start or answer.
    """
    origin = module.origin
    if not origin.server:
        return module, []
    try:
        contract = command.of_newest(origin.server, module.path.resolve().parent / origin.directory)
    except MirrorError as error:
        raise ServerError(f"{error}; --offline leaves the server out") from error
    new = replace(module, contract=origin.selection.apply(contract))
    return new, compare(module.contract, new.contract)


def update(path: Path, *, force: bool) -> tuple[Module, list[Change], Sequence[str]]:
    """Ask the server of a module again, and write the module and its contract anew.

    Args:
        path: The module.
        force: Whether to overwrite edits.

    Returns:
        The module, the changes of its server, and the notes of `Module.text`.

    Raises:
        OutputError: The module was edited by hand.
        McpgenError: The server does not answer, or a file is malformed.
    """
    old = read_module(path)
    if not force and old.is_edited():
        raise OutputError(
            f"{path}: edited by hand; move the changes to files of your own, or overwrite them with"
            " --force"
        )
    new, changes = server_changes(old)
    return new, changes, new.write()
